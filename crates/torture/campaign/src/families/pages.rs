//! Random data for every page of a list: several applications often serve the pages behind one
//! front end.

use crate::Runner;
use crate::families::random;
use dialogue::text::Values;
use torture::case::{Case, Fuzz, PageRequests};
use torture::fuzz;
use torture::fuzz::FuzzPlace;
use torture::judge::TestOutcome;
use torture::result::CaseResult;

/// Number of failures after which a page is no longer tested.
const FAILURES_MAX: u64 = 3;

/// Sends random data in query, path, body and without escaping, in turn.
pub(super) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &PageRequests,
    result: &mut CaseResult,
) {
    let all = &runner.settings.pages;
    let most = with.pages as usize;
    if all.len() > most {
        result.notes.push(format!("of {} pages the first {most} were tested", all.len()));
    }
    let each = with.each.min(runner.settings.executions_max);
    for (number, page) in all.iter().take(most).enumerate() {
        let values = Values { path: page.clone(), ..runner.target.values.clone() };
        let mut failures = 0;
        for turn in 0..each {
            if runner.is_stopped() || failures == FAILURES_MAX {
                break;
            }
            let index = number as u64 * each + turn;
            let random = Fuzz {
                place: place(index, !values.post.is_empty()),
                count: each,
                length: with.length.0,
            };
            let (seed, fields) = (runner.settings.seed, &runner.target.fields);
            let shot = fuzz::shot(seed, &case.id, case.version, &random, index, &values, fields);
            let name = format!("{page}, number {index}, seed {seed}");
            let outcome = random::execution(runner, case, name, &shot, &format!("{page} "), result);
            failures += u64::from(outcome == TestOutcome::Fail);
        }
    }
}

fn place(index: u64, takes_bodies: bool) -> FuzzPlace {
    match index % 4 {
        0 => FuzzPlace::Query,
        1 => FuzzPlace::Path,
        2 if takes_bodies => FuzzPlace::Body,
        _ => FuzzPlace::Raw,
    }
}
