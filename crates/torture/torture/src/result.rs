//! Results of the run, of each case and of each exchange; measured numbers and probes of the
//! server's health.

use crate::case::Case;
use crate::judge::FailureKind;
use crate::judge::{Judgement, Plain, TestOutcome};
use crate::record::{digest, sent};
use dialogue::governor::Spent;
use dialogue::governor::Stop;
use dialogue::talk::TalkScript;
use sample::{Death, ServerState};
use std::collections::BTreeMap;
use units::{Nanos, show};

/// Prefix of the name of a conversation blamed for a later failure.
pub const CULPRIT: &str = "culprit: ";
/// Prefix of the name of the last conversation before a crash, which may be its cause.
pub const SUSPECT: &str = "suspect: ";

/// Prefix of the name of a conversation after which the memory of the server grows.
pub const AFTER: &str = "memory after ";

/// Returns whether a conversation with this name is the suspected cause of a later failure. Its own
/// response does not show that failure.
pub fn is_accused(name: &str) -> bool {
    [CULPRIT, SUSPECT, AFTER].iter().any(|prefix| name.starts_with(prefix))
}

/// Result of one exchange.
#[derive(Clone, Debug)]
pub struct ExchangeResult {
    pub name: String,
    pub judgement: Judgement,
    /// Attempts, and how many of them failed.
    pub tries: u32,
    pub failed: u32,
    /// The sent bytes without pauses, and the start of the response, of the judged attempt.
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
    pub took: Nanos,
    /// Pauses between those bytes, with their durations.
    pub pauses: Vec<SentPause>,
}

/// A pause between sent bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentPause {
    /// Bytes sent before it.
    pub after: u64,
    pub span: Nanos,
    /// The client half-closes here.
    pub half_close: bool,
    /// The client does something else here that a shell cannot, such as a reset; further such
    /// actions without a pause before them have no entry.
    pub other_action: bool,
}

/// Time until plain requests got their usual response again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Plain requests got it at the first attempt.
    #[default]
    AtOnce,
    /// Plain requests got it after this time.
    After(Nanos),
    /// Plain requests did not get it as long as the campaign waited.
    Never,
}

impl Recovery {
    /// Returns whether plain requests did not get their usual response at the first attempt.
    pub fn is_late(self) -> bool {
        self != Recovery::AtOnce
    }
}

/// Result of a case: the outcome of its worst exchange.
#[derive(Clone, Debug)]
pub struct CaseResult {
    pub case: Case,
    pub outcome: TestOutcome,
    /// Reason why it was skipped.
    pub skipped: Option<String>,
    /// True if the time limit for all cases skipped it, or stopped it before its end.
    pub out_of_time: bool,
    /// The case that shows the same fault and represents it.
    pub same_as: Option<String>,
    /// The exchanges; for random data, only the first failures.
    pub exchanges: Vec<ExchangeResult>,
    /// Executions of random data by outcome.
    pub tally: BTreeMap<String, u64>,
    /// Recovery of plain requests after the case.
    pub recovery: Recovery,
    /// Numbers measured by this case.
    pub measures: Vec<Measure>,
    /// Effect of the load on well-behaved clients.
    pub health: Option<Health>,
    /// Reasons for the outcome that no exchange has; one sentence each.
    pub notes: Vec<String>,
    /// Duration from the start of the case to the end of its gate.
    pub took: Nanos,
    /// Sent by the case, not counting its gate.
    pub spent: Spent,
    /// State of the server's processes, or `None` if they are not visible.
    pub server: Option<ServerDuringCase>,
}

/// Number of digest digits that name a bucket.
const BUCKET_DIGITS: usize = 12;
/// Replacement for a secret.
const MASK: &[u8] = b"***";

