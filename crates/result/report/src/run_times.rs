//! What many parts of an output take from a run's histograms, made once for each output.

use record::run::RunRecord;
use stats::{Doubt, Hist};

#[derive(Clone, Debug)]
pub(crate) struct RunTimes {
    /// Headline: succeeded and timed out.
    pub(crate) response: Hist,
    /// What of it may be the client's own lateness; `None` where that was not recorded.
    pub(crate) doubt: Option<Doubt>,
}

impl RunTimes {
    pub(crate) fn of(run: &RunRecord) -> RunTimes {
        let response = run.response();
        RunTimes { doubt: run.doubt(&response), response }
    }
}
