//! Journeys: users that carry values from one response into the next request. Captures,
//! expectations and bodies are those of check plans, read by the same code; here values are written
//! `{{name}}`, and live for an iteration or for the lifetime of their user.

mod feeder;
mod model;
mod names;
mod one_call;
mod outline;
mod read;
mod rows;
mod sockets;
mod tables;

pub use feeder::{ColumnLaw, Feeder, FeederFormat, FeederOrder, FeederRows, FeederTable, UsedUp};
pub use model::{
    AfterFailure, Condition, Journey, JourneyBlock, JourneyPart, JourneyPlan, JourneyProgram,
    JourneyStep, Refresh, StepGuard,
};
pub use one_call::feeder_tables;
pub use outline::ProgramOutline;
pub(crate) use read::read;
pub use read::{ITERATION_NUMBER, STEPS_MAX, USER_NUMBER};
pub(crate) use rows::targets;
pub use sockets::{MessageRule, SocketStep, websocket_base};
pub(crate) use tables::{is_masked, masked, masked_feeder, masked_without_files, shown};

#[cfg(test)]
mod tests;
