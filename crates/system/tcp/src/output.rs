//! Output of a connection: data within both windows, retransmissions and acknowledgments (RFC
//! 5681, 6582, 6675, 8985, 9937).

use crate::connection::{Cold, Context, Reduction, SentAgain, Tcb, TcpState, bit, since, ticks};
use crate::packet::{End, Head, TCP_HEAD, flag};
use crate::seq::{before, later, not_after};
use crate::settings::{KEEP_ALIVE_PROBES, PATH_MSS_MIN};
use sample::FailureClass;
use units::Nanos;

/// Number of duplicates that indicate a loss (RFC 5681 section 3.2).
const DUPLICATES: u16 = 3;

impl Tcb {
    pub(crate) fn send_syn(&mut self, c: &mut Context<'_>) {
        let settings = c.settings;
        // the lost SYN may have been dropped because it requested ECN (RFC 3168 section 6.1.1.1)
        let asks = settings.ecn && !self.has(bit::SYN_AGAIN);
        let ecn = if asks { flag::ECE | flag::CWR } else { 0 };
        let head = Head {
            seq: self.snd_una,
            flags: flag::SYN | ecn,
            window: self.rcv_size.min(0xffff) as u16,
            mss: Some(self.mss),
            shift: Some(self.shift_out()),
            sack_permitted: settings.sack,
            stamps: settings.stamps.then_some((c.stamp, 0)),
            ..Head::default()
        };
        c.out.push(&self.flow(c), &head, [&[], &[]]);
        c.counts.sent += 1;
    }

    /// Returns a header with the current acknowledgment and window; a delayed acknowledgment is
    /// thereby sent.
    fn head(&mut self, seq: u32, flags: u8, c: &Context<'_>) -> Head {
        let window = self.window() >> self.shift_out();
        let window = window.min(0xffff);
        let edge = self.rcv_nxt.wrapping_add(window << self.shift_out());
        let echo = if self.has(bit::ECHO) { flag::ECE } else { 0 };
        let mut head = Head {
            seq,
            ack: self.rcv_nxt,
            flags: flags | flag::ACK | echo,
            stamps: self.stamps(c),
            ..Head::default()
        };
        if let Some(cold) = &mut self.cold {
            cold.ack_at = Nanos::NEVER;
            cold.unacknowledged = 0;
            // the window never shrinks (RFC 9293 section 3.8.6)
            cold.announced = later(cold.announced, edge);
            let open = cold.announced.wrapping_sub(self.rcv_nxt);
            head.window = (open >> (self.shifts >> 4)).min(0xffff) as u16;
        } else {
            head.window = window as u16;
        }
        head
    }

    pub(crate) fn send_ack(&mut self, c: &mut Context<'_>) {
        let seq = self.cold.as_ref().map_or(self.snd_nxt, |cold| later(cold.snd_max, self.snd_nxt));
        let mut head = self.head(seq, 0, c);
        if self.has(bit::SACK)
            && let Some(cold) = &mut self.cold
        {
            put_sacks(&mut head, cold);
        }
        c.out.push(&self.flow(c), &head, [&[], &[]]);
        c.counts.sent += 1;
    }

    /// Acknowledges a batch of segments.
    pub(crate) fn acknowledge(&mut self, c: &mut Context<'_>) {
        self.send_ack(c);
        self.release_cold_part(c);
    }

    /// Sends a challenge ACK, within the limit per second (RFC 5961 section 7).
    pub(crate) fn challenge(&mut self, c: &mut Context<'_>) {
        if *c.challenges > 0 {
            *c.challenges -= 1;
            c.counts.challenges += 1;
            self.send_ack(c);
        }
    }

    /// Returns the end of the data, which is the sequence number of the FIN.
    pub(crate) fn end(&self) -> u32 {
        let queued = self.cold.as_ref().map_or(0, |cold| cold.send.len() as u32);
        self.snd_una.wrapping_add(queued)
    }

