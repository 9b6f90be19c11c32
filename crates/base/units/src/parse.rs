//! Parsing quantities as typed by users. Decimal fractions are parsed exactly, with integers, so
//! that `0.1s` is 100,000,000 ns and not a rounded binary fraction.

use crate::Nanos;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Error in a quantity, for the user: names the input and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(pub String);

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

/// Events per second. Always finite and above zero.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// Rate, or a linear change from one rate to another: `2000/s` or `100..2000/s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSpan {
    pub from: Rate,
    pub to: Rate,
}

/// Longest accepted duration: 100 years of 365 days. Sums of a few such spans and an instant still
/// fit into [`Nanos`].
pub const DURATION_MAX: Nanos = Nanos::from_secs(100 * 365 * 86_400);

/// Parses a duration: `500us 20ms 10s 5m 2h 1d`, fractions (`0.5s`), sums (`1m30s`). Only zero may
/// have no unit: a bare number means seconds in some tools and milliseconds in others. Spaces
/// between the parts are permitted, so that the output of [`crate::show::duration`] is accepted.
pub fn parse_duration(text: &str) -> Result<Nanos, ParseError> {
    let bad = |why: &str| {
        ParseError(format!("{} is not a duration: {why}; write one like {DURATIONS}", quoted(text)))
    };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad("it is empty"));
    }
    let mut total = 0u128;
    let mut parts = 0;
    while !rest.is_empty() {
        let (number, after) = Decimal::take(rest).map_err(|why| bad(&why))?;
        let unit_len = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_len);
        if unit.is_empty() && (parts > 0 || !next.is_empty()) {
            return Err(bad("a number in it has no unit"));
        }
        if unit.is_empty() && !number.is_zero() {
            let typed = text.trim();
            return Err(ParseError(format!(
                "{} has no unit: write {typed}ms or {typed}s (units {DURATION_UNITS})",
                quoted(text)
            )));
        }
        let unit_ns = duration_unit(unit)
            .ok_or_else(|| bad(&format!("{} is not a unit of time", quoted(unit))))?;
        total = total.saturating_add(number.times(unit_ns));
        if total == 0 && !number.is_zero() {
            return Err(bad("it is shorter than a nanosecond"));
        }
        parts += 1;
        rest = next.trim_start();
    }
    match u64::try_from(total) {
        Ok(ns) if ns <= DURATION_MAX.0 => Ok(Nanos(ns)),
        _ => Err(bad("it is longer than 100 years")),
    }
}

/// Parses a rate: `2000/s 120/m 10/h`, `2k/s`. Thousands may be grouped (`2,000/s`).
pub fn parse_rate(text: &str) -> Result<Rate, ParseError> {
    let (number, unit) = split_per(text);
    rate_of(text, number, per_second(text, unit))
}

/// Parses `2000/s` or `100..2000/s`. The time unit of the second half applies to both, unless the
/// first half has its own; `k` and `M` apply to their own number only.
pub fn parse_rate_span(text: &str) -> Result<RateSpan, ParseError> {
    let Some((first, second)) = text.split_once("..") else {
        let rate = parse_rate(text)?;
        return Ok(RateSpan { from: rate, to: rate });
    };
    let (to_number, to_unit) = split_per(second);
    let (from_number, from_unit) = split_per(first);
    let to_per_s = per_second(text, to_unit);
    let from_per_s = match from_unit {
        None => to_per_s.clone(),
        named => per_second(text, named),
    };
    Ok(RateSpan {
        from: rate_of(text, from_number, from_per_s)?,
        to: rate_of(text, to_number, to_per_s)?,
    })
}

/// Parses a size in bytes: `64`, `64k`, `1M`, `2G` (powers of 1024; also spelled `KiB`, `kB`). A
/// fraction is rounded to the nearest byte.
pub fn parse_size(text: &str) -> Result<u64, ParseError> {
    let bad = |why: &str| {
        ParseError(format!("{} is not a size: {why}; write one like {SIZES}", quoted(text)))
    };
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(bad("it is empty"));
    }
    let (number, unit) = Decimal::take(trimmed).map_err(|why| bad(&why))?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        "e" | "eb" | "eib" => 60,
        _ => return Err(bad(&format!("{} is not a unit of size", quoted(unit)))),
    };
    u64::try_from(number.times(1_u64 << shift)).map_err(|_| bad("it is too large"))
}

