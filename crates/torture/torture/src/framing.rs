//! Strict parser of request framing (RFC 9112 sections 5 to 7): where a message ends, and every
//! framing rule that it violates. After a violation, two parsers may find different ends.

use dialogue::replies::HEAD_MAX;

/// Hexadecimal digits of a chunk size that fit into 64 bits.
const SIZE_DIGITS_MAX: usize = 16;

/// A framing rule that a request violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FramingFault {
    /// A line that does not end in CR LF, or contains CR.
    LineEnd,
    StartLine,
    /// A line that is not a field, or a value with control characters.
    Field,
    /// A field that continues on the next line.
    Fold,
    /// A valid field, such as Content_Length, that some parsers treat as a framing field.
    Lookalike,
    /// A Content-Length that is not a number, or appears more than once.
    Length,
    /// Both Content-Length and Transfer-Encoding.
    BothLengths,
    /// A coding other than a single chunked.
    Coding,
    /// Transfer-Encoding in HTTP/1.0.
    OldCoding,
    ChunkSize,
    ChunkExtension,
    /// Something other than CR LF after a chunk.
    ChunkEnd,
    /// A trailer line that is not a field, or that frames or routes the message.
    Trailer,
}

impl FramingFault {
    /// Returns the fault with its article.
    pub fn text(self) -> &'static str {
        match self {
            FramingFault::LineEnd => "a line without CR LF",
            FramingFault::StartLine => "an invalid request line",
            FramingFault::Field => "a line that is not a field",
            FramingFault::Fold => "a folded field",
            FramingFault::Lookalike => "a field that resembles a framing field",
            FramingFault::Length => "an invalid Content-Length",
            FramingFault::BothLengths => "both Content-Length and Transfer-Encoding",
            FramingFault::Coding => "an invalid Transfer-Encoding",
            FramingFault::OldCoding => "Transfer-Encoding in HTTP/1.0",
            FramingFault::ChunkSize => "an invalid chunk size",
            FramingFault::ChunkExtension => "an invalid chunk extension",
            FramingFault::ChunkEnd => "a chunk not followed by CR LF",
            FramingFault::Trailer => "an invalid trailer",
        }
    }
}

/// Delimitation of a request's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentFraming {
    /// No content.
    #[default]
    None,
    Length(u64),
    Chunked,
}

impl ContentFraming {
    pub fn text(self) -> String {
        match self {
            ContentFraming::None => "no content".to_owned(),
            ContentFraming::Length(length) => format!("Content-Length {length}"),
            ContentFraming::Chunked => "chunked".to_owned(),
        }
    }
}

/// End of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageEnd {
    /// The message ends after this many bytes.
    At(usize),
    /// The end is not known yet: more data must arrive.
    #[default]
    Later,
    /// Depends on the parser.
    Nowhere,
}

/// A parsed request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FramingReading {
    pub method: String,
    /// The minor version, or `None` if the version is not HTTP/1.
    pub minor: Option<u8>,
    /// Number of Host fields.
    pub hosts: usize,
    pub framing: ContentFraming,
    /// Each fault once, in order.
    pub faults: Vec<FramingFault>,
    pub end: MessageEnd,
    /// Bytes of the head with its empty line, or 0 while it is incomplete.
    pub head: usize,
    /// Received content bytes without framing.
    pub content: Vec<u8>,
    pub extensions: usize,
    pub trailers: usize,
}

impl FramingReading {
    /// Returns whether this is one complete, unambiguous request of `length` bytes with nothing
    /// after it.
    pub fn is_exact(&self, length: usize) -> bool {
        self.faults.is_empty()
            && self.end == MessageEnd::At(length)
            && self.minor == Some(1)
            && self.hosts == 1
    }

    /// Returns the faults that leave the end or the content of the message undefined.
    pub fn ambiguities(&self) -> impl Iterator<Item = FramingFault> {
        let minor = [FramingFault::StartLine, FramingFault::Field, FramingFault::LineEnd];
        self.faults.iter().copied().filter(move |fault| !minor.contains(fault))
    }

    /// Returns whether a rule is violated. A lookalike is valid, although parsers may disagree.
    pub fn is_invalid(&self) -> bool {
        self.faults.iter().any(|fault| *fault != FramingFault::Lookalike)
    }

    /// Returns whether the message is valid and has content.
    pub fn has_valid_content(&self) -> bool {
        !self.is_invalid()
            && !matches!(self.framing, ContentFraming::None | ContentFraming::Length(0))
    }

    /// Returns whether the request line or a field line is invalid.
    pub fn has_invalid_head(&self) -> bool {
        self.head_faults().next().is_some()
    }

