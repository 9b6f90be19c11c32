//! What came of it all: of the run, of each case, of each exchange; the numbers that were measured
//! and the probes of the server's health.

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

/// What came of one exchange.
#[derive(Clone, Debug)]
pub struct ExchangeResult {
    pub name: String,
    pub judgement: Judgement,
    /// Tries, and how many of them failed.
    pub tries: u32,
    pub failed: u32,
    /// The bytes that were sent, pauses left out, and the beginning of what came back, of the try
    /// that is judged.
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
    pub took: Nanos,
    /// Between which of those bytes we paused, and how long.
    pub pauses: Vec<SentPause>,
}

/// A pause between bytes that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentPause {
    /// Bytes sent before it.
    pub after: u64,
    pub span: Nanos,
}

/// What came of a case: as bad as its worst exchange.
#[derive(Clone, Debug)]
pub struct CaseResult {
    pub case: Case,
    pub outcome: TestOutcome,
    /// Why it was skipped.
    pub skipped: Option<String>,
    /// Of random data only what did not pass, the first of it.
    pub exchanges: Vec<ExchangeResult>,
    /// Executions of random data by what came back.
    pub tally: BTreeMap<String, u64>,
    /// Set when plain requests were not answered as before at once: the time until they were;
    /// `None` inside when they never were.
    pub recovery: Option<Option<Nanos>>,
    /// Numbers that this case found.
    pub measures: Vec<Measure>,
    /// What well-behaved clients observed while the case pressed.
    pub health: Option<Health>,
    /// Reasons of the outcome where no exchange has them; a sentence each.
    pub notes: Vec<String>,
    /// From its beginning to the end of its gate.
    pub took: Nanos,
    /// What went out for it, its gate not counted.
    pub spent: Spent,
    /// What was seen of the server's processes; `None` where they are not seen.
    pub server: Option<Meanwhile>,
}

/// Digits of a digest that name a bucket.
const BUCKET_DIGITS: usize = 12;
/// Stands where a secret was.
const MASK: &[u8] = b"***";

/// The bytes with [`MASK`] in the place of each secret.
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
    /// Takes the secrets out of what was sent and of what came back; none of them is empty.
    pub fn mask(&mut self, secrets: &[String]) {
        if secrets.is_empty() {
            return;
        }
        for exchange in &mut self.exchanges {
            exchange.sent = masked(&exchange.sent, secrets);
            exchange.received = masked(&exchange.received, secrets);
        }
    }

    /// Nothing has come of it yet.
    pub fn of(case: &Case) -> CaseResult {
        CaseResult {
            case: case.clone(),
            outcome: TestOutcome::Pass,
            skipped: None,
            exchanges: Vec::new(),
            tally: BTreeMap::new(),
            recovery: None,
            measures: Vec::new(),
            health: None,
            notes: Vec::new(),
            took: Nanos::ZERO,
            spent: Spent::default(),
            server: None,
        }
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Fields,
    /// Seconds after which a server ends a state: a deadline.
    Seconds,
    /// Seconds that something took.
    Spent,
    Connections,
    Requests,
    /// Connections, requests or handshakes per second: the name says which.
    PerSecond,
    /// A quotient or a share: no unit.
    Ratio,
    /// Things that the name says.
    Count,
}

/// A number that was measured: a limit, a deadline, slots, a cost. It lies between `low` and `high`.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// What was measured, in the words of the page of limits: `request target`, `half a head`.
    pub what: String,
    /// The largest value that was still taken; the least that the number can be.
    pub low: Option<f64>,
    /// The smallest value that was refused; the most that the number can be. `None`: nothing ended
    /// it within the bound, which is `low`.
    pub high: Option<f64>,
    pub unit: Unit,
    /// What happens there, and how: `414`, `absolute, without a byte`, `none within 180 s`.
    pub note: String,
}

impl Measure {
    /// A number without a bracket.
    pub fn exact(what: impl Into<String>, value: f64, unit: Unit, note: String) -> Measure {
        Measure { what: what.into(), low: Some(value), high: Some(value), unit, note }
    }

