//! Numbers in C's syntax: the longest valid prefix, and `%g`.

/// Returns the number at the start of `text`, as `strtoul` with base 10 (or, with `any_base`, 0x
/// and 0 prefixes too), and the rest. `None` without a digit or beyond 64 bits. A minus sign is not
/// accepted: C would turn it into an enormous number.
pub(super) fn unsigned(text: &str, any_base: bool) -> Option<(u64, &str)> {
    let bare = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let bare = bare.strip_prefix('+').unwrap_or(bare);
    let (digits, base) = match bare.as_bytes() {
        [b'0', b'x' | b'X', third, ..] if any_base && third.is_ascii_hexdigit() => (&bare[2..], 16),
        [b'0', ..] if any_base => (bare, 8),
        _ => (bare, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    let number = u64::from_str_radix(&digits[..end], base).ok()?;
    Some((number, &digits[end..]))
}

/// Returns the decimal number at the start of `text`, as `strtod`, and what follows.
pub(crate) fn decimal(text: &str) -> Option<(f64, &str)> {
    let bare = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let bytes = bare.as_bytes();
    let digits = |from: usize| {
        let here = bytes.get(from..).unwrap_or_default();
        from + here.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(sign);
    let point = bytes.get(whole) == Some(&b'.');
    let mut end = if point { digits(whole + 1) } else { whole };
    if end - sign == usize::from(point) {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let last = digits(end + 1 + signed);
        if last > end + 1 + signed {
            end = last;
        }
    }
    let number: f64 = bare[..end].parse().ok()?;
    number.is_finite().then_some((number, &bare[end..]))
}

/// Formats `%g`: six significant digits, trailing zeros dropped, an exponent below 1e-4 and from
/// 1e6 on.
pub(crate) fn general(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        return trim(&format!("{value:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_parsed_as_in_c() {
        assert_eq!(unsigned("12,x", false), Some((12, ",x")));
        assert_eq!(unsigned(" +7", false), Some((7, "")));
        assert_eq!(unsigned("0x1fz", true), Some((31, "z")));
        assert_eq!(unsigned("0x", true), Some((0, "x")));
        assert_eq!(unsigned("010", true), Some((8, "")));
        assert_eq!(unsigned("010", false), Some((10, "")));
        for bad in ["", "x", "-1", "99999999999999999999"] {
            assert_eq!(unsigned(bad, false), None, "{bad}");
        }
        assert_eq!(decimal("1.5,2"), Some((1.5, ",2")));
        assert_eq!(decimal("-.5e"), Some((-0.5, "e")));
        assert_eq!(decimal("3.e2x"), Some((300.0, "x")));
        for bad in ["", ".", "-", "e5", "abc", "nan", "1e999"] {
            assert_eq!(decimal(bad), None, "{bad}");
        }
    }

    #[test]
    fn six_digits_are_printed_as_c_prints_them() {
        for (value, wanted) in [
            (0.0, "0"),
            (5.5, "5.5"),
            (10.0 / 3.0, "3.33333"),
            (1_234_567.0, "1.23457e+06"),
            (1e-7, "1e-07"),
            (1.2345e-5, "1.2345e-05"),
            (0.0001, "0.0001"),
            (100_000.0, "100000"),
            (999_999.5, "1e+06"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(general(value), wanted);
        }
    }
}
