//! Cost of larger requests: ten times the number of items may take up to thirty times as long.

use super::growth::{self, Growth, Shot};
use crate::attempts::Rate;
use crate::findings::Finding;
use crate::service_time::{LONG_MIN, work_of};
use crate::{Runner, culprit, habits};
use dialogue::talk::{Talk, TalkScript};
use torture::case::Case;
use torture::judge;
use torture::judge::{FailureKind, Judgement, LimitOutcome};
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Permitted growth of time for ten times the number of items: sorting or a tree needs slightly
/// more than ten.
const GROWTH_MAX: f64 = 30.0;
/// Duration above which other work on the machine hardly matters, so less growth is significant.
const LONG: Nanos = Nanos::from_millis(500);
const GROWTH_OF_LONG: f64 = 20.0;
/// Number of requests of each size per pass; the fastest are compared.
const ROUNDS: usize = 5;
/// Factor between the sizes.
const STEP: u64 = 10;

/// Maximum part of the shorter time that is subtracted for a plain request: without it, two similar
/// times could yield any quotient.
const PLAIN_PART: u64 = 4;

/// The machine is busy if the median plain request takes this multiple of the fastest one.
const BUSY_FACTOR: u64 = 4;

/// Time the server needed, with the conversation.
type Timed = (Nanos, TalkScript, Talk);

/// Times of both sizes, and of plain requests alongside.
#[derive(Default)]
struct Timings {
    sizes: [Vec<Timed>; 2],
    plain: Vec<Nanos>,
}

impl Timings {
    /// Returns the time of the fastest plain request.
    fn plain(&self) -> Nanos {
        self.plain.iter().min().copied().unwrap_or_default()
    }

    fn is_too_noisy(&self) -> bool {
        let mut plain = self.plain.clone();
        plain.sort_unstable();
        let median = plain.get(plain.len() / 2).copied().unwrap_or_default();
        median > self.plain() * BUSY_FACTOR
    }

    /// Returns whether the fastest large request takes longer than its size explains, and long
    /// enough to be relevant.
    fn grows_superlinearly(&self) -> bool {
        let least = |timed: &Vec<Timed>| timed.iter().map(|(took, ..)| *took).min();
        let [Some(short), Some(long)] = self.sizes.each_ref().map(least) else { return false };
        grows_too_fast(long, short, self.plain())
    }
}

/// Finds the boundary, then compares the time of the largest accepted amount with that of a tenth
/// of it.
pub(super) fn grow_timed(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
    result: &mut CaseResult,
) {
    if let Some(taken) = growth::grow(runner, case, growth, result) {
        compare(runner, case, growth, taken, result);
    }
}

/// Compares the time of `amount` with that of a tenth of it.
pub(super) fn compare(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
    amount: u64,
    result: &mut CaseResult,
) {
    let few = amount / STEP;
    if few == 0 {
        return;
    }
    let mut timed = Timings::default();
    // repeat if it looks bad: a busy machine can only make things slower
    for _ in 0..2 {
        if !time_both_sizes(runner, case, growth, (few, amount), &mut timed)
            || !timed.grows_superlinearly()
        {
            return;
        }
    }
    let (plain, restless) = (timed.plain(), timed.is_too_noisy());
    let [short, long] = timed.sizes.map(fastest);
    let (Some((short, ..)), Some((long, script, talk))) = (short, long) else { return };
    let Some(series) = fastest_series(runner, case, growth, few) else { return };
    let short = short.max(series);
    if !grows_too_fast(long, short, plain) {
        return;
    }
    let grown = quotient(long, short, plain);
    let what = growth.what;
    if restless && long < LONG {
        // work in many scheduler turns waits for each of them; work in one turn does not
        result.notes.push(unjudged(what));
        return;
    }
    // the other amount shows it, although a smaller one could not be judged
    result.notes.retain(|note| *note != unjudged(what));
    let why = format!(
        "{what}: {} take {}, {} take {}: the work grows faster than the number",
        show::count(few),
        show::duration(short),
        show::count(amount),
        show::duration(long)
    );
    result.measures.push(Measure::exact(
        format!("time for ten times the {what}"),
        grown,
        Unit::Ratio,
        format!(
            "the fastest of {}, minus a plain request; up to {} is acceptable",
            2 * ROUNDS,
            growth_max(long)
        ),
    ));
    let name = timed_name(growth, amount);
    record_slow_request(runner, case, &name, (&script, talk), (growth_max(long), why), result);
}

/// Times a series of small requests, several times, and returns the mean time of the fastest series;
/// `None` if the run must end. It takes as long as one large request if the work is linear: on a
/// busy machine, a single small request may run in a quiet moment, which a large one does not find.
fn fastest_series(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
    few: u64,
) -> Option<Nanos> {
    let name = timed_name(growth, few);
    let mut fastest = Nanos::NEVER;
    for _ in 0..ROUNDS {
        let mut all = Nanos::ZERO;
        for _ in 0..STEP {
            if runner.is_stopped() {
                return None;
            }
            let (took, ..) = time(runner, case, &name, (growth.shot)(few))?;
            all += took;
        }
        fastest = fastest.min(all);
    }
    Some(Nanos(fastest.0 / STEP))
}

