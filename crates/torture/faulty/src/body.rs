//! Strict parsing of request bodies, which are discarded.

use super::head::{HeadRefusal, RequestHead, is_token};
use super::{BODY_MAX, BUFFER_MAX, Defect, Defects, EXTENSIONS_MAX, TRAILERS_MAX};
use units::Nanos;

/// Size of a chunk extension that blocks a worker forever, with that defect.
const HUNG_EXTENSION: usize = 1_024;

/// A body being read.
#[derive(Clone, Debug)]
pub(super) struct BodyReader {
    part: BodyPart,
    /// Size received or declared so far.
    length: u64,
    chunks: u64,
    extensions: usize,
    trailers: usize,
    /// Longer than allowed, but still read.
    too_long: bool,
    /// The last chunk has an extension; number of trailer lines.
    extended: bool,
    trailer_lines: u32,
}

#[derive(Clone, Copy, Debug)]
enum BodyPart {
    Length(u64),
    Size,
    /// Remaining bytes of the chunk.
    Chunk(u64),
    /// The line end after a chunk.
    LineEnd,
    Trailers,
    Done,
}

pub(super) enum Taken {
    More,
    Done,
}

impl BodyReader {
    pub(super) fn new(head: &RequestHead, defects: &Defects) -> BodyReader {
        let upgrades = head.field("upgrade").is_some();
        let left = head.method == "GET" && defects.contains(&Defect::LeavesBodies)
            || upgrades && defects.contains(&Defect::TakesBodiesForFrames)
            || head.chunked && defects.contains(&Defect::IgnoresChunks);
        let part = match head.length {
            _ if left => BodyPart::Done,
            _ if head.chunked => BodyPart::Size,
            Some(length) => BodyPart::Length(length),
            None => BodyPart::Done,
        };
        let too_long = head.too_long;
        BodyReader {
            part,
            length: 0,
            chunks: 0,
            extensions: 0,
            trailers: 0,
            too_long,
            extended: false,
            trailer_lines: 0,
        }
    }

    /// Returns the status for a body of a special kind, if any.
    pub(super) fn odd_status(&self, defects: &Defects) -> Option<u16> {
        let odd = self.extended && defects.contains(&Defect::DiesOfTrailedExtension);
        odd.then_some(if self.trailer_lines > 0 { 203 } else { 202 })
    }

    /// Returns whether its chunks are longer than allowed, received or not.
    pub(super) fn is_too_long(&self) -> bool {
        self.length > BODY_MAX
    }

    /// Returns whether a POST declared its content and it is empty.
    pub(super) fn is_empty(&self, head: &RequestHead) -> bool {
        head.method == "POST" && (head.length == Some(0) || head.chunked && self.length == 0)
    }

    /// Returns the work that it causes: none, except with a defect.
    pub(super) fn cost(&self, defects: &Defects) -> Nanos {
        match defects.contains(&Defect::SlowChunks) {
            true => Nanos::from_micros(self.chunks.saturating_pow(2).min(1 << 40)),
            false => Nanos::ZERO,
        }
    }

    /// Takes its bytes from the front of the received data.
    pub(super) fn take(
        &mut self,
        buffer: &mut Vec<u8>,
        defects: &Defects,
    ) -> Result<Taken, HeadRefusal> {
        let mut rest = buffer.as_slice();
        let taken = self.read(&mut rest, defects);
        // removed in one step: chunk by chunk, the rest would be moved once per chunk
        let read = buffer.len() - rest.len();
        buffer.drain(..read);
        taken
    }

    fn read(&mut self, buffer: &mut &[u8], defects: &Defects) -> Result<Taken, HeadRefusal> {
        loop {
            match &mut self.part {
                BodyPart::Done if self.too_long => return Err(HeadRefusal::Limit(413)),
                BodyPart::Done => return Ok(Taken::Done),
                BodyPart::Length(left) => {
                    if buffer.contains(&0) && defects.contains(&Defect::FailsOnBodyNul) {
                        return Err(HeadRefusal::Status(500));
                    }
                    *left -= drop_front(buffer, *left);
                    if *left > 0 {
                        return Ok(Taken::More);
                    }
                    self.part = BodyPart::Done;
                }
                BodyPart::Chunk(left) => {
                    *left -= drop_front(buffer, *left);
                    if *left > 0 {
                        return Ok(Taken::More);
                    }
                    self.part = BodyPart::LineEnd;
                }
                BodyPart::LineEnd => {
                    if buffer.len() < 2 {
                        return Ok(Taken::More);
                    }
                    if buffer.starts_with(b"\r\n") {
                        *buffer = &buffer[2..];
                    } else if !defects.contains(&Defect::ReadsSizesFreely) {
                        return Err(HeadRefusal::Status(400));
                    }
                    self.part = BodyPart::Size;
                }
                BodyPart::Size => match line(buffer)? {
                    None => return Ok(Taken::More),
                    Some(line) => self.size(&line, defects)?,
                },
                BodyPart::Trailers => match line(buffer)? {
                    None => return Ok(Taken::More),
                    Some(line) if line.is_empty() => self.part = BodyPart::Done,
                    Some(line) => self.trailer(&line, defects)?,
                },
            }
        }
    }

