//! The score of a load after SPECweb99. It is Loadstone's own, and no SPECweb99 result.

use crate::finished::RunReport;
use crate::specweb99::Score;
use sample::PostFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `specweb99` of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Specweb99Record {
    /// Simultaneous connections.
    pub connections: u64,
    /// Of them, those that conformed: the median of the iterations, the lower of two.
    pub conforming: u64,
    /// The same, where 95 % or more conformed; null: too few did, and there is no score.
    pub score: Option<u64>,
    /// Operations a second and simultaneous connection.
    pub operations_per_s: Option<f64>,
    /// What was posted beside the server's log; null where nothing is posted.
    pub posts: Option<PostsRecord>,
}

/// POSTs beside the log of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostsRecord {
    /// POSTs that were answered: each must be in the log.
    pub answered: u64,
    /// POSTs that were sent and not answered as they should be: each may be in it.
    pub unanswered: u64,
    /// Records of the log.
    pub recorded: u64,
    /// Answered, and not in the log.
    pub missing: u64,
    /// In the log, and never sent.
    pub unknown: u64,
    /// Why there was no log to compare with.
    pub trouble: Option<String>,
}

impl Specweb99Record {
    pub(crate) fn of(report: &RunReport) -> Option<Specweb99Record> {
        let score = Score::of(report)?;
        Some(Specweb99Record {
            connections: score.connections,
            conforming: score.conforming,
            score: score.value(),
            operations_per_s: Some(score.operations_per_s).filter(|rate| rate.is_finite()),
            posts: report.posts.as_ref().map(PostsRecord::of),
        })
    }
}

impl Specweb99Record {
    pub(crate) fn post_facts(&self) -> Option<PostFacts> {
        self.posts.as_ref().map(PostsRecord::facts)
    }
}

impl PostsRecord {
    fn of(facts: &PostFacts) -> PostsRecord {
        let PostFacts { answered, unanswered, recorded, missing, unknown, trouble } = facts.clone();
        PostsRecord { answered, unanswered, recorded, missing, unknown, trouble }
    }

    fn facts(&self) -> PostFacts {
        let PostsRecord { answered, unanswered, recorded, missing, unknown, trouble } =
            self.clone();
        PostFacts { answered, unanswered, recorded, missing, unknown, trouble }
    }
}
