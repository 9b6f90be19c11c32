//! What follows a failure: which conversation did it, and the shortest one that still does.

use super::life::Struck;
use super::{CampaignEvent, Runner, TRIES, spoken};
use crate::families::{is_as_slow, work_of};
use crate::shrink::{Budget, fewest, shrink};
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use sample::Blame;
use std::collections::VecDeque;
use torture::case::Case;
use torture::judge;
use torture::judge::{FailureKind, Judgement, Plain, TestOutcome};
use torture::record::Execution;
use torture::record::{pauses, sent};
use torture::result::CaseResult;
use torture::result::ExchangeResult;
use torture::result::Shrunk;
use units::Nanos;

/// Conversations before a failure that may have done it, and bytes of theirs that are kept.
pub const TAIL_MAX: usize = 32;
const TAIL_BYTES_MAX: usize = 8 << 20;
/// Failures of one run that are shrunk at most.
const FINDINGS_MAX: usize = 32;
/// How long silence is a hang while candidates are tried; the last one is given its full time.
const HANG_SPAN: Nanos = Nanos::from_millis(500);
/// Time for a conversation that may have done it: a server that it ends is not long about it.
const SUSPECT_SPAN: Nanos = Nanos::from_secs(10);
/// What fails with words is given so many times as long as the first failure took, and at least
/// this long.
const TIMES_AS_LONG: u64 = 4;
const SPAN_MIN: Nanos = Nanos::from_millis(100);

/// How the name of a conversation begins that is accused of what came after it.
pub const CULPRIT: &str = "culprit: ";

/// A conversation that may have done it.
#[derive(Clone, Debug)]
pub(super) struct Suspect {
    pub(super) case: String,
    pub(super) name: String,
    pub(super) script: TalkScript,
    /// What came of it; `None` where that was not kept.
    pub(super) talk: Option<Talk>,
}

/// Random data that failed.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) case: Case,
    pub(super) name: String,
    pub(super) script: TalkScript,
    pub(super) kind: FailureKind,
    /// What it took, of one that takes too long.
    pub(super) slow: Option<Nanos>,
}

/// What has been said lately, and what failed.
#[derive(Debug, Default)]
pub(super) struct Trail {
    last: VecDeque<Suspect>,
    /// What had been said when the server was first not there in the case under way.
    before_loss: Option<Vec<Suspect>>,
    findings: Vec<Finding>,
    executions: u64,
    began: Option<Nanos>,
}

impl Trail {
    pub(super) fn begin_case(&mut self) {
        self.before_loss = None;
    }

    /// The server was not there when a conversation of the case was to begin.
    pub(super) fn lost_touch(&self) -> bool {
        self.before_loss.is_some()
    }

    fn add(&mut self, execution: &Execution<'_>) {
        let ours = |class: sample::FailureClass| class.blame() == Blame::Driver;
        if let TalkEnd::Unconnected(class) = execution.talk.end {
            if !ours(class) {
                self.lose();
            }
            return;
        }
        self.add_suspect(Suspect {
            case: execution.case.id.clone(),
            name: execution.name.to_owned(),
            script: execution.script.clone(),
            talk: Some(execution.talk.clone()),
        });
    }

    fn add_suspect(&mut self, suspect: Suspect) {
        self.last.push_back(suspect);
        let size = |one: &Suspect| -> usize { spoken(&one.script.steps).len() };
        let mut bytes: usize = self.last.iter().map(size).sum();
        while self.last.len() > TAIL_MAX || bytes > TAIL_BYTES_MAX {
            bytes -= self.last.pop_front().map_or(0, |first| size(&first));
        }
    }

    /// The server is lost: one of those that were last did it.
    fn lose(&mut self) {
        self.before_loss.get_or_insert_with(|| self.last.iter().cloned().collect());
    }

    /// A failure to be shrunk, the first of its kind in its case.
    pub(super) fn found(&mut self, finding: Finding) {
        let known = |one: &Finding| one.case.id == finding.case.id && one.kind == finding.kind;
        if self.findings.len() < FINDINGS_MAX && !self.findings.iter().any(known) {
            self.findings.push(finding);
        }
    }
}

