//! Zstandard (RFC 8878) block by block, with the decoder of `ruzstd`, whose input must be whole
//! blocks.

use super::Sink;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io;

/// Largest window of the content coding `zstd` (RFC 9659).
const WINDOW_MAX: u64 = 8 << 20;
const BLOCK_MAX: usize = 128 << 10;
const BLOCK_HEADER: usize = 3;
const CHECKSUM: usize = 4;
/// Magic numbers of frames that hold no content (RFC 8878 section 3.1.2).
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

pub(super) struct Zstd {
    pub(super) sink: Sink,
    decoder: Box<FrameDecoder>,
    /// Input that is not a whole block yet; less than one block and its headers.
    pending: Vec<u8>,
    state: FrameState,
    /// Frames that ended.
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
        Zstd { sink, decoder, pending: Vec::new(), state: FrameState::Between, frames: 0 }
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

    /// The content ends between frames, after one at least.
    pub(super) fn is_whole(&self) -> bool {
        let between = matches!(self.state, FrameState::Between);
        between && self.pending.is_empty() && self.frames > 0
    }

    /// Decodes one header or block; returns its length. `None`: it is not whole yet.
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
        self.state = FrameState::Inside { checksum: descriptor & 4 != 0 };
        Ok(Some(length))
    }

    fn block(&mut self, input: &[u8], checksum: bool) -> io::Result<Option<usize>> {
        let Some(&[a, b, c]) = input.first_chunk::<BLOCK_HEADER>() else { return Ok(None) };
        let header = u32::from_le_bytes([a, b, c, 0]);
        let (last, run) = (header & 1 == 1, header >> 1 & 3 == 1);
        // of a run there is one byte
        let content = if run { 1 } else { (header >> 3) as usize };
        if content > BLOCK_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let trailer = if last && checksum { CHECKSUM } else { 0 };
        let length = BLOCK_HEADER + content + trailer;
        let Some(mut block) = input.get(..length) else { return Ok(None) };
        let one = BlockDecodingStrategy::UptoBlocks(1);
        let ended = self.decoder.decode_blocks(&mut block, one).map_err(io::Error::other)?;
        self.decoder.collect_to_writer(&mut self.sink)?;
        if ended {
            let stated = self.decoder.get_checksum_from_data();
            if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.frames += 1;
            self.state = FrameState::Between;
        }
        Ok(Some(length))
    }
}

/// Bytes of a frame's header after its magic number (RFC 8878 section 3.1.1.1).
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
