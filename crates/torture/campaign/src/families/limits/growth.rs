//! Grows a part of a request until it is refused.

use super::search::{LimitFound, search};
use crate::Runner;
use crate::attempts::{Reproduced, Tries};
use crate::tries::blame_conversation;
use dialogue::talk::{Move, Talk, TalkEnd, TalkScript};
use std::collections::BTreeMap;
use torture::case::{Case, Need};
use torture::judge;
use torture::judge::{FailureKind, Judgement, LimitOutcome, TestOutcome};
use torture::record;
use torture::record::Execution;
use torture::result::{CaseResult, ExchangeResult, Measure, Unit};
use units::{Nanos, show};

/// Initial amounts of a search by bytes, and of a search by number.
const BYTES_LEAST: u64 = 1_024;
pub(super) const NUMBER_LEAST: u64 = 10;
/// Second start if the first amount is already refused.
const BYTES_SMALLEST: u64 = 16;
const NUMBER_SMALLEST: u64 = 1;
/// Time limit of one request.
const TIME: Nanos = Nanos::from_secs(10);
/// Bytes of the message limit reserved for fixed parts.
const SPARE: u64 = 4 << 10;
/// Maximum size that is reported exactly.
const EXACT_MAX: u64 = 16 << 20;

/// A request of a given size.
pub(super) struct Shot {
    pub(super) steps: Vec<Move>,
    pub(super) methods: Vec<String>,
    pub(super) deadline: Nanos,
}

impl Shot {
    /// Returns an exchange with one write and one response.
    pub(super) fn new(method: &str, bytes: Vec<u8>) -> Shot {
        Shot { steps: vec![Move::Send(bytes)], methods: vec![method.to_owned()], deadline: TIME }
    }
}

/// Part that grows, its maximum, and the expected behavior.
pub(super) struct Growth<'a> {
    /// Name on the page of limits, and the unit.
    pub(super) what: &'a str,
    pub(super) counted: &'a str,
    pub(super) unit: Unit,
    /// True if the content is sent, so that the message limit applies.
    pub(super) is_sent: bool,
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) factor: u64,
    /// Statuses of a correct refusal; empty for any.
    pub(super) wanted: &'a [u16],
    /// Outcome if no amount is refused.
    pub(super) endless: LimitOutcome,
    pub(super) shot: &'a dyn Fn(u64) -> Shot,
}

impl<'a> Growth<'a> {
    /// Creates a search over bytes to send, doubling the amount.
    pub(super) fn over_bytes(
        what: &'a str,
        most: u64,
        shot: &'a dyn Fn(u64) -> Shot,
    ) -> Growth<'a> {
        Growth {
            what,
            counted: "",
            unit: Unit::Bytes,
            is_sent: true,
            least: BYTES_LEAST,
            most,
            factor: 2,
            wanted: &[],
            endless: LimitOutcome::Advisory,
            shot,
        }
    }

    /// Creates a search over a number of items to send, doubling it.
    pub(super) fn over_number(
        what: &'a str,
        most: u64,
        shot: &'a dyn Fn(u64) -> Shot,
    ) -> Growth<'a> {
        let least = NUMBER_LEAST;
        Growth { unit: Unit::Count, least, ..Growth::over_bytes(what, most, shot) }
    }

    /// Formats `8,193 bytes` or `101`.
    fn quantity(&self, amount: u64) -> String {
        match self.unit {
            Unit::Bytes if amount > EXACT_MAX => show::bytes(amount),
            Unit::Bytes => format!("{} bytes", show::count(amount)),
            _ => show::count(amount),
        }
    }
}

/// The boundary between accepted and refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boundary {
    pub(super) low: u64,
    pub(super) high: u64,
    /// The status for the smallest amount.
    pub(super) base: Option<u16>,
}

/// Verdict of a response.
enum GrowthVerdict {
    Taken(u16),
    Refused(SizeRefusal),
    /// 5xx or a hang, with the reason.
    Bad(String),
    /// Inconclusive, with the reason.
    Unclear(String),
}

#[derive(Clone)]
struct SizeRefusal {
    status: Option<u16>,
    reset: bool,
    /// Bytes arrived, but not a response.
    junk: bool,
}

fn is_error(status: u16) -> bool {
    status >= 400
}

