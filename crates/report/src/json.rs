//! Records as JSON: what is published is what [`record`] has.

use crate::RunReport;
use crate::compare::CompareReport;
use crate::ramp::RampReport;
use record::compare::CompareRecord;
use record::document::printed;
use record::ramp::RampRecord;
use record::run::RunRecord;

/// `loadstone.run/1`, indented, with a line feed at its end.
pub fn json(report: &RunReport) -> String {
    printed(&RunRecord::of(report))
}

/// `loadstone.ramp/1`.
pub fn of_ramp(report: &RampReport) -> String {
    printed(&RampRecord::of(report))
}

/// `loadstone.compare/1`.
pub fn of_compare(report: &CompareReport) -> String {
    printed(&CompareRecord::of(report))
}
