//! Observations of users on their journeys, in addition to the counted calls.

use crate::{Hist, NumberTally};
use sample::{Noticed, Remark};
use units::Nanos;

/// Maximum size of an example in bytes.
const EXAMPLE_BYTES_MAX: usize = 400;

/// Counts by the rows of the plan. Merging is associative and commutative.
#[derive(Clone, Debug, Default)]
pub struct JourneyTally {
    /// Number of times that a capture found nothing, by its number.
    pub missed: Vec<Noted>,
    /// Checks that passed, and that failed, by row of the step.
    pub met: Vec<u64>,
    pub unmet: Vec<Noted>,
    /// Responses that did not meet expectations, by row of the step.
    pub differed: Vec<Noted>,
    /// Steps skipped, and repeated after another login, by row of the step.
    pub skipped: Vec<Noted>,
    pub refreshed: Vec<u64>,
    /// Times by row of the transaction.
    pub transactions: Vec<TransactionTally>,
    /// Users without a row, by number of the feeder.
    pub dry: Vec<u64>,
    /// Numbers captured from responses, by row of the metric.
    pub metrics: Vec<NumberTally>,
    /// Scripts that requested the end of the run, in a single row.
    pub aborted: Vec<Noted>,
}

/// Number of occurrences, and the first one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noted {
    pub count: u64,
    pub example: Option<(Nanos, String)>,
}

/// Steps that belong together.
#[derive(Clone, Debug, Default)]
pub struct TransactionTally {
    pub succeeded: u64,
    pub failed: u64,
    /// Sums of the response times of the steps, of all that ended.
    pub time: Hist,
}

impl Noted {
    fn note(&mut self, at: Nanos, text: String) {
        self.count += 1;
        if self.example.as_ref().is_none_or(|(first, _)| at < *first) {
            self.example = Some((at, shortened(text)));
        }
    }

    fn merge(&mut self, other: &Noted) {
        self.count += other.count;
        if let Some(theirs) = &other.example
            && self.example.as_ref().is_none_or(|mine| theirs < mine)
        {
            self.example = Some(theirs.clone());
        }
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > EXAMPLE_BYTES_MAX {
        let end = (0..=EXAMPLE_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
    }
    text
}

impl JourneyTally {
    pub fn is_empty(&self) -> bool {
        let JourneyTally {
            missed,
            met,
            unmet,
            differed,
            skipped,
            refreshed,
            transactions,
            dry,
            metrics,
            aborted,
        } = self;
        [missed, unmet, differed, skipped, aborted].iter().all(|rows| rows.is_empty())
            && [met, refreshed, dry].iter().all(|rows| rows.is_empty())
            && transactions.is_empty()
            && metrics.is_empty()
    }

    /// Adds observations.
    pub fn process(&mut self, remark: Remark) {
        let at = remark.at;
        match remark.fact {
            Noticed::Missed { capture, example } => {
                slot(&mut self.missed, capture).note(at, example);
            }
            Noticed::Checked { step, difference: None } => *slot(&mut self.met, step) += 1,
            Noticed::Checked { step, difference: Some(text) } => {
                slot(&mut self.unmet, step).note(at, text);
            }
            Noticed::Differed { step, difference } => {
                slot(&mut self.differed, step).note(at, difference);
            }
            Noticed::Skipped { step, why } => slot(&mut self.skipped, step).note(at, why),
            Noticed::Refreshed { step } => *slot(&mut self.refreshed, step) += 1,
            Noticed::RanDry { feeder } => *slot(&mut self.dry, feeder) += 1,
            Noticed::Measured { metric, value } => slot(&mut self.metrics, metric).record(value),
            Noticed::Aborted { why } => slot(&mut self.aborted, 0).note(at, why),
            // it counts among the connections
            Noticed::Judged { .. } => {}
            Noticed::Together { transaction, took, failed } => {
                let row = slot(&mut self.transactions, transaction);
                if failed {
                    row.failed += 1;
                } else {
                    row.succeeded += 1;
                }
                row.time.record(took);
            }
        }
    }

    pub fn merge(&mut self, other: &JourneyTally) {
        for (mine, theirs) in [
            (&mut self.missed, &other.missed),
            (&mut self.unmet, &other.unmet),
            (&mut self.differed, &other.differed),
            (&mut self.skipped, &other.skipped),
            (&mut self.aborted, &other.aborted),
        ] {
            for (row, noted) in (0..).zip(theirs) {
                slot(mine, row).merge(noted);
            }
        }
        for (mine, theirs) in [
            (&mut self.met, &other.met),
            (&mut self.refreshed, &other.refreshed),
            (&mut self.dry, &other.dry),
        ] {
            for (row, count) in (0..).zip(theirs) {
                *slot(mine, row) += count;
            }
        }
        for (row, theirs) in (0..).zip(&other.metrics) {
            slot(&mut self.metrics, row).merge(theirs);
        }
        for (row, theirs) in (0..).zip(&other.transactions) {
            let mine = slot(&mut self.transactions, row);
            mine.succeeded += theirs.succeeded;
            mine.failed += theirs.failed;
            mine.time.merge(&theirs.time);
        }
    }
}

/// Prefix of the reason why a script ended a run; all other reasons are rules of `--abort-if`.
pub const ABORTED_BY_SCRIPT: &str = "test.abort()";

/// Returns the reason for the end of a run: the rule with its option, or the message of a script.
pub fn abort_source(reason: &str) -> String {
    match reason.starts_with(ABORTED_BY_SCRIPT) {
        true => reason.to_owned(),
        false => format!("--abort-if {reason}"),
    }
}

/// Returns the row of that number, created if necessary.
fn slot<T: Default>(rows: &mut Vec<T>, row: u32) -> &mut T {
    let row = row as usize;
    if rows.len() <= row {
        rows.resize_with(row + 1, T::default);
    }
    &mut rows[row]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally_of(remarks: &[(u64, Noticed)]) -> JourneyTally {
        let mut tally = JourneyTally::default();
        for (at, fact) in remarks {
            tally.process(Remark { at: Nanos(*at), fact: fact.clone() });
        }
        tally
    }

    #[test]
    fn tallies_merge_in_any_order_and_keep_the_first_example() {
        let missed = |example: &str| Noticed::Missed { capture: 1, example: example.to_owned() };
        let together =
            |took, failed| Noticed::Together { transaction: 0, took: Nanos(took), failed };
        let a = tally_of(&[(9, missed("late")), (3, together(5, false))]);
        let b = tally_of(&[(4, missed("early")), (2, together(7, true))]);
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.merge(&b);
        ba.merge(&a);
        assert_eq!(ab.missed, ba.missed);
        assert_eq!(ab.missed[0], Noted::default());
        assert_eq!(ab.missed[1], Noted { count: 2, example: Some((Nanos(4), "early".to_owned())) });
        let row = &ab.transactions[0];
        assert_eq!((row.succeeded, row.failed, row.time.count()), (1, 1, 2));
        let mut neutral = JourneyTally::default();
        assert!(neutral.is_empty());
        neutral.merge(&ab);
        assert_eq!(neutral.missed, ab.missed);
        assert!(!neutral.is_empty());
    }

    #[test]
    fn examples_are_bounded() {
        let text = "ü".repeat(EXAMPLE_BYTES_MAX);
        let tally = tally_of(&[(1, Noticed::Skipped { step: 0, why: text })]);
        let (_, example) = tally.skipped[0].example.clone().unwrap();
        assert_eq!(example.len(), EXAMPLE_BYTES_MAX);
    }
}