    /// Sends everything that may be sent now.
    pub(crate) fn output(&mut self, c: &mut Context<'_>) {
        if matches!(
            self.state,
            TcpState::SynSent | TcpState::TimeWait | TcpState::Done | TcpState::FinWait2
        ) {
            return;
        }
        if self.cold.as_ref().is_some_and(|cold| cold.recovering) {
            // an allowance for small segments is less than a full one, but enough for another small
            // one (Linux counts packets)
            let least = if self.has(bit::SACK) { 1 } else { self.segment() };
            while self.room() >= least && self.resend_next(c) {}
        }
        if before(self.snd_nxt, self.end()) || self.has(bit::FIN_DUE) {
            while self.send_next(c) {}
            self.note_usage(c);
        }
        self.set_timers(c);
    }

    /// Returns whether the congestion window was recently used fully, or by half during slow start.
    pub(crate) fn is_window_used(&self) -> bool {
        let Some(cold) = &self.cold else { return false };
        let window = u32::from(self.cwnd) * self.segment();
        cold.usage.full || self.cwnd < self.ssthresh && window < cold.usage.most.saturating_mul(2)
    }

    /// Records how much of the congestion window is used, after everything that can be sent was
    /// sent.
    fn note_usage(&mut self, c: &Context<'_>) {
        let una = self.snd_una;
        let nxt = self.snd_nxt;
        let segment = self.segment();
        let out = nxt.wrapping_sub(una);
        // the peer rarely has so much that it must be computed
        let full = out + segment > u32::from(self.cwnd) * segment && self.room() < segment;
        let Some(cold) = &mut self.cold else { return };
        let usage = &mut cold.usage;
        if full || not_after(usage.end, una) || !usage.full && out > usage.most {
            usage.full = full;
            usage.most = out;
            usage.end = nxt;
        }
        if self.cwnd > c.settings.initial_window {
            usage.used = usage.used.max(out);
            self.reduce_unused_window(c);
        }
    }

    /// Reduces a window that was not fully used for one timeout by half of the unused part.
    fn reduce_unused_window(&mut self, c: &Context<'_>) {
        if self.is_window_used() {
            if let Some(cold) = &mut self.cold {
                cold.usage.used = 0;
            }
            self.full_at = ticks(c.stamp);
            return;
        }
        let rto = self.rto(c).0 / 1_000_000;
        let segment = self.segment();
        let kept = self.kept_threshold();
        let cwnd = self.cwnd;
        let Some(cold) = &mut self.cold else { return };
        if since(self.full_at, c.stamp) < rto || cold.recovering {
            return;
        }
        let used = cold.usage.used.div_ceil(segment).min(u32::from(u16::MAX)) as u16;
        let used = used.max(c.settings.initial_window);
        cold.usage.used = 0;
        self.full_at = ticks(c.stamp);
        if used < cwnd {
            self.ssthresh = kept;
            self.cwnd = cwnd.midpoint(used);
        }
    }

    /// Returns the slow-start threshold after the window was idle or only partly used: at least
    /// three quarters of the window (RFC 2861 section 3.2).
    fn kept_threshold(&self) -> u16 {
        self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
    }

    /// Handles an idle period, after one timeout of which the capacity of the path is unknown:
    /// halves the window per timeout, down to the initial window (RFC 5681 section 4.1, with the
    /// halving of RFC 2861, as in Linux).
    pub(crate) fn restart_after_idle(&mut self, c: &Context<'_>) {
        let first = c.settings.initial_window.max(1);
        if self.cwnd <= first || self.snd_una != self.snd_nxt {
            return;
        }
        let rto = (self.rto(c).0 / 1_000_000).max(1);
        let halvings = since(self.sent_at, c.stamp) / rto;
        if halvings > 0 {
            self.ssthresh = self.kept_threshold();
            self.cwnd = self.cwnd.checked_shr(halvings.min(16) as u32).unwrap_or(0).max(first);
        }
    }

    /// Returns the number of bytes free in the congestion window.
    fn room(&self) -> u32 {
        let Some(cold) = &self.cold else { return 0 };
        if cold.recovering && self.has(bit::SACK) {
            return cold.reduction.allowed;
        }
        // a segment that arrived beyond a hole frees room for a new one (RFC 3042)
        let window = u32::from(self.cwnd) * self.segment();
        window.saturating_sub(self.pipe(cold))
    }

