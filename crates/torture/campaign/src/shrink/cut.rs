//! Splits steps into removable pieces, and joins them again.

use dialogue::http3;
use dialogue::talk::Move;
use std::ops::Range;

/// Minimum number of equal consecutive bytes that form one piece: their number was found before.
const RUN_MIN: usize = 16;
/// Minimum length of uninterrupted bytes whose number is searched for.
const STRETCH_MIN: usize = 32;

/// A piece: bytes of one write, or another step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Index of its step.
    step: usize,
    what: Move,
}

/// Returns the steps of these pieces: bytes of one write stay together.
pub(super) fn built(units: &[Unit]) -> Vec<Move> {
    let mut moves: Vec<(usize, Move)> = Vec::new();
    for unit in units {
        match (moves.last_mut(), &unit.what) {
            (Some((step, Move::Send(out))), Move::Send(bytes)) if *step == unit.step => {
                out.extend_from_slice(bytes);
            }
            _ => moves.push((unit.step, unit.what.clone())),
        }
    }
    moves.into_iter().map(|(_, what)| what).collect()
}

/// Returns the pieces of a conversation in which each step is one piece.
pub(super) fn moves(moves: &[Move]) -> Vec<Unit> {
    split_units(moves, |bytes| ranges(std::iter::empty(), bytes.len()))
}

/// Returns whether the steps are pieces of QUIC streams: a half piece would be parsed with what
/// follows.
pub(super) fn are_pieces(moves: &[Move]) -> bool {
    let mut sent = moves.iter().filter_map(|step| match step {
        Move::Send(bytes) => Some(bytes),
        _ => None,
    });
    sent.all(|bytes| http3::pieces(bytes).is_some())
}

/// Returns each of them.
pub(super) fn pieces(moves: &[Move]) -> Vec<Unit> {
    split_units(moves, |bytes| http3::pieces(bytes).unwrap_or_default())
}

/// Returns the pieces that end with an empty line each.
pub(super) fn requests(moves: &[Move]) -> Vec<Unit> {
    split_units(moves, |bytes| {
        let ends = (1..=bytes.len()).filter(|end| {
            let done = &bytes[..*end];
            done.ends_with(b"\r\n\r\n") || done.ends_with(b"\n\n")
        });
        ranges(ends, bytes.len())
    })
}

/// Returns lines, each with its end.
pub(super) fn lines(moves: &[Move]) -> Vec<Unit> {
    split_units(moves, |bytes| {
        ranges((1..=bytes.len()).filter(|end| bytes[end - 1] == b'\n'), bytes.len())
    })
}

/// Returns `%XX`, long runs of one byte, and other bytes individually.
pub(super) fn tokens(moves: &[Move]) -> Vec<Unit> {
    split_units(moves, |bytes| {
        let mut found = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let run = rest.iter().take_while(|byte| **byte == rest[0]).count();
            let escape =
                rest.len() >= 3 && rest[0] == b'%' && rest[1..3].iter().all(u8::is_ascii_hexdigit);
            let length = match (run >= RUN_MIN, escape) {
                (true, _) => run,
                (false, true) => 3,
                (false, false) => 1,
            };
            found.push(at..at + length);
            at += length;
        }
        found
    })
}

fn split_units(moves: &[Move], into: impl Fn(&[u8]) -> Vec<Range<usize>>) -> Vec<Unit> {
    let mut units = Vec::new();
    for (step, what) in moves.iter().enumerate() {
        match what {
            Move::Send(bytes) => units.extend(
                into(bytes)
                    .into_iter()
                    .map(|range| Unit { step, what: Move::Send(bytes[range].to_vec()) }),
            ),
            other => units.push(Unit { step, what: other.clone() }),
        }
    }
    units
}

fn ranges(ends: impl Iterator<Item = usize>, length: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    for end in ends {
        found.push(from..end);
        from = end;
    }
    if from < length {
        found.push(from..length);
    }
    found
}

/// Bytes of one write that may be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ByteSpan {
    step: usize,
    range: Range<usize>,
    pub(super) what: &'static str,
}

