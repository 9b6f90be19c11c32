//! A fleet's protocol without its network: messages between manager and agents, assignment of
//! arrivals, clock offsets, and reactions to silence. Messages are input and output, time is an
//! argument. Layer 3: no socket, no clock.

pub mod agent;
pub mod clock;
pub mod codec;
pub mod manager;
pub mod message;
pub mod row;
pub mod slots;
mod snapshot;
pub mod stamp;
pub mod watch;

/// Number of the protocol: manager and agents of another number refuse each other by name.
pub const PROTOCOL: u32 = 7;

/// Silence of the manager after which an agent stops sending: it could not be stopped otherwise.
pub const DEAD_MAN: units::Nanos = units::Nanos::from_secs(5);
/// The manager considers an agent lost after this time of silence. Longer than [`DEAD_MAN`], so
/// that a lost agent has certainly stopped.
pub const LOST_AFTER: units::Nanos = units::Nanos::from_secs(6);
/// Silence of an agent after which each of the manager's messages lists it, until it is received
/// again. A message that lists an agent does not reset its dead-man switch: an agent that receives
/// its manager without being received stops like an agent that receives nothing.
pub const SUSPECT_AFTER: units::Nanos = units::Nanos::from_secs(2);
/// Pause between two signs of life of a manager, and of an agent.
pub const BEAT: units::Nanos = units::Nanos::from_millis(500);
