//! The whole curve as a result: its steps in the order they were run, and what they say.

mod answer;
mod csv;
mod page;
pub(crate) mod prose;
mod text;
mod verdict;
mod watched;

pub use answer::{answer, capacity_in_words, knee_in_words, load, steps_sentence};
pub use csv::csv;
pub use page::html;
pub use text::text;
pub use verdict::missed;
pub(crate) use watched::watched;

pub use record::ramp::{RampRecord, RampReport, RampStep, RampStepRecord};
use sample::Blame;
pub use stats::curve::Purpose;

/// Calls of a step that failed, timed out or were dropped by the fault of `blame`.
fn blamed(step: &RampStepRecord, blame: Blame) -> u64 {
    let failures = step.run.failures.iter().filter(|failure| failure.blame == blame);
    failures.map(|failure| failure.count).sum()
}

/// `loadstone.ramp/1`, indented, with a line feed at its end.
pub fn json(ramp: &RampRecord) -> String {
    record::document::printed(ramp)
}