/// Judges a response. `base`: status for the smallest amount.
fn verdict(talk: &Talk, base: Option<u16>) -> GrowthVerdict {
    if let TalkEnd::Unconnected(class) = talk.end {
        return GrowthVerdict::Unclear(format!("no connection: {}", class.explain()));
    }
    if let Some(why) = judge::broken_response(talk) {
        return GrowthVerdict::Bad(why);
    }
    if judge::parses_content(talk) {
        return GrowthVerdict::Bad("a part of it is parsed as another request".to_owned());
    }
    let response = talk.replies.responses.first().map(|response| response.status);
    let refused = |status| SizeRefusal {
        status,
        reset: matches!(talk.end, TalkEnd::Broken(_)),
        junk: talk.replies.junk.is_some(),
    };
    match (response, talk.end) {
        (Some(503), _) => {
            GrowthVerdict::Unclear("the server responded 503: it is overloaded".into())
        }
        (Some(status), _) if base.is_none_or(|base| base == status) || !is_error(status) => {
            GrowthVerdict::Taken(status)
        }
        (Some(status), _) => GrowthVerdict::Refused(refused(Some(status))),
        (None, _) if talk.replies.interim.contains(&100) => GrowthVerdict::Taken(100),
        (None, TalkEnd::Closed | TalkEnd::Broken(_)) => GrowthVerdict::Refused(refused(None)),
        (None, TalkEnd::Silent) => {
            GrowthVerdict::Bad("no response, the connection stays open".into())
        }
        (None, _) => GrowthVerdict::Unclear(
            "one of our limits, or the end of the run, was \
            reached first"
                .into(),
        ),
    }
}

impl SizeRefusal {
    fn text(&self) -> String {
        match (self.status, self.reset) {
            (Some(status), _) => status.to_string(),
            (None, _) if self.junk => "bytes that are not a response".to_owned(),
            (None, true) => "reset without a byte".to_owned(),
            (None, false) => "closed without a byte".to_owned(),
        }
    }

    /// Returns what is wrong with the refusal; `None` if it is correct.
    fn fault(&self, wanted: &[u16]) -> Option<String> {
        match (self.status, self.reset) {
            (Some(status), _) if wanted.is_empty() || wanted.contains(&status) => None,
            (Some(status), _) => {
                let wanted: Vec<String> = wanted.iter().map(u16::to_string).collect();
                Some(format!("the response was {status} instead of {}", wanted.join(" or ")))
            }
            (None, _) if self.junk => Some("the response was not HTTP".to_owned()),
            (None, true) => {
                Some("lost error: the connection was reset before the response arrived".to_owned())
            }
            (None, false) => Some("it was closed without a response".to_owned()),
        }
    }
}

/// Observations of a search.
#[derive(Default)]
struct Met {
    base: Option<u16>,
    refusals: BTreeMap<u64, SizeRefusal>,
    bad: Option<(u64, String)>,
    /// Amount at which a process of the server exited, with a description.
    ended: Option<(u64, String)>,
    unclear: Option<String>,
}

/// Finds the boundary and records it. Returns the largest accepted amount.
pub(super) fn grow(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
    result: &mut CaseResult,
) -> Option<u64> {
    let mut most = growth.most;
    if growth.unit == Unit::Bytes && growth.is_sent {
        most = most.min(runner.world.governor().message_max().saturating_sub(SPARE));
    }
    let (found, met) = searched(runner, case, growth, most);
    if case.needs.contains(&Need::Post) && met.base.is_some_and(is_error) {
        let base = met.base.unwrap_or_default();
        result.note(LimitOutcome::Inconclusive, format!("the --post page responded {base}"));
        return None;
    }
    if let Some((amount, why)) = &met.bad {
        confirm_failure(runner, case, growth, *amount, why, result);
    }
    if let Some((amount, why)) = &met.ended {
        let why = format!("{} of {}: {why}", growth.what, growth.quantity(*amount));
        result.note(LimitOutcome::Fail, why);
    }
    if let Some(why) = &met.unclear {
        result.note(LimitOutcome::Inconclusive, format!("{}: {why}", growth.what));
    }
    let learned = found.low.is_some() || met.bad.is_some() || met.ended.is_some();
    if !learned && met.unclear.is_none() && !runner.is_stopped() {
        let least = growth.quantity(growth.least);
        let why = format!("{}: even {least} was refused", growth.what);
        result.note(LimitOutcome::Inconclusive, why);
    }
    record_growth(growth, most, &found, &met, result);
    found.low
}

/// Finds the boundary without recording it: the largest accepted amount, the smallest refused one,
/// and the status for the smallest amount. `None` if there is no reliable boundary.
pub(super) fn boundary(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
) -> Option<Boundary> {
    let most = growth.most.min(runner.world.governor().message_max().saturating_sub(SPARE));
    let (found, met) = searched(runner, case, growth, most);
    let sure = !found.cut && found.stray.is_none() && met.bad.is_none() && met.ended.is_none();
    let (low, high) = (found.low?, found.high?);
    sure.then_some(Boundary { low, high, base: met.base })
}