/// Parses a count: `500`, `10k`, `2.5M` (powers of 1000), optionally with grouped thousands
/// (`10,000`).
///
/// # Errors
/// Fails for text that is not a number, has a fraction of an indivisible unit, or is above 2⁶⁴ − 1.
pub fn parse_count(text: &str) -> Result<u64, ParseError> {
    let bad = |why: &str| {
        ParseError(format!("{} is not a count: {why}; write one like {COUNTS}", quoted(text)))
    };
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(bad("it is empty"));
    }
    let (number, suffix) = Decimal::take(trimmed).map_err(|why| bad(&why))?;
    let times = match suffix {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return Err(bad(&format!("{} cannot be parsed", quoted(suffix)))),
    };
    if !(u128::from(number.fraction) * u128::from(times)).is_multiple_of(FRACTION_ONE.into()) {
        return Err(bad("it is not a whole number"));
    }
    u64::try_from(number.times(times)).map_err(|_| bad("it is too large"))
}

/// Parses `25%`, or a fraction such as `0.25`, to 0..=1. A bare `1` is refused: it could be 1 % or
/// all.
///
/// # Errors
/// Fails for other text, and above 100 %.
pub fn parse_share(text: &str) -> Result<f64, ParseError> {
    let value = text.trim();
    let share = match value.strip_suffix('%') {
        Some(percent) => parse_percent(percent.trim_end()),
        None => plain_number(value, ""),
    };
    let bad = |why: &str| ParseError(format!("{} {why}", quoted(value)));
    let share = share.ok_or_else(|| bad("is not a percentage"))?;
    if share > 1.0 {
        let fix = if value.ends_with('%') { "" } else { "; a percentage ends in %" };
        return Err(bad(&format!("is over 100 %{fix}")));
    }
    if share.to_bits() == 1.0_f64.to_bits() && !value.contains(['%', '.']) {
        return Err(bad(&format!("has no unit: write {value}% or 100%")));
    }
    Ok(share)
}

/// Returns the number before a percent sign as a share. The decimal point is moved in the text:
/// 99.9 / 100 in binary is a little above 0.999, and the rank ceil(q·n) would be one too high.
pub fn parse_percent(percent: &str) -> Option<f64> {
    plain_number(percent, "e-2")
}

fn plain_number(digits: &str, exponent: &str) -> Option<f64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    plain.then(|| format!("{digits}{exponent}").parse().ok()).flatten()
}

const COUNTS: &str = "500, 10k or 2M";
const DURATIONS: &str = "500ms, 10s or 1m30s (units ns us ms s m h d)";
const DURATION_UNITS: &str = "ns us ms s m h d";
const RATES: &str = "2000/s, 2k/s or 120/m (units s m h d)";
const SIZES: &str = "512, 64k or 1M (units k M G T)";

/// Returns the input in quotation marks, shortened so that a message stays readable, and escaped so
/// that it cannot control the terminal. For every message that repeats user input.
pub fn quoted(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

fn duration_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "" | "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    })
}

fn split_per(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((number, unit)) => (number.trim(), Some(unit.trim())),
        None => (text.trim(), None),
    }
}

/// Parses the unit after the stroke, in seconds. Without one, `100` could be a number of calls.
fn per_second(text: &str, unit: Option<&str>) -> Result<f64, ParseError> {
    Ok(match unit {
        Some("s" | "sec") => 1.0,
        Some("m" | "min") => 60.0,
        Some("h") => 3_600.0,
        Some("d") => 86_400.0,
        Some(unit) => {
            return Err(bad_rate(text, &format!("{} is not a unit of time", quoted(unit))));
        }
        None => return Err(bad_rate(text, "it has no unit")),
    })
}

fn bad_rate(text: &str, why: &str) -> ParseError {
    ParseError(format!("{} is not a rate: {why}; write one like {RATES}", quoted(text)))
}

