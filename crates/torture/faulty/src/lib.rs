//! The firing range: a small server that does everything right, with a switch for every defect. It
//! validates the catalog: without switches every case passes, and at least one switch turns each
//! case red that can fail. A machine without sockets and clocks: bytes and instants in, actions
//! out; simulations and the site serve the same one.
#![forbid(unsafe_code)]

mod body;
mod connection;
mod defect;
mod frames;
mod head;
mod mix;
mod page;
mod pool;
mod process;
mod socket;
mod streams;
mod whole;
mod worker;

pub use defect::{Defect, DefectKind};
pub use page::{BIG, BIG_LEN, COSTLY, OUTSIDE, PAGE, PATH, POST};
pub use pool::{HELD_POOL, LEAKY_POOL, POOL};
pub use whole::{
    ACCEPT_EVERY, BACKLOG, Entry, FaultyServer, MANY, RECOVERY, RENEWAL, RESTART, RETRANSMIT,
};
pub use worker::{CAPACITY, COSTLY_FACTOR, ENOUGH, HANGOVER, SHED_BEYOND};

use std::collections::BTreeSet;
use units::Nanos;

/// Maximum size of a request line with its end, of a field line without it, of all field lines with
/// theirs; maximum number of field lines. Larger input is refused with 414 or 431.
pub const LINE_MAX: usize = 8_192;
pub const FIELD_MAX: usize = 8_192;
pub const HEAD_MAX: usize = 32_768;
pub const FIELDS_MAX: usize = 100;
/// Maximum size of a body; a longer one is refused with 413.
pub const BODY_MAX: u64 = 1 << 20;
/// Maximum total size of the chunk extensions, and of the trailers, of a body.
pub const EXTENSIONS_MAX: usize = 8_192;
pub const TRAILERS_MAX: usize = 8_192;
/// Maximum number of ranges sent per request; beyond it the whole page is sent.
pub const RANGES_MAX: usize = 4;
/// Size of a head at which even a server without limits gives up.
const BUFFER_MAX: usize = 4 << 20;

/// Timeouts: a silent connection; a head and a body from their first bytes, however slowly they
/// arrive; an idle connection between requests; a client that does not read a response.
pub const SILENT: Nanos = Nanos::from_secs(20);
pub const HEAD: Nanos = Nanos::from_secs(20);
pub const BODY: Nanos = Nanos::from_secs(20);
pub const IDLE: Nanos = Nanos::from_secs(10);
pub const SEND: Nanos = Nanos::from_secs(20);

/// Actions of the server, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Send(Vec<u8>),
    /// FIN; further data is ignored.
    Close,
    /// Discards unread data, then sends FIN.
    GiveUp,
    Reset,
}

/// Returns whether a server without a defect reacts to these bytes: it responds, or closes the
/// connection. Otherwise it waits for the rest of a message.
pub fn responds_or_closes(bytes: &[u8]) -> bool {
    let mut server = connection::Connection::new(&Defects::new(), Nanos::ZERO);
    !server.receive(Nanos::ZERO, bytes).is_empty()
}

/// The enabled switches.
pub type Defects = BTreeSet<Defect>;

#[cfg(test)]
mod tests;