    /// Estimates the bytes in flight (RFC 6675 section 4, SetPipe).
    fn pipe(&self, cold: &Cold) -> u32 {
        let under_way = self.snd_nxt.wrapping_sub(self.snd_una);
        let one = self.segment();
        if self.has(bit::SACK) {
            // after a timeout the peer may have data beyond what was sent since
            let sacked = cold.sacked.sum_from(self.snd_una) - cold.sacked.sum_from(self.snd_nxt);
            let lost = if cold.recovering { self.unsent_lost(cold) } else { 0 };
            return under_way.saturating_sub(sacked).saturating_sub(lost);
        }
        // each duplicate stands for a segment that left the network (RFC 6582)
        let left = u32::from(cold.duplicates) * one;
        let lost = if cold.recovering && not_after(cold.resent, self.snd_una) { one } else { 0 };
        under_way.saturating_sub(left.saturating_add(lost))
    }

    /// Returns the number of bytes that count as lost and were not retransmitted.
    pub(crate) fn unsent_lost(&self, cold: &Cold) -> u32 {
        let edge = self.lost_before(cold);
        let from = later(cold.resent, self.snd_una);
        let again = cold.lost_again.iter().map(|(from, to)| to.wrapping_sub(*from)).sum();
        if !before(from, edge) {
            return again;
        }
        let sacked = cold.sacked.sum_from(from).saturating_sub(cold.sacked.sum_from(edge));
        edge.wrapping_sub(from).saturating_sub(sacked) + again
    }

    /// Returns the limit before which unacknowledged data counts as lost (RFC 6675 section 4,
    /// IsLost); during a recovery the first segment always does.
    fn lost_before(&self, cold: &Cold) -> u32 {
        let one = self.segment();
        let first = later(self.snd_una.wrapping_add(one), self.snd_una);
        let first = if before(self.snd_nxt, first) { self.snd_nxt } else { first };
        if let (false, Some((from, _))) =
            (self.has(bit::REORDERS), cold.sacked.as_slice().last().filter(|_| cold.recovering))
        {
            // it was sent before data that has arrived (RFC 8985 section 6.2 step 4)
            return *from;
        }
        let mut above = 0;
        for (from, to) in cold.sacked.as_slice().iter().rev() {
            above += to.wrapping_sub(*from);
            if above > u32::from(DUPLICATES - 1) * one {
                return later(later(first, *from), cold.overdue);
            }
        }
        later(first, cold.overdue)
    }

    /// Retransmits the next segment that counts as lost; returns false if no segment does.
    fn resend_next(&mut self, c: &mut Context<'_>) -> bool {
        if let Some((from, to)) = self.cold.as_mut().and_then(|cold| cold.lost_again.pop_front()) {
            // a FIN alone carries no data
            let data = self.end().wrapping_sub(from).min(to.wrapping_sub(from));
            self.send_again(from, to, if before(from, self.end()) { data } else { 0 }, c);
            return true;
        }
        let una = self.snd_una;
        let segment = self.segment();
        let end = self.end();
        let Some(cold) = &self.cold else { return false };
        let mut at = later(cold.resent, una);
        while let Some(past) = cold.sacked.end_of(at) {
            at = past;
        }
        if !before(at, self.lost_before(cold)) {
            return false;
        }
        let gap = cold.sacked.next_after(at).map_or(segment, |next| next.wrapping_sub(at));
        let sent = self.snd_nxt;
        let length = segment.min(gap).min(end.wrapping_sub(at)).min(sent.wrapping_sub(at));
        let past = at.wrapping_add(length.max(1));
        self.send_again(at, past, if before(at, end) { length } else { 0 }, c);
        if let Some(cold) = &mut self.cold {
            cold.resent = past;
        }
        true
    }

