//! How much a finding matters to whoever runs the server, which its outcome does not say: a process
//! that dies of one request and a field that is missing are both failures.

use super::{FailureKind, TestOutcome};
use crate::case::{Answers, Case, PACKETS};
use crate::result::{CaseResult, ExchangeResult};

/// How much a finding matters, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nobody but the client that sent it is affected.
    Low,
    /// Something between client and server may be misled, or clients are served late.
    Medium,
    /// Some clients go without a response, or a part of the server is lost.
    High,
    /// Everybody goes without, for long or at little cost, or gets what is another's.
    Critical,
}

impl Severity {
    /// The gravest first.
    pub const ALL: [Severity; 4] =
        [Severity::Critical, Severity::High, Severity::Medium, Severity::Low];

    pub fn id(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        }
    }

    /// What fails a run, unless asked otherwise.
    pub const FAILING: Severity = Severity::High;

    /// By its id.
    pub fn named(id: &str) -> Option<Severity> {
        Severity::ALL.into_iter().find(|one| one.id() == id)
    }
}

/// What follows where a server breaks the rule of a case; `risk` in the case's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// Server and intermediary may find different requests in the same bytes.
    Smuggling,
    /// An intermediary may route, store or understand the message otherwise than the server.
    Intermediaries,
    /// A client makes the server work, or keep, much more than it does itself.
    Cost,
    /// Requests that are valid, in whatever pieces they arrive, are not served.
    Service,
    /// A request is carried out as often as somebody who has recorded it says it again.
    Replay,
}

impl Risk {
    pub const ALL: [Risk; 5] =
        [Risk::Smuggling, Risk::Intermediaries, Risk::Cost, Risk::Service, Risk::Replay];

    pub fn id(self) -> &'static str {
        match self {
            Risk::Smuggling => "smuggling",
            Risk::Intermediaries => "intermediaries",
            Risk::Cost => "cost",
            Risk::Service => "service",
            Risk::Replay => "replay",
        }
    }

    /// What follows, as a clause.
    pub fn reason(self) -> &'static str {
        self.weight().reason
    }

    fn weight(self) -> Weight {
        match self {
            Risk::Smuggling => SMUGGLED,
            Risk::Intermediaries => MISLED,
            Risk::Cost => COSTLY,
            Risk::Service => UNSERVED,
            Risk::Replay => REPEATED,
        }
    }
}

/// A severity, and why it is no other: a clause without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    pub severity: Severity,
    pub reason: &'static str,
}

const SMUGGLED: Weight = Weight {
    severity: Severity::Critical,
    reason: "the server and an intermediary in front of it may find different requests in the same bytes",
};
const MISLED: Weight = Weight {
    severity: Severity::Medium,
    reason: "an intermediary may interpret the message differently",
};
const COSTLY: Weight = Weight {
    severity: Severity::Medium,
    reason: "a client makes the server work or keep much more than it does itself",
};
const UNSERVED: Weight = Weight {
    severity: Severity::High,
    reason: "valid requests are not served when they arrive in other pieces",
};
const REPEATED: Weight = Weight {
    severity: Severity::High,
    reason: "an attacker who replays a recorded request executes it again, as its sender",
};
const DEAD: Weight = Weight {
    severity: Severity::Critical,
    reason: "the server's process ends: every client of it is cut off",
};
const LEAKING: Weight = Weight {
    severity: Severity::Critical,
    reason: "what is taken does not come back: often enough repeated, it stops the server",
};
const SHUT_OUT: Weight = Weight {
    severity: Severity::Critical,
    reason: "the few connections that press keep everybody else out",
};
const CROWDED: Weight = Weight {
    severity: Severity::High,
    reason: "well-behaved clients are not served while it lasts",
};
const WORKER_LOST: Weight = Weight {
    severity: Severity::High,
    reason: "a worker of the server dies: the clients that it served are cut off",
};
const OTHERS_LOST: Weight = Weight {
    severity: Severity::High,
    reason: "plain requests of others are not answered as before after it",
};
const LATE: Weight = Weight {
    severity: Severity::Medium,
    reason: "well-behaved clients are served late, or some of them not",
};
const KEPT: Weight = Weight {
    severity: Severity::Medium,
    reason: "each such connection holds its place for as long as its client likes",
};
const HANGING: Weight = Weight {
    severity: Severity::High,
    reason: "a whole request gets no response, and its connection is held",
};
const STUCK: Weight =
    Weight { severity: Severity::High, reason: "nothing comes back, and the connection is held" };
