//! The score of a load after SPECweb99. It is Loadstone's own, and no SPECweb99 result.

use super::RunRecord;
use super::known;
use crate::finished::RunReport;
use crate::specweb99::Score;
use sample::PostFacts;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::show;

/// `specweb99` of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct Specweb99Record {
    /// Simultaneous connections.
    pub connections: u64,
    /// Of these, conforming connections: the median of the iterations, the lower of two.
    pub conforming: u64,
    /// The same if 95 % or more conformed; null: too few did, and there is no score.
    pub score: Option<u64>,
    /// Operations per second per simultaneous connection.
    pub operations_per_s: Option<f64>,
    /// POSTs compared with the server's log; null if nothing is posted.
    pub posts: Option<PostsRecord>,
}

/// POSTs compared with the server's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PostsRecord {
    /// POSTs that were answered: each must be in the log.
    pub answered: u64,
    /// POSTs without a correct response: each may be in the log.
    pub unanswered: u64,
    /// Records of the log.
    pub recorded: u64,
    /// Answered, and not in the log.
    pub missing: u64,
    /// POSTs that are in the log, but were never sent.
    pub unknown: u64,
    /// Reason why there was no log to compare with.
    pub trouble: Option<String>,
}

impl Specweb99Record {
    pub(crate) fn new(report: &RunReport) -> Option<Specweb99Record> {
        let score = Score::new(report)?;
        Some(Specweb99Record {
            connections: score.connections,
            conforming: score.conforming,
            score: score.value(),
            operations_per_s: known(score.operations_per_s),
            posts: report.posts.as_ref().map(PostsRecord::new),
        })
    }
}

impl PostsRecord {
    fn new(facts: &PostFacts) -> PostsRecord {
        let PostFacts { answered, unanswered, recorded, missing, unknown, trouble } = facts.clone();
        PostsRecord { answered, unanswered, recorded, missing, unknown, trouble }
    }

    /// Returns whether the log contains each answered POST, and no unsent one.
    pub fn agree(&self) -> bool {
        self.trouble.is_none() && self.missing == 0 && self.unknown == 0
    }

    /// Returns a sentence on whether the server logged the POSTs.
    pub fn sentence(&self) -> String {
        let PostsRecord { answered, unanswered, recorded, missing, unknown, trouble } = self;
        if let Some(why) = trouble {
            return format!("the server's log of the POSTs cannot be compared: {why}");
        }
        let mut text = format!("{} answered", show::count(*answered));
        if *unanswered > 0 {
            text += &format!(", {} not", show::count(*unanswered));
        }
        text += &format!("; the server's log has {}", show::count(*recorded));
        if self.agree() {
            return text + ", all of them sent, including all answered ones";
        }
        if *missing > 0 {
            text += &format!("; {} answered ones are missing", show::count(*missing));
        }
        if *unknown > 0 {
            text += &format!("; {} were never sent", show::count(*unknown));
        }
        text
    }
}

impl RunRecord {
    /// Returns the score of the simultaneous connections; `None` for another load.
    pub fn score(&self) -> Option<Score> {
        let found = self.bodies.specweb99.as_ref()?;
        Some(Score {
            connections: found.connections,
            conforming: found.conforming,
            iterations: match self.runs.as_slice() {
                [] => vec![self.conforming_connections.count],
                runs => runs.iter().map(|run| run.conforming).collect(),
            },
            operations_per_s: found.operations_per_s.unwrap_or(f64::NAN),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_are_described_in_words() {
        let facts = |answered, unanswered, recorded, missing, unknown| PostsRecord {
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
                "12 answered, 1 not; the server's log has 12, all of them sent, including all \
                 answered ones",
            ),
            (
                facts(12, 0, 11, 2, 1),
                "12 answered; the server's log has 11; 2 answered ones are missing; 1 were never sent",
            ),
            (
                PostsRecord { trouble: Some("status 404".into()), ..facts(0, 0, 0, 0, 0) },
                "the server's log of the POSTs cannot be compared: status 404",
            ),
        ] {
            assert_eq!(found.sentence(), wanted);
        }
    }
}
