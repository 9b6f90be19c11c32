//! Conversations segment by segment, with segments that no socket sends. A script is steps in a
//! small language. The machine below it has its own TCP, which acts like a well-behaved client
//! unless a step specifies otherwise: it numbers segments, acknowledges them, and orders received
//! data.
//!
//! | step | effect |
//! |---|---|
//! | `stream TEXT` | the bytes that parts are cut from; without it, a plain request |
//! | `open` | the three segments of a handshake: `mss=N`, `window=N`, `stamps=yes` |
//! | `segment` | one or more segments: the fields below |
//! | `expect KINDS` | waits `within=SPAN` for the first of these kinds; the result is part of the judgment |
//! | `acks POLICY` | how received data is acknowledged from now on: `each`, `none`, `split`, `ahead` |
//! | `window N` | the window advertised from now on, and a segment with it |
//!
//! | field of a segment | value |
//! |---|---|
//! | `flags` | letters of `FSRPAUEC`, or `-` for none; default `A`, and `PA` with content |
//! | `seq` | `next`, `start` (the first byte of the stream), `edge` (the first byte beyond the peer's window), each with `+N` or `-N` |
//! | `ack` | `next` (all received data), `start` (the peer's first byte), each with `+N` or `-N` |
//! | `part` | `FROM..TO` of the stream; either may be omitted, or negative to count from the end |
//! | `data` | content that is not part of the stream |
//! | `size`, `gap` | splits the content into segments of this many bytes, at this interval |
//! | `times` | number of copies |
//! | `window`, `urgent`, `reserved`, `offset` | these header fields; the offset in words of 32 bits |
//! | `options` | option bytes in hexadecimal digits, a multiple of four bytes |
//! | `stamp` | changes the timestamp by this many ticks |
//! | `sum` | `wrong`: the checksum is wrong |

mod machine;
mod step;
mod wire;

pub use machine::{PacketTalk, ReceivedSegment};
pub use step::{
    Acks, Opening, PacketContent, PacketKind, PacketStep, PlaceBase, SegmentStep, SeqPlace,
    StreamPart,
};

use tcp::End;

/// Maximum number of packets of one conversation, regardless of its script requests.
pub const PACKETS_MAX: u64 = 20_000;

/// Source and destination of packets: a network device or a simulated network.
pub trait PacketLink {
    /// Returns an unused address and port whose packets are delivered to us; `None` if there is
    /// none.
    fn place(&mut self) -> Option<End>;

    /// Sends one IPv4 packet. A packet that is not accepted is lost, as on any link.
    fn send(&mut self, packet: &[u8]);

    /// Replaces `into` with the next received packet; returns false if there is none.
    fn receive(&mut self, into: &mut Vec<u8>) -> bool;
}