/// Replaces each secret in the bytes with [`MASK`].
fn masked(bytes: &[u8], secrets: &[String]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        match secrets.iter().find(|secret| rest.starts_with(secret.as_bytes())) {
            Some(secret) => {
                out.extend_from_slice(MASK);
                rest = &rest[secret.len()..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

impl CaseResult {
    /// Removes the secrets from sent and received bytes; no secret is empty.
    pub fn mask(&mut self, secrets: &[String]) {
        if secrets.is_empty() {
            return;
        }
        for exchange in &mut self.exchanges {
            exchange.sent = masked(&exchange.sent, secrets);
            exchange.received = masked(&exchange.received, secrets);
        }
    }

    /// Returns an empty result.
    pub fn new(case: &Case) -> CaseResult {
        CaseResult {
            case: case.clone(),
            outcome: TestOutcome::Pass,
            skipped: None,
            out_of_time: false,
            same_as: None,
            exchanges: Vec::new(),
            tally: BTreeMap::new(),
            recovery: Recovery::AtOnce,
            measures: Vec::new(),
            health: None,
            notes: Vec::new(),
            took: Nanos::ZERO,
            spent: Spent::default(),
            server: None,
        }
    }
}

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Fields,
    /// Seconds after which a server closes a state: a timeout.
    Seconds,
    /// Seconds of duration.
    Spent,
    Connections,
    Requests,
    /// Connections, requests or handshakes per second, according to the name.
    PerSecond,
    /// A ratio or a share, without unit.
    Ratio,
    /// The count that the name describes.
    Count,
}

/// A measured number: a limit, a timeout, slots, a cost. It lies between `low` and `high`.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Measured limit, named as on the page of limits: `request target`, `half a head`.
    pub what: String,
    /// The largest accepted value; the minimum of the number.
    pub low: Option<f64>,
    /// The smallest refused value; the maximum of the number. `None` if no limit was found up to
    /// our bound, which is `low`.
    pub high: Option<f64>,
    pub unit: Unit,
    /// The behavior at the limit: `414`, `absolute, without a byte`, `none within 180 s`.
    pub note: String,
}

impl Measure {
    /// Returns a number without a bracket.
    pub fn exact(what: impl Into<String>, value: f64, unit: Unit, note: String) -> Measure {
        Measure { what: what.into(), low: Some(value), high: Some(value), unit, note }
    }

    /// Returns the recovery time, or `None` if the server did not recover while watched.
    pub fn recovery(what: &str, time: Option<Nanos>, watched: Nanos, note: String) -> Measure {
        Measure {
            what: what.to_owned(),
            low: Some(time.unwrap_or(watched).as_secs_f64()),
            high: time.map(Nanos::as_secs_f64),
            unit: Unit::Spent,
            note,
        }
    }
}

/// Effect of a stress case on well-behaved clients. Shares are of time, 0 to 1, and sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Shares with the usual response, with 503 or 429, and with no response or a wrong one.
    pub correct: f64,
    pub shed: f64,
    pub lost: f64,
    /// Number of probes.
    pub probes: u64,
    /// The 99th percentile of response times under load.
    pub p99: Nanos,
    /// Time from the end of the load to the first normal probe; `None` if there was none, or it is
    /// not known.
    pub recovery: Option<Nanos>,
    /// The run, or the time of the case, ended before the recovery time was known.
    pub cut_short: bool,
    /// Connections of the load, and the maximum open at once.
    pub wanted: u64,
    pub armed: u64,
    /// Rounds in which the effect followed the load, and all rounds.
    pub followed: u32,
    pub rounds: u32,
    /// The same number of well-behaved connections denied service too; `None` if not tested.
    pub control_denied: Option<bool>,
}

/// Results of probes before any load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Baseline {
    pub probes: u64,
    pub failed: u64,
    /// Much slower than the median: see [`NOISE_FACTOR`].
    pub slow: u64,
    pub p50: Nanos,
    pub p99: Nanos,
}

