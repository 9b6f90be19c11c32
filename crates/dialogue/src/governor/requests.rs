//! Requests among the bytes of a connection, as far as that can be told of bytes that need not be
//! HTTP: one begins with the first byte, and a further one ends with each empty line after the
//! first. So a GET, a POST and half a head count one each; so many pipelined GETs as there are.

/// Methods that change what a server keeps.
const WRITING: [&[u8]; 3] = [b"PUT", b"DELETE", b"PATCH"];
/// A method longer than all of them is none of them.
const WORD_MAX: usize = 8;

/// Counts the requests of one connection.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Requests that were begun with leave, and of these, those that the bytes so far have used.
    granted: u64,
    used: u64,
    /// Empty lines so far.
    heads: u64,
    /// Something other than line ends was said.
    text: bool,
    /// Where in `LF [CR] LF` the bytes stand.
    line: LineKind,
    /// The first word of what may be a request.
    word: Vec<u8>,
    word_over: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineKind {
    /// At the beginning of a line.
    #[default]
    Start,
    /// After a CR at the beginning of a line.
    StartCr,
    Within,
}

/// How far bytes may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// So many bytes; at least one.
    Bytes(usize),
    /// None before another request is [granted](Requests::grant).
    Ask,
    /// None: they ask for PUT, DELETE or PATCH.
    Writes,
}

impl Requests {
    /// One more request may go out.
    pub fn grant(&mut self) {
        self.granted += 1;
    }

    /// How many of these bytes may be said; those are taken as said.
    pub fn leave(&mut self, bytes: &[u8], writes: bool) -> Leave {
        for (at, byte) in bytes.iter().enumerate() {
            let first = self.used == 0;
            let ends_head = *byte == b'\n' && self.line != LineKind::Within && self.heads > 0;
            if (first || ends_head) && self.used == self.granted {
                return if at == 0 { Leave::Ask } else { Leave::Bytes(at) };
            }
            if !writes && self.writes(*byte) {
                return if at == 0 { Leave::Writes } else { Leave::Bytes(at) };
            }
            if first || ends_head {
                self.used += 1;
            }
            self.pass(*byte);
        }
        Leave::Bytes(bytes.len())
    }

    /// This byte would end a word that is a writing method.
    fn writes(&self, byte: u8) -> bool {
        let ends = byte == b' ' || byte == b'\t';
        ends && !self.word_over && WRITING.iter().any(|word| self.word.eq_ignore_ascii_case(word))
    }

    fn pass(&mut self, byte: u8) {
        let empty = byte == b'\n' && self.line != LineKind::Within;
        self.line = match (byte, self.line) {
            (b'\n', _) => LineKind::Start,
            (b'\r', LineKind::Start) => LineKind::StartCr,
            _ => LineKind::Within,
        };
        if empty {
            // empty lines before a request are no heads, but what follows may be a request too
            self.heads += u64::from(self.text);
        }
        self.text |= !matches!(byte, b'\r' | b'\n');
        match byte {
            b'\n' => {
                self.word.clear();
                self.word_over = false;
            }
            b'\r' => {}
            b' ' | b'\t' => self.word_over = true,
            _ if self.word_over => {}
            _ if self.word.len() < WORD_MAX => self.word.push(byte),
            _ => self.word_over = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> u64 {
        let mut requests = Requests::default();
        let mut rest = text.as_bytes();
        let mut asked = 0;
        while !rest.is_empty() {
            match requests.leave(rest, true) {
                Leave::Bytes(count) => rest = &rest[count..],
                Leave::Ask => {
                    asked += 1;
                    requests.grant();
                }
                Leave::Writes => panic!("writing is permitted"),
            }
        }
        asked
    }

    #[test]
    fn requests_are_counted_whatever_the_bytes_are() {
        for (text, expected) in [
            ("", 0),
            ("G", 1),
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 1),
            ("GET / HTTP/1.1\nHost: h\n\n", 1),
            ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", 1),
            ("POST / HTTP/1.1\r\nHost: h\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 2),
            (&"GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(7), 7),
            (&"GET / HTTP/1.1\nHost: h\n\n".repeat(7), 7),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }

    fn refuses(requests: &mut Requests, mut rest: &[u8]) -> bool {
        while !rest.is_empty() {
            match requests.leave(rest, false) {
                Leave::Bytes(count) => rest = &rest[count..],
                Leave::Writes => return true,
                Leave::Ask => panic!("enough was granted"),
            }
        }
        false
    }

    #[test]
    fn writing_methods_are_seen_wherever_a_line_begins() {
        for (pieces, expected) in [
            (&["PUT / HTTP/1.1\r\n"][..], true),
            (&["delete / HTTP/1.1\r\n"], true),
            (&["\r\n\r\nPATCH\t/ HTTP/1.1\r\n"], true),
            (&["GET / HTTP/1.1\r\n\r\nPUT / HTTP/1.1\r\n"], true),
            (&["P", "U", "T", " "], true),
            (&["GET / HTTP/1.1\r\nHost: PUT x\r\n\r\n"], false),
            (&["PUTT / HTTP/1.1\r\n"], false),
            (&["OPTIONS * HTTP/1.1\r\n"], false),
        ] {
            let mut requests = Requests::default();
            for _ in 0..3 {
                requests.grant();
            }
            let refused = pieces.iter().any(|piece| refuses(&mut requests, piece.as_bytes()));
            assert_eq!(refused, expected, "{pieces:?}");
        }
    }
}
