//! Compares a response with its expectations: nothing, or the first difference. Pure.

use crate::exchange::{ExchangeError, Reply};
use plan::check::{
    Content, Difference, Entries, Expect, Group, HeaderRule, JsonPlace, JsonRule, State,
    StepResult, Text, ValueSource, Wanted,
};
use protocol::http1::fields;
use regex::bytes::Regex;
use sample::FailureClass;
use sha2::{Digest, Sha256};
use units::{Nanos, hex, show};

type Judged = Result<(), Difference>;

/// Result of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered<'a> {
    pub(super) result: &'a Result<Reply, ExchangeError>,
    pub(super) took: Nanos,
}

pub(super) fn difference(
    expect: &Expect,
    came: &Answered<'_>,
    captured: &dyn ValueSource,
) -> Option<Difference> {
    judge(expect, came, captured).err()
}

fn judge(expect: &Expect, came: &Answered<'_>, captured: &dyn ValueSource) -> Judged {
    outcome(expect.outcome, came.result)?;
    match came.result {
        Ok(reply) => response(expect, &ResponseParts::new(reply), came.took, captured),
        Err(_) => time(expect.at_least, expect.at_most, came.took),
    }
}

/// A complete response, owned or borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseParts<'a> {
    pub(crate) status: u16,
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl<'a> ResponseParts<'a> {
    pub(super) fn new(reply: &'a Reply) -> ResponseParts<'a> {
        ResponseParts { status: reply.facts.status, head: &reply.head, body: &reply.body }
    }
}

/// Compares a response with all of its expectations.
///
/// # Errors
/// Fails with the first difference.
pub(crate) fn response(
    expect: &Expect,
    seen: &ResponseParts<'_>,
    took: Nanos,
    captured: &dyn ValueSource,
) -> Judged {
    status(&expect.statuses, seen.status)?;
    for (name, rule) in &expect.headers {
        header(name, rule, seen.head, captured)?;
    }
    evaluate_response("body", &expect.body, seen.body, seen.body.len() as u64, captured)?;
    time(expect.at_least, expect.at_most, took)
}

fn outcome(wanted: Wanted, result: &Result<Reply, ExchangeError>) -> Judged {
    let differs = |got: String| {
        let expected = match wanted {
            Wanted::Response => "a response",
            Wanted::Closed => "a connection closed without a response",
            Wanted::Refused => "no connection",
            Wanted::TimedOut => "no response in time",
        };
        Err(Difference::new("outcome", expected, got))
    };
    let met = |class: FailureClass| match wanted {
        Wanted::Response => false,
        Wanted::Closed => matches!(class, FailureClass::ClosedEarly | FailureClass::Reset),
        Wanted::Refused => class == FailureClass::Refused,
        Wanted::TimedOut => class == FailureClass::ClientTimeout,
    };
    match result {
        Ok(_) if wanted == Wanted::Response => Ok(()),
        Ok(reply) => differs(format!("a response with status {}", reply.facts.status)),
        Err(trouble) if met(trouble.class) => Ok(()),
        Err(trouble) => differs(trouble.text.clone()),
    }
}

fn status(wanted: &[(u16, u16)], got: u16) -> Judged {
    let met = match wanted {
        [] => got < 400,
        ranges => ranges.iter().any(|(from, to)| (*from..=*to).contains(&got)),
    };
    if met {
        return Ok(());
    }
    let one = |(from, to): &(u16, u16)| {
        if from == to { from.to_string() } else { format!("{from}-{to}") }
    };
    let list: Vec<String> = wanted.iter().map(one).collect();
    let expected = if list.is_empty() { "below 400".to_owned() } else { list.join(" or ") };
    Err(Difference::new("status", expected, got.to_string()))
}

/// Compares a header field with its rule; several fields of the name are joined.
fn header(name: &str, rule: &HeaderRule, head: &[u8], captured: &dyn ValueSource) -> Judged {
    let values: Vec<Vec<u8>> =
        fields::all(head, name).map(|value| fields::unfold(value).into_owned()).collect();
    let got = (!values.is_empty()).then(|| values.join(&b", "[..]));
    let differs = |expected: String| {
        let got = got.as_deref().map_or("no such field".to_owned(), |value| excerpt(value, 0));
        Err(Difference::new(format!("header {name}"), expected, got))
    };
    match meets(rule, got.as_deref(), captured)? {
        (_, true) => Ok(()),
        (expected, false) => differs(expected),
    }
}

/// Compares a value with a rule; returns the expectation as text, and whether it is met.
///
/// # Errors
/// Fails if the rule's own text cannot be rendered.
pub(crate) fn meets(
    rule: &HeaderRule,
    value: Option<&[u8]>,
    captured: &dyn ValueSource,
) -> Result<(String, bool), Difference> {
    Ok(match rule {
        HeaderRule::Exact(text) => {
            let text = filled(text, captured)?;
            (excerpt(text.as_bytes(), 0), value == Some(text.as_bytes()))
        }
        HeaderRule::Contains(text) => {
            let text = filled(text, captured)?;
            let met = value.is_some_and(|value| find(value, text.as_bytes()).is_some());
            (format!("one with {}", excerpt(text.as_bytes(), 0)), met)
        }
        HeaderRule::Regex(text) => {
            let (text, regex) = compiled(text, captured)?;
            (format!("a match of {text}"), value.is_some_and(|value| regex.is_match(value)))
        }
        HeaderRule::Absent => ("no such field".to_owned(), value.is_none()),
        HeaderRule::Present => ("any value".to_owned(), value.is_some()),
    })
}

/// Returns whether the bytes differ from the expected ones.
pub(crate) fn content_differs(wanted: &Content, bytes: &[u8], values: &dyn ValueSource) -> bool {
    evaluate_response("message", wanted, bytes, bytes.len() as u64, values).is_err()
}

/// Compares content with a rule. `what`: body, content.
pub(super) fn content(
    what: &str,
    wanted: &Content,
    bytes: &[u8],
    length: u64,
    captured: &dyn ValueSource,
) -> Option<Difference> {
    evaluate_response(what, wanted, bytes, length, captured).err()
}

fn evaluate_response(
    what: &str,
    wanted: &Content,
    bytes: &[u8],
    length: u64,
    captured: &dyn ValueSource,
) -> Judged {
    let differs = |expected: String| Err(Difference::new(what, expected, excerpt(bytes, 0)));
    if let Some(text) = &wanted.exact {
        exact(what, filled(text, captured)?.as_bytes(), bytes)?;
    }
    if wanted.length.is_some_and(|wanted| wanted != length) {
        let expected = wanted.length.unwrap_or(0);
        let got = format!("{} bytes", show::count(length));
        return Err(Difference::new(what, format!("{} bytes", show::count(expected)), got));
    }
    for text in &wanted.contains {
        let text = filled(text, captured)?;
        if find(bytes, text.as_bytes()).is_none() {
            return differs(format!("{} in it", excerpt(text.as_bytes(), 0)));
        }
    }
    for text in &wanted.lacks {
        let text = filled(text, captured)?;
        if let Some(at) = find(bytes, text.as_bytes()) {
            let expected = format!("no {} in it", excerpt(text.as_bytes(), 0));
            return Err(Difference::new(what, expected, excerpt(bytes, at)));
        }
    }
    for text in &wanted.regex {
        let (text, regex) = compiled(text, captured)?;
        if !regex.is_match(bytes) {
            return differs(format!("a match of {text}"));
        }
    }
    for (text, wanted) in &wanted.count {
        let (text, regex) = compiled(text, captured)?;
        let got = regex.find_iter(bytes).count() as u64;
        if got != *wanted {
            let expected = format!("{wanted} matches of {text}");
            return Err(Difference::new(what, expected, format!("{got} matches")));
        }
    }
    if let Some(wanted) = &wanted.sha256 {
        let got = Sha256::digest(bytes);
        if got.as_slice() != wanted {
            return Err(Difference::new(
                format!("{what} sha256"),
                hex(wanted),
                hex(got.as_slice()),
            ));
        }
    }
    if wanted.graphql {
        graphql(what, bytes)?;
    }
    if wanted.json.is_empty() { Ok(()) } else { json(what, &wanted.json, bytes, captured) }
}

fn exact(what: &str, wanted: &[u8], got: &[u8]) -> Judged {
    if wanted == got {
        return Ok(());
    }
    let same = wanted.iter().zip(got).take_while(|(a, b)| a == b).count();
    // some equal text before the difference shows where it is
    let from = same.saturating_sub(12);
    let what = if same == 0 { what.to_owned() } else { format!("{what} at byte {}", same + 1) };
    Err(Difference::new(what, excerpt(wanted, from), excerpt(got, from)))
}

/// GraphQL errors are in the body of a 200 response: `errors`, omitted if there are none, next to
/// `data` (GraphQL specification of October 2021, section 7.1).
fn graphql(what: &str, bytes: &[u8]) -> Judged {
    use serde_json::Value;
    let differs = |got: String| {
        Err(Difference::new(format!("{what} graphql"), "data and no errors", excerpt_of(&got)))
    };
    let document: Value = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(error) => return differs(format!("{} ({error})", excerpt(bytes, 0))),
    };
    let errors = match document.get("errors") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(errors)) => errors,
        Some(other) => std::slice::from_ref(other),
    };
    let Some(first) = errors.first() else {
        let data = document.get("data").is_some_and(|data| !data.is_null());
        return if data { Ok(()) } else { differs("no data".to_owned()) };
    };
    let message = first.get("message").and_then(Value::as_str);
    let message = message.map_or_else(|| first.to_string(), str::to_owned);
    let path = first.get("path").map_or_else(String::new, |path| format!(" at {path}"));
    let more = match errors.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    differs(format!("{message}{path}{more}"))
}

