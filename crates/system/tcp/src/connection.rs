//! One connection: its state and the operations of its owner. An idle connection consists only of
//! its [`Tcb`]; data in transit in either direction is in [`Cold`], which exists only while needed.

use crate::packet::{End, Flow, Head, Outbox, flag, low_bits, with_low_bits};
use crate::seq::{Ranges, later};
use crate::settings::{FIRST_WINDOW, TcpSettings};
use sample::{FailureClass, StackFacts};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;
use units::Nanos;

/// States of RFC 9293 section 3.3.2, without those that a client never enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpState {
    SynSent,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    LastAck,
    Closing,
    TimeWait,
    /// Finished: reset, failed or closed by both sides.
    Done,
}

/// Flag bits of a connection.
pub(crate) mod bit {
    pub(crate) const SACK: u16 = 1;
    pub(crate) const STAMPS: u16 = 1 << 1;
    pub(crate) const ECN: u16 = 1 << 2;
    /// Our side sends a FIN after the written data.
    pub(crate) const FIN_DUE: u16 = 1 << 3;
    pub(crate) const FIN_SENT: u16 = 1 << 4;
    /// The peer has sent its FIN.
    pub(crate) const PEER_FIN: u16 = 1 << 5;
    pub(crate) const NAGLE: u16 = 1 << 6;
    /// A packet of the peer experienced congestion: echo this until the peer responds (RFC 3168
    /// section 6.1.3).
    pub(crate) const ECHO: u16 = 1 << 7;
    pub(crate) const CWR_DUE: u16 = 1 << 8;
    /// The connection has no reader anymore.
    pub(crate) const ORPHAN: u16 = 1 << 9;
    /// The SYN was retransmitted.
    pub(crate) const SYN_AGAIN: u16 = 1 << 10;
    /// The owner waits for send buffer space.
    pub(crate) const BLOCKED: u16 = 1 << 11;
    /// A later segment arrived before an earlier one that was not lost: missing segments get more
    /// time.
    pub(crate) const REORDERS: u16 = 1 << 12;
    /// The tail was retransmitted by a probe and no round trip was measured since: the next tail
    /// loss is left to the timeout.
    pub(crate) const UNMEASURED: u16 = 1 << 13;
}

/// An idle connection: 64 bytes.
#[derive(Debug)]
pub(crate) struct Tcb {
    pub(crate) cold: Option<Box<Cold>>,
    pub(crate) snd_una: u32,
    pub(crate) snd_nxt: u32,
    pub(crate) rcv_nxt: u32,
    /// The send window (offered by the peer), bytes.
    pub(crate) snd_wnd: u32,
    /// Microseconds; 0 before the first sample.
    pub(crate) srtt: u32,
    pub(crate) ts_recent: u32,
    /// Receive buffer size, bytes.
    pub(crate) rcv_size: u32,
    /// Last 32 bits of the local address; the other bits are the same for all connections of the
    /// stack.
    pub(crate) host: u32,
    /// Congestion window, segments.
    pub(crate) cwnd: u16,
    pub(crate) ssthresh: u16,
    /// Segments acknowledged since the window last grew (congestion avoidance).
    pub(crate) credit: u16,
    /// Deviation of round trips from `srtt`, in units of [`VARIES_BY`]; if a backed-off timeout was
    /// kept, a quarter of its margin or more; 0 before both.
    pub(crate) rttvar: u16,
    /// Time at which data was last sent, in [`ticks`].
    pub(crate) sent_at: u16,
    /// Time at which the congestion window was last fully used, in [`ticks`].
    pub(crate) full_at: u16,
    pub(crate) port: u16,
    /// Index of the peer in the list of the stack.
    pub(crate) peer: u16,
    /// Payload of a full segment without timestamps, as negotiated.
    pub(crate) mss: u16,
    pub(crate) flags: u16,
    pub(crate) retransmitted: u16,
    pub(crate) state: TcpState,
    /// Window scale of the peer in the lower four bits, ours in the upper four.
    pub(crate) shifts: u8,
}

