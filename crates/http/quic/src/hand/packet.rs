//! Packets as bytes (RFC 9000 section 17), with the protection of RFC 9001 section 5.

use crate::wire::{VERSION, number, put_number};
use bytes::BytesMut;
use conduit::streams::{BROKEN, PHASE, RESERVED, UNFIXED};
use quinn_proto::crypto::{HeaderKey, PacketKey};

/// Length of our packet numbers, unambiguous in any case; and of the authentication tag.
pub(crate) const NUMBER_LEN: usize = 4;
pub(crate) const TAG_LEN: usize = 16;
/// Length of our own connection IDs.
pub(crate) const ID_LEN: usize = 8;
/// Maximum length of a connection ID in version 1; a packet with a longer one is dropped (RFC 9000
/// section 17.2).
pub(super) const ID_MAX: usize = 20;

/// The three packet number spaces (RFC 9000 section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NumberSpace {
    Initial = 0,
    Handshake = 1,
    Data = 2,
}

impl NumberSpace {
    pub(crate) const ALL: [NumberSpace; 3] =
        [NumberSpace::Initial, NumberSpace::Handshake, NumberSpace::Data];
}

/// Packets that carry frames (sections 17.2 and 17.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarrierForm {
    Initial,
    /// 0-RTT packet.
    Early,
    Handshake,
    /// Packet with a short header; true if its key phase bit is set.
    Short(bool),
}

/// The content of a packet header sent by our side, with its deliberate faults.
pub(crate) struct PacketHead<'h> {
    pub(crate) form: CarrierForm,
    pub(crate) to: &'h [u8],
    pub(crate) from: &'h [u8],
    pub(crate) token: &'h [u8],
    pub(crate) number: u64,
    pub(crate) odd: u16,
}

impl PacketHead<'_> {
    /// Returns the header up to the length field, which only long headers have.
    fn begin(&self) -> Vec<u8> {
        let bits = NUMBER_LEN as u8 - 1;
        let fixed = if self.odd & UNFIXED == 0 { 0x40 } else { 0 };
        let reserved = |bits: u8| if self.odd & RESERVED == 0 { 0 } else { bits };
        let kind = match self.form {
            CarrierForm::Short(phase) => {
                let phase = if phase == (self.odd & PHASE == 0) { 0b100 } else { 0 };
                return [&[fixed | reserved(0b1_1000) | phase | bits], self.to].concat();
            }
            CarrierForm::Initial => 0,
            CarrierForm::Early => 0b01_0000,
            CarrierForm::Handshake => 0b10_0000,
        };
        let mut out = vec![0x80 | fixed | kind | reserved(0b1100) | bits];
        out.extend_from_slice(&VERSION.to_be_bytes());
        for id in [self.to, self.from] {
            out.push(id.len() as u8);
            out.extend_from_slice(id);
        }
        if self.form == CarrierForm::Initial {
            put_number(&mut out, self.token.len() as u64);
            out.extend_from_slice(self.token);
        }
        out
    }

    /// Returns the packet, with this minimum size.
    pub(crate) fn sealed(
        &self,
        (header, body): (&dyn HeaderKey, &dyn PacketKey),
        frames: &[u8],
        least: usize,
    ) -> Vec<u8> {
        let mut packet = self.begin();
        let long = !matches!(self.form, CarrierForm::Short(_));
        let head_len = packet.len() + if long { 2 } else { 0 } + NUMBER_LEN;
        let padded = least.saturating_sub(head_len + TAG_LEN).max(frames.len());
        if long {
            let length = (NUMBER_LEN + padded + TAG_LEN) as u16;
            packet.extend_from_slice(&(length & 0x3fff | 0x4000).to_be_bytes());
        }
        packet.extend_from_slice(&(self.number as u32).to_be_bytes());
        packet.extend_from_slice(frames);
        packet.resize(head_len + padded + TAG_LEN, 0);
        body.encrypt(self.number, &mut packet, head_len);
        header.encrypt(head_len - NUMBER_LEN, &mut packet);
        if self.odd & BROKEN != 0
            && let Some(last) = packet.last_mut()
        {
            *last ^= 1;
        }
        packet
    }
}

/// The offsets of the parts of a received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PacketParts {
    /// Kind; `None` if the packet cannot be decrypted.
    pub(crate) kind: PacketForm,
    /// The server's connection ID, if the header contains it.
    pub(crate) from: Vec<u8>,
    pub(crate) number_at: usize,
    pub(crate) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketForm {
    Of(NumberSpace),
    Retry,
    /// 0-RTT, Version Negotiation, another version.
    Other,
}

