//! A run of conformance cases: what the server does with plain requests and with harmless oddities,
//! then case by case, each breach tried again until it is sure or known to come and go.
#![forbid(unsafe_code)]

mod announce;
mod baseline;
mod chain;
mod errands;
pub(crate) mod families;
mod habits;
mod hang;
mod heir;
mod leak;
mod life;
mod lints;
pub mod pressure;
pub mod probes;
mod random;
mod raw;
mod replay;
mod search;
pub mod shrink;
mod spans;
mod watcher;
mod worst;

pub use chain::{ChainTargets, RecordingOrigin, chain};
pub use errands::{Done, ServerCommand};
pub use replay::{Failure, Timing, replay, shrink_failures};
pub use search::{CULPRIT, TAIL_MAX};
pub use spans::{CaseSpan, span_of_run, usual_spans};
pub use torture::oddities::ODDITIES;
pub use watcher::{CampaignEvent, Unwatched, Watcher, Watchers};
pub use worst::worst;

use crate::shrink::Budget;
use conduit::{OpenOptions, Peer};
use dialogue::governor::Governor;
use dialogue::governor::Stop;
use dialogue::http2::{Spoken, write};
use dialogue::http3;
use dialogue::talk::{All, Awaited, Carried, Director, Move, Talk, TalkEnd, TalkScript};
use dialogue::text;
use dialogue::text::Values;
use hang::Tries;
use life::{Life, Struck};
use lints::Lints;
use pressure::Plan;
use probes::ProbeListener;
use probes::{Pattern, Probed, Probes, Probing};
use sample::{Death, FailureClass, ServerState};
use search::Trail;
use torture::case::{Case, Exchange, Need, ScriptStep};
use torture::judge;
use torture::judge::{FailureKind, Judgement, Plain, TestOutcome};
use torture::record::{Execution, pauses, sent as spoken};
use torture::result::{Baseline, CaseResult, ExchangeResult, Habits, Probe, RunResult};
use units::Nanos;

/// Tries of an exchange that fails; it is a finding when it fails in most of them.
pub const TRIES: u32 = 3;
/// Plain requests before anything odd is sent.
const PLAIN_CALLS: usize = 3;
/// Time for a plain request.
const PLAIN_DEADLINE: Nanos = Nanos::from_secs(5);
/// How long the server may take to answer plain requests again after a case.
pub const GATE: Nanos = Nanos::from_secs(30);
/// Probes of a run that are kept.
pub const PROBES_MAX: usize = 100_000;
/// How long a body is withheld, to see whether the server waits for it.
const WITHHELD: Nanos = Nanos::from_millis(500);
/// How the alert of TLS 1.0 to 1.3 begins (RFC 8446 section 5.1).
const TLS_ALERT: &[u8] = &[0x15, 0x03];
const GATE_EVERY: Nanos = Nanos::from_millis(200);

/// How long a connection is watched after its last response, for responses that nobody asked for.
const GRACE: Nanos = Nanos::from_millis(60);

/// How long the server is given to close a connection that it said it would close.
const LINGER: Nanos = Nanos::from_secs(2);
/// The same behind GOAWAY: what a case asks of the end of the connection it waits for by itself.
const FRAMES_LINGER: Nanos = Nanos::from_millis(200);

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Of everything random.
    pub seed: u64,
    /// Executions of random data of one case at most.
    pub executions_max: u64,
    /// Executions of random data that are under way at once; what is sent on each connection, and
    /// what is said of it, does not depend on it.
    pub workers: usize,
    pub probing: Probing,
    /// How long the quiet server is probed before the first case.
    pub baseline: Nanos,
    /// Paths that random data is sent to, beside the probed page.
    pub pages: Vec<String>,
    /// Path and query of a page that is longer than all buffers between the two programs.
    pub big: Option<String>,
    /// Connections that the server serves at once, where the user knows.
    pub slots: Option<u64>,
    /// What may be spent on finding who did it, for each case, and on shrinking, for the whole run;
    /// `None`: neither is done.
    pub search: Option<Budget>,
    /// What well-behaved clients observe is judged even where the quiet server is noisy.
    pub accept_noisy: bool,
    /// Path and query of a page that costs the server much more than the probed one.
    pub expensive: Option<String>,
    /// The commands that the user gave.
    pub errands: Vec<ServerCommand>,
    /// How long odd requests go on and on.
    pub soak: Option<Nanos>,
    /// How long silence lasts at most until it is a failure; `None`: as long as each exchange says.
    pub silence_max: Option<Nanos>,
    /// Of a case that changes requests again and again: how many of them, and for how long; `None`: as its
    /// file says.
    pub mutants_max: Option<u64>,
    pub mutation: Option<Nanos>,
}