impl Runner<'_> {
    /// A conversation of a case is over: everybody hears of it.
    pub(super) fn told(&mut self, execution: &Execution<'_>) {
        let struck = self.hear_deaths();
        self.told_of(execution, struck);
    }

    /// The same, where it is known whom of the server it struck.
    pub(super) fn told_of(&mut self, execution: &Execution<'_>, struck: Struck) {
        self.watcher.hear(CampaignEvent::ConversationOver(execution));
        self.hangs.see(execution);
        if self.settings.search.is_some() {
            self.trail.add(execution);
            if struck != Struck::Nobody {
                self.trail.lose();
            }
        }
    }

    /// A conversation that nobody heard of, and that may be why the server is lost.
    pub(super) fn may_have_done_it(
        &mut self,
        case: &Case,
        name: &str,
        script: TalkScript,
        talk: Talk,
    ) {
        if self.settings.search.is_some() {
            let (case, name) = (case.id.clone(), name.to_owned());
            self.trail.add_suspect(Suspect { case, name, script, talk: Some(talk) });
        }
    }

    /// A search of its own begins.
    pub(super) fn renew_budget(&mut self) {
        self.trail.began = None;
        self.trail.executions = 0;
    }

    /// Conversations and time that searches may still take; `None` when none is left or wanted.
    fn left(&mut self) -> Option<Budget> {
        let budget = self.settings.search.filter(|_| !self.is_stopped())?;
        let now = self.world.now();
        let gone = now - *self.trail.began.get_or_insert(now);
        let executions = budget.executions.checked_sub(self.trail.executions)?;
        let left = Budget { executions, span: budget.span - gone };
        (left.executions > 0 && !left.span.is_zero()).then_some(left)
    }

    /// Something took longer than its size explains.
    pub(super) fn found_slow(&mut self, case: &Case, name: &str, script: &TalkScript, talk: &Talk) {
        if self.settings.search.is_some() {
            let (case, name, script) = (case.clone(), name.to_owned(), script.clone());
            let slow = work_of(talk);
            self.trail.found(Finding { case, name, script, kind: FailureKind::Slow, slow });
        }
    }

    /// These conversations one after the other; whether plain requests fail afterwards. `None`: the
    /// search is to end, as the budget is used up or the server does not come back.
    pub(super) fn lost_after(&mut self, suspects: &[Suspect]) -> Option<bool> {
        for suspect in suspects {
            self.say_again(suspect)?;
        }
        self.is_lost()
    }

    /// One conversation once more; `None`: the budget is used up.
    pub(super) fn say_again(&mut self, suspect: &Suspect) -> Option<()> {
        self.left()?;
        self.trail.executions += 1;
        let deadline = suspect.script.deadline.min(SUSPECT_SPAN);
        let start = self.world.now();
        self.hold(TalkScript { start, deadline, ..suspect.script.clone() });
        Some(())
    }

    /// What was said before now, the last of it last.
    pub(super) fn said_before(&self) -> Vec<Suspect> {
        self.trail.last.iter().cloned().collect()
    }

    /// As few of these as still fail together; alone is no failure.
    pub(super) fn fewest_of(
        &mut self,
        all: &[Suspect],
        fails: &mut dyn FnMut(&mut Self, &[Suspect]) -> Option<bool>,
    ) -> Vec<Suspect> {
        fewest(all, &mut |some| match some.is_empty() {
            true => Some(false),
            false => fails(self, some),
        })
    }

    /// Whether the server or a worker ended, or plain requests fail for a while; `None`: they fail for good.
    fn is_lost(&mut self) -> Option<bool> {
        let gate = self.gate();
        let struck = self.hear_deaths();
        match gate {
            None => Some(struck != Struck::Nobody),
            Some(Some(_)) => Some(true),
            Some(None) => None,
        }
    }

    /// Whether it fails in most of the tries; not, where it passes at the first.
    pub(super) fn mostly(
        &mut self,
        mut fails: impl FnMut(&mut Self) -> Option<bool>,
    ) -> Option<bool> {
        let needed = TRIES.div_ceil(2);
        let mut failed = 0;
        for _ in 0..TRIES {
            failed += u32::from(fails(self)?);
            if failed == 0 || failed == needed {
                break;
            }
        }
        Some(failed >= needed)
    }

    /// Plain requests failed after a case, and are answered again: what did it? Each by itself is
    /// tried first, the last one, then ever shorter ends of the tail; then what can be left out is.
    pub(super) fn attribute(&mut self, case: &Case, result: &mut CaseResult) {
        if self.settings.search.is_none() {
            return;
        }
        self.renew_budget();
        let before = self.trail.before_loss.take();
        let tail: Vec<Suspect> =
            before.unwrap_or_else(|| self.trail.last.iter().cloned().collect());
        let Some(last) = tail.last().cloned() else { return };
        let alone = self.mostly(|runner| runner.lost_after(std::slice::from_ref(&last)));
        let guilty = match alone {
            Some(true) => Some(vec![last]),
            Some(false) => self.among(&tail),
            None => None,
        };
        // what was tried here is no part of what was said before
        self.trail.last.clear();
        match guilty.as_deref() {
            Some([one]) => self.accuse(case, one, result),
            Some(several) => self.accuse_all(case, several, result),
            None => result.notes.push(format!(
                "plain requests failed, and did not again: not after the last conversation by \
                 itself, nor after the last {}",
                tail.len()
            )),
        }
    }

    /// The server ended and stays away, or answers nobody any more: the last conversation before can only
    /// be named.
    pub(super) fn suspect(&mut self, case: &Case, struck: Struck, result: &mut CaseResult) {
        if struck != Struck::Server && self.blame_hang(case, result) {
            return;
        }
        let before = self.trail.before_loss.take().and_then(|mut tail| tail.pop());
        let Some(last) = before.or_else(|| self.trail.last.back().cloned()) else { return };
        // it is there already, with its bytes
        let known = |one: &ExchangeResult| {
            one.name == last.name && one.judgement.outcome == TestOutcome::Crashed
        };
        if result.exchanges.iter().any(known) {
            return;
        }
        let name = format!("{CULPRIT}{}", last.name);
        let (outcome, why) = match struck {
            Struck::Server => (
                TestOutcome::Crashed,
                "the server's process ended after it, and was not started again",
            ),
            _ => (
                TestOutcome::Fail,
                "it was the last that was said: no plain request has been answered since",
            ),
        };
        let Some(talk) = last.talk else { return };
        let judgement = Judgement {
            outcome,
            seen: judge::seen(&talk),
            expected: "plain requests answered as before".to_owned(),
            why: why.to_owned(),
            kind: Some(FailureKind::Lost),
        };
        self.keep_culprit(case, &name, 1, (&last.script, talk), judgement, result);
    }

    /// Keeps a conversation with its bytes, for the result and for whoever looks on.
    pub(super) fn keep_culprit(
        &mut self,
        case: &Case,
        name: &str,
        tries: u32,
        (script, talk): (&TalkScript, Talk),
        judgement: Judgement,
        result: &mut CaseResult,
    ) {
        self.watcher.hear(CampaignEvent::ConversationOver(&Execution {
            case,
            name,
            attempt: 1,
            script,
            talk: &talk,
            judgement: &judgement,
        }));
        result.outcome = result.outcome.max(judgement.outcome);
        result.exchanges.push(ExchangeResult {
            name: name.to_owned(),
            judgement,
            tries,
            failed: tries.div_ceil(2),
            sent: spoken(&script.steps),
            received: talk.raw,
            took: talk.over,
            pauses: pauses(&script.steps),
        });
    }

    /// The fewest of the tail after which plain requests fail; `None` where they do not after all.
    fn among(&mut self, tail: &[Suspect]) -> Option<Vec<Suspect>> {
        if self.mostly(|runner| runner.lost_after(tail)) != Some(true) {
            return None;
        }
        let (mut passes, mut fails) = (1, tail.len());
        while passes + 1 < fails {
            let middle = passes + (fails - passes) / 2;
            let end = &tail[tail.len() - middle..];
            match self.mostly(|runner| runner.lost_after(end)) {
                Some(true) => fails = middle,
                Some(false) => passes = middle,
                None => break,
            }
        }
        let end = &tail[tail.len() - fails..];
        Some(
            self.fewest_of(end, &mut |runner, some| {
                runner.mostly(|runner| runner.lost_after(some))
            }),
        )
    }

    /// One conversation did it: once more, to be kept and to be shrunk.
    pub(super) fn accuse(&mut self, case: &Case, guilty: &Suspect, result: &mut CaseResult) {
        let script = TalkScript { start: self.world.now(), ..guilty.script.clone() };
        let talk = self.hold(script.clone());
        self.gate();
        let struck = self.hear_deaths();
        let name = match guilty.case == case.id {
            true => format!("{CULPRIT}{}", guilty.name),
            false => format!("{CULPRIT}{} {}", guilty.case, guilty.name),
        };
        let lost = (TestOutcome::Fail, "plain requests fail");
        let (outcome, what) = struck.judged().unwrap_or(lost);
        let judgement = Judgement {
            outcome,
            seen: judge::seen(&talk),
            expected: "plain requests answered as before".to_owned(),
            why: format!("{what} after it by itself"),
            kind: Some(FailureKind::Lost),
        };
        self.trail.found(Finding {
            case: case.clone(),
            name: name.clone(),
            script: script.clone(),
            kind: FailureKind::Lost,
            slow: None,
        });
        self.keep_culprit(case, &name, TRIES, (&script, talk), judgement, result);
    }

    /// Several did it together, in this order: the last of them stands for all.
    fn accuse_all(&mut self, case: &Case, several: &[Suspect], result: &mut CaseResult) {
        let names: Vec<String> =
            several.iter().map(|one| format!("{} {}", one.case, one.name)).collect();
        result.notes.push(format!(
            "plain requests fail after these {} in this order, and after no fewer of them: {}",
            several.len(),
            names.join("; ")
        ));
        let Some((last, before)) = several.split_last() else { return };
        let Some(talk) = last.talk.clone() else { return };
        let behind = match before.len() {
            1 => "another".to_owned(),
            count => format!("{count} others"),
        };
        let name = format!("{CULPRIT}{} {}, behind {behind}", last.case, last.name);
        let judgement = Judgement {
            outcome: TestOutcome::Fail,
            seen: judge::seen(&talk),
            expected: "plain requests answered as before".to_owned(),
            why: "plain requests fail after it, behind what was said before it".to_owned(),
            kind: Some(FailureKind::Lost),
        };
        let scripts: Vec<TalkScript> = before.iter().map(|one| one.script.clone()).collect();
        self.watcher.hear(CampaignEvent::FailsBehind { name: &name, before: &scripts });
        self.keep_culprit(case, &name, TRIES, (&last.script, talk), judgement, result);
    }

    /// Shrinks what failed, as far as the budget goes.
    pub(super) fn shrink_all(&mut self) -> Vec<Shrunk> {
        self.renew_budget();
        let mut all = Vec::new();
        for finding in std::mem::take(&mut self.trail.findings) {
            if self.left().is_none() {
                break;
            }
            all.extend(self.shrink_one(&finding));
        }
        all
    }

    /// `None` where it does not fail any more.
    pub(super) fn shrink_one(&mut self, finding: &Finding) -> Option<Shrunk> {
        let before = self.trail.executions;
        let whole = &finding.script.steps;
        let start = self.world.now();
        if self.mostly(|runner| runner.fails(finding, &finding.script, whole)) != Some(true) {
            return None;
        }
        let took = Nanos((self.world.now() - start).0.saturating_mul(TIMES_AS_LONG));
        let pauses = whole.iter().map(|step| if let Move::Pause(span) = step { span.0 } else { 0 });
        let pauses = Nanos(pauses.fold(0, u64::saturating_add));
        // half a message is waited for: no server need answer it
        let whole_message = |moves: &[Move]| {
            let bytes = sent(moves);
            judge::lacking(&bytes).is_none() && faulty::reacts(&bytes)
        };
        let complete = whole_message(whole);
        let span = if finding.kind == FailureKind::Hang { HANG_SPAN } else { took.max(SPAN_MIN) };
        let deadline = (span + pauses).min(finding.script.deadline);
        let hasty = TalkScript { deadline, ..finding.script.clone() };
        let mut found = shrink(whole, &mut |moves| {
            if complete && !whole_message(moves) {
                return Some(false);
            }
            self.mostly(|runner| runner.fails(finding, &hasty, moves))
        });
        if finding.kind == FailureKind::Hang {
            let moves = found.moves.clone();
            let sure = self.mostly(|runner| runner.fails(finding, &finding.script, &moves));
            if sure != Some(true) {
                found.moves.clone_from(whole);
                found.finished = false;
            }
        }
        if finding.slow.is_some() {
            // where half the time is reached is no boundary of the server's
            found.boundaries.clear();
        }
        let script = TalkScript { steps: found.moves, ..finding.script.clone() };
        let shrunk = Shrunk {
            case: finding.case.id.clone(),
            name: finding.name.clone(),
            kind: finding.kind,
            from: spoken(whole).len(),
            script,
            boundaries: found.boundaries,
            executions: self.trail.executions - before,
            finished: found.finished,
        };
        self.show(finding, &shrunk);
        Some(shrunk)
    }

    /// Whether these steps fail in the way of the finding.
    fn fails(&mut self, finding: &Finding, script: &TalkScript, moves: &[Move]) -> Option<bool> {
        self.left()?;
        self.trail.executions += 1;
        let start = self.world.now();
        let script = TalkScript { steps: moves.to_vec(), start, ..script.clone() };
        let talk = self.hold(script.clone());
        let lost = self.is_lost()?;
        if finding.kind == FailureKind::Lost || lost {
            return Some(lost && finding.kind == FailureKind::Lost);
        }
        if let Some(before) = finding.slow {
            return Some(is_as_slow(&talk, before));
        }
        let same = FailureKind::of(&talk, &self.plain) == finding.kind;
        Some(same && judged(&script, &talk, &self.plain).outcome == TestOutcome::Fail)
    }

    /// Has the shortest conversation once more, for whoever looks on.
    fn show(&mut self, finding: &Finding, shrunk: &Shrunk) {
        if self.is_stopped() {
            return;
        }
        let script = TalkScript { start: self.world.now(), ..shrunk.script.clone() };
        let talk = self.hold(script.clone());
        let judgement = judged(&script, &talk, &self.plain);
        self.gate();
        let execution = Execution {
            case: &finding.case,
            name: &finding.name,
            attempt: 1,
            script: &script,
            talk: &talk,
            judgement: &judgement,
        };
        self.watcher.hear(CampaignEvent::FailureShrunk { shrunk, execution: &execution });
    }
}

fn judged(script: &TalkScript, talk: &Talk, plain: &Plain) -> Judgement {
    judge::random(script, talk, plain)
}
