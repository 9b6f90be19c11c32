//! The built-in handlers: `/hw` and `/sleep`.

use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::sync::Mutex;

use crate::breaks::{Break, Breaks};
use crate::exchange::{Ask, Content, Reply};

/// The longest sleep in seconds.
const SLEEP_MAX: f64 = 3_600.0;
/// Longest text of a number of seconds.
const SECONDS_TEXT_MAX: usize = 16;
const METHODS: &str = "GET, HEAD, OPTIONS";

/// Responds with `hello world`.
pub(crate) fn hello(ask: &Ask, breaks: &Breaks) -> Reply {
    if let Some(reply) = not_for(&ask.method) {
        return reply;
    }
    let text = if breaks.has(Break::HwText) { "hello there\n" } else { "hello world\n" };
    let kind = if breaks.has(Break::HwType) { "text/html" } else { "text/plain" };
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let content = Content::Bytes(Bytes::from_static(text.as_bytes()));
    Reply { status: StatusCode::OK, headers, content }
}

/// Serves one request at a time, in the order of their arrival, unless several may sleep at once.
#[derive(Debug)]
pub(crate) struct Sleep {
    /// The holder sleeps. Waiting requests get it in order.
    bed: Mutex<()>,
    parallel: bool,
}

impl Sleep {
    pub(crate) fn new(parallel: bool) -> Sleep {
        Sleep { bed: Mutex::new(()), parallel }
    }

    /// Responds with `Slept for N seconds` after that time; N is the query.
    pub(crate) async fn answer(&self, ask: &Ask, breaks: &Breaks) -> Reply {
        if let Some(reply) = not_for(&ask.method) {
            return reply;
        }
        let text = ask.query.as_deref().unwrap_or_default();
        let Some(span) = seconds(text) else {
            let advice = "Give the time in seconds, from 0 to 3600: /sleep?3\n";
            return Reply::text(StatusCode::BAD_REQUEST, advice);
        };
        let span = if breaks.has(Break::SleepShort) { Duration::ZERO } else { span };
        if self.parallel || breaks.has(Break::SleepParallel) {
            tokio::time::sleep(span).await;
        } else {
            let _bed = self.bed.lock().await;
            tokio::time::sleep(span).await;
        }
        if breaks.has(Break::SleepText) {
            return Reply::text(StatusCode::OK, "Slept\n");
        }
        Reply::text(StatusCode::OK, format!("Slept for {text} seconds\n"))
    }
}

/// Parses `3`, `0.25`: a plain decimal number.
fn seconds(text: &str) -> Option<Duration> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = text.parse().ok()?;
    let fits = plain && text.len() <= SECONDS_TEXT_MAX && (0.0..=SLEEP_MAX).contains(&number);
    fits.then(|| Duration::from_secs_f64(number))
}

/// Returns the response to a method that a built-in handler does not know.
fn not_for(method: &Method) -> Option<Reply> {
    let mut reply = match *method {
        Method::GET | Method::HEAD => return None,
        Method::OPTIONS => Reply {
            status: StatusCode::NO_CONTENT,
            headers: HeaderMap::new(),
            content: Content::Empty,
        },
        _ => {
            let text = format!("{method} is not allowed for this page; it takes {METHODS}.\n");
            Reply::text(StatusCode::METHOD_NOT_ALLOWED, text)
        }
    };
    reply.headers.insert(ALLOW, HeaderValue::from_static(METHODS));
    Some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_plain_decimal_numbers_within_an_hour() {
        assert_eq!(seconds("3"), Some(Duration::from_secs(3)));
        assert_eq!(seconds("0.25"), Some(Duration::from_millis(250)));
        assert_eq!(seconds("3600"), Some(Duration::from_secs(3_600)));
        let too_long = "0.0000000000000000000001";
        for bad in ["", ".", "-1", "+1", "1e3", "inf", "NaN", "3601", "1,5", " 1", too_long] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
