//! Parses and prints numbers as wrk does.

/// Scale of units: the base's name, the factor to the next unit, and the names of the others.
struct Units {
    scale: u64,
    base: &'static str,
    others: &'static [&'static str],
}

const MICROS: Units = Units { scale: 1000, base: "us", others: &["ms", "s"] };
const SECONDS: Units = Units { scale: 60, base: "s", others: &["m", "h"] };
const BYTES: Units = Units { scale: 1024, base: "", others: &["K", "M", "G", "T", "P"] };
const METRIC: Units = Units { scale: 1000, base: "", others: &["k", "M", "G", "T", "P"] };

/// Parses a count such as `10`, `1k`, `2M`; `None` if wrk would show its usage.
pub(super) fn scan_metric(text: &str) -> Option<u64> {
    scan(text, &METRIC)
}

/// Parses `10`, `30s`, `2m` or `1h` as seconds.
pub(super) fn scan_time(text: &str) -> Option<u64> {
    // a time below zero would be one of billions of years
    scan(text, &SECONDS).filter(|_| !text.trim_start().starts_with('-'))
}

fn scan(text: &str, units: &Units) -> Option<u64> {
    let text = text.trim_start();
    // as `scanf` has it, a sign belongs to a number, and -1 is the largest one
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let base: u64 = text[..digits].parse().ok()?;
    let base = if negative { base.wrapping_neg() } else { base };
    // two letters of a unit are read, and the rest is ignored
    let unit: String = text[digits..].trim_start().chars().take(2).collect();
    let unit = unit.split_whitespace().next().unwrap_or("");
    if unit.is_empty() || unit.eq_ignore_ascii_case(units.base) {
        return Some(base);
    }
    let power = units.others.iter().position(|known| known.eq_ignore_ascii_case(unit))?;
    let scale = units.scale.checked_pow(u32::try_from(power).ok()? + 1)?;
    base.checked_mul(scale)
}

/// Formats a number; wrk changes to the next unit at 0.85 of it, but never uses the last unit of
/// its list.
fn format(number: f64, units: &Units, decimals: usize) -> String {
    let threshold = units.scale as f64 * 0.85;
    let mut amount = number;
    let mut unit = units.base;
    for pair in units.others.windows(2) {
        if amount < threshold {
            break;
        }
        amount /= units.scale as f64;
        unit = pair[0];
    }
    format!("{amount:.decimals$}{unit}")
}

pub(super) fn metric(number: f64) -> String {
    format(number, &METRIC, 2)
}

pub(super) fn bytes(number: f64) -> String {
    format(number, &BYTES, 2)
}

/// Formats a span given in microseconds.
pub(super) fn time_us(micros: f64) -> String {
    if micros >= 1_000_000.0 {
        format(micros / 1e6, &SECONDS, 2)
    } else {
        format(micros, &MICROS, 2)
    }
}

/// Formats a span given in whole seconds.
pub(super) fn time_s(seconds: u64) -> String {
    format(seconds as f64, &SECONDS, 0)
}

/// Formats a number with its unit in a column; units shorter than two letters are padded with
/// blanks on the right.
pub(super) fn column(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2).filter(char::is_ascii_alphabetic).count();
    let blanks = 2 - letters;
    let width = width - blanks;
    // as printf's "%*.*s": no more than the width is shown
    let shown: String = text.chars().take(width).collect();
    format!("{shown:>width$}{}", " ".repeat(blanks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_wrk_reads_them() {
        let counts = ["10", "1k", "2M", "1K", "1 k", "", "k", "1x", "1kb", "-1"].map(scan_metric);
        let n = |value| Some(value);
        assert_eq!(
            counts,
            [n(10), n(1000), n(2_000_000), n(1000), n(1000), None, None, None, None, n(u64::MAX)]
        );
        let times = ["10", "30s", "2m", "1h", "2H", "1x", "10sec", "-1"].map(scan_time);
        assert_eq!(times, [n(10), n(30), n(120), n(3600), n(7200), None, None, None]);
    }

    #[test]
    fn numbers_are_written_as_wrk_writes_them() {
        let times = [0.0, 635.91, 849.0, 850.0, 12_920.0, 999_999.0, 1e6, 3.0e7, 5.2e7, 7.2e9];
        assert_eq!(
            times.map(time_us).join(" "),
            "0.00us 635.91us 849.00us 0.85ms 12.92ms 1000.00ms 1.00s 30.00s 0.87m 120.00m"
        );
        assert_eq!([1, 30, 51, 60, 120, 7200].map(time_s).join(" "), "1s 30s 1m 1m 2m 120m");
        assert_eq!([0.0, 870.0, 871.0, 5e6].map(bytes).join(" "), "0.00 870.00 0.85K 4.77M");
        assert_eq!([0.0, 849.0, 850.0, 56_200.0].map(metric).join(" "), "0.00 849.00 0.85k 56.20k");
    }

    #[test]
    fn columns_line_up_by_their_numbers() {
        let shown = ["635.91us", "0.89ms", "1.20s", "56.20k", "0.00"].map(|text| column(text, 9));
        assert_eq!(shown, [" 635.91us", "   0.89ms", "   1.20s ", "  56.20k ", "   0.00  "]);
    }
}
