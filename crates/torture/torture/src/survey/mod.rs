//! Identifies server software by its claim and by its behavior: the questions, the fingerprints,
//! the conclusion, and the count of each software. For web servers and name servers. Layer 2: sends
//! nothing itself; the caller plays the [`Tour`].

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
