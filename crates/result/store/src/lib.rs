//! The results store: every run, ramp, comparison and torture in one SQLite file, written while it is
//! measured, so that whatever ends the program loses the running second at most.
//!
//! What is stored loads again as the very record that was stored: all outputs made of it are the
//! same, byte by byte. Secrets never arrive here: plans are written with them masked, and the
//! caller masks the command line. Layer 4: files, a thread that writes, the process table (to tell a
//! running result from one whose program was killed); it reads no clock and opens no socket.
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

/// A result's name in its store: `run-12`. The numbers of all kinds are one sequence and are never
/// given twice. Of one whose kind is damaged, the number alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunId {
    pub(crate) number: i64,
    /// `None` where what stands for it is none.
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
