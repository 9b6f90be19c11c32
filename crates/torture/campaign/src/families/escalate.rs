//! The method of torture.pl: random data grows and gaps shrink until well-behaved clients fail or a
//! limit is reached. The level reached is the result.

use crate::probes::ProbeListener;
use crate::trail::Suspect;
use crate::{PLAIN_DEADLINE, Runner, TAIL_MAX};
use dialogue::talk::{Conversations, Director, Talk, TalkEnd, TalkScript, Wake};
use std::collections::{BTreeMap, VecDeque};
use torture::case::{Case, Escalation, Fuzz};
use torture::fuzz;
use torture::fuzz::{FuzzPlace, Shot};
use torture::judge::{ConversationOutcome, Judgement, Plain, PressureOutcome, TestOutcome};
use torture::record;
use torture::record::Execution;
use torture::result::{CaseResult, ExchangeResult, Measure, Probe, Seen, Unit};
use units::{Nanos, show};

/// Maximum number of server errors recorded completely.
const KEPT_MAX: usize = 5;
/// Name of a conversation cut off without a response.
const CUT: &str = "random data";
/// Minimum gap.
const GAP_MIN: Nanos = Nanos::from_micros(100);

/// Runs the levels: each doubles the length and halves the gap of the previous one.
pub(super) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &Escalation,
    result: &mut CaseResult,
) {
    let mut reached: Option<EscalationLevel> = None;
    let mut lost: Option<(EscalationLevel, String)> = None;
    let mut cut = early_end_reason(runner);
    for number in 0..with.levels.min(30) {
        if cut.is_some() || lost.is_some() || result.outcome == TestOutcome::Fail {
            break;
        }
        let mut level = EscalationLevel {
            length: with.length.0 << number,
            gap: Nanos(with.gap.0 >> number).max(GAP_MIN),
            ..EscalationLevel::default()
        };
        let probes = hold(runner, case, with, number, &mut level, result);
        cut = early_end_reason(runner);
        match probes.iter().find(|probe| probe.seen == Seen::Lost && !probe.ours) {
            Some(probe) => lost = Some((level, probe.said.clone())),
            // it was not sent completely
            None if cut.is_some() => {}
            None => reached = Some(level),
        }
    }
    let end = match (&lost, cut) {
        (Some((level, how)), _) => format!("at {} a probe was lost: {how}", level.name()),
        (None, Some(cut)) => cut.to_owned(),
        _ if result.outcome == TestOutcome::Fail => "then a response was a server error".to_owned(),
        _ => "the last level; every probe got a response".to_owned(),
    };
    match (&lost, cut) {
        (Some(_), _) => result.note(PressureOutcome::Degraded, end.clone()),
        (None, Some(_)) => result.note(PressureOutcome::Inconclusive, end.clone()),
        (None, None) => result.show(PressureOutcome::Held),
    }
    if reached.is_none() && lost.is_none() {
        return;
    }
    for (what, unit, value) in [
        (
            "random data survived",
            Unit::Bytes,
            (|level| level.length as f64) as fn(&EscalationLevel) -> f64,
        ),
        ("requests at that level", Unit::PerSecond, |level| {
            level.sent as f64 / level.took.as_secs_f64()
        }),
    ] {
        result.measures.push(Measure {
            what: what.to_owned(),
            low: reached.as_ref().map(value),
            high: lost.as_ref().map(|(level, _)| value(level)),
            unit,
            note: end.clone(),
        });
    }
}