/// An idle server is noisy if its 99th percentile is more than this factor times the median ...
pub const NOISE_FACTOR: u64 = 10;
/// ... if it is above this: below, the machine's own jitter is of that size ...
pub const NOISE_FLOOR: Nanos = Nanos::from_millis(20);
/// ... and if it is based on at least this many probes: fewer may be noise.
pub const NOISE_FEW: u64 = 3;

impl Baseline {
    /// Returns why it cannot be compared with other results.
    pub fn trouble(&self) -> Option<String> {
        if self.probes == 0 {
            return Some("no probe got a response before the first case".to_owned());
        }
        if self.failed > 0 {
            return Some(format!(
                "{} of {} probes failed before the first case",
                self.failed, self.probes
            ));
        }
        let noisy = self.slow >= NOISE_FEW && self.slow * 100 > self.probes;
        noisy.then(|| {
            format!(
                "before the first case {} of {} probes took more than {NOISE_FACTOR} times the \
                median, {}",
                self.slow,
                self.probes,
                show::duration(self.p50)
            )
        })
    }
}

/// Connection of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// A probe on its own connection.
    New,
    /// A probe on one kept connection.
    Keep,
}

/// Result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Correct,
    /// 503 or 429, well-formed, in time.
    Shed,
    Lost,
}

/// One probe of the server's health. Instants count from the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    pub kind: ProbeKind,
    /// Due instant of the probe, and its lateness.
    pub due: Nanos,
    pub late: Nanos,
    /// From the due instant until the connection was established (`None` if it already was), until
    /// the response began, until it ended.
    pub connected: Option<Nanos>,
    pub first_byte: Option<Nanos>,
    pub over: Nanos,
    pub seen: Seen,
    /// Description: `200`, `no response in 2 s`.
    pub said: String,
    /// True if it could not be sent because this machine ran out of descriptors or ports, which
    /// shows nothing about the server.
    pub ours: bool,
    /// The connection was refused.
    pub refused: bool,
    /// Id of the running case; empty before the first.
    pub case: String,
}

/// A failed exchange, kept for replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub case: String,
    pub name: String,
    /// Path of its folder.
    pub folder: String,
}

/// Result of the whole run.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    pub plain: Plain,
    pub habits: Habits,
    pub baseline: Option<Baseline>,
    /// Response of the page for bodies to a plain POST, if it did not accept one.
    pub post_trouble: Option<String>,
    pub cases: Vec<CaseResult>,
    /// Number of connections that the server serves at once, as given by the user.
    pub slots_named: Option<u64>,
    pub probes: Vec<Probe>,
    /// State of the server's processes, or `None` if they are not visible.
    pub server: Option<ServerSeen>,
    /// The shortest failing input of random data: the first of each kind in each case.
    pub shrunk: Vec<Shrunk>,
    /// Failures whose evidence was kept in a folder.
    pub kept: Vec<Kept>,
    /// Reason why nothing, or not everything, was tested.
    pub ended_early: Option<String>,
    pub interrupted: bool,
    /// Reason for stopping, unless the user did.
    pub stopped: Option<Stop>,
    pub took: Nanos,
}

impl RunResult {
    /// Returns the shrunk form of an exchange.
    pub fn shrunk_of(&self, case: &str, name: &str) -> Option<&Shrunk> {
        self.shrunk.iter().find(|shrunk| shrunk.case == case && shrunk.name == name)
    }

    /// Returns the folder of a kept exchange.
    pub fn kept_folder(&self, case: &str, name: &str) -> Option<&str> {
        let found = self.kept.iter().find(|kept| kept.case == case && kept.name == name);
        found.map(|kept| kept.folder.as_str())
    }

    /// Records the reason for the end.
    pub fn end(&mut self, stop: Option<Stop>) {
        match stop {
            Some(Stop::Interrupted) => self.interrupted = true,
            Some(stop) => {
                self.ended_early = Some(stop.why().to_owned());
                self.stopped = Some(stop);
            }
            None => {}
        }
    }
}

