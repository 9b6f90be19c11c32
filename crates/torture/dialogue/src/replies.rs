//! Parses arbitrary received bytes: responses in order, interim ones, and bytes that are not a
//! response. It accepts what a regular client would refuse, and records the faults.

use crate::http2::{FrameReader, FrameSeen, Got};
use crate::http3::TablePermit;
use sha2::{Digest, Sha256};

/// Maximum size of a parsed head in bytes; a longer one is junk.
pub const HEAD_MAX: usize = 256 << 10;
/// Maximum number of fields in a head; more are junk.
const FIELDS_MAX: usize = 1_024;
/// Maximum number of responses kept per connection, and of interim ones.
pub const RESPONSES_MAX: usize = 1_024;
/// Maximum size of junk kept for the report.
const JUNK_MAX: usize = 1 << 10;

/// One response, in the state received so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub minor_version: u8,
    /// The head as received, including the final empty line.
    pub head: Vec<u8>,
    /// Trailers as field lines; over HTTP/2 only.
    pub trailers: Vec<u8>,
    /// Size of the content, and its digest once the response is complete.
    pub body_len: u64,
    pub digest: [u8; 32],
    /// True if the response is complete, possibly ended by the close of the connection.
    pub complete: bool,
    /// True if the framing permits another response to follow.
    pub persistent: bool,
    /// HTTP/2 stream; 0 otherwise.
    pub stream: u32,
}

impl Response {
    /// Returns the values of a field, in order.
    pub fn field<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let name = name.to_ascii_lowercase();
        let lines = self.head.split(|byte| *byte == b'\n').skip(1);
        lines.filter_map(move |line| {
            let line = std::str::from_utf8(line).ok()?;
            let (found, value) = line.split_once(':')?;
            found.trim().eq_ignore_ascii_case(&name).then_some(value.trim())
        })
    }

    /// Returns whether the field is present, regardless of the bytes in its value.
    pub fn has_field(&self, name: &str) -> bool {
        let named = |line: &[u8]| {
            let colon = line.iter().position(|byte| *byte == b':');
            colon.is_some_and(|at| line[..at].trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
        };
        self.head.split(|byte| *byte == b'\n').skip(1).any(named)
    }
}

/// Data received on one connection.
#[derive(Clone, Debug)]
pub struct Replies {
    /// Data not parsed yet.
    buffer: Vec<u8>,
    methods: Vec<String>,
    state: ReadState,
    digest: Sha256,
    /// Interim responses in order, at most [`RESPONSES_MAX`]; 101 ends HTTP and counts as final.
    pub interim: Vec<u16>,
    /// Number of interim responses before the end of each complete HTTP/1 response.
    interim_before: Vec<usize>,
    /// Responses in order; the last may be incomplete.
    pub responses: Vec<Response>,
    /// Start of bytes that are not a response, with the reason.
    pub junk: Option<(String, Vec<u8>)>,
    /// Frames of HTTP/2 and HTTP/3.
    pub frames: Option<Box<FrameReader>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    Head,
    /// Number of remaining bytes of content.
    Length(u64),
    ChunkSize,
    /// Number of remaining bytes of the chunk and its line end.
    Chunk(u64),
    Trailers,
    UntilEnd,
    /// Nothing that follows can be parsed as a response.
    Lost,
}

impl Replies {
    /// Creates a parser of replies. `methods`: request methods in order; the last one applies to
    /// all further requests.
    pub fn new(methods: &[String]) -> Replies {
        Replies {
            buffer: Vec::new(),
            methods: methods.to_vec(),
            state: ReadState::Head,
            digest: Sha256::new(),
            interim: Vec::new(),
            interim_before: Vec::new(),
            responses: Vec::new(),
            junk: None,
            frames: None,
        }
    }

    /// Returns a parser of HTTP/2 frames.
    pub fn http2() -> Replies {
        Replies { frames: Some(Box::default()), ..Replies::new(&[]) }
    }

    /// Returns a parser of HTTP/3 stream pieces. `follow_up`: the stream of the follow-up request.
    /// `permit`: limits of the server's QPACK table.
    pub fn http3(follow_up: Option<u64>, permit: TablePermit) -> Replies {
        let reader = FrameReader::http3(follow_up, permit);
        Replies { frames: Some(Box::new(reader)), ..Replies::new(&[]) }
    }