fn json(
    what: &str,
    wanted: &[(JsonPlace, JsonRule)],
    bytes: &[u8],
    captured: &dyn ValueSource,
) -> Judged {
    let document: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| {
        Difference::new(what, "JSON", format!("{} ({error})", excerpt(bytes, 0)))
    })?;
    for (place, rule) in wanted {
        let got = place.find(&document).first().copied();
        let (expected, met) = match rule {
            JsonRule::Value(value) => {
                (value.to_string(), got.is_some_and(|got| same_json(value, got)))
            }
            JsonRule::Text(text) => {
                let loose = text.settled().is_none();
                let text = filled(text, captured)?;
                let met = got.is_some_and(|got| match got {
                    serde_json::Value::String(got) => *got == text,
                    got => loose && is_written(&text, got, &place.texts(bytes, &document, 1)),
                });
                (serde_json::Value::String(text).to_string(), met)
            }
        };
        if !met {
            let got = got.map_or("nothing there".to_owned(), |got| excerpt_of(&got.to_string()));
            let place = match place.as_str() {
                "" => "the document",
                place => place,
            };
            return Err(Difference::new(format!("{what} {place}"), excerpt_of(&expected), got));
        }
    }
    Ok(())
}

/// Returns whether two JSON values are equal; numbers are equal if their values are: 1 and 1.0.
fn same_json(wanted: &serde_json::Value, got: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (wanted, got) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_json(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_json(a, b)))
        }
        _ => wanted == got,
    }
}

