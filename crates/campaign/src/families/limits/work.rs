//! What a larger request costs: ten times as much of something may take up to twenty times as long.

use super::growth::{Growth, Shot};
use crate::Runner;
use dialogue::talk::{TalkEnd, What};
use torture::case::Case;
use torture::judge::TestOutcome;
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Ten times as much may take so many times as long; what is over sooner is nobody's worry.
const GROWTH_MAX: f64 = 20.0;
const LONG_MIN: Nanos = Nanos::from_millis(20);
/// Requests of either size; their medians are compared.
const ROUNDS: usize = 5;
/// So many times as much.
const STEP: u64 = 10;

impl Runner<'_> {
    /// Compares the time of `amount` with that of a tenth of it.
    pub(super) fn compare_work(
        &mut self,
        case: &Case,
        growth: &Growth<'_>,
        amount: u64,
        result: &mut CaseResult,
    ) {
        let few = amount / STEP;
        if few == 0 {
            return;
        }
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (amount, times) in [few, amount].into_iter().zip(&mut times) {
                if self.is_stopped() {
                    return;
                }
                let name = format!("{} of {}, timed", growth.what, show::count(amount));
                times.extend(self.time(case, &name, (growth.shot)(amount)));
            }
        }
        let (Some(short), Some(long)) = (median(&mut times[0]), median(&mut times[1])) else {
            return;
        };
        let grown = long.as_secs_f64() / short.as_secs_f64().max(1e-9);
        if grown <= GROWTH_MAX || long < LONG_MIN {
            return;
        }
        let what = growth.what;
        result.note(
            TestOutcome::Degraded,
            format!(
                "{what}: {} take {}, {} take {}: the work grows faster than the number",
                show::count(few),
                show::duration(short),
                show::count(amount),
                show::duration(long)
            ),
        );
        result.measures.push(Measure::exact(
            format!("time of ten times the {what}"),
            grown,
            Unit::Ratio,
            format!("medians of {ROUNDS}; up to {GROWTH_MAX} is as it should be"),
        ));
    }

    /// From the last byte sent to the answer; `None` without one.
    fn time(&mut self, case: &Case, name: &str, shot: Shot) -> Option<Nanos> {
        let (script, talk) = self.shoot(shot);
        self.noted(case, name, 1, &script, &talk, TestOutcome::Pass, String::new());
        let sent = talk.events.iter().rfind(|event| matches!(event.what, What::Sent(_)))?.at;
        let came = talk.events.iter().rfind(|event| matches!(event.what, What::Received(_)));
        match (came, talk.end) {
            (Some(came), _) => Some(came.at - sent),
            (None, TalkEnd::Silent) => Some(talk.over - sent),
            (None, _) => None,
        }
    }
}

fn median(times: &mut [Nanos]) -> Option<Nanos> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}
