//! Collected parts of responses in progress.

use super::Conn;
use crate::call::Call;
use crate::intake::Intake;
use protocol::grpc::EarlyEnd;
use units::Nanos;

impl Conn {
    /// Takes the collected parts of the call's response; [`Conn::restore_intake`] returns them to the
    /// connection.
    pub(crate) fn take_intake(&mut self, call: usize) -> Option<Box<Intake>> {
        self.call_mut(call)?.intake.take()
    }

    /// Returns whether a part of the call's response was collected.
    pub(crate) fn has_intake(&self, call: usize) -> bool {
        self.call(call).is_some_and(|call| call.intake.is_some())
    }

    /// Keeps a piece of the call's response that may be a sample.
    pub(crate) fn sample(
        &mut self,
        call: usize,
        piece: &[u8],
        fresh: impl FnOnce() -> Box<Intake>,
    ) {
        if let Some(call) = self.call_mut(call) {
            call.intake.get_or_insert_with(fresh).sample(piece);
        }
    }

    pub(crate) fn restore_intake(&mut self, call: usize, intake: Option<Box<Intake>>) {
        if let Some(call) = self.call_mut(call) {
            call.intake = intake;
        }
    }

    /// Returns the first call whose response has reached a limit of its messages, and that limit.
    pub(crate) fn reached_limit(&self) -> Option<(usize, EarlyEnd)> {
        let reached = |call: &Call| call.intake.as_ref()?.reached_limit();
        let mut calls = self.work.as_ref()?.calls.iter().enumerate();
        calls.find_map(|(row, call)| Some((row, reached(call)?)))
    }

    /// Ends a call whose response is in progress, with the part received so far. The connection
    /// stays open. `None` if the protocol cannot end a single call, which validation excludes.
    pub(crate) fn end_early(&mut self, call: usize, now: Nanos) -> Option<Call> {
        let (call, _) = self.withdraw(call, now).filter(|(_, goes_on)| *goes_on)?;
        self.served += 1;
        Some(call)
    }
}
