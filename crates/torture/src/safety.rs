//! Who may be tortured, how much, on whose permission, and what is written down of it.

mod address;
mod bounds;
pub mod chain;
mod front;
mod governor;
pub mod permit;
pub mod proof;
mod ranges;

pub use address::{Class, PORTS_REFUSED, class, strictest};
pub use bounds::{Asked, Bounds, LOST_PUBLIC_MAX};
pub use front::front;
pub use governor::{Admission, BEACON_EVERY, Governor, Leave, Requests, SPENT, STOP_FIELD, Spent};
pub use proof::{Group, Proof};
pub use ranges::{RANGES_MAX, Ranges};
