//! Processing of arriving segments (RFC 9293 section 3.10.7, with RFC 5961 against forged segments
//! and RFC 7323 against old ones).

use crate::connection::{Cold, Context, Tcb, TcpState, VARIES_BY, WITH_BATCH, bit};
use crate::packet::{Head, flag};
use crate::seq::{before, later, not_after};
use crate::settings::{FIRST_WINDOW, MSS_DEFAULT, MSS_MIN, ONE_BY_ONE};
use sample::FailureClass;
use units::Nanos;

/// Maximum number of times that a SYN is retransmitted at once after a reply that belongs to an
/// earlier connection.
const AT_ONCE_MAX: u8 = 3;
/// Microseconds: the first timeout of a connection whose SYN was retransmitted and that has no
/// round-trip sample.
const RTO_AFTER_SYN: u64 = 3_000_000;
/// Microseconds: longer round-trip samples are discarded.
const SAMPLE_MAX: u32 = 120_000_000;

/// Events for the owner of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FromSegment {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) ended: bool,
}

impl FromSegment {
    const END: FromSegment = FromSegment { readable: true, writable: true, ended: true };
}

impl Tcb {
    pub(crate) fn arrive(
        &mut self,
        head: &Head,
        payload: &[u8],
        c: &mut Context<'_>,
    ) -> FromSegment {
        let events = match self.state {
            TcpState::SynSent => self.arrive_unconnected(head, c),
            TcpState::Done => FromSegment::default(),
            _ => self.arrive_connected(head, payload, c),
        };
        self.release_cold_part(c);
        events
    }

    fn arrive_unconnected(&mut self, head: &Head, c: &mut Context<'_>) -> FromSegment {
        let fits = head.has(flag::ACK) && head.ack == self.snd_nxt;
        if head.has(flag::ACK) && !fits {
            if !head.has(flag::RST) {
                self.reset_stale_peer(head, c);
            }
            return FromSegment::default();
        }
        if head.has(flag::RST) {
            if fits {
                c.counts.resets_received += 1;
                self.fail(FailureClass::Refused, c);
                return FromSegment::END;
            }
            return FromSegment::default();
        }
        // a SYN without ACK would be a simultaneous open, which no server does
        if !head.has(flag::SYN) || !fits {
            return FromSegment::default();
        }
        self.establish(head, c);
        let events = FromSegment { writable: self.has(bit::BLOCKED), ..FromSegment::default() };
        self.set(bit::BLOCKED, false);
        events
    }

    /// Handles a peer with state of an earlier connection with the same addresses and ports: resets
    /// that connection and retransmits the SYN at once.
    fn reset_stale_peer(&mut self, head: &Head, c: &mut Context<'_>) {
        let reset = Head { seq: head.ack, flags: flag::RST, ..Head::default() };
        c.out.push(&self.flow(c), &reset, [&[], &[]]);
        c.counts.resets_sent += 1;
        c.counts.sent += 1;
        let Some(cold) = &mut self.cold else { return };
        if cold.probes < AT_ONCE_MAX {
            cold.probes += 1;
            // it is unknown which of the two SYNs a reply acknowledges (Karn)
            cold.timed = None;
            self.send_syn(c);
        }
    }

