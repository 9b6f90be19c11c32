//! Incremental decoding of content codings: gzip, deflate, br, zstd, and chains of them (RFC 9110
//! §8.4).
//!
//! Strict if a measurement depends on it: a stream that ends early, fails its checksum or is
//! followed by other bytes is an error. Tolerant where servers differ: `deflate` may have a zlib
//! wrapper or not, and an empty body is empty content. Output is bounded, so that a small response
//! cannot fill the memory.

mod zstd;

use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::{self, Write};
use zstd::Zstd;

/// The codings that can be undone, as the value of an Accept-Encoding field.
pub const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// Reason why content could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodingError {
    /// The input is not a stream of this coding, or is damaged.
    Broken(&'static str),
    /// The stream of this coding is not complete.
    Truncated(&'static str),
    /// More output than this many bytes.
    TooLarge(u64),
}

impl std::fmt::Display for CodingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CodingError::Broken(coding) => write!(f, "the content is not valid {coding}"),
            CodingError::Truncated(coding) => {
                write!(f, "the content's {coding} stream is cut short")
            }
            CodingError::TooLarge(max) => write!(f, "the content decodes to more than {max} bytes"),
        }
    }
}

impl std::error::Error for CodingError {}

/// Undoes the codings of one response's content.
#[derive(Debug)]
pub struct Decoder {
    /// The last applied coding comes first.
    stages: Vec<DecodeStep>,
    output_max: u64,
    /// Bytes given out.
    output: u64,
    failed: Option<CodingError>,
}

/// Default limit on the decoded bytes of a response; it applies to each stage of a chain.
pub const OUTPUT_MAX: u64 = 64 << 20;
/// Maximum number of codings in a chain; real servers apply one.
const STAGES_MAX: usize = 4;
/// Room made for output at a time.
const STEP: usize = 16 << 10;

impl Decoder {
    /// Returns the decoder for the value of a Content-Encoding field; `identity` and an empty list
    /// decode to themselves. `None` means an unknown coding, or a chain of more than four.
    pub fn for_encoding(encoding: &[u8]) -> Option<Decoder> {
        Decoder::with_output_max(encoding, OUTPUT_MAX)
    }

    /// Like [`Decoder::for_encoding`], with a limit on the decoded bytes.
    pub fn with_output_max(encoding: &[u8], output_max: u64) -> Option<Decoder> {
        let codings = crate::http1::fields::list(encoding);
        let mut stages = Vec::new();
        for coding in codings.filter(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
            if stages.len() == STAGES_MAX {
                return None;
            }
            stages.push(DecodeStep::new(coding, output_max)?);
        }
        stages.reverse();
        Some(Decoder { stages, output_max, output: 0, failed: None })
    }

    /// Consumes `input` and appends everything that it decodes to.
    ///
    /// # Errors
    /// Fails if the content is invalid for its coding or too large; every later call fails the same
    /// way. Content decoded before the error may have been appended.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CodingError> {
        self.failed.map_or(Ok(()), Err)?;
        let pushed = self.run(input, out);
        self.failed = pushed.err();
        pushed
    }

    /// Handles the end of the content.
    ///
    /// # Errors
    /// Fails if the stream is not complete, or had failed before.
    pub fn finish(&mut self) -> Result<(), CodingError> {
        self.failed.map_or(Ok(()), Err)?;
        let finished = self.stages.iter_mut().try_for_each(DecodeStep::finish);
        self.failed = finished.err();
        finished
    }

    fn run(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CodingError> {
        let Some((last, inner)) = self.stages.split_last_mut() else {
            self.output += input.len() as u64;
            if self.output > self.output_max {
                return Err(CodingError::TooLarge(self.output_max));
            }
            out.extend_from_slice(input);
            return Ok(());
        };
        let mut decoded;
        let mut feed = input;
        for stage in inner {
            stage.push(feed)?;
            decoded = std::mem::take(&mut stage.sink().bytes);
            feed = &decoded;
        }
        let pushed = last.push(feed);
        let decoded = &mut last.sink().bytes;
        if out.is_empty() {
            // the buffers are swapped: nothing is copied, and neither grows twice
            std::mem::swap(out, decoded);
        } else {
            out.append(decoded);
        }
        pushed
    }
}

/// One coding being undone.
struct DecodeStep {
    codec: Codec,
    /// Some input was consumed.
    fed: bool,
}

enum Codec {
    Gzip(Box<MultiGzDecoder<Sink>>),
    Deflate(Box<Deflate>),
    Brotli(Box<DecompressorWriter<Sink>>),
    Zstd(Box<Zstd>),
}

impl std::fmt::Debug for DecodeStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stage({})", self.codec.name())
    }
}

impl Codec {
    fn name(&self) -> &'static str {
        match self {
            Codec::Gzip(_) => "gzip",
            Codec::Deflate(_) => "deflate",
            Codec::Brotli(_) => "br",
            Codec::Zstd(_) => "zstd",
        }
    }
}

