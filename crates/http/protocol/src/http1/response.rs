//! The response reader: the hot path of the whole program. A head that equals a recent one is
//! recognized by comparing bytes; only a new head is parsed.
//!
//! ```text
//! Idle --start--> Begin --"HTTP/"...--> Head --1xx--> Begin
//!                   \___ known head ___/   \--final--> Length | Chunked | UntilClose --> Idle (done)
//! ```
//!
//! Pieces: `advance` is called with any received bytes. Facts, body bytes and errors do not depend
//! on how the input is cut; the tests read each input whole, by bytes, and cut in two.

mod cache;
mod chunked;
mod head;

pub use cache::HeadCache;

use crate::http1::fields;
use crate::http1::timing::{Malformed, SERVER_TIMING, Timing, timings};
use chunked::{ChunkReader, Chunks};
use head::{BodyRule, Known};
use std::ops::Range;

/// Kind of request: responses to HEAD and 2xx responses to CONNECT have no body (RFC 9112 §6.3,
/// items 1 and 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    #[default]
    Ordinary,
    Head,
    Connect,
}

/// Limits on data from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of one head in bytes; interim heads count separately.
    pub head_max: usize,
    /// Maximum number of interim (1xx) responses before the final one.
    pub interim_max: u16,
    /// Maximum size of one chunk-size line in bytes, including extensions and line end.
    pub chunk_line_max: usize,
    /// Bytes of all trailer fields of a response, including the closing empty line.
    pub trailer_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head_max: 64 << 10,
            interim_max: 64,
            chunk_line_max: 4 << 10,
            trailer_max: 64 << 10,
        }
    }
}

/// End of a response's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// The response has no body by rule: HEAD, 1xx, 204, 304, 2xx to CONNECT.
    #[default]
    None,
    Length,
    Chunked,
    UntilClose,
}

/// Facts of a response. Its size on the wire is `head_bytes + body_bytes + framing_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseFacts {
    /// Three digits as sent, 0..=999; those outside 100..=599 are final responses too.
    pub status: u16,
    /// 0 or 1: HTTP/1.0 or HTTP/1.1.
    pub minor_version: u8,
    /// True if another request may be sent on this connection (RFC 9112 §9.3).
    pub persistent: bool,
    pub framing: Framing,
    /// Bytes of the final head, of interim heads and of empty lines before them.
    pub head_bytes: u64,
    /// Bytes of content, content coding not undone.
    pub body_bytes: u64,
    /// Bytes of chunk-size lines, line ends of chunks and trailers.
    pub framing_bytes: u64,
    /// Bytes of trailers among them, with the empty line that ends them.
    pub trailer_bytes: u64,
    /// Number of interim responses skipped.
    pub interim: u16,
    /// True if [`ResponseReader::server_timings`] may have entries: from a field of that name, or
    /// trailers.
    pub timed: bool,
    /// The head may have a Set-Cookie field. If false, a search of the head is unnecessary.
    pub sets_cookies: bool,
}

impl ResponseFacts {
    /// Returns whether there was no head: see [`Leniency::headless`].
    #[inline]
    pub fn is_headless(&self) -> bool {
        self.framing == Framing::UntilClose && self.head_bytes == 0
    }
}

/// Result of a call of [`ResponseReader::advance`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Number of consumed input bytes.
    pub consumed: usize,
    /// Content within the input, chunk framing removed; may be empty.
    pub body: Range<usize>,
    /// True if the response is complete; the rest of the input belongs to the next one.
    pub done: bool,
}

/// Reason why the received bytes are not a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// The bytes are not the beginning of `HTTP/1.`: another protocol, or no protocol.
    NotHttp,
    /// HTTP, but the end of the message is undefined; the text has the reason.
    BadFraming(&'static str),
    /// A head above [`Limits::head_max`], or with more fields than are held.
    HeadTooLarge,
    /// The connection ended before the response's first byte.
    ClosedEarly,
    /// The connection ended inside the response.
    Truncated,
}

impl std::fmt::Display for ResponseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ResponseError::NotHttp => f.write_str("the server's bytes are not HTTP/1.x"),
            ResponseError::BadFraming(what) => {
                write!(f, "the response's framing is broken: {what}")
            }
            ResponseError::HeadTooLarge => f.write_str(
                "the response's head is above the limit: 64 KiB unless --head-max is given, and 256 \
                 fields",
            ),
            ResponseError::ClosedEarly => {
                f.write_str("the connection ended before a response began")
            }
            ResponseError::Truncated => f.write_str("the connection ended inside the response"),
        }
    }
}