    /// Returns the faults of the request line and of the field lines.
    pub fn head_faults(&self) -> impl Iterator<Item = FramingFault> {
        let in_head = [FramingFault::StartLine, FramingFault::Field, FramingFault::Fold];
        self.faults.iter().copied().filter(move |fault| in_head.contains(fault))
    }

    fn breaks(&mut self, fault: FramingFault) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

/// Parses the request at the start of these bytes.
pub fn read(bytes: &[u8]) -> FramingReading {
    let mut reading = FramingReading::default();
    let mut lines = Lines { all: bytes, at: 0 };
    // empty lines before a request are ignored (RFC 9112 section 2.2)
    while bytes[lines.at..].starts_with(b"\r\n") {
        lines.at += 2;
    }
    let Some(first) = lines.next(&mut reading) else { return reading };
    start_line(first, &mut reading);
    let (mut lengths, mut codings) = (Vec::new(), Vec::new());
    loop {
        let Some(line) = lines.next(&mut reading) else { return reading };
        if line.is_empty() {
            break;
        }
        if lines.at > HEAD_MAX {
            reading.end = MessageEnd::Nowhere;
            return reading;
        }
        head_field(line, &mut reading, &mut lengths, &mut codings);
    }
    reading.head = lines.at;
    reading.framing = framing(&lengths, &codings, &mut reading);
    content(&mut lines, &mut reading);
    reading
}

/// Maximum number of pipelined requests that are counted.
const REQUESTS_MAX: usize = 1_000;

/// Returns the number of requests, or `None` if one of them is invalid or incomplete.
pub fn valid_requests(mut bytes: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !bytes.is_empty() && count < REQUESTS_MAX {
        let reading = read(bytes);
        let MessageEnd::At(end) = reading.end else { return None };
        if !reading.is_exact(end) {
            return None;
        }
        (bytes, count) = (&bytes[end..], count + 1);
    }
    bytes.is_empty().then_some(count)
}

/// Iterates over sent lines, with or without the required CR.
struct Lines<'b> {
    all: &'b [u8],
    at: usize,
}

impl<'b> Lines<'b> {
    /// Returns the next line without its end, or `None` if its end has not arrived.
    fn next(&mut self, reading: &mut FramingReading) -> Option<&'b [u8]> {
        let rest = &self.all[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        self.at += end + 1;
        let line = match rest[..end].strip_suffix(b"\r") {
            Some(line) => line,
            None => {
                reading.breaks(FramingFault::LineEnd);
                &rest[..end]
            }
        };
        if line.contains(&b'\r') {
            reading.breaks(FramingFault::LineEnd);
        }
        Some(line)
    }

    fn rest(&self) -> &'b [u8] {
        &self.all[self.at..]
    }
}

fn start_line(line: &[u8], reading: &mut FramingReading) {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    if let [method, target, version] = words.as_slice() {
        reading.method = String::from_utf8_lossy(method).into_owned();
        reading.minor = match *version {
            b"HTTP/1.0" => Some(0),
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'..=b'9'] => Some(1),
            _ => None,
        };
        let graphic = target.iter().all(u8::is_ascii_graphic) && !target.is_empty();
        if graphic && is_token(method) && reading.minor.is_some() {
            return;
        }
    }
    reading.breaks(FramingFault::StartLine);
}

/// Returns whether these bytes are a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    let one = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(one)
}

fn field(line: &[u8]) -> Result<(String, &[u8]), FramingFault> {
    if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        return Err(FramingFault::Fold);
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(FramingFault::Field)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if !is_token(name) || value.iter().any(control) {
        return Err(FramingFault::Field);
    }
    let value = value.trim_ascii();
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), value))
}

fn head_field<'b>(
    line: &'b [u8],
    reading: &mut FramingReading,
    lengths: &mut Vec<&'b [u8]>,
    codings: &mut Vec<&'b [u8]>,
) {
    match field(line) {
        Ok((name, value)) => match name.as_str() {
            "host" => reading.hosts += 1,
            "content-length" => lengths.push(value),
            "transfer-encoding" => codings.push(value),
            // this spelling has no meaning for the framing here, but does for other parsers
            "content_length" | "transfer_encoding" => reading.breaks(FramingFault::Lookalike),
            _ => {}
        },
        Err(fault) => reading.breaks(fault),
    }
}

