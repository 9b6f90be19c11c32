//! How many requests a script's text holds: asked once, of the first text.

/// Methods that wrk's parser knows.
const METHODS: &[&str] = &[
    "DELETE",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "COPY",
    "LOCK",
    "MKCOL",
    "MOVE",
    "PROPFIND",
    "PROPPATCH",
    "SEARCH",
    "UNLOCK",
    "REPORT",
    "MKACTIVITY",
    "CHECKOUT",
    "MERGE",
    "M-SEARCH",
    "NOTIFY",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "PATCH",
    "PURGE",
    "MKCALENDAR",
];

/// Requests in one text, at most.
const REQUESTS_MAX: u16 = 10_000;

/// Counts the requests in `text`, one behind the other; an incomplete last one is left out when
/// there are others.
///
/// # Errors
/// `REASON at LINE:COLUMN`, as wrk tells it.
pub(crate) fn requests(text: &[u8]) -> Result<u16, String> {
    let mut at = 0;
    let mut count = 0;
    loop {
        while matches!(text.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        match message(&text[at..]) {
            Ok(Some(length)) => {
                at += length;
                count += 1;
            }
            Ok(None) if count > 0 => return Ok(count),
            Ok(None) => return Err(told("incomplete request", text, text.len())),
            Err((reason, offset)) => return Err(told(reason, text, at + offset)),
        }
        if count > REQUESTS_MAX {
            return Err(told("more than 10000 requests in one text", text, at));
        }
    }
}

/// The length of the message that begins the text; `None` when it is not complete.
fn message(text: &[u8]) -> Result<Option<usize>, (&'static str, usize)> {
    request_line(text)?;
    let Some(head) = head_length(text) else { return Ok(None) };
    let mut length = 0;
    let mut chunked = false;
    for (name, value) in wire::fields::fields(&text[..head]) {
        if name.eq_ignore_ascii_case(b"content-length") {
            let number = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            length = number.ok_or(("invalid character in content-length header", head))?;
        }
        chunked |= name.eq_ignore_ascii_case(b"transfer-encoding")
            && value.to_ascii_lowercase().ends_with(b"chunked");
    }
    if chunked {
        return Ok(chunks(&text[head..])?.map(|body| head + body));
    }
    Ok(head.checked_add(length).filter(|end| *end <= text.len()))
}

/// Refuses what cannot begin a request.
fn request_line(text: &[u8]) -> Result<(), (&'static str, usize)> {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let method = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    let common = |known: &&str| {
        known.bytes().zip(method).take_while(|(wanted, found)| wanted == *found).count()
    };
    let whole_line = line.len() < text.len();
    if !METHODS.iter().any(|known| known.as_bytes() == method) {
        let matched = METHODS.iter().map(common).max().unwrap_or(0);
        if matched < method.len() || whole_line {
            return Err(("invalid HTTP method", matched));
        }
        return Ok(());
    }
    if !whole_line {
        return Ok(());
    }
    match line.rsplit(|byte| *byte == b' ').next() {
        Some(b"HTTP/1.1" | b"HTTP/1.0") => Ok(()),
        _ => Err(("invalid HTTP version", line.len())),
    }
}

/// Bytes up to and with the empty line.
fn head_length(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(end) = text[from..].iter().position(|byte| *byte == b'\n') {
        let line = &text[from..from + end];
        from += end + 1;
        if line.is_empty() || line == b"\r" {
            return Some(from);
        }
    }
    None
}

/// The length of a chunked body, its last empty line included (no trailers).
fn chunks(text: &[u8]) -> Result<Option<usize>, (&'static str, usize)> {
    let mut at = 0;
    loop {
        let Some(end) = text[at..].iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line = text[at..at + end].trim_ascii();
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size =
            std::str::from_utf8(digits).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let size = size.ok_or(("invalid character in chunk size header", at))?;
        let Some(next) = at.checked_add(end + 1 + 2).and_then(|next| next.checked_add(size)) else {
            return Ok(None);
        };
        at = next;
        if at > text.len() {
            return Ok(None);
        }
        if size == 0 {
            return Ok(Some(at));
        }
    }
}

fn told(reason: &str, text: &[u8], at: usize) -> String {
    let before = &text[..at.min(text.len())];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
    format!("{reason} at {line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_and_nonsense_is_told_with_its_place() {
        let one = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
        let post = "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
        let chunked = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let ok = |text: String| assert_eq!(requests(text.as_bytes()), Ok(3), "{text}");
        ok(format!("{one}{one}{one}"));
        ok(format!("{one}{post}{chunked}"));
        ok(format!("{post}{post}\r\n{one}GET / HT"));
        let told = |text: &str| requests(text.as_bytes()).unwrap_err();
        assert_eq!(told("garbage here\r\n\r\n"), "invalid HTTP method at 1:1");
        assert_eq!(told(""), "incomplete request at 1:1");
        assert_eq!(told("GEX / HTTP/1.1\r\n\r\n"), "invalid HTTP method at 1:3");
        assert_eq!(told("GET / HTTP/1.1\r\nHost: h\r\n"), "incomplete request at 3:1");
        assert_eq!(told("GET / FTP\r\n\r\n"), "invalid HTTP version at 1:10");
        assert_eq!(
            told("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"),
            "incomplete request at 4:4"
        );
    }

    #[test]
    fn no_text_panics() {
        let text =
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab\r\n";
        for end in 0..text.len() {
            requests(&text[..end]).ok();
            requests(&text[end..]).ok();
        }
    }
}