impl std::error::Error for ResponseError {}

/// Reads responses from one connection. Small: shared data of all connections is in the
/// [`HeadCache`].
#[derive(Debug)]
pub struct ResponseReader {
    facts: ResponseFacts,
    /// Remaining bytes of a `Length` body.
    left: u64,
    chunks: ChunkReader,
    /// A head that arrives in pieces; then the final head if it is kept, and trailers.
    buffer: Vec<u8>,
    /// Number of bytes of `buffer` that are the final head.
    head_len: usize,
    limits: Limits,
    state: ReadState,
    asked: Asked,
    keep_head: bool,
    lenient: Leniency,
    scan: head::Scan,
    /// Empty-line bytes before the status line.
    leading: u16,
    begun: bool,
}

/// Leniency beyond HTTP/1.x, as in old clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// Bytes that begin no status line are a response without a head (HTTP/0.9). The end of the connection
    /// ends it. Its status is 0; all its bytes count as body, though those that arrived while they could
    /// still have begun a head are not passed on as such.
    pub headless: bool,
    /// A status line may name any version of HTTP; the message is read as one of HTTP/1.1.
    pub any_version: bool,
    /// For a message with an unusable length, the body is the data that arrived together with the
    /// head, or everything up to the end of a connection that is not kept.
    pub any_length: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    /// No response is awaited: never started, complete, or failed.
    Idle,
    /// No byte of a status line seen.
    Begin,
    /// Part of a head is in `buffer`.
    Head,
    Length,
    Chunked,
    UntilClose,
}

/// Maximum number of CR and LF bytes tolerated before a status line, as some servers leave them
/// after the last body.
const LEADING_MAX: u16 = 64;
/// A larger buffer is freed when its response ends.
const BUFFER_KEPT_MAX: usize = 4 << 10;
/// Start of every status line.
const MAGIC: &[u8] = b"HTTP/";

impl ResponseReader {
    /// Creates a reader. `keep_head`: keep the final head's raw bytes for [`ResponseReader::head`].
    pub fn new(keep_head: bool) -> ResponseReader {
        ResponseReader::with_limits(keep_head, Limits::default())
    }

    pub fn with_limits(keep_head: bool, limits: Limits) -> ResponseReader {
        ResponseReader {
            facts: ResponseFacts::default(),
            left: 0,
            chunks: ChunkReader::default(),
            buffer: Vec::new(),
            head_len: 0,
            limits,
            state: ReadState::Idle,
            asked: Asked::Ordinary,
            keep_head,
            lenient: Leniency::default(),
            scan: head::Scan::default(),
            leading: 0,
            begun: false,
        }
    }

    /// Returns the same reader with leniency beyond HTTP/1.x.
    #[must_use]
    pub fn lenient(self, lenient: Leniency) -> ResponseReader {
        ResponseReader { lenient, ..self }
    }

    /// Starts a new response with the next bytes.
    pub fn start(&mut self, asked: Asked) {
        self.asked = asked;
        self.state = ReadState::Begin;
        self.begun = false;
        self.leading = 0;
        self.facts = ResponseFacts::default();
        if !self.buffer.is_empty() {
            self.empty_buffer();
        }
    }

    /// Combines [`ResponseReader::start`] and [`ResponseReader::advance`], if the first bytes of
    /// the response are available: only sets the facts of a known head.
    ///
    /// # Errors
    /// Fails like [`ResponseReader::advance`].
    #[inline(always)]
    pub fn begin(
        &mut self,
        asked: Asked,
        cache: &mut HeadCache,
        input: &[u8],
    ) -> Result<Advance, ResponseError> {
        if let Some(known) = cache.latest(input)
            && let BodyRule::Length(length) = known.rule
            && asked == Asked::Ordinary
        {
            return Ok(self.short_cut(known, length, input));
        }
        self.start(asked);
        self.advance(cache, input)
    }

    /// Consumes as much of `input` as possible: at most one piece of body. Must be called again
    /// with the rest while bytes were consumed and the response is not done. If not started, or
    /// done, consumes nothing.
    ///
    /// # Errors
    /// Fails if the bytes are not a response; the connection cannot be used any further.
    // separate, so that `begin` is small enough to be inlined
    #[inline(never)]
    pub fn advance(
        &mut self,
        cache: &mut HeadCache,
        input: &[u8],
    ) -> Result<Advance, ResponseError> {
        let advance = self.advance_by_state(cache, input);
        if advance.is_err() {
            self.state = ReadState::Idle;
        }
        advance
    }

