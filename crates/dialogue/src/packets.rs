//! Conversations segment by segment: what no socket sends. A script is steps in a small language; the
//! machine behind it has a TCP of its own that does what a well-behaved client does wherever a step does not
//! say otherwise: it numbers, acknowledges, and puts in order what comes.
//!
//! | step | what it does |
//! |---|---|
//! | `stream TEXT` | the bytes that parts are cut from; a plain request where there is no such step |
//! | `open` | the three segments of a handshake: `mss=N`, `window=N`, `stamps=yes` |
//! | `segment` | one segment, or several: the fields below |
//! | `expect KINDS` | waits `within=SPAN` for the first of these kinds; what came is told to the judgement |
//! | `acks POLICY` | how what comes is acknowledged from now on: `each`, `none`, `split`, `ahead` |
//! | `window N` | the window that is offered from now on, and a segment that says so |
//!
//! | field of a segment | value |
//! |---|---|
//! | `flags` | letters of `FSRPAUEC`, or `-` for none; `A`, and with content `PA`, when it is not given |
//! | `seq` | `next`, `start` (the first byte of the stream), `edge` (the first byte that the peer's window does not take), each with `+N` or `-N` |
//! | `ack` | `next` (all that came), `start` (the peer's first byte), each with `+N` or `-N` |
//! | `part` | `FROM..TO` of the stream, each left out or counted from the end by a minus |
//! | `data` | content that is no part of the stream |
//! | `size`, `gap` | cuts the content into segments of so many bytes, so far apart |
//! | `times` | so many copies |
//! | `window`, `urgent`, `reserved`, `offset` | these fields of the head; the offset in words of 32 bits |
//! | `options` | bytes of options in hexadecimal digits, a multiple of four bytes |
//! | `stamp` | turns the time stamp by so many ticks |
//! | `sum` | `wrong`: the checksum is wrong |

mod machine;
mod step;
mod wire;

pub use machine::{HeardSegment, PacketTalk};
pub use step::{
    Acks, Opening, PacketContent, PacketKind, PacketStep, PlaceBase, SegmentStep, SeqPlace,
    StreamPart,
};

use tcp::End;

/// Maximum number of packets of one conversation, whatever its script requests.
pub const PACKETS_MAX: u64 = 20_000;

/// Source and destination of packets: a network device or a simulated network.
pub trait PacketLink {
    /// Returns an unused address and port whose packets are delivered to us; `None`: there is none.
    fn place(&mut self) -> Option<End>;

    /// Sends one IPv4 packet. If it is not accepted, it is lost, as on any link.
    fn send(&mut self, packet: &[u8]);

    /// Replaces `into` with the next received packet; returns false if there is none.
    fn receive(&mut self, into: &mut Vec<u8>) -> bool;
}
