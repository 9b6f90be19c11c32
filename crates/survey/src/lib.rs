//! Which software answers, by what it says of itself and by how it behaves: the questions, the
//! fingerprints, what follows from both, and how often each software was met. Web servers and name
//! servers. Layer 2: asks nobody itself; who can, plays the [`Tour`].
#![forbid(unsafe_code)]

mod classify;
pub mod dns;
pub mod http;
mod table;
mod tally;
mod tour;

pub use classify::{Confidence, Evidence, Software, classify};
pub use table::{Fingerprint, Trait};
pub use tally::{SoftwareCount, tally};
pub use tour::{Depth, HALF, IDLE, Tour, TourResult, TourStop};
