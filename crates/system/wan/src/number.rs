//! Parsing of quantities in path descriptions.

use units::quoted;

/// Parses `5 %` or `0.05`: a fraction in 0..=1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let wrong = || {
        format!("{} is not a share; write one from 0% to 100%, such as 1% or 0.01", quoted(text))
    };
    let trimmed = text.trim();
    let (number, scale) = match trimmed.strip_suffix('%') {
        Some(percent) => (percent.trim(), 0.01),
        None => (trimmed, 1.0),
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: f64 = if plain { number.parse().map_err(|_| wrong())? } else { return Err(wrong()) };
    let share = value * scale;
    // 1 without a unit could mean 1 % or 100 %
    if (0.0..=1.0).contains(&share) && trimmed != "1" { Ok(share) } else { Err(wrong()) }
}

/// Parses bits per second: `640k`, `5M`, `1G`, `2.5Mbit/s`; decimal prefixes, as for link rates.
pub(crate) fn bits(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| {
        format!("{} is not a bit rate: {why}; write one like 640k, 5M or 1G (bit/s)", quoted(text))
    };
    let trimmed = text.trim();
    let bare = ["bit/s", "bits/s", "bps", "bit"]
        .iter()
        .find_map(|unit| trimmed.strip_suffix(unit))
        .unwrap_or(trimmed)
        .trim_end();
    let (number, times) = match bare.chars().last() {
        Some('k' | 'K') => (&bare[..bare.len() - 1], 1e3),
        Some('M') => (&bare[..bare.len() - 1], 1e6),
        Some('G') => (&bare[..bare.len() - 1], 1e9),
        _ => (bare, 1.0),
    };
    let number = number.trim();
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: f64 =
        number.parse().ok().filter(|_| plain).ok_or_else(|| wrong("it cannot be parsed"))?;
    let bits = value * times;
    if !(BITS_MIN..=BITS_MAX).contains(&bits) {
        return Err(wrong("it is not between 1 bit/s and 100 Gbit/s"));
    }
    Ok(bits.round() as u64)
}

const BITS_MIN: f64 = 1.0;
const BITS_MAX: f64 = 100e9;

/// Parses a whole number up to `most`.
pub(crate) fn whole(text: &str, most: u64) -> Result<u64, String> {
    let number = text.trim().parse::<u64>().ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("{} is not a whole number up to {most}", quoted(text)))
}

/// Formats a bit rate: `1.6 Mbit/s`, `640 kbit/s`.
pub(crate) fn show_bits(per_second: f64) -> String {
    let (value, unit) = match per_second {
        1e9.. => (per_second / 1e9, "Gbit/s"),
        1e6.. => (per_second / 1e6, "Mbit/s"),
        1e3.. => (per_second / 1e3, "kbit/s"),
        _ => (per_second, "bit/s"),
    };
    let number = format!("{value:.3}");
    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
}
