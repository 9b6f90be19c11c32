//! Settings shared by all connections of a stack.

use crate::packet::TCP_HEAD;
use units::Nanos;

/// Behavior of connections; the default is that of Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSettings {
    /// Maximum IP packet size, bytes; at least 576.
    pub mtu: u16,
    /// True to offer timestamps (RFC 7323).
    pub stamps: bool,
    /// Offer selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Detect losses by time and probe the tail (RACK and TLP, RFC 8985), if selective
    /// acknowledgments are negotiated.
    pub rack: bool,
    /// Request explicit congestion notification (RFC 3168). Linux clients do not.
    pub ecn: bool,
    /// Maximum size of the receive window, bytes.
    pub receive_max: u32,
    /// Maximum size of the send buffer of one connection, bytes.
    pub send_max: u32,
    /// Initial congestion window in segments (RFC 6928: 10).
    pub initial_window: u16,
    /// The timeout before the first round-trip sample (RFC 6298 section 2.1: 1 s).
    pub rto_first: Nanos,
    /// The minimum added to the smoothed round-trip time (Linux: 200 ms).
    pub rto_margin: Nanos,
    /// The maximum timeout (Linux: 120 s).
    pub rto_max: Nanos,
    /// Number of SYN retransmissions after the linear ones (Linux: 6, which takes 131 s in total).
    pub syn_retries: u8,
    /// Number of first SYN retransmissions with a constant timeout (Linux 6.5 and later: 4).
    pub syn_linear: u8,
    /// Number of data retransmissions before the connection is abandoned (Linux: 15).
    pub data_retries: u8,
    /// Time by which an acknowledgment is delayed (Linux: 40 ms).
    pub delayed_ack: Nanos,
    /// Idle time after which keep-alive probes are sent; `None` for never.
    pub keep_alive: Option<Nanos>,
    /// Interval of keep-alive probes, of which at most nine go unanswered (Linux: 75 s).
    pub keep_alive_interval: Nanos,
    /// TIME-WAIT period of a tuple after we closed first.
    pub time_wait: Nanos,
    /// Time for which a closed connection waits for the FIN of the peer.
    pub fin_wait: Nanos,
}

/// Number of unanswered keep-alive probes after which a peer counts as unreachable (Linux: 9).
pub(crate) const KEEP_ALIVE_PROBES: u8 = 9;
/// The window of a SYN (Linux: 64,240, which is 44 segments of 1,460 bytes).
pub(crate) const FIRST_WINDOW: u32 = 64_240;
/// Number of full segments per connection that are acknowledged individually, to let the peer's
/// window grow; later ones in pairs (Linux: TCP_MAX_QUICKACKS).
pub(crate) const ONE_BY_ONE: u32 = 16;
/// The minimum MSS that is accepted (Linux: tcp_min_snd_mss is 48).
pub(crate) const MSS_MIN: u16 = 48;
/// Minimum MSS that an ICMP message about the path can cause (Linux: min_pmtu is 552): it limits
/// the damage of a forged message.
pub(crate) const PATH_MSS_MIN: u16 = 536;
/// MSS of a peer that announces none (RFC 9293 section 3.7.1).
pub(crate) const MSS_DEFAULT: u16 = 536;

impl Default for TcpSettings {
    fn default() -> TcpSettings {
        TcpSettings {
            mtu: 1_500,
            stamps: true,
            sack: true,
            rack: true,
            ecn: false,
            receive_max: 6 << 20,
            send_max: 4 << 20,
            initial_window: 10,
            rto_first: Nanos::from_secs(1),
            rto_margin: Nanos::from_millis(200),
            rto_max: Nanos::from_secs(120),
            syn_retries: 6,
            syn_linear: 4,
            data_retries: 15,
            delayed_ack: Nanos::from_millis(40),
            keep_alive: None,
            keep_alive_interval: Nanos::from_secs(75),
            time_wait: Nanos::from_secs(60),
            fin_wait: Nanos::from_secs(60),
        }
    }
}

impl TcpSettings {
    /// Returns the MSS that we announce, given the length of the IP header.
    pub(crate) fn mss(&self, head: usize) -> u16 {
        self.mtu.max(576) - (head + TCP_HEAD) as u16
    }

    /// Returns the smallest window scale that can express the maximum window (RFC 7323 section
    /// 2.3).
    pub(crate) fn shift(&self) -> u8 {
        (0..14).find(|shift| self.receive_max >> shift <= 0xffff).unwrap_or(14)
    }
}