const _: () = assert!(size_of::<Tcb>() == 64);

/// The state of a connection that is not idle.
#[derive(Debug)]
pub(crate) struct Cold {
    /// Data from `snd_una` on.
    pub(crate) send: VecDeque<u8>,
    /// Data received in order and not yet read.
    pub(crate) receive: Vec<u8>,
    pub(crate) read: usize,
    /// Data received after `receive`: a range of the last packet delivered to the stack.
    pub(crate) lent: Range<u32>,
    /// Data received beyond a hole: bytes from `rcv_nxt` on, valid where `held` covers them.
    pub(crate) beyond: VecDeque<u8>,
    pub(crate) held: Ranges,
    /// Positions of the latest out-of-order segments, latest first.
    pub(crate) latest: [u32; 3],
    pub(crate) latest_count: u8,
    /// A range that arrived twice (RFC 2883).
    pub(crate) twice: Option<(u32, u32)>,
    pub(crate) fin_at: Option<u32>,
    /// The right edge of the window last advertised.
    pub(crate) announced: u32,
    /// Everything before this was sent at least once.
    pub(crate) snd_max: u32,
    /// The segment that last updated the send window.
    pub(crate) snd_wl1: u32,
    pub(crate) usage: WindowUsage,
    pub(crate) sacked: Ranges,
    pub(crate) duplicates: u16,
    pub(crate) recovering: bool,
    /// Sequence number whose acknowledgment ends the recovery; until then no new one starts.
    pub(crate) recover: u32,
    /// The window was halved because of congestion at a router (RFC 3168): until this is
    /// acknowledged, neither another mark nor a loss halves it again.
    pub(crate) eased: u32,
    pub(crate) reduction: Reduction,
    /// Everything before this was retransmitted in this recovery.
    pub(crate) resent: u32,
    /// Retransmissions of this recovery in flight, in the order they were sent.
    pub(crate) again: Vec<SentAgain>,
    /// Retransmissions that were lost again; they are sent before everything else.
    pub(crate) lost_again: VecDeque<(u32, u32)>,
    /// Limit before which unacknowledged data counts as lost because of its age (RFC 8985).
    pub(crate) overdue: u32,
    /// The tail loss probe in flight (RFC 8985 section 7).
    pub(crate) probe: Option<TailProbe>,
    /// The segment being timed: its end and when it was sent.
    pub(crate) timed: Option<(u32, Nanos)>,
    pub(crate) resend_at: Nanos,
    /// Instant at which to send a tail loss probe, or at which missing data counts as lost because
    /// reordering no longer explains it.
    pub(crate) probe_at: Nanos,
    pub(crate) ack_at: Nanos,
    /// Bytes received in order since the last acknowledgment.
    pub(crate) unacknowledged: u32,
    /// Instant of the next keep-alive probe, or of abandoning an orphan.
    pub(crate) watch_at: Nanos,
    pub(crate) tries: u8,
    pub(crate) probes: u8,
    pub(crate) urgent: Option<u32>,
    pub(crate) failed: Option<FailureClass>,
}

/// Use of the congestion window: an unused window says nothing about the path (RFC 7661), so it
/// does not grow and is reduced after a while, as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowUsage {
    /// This record is valid until this is acknowledged.
    pub(crate) end: u32,
    /// Maximum number of bytes in flight.
    pub(crate) most: u32,
    /// More data was waiting than the window allowed.
    pub(crate) full: bool,
    /// Maximum number of bytes in flight since the window was last fully used.
    pub(crate) used: u32,
}

/// Reduction of the window during a recovery, by the bytes that each acknowledgment reports as
/// delivered (Proportional Rate Reduction, RFC 9937). In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reduction {
    /// The window before the reduction.
    pub(crate) window: u32,
    /// Number of bytes delivered since.
    pub(crate) delivered: u32,
    /// Bytes sent since, retransmitted and new.
    pub(crate) sent: u32,
    /// Number of bytes that may be sent until the next acknowledgment.
    pub(crate) allowed: u32,
}

