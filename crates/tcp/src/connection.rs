//! One connection: its state, and what its owner asks of it. A connection at rest is [`Tcb`]
//! alone; what is on its way in or out stands in [`Cold`], which it has only as long as it needs it.

use crate::packet::{End, Flow, Head, Outbox, flag, low_bits, with_low_bits};
use crate::seq::{Ranges, later};
use crate::settings::{FIRST_WINDOW, TcpSettings};
use sample::{FailureClass, StackFacts};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;
use units::Nanos;

/// RFC 9293 section 3.3.2, without what a client never is.
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
    /// No more: reset, failed or ended by both.
    Done,
}

/// Bits of a connection's flags.
pub(crate) mod bit {
    pub(crate) const SACK: u16 = 1;
    pub(crate) const STAMPS: u16 = 1 << 1;
    pub(crate) const ECN: u16 = 1 << 2;
    /// Our side is to end behind what is written.
    pub(crate) const FIN_DUE: u16 = 1 << 3;
    pub(crate) const FIN_SENT: u16 = 1 << 4;
    /// The peer's side has ended.
    pub(crate) const PEER_FIN: u16 = 1 << 5;
    pub(crate) const NAGLE: u16 = 1 << 6;
    /// A packet of the peer's met congestion: say so until it answers (RFC 3168 section 6.1.3).
    pub(crate) const ECHO: u16 = 1 << 7;
    pub(crate) const CWR_DUE: u16 = 1 << 8;
    /// Nobody reads any more.
    pub(crate) const ORPHAN: u16 = 1 << 9;
    /// The SYN was repeated.
    pub(crate) const SYN_AGAIN: u16 = 1 << 10;
    /// The owner waits for room to write.
    pub(crate) const BLOCKED: u16 = 1 << 11;
    /// A later segment came before an earlier one that was not lost: what is missing is given time.
    pub(crate) const REORDERS: u16 = 1 << 12;
    /// The tail was sent again by a probe, and no round trip was measured since: the next one is left to the timeout.
    pub(crate) const UNMEASURED: u16 = 1 << 13;
}

/// What a connection at rest is: 64 bytes.
#[derive(Debug)]
pub(crate) struct Tcb {
    pub(crate) cold: Option<Box<Cold>>,
    pub(crate) snd_una: u32,
    pub(crate) snd_nxt: u32,
    pub(crate) rcv_nxt: u32,
    /// The peer's window, bytes.
    pub(crate) snd_wnd: u32,
    /// Microseconds; 0 before the first sample.
    pub(crate) srtt: u32,
    pub(crate) ts_recent: u32,
    /// Our receive buffer, bytes.
    pub(crate) rcv_size: u32,
    /// The last 32 bits of its own address; the others are those of all of the stack's.
    pub(crate) host: u32,
    /// Segments.
    pub(crate) cwnd: u16,
    pub(crate) ssthresh: u16,
    /// Segments acknowledged since the window last grew (congestion avoidance).
    pub(crate) credit: u16,
    /// How far round trips are from `srtt`, in [`VARIES_BY`]; from a quarter of a backed-off timeout's margin on,
    /// where that was kept; 0 before both.
    pub(crate) rttvar: u16,
    /// When data was last sent, in [`ticks`].
    pub(crate) sent_at: u16,
    /// When the congestion window was last used to the full, in [`ticks`].
    pub(crate) full_at: u16,
    pub(crate) port: u16,
    /// The peer, by its place in the stack's list.
    pub(crate) peer: u16,
    /// Payload of a full segment without time stamps, as agreed on.
    pub(crate) mss: u16,
    pub(crate) flags: u16,
    pub(crate) retransmitted: u16,
    pub(crate) state: TcpState,
    /// The peer's shift in the lower four bits, ours above.
    pub(crate) shifts: u8,
}

const _: () = assert!(size_of::<Tcb>() == 64);