    /// Returns earlier results as recorded; nothing further is parsed.
    pub fn kept(
        interim: Vec<u16>,
        responses: Vec<Response>,
        junk: Option<(String, Vec<u8>)>,
    ) -> Replies {
        Replies { state: ReadState::Lost, interim, responses, junk, ..Replies::new(&[]) }
    }

    /// Adds the received frames.
    pub fn with_frames(self, frames: Vec<FrameSeen>) -> Replies {
        Replies { frames: Some(Box::new(FrameReader::kept(frames))), ..self }
    }

    /// Sets the method of the next response, regardless of what was sent before.
    pub fn expect(&mut self, method: &str) {
        let done = self.whole();
        self.methods.resize(done, "GET".to_owned());
        self.methods.push(method.to_owned());
    }

    /// Returns the number of complete responses.
    pub fn whole(&self) -> usize {
        self.responses.iter().filter(|response| response.complete).count()
    }

    /// Returns the number of interim responses before the end of that complete HTTP/1 response,
    /// starting at 0; zero in frames.
    pub(crate) fn interim_before(&self, whole: usize) -> usize {
        self.interim_before.get(whole).copied().unwrap_or(0)
    }

    /// Returns whether a head or a response is incomplete.
    pub fn unfinished(&self) -> bool {
        if self.frames.is_some() {
            return self.responses.iter().any(|response| !response.complete);
        }
        !self.buffer.is_empty() || self.state != ReadState::Head
    }

    pub fn take(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.frames.is_some() {
            return self.take_frames();
        }
        while self.step() {}
    }

    fn take_frames(&mut self) {
        if self.state == ReadState::Lost {
            return self.keep_junk();
        }
        let Some(frames) = &mut self.frames else { return };
        let mut got = Got { interim: &mut self.interim, answers: &mut self.responses };
        if let Err(why) = frames.take(&mut self.buffer, &mut got) {
            // unparsable stream data already left the buffer: the reason is kept without it
            self.junk.get_or_insert_with(|| (why.clone(), Vec::new()));
            self.lose(&why);
        }
    }

    /// Marks the end of the connection: a body without a length is then complete, any other
    /// unfinished response is truncated.
    pub fn end(&mut self) {
        if self.frames.is_some() {
            return;
        }
        match self.state {
            ReadState::UntilEnd => self.complete(),
            ReadState::Head if !self.buffer.is_empty() => self.lose("it ends inside a head"),
            _ => {}
        }
    }

    /// Advances one step; returns false if more data is needed.
    fn step(&mut self) -> bool {
        match self.state {
            ReadState::Head => self.head(),
            ReadState::Length(left) => {
                let count = self.content(left);
                self.state = ReadState::Length(left - count);
                if left == count {
                    self.complete();
                    return !self.buffer.is_empty();
                }
                false
            }
            ReadState::ChunkSize => self.chunk_size(),
            ReadState::Chunk(left) => self.chunk(left),
            ReadState::Trailers => self.trailers(),
            ReadState::UntilEnd => {
                self.content(u64::MAX);
                false
            }
            ReadState::Lost => {
                self.keep_junk();
                false
            }
        }
    }

    /// Takes up to `most` bytes of content; returns their number.
    fn content(&mut self, most: u64) -> u64 {
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(self.buffer.len());
        let bytes: Vec<u8> = self.buffer.drain(..count).collect();
        self.digest.update(&bytes);
        if let Some(response) = self.responses.last_mut() {
            response.body_len += count as u64;
        }
        count as u64
    }

    fn complete(&mut self) {
        let digest = std::mem::replace(&mut self.digest, Sha256::new()).finalize();
        if let Some(response) = self.responses.last_mut() {
            response.complete = true;
            response.digest = digest.into();
            self.interim_before.push(self.interim.len());
            self.state = if response.persistent { ReadState::Head } else { ReadState::Lost };
        }
    }

    fn lose(&mut self, why: &str) {
        self.state = ReadState::Lost;
        if self.junk.is_none() && !self.buffer.is_empty() {
            self.junk = Some((why.to_owned(), Vec::new()));
        }
        self.keep_junk();
    }