impl DecodeStep {
    /// Names in any case; `x-gzip` is gzip (RFC 9110 §8.4.1.3).
    fn new(coding: &[u8], output_max: u64) -> Option<DecodeStep> {
        let sink = Sink { bytes: Vec::new(), room: output_max, max: output_max, full: false };
        let codec =
            if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") {
                Codec::Gzip(Box::new(MultiGzDecoder::new(sink)))
            } else if coding.eq_ignore_ascii_case(b"deflate") {
                Codec::Deflate(Box::new(Deflate::new(sink)))
            } else if coding.eq_ignore_ascii_case(b"br") {
                Codec::Brotli(Box::new(DecompressorWriter::new(sink, STEP)))
            } else if coding.eq_ignore_ascii_case(b"zstd") {
                Codec::Zstd(Box::new(Zstd::new(sink)))
            } else {
                return None;
            };
        Some(DecodeStep { codec, fed: false })
    }

    fn push(&mut self, input: &[u8]) -> Result<(), CodingError> {
        if input.is_empty() {
            return Ok(());
        }
        self.fed = true;
        let written = match &mut self.codec {
            // without the flush the decoder would hold output back
            Codec::Gzip(gzip) => gzip.write_all(input).and_then(|()| gzip.flush()),
            Codec::Deflate(deflate) => deflate.push(input),
            Codec::Brotli(brotli) => brotli.write_all(input),
            Codec::Zstd(zstd) => zstd.push(input),
        };
        let name = self.codec.name();
        let sink = self.sink();
        match written {
            Ok(()) => Ok(()),
            Err(_) if sink.full => Err(CodingError::TooLarge(sink.max)),
            Err(_) => Err(CodingError::Broken(name)),
        }
    }

    fn finish(&mut self) -> Result<(), CodingError> {
        if !self.fed {
            return Ok(());
        }
        let whole = match &mut self.codec {
            Codec::Gzip(gzip) => gzip.try_finish().is_ok(),
            Codec::Deflate(deflate) => deflate.ended,
            Codec::Brotli(brotli) => brotli.close().is_ok(),
            Codec::Zstd(zstd) => zstd.is_whole(),
        };
        if whole { Ok(()) } else { Err(CodingError::Truncated(self.codec.name())) }
    }

    fn sink(&mut self) -> &mut Sink {
        match &mut self.codec {
            Codec::Gzip(gzip) => gzip.get_mut(),
            Codec::Deflate(deflate) => &mut deflate.sink,
            Codec::Brotli(brotli) => brotli.get_mut(),
            Codec::Zstd(zstd) => &mut zstd.sink,
        }
    }
}

/// Output buffer of a stage; refuses to grow beyond its limit.
#[derive(Debug)]
struct Sink {
    bytes: Vec<u8>,
    room: u64,
    max: u64,
    full: bool,
}

impl Sink {
    fn claim(&mut self, count: usize) -> io::Result<()> {
        match self.room.checked_sub(count as u64) {
            Some(room) => self.room = room,
            None => self.full = true,
        }
        if self.full { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.claim(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `deflate`: zlib's format by RFC 9110 §8.4.1.2, but some servers send the bare stream of RFC
/// 1951. The first two bytes distinguish them.
struct Deflate {
    sink: Sink,
    first: Option<u8>,
    inflate: Option<Decompress>,
    ended: bool,
}

impl Deflate {
    fn new(sink: Sink) -> Deflate {
        Deflate { sink, first: None, inflate: None, ended: false }
    }

    fn push(&mut self, input: &[u8]) -> io::Result<()> {
        if self.inflate.is_some() {
            return self.inflate(input);
        }
        let (first, rest) = match (self.first, input) {
            (Some(first), rest) => (first, rest),
            (None, [first, rest @ ..]) => (*first, rest),
            (None, []) => return Ok(()),
        };
        self.first = Some(first);
        let Some(second) = rest.first() else { return Ok(()) };
        self.inflate = Some(Decompress::new(is_zlib(first, *second)));
        self.inflate(&[first])?;
        self.inflate(rest)
    }

    fn inflate(&mut self, mut input: &[u8]) -> io::Result<()> {
        let Some(inflate) = &mut self.inflate else { return Ok(()) };
        loop {
            if self.ended {
                let trailing = !input.is_empty();
                return if trailing { Err(io::ErrorKind::InvalidData.into()) } else { Ok(()) };
            }
            let bytes = &mut self.sink.bytes;
            bytes.reserve(STEP);
            let (taken_before, len_before) = (inflate.total_in(), bytes.len());
            let status = inflate.decompress_vec(input, bytes, FlushDecompress::None)?;
            let taken = usize::try_from(inflate.total_in() - taken_before).unwrap_or(usize::MAX);
            let given = bytes.len() - len_before;
            let filled = bytes.len() == bytes.capacity();
            if let Err(error) = self.sink.claim(given) {
                self.sink.bytes.truncate(len_before);
                return Err(error);
            }
            input = input.get(taken..).unwrap_or_default();
            self.ended = status == Status::StreamEnd;
            let stuck = taken == 0 && given == 0;
            if !self.ended && !filled && (input.is_empty() || stuck) {
                return if input.is_empty() {
                    Ok(())
                } else {
                    Err(io::ErrorKind::InvalidData.into())
                };
            }
        }
    }
}

/// RFC 1950 §2.2: method 8, a window of at most 32 KiB, and a check over both bytes.
fn is_zlib(first: u8, second: u8) -> bool {
    first & 0x0f == 8 && first >> 4 <= 7 && u16::from_be_bytes([first, second]).is_multiple_of(31)
}

#[cfg(test)]
mod tests;
