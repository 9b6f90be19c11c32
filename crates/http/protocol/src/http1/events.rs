//! Events in a body that is streamed: Server-Sent Events, or a line for each. Counted, not kept.

use memchr::{memchr, memchr2};

/// Number of bytes examined at the beginning of a line: enough for a byte order mark and `data:
/// [DONE]` with its space.
const PREFIX_MAX: usize = 16;

/// The data with which many servers of language models end a stream: an end, and no event.
const DONE: &[u8] = b"[DONE]";

/// Delimiter of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventFormat {
    Sse,
    Lines,
}

/// Counts the events of one body as its pieces arrive; the count does not depend on the splits.
/// Needs no additional memory.
#[derive(Clone, Copy, Debug)]
pub struct EventReader {
    form: EventFormat,
    /// The start of the current line, and its length so far.
    prefix: [u8; PREFIX_MAX],
    length: usize,
    /// The current line has more than white space.
    inked: bool,
    /// The byte before was a carriage return, to which a line feed belongs.
    after_return: bool,
    first_line: bool,
    /// The current event has data.
    has_data: bool,
}

impl EventReader {
    /// Server-Sent Events (WHATWG HTML section 9.2.6): an empty line ends an event, which has at
    /// least one `data` field. Comments, and events without data, do not count, and neither does an
    /// event whose only data is `[DONE]`.
    pub fn sse() -> EventReader {
        EventReader::new(EventFormat::Sse)
    }

    /// Creates a reader of bodies with one event per line, as in JSON lines: blank lines do not
    /// count.
    pub fn lines() -> EventReader {
        EventReader::new(EventFormat::Lines)
    }

    fn new(form: EventFormat) -> EventReader {
        EventReader {
            form,
            prefix: [0; PREFIX_MAX],
            length: 0,
            inked: false,
            after_return: false,
            first_line: true,
            has_data: false,
        }
    }

    /// Processes a piece of the body; returns how many events end in it.
    pub fn push(&mut self, piece: &[u8]) -> u64 {
        match self.form {
            EventFormat::Sse => self.push_sse(piece),
            EventFormat::Lines => self.push_lines(piece),
        }
    }

    /// Completes the body: a last line needs no line end. An SSE event without a final empty line
    /// does not count, as the standard requires.
    pub fn finish(&mut self) -> u64 {
        u64::from(self.form == EventFormat::Lines && std::mem::take(&mut self.inked))
    }

    fn push_lines(&mut self, mut rest: &[u8]) -> u64 {
        let mut events = 0;
        while let Some(end) = memchr(b'\n', rest) {
            let inked = self.inked || has_visible_bytes(&rest[..end]);
            events += u64::from(inked);
            self.inked = false;
            rest = &rest[end + 1..];
        }
        self.inked = self.inked || has_visible_bytes(rest);
        events
    }

    fn push_sse(&mut self, mut rest: &[u8]) -> u64 {
        let mut events = 0;
        if self.after_return
            && let Some(first) = rest.first()
        {
            self.after_return = false;
            if *first == b'\n' {
                rest = &rest[1..];
            }
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            self.extend(&rest[..end]);
            events += u64::from(self.end_line());
            let returned = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if returned {
                self.after_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.extend(rest);
        events
    }

    fn extend(&mut self, part: &[u8]) {
        let from = self.length.min(PREFIX_MAX);
        let count = part.len().min(PREFIX_MAX - from);
        self.prefix[from..from + count].copy_from_slice(&part[..count]);
        self.length = self.length.saturating_add(part.len());
    }

    /// Ends a line of SSE. Returns true if an event ends with it.
    fn end_line(&mut self) -> bool {
        let length = std::mem::take(&mut self.length);
        let first = std::mem::take(&mut self.first_line);
        let seen = &self.prefix[..length.min(PREFIX_MAX)];
        let line = seen.strip_prefix(b"\xef\xbb\xbf").filter(|_| first).unwrap_or(seen);
        if line.is_empty() {
            return std::mem::take(&mut self.has_data);
        }
        if let Some(value) = line.strip_prefix(b"data") {
            let value = match value {
                [] => Some(value),
                [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
                _ => None,
            };
            let cut = length > PREFIX_MAX;
            self.has_data |= value.is_some_and(|value| cut || value != DONE);
        }
        false
    }
}

fn has_visible_bytes(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| !byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(mut reader: EventReader, pieces: &[&[u8]]) -> u64 {
        let pushed: u64 = pieces.iter().map(|piece| reader.push(piece)).sum();
        pushed + reader.finish()
    }

    #[test]
    fn an_event_has_data_and_ends_with_an_empty_line() {
        for (text, events) in [
            ("data: a\n\ndata: b\n\n", 2),
            ("data: a\r\n\r\ndata:b\r\rdata\n\n", 3),
            ("event: x\nid: 1\ndata: {\ndata: }\n\n", 1),
            // a comment that keeps the connection alive, and an event without data
            (": ping\n\nevent: ping\n\nretry: 5\n\n", 0),
            ("data: a\n\ndata: [DONE]\n\n", 1),
            ("data:[DONE]\n\n", 0),
            ("data: [DONE] and more than that\n\n", 1),
            ("data: [DONE]\ndata: x\n\n", 1),
            ("datas: x\n\n data: x\n\n", 0),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", 1),
            // not ended
            ("data: a\n\ndata: b\n", 1),
            ("\n\n\n", 0),
        ] {
            assert_eq!(count(EventReader::sse(), &[text.as_bytes()]), events, "{text:?}");
        }
    }

    #[test]
    fn a_line_that_is_not_blank_is_an_event() {
        for (text, events) in
            [("{}\n{}\n", 2), ("{}\r\n\r\n \n{}", 2), ("", 0), ("\n", 0), ("{", 1)]
        {
            assert_eq!(count(EventReader::lines(), &[text.as_bytes()]), events, "{text:?}");
        }
    }

    #[test]
    fn an_event_is_counted_in_the_piece_that_ends_it() {
        let mut reader = EventReader::sse();
        let seen: Vec<u64> = ["data: a\n", "\r", "\n", "data: b\n\nda", "ta: c\n", "\n"]
            .map(|piece| reader.push(piece.as_bytes()))
            .into();
        assert_eq!(seen, [0, 1, 0, 1, 0, 1]);
    }

    proptest! {
        #[test]
        fn how_a_body_is_cut_never_changes_the_count(
            text in "(data: ?[a-z]{0,20}|data: \\[DONE\\]|: x|id|\r|\n|\r\n|\n\n|\u{feff}){0,20}",
            cuts in prop::collection::vec(0usize..200, 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for at in cuts {
                pieces.push(&bytes[from..at]);
                from = at;
            }
            pieces.push(&bytes[from..]);
            for reader in [EventReader::sse(), EventReader::lines()] {
                prop_assert_eq!(count(reader, &pieces), count(reader, &[bytes]));
            }
        }
    }
}