    fn establish(&mut self, head: &Head, c: &mut Context<'_>) {
        let settings = c.settings;
        self.state = TcpState::Established;
        c.counts.established += 1;
        self.rcv_nxt = head.seq.wrapping_add(1);
        self.snd_una = head.ack;
        self.snd_wnd = u32::from(head.window);
        let theirs = head.mss.unwrap_or(MSS_DEFAULT).max(MSS_MIN);
        self.mss = theirs.min(settings.mss(c.peer.head())).min(c.path_mss);
        self.set(bit::SACK, settings.sack && head.sack_permitted);
        self.set(bit::STAMPS, settings.stamps && head.stamps.is_some());
        self.set(bit::ECN, settings.ecn && head.flags & (flag::ECE | flag::CWR) == flag::ECE);
        self.ts_recent = head.stamps.map_or(0, |stamps| stamps.0);
        self.shifts = match head.shift {
            Some(theirs) => self.shifts & 0xf0 | theirs,
            None => 0,
        };
        if self.has(bit::SYN_AGAIN) && !self.has(bit::STAMPS) {
            // RFC 5681 section 3.1: after a lost SYN the initial window is one segment; RFC 6298
            // (5.7): and the timeout is 3 s. If timestamps are echoed, the round trip is measured
            // anyway, and Linux keeps its initial window after a lost SYN.
            self.cwnd = 1;
            self.vary(RTO_AFTER_SYN / 4);
        }
        let edge = self.rcv_nxt.wrapping_add(self.rcv_size);
        let now = c.now;
        let nxt = self.snd_nxt;
        let watch = settings.keep_alive;
        let timed = self.cold.as_mut().and_then(|cold| cold.timed.take());
        if let Some(cold) = &mut self.cold {
            cold.announced = edge;
            cold.snd_max = nxt;
            cold.recover = nxt;
            cold.eased = nxt;
            cold.snd_wl1 = head.seq;
            cold.usage.end = nxt;
            cold.resend_at = Nanos::NEVER;
            cold.tries = 0;
            cold.probes = 0;
            cold.watch_at = watch.map_or(Nanos::NEVER, |after| now + after);
        }
        match timed {
            Some((_, at)) => self.measure(now - at, true, c),
            None => self.measure_by_stamps(head, c),
        }
        self.send_ack(c);
        if self.has(bit::FIN_DUE) {
            self.output(c);
        }
    }

    fn arrive_connected(
        &mut self,
        head: &Head,
        payload: &[u8],
        c: &mut Context<'_>,
    ) -> FromSegment {
        let length = payload.len() as u32 + u32::from(head.has(flag::FIN));
        if let (true, Some((value, _))) = (self.has(bit::STAMPS), head.stamps)
            && before(value, self.ts_recent)
            && !head.has(flag::RST)
        {
            // an old duplicate (PAWS)
            self.refuse(head.seq, length, None, c);
            return FromSegment::default();
        }
        if !self.acceptable(head.seq, length) {
            if !head.has(flag::RST) {
                let twice = payload.len() as u32;
                let twice = (twice > 0 && before(head.seq, self.rcv_nxt))
                    .then(|| (head.seq, head.seq.wrapping_add(twice)));
                self.refuse(head.seq, length, twice, c);
            }
            return FromSegment::default();
        }
        if head.has(flag::RST) {
            if head.seq != self.rcv_nxt {
                self.challenge(c);
                return FromSegment::default();
            }
            c.counts.resets_received += 1;
            if self.state == TcpState::TimeWait {
                return FromSegment::default();
            }
            self.fail(FailureClass::Reset, c);
            return FromSegment::END;
        }
        if head.has(flag::SYN) {
            self.challenge(c);
            return FromSegment::default();
        }
        let newest =
            self.cold.as_ref().map_or(self.snd_nxt, |cold| later(cold.snd_max, self.snd_nxt));
        // RFC 5961 section 5; an acknowledgment older than one window counts as forged too
        let ancient = before(head.ack, self.snd_una.wrapping_sub(self.snd_wnd.max(0xffff)));
        if !head.has(flag::ACK) || before(newest, head.ack) || ancient {
            if head.has(flag::ACK) {
                self.challenge(c);
            }
            return FromSegment::default();
        }
        if let (true, Some((value, _))) = (self.has(bit::STAMPS), head.stamps)
            && not_after(head.seq, self.acknowledged_to())
        {
            self.ts_recent = value;
        }
        let mut events = self.acknowledged(head, payload.len(), c);
        if self.state != TcpState::Done && length > 0 {
            self.take_in(head, payload, &mut events, c);
        }
        events
    }

