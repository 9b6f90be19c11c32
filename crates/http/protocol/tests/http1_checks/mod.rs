//! Invariants for any bytes. The fuzz targets in `fuzz/` and the tests next to this folder run the
//! same functions; each panics when its rule is broken.

use protocol::http1::response::{
    Advance, Asked, HeadCache, ResponseError, ResponseFacts, ResponseReader,
};
use protocol::http1::timing::{DURATION_MAX_MS, NAME_MAX, timings};

/// Maximum number of responses read from one input: enough for pipelining, and fast.
const RESPONSES_MAX: usize = 50;

/// A completed response.
#[derive(Debug, PartialEq, Eq)]
struct ReadResponse {
    facts: ResponseFacts,
    body: Vec<u8>,
    head: Vec<u8>,
    timings: Vec<String>,
}

/// Result of an input.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    responses: Vec<ReadResponse>,
    open: (ResponseFacts, Vec<u8>),
    begun: bool,
    end: Result<(), ResponseError>,
    /// Bytes used by the completed responses.
    used: usize,
}

/// Checks that any bytes, split anywhere, with a cold or a warm cache, give the same responses and
/// the same end; nothing is consumed twice or omitted. The first byte of `data` selects the
/// request, the second the splits.
pub(crate) fn response(data: &[u8]) {
    let [choice, cuts, input @ ..] = data else { return };
    let asked = [Asked::Ordinary, Asked::Head, Asked::Connect][usize::from(choice % 3)];
    let keep_head = choice & 0x80 != 0;
    let mut cache = HeadCache::new();
    let whole = see(asked, keep_head, &mut cache, std::iter::once(input));
    let forgetful = read_again(asked, keep_head, input);
    assert_eq!(whole, forgetful, "with no head remembered");
    let warm = see(asked, keep_head, &mut cache, std::iter::once(input));
    assert_eq!(whole, warm, "with a warm cache");
    let bytes = see(asked, keep_head, &mut HeadCache::new(), input.chunks(1));
    assert_eq!(whole, bytes, "byte by byte");
    let cut = see(asked, keep_head, &mut cache, random_pieces(input, *cuts));
    assert_eq!(whole, cut, "cut at random");
    let on_the_wire =
        |facts: &ResponseFacts| facts.head_bytes + facts.body_bytes + facts.framing_bytes;
    let counted: u64 = whole.responses.iter().map(|response| on_the_wire(&response.facts)).sum();
    assert_eq!(counted, whole.used as u64, "every byte is counted once");
    let carried_on = whole.responses.len().saturating_sub(1);
    let statuses = whole.responses.iter().map(|response| response.facts.status);
    let interims = statuses.into_iter().all(|status| status >= 200 || status <= 101);
    assert!(interims && carried_on <= RESPONSES_MAX);
    for response in &whole.responses {
        assert!(
            response.facts.timed || response.timings.is_empty(),
            "timings that nobody looks for"
        );
    }
}

fn see<'a>(
    asked: Asked,
    keep_head: bool,
    cache: &mut HeadCache,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Seen {
    let mut step = |reader: &mut ResponseReader, fresh: bool, rest: &[u8]| match fresh {
        true => reader.begin(asked, cache, rest),
        false => reader.advance(cache, rest),
    };
    see_by(asked, keep_head, &mut step, pieces)
}

/// Parses again as a whole, with each head parsed like the first.
fn read_again(asked: Asked, keep_head: bool, input: &[u8]) -> Seen {
    let mut advance = |reader: &mut ResponseReader, _: bool, rest: &[u8]| {
        reader.advance(&mut HeadCache::new(), rest)
    };
    see_by(asked, keep_head, &mut advance, std::iter::once(input))
}

/// Reads further bytes; true: the first bytes of a response.
type Step<'a> =
    &'a mut dyn FnMut(&mut ResponseReader, bool, &[u8]) -> Result<Advance, ResponseError>;

