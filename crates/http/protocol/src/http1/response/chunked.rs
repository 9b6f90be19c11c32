//! The chunked transfer coding (RFC 9112 §7.1), read in any pieces.
//!
//! ```text
//! Size --hex digits--> SizeEnd | Extension --LF--> Data (size > 0) --> DataEnd --LF--> Size
//!                                            \---> TrailerStart (size 0) <--> TrailerLine
//!                                                  TrailerStart --empty line--> Done
//! ```
//! A bare LF ends a line as well as CRLF (RFC 9112 §2.2 permits it).

use super::{Limits, ResponseError};
use std::ops::Range;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkReader {
    step: ChunkStep,
    /// The size being read, then the remaining bytes of data.
    left: u64,
    /// Number of bytes of the line, or of all trailers, so far.
    line: usize,
}

/// Result of one call; see [`super::Advance`].
pub(super) struct Chunks {
    pub(super) consumed: usize,
    pub(super) body: Range<usize>,
    /// Start of the trailer section; an empty one may be omitted.
    pub(super) trailers: Range<usize>,
    pub(super) done: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkStep {
    /// Before the first digit of a size.
    #[default]
    SizeBegin,
    Size,
    Extension,
    /// A CR follows the size: LF must come next.
    SizeLf,
    Data,
    DataEnd,
    DataLf,
    TrailerStart,
    TrailerLine,
    TrailerLf,
    Done,
}

const BAD_SIZE: ResponseError =
    ResponseError::BadFraming("a chunk size is not a hexadecimal number");
const SIZE_TOO_LARGE: ResponseError = ResponseError::BadFraming("a chunk size is above 64 bits");
const LINE_TOO_LONG: ResponseError = ResponseError::BadFraming("a chunk-size line is too long");
const BAD_END: ResponseError =
    ResponseError::BadFraming("a chunk's data does not end where its size says");
const TRAILERS_TOO_LONG: ResponseError = ResponseError::BadFraming("the trailers are too long");
const BAD_TRAILER_END: ResponseError = ResponseError::BadFraming("a bare CR in the trailers");

impl ChunkReader {
    /// Consumes framing, one piece of data, and the framing after it. Broken framing after usable
    /// bytes is reported by the next call, so that the data before an error does not depend on how
    /// the input is split.
    pub(super) fn advance(
        &mut self,
        limits: &Limits,
        input: &[u8],
    ) -> Result<Chunks, ResponseError> {
        let mut at = 0;
        let mut body = 0..0;
        let mut trailers = None;
        while at < input.len() && self.step != ChunkStep::Done {
            let rest = &input[at..];
            let line = self.take_whole_line(limits, rest);
            if line > 0 {
                at += line;
                continue;
            }
            if matches!(
                self.step,
                ChunkStep::TrailerStart | ChunkStep::TrailerLine | ChunkStep::TrailerLf
            ) {
                trailers.get_or_insert(at);
            }
            let used = match self.step {
                ChunkStep::Data if !body.is_empty() => break,
                ChunkStep::Data => {
                    let here = self.take_data(rest.len());
                    body = at..at + here;
                    Ok(here)
                }
                ChunkStep::Extension => self.skip_extension(limits, rest),
                ChunkStep::TrailerLine => self.skip_trailer(limits, rest),
                _ => self.take(limits, rest[0]).map(|()| 1),
            };
            match used {
                Ok(used) => at += used,
                Err(error) if at == 0 => return Err(error),
                Err(_) => break,
            }
        }
        if body.is_empty() {
            body = at..at;
        }
        let trailers = trailers.unwrap_or(at)..at;
        Ok(Chunks { consumed: at, body, trailers, done: self.step == ChunkStep::Done })
    }

    /// Returns the number of bytes of trailers and of the final empty line; 0 before it.
    pub(super) fn trailer_bytes(&self) -> u64 {
        if self.step == ChunkStep::Done { self.line as u64 } else { 0 }
    }

    /// Handles the common case: a plain line that is complete in `rest`. Returns 0 if the line must
    /// be read byte by byte.
    #[inline]
    fn take_whole_line(&mut self, limits: &Limits, rest: &[u8]) -> usize {
        match self.step {
            ChunkStep::SizeBegin => {
                let mut size = 0;
                let mut digits = 0;
                while let Some(digit) = rest.get(digits).and_then(|byte| hex_digit(*byte)) {
                    size = size << 4 | digit;
                    digits += 1;
                    if digits > 15 {
                        return 0;
                    }
                }
                let ends = digits > 0 && rest[digits..].starts_with(b"\r\n");
                if !ends || digits + 2 > limits.chunk_line_max {
                    return 0;
                }
                self.left = size;
                self.step = self.size_over();
                digits + 2
            }
            ChunkStep::DataEnd if rest.starts_with(b"\r\n") => {
                self.step = self.size_begin();
                2
            }
            ChunkStep::TrailerStart if rest.starts_with(b"\r\n") => {
                if self.line + 2 > limits.trailer_max {
                    return 0;
                }
                self.step = ChunkStep::Done;
                self.line += 2;
                2
            }
            _ => 0,
        }
    }