/// Unit of `rttvar` in microseconds, which lets it reach four seconds.
pub(crate) const VARIES_BY: u32 = 64;

/// Returns the time of our timestamp clock in steps of 16 ms: it wraps after 17 minutes.
pub(crate) fn ticks(stamp: u32) -> u16 {
    (stamp >> 4) as u16
}

/// Returns the number of milliseconds from `then` to now, with the precision of [`ticks`].
pub(crate) fn since(then: u16, stamp: u32) -> u64 {
    u64::from(ticks(stamp).wrapping_sub(then)) << 4
}

/// Retransmitted segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentAgain {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The end of everything that had been sent at that time.
    pub(crate) max: u32,
    pub(crate) at: Nanos,
}

/// Tail loss probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailProbe {
    /// The end of everything that had been sent at that time.
    pub(crate) end: u32,
    /// The segment was a retransmission.
    pub(crate) again: bool,
}

/// Due time of an acknowledgment that is sent at the end of a batch of packets.
pub(crate) const WITH_BATCH: Nanos = Nanos::ZERO;
/// Buffers larger than this are freed when empty.
const KEEP_BUFFER: usize = 16 << 10;

impl Cold {
    pub(crate) fn new() -> Cold {
        Cold {
            send: VecDeque::new(),
            receive: Vec::new(),
            read: 0,
            lent: 0..0,
            beyond: VecDeque::new(),
            held: Ranges::default(),
            latest: [0; 3],
            latest_count: 0,
            twice: None,
            fin_at: None,
            announced: 0,
            snd_max: 0,
            snd_wl1: 0,
            usage: WindowUsage::default(),
            sacked: Ranges::default(),
            duplicates: 0,
            recovering: false,
            recover: 0,
            eased: 0,
            reduction: Reduction::default(),
            resent: 0,
            again: Vec::new(),
            lost_again: VecDeque::new(),
            overdue: 0,
            probe: None,
            timed: None,
            resend_at: Nanos::NEVER,
            probe_at: Nanos::NEVER,
            ack_at: Nanos::NEVER,
            unacknowledged: 0,
            watch_at: Nanos::NEVER,
            tries: 0,
            probes: 0,
            urgent: None,
            failed: None,
        }
    }

    /// Resets to the initial state, but keeps small buffers.
    fn renew(&mut self) {
        let mut fresh = Cold::new();
        if self.send.capacity() <= KEEP_BUFFER {
            self.send.clear();
            std::mem::swap(&mut fresh.send, &mut self.send);
        }
        if self.receive.capacity() <= KEEP_BUFFER {
            self.receive.clear();
            std::mem::swap(&mut fresh.receive, &mut self.receive);
        }
        *self = fresh;
    }

    /// Returns the memory used by its buffers in bytes.
    #[cfg(test)]
    pub(crate) fn buffers(&self) -> usize {
        self.send.capacity() + self.receive.capacity() + self.beyond.capacity()
    }

    pub(crate) fn unread(&self) -> usize {
        self.receive.len() - self.read + self.lent.len()
    }

    /// Copies the bytes still in the packet before the packet is overwritten.
    pub(crate) fn keep(&mut self, packet: &[u8]) {
        let lent = std::mem::take(&mut self.lent);
        self.receive.extend_from_slice(&packet[lent.start as usize..lent.end as usize]);
    }

    /// Returns the earliest time at which something is due.
    pub(crate) fn deadline(&self) -> Nanos {
        self.resend_at.min(self.probe_at).min(self.ack_at).min(self.watch_at)
    }
}

/// Pool of unused cold parts.
pub(crate) type Spares = Vec<Box<Cold>>;

/// The environment in which a connection operates.
pub(crate) struct Context<'a> {
    pub(crate) now: Nanos,
    pub(crate) settings: &'a TcpSettings,
    pub(crate) out: &'a mut Outbox,
    pub(crate) spare: &'a mut Spares,
    pub(crate) counts: &'a mut StackFacts,
    /// Challenge ACKs left in the current second.
    pub(crate) challenges: &'a mut u32,
    /// Our timestamp clock, milliseconds.
    pub(crate) stamp: u32,
    /// The first of the local addresses.
    pub(crate) first: IpAddr,
    pub(crate) peer: End,
    /// Payload of the largest packet known to reach the peer.
    pub(crate) path_mss: u16,
    /// Offset of the received payload in its packet, if the packet stays in memory until the next
    /// one arrives.
    pub(crate) stays_at: Option<u32>,
}

