//! A fleet's protocol without its network: what manager and agents tell each other, who sends which
//! arrival, what the clocks of two machines have to do with each other, and what is to be done when
//! somebody is silent. Messages go in and out, time is handed in. Layer 3: no socket, no clock.

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
pub const PROTOCOL: u32 = 5;

/// An agent that hears nothing of its manager for so long stops sending: nobody could stop it.
pub const DEAD_MAN: units::Nanos = units::Nanos::from_secs(5);
/// The manager takes an agent for lost that was silent for so long. Longer than [`DEAD_MAN`], so
/// that a lost agent is a silent one.
pub const LOST_AFTER: units::Nanos = units::Nanos::from_secs(6);
/// An agent that was silent for so long is named in each of the manager's words until it is heard
/// again. A word that names an agent does not count as watching over it: one that hears its manager and
/// is not heard itself stops as one does that hears nothing.
pub const SUSPECT_AFTER: units::Nanos = units::Nanos::from_secs(2);
/// Pause between two signs of life of a manager, and of an agent.
pub const BEAT: units::Nanos = units::Nanos::from_millis(500);
