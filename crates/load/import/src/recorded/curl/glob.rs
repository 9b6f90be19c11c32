//! curl's URL globs: `{one,two}`, `[1-10]`, `[001-100:5]`, `[a-z]`.

use crate::recorded::RecordedError;
use units::quoted;

/// Maximum number of URLs that one word expands to.
const URLS_MAX: usize = 100_000;

/// Expands to the URLs that curl 7.88 requests; the last glob varies fastest.
///
/// # Errors
/// Fails for a glob that curl refuses, or that has more than [`URLS_MAX`] URLs.
pub(super) fn expand(text: &str) -> Result<Vec<String>, RecordedError> {
    let wrong = |why: &str| {
        RecordedError(format!(
            "{} is a glob that cannot be read: {why}; quote brackets and braces with a backslash, or add -g",
            quoted(text)
        ))
    };
    let mut urls = vec![String::new()];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (parts, length) = match first {
            '[' if address_length(rest).is_some() => {
                let length = address_length(rest).unwrap_or_default();
                (vec![rest[..length].to_owned()], length)
            }
            '{' => set(rest).map_err(wrong)?,
            '[' => range(rest).map_err(wrong)?,
            '}' => return Err(wrong("a brace is closed that is not open")),
            ']' => return Err(wrong("a bracket is closed that is not open")),
            '\\' if rest[1..].starts_with(['{', '}', '[', ']']) => (vec![rest[1..2].to_owned()], 2),
            other => (vec![other.to_string()], other.len_utf8()),
        };
        if urls.len().saturating_mul(parts.len()) > URLS_MAX {
            return Err(wrong(&format!("it expands to more than {URLS_MAX} URLs")));
        }
        match parts.as_slice() {
            [one] => urls.iter_mut().for_each(|url| url.push_str(one)),
            parts => {
                let joined =
                    |url: &String| parts.iter().map(|part| format!("{url}{part}")).collect();
                urls = urls.iter().flat_map(|url| -> Vec<String> { joined(url) }).collect();
            }
        }
        rest = &rest[length..];
    }
    Ok(urls)
}

/// Returns the length of an IPv6 address in brackets at the beginning.
fn address_length(text: &str) -> Option<usize> {
    let end = text.find(']')?;
    let address = text[1..end].split('%').next()?;
    address.parse::<std::net::Ipv6Addr>().ok().map(|_| end + 1)
}

type GlobParts = Result<(Vec<String>, usize), &'static str>;

fn set(text: &str) -> GlobParts {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, next)) = chars.next() {
        match next {
            '{' | '[' => return Err("a glob is inside braces"),
            ']' => return Err("a bracket is closed that is not open"),
            ',' | '}' => {
                if part.is_empty() && next == '}' && parts.is_empty() {
                    return Err("the braces are empty");
                }
                parts.push(std::mem::take(&mut part));
                if next == '}' {
                    return Ok((parts, at + 1));
                }
            }
            '\\' => match chars.next_if(|(_, next)| "{}[],".contains(*next)) {
                Some((_, escaped)) => part.push(escaped),
                None => part.push('\\'),
            },
            other => part.push(other),
        }
    }
    Err("a brace is not closed")
}

fn range(text: &str) -> GlobParts {
    let end = text.find(']').ok_or("a bracket is not closed")?;
    let bad = "a range is [1-10], [a-z] or either with :STEP";
    let (ends, step) = match text[1..end].split_once(':') {
        Some((ends, step)) => (ends, step.parse::<u64>().ok().filter(|step| *step > 0).ok_or(bad)?),
        None => (&text[1..end], 1),
    };
    let (from, to) = ends.split_once('-').ok_or(bad)?;
    let letter = |text: &str| match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    };
    if let (Some(from), Some(to)) = (letter(from), letter(to)) {
        if from > to || step > u64::from(to - from).max(1) {
            return Err(bad);
        }
        let letters =
            (from..=to).step_by(step as usize).map(|letter| char::from(letter).to_string());
        return Ok((letters.collect(), end + 1));
    }
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().ok()).flatten().ok_or(bad)
    };
    let (first, last) = (number(from)?, number(to.trim_start())?);
    if first > last || step > (last - first).max(1) {
        return Err(bad);
    }
    if (last - first) / step >= URLS_MAX as u64 {
        return Err("it expands to too many URLs");
    }
    let width = if from.starts_with('0') { from.len() } else { 0 };
    let numbers = (0..=(last - first) / step).map(|nth| first + nth * step);
    Ok((numbers.map(|number| format!("{number:0width$}")).collect(), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_expands_to_the_urls_that_curl_requests() {
        for (text, urls) in [
            ("h", &["h"][..]),
            ("h/[1-3]/{a,b}", &["h/1/a", "h/1/b", "h/2/a", "h/2/b", "h/3/a", "h/3/b"]),
            ("h/[08-10]", &["h/08", "h/09", "h/10"]),
            ("h/[0-10:5]", &["h/0", "h/5", "h/10"]),
            ("h/[a-e:2]", &["h/a", "h/c", "h/e"]),
            ("h/{,x}", &["h/", "h/x"]),
            (r"h/\{a\}\[1-2\]", &["h/{a}[1-2]"]),
            (r"h/{a\,b,c}", &["h/a,b", "h/c"]),
            ("http://[::1]:80/[1-2]", &["http://[::1]:80/1", "http://[::1]:80/2"]),
            (r"h/a\b", &[r"h/a\b"]),
        ] {
            assert_eq!(expand(text).unwrap(), urls, "{text}");
        }
    }

    #[test]
    fn a_glob_that_curl_refuses_has_a_reason() {
        for (text, why) in [
            ("h/{a", "a brace is not closed"),
            ("h/a}", "a brace is closed that is not open"),
            ("h/a]", "a bracket is closed that is not open"),
            ("h/{}", "the braces are empty"),
            ("h/{a,{b}}", "inside braces"),
            ("h/[1-", "a bracket is not closed"),
            ("h/[3-1]", "a range is [1-10]"),
            ("h/[]", "a range is [1-10]"),
            ("h/[1-999999]", "too many URLs"),
            ("h/[1-1000]/[1-1000]", "more than 100000 URLs"),
        ] {
            let error = expand(text).unwrap_err().0;
            assert!(error.contains(why) && error.contains("glob"), "{text}: {error}");
        }
    }
}
