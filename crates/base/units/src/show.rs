//! Printing quantities for people: three significant digits, a space before the unit, and a value
//! that rounds up to the next unit is printed in it (999.6 µs is `1.00 ms`).

mod text;

pub use text::safe;

use crate::Nanos;

/// Formats a duration: `850 ns`, `12.3 µs`, `4.56 ms`, `1.23 s`, `2 m 05 s`, `3 h 07 m`,
/// `2 d 05 h`.
pub fn duration(span: Nanos) -> String {
    let ns = span.0;
    if ns == 0 {
        return "0 s".to_owned();
    }
    for (unit_ns, name) in [(1_u64, "ns"), (1_000, "µs"), (1_000_000, "ms"), (SECOND_NS, "s")] {
        let value = ns as f64 / unit_ns as f64;
        let limit = if name == "s" { 60.0 } else { 1000.0 };
        let text = if name == "ns" { ns.to_string() } else { three_digits(value) };
        if rounded(&text) < limit {
            return format!("{text} {name}");
        }
    }
    for (unit_ns, name, sub_ns, sub_name) in LONG_UNITS {
        let per_unit = unit_ns / sub_ns;
        let subs = ns / sub_ns + u64::from(ns % sub_ns >= sub_ns / 2);
        let units = subs / per_unit;
        let rest = subs % per_unit;
        if name == "d" || units < if name == "m" { 60 } else { 24 } {
            return format!("{} {name} {rest:02} {sub_name}", count(units));
        }
    }
    unreachable!("a number of days can have any length")
}

const SECOND_NS: u64 = 1_000_000_000;

/// (unit, its name, the next smaller unit, its name).
const LONG_UNITS: [(u64, &str, u64, &str); 3] = [
    (60 * SECOND_NS, "m", SECOND_NS, "s"),
    (3_600 * SECOND_NS, "h", 60 * SECOND_NS, "m"),
    (86_400 * SECOND_NS, "d", 3_600 * SECOND_NS, "h"),
];

/// Formats a count: `1,234,567`.
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// Formats a rate: `2,000/s`, `1,234.5/s`, `12,345/s`, `0.0123/s`: whole rates without a fraction,
/// others with at least three significant digits. `-` for values that are not numbers.
pub fn rate(per_second: f64) -> String {
    if !per_second.is_finite() {
        return "-".to_owned();
    }
    let size = per_second.abs();
    let whole = (per_second - per_second.round()).abs() <= size * 1e-9;
    let number = match size {
        _ if whole => format!("{per_second:.0}"),
        10_000.0.. => format!("{per_second:.0}"),
        100.0.. => format!("{per_second:.1}"),
        _ => three_digits(per_second),
    };
    format!("{}/s", grouped(&number))
}

/// Rounds an estimate up to two digits: 15,468 becomes 16,000.
pub fn estimate(n: u64) -> u64 {
    let unit = n.checked_ilog10().map_or(1, |digits| 10_u64.pow(digits.saturating_sub(1)));
    n.div_ceil(unit).saturating_mul(unit)
}

/// Formats a number of bytes: `850 B`, `1.50 KiB`, `12.3 MiB`: powers of 1024.
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64;
    let mut text = String::new();
    for name in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        value /= 1024.0;
        let number = three_digits(value);
        let fits = rounded(&number) < 1024.0;
        text = format!("{number} {name}");
        if fits {
            break;
        }
    }
    text
}

/// Formats a share 0..=1: `12.3 %`. A share close to zero or one never prints as `0 %` or `100 %`
/// (to a ten-thousandth of a percent). `-` for values that are not numbers.
pub fn share(share: f64) -> String {
    if !share.is_finite() {
        return "-".to_owned();
    }
    let percent = share * 100.0;
    let from_all = (100.0 - percent).abs();
    if percent == 0.0 || from_all < 1e-9 {
        return format!("{percent:.0} %");
    }
    let least = match percent.abs() {
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let shows_all = |decimals: usize| from_all < 0.5 * 0.1_f64.powi(decimals as i32);
    let shows_none = |decimals: usize| percent.abs() < 0.5 * 0.1_f64.powi(decimals as i32);
    let decimals = (least..6).find(|d| !shows_all(*d) && !shows_none(*d)).unwrap_or(6);
    format!("{percent:.decimals$} %")
}

/// Formats three significant digits as a plain decimal; whole from 100 up.
fn three_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals_at = |value: f64| (2 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.*}", decimals_at(value));
    // 9.996 needs one decimal fewer once it has been rounded to 10.00.
    let decimals = decimals_at(rounded(&text));
    format!("{value:.decimals$}")
}

fn rounded(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

/// Inserts commas between the thousands of the whole part.
fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests;