    fn take_data(&mut self, available: usize) -> usize {
        let here = usize::try_from(self.left).unwrap_or(usize::MAX).min(available);
        self.left -= here as u64;
        if self.left == 0 {
            self.step = ChunkStep::DataEnd;
        }
        here
    }

    /// Processes one byte of framing.
    #[inline]
    fn take(&mut self, limits: &Limits, byte: u8) -> Result<(), ResponseError> {
        if matches!(self.step, ChunkStep::TrailerStart | ChunkStep::TrailerLf) {
            self.count_within(1, limits.trailer_max, TRAILERS_TOO_LONG)?;
        }
        self.step = match (self.step, byte) {
            (ChunkStep::SizeBegin | ChunkStep::Size, _) => return self.take_size(limits, byte),
            (ChunkStep::SizeLf, b'\n') => {
                self.count_within(1, limits.chunk_line_max, LINE_TOO_LONG)?;
                self.size_over()
            }
            (ChunkStep::SizeLf, _) => return Err(BAD_SIZE),
            (ChunkStep::DataEnd, b'\r') => ChunkStep::DataLf,
            (ChunkStep::DataEnd | ChunkStep::DataLf, b'\n') => self.size_begin(),
            (ChunkStep::DataEnd | ChunkStep::DataLf, _) => return Err(BAD_END),
            (ChunkStep::TrailerStart | ChunkStep::TrailerLf, b'\n') => ChunkStep::Done,
            (ChunkStep::TrailerStart, b'\r') => ChunkStep::TrailerLf,
            (ChunkStep::TrailerStart, _) => ChunkStep::TrailerLine,
            (ChunkStep::TrailerLf, _) => return Err(BAD_TRAILER_END),
            (step, _) => step,
        };
        Ok(())
    }

    fn take_size(&mut self, limits: &Limits, byte: u8) -> Result<(), ResponseError> {
        self.count_within(1, limits.chunk_line_max, LINE_TOO_LONG)?;
        if let Some(digit) = hex_digit(byte) {
            if self.left >> 60 != 0 {
                return Err(SIZE_TOO_LARGE);
            }
            self.left = self.left << 4 | digit;
            self.step = ChunkStep::Size;
            return Ok(());
        }
        self.step = match (self.step, byte) {
            (ChunkStep::Size, b'\r') => ChunkStep::SizeLf,
            (ChunkStep::Size, b'\n') => self.size_over(),
            // RFC 9112 §7.1.1: extensions that we do not know are ignored, bad white space too
            (ChunkStep::Size, b';' | b' ' | b'\t') => ChunkStep::Extension,
            _ => return Err(BAD_SIZE),
        };
        Ok(())
    }

    fn skip_extension(&mut self, limits: &Limits, rest: &[u8]) -> Result<usize, ResponseError> {
        let used = self.skip_line(rest, limits.chunk_line_max, LINE_TOO_LONG)?;
        if rest[used - 1] == b'\n' {
            self.step = self.size_over();
        }
        Ok(used)
    }

    fn skip_trailer(&mut self, limits: &Limits, rest: &[u8]) -> Result<usize, ResponseError> {
        let used = self.skip_line(rest, limits.trailer_max, TRAILERS_TOO_LONG)?;
        if rest[used - 1] == b'\n' {
            self.step = ChunkStep::TrailerStart;
        }
        Ok(used)
    }

    /// Skips bytes up to the line's end or the bound, at least one.
    fn skip_line(
        &mut self,
        rest: &[u8],
        max: usize,
        over: ResponseError,
    ) -> Result<usize, ResponseError> {
        let line = memchr::memchr(b'\n', rest).map_or(rest.len(), |lf| lf + 1);
        self.count_within(line, max, over)
    }

    /// Begins a size after all data was taken, so `left` is 0.
    fn size_begin(&mut self) -> ChunkStep {
        self.line = 0;
        ChunkStep::SizeBegin
    }

    fn size_over(&mut self) -> ChunkStep {
        self.line = 0;
        if self.left == 0 { ChunkStep::TrailerStart } else { ChunkStep::Data }
    }

    /// Counts `bytes` up to the bound; fails if the bound is reached.
    #[inline]
    fn count_within(
        &mut self,
        bytes: usize,
        max: usize,
        over: ResponseError,
    ) -> Result<usize, ResponseError> {
        let used = bytes.min(max.saturating_sub(self.line));
        self.line += used;
        if used == 0 { Err(over) } else { Ok(used) }
    }
}

#[inline]
fn hex_digit(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}