    /// Retransmits `length` bytes starting at `from` and records the time. With the first missing
    /// segment the timeout restarts, as in Linux (RFC 6675 section 6 permits it for each): with a
    /// long queue, the acknowledgment of this segment would otherwise arrive after a timeout that
    /// has been running since the last acknowledgment.
    fn send_again(&mut self, from: u32, to: u32, length: u32, c: &mut Context<'_>) {
        self.emit(from, length, c);
        let first = from == self.snd_una;
        let due = c.now + self.rto(c);
        if let Some(cold) = &mut self.cold {
            if first {
                cold.resend_at = due;
            }
            cold.again.push(SentAgain { from, to, max: cold.snd_max, at: c.now });
        }
    }

    /// Moves retransmissions that count as lost again, because data sent later has arrived (RFC
    /// 8985 section 6.2, which compares times; here the order of sending).
    pub(crate) fn move_lost_retransmissions(&mut self, now: Nanos) {
        let una = self.snd_una;
        let half = Nanos::from_micros(u64::from(self.srtt / 2));
        let Some(cold) = &mut self.cold else { return };
        let Cold { again, lost_again, sacked, .. } = &mut **cold;
        let came = |sent: &SentAgain| {
            not_after(sent.to, una)
                || sacked.end_of(sent.from).is_some_and(|end| not_after(sent.to, end))
        };
        // data acknowledged so early was the original, not the retransmission
        if again.iter().any(|sent| came(sent) && now < sent.at + half) {
            self.flags |= bit::REORDERS;
        }
        let latest = again.iter().rposition(|sent| came(sent) && now >= sent.at + half);
        let highest = sacked.as_slice().last().map_or(una, |(_, to)| *to);
        let mut row = 0;
        again.retain(|sent| {
            row += 1;
            let overtaken = latest.is_some_and(|latest| row <= latest) || before(sent.max, highest);
            if came(sent) {
                return false;
            }
            if overtaken {
                lost_again.push_back((sent.from, sent.to));
            }
            !overtaken
        });
        lost_again.retain_mut(|(from, to)| {
            *from = later(*from, una);
            before(una, *to) && sacked.end_of(*from).is_none_or(|end| before(end, *to))
        });
    }

    /// Sends the next segment at `snd_nxt`; false if nothing may be sent.
    fn send_next(&mut self, c: &mut Context<'_>) -> bool {
        let end = self.end();
        let segment = self.segment();
        let Some(cold) = &self.cold else { return false };
        // after a timeout: data that the peer has is skipped
        while let Some(past) = cold.sacked.end_of(self.snd_nxt) {
            self.snd_nxt = past;
        }
        let fin_due = self.has(bit::FIN_DUE) && not_after(self.snd_nxt, end);
        if !before(self.snd_nxt, end) {
            // the FIN needs no window
            if fin_due && self.snd_nxt == end {
                self.emit(end, 0, c);
                return true;
            }
            return false;
        }
        let room = self.room();
        let open = self.snd_una.wrapping_add(self.snd_wnd);
        let allowed = if before(self.snd_nxt, open) { open.wrapping_sub(self.snd_nxt) } else { 0 };
        let left = end.wrapping_sub(self.snd_nxt);
        let gap =
            cold.sacked.next_after(self.snd_nxt).map_or(left, |to| to.wrapping_sub(self.snd_nxt));
        let length = left.min(segment).min(allowed).min(gap);
        let idle = self.snd_nxt == self.snd_una;
        // at least one full segment fits, or it is the first; a smaller one is sent only as the
        // last
        let fits = room >= length.min(segment) || idle && self.cwnd > 0;
        let whole = length == segment || length == left || length == gap;
        let nagle = self.has(bit::NAGLE) && length < segment && !idle && !fin_due;
        let nagle = nagle && !before(self.snd_nxt, cold.snd_max);
        if length == 0 || !fits || nagle || !whole && !idle {
            return false;
        }
        self.emit(self.snd_nxt, length, c);
        true
    }

