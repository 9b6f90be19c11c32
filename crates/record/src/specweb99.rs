//! The score of a load after SPECweb99: how many simultaneous connections conform. It is Loadstone's
//! own figure, of Loadstone's own files and operations, and no SPECweb99 result.

use crate::figures::ratio;
use crate::finished::RunReport;
use plan::Load;
use plan::specweb99::CONFORMING_MIN;
use sample::PostFacts;
use units::show;

/// What came of the simultaneous connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    pub connections: u64,
    /// Those that conformed: the median of the iterations, of an even number the lower one.
    pub conforming: u64,
    /// In each iteration, in their order.
    pub iterations: Vec<u64>,
    /// A second and connection.
    pub operations_per_s: f64,
}

impl Score {
    /// `None`: it was another load.
    pub fn of(report: &RunReport) -> Option<Score> {
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

    /// `None`: too few connections conform for it to be one.
    pub fn value(&self) -> Option<u64> {
        let share = ratio(self.conforming as f64, self.connections as f64);
        (share >= CONFORMING_MIN).then_some(self.conforming)
    }

    /// It in a sentence.
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
            None => format!("none: {found}, {rate}; below 95 % there is none"),
        }
    }
}

/// Whether the server has written down what was posted, in a sentence.
pub fn posts(facts: &PostFacts) -> String {
    let PostFacts { answered, unanswered, recorded, missing, unknown, trouble } = facts;
    if let Some(why) = trouble {
        return format!("the server's log of the POSTs cannot be compared: {why}");
    }
    let mut text = format!("{} answered", show::count(*answered));
    if *unanswered > 0 {
        text += &format!(", {} not", show::count(*unanswered));
    }
    text += &format!("; the server's log has {}", show::count(*recorded));
    if facts.agree() {
        return text + ", each of them sent, and all that were answered";
    }
    if *missing > 0 {
        text += &format!("; {} that were answered are missing", show::count(*missing));
    }
    if *unknown > 0 {
        text += &format!("; {} were never sent", show::count(*unknown));
    }
    text
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
    fn a_score_in_words() {
        for (found, wanted) in [
            (
                score(&[97], 100),
                "97: 97 of 100 simultaneous connections conform, 3.10 operations/s each",
            ),
            (
                score(&[94], 100),
                "none: 94 of 100 simultaneous connections conform, 3.10 operations/s each; below 95 % \
                 there is none",
            ),
            (
                score(&[99, 96, 98], 100),
                "98: the median of 99, 96, 98 conforming, of 100 simultaneous ones, 3.10 operations/s each",
            ),
        ] {
            assert_eq!(found.sentence(), wanted);
        }
    }

    #[test]
    fn posts_in_words() {
        let facts = |answered, unanswered, recorded, missing, unknown| PostFacts {
            answered,
            unanswered,
            recorded,
            missing,
            unknown,
            trouble: None,
        };
        for (found, wanted) in [
            (
                facts(12, 1, 12, 0, 0),
                "12 answered, 1 not; the server's log has 12, each of them sent, and all that were answered",
            ),
            (
                facts(12, 0, 11, 2, 1),
                "12 answered; the server's log has 11; 2 that were answered are missing; 1 were never sent",
            ),
            (
                PostFacts { trouble: Some("status 404".into()), ..PostFacts::default() },
                "the server's log of the POSTs cannot be compared: status 404",
            ),
        ] {
            assert_eq!(posts(&found), wanted);
        }
    }
}