/// What a connection has that is not at rest.
#[derive(Debug)]
pub(crate) struct Cold {
    /// From `snd_una` on.
    pub(crate) send: VecDeque<u8>,
    /// Received in order and not read.
    pub(crate) receive: Vec<u8>,
    pub(crate) read: usize,
    /// Received behind that: where it lies in the packet that the stack took in last.
    pub(crate) lent: Range<u32>,
    /// Received beyond a hole: bytes from `rcv_nxt` on, of which those in `held` are there.
    pub(crate) beyond: VecDeque<u8>,
    pub(crate) held: Ranges,
    /// Where out-of-order segments came last, the latest first.
    pub(crate) latest: [u32; 3],
    pub(crate) latest_count: u8,
    /// A range that came twice (RFC 2883).
    pub(crate) twice: Option<(u32, u32)>,
    pub(crate) fin_at: Option<u32>,
    /// The right edge of the window that was last announced.
    pub(crate) announced: u32,
    /// Everything before was sent at least once.
    pub(crate) snd_max: u32,
    /// The segment by which the peer's window was last set.
    pub(crate) snd_wl1: u32,
    pub(crate) usage: WindowUsage,
    pub(crate) sacked: Ranges,
    pub(crate) duplicates: u16,
    pub(crate) recovering: bool,
    /// Recovery ends when this is acknowledged; before it no new one begins.
    pub(crate) recover: u32,
    /// The window was halved because a router was congested (RFC 3168): until this is acknowledged neither that
    /// nor a loss halves it again.
    pub(crate) eased: u32,
    pub(crate) reduction: Reduction,
    /// Everything before was sent again in this recovery.
    pub(crate) resent: u32,
    /// What was sent again in this recovery and is under way, in the order of sending.
    pub(crate) again: Vec<SentAgain>,
    /// What of it was lost again, to be sent before all else.
    pub(crate) lost_again: VecDeque<(u32, u32)>,
    /// What is not acknowledged before this was sent so long ago that it counts as lost (RFC 8985).
    pub(crate) overdue: u32,
    /// The probe of the tail that is under way (RFC 8985 section 7).
    pub(crate) probe: Option<TailProbe>,
    /// The segment that is being timed: where it ends and when it was sent.
    pub(crate) timed: Option<(u32, Nanos)>,
    pub(crate) resend_at: Nanos,
    /// When the tail is probed, or what reordering does not explain counts as lost.
    pub(crate) probe_at: Nanos,
    pub(crate) ack_at: Nanos,
    /// Bytes that came in order since the last acknowledgement.
    pub(crate) unacknowledged: u32,
    /// When the peer is asked whether it is there, or an orphan is given up.
    pub(crate) watch_at: Nanos,
    pub(crate) tries: u8,
    pub(crate) probes: u8,
    pub(crate) urgent: Option<u32>,
    pub(crate) failed: Option<FailureClass>,
}

/// How far the congestion window is used: one that is not says nothing of the path (RFC 7661), so that it
/// does not grow, and falls after a while. As Linux has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowUsage {
    /// What is said here holds until this is acknowledged.
    pub(crate) end: u32,
    /// Most bytes that were under way at once.
    pub(crate) most: u32,
    /// There was more to be sent than the window let through.
    pub(crate) full: bool,
    /// Most bytes that were under way since the window was last full.
    pub(crate) used: u32,
}

/// How a recovery comes down to the new window: by what each acknowledgement tells has arrived (Proportional
/// Rate Reduction, RFC 9937). In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reduction {
    /// The window before.
    pub(crate) window: u32,
    /// What has arrived since.
    pub(crate) delivered: u32,
    /// What was sent since, lost segments and new ones.
    pub(crate) sent: u32,
    /// What may be sent until the next acknowledgement.
    pub(crate) allowed: u32,
}

/// Microseconds: what `rttvar` is counted in, which reaches to four seconds by that.
pub(crate) const VARIES_BY: u32 = 64;

/// Our clock of time stamps, which counts milliseconds, in steps of 16 ms: it goes round in 17 minutes.
pub(crate) fn ticks(stamp: u32) -> u16 {
    (stamp >> 4) as u16
}

/// Milliseconds from then to now, as far as [`ticks`] tells.
pub(crate) fn since(then: u16, stamp: u32) -> u64 {
    u64::from(ticks(stamp).wrapping_sub(then)) << 4
}

/// A segment that was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentAgain {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Where everything ended that was sent until then.
    pub(crate) max: u32,
    pub(crate) at: Nanos,
}

/// A segment that asks for an acknowledgement of the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailProbe {
    /// Everything that was sent then ends here.
    pub(crate) end: u32,
    /// It was sent before.
    pub(crate) again: bool,
}