    /// Sends one segment with data, with the FIN if it is the last.
    pub(crate) fn emit(&mut self, seq: u32, length: u32, c: &mut Context<'_>) {
        let end = self.end();
        let last = seq.wrapping_add(length) == end;
        let fin = last && self.has(bit::FIN_DUE);
        let mut flags = if last && length > 0 { flag::PSH } else { 0 };
        flags |= if fin { flag::FIN } else { 0 };
        let mut head = self.head(seq, flags, c);
        let flow = self.flow(c);
        let ecn = self.has(bit::ECN);
        let cwr = self.has(bit::CWR_DUE);
        let una = self.snd_una;
        let now = c.now;
        let to = seq.wrapping_add(length).wrapping_add(u32::from(fin));
        let Some(cold) = &mut self.cold else { return };
        let again = before(seq, cold.snd_max);
        if let Some(pointer) = cold.urgent
            && before(seq, pointer)
        {
            head.flags |= flag::URG;
            head.urgent = pointer.wrapping_sub(seq).min(0xffff) as u16;
        }
        if ecn && length > 0 && !again {
            head.ecn = 2;
            head.flags |= if cwr { flag::CWR } else { 0 };
        }
        let from = seq.wrapping_sub(una) as usize;
        let payload = halves(cold, from, length as usize);
        c.out.push(&flow, &head, payload);
        c.counts.sent += 1;
        if again {
            c.counts.retransmitted += 1;
            // Karn: data that may be acknowledged twice is not timed
            cold.timed = None;
        } else if cold.timed.is_none() {
            cold.timed = Some((to, now));
        }
        cold.snd_max = later(cold.snd_max, to);
        cold.reduction.sent = cold.reduction.sent.saturating_add(length);
        cold.reduction.allowed = cold.reduction.allowed.saturating_sub(length);
        if again {
            self.retransmitted = self.retransmitted.saturating_add(1);
        } else if head.has(flag::CWR) {
            self.set(bit::CWR_DUE, false);
        }
        self.snd_nxt = later(self.snd_nxt, to);
        self.sent_at = ticks(c.stamp);
        if fin && !self.has(bit::FIN_SENT) {
            self.set(bit::FIN_SENT, true);
            self.state = match self.state {
                TcpState::CloseWait => TcpState::LastAck,
                TcpState::Established => TcpState::FinWait1,
                other => other,
            };
        }
    }

    /// Performs everything that is due.
    pub(crate) fn tick(&mut self, c: &mut Context<'_>) {
        let Some(cold) = &self.cold else { return };
        let probe = cold.probe_at <= c.now;
        let acknowledge = cold.ack_at <= c.now;
        let watch = cold.watch_at <= c.now;
        if acknowledge {
            self.send_ack(c);
        }
        if probe {
            self.probe_tail(c);
        }
        if self.cold.as_ref().is_some_and(|cold| cold.resend_at <= c.now) {
            self.timeout(c);
        }
        if watch && self.state != TcpState::Done {
            self.watch(c);
        }
        self.release_cold_part(c);
    }

    fn timeout(&mut self, c: &mut Context<'_>) {
        let most = match self.state {
            TcpState::SynSent => c.settings.syn_retries.saturating_add(c.settings.syn_linear),
            _ => c.settings.data_retries,
        };
        let end = self.end();
        let under_way = self.snd_nxt.wrapping_sub(self.snd_una);
        let Some(cold) = &mut self.cold else { return };
        cold.resend_at = Nanos::NEVER;
        if cold.tries >= most {
            return self.fail(FailureClass::SocketTimeout, c);
        }
        cold.tries += 1;
        if self.state == TcpState::SynSent {
            cold.timed = None;
            self.set(bit::SYN_AGAIN, true);
            self.retransmitted = self.retransmitted.saturating_add(1);
            c.counts.retransmitted += 1;
            c.counts.syn_retransmitted += 1;
            c.counts.timeouts += 1;
            self.send_syn(c);
        } else if under_way == 0 {
            if before(self.snd_nxt, end) && self.snd_wnd == 0 {
                self.probe(c);
            } else {
                cold.tries = 0;
                self.output(c);
                return;
            }
        } else {
            c.counts.timeouts += 1;
            if cold.tries > 1 {
                // the peer may have dropped data it had reported (RFC 2018 section 8)
                cold.sacked.clear();
            }
            let halved = std::mem::take(&mut cold.recovering) || before(self.snd_una, cold.eased);
            cold.duplicates = 0;
            cold.recover = cold.snd_max;
            cold.probe = None;
            cold.probe_at = Nanos::NEVER;
            cold.overdue = self.snd_una;
            cold.timed = None;
            cold.again.clear();
            cold.lost_again.clear();
            self.credit = 0;
            // a recovery or a congestion mark has already halved it for the same losses (as in
            // Linux; RFC 5681 equation 4 uses the bytes in flight)
            if cold.tries == 1 && !halved {
                self.ssthresh = (self.cwnd / 2).max(2);
            }
            self.cwnd = 1;
            self.snd_nxt = self.snd_una;
            self.resend_first(c);
        }
        let due = c.now + self.rto(c);
        if let Some(cold) = &mut self.cold
            && cold.failed.is_none()
        {
            cold.resend_at = due;
        }
    }