impl ByteSpan {
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }
}

/// Returns whether this many bytes are a stretch.
pub(super) fn is_long(count: usize) -> bool {
    count >= STRETCH_MIN
}

/// Returns long stretches whose length may be relevant: of a query, of other words of the head, of
/// bodies.
pub(super) fn long_spans(moves: &[Move]) -> Vec<ByteSpan> {
    let mut found = Vec::new();
    for (step, what) in moves.iter().enumerate() {
        let Move::Send(bytes) = what else { continue };
        let head = head_end(bytes).unwrap_or(bytes.len());
        let blank = |byte: &u8| matches!(byte, b' ' | b'\r' | b'\n' | b'\t');
        let mut from = 0;
        while from < head {
            let length = bytes[from..head].iter().take_while(|byte| !blank(byte)).count();
            let word = &bytes[from..from + length];
            // the part before the query, or the slash before a path, does not count
            let skipped = word.iter().position(|byte| *byte == b'?').map(|at| at + 1);
            let skipped = skipped.unwrap_or(usize::from(word.first() == Some(&b'/')));
            let in_first = !bytes[..from].contains(&b'\n');
            let what = if in_first { "the first line" } else { "a field" };
            if is_long(length - skipped.min(length)) {
                found.push(ByteSpan { step, range: from + skipped..from + length, what });
            }
            from += length + 1;
        }
        if is_long(bytes.len() - head) {
            found.push(ByteSpan { step, range: head..bytes.len(), what: "the body" });
        }
    }
    found
}

/// Returns words of letters and digits.
pub(super) fn words(moves: &[Move]) -> Vec<ByteSpan> {
    let mut found = Vec::new();
    for (step, what) in moves.iter().enumerate() {
        let Move::Send(bytes) = what else { continue };
        let mut at = 0;
        while at < bytes.len() {
            let length = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            // the digits of an escape are not a word
            let escape = at > 0 && bytes[at - 1] == b'%';
            if length > 0 && !escape {
                found.push(ByteSpan { step, range: at..at + length, what: "a word" });
            }
            at += length.max(1);
        }
    }
    found
}

/// Returns the steps with this stretch replaced by `count` letters `a`.
pub(super) fn filled(moves: &[Move], stretch: &ByteSpan, count: usize) -> Vec<Move> {
    let mut moves = moves.to_vec();
    if let Some(Move::Send(bytes)) = moves.get_mut(stretch.step) {
        bytes.splice(stretch.range.clone(), std::iter::repeat_n(b'a', count));
    }
    moves
}

/// Returns the end of the head of the first request.
fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Returns the position of the Content-Length digits in the head, and the end of the head.
fn stated_length(bytes: &[u8]) -> Option<(Range<usize>, usize)> {
    const NAME: &[u8] = b"\r\ncontent-length:";
    let end = head_end(bytes)?;
    let head = bytes[..end].to_ascii_lowercase();
    let at = head.windows(NAME.len()).position(|here| here == NAME)? + NAME.len();
    let blanks = head[at..].iter().take_while(|byte| **byte == b' ').count();
    let digits = head[at + blanks..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then_some((at + blanks..at + blanks + digits, end))
}

/// Returns whether this is a single write of a single request with a correct Content-Length.
pub(super) fn has_right_length(moves: &[Move]) -> bool {
    let [Move::Send(bytes)] = moves else { return false };
    let Some((digits, end)) = stated_length(bytes) else { return false };
    let stated = std::str::from_utf8(&bytes[digits]).ok().and_then(|text| text.parse().ok());
    stated == Some(bytes.len() - end)
}

/// Returns the write with its Content-Length corrected, if present.
pub(super) fn with_right_length(mut moves: Vec<Move>) -> Vec<Move> {
    if let [Move::Send(bytes)] = &mut moves[..]
        && let Some((digits, end)) = stated_length(bytes)
    {
        let length = (bytes.len() - end).to_string();
        bytes.splice(digits, length.into_bytes());
    }
    moves
}
