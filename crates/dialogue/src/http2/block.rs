//! The fields of a response over HTTP/2, as a [`Response`].

use crate::replies::Response;
use hpack::Field;

/// What the fields say, as a response whose head is text: `HTTP/2 200`, with this version, then a line each. `None`: they
/// have no status.
pub(super) fn response(stream: u32, version: &str, fields: &[Field]) -> Option<Response> {
    let status = fields.iter().find(|(name, _)| name == b":status")?;
    let status: u16 = std::str::from_utf8(&status.1).ok()?.parse().ok()?;
    let mut head = format!("HTTP/{version} {status}\r\n").into_bytes();
    for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
        head.extend_from_slice(name);
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Some(Response { status, head, persistent: true, stream, ..Response::default() })
}