    fn keep_junk(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        if self.responses.last().is_some_and(|last| last.status == 101) {
            // the transcript has it
            return self.buffer.clear();
        }
        let (_, junk) = self
            .junk
            .get_or_insert_with(|| ("it follows the last response".to_owned(), Vec::new()));
        let room = JUNK_MAX.saturating_sub(junk.len()).min(self.buffer.len());
        junk.extend_from_slice(&self.buffer[..room]);
        self.buffer.clear();
    }

    fn head(&mut self) -> bool {
        // empty lines before a status line are harmless
        let blank = self.buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.buffer.drain(..blank);
        if self.buffer.is_empty() {
            return false;
        }
        let seen = self.buffer.len().min(5);
        if self.buffer[..seen] != b"HTTP/"[..seen] {
            self.lose("it does not begin with HTTP/");
            return false;
        }
        let mut fields = vec![httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let mut lenient = httparse::ParserConfig::default();
        lenient
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_multiple_spaces_in_response_status_delimiters(true);
        // a higher minor version is read like the highest known one (RFC 9110 section 2.5)
        let higher =
            self.buffer.get(7).copied().filter(|digit| {
                (b'2'..=b'9').contains(digit) && self.buffer.starts_with(b"HTTP/1.")
            });
        let known = higher.map(|_| {
            let mut known = self.buffer.clone();
            known[7] = b'1';
            known
        });
        match lenient.parse_response(&mut head, known.as_deref().unwrap_or(&self.buffer)) {
            Ok(httparse::Status::Complete(length)) => {
                let minor = higher.map(|digit| digit - b'0').or(head.version).unwrap_or(0);
                let status = head.code.unwrap_or(0);
                let facts = Facts::new(head.headers, minor);
                self.begin(status, minor, length, facts);
                true
            }
            Ok(httparse::Status::Partial) if self.buffer.len() > HEAD_MAX => {
                self.lose("its head is longer than 256 KiB");
                false
            }
            Ok(httparse::Status::Partial) => false,
            Err(error) => {
                self.lose(&format!("its head is invalid: {error}"));
                false
            }
        }
    }

    fn begin(&mut self, status: u16, minor_version: u8, length: usize, facts: Facts) {
        let head: Vec<u8> = self.buffer.drain(..length).collect();
        if (100..200).contains(&status) && status != 101 {
            return keep_interim(&mut self.interim, status);
        }
        if self.responses.len() == RESPONSES_MAX {
            return self.lose("there are more than 1,024 responses");
        }
        let index = self.responses.len();
        let method = self.methods.get(index).or(self.methods.last()).map_or("GET", String::as_str);
        // data after 101 belongs to another protocol
        let framing = match status {
            101 => Some(Framing::Length(0)),
            _ => facts.framing(status, method),
        };
        let persistent = facts.keep_alive && framing.is_some() && status != 101;
        let response = Response { status, minor_version, head, persistent, ..Response::default() };
        self.responses.push(response);
        self.digest = Sha256::new();
        match framing {
            Some(Framing::Length(0)) => self.complete(),
            Some(Framing::Length(length)) => self.state = ReadState::Length(length),
            Some(Framing::Chunked) => self.state = ReadState::ChunkSize,
            None => self.state = ReadState::UntilEnd,
        }
    }

    /// Takes a line from the buffer, without its line end.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.buffer.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(line)
    }

    fn chunk_size(&mut self) -> bool {
        let Some(line) = self.line() else {
            if self.buffer.len() > HEAD_MAX {
                self.lose("a chunk size is not terminated");
            }
            return false;
        };
        let text = String::from_utf8_lossy(&line);
        let digits = text.split(';').next().unwrap_or_default().trim();
        match u64::from_str_radix(digits, 16) {
            Ok(0) => self.state = ReadState::Trailers,
            // the line end of the chunk counts as part of it
            Ok(size) if size < u64::MAX - 2 => self.state = ReadState::Chunk(size + 2),
            _ => {
                self.buffer.splice(..0, line);
                self.lose("a chunk size is invalid");
                return false;
            }
        }
        true
    }

    fn chunk(&mut self, left: u64) -> bool {
        if left > 2 {
            let count = self.content(left - 2);
            self.state = ReadState::Chunk(left - count);
            return count > 0;
        }
        let count = (left as usize).min(self.buffer.len());
        self.buffer.drain(..count);
        let left = left - count as u64;
        self.state = if left == 0 { ReadState::ChunkSize } else { ReadState::Chunk(left) };
        count > 0
    }

