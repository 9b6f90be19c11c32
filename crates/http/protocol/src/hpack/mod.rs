//! HPACK (RFC 7541) as needed by a client that decodes any block and encodes literals only:
//! the Huffman code, integers, a reader of header blocks, and literals for blocks.

mod decoder;
pub mod huffman;
mod table;

pub use decoder::{Decoder, Field, HpackError};
pub use table::STATIC;

/// Encodes an integer with a prefix of 1 to 8 bits (RFC 7541 section 5.1); `first` has the bits
/// above the prefix.
pub fn integer(first: u8, prefix: u32, value: u64, out: &mut Vec<u8>) {
    let most = (1_u64 << prefix) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Encodes a field as a literal that no table keeps, without Huffman's code (RFC 7541 section
/// 6.2.2).
pub fn literal(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    string(name, out);
    string(value, out);
}

/// Encodes a field as a literal that the dynamic table keeps (RFC 7541 section 6.2.1).
pub fn kept(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(0x40);
    string(name, out);
    string(value, out);
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    integer(0, 7, text.len() as u64, out);
    out.extend_from_slice(text);
}
