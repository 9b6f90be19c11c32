//! Captures values from a response. Pure.

use super::judge::{ResponseParts, compiled, excerpt};
use plan::check::{Capture, CaptureFrom, Difference, JsonPlace, Take, ValueSource};
use protocol::http1::fields;

/// Maximum number of values that a capture examines, if it does not take the first.
const FOUND_MAX: usize = 10_000;

/// Returns the value of a capture. `draw`: a random number below its argument.
///
/// # Errors
/// Fails with the expression, and the beginning of the searched text.
pub(crate) fn capture(
    capture: &Capture,
    seen: &ResponseParts<'_>,
    values: &dyn ValueSource,
    draw: &mut dyn FnMut(u64) -> u64,
) -> Result<String, Difference> {
    let most = if capture.take == Take::First { 1 } else { FOUND_MAX };
    let mut found = places(capture, seen, if capture.regex.is_some() { FOUND_MAX } else { most })?;
    if let Some(pattern) = &capture.regex {
        let (pattern, regex) = compiled(pattern, values)?;
        let searched = std::mem::take(&mut found);
        for text in &searched {
            let groups = regex.captures_iter(text);
            let value = |groups: regex::bytes::Captures<'_>| {
                groups.get(1).or_else(|| groups.get(0)).map(|found| found.as_bytes().to_vec())
            };
            found.extend(groups.filter_map(value).take(most - found.len()));
            if found.len() >= most {
                break;
            }
        }
        if found.is_empty() {
            let searched = searched.first().map_or(&[][..], Vec::as_slice);
            let expected = format!("a match of {pattern}");
            return Err(Difference::new("", expected, excerpt(searched, 0)));
        }
    }
    let at = match capture.take {
        Take::First => 0,
        Take::Last => found.len() - 1,
        Take::Random => draw(found.len() as u64) as usize,
    };
    Ok(String::from_utf8_lossy(&found[at]).into_owned())
}

/// Returns the values at the places of a capture; never empty.
fn places(
    capture: &Capture,
    seen: &ResponseParts<'_>,
    most: usize,
) -> Result<Vec<Vec<u8>>, Difference> {
    let missing = |expected: String| Err(Difference::new("", expected, excerpt(seen.body, 0)));
    Ok(match &capture.from {
        CaptureFrom::Status => vec![seen.status.to_string().into_bytes()],
        CaptureFrom::Body => vec![seen.body.to_vec()],
        CaptureFrom::Header(name) => {
            let values = fields::all(seen.head, name).take(most);
            let values: Vec<Vec<u8>> = values.map(|it| fields::unfold(it).into_owned()).collect();
            if values.is_empty() {
                return Err(Difference::new("", format!("header {name}"), "no such field"));
            }
            values
        }
        CaptureFrom::Cookie(name) => {
            let values: Vec<Vec<u8>> = cookies(seen.head, name).take(most).collect();
            if values.is_empty() {
                return Err(Difference::new("", format!("cookie {name}"), "no such cookie is set"));
            }
            values
        }
        CaptureFrom::Json(place) => match in_json(place, seen.body, most) {
            found if found.is_empty() => return missing(format!("JSON with {}", place.as_str())),
            found => found,
        },
        CaptureFrom::Html { css, attribute } => {
            let found = css.find(seen.body, attribute.as_deref(), most);
            if found.is_empty() {
                return missing(match attribute {
                    Some(name) => format!("an element {} with {name}", css.as_str()),
                    None => format!("an element {}", css.as_str()),
                });
            }
            found.into_iter().map(String::into_bytes).collect()
        }
    })
}

fn in_json(place: &JsonPlace, body: &[u8], most: usize) -> Vec<Vec<u8>> {
    let Ok(document) = serde_json::from_slice::<serde_json::Value>(body) else {
        return Vec::new();
    };
    place.texts(body, &document, most).into_iter().map(String::into_bytes).collect()
}

