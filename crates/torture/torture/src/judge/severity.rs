//! Severity of a finding for the server's operator, which the outcome does not show: a process that
//! crashes on one request and a missing field are both failures. It follows from what was sent and
//! from what happened to the message, its connection and other clients: see [`TABLE`].

mod table;

pub use table::{Effect, SentSort, SeverityRow, TABLE};

use super::{Cause, FailureKind, TestOutcome, missing_part};
use crate::case::{
    Answers, Case, Family, GRPC, HTTP2, HTTP3, PACKETS, PressedState, RequirementLevel,
};
use crate::framing::{self, MessageEnd};
use crate::result::{CaseResult, ExchangeResult, Recovery};

/// Severity of a finding, in increasing order.
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
    pub fn from_name(id: &str) -> Option<Severity> {
        Severity::ALL.into_iter().find(|one| one.id() == id)
    }
}

/// Danger of a message that is not handled as required: `risk` in the case file.
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
    /// A link decides which fields, or which second response, its reader receives.
    Splitting,
    /// A client reads files that the server must not serve.
    Disclosure,
}

impl Risk {
    pub const ALL: [Risk; 7] = [
        Risk::Smuggling,
        Risk::Intermediaries,
        Risk::Cost,
        Risk::Service,
        Risk::Replay,
        Risk::Splitting,
        Risk::Disclosure,
    ];

    pub fn id(self) -> &'static str {
        match self {
            Risk::Smuggling => "smuggling",
            Risk::Intermediaries => "intermediaries",
            Risk::Cost => "cost",
            Risk::Service => "service",
            Risk::Replay => "replay",
            Risk::Splitting => "splitting",
            Risk::Disclosure => "disclosure",
        }
    }

    /// Returns the consequence as a clause, if the message is processed.
    pub fn reason(self) -> &'static str {
        table::rate(self.into(), Effect::Answer).reason
    }
}

impl From<Risk> for SentSort {
    fn from(risk: Risk) -> SentSort {
        match risk {
            Risk::Smuggling => SentSort::Ambiguous,
            Risk::Intermediaries => SentSort::Misleading,
            Risk::Cost => SentSort::Costly,
            Risk::Service => SentSort::Valid,
            Risk::Replay => SentSort::Replayed,
            Risk::Splitting => SentSort::Injected,
            Risk::Disclosure => SentSort::Traversing,
        }
    }
}

/// A severity with its reason: a clause without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatedSeverity {
    pub severity: Severity,
    pub reason: &'static str,
}

/// Maximum severity of a deviation from what a specification recommends or permits, unless it
/// affects others, or requests behind it on the connection.
pub const RECOMMENDED_MAX: Severity = Severity::Medium;

/// Returns the weight of an exchange that is a finding.
pub fn of_exchange(case: &Case, exchange: &ExchangeResult) -> Option<RatedSeverity> {
    let judgement = &exchange.judgement;
    let effect = match judgement.outcome {
        outcome if !outcome.is_finding() => return None,
        TestOutcome::Crashed => Effect::Dead,
        TestOutcome::Leak if is_exhausting(exchange) => Effect::Exhausted,
        TestOutcome::Leak => Effect::Leak,
        TestOutcome::Denied => Effect::Crowded,
        TestOutcome::Degraded if judgement.kind == Some(FailureKind::Slow) => Effect::Slow,
        TestOutcome::Degraded => Effect::Late,
        TestOutcome::Unbounded => Effect::Kept,
        _ => Effect::new(judgement.kind),
    };
    Some(capped(case, sent(case, effect, exchange), effect))
}

/// Returns the kind of input that a case sends.
fn sent(case: &Case, effect: Effect, exchange: &ExchangeResult) -> SentSort {
    if case.answers == Answers::Kernel {
        return SentSort::Kernel;
    }
    // such cases need not send a complete request
    if case.group() == PACKETS && effect == Effect::Hang {
        return SentSort::Segments;
    }
    // what should be refused need not be a request
    let bytes = &exchange.sent;
    let invalid = || {
        let reading = framing::read(bytes);
        is_http1(case) && reading.has_invalid_head()
            || case.group() == RANDOM && reading.is_invalid()
    };
    // a client that half-closes inside its message waits for no response
    let gives_up =
        || exchange.pauses.iter().any(|pause| pause.half_close) && missing_part(bytes).is_some();
    let is_silent = matches!(effect, Effect::Hang | Effect::Unfinished);
    let is_odd = || invalid() || exchange.judgement.must_refuse;
    if is_silent && is_odd() || effect == Effect::Hang && (is_recommended(case) || gives_up()) {
        return SentSort::Misleading;
    }
    let is_http = is_http1(case);
    // the server parsed the unread content of a valid message as the next request
    if effect == Effect::NextRefused && is_http && framing::read(bytes).has_valid_content() {
        return SentSort::Ambiguous;
    }
    // a valid request must get a response, even with a field that resembles a framing field
    if is_silent && is_http && is_valid(bytes) {
        return SentSort::Valid;
    }
    // so must each request of a pipeline without content
    if effect == Effect::Closed && is_http && framing::valid_requests(bytes) > Some(1) {
        return SentSort::Valid;
    }
    // the content is confused with the next response, unless none follows on this connection
    if exchange.judgement.cause == Some(Cause::HeadContent) {
        match effect {
            Effect::AnswerClosed => return SentSort::Other,
            Effect::Answer => return SentSort::Misleading,
            _ => {}
        }
    }
    case.risk.map_or(SentSort::Other, SentSort::from)
}

