//! The firing range: a small server that does everything right, with a switch for every defect. It
//! proves the catalogue: with no switch thrown every case passes, and every case that can fail is
//! turned red by at least one switch. A machine without sockets and clocks: bytes and instants in,
//! acts out; simulations and the site serve the same one.
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
mod streams;
mod whole;
mod worker;

pub use defect::{Defect, DefectKind};
pub use page::{BIG, BIG_LEN, COSTLY, PAGE, PATH, POST};
pub use pool::{HELD_POOL, LEAKY_POOL, POOL};
pub use whole::{
    ACCEPT_EVERY, BACKLOG, Entry, FaultyServer, MANY, RECOVERY, RENEWAL, RESTART, RETRANSMIT,
};
pub use worker::{CAPACITY, COSTLY_FACTOR, ENOUGH, HANGOVER, SHED_BEYOND};

use std::collections::BTreeSet;
use units::Nanos;

/// Bytes of a request line with its end, of a field line without it, of all field lines with theirs;
/// field lines. What is longer is refused, with 414 or 431.
pub const LINE_MAX: usize = 8_192;
pub const FIELD_MAX: usize = 8_192;
pub const HEAD_MAX: usize = 32_768;
pub const FIELDS_MAX: usize = 100;
/// Bytes of a body that are taken; what is longer is refused with 413.
pub const BODY_MAX: u64 = 1 << 20;
/// Bytes of all chunk extensions, and of all trailers, of a body.
pub const EXTENSIONS_MAX: usize = 8_192;
pub const TRAILERS_MAX: usize = 8_192;
/// Ranges of one request that are sent; with more the whole page is.
pub const RANGES_MAX: usize = 4;
/// Bytes of a head at which even a server without limits gives up.
const BUFFER_MAX: usize = 4 << 20;

/// How long a connection may be silent from its beginning; how long a head may take, and a body,
/// from their first bytes, however they drip; how long a connection may be idle between requests;
/// how long a client may take nothing of a response.
pub const SILENT: Nanos = Nanos::from_secs(20);
pub const HEAD: Nanos = Nanos::from_secs(20);
pub const BODY: Nanos = Nanos::from_secs(20);
pub const IDLE: Nanos = Nanos::from_secs(10);
pub const SEND: Nanos = Nanos::from_secs(20);

/// What the server does next, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Send(Vec<u8>),
    /// FIN; whatever still comes is ignored.
    Close,
    /// What the client has not taken is thrown away, then FIN.
    GiveUp,
    Reset,
}

/// Whether a server without a defect has something to do about these bytes: it answers, or ends the
/// connection. Otherwise it waits for the rest of a message.
pub fn reacts(bytes: &[u8]) -> bool {
    let mut server = connection::Connection::new(&Defects::new(), Nanos::ZERO);
    !server.receive(Nanos::ZERO, bytes).is_empty()
}

/// The switches that are thrown.
pub type Defects = BTreeSet<Defect>;

#[cfg(test)]
mod tests;
