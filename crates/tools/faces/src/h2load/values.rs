//! Parses and prints numbers as h2load does.

use units::Nanos;

/// Parses a number of only digits, of at most 63 bits.
pub(super) fn whole(text: &str) -> Option<u64> {
    let (number, rest) = digits(text)?;
    rest.is_empty().then_some(number)
}

/// Parses a number with a unit of `K`, `M` or `G`, which are powers of 1024.
pub(super) fn size(text: &str) -> Option<u64> {
    let (number, rest) = digits(text)?;
    let factor = match rest {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor).filter(|size| i64::try_from(*size).is_ok())
}

/// Parses a span with a unit of `h`, `m`, `s` or `ms`, in seconds without a unit; the maximum here
/// is a century.
pub(super) fn duration(text: &str) -> Option<Nanos> {
    let (number, rest) = digits(text)?;
    let millis = match rest.to_ascii_lowercase().as_str() {
        "" | "s" => number.checked_mul(1_000)?,
        "ms" => number,
        "m" => number.checked_mul(60_000)?,
        "h" => number.checked_mul(3_600_000)?,
        _ => return None,
    };
    let nanos = millis.checked_mul(1_000_000)?;
    Some(Nanos(nanos).min(units::DURATION_MAX))
}

fn digits(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: i64 = text[..end].parse().ok()?;
    Some((number.unsigned_abs(), &text[end..]))
}

/// Parses the requests per second of each client, as `strtod` does; zero means no rate. Negative
/// numbers, and more than a million per second, are not accepted.
pub(super) fn rate(text: &str) -> Option<f64> {
    let rate: f64 = text.trim_start().parse().ok()?;
    (rate.is_finite() && 1.0 / rate >= 1e-6).then_some(rate)
}

/// Formats `2.93ms`: whole microseconds below a millisecond, else two digits after the point.
pub(super) fn show_duration(span: Nanos) -> String {
    match span.0 / 1_000 {
        micros @ 0..1_000 => format!("{micros}us"),
        micros @ 1_000..1_000_000 => format!("{}ms", two_digits(micros as f64 / 1e3)),
        micros => format!("{}s", two_digits(micros as f64 / 1e6)),
    }
}

/// Formats seconds, rounded to microseconds.
pub(super) fn show_seconds(seconds: f64) -> String {
    let micros = (seconds * 1e6).round().max(0.0) as u64;
    show_duration(Nanos(micros.saturating_mul(1_000)))
}

/// Formats two digits after the point; halves are rounded away from zero.
pub(super) fn two_digits(number: f64) -> String {
    let hundredths = (number * 100.0).round() as i64;
    format!("{}.{:02}", hundredths / 100, (hundredths % 100).abs())
}

/// Formats `3.73K`: bytes by powers of 1024.
pub(super) fn show_bytes(bytes: u64) -> String {
    for (unit, power) in [("G", 30), ("M", 20), ("K", 10)] {
        if bytes >= 1 << power {
            return format!("{}{unit}", two_digits(bytes as f64 / (1u64 << power) as f64));
        }
    }
    bytes.to_string()
}

/// Formats `100ms`, `1s`, `5m`: the largest unit that leaves no rest.
pub(super) fn show_period(period: Nanos) -> String {
    let millis = period.0 / 1_000_000;
    if !millis.is_multiple_of(1_000) {
        return format!("{millis}ms");
    }
    let seconds = millis / 1_000;
    match seconds {
        0 => "0".to_owned(),
        seconds if seconds % 60 > 0 => format!("{seconds}s"),
        seconds if seconds / 60 % 60 > 0 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3_600),
    }
}

/// Formats seconds as C++ streams print a `double`: six significant digits, no zeros at the end.
pub(super) fn show_plain_seconds(span: Nanos) -> String {
    let seconds = span.as_secs_f64();
    if seconds >= 1e6 {
        let text = format!("{seconds:.5e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        return format!("{mantissa}e+{exponent:0>2}");
    }
    let whole = format!("{}", seconds.trunc()).len();
    let text = format!("{seconds:.*}", 6usize.saturating_sub(whole));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_by_h2load() {
        assert_eq!(
            ["7", "", "7x", "-1", "9999999999999999999"].map(whole),
            [Some(7), None, None, None, None]
        );
        assert_eq!(
            ["16K", "1m", "2G", "5", "K", "1KB"].map(size),
            [Some(16 << 10), Some(1 << 20), Some(2 << 30), Some(5), None, None]
        );
        let spans = ["3", "3s", "250ms", "2M", "1h", "1d", "1.5s", ""];
        let read = spans.map(|span| duration(span).map(|span| span.0 / 1_000_000));
        let wanted =
            [Some(3_000), Some(3_000), Some(250), Some(120_000), Some(3_600_000), None, None, None];
        assert_eq!(read, wanted);
        assert_eq!(
            ["0", "2.5", "x", "-1", "2x", "inf"].map(rate),
            [Some(0.0), Some(2.5), None, None, None, None]
        );
    }

    #[test]
    fn numbers_are_shown_as_by_h2load() {
        let spans = [0, 49_999, 999_999, 2_930_400, 1_000_000_000, 61_994_999_999];
        let shown = spans.map(|span| show_duration(Nanos(span)));
        assert_eq!(shown, ["0us", "49us", "999us", "2.93ms", "1.00s", "61.99s"]);
        assert_eq!(
            [0, 600, 1_024, 3_820, 4_417_706].map(show_bytes),
            ["0", "600", "1.00K", "3.73K", "4.21M"]
        );
        let periods = [100, 1_000, 60_000, 7_200_000, 1_500, 90_000];
        let shown = periods.map(|millis| show_period(Nanos::from_millis(millis)));
        assert_eq!(shown, ["100ms", "1s", "1m", "2h", "1500ms", "90s"]);
        let spans = [0, 500, 1_000, 90_000, 1_234_567, 12_345_678_901];
        let shown = spans.map(|millis| show_plain_seconds(Nanos::from_millis(millis)));
        assert_eq!(shown, ["0", "0.5", "1", "90", "1234.57", "1.23457e+07"]);
    }
}