/// Who is tested.
#[derive(Clone, Debug)]
pub struct TestTarget {
    pub peer: Peer,
    /// Name for SNI; `None` without TLS.
    pub tls_name: Option<String>,
    /// What plain requests, probes and cases speak: HTTP/1.1, or HTTP/2 as a well-behaved client does.
    pub spoken: Spoken,
    /// `path` is the probed page.
    pub values: Values,
    /// `values.post` names a page that takes bodies.
    pub takes_bodies: bool,
    /// Field lines of ours, each with its line end: User-Agent and the user's own.
    pub fields: String,
    /// Values of the user's fields that nobody may read in a result.
    pub secrets: Vec<String>,
}

/// What the runner needs of the world.
pub trait World {
    fn now(&mut self) -> Nanos;

    /// Has the conversations that the director begins, until it says that it is all over, or the run
    /// is to end.
    fn play(&mut self, director: &mut dyn Director);

    /// Has these conversations, all at once, and gives them back in their order.
    fn talk(&mut self, scripts: Vec<TalkScript>) -> Vec<Talk> {
        let mut all = All::new(scripts);
        self.play(&mut all);
        all.into_talks()
    }

    fn pause(&mut self, span: Nanos);

    /// Conversations that go on beside everything that is played.
    fn carried(&mut self) -> &mut Carried;

    /// Who keeps the bounds, on every stage of this world.
    fn governor(&mut self) -> &mut Governor;
    /// Work of this process since it was asked last, as a share of one core; `None` where that is not
    /// known.
    fn own_work(&mut self) -> Option<f64> {
        None
    }

    /// The server's processes and what they hold now; `None` where they are not seen. Deaths are to be
    /// asked for before.
    fn server(&mut self) -> Option<ServerState> {
        None
    }

    /// Whether conversations can be held segment by segment.
    ///
    /// # Errors
    /// Why not, and the way out.
    fn device(&self) -> Result<(), String> {
        Err(Need::Device.missing().to_owned())
    }

    /// Processes of the server that have ended since this was asked last; cheap as long as none has.
    fn deaths(&mut self) -> Vec<Death> {
        Vec::new()
    }

    /// Has a command of the user's run from this instant on, while the next director plays.
    fn send_for(&mut self, _errand: ServerCommand, _at: Nanos) {}

    /// What became of the commands that were sent for, in the order of their beginnings. Waits for
    /// those that go on; those that never began are begun, where the server needs them.
    fn errands(&mut self) -> Vec<Done> {
        Vec::new()
    }

    /// The run is to end now, and why.
    fn stopped(&self) -> Option<Stop>;
}