/// Returns whether the bytes of a case are HTTP/1, not frames.
pub(crate) fn is_http1(case: &Case) -> bool {
    !matches!(case.group(), GRPC | HTTP2 | HTTP3)
}

/// Returns whether the bytes begin with a valid and complete request.
fn is_valid(bytes: &[u8]) -> bool {
    let reading = framing::read(bytes);
    !reading.is_invalid() && matches!(reading.end, MessageEnd::At(_))
}

fn is_recommended(case: &Case) -> bool {
    matches!(case.level, RequirementLevel::Should | RequirementLevel::May)
}

/// Returns the severity of an effect; that of a violated recommendation is limited.
fn capped(case: &Case, sent: SentSort, effect: Effect) -> RatedSeverity {
    let rated = table::rate(sent, effect);
    let spreads = effect.affects_others() || spoils_following(sent, effect);
    let severity = match is_recommended(case) && !spreads {
        true => rated.severity.min(RECOMMENDED_MAX),
        false => rated.severity,
    };
    RatedSeverity { severity, ..rated }
}

/// Returns whether a later request of the connection, which may be that of another client, is
/// confused with the message or with its response.
fn spoils_following(sent: SentSort, effect: Effect) -> bool {
    let is_confused = matches!(effect, Effect::NextRefused | Effect::NextHangs);
    matches!(effect, Effect::OutOfStep | Effect::ContentParsed)
        || sent == SentSort::Ambiguous && is_confused
}

/// Returns the weight of a case that is a finding: that of its most severe exchange, or of the
/// effect on the server.
pub fn of_case(row: &CaseResult) -> Option<RatedSeverity> {
    if !row.outcome.is_finding() {
        return None;
    }
    let whole = match row.outcome {
        TestOutcome::Crashed => Some(Effect::Dead),
        // growth without further requests is its own exchange, with the same weight
        TestOutcome::Leak if row.exchanges.iter().any(is_exhausting) => None,
        TestOutcome::Leak => Some(Effect::Leak),
        TestOutcome::Denied => Some(denied(row)),
        // a slow request is its own exchange, with the same weight
        TestOutcome::Degraded if row.exchanges.iter().any(is_slow) => None,
        TestOutcome::Degraded => Some(Effect::Late),
        TestOutcome::Unbounded => Some(Effect::Kept),
        _ => None,
    };
    let deaths = row.server.iter().flat_map(|server| &server.deaths);
    let worker = deaths.into_iter().any(|death| !death.whole && death.how.is_fault());
    let on_server =
        whole.into_iter().chain(worker.then_some(Effect::WorkerLost)).chain(after(row.recovery));
    let exchanges = row.exchanges.iter().filter_map(|one| of_exchange(&row.case, one));
    let all = on_server.map(|effect| table::rate(SentSort::Other, effect)).chain(exchanges);
    // the first of equal ones: the effect on the server is better evidence than an exchange
    let worst = all.reduce(|worst, one| if one.severity > worst.severity { one } else { worst });
    Some(worst.unwrap_or_else(|| table::rate(SentSort::Other, Effect::Answer)))
}

/// Returns the effect on plain requests after a case.
fn after(recovery: Recovery) -> Option<Effect> {
    match recovery {
        Recovery::AtOnce => None,
        Recovery::After(_) => Some(Effect::OthersLost),
        Recovery::Never => Some(Effect::Stopped),
    }
}

fn is_slow(exchange: &ExchangeResult) -> bool {
    exchange.judgement.kind == Some(FailureKind::Slow)
}

fn is_exhausting(exchange: &ExchangeResult) -> bool {
    exchange.judgement.kind == Some(FailureKind::Exhausts)
}

/// Returns the effect of a denial of service. A limit on connections denies service to all others,
/// regardless of what the connections do. In that case, in an overload, or if many connections per
/// second were not compared with well-behaved ones, the kind of connection is not the cause.
fn denied(row: &CaseResult) -> Effect {
    let well_behaved = match &row.case.family {
        Some(Family::PressHonest(_) | Family::PressKeepAlive(_)) => true,
        _ => is_limit(row),
    };
    let uncompared = control(row).is_none() && row.case.group() == CONNECTIONS;
    match well_behaved || uncompared || row.case.group() == OVERLOAD {
        true => Effect::Crowded,
        false => Effect::ShutOut,
    }
}

/// Returns whether a limit on connections keeps others out: idle ones suffice.
pub(crate) fn is_connection_limit(row: &CaseResult) -> bool {
    row.outcome == TestOutcome::Denied && is_limit(row)
}

/// Returns whether held connections keep others out, and were not compared with as many idle ones.
pub(crate) fn lacks_control(row: &CaseResult) -> bool {
    let held = matches!(&row.case.family, Some(Family::PressHeld(_)));
    row.outcome == TestOutcome::Denied && held && control(row).is_none()
}

fn is_limit(row: &CaseResult) -> bool {
    let idle = match &row.case.family {
        Some(Family::PressHeld(with)) => with.state == PressedState::Idle,
        _ => false,
    };
    idle || control(row) == Some(true)
}

/// Returns whether as many well-behaved connections kept others out; `None` if they were not tried.
fn control(row: &CaseResult) -> Option<bool> {
    row.health.as_ref().and_then(|health| health.control_denied)
}

/// The group of cases that send random data.
const RANDOM: char = 'F';

/// The group of cases about the use of connections.
const CONNECTIONS: char = 'C';

/// The group of cases that overload the server.
const OVERLOAD: char = 'R';

#[cfg(test)]
mod tests;
