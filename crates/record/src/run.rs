//! A run: as it was measured ([`RunReport`]), and as it is published ([`RunRecord`]), each made of the
//! other.

mod measured;
mod published;
mod read_back;

pub use crate::finished::{
    Driver, DummyRun, Finding, FirstCall, Headline, Resolved, RunReport, SloResult, in_window,
    merged, merged_paths, merged_stacks, per_second,
};
pub use measured::{HistogramRecord, MeasuredRecord};
pub use published::*;
pub(crate) use published::{VERIFIED_AGAINST, known, plan_value};
pub(crate) use read_back::plan_of;