fn see_by<'a>(
    asked: Asked,
    keep_head: bool,
    step: Step<'_>,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Seen {
    let mut reader = ResponseReader::new(keep_head);
    let (mut responses, mut body, mut used, mut open_used) = (Vec::new(), Vec::new(), 0, 0);
    let (mut failed, mut fresh) = (None, true);
    reader.start(asked);
    'pieces: for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() && responses.len() < RESPONSES_MAX {
            let advance = match step(&mut reader, std::mem::take(&mut fresh), rest) {
                Ok(advance) => advance,
                Err(error) => {
                    failed = Some(error);
                    break 'pieces;
                }
            };
            assert!(advance.consumed <= rest.len(), "more than given");
            assert!(advance.body.end <= advance.consumed, "content within what is consumed");
            assert!(advance.consumed > 0 || advance.done, "no progress");
            body.extend_from_slice(&rest[advance.body]);
            rest = &rest[advance.consumed..];
            open_used += advance.consumed;
            if advance.done {
                let facts = reader.facts();
                assert_eq!(facts.body_bytes, body.len() as u64);
                responses.push(ReadResponse {
                    facts,
                    body: std::mem::take(&mut body),
                    head: reader.head().to_vec(),
                    timings: reader.server_timings().map(|one| format!("{one:?}")).collect(),
                });
                used += std::mem::take(&mut open_used);
                fresh = true;
                reader.start(asked);
            }
        }
    }
    let (facts, begun) = (reader.facts(), reader.has_begun());
    let end = failed.map_or_else(|| reader.end_of_input(), Err);
    Seen { responses, open: (facts, body), begun, end, used }
}