/// Returns the values of the cookies with this name that a response sets.
fn cookies<'a>(head: &'a [u8], name: &'a str) -> impl Iterator<Item = Vec<u8>> + 'a {
    fields::set_cookies(head).filter_map(move |field| {
        let pair = field.split(|byte| *byte == b';').next()?;
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (pair[..at].trim_ascii(), pair[at + 1..].trim_ascii());
        (key == name.as_bytes()).then(|| value.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::NoFiles;
    use plan::check::{Action, Given, from_toml};
    use std::collections::BTreeMap;

    const HEAD: &[u8] =
        b"HTTP/1.1 201 Created\r\nLocation: /items/7\r\nSet-Cookie: a=1; Path=/\r\n\
        Set-Cookie: sid=x=y ; HttpOnly\r\n\r\n";
    const JSON: &[u8] =
        br#"{"items": [{"id": 3, "tag": "a"}, {"id": 5, "tag": "b c"}], "none": []}"#;
    const PAGE: &[u8] =
        b"<form><input name=csrf value=t1></form><p class=n>One</p><p class=n>Two</p>";

    /// Returns the value, or a description of the missing part.
    fn taken(words: &str, body: &[u8]) -> String {
        let text = format!(
            "version = 1\n[check]\nbase = 'h'\n[[step]]\nname = 'a'\nurl = '/'\n\
             capture = {{ it = {{ {words} }} }}"
        );
        let plan = from_toml(&text, &Given::default(), &NoFiles).unwrap();
        let Action::Ask(ask) = &plan.steps[0].action else { panic!("{plan:?}") };
        let seen = ResponseParts { status: 201, head: HEAD, body };
        let values = BTreeMap::new();
        match capture(&ask.capture[0].1, &seen, &values, &mut |most| most - 1) {
            Ok(value) => value,
            Err(wrong) => format!("{} / {}", wrong.expected, wrong.got),
        }
    }

    #[test]
    fn every_place_of_a_response_can_be_captured() {
        for (words, body, value) in [
            ("status = true", JSON, "201"),
            ("header = 'location'", JSON, "/items/7"),
            ("header = 'Location', regex = '[0-9]+'", JSON, "7"),
            ("cookie = 'sid'", JSON, "x=y"),
            ("json = '/items/1/tag'", JSON, "b c"),
            ("json = '$.items[?@.id > 3].tag'", JSON, "b c"),
            ("json = '$.items[*].id'", JSON, "3"),
            ("json = '$.items[*].id', take = 'last'", JSON, "5"),
            ("json = '$.items[*].id', take = 'random'", JSON, "5"),
            ("css = 'input[name=csrf]', attribute = 'value'", PAGE, "t1"),
            ("css = 'p.n', take = 'last'", PAGE, "Two"),
            ("css = 'p.n', regex = 'w.'", PAGE, "wo"),
            ("regex = 'value=(..)'", PAGE, "t1"),
            ("regex = 'class=.', take = 'last'", PAGE, "class=n"),
        ] {
            assert_eq!(taken(words, body), value, "{words}");
        }
    }

    #[test]
    fn a_failed_capture_names_its_expression_and_text() {
        for (words, body, reported) in [
            ("header = 'X-Id'", JSON, "header X-Id / no such field"),
            ("cookie = 'SID'", JSON, "cookie SID / no such cookie is set"),
            (
                "json = '$.none[0]'",
                &JSON[..19],
                "JSON with $.none[0] / \"{\\\"items\\\": [{\\\"id\\\": 3\"",
            ),
            ("json = '/x'", b"", "JSON with /x / nothing"),
            (
                "css = 'a[href]', attribute = 'href'",
                b"<a>",
                "an element a[href] with href / \"<a>\"",
            ),
            ("css = 'a'", b"-", "an element a / \"-\""),
            ("regex = 'q(.)'", b"-", "a match of q(.) / \"-\""),
        ] {
            assert_eq!(taken(words, body), reported, "{words}");
        }
    }
}