    /// Handles the end of the connection.
    ///
    /// # Errors
    /// Returns [`ResponseError::ClosedEarly`] without a byte of a response,
    /// [`ResponseError::NotHttp`] if not even `HTTP/` was received, [`ResponseError::Truncated`]
    /// inside a response. `Ok`: the response was delimited by the end of the connection and is
    /// complete (RFC 9112 §6.3 item 8).
    pub fn end_of_input(&mut self) -> Result<(), ResponseError> {
        let state = std::mem::replace(&mut self.state, ReadState::Idle);
        match state {
            ReadState::UntilClose => Ok(()),
            ReadState::Idle => Err(ResponseError::ClosedEarly),
            ReadState::Begin if !self.begun => Err(ResponseError::ClosedEarly),
            ReadState::Head => {
                let no_http = self.facts.interim == 0 && self.buffer.len() < MAGIC.len();
                self.facts.head_bytes += self.buffer.len() as u64;
                self.empty_buffer();
                match no_http {
                    true if self.lenient.headless => {
                        self.without_head(self.facts.head_bytes);
                        self.state = ReadState::Idle;
                        Ok(())
                    }
                    true => Err(ResponseError::NotHttp),
                    false => Err(ResponseError::Truncated),
                }
            }
            _ => Err(ResponseError::Truncated),
        }
    }

    /// Returns the facts: valid once the response is done; before, those known so far.
    #[inline]
    pub fn facts(&self) -> ResponseFacts {
        self.facts
    }

    /// Returns [`ResponseReader::facts`] with the bytes of an incomplete head.
    pub fn facts_so_far(&self) -> ResponseFacts {
        let begun = if self.state == ReadState::Head { self.buffer.len() as u64 } else { 0 };
        ResponseFacts { head_bytes: self.facts.head_bytes + begun, ..self.facts }
    }

    /// Returns the raw final head, its closing empty line included, from its end until the next
    /// `start`; empty unless heads are kept.
    pub fn head(&self) -> &[u8] {
        if self.keep_head { &self.buffer[..self.head_len] } else { &[] }
    }

    /// Returns the server's timing of its own work, in the final head and in the trailers:
    /// available once the response is complete, until the next `start`.
    pub fn server_timings(&self) -> impl Iterator<Item = Result<Timing<'_>, Malformed>> {
        let (head, trailers) = self.buffer.split_at(self.head_len);
        fields::fields(head)
            .chain(fields::trailers(trailers))
            .filter(|(name, _)| name.eq_ignore_ascii_case(SERVER_TIMING.as_bytes()))
            .flat_map(|(_, value)| timings(value))
    }

    /// Returns whether any byte of the current response was seen; empty lines before it do not
    /// count.
    #[inline]
    pub fn has_begun(&self) -> bool {
        self.begun
    }
}

impl ResponseReader {
    /// Handles the common case: an ordinary response's whole known head at the start of the input,
    /// with a body of `length` bytes.
    #[inline]
    fn short_cut(&mut self, known: &Known, length: u64, input: &[u8]) -> Advance {
        let rest = input.len() - known.len;
        let here = usize::try_from(length).unwrap_or(usize::MAX).min(rest);
        self.asked = Asked::Ordinary;
        self.begun = true;
        self.facts = ResponseFacts {
            status: known.status,
            minor_version: known.minor_version,
            persistent: known.keep_alive,
            framing: Framing::Length,
            head_bytes: known.len as u64,
            body_bytes: here as u64,
            sets_cookies: known.sets_cookies,
            ..ResponseFacts::default()
        };
        self.left = length - here as u64;
        let done = self.left == 0;
        self.state = if done { ReadState::Idle } else { ReadState::Length };
        if !self.buffer.is_empty() {
            self.empty_buffer();
        }
        if self.keep_head {
            self.buffer.extend_from_slice(&input[..known.len]);
            self.head_len = known.len;
        }
        Advance { consumed: known.len + here, body: known.len..known.len + here, done }
    }

    fn advance_by_state(
        &mut self,
        cache: &mut HeadCache,
        input: &[u8],
    ) -> Result<Advance, ResponseError> {
        match self.state {
            ReadState::Idle => Ok(nothing()),
            ReadState::Begin | ReadState::Head if self.lenient.headless => {
                self.read_heads_leniently(cache, input)
            }
            ReadState::Begin | ReadState::Head => self.heads(cache, input),
            _ => self.body(input, 0),
        }
    }

