//! Many connections at once: how many of a state a server bears before polite clients feel it.

mod burst;
mod churn;
pub(super) mod held;
mod honest;
mod parting;
mod refill;
mod siege;

use super::Member;
use crate::case::ParameterKind;
use units::Nanos;

pub(super) const MEMBERS: &[Member] = &[
    Member {
        name: "press.held",
        parameters: &[
            ("state", ParameterKind::Text),
            ("connections", ParameterKind::Number),
            ("hold", ParameterKind::Span),
        ],
        run: held::run,
    },
    Member {
        name: "press.rate",
        parameters: &[("rate", ParameterKind::Number), ("span", ParameterKind::Span)],
        run: churn::rate,
    },
    Member {
        name: "press.resets",
        parameters: &[
            ("connections", ParameterKind::Number),
            ("rate", ParameterKind::Number),
            ("rounds", ParameterKind::Number),
        ],
        run: parting::resets,
    },
    Member {
        name: "press.ends",
        parameters: &[
            ("connections", ParameterKind::Number),
            ("within", ParameterKind::Span),
            ("horizon", ParameterKind::Span),
        ],
        run: parting::ends,
    },
    Member {
        name: "press.burst",
        parameters: &[
            ("connections", ParameterKind::Number),
            ("within", ParameterKind::Span),
            ("silence", ParameterKind::Span),
        ],
        run: burst::run,
    },
    Member {
        name: "press.keep-alive",
        parameters: &[("requests", ParameterKind::Number)],
        run: churn::keep_alive,
    },
    Member {
        name: "press.honest",
        parameters: &[
            ("connections", ParameterKind::Number),
            ("rate", ParameterKind::Size),
            ("size", ParameterKind::Size),
        ],
        run: honest::run,
    },
];

/// New connections a second where nothing else is said.
const OPENS: u64 = 150;

/// Between two of so many a second.
fn pace(per_second: u64) -> Nanos {
    Nanos(Nanos::SECOND.0 / per_second.max(1))
}
