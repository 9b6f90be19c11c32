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

use super::Member;
use crate::case::ParameterKind;
use crate::judge::Outcome;
use crate::session::CaseResult;

/// How far it grows.
const SIZE: &[(&str, ParameterKind)] = &[("most", ParameterKind::Size)];
const NUMBER: &[(&str, ParameterKind)] = &[("most", ParameterKind::Number)];
const BOTH: &[(&str, ParameterKind)] =
    &[("most", ParameterKind::Size), ("number", ParameterKind::Number)];

pub(super) const MEMBERS: &[Member] = &[
    Member { name: "limit.target", parameters: SIZE, run: heads::target },
    Member { name: "limit.value", parameters: SIZE, run: heads::value },
    Member { name: "limit.name", parameters: SIZE, run: heads::name },
    Member { name: "limit.fields", parameters: NUMBER, run: heads::fields },
    Member { name: "limit.head", parameters: SIZE, run: heads::head },
    Member { name: "limit.pairs", parameters: NUMBER, run: heads::pairs },
    Member { name: "limit.method", parameters: SIZE, run: overlaps::run },
    Member { name: "limit.declared", parameters: SIZE, run: bodies::declared },
    Member { name: "limit.body", parameters: SIZE, run: bodies::body },
    Member { name: "limit.chunks", parameters: BOTH, run: bodies::chunks },
    Member { name: "limit.trailers", parameters: BOTH, run: bodies::trailers },
    Member { name: "limit.ranges", parameters: NUMBER, run: ranges::ranges },
    Member { name: "limit.pipeline", parameters: NUMBER, run: pipeline::depth },
    Member { name: "limit.requests", parameters: NUMBER, run: pipeline::requests },
];

impl CaseResult {
    /// A reason of the outcome, which is as bad as this or worse.
    pub(super) fn note(&mut self, outcome: Outcome, why: String) {
        self.outcome = self.outcome.max(outcome);
        self.notes.push(why);
    }
}
