//! Frames (RFC 6455 section 5.2): headers written, and read from input that arrives in pieces.

use crate::mask::apply_mask;

/// Longest payload of a control frame.
pub const CONTROL_MAX: usize = 125;
/// Longest header: two bytes, eight of length, four of mask.
pub const HEADER_MAX: usize = 14;

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
    /// 3 to 7 and 11 to 15: to be refused.
    Reserved(u8),
}

impl Opcode {
    /// Parses the low four bits of the first byte.
    pub fn from_bits(bits: u8) -> Opcode {
        match bits & 0x0f {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            other => Opcode::Reserved(other),
        }
    }

    /// Returns the four bits of the first byte.
    pub fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
            Opcode::Reserved(bits) => bits & 0x0f,
        }
    }

    /// Returns whether the opcode is that of a control frame: close, ping, pong, and the reserved
    /// codes from 11 on.
    pub fn is_control(self) -> bool {
        self.bits() >= 8
    }
}

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Last frame of its message.
    pub fin: bool,
    /// RSV1 to RSV3, as the bits 4, 2 and 1.
    pub rsv: u8,
    pub opcode: Opcode,
    pub mask: Option<[u8; 4]>,
    /// Length of the payload in bytes.
    pub length: u64,
}

/// RSV1: the message is compressed (RFC 7692).
pub const RSV1: u8 = 4;

impl Header {
    /// Appends the header in its shortest form.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut head = [0; HEADER_MAX];
        head[0] = u8::from(self.fin) << 7 | (self.rsv & 7) << 4 | self.opcode.bits();
        let masked = u8::from(self.mask.is_some()) << 7;
        let mut end = match self.length {
            0..=125 => {
                head[1] = masked | self.length as u8;
                2
            }
            126..=0xffff => {
                head[1] = masked | 126;
                head[2..4].copy_from_slice(&(self.length as u16).to_be_bytes());
                4
            }
            _ => {
                head[1] = masked | 127;
                head[2..10].copy_from_slice(&self.length.to_be_bytes());
                10
            }
        };
        if let Some(key) = self.mask {
            head[end..end + 4].copy_from_slice(&key);
            end += 4;
        }
        out.extend_from_slice(&head[..end]);
    }
}

/// Appends a frame with its payload, masked if there is a key.
pub fn write_frame(
    opcode: Opcode,
    fin: bool,
    rsv: u8,
    mask: Option<[u8; 4]>,
    payload: &[u8],
    out: &mut Vec<u8>,
) {
    Header { fin, rsv, opcode, mask, length: payload.len() as u64 }.write(out);
    let from = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = mask {
        apply_mask(key, 0, &mut out[from..]);
    }
}

/// Error in a frame's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthError {
    /// A longer form than the length needs.
    NotShortest,
    /// The highest bit of a 64-bit length is set.
    TopBit,
}

/// Reads headers from input that may be cut at any byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeaderReader {
    bytes: [u8; HEADER_MAX],
    filled: u8,
}

impl HeaderReader {
    /// Takes bytes from the front of the input until the header is complete. `None` if more are
    /// needed.
    ///
    /// # Errors
    /// Fails for a length that RFC 6455 does not allow.
    #[inline]
    pub fn take(&mut self, input: &mut &[u8]) -> Result<Option<Header>, LengthError> {
        loop {
            let wanted = self.header_len();
            let filled = usize::from(self.filled);
            let count = (wanted - filled).min(input.len());
            self.bytes[filled..filled + count].copy_from_slice(&input[..count]);
            *input = &input[count..];
            self.filled += count as u8;
            if usize::from(self.filled) < wanted {
                return Ok(None);
            }
            if self.header_len() == wanted {
                self.filled = 0;
                return self.header(wanted).map(Some);
            }
        }
    }

    /// Returns whether part of a header was taken.
    pub fn is_inside(&self) -> bool {
        self.filled > 0
    }

    /// Returns the number of bytes of the header, as known so far.
    fn header_len(&self) -> usize {
        if self.filled < 2 {
            return 2;
        }
        let length = match self.bytes[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + length + if self.bytes[1] & 0x80 != 0 { 4 } else { 0 }
    }

    fn header(&self, size: usize) -> Result<Header, LengthError> {
        let bytes = &self.bytes;
        let (length, at) = match bytes[1] & 0x7f {
            126 => (u64::from(u16::from_be_bytes([bytes[2], bytes[3]])), 4),
            127 => {
                let mut eight = [0; 8];
                eight.copy_from_slice(&bytes[2..10]);
                (u64::from_be_bytes(eight), 10)
            }
            short => (u64::from(short), 2),
        };
        let least = match at {
            4 => 126,
            10 => 0x1_0000,
            _ => 0,
        };
        if length >> 63 != 0 {
            return Err(LengthError::TopBit);
        }
        if length < least {
            return Err(LengthError::NotShortest);
        }
        let mask = (size > at).then(|| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Ok(Header {
            fin: bytes[0] & 0x80 != 0,
            rsv: bytes[0] >> 4 & 7,
            opcode: Opcode::from_bits(bytes[0]),
            mask,
            length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8], cut: usize) -> (Result<Option<Header>, LengthError>, usize) {
        let mut reader = HeaderReader::default();
        let (mut first, mut second) = bytes.split_at(cut.min(bytes.len()));
        let mut found = reader.take(&mut first);
        if found == Ok(None) {
            found = reader.take(&mut second);
        }
        (found, first.len() + second.len())
    }

    proptest! {
        #[test]
        fn a_written_header_is_read_back(
            fin in any::<bool>(),
            rsv in 0..8_u8,
            bits in 0..16_u8,
            mask in proptest::option::of(any::<[u8; 4]>()),
            length in prop_oneof![0..200_u64, 65_000..66_000_u64, 0..(1_u64 << 62)],
            cut in 0..15_usize,
        ) {
            let header = Header { fin, rsv, opcode: Opcode::from_bits(bits), mask, length };
            let mut bytes = Vec::new();
            header.write(&mut bytes);
            bytes.push(b'!');
            prop_assert_eq!(read(&bytes, cut), (Ok(Some(header)), 1));
        }
    }

    #[test]
    fn lengths_must_have_their_shortest_form() {
        assert_eq!(read(&[0x82, 126, 0, 125], 9).0, Err(LengthError::NotShortest));
        assert_eq!(
            read(&[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff], 9).0,
            Err(LengthError::NotShortest)
        );
        assert_eq!(read(&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], 3).0, Err(LengthError::TopBit));
    }

    #[test]
    fn the_examples_of_the_rfc_are_written_byte_for_byte() {
        // RFC 6455 section 5.7
        let mut out = Vec::new();
        write_frame(Opcode::Text, true, 0, None, b"Hello", &mut out);
        assert_eq!(out, [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        out.clear();
        let key = Some([0x37, 0xfa, 0x21, 0x3d]);
        write_frame(Opcode::Text, true, 0, key, b"Hello", &mut out);
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(out, masked);
    }
}
