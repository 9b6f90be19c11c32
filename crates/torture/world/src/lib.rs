//! The outside world of a torture and of a survey: the sockets that carry the conversations of a
//! campaign, the audit log, the run directory and recorded failures, the proofs of a server's
//! owner, the server's processes and the user's commands. Layer 5.
#![forbid(unsafe_code)]

pub mod audit;
mod commands;
pub mod directory;
pub mod evidence;
pub mod key;
pub mod outside;
pub mod owner;
mod seen;
mod sockets;
pub mod sources;

pub use commands::Commands;
pub use seen::Seen;
pub use sockets::{Outside, Sockets};