/// The instant of an acknowledgement that goes out when the packets are taken in that came together.
pub(crate) const WITH_BATCH: Nanos = Nanos::ZERO;
/// Buffers larger than this are given back when they are empty.
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

    /// As new, but with the buffers of before when they are small.
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

    /// Bytes that its buffers take.
    #[cfg(test)]
    pub(crate) fn buffers(&self) -> usize {
        self.send.capacity() + self.receive.capacity() + self.beyond.capacity()
    }

    pub(crate) fn unread(&self) -> usize {
        self.receive.len() - self.read + self.lent.len()
    }

    /// Copies what lies in the packet still, before the packet is no more.
    pub(crate) fn keep(&mut self, packet: &[u8]) {
        let lent = std::mem::take(&mut self.lent);
        self.receive.extend_from_slice(&packet[lent.start as usize..lent.end as usize]);
    }

    /// The earliest instant at which something is to be done.
    pub(crate) fn deadline(&self) -> Nanos {
        self.resend_at.min(self.probe_at).min(self.ack_at).min(self.watch_at)
    }
}

/// Cold parts that wait for a connection.
pub(crate) type Spares = Vec<Box<Cold>>;

/// What a connection works with.
pub(crate) struct Context<'a> {
    pub(crate) now: Nanos,
    pub(crate) settings: &'a TcpSettings,
    pub(crate) out: &'a mut Outbox,
    pub(crate) spare: &'a mut Spares,
    pub(crate) counts: &'a mut StackFacts,
    /// Challenge acknowledgements that may still be sent in this second.
    pub(crate) challenges: &'a mut u32,
    /// Our clock of time stamps, milliseconds.
    pub(crate) stamp: u32,
    /// The first of the addresses that connections come from.
    pub(crate) first: IpAddr,
    pub(crate) peer: End,
    /// Payload of the largest packet that is known to reach the peer.
    pub(crate) path_mss: u16,
    /// Where the payload that is taken in lies in its packet, if that stays until the next one comes.
    pub(crate) stays_at: Option<u32>,
}

/// Spare boxes that are kept.
const SPARE_MAX: usize = 4_096;

impl Tcb {
    /// A connection whose SYN is sent.
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

    /// Its own end, where the stack's addresses begin with `first`.
    pub(crate) fn own_end(&self, first: IpAddr) -> End {
        End { address: with_low_bits(first, self.host), port: self.port }
    }

    pub(crate) fn flow(&self, c: &Context<'_>) -> Flow {
        Flow { from: self.own_end(c.first), to: c.peer }
    }

    /// The cold part; made when there is none.
    pub(crate) fn warm(&mut self, c: &mut Context<'_>) -> &mut Cold {
        let (una, nxt, theirs) = (self.snd_una, self.snd_nxt, self.rcv_nxt);
        let edge = theirs.wrapping_add(self.rcv_size);
        self.cold.get_or_insert_with(|| {
            let mut cold = c.spare.pop().unwrap_or_else(|| Box::new(Cold::new()));
            (cold.announced, cold.snd_max, cold.recover, cold.resent) = (edge, nxt, una, una);
            // a connection at rest has taken in everything before
            (cold.overdue, cold.eased, cold.snd_wl1) = (una, una, theirs);
            cold.usage.end = una;
            cold
        })
    }

    /// Gives the cold part back when nothing is in it.
    pub(crate) fn cool(&mut self, c: &mut Context<'_>) {
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

    /// Gives the cold part back, whatever is in it.
    pub(crate) fn release(&mut self, spare: &mut Spares) {
        if let Some(mut cold) = self.cold.take()
            && spare.len() < SPARE_MAX
        {
            cold.renew();
            spare.push(cold);
        }
    }

    /// Takes bytes to be sent; `None` when it has room for none.
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
        self.cool(c);
        if taken == 0 && !bytes.is_empty() { None } else { Some(taken) }
    }

