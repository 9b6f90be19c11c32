//! What the connections of a stack have in common.

use crate::packet::TCP_HEAD;
use units::Nanos;

/// How connections behave; the default is what Linux does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSettings {
    /// Largest IP packet, bytes; at least 576.
    pub mtu: u16,
    /// Offer time stamps (RFC 7323).
    pub stamps: bool,
    /// Offer selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Take by time what sent later segments were acknowledged before for lost, and probe the tail (RACK
    /// and TLP, RFC 8985), where selective acknowledgements are agreed on.
    pub rack: bool,
    /// Ask for explicit congestion notification (RFC 3168). Linux's clients do not.
    pub ecn: bool,
    /// Most bytes that the receive window grows to.
    pub receive_max: u32,
    /// Most bytes that one connection takes in to be sent.
    pub send_max: u32,
    /// Segments in flight at the beginning (RFC 6928: 10).
    pub initial_window: u16,
    /// The timeout before a round trip has been measured (RFC 6298 section 2.1: 1 s).
    pub rto_first: Nanos,
    /// The least that is added to the smoothed round-trip time (Linux: 200 ms).
    pub rto_margin: Nanos,
    /// The longest timeout (Linux: 120 s).
    pub rto_max: Nanos,
    /// How often a SYN is repeated behind the first repetitions (Linux: 6, which takes 131 s in all).
    pub syn_retries: u8,
    /// How many of the first repetitions come after the same span (Linux 6.5 and later: 4).
    pub syn_linear: u8,
    /// How often data is repeated before the connection is given up (Linux: 15).
    pub data_retries: u8,
    /// How long an acknowledgement waits for something to ride on (Linux: 40 ms).
    pub delayed_ack: Nanos,
    /// After so long without a segment the peer is asked whether it is there; never when `None`.
    pub keep_alive: Option<Nanos>,
    /// Between such questions, of which nine go unanswered at most (Linux: 75 s).
    pub keep_alive_interval: Nanos,
    /// How long a tuple rests after we closed first.
    pub time_wait: Nanos,
    /// How long a closed connection waits for the peer's FIN.
    pub fin_wait: Nanos,
}

/// Unanswered questions after which a peer is taken for gone (Linux: 9).
pub(crate) const KEEP_ALIVE_PROBES: u8 = 9;
/// The window of a SYN (Linux: 64,240, which is 44 segments of 1,460 bytes).
pub(crate) const FIRST_WINDOW: u32 = 64_240;
/// Full segments of a connection that are acknowledged one by one, for its peer to start by; later ones
/// two by two (Linux: TCP_MAX_QUICKACKS).
pub(crate) const ONE_BY_ONE: u32 = 16;
/// The smallest MSS that is believed (Linux's tcp_min_snd_mss is 48).
pub(crate) const MSS_MIN: u16 = 48;
/// The smallest MSS that a router's word about a path leaves (Linux's min_pmtu is 552): a forged one is to
/// do little harm.
pub(crate) const PATH_MSS_MIN: u16 = 536;
/// What a peer takes that names no MSS (RFC 9293 section 3.7.1).
pub(crate) const MSS_UNSAID: u16 = 536;

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
    /// The MSS that we name, behind so many bytes of IP's head.
    pub(crate) fn mss(&self, head: usize) -> u16 {
        self.mtu.max(576) - (head + TCP_HEAD) as u16
    }

    /// The least shift that can express the largest window (RFC 7323 section 2.3).
    pub(crate) fn shift(&self) -> u8 {
        (0..14).find(|shift| self.receive_max >> shift <= 0xffff).unwrap_or(14)
    }
}
