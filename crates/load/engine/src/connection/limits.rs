//! Time limits of connections, and the calls they apply to.

use super::{Conn, ConnState, Work};
use crate::call::Call;
use plan::Timeouts;
use sample::FailureClass;
use units::Nanos;

impl Conn {
    /// Returns the next instant at which an event must have happened; `NEVER` if none is awaited.
    #[inline]
    pub(crate) fn deadline(&self, limits: &Timeouts) -> Nanos {
        let Some(work) = &self.work else { return Nanos::NEVER };
        let Some(call) = work.calls.front() else { return Nanos::NEVER };
        if self.state < ConnState::Open {
            return call.deadline(limits).min(self.opened + limits.connect);
        }
        let mut at = work.deadline_of(call, limits);
        if work.speaker.is_multiplexed() {
            at = at.min(work.deadline_of_streams(self.armed, limits));
        }
        at
    }

    /// Returns the call whose deadline has passed, and the event that it waited for.
    pub(crate) fn expired(&self, limits: &Timeouts, now: Nanos) -> Option<(usize, FailureClass)> {
        let work = self.work.as_ref()?;
        let over = |call: &Call| work.deadline_of(call, limits) <= now;
        let row = match self.state {
            ConnState::Open => work.calls.iter().position(over)?,
            _ => 0,
        };
        let call = work.calls.get(row)?;
        let class = if call.deadline(limits) <= now {
            FailureClass::ClientTimeout
        } else if self.state < ConnState::Open {
            FailureClass::ConnectTimeout
        } else if work.first_byte_due(call, limits) <= now {
            FailureClass::FirstByteTimeout
        } else {
            FailureClass::ProgressTimeout
        };
        Some((row, class))
    }

    /// Sets the instant of the slot's deadline entry, if an earlier one is needed.
    pub(crate) fn arm(&mut self, limits: &Timeouts) -> Option<Nanos> {
        let at = self.deadline(limits);
        if at < self.armed {
            self.armed = at;
            return Some(at);
        }
        None
    }

    /// Like [`Conn::arm`], after an event other than a new call that may have moved a deadline
    /// earlier: examines all calls.
    pub(crate) fn rearm(&mut self, limits: &Timeouts) -> Option<Nanos> {
        let armed = std::mem::replace(&mut self.armed, Nanos::NEVER);
        let earlier = self.arm(limits).filter(|at| *at < armed);
        self.armed = earlier.unwrap_or(armed);
        earlier
    }

    /// Handles the expiry of the slot's entry for `at`. Returns whether it is the current one.
    pub(crate) fn disarm(&mut self, at: Nanos) -> bool {
        let current = self.armed == at;
        if current {
            self.armed = Nanos::NEVER;
        }
        current
    }
}

impl Work {
    /// Returns the earliest deadline where each call has its own. An existing entry, at `armed`, is
    /// for the earliest of the previous calls: only the newest call can be more urgent, and
    /// examining all would cost each call as many steps.
    fn deadline_of_streams(&self, armed: Nanos, limits: &Timeouts) -> Nanos {
        let looked_at = if armed == Nanos::NEVER { self.calls.len() } else { 1 };
        let newest = self.calls.iter().rev().take(looked_at);
        newest.map(|call| self.deadline_of(call, limits)).min().unwrap_or(Nanos::NEVER)
    }

    /// Returns the deadline of a call whose response may arrive now.
    #[inline]
    fn deadline_of(&self, call: &Call, limits: &Timeouts) -> Nanos {
        let mut at = call.deadline(limits).min(self.first_byte_due(call, limits));
        let awaited = limits.answer.filter(|_| call.first_byte.is_zero());
        if let Some(limit) = awaited.or(limits.progress) {
            at = at.min(self.progress.max(call.sent) + limit);
        }
        at
    }

    /// Returns when the first byte of the call's response must have arrived; `NEVER` if it has, or
    /// without a limit.
    #[inline]
    fn first_byte_due(&self, call: &Call, limits: &Timeouts) -> Nanos {
        match limits.first_byte {
            Some(limit) if call.first_byte.is_zero() && !call.sent.is_zero() => {
                // while other responses arrive, only the call's own request counts as progress
                let asked = match self.speaker.is_multiplexed() {
                    true => call.written,
                    false => self.progress,
                };
                call.sent.max(asked) + limit
            }
            _ => Nanos::NEVER,
        }
    }
}