    fn trailers(&mut self) -> bool {
        match self.line() {
            Some(line) if line.is_empty() => {
                self.complete();
                true
            }
            Some(_) => true,
            None if self.buffer.len() > HEAD_MAX => {
                self.lose("its trailers are not terminated");
                false
            }
            None => false,
        }
    }
}

/// Appends an interim response while there is room: a server may send any number.
pub(crate) fn keep_interim(kept: &mut Vec<u16>, status: u16) {
    if kept.len() < RESPONSES_MAX {
        kept.push(status);
    }
}

enum Framing {
    Length(u64),
    Chunked,
}

/// Framing that a head declares.
struct Facts {
    length: Option<u64>,
    chunked: bool,
    keep_alive: bool,
}

impl Facts {
    fn new(fields: &[httparse::Header<'_>], minor: u8) -> Facts {
        let mut facts = Facts { length: None, chunked: false, keep_alive: minor >= 1 };
        for field in fields {
            let value = String::from_utf8_lossy(field.value).trim().to_ascii_lowercase();
            let name = field.name.trim();
            if name.eq_ignore_ascii_case("content-length") {
                facts.length = value.split(',').next().and_then(|one| one.trim().parse().ok());
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                facts.chunked |=
                    value.split(',').next_back().is_some_and(|one| one.trim() == "chunked");
            } else if name.eq_ignore_ascii_case("connection") {
                let mut options = value.split(',').map(str::trim);
                if options.clone().any(|option| option == "close") {
                    facts.keep_alive = false;
                } else if options.any(|option| option == "keep-alive") {
                    facts.keep_alive = true;
                }
            }
        }
        facts
    }

    /// Returns the framing; `None` means until the end of the connection (RFC 9112 section 6.3).
    fn framing(&self, status: u16, method: &str) -> Option<Framing> {
        let none = method == "HEAD"
            || matches!(status, 204 | 304)
            || method == "CONNECT" && (200..300).contains(&status);
        if none {
            return Some(Framing::Length(0));
        }
        if self.chunked {
            return Some(Framing::Chunked);
        }
        self.length.map(Framing::Length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Describes everything parsed in one line, which must not depend on how the input is split.
    fn read(methods: &[&str], input: &str, ended: bool) -> String {
        let methods: Vec<String> = methods.iter().map(|method| (*method).to_owned()).collect();
        let whole = describe(&methods, &[input.as_bytes()], ended);
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(describe(&methods, &bytes, ended), whole, "byte by byte");
        whole
    }

    fn describe(methods: &[String], pieces: &[&[u8]], ended: bool) -> String {
        let mut replies = Replies::new(methods);
        pieces.iter().for_each(|piece| replies.take(piece));
        if ended {
            replies.end();
        }
        let mut out = String::new();
        for status in &replies.interim {
            write!(out, "({status}) ").unwrap();
        }
        for response in &replies.responses {
            let whole = if response.complete { "" } else { "…" };
            write!(out, "{} {}{whole} ", response.status, response.body_len).unwrap();
        }
        if let Some((why, junk)) = &replies.junk {
            write!(out, "junk: {why}: {}", junk.escape_ascii()).unwrap();
        }
        out.trim_end().to_owned()
    }

    #[test]
    fn responses_are_parsed_in_order() {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n";
        let table = [
            (vec!["GET"], ok.to_owned(), false, "200 2"),
            (vec!["GET"], format!("{ok}{ok}"), false, "200 2 200 2"),
            (vec!["GET"], format!("\r\n{ok}\n"), false, "200 2"),
            (vec!["GET"], format!("{chunked}{ok}"), false, "200 3 200 2"),
            (
                vec!["HEAD", "GET"],
                format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{ok}"),
                false,
                "200 0 200 2",
            ),
            (vec!["GET"], format!("HTTP/1.1 100 Continue\r\n\r\n{ok}"), false, "(100) 200 2"),
            (vec!["GET"], "HTTP/1.0 200 OK\r\n\r\nabc".into(), true, "200 3"),
            (vec!["GET"], "HTTP/1.0 200 OK\r\n\r\nabc".into(), false, "200 3…"),
            (vec!["GET"], "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".into(), true, "200 3…"),
            (vec!["GET"], "HTTP/1.1 304 Not\r\nContent-Length: 9\r\n\r\n".into(), false, "304 0"),
            (
                vec!["GET"],
                "HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: 1\r\n\r\nxHTTP".into(),
                false,
                "400 1 junk: it follows the last response: HTTP",
            ),
            (
                vec!["GET"],
                "<html>no status line".into(),
                true,
                "junk: it does not begin with HTTP/: <html>no status line",
            ),
            (
                vec!["GET"],
                "HTTP/1.1 200 O".into(),
                true,
                "junk: it ends inside a head: HTTP/1.1 200 O",
            ),
            (
                vec!["GET"],
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".into(),
                false,
                "200 0… junk: a chunk size is invalid: zz",
            ),
            (vec!["GET"], "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nfree".into(), true, "101 0"),
            (vec!["GET"], String::new(), true, ""),
        ];
        for (methods, input, ended, expected) in table {
            assert_eq!(read(&methods, &input, ended), expected, "{input:?}");
        }
    }

    #[test]
    fn interim_responses_are_kept_up_to_a_bound() {
        use crate::http2::{END_HEADERS, HEADERS, SETTINGS, write as http2};
        use crate::http3::{self, write as http3_write};
        let hints = b"HTTP/1.1 103 Early Hints\r\n\r\n".as_slice();
        let final_one = b"HTTP/1.1 204 No Content\r\n\r\n".as_slice();
        let mut block = Vec::new();
        protocol::hpack::literal(b":status", b"103", &mut block);
        let on_stream = http2::frame(HEADERS, END_HEADERS, 1, &block);
        let section = http3_write::frame(http3::HEADERS, b"\0\0\xd8");
        for (mut replies, begins, one) in [
            (Replies::new(&["GET".to_owned()]), Vec::new(), hints.to_vec()),
            (Replies::http2(), http2::frame(SETTINGS, 0, 0, &[]), on_stream),
            (
                Replies::http3(None, TablePermit::default()),
                Vec::new(),
                http3_write::stream_bytes(0, &section, false),
            ),
        ] {
            replies.take(&begins);
            for _ in 0..RESPONSES_MAX + 100 {
                replies.take(&one);
            }
            assert_eq!((replies.junk.as_ref(), replies.interim.len()), (None, RESPONSES_MAX));
            assert!(replies.interim.iter().all(|status| *status == 103));
            if replies.frames.is_none() {
                replies.take(final_one);
                assert_eq!(replies.responses.len(), 1);
            }
        }
    }

    #[test]
    fn the_reason_for_unparsable_streams_is_kept() {
        use crate::http3::{HEADERS, write};
        let section = |bytes: &[u8]| write::stream_bytes(0, &write::frame(HEADERS, bytes), false);
        for (sent, why) in [
            (section(b"\0\0\x51\x0bxy"), "an undecodable field section"),
            (section(b"\x02\0\x80"), "a field section that refers to a missing table entry"),
            (section(b"\0\0\x51\x01/"), "a response without a status"),
        ] {
            let mut replies = Replies::http3(None, TablePermit::default());
            replies.take(&sent);
            assert_eq!(replies.junk, Some((why.to_owned(), Vec::new())));
        }
    }

    #[test]
    fn field_names_are_case_insensitive() {
        let mut replies = Replies::new(&["GET".to_owned()]);
        replies.take(b"HTTP/1.1 405 No\r\nALLOW: GET, HEAD\r\nContent-Length: 0\r\n\r\n");
        let response = &replies.responses[0];
        assert!(response.has_field("Allow") && !response.has_field("Date"));
        let mut replies = Replies::new(&["GET".to_owned()]);
        replies.take(b"HTTP/1.1 200 OK\r\nContent-Type: x/\xdf\r\nContent-Length: 0\r\n\r\n");
        assert!(replies.responses[0].has_field("content-type"));
        assert_eq!(response.field("allow").collect::<Vec<_>>(), ["GET, HEAD"]);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(0u8..=255, 0..400), head in 0usize..4) {
            let heads = ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"];
            let mut replies = Replies::new(&["GET".to_owned()]);
            replies.take(heads[head].as_bytes());
            replies.take(&bytes);
            replies.end();
        }
    }
}