/// Maximum number of pooled boxes.
const SPARE_MAX: usize = 4_096;

impl Tcb {
    /// Creates a connection that has sent its SYN.
    pub(crate) fn open(end: End, peer: u16, iss: u32, nodelay: bool, c: &mut Context<'_>) -> Self {
        let mut new = Tcb {
            cold: None,
            snd_una: iss,
            snd_nxt: iss.wrapping_add(1),
            rcv_nxt: 0,
            snd_wnd: 0,
            srtt: 0,
            ts_recent: 0,
            rcv_size: FIRST_WINDOW.min(c.settings.receive_max),
            host: low_bits(end.address),
            cwnd: c.settings.initial_window.max(1),
            ssthresh: u16::MAX,
            credit: 0,
            rttvar: 0,
            sent_at: ticks(c.stamp),
            full_at: ticks(c.stamp),
            port: end.port,
            peer,
            mss: c.settings.mss(end.head()),
            flags: if nodelay { 0 } else { bit::NAGLE },
            retransmitted: 0,
            state: TcpState::SynSent,
            shifts: c.settings.shift() << 4,
        };
        let now = c.now;
        let rto = c.settings.rto_first;
        let cold = new.warm(c);
        cold.timed = Some((iss.wrapping_add(1), now));
        cold.resend_at = now + rto;
        new.send_syn(c);
        new
    }

    pub(crate) fn has(&self, bits: u16) -> bool {
        self.flags & bits != 0
    }

    pub(crate) fn set(&mut self, bits: u16, on: bool) {
        self.flags = if on { self.flags | bits } else { self.flags & !bits };
    }

    pub(crate) fn shift_in(&self) -> u8 {
        self.shifts & 15
    }

    pub(crate) fn shift_out(&self) -> u8 {
        self.shifts >> 4
    }

    /// Returns local address and port, given the first address of the stack.
    pub(crate) fn own_end(&self, first: IpAddr) -> End {
        End { address: with_low_bits(first, self.host), port: self.port }
    }

    pub(crate) fn flow(&self, c: &Context<'_>) -> Flow {
        Flow { from: self.own_end(c.first), to: c.peer }
    }

    /// Returns the cold part, created if needed.
    pub(crate) fn warm(&mut self, c: &mut Context<'_>) -> &mut Cold {
        let una = self.snd_una;
        let nxt = self.snd_nxt;
        let theirs = self.rcv_nxt;
        let edge = theirs.wrapping_add(self.rcv_size);
        self.cold.get_or_insert_with(|| {
            let mut cold = c.spare.pop().unwrap_or_else(|| Box::new(Cold::new()));
            cold.announced = edge;
            cold.snd_max = nxt;
            cold.recover = una;
            cold.resent = una;
            // an idle connection has received everything before
            cold.overdue = una;
            cold.eased = una;
            cold.snd_wl1 = theirs;
            cold.usage.end = una;
            cold
        })
    }

    /// Returns the cold part to the pool if it is empty.
    pub(crate) fn release_cold_part(&mut self, c: &mut Context<'_>) {
        let state =
            matches!(self.state, TcpState::Established | TcpState::CloseWait | TcpState::TimeWait)
                || self.state == TcpState::FinWait2 && !self.has(bit::ORPHAN);
        let idle = |cold: &Cold| {
            cold.deadline() == Nanos::NEVER
                && cold.send.is_empty()
                && cold.unread() == 0
                && cold.held.as_slice().is_empty()
                && cold.fin_at.is_none()
                && cold.failed.is_none()
        };
        if state && self.cold.as_deref().is_some_and(idle) {
            self.release(c.spare);
        }
    }

