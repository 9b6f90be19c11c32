//! Zstandard (RFC 8878) block by block, with the decoder of `ruzstd`, whose input must be whole
//! blocks.
//!
//! That decoder holds back a whole window of a frame that has not ended. Each frame therefore
//! begins with an additional empty last block: the decoder then considers the frame ended, and all
//! of its content is available after every block. [`Tap`] copies the new content and leaves in the
//! decoder the data that later blocks may refer to.

use super::Sink;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, Write};

/// Largest window of the content coding `zstd` (RFC 9659).
const WINDOW_MAX: u64 = 8 << 20;
const BLOCK_MAX: usize = 128 << 10;
const BLOCK_HEADER: usize = 3;
const CHECKSUM: usize = 4;
/// Size of the content before the window that stays in the decoder. The decoder returns its content
/// in one piece until its buffer wraps around, then in two: the second only after the first has
/// been removed.
const SLACK: usize = 1 << 20;
/// A last block without content, and a checksum.
const END: [u8; BLOCK_HEADER + CHECKSUM] = [1, 0, 0, 0, 0, 0, 0];
/// Magic numbers of frames that hold no content (RFC 8878 section 3.1.2).
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

pub(super) struct Zstd {
    pub(super) sink: Sink,
    decoder: Box<FrameDecoder>,
    /// Input that is not a complete block yet; less than one block and its headers.
    pending: Vec<u8>,
    state: FrameState,
    /// Window of the frame in bytes.
    window: usize,
    /// Number of bytes in the decoder that the sink already has.
    known: usize,
    /// Number of frames that ended.
    frames: u64,
}

#[derive(Clone, Copy)]
enum FrameState {
    /// A frame begins, or the content ends.
    Between,
    Inside {
        checksum: bool,
    },
    /// A skippable frame, and its remaining bytes.
    Skipping(u32),
}

impl Zstd {
    pub(super) fn new(sink: Sink) -> Zstd {
        let mut decoder = Box::new(FrameDecoder::new());
        decoder.set_max_window_size(WINDOW_MAX);
        let (pending, state) = (Vec::new(), FrameState::Between);
        Zstd { sink, decoder, pending, state, window: 0, known: 0, frames: 0 }
    }

    pub(super) fn push(&mut self, input: &[u8]) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(input);
        let mut rest = &pending[..];
        while let Some(taken) = self.step(rest)? {
            rest = &rest[taken..];
        }
        let taken = pending.len() - rest.len();
        pending.drain(..taken);
        self.pending = pending;
        Ok(())
    }

    /// Returns whether the content ends between frames, after at least one.
    pub(super) fn is_whole(&self) -> bool {
        let between = matches!(self.state, FrameState::Between);
        between && self.pending.is_empty() && self.frames > 0
    }

    /// Decodes one header or block; returns its length. `None` if it is not complete yet.
    fn step(&mut self, input: &[u8]) -> io::Result<Option<usize>> {
        match self.state {
            FrameState::Between => self.begin(input),
            FrameState::Inside { checksum } => self.block(input, checksum),
            FrameState::Skipping(left) => {
                let here = input.len().min(left as usize);
                let left = left - here as u32;
                self.state =
                    if left == 0 { FrameState::Between } else { FrameState::Skipping(left) };
                Ok((here > 0 || left == 0).then_some(here))
            }
        }
    }

    fn begin(&mut self, input: &[u8]) -> io::Result<Option<usize>> {
        let Some((magic, rest)) = input.split_first_chunk::<4>() else { return Ok(None) };
        if SKIPPABLE.contains(&u32::from_le_bytes(*magic)) {
            let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
            self.frames += 1;
            self.state = FrameState::Skipping(u32::from_le_bytes(*length));
            return Ok(Some(8));
        }
        let Some(descriptor) = rest.first() else { return Ok(None) };
        let length = 4 + header_length(*descriptor);
        let Some(mut header) = input.get(..length) else { return Ok(None) };
        self.decoder.reset(&mut header).map_err(io::Error::other)?;
        let checksum = descriptor & 4 != 0;
        let end = if checksum { &END[..] } else { &END[..BLOCK_HEADER] };
        self.decode(end)?;
        self.window = match descriptor & 0x20 {
            0 => window_size(rest.get(1).copied().unwrap_or_default()),
            _ => usize::try_from(self.decoder.content_size()).unwrap_or(usize::MAX),
        };
        self.known = 0;
        self.state = FrameState::Inside { checksum };
        Ok(Some(length))
    }

    fn block(&mut self, input: &[u8], checksum: bool) -> io::Result<Option<usize>> {
        let Some(&[a, b, c]) = input.first_chunk::<BLOCK_HEADER>() else { return Ok(None) };
        let header = u32::from_le_bytes([a, b, c, 0]);
        let (last, run) = (header & 1 == 1, header >> 1 & 3 == 1);
        // a run has one byte
        let content = if run { 1 } else { (header >> 3) as usize };
        if content > BLOCK_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let trailer = if last && checksum { CHECKSUM } else { 0 };
        let length = BLOCK_HEADER + content + trailer;
        let Some(block) = input.get(..length) else { return Ok(None) };
        self.decode(block)?;
        self.release(last)?;
        if last {
            let stated = self.decoder.get_checksum_from_data();
            if checksum && stated != self.decoder.get_calculated_checksum() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.frames += 1;
            self.state = FrameState::Between;
        }
        Ok(Some(length))
    }

    fn decode(&mut self, mut block: &[u8]) -> io::Result<()> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        self.decoder.decode_blocks(&mut block, one).map(drop).map_err(io::Error::other)
    }

    /// Passes new content to the sink; from time to time removes all but a window from the decoder.
    fn release(&mut self, last: bool) -> io::Result<()> {
        let held = self.decoder.can_collect();
        let leaving = match held.checked_sub(self.window) {
            _ if last => held,
            Some(over) if over > SLACK => over,
            _ => 0,
        };
        let Zstd { sink, known, .. } = self;
        let mut tap = Tap { sink, known: *known, leaving, at: 0, full: false };
        let left = self.decoder.collect_to_writer(&mut tap)?;
        self.known = tap.known - left;
        Ok(())
    }
}

/// Reads the decoder's content from its beginning, and removes only part of it.
struct Tap<'a> {
    sink: &'a mut Sink,
    /// Number of bytes from the beginning that the sink has.
    known: usize,
    /// Number of bytes from the beginning that are removed from the decoder.
    leaving: usize,
    at: usize,
    /// No more content is removed.
    full: bool,
}

impl Write for Tap<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.full {
            return Ok(0);
        }
        let end = self.at + bytes.len();
        let new = self.known.saturating_sub(self.at).min(bytes.len());
        self.sink.write_all(&bytes[new..])?;
        self.known = self.known.max(end);
        let taken = (self.leaving - self.at).min(bytes.len());
        self.at += taken;
        self.full = self.at == self.leaving;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the size that a window descriptor encodes (RFC 8878 section 3.1.1.1.2).
fn window_size(descriptor: u8) -> usize {
    let base = 1_usize << (10 + (descriptor >> 3));
    base + base / 8 * usize::from(descriptor & 7)
}

/// Returns the number of bytes of a frame's header after its magic number (RFC 8878 section
/// 3.1.1.1).
fn header_length(descriptor: u8) -> usize {
    let single = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = match descriptor >> 6 {
        0 => usize::from(single),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    1 + usize::from(!single) + dictionary + size
}
