//! A naive proxy: copies every field and pseudo-field of HTTP/2 byte for byte into an HTTP/1.1
//! message. It decodes only the HPACK literals that torture sends.

use super::Scripted;
use std::io::{Read, Write};
use std::net::TcpStream;

const PREFACE: usize = 24;
const HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;

/// Sends on to this port of loopback.
pub(crate) fn proxy_to(origin: u16) -> Scripted {
    Scripted::start(move |mut stream, _| {
        let mut preface = [0; PREFACE];
        if stream.read_exact(&mut preface).is_err() || stream.write_all(&settings(0)).is_err() {
            return;
        }
        let (mut fields, mut content) = (Vec::new(), Vec::new());
        while let Some((kind, flags, id, payload)) = frame(&mut stream) {
            match kind {
                HEADERS => (fields, content) = (literals(&payload), Vec::new()),
                DATA => content.extend_from_slice(&payload),
                SETTINGS if flags == 0 => drop(stream.write_all(&settings(1))),
                _ => continue,
            }
            if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                forward(origin, &fields, &content);
                // :status 200, and content
                let head = [&[0, 0, 1, HEADERS, 4, 0, 0, 0, id, 0x88][..]].concat();
                let body = [&[0, 0, 2, DATA, END_STREAM, 0, 0, 0, id][..], b"ok"].concat();
                if stream.write_all(&[head, body].concat()).is_err() {
                    return;
                }
            }
        }
    })
}

fn settings(flags: u8) -> [u8; HEAD] {
    [0, 0, 0, SETTINGS, flags, 0, 0, 0, 0]
}

/// Reads a frame: type, flags, the last byte of the stream's number, payload.
fn frame(stream: &mut TcpStream) -> Option<(u8, u8, u8, Vec<u8>)> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).ok()?;
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).ok()?;
    Some((head[3], head[4], head[8], payload))
}

/// Decodes names and values of literals without indexing (RFC 7541 section 6.2.2).
fn literals(mut block: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let string = |block: &mut &[u8]| {
        let (first, mut rest) = block.split_first().unwrap();
        let mut length = usize::from(*first);
        let mut shift = 0;
        // an integer with a prefix of seven bits (section 5.1)
        while length >= 127 {
            let (next, after) = rest.split_first().unwrap();
            length += usize::from(next & 0x7f) << shift;
            (shift, rest) = (shift + 7, after);
            if next & 0x80 == 0 {
                break;
            }
        }
        let (text, after) = rest.split_at(length);
        *block = after;
        text.to_vec()
    };
    let mut fields = Vec::new();
    while let Some((0, rest)) = block.split_first() {
        block = rest;
        let name = string(&mut block);
        fields.push((name, string(&mut block)));
    }
    fields
}

fn forward(origin: u16, fields: &[(Vec<u8>, Vec<u8>)], content: &[u8]) {
    let pseudo = |name: &[u8]| {
        let found = fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let mut head = [&pseudo(b":method"), &b" "[..], &pseudo(b":path"), b" HTTP/1.1\r\n"].concat();
    let host = (b"host".to_vec(), pseudo(b":authority"));
    let regular = fields.iter().filter(|(name, _)| !name.starts_with(b":"));
    for (name, value) in std::iter::once(&host).chain(regular) {
        head.extend([&name[..], b": ", value, b"\r\n"].concat());
    }
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", origin)) else { return };
    server.write_all(&[&head, &b"\r\n"[..], content].concat()).ok();
    let mut lines = Vec::new();
    server.read_to_end(&mut lines).ok();
}
