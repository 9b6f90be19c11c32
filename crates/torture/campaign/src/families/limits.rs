//! Limits of size and number, found by a search for the boundary: the largest accepted value, how
//! larger values are refused, and whether the work grows faster than the size.

pub(super) mod bodies;
mod growth;
pub(super) mod heads;
pub(super) mod overlaps;
pub(super) mod pipeline;
pub(super) mod ranges;
mod search;
mod work;

pub(crate) use work::is_timed;