    /// Retransmits the first unacknowledged segment, regardless of the send window.
    fn resend_first(&mut self, c: &mut Context<'_>) {
        let left = self.end().wrapping_sub(self.snd_una);
        let gap = self.cold.as_ref().and_then(|cold| cold.sacked.next_after(self.snd_una));
        let gap = gap.map_or(left, |to| to.wrapping_sub(self.snd_una));
        self.emit(self.snd_una, left.min(gap).min(self.segment()), c);
    }

    /// Sends a window probe: an old sequence number, to which a live peer replies.
    fn probe(&mut self, c: &mut Context<'_>) {
        let head = self.head(self.snd_una.wrapping_sub(1), 0, c);
        c.out.push(&self.flow(c), &head, [&[], &[]]);
        c.counts.sent += 1;
    }

    /// Handles keep-alive probes, and the timeout of an orphan.
    fn watch(&mut self, c: &mut Context<'_>) {
        let now = c.now;
        let interval = c.settings.keep_alive_interval;
        if self.has(bit::ORPHAN) {
            self.state = TcpState::Done;
            return;
        }
        let Some(cold) = &mut self.cold else { return };
        cold.probes += 1;
        cold.watch_at = now + interval;
        if cold.probes > KEEP_ALIVE_PROBES {
            return self.fail(FailureClass::SocketTimeout, c);
        }
        self.probe(c);
    }

    /// Starts a recovery if the acknowledgments indicate a loss.
    pub(crate) fn suspect(&mut self, c: &mut Context<'_>) {
        let una = self.snd_una;
        let nxt = self.snd_nxt;
        let segment = self.segment();
        let sack = self.has(bit::SACK);
        let Some(cold) = &mut self.cold else { return };
        let is_lost = cold.duplicates >= DUPLICATES
            || sack && cold.sacked.sum_from(una) > u32::from(DUPLICATES - 1) * segment
            || before(una, cold.overdue);
        if cold.recovering || !is_lost || before(una, cold.recover) || una == nxt {
            return;
        }
        cold.recovering = true;
        cold.recover = cold.snd_max;
        cold.resent = una;
        cold.again.clear();
        cold.lost_again.clear();
        c.counts.recoveries += 1;
        // the first lost segment is sent at once, regardless of the bytes in flight
        let eased = before(una, cold.eased);
        // a congestion mark has already halved the window: the bytes in flight show its former size
        let window = if eased { nxt.wrapping_sub(una) } else { u32::from(self.cwnd) * segment };
        cold.reduction = Reduction { window, allowed: segment, ..Reduction::default() };
        if !eased {
            self.shrink();
        }
        if !sack {
            self.resend_next(c);
        }
    }

