//! Request bodies, read strictly and thrown away.

use super::head::{Head, Refusal};
use super::{BODY_MAX, Defect, Defects};

/// Bytes of a chunk's size line, and of all trailers.
const LINE_MAX: usize = 4_096;

/// A body that is being read.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Length(u64),
    Size,
    /// Bytes of the chunk still to come.
    Chunk(u64),
    /// The line end behind a chunk.
    LineEnd,
    Trailers,
    Done,
}

pub(super) enum Taken {
    More,
    Done,
}

impl Body {
    pub(super) fn of(head: &Head, defects: &Defects) -> Body {
        let left = head.method == "GET" && defects.contains(&Defect::LeavesBodies);
        match head.length {
            _ if left => Body::Done,
            _ if head.chunked => Body::Size,
            Some(length) => Body::Length(length),
            None => Body::Done,
        }
    }

    pub(super) fn take(
        &mut self,
        buffer: &mut Vec<u8>,
        defects: &Defects,
    ) -> Result<Taken, Refusal> {
        loop {
            match self {
                Body::Done => return Ok(Taken::Done),
                Body::Length(left) => {
                    if buffer.contains(&0) && defects.contains(&Defect::FailsOnBodyNul) {
                        return Err(Refusal::Status(500));
                    }
                    *left -= drop_front(buffer, *left);
                    if *left > 0 {
                        return Ok(Taken::More);
                    }
                    *self = Body::Done;
                }
                Body::Chunk(left) => {
                    *left -= drop_front(buffer, *left);
                    if *left > 0 {
                        return Ok(Taken::More);
                    }
                    *self = Body::LineEnd;
                }
                Body::LineEnd => {
                    if buffer.len() < 2 {
                        return Ok(Taken::More);
                    }
                    if buffer.starts_with(b"\r\n") {
                        buffer.drain(..2);
                    } else if !defects.contains(&Defect::ReadsSizesFreely) {
                        return Err(Refusal::Status(400));
                    }
                    *self = Body::Size;
                }
                Body::Size => match line(buffer)? {
                    None => return Ok(Taken::More),
                    Some(line) => *self = size(&line, defects)?,
                },
                Body::Trailers => match line(buffer)? {
                    None => return Ok(Taken::More),
                    Some(line) if line.is_empty() => *self = Body::Done,
                    Some(line) => trailer(&line, defects)?,
                },
            }
        }
    }
}

fn drop_front(buffer: &mut Vec<u8>, most: u64) -> u64 {
    let count = usize::try_from(most).unwrap_or(usize::MAX).min(buffer.len());
    buffer.drain(..count);
    count as u64
}

/// A line off the front, its CRLF cut; a bare LF is none.
fn line(buffer: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(end) = buffer.iter().position(|byte| *byte == b'\n') else {
        let long = buffer.len() > LINE_MAX;
        return if long { Err(Refusal::Status(400)) } else { Ok(None) };
    };
    let line: Vec<u8> = buffer.drain(..=end).collect();
    match line.strip_suffix(b"\r\n") {
        Some(text) => Ok(Some(text.to_vec())),
        None => Err(Refusal::Status(400)),
    }
}

fn size(line: &[u8], defects: &Defects) -> Result<Body, Refusal> {
    let has = |defect| defects.contains(&defect);
    let text = String::from_utf8_lossy(line).into_owned();
    let (digits, extension) = match text.split_once(';') {
        Some((digits, extension)) => (digits, Some(extension)),
        None => (text.as_str(), None),
    };
    if extension.is_some() && has(Defect::RefusesExtensions) {
        return Err(Refusal::Status(400));
    }
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = match plain {
        true if has(Defect::Overflows) => Some(digits.bytes().fold(0_u64, |sum, digit| {
            let value = char::from(digit).to_digit(16).unwrap_or(0);
            sum.wrapping_mul(16).wrapping_add(u64::from(value))
        })),
        true => u64::from_str_radix(digits, 16).ok().filter(|size| *size <= BODY_MAX),
        false if has(Defect::ReadsSizesFreely) => {
            let bare = digits.trim().trim_start_matches('-').trim_start_matches("0x");
            let front: String = bare.chars().take_while(char::is_ascii_hexdigit).collect();
            Some(u64::from_str_radix(&front, 16).unwrap_or(0).min(BODY_MAX))
        }
        false => None,
    };
    match number.ok_or(Refusal::Status(400))? {
        0 => Ok(Body::Trailers),
        size => Ok(Body::Chunk(size)),
    }
}

fn trailer(line: &[u8], defects: &Defects) -> Result<(), Refusal> {
    if defects.contains(&Defect::RefusesTrailers) {
        return Err(Refusal::Status(500));
    }
    let merged = line.to_ascii_lowercase().starts_with(b"host:");
    match merged && defects.contains(&Defect::MergesTrailers) {
        true => Err(Refusal::Status(500)),
        false => Ok(()),
    }
}