/// Runs the cases, in their order. `watcher` hears of everything as it happens.
pub fn run(
    target: &TestTarget,
    settings: &Settings,
    cases: &[Case],
    world: &mut dyn World,
    watcher: &mut dyn Watcher,
) -> RunResult {
    let start = world.now();
    let mut runner = Runner::new(target, settings, cases, world, watcher);
    let mut result = RunResult { slots_named: settings.slots, ..RunResult::default() };
    match runner.preconditions() {
        Ok(plain) => runner.be_ready(plain),
        Err(why) => {
            result.ended_early = Some(why);
            result.end(runner.world.stopped());
            result.took = runner.world.now() - start;
            return result;
        }
    }
    result.plain = runner.plain.clone();
    result.habits = runner.habits();
    let has = runner.offers(&mut result);
    result.baseline = Some(runner.baseline());
    runner.quiet = result.baseline.unwrap_or_default();
    runner.begin_life();
    runner.hold_beside();
    let (fatal, calm): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| families::is_fatal(case));
    runner.cases(calm, &has, &mut result);
    if result.ended_early.is_none() {
        result.shrunk = runner.shrink_all();
        runner.forget_deaths();
        runner.cases(fatal, &has, &mut result);
    }
    runner.let_go_beside();
    result.cases.sort_by(|one, other| one.case.id.cmp(&other.case.id));
    result.end(runner.world.stopped());
    result.took = runner.world.now() - start;
    result.habits.seen.append(&mut runner.traits);
    result.probes = runner.probes;
    result.server = runner.life.into_seen();
    result
}

pub(crate) struct Runner<'a> {
    target: &'a TestTarget,
    settings: &'a Settings,
    world: &'a mut dyn World,
    watcher: &'a mut dyn Watcher,
    plain: Plain,
    start: Nanos,
    probing: Probing,
    /// What probes met before the first case.
    quiet: Baseline,
    /// Of the whole run, [`PROBES_MAX`] at most.
    probes: Vec<Probe>,
    lints: Lints,
    /// What the probed page is known by: its ETag and its Last-Modified, where it has them.
    validators: (String, String),
    /// Bytes of QPACK's table that the server permits.
    table: u64,
    /// Numbers the markers.
    serial: u64,
    /// What the plain requests of a gate say to the server's log.
    remark: String,
    /// Everything that was asked for.
    cases: &'a [Case],
    meter: families::Meter,
    /// Found by the first case that needs it.
    knee: Option<families::Knee>,
    /// Connections that the server serves at once, as the last case found them.
    slots: Option<u64>,
    trail: Trail,
    hangs: families::HangsSeen,
    life: Life,
    /// What the slowest of the first plain requests took.
    slowest_plain: Nanos,
    /// What the server does where no text says what to do, as cases found it.
    traits: Vec<(String, String)>,
    /// Of the case under way: the largest round of each kind of pressure.
    pressed: Vec<Plan>,
}

impl<'a> Runner<'a> {
    fn new(
        target: &'a TestTarget,
        settings: &'a Settings,
        cases: &'a [Case],
        world: &'a mut dyn World,
        watcher: &'a mut dyn Watcher,
    ) -> Runner<'a> {
        let start = world.now();
        Runner {
            target,
            settings,
            world,
            watcher,
            plain: Plain::default(),
            start,
            quiet: Baseline::default(),
            probing: settings.probing.clone(),
            probes: Vec::new(),
            lints: Lints::default(),
            validators: Default::default(),
            table: 0,
            serial: 0,
            remark: String::new(),
            cases,
            meter: families::Meter::default(),
            knee: None,
            slots: None,
            trail: Trail::default(),
            hangs: families::HangsSeen::default(),
            life: Life::default(),
            slowest_plain: Nanos::ZERO,
            traits: Vec::new(),
            pressed: Vec::new(),
        }
    }
}

