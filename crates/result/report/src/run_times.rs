//! Data from a run's histograms for many parts of an output, computed once per output.

use record::run::RunRecord;
use stats::{Doubt, Hist};

#[derive(Clone, Debug)]
pub(crate) struct RunTimes {
    /// Headline: succeeded and timed out.
    pub(crate) response: Hist,
    /// Part that may be the client's lateness; `None` if that was not recorded.
    pub(crate) doubt: Option<Doubt>,
}

impl RunTimes {
    pub(crate) fn new(run: &RunRecord) -> RunTimes {
        let response = run.response();
        RunTimes { doubt: run.doubt(&response), response }
    }
}
