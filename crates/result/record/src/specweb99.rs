//! The score of a load after SPECweb99: how many simultaneous connections conform. It is Loadstone's
//! own figure, of Loadstone's own files and operations, and no SPECweb99 result.

use crate::figures::ratio;
use crate::finished::RunReport;
use plan::Load;
use plan::specweb99::CONFORMING_MIN;
use units::show;

/// Result of the simultaneous connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    pub connections: u64,
    /// Conforming connections: the median of the iterations, of an even number the lower one.
    pub conforming: u64,
    /// Values of each iteration, in order.
    pub iterations: Vec<u64>,
    /// A second and connection.
    pub operations_per_s: f64,
}

impl Score {
    /// Returns `None` for other loads.
    pub(crate) fn new(report: &RunReport) -> Option<Score> {
        report.plan.specweb99?;
        let Load::Closed { users, .. } = report.plan.load else { return None };
        let connections = u64::from(users);
        let total = &report.measurement.total;
        let iterations: Vec<u64> = match report.runs.as_slice() {
            [] => vec![total.connections.conforming],
            runs => runs.iter().map(|run| run.conforming).collect(),
        };
        let mut sorted = iterations.clone();
        sorted.sort_unstable();
        let window = report.measurement.window.as_secs_f64() * connections as f64;
        Some(Score {
            connections,
            conforming: sorted[(sorted.len() - 1) / 2],
            iterations,
            operations_per_s: ratio(total.in_window as f64, window),
        })
    }

    /// Returns the score; `None` if too few connections conform.
    pub fn value(&self) -> Option<u64> {
        let share = ratio(self.conforming as f64, self.connections as f64);
        (share >= CONFORMING_MIN).then_some(self.conforming)
    }

    /// Returns the score in a sentence.
    pub fn sentence(&self) -> String {
        let all = show::count(self.connections);
        let found = match self.iterations.as_slice() {
            [one] => format!("{} of {all} simultaneous connections conform", show::count(*one)),
            more => {
                let each: Vec<String> = more.iter().map(|one| show::count(*one)).collect();
                format!("the median of {} conforming, of {all} simultaneous ones", each.join(", "))
            }
        };
        let rate = format!("{:.2} operations/s each", self.operations_per_s);
        match self.value() {
            Some(score) => format!("{}: {found}, {rate}", show::count(score)),
            None => format!("none: {found}, {rate}; a result needs 95 %"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(iterations: &[u64], connections: u64) -> Score {
        let mut sorted = iterations.to_vec();
        sorted.sort_unstable();
        let conforming = sorted[(sorted.len() - 1) / 2];
        Score { connections, conforming, iterations: iterations.to_vec(), operations_per_s: 3.1 }
    }

    #[test]
    fn a_score_is_described_in_words() {
        for (found, wanted) in [
            (
                score(&[97], 100),
                "97: 97 of 100 simultaneous connections conform, 3.10 operations/s each",
            ),
            (
                score(&[94], 100),
                "none: 94 of 100 simultaneous connections conform, 3.10 operations/s each; a \
                 result needs 95 %",
            ),
            (
                score(&[99, 96, 98], 100),
                "98: the median of 99, 96, 98 conforming, of 100 simultaneous ones, 3.10 operations/s each",
            ),
        ] {
            assert_eq!(found.sentence(), wanted);
        }
    }
}