/// Parses the packet at the start of these bytes.
pub(crate) fn parts(bytes: &[u8]) -> Option<PacketParts> {
    let first = *bytes.first()?;
    if first & 0x80 == 0 {
        let kind = PacketForm::Of(NumberSpace::Data);
        let parts = PacketParts { kind, from: Vec::new(), number_at: 1 + ID_LEN, end: bytes.len() };
        return (parts.number_at < parts.end).then_some(parts);
    }
    let version = bytes.get(1..5)?;
    let to_end = 6 + usize::from(*bytes.get(5)?);
    let from_end = to_end + 1 + usize::from(*bytes.get(to_end)?);
    let from = bytes.get(to_end + 1..from_end)?.to_vec();
    let whole =
        |kind| Some(PacketParts { kind, from: from.clone(), number_at: 0, end: bytes.len() });
    let kind = match first >> 4 & 3 {
        _ if version != VERSION.to_be_bytes() => return whole(PacketForm::Other),
        _ if from.len() > ID_MAX => return None,
        0 => PacketForm::Of(NumberSpace::Initial),
        2 => PacketForm::Of(NumberSpace::Handshake),
        3 => return whole(PacketForm::Retry),
        _ => PacketForm::Other,
    };
    let mut at = from_end;
    if kind == PacketForm::Of(NumberSpace::Initial) {
        let (token, used) = number(bytes.get(at..)?)?;
        at = at.checked_add(used)?.checked_add(usize::try_from(token).ok()?)?;
    }
    let (length, used) = number(bytes.get(at..)?)?;
    let number_at = at + used;
    let end = number_at.checked_add(usize::try_from(length).ok()?)?;
    (end <= bytes.len()).then_some(PacketParts { kind, from, number_at, end })
}

/// A packet without header protection.
pub(crate) struct BarePacket<'p> {
    pub(crate) number: u64,
    head: &'p [u8],
    body: &'p [u8],
}

impl BarePacket<'_> {
    /// Returns the key phase bit of a short header (RFC 9001 section 6).
    pub(crate) fn phase(&self) -> bool {
        self.head.first().is_some_and(|first| first & 0b100 != 0)
    }

    /// Returns the frames of a packet; `None` if it is protected with another key.
    pub(crate) fn frames(&self, key: &dyn PacketKey) -> Option<BytesMut> {
        let mut frames = BytesMut::from(self.body);
        key.decrypt(self.number, self.head, &mut frames).ok()?;
        Some(frames)
    }
}

/// Returns the packet with its number; `largest`: the highest number received.
pub(crate) fn unmasked<'p>(
    key: &dyn HeaderKey,
    packet: &'p mut [u8],
    number_at: usize,
    largest: Option<u64>,
) -> Option<BarePacket<'p>> {
    // the sample is where a four-byte number would end (RFC 9001 section 5.4.2)
    if packet.len() < number_at + 4 + key.sample_size() {
        return None;
    }
    key.decrypt(number_at, packet);
    let length = usize::from(packet[0] & 3) + 1;
    let digits = &packet[number_at..number_at + length];
    let low = digits.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let number = expanded(low, 8 * length as u32, largest.map_or(0, |largest| largest + 1));
    let (head, body) = packet.split_at(number_at + length);
    Some(BarePacket { number, head, body })
}

/// Returns the number with these low bits that is closest to the expected one (RFC 9000 appendix
/// A.3).
fn expanded(low: u64, bits: u32, expected: u64) -> u64 {
    let window = 1_u64 << bits;
    let half = 1_u64 << (bits - 1);
    let candidate = expected & !(window - 1) | low;
    if candidate + half <= expected {
        candidate + window
    } else if candidate > expected + half && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 appendix A.3.
    #[test]
    fn packet_numbers_are_expanded() {
        assert_eq!(expanded(0x9b32, 16, 0xa82f_30eb), 0xa82f_9b32);
        assert_eq!(expanded(0, 8, 0), 0);
        assert_eq!(expanded(2, 8, 255), 258);
        assert_eq!(expanded(255, 8, 256), 255);
    }

    #[test]
    fn packets_of_a_datagram_are_separated() {
        let handshake = b"\xe3\0\0\0\x01\x01a\x02bc\x05hello";
        let found = parts(&[&handshake[..], b"\x40rest"].concat()).unwrap();
        assert_eq!(
            (found.kind, &found.from[..]),
            (PacketForm::Of(NumberSpace::Handshake), &b"bc"[..])
        );
        assert_eq!((found.number_at, found.end), (handshake.len() - 5, handshake.len()));
        assert_eq!(parts(&handshake[..12]), None, "cut");
        assert_eq!(parts(b"\x40"), None, "nothing behind it");
        assert_eq!(parts(b"\x80\0\0\0\0\x01a\x01b\0\0\0\x01").unwrap().kind, PacketForm::Other);
        assert_eq!(parts(b"\xc0\0\0\0\x01\x01a\x01b\xff").map(|one| one.kind), None);
        let retry = |length: u8| {
            let id = vec![7; length.into()];
            parts(&[b"\xf0\0\0\0\x01\0", &[length][..], &id, b"token"].concat()).map(|one| one.kind)
        };
        assert_eq!([20, 21].map(retry), [Some(PacketForm::Retry), None]);
    }

    /// Arbitrary bytes, and packets with a valid start.
    #[test]
    fn no_datagram_panics() {
        let mut state = 1_u64;
        for round in 0..20_000 {
            let mut bytes: Vec<u8> = Vec::new();
            for _ in 0..round % 40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push((state >> 56) as u8);
            }
            if round % 2 == 0 && bytes.len() > 8 {
                bytes[0] |= 0x80;
                bytes[1..5].copy_from_slice(&VERSION.to_be_bytes());
                bytes[5] &= 7;
            }
            if let Some(found) = parts(&bytes) {
                assert!(found.end <= bytes.len() && found.end > 0, "{bytes:?}");
                assert!(found.number_at <= found.end, "{bytes:?}");
            }
        }
    }
}
