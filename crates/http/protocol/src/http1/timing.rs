//! The Server-Timing field: a server's timing of its own work (W3C Server Timing §3).
//!
//! ```text
//! Server-Timing: cache;desc="miss", db;dur=53.2, app;dur=47
//! ```
//! Invalid metrics are skipped one at a time, and reported as malformed. More lenient than the
//! grammar: an empty parameter (`db;dur=53;`), and a fold as white space.

use crate::http1::fields::{is_token, trim};
use units::Nanos;

/// The field's name, in lower case.
pub const SERVER_TIMING: &str = "server-timing";

/// Maximum length of a metric's name in bytes.
pub const NAME_MAX: usize = 64;

/// Maximum milliseconds of a metric: about three hours.
pub const DURATION_MAX_MS: f64 = 1e7;

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing<'a> {
    /// A token, at most [`NAME_MAX`] bytes; case matters.
    pub name: &'a str,
    /// The first `dur`; a metric without `dur` has no time.
    pub duration: Option<Nanos>,
}

/// A metric that violates the grammar or a bound of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Returns the metrics of one field value, in order.
pub fn timings(value: &[u8]) -> Timings<'_> {
    Timings { rest: value }
}

/// The metrics of one field value; returned by [`timings`].
#[derive(Clone, Debug)]
pub struct Timings<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Timings<'a> {
    type Item = Result<Timing<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let metric = trim(take_until(&mut self.rest, b','));
            // empty elements of a list do not count (RFC 9110 §5.6.1.2)
            if !metric.is_empty() {
                return Some(read(metric));
            }
        }
    }
}

/// Removes the text before the next `end` outside quotes, and drops the `end` itself.
fn take_until<'a>(rest: &mut &'a [u8], end: u8) -> &'a [u8] {
    // before the first quote nothing is quoted
    let stop = match memchr::memchr2(end, b'"', rest) {
        Some(at) if rest[at] == b'"' => end_outside_quotes(rest, end),
        stop => stop,
    };
    let (before, after) = match stop {
        Some(stop) => (&rest[..stop], &rest[stop + 1..]),
        None => (*rest, &[][..]),
    };
    *rest = after;
    before
}

fn end_outside_quotes(text: &[u8], end: u8) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    text.iter().position(|&byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => return byte == end && !quoted,
        }
        false
    })
}

fn read(metric: &[u8]) -> Result<Timing<'_>, Malformed> {
    let mut rest = metric;
    let name = token(trim(take_until(&mut rest, b';'))).ok_or(Malformed)?;
    if name.len() > NAME_MAX {
        return Err(Malformed);
    }
    let mut duration = None;
    while !rest.is_empty() {
        let parameter = trim(take_until(&mut rest, b';'));
        if parameter.is_empty() {
            continue;
        }
        let equals = memchr::memchr(b'=', parameter).ok_or(Malformed)?;
        let parameter_name = token(trim(&parameter[..equals])).ok_or(Malformed)?;
        let value = plain(trim(&parameter[equals + 1..])).ok_or(Malformed)?;
        if duration.is_none() && parameter_name.eq_ignore_ascii_case("dur") {
            duration = Some(milliseconds(value).ok_or(Malformed)?);
        }
    }
    Ok(Timing { name, duration })
}

fn token(text: &[u8]) -> Option<&str> {
    if is_token(text) { std::str::from_utf8(text).ok() } else { None }
}

/// Returns a token, or the content of a quoted string (RFC 9110 §5.6.4) with its escapes: a number
/// has none.
fn plain(value: &[u8]) -> Option<&[u8]> {
    let [b'"', inside @ ..] = value else { return token(value).map(str::as_bytes) };
    let mut rest = inside;
    let mut escaped = false;
    while let [byte, after @ ..] = rest {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return after.is_empty().then(|| &inside[..inside.len() - rest.len()]),
            _ => {}
        }
        rest = after;
    }
    None
}

fn milliseconds(value: &[u8]) -> Option<Nanos> {
    // neither `inf` nor `nan`, which the standard library parses as numbers
    let number =
        value.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E'));
    let text = std::str::from_utf8(value).ok().filter(|_| number)?;
    let milliseconds: f64 = text.parse().ok()?;
    let possible = (0.0..=DURATION_MAX_MS).contains(&milliseconds);
    possible.then(|| Nanos::from_secs_f64(milliseconds / 1e3))
}

#[cfg(test)]
mod tests;