    /// Returns the cold part to the pool with any content.
    pub(crate) fn release(&mut self, spare: &mut Spares) {
        if let Some(mut cold) = self.cold.take()
            && spare.len() < SPARE_MAX
        {
            cold.renew();
            spare.push(cold);
        }
    }

    /// Accepts bytes to send; returns `None` if the send buffer is full.
    pub(crate) fn write(&mut self, bytes: &[u8], c: &mut Context<'_>) -> Option<usize> {
        if self.state == TcpState::SynSent {
            self.set(bit::BLOCKED, true);
            return None;
        }
        let most = c.settings.send_max as usize;
        let cold = self.warm(c);
        let taken = bytes.len().min(most.saturating_sub(cold.send.len()));
        cold.send.extend(&bytes[..taken]);
        if taken < bytes.len() {
            self.set(bit::BLOCKED, true);
        }
        if taken > 0 {
            self.restart_after_idle(c);
            self.output(c);
        }
        self.release_cold_part(c);
        if taken == 0 && !bytes.is_empty() { None } else { Some(taken) }
    }

    /// Sends one byte marked as urgent (RFC 9293 section 3.8.5; the pointer points after the byte,
    /// as in all current stacks: RFC 6093).
    pub(crate) fn send_urgent(&mut self, byte: u8, c: &mut Context<'_>) {
        if matches!(self.state, TcpState::Established | TcpState::CloseWait)
            && !self.has(bit::FIN_DUE)
        {
            let una = self.snd_una;
            let cold = self.warm(c);
            cold.send.push_back(byte);
            cold.urgent = Some(una.wrapping_add(cold.send.len() as u32));
            self.output(c);
        }
    }

    /// Copies received data; returns `None` if no data is available and more may arrive.
    pub(crate) fn read(&mut self, into: &mut [u8], c: &mut Context<'_>) -> Option<usize> {
        let Some(cold) = &mut self.cold else {
            return self.has(bit::PEER_FIN).then_some(0);
        };
        if cold.unread() == 0 {
            return self.has(bit::PEER_FIN).then_some(0);
        }
        let count = cold.unread().min(into.len());
        into[..count].copy_from_slice(&cold.receive[cold.read..cold.read + count]);
        cold.read += count;
        if cold.unread() == 0 {
            cold.receive.clear();
            cold.read = 0;
        } else if cold.read > cold.receive.len() / 2 {
            // otherwise a reader that never reads everything would keep all data it has ever read
            // in memory
            cold.receive.drain(..cold.read);
            cold.read = 0;
        }
        self.announce_window(c);
        self.release_cold_part(c);
        Some(count)
    }

    /// Returns the place of all received data in the packet buffer of the stack; the few bytes
    /// before the packet's data are copied in front of it. `None` if no data is in the packet
    /// buffer or there is no headroom.
    pub(crate) fn take_lent(
        &mut self,
        packet: &mut [u8],
        c: &mut Context<'_>,
    ) -> Option<Range<usize>> {
        let cold = self.cold.as_mut()?;
        let before = &cold.receive[cold.read..];
        let at = cold.lent.start as usize;
        let end = cold.lent.end as usize;
        if at == end || before.len() > at {
            return None;
        }
        let start = at - before.len();
        packet[start..at].copy_from_slice(before);
        cold.receive.clear();
        cold.read = 0;
        cold.lent = 0..0;
        self.announce_window(c);
        self.release_cold_part(c);
        Some(start..end)
    }

    /// Advertises the window if it has opened by two segments or by half (RFC 9293 section
    /// 3.8.6.2).
    fn announce_window(&mut self, c: &mut Context<'_>) {
        let window = self.window();
        // a pending acknowledgment advertises it too
        let Some(cold) = self.cold.as_ref().filter(|cold| cold.ack_at != WITH_BATCH) else {
            return;
        };
        let announced = cold.announced.wrapping_sub(self.rcv_nxt);
        let opened = window.saturating_sub(announced);
        // nearly closed, so the peer may be waiting
        let narrow = announced < self.rcv_size / 2;
        if narrow && (opened >= 2 * u32::from(self.mss) || opened >= self.rcv_size / 2) {
            self.send_ack(c);
        }
    }

