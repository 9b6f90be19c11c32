//! A run as measured ([`RunReport`]), and the record that is made from it once, published, stored
//! and rendered ([`RunRecord`]).

mod measured;
mod published;

pub use crate::finished::{
    Driver, DummyRun, Finding, FirstCall, Headline, Resolved, RunReport, SloResult, in_window,
    merged, merged_paths, merged_stacks, per_second,
};
pub use measured::{HistogramRecord, MeasuredRecord, OTHER_TIMINGS, RunHist, SpreadRecord};
#[cfg(any(test, feature = "schema"))]
pub(crate) use published::VERIFIED_AGAINST;
pub(crate) use published::known;
pub use published::*;
