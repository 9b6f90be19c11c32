//! Collected parts of responses in progress.

use super::Conn;
use crate::intake::Intake;

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
}
