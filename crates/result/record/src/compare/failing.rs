//! Sides whose servers fail: they are reported with their statuses, and rates that include refused
//! calls are not compared.

use crate::figures::ratio;
use crate::run::RunRecord;
use crate::server::FAILING_SHARE_MIN;
use std::collections::BTreeMap;
use units::show;

/// Share of failures on one side above which completions are not compared: they include refusals.
pub const REFUSED_SHARE_MAX: f64 = 0.01;
/// Statuses and errors that the sentence names.
const NAMED_MAX: usize = 3;

/// Returns the share of the calls of all runs that failed through the server's fault, 0..=1; 0
/// without calls.
pub(super) fn share(runs: &[RunRecord]) -> f64 {
    let (mut failing, mut ended) = (0.0, 0);
    for run in runs {
        let done = run.outcomes.succeeded + run.outcomes.failed + run.outcomes.timed_out;
        failing += run.server.failing_share.unwrap_or(0.0) * done as f64;
        ended += done;
    }
    let share = ratio(failing, ended as f64);
    if share.is_nan() { 0.0 } else { share }
}

/// Formats `A is failing: 95.0 % of 959 calls (911 answered 500).`, if it is.
pub(super) fn sentence(letter: char, runs: &[RunRecord]) -> Option<String> {
    let share = share(runs);
    if share < FAILING_SHARE_MIN {
        return None;
    }
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut ended = 0;
    for run in runs {
        ended += run.outcomes.succeeded + run.outcomes.failed + run.outcomes.timed_out;
        for wrong in &run.server.statuses {
            *kinds.entry(format!("answered {}", wrong.status)).or_default() += wrong.count;
        }
        for error in &run.server.errors {
            *kinds.entry(format!("× {}", error.text)).or_default() += error.count;
        }
    }
    let mut kinds: Vec<(String, u64)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = kinds.iter().take(NAMED_MAX);
    let named: Vec<String> =
        named.map(|(kind, count)| format!("{} {kind}", show::count(*count))).collect();
    Some(format!(
        "{letter} is failing: {} of {} ({}).",
        show::share(share),
        crate::words::counted(ended, "call"),
        named.join(", ")
    ))
}