    /// Reads like [`ResponseReader::heads`]; from the first bytes that are not a head, everything
    /// is body.
    fn read_heads_leniently(
        &mut self,
        cache: &mut HeadCache,
        input: &[u8],
    ) -> Result<Advance, ResponseError> {
        let before = self.facts_so_far();
        match self.heads(cache, input) {
            // after an interim head the message must be HTTP/1.x
            Err(ResponseError::NotHttp) if self.facts.interim == 0 => {
                self.without_head(before.head_bytes + input.len() as u64);
                Ok(Advance { consumed: input.len(), body: 0..input.len(), done: false })
            }
            heads => heads,
        }
    }

    /// Begins a response without a head: `bytes` of its body were received, and more may follow.
    fn without_head(&mut self, bytes: u64) {
        self.begun = true;
        self.state = ReadState::UntilClose;
        self.facts = ResponseFacts {
            framing: Framing::UntilClose,
            body_bytes: bytes,
            ..ResponseFacts::default()
        };
        self.empty_buffer();
    }

    /// Reads heads, including interim ones, then the rest of the body.
    fn heads(&mut self, cache: &mut HeadCache, input: &[u8]) -> Result<Advance, ResponseError> {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            if self.state == ReadState::Begin {
                let skipped = self.skip_empty_lines(rest)?;
                if skipped > 0 {
                    at += skipped;
                    continue;
                }
            }
            self.begun = true;
            let (consumed, known) = self.head_piece(cache, rest)?;
            at += consumed;
            match known {
                None => self.state = ReadState::Head,
                Some(known) if known.is_interim() => self.skip_interim(&known)?,
                Some(known) => {
                    self.settle(&known, input.len() - at)?;
                    return self.body(input, at);
                }
            }
        }
        Ok(Advance { consumed: at, body: at..at, done: false })
    }

    /// Skips empty lines before a response, as RFC 9112 §2.2 recommends to servers before a
    /// request.
    fn skip_empty_lines(&mut self, rest: &[u8]) -> Result<usize, ResponseError> {
        let room = usize::from(LEADING_MAX - self.leading);
        let empty = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let count = empty.take(room + 1).count();
        if count > room {
            // consume as much as possible, so that the cuts of the input change nothing
            self.facts.head_bytes += room as u64;
            return Err(ResponseError::NotHttp);
        }
        self.leading += count as u16;
        self.facts.head_bytes += count as u64;
        Ok(count)
    }

    /// Finds the end of a head in the input, alone or together with buffered bytes; returns how
    /// many bytes were used, and the head's facts once it is complete.
    fn head_piece(
        &mut self,
        cache: &mut HeadCache,
        rest: &[u8],
    ) -> Result<(usize, Option<Known>), ResponseError> {
        let whole = self.state == ReadState::Begin;
        if whole {
            if let Some(known) = cache.recall(rest) {
                self.keep(&rest[..known.len], &known);
                return Ok((known.len, Some(known)));
            }
            self.scan = head::Scan::default();
        }
        check_magic(&self.buffer, rest)?;
        let end = self.scan.find_end(rest);
        let used = end.unwrap_or(rest.len());
        if self.buffer.len() + used > self.limits.head_max {
            return Err(ResponseError::HeadTooLarge);
        }
        if end.is_some() && whole {
            let known = cache.learn(&rest[..used], self.lenient.any_version)?;
            self.keep(&rest[..used], &known);
            return Ok((used, Some(known)));
        }
        self.buffer.extend_from_slice(&rest[..used]);
        if end.is_none() {
            return Ok((used, None));
        }
        let known = match cache.recall(&self.buffer) {
            Some(known) => known,
            None => cache.learn(&self.buffer, self.lenient.any_version)?,
        };
        if !self.keeps(&known) {
            self.empty_buffer();
        }
        Ok((used, Some(known)))
    }

    fn keeps(&self, known: &Known) -> bool {
        (self.keep_head || known.timed) && !known.is_interim()
    }

    fn keep(&mut self, head: &[u8], known: &Known) {
        if self.keeps(known) {
            self.buffer.extend_from_slice(head);
        }
    }

    /// Keeps a piece of the trailer section, unless the section is empty.
    fn keep_trailers(&mut self, piece: &[u8]) {
        let begun = self.buffer.len() > self.head_len;
        if begun || piece.first().is_some_and(|byte| !matches!(byte, b'\r' | b'\n')) {
            self.buffer.extend_from_slice(piece);
            self.facts.timed = true;
        }
    }

    fn skip_interim(&mut self, known: &Known) -> Result<(), ResponseError> {
        if self.facts.interim >= self.limits.interim_max {
            return Err(ResponseError::BadFraming("too many interim (1xx) responses"));
        }
        self.facts.interim += 1;
        self.facts.head_bytes += known.len as u64;
        self.state = ReadState::Begin;
        self.leading = 0;
        Ok(())
    }

    /// Handles a complete final head: decides how the body ends (RFC 9112 §6.3, in its order).
    fn settle(&mut self, known: &Known, here: usize) -> Result<(), ResponseError> {
        let tunnel = self.asked == Asked::Connect && (200..300).contains(&known.status);
        let bodiless = tunnel || self.asked == Asked::Head;
        let rule = if bodiless { BodyRule::None } else { known.rule };
        (self.facts.framing, self.state) = match rule {
            BodyRule::None => (Framing::None, ReadState::Idle),
            BodyRule::Length(length) => {
                self.left = length;
                (Framing::Length, if length == 0 { ReadState::Idle } else { ReadState::Length })
            }
            BodyRule::Chunked => {
                self.chunks = ChunkReader::default();
                (Framing::Chunked, ReadState::Chunked)
            }
            BodyRule::UntilClose => (Framing::UntilClose, ReadState::UntilClose),
            BodyRule::Faulty(_) if self.lenient.any_length && known.keep_alive => {
                self.left = here as u64;
                (Framing::Length, if here == 0 { ReadState::Idle } else { ReadState::Length })
            }
            BodyRule::Faulty(_) if self.lenient.any_length => {
                (Framing::UntilClose, ReadState::UntilClose)
            }
            BodyRule::Faulty(what) => return Err(ResponseError::BadFraming(what)),
        };
        self.head_len = self.buffer.len();
        self.facts.timed = known.timed;
        self.facts.sets_cookies = known.sets_cookies;
        self.facts.status = known.status;
        self.facts.minor_version = known.minor_version;
        self.facts.head_bytes += known.len as u64;
        // a tunnel or another protocol follows: no further response can
        let over = tunnel || known.status == 101 || self.facts.framing == Framing::UntilClose;
        self.facts.persistent = known.keep_alive && !over;
        Ok(())
    }

    /// Reads the body's part of `input[at..]`.
    fn body(&mut self, input: &[u8], at: usize) -> Result<Advance, ResponseError> {
        let rest = input.len() - at;
        let advance = match self.state {
            ReadState::Length => {
                let here = usize::try_from(self.left).unwrap_or(usize::MAX).min(rest);
                self.left -= here as u64;
                if self.left == 0 {
                    self.state = ReadState::Idle;
                }
                Advance { consumed: at + here, body: at..at + here, done: self.left == 0 }
            }
            ReadState::UntilClose => {
                Advance { consumed: input.len(), body: at..input.len(), done: false }
            }
            ReadState::Chunked => {
                let Chunks { consumed, body, trailers, done } =
                    self.chunks.advance(&self.limits, &input[at..])?;
                self.keep_trailers(&input[at..][trailers]);
                self.facts.framing_bytes += (consumed - body.len()) as u64;
                if done {
                    self.state = ReadState::Idle;
                    self.facts.trailer_bytes = self.chunks.trailer_bytes();
                }
                Advance { consumed: at + consumed, body: at + body.start..at + body.end, done }
            }
            ReadState::Idle => Advance { consumed: at, body: at..at, done: true },
            ReadState::Begin | ReadState::Head => {
                Advance { consumed: at, body: at..at, done: false }
            }
        };
        self.facts.body_bytes += advance.body.len() as u64;
        Ok(advance)
    }

    fn empty_buffer(&mut self) {
        self.buffer.clear();
        self.head_len = 0;
        if self.buffer.capacity() > BUFFER_KEPT_MAX {
            self.buffer = Vec::new();
        }
    }
}

/// Checks the first bytes as soon as they arrive: `before` and then `rest` must agree with `HTTP/`
/// so far.
fn check_magic(before: &[u8], rest: &[u8]) -> Result<(), ResponseError> {
    let open = MAGIC.get(before.len()..).unwrap_or_default();
    let count = open.len().min(rest.len());
    if rest[..count] == open[..count] { Ok(()) } else { Err(ResponseError::NotHttp) }
}

fn nothing() -> Advance {
    Advance { consumed: 0, body: 0..0, done: false }
}

#[cfg(test)]
mod tests;
