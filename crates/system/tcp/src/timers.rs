//! The retransmission timer (RFC 6298) and the tail loss probe (RFC 8985 section 7).

use crate::connection::{Context, TailProbe, Tcb, TcpState, VARIES_BY, bit};
use crate::seq::{before, later, not_after};
use units::Nanos;

/// Maximum delay of the acknowledgment of a single segment (Linux uses its minimum RTO).
const HELD_BACK: Nanos = Nanos::from_millis(200);
/// The same for several segments: one clock tick.
const A_TICK: Nanos = Nanos::from_millis(2);

impl Tcb {
    /// Sets the retransmission timer if data is in flight or a closed window blocks data, and the
    /// timer of the tail loss probe.
    pub(crate) fn set_timers(&mut self, c: &mut Context<'_>) {
        let waiting = self.snd_una != self.snd_nxt || before(self.snd_nxt, self.end());
        let due = c.now + self.rto(c);
        if let Some(cold) = &mut self.cold
            && waiting
            && cold.resend_at == Nanos::NEVER
        {
            cold.resend_at = due;
        }
        self.set_probe_timer(c);
    }

    /// Sets the tail-loss-probe timer: two round trips after the last transmission or arrival. If
    /// data arrived beyond a hole, a quarter of a round trip is allowed for reordering (RFC 8985
    /// sections 6 and 7.2, with the margins of Linux).
    fn set_probe_timer(&mut self, c: &Context<'_>) {
        let under_way = self.snd_nxt.wrapping_sub(self.snd_una);
        let segment = self.segment();
        let srtt = Nanos::from_micros(u64::from(self.srtt));
        let allowed = c.settings.rack && self.has(bit::SACK) && self.srtt > 0;
        let una = self.snd_una;
        let Some(cold) = &mut self.cold else { return };
        // until everything sent before a timeout is acknowledged, no recovery starts that this
        // timer could trigger
        let asks = !cold.recovering && cold.tries == 0 && not_after(cold.recover, una);
        // data before the first missing byte was truncated
        let holds = !cold.sacked.as_slice().is_empty();
        if !allowed || under_way == 0 || !asks {
            cold.probe_at = Nanos::NEVER;
        } else if holds {
            let due = c.now + Nanos(srtt.0 / 4);
            cold.probe_at = cold.probe_at.min(due);
        } else if cold.probe.is_some() || self.flags & bit::UNMEASURED != 0 {
            cold.probe_at = Nanos::NEVER;
        } else {
            let more = if under_way <= segment { HELD_BACK } else { A_TICK };
            cold.probe_at = (c.now + srtt + srtt + more).min(cold.resend_at);
        }
    }

    /// Handles the expiry of the probe timer.
    pub(crate) fn probe_tail(&mut self, c: &mut Context<'_>) {
        let una = self.snd_una;
        let nxt = self.snd_nxt;
        let end = self.end();
        let segment = self.segment();
        let open = self.snd_una.wrapping_add(self.snd_wnd);
        let Some(cold) = &mut self.cold else { return };
        cold.probe_at = Nanos::NEVER;
        if una == nxt || cold.recovering {
            return;
        }
        if let Some(edge) = cold.sacked.as_slice().last().map(|(from, _)| *from) {
            cold.overdue = later(cold.overdue, edge);
            self.suspect(c);
            return self.output(c);
        }
        let fresh = end.wrapping_sub(nxt).min(segment);
        let fits = before(nxt, end) && not_after(nxt.wrapping_add(fresh), open);
        if fits {
            self.emit(nxt, fresh, c);
        } else {
            // the last segment again; a FIN alone is sent without data
            let sent = if before(end, nxt) { end } else { nxt };
            let length = sent.wrapping_sub(una).min(segment);
            self.emit(sent.wrapping_sub(length), length, c);
        }
        let probed = self.snd_nxt;
        let due = c.now + self.rto(c);
        if let Some(cold) = &mut self.cold {
            cold.probe = Some(TailProbe { end: probed, again: !fits });
            cold.resend_at = due;
        }
    }

    /// Processes the information of an acknowledgment about the tail loss probe (RFC 8985 section
    /// 7.4). `twice`: it reports bytes received twice (RFC 2883); `nothing`: it reports nothing
    /// else.
    pub(crate) fn probe_answered(&mut self, ack: u32, twice: bool, nothing: bool) {
        let una = self.snd_una;
        let Some(cold) = &mut self.cold else { return };
        let Some(probe) = cold.probe else { return };
        if let Some((from, _)) =
            cold.sacked.as_slice().last().filter(|(_, to)| not_after(probe.end, *to))
        {
            // it was sent two round trips after all missing data before it
            cold.overdue = later(cold.overdue, *from);
        }
        if before(ack, probe.end) {
            return;
        }
        if !probe.again || twice || nothing {
            cold.probe = None;
        } else if before(probe.end, ack) {
            // the probe repaired a loss, which must still reduce the window
            cold.probe = None;
            if !cold.recovering && not_after(cold.recover, una) && not_after(cold.eased, una) {
                self.shrink();
            }
        }
    }

    /// Returns the current retransmission timeout (RFC 6298 section 2, with the lower bound of
    /// Linux), backed off.
    pub(crate) fn rto(&self, c: &Context<'_>) -> Nanos {
        self.rto_after(self.cold.as_ref().map_or(0, |cold| cold.tries), c)
    }

    /// Returns the timeout, like [`Tcb::rto`], after the given number of consecutive timeouts.
    pub(crate) fn rto_after(&self, tries: u8, c: &Context<'_>) -> Nanos {
        let settings = c.settings;
        let varies = Nanos::from_micros(u64::from(self.rttvar) * u64::from(4 * VARIES_BY));
        let base = if self.srtt == 0 {
            varies.max(settings.rto_first)
        } else {
            Nanos::from_micros(u64::from(self.srtt)) + varies.max(settings.rto_margin)
        };
        let doublings = match self.state {
            TcpState::SynSent => tries.saturating_sub(settings.syn_linear),
            _ => tries,
        };
        Nanos(base.0.saturating_mul(1 << doublings.min(20))).min(settings.rto_max)
    }
}