/// Searches upward from the first amount, and below it if that is already refused: if every amount
/// causes an error, all of them may exceed the limit.
fn searched(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
    most: u64,
) -> (LimitFound, Met) {
    let (found, met) = searched_between(runner, case, growth, (growth.least, most), |_| false);
    let smallest = if growth.unit == Unit::Bytes { BYTES_SMALLEST } else { NUMBER_SMALLEST };
    let refused = found.low.is_none() || met.base.is_some_and(is_error);
    if !refused || met.unclear.is_some() || smallest >= growth.least || runner.is_stopped() {
        return (found, met);
    }
    let below = searched_between(runner, case, growth, (smallest, growth.least), is_error);
    let is_taken = below.1.base.is_some_and(|base| !is_error(base));
    if is_taken && below.0.high.is_some() { below } else { (found, met) }
}

/// Searches for the limit between two amounts.
/// `in_vain`: returns whether this response to the smallest amount ends the search.
fn searched_between(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
    (least, most): (u64, u64),
    in_vain: fn(u16) -> bool,
) -> (LimitFound, Met) {
    let mut met = Met::default();
    let found = search(least, most, growth.factor, &mut |amount| {
        let over = runner.is_stopped() || met.base.is_some_and(in_vain);
        (!over).then(|| request_amount(runner, case, growth, amount, &mut met))?
    });
    (found, met)
}

/// Sends a request of a search and returns whether it is accepted or how it is refused; `None` if
/// inconclusive.
pub(super) fn probe_amount(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    shot: Shot,
    base: Option<u16>,
) -> Option<Result<(), String>> {
    let (script, talk) = send_shot(runner, shot);
    let verdict = verdict(&talk, base);
    noted(runner, case, name, 1, &script, &talk, LimitOutcome::Pass, String::new());
    match verdict {
        GrowthVerdict::Taken(_) => Some(Ok(())),
        GrowthVerdict::Refused(refusal) => Some(Err(refusal.text())),
        GrowthVerdict::Bad(why) => Some(Err(why)),
        GrowthVerdict::Unclear(_) => None,
    }
}

fn request_amount(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
    amount: u64,
    met: &mut Met,
) -> Option<bool> {
    let (script, talk) = send_shot(runner, (growth.shot)(amount));
    let verdict = verdict(&talk, met.base);
    let (outcome, why) = match &verdict {
        GrowthVerdict::Bad(why) => (LimitOutcome::Fail, why.clone()),
        GrowthVerdict::Unclear(why) => (LimitOutcome::Inconclusive, why.clone()),
        _ => (LimitOutcome::Pass, String::new()),
    };
    let name = named(growth, amount);
    let judgement = noted(runner, case, &name, 1, &script, &talk, outcome, why);
    if judgement.kind == Some(FailureKind::Lost) {
        // the culprit, and its smallest form, are found afterwards
        met.ended = Some((amount, judgement.why));
        return None;
    }
    match verdict {
        GrowthVerdict::Taken(status) => {
            met.base.get_or_insert(status);
            Some(true)
        }
        GrowthVerdict::Refused(refusal) => {
            met.refusals.insert(amount, refusal);
            Some(false)
        }
        GrowthVerdict::Bad(why) => {
            met.bad.get_or_insert((amount, why));
            // a hang costs the full time limit each time
            (talk.end != TalkEnd::Silent).then_some(false)
        }
        GrowthVerdict::Unclear(why) => {
            met.unclear = Some(why);
            None
        }
    }
}

/// Sends a request.
pub(super) fn send_shot(runner: &mut Runner<'_>, shot: Shot) -> (TalkScript, Talk) {
    let mut script = runner.bare(shot.steps, shot.deadline);
    script.methods = shot.methods;
    let talk = runner.hold(script.clone());
    (script, talk)
}

#[allow(clippy::too_many_arguments, reason = "the arguments are the parts of an execution")]
pub(super) fn noted(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    attempt: u32,
    script: &TalkScript,
    talk: &Talk,
    shown: impl Into<TestOutcome>,
    why: String,
) -> Judgement {
    let mut judgement =
        Judgement { outcome: shown.into(), seen: judge::seen(talk), why, ..Judgement::default() };
    let affected = runner.life.observe(runner.world);
    blame_conversation(affected, &mut judgement, talk, None);
    let execution = Execution { case, name, attempt, script, talk, judgement: &judgement };
    runner.report_with_effect(&execution, affected);
    judgement
}