impl Runner<'_> {
    fn is_stopped(&self) -> bool {
        self.world.stopped().is_some()
    }

    /// What the server has that a case may need.
    fn offers(&mut self, result: &mut RunResult) -> Vec<Need> {
        let plain = self.ask(&habits::plain_request(self.target, ""));
        let mut has = habits::offers(&plain, &self.ranges());
        self.validators = habits::validators(&plain);
        self.table = habits::table_of(&plain);
        has.extend((self.table >= habits::TABLE_MIN).then_some(Need::Table));
        has.extend(self.early());
        result.post_trouble = self.post_trouble();
        if self.target.takes_bodies && result.post_trouble.is_none() {
            has.push(Need::Post);
            has.extend(self.reads_bodies().then_some(Need::Reading));
        }
        if !self.settings.pages.is_empty() {
            has.push(Need::Pages);
        }
        if self.settings.expensive.is_some() {
            has.push(Need::Expensive);
        }
        if self.settings.soak.is_some() {
            has.push(Need::Soak);
        }
        if self.world.device().is_ok() {
            has.push(Need::Device);
        }
        let gives = |errand: &ServerCommand| self.settings.errands.contains(errand);
        if gives(&ServerCommand::Restart) {
            has.push(Need::Restart);
        }
        if gives(&ServerCommand::Starve) && gives(&ServerCommand::Relieve) {
            has.push(Need::Starve);
        }
        has
    }

    /// What the server does with early data, where a case wants to know.
    fn early(&mut self) -> Vec<Need> {
        let early = [Need::EarlyTicket, Need::EarlyData];
        let asked = self.cases.iter().flat_map(|case| &case.needs).any(|need| early.contains(need));
        if !asked || !self.target.spoken.is_http3() || self.is_stopped() {
            return Vec::new();
        }
        let talk = self.ask(&habits::early_request(self.target));
        let heard = |name| habits::is_heard(&talk, name);
        match (heard("no-ticket"), heard("early-accepted"), heard("early-rejected")) {
            (false, true, _) => early.to_vec(),
            (false, false, true) => early[..1].to_vec(),
            _ => Vec::new(),
        }
    }

    /// Carries cases out until the last, a wish to end, or the loss of the server.
    fn cases(&mut self, mut cases: Vec<&Case>, has: &[Need], result: &mut RunResult) {
        let beside = self.is_beside();
        cases.sort_by_key(|case| families::place(case, beside));
        for case in cases {
            if self.is_stopped() {
                return;
            }
            self.watcher.hear(CampaignEvent::CaseBegins(case));
            let mut done = self.case(case, has);
            done.mask(&self.target.secrets);
            self.watcher.hear(CampaignEvent::CaseOver(&done));
            self.heed_beside(&done);
            let lost = matches!(done.recovery, Some(None));
            let id = done.case.id.clone();
            result.cases.push(done);
            if lost {
                let span = units::show::duration(GATE);
                result.ended_early =
                    Some(format!("no plain request was answered as before within {span} of {id}"));
                return;
            }
        }
    }

    /// The probed page answers, and always the same.
    fn preconditions(&mut self) -> Result<Plain, String> {
        let mut plain: Option<Plain> = None;
        for _ in 0..PLAIN_CALLS {
            let talk = self.ask(&habits::plain_request(self.target, ""));
            self.slowest_plain = self.slowest_plain.max(talk.over);
            if let TalkEnd::Unconnected(class) = talk.end {
                let hint = match (class, &self.target.tls_name) {
                    (_, Some(_)) if self.target.spoken.is_http3() => {
                        ": is HTTP/3 (QUIC, over UDP) served at this port? --http 2 tests it over TCP"
                    }
                    (FailureClass::Tls, Some(_)) if self.target.spoken.is_http2() => {
                        ": does it speak HTTP/2 over TLS? --http 1.1 tests it without"
                    }
                    (FailureClass::Tls, Some(_)) => ": does it speak TLS? try http://",
                    (FailureClass::Certificate, _) => ": accept any with --insecure",
                    _ => "",
                };
                return Err(format!("no connection: {}{hint}", class.explain()));
            }
            let Some(response) =
                talk.replies.responses.first().filter(|response| response.complete)
            else {
                let hint = if talk.raw.starts_with(TLS_ALERT) {
                    ": it speaks TLS, write https://"
                } else if self.target.spoken.is_http2() {
                    ": does it speak HTTP/2? --http 1.1 tests it without"
                } else if judge::speaks_http2(&talk) {
                    ": it speaks HTTP/2 only, give --http 2"
                } else {
                    ""
                };
                return Err(format!("a plain GET was not answered: {}{hint}", judge::seen(&talk)));
            };
            if !(200..400).contains(&response.status) {
                return Err(format!(
                    "a plain GET was answered {}: {}",
                    response.status,
                    way_out(response.status)
                ));
            }
            let now = Plain {
                status: response.status,
                body_len: response.body_len,
                digest: Some(response.digest),
            };
            plain = Some(match plain {
                Some(before) if before.status != now.status => {
                    return Err(format!(
                        "a plain GET was answered {} and then {}: name a page that is steady",
                        before.status, now.status
                    ));
                }
                // a page that changes: its status alone is held against the responses
                Some(before) if before.digest != now.digest => Plain { digest: None, ..now },
                _ => now,
            });
        }
        plain.ok_or_else(|| "nothing was asked".to_owned())
    }

    fn habits(&mut self) -> Habits {
        let mut habits = Habits::default();
        if self.target.spoken.has_frames() {
            // the oddities are lines of HTTP/1.1
            return habits;
        }
        for (name, method, bytes) in ODDITIES {
            if self.is_stopped() {
                break;
            }
            let made = text::bytes(bytes, &self.target.values).unwrap_or_default();
            let mut script = self.bare(vec![Move::Send(made)], PLAIN_DEADLINE);
            script.methods = vec![method.to_owned()];
            (script.grace, script.linger) = (GRACE, LINGER);
            let talk = self.hold(script);
            habits.seen.push((name.to_owned(), judge::seen(&talk)));
        }
        habits
    }

    /// A plain POST is answered below 400, or what came back.
    fn post_trouble(&mut self) -> Option<String> {
        let target = self.target;
        if !target.takes_bodies || target.spoken.has_frames() {
            return None;
        }
        let talk = self.post("x", PLAIN_DEADLINE);
        let taken = talk.replies.responses.first().is_some_and(|response| response.status < 400);
        (!taken).then(|| judge::seen(&talk))
    }

    /// A POST of one byte of which this much is sent.
    fn post(&mut self, body: &str, deadline: Nanos) -> Talk {
        let target = self.target;
        let (path, host, ours) = (&target.values.post, &target.values.host, &target.fields);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{ours}Content-Length: 1\r\n\r\n{body}"
        );
        let mut script = self.bare(vec![Move::Send(head.into_bytes())], deadline);
        script.methods = vec!["POST".to_owned()];
        self.hold(script)
    }

    /// Nothing is answered while the body is withheld.
    fn reads_bodies(&mut self) -> bool {
        !self.target.spoken.has_frames() && self.post("", WITHHELD).replies.responses.is_empty()
    }

    fn ranges(&mut self) -> Talk {
        self.ask(&habits::plain_request(self.target, "Range: bytes=0-0\r\n"))
    }

    fn case(&mut self, case: &Case, has: &[Need]) -> CaseResult {
        let start = self.world.now();
        let mut result = CaseResult::of(case);
        self.trail.begin_case();
        self.begin_case_life();
        self.pressed.clear();
        let given = |need: &Need| match need {
            Need::Post => self.target.takes_bodies,
            Need::Tls => self.target.tls_name.is_some(),
            _ => has.contains(need),
        };
        if let Some(need) = case.needs.iter().find(|need| !given(need)) {
            result.outcome = TestOutcome::Skipped;
            let why = self.world.device().err().filter(|_| *need == Need::Device);
            result.skipped = Some(why.unwrap_or_else(|| need.missing().to_owned()));
            return result;
        }
        let version = case.version_spoken();
        if version != self.target.spoken.version() {
            result.outcome = TestOutcome::Skipped;
            result.skipped = Some(format!("it speaks HTTP/{version} (--http {version})"));
            return result;
        }
        if let Some(why) = self.world.governor().barred(&case.id) {
            result.outcome = TestOutcome::Skipped;
            result.skipped = Some(why.to_owned());
            return result;
        }
        let before = self.announce(case);
        for exchange in &case.exchanges {
            if self.is_stopped() || self.case_is_over() || self.life.gone {
                break;
            }
            let done = self.exchange(case, exchange);
            result.outcome = result.outcome.max(done.judgement.outcome);
            result.exchanges.push(done);
        }
        if let Some(fuzz) = &case.fuzz {
            self.random(case, fuzz, &mut result);
        }
        if let Some(family) = &case.family {
            families::run(self, case, family, &mut result);
        }
        self.conclude(before, &mut result);
        result.recovery = self.gate();
        if result.recovery.is_some() {
            result.outcome = result.outcome.max(TestOutcome::Fail);
        }
        let struck = self.judge_life(&mut result);
        self.name_culprit(case, struck, &mut result);
        self.end_case_life(&mut result);
        result.took = self.world.now() - start;
        result
    }

    /// Something befell the server: which bytes did it?
    fn name_culprit(&mut self, case: &Case, struck: Struck, result: &mut CaseResult) {
        if families::presses(case) {
            // what presses fails by its numbers, unless a process ended
            if struck != Struck::Nobody {
                self.blame_pressure(case, result);
            }
            return;
        }
        let late = result.recovery.is_some() || self.trail.lost_touch() || struck != Struck::Nobody;
        if late && result.recovery != Some(None) {
            self.attribute(case, result);
        } else if late {
            self.suspect(case, struck, result);
        }
    }

    fn exchange(&mut self, case: &Case, exchange: &Exchange) -> ExchangeResult {
        let mut kept: Option<ExchangeResult> = None;
        let (mut tries, mut failed) = (0, 0);
        let mut had = Tries::default();
        while tries < TRIES - u32::from(had.silent)
            && !self.is_stopped()
            && !(tries > 0 && self.case_is_over())
        {
            let (script, talk) = self.next_try(case, exchange, tries, &mut had);
            let sent = spoken(&script.steps);
            if talk.end == TalkEnd::Ours && self.is_stopped() {
                // it was cut short: that says nothing of the server
                break;
            }
            let mut judgement = judge::judge(exchange, case.level, &talk, &self.plain);
            tries += 1;
            let struck = self.hear_deaths();
            accuse(struck, &mut judgement, &talk, kept.as_mut());
            let execution = Execution {
                case,
                name: &exchange.name,
                attempt: tries,
                script: &script,
                talk: &talk,
                judgement: &judgement,
            };
            self.told_of(&execution, struck);
            let bad = matches!(
                judgement.outcome,
                TestOutcome::Fail | TestOutcome::Inconclusive | TestOutcome::Crashed
            );
            failed += u32::from(bad);
            if kept
                .as_ref()
                .is_none_or(|kept| bad && kept.judgement.outcome != TestOutcome::Crashed)
            {
                kept = Some(ExchangeResult {
                    name: exchange.name.clone(),
                    judgement,
                    tries: 0,
                    failed: 0,
                    sent,
                    received: talk.raw,
                    took: talk.over,
                    pauses: pauses(&script.steps),
                });
            }
            if !bad && failed == 0 || struck == Struck::Server {
                break;
            }
        }
        let mut result = kept.unwrap_or_else(|| not_tried(exchange));
        if had.silent && failed == tries {
            // the short try before them was silent too
            (tries, failed) = (tries + 1, failed + 1);
        }
        if failed > 0 && failed < tries && result.judgement.outcome != TestOutcome::Crashed {
            result.judgement.outcome = TestOutcome::Flaky;
        }
        (result.tries, result.failed) = (tries, failed);
        if result.judgement.outcome == TestOutcome::Flaky {
            self.look_for_heir(case, exchange, &had.before, &mut result);
        }
        result
    }

    fn script(&mut self, exchange: &Exchange) -> TalkScript {
        self.serial += 1;
        let (etag, modified) = self.validators.clone();
        let marker = format!("m{}", self.serial);
        let table = self.table;
        let values = Values { marker, etag, modified, table, ..self.target.values.clone() };
        let steps = exchange.steps.iter().map(|step| compile(step, &values)).collect();
        if exchange.is_raw() {
            return self.raw_script(exchange, steps);
        }
        if self.target.spoken.has_frames() {
            return self.frames_script(exchange, steps);
        }
        let follow_up = exchange.in_step.then(|| habits::plain_request(self.target, ""));
        let mut script = self.bare(steps, exchange.deadline);
        script.methods.clone_from(&exchange.methods);
        script.follow_up = follow_up;
        script.grace = GRACE;
        script.linger = LINGER;
        script
    }

    /// A conversation of frames: the opening before them, and behind them a PING, which says that all of
    /// them were read, and a valid request on a stream of its own.
    fn frames_script(&mut self, exchange: &Exchange, steps: Vec<Move>) -> TalkScript {
        let mut all = Vec::new();
        let over_quic = self.target.spoken.is_http3();
        let behind = http3::follow_up_stream(&steps);
        let by_hand = steps.iter().any(http3::packets::is_said);
        let bare = !by_hand && steps.iter().any(http3::datagrams::is_said);
        if exchange.opening && over_quic {
            all.push(Move::Send(http3::write::opening()));
        } else if exchange.opening {
            all.push(Move::Send(write::opening()));
            all.push(Move::Await(Awaited::Settings));
            all.push(Move::Send(write::settings_ack()));
        }
        all.extend(steps);
        if exchange.in_step && !over_quic {
            all.push(Move::Send(write::ping()));
        }
        TalkScript {
            follow_up: exchange.in_step.then(|| habits::follow_up(self.target, behind)),
            spoken: match (over_quic, bare) {
                (true, true) => Spoken::Datagrams,
                (true, false) => Spoken::Http3,
                (false, _) => Spoken::Http2Raw,
            },
            methods: exchange.methods.clone(),
            grace: GRACE,
            linger: FRAMES_LINGER,
            ..self.bare(all, exchange.deadline)
        }
    }

    fn bare(&mut self, steps: Vec<Move>, deadline: Nanos) -> TalkScript {
        TalkScript {
            peer: self.target.peer.clone(),
            options: OpenOptions { nodelay: true, ..OpenOptions::default() },
            // QUIC has its own
            tls_name: self.target.tls_name.clone().filter(|_| !self.target.spoken.is_http3()),
            spoken: self.target.spoken,
            start: self.world.now(),
            steps,
            methods: vec!["GET".to_owned()],
            deadline,
            follow_up: None,
            grace: Nanos::ZERO,
            linger: Nanos::ZERO,
            hold: false,
            probe: false,
        }
    }

    /// Plays what this director directs, with probes of the server's health beside it, and gives the
    /// probes. They are kept with the run's, and the watcher hears of each.
    pub(crate) fn play_probed(
        &mut self,
        case: &str,
        director: &mut dyn ProbeListener,
    ) -> Vec<Probe> {
        let pattern = self.pattern(case);
        let probes = Probes::new(&self.probing, pattern);
        let mut both = Probed::new(director, probes, self.watcher);
        self.world.play(&mut both);
        let felt = both.into_felt();
        let room = PROBES_MAX.saturating_sub(self.probes.len());
        self.probes.extend(felt.iter().take(room).cloned());
        felt
    }

    fn pattern(&mut self, case: &str) -> Pattern {
        let new = habits::plain_request(self.target, "Connection: close\r\n");
        let new = TalkScript { probe: true, ..self.bare(vec![Move::Send(new)], PLAIN_DEADLINE) };
        Pattern {
            new,
            keep: match self.target.spoken.has_frames() {
                true => habits::plain_frame(self.target, ""),
                false => habits::plain_request(self.target, ""),
            },
            plain: self.plain.clone(),
            origin: self.start,
            case: case.to_owned(),
        }
    }

    fn ask(&mut self, bytes: &[u8]) -> Talk {
        let mut script = self.bare(vec![Move::Send(bytes.to_vec())], PLAIN_DEADLINE);
        script.probe = true;
        self.hold(script)
    }

    fn hold(&mut self, script: TalkScript) -> Talk {
        let mut talks = self.together(vec![script]);
        talks.pop().expect("a world gives back a talk for each script")
    }

    /// Has conversations all at once; every response is looked at.
    fn together(&mut self, scripts: Vec<TalkScript>) -> Vec<Talk> {
        let odd = scripts.iter().any(|script| !script.probe);
        let talks = self.world.talk(scripts);
        talks.iter().for_each(|talk| self.lints.see(talk));
        if odd && self.is_to_be_spared() && talks.iter().any(gave_no_sign) {
            // the governor hears whether it still answers, and stops the run where it does not
            self.ask(&self.remarking(&self.remark, "Connection: close\r\n"));
        }
        talks
    }

    /// A server of others, which is left alone soon after it has ceased to answer.
    fn is_to_be_spared(&mut self) -> bool {
        self.world.governor().bounds().is_some_and(|bounds| bounds.lost_max.is_some())
    }

    /// Plain requests are answered as before, or the time until they were.
    fn gate(&mut self) -> Option<Option<Nanos>> {
        let start = self.world.now();
        let mut late = false;
        loop {
            let talk = self.ask(&self.remarking(&self.remark, "Connection: close\r\n"));
            let right = talk.replies.responses.first().is_some_and(|first| self.plain.is(first));
            let now = self.world.now();
            match right {
                true if late => return Some(Some(now - start)),
                true => return None,
                false if self.is_stopped() => return None,
                false if now - start > GATE => return Some(None),
                false => self.world.pause(GATE_EVERY),
            }
            late = true;
        }
    }
}

