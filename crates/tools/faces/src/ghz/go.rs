//! Numbers, times and JSON in the syntax of Go's library.

use crate::words::moment;
use serde_json::Value;
use units::Nanos;

/// Parses a whole number from 0, as `strconv.ParseUint` does in any base.
///
/// # Errors
/// Fails with Go's message.
pub(super) fn parse_count(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("strconv.ParseUint: parsing {}: {why}", quoted(text));
    let lower = text.to_ascii_lowercase();
    let (digits, base) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&lower[..], 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return Err(wrong("invalid syntax"));
    }
    u64::from_str_radix(digits, base).map_err(|_| wrong("value out of range"))
}

/// Parses a whole number; ghz's parser accepts any number and drops its fraction.
///
/// # Errors
/// Fails with Go's message.
pub(super) fn parse_number(text: &str) -> Result<i64, String> {
    text.parse::<f64>()
        .map(|number| number as i64)
        .map_err(|_| format!("strconv.ParseFloat: parsing {}: invalid syntax", quoted(text)))
}

/// Parses `1h2m3.5s`, as `time.ParseDuration` does; times below zero count as zero.
///
/// # Errors
/// Fails with Go's message.
pub(super) fn parse_time(text: &str) -> Result<Nanos, String> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("\u{b5}s", 1e3),
        ("\u{3bc}s", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3_600e9),
    ];
    let invalid = || format!("time: invalid duration {}", quoted(text));
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(Nanos::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut end = digits(rest);
        if rest[end..].starts_with('.') {
            end += 1 + digits(&rest[end + 1..]);
        }
        let (number, behind) = rest.split_at(end);
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let is_unit = |letter: &char| *letter != '.' && !letter.is_ascii_digit();
        let unit: String = behind.chars().take_while(is_unit).collect();
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quoted(text)));
        }
        let size = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| size);
        let size = size.ok_or_else(|| {
            format!("time: unknown unit {} in duration {}", quoted(&unit), quoted(text))
        })?;
        sum += number * size;
        rest = &behind[unit.len()..];
    }
    if sum > i64::MAX as f64 {
        return Err(invalid());
    }
    Ok(if negative { Nanos::ZERO } else { Nanos(sum.round() as u64) })
}

/// Parses a size such as `4MB` or `1.5 KiB` into bytes.
///
/// # Errors
/// Fails with the message of ghz's library.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let end = text.find(|letter: char| !matches!(letter, '0'..='9' | '.' | ','));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number = number.replace(',', "");
    let number: f64 = number
        .parse()
        .map_err(|_| format!("strconv.ParseFloat: parsing {}: invalid syntax", quoted(&number)))?;
    let unit = unit.trim().to_lowercase();
    let size = match unit.as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "ki" | "kib" => 1024.0,
        "mi" | "mib" => 1_048_576.0,
        "gi" | "gib" => 1_073_741_824.0,
        _ => return Err(format!("unhandled size name: {unit}")),
    };
    Ok((number * size) as u64)
}

/// Formats an instant as RFC 3339, with a fraction of a second if it has one.
pub(super) fn rfc3339(unix_ns: u64, offset_s: i32) -> String {
    let seconds = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(0);
    let at = moment(seconds, offset_s);
    let fraction = match unix_ns % 1_000_000_000 {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    };
    let zone = match offset_s {
        0 => "Z".to_owned(),
        offset => {
            let sign = if offset < 0 { '-' } else { '+' };
            let minutes = offset.abs() / 60;
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{fraction}{zone}",
        at.year, at.month, at.day, at.hour, at.minute, at.second
    )
}

/// Renders a text in double quotes with Go's escapes.
pub(super) fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// Renders a JSON value as `json.Marshal` does: keys in order, `<`, `>` and `&` escaped.
pub(super) fn json(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let text = entries
                .into_iter()
                .map(|(key, value)| format!("{}:{}", json_text(key), json(value)));
            format!("{{{}}}", text.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(","))
        }
        Value::String(text) => json_text(text),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.as_i64().is_none() && number.as_u64().is_none() => {
                json_float(float)
            }
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Renders a text as a JSON string.
pub(super) fn json_text(text: &str) -> String {
    let plain = Value::from(text).to_string();
    let mut out = String::with_capacity(plain.len());
    for letter in plain.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => put!(out, "\\u{:04x}", letter as u32),
            letter => out.push(letter),
        }
    }
    out
}

/// Formats a float as JSON does: without an exponent from 1e-6 to 1e21.
pub(super) fn json_float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        return exponential(value).replace("e-0", "e-");
    }
    format!("{value}")
}

/// Formats a float with an exponent of at least two digits: `1.5e+06`.
fn exponential(value: f64) -> String {
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Formats a float as Prometheus does: `%g` with the necessary digits, and with an exponent from a
/// million on.
pub(super) fn prometheus_float(value: f64) -> String {
    let text = format!("{value:e}");
    let exponent: i32 = text.split_once('e').and_then(|(_, at)| at.parse().ok()).unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    exponential(value)
}

/// Indents compact JSON by two spaces, as `json.Indent` does.
pub(super) fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0;
    let mut in_text = false;
    let mut escaped = false;
    let mut opened = false;
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    for letter in compact.chars() {
        if in_text {
            out.push(letter);
            in_text = letter != '"' || escaped;
            escaped = letter == '\\' && !escaped;
            continue;
        }
        if opened && !matches!(letter, '}' | ']') {
            depth += 1;
            line(&mut out, depth);
        }
        match letter {
            '{' | '[' => {
                out.push(letter);
                opened = true;
                continue;
            }
            '}' | ']' => {
                if !opened {
                    depth -= 1;
                    line(&mut out, depth);
                }
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_text = letter == '"';
                out.push(letter);
            }
        }
        opened = false;
    }
    out
}