const MIXED: Weight = Weight {
    severity: Severity::Critical,
    reason: "responses no longer belong to their requests: a client may get what is another's",
};
const INHERITED: Weight = Weight {
    severity: Severity::Critical,
    reason: "what one client sends changes what another gets",
};
const FOREIGN: Weight = Weight {
    severity: Severity::Critical,
    reason: "a client gets the response to another request",
};
const NO_HTTP: Weight = Weight {
    severity: Severity::Medium,
    reason: "an intermediary cannot tell where what comes back ends",
};
const OWN_FAULT: Weight = Weight {
    severity: Severity::Low,
    reason: "the request is answered, by an error of the server's own",
};
const NOT_AS_DEMANDED: Weight =
    Weight { severity: Severity::Low, reason: "only the client that sends this is affected" };

const BELOW: Weight = Weight {
    severity: Severity::Low,
    reason: "the TCP of the server's kernel answers for it, not the server's program",
};

/// The weight of an exchange that is a finding.
pub fn of_exchange(case: &Case, exchange: &ExchangeResult) -> Option<Weight> {
    let judgement = &exchange.judgement;
    Some(match judgement.outcome {
        outcome if !outcome.is_finding() => return None,
        TestOutcome::Crashed => DEAD,
        TestOutcome::Leak => LEAKING,
        TestOutcome::Denied => CROWDED,
        TestOutcome::Degraded if judgement.kind == Some(FailureKind::Slow) => COSTLY,
        TestOutcome::Degraded => LATE,
        TestOutcome::Unbounded => KEPT,
        _ if case.answers == Answers::Kernel => BELOW,
        // what was sent need not be a whole request there
        _ if case.group() == PACKETS && judgement.kind == Some(FailureKind::Hang) => STUCK,
        _ => graver(of_kind(judgement.kind), case.risk.map(Risk::weight)),
    })
}

fn of_kind(kind: Option<FailureKind>) -> Weight {
    match kind {
        Some(FailureKind::Hang) => HANGING,
        Some(FailureKind::OutOfStep) => MIXED,
        Some(FailureKind::Lost) => OTHERS_LOST,
        Some(FailureKind::Inherited) => INHERITED,
        Some(FailureKind::Foreign) => FOREIGN,
        Some(FailureKind::NoHttp) => NO_HTTP,
        Some(FailureKind::Slow) => COSTLY,
        Some(FailureKind::Status(_)) => OWN_FAULT,
        Some(FailureKind::Answer) | None => NOT_AS_DEMANDED,
    }
}

fn graver(one: Weight, other: Option<Weight>) -> Weight {
    other.filter(|other| other.severity > one.severity).unwrap_or(one)
}

/// The weight of a case that is a finding: that of its gravest exchange, or of what befell the server.
pub fn of_case(row: &CaseResult) -> Option<Weight> {
    if !row.outcome.is_finding() {
        return None;
    }
    let whole = match row.outcome {
        TestOutcome::Crashed => Some(DEAD),
        TestOutcome::Leak => Some(LEAKING),
        TestOutcome::Denied => Some(denied(row)),
        // one request that takes long is a matter of its own, and weighs as much
        TestOutcome::Degraded if row.exchanges.iter().any(is_slow) => None,
        TestOutcome::Degraded => Some(LATE),
        TestOutcome::Unbounded => Some(KEPT),
        _ => None,
    };
    let deaths = row.server.iter().flat_map(|server| &server.deaths);
    let worker = deaths.into_iter().any(|death| !death.whole && death.how.is_fault());
    let exchanges = row.exchanges.iter().filter_map(|one| of_exchange(&row.case, one));
    let all = whole
        .into_iter()
        .chain(worker.then_some(WORKER_LOST))
        .chain(row.recovery.map(|_| OTHERS_LOST))
        .chain(exchanges);
    // the first of equals: what befell the server says more than an exchange
    Some(all.reduce(|worst, one| graver(worst, Some(one))).unwrap_or(NOT_AS_DEMANDED))
}

fn is_slow(exchange: &ExchangeResult) -> bool {
    exchange.judgement.kind == Some(FailureKind::Slow)
}

/// Overload denies service by its nature, and so do as many well-behaved connections.
fn denied(row: &CaseResult) -> Weight {
    let control = row.health.as_ref().and_then(|health| health.control_denied);
    match control == Some(true) || row.case.group() == OVERLOAD {
        true => CROWDED,
        false => SHUT_OUT,
    }
}

/// The group of cases that overload the server.
const OVERLOAD: char = 'R';

#[cfg(test)]
mod tests;
