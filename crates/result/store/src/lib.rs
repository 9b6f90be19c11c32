//! The results store: every run, ramp, comparison and torture in one SQLite file, written while it
//! is measured, so that at most the current second is lost, however the program ends.
//!
//! A stored record loads unchanged: all outputs made from it are identical, byte by byte. Secrets
//! never reach the store: plans are written masked, and the caller masks the command line. Layer 4:
//! files, a writer thread, the process table (to distinguish a running result from a killed one);
//! it reads no clock and opens no socket.
#![forbid(unsafe_code)]

mod alive;
mod begin;
mod error;
mod hists;
mod list;
mod load;
mod mask;
mod open;
mod partial;
mod parts;
mod place;
mod recording;
mod records;
mod rows;
mod schema;
mod tags;
mod tortures;
mod transfer;
mod tree;
mod write;

pub use begin::Beginning;
pub use error::StoreError;
pub use list::{Filter, ListEntry, Tortured};
pub use load::Stored;
pub use mask::{masked_command, masked_words};
pub use open::Store;
pub use place::{DEFAULT_FILE, StorePlace};
pub use record::runs::{Progress, ResultKind};
pub use recording::{Recording, RecordingEnd, Seconds};
pub use transfer::Imported;

/// Name of a result in its store: `run-12`. All kinds share one sequence of numbers, which are
/// never reused. Only the number if the kind is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunId {
    pub(crate) number: i64,
    /// Kind; `None` if the text is not an id.
    pub(crate) kind: Option<ResultKind>,
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            Some(kind) => write!(f, "{}-{}", kind.id(), self.number),
            None => write!(f, "{}", self.number),
        }
    }
}