    /// Returns the point up to which the peer has our acknowledgment: the timestamp of the first
    /// segment after that is echoed, so that the sender measures the delay of our acknowledgments
    /// too (RFC 7323 section 4.3).
    fn acknowledged_to(&self) -> u32 {
        let held_back = self.cold.as_ref().map_or(0, |cold| cold.unacknowledged);
        self.rcv_nxt.wrapping_sub(held_back)
    }

    /// Returns whether the segment is within the receive window (RFC 9293 section 3.10.7.4).
    fn acceptable(&self, seq: u32, length: u32) -> bool {
        let edge = self.edge();
        let end = seq.wrapping_add(length);
        if edge == self.rcv_nxt {
            return seq == self.rcv_nxt;
        }
        let reaches =
            if length == 0 { not_after(self.rcv_nxt, end) } else { before(self.rcv_nxt, end) };
        before(seq, edge) && reaches
    }

    /// Returns the right edge of the receive window.
    fn edge(&self) -> u32 {
        match &self.cold {
            Some(cold) => cold.announced,
            None => self.rcv_nxt.wrapping_add(self.rcv_size),
        }
    }

    /// Replies to an unacceptable segment: to data at once, because its sender may be waiting; to
    /// others at a limited rate, because two endpoints could otherwise reply to each other
    /// endlessly.
    fn refuse(&mut self, seq: u32, length: u32, twice: Option<(u32, u32)>, c: &mut Context<'_>) {
        c.counts.duplicate += 1;
        // a keep-alive probe, or a retransmitted SYN-ACK: our acknowledgment was lost
        let asks = seq == self.rcv_nxt.wrapping_sub(1);
        if length == 0 && !asks {
            return self.challenge(c);
        }
        if self.has(bit::SACK) && twice.is_some() {
            self.warm(c).twice = twice;
        }
        self.send_ack(c);
    }

    fn measure_by_stamps(&mut self, head: &Head, c: &Context<'_>) {
        if let (true, Some((_, echo))) = (self.has(bit::STAMPS), head.stamps)
            && echo != 0
        {
            let millis = c.stamp.wrapping_sub(echo);
            if u64::from(millis) * 1_000 < u64::from(SAMPLE_MAX) {
                self.measure(Nanos::from_millis(u64::from(millis)), false, c);
            }
        }
    }

    /// Processes a round-trip sample (RFC 6298 section 2). Timestamps yield many samples per round
    /// trip: every sample may raise the deviation, but only the `timed` one lowers it, and never
    /// below the minimum margin of the timeout. Linux keeps the largest deviation of a round trip
    /// for this purpose.
    fn measure(&mut self, span: Nanos, timed: bool, c: &Context<'_>) {
        let sample = (span.0 / 1_000).clamp(1, u64::from(SAMPLE_MAX)) as u32;
        self.set(bit::UNMEASURED, false);
        if self.srtt == 0 {
            self.srtt = sample;
            return self.vary(u64::from(sample / 2));
        }
        let off = u64::from(self.srtt.abs_diff(sample));
        self.srtt = ((7 * u64::from(self.srtt) + u64::from(sample)) / 8).max(1) as u32;
        let varied = u64::from(self.rttvar) * u64::from(VARIES_BY);
        if timed || off > varied {
            let off = off.max(c.settings.rto_margin.0 / 4_000).min(off.max(varied));
            self.vary((3 * varied + off) / 4);
        }
    }

    /// Keeps the backed-off timeout after retransmitted data, which yields no sample (Karn; RFC
    /// 6298 section 5); otherwise a path that became slower would never be measured. Each later
    /// sample removes a quarter of the backoff.
    #[cold]
    fn keep_timeout(&mut self, tries: u8, c: &Context<'_>) {
        let micros = self.rto_after(tries, c).0 / 1_000;
        self.vary(micros.saturating_sub(u64::from(self.srtt)) / 4);
    }

    /// Stores the deviation of round trips, in microseconds.
    fn vary(&mut self, by: u64) {
        self.rttvar = by.div_ceil(u64::from(VARIES_BY)).min(u64::from(u16::MAX)) as u16;
    }