    /// Computes how much may be sent after `bytes` arrived in a recovery. Above the new window it
    /// is a fraction of the delivered bytes; below it all of them, plus one segment if the
    /// acknowledgment is `safe`: it advances and reports no further loss (RFC 9937 section 6, where
    /// the window is `prior_cwnd` of Linux).
    pub(crate) fn allow(&mut self, bytes: u32, safe: bool) {
        let segment = self.segment();
        let aim = u32::from(self.ssthresh).saturating_mul(segment);
        let Some(cold) = self.cold.as_ref().filter(|_| bytes > 0) else {
            return;
        };
        let under_way = self.pipe(cold);
        let mut now = cold.reduction;
        now.delivered = now.delivered.saturating_add(bytes);
        let may = if under_way > aim {
            let share = u64::from(now.delivered) * u64::from(aim);
            let share = share.div_ceil(u64::from(now.window.max(1))).min(u64::from(u32::MAX));
            (share as u32).saturating_sub(now.sent)
        } else {
            let more = if safe { segment } else { 0 };
            now.delivered
                .saturating_sub(now.sent)
                .max(bytes)
                .saturating_add(more)
                .min(aim - under_way)
        };
        now.allowed = if now.sent == 0 { may.max(segment) } else { may };
        if let Some(cold) = &mut self.cold {
            cold.reduction = now;
        }
    }

    /// Halves the window. RFC 5681 section 3.1 uses half of the bytes in flight, which is next to
    /// nothing at the end of an upload; this window was used (RFC 7661 section 4.3), and Linux
    /// halves it too.
    pub(crate) fn shrink(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(2);
        self.cwnd = self.ssthresh;
    }

    /// Handles a report that a link accepts only packets of `mtu` bytes (RFC 1191); 0 if unknown.
    pub(crate) fn too_large(&mut self, mtu: u16, c: &mut Context<'_>) {
        let fits = fitting(mtu, c.peer).max(PATH_MSS_MIN);
        if fits >= self.mss || self.state == TcpState::SynSent {
            return;
        }
        self.mss = fits;
        self.snd_nxt = self.snd_una;
        if let Some(cold) = &mut self.cold {
            cold.timed = None;
            cold.recovering = false;
            cold.duplicates = 0;
            cold.resend_at = Nanos::NEVER;
            cold.again.clear();
            cold.lost_again.clear();
        }
        self.output(c);
    }
}

/// Returns the payload of a segment to this peer in a packet of the size that ICMP reported; 0 if
/// it reported none. No IPv6 link is smaller than 1,280 bytes (RFC 8200 section 5), regardless of
/// the report.
pub(crate) fn fitting(mtu: u16, peer: End) -> u16 {
    let mtu = match (peer.address.is_ipv6(), mtu) {
        (true, mtu) => mtu.max(1_280),
        (false, 0) => 576,
        (false, mtu) => mtu,
    };
    mtu.saturating_sub((peer.head() + TCP_HEAD) as u16)
}

/// Returns the part of the send buffer from `from` on, in the two slices it consists of.
fn halves(cold: &Cold, from: usize, length: usize) -> [&[u8]; 2] {
    let (first, second) = cold.send.as_slices();
    let to = from + length;
    let cut = first.len();
    [&first[from.min(cut)..to.min(cut)], &second[from.saturating_sub(cut)..to.saturating_sub(cut)]]
}

/// Writes the most recent block first, and a range received twice before it (RFC 2018 section 4,
/// RFC 2883).
fn put_sacks(head: &mut Head, cold: &mut Cold) {
    let most = if head.stamps.is_some() { 3 } else { 4 };
    let mut blocks: Vec<(u32, u32)> = cold.twice.take().into_iter().collect();
    for at in &cold.latest[..usize::from(cold.latest_count)] {
        let range = cold
            .held
            .as_slice()
            .iter()
            .find(|(from, to)| not_after(*from, *at) && before(*at, *to));
        blocks.extend(range.filter(|range| !blocks.contains(range)));
    }
    for range in cold.held.as_slice() {
        if blocks.len() >= most {
            break;
        }
        if !blocks.contains(range) {
            blocks.push(*range);
        }
    }
    blocks.truncate(most);
    head.sacks[..blocks.len()].copy_from_slice(&blocks);
    head.sack_count = blocks.len() as u8;
}
