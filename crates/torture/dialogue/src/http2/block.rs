//! Converts the fields of an HTTP/2 response to a [`Response`].

use crate::replies::Response;
use protocol::hpack::Field;

/// Returns the fields as a response with a text head: `HTTP/2 200`, with this version, then a line
/// each. `None` if there is no status.
pub(super) fn response(stream: u32, version: &str, fields: &[Field]) -> Option<Response> {
    let status = fields.iter().find(|(name, _)| name == b":status")?;
    let status: u16 = std::str::from_utf8(&status.1).ok()?.parse().ok()?;
    let mut head = format!("HTTP/{version} {status}\r\n").into_bytes();
    head.extend(lines(fields));
    head.extend_from_slice(b"\r\n");
    Some(Response { status, head, persistent: true, stream, ..Response::default() })
}

/// Returns the fields as lines, without pseudo-header fields.
pub(super) fn lines(fields: &[Field]) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
        lines.extend_from_slice(name);
        lines.extend_from_slice(b": ");
        lines.extend_from_slice(value);
        lines.extend_from_slice(b"\r\n");
    }
    lines
}
