//! What a segment does to a connection (RFC 9293 section 3.10.7, with the rules of RFC 5961 against
//! forged ones and of RFC 7323 against old ones).

use crate::connection::{Cold, Context, Tcb, TcpState, VARIES_BY, WITH_BATCH, bit};
use crate::packet::{Head, flag};
use crate::seq::{before, later, not_after};
use crate::settings::{FIRST_WINDOW, MSS_MIN, MSS_UNSAID, ONE_BY_ONE};
use sample::FailureClass;
use units::Nanos;

/// A SYN is sent again at once this often after an answer that belongs to a former connection.
const AT_ONCE_MAX: u8 = 3;
/// Microseconds: the first timeout of a connection whose SYN was repeated, when no round trip was measured.
const RTO_AFTER_SYN: u64 = 3_000_000;
/// Microseconds: longer round trips are not believed.
const SAMPLE_MAX: u32 = 120_000_000;

/// What the owner is to be told.
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
        let told = match self.state {
            TcpState::SynSent => self.arrive_unconnected(head, c),
            TcpState::Done => FromSegment::default(),
            _ => self.arrive_connected(head, payload, c),
        };
        self.cool(c);
        told
    }

    fn arrive_unconnected(&mut self, head: &Head, c: &mut Context<'_>) -> FromSegment {
        let fits = head.has(flag::ACK) && head.ack == self.snd_nxt;
        if head.has(flag::ACK) && !fits {
            if !head.has(flag::RST) {
                self.answer_stranger(head, c);
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
        // a SYN without an acknowledgement would be the other side of a simultaneous opening, which no
        // server does
        if !head.has(flag::SYN) || !fits {
            return FromSegment::default();
        }
        self.establish(head, c);
        let told = FromSegment { writable: self.has(bit::BLOCKED), ..FromSegment::default() };
        self.set(bit::BLOCKED, false);
        told
    }

    /// The peer remembers a former connection of the same addresses and ports: it is told that it is
    /// no more, and asked again at once.
    fn answer_stranger(&mut self, head: &Head, c: &mut Context<'_>) {
        let reset = Head { seq: head.ack, flags: flag::RST, ..Head::default() };
        c.out.push(&self.flow(c), &reset, [&[], &[]]);
        c.counts.resets_sent += 1;
        c.counts.sent += 1;
        let Some(cold) = &mut self.cold else { return };
        if cold.probes < AT_ONCE_MAX {
            cold.probes += 1;
            // which of the two SYNs an answer is for nobody knows (Karn)
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
        let theirs = head.mss.unwrap_or(MSS_UNSAID).max(MSS_MIN);
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
            // RFC 5681 section 3.1: a lost SYN leaves one segment; RFC 6298 (5.7): and a timeout of 3 s
            // Where stamps are echoed, the round trip is measured all the same, and Linux keeps its first window
            // after a lost SYN.
            self.cwnd = 1;
            self.vary(RTO_AFTER_SYN / 4);
        }
        let edge = self.rcv_nxt.wrapping_add(self.rcv_size);
        let (now, nxt, watch) = (c.now, self.snd_nxt, settings.keep_alive);
        let timed = self.cold.as_mut().and_then(|cold| cold.timed.take());
        if let Some(cold) = &mut self.cold {
            (cold.announced, cold.snd_max) = (edge, nxt);
            (cold.recover, cold.eased) = (nxt, nxt);
            (cold.snd_wl1, cold.usage.end) = (head.seq, nxt);
            (cold.resend_at, cold.tries, cold.probes) = (Nanos::NEVER, 0, 0);
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
        // RFC 5961 section 5; what is older than a window is forged as well
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
        let mut told = self.acknowledged(head, payload.len(), c);
        if self.state != TcpState::Done && length > 0 {
            self.take_in(head, payload, &mut told, c);
        }
        told
    }

    /// Up to where the peer has our acknowledgement: the stamp of the first segment behind that is echoed, so
    /// that its sender measures how long we hold an acknowledgement back (RFC 7323 section 4.3).
    fn acknowledged_to(&self) -> u32 {
        let held_back = self.cold.as_ref().map_or(0, |cold| cold.unacknowledged);
        self.rcv_nxt.wrapping_sub(held_back)
    }

    /// Whether the segment lies within what we can take in (RFC 9293 section 3.10.7.4).
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

    /// The right edge of our window.
    fn edge(&self) -> u32 {
        match &self.cold {
            Some(cold) => cold.announced,
            None => self.rcv_nxt.wrapping_add(self.rcv_size),
        }
    }

    /// Answers what is not acceptable: data at once, for its sender may wait; the rest not too often,
    /// or two sides could answer each other for ever.
    fn refuse(&mut self, seq: u32, length: u32, twice: Option<(u32, u32)>, c: &mut Context<'_>) {
        c.counts.duplicate += 1;
        // a question whether we are there, or the handshake's answer once more: ours was lost
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

    /// One round trip (RFC 6298 section 2). Time stamps give many samples a round trip: by each of them the
    /// deviation may rise, by the `timed` one alone it falls, and no further than to the least margin of the
    /// timeout. Linux keeps the largest deviation of a round trip to that end.
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

    /// What was sent again gives no sample (Karn): the timeout that it took stays (RFC 6298 section 5), or a path
    /// that has become slower would never be measured. Each sample then takes a quarter of it back.
    #[cold]
    fn keep_timeout(&mut self, tries: u8, c: &Context<'_>) {
        let micros = self.rto_after(tries, c).0 / 1_000;
        self.vary(micros.saturating_sub(u64::from(self.srtt)) / 4);
    }

    /// Keeps what round trips vary by, microseconds.
    fn vary(&mut self, by: u64) {
        self.rttvar = by.div_ceil(u64::from(VARIES_BY)).min(u64::from(u16::MAX)) as u16;
    }

    fn acknowledged(&mut self, head: &Head, payload: usize, c: &mut Context<'_>) -> FromSegment {
        let mut told = FromSegment::default();
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
            (cold.watch_at, cold.probes) = (watch, 0);
        }
        let Some(cold) = &self.cold else { return told };
        let (sacked, una) = (cold.sacked.sum_from(self.snd_una), self.snd_una);
        let lost = if cold.recovering { self.unsent_lost(cold) } else { 0 };
        let news = self.note_sacks(head);
        let advances = before(self.snd_una, head.ack);
        let twice = head.sacks().first().is_some_and(|(_, to)| not_after(*to, head.ack));
        let nothing = !advances && !news && payload == 0;
        if advances {
            self.advance(head, &mut told, c);
        } else if let Some(cold) = &mut self.cold {
            let same = payload == 0 && self.snd_wnd == old_window && !head.has(flag::FIN);
            if head.ack == self.snd_una && self.snd_una != self.snd_nxt && same {
                // with SACK only what tells something new is a duplicate (RFC 6675 section 2)
                let counts = news || self.flags & bit::SACK == 0;
                cold.duplicates = cold.duplicates.saturating_add(u16::from(counts));
            }
            if self.snd_wnd == 0 {
                // it lives: asked for ever, at the longest interval, while there is somebody who wants to know
                let most = if self.flags & bit::ORPHAN == 0 { 8 } else { u8::MAX };
                cold.tries = cold.tries.min(most);
            } else if old_window == 0 && self.snd_una == self.snd_nxt {
                (cold.tries, cold.resend_at) = (0, Nanos::NEVER);
            }
        }
        if self.state != TcpState::Done {
            self.probe_answered(head.ack, twice, nothing);
            let again = |cold: &Cold| !cold.again.is_empty() || !cold.lost_again.is_empty();
            if self.cold.as_deref().is_some_and(again) {
                self.find_lost_again(c.now);
            }
            self.suspect(c);
            self.reduce(una, sacked, lost);
            self.output(c);
        }
        told
    }

    /// An acknowledgement came in a recovery, before which the peer had everything before `una` and `sacked` bytes
    /// behind, and `lost` bytes were to be sent again: says how much may be sent.
    fn reduce(&mut self, una: u32, sacked: u32, lost: u32) {
        let by_share = |cold: &&Cold| cold.recovering && self.has(bit::SACK);
        let Some(cold) = self.cold.as_deref().filter(by_share) else { return };
        let advanced = self.snd_una.wrapping_sub(una);
        let delivered = (advanced + cold.sacked.sum_from(self.snd_una)).saturating_sub(sacked);
        let safe = advanced > 0 && self.unsent_lost(cold) <= lost;
        self.allow(delivered, safe);
    }

    /// Congestion was met, and nothing lost (RFC 3168 section 6.1.2): once a window.
    fn congested(&mut self, c: &mut Context<'_>) {
        let una = self.snd_una;
        let cold = self.warm(c);
        if !cold.recovering && not_after(cold.recover, una) && not_after(cold.eased, una) {
            cold.eased = cold.snd_max;
            self.shrink();
            self.set(bit::CWR_DUE, true);
        }
    }

    /// Notes what the peer has beyond a hole; true when that is news.
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

    /// New bytes are acknowledged.
    fn advance(&mut self, head: &Head, told: &mut FromSegment, c: &mut Context<'_>) {
        let acked = head.ack.wrapping_sub(self.snd_una);
        let segment = self.segment();
        let room = c.settings.send_max as usize;
        let Some(cold) = &mut self.cold else { return };
        if let Some((from, _)) = cold.sacked.as_slice().first()
            && not_after(*from, head.ack)
            && not_after(cold.recover, self.snd_una)
            && cold.probe.is_none()
        {
            // what was missing came late, for it was not sent again
            self.flags |= bit::REORDERS;
        }
        let bytes = (acked as usize).min(cold.send.len());
        let fin_acked = acked as usize > cold.send.len();
        cold.send.drain(..bytes);
        self.snd_una = head.ack;
        self.snd_nxt = later(self.snd_nxt, head.ack);
        if !cold.sacked.as_slice().is_empty() {
            cold.sacked.cut(head.ack);
            if cold.sacked.as_slice().first().is_some_and(|(from, _)| *from == head.ack) {
                // what it had reported it has dropped, or it would be acknowledged (RFC 2018 section 8)
                cold.sacked.clear();
                cold.resent = head.ack;
            }
        }
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
            (cold.recovering, cold.duplicates) = (false, 0);
            self.cwnd = self.ssthresh;
        } else if cold.recovering {
            // a partial one: without SACK its segments left the network (RFC 6582 section 3.2)
            let segments = (acked / segment).min(u32::from(u16::MAX)) as u16;
            cold.duplicates = cold.duplicates.saturating_sub(segments);
        } else {
            cold.duplicates = 0;
        }
        // what stays behind would lie ahead again 2 GiB later
        cold.recover = later(cold.recover, head.ack);
        cold.eased = later(cold.eased, head.ack);
        if self.has(bit::BLOCKED) && self.cold.as_ref().is_some_and(|x| x.send.len() < room / 2) {
            self.set(bit::BLOCKED, false);
            told.writable = true;
        }
        match timed {
            Some((_, at)) => self.measure(c.now - at, true, c),
            None if tries > 0 && !self.has(bit::STAMPS) => self.keep_timeout(tries, c),
            // as little is known as after a timeout, and a probe takes nothing longer the next time: on a path that
            // became slow each would be answered too late to be measured
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

    /// Slow start and congestion avoidance (RFC 5681 section 3.1): by the segments that an acknowledgement is
    /// of, one at least.
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

    /// Data, and the end of the peer's side.
    fn take_in(
        &mut self,
        head: &Head,
        payload: &[u8],
        told: &mut FromSegment,
        c: &mut Context<'_>,
    ) {
        if !matches!(self.state, TcpState::Established | TcpState::FinWait1 | TcpState::FinWait2) {
            // nothing may come behind a FIN; the FIN itself may come again
            c.counts.duplicate += 1;
            return self.send_ack(c);
        }
        let end = head.seq.wrapping_add(payload.len() as u32);
        if self.has(bit::ORPHAN) && before(self.rcv_nxt, end) {
            // nobody will read it (RFC 9293 section 3.6.1)
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
        let (size, longest) = (self.segment(), u32::from(self.mss));
        // each has opened our window by two more, unless that is not to grow
        let starts = self.rcv_size < FIRST_WINDOW + 2 * ONE_BY_ONE * size;
        let rcv_nxt = self.rcv_nxt;
        let cold = self.warm(c);
        // the last one counts: one that was forged or wrong does not keep the real one out
        if head.has(flag::FIN) && whole {
            cold.fin_at = Some(end);
        }
        // what was cut off comes again when the window opens: its sender has to know
        let mut at_once = skip > 0 || !whole;
        if from != rcv_nxt {
            at_once = true;
            c.counts.out_of_order += 1;
            keep_beyond(cold, from.wrapping_sub(rcv_nxt) as usize, from, kept);
        } else if !kept.is_empty() {
            cold.unacknowledged += kept.len() as u32;
            at_once |= !cold.held.as_slice().is_empty();
            if kept.len() as u32 > longest {
                // several segments as one: the device has them so, and more may have come with them
                cold.ack_at = WITH_BATCH;
            } else if cold.ack_at != WITH_BATCH {
                // more than one full segment's worth (RFC 9293 section 3.8.6.3 asks for it at two)
                at_once |= cold.unacknowledged > size || starts && kept.len() as u32 >= size;
            }
            let at = c.stays_at.map(|at| at + skip);
            self.pass_on(kept, at, c.settings.receive_max);
            told.readable = true;
        }
        let delay = c.settings.delayed_ack;
        self.end_of_peer(told, c);
        if at_once || told.ended {
            self.send_ack(c);
        } else {
            let due = c.now + delay;
            let cold = self.warm(c);
            cold.ack_at = cold.ack_at.min(due);
        }
    }

    /// Hands bytes that are next on to the reader, and those behind them that are there. `at`: where they
    /// lie in the packet, which stays for now.
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
            // data came behind it
            cold.fin_at = None;
        }
        // two segments for each that came, while the reader keeps up
        let came = next.wrapping_sub(self.rcv_nxt);
        if (cold.unread() as u32) <= self.rcv_size / 2 {
            self.rcv_size =
                self.rcv_size.saturating_add(came.saturating_mul(2)).min(most.max(self.rcv_size));
        }
        self.rcv_nxt = next;
    }

    /// The peer's FIN, when everything before it is there.
    fn end_of_peer(&mut self, told: &mut FromSegment, c: &mut Context<'_>) {
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
            (cold.resend_at, cold.watch_at) = (Nanos::NEVER, Nanos::NEVER);
        }
        (told.readable, told.ended) = (true, true);
    }
}

/// Keeps bytes that lie `offset` beyond the next one; without room in the list they come again.
fn keep_beyond(cold: &mut Cold, offset: usize, seq: u32, bytes: &[u8]) {
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