fn rate_of(text: &str, number: &str, unit_s: Result<f64, ParseError>) -> Result<Rate, ParseError> {
    if number.is_empty() {
        return Err(bad_rate(text, "a number is missing"));
    }
    let (decimal, suffix) = Decimal::take(number).map_err(|why| bad_rate(text, &why))?;
    let times = match suffix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        _ => return Err(bad_rate(text, &format!("{} cannot be parsed", quoted(suffix)))),
    };
    if decimal.is_zero() {
        return Err(bad_rate(text, "it must be above zero"));
    }
    // the nearest binary number, so that a printed rate is read back unchanged
    let digits = number[..number.len() - suffix.len()].trim_end().replace([',', '_'], "");
    let value = digits.parse().unwrap_or_else(|_| decimal.as_f64());
    Ok(Rate(value * times / unit_s?))
}

/// An unsigned decimal number as typed: whole part and up to [`FRACTION_DIGITS`] of the fraction.
#[derive(Clone, Copy)]
struct Decimal {
    whole: u64,
    /// Fraction in units of 10^−FRACTION_DIGITS.
    fraction: u64,
}

const FRACTION_DIGITS: usize = 15;
const FRACTION_ONE: u64 = 1_000_000_000_000_000;

impl Decimal {
    /// Returns the leading number, and the text after it without the space between. `Err`: the
    /// reason why it is invalid.
    fn take(text: &str) -> Result<(Decimal, &str), String> {
        if text.starts_with('-') {
            return Err("it must not be negative".to_owned());
        }
        let whole_len = text.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '_');
        let (whole, mut rest) = text.split_at(whole_len.unwrap_or(text.len()));
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let fraction_len = after.find(|c: char| !c.is_ascii_digit());
            (fraction, rest) = after.split_at(fraction_len.unwrap_or(after.len()));
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(format!("{} does not begin with a number", quoted(text)));
        }
        if whole.contains(',') && !grouped_in_thousands(whole) {
            return Err("a comma groups thousands only (a fraction takes a point)".to_owned());
        }
        let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
        let whole = match digits.as_str() {
            "" => 0,
            digits => digits.parse().map_err(|_| "a number in it is too large".to_owned())?,
        };
        Ok((Decimal { whole, fraction: fraction_of(fraction) }, rest.trim_start()))
    }

    fn is_zero(self) -> bool {
        self.whole == 0 && self.fraction == 0
    }

    fn as_f64(self) -> f64 {
        self.whole as f64 + self.fraction as f64 / FRACTION_ONE as f64
    }

    /// Returns this number times `unit`, rounded to the nearest whole.
    fn times(self, unit: u64) -> u128 {
        let of_fraction = u128::from(self.fraction) * u128::from(unit);
        let one = u128::from(FRACTION_ONE);
        u128::from(self.whole) * u128::from(unit) + (of_fraction + one / 2) / one
    }
}

/// Returns whether the digits are grouped like `1,234,567`: one to three digits, then groups of
/// three.
fn grouped_in_thousands(digits: &str) -> bool {
    let mut groups = digits.split(',');
    let first = groups.next().map_or(0, str::len);
    (1..=3).contains(&first) && !digits.contains('_') && groups.all(|group| group.len() == 3)
}

/// Converts ASCII digits after the point to units of 10^−FRACTION_DIGITS; further digits are cut
/// off.
fn fraction_of(digits: &str) -> u64 {
    let kept = digits.bytes().chain(std::iter::repeat(b'0')).take(FRACTION_DIGITS);
    kept.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))
}

/// Parses an address to listen on: `8080`, `:8080`, `127.0.0.1:8080`, `[::1]:8080`; the default
/// address is 127.0.0.1. Port 0 means a free port.
///
/// # Errors
/// Fails for anything else; names are not looked up.
pub fn parse_listen(text: &str) -> Result<SocketAddr, ParseError> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    let local = port.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    local.ok().or_else(|| text.parse().ok()).ok_or_else(|| {
        ParseError(format!(
            "{} is not an address to listen on; write a port like 8080, or 127.0.0.1:8080",
            quoted(text)
        ))
    })
}

#[cfg(test)]
mod tests;