fn framing(lengths: &[&[u8]], codings: &[&[u8]], reading: &mut FramingReading) -> ContentFraming {
    let number = |digits: &[u8]| -> Option<u64> {
        let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
    };
    let length = match lengths {
        [] => None,
        [one] => number(one),
        _ => None,
    };
    if !lengths.is_empty() && length.is_none() {
        reading.breaks(FramingFault::Length);
    }
    if codings.is_empty() {
        return length.map_or(ContentFraming::None, ContentFraming::Length);
    }
    if !lengths.is_empty() {
        reading.breaks(FramingFault::BothLengths);
    }
    if reading.minor == Some(0) {
        reading.breaks(FramingFault::OldCoding);
    }
    match codings {
        [one] if one.eq_ignore_ascii_case(b"chunked") => ContentFraming::Chunked,
        _ => {
            reading.breaks(FramingFault::Coding);
            let last = codings.last().copied().unwrap_or_default().to_ascii_lowercase();
            let chunked = last.ends_with(b"chunked");
            if chunked { ContentFraming::Chunked } else { ContentFraming::None }
        }
    }
}

fn content(lines: &mut Lines<'_>, reading: &mut FramingReading) {
    reading.end = match reading.framing {
        ContentFraming::None if reading.faults.contains(&FramingFault::Length) => {
            MessageEnd::Nowhere
        }
        ContentFraming::None => MessageEnd::At(lines.at),
        ContentFraming::Length(length) => {
            let rest = lines.rest();
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            reading.content = rest[..length.min(rest.len())].to_vec();
            match length <= rest.len() {
                true => MessageEnd::At(lines.at + length),
                false => MessageEnd::Later,
            }
        }
        ContentFraming::Chunked => chunks(lines, reading),
    };
}

fn chunks(lines: &mut Lines<'_>, reading: &mut FramingReading) -> MessageEnd {
    loop {
        let Some(line) = lines.next(reading) else { return MessageEnd::Later };
        let Some(size) = chunk_line(line, reading) else { return MessageEnd::Nowhere };
        if size == 0 {
            return trailers(lines, reading);
        }
        let rest = lines.rest();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        reading.content.extend_from_slice(&rest[..size.min(rest.len())]);
        let Some(behind) = rest.get(size..) else { return MessageEnd::Later };
        match behind {
            [b'\r', b'\n', ..] => lines.at += size + 2,
            [] | [b'\r'] => return MessageEnd::Later,
            [b'\n', ..] => {
                reading.breaks(FramingFault::LineEnd);
                lines.at += size + 1;
            }
            _ => {
                reading.breaks(FramingFault::ChunkEnd);
                return MessageEnd::Nowhere;
            }
        }
    }
}

/// Parses a chunk size, or returns `None` if parsers may disagree about it.
fn chunk_line(line: &[u8], reading: &mut FramingReading) -> Option<u64> {
    let end = line.iter().position(|byte| *byte == b';').unwrap_or(line.len());
    let (digits, extension) = line.split_at(end);
    if !extension.is_empty() {
        reading.extensions += extension.len();
        if !is_extension(extension) {
            reading.breaks(FramingFault::ChunkExtension);
        }
    }
    let plain =
        (1..=SIZE_DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let size = std::str::from_utf8(digits).ok().filter(|_| plain);
    let size = size.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    if size.is_none() {
        reading.breaks(FramingFault::ChunkSize);
    }
    size
}

/// Matches `*( ";" token [ "=" ( token / quoted-string ) ] )`; whitespace is invalid (RFC 9112
/// section 7.1.1).
fn is_extension(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(after) = rest.strip_prefix(b";") {
        let name = after.iter().take_while(|byte| is_token(&[**byte])).count();
        if name == 0 {
            return false;
        }
        rest = &after[name..];
        if let Some(value) = rest.strip_prefix(b"=") {
            let length = value_length(value);
            if length == 0 {
                return false;
            }
            rest = &value[length..];
        }
    }
    rest.is_empty()
}

/// Returns the length of the leading token or quoted string, or 0 if there is neither.
fn value_length(text: &[u8]) -> usize {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        return text.iter().take_while(|byte| is_token(&[**byte])).count();
    };
    let mut escaped = false;
    for (at, byte) in quoted.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 2,
            byte if byte.is_ascii_control() && *byte != b'\t' => return 0,
            _ => {}
        }
    }
    0
}

fn trailers(lines: &mut Lines<'_>, reading: &mut FramingReading) -> MessageEnd {
    const NEVER: [&str; 5] =
        ["content-length", "transfer-encoding", "host", "trailer", "authorization"];
    loop {
        let Some(line) = lines.next(reading) else { return MessageEnd::Later };
        if line.is_empty() {
            return MessageEnd::At(lines.at);
        }
        reading.trailers += line.len();
        match field(line) {
            Ok((name, _)) if !NEVER.contains(&name.as_str()) => {}
            _ => reading.breaks(FramingFault::Trailer),
        }
    }
}

#[cfg(test)]
mod tests;