    fn acknowledged(&mut self, head: &Head, payload: usize, c: &mut Context<'_>) -> FromSegment {
        let mut events = FromSegment::default();
        let old_window = self.snd_wnd;
        let latest = self.cold.as_ref().map_or(self.rcv_nxt, |cold| cold.snd_wl1);
        let newer = before(self.snd_una, head.ack) || not_after(latest, head.seq);
        if newer && not_after(self.snd_una, head.ack) {
            self.snd_wnd = u32::from(head.window) << self.shift_in();
            if let Some(cold) = &mut self.cold {
                cold.snd_wl1 = head.seq;
            }
        }
        if self.has(bit::ECN) && head.has(flag::ECE) && !self.has(bit::CWR_DUE) {
            self.congested(c);
        }
        let watch = c.settings.keep_alive.filter(|_| !self.has(bit::ORPHAN));
        let watch = watch.map(|after| c.now + after);
        if let (Some(cold), Some(watch)) = (&mut self.cold, watch) {
            cold.watch_at = watch;
            cold.probes = 0;
        }
        let Some(cold) = &self.cold else { return events };
        let sacked = cold.sacked.sum_from(self.snd_una);
        let una = self.snd_una;
        let lost = if cold.recovering { self.unsent_lost(cold) } else { 0 };
        let news = self.note_sacks(head);
        let advances = before(self.snd_una, head.ack);
        let twice = head.sacks().first().is_some_and(|(_, to)| not_after(*to, head.ack));
        let nothing = !advances && !news && payload == 0;
        if advances {
            self.advance(head, &mut events, c);
        } else if let Some(cold) = &mut self.cold {
            let same = payload == 0 && self.snd_wnd == old_window && !head.has(flag::FIN);
            if head.ack == self.snd_una && self.snd_una != self.snd_nxt && same {
                // with SACK only an acknowledgment with new information counts as a duplicate (RFC
                // 6675 section 2)
                let counts = news || self.flags & bit::SACK == 0;
                cold.duplicates = cold.duplicates.saturating_add(u16::from(counts));
            }
            if self.snd_wnd == 0 {
                // the peer is alive: it is probed without limit, at the longest interval, while the
                // connection has an owner
                let most = if self.flags & bit::ORPHAN == 0 { 8 } else { u8::MAX };
                cold.tries = cold.tries.min(most);
            } else if old_window == 0 && self.snd_una == self.snd_nxt {
                cold.tries = 0;
                cold.resend_at = Nanos::NEVER;
            }
        }
        if self.state != TcpState::Done {
            self.probe_answered(head.ack, twice, nothing);
            let again = |cold: &Cold| !cold.again.is_empty() || !cold.lost_again.is_empty();
            if self.cold.as_deref().is_some_and(again) {
                self.move_lost_retransmissions(c.now);
            }
            self.suspect(c);
            self.reduce(una, sacked, lost);
            self.output(c);
        }
        events
    }

    /// Processes an acknowledgment during a recovery and computes how much may be sent. Before the
    /// acknowledgment, the peer had everything up to `una` and `sacked` bytes beyond, and `lost`
    /// bytes were to be retransmitted.
    fn reduce(&mut self, una: u32, sacked: u32, lost: u32) {
        let by_share = |cold: &&Cold| cold.recovering && self.has(bit::SACK);
        let Some(cold) = self.cold.as_deref().filter(by_share) else { return };
        let advanced = self.snd_una.wrapping_sub(una);
        let delivered = (advanced + cold.sacked.sum_from(self.snd_una)).saturating_sub(sacked);
        let safe = advanced > 0 && self.unsent_lost(cold) <= lost;
        self.allow(delivered, safe);
    }

    /// Handles congestion that was signaled without loss (RFC 3168 section 6.1.2): reduces the
    /// window, at most once per window.
    fn congested(&mut self, c: &mut Context<'_>) {
        let una = self.snd_una;
        let cold = self.warm(c);
        if !cold.recovering && not_after(cold.recover, una) && not_after(cold.eased, una) {
            cold.eased = cold.snd_max;
            self.shrink();
            self.set(bit::CWR_DUE, true);
        }
    }

