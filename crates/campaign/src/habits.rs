//! What this server does with plain requests and with harmless oddities, before anything is judged.

use super::TestTarget;
use dialogue::talk::Talk;
use torture::case::Need;

/// A valid GET of the probed page, with these field lines.
pub(super) fn plain_request(target: &TestTarget, fields: &str) -> Vec<u8> {
    plain_request_of(target, &format!("{}{fields}", target.fields))
}

/// A valid GET of the probed page, with these field lines and none of ours.
pub(super) fn plain_request_of(target: &TestTarget, fields: &str) -> Vec<u8> {
    let (path, host) = (&target.values.path, &target.values.host);
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n").into_bytes()
}

/// What the probed page can do: of a plain answer and of an answer to a range.
pub(super) fn offers(plain: &Talk, ranged: &Talk) -> Vec<Need> {
    let mut found = Vec::new();
    if ranged.replies.answers.first().is_some_and(|answer| answer.status == 206) {
        found.push(Need::Ranges);
    }
    let validated = plain
        .replies
        .answers
        .first()
        .is_some_and(|answer| answer.has_field("etag") || answer.has_field("last-modified"));
    if validated {
        found.push(Need::Validators);
    }
    found
}
