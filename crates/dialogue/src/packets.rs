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

/// Packets that one conversation sends at most, whatever its script says.
pub const PACKETS_MAX: u64 = 20_000;

/// Where packets go and come from: a network device, or a made-up network.
pub trait PacketLink {
    /// An address and a port that nobody uses, of which all packets come to us; `None`: there is none.
    fn place(&mut self) -> Option<End>;

    /// Hands one IPv4 packet over. What is not taken is lost, as on any link.
    fn send(&mut self, packet: &[u8]);

    /// The next packet that came, in place of what `into` has; false: none is there.
    fn receive(&mut self, into: &mut Vec<u8>) -> bool;
}
