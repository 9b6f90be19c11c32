//! Finds the place in a response from which a value is captured.

use super::recording::RecordedExchange;
use crate::draft::CaptureFrom;
use crate::text::Text;
use crate::tree::{TreeNode, parse_json};

/// Number of characters around a value that form an expression.
const CONTEXT: usize = 24;
const CONTEXT_LEAST: usize = 4;

/// The place of a value in a response.
#[derive(Debug)]
pub(super) struct FoundValue {
    pub(super) from: CaptureFrom,
    pub(super) regex: Option<Text>,
    /// Description of the place, for the diff.
    pub(super) place: String,
}

/// Finds a place with the first value in the first recording and the second value in the second.
pub(super) fn find(
    first: &RecordedExchange,
    second: &RecordedExchange,
    one: &str,
    two: &str,
) -> Option<FoundValue> {
    in_json(first, second, one, two)
        .or_else(|| in_headers(first, second, one, two))
        .or_else(|| in_inputs(first, second, one, two))
        .or_else(|| in_text(first, second, one, two))
}

fn in_json(
    first: &RecordedExchange,
    second: &RecordedExchange,
    one: &str,
    two: &str,
) -> Option<FoundValue> {
    let (a, b) = (parse_json(&first.response_body).ok()?, parse_json(&second.response_body).ok()?);
    let place = pointer(&a, &b, one, two, String::new())?;
    let shown = format!("JSON {place}");
    Some(FoundValue { from: CaptureFrom::Json(place), regex: None, place: shown })
}

/// Finds the JSON pointer that leads to both values.
fn pointer(a: &TreeNode, b: &TreeNode, one: &str, two: &str, path: String) -> Option<String> {
    if a.scalar().as_deref() == Some(one) && b.scalar().as_deref() == Some(two) {
        return Some(path);
    }
    for (index, inner) in a.list().iter().enumerate() {
        let Some(other) = b.list().get(index) else { break };
        if let Some(found) = pointer(inner, other, one, two, format!("{path}/{index}")) {
            return Some(found);
        }
    }
    for (key, inner) in a.map() {
        let Some(other) = b.get(key) else { continue };
        let step = key.replace('~', "~0").replace('/', "~1");
        if let Some(found) = pointer(inner, other, one, two, format!("{path}/{step}")) {
            return Some(found);
        }
    }
    None
}

fn in_headers(
    first: &RecordedExchange,
    second: &RecordedExchange,
    one: &str,
    two: &str,
) -> Option<FoundValue> {
    for (name, value) in &first.response_headers {
        let other = second
            .response_headers
            .iter()
            .find(|(known, other)| known.eq_ignore_ascii_case(name) && other.contains(two));
        let Some((_, other)) = other.filter(|_| value.contains(one)) else { continue };
        if name.eq_ignore_ascii_case("set-cookie") {
            let cookie = value.split(';').next()?.split_once('=')?;
            if cookie.1 == one {
                let from = CaptureFrom::Cookie(cookie.0.trim().to_owned());
                return Some(FoundValue {
                    from,
                    regex: None,
                    place: format!("cookie {}", cookie.0),
                });
            }
            continue;
        }
        let regex =
            if value == one { None } else { Some(Text::plain(around(value, other, one, two)?)) };
        return Some(FoundValue {
            from: CaptureFrom::Header(name.clone()),
            regex,
            place: format!("header {name}"),
        });
    }
    None
}

/// Finds `<input name="csrf" value="…">` and `<meta name="csrf-token" content="…">`.
fn in_inputs(
    first: &RecordedExchange,
    second: &RecordedExchange,
    one: &str,
    two: &str,
) -> Option<FoundValue> {
    for (tag, attribute) in [("input", "value"), ("meta", "content")] {
        let (a, b) = (
            named(&first.response_body, tag, attribute, one),
            named(&second.response_body, tag, attribute, two),
        );
        if let Some(name) = a.filter(|name| Some(name) == b.as_ref()) {
            let css = format!("{tag}[name=\"{name}\"]");
            let place = format!("{css} of the page");
            return Some(FoundValue {
                from: CaptureFrom::Css(css, Some(attribute.to_owned())),
                regex: None,
                place,
            });
        }
    }
    None
}

/// Returns the name of the element whose attribute has the value.
fn named(page: &str, tag: &str, attribute: &str, value: &str) -> Option<String> {
    let wanted = [format!("{attribute}=\"{value}\""), format!("{attribute}='{value}'")];
    let start = format!("<{tag}");
    for (at, _) in page.match_indices(&start) {
        let element = page[at..].split('>').next().unwrap_or_default();
        if wanted.iter().any(|wanted| element.contains(wanted.as_str())) {
            let name = element.split_once("name=\"")?.1.split('"').next()?;
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.[]".contains(c));
            return plain.then(|| name.to_owned());
        }
    }
    None
}

fn in_text(
    first: &RecordedExchange,
    second: &RecordedExchange,
    one: &str,
    two: &str,
) -> Option<FoundValue> {
    let regex = around(&first.response_body, &second.response_body, one, two)?;
    let place = format!("the body by {}", units::quoted(&regex));
    Some(FoundValue { from: CaptureFrom::Body, regex: Some(Text::plain(regex)), place })
}

/// Builds an expression from the text before the values, which both recordings have in common.
fn around(a: &str, b: &str, one: &str, two: &str) -> Option<String> {
    let (before, after) = a.split_once(one)?;
    let (other_before, other_after) = b.split_once(two)?;
    let common: Vec<char> = before
        .chars()
        .rev()
        .zip(other_before.chars().rev())
        .take(CONTEXT)
        .take_while(|(x, y)| x == y)
        .map(|(x, _)| x)
        .collect();
    let left: String = common.into_iter().rev().collect();
    let (next, other_next) = (after.chars().next(), other_after.chars().next());
    if left.len() < CONTEXT_LEAST || next != other_next {
        return None;
    }
    let left = regex::escape(&left);
    Some(match next {
        Some(next) => {
            let end = regex::escape(&next.to_string());
            format!("{left}([^{}]+){end}", class(next))
        }
        None => format!("{left}(.+)$"),
    })
}

/// Escapes a character in a character class.
fn class(c: char) -> String {
    match c {
        '\\' | ']' | '[' | '^' | '-' | '&' | '~' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        c => c.to_string(),
    }
}
