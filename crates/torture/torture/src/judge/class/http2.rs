//! Outcomes of HTTP/2 and HTTP/3.

use super::{has_ended, is_over};
use dialogue::http2::{ACK, DATA, FrameSeen, GOAWAY, RST_STREAM, SETTINGS};
use dialogue::http3::{self, datagrams, packets};
use dialogue::talk::Talk;
use sample::{http2_code, http3_code};
use units::quoted;

/// Parses comma-separated names of codes.
pub(super) fn parse_codes(text: &str) -> Result<Vec<u32>, String> {
    let mut found = Vec::new();
    for name in text.split(',') {
        // FLOW_CONTROL_ERROR exists in HTTP/2 and in QUIC with different codes: the recorded value
        // names the code
        let of_http3 = http3_code(name).and_then(|code| u32::try_from(code).ok());
        let known = [http2_code(name), of_http3, http3::quic_code(name)];
        let before = found.len();
        found.extend(known.into_iter().flatten());
        if found.len() == before {
            return Err(format!("{} is not an error code of HTTP/2, HTTP/3 or QUIC", quoted(name)));
        }
    }
    Ok(found)
}

pub(super) fn frames(talk: &Talk) -> &[FrameSeen] {
    talk.replies.frames.as_ref().map_or(&[], |frames| frames.frames.as_slice())
}

/// Returns whether there was a connection error: GOAWAY with one of these codes, or any but
/// NO_ERROR if there are none; or a close without GOAWAY, which RFC 9113 section 5.4.1 allows,
/// unless we closed it.
pub(super) fn goaway(talk: &Talk, codes: &[u32]) -> bool {
    let mut goaways = frames(talk).iter().filter(|frame| frame.kind == GOAWAY).peekable();
    if goaways.peek().is_none() {
        return has_ended(talk);
    }
    goaways.filter_map(FrameSeen::code).any(|code| match codes {
        [] => !is_no_error(code),
        _ => codes.contains(&code) || of_http3(codes) && matches!(code, GENERAL | APPLICATION),
    })
}

/// Returns whether the code is NO_ERROR or H3_NO_ERROR.
fn is_no_error(code: u32) -> bool {
    matches!(code, 0 | 0x100)
}

/// H3_GENERAL_PROTOCOL_ERROR may stand for any other (RFC 9114 section 8.1).
const GENERAL: u32 = 0x101;
/// QUIC's APPLICATION_ERROR as recorded: before the handshake is confirmed, HTTP/3 errors have no
/// other name (RFC 9000 section 10.2.3).
const APPLICATION: u32 = http3::OF_QUIC | 0xc;

/// Returns whether these are codes of HTTP/3 and QPACK.
fn of_http3(codes: &[u32]) -> bool {
    codes.iter().any(|one| (GENERAL + 1..http3::OF_QUIC).contains(one))
}

/// Returns whether there was a stream error: RST_STREAM with one of these codes, or any if there
/// are none.
pub(super) fn reset(talk: &Talk, codes: &[u32]) -> bool {
    let mut resets = frames(talk).iter().filter(|frame| frame.kind == RST_STREAM);
    // over QUIC a correctly read stream may be stopped or reset without an error
    resets.any(|frame| {
        frame.code().is_some_and(|code| match codes {
            [] => !(frame.is_over_quic() && is_no_error(code)),
            _ => codes.contains(&code) || of_http3(codes) && code == GENERAL,
        })
    })
}

pub(super) fn stays_open(talk: &Talk) -> bool {
    !is_over(talk) && !frames(talk).iter().any(|frame| frame.kind == GOAWAY)
}

/// Returns whether no datagram and no error was received.
pub(super) fn got_no_reply(talk: &Talk) -> bool {
    datagrams::sums(frames(talk)).1 == 0 && stays_open(talk)
}

/// Returns whether at most `times` times the sent bytes were received.
pub(super) fn at_most(talk: &Talk, times: u64) -> bool {
    let (sent, came) = datagrams::sums(frames(talk));
    came <= times * sent
}

/// Returns whether at most `times` times the sent bytes were received before the last full-size
/// datagram.
pub(super) fn at_most_before_last(talk: &Talk, times: u64) -> bool {
    let (sent, came) = datagrams::sums(frames(talk));
    let datagrams = frames(talk).iter().filter(|frame| frame.kind == datagrams::CAME);
    let largest = datagrams.map(|frame| u64::from(frame.length)).max().unwrap_or(0);
    came.saturating_sub(largest) < times * sent
}

/// Returns whether the received data is smaller than the sent data, if any was received.
pub(super) fn smaller(talk: &Talk) -> bool {
    let (sent, came) = datagrams::sums(frames(talk));
    came == 0 || came < sent
}

pub(super) fn has_frame(talk: &Talk, row: u8) -> bool {
    packets::has_frame(frames(talk), row)
}

pub(super) fn echoed(talk: &Talk, text: &str) -> bool {
    packets::is_echoed(frames(talk), text.as_bytes())
}

pub(super) fn sound_table(talk: &Talk) -> bool {
    packets::is_table_sound(frames(talk))
}

pub(super) fn negotiated(talk: &Talk) -> bool {
    datagrams::negotiated(frames(talk))
}

pub(super) fn pong(talk: &Talk) -> bool {
    frames(talk).iter().any(FrameSeen::is_pong)
}

/// Returns whether GOAWAY names an error.
pub(super) fn named(talk: &Talk) -> bool {
    let mut goaways = frames(talk).iter().filter(|frame| frame.kind == GOAWAY);
    goaways.any(|frame| frame.code().is_some_and(|code| !is_no_error(code)))
}

/// Returns the number of acknowledged SETTINGS of ours.
pub(super) fn acknowledged(talk: &Talk) -> usize {
    frames(talk).iter().filter(|frame| frame.kind == SETTINGS && frame.flags & ACK != 0).count()
}

/// Returns the value of a setting that the server announced, the last one of several.
pub(super) fn announced(talk: &Talk, setting: u16) -> Option<u32> {
    let all = frames(talk).iter().filter(|frame| frame.is_settings());
    all.filter_map(|frame| frame.setting(setting)).next_back()
}

/// Returns the size of the first non-empty DATA.
pub(super) fn first_data(talk: &Talk) -> Option<u32> {
    frames(talk).iter().find(|frame| frame.kind == DATA && frame.length > 0).map(|one| one.length)
}