/// Returns the reason why the levels ended early.
fn early_end_reason(runner: &mut Runner<'_>) -> Option<&'static str> {
    if runner.is_stopped() {
        return Some("then the run ended");
    }
    runner.case_is_over().then_some("then the time limit of the case was reached")
}

/// Length and rate of a level, with its result.
#[derive(Clone, Debug, Default)]
struct EscalationLevel {
    length: u64,
    gap: Nanos,
    sent: u64,
    took: Nanos,
}

impl EscalationLevel {
    fn name(&self) -> String {
        let gap = show::duration(self.gap);
        format!("up to {} each {gap}", show::bytes(self.length))
    }
}

/// Runs one level, with probes alongside.
fn hold(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &Escalation,
    number: u64,
    level: &mut EscalationLevel,
    result: &mut CaseResult,
) -> Vec<Probe> {
    let start = runner.now();
    let count = (with.hold.0 / level.gap.0).max(1);
    let (target, seed, plain) =
        (runner.target, runner.settings.seed, runner.profile.plain().clone());
    let make = |turn: u64| {
        let place = match turn % 4 {
            0 => FuzzPlace::Query,
            1 => FuzzPlace::Path,
            2 if target.takes_bodies => FuzzPlace::Body,
            _ => FuzzPlace::Raw,
        };
        let random = Fuzz { place, count, length: level.length };
        let index = number << 32 | turn;
        fuzz::shot(seed, &case.id, case.version, &random, index, &target.values, &target.fields)
    };
    let mut rain = RandomLoad {
        make: &make,
        plain: &plain,
        pattern: runner.bare(Vec::new(), PLAIN_DEADLINE),
        gap: level.gap,
        start,
        next: 0,
        count,
        waiting: BTreeMap::new(),
        waiting_max: with.waiting.max(1) as usize,
        sent: 0,
        tally: BTreeMap::new(),
        faults: Vec::new(),
        cut: VecDeque::new(),
    };
    let probes = runner.play_with_probes(&case.id, &mut rain);
    let RandomLoad { sent, tally, faults, cut, .. } = rain;
    for (script, talk) in cut {
        runner.trail.add(Suspect::new(case, CUT, script, talk));
    }
    (level.sent, level.took) = (sent, runner.now() - start);
    for (row, count) in tally {
        *result.tally.entry(row).or_default() += count;
    }
    for fault in faults {
        keep(runner, case, fault, result);
    }
    probes
}

/// Response that no request may cause.
struct Fault {
    script: TalkScript,
    talk: Talk,
    judgement: Judgement,
}

fn keep(runner: &mut Runner<'_>, case: &Case, fault: Fault, result: &mut CaseResult) {
    let name = "during the escalation";
    let (script, talk, judgement) = (&fault.script, &fault.talk, &fault.judgement);
    let execution = Execution { case, name, attempt: 1, script, talk, judgement };
    runner.report_conversation(&execution);
    result.show(ConversationOutcome::Fail);
    if result.exchanges.len() < KEPT_MAX {
        result.exchanges.push(ExchangeResult {
            name: name.to_owned(),
            judgement: fault.judgement,
            tries: 1,
            failed: 1,
            sent: record::sent(&fault.script.steps),
            received: fault.talk.raw,
            took: fault.talk.over,
            pauses: Vec::new(),
        });
    }
}

/// Sends random requests at a fixed gap, each on its own connection. They are generated when due,
/// because a whole level would not fit into memory.
struct RandomLoad<'a> {
    make: &'a dyn Fn(u64) -> Shot,
    plain: &'a Plain,
    pattern: TalkScript,
    gap: Nanos,
    start: Nanos,
    next: u64,
    count: u64,
    waiting: BTreeMap<usize, (Shot, TalkScript)>,
    waiting_max: usize,
    sent: u64,
    tally: BTreeMap<String, u64>,
    /// The first server errors.
    faults: Vec<Fault>,
    /// Last requests that were cut off without a response; a request that crashes the server is
    /// among them.
    cut: VecDeque<(TalkScript, Talk)>,
}

impl RandomLoad<'_> {
    fn due(&self) -> Nanos {
        self.start + self.gap * self.next
    }
}

impl ProbeListener for RandomLoad<'_> {}

impl Director for RandomLoad<'_> {
    fn direct(
        &mut self,
        now: Nanos,
        stage: &mut Conversations<'_>,
        over: Vec<(usize, Talk)>,
    ) -> Wake {
        self.on_abandoned(over);
        while self.next < self.count && self.due() <= now {
            let (turn, due) = (self.next, self.due());
            self.next += 1;
            // requests beyond the limit are skipped, not queued
            if self.waiting.len() >= self.waiting_max {
                continue;
            }
            let shot = (self.make)(turn);
            let mut script = TalkScript { start: due, ..self.pattern.clone() };
            script.steps.clone_from(&shot.moves);
            script.methods.clone_from(&shot.methods);
            let place = stage.add(script.clone());
            self.waiting.insert(place, (shot, script));
            self.sent += 1;
        }
        match self.next < self.count {
            true => Wake::At(self.due()),
            false if self.waiting.is_empty() => Wake::Done,
            false => Wake::WhenOver,
        }
    }

    fn on_abandoned(&mut self, over: Vec<(usize, Talk)>) {
        for (place, talk) in over {
            let Some((shot, script)) = self.waiting.remove(&place) else { continue };
            *self.tally.entry(fuzz::outcome_class(&shot, &talk)).or_default() += 1;
            let judgement = fuzz::judge(&shot, &talk, self.plain);
            // slowness is what the case looks for; a server error is a finding
            let fault =
                judgement.outcome == TestOutcome::Fail && !talk.replies.responses.is_empty();
            let ended = matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_));
            if ended && talk.replies.responses.is_empty() {
                self.cut.push_back((script.clone(), talk.clone()));
                if self.cut.len() > TAIL_MAX {
                    self.cut.pop_front();
                }
            }
            if fault && self.faults.len() < KEPT_MAX {
                self.faults.push(Fault { script, talk, judgement });
            }
        }
    }
}
