//! A fleet's network: connections to a NATS server, the server as a child process, its
//! configuration, credentials, and secrets sealed to one agent. [`protocol`] has the messages and
//! the state machines of manager and agent, without I/O. Layer 4; [`NatsLink`] hides the async
//! runtime, which has its own thread.
#![forbid(unsafe_code)]

mod credentials;
mod error;
mod link;
pub mod protocol;
mod seal;
mod server;
mod subjects;
mod terms;
mod version;

pub use credentials::{Credentials, Role};
pub use error::FleetError;
pub use link::{Incoming, LinkSender, NatsEndpoint, NatsLink};
pub use seal::{SealKey, seal};
pub use server::{Grant, NatsServer, ServerOptions, ServerTls, configuration};
pub use subjects::Subjects;
pub use terms::{HostBudget, OnLoss};
pub use version::ServerVersion;