    fn size(&mut self, line: &[u8], defects: &Defects) -> Result<(), HeadRefusal> {
        let has = |defect| defects.contains(&defect);
        let extension = line.iter().position(|byte| *byte == b';').map(|at| line.len() - at);
        if extension.is_some() && has(Defect::RefusesExtensions) {
            return Err(HeadRefusal::Status(400));
        }
        if extension.is_some_and(|length| length >= HUNG_EXTENSION)
            && has(Defect::HangsOnExtensions)
        {
            return Err(HeadRefusal::Hang);
        }
        if line.contains(&b'\r') && !has(Defect::ReadsSizesFreely) {
            return Err(HeadRefusal::Status(400));
        }
        let valid = extension.is_none_or(|length| is_extension(&line[line.len() - length..]));
        if !valid && !has(Defect::TakesAnyExtension) && !has(Defect::ReadsSizesFreely) {
            return Err(HeadRefusal::Status(400));
        }
        self.extensions += extension.unwrap_or(0);
        if self.extensions > EXTENSIONS_MAX && !has(Defect::AnyExtensions) {
            return Err(HeadRefusal::Limit(413));
        }
        let size = size(line, defects)?;
        self.chunks += 1;
        self.length = self.length.saturating_add(size);
        let waits = has(Defect::BodyOfAnyLength) || has(Defect::GrowsAfterChunks);
        if self.is_too_long() && !waits {
            self.too_long = has(Defect::ReadsTooLongBodies);
            if !self.too_long {
                return Err(HeadRefusal::Limit(413));
            }
        }
        self.extended = size == 0 && extension.is_some();
        self.part = if size == 0 { BodyPart::Trailers } else { BodyPart::Chunk(size) };
        Ok(())
    }

    fn trailer(&mut self, line: &[u8], defects: &Defects) -> Result<(), HeadRefusal> {
        let has = |defect| defects.contains(&defect);
        self.trailers += line.len() + 2;
        if self.trailers > TRAILERS_MAX && !has(Defect::AnyTrailers) {
            return Err(HeadRefusal::Limit(431));
        }
        self.trailer_lines += 1;
        if self.extended && self.trailer_lines > 1 && has(Defect::DiesOfTrailedExtension) {
            return Err(HeadRefusal::Dies);
        }
        if has(Defect::RefusesTrailers) {
            return Err(HeadRefusal::Status(500));
        }
        let merged = line.to_ascii_lowercase().starts_with(b"host:");
        match merged && has(Defect::MergesTrailers) {
            true => Err(HeadRefusal::Status(500)),
            false => Ok(()),
        }
    }
}

fn drop_front(buffer: &mut &[u8], most: u64) -> u64 {
    let count = usize::try_from(most).unwrap_or(usize::MAX).min(buffer.len());
    *buffer = &buffer[count..];
    count as u64
}

/// Takes a line from the front, without its CRLF; a bare LF does not end a line.
fn line(buffer: &mut &[u8]) -> Result<Option<Vec<u8>>, HeadRefusal> {
    let Some(end) = buffer.iter().position(|byte| *byte == b'\n') else {
        let long = buffer.len() > BUFFER_MAX;
        return if long { Err(HeadRefusal::Limit(413)) } else { Ok(None) };
    };
    let (line, rest) = buffer.split_at(end + 1);
    *buffer = rest;
    match line.strip_suffix(b"\r\n") {
        Some(text) => Ok(Some(text.to_vec())),
        None => Err(HeadRefusal::Status(400)),
    }
}

/// Matches `*( ";" token [ "=" ( token / quoted-string ) ] )` (RFC 9112 section 7.1.1).
fn is_extension(text: &[u8]) -> bool {
    let token = |bytes: &[u8]| bytes.iter().take_while(|byte| is_token(**byte)).count();
    let mut rest = text;
    while let Some(after) = rest.strip_prefix(b";") {
        let name = token(after);
        if name == 0 {
            return false;
        }
        rest = &after[name..];
        let Some(value) = rest.strip_prefix(b"=") else { continue };
        let length = value.strip_prefix(b"\"").map_or_else(|| token(value), quoted_length);
        if length == 0 {
            return false;
        }
        rest = &value[length..];
    }
    rest.is_empty()
}

/// Returns the length of a quoted value with both quotes (RFC 9110 section 5.6.4); 0 if it is
/// invalid. `text` follows the first quote.
fn quoted_length(text: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            byte if byte.is_ascii_control() && *byte != b'\t' => return 0,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 2,
            _ => {}
        }
    }
    0
}

/// Parses the number at the start of a chunk line.
fn size(line: &[u8], defects: &Defects) -> Result<u64, HeadRefusal> {
    let has = |defect| defects.contains(&defect);
    let text = String::from_utf8_lossy(line).into_owned();
    let digits = text.split(';').next().unwrap_or_default();
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = match plain {
        true if has(Defect::Overflows) => Some(digits.bytes().fold(0_u64, |sum, digit| {
            let value = char::from(digit).to_digit(16).unwrap_or(0);
            sum.wrapping_mul(16).wrapping_add(u64::from(value))
        })),
        true => u64::from_str_radix(digits, 16).ok(),
        false if has(Defect::ReadsSizesFreely) => {
            let bare = digits.trim().trim_start_matches('-').trim_start_matches("0x");
            let front: String = bare.chars().take_while(char::is_ascii_hexdigit).collect();
            Some(u64::from_str_radix(&front, 16).unwrap_or(0).min(BODY_MAX))
        }
        false => None,
    };
    number.ok_or(HeadRefusal::Status(400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_tokens_or_quoted_values() {
        let valid = [r"", ";a", ";a=b", r#";a="b;c""#, r#";a="\"""#, r#";a="\\";b"#, r#";a="""#];
        let invalid = [";", ";=b", ";a=", r#";a="b"#, r#";a="\""#, ";a=\"\x7f\"", r#";a="b"c"#];
        for (texts, expected) in [(valid, true), (invalid, false)] {
            for text in texts {
                assert_eq!(is_extension(text.as_bytes()), expected, "{text}");
            }
        }
    }
}
