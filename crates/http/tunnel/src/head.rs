//! Heads of an upgrade and of its response, between HTTP/1.1 and HTTP/2 or HTTP/3.

/// Returns the length of a head that ends with an empty line; `None` if it is incomplete. The first
/// `seen` bytes do not contain its end.
pub(crate) fn size(head: &[u8], seen: usize) -> Option<usize> {
    let from = seen.saturating_sub(3);
    head[from..].windows(4).position(|at| at == b"\r\n\r\n").map(|at| from + at + 4)
}

/// Returns the value of Sec-WebSocket-Key in the head of an upgrade; empty without this field.
pub(crate) fn key(head: &[u8]) -> String {
    let head = String::from_utf8_lossy(head);
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-key").then(|| value.trim().to_owned())
    };
    head.lines().find_map(value).unwrap_or_default()
}

/// Appends the response to an extended CONNECT as that to an upgrade with `key`: 200 becomes 101
/// with the fields that HTTP/2 leaves out (RFC 8441 section 5). `response` is a head as
/// [`http2::Session::head`] returns it.
pub(crate) fn put_response(response: &[u8], key: &str, out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(response);
    let (line, fields) = text.split_once("\r\n").unwrap_or((&text, "\r\n"));
    let status = line.split(' ').nth(1).unwrap_or("000");
    if !matches!(status.as_bytes(), [b'2', _, _]) {
        out.extend_from_slice(format!("HTTP/1.1 {status} \r\n{fields}").as_bytes());
        return;
    }
    let accept = websocket::handshake::accept(key);
    let line = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(format!("Sec-WebSocket-Accept: {accept}\r\n{fields}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_in_parts_is_found() {
        assert_eq!(size(b"GET / HTTP/1.1\r\n\r", 0), None);
        assert_eq!(size(b"GET / HTTP/1.1\r\n\r\nx", 17), Some(18));
    }

    #[test]
    fn responses_are_translated_as_a_gateway_does() {
        let text = |response: &[u8]| {
            let mut out = Vec::new();
            put_response(response, "dGhlIHNhbXBsZSBub25jZQ==", &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            text(b"HTTP/2 200\r\nsec-websocket-protocol: chat\r\n\r\n"),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
             sec-websocket-protocol: chat\r\n\r\n"
        );
        assert_eq!(text(b"HTTP/2 403\r\nserver: x\r\n\r\n"), "HTTP/1.1 403 \r\nserver: x\r\n\r\n");
        assert_eq!(text(b""), "HTTP/1.1 000 \r\n\r\n");
    }
}
