//! Logins in URLs: plans keep them separate from the URL.

use crate::draft::{DraftPiece, DraftStep, PlanDraft};
use crate::text::{DraftPart, Text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;

/// Makes the login of each URL (`http://name:password@host/`) the login of its request, by the
/// Basic scheme (RFC 7617), unless the request has one.
pub(crate) fn move_from_urls(draft: &mut PlanDraft) {
    for target in &mut draft.targets {
        // a plan's login applies to all targets, so each target gets a header field
        if let Some(login) = take(target).and_then(|login| login.settled()) {
            let value = format!("Basic {}", BASE64.encode(login));
            target.headers.push(("Authorization".to_owned(), Text::plain(value)));
        }
    }
    let journeys = draft.journeys.iter_mut().flat_map(|journey| &mut journey.parts);
    journeys.for_each(move_in_piece);
    draft.setup.iter_mut().chain(&mut draft.teardown).for_each(move_in_step);
}

fn move_in_piece(piece: &mut DraftPiece) {
    match piece {
        DraftPiece::Step(step) => move_in_step(step),
        DraftPiece::Block(block) => block.parts.iter_mut().for_each(move_in_piece),
    }
}

fn move_in_step(step: &mut DraftStep) {
    if let Some(login) = take(step) {
        step.user = Some(login);
    }
}

/// Removes the login from the URL and returns it, unless the request has another or it is empty.
fn take(step: &mut DraftStep) -> Option<Text> {
    let login = split_url(&mut step.url)?;
    let is_given = |name: &str| name.eq_ignore_ascii_case("authorization");
    let has_one = step.user.is_some() || step.headers.iter().any(|(name, _)| is_given(name));
    (!has_one && !login.is_empty()).then(|| with_colon(login))
}

fn split_url(url: &mut Text) -> Option<Text> {
    let (scheme, _) = url.beginning().split_once("://")?;
    if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let start = scheme.len() + "://".len();
    let (part, at) = last_at(url, start)?;
    let (mut login, mut rest) = (Text::default(), Text::plain(&url.beginning()[..start]));
    for (index, piece) in std::mem::take(&mut url.0).into_iter().enumerate() {
        match piece {
            DraftPart::Plain(text) if index <= part => {
                let from = if index == 0 { start } else { 0 };
                let end = if index == part { at } else { text.len() };
                login.push_str(&percent_decode_str(&text[from..end]).decode_utf8_lossy());
                if index == part {
                    rest.push_str(&text[at + 1..]);
                }
            }
            piece if index < part => login.push(piece),
            piece => rest.push(piece),
        }
    }
    *url = rest;
    Some(login)
}

/// Finds the last `@` of the authority, as the index of its part and its position there.
fn last_at(url: &Text, start: usize) -> Option<(usize, usize)> {
    let mut found = None;
    for (index, piece) in url.0.iter().enumerate() {
        let DraftPart::Plain(text) = piece else { continue };
        let from = if index == 0 { start } else { 0 };
        let end = text[from..].find(['/', '?', '#']).map(|at| from + at);
        let authority = &text[from..end.unwrap_or(text.len())];
        found = authority.rfind('@').map(|at| (index, from + at)).or(found);
        if end.is_some() {
            break;
        }
    }
    found
}

/// Adds the colon of an empty password. A login with a variable stays unchanged: the value may have
/// the colon, and without one its password is empty as well.
fn with_colon(mut login: Text) -> Text {
    if login.settled().is_some_and(|text| !text.contains(':')) {
        login.push_str(":");
    }
    login
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::variables;

    /// Returns the URL without its login, and the login.
    fn split(url: &str) -> (String, String) {
        let mut step = DraftStep { url: variables(url), ..DraftStep::default() };
        let login = take(&mut step);
        let shown = |text: &Text| {
            let part = |part: &DraftPart| match part {
                DraftPart::Plain(text) => text.clone(),
                DraftPart::Named(name) => format!("{{{{{name}}}}}"),
                DraftPart::Made(maker) => format!("{maker:?}"),
                DraftPart::InJson(inner) => format!("{inner:?}"),
            };
            text.0.iter().map(part).collect::<String>()
        };
        (shown(&step.url), login.as_ref().map(shown).unwrap_or_default())
    }

    #[test]
    fn a_login_leaves_the_url() {
        for (url, rest, login) in [
            ("http://h/a@b", "http://h/a@b", ""),
            ("/a?u=http://x@y/", "/a?u=http://x@y/", ""),
            ("http://@h", "http://h", ""),
            ("http://me@h", "http://h", "me:"),
            ("http://me:a%40b@h:1/p@q", "http://h:1/p@q", "me:a@b"),
            ("https://a@b:c@h?x", "https://h?x", "a@b:c"),
            ("http://{{u}}:{{p}}@{{host}}/x", "http://{{host}}/x", "{{u}}:{{p}}"),
            ("http://{{auth}}@h", "http://h", "{{auth}}"),
            ("http://me.{{u}}@h", "http://h", "me.{{u}}"),
        ] {
            assert_eq!(split(url), (rest.to_owned(), login.to_owned()), "{url}");
        }
    }

    #[test]
    fn the_login_of_the_request_wins() {
        let mut step = DraftStep {
            url: Text::plain("http://a:b@h"),
            headers: vec![("authorization".to_owned(), Text::plain("Bearer x"))],
            ..DraftStep::default()
        };
        assert_eq!(take(&mut step), None);
        assert_eq!(step.url, Text::plain("http://h"));
    }
}
