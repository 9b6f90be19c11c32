//! Heads of responses that are written by hand: by the exact loop, and for responses that hyper
//! declines.

use std::time::{Duration, SystemTime};

use hyper::StatusCode;

/// Value of `Server`.
pub(crate) const SERVER: &str = concat!("loadstone/", env!("CARGO_PKG_VERSION"));

/// Indication of the end of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    Length(u64),
    Chunked,
    /// No framing: no body, or one that ends with the connection.
    Unsaid,
}

/// Fields of a head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseHead<'a> {
    pub(crate) status: u16,
    pub(crate) date: &'a str,
    pub(crate) framing: BodyFraming,
    /// `close` or, to an HTTP/1.0 client, `keep-alive`.
    pub(crate) connection: Option<&'a str>,
    /// Further lines, each ending in CR LF.
    pub(crate) extra: &'a str,
}

impl ResponseHead<'_> {
    pub(crate) fn render(&self) -> Vec<u8> {
        let mut text = format!(
            "HTTP/1.1 {} {}\r\nServer: {SERVER}\r\nDate: {}\r\n",
            self.status,
            reason(self.status),
            self.date
        );
        match self.framing {
            BodyFraming::Length(len) => text.push_str(&format!("Content-Length: {len}\r\n")),
            BodyFraming::Chunked => text.push_str("Transfer-Encoding: chunked\r\n"),
            BodyFraming::Unsaid => {}
        }
        if let Some(connection) = self.connection {
            text.push_str(&format!("Connection: {connection}\r\n"));
        }
        text.push_str(self.extra);
        text.push_str("\r\n");
        text.into_bytes()
    }
}

/// Returns the line's reason phrase; empty for a number without a name, which RFC 9112 §4 allows.
pub(crate) fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason()).unwrap_or("")
}

/// Returns whether a response with this status has no body, whatever its header (RFC 9110 §6.4.1).
pub(crate) fn bodiless(status: u16) -> bool {
    matches!(status, 100..=199 | 204 | 304)
}

/// Returns the number of milliseconds since 1970-01-01 UTC.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The text for a `Date` header, formatted once a second.
#[derive(Debug)]
pub(crate) struct Date {
    until: SystemTime,
    text: String,
}

impl Date {
    pub(crate) fn new() -> Date {
        Date { until: SystemTime::UNIX_EPOCH, text: String::new() }
    }

    pub(crate) fn text(&mut self) -> &str {
        let now = SystemTime::now();
        // `until` far ahead: the wall clock was set back
        if now >= self.until || self.until > now + Duration::from_secs(1) {
            let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.until =
                SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs().saturating_add(1));
            self.text = httpdate::fmt_http_date(now);
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_written_line_by_line() {
        let head = ResponseHead {
            status: 200,
            date: "now",
            framing: BodyFraming::Length(3),
            connection: Some("close"),
            extra: "X: y\r\n",
        };
        assert_eq!(
            String::from_utf8(head.render()).unwrap(),
            format!(
                "HTTP/1.1 200 OK\r\nServer: {SERVER}\r\nDate: now\r\nContent-Length: 3\r\n\
                 Connection: close\r\nX: y\r\n\r\n"
            )
        );
        assert_eq!(reason(599), "");
    }

    #[test]
    fn the_date_is_one_and_has_its_form() {
        let mut date = Date::new();
        let text = date.text().to_owned();
        assert_eq!(text.len(), "Sun, 06 Nov 1994 08:49:37 GMT".len());
        assert!(httpdate::parse_http_date(&text).is_ok());
    }
}
