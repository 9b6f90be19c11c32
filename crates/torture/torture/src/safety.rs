//! Rules of permission: which targets may be tested, with which limits, and what is logged.

mod address;
pub mod bounds;
pub mod chain;
pub mod permit;
pub mod proof;
mod ranges;

pub use address::{Class, PORTS_REFUSED, class, strictest};
pub use bounds::{Asked, LOST_PUBLIC_MAX};
pub use proof::{CaseGroup, Proof};
pub use ranges::{RANGES_MAX, Ranges};