/// Returns whether a filled-in text equals the value, whose digits come from the body: compared as
/// text, so that long integers are exact, or by value if one of the two is a fraction.
fn is_written(text: &str, got: &serde_json::Value, digits: &[String]) -> bool {
    let Some(digits) = digits.first() else { return false };
    let is_fraction = |text: &str| text.contains(['.', 'e', 'E']);
    text == digits
        || (is_fraction(text) || is_fraction(digits))
            && serde_json::from_str(text).is_ok_and(|wanted| same_json(&wanted, got))
}

/// Compares 64-bit integers as integers: as doubles, different values above 2^53 would be equal.
fn same_number(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    let whole = |it: &serde_json::Number| it.as_i128();
    match (whole(a), whole(b), a.as_f64(), b.as_f64()) {
        (Some(a), Some(b), ..) => a == b,
        // exact within the range of whole numbers that a double represents
        (Some(whole), None, _, Some(real)) | (None, Some(whole), Some(real), _) => {
            real.fract().abs().total_cmp(&0.0).is_eq() && real as i128 == whole
        }
        (None, None, Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => false,
    }
}

fn time(least: Option<Nanos>, most: Option<Nanos>, took: Nanos) -> Judged {
    let differs = |expected: String| Err(Difference::new("time", expected, show::duration(took)));
    match (least, most) {
        (Some(least), _) if took < least => differs(format!("at least {}", show::duration(least))),
        (_, Some(most)) if took > most => differs(format!("at most {}", show::duration(most))),
        _ => Ok(()),
    }
}

/// Judges requests that were sent together. If the group permits some failures, they do not count
/// as failures.
pub(super) fn group(group: &Group, members: &mut [StepResult]) -> Option<Difference> {
    let difference = weigh_group(group, members).err();
    if difference.is_none() {
        for member in members.iter_mut() {
            if let State::Failed(wrong) = &member.state {
                let why = format!("not met, as some may: {} {}", wrong.what, wrong.got);
                member.state = State::Skipped(why);
            }
        }
    }
    difference
}

fn weigh_group(group: &Group, members: &[StepResult]) -> Judged {
    let failed = members.iter().filter(|member| member.state.failed()).count();
    let counts =
        [("succeeded", group.succeeded, members.len() - failed), ("failed", group.failed, failed)];
    for (what, wanted, got) in counts {
        if let Some(wanted) = wanted.filter(|wanted| *wanted as usize != got) {
            let of = format!("{got} of {}", members.len());
            return Err(Difference::new(what, wanted.to_string(), of));
        }
    }
    if group.succeeded.is_none() && group.failed.is_none() {
        for member in members {
            if let State::Failed(wrong) = &member.state {
                let what = format!("{}: {}", member.name, wrong.what);
                return Err(Difference::new(what, &wrong.expected, &wrong.got));
            }
        }
    }
    let mut order: Vec<&StepResult> =
        members.iter().filter(|member| group.order.contains(&member.name)).collect();
    order.sort_by_key(|member| member.took);
    let names: Vec<&str> = order.iter().map(|member| member.name.as_str()).collect();
    if names != group.order {
        return Err(Difference::new("order", group.order.join(", "), names.join(", ")));
    }
    let last = members.iter().map(|member| member.took).max().unwrap_or(Nanos::ZERO);
    time(group.at_least, group.at_most, last)
}

pub(super) fn entries(wanted: &Entries, names: &[String]) -> Option<Difference> {
    let list = |names: &[String]| match names {
        [] => "nothing".to_owned(),
        names => excerpt_of(&names.join(", ")),
    };
    let sorted = match wanted {
        Entries::Empty => Vec::new(),
        Entries::Exactly(wanted) => {
            let mut sorted = wanted.clone();
            sorted.sort();
            sorted
        }
    };
    (sorted != names).then(|| Difference::new("entries", list(&sorted), list(names)))
}

fn filled(text: &Text, captured: &dyn ValueSource) -> Result<String, Difference> {
    text.expand(captured).map_err(|why| Difference::new("value", "captured before", why))
}

pub(super) fn compiled(
    text: &Text,
    captured: &dyn ValueSource,
) -> Result<(String, Regex), Difference> {
    let text = filled(text, captured)?;
    if let Some(known) = captured.pattern(&text) {
        return Ok((text, known));
    }
    match Regex::new(&text) {
        Ok(regex) => Ok((text, regex)),
        Err(error) => Err(Difference::new("regex", "one that compiles", error.to_string())),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Characters of an excerpt.
const EXCERPT: usize = 72;

/// Quotes some of the bytes from `from` on; bytes that are not text are escaped.
pub(crate) fn excerpt(bytes: &[u8], from: usize) -> String {
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    let from = from.min(bytes.len());
    // a character has four bytes at most
    let rest = &bytes[from..bytes.len().min(from + 4 * EXCERPT)];
    let text: Vec<char> = String::from_utf8_lossy(rest).chars().collect();
    let shown: String = text.iter().take(EXCERPT).collect();
    let before = if from > 0 { "..." } else { "" };
    let after = if text.len() > EXCERPT || from + rest.len() < bytes.len() { "..." } else { "" };
    format!("{before}{shown:?}{after}")
}

/// Returns the beginning of a text, unchanged.
fn excerpt_of(text: &str) -> String {
    if text.chars().count() <= EXCERPT {
        return text.to_owned();
    }
    let shown: String = text.chars().take(EXCERPT).collect();
    format!("{shown}...")
}

#[cfg(test)]
mod tests;