/// Pieces of 1 to 64 bytes; `seed` decides.
fn random_pieces(input: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let (mut rest, mut state) = (input, u32::from(seed) | 1);
    std::iter::from_fn(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let step = (state >> 26) as usize + 1;
        let (piece, after) = rest.split_at(step.min(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Checks that a chunked body is read like by the simplest implementation of RFC 9112 §7.1.
pub(crate) fn chunked(data: &[u8]) {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let input = [HEAD, data].concat();
    let mut cache = HeadCache::new();
    let mut reader = ResponseReader::new(false);
    let (mut at, mut body, mut outcome) = (0, Vec::new(), Plain::Unfinished);
    reader.start(Asked::Ordinary);
    while at < input.len() {
        match reader.advance(&mut cache, &input[at..]) {
            Ok(advance) => {
                body.extend_from_slice(&input[at..][advance.body]);
                at += advance.consumed;
                if advance.done {
                    outcome = Plain::Done;
                    break;
                }
                assert!(advance.consumed > 0, "no progress");
            }
            Err(error) => {
                assert!(matches!(error, ResponseError::BadFraming(_)), "{error:?}");
                outcome = Plain::Broken;
                break;
            }
        }
    }
    let mut plain = PlainReader { rest: data, body: Vec::new() };
    let wanted = plain.read();
    assert_eq!(outcome, wanted);
    assert_eq!(body, plain.body);
    if wanted == Plain::Done {
        assert_eq!(input.len() - at, plain.rest.len(), "what belongs to the next response");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plain {
    Done,
    Unfinished,
    Broken,
}

/// Reads the whole input at once, line by line. Returns `Err` where it cannot continue.
struct PlainReader<'a> {
    rest: &'a [u8],
    body: Vec<u8>,
}

impl PlainReader<'_> {
    fn read(&mut self) -> Plain {
        loop {
            match self.chunk() {
                Ok(true) => {}
                Ok(false) => break,
                Err(end) => return end,
            }
        }
        self.trailers().err().unwrap_or(Plain::Done)
    }

    /// Reads a chunk; `Ok(false)` for the last.
    fn chunk(&mut self) -> Result<bool, Plain> {
        let size = self.size()?;
        if size == 0 {
            return Ok(false);
        }
        let here = usize::try_from(size).unwrap_or(usize::MAX).min(self.rest.len());
        self.body.extend_from_slice(&self.rest[..here]);
        self.rest = &self.rest[here..];
        if (here as u128) < size {
            return Err(Plain::Unfinished);
        }
        self.rest = match self.rest {
            [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
            [] | [b'\r'] => return Err(Plain::Unfinished),
            _ => return Err(Plain::Broken),
        };
        Ok(true)
    }

    fn size(&mut self) -> Result<u128, Plain> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let significant = self.rest[..digits].iter().skip_while(|byte| **byte == b'0').count();
        if significant > 16 || digits > 4096 {
            return Err(Plain::Broken);
        }
        let text = String::from_utf8_lossy(&self.rest[..digits]);
        let after = &self.rest[digits..];
        match after {
            [] => return Err(Plain::Unfinished),
            _ if digits == 0 => return Err(Plain::Broken),
            [b'\n' | b';' | b' ' | b'\t', ..] | [b'\r', b'\n', ..] => {}
            [b'\r'] if digits < 4096 => return Err(Plain::Unfinished),
            _ => return Err(Plain::Broken),
        }
        let line = after.iter().position(|byte| *byte == b'\n').map(|lf| digits + lf + 1);
        if line.unwrap_or(self.rest.len()) > 4096 {
            return Err(Plain::Broken);
        }
        self.rest = &self.rest[line.ok_or(Plain::Unfinished)?..];
        u128::from_str_radix(&text, 16).map_err(|_| Plain::Broken)
    }

    fn trailers(&mut self) -> Result<(), Plain> {
        let begin = self.rest.len();
        loop {
            let line = self.rest.iter().position(|byte| *byte == b'\n').map(|lf| lf + 1);
            let bare_cr = self.rest.first() == Some(&b'\r') && line != Some(2);
            if bare_cr && self.rest.len() > 1 {
                return Err(Plain::Broken);
            }
            let used = begin - self.rest.len() + line.unwrap_or(self.rest.len());
            if used > 64 << 10 {
                return Err(Plain::Broken);
            }
            let line = line.ok_or(Plain::Unfinished)?;
            let (text, rest) = self.rest.split_at(line);
            self.rest = rest;
            if matches!(text, b"\n" | b"\r\n") {
                return Ok(());
            }
        }
    }
}

/// Checks arbitrary bytes as a Server-Timing value: parsing ends, bounds hold, and a list is read
/// like its parts.
pub(crate) fn server_timing(data: &[u8]) {
    let read: Vec<_> = timings(data).collect();
    assert!(read.len() <= data.iter().filter(|byte| **byte == b',').count() + 1);
    for timing in read.iter().flatten() {
        assert!((1..=NAME_MAX).contains(&timing.name.len()), "{timing:?}");
        assert!(timing.name.bytes().all(|byte| byte.is_ascii_graphic()), "{timing:?}");
        let milliseconds = timing.duration.map_or(0.0, |span| span.0 as f64 / 1e6);
        assert!((0.0..=DURATION_MAX_MS).contains(&milliseconds), "{timing:?}");
    }
    if !data.contains(&b'"') {
        let apart: Vec<_> = data.split(|byte| *byte == b',').flat_map(timings).collect();
        assert_eq!(apart, read);
    }
}

/// Fails on purpose: the planted bug loses the upper half of a chunk size above 32 bits. A fuzzer
/// that does not find this finds nothing.
pub(crate) fn alarm(data: &[u8]) {
    let digits = data.iter().take_while(|byte| byte.is_ascii_hexdigit()).count().min(16);
    let Ok(text) = std::str::from_utf8(&data[..digits]) else { return };
    if let Ok(size) = u64::from_str_radix(text, 16) {
        assert_eq!(planted_size(text), size, "the planted bug: found");
    }
}

fn planted_size(text: &str) -> u64 {
    let digits = text.chars().filter_map(|digit| digit.to_digit(16));
    u64::from(digits.fold(0u32, |size, digit| size << 4 | digit))
}
