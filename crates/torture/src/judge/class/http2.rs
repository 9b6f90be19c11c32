//! What may come back where HTTP/2 is spoken.

use super::server_ended;
use dialogue::http2::{ACK, DATA, FrameSeen, GOAWAY, RST_STREAM, SETTINGS};
use dialogue::talk::Talk;
use sample::http2_code;
use units::quoted;

/// Codes by their names, separated by commas.
pub(super) fn codes(text: &str) -> Result<Vec<u32>, String> {
    let code = |name: &str| {
        http2_code(name).ok_or_else(|| format!("{} is not an error code of HTTP/2", quoted(name)))
    };
    text.split(',').map(code).collect()
}

fn frames(talk: &Talk) -> &[FrameSeen] {
    talk.replies.frames.as_ref().map_or(&[], |frames| frames.frames.as_slice())
}

/// A connection error: GOAWAY with one of these codes, any but NO_ERROR where there are none; or the
/// end without a word, which RFC 9113 section 5.4.1 permits.
pub(super) fn goaway(talk: &Talk, codes: &[u32]) -> bool {
    let mut said = frames(talk).iter().filter(|frame| frame.kind == GOAWAY).peekable();
    if said.peek().is_none() {
        return server_ended(talk);
    }
    said.filter_map(FrameSeen::code).any(|code| match codes {
        [] => code != 0,
        _ => codes.contains(&code),
    })
}

/// A stream error: RST_STREAM with one of these codes, any where there are none.
pub(super) fn reset(talk: &Talk, codes: &[u32]) -> bool {
    let mut said = frames(talk).iter().filter(|frame| frame.kind == RST_STREAM);
    said.any(|frame| frame.code().is_some_and(|code| codes.is_empty() || codes.contains(&code)))
}

pub(super) fn stands(talk: &Talk) -> bool {
    !server_ended(talk) && !frames(talk).iter().any(|frame| frame.kind == GOAWAY)
}

pub(super) fn pong(talk: &Talk) -> bool {
    frames(talk).iter().any(FrameSeen::is_pong)
}

/// GOAWAY names an error.
pub(super) fn named(talk: &Talk) -> bool {
    let mut said = frames(talk).iter().filter(|frame| frame.kind == GOAWAY);
    said.any(|frame| frame.code().is_some_and(|code| code != 0))
}

/// How many of our SETTINGS were acknowledged.
pub(super) fn acknowledged(talk: &Talk) -> usize {
    frames(talk).iter().filter(|frame| frame.kind == SETTINGS && frame.flags & ACK != 0).count()
}

/// Bytes of the first DATA that has any.
pub(super) fn first_data(talk: &Talk) -> Option<u32> {
    frames(talk).iter().find(|frame| frame.kind == DATA && frame.length > 0).map(|one| one.length)
}