/// Retries a failure, which is a finding only if it is reproducible. If a retry is inconclusive,
/// keeps the first result.
fn confirm_failure(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
    amount: u64,
    why: &str,
    result: &mut CaseResult,
) {
    let name = named(growth, amount);
    let mut tries = Tries::after_failure();
    while let Some(attempt) = tries.next().filter(|_| !runner.is_stopped()) {
        let (script, talk) = send_shot(runner, (growth.shot)(amount));
        let (outcome, why) = match verdict(&talk, None) {
            GrowthVerdict::Bad(_) => (LimitOutcome::Fail, why.to_owned()),
            GrowthVerdict::Unclear(why) => (LimitOutcome::Inconclusive, why),
            _ => (LimitOutcome::Pass, why.to_owned()),
        };
        let judgement = noted(runner, case, &name, attempt, &script, &talk, outcome, why);
        if outcome == LimitOutcome::Inconclusive {
            break;
        }
        let bad = outcome == LimitOutcome::Fail;
        tries.add(bad, bad, (script, talk, judgement));
    }
    if tries.attempt_count() == 1 && runner.is_stopped() {
        let why = format!("{name}: {why}; this was not confirmed: the time was over");
        return result.note(LimitOutcome::Inconclusive, why);
    }
    let outcome = match tries.reproduced() {
        Reproduced::Always => LimitOutcome::Fail,
        Reproduced::Sometimes | Reproduced::Never => LimitOutcome::Flaky,
    };
    result.show(outcome);
    let counts = (tries.attempt_count(), tries.failed());
    let Some((script, talk, judgement)) = tries.into_kept() else {
        result.notes.push(format!("{name}: {why}"));
        return;
    };
    let expected = "a response other than 5xx, or a closed connection".to_owned();
    let kind = Some(FailureKind::new(&talk, runner.profile.plain()));
    let cause = judge::cause_of(kind, &talk);
    result.exchanges.push(ExchangeResult {
        name,
        judgement: Judgement { outcome: outcome.into(), expected, kind, cause, ..judgement },
        tries: counts.0,
        failed: counts.1,
        sent: record::sent(&script.steps),
        received: talk.raw,
        took: talk.over,
        pauses: record::pauses(&script.steps),
    });
}

/// Records the boundary as a number, with its violations.
fn record_growth(
    growth: &Growth<'_>,
    most: u64,
    found: &LimitFound,
    met: &Met,
    result: &mut CaseResult,
) {
    let what = growth.what;
    let refusal = found.high.and_then(|high| met.refusals.get(&high));
    let (mut low, mut high) = (found.low, found.high);
    if let Some(stray) = found.stray {
        // accepted beyond the boundary or refused below it: the boundary is somewhere in between
        (low, high) = (low.map(|low| low.min(stray)), high.map(|high| high.max(stray)));
        let limit = match [low, high].map(|end| end.map(|end| growth.quantity(end))) {
            [Some(low), Some(high)] => format!("the limit is between {low} and {high}"),
            _ => "no limit was found".to_owned(),
        };
        let why = format!(
            "{what}: {} was accepted once and refused once, or results were inconsistent: {limit}",
            growth.quantity(stray)
        );
        result.note(LimitOutcome::Advisory, why);
    }
    // the farther beyond, the more is still unsent when the error arrives
    for (amount, refusal) in &met.refusals {
        if let Some(fault) = refusal.fault(growth.wanted) {
            let why = format!("{what} of {}: {fault}", growth.quantity(*amount));
            result.note(LimitOutcome::Advisory, why);
            break;
        }
    }
    if found.low == Some(most) && found.high.is_none() && growth.endless != LimitOutcome::Pass {
        result.note(growth.endless, format!("{what}: no limit up to {}", growth.quantity(most)));
    }
    let bad = met.bad.as_ref().or(met.ended.as_ref()).map(|(amount, _)| *amount);
    let bad = bad.filter(|_| found.high.is_none());
    let Some(low) = low.filter(|_| found.high.is_some() || bad.is_some() || !found.cut) else {
        return;
    };
    let beyond = match refusal {
        Some(refusal) => refusal.text(),
        None if met.ended.is_some() => "a process of the server exits".to_owned(),
        None if met.bad.is_some() => "longer input is not refused properly".to_owned(),
        None => "no limit".to_owned(),
    };
    let note = match growth.counted {
        "" => beyond,
        counted => format!("{beyond}; counted: {counted}"),
    };
    result.measures.push(Measure {
        what: what.to_owned(),
        low: Some(low as f64),
        high: high.or(bad).map(|high| high as f64),
        unit: growth.unit,
        note,
    });
}

fn named(growth: &Growth<'_>, amount: u64) -> String {
    format!("{} of {}", growth.what, growth.quantity(amount))
}