    /// Returns the receive window, bytes.
    pub(crate) fn window(&self) -> u32 {
        let unread = self.cold.as_ref().map_or(0, |cold| cold.unread() as u32);
        self.rcv_size.saturating_sub(unread)
    }

    /// Sends a FIN after the written data.
    pub(crate) fn shutdown_write(&mut self, c: &mut Context<'_>) {
        if self.has(bit::FIN_DUE) {
            return;
        }
        match self.state {
            TcpState::Established | TcpState::CloseWait => {
                self.set(bit::FIN_DUE, true);
                self.warm(c);
                self.output(c);
            }
            TcpState::SynSent => self.set(bit::FIN_DUE, true),
            _ => {}
        }
    }

    /// Drops the connection for its owner; written data is still delivered. With unread data it is
    /// reset (RFC 2525 section 2.17), as is a connection that was never established.
    pub(crate) fn orphan(&mut self, c: &mut Context<'_>) {
        let unread = self.cold.as_ref().is_some_and(|cold| cold.unread() > 0);
        if self.state == TcpState::SynSent {
            self.state = TcpState::Done;
        } else if unread {
            self.abort(c);
        } else {
            self.set(bit::ORPHAN, true);
            if let Some(cold) = &mut self.cold {
                // keep-alive probes stop without an owner
                cold.watch_at = Nanos::NEVER;
            }
            self.shutdown_write(c);
            if self.state == TcpState::FinWait2 {
                let until = c.now + c.settings.fin_wait;
                self.warm(c).watch_at = until;
            }
        }
    }

    /// Resets the connection unless it is finished.
    pub(crate) fn abort(&mut self, c: &mut Context<'_>) {
        match self.state {
            TcpState::SynSent | TcpState::TimeWait | TcpState::Done => {}
            _ => {
                let seq =
                    later(self.snd_nxt, self.cold.as_ref().map_or(self.snd_nxt, |x| x.snd_max));
                self.send_reset(seq, c);
            }
        }
        self.state = TcpState::Done;
    }

    fn send_reset(&self, seq: u32, c: &mut Context<'_>) {
        let head = Head {
            seq,
            ack: self.rcv_nxt,
            flags: flag::RST | flag::ACK,
            stamps: self.stamps(c),
            ..Head::default()
        };
        c.out.push(&self.flow(c), &head, [&[], &[]]);
        c.counts.resets_sent += 1;
        c.counts.sent += 1;
    }

    /// Resets the connection when replies are no longer processed. It is unknown whether the data
    /// in flight arrives: resets are sent for both sequence numbers that the peer may expect (RFC
    /// 5961 section 3.2 accepts no other).
    pub(crate) fn abandon(&mut self, c: &mut Context<'_>) {
        let is_open =
            !matches!(self.state, TcpState::SynSent | TcpState::TimeWait | TcpState::Done);
        if is_open && self.snd_una != self.snd_nxt {
            self.send_reset(self.snd_una, c);
        }
        self.abort(c);
    }

    /// Fails the connection and notifies the owner.
    pub(crate) fn fail(&mut self, class: FailureClass, c: &mut Context<'_>) {
        self.state = TcpState::Done;
        let cold = self.warm(c);
        cold.resend_at = Nanos::NEVER;
        cold.ack_at = Nanos::NEVER;
        cold.watch_at = Nanos::NEVER;
        cold.probe_at = Nanos::NEVER;
        cold.failed = Some(class);
    }

    pub(crate) fn stamps(&self, c: &Context<'_>) -> Option<(u32, u32)> {
        self.has(bit::STAMPS).then_some((c.stamp, self.ts_recent))
    }

    /// Returns the payload of a full segment as sent.
    pub(crate) fn segment(&self) -> u32 {
        let options = if self.has(bit::STAMPS) { 12 } else { 0 };
        u32::from(self.mss.saturating_sub(options).max(1))
    }
}
