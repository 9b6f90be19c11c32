//! Effect of the cases on a background load: calls are assigned to the case in which they were due,
//! and compared with the time before the first case.

use crate::judge::PressureOutcome;
use crate::result::CaseResult;
use units::{Nanos, show};

/// A call of the background load. Instants are of the clock of the testing machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadCall {
    pub due: Nanos,
    /// Time from the due instant until the outcome was known.
    pub response: Nanos,
    /// True if the call failed, timed out, or did not match the plan's expectations.
    pub lost: bool,
}

/// Duration of a case, including its gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseSpan {
    pub case: String,
    pub from: Nanos,
    pub until: Nanos,
}

/// Statistics of the calls that were due in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    pub due: u64,
    pub lost: u64,
    /// Response times of successful calls; zero if there were none.
    pub p50: Nanos,
    pub p99: Nanos,
    pub max: Nanos,
}

/// Effect of one case on the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseEffect {
    pub case: String,
    pub during: Interval,
    /// From the end of the case to the start of the first normal second, or `None` if there was
    /// none.
    pub recovery: Option<Nanos>,
}

/// Effect of all cases on the load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadEffect {
    /// Measured before the first case.
    pub base: Interval,
    /// The cases in the order of execution.
    pub cases: Vec<CaseEffect>,
    /// Calls counted by the load's own measurement but not here, because there were too many.
    pub left_out: u64,
}

/// A case is a finding if more than this share of its calls is lost ...
pub const LOST_MAX: f64 = 0.05;
/// ... and at least this many; fewer may be noise.
pub const LOST_FEW: u64 = 3;
/// Share of lost calls above which service is denied, not only degraded.
pub const DENIED: f64 = 0.5;
/// Normal means at most this share lost beyond the baseline ...
pub const AS_BEFORE: f64 = 0.005;
/// ... and a 99th percentile of at most this factor times the baseline, or this much above it.
pub const P99_FACTOR: u64 = 3;
pub const P99_MORE: Nanos = Nanos::from_millis(20);

impl Interval {
    /// Computes the statistics of calls in any order.
    pub fn new<'a>(calls: impl Iterator<Item = &'a LoadCall>) -> Interval {
        let mut found = Interval::default();
        let mut times = Vec::new();
        for call in calls {
            found.due += 1;
            found.lost += u64::from(call.lost);
            if !call.lost {
                times.push(call.response);
            }
        }
        times.sort_unstable();
        found.p50 = quantile(&times, 0.5);
        found.p99 = quantile(&times, 0.99);
        found.max = times.last().copied().unwrap_or_default();
        found
    }

    pub fn answered(&self) -> u64 {
        self.due - self.lost
    }

    /// Returns the share of lost calls, 0 to 1, or 0 if none were due.
    pub fn lost_share(&self) -> f64 {
        if self.due == 0 { 0.0 } else { self.lost as f64 / self.due as f64 }
    }

    /// Returns whether loss and speed match `base` within the constants of this module.
    pub fn is_as(&self, base: &Interval) -> bool {
        let slow = (base.p99 * P99_FACTOR).max(base.p99 + P99_MORE);
        self.lost_share() <= base.lost_share() + AS_BEFORE && self.p99 <= slow
    }

    fn between(sorted: &[LoadCall], from: Nanos, until: Nanos) -> Interval {
        let at = |instant: Nanos| sorted.partition_point(|call| call.due < instant);
        Interval::new(sorted[at(from)..at(until.max(from))].iter())
    }
}

