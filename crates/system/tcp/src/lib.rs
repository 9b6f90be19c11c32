//! TCP for clients: segments in, segments out, timer deadlines. Layer 2: performs no I/O and reads
//! no clock. One [`TcpStack`] holds the connections of one worker; an idle connection takes about
//! 120 bytes, however many there are.
//!
//! RFC 9293 with 1191 and 8201 (path MTU), 2018, 2883 and 6675 (selective acknowledgments), 8985
//! (loss detection by the order of sending), 3042, 3168 (ECN), 2861, 5681, 6582, 6928, 7661, 9937
//! (congestion control: NewReno over the used window, with Proportional Rate Reduction), 5961
//! (forged segments), 6191 (TIME-WAIT), 6298 (timers), 6528 (initial sequence numbers), 7323
//! (window scale, timestamps), over IPv4 and IPv6.
#![forbid(unsafe_code)]

mod arrive;
mod connection;
mod output;
mod packet;
mod seq;
mod settings;
mod stack;
#[cfg(test)]
mod tests;
mod timers;

pub use packet::{
    ArrivedPacket, Checksums, End, Flow, Head, IP_HEAD, IPV6_HEAD, Outbox, SACK_BLOCKS, TCP_HEAD,
    VNET_HEAD, checksum, destination, flag, lacks_checksum, raw_packet, read,
};
pub use settings::TcpSettings;
pub use stack::{NotDone, Readiness, Sources, TcpStack};