/// Responses of the server to the oddities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    pub seen: Vec<(String, String)>,
}

/// A sample of the server's state.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRow {
    /// Time since the start of the run.
    pub at: Nanos,
    /// The case that had just ended; empty before the first.
    pub case: String,
    pub state: ServerState,
}

/// State of the server over the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerSeen {
    /// The rows in order: before the first case, and after each case.
    pub rows: Vec<ServerRow>,
    /// Processes that exited before the first case.
    pub deaths: Vec<Death>,
}

/// State of the server during a case.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDuringCase {
    pub before: ServerState,
    pub after: ServerState,
    pub deaths: Vec<Death>,
}

/// The shortest conversation that fails in the same way.
#[derive(Clone, Debug)]
pub struct Shrunk {
    pub case: String,
    pub name: String,
    pub kind: FailureKind,
    /// Size in bytes of the original failing conversation.
    pub from: usize,
    pub script: TalkScript,
    pub boundaries: Vec<Boundary>,
    /// Number of conversations that the search needed.
    pub executions: u64,
    /// The search completed within its budget.
    pub finished: bool,
}

impl Shrunk {
    pub fn bytes(&self) -> Vec<u8> {
        sent(&self.script.steps)
    }

    /// Returns the bucket: failures of one kind that shrink to the same input probably have one
    /// cause.
    pub fn bucket(&self) -> String {
        // earlier results use this name, so the step keeps it
        let steps = format!("{:?}", self.script.steps).replace("Await(Response)", "Await(Answer)");
        let whole = digest(format!("{} {steps}", self.kind).as_bytes());
        whole[..BUCKET_DIGITS].to_owned()
    }
}

/// A length at which the outcome changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The item with that length: `the target's words`, `a line`, `the body`.
    pub what: String,
    /// Length in bytes of the longest that passes, and of the shortest that fails.
    pub passes: usize,
    pub fails: usize,
}

/// Result of replaying a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayVerdict {
    /// The finding failed in no attempt.
    Fixed,
    /// The finding failed in every attempt.
    Failing,
    Flaky,
    /// No attempt was conclusive.
    Unlearned,
}

impl ReplayVerdict {
    /// Returns its stable name.
    pub fn id(self) -> &'static str {
        match self {
            ReplayVerdict::Fixed => "fixed",
            ReplayVerdict::Failing => "failing",
            ReplayVerdict::Flaky => "flaky",
            ReplayVerdict::Unlearned => "unlearned",
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            ReplayVerdict::Fixed => "fixed",
            ReplayVerdict::Failing => "still failing",
            ReplayVerdict::Flaky => "flaky",
            ReplayVerdict::Unlearned => "nothing learned",
        }
    }
}

/// A replayed failure.
#[derive(Clone, Debug)]
pub struct Replayed {
    pub verdict: ReplayVerdict,
    pub tries: u32,
    pub failed: u32,
    /// Judgment of the worst attempt.
    pub judgement: Judgement,
}

/// Result of a replay: a row for each failure that was reached, in order.
#[derive(Clone, Debug, Default)]
pub struct ReplayResult {
    pub rows: Vec<Replayed>,
    /// Reason why nothing, or not everything, was sent.
    pub ended_early: Option<String>,
    pub interrupted: bool,
}

impl CaseResult {
    /// Raises the outcome to at least this.
    pub fn show(&mut self, shown: impl Into<TestOutcome>) {
        self.outcome = self.outcome.max(shown.into());
    }

    /// Adds a reason and raises the outcome to at least this.
    pub fn note(&mut self, shown: impl Into<TestOutcome>, why: String) {
        self.show(shown);
        self.notes.push(why);
    }

    /// Marks the case as skipped with a reason; earlier outcomes are discarded.
    pub fn skip(&mut self, why: impl Into<String>) {
        self.outcome = TestOutcome::Skipped;
        self.skipped = Some(why.into());
    }
}
