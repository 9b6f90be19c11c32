//! Limits of size and number, each by a search for the boundary: what is taken up to where, how it
//! is refused beyond, and whether the work grows faster than the size.

mod bodies;
mod growth;
mod heads;
mod overlaps;
mod pipeline;
mod ranges;
mod search;
mod work;

pub(crate) use work::{is_as_slow, is_timed, work_of};

use super::Member;

pub(super) const MEMBERS: &[Member] = &[
    Member { name: "limit.target", run: heads::target },
    Member { name: "limit.value", run: heads::value },
    Member { name: "limit.name", run: heads::name },
    Member { name: "limit.fields", run: heads::fields },
    Member { name: "limit.head", run: heads::head },
    Member { name: "limit.pairs", run: heads::pairs },
    Member { name: "limit.method", run: overlaps::run },
    Member { name: "limit.declared", run: bodies::declared },
    Member { name: "limit.body", run: bodies::body },
    Member { name: "limit.chunks", run: bodies::chunks },
    Member { name: "limit.trailers", run: bodies::trailers },
    Member { name: "limit.ranges", run: ranges::ranges },
    Member { name: "limit.pipeline", run: pipeline::depth },
    Member { name: "limit.requests", run: pipeline::requests },
];
