//! Values and encodings of QUIC (RFC 9000) that all our own parts share.

use quinn_proto::coding::Codec;
use quinn_proto::{ConnectionId, VarInt};

/// Version 1 (RFC 9000 section 15).
pub(crate) const VERSION: u32 = 1;
/// Number of unidirectional streams that a server may open on a connection of ours.
pub(crate) const UNI_MAX: u64 = 16;
/// A ticket that no server issued.
pub(crate) const INVENTED: &[u8] = b"a token made by loadstone";

/// Returns the parameters as encoded in a ClientHello; `from`: our connection ID, if included.
pub(crate) fn parameter_bytes(from: Option<&ConnectionId>, window: u64) -> Vec<u8> {
    // initial_max_data, initial_max_stream_data for three kinds, initial_max_streams_uni,
    // initial_source_connection_id (RFC 9000 section 18.2)
    let mut text = Vec::new();
    for (id, value) in [(4_u8, window), (5, window), (6, window), (7, window), (9, UNI_MAX)] {
        let mut number = Vec::new();
        put_number(&mut number, value);
        text.extend_from_slice(&[id, number.len() as u8]);
        text.extend(number);
    }
    if let Some(from) = from {
        text.extend_from_slice(&[0x0f, from.len() as u8]);
        text.extend_from_slice(from);
    }
    text
}

/// Writes a variable-length integer (RFC 9000 section 16).
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    VarInt::from_u64(number).unwrap_or(VarInt::MAX).encode(out);
}

/// Returns the variable-length integer at the start of the bytes, and its length; `None` if it is
/// incomplete.
pub(crate) fn number(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut rest = bytes;
    let number = VarInt::decode(&mut rest).ok()?;
    Some((number.into_inner(), bytes.len() - rest.len()))
}
