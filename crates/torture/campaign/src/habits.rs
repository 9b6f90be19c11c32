//! Behavior of the server for plain requests and harmless oddities, before the first case.

use crate::TestTarget;
use dialogue::calls;
use dialogue::http2::write::{self, PseudoFields};
use dialogue::http2::{FOLLOW_UP, Protocol};
use dialogue::http3;
use dialogue::talk::Talk;
use torture::case::Need;

/// Returns a valid GET of the probed page, with additional field lines.
pub(super) fn plain_request(target: &TestTarget, fields: &str) -> Vec<u8> {
    plain_request_of(target, &format!("{}{fields}", target.fields))
}

/// Returns a valid GET of the probed page with exactly these field lines.
pub(super) fn plain_request_of(target: &TestTarget, fields: &str) -> Vec<u8> {
    match target.protocol {
        Protocol::Http1 => {}
        Protocol::Http2 | Protocol::Http2Raw => {
            return [write::opening(), frame_of(target, fields)].concat();
        }
        Protocol::Http3 | Protocol::Datagrams => {
            return [http3::write::opening(), frame_of(target, fields)].concat();
        }
    }
    let (path, host) = (&target.values.path, &target.values.host);
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n").into_bytes()
}

/// Returns the plain request over HTTP/2 or HTTP/3 on an established connection, on the first
/// stream.
pub(super) fn plain_frame(target: &TestTarget, fields: &str) -> Vec<u8> {
    frame_of(target, &format!("{}{fields}", target.fields))
}

fn frame_of(target: &TestTarget, fields: &str) -> Vec<u8> {
    let scheme = if target.tls_name.is_some() { "https" } else { "http" };
    let (path, authority) = (&target.values.path, &target.values.host);
    if target.is_grpc() {
        let block = calls::block(scheme, authority, path, fields);
        return calls::call(1, &block, &target.values.message);
    }
    let asked = PseudoFields { method: "GET", scheme, authority, path };
    if target.protocol.is_http3() {
        return http3::write::request(0, &http3::write::section(asked, fields));
    }
    write::request(1, &write::request_block(asked, fields))
}

/// Returns a request of [`plain_frame`] for the stream after this many requests.
pub(super) fn later_frame(protocol: Protocol, request: &[u8], before: u32) -> Vec<u8> {
    match protocol {
        Protocol::Http3 | Protocol::Datagrams => {
            http3::write::on_stream(request, 4 * u64::from(before))
        }
        _ => write::on_stream(request, 2 * before + 1),
    }
}

/// Returns the plain follow-up request on the same connection; over HTTP/2 and HTTP/3 it uses a
/// separate stream, over HTTP/3 this one.
pub(super) fn follow_up(target: &TestTarget, stream: u64) -> Vec<u8> {
    match target.protocol {
        Protocol::Http1 => plain_request(target, ""),
        Protocol::Http2 | Protocol::Http2Raw => {
            write::on_stream(&plain_frame(target, ""), FOLLOW_UP)
        }
        Protocol::Http3 | Protocol::Datagrams => {
            http3::write::on_stream(&plain_frame(target, ""), stream)
        }
    }
}

/// Returns a valid GET of the probed page in early data (0-RTT), on a crafted connection.
pub(super) fn early_request(target: &TestTarget) -> Vec<u8> {
    let shake = http3::packets::handshake_options("early", b"").unwrap_or_default();
    [shake, http3::write::opening(), plain_frame(target, "")].concat()
}

/// Returns whether a QUIC frame with this name was received, or an event recorded like one.
pub(super) fn has_frame(talk: &Talk, name: &str) -> bool {
    let row = http3::packets::frame_row(name);
    let frames = talk.replies.frames.as_ref();
    row.zip(frames).is_some_and(|(row, seen)| http3::packets::has_frame(&seen.frames, row))
}

/// Returns the features of the probed page from a plain response and a range response.
pub(super) fn offers(plain: &Talk, ranged: &Talk) -> Vec<Need> {
    let mut found = Vec::new();
    if ranged.replies.responses.first().is_some_and(|response| response.status == 206) {
        found.push(Need::Ranges);
    }
    let (etag, modified) = validators(plain);
    found.extend((!etag.is_empty()).then_some(Need::Etag));
    found.extend((!modified.is_empty()).then_some(Need::Modified));
    if !(etag.is_empty() && modified.is_empty()) {
        found.push(Need::Validators);
    }
    found
}

/// SETTINGS_QPACK_MAX_TABLE_CAPACITY (RFC 9204 section 5).
const TABLE_CAPACITY: u64 = 1;
/// Minimum size of a table with two entries.
pub(super) const TABLE_MIN: u64 = 96;

/// Returns the size of the QPACK table that the server allows; 0 for other protocols.
pub(super) fn table_of(plain: &Talk) -> u64 {
    let frames = plain.replies.frames.iter().flat_map(|frames| &frames.frames);
    let settings = frames.filter(|frame| frame.is_over_quic() && frame.is_settings());
    let pairs = settings.flat_map(|frame| http3::settings(&frame.payload));
    let known = pairs.filter(|(id, _)| *id == TABLE_CAPACITY);
    known.map(|(_, value)| value).next().unwrap_or(0)
}

/// Maximum size of a validator that is sent back.
const VALIDATOR_MAX: usize = 256;

/// Returns ETag, without the weak prefix, and Last-Modified of a plain response; empty if they
/// cannot be sent back.
pub(super) fn validators(plain: &Talk) -> (String, String) {
    let Some(response) = plain.replies.responses.first() else { return Default::default() };
    let sound = |value: &&str| {
        value.len() <= VALIDATOR_MAX
            && value.bytes().all(|one| one == b' ' || one.is_ascii_graphic())
    };
    let field = |name| response.field(name).next().filter(sound).unwrap_or_default();
    let etag = field("etag");
    (etag.strip_prefix("W/").unwrap_or(etag).to_owned(), field("last-modified").to_owned())
}
