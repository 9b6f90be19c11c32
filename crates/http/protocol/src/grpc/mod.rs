//! gRPC over HTTP/2 and HTTP/3: length-prefixed messages, status codes and deadlines
//! (the gRPC project's `PROTOCOL-HTTP2.md`).

mod codec;
mod load;
mod message;
mod status;
mod variant;

pub use codec::{MessageCodec, messages};
pub use load::{LOAD_TRAILER, load_report, varint};
pub use message::{
    EarlyEnd, MessageFault, MessageLimits, MessageReader, PREFIX_BYTES, fill_prefix, gzipped,
    prefixed,
};
pub use status::{Code, Status, expected_codes, status_of};
pub use variant::{BodyForm, BodyReader, CONNECT_STREAM, ConnectError, Variant, connect_status};

use units::Nanos;

/// The media type of requests and responses; a suffix names the encoding of messages.
pub const CONTENT_TYPE: &str = "application/grpc";

/// Returns a deadline as the field `grpc-timeout` has it: at most eight digits and a unit, rounded
/// up.
pub fn timeout(span: Nanos) -> String {
    const MOST: u64 = 99_999_999;
    const UNITS: [(u64, char); 6] = [
        (1, 'n'),
        (1_000, 'u'),
        (1_000_000, 'm'),
        (1_000_000_000, 'S'),
        (60_000_000_000, 'M'),
        (3_600_000_000_000, 'H'),
    ];
    let fitting = UNITS.iter().find(|(unit, _)| span.0.div_ceil(*unit) <= MOST);
    let (unit, letter) = fitting.copied().unwrap_or((3_600_000_000_000, 'H'));
    format!("{}{letter}", span.0.div_ceil(unit).min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_has_at_most_eight_digits_and_is_never_shorter() {
        for (nanos, text) in [
            (0, "0n"),
            (99_999_999, "99999999n"),
            (100_000_000, "100000u"),
            (100_000_001, "100001u"),
            (30_000_000_000, "30000000u"),
            (100_000_000_000, "100000m"),
            (u64::MAX, "5124096H"),
        ] {
            let written = timeout(Nanos(nanos));
            assert_eq!(written, text);
            assert!(written.len() <= 9);
        }
    }
}