    /// Records the ranges that the peer has beyond a hole; returns true if there is a new one.
    fn note_sacks(&mut self, head: &Head) -> bool {
        let Some(cold) = &mut self.cold else { return false };
        if self.flags & bit::SACK == 0 || head.sack_count == 0 {
            return false;
        }
        let una = later(self.snd_una, head.ack);
        let before_it = cold.sacked.sum_from(self.snd_una);
        for (from, to) in head.sacks() {
            let sane = before(una, *from) && before(*from, *to) && not_after(*to, cold.snd_max);
            if sane {
                cold.sacked.add(*from, *to);
            }
        }
        cold.sacked.sum_from(self.snd_una) != before_it
    }

    /// Handles new acknowledged bytes.
    fn advance(&mut self, head: &Head, events: &mut FromSegment, c: &mut Context<'_>) {
        let acked = head.ack.wrapping_sub(self.snd_una);
        let segment = self.segment();
        let room = c.settings.send_max as usize;
        let Some(cold) = &mut self.cold else { return };
        if let Some((from, _)) = cold.sacked.as_slice().first()
            && not_after(*from, head.ack)
            && not_after(cold.recover, self.snd_una)
            && cold.probe.is_none()
        {
            // the missing bytes arrived late: they were not retransmitted
            self.flags |= bit::REORDERS;
        }
        let bytes = (acked as usize).min(cold.send.len());
        let fin_acked = acked as usize > cold.send.len();
        cold.send.drain(..bytes);
        self.snd_una = head.ack;
        self.snd_nxt = later(self.snd_nxt, head.ack);
        cut_sacked(cold, head.ack);
        cold.overdue = later(cold.overdue, head.ack);
        let tries = std::mem::take(&mut cold.tries);
        cold.resend_at = Nanos::NEVER;
        if cold.urgent.is_some_and(|pointer| not_after(pointer, head.ack)) {
            cold.urgent = None;
        }
        let timed = cold.timed.filter(|(end, _)| not_after(*end, head.ack));
        if timed.is_some() {
            cold.timed = None;
        }
        let probed = cold.probe.is_some_and(|probe| probe.again && not_after(probe.end, head.ack));
        let again = cold.recovering;
        if cold.recovering && not_after(cold.recover, head.ack) {
            cold.recovering = false;
            cold.duplicates = 0;
            self.cwnd = self.ssthresh;
        } else if cold.recovering {
            // a partial acknowledgment: without SACK its segments left the network (RFC 6582
            // section 3.2)
            let segments = (acked / segment).min(u32::from(u16::MAX)) as u16;
            cold.duplicates = cold.duplicates.saturating_sub(segments);
        } else {
            cold.duplicates = 0;
        }
        // an old mark would compare as ahead 2 GiB later
        cold.recover = later(cold.recover, head.ack);
        cold.eased = later(cold.eased, head.ack);
        if self.has(bit::BLOCKED) && self.cold.as_ref().is_some_and(|x| x.send.len() < room / 2) {
            self.set(bit::BLOCKED, false);
            events.writable = true;
        }
        match timed {
            Some((_, at)) => self.measure(c.now - at, true, c),
            None if tries > 0 && !self.has(bit::STAMPS) => self.keep_timeout(tries, c),
            // as little is known as after a timeout, and the next tail probe is skipped: on a path
            // that became slow, every probe would be acknowledged too late to be measured
            None if probed && !self.has(bit::STAMPS) => self.set(bit::UNMEASURED, true),
            None => self.measure_by_stamps(head, c),
        }
        if !again && self.is_window_used() {
            self.grow(acked, segment);
        }
        if fin_acked && self.has(bit::FIN_SENT) {
            self.fin_acknowledged(c);
        }
    }

