//! How much a finding matters to the server's operator, which the outcome does not show: a process
//! that crashes on one request and a missing field are both failures.

use super::{FailureKind, TestOutcome};
use crate::case::{Answers, Case, PACKETS};
use crate::result::{CaseResult, ExchangeResult};

/// How much a finding matters, in increasing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Only the client that sends it is affected.
    Low,
    /// An intermediary may be misled, or clients are served slowly.
    Medium,
    /// Some clients get no response, or a part of the server is lost.
    High,
    /// All clients get no response, for a long time or at little cost, or clients get responses of
    /// others.
    Critical,
}

impl Severity {
    /// All severities, the highest first.
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

    /// Default severity that fails a run.
    pub const FAILING: Severity = Severity::High;

    /// Returns the severity with this id.
    pub fn named(id: &str) -> Option<Severity> {
        Severity::ALL.into_iter().find(|one| one.id() == id)
    }
}

/// Consequence of a violation: `risk` in the case file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// Server and intermediary may find different requests in the same bytes.
    Smuggling,
    /// An intermediary may route, cache or interpret the message differently from the server.
    Intermediaries,
    /// A client makes the server use far more CPU time or memory than it uses itself.
    Cost,
    /// Valid requests fail when they arrive in different segments.
    Service,
    /// An attacker who records a request can execute it again.
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

    /// Returns the consequence as a clause.
    pub fn reason(self) -> &'static str {
        self.weight().reason
    }

    fn weight(self) -> RatedSeverity {
        match self {
            Risk::Smuggling => SMUGGLED,
            Risk::Intermediaries => MISLED,
            Risk::Cost => COSTLY,
            Risk::Service => UNSERVED,
            Risk::Replay => REPEATED,
        }
    }
}

/// A severity with its reason: a clause without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatedSeverity {
    pub severity: Severity,
    pub reason: &'static str,
}

const SMUGGLED: RatedSeverity = RatedSeverity {
    severity: Severity::Critical,
    reason: "the server and an intermediary in front of it may find different requests in the same bytes",
};
const MISLED: RatedSeverity = RatedSeverity {
    severity: Severity::Medium,
    reason: "an intermediary may interpret the message differently",
};
const COSTLY: RatedSeverity = RatedSeverity {
    severity: Severity::Medium,
    reason: "a client makes the server use far more CPU time or memory than it uses itself",
};
const UNSERVED: RatedSeverity = RatedSeverity {
    severity: Severity::High,
    reason: "valid requests fail when they arrive in different segments",
};
const REPEATED: RatedSeverity = RatedSeverity {
    severity: Severity::High,
    reason: "an attacker who replays a recorded request executes it again, as its sender",
};
const DEAD: RatedSeverity = RatedSeverity {
    severity: Severity::Critical,
    reason: "the server's process exits: all its clients are disconnected",
};
const LEAKING: RatedSeverity = RatedSeverity {
    severity: Severity::Critical,
    reason: "resources are not released: enough repetitions stop the server",
};
const SHUT_OUT: RatedSeverity = RatedSeverity {
    severity: Severity::Critical,
    reason: "a few connections keep all other clients out",
};
const CROWDED: RatedSeverity = RatedSeverity {
    severity: Severity::High,
    reason: "well-behaved clients are not served meanwhile",
};
const WORKER_LOST: RatedSeverity = RatedSeverity {
    severity: Severity::High,
    reason: "a worker of the server crashes: its clients are disconnected",
};
const OTHERS_LOST: RatedSeverity = RatedSeverity {
    severity: Severity::High,
    reason: "afterwards, plain requests of other clients no longer get their usual response",
};
const LATE: RatedSeverity = RatedSeverity {
    severity: Severity::Medium,
    reason: "well-behaved clients are served slowly, or some not at all",
};
const KEPT: RatedSeverity = RatedSeverity {
    severity: Severity::Medium,
    reason: "each such connection occupies a slot as long as its client likes",
};
const HANGING: RatedSeverity = RatedSeverity {
    severity: Severity::High,
    reason: "a complete request gets no response, and its connection is kept open",
};
const STUCK: RatedSeverity = RatedSeverity {
    severity: Severity::High,
    reason: "there is no response, and the connection is kept \
        open",
};
const MIXED: RatedSeverity = RatedSeverity {
    severity: Severity::Critical,
    reason: "responses no longer match their requests: a client may get the response of another",
};
const INHERITED: RatedSeverity = RatedSeverity {
    severity: Severity::Critical,
    reason: "a request of one client changes the response to another",
};
const FOREIGN: RatedSeverity = RatedSeverity {
    severity: Severity::Critical,
    reason: "a client gets the response to another request",
};
const NO_HTTP: RatedSeverity = RatedSeverity {
    severity: Severity::Medium,
    reason: "an intermediary cannot find the end of the response",
};
const OWN_FAULT: RatedSeverity = RatedSeverity {
    severity: Severity::Low,
    reason: "the request gets a response, but a server error",
};
const NOT_AS_DEMANDED: RatedSeverity = RatedSeverity {
    severity: Severity::Low,
    reason: "only the client that sends this is affected",
};

const BELOW: RatedSeverity = RatedSeverity {
    severity: Severity::Low,
    reason: "caused by the TCP of the server's kernel, not by the server's program",
};

/// Returns the weight of an exchange that is a finding.
pub fn of_exchange(case: &Case, exchange: &ExchangeResult) -> Option<RatedSeverity> {
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
        // such cases need not send a complete request
        _ if case.group() == PACKETS && judgement.kind == Some(FailureKind::Hang) => STUCK,
        _ => graver(of_kind(judgement.kind), case.risk.map(Risk::weight)),
    })
}

fn of_kind(kind: Option<FailureKind>) -> RatedSeverity {
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

fn graver(one: RatedSeverity, other: Option<RatedSeverity>) -> RatedSeverity {
    other.filter(|other| other.severity > one.severity).unwrap_or(one)
}

/// Returns the weight of a case that is a finding: that of its most severe exchange, or of the
/// effect on the server.
pub fn of_case(row: &CaseResult) -> Option<RatedSeverity> {
    if !row.outcome.is_finding() {
        return None;
    }
    let whole = match row.outcome {
        TestOutcome::Crashed => Some(DEAD),
        TestOutcome::Leak => Some(LEAKING),
        TestOutcome::Denied => Some(denied(row)),
        // a slow request is its own exchange, with the same weight
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
        .chain(row.recovery.is_late().then_some(OTHERS_LOST))
        .chain(exchanges);
    // the first of equals: the effect on the server says more than an exchange
    Some(all.reduce(|worst, one| graver(worst, Some(one))).unwrap_or(NOT_AS_DEMANDED))
}

fn is_slow(exchange: &ExchangeResult) -> bool {
    exchange.judgement.kind == Some(FailureKind::Slow)
}

/// Overload denies service by its nature, and so do as many well-behaved connections.
fn denied(row: &CaseResult) -> RatedSeverity {
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