    /// The time until all was as before; `None`: it was not, for as long as was watched.
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

/// What well-behaved clients observed while a case pressed. Shares are of time, 0 to 1, and sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Answered as before; answered 503 or 429; not answered, or wrongly.
    pub correct: f64,
    pub shed: f64,
    pub lost: f64,
    /// Probes that this rests on.
    pub probes: u64,
    /// The 99th percentile of the probes' response times while pressed.
    pub p99: Nanos,
    /// From the release to the first of the probes that were as before again; `None`: never, or nobody knows.
    pub recovery: Option<Nanos>,
    /// The run, or the time of the case, ended before it was known how long the recovery takes.
    pub cut_short: bool,
    /// Connections that were meant to press, and the most that stood at once.
    pub wanted: u64,
    pub armed: u64,
    /// How often the effect followed the pressure, and of how many times it was tried.
    pub followed: u32,
    pub rounds: u32,
    /// The same number of well-behaved connections denied service too; `None` where it was not tried.
    pub control_denied: Option<bool>,
}

/// What probes met before anything pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Baseline {
    pub probes: u64,
    pub failed: u64,
    /// Much slower than their median: see [`NOISE_FACTOR`].
    pub slow: u64,
    pub p50: Nanos,
    pub p99: Nanos,
}

/// A quiet server whose 99th percentile is more than so many times its median is noisy ...
pub const NOISE_FACTOR: u64 = 10;
/// ... if it is beyond this: below, the machine's own jitter is of that size ...
pub const NOISE_FLOOR: Nanos = Nanos::from_millis(20);
/// ... and if it is not the work of fewer probes than these: that is anybody's hiccup.
pub const NOISE_FEW: u64 = 3;

impl Baseline {
    /// Why nothing can be held against it.
    pub fn trouble(&self) -> Option<String> {
        if self.probes == 0 {
            return Some("no probe was answered before the first case".to_owned());
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
                "before the first case {} of {} probes took more than {NOISE_FACTOR} times their median, {}",
                self.slow,
                self.probes,
                show::duration(self.p50)
            )
        })
    }
}

/// How a probe comes to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// On a connection of its own.
    New,
    /// On one connection that is kept.
    Keep,
}

/// What a probe met.
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
    /// When it was due, and how much later it was sent.
    pub due: Nanos,
    pub late: Nanos,
    /// From when it was due: until the connection stood (`None` where it stood already), until the
    /// response began, until it ended.
    pub connected: Option<Nanos>,
    pub first_byte: Option<Nanos>,
    pub over: Nanos,
    pub seen: Seen,
    /// In words: `200`, `no response in 2 s`.
    pub said: String,
    /// It could not be sent for want of descriptors or ports of ours: it tells nothing of the server.
    pub ours: bool,
    /// Nobody listened.
    pub refused: bool,
    /// The case that was under way, by its id; empty before the first.
    pub case: String,
}

/// An exchange that failed, kept to be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub case: String,
    pub name: String,
    /// Path of its folder.
    pub folder: String,
}

/// What the run as a whole came to.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    pub plain: Plain,
    pub habits: Habits,
    pub baseline: Option<Baseline>,
    /// What the page that is named for bodies did with a plain POST, where it took none.
    pub post_trouble: Option<String>,
    pub cases: Vec<CaseResult>,
    /// Connections that the server serves at once, as the user named them.
    pub slots_named: Option<u64>,
    pub probes: Vec<Probe>,
    /// What was seen of the server's processes; `None` where they are not seen.
    pub server: Option<ServerSeen>,
    /// The shortest that fails, of random data that failed: the first of each kind in each case.
    pub shrunk: Vec<Shrunk>,
    /// Failures of which a folder was kept.
    pub kept: Vec<Kept>,
    /// Why nothing, or not everything, was tested.
    pub ended_early: Option<String>,
    pub interrupted: bool,
    /// What stopped it, where it was not the user.
    pub stopped: Option<Stop>,
    pub took: Nanos,
}

