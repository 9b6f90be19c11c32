//! Users according to a server's access log: requests in time order, sessions, and figures that
//! describe a similar load. Layer 2: pure; the caller passes the lines.

mod anonymise;
mod cells;
mod describe;
mod line;
mod log;
mod sketch;

pub use anonymise::{Anonymised, Anonymiser, HashedPaths, WORDS_MAX};
pub use cells::Arrivals;
pub use describe::{Counted, Describer, Description, Model};
pub use line::{Entry, LineError, parse_line};
pub use log::{Access, ClientVisit, Log, LogReader, LoggedRequest};
