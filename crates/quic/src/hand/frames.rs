//! Frames of QUIC (RFC 9000 section 19): ours written, theirs taken.

use super::packet::NumberSpace;
use super::{GivenId, Hand};
use crate::bare::{number, put_number};
use conduit::streams::{self, PieceKind, TRANSPORT};

/// Streams of the server's that are read at most.
const STREAMS_MAX: usize = 20_000;
/// Identifiers and tokens that are remembered.
const GIVEN_MAX: usize = 64;

/// A frame that is nothing but numbers.
pub(super) fn of_numbers(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![kind];
    numbers.iter().for_each(|number| put_number(&mut out, *number));
    out
}

/// STREAM with offset and length.
pub(super) fn stream(stream: u64, offset: u64, bytes: &[u8], last: bool) -> Vec<u8> {
    let kind = if last { 0x0f } else { 0x0e };
    let mut out = of_numbers(kind, &[stream, offset, bytes.len() as u64]);
    out.extend_from_slice(bytes);
    out
}

pub(super) fn crypto(offset: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = of_numbers(0x06, &[offset, bytes.len() as u64]);
    out.extend_from_slice(bytes);
    out
}

/// Takes what frames are made of off the front.
struct FramesLeft<'f> {
    rest: &'f [u8],
}

impl<'f> FramesLeft<'f> {
    fn number(&mut self) -> Option<u64> {
        let (value, used) = number(self.rest)?;
        self.rest = &self.rest[used..];
        Some(value)
    }

    fn bytes(&mut self, count: u64) -> Option<&'f [u8]> {
        let count = usize::try_from(count).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// A length, and as many bytes.
    fn text(&mut self) -> Option<&'f [u8]> {
        let length = self.number()?;
        self.bytes(length)
    }
}

impl Hand {
    /// Takes the frames of one packet, as far as they can be read.
    pub(super) fn take_frames(&mut self, level: NumberSpace, frames: &[u8]) {
        let mut reader = FramesLeft { rest: frames };
        while !reader.rest.is_empty() && self.over.is_none() {
            if self.take_frame(level, &mut reader).is_none() {
                return;
            }
        }
    }

    fn take_frame(&mut self, level: NumberSpace, from: &mut FramesLeft<'_>) -> Option<()> {
        let kind = from.number()?;
        // whatever is no PADDING, ACK or CONNECTION_CLOSE wants to be acknowledged (section 13.2)
        self.spaces[level as usize].owes |= !matches!(kind, 0 | 2 | 3 | 0x1c | 0x1d);
        match kind {
            0x00 | 0x01 => {}
            0x02 | 0x03 => self.take_ack(level, kind, from)?,
            0x04 => {
                let (stream, code, _) = (from.number()?, from.number()?, from.number()?);
                streams::put_code(&mut self.inbox, PieceKind::Reset, stream, Some(code));
            }
            0x05 => {
                let (stream, code) = (from.number()?, from.number()?);
                streams::put_code(&mut self.inbox, PieceKind::Stop, stream, Some(code));
            }
            0x06 => {
                let offset = from.number()?;
                self.take_crypto(level, offset, from.text()?);
            }
            0x08..=0x0f => self.take_stream(kind, from)?,
            0x10 => self.limits.raise_data(from.number()?),
            0x11 => {
                let stream = from.number()?;
                self.limits.raise_stream(stream, from.number()?);
            }
            0x12 | 0x13 => self.limits.raise_streams(kind == 0x13, from.number()?),
            0x14 | 0x16 | 0x17 => {
                from.number()?;
            }
            0x15 => {
                from.number()?;
                from.number()?;
            }
            0x1c | 0x1d => {
                let code = from.number()?;
                self.closed(if kind == 0x1c { code | TRANSPORT } else { code });
            }
            _ => self.take_told(kind, from)?,
        }
        Some(())
    }

    /// What the worker is told of.
    fn take_told(&mut self, kind: u64, from: &mut FramesLeft<'_>) -> Option<()> {
        let begin = from.rest;
        match kind {
            0x07 => {
                from.text()?;
            }
            0x18 => {
                let (sequence, _) = (from.number()?, from.number()?);
                let length = u64::from(*from.bytes(1)?.first()?);
                let id = from.bytes(length)?.to_vec();
                let token = from.bytes(16)?.to_vec();
                let known = self.spare.iter().any(|one| one.sequence == sequence);
                if self.spare.len() < GIVEN_MAX && sequence > self.limits.used && !known {
                    self.spare.push(GivenId { sequence, id });
                    self.reset_tokens.push(token);
                }
            }
            0x19 => {
                from.number()?;
            }
            0x1a => {
                let asked = from.bytes(8)?;
                self.ready.push([&[0x1b], asked].concat());
            }
            0x1b => {
                from.bytes(8)?;
            }
            0x1e => self.confirm(),
            _ => return None,
        }
        let used = begin.len() - from.rest.len();
        self.tell(kind, &begin[..used]);
        Some(())
    }

    fn take_ack(&mut self, level: NumberSpace, kind: u64, from: &mut FramesLeft<'_>) -> Option<()> {
        let (largest, _, ranges) = (from.number()?, from.number()?, from.number()?);
        let mut low = largest.checked_sub(from.number()?)?;
        let flight = &mut self.spaces[level as usize].flight;
        let before = flight.len();
        flight.retain(|number, _| !(low..=largest).contains(number));
        for _ in 0..ranges {
            let high = low.checked_sub(from.number()?)?.checked_sub(2)?;
            low = high.checked_sub(from.number()?)?;
            flight.retain(|number, _| !(low..=high).contains(number));
        }
        if flight.len() < before {
            self.tries = 0;
        }
        for _ in 0..if kind == 0x03 { 3 } else { 0 } {
            from.number()?;
        }
        Some(())
    }

    fn take_crypto(&mut self, level: NumberSpace, offset: u64, bytes: &[u8]) {
        let crypto = &mut self.spaces[level as usize].crypto;
        crypto.put(offset, bytes, false);
        let said = crypto.take();
        if said.is_empty() {
            return;
        }
        match self.session.read_handshake(&said) {
            Ok(_) => self.shake_hands(),
            Err(_) => self.over = Some(Err(sample::FailureClass::Tls)),
        }
    }

    fn take_stream(&mut self, kind: u64, from: &mut FramesLeft<'_>) -> Option<()> {
        let stream = from.number()?;
        let offset = if kind & 4 == 0 { 0 } else { from.number()? };
        let bytes = if kind & 2 == 0 { std::mem::take(&mut from.rest) } else { from.text()? };
        if self.came.len() >= STREAMS_MAX && !self.came.contains_key(&stream) {
            return Some(());
        }
        let came = self.came.entry(stream).or_default();
        let over = came.is_over();
        came.put(offset, bytes, kind & 1 != 0);
        let (new, ends) = (came.take(), came.is_over() && !over);
        if stream & 3 == 0 && !new.is_empty() {
            self.hear_response();
        }
        if !new.is_empty() || ends {
            streams::put_data(&mut self.inbox, stream, &new, ends);
        }
        Some(())
    }
}