impl RunResult {
    /// What an exchange shrank to.
    pub fn shrunk_of(&self, case: &str, name: &str) -> Option<&Shrunk> {
        self.shrunk.iter().find(|shrunk| shrunk.case == case && shrunk.name == name)
    }

    /// The folder of an exchange that was kept.
    pub fn kept_folder(&self, case: &str, name: &str) -> Option<&str> {
        let found = self.kept.iter().find(|kept| kept.case == case && kept.name == name);
        found.map(|kept| kept.folder.as_str())
    }

    /// It ended by this.
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

/// What the server did with each of the oddities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    pub seen: Vec<(String, String)>,
}

/// A look at the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRow {
    /// From the start of the run.
    pub at: Nanos,
    /// The case that had just ended; empty before the first.
    pub case: String,
    pub state: ServerState,
}

/// What was seen of the server in the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerSeen {
    /// In the order of their instants: before the first case, and after each.
    pub rows: Vec<ServerRow>,
    /// Who ended before the first case.
    pub deaths: Vec<Death>,
}

/// What was seen of the server in the course of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Meanwhile {
    pub before: ServerState,
    pub after: ServerState,
    pub deaths: Vec<Death>,
}

/// The shortest conversation that fails in the way of another.
#[derive(Clone, Debug)]
pub struct Shrunk {
    pub case: String,
    pub name: String,
    pub kind: FailureKind,
    /// Bytes of the conversation that failed first.
    pub from: usize,
    pub script: TalkScript,
    pub boundaries: Vec<Boundary>,
    /// Conversations that the search took.
    pub executions: u64,
    /// The search came to its end, not its budget.
    pub finished: bool,
}

impl Shrunk {
    pub fn bytes(&self) -> Vec<u8> {
        sent(&self.script.steps)
    }

    /// Failures of one kind that shrink to the same have one cause, as far as can be seen.
    pub fn bucket(&self) -> String {
        // results of earlier versions keep theirs, so that this step keeps the name that it had in them
        let steps = format!("{:?}", self.script.steps).replace("Await(Response)", "Await(Answer)");
        let whole = digest(format!("{} {steps}", self.kind).as_bytes());
        whole[..BUCKET_DIGITS].to_owned()
    }
}

/// A length at which the outcome turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// What has the length: `the target's words`, `a line`, `the body`.
    pub what: String,
    /// Bytes: the longest that passes, and the shortest that fails.
    pub passes: usize,
    pub fails: usize,
}

/// What became of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayVerdict {
    /// It failed in no try.
    Fixed,
    /// In every one.
    Failing,
    Flaky,
    /// No try said anything.
    Unlearned,
}

impl ReplayVerdict {
    /// Its stable name.
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

/// A failure that was sent again.
#[derive(Clone, Debug)]
pub struct Replayed {
    pub verdict: ReplayVerdict,
    pub tries: u32,
    pub failed: u32,
    /// Of the worst try.
    pub judgement: Judgement,
}

/// What a replay came to: a row for each failure that was reached, in their order.
#[derive(Clone, Debug, Default)]
pub struct ReplayResult {
    pub rows: Vec<Replayed>,
    /// Why nothing, or not everything, was sent.
    pub ended_early: Option<String>,
    pub interrupted: bool,
}

impl CaseResult {
    /// What was shown: the outcome is as bad as this or worse.
    pub fn show(&mut self, shown: impl Into<TestOutcome>) {
        self.outcome = self.outcome.max(shown.into());
    }

    /// A reason of the outcome, which is as bad as this or worse.
    pub fn note(&mut self, shown: impl Into<TestOutcome>, why: String) {
        self.show(shown);
        self.notes.push(why);
    }

    /// It was not carried out, and why; whatever was shown before is forgotten.
    pub fn skip(&mut self, why: impl Into<String>) {
        self.outcome = TestOutcome::Skipped;
        self.skipped = Some(why.into());
    }
}
