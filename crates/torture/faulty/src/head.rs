//! Strict parsing of request heads.

mod cookies;
mod fields;
mod line;

use super::{BUFFER_MAX, Defect, Defects, FIELD_MAX, FIELDS_MAX, HEAD_MAX, LINE_MAX};
pub(super) use line::{TargetForm, is_token};
use units::Nanos;

/// Number of pairs and segments accepted with the defect that fails on many.
const PAIRS_MAX: u64 = 500;
/// Size of a field line that crashes the server, with that defect.
const FATAL_FIELD: usize = 9_000;

/// Reason why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadRefusal {
    Status(u16),
    /// Something exceeds a limit.
    Limit(u16),
    /// A defect: no response, no close.
    Hang,
    /// A defect: the server crashes.
    Dies,
}

/// Returns the reason phrase of a status (RFC 9110).
pub(super) fn reason(status: u16) -> &'static str {
    match status {
        302 => "Found",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Bad Request",
    }
}

/// A request head.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestHead {
    pub(super) method: String,
    /// Path and query; for the absolute form, the part after its authority.
    pub(super) target: Vec<u8>,
    pub(super) form: TargetForm,
    pub(super) minor: u8,
    /// Lowercase names, values without surrounding whitespace.
    pub(super) fields: Vec<(String, Vec<u8>)>,
    pub(super) persistent: bool,
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
    /// Both Content-Length and Transfer-Encoding are present.
    pub(super) both_lengths: bool,
    /// The declared body is longer than allowed, but still read.
    pub(super) too_long: bool,
    /// Transfer-Encoding in HTTP/1.0: faulty framing (RFC 9112 section 6.1).
    pub(super) faulty_framing: bool,
}

/// Nanoseconds per byte of a backtracking regular expression: a run of 8,000 takes 1.3 s.
const BACKTRACK: u64 = 20;

impl RequestHead {
    /// Returns the first value of a field; `name` is lowercase.
    pub(super) fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_slice())
    }

    /// Returns whether a field has this value, case-insensitively.
    pub(super) fn has_value(&self, name: &str, value: &str) -> bool {
        self.field(name).is_some_and(|found| found.eq_ignore_ascii_case(value.as_bytes()))
    }

    pub(super) fn has_body(&self) -> bool {
        self.chunked || self.length.is_some_and(|length| length > 0)
    }

    /// Returns the number of query pairs, cookie pairs and path segments.
    fn pairs(&self) -> u64 {
        let marks = |text: &[u8]| text.iter().filter(|byte| b"/&;".contains(byte)).count() as u64;
        let cookies = self.fields.iter().filter(|(name, _)| name == "cookie");
        marks(&self.target) + cookies.map(|(_, value)| marks(value)).sum::<u64>()
    }

    /// Returns the work that it causes: none, except with a defect.
    pub(super) fn cost(&self, defects: &Defects) -> Nanos {
        let square = |defect, count: u64, micros: u64| match defects.contains(&defect) {
            true => Nanos::from_micros(count.pow(2) * micros),
            false => Nanos::ZERO,
        };
        let backtracked = match defects.contains(&Defect::SlowExpression) {
            true => Nanos(self.longest_run().pow(2) * BACKTRACK),
            false => Nanos::ZERO,
        };
        square(Defect::SlowFields, self.fields.len() as u64, 50)
            + square(Defect::SlowPairs, self.pairs(), 1)
            + backtracked
    }

    /// Returns the length of the longest run of one letter in a field value.
    fn longest_run(&self) -> u64 {
        let runs = |value: &[u8]| value.chunk_by(|one, other| one == other).map(<[u8]>::len).max();
        let longest = self.fields.iter().filter_map(|(_, value)| runs(value)).max();
        longest.unwrap_or_default() as u64
    }

    /// Returns whether 100 must be sent (RFC 9110 section 10.1.1).
    pub(super) fn wants_continue(&self, defects: &Defects) -> bool {
        let asked = self.has_value("expect", "100-continue") && self.has_body();
        let can = self.minor >= 1 || defects.contains(&Defect::Continues10);
        asked && can && !defects.contains(&Defect::WaitsForBody)
    }
}

/// Takes a head from the front; `None` while it is incomplete.
pub(super) fn read(
    buffer: &mut Vec<u8>,
    defects: &Defects,
) -> Result<Option<RequestHead>, HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    if buffer.starts_with(b"\r\n") {
        if has(Defect::TakesNoEmptyLine) {
            return Err(HeadRefusal::Status(400));
        }
        buffer.drain(..2);
    }
    let most = |lifted: &[Defect], most: usize| match lifted.iter().any(|defect| has(*defect)) {
        true => BUFFER_MAX,
        false => most,
    };
    let line_max = most(&[Defect::LineOfAnyLength], LINE_MAX);
    let Some(end) = buffer.iter().position(|byte| *byte == b'\n') else {
        return if buffer.len() > line_max { Err(HeadRefusal::Limit(414)) } else { Ok(None) };
    };
    if end + 1 > line_max {
        return Err(HeadRefusal::Limit(414));
    }
    let text = line::without_line_end(&buffer[..=end], defects)?.to_vec();
    let request = line::read(&text, defects)?;
    let rest = &buffer[end + 1..];
    let length = match rest.starts_with(b"\r\n") {
        true => Some(0),
        false => rest.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 2),
    };
    let all = [Defect::HeadOfAnyLength, Defect::FieldOfAnyLength, Defect::AnyFields];
    if length.unwrap_or(rest.len()) > most(&all, HEAD_MAX) {
        return Err(HeadRefusal::Limit(431));
    }
    let Some(length) = length else { return Ok(None) };
    let block = rest[..length].to_vec();
    buffer.drain(..end + 1 + length + 2);
    let lengths = || block.split(|byte| *byte == b'\n').map(|line| line.len().saturating_sub(1));
    if has(Defect::DiesOfLongField) && lengths().any(|length| length >= FATAL_FIELD) {
        return Err(HeadRefusal::Dies);
    }
    let field_max = most(&[Defect::HeadOfAnyLength, Defect::FieldOfAnyLength], FIELD_MAX);
    let fields_max = most(&[Defect::HeadOfAnyLength, Defect::AnyFields], FIELDS_MAX);
    if lengths().any(|length| length > field_max) || lengths().count() > fields_max + 1 {
        return Err(HeadRefusal::Limit(431));
    }
    let fields = fields::read(&block, defects)?;
    let head = fields::understand(request, fields, defects)?;
    if let Some(status) = cookies::refusal(&head, defects) {
        return Err(HeadRefusal::Status(status));
    }
    if head.pairs() > PAIRS_MAX && has(Defect::FailsOnManyPairs) {
        return Err(HeadRefusal::Status(500));
    }
    Ok(Some(head))
}
