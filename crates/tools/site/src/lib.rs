//! The reference server: pages with known correct responses, and faults on demand. Layer 4.
//!
//! There are two engines for one [`Config`]. Without faults, hyper answers (module `proper`):
//! well-tested third-party code. With any fault, delay or stall, or as the null server, a separate
//! loop answers (module `exact`). A runtime's timers step by 1 ms and a framework cannot send
//! invalid responses, while this loop keeps a due instant to a few microseconds and reports its
//! lateness.
//!
//! Everything is bounded: heads, bodies, connections, pipelined requests, sleeping times. No input
//! from a peer ends a thread.
#![forbid(unsafe_code)]

mod access;
mod config;
mod counters;
mod error;
mod exact;
mod faults;
mod head;
mod lateness;
mod listen;
mod pace;
mod pattern;
mod proper;
mod recorder;
mod route;
mod script;
mod server;

pub use access::AccessLog;
pub use config::{Config, EarlyData, Http3, OPTIONS, OptionInfo, Sleeping};
pub use counters::Served;
pub use error::SiteError;
pub use faults::{Faults, Misbehaviour, Stall, TimeLaw, WrongLength};
pub use lateness::Lateness;
pub use listen::{Address, Listen};
pub use recorder::{OriginRecorder, RecordedMessage};
pub use route::{AUTH_PASSWORD, AUTH_USER};
pub use server::Site;
pub use weakness::{Cold, Contention, Late, RateLimit, Weaknesses};

mod weakness;

#[cfg(test)]
mod tests;
