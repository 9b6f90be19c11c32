//! Finds the place in a response from which a value is captured.

use super::recording::RecordedExchange;
use crate::draft::CaptureFrom;
use crate::text::Text;
use crate::tree::{TreeNode, parse_json};

/// Number of characters around a value that form an expression.
const CONTEXT: usize = 24;
const CONTEXT_LEAST: usize = 4;
/// Maximum number of places of a value in a text that are tried.
const PLACES_MAX: usize = 16;

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
    let lines = |value: &'_ str| -> Vec<String> { value.lines().map(str::to_owned).collect() };
    for (name, value) in &first.response_headers {
        let others = second.response_headers.iter();
        let others = others.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        // browsers join repeated fields with line feeds
        let others: Vec<String> = others.flat_map(|(_, other)| lines(other)).collect();
        for value in lines(value).iter().filter(|value| value.contains(one)) {
            let found = others
                .iter()
                .filter(|other| other.contains(two))
                .find_map(|other| in_header(name, (value, other), one, two));
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// Finds the values in a header field of both recordings.
fn in_header(name: &str, (value, other): (&str, &str), one: &str, two: &str) -> Option<FoundValue> {
    if !name.eq_ignore_ascii_case("set-cookie") {
        let whole = value == one && other == two;
        let regex = match whole {
            true => None,
            false => Some(Text::plain(around(value, other, one, two)?)),
        };
        let from = CaptureFrom::Header(name.to_owned());
        return Some(FoundValue { from, regex, place: format!("header {name}") });
    }
    let cookie = |field: &'_ str| {
        let (name, value) = field.split(';').next()?.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    let ((name, value), (other_name, other)) = (cookie(value)?, cookie(other)?);
    if name != other_name {
        return None;
    }
    let regex = match value == one && other == two {
        true => None,
        false => Some(Text::plain(around(&value, &other, one, two)?)),
    };
    let place = format!("cookie {name}");
    Some(FoundValue { from: CaptureFrom::Cookie(name), regex, place })
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

/// Builds an expression from the text before the values, which both recordings have in common. The
/// first match of the expression in each text is the value.
fn around(a: &str, b: &str, one: &str, two: &str) -> Option<String> {
    let (places, others) = (a.match_indices(one), b.match_indices(two));
    places.zip(others).take(PLACES_MAX).find_map(|((at, _), (other, _))| {
        let regex =
            expression((&a[..at], &a[at + one.len()..]), (&b[..other], &b[other + two.len()..]))?;
        let compiled = regex::Regex::new(&regex).ok()?;
        let first = |text: &str| {
            compiled.captures(text).and_then(|found| found.get(1)).map(|it| it.as_str().to_owned())
        };
        (first(a).as_deref() == Some(one) && first(b).as_deref() == Some(two)).then_some(regex)
    })
}

/// Returns the expression for a value between two texts. Both are given for each recording.
fn expression(
    (before, after): (&str, &str),
    (other_before, other_after): (&str, &str),
) -> Option<String> {
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
    let is_start = left == before && left == other_before;
    let is_short = left.chars().count() < CONTEXT_LEAST;
    if (is_short && !is_start) || next != other_next {
        return None;
    }
    let start = if is_short { "^" } else { "" };
    let left = regex::escape(&left);
    Some(match next {
        Some(next) => {
            let end = regex::escape(&next.to_string());
            format!("{start}{left}([^{}]+){end}", class(next))
        }
        None => format!("{start}{left}(.+)$"),
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
