//! Durations as k6 reads and writes them.

use units::Nanos;

/// Parses `1m30s`, `1.5s`, `2d`, or a number of milliseconds.
///
/// # Errors
/// Fails if the text is anything else, negative, or longer than 100 years.
pub fn parse(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("invalid duration '{text}'; write it like 30s, 1m30s or 500ms");
    let text = text.trim();
    if let Ok(millis) = text.parse::<f64>() {
        return seconds(millis / 1e3).ok_or_else(wrong);
    }
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(wrong()),
        };
        total += number * unit;
        rest = &rest[end..];
    }
    if text.is_empty() {
        return Err(wrong());
    }
    seconds(total).ok_or_else(wrong)
}

fn seconds(value: f64) -> Option<Nanos> {
    (0.0..=3.2e9).contains(&value).then(|| Nanos((value * 1e9).round() as u64))
}

/// Formats a duration like Go: `1m30s`, `500ms`, `0s`.
pub fn show(span: Nanos) -> String {
    let nanos = span.0;
    if nanos == 0 {
        return "0s".to_owned();
    }
    if nanos < 1_000_000_000 {
        let (unit, size) = match nanos {
            0..1_000 => ("ns", 1.0),
            1_000..1_000_000 => ("µs", 1e3),
            _ => ("ms", 1e6),
        };
        return format!("{}{unit}", nanos as f64 / size);
    }
    let (whole, part) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let (hours, minutes, seconds) = (whole / 3_600, whole / 60 % 60, whole % 60);
    let mut out = String::new();
    if hours > 0 {
        out.push_str(&format!("{hours}h"));
    }
    if hours > 0 || minutes > 0 {
        out.push_str(&format!("{minutes}m"));
    }
    let fraction = format!("{part:09}");
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{out}{seconds}{dot}{fraction}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed() {
        for (text, shown) in [
            ("30s", "30s"),
            ("1m30s", "1m30s"),
            ("1d2h", "26h0m0s"),
            ("1500", "1.5s"),
            ("0.5s", "500ms"),
            ("0", "0s"),
            ("250us", "250µs"),
        ] {
            assert_eq!(show(parse(text).unwrap()), shown, "{text}");
        }
        for bad in ["", "x", "10y", "s", "-5s", "1e40s", "10s5"] {
            assert!(parse(bad).unwrap_err().contains("30s"), "{bad}");
        }
    }
}