    /// One byte that is marked as urgent (RFC 9293 section 3.8.5, with the pointer behind the byte as all
    /// of today's stacks have it: RFC 6093).
    pub(crate) fn urgent(&mut self, byte: u8, c: &mut Context<'_>) {
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

    /// Copies what has come; `None` when nothing is there and more may come.
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
            // a reader that never takes all would else have all it ever read kept
            cold.receive.drain(..cold.read);
            cold.read = 0;
        }
        self.tell_window(c);
        self.cool(c);
        Some(count)
    }

    /// Hands over all that has come where the last of it lies in the stack's packet: the little that is before it
    /// is copied there. `None` when nothing lies there, or there is no room.
    pub(crate) fn take_lent(
        &mut self,
        packet: &mut [u8],
        c: &mut Context<'_>,
    ) -> Option<Range<usize>> {
        let cold = self.cold.as_mut()?;
        let before = &cold.receive[cold.read..];
        let (at, end) = (cold.lent.start as usize, cold.lent.end as usize);
        if at == end || before.len() > at {
            return None;
        }
        let start = at - before.len();
        packet[start..at].copy_from_slice(before);
        cold.receive.clear();
        (cold.read, cold.lent) = (0, 0..0);
        self.tell_window(c);
        self.cool(c);
        Some(start..end)
    }

    /// Says that the window has opened, when it has by two segments or by half (RFC 9293 section 3.8.6.2).
    fn tell_window(&mut self, c: &mut Context<'_>) {
        let window = self.window();
        // an acknowledgement that is about to go says it too
        let Some(cold) = self.cold.as_ref().filter(|cold| cold.ack_at != WITH_BATCH) else {
            return;
        };
        let told = cold.announced.wrapping_sub(self.rcv_nxt);
        let opened = window.saturating_sub(told);
        // nearly closed, so that the peer may wait for it
        let narrow = told < self.rcv_size / 2;
        if narrow && (opened >= 2 * u32::from(self.mss) || opened >= self.rcv_size / 2) {
            self.send_ack(c);
        }
    }

    /// What we can take in, bytes.
    pub(crate) fn window(&self) -> u32 {
        let unread = self.cold.as_ref().map_or(0, |cold| cold.unread() as u32);
        self.rcv_size.saturating_sub(unread)
    }

    /// Ends our side behind what is written.
    pub(crate) fn shut(&mut self, c: &mut Context<'_>) {
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

    /// The owner goes; what is written is delivered still. Unread bytes make it a reset (RFC 2525
    /// section 2.17), as does a connection that was never established.
    pub(crate) fn orphan(&mut self, c: &mut Context<'_>) {
        let unread = self.cold.as_ref().is_some_and(|cold| cold.unread() > 0);
        if self.state == TcpState::SynSent {
            self.state = TcpState::Done;
        } else if unread {
            self.abort(c);
        } else {
            self.set(bit::ORPHAN, true);
            if let Some(cold) = &mut self.cold {
                // nobody asks any more whether the peer is there
                cold.watch_at = Nanos::NEVER;
            }
            self.shut(c);
            if self.state == TcpState::FinWait2 {
                let until = c.now + c.settings.fin_wait;
                self.warm(c).watch_at = until;
            }
        }
    }

    /// Ends the connection with a reset, unless it is over.
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

    /// Ends the connection for good, when nobody will be there to answer. Whether what is under way
    /// arrives is not known: the reset comes with the number that the peer expects if it does, and if
    /// it does not (RFC 5961 section 3.2 believes no other).
    pub(crate) fn abandon(&mut self, c: &mut Context<'_>) {
        let stands = !matches!(self.state, TcpState::SynSent | TcpState::TimeWait | TcpState::Done);
        if stands && self.snd_una != self.snd_nxt {
            self.send_reset(self.snd_una, c);
        }
        self.abort(c);
    }

    /// The connection is broken: its owner is told so.
    pub(crate) fn fail(&mut self, class: FailureClass, c: &mut Context<'_>) {
        self.state = TcpState::Done;
        let cold = self.warm(c);
        (cold.resend_at, cold.ack_at, cold.watch_at) = (Nanos::NEVER, Nanos::NEVER, Nanos::NEVER);
        cold.probe_at = Nanos::NEVER;
        cold.failed = Some(class);
    }

    pub(crate) fn stamps(&self, c: &Context<'_>) -> Option<(u32, u32)> {
        self.has(bit::STAMPS).then_some((c.stamp, self.ts_recent))
    }

    /// Payload of a full segment as it goes out.
    pub(crate) fn segment(&self) -> u32 {
        let options = if self.has(bit::STAMPS) { 12 } else { 0 };
        u32::from(self.mss.saturating_sub(options).max(1))
    }
}