/// An exchange that the end of the run came before.
fn not_tried(exchange: &Exchange) -> ExchangeResult {
    ExchangeResult {
        name: exchange.name.clone(),
        judgement: Judgement { outcome: TestOutcome::Inconclusive, ..Judgement::default() },
        tries: 0,
        failed: 0,
        sent: Vec::new(),
        received: Vec::new(),
        took: Nanos::ZERO,
        pauses: Vec::new(),
    }
}

/// Processes of the server ended with this conversation, or with the try before it: who was not even
/// let in did not do it.
fn accuse(
    struck: Struck,
    judgement: &mut Judgement,
    talk: &Talk,
    earlier: Option<&mut ExchangeResult>,
) {
    let Some((outcome, why)) = struck.judged() else { return };
    let guilty = match (talk.end, earlier) {
        (TalkEnd::Unconnected(_), None) => return,
        (TalkEnd::Unconnected(_), Some(earlier)) => &mut earlier.judgement,
        _ => judgement,
    };
    guilty.outcome = outcome;
    why.clone_into(&mut guilty.why);
    guilty.kind = Some(FailureKind::Lost);
}

/// Nothing came back: the server may be gone.
fn gave_no_sign(talk: &Talk) -> bool {
    matches!(talk.end, TalkEnd::Silent | TalkEnd::Unconnected(_))
        && talk.replies.responses.is_empty()
}

/// What to do where the probed page gives this.
fn way_out(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 => "name a page that anybody may read, or give the login with -H",
        429 | 503 => "it has too much to do, or sheds us: try again when it is at rest",
        500.. => "fix the page, or name another",
        _ => "name a page that is there",
    }
}

fn compile(step: &ScriptStep, values: &Values) -> Move {
    match step {
        // the reader of cases has tried it
        ScriptStep::Send(text) => Move::Send(text::bytes(text, values).unwrap_or_default()),
        ScriptStep::Pause(span) => Move::Pause(*span),
        ScriptStep::Await(what) => Move::Await(*what),
        ScriptStep::Urgent => Move::Urgent,
        ScriptStep::HalfClose => Move::HalfClose,
        ScriptStep::Reset => Move::Reset,
        ScriptStep::Close => Move::Close,
        ScriptStep::StopReading => Move::StopReading,
        ScriptStep::Read => Move::Read,
        ScriptStep::Packet(step) => Move::Packet(step.compiled(values)),
    }
}