    /// Grows the window by the number of segments acknowledged, at least one: slow start and
    /// congestion avoidance (RFC 5681 section 3.1).
    fn grow(&mut self, acked: u32, segment: u32) {
        let segments = acked.div_ceil(segment);
        if self.cwnd < self.ssthresh {
            let more = segments.min(u32::from(self.ssthresh - self.cwnd));
            self.cwnd = self.cwnd.saturating_add(more.min(0xffff) as u16);
            return;
        }
        let credit = u32::from(self.credit) + segments;
        let grows = credit >= u32::from(self.cwnd);
        let left = if grows { credit - u32::from(self.cwnd) } else { credit };
        self.credit = left.min(u32::from(u16::MAX)) as u16;
        self.cwnd = self.cwnd.saturating_add(u16::from(grows));
    }

    fn fin_acknowledged(&mut self, c: &mut Context<'_>) {
        self.state = match self.state {
            TcpState::FinWait1 => TcpState::FinWait2,
            TcpState::Closing => TcpState::TimeWait,
            TcpState::LastAck => TcpState::Done,
            other => other,
        };
        if self.state == TcpState::FinWait2 && self.has(bit::ORPHAN) {
            let until = c.now + c.settings.fin_wait;
            self.warm(c).watch_at = until;
        }
    }

    /// Processes data and the FIN of the peer.
    fn take_in(
        &mut self,
        head: &Head,
        payload: &[u8],
        events: &mut FromSegment,
        c: &mut Context<'_>,
    ) {
        if !matches!(self.state, TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2) {
            // nothing may follow a FIN; the FIN itself may be retransmitted
            c.counts.duplicate += 1;
            return self.send_ack(c);
        }
        let end = head.seq.wrapping_add(payload.len() as u32);
        if self.has(bit::ORPHAN) && before(self.rcv_nxt, end) {
            // no one will read it (RFC 9293 section 3.6.1)
            return self.abort(c);
        }
        if self.has(bit::ECN) {
            self.set(bit::ECHO, head.ecn == 3 || self.has(bit::ECHO) && !head.has(flag::CWR));
        }
        let edge = self.edge();
        let skip =
            if before(head.seq, self.rcv_nxt) { self.rcv_nxt.wrapping_sub(head.seq) } else { 0 };
        let from = head.seq.wrapping_add(skip);
        let kept = payload.get(skip as usize..).unwrap_or_default();
        let room = edge.wrapping_sub(from) as usize;
        let kept = &kept[..kept.len().min(room)];
        let whole = from.wrapping_add(kept.len() as u32) == later(end, from);
        let size = self.segment();
        let longest = u32::from(self.mss);
        // each segment has opened the window by two more, unless it has reached its maximum
        let starts = self.rcv_size < FIRST_WINDOW + 2 * ONE_BY_ONE * size;
        let rcv_nxt = self.rcv_nxt;
        let cold = self.warm(c);
        // the last one counts: a forged or wrong FIN does not block the real one
        if head.has(flag::FIN) && whole {
            cold.fin_at = Some(end);
        }
        // the truncated part is retransmitted when the window opens: the sender must be informed
        let mut at_once = skip > 0 || !whole;
        if from != rcv_nxt {
            at_once = true;
            c.counts.out_of_order += 1;
            store_out_of_order(cold, from.wrapping_sub(rcv_nxt) as usize, from, kept);
        } else if !kept.is_empty() {
            cold.unacknowledged += kept.len() as u32;
            at_once |= !cold.held.as_slice().is_empty();
            if kept.len() as u32 > longest {
                // several segments merged into one by the device; more may have arrived together
                // with them
                cold.ack_at = WITH_BATCH;
            } else if cold.ack_at != WITH_BATCH {
                // more than one full segment (RFC 9293 section 3.8.6.3 requires an acknowledgment
                // every two)
                at_once |= cold.unacknowledged > size || starts && kept.len() as u32 >= size;
            }
            let at = c.stays_at.map(|at| at + skip);
            self.pass_on(kept, at, c.settings.receive_max);
            events.readable = true;
        }
        let delay = c.settings.delayed_ack;
        self.end_of_peer(events, c);
        if at_once || events.ended {
            self.send_ack(c);
        } else {
            let due = c.now + delay;
            let cold = self.warm(c);
            cold.ack_at = cold.ack_at.min(due);
        }
    }

