//! The client's side of TCP: segments in, segments out, instants of timers. Layer 2: opens nothing,
//! reads no clock. One [`TcpStack`] holds the connections of one worker; a connection at rest takes
//! some 120 bytes of it, whatever there is of them.
//!
//! RFC 9293 with 1191 and 8201 (path MTU), 2018, 2883 and 6675 (selective acknowledgements), 8985 (what is
//! lost, by the order of sending), 3042, 3168 (ECN), 2861, 5681, 6582, 6928, 7661, 9937 (congestion control:
//! NewReno over a window that was used, with Proportional Rate Reduction), 5961 (forged segments), 6191 (TIME-WAIT),
//! 6298 (timers), 6528 (initial sequence numbers), 7323 (window scale, time stamps), over
//! IPv4 and IPv6.
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

pub use packet::{
    ArrivedPacket, Checksums, End, Flow, Head, IP_HEAD, IPV6_HEAD, Outbox, SACK_BLOCKS, TCP_HEAD,
    VNET_HEAD, checksum, destination, flag, is_sum_left_out, raw_packet, read,
};
pub use settings::TcpSettings;
pub use stack::{NotDone, Readiness, Sources, TcpStack};
