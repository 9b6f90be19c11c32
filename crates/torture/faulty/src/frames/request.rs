//! Checks the fields of a request against RFC 9113 sections 8.2 and 8.3; HTTP/3 has the same rules
//! (RFC 9114 sections 4.2 and 4.3).

use protocol::hpack::Field;

/// A parsed request.
#[derive(Debug)]
pub(crate) struct Http2Request {
    pub(crate) method: Vec<u8>,
    pub(crate) path: Vec<u8>,
    /// The Content-Length.
    pub(crate) length: Option<u64>,
}

/// Connection-specific fields of HTTP/1.1 (RFC 9113 section 8.2.2).
const OF_CONNECTIONS: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// Returns the request, or `None` if it is malformed.
pub(crate) fn parse_request(fields: &[Field]) -> Option<Http2Request> {
    let regular = fields.iter().position(|(name, _)| !name.starts_with(b":"));
    let (pseudo, regular) = fields.split_at(regular.unwrap_or(fields.len()));
    let method = only(pseudo, b":method")?;
    let path = only(pseudo, b":path")?;
    let scheme = only(pseudo, b":scheme")?;
    let authority = only(pseudo, b":authority");
    let known = [&b":method"[..], b":path", b":scheme", b":authority"];
    let odd = |(name, value): &Field| {
        !known.contains(&name.as_slice()) || value.iter().any(|byte| !byte.is_ascii_graphic())
    };
    if pseudo.iter().any(odd) || pseudo.len() != 3 + usize::from(authority.is_some()) {
        return None;
    }
    let token = !method.is_empty() && method.iter().all(|byte| byte.is_ascii_uppercase());
    let whole = path.starts_with(b"/") && matches!(scheme, b"http" | b"https");
    let user = authority.is_some_and(|authority| authority.contains(&b'@'));
    if !token || !whole || user || !regular.iter().all(is_field) {
        return None;
    }
    let hosts: Vec<&[u8]> = values(regular, b"host").collect();
    let host = hosts.first().copied();
    if hosts.len() > 1 || host.is_some_and(|host| authority.is_some_and(|named| named != host)) {
        return None;
    }
    let lengths: Vec<&[u8]> = values(regular, b"content-length").collect();
    let length = match lengths.as_slice() {
        [] => None,
        [one] if one.iter().all(u8::is_ascii_digit) => {
            Some(std::str::from_utf8(one).ok()?.parse().ok()?)
        }
        _ => return None,
    };
    Some(Http2Request { method: method.to_vec(), path: path.to_vec(), length })
}

/// Returns the only value of this name.
fn only<'f>(fields: &'f [Field], name: &[u8]) -> Option<&'f [u8]> {
    let mut all = values(fields, name);
    all.next().filter(|_| all.next().is_none())
}

pub(super) fn values<'f>(fields: &'f [Field], name: &[u8]) -> impl Iterator<Item = &'f [u8]> {
    fields.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_slice())
}

fn is_field((name, value): &Field) -> bool {
    let letter = |byte: &u8| {
        byte.is_ascii_graphic()
            && !byte.is_ascii_uppercase()
            && !b"\"(),/:;<=>?@[\\]{}".contains(byte)
    };
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let control = |byte: &u8| matches!(byte, 0 | b'\r' | b'\n');
    !name.is_empty()
        && name.iter().all(letter)
        && !OF_CONNECTIONS.contains(&name.as_slice())
        && (name != b"te" || value == b"trailers")
        && !(value.iter().any(control) || blank(value.first()) || blank(value.last()))
}