/// Returns the note of a comparison that is not judged.
fn unjudged(what: &str) -> String {
    format!("{what}: growth is not judged because this machine is too busy")
}

/// Times plain requests and both sizes in turn; returns false if the run must end.
fn time_both_sizes(
    runner: &mut Runner<'_>,
    case: &Case,
    growth: &Growth<'_>,
    (few, amount): (u64, u64),
    timed: &mut Timings,
) -> bool {
    for _ in 0..ROUNDS {
        let talk = runner.ask(&habits::plain_request(runner.target, ""));
        timed.plain.extend(work_of(&talk));
        for (amount, timed) in [few, amount].into_iter().zip(&mut timed.sizes) {
            if runner.is_stopped() {
                return false;
            }
            let name = timed_name(growth, amount);
            timed.extend(time(runner, case, &name, (growth.shot)(amount)));
        }
    }
    true
}

/// Records the bytes of a slow request, to be shrunk.
fn record_slow_request(
    runner: &mut Runner<'_>,
    case: &Case,
    name: &str,
    (script, talk): (&TalkScript, Talk),
    (most, why): (f64, String),
    result: &mut CaseResult,
) {
    let judgement = Judgement {
        outcome: LimitOutcome::Degraded.into(),
        seen: judge::seen(&talk),
        expected: format!("ten times as many in at most {most} times the time"),
        why,
        kind: Some(FailureKind::Slow),
        ..Judgement::default()
    };
    add_slow(runner, case, name, script, &talk);
    culprit::keep(runner, case, name, Rate::ONCE, (script, talk), judgement, result);
}

/// Returns the time from the last byte sent to the response; `None` without a response.
fn time(runner: &mut Runner<'_>, case: &Case, name: &str, shot: Shot) -> Option<Timed> {
    let (script, talk) = growth::send_shot(runner, shot);
    growth::noted(runner, case, name, 1, &script, &talk, LimitOutcome::Pass, String::new());
    Some((work_of(&talk)?, script, talk))
}

/// Records a request that takes longer than its size explains.
fn add_slow(runner: &mut Runner<'_>, case: &Case, name: &str, script: &TalkScript, talk: &Talk) {
    if runner.budget.is_wanted() {
        let (case, name, script) = (case.clone(), name.to_owned(), script.clone());
        let slow = work_of(talk);
        runner.findings.add(Finding { case, name, script, kind: FailureKind::Slow, slow });
    }
}

/// Suffix of names of requests judged by time.
const TIMED: &str = ", timed";

fn timed_name(growth: &Growth<'_>, amount: u64) -> String {
    format!("{} of {}{TIMED}", growth.what, show::count(amount))
}

/// Returns whether a request with this name is judged by time.
pub(crate) fn is_timed(name: &str) -> bool {
    name.ends_with(TIMED)
}

fn fastest(mut timed: Vec<Timed>) -> Option<Timed> {
    timed.sort_by_key(|(took, ..)| *took);
    timed.into_iter().next()
}

/// Returns the ratio of times, with the time of a plain request subtracted from both.
fn quotient(long: Nanos, short: Nanos, plain: Nanos) -> f64 {
    let plain = plain.min(Nanos(short.0 / PLAIN_PART));
    (long - plain.min(long)).as_secs_f64() / (short - plain).as_secs_f64().max(1e-9)
}

/// Returns whether `long` exceeds what the size explains and is long enough to matter.
fn grows_too_fast(long: Nanos, short: Nanos, plain: Nanos) -> bool {
    quotient(long, short, plain) > growth_max(long) && long >= LONG_MIN
}

/// Returns the allowed growth for ten times as many items at this duration.
fn growth_max(long: Nanos) -> f64 {
    if long >= LONG { GROWTH_OF_LONG } else { GROWTH_MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_request_time_neither_hides_nor_creates_work() {
        let grown = |long, short, plain| {
            quotient(Nanos::from_millis(long), Nanos::from_millis(short), Nanos::from_millis(plain))
        };
        // quadratic work on a busy machine where a plain request takes 50 ms
        let most = growth_max(Nanos::from_millis(1_400));
        assert!(grown(1_400, 75, 0) < most && grown(1_400, 75, 50) > most);
        // linear work stays linear, whatever is subtracted
        assert!(grown(1_000, 100, 95) <= 14.0 && grown(100, 100, 200) <= 1.4);
        assert_eq!((grown(300, 10, 0), growth_max(Nanos::from_millis(300))), (30.0, GROWTH_MAX));
        let restless = |plain: [u64; 5]| {
            let plain = plain.map(Nanos::from_micros).to_vec();
            Timings { plain, ..Timings::default() }.is_too_noisy()
        };
        let steep = |short, long| {
            grows_too_fast(Nanos::from_millis(long), Nanos::from_millis(short), Nanos::ZERO)
        };
        // a series of small requests shows that only the machine was busy
        assert!(steep(46, 1_220) && !steep(115, 1_220));
        // 29 ms for 812 us of work is scheduling; the same ratio of a second is not
        assert!(!steep(1, 47) && steep(20, 940) && !steep(20, 390));
        assert!(!restless([200, 210, 220, 300, 9_000]) && restless([200, 210, 900, 3_000, 9_000]));
    }
}