    /// Passes the next bytes to the reader, with any following bytes already received. `at`: their
    /// offset in the packet, which stays in memory for now.
    fn pass_on(&mut self, bytes: &[u8], at: Option<u32>, most: u32) {
        let most = if self.shifts == 0 { most.min(0xffff) } else { most };
        let Some(cold) = &mut self.cold else { return };
        match at.filter(|_| cold.held.as_slice().is_empty()) {
            Some(at) => cold.lent = at..at + bytes.len() as u32,
            None => cold.receive.extend_from_slice(bytes),
        }
        let mut next = self.rcv_nxt.wrapping_add(bytes.len() as u32);
        cold.beyond.drain(..bytes.len().min(cold.beyond.len()));
        if let Some(end) = cold.held.end_of(next) {
            let more = (end.wrapping_sub(next) as usize).min(cold.beyond.len());
            cold.receive.extend(cold.beyond.drain(..more));
            next = end;
        }
        cold.held.cut(next);
        if cold.held.as_slice().is_empty() {
            cold.beyond = Default::default();
            cold.latest_count = 0;
        }
        if cold.fin_at.is_some_and(|at| before(at, next)) {
            // data arrived beyond it
            cold.fin_at = None;
        }
        // two segments for each one received, while the reader keeps up
        let came = next.wrapping_sub(self.rcv_nxt);
        if (cold.unread() as u32) <= self.rcv_size / 2 {
            self.rcv_size =
                self.rcv_size.saturating_add(came.saturating_mul(2)).min(most.max(self.rcv_size));
        }
        self.rcv_nxt = next;
    }

    /// Processes the FIN of the peer once everything before it has arrived.
    fn end_of_peer(&mut self, events: &mut FromSegment, c: &mut Context<'_>) {
        let Some(cold) = &mut self.cold else { return };
        if cold.fin_at != Some(self.rcv_nxt) {
            return;
        }
        cold.fin_at = None;
        self.rcv_nxt = self.rcv_nxt.wrapping_add(1);
        cold.announced = later(cold.announced, self.rcv_nxt);
        self.set(bit::PEER_FIN, true);
        self.state = match self.state {
            TcpState::Established => TcpState::CloseWait,
            TcpState::FinWait1 => TcpState::Closing,
            TcpState::FinWait2 => TcpState::TimeWait,
            other => other,
        };
        if self.state == TcpState::TimeWait {
            let cold = self.warm(c);
            cold.resend_at = Nanos::NEVER;
            cold.watch_at = Nanos::NEVER;
        }
        events.readable = true;
        events.ended = true;
    }
}

/// Stores bytes that are `offset` beyond the next expected byte; if the list is full, they are
/// dropped and retransmitted by the peer.
fn store_out_of_order(cold: &mut Cold, offset: usize, seq: u32, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = seq.wrapping_add(bytes.len() as u32);
    if cold.held.end_of(seq).is_some_and(|held| not_after(end, held)) {
        cold.twice = Some((seq, end));
        return;
    }
    if cold.held.add(seq, end).is_none() {
        return;
    }
    let need = offset + bytes.len();
    if cold.beyond.len() < need {
        cold.beyond.resize(need, 0);
    }
    for (to, from) in cold.beyond.range_mut(offset..need).zip(bytes) {
        *to = *from;
    }
    cold.latest.rotate_right(1);
    cold.latest[0] = seq;
    cold.latest_count = (cold.latest_count + 1).min(3);
}

/// Removes the SACK blocks below `ack`.
fn cut_sacked(cold: &mut Cold, ack: u32) {
    if cold.sacked.as_slice().is_empty() {
        return;
    }
    cold.sacked.cut(ack);
    if cold.sacked.as_slice().first().is_some_and(|(from, _)| *from == ack) {
        // the peer has dropped data it had reported; otherwise it would acknowledge it (RFC 2018
        // section 8)
        cold.sacked.clear();
        cold.resent = ack;
    }
}