/// Returns the quantile of sorted times by the nearest rank.
pub fn quantile(sorted: &[Nanos], share: f64) -> Nanos {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// Assigns the calls to the cases. `base` is the interval in which nothing else was sent.
pub fn load_effect(
    mut calls: Vec<LoadCall>,
    spans: &[CaseSpan],
    base: (Nanos, Nanos),
) -> LoadEffect {
    calls.sort_by_key(|call| call.due);
    let base = Interval::between(&calls, base.0, base.1);
    let one = |span: &CaseSpan| CaseEffect {
        case: span.case.clone(),
        during: Interval::between(&calls, span.from, span.until),
        recovery: recovery(&calls, &base, span.until),
    };
    LoadEffect { base, cases: spans.iter().map(one).collect(), left_out: 0 }
}

/// Returns the time from `end` to the first normal second, regardless of what else ran meanwhile.
fn recovery(sorted: &[LoadCall], base: &Interval, end: Nanos) -> Option<Nanos> {
    let last = sorted.last()?.due;
    let mut from = end;
    while from <= last {
        let second = Interval::between(sorted, from, from + Nanos::SECOND);
        if second.due > 0 && second.is_as(base) {
            return Some(from - end);
        }
        from += Nanos::SECOND;
    }
    None
}

impl LoadEffect {
    /// Returns whether the case had an effect on the load.
    pub fn has_effect(&self, case: &CaseEffect) -> bool {
        case.during.due > 0 && !case.during.is_as(&self.base)
    }

    /// Marks cases with more than [`LOST_MAX`] lost calls as findings and adds a reason.
    pub fn judge(&self, cases: &mut [CaseResult]) {
        let before = self.base.lost_share();
        for felt in &self.cases {
            let (during, share) = (&felt.during, felt.during.lost_share());
            // if the load alone is too much for the server, the case is not the cause
            if share - before <= LOST_MAX || during.lost < LOST_FEW {
                continue;
            }
            let known = cases.iter_mut().find(|case| case.case.id == felt.case);
            let Some(case) = known.filter(|case| case.skipped.is_none()) else { continue };
            let denied = share > DENIED;
            let word = if denied { PressureOutcome::Denied } else { PressureOutcome::Degraded };
            case.outcome = case.outcome.max(word.into());
            case.notes.push(format!(
                "the background load lost {} of {} calls ({}), compared with {} before",
                show::count(during.lost),
                show::count(during.due),
                show::share(share),
                show::share(before),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::judge::TestOutcome;

    fn ms(count: u64) -> Nanos {
        Nanos::from_millis(count)
    }

    /// One call every 10 ms for ten seconds: lost from 4 s to 6 s, slow until 7.5 s.
    fn calls() -> Vec<LoadCall> {
        let one = |n: u64| {
            let lost = (400..600).contains(&n);
            let response = if (600..750).contains(&n) { ms(300) } else { ms(1 + n % 2) };
            LoadCall { due: ms(n * 10), response, lost }
        };
        (0..1_000).rev().map(one).collect()
    }

    fn span(case: &str, from: u64, until: u64) -> CaseSpan {
        CaseSpan { case: case.into(), from: ms(from), until: ms(until) }
    }

    #[test]
    fn calls_count_for_the_case_in_which_they_were_due() {
        let spans =
            [span("S-01", 2_000, 3_000), span("F-09", 4_000, 4_500), span("S-02", 9_000, 9_500)];
        let felt = load_effect(calls(), &spans, (ms(0), ms(2_000)));
        assert_eq!((felt.base.due, felt.base.lost), (200, 0));
        assert_eq!((felt.base.p50, felt.base.p99, felt.base.max), (ms(1), ms(2), ms(2)));
        let [quiet, bad, late] = &felt.cases[..] else { panic!("{felt:?}") };
        assert_eq!((quiet.during.due, quiet.during.lost, quiet.recovery), (100, 0, Some(ms(0))));
        assert_eq!((bad.during.due, bad.during.answered()), (50, 0));
        // of the windows from 4.5 s on, the one at 7.5 s is the first normal one
        assert_eq!(bad.recovery, Some(ms(3_000)));
        assert_eq!(late.recovery, Some(ms(0)));
        assert_eq!(
            felt.cases.iter().map(|case| felt.has_effect(case)).collect::<Vec<_>>(),
            [false, true, false]
        );
    }

    #[test]
    fn a_load_that_never_recovers_has_no_recovery_time() {
        let mut calls = calls();
        calls.retain(|call| call.due < ms(7_000));
        let felt = load_effect(calls, &[span("F-09", 4_000, 4_500)], (ms(0), ms(2_000)));
        assert_eq!(felt.cases[0].recovery, None);
    }

    #[test]
    fn a_large_loss_is_a_finding_and_a_small_one_is_not() {
        let all = catalogue::cases().unwrap();
        let case = |id: &str| CaseResult::new(all.iter().find(|case| case.id == id).unwrap());
        let mut cases = [case("F-09"), case("S-01"), case("S-02")];
        cases[2].skipped = Some("not there".into());
        let lost = |case: &str, due, lost| CaseEffect {
            case: case.into(),
            during: Interval { due, lost, ..Interval::default() },
            recovery: None,
        };
        let felt = |cases: Vec<CaseEffect>, base| LoadEffect { base, cases, left_out: 0 };
        let two = vec![lost("F-09", 100, 60), lost("S-01", 4, 2), lost("S-02", 9, 9)];
        felt(two, Interval::default()).judge(&mut cases);
        assert_eq!(
            cases.each_ref().map(|case| case.outcome),
            [TestOutcome::Denied, TestOutcome::Pass, TestOutcome::Pass]
        );
        assert_eq!(cases[0].notes.len(), 1);
        felt(vec![lost("S-01", 100, 6)], Interval::default()).judge(&mut cases);
        assert_eq!(cases[1].outcome, TestOutcome::Degraded);
        // the load alone was already too much
        let mut again = [case("S-01")];
        let worn = Interval { due: 100, lost: 40, ..Interval::default() };
        felt(vec![lost("S-01", 100, 44)], worn).judge(&mut again);
        assert_eq!(again[0].outcome, TestOutcome::Pass);
    }
}
