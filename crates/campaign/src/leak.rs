//! Whether the server gets back what pressure took of it, where its processes are seen: descriptors and
//! memory that stay up, and grow with each further round. A pool that is filled once, a heap that found
//! its size: they stay up too, and do not go on growing. Where workers come and go, nothing is said.

use crate::pressure::{Plan, blame};
use crate::{Runner, pressure};
use dialogue::talk::TalkScript;
use sample::ServerState;
use torture::case::Case;
use torture::judge::TestOutcome;
use torture::result::CaseResult;
use units::{Nanos, show};

/// So much more than before is looked into ...
const GROWN: f64 = 1.2;
/// ... and no less than this: below, it is anybody's noise.
const DESCRIPTORS_GROWN: u64 = 32;
const MEMORY_GROWN: u64 = 16 << 20;
/// Each of the further rounds adds at least this part of that ...
const STEP: u64 = 4;
/// ... and the second at least this part of what the first did: otherwise it levels out.
const STEADY: u64 = 2;
/// After a round the server has so long to put in order what it holds.
const SETTLE: Nanos = Nanos::from_secs(2);
/// Rounds that are to add to it.
const ROUNDS: usize = 2;

/// Between the conversations of a round that is had again.
const PACE: Nanos = Nanos::from_millis(10);

/// How long such a round lasts at most: what leaves does so at once.
const HOLD: Nanos = Nanos::from_secs(5);

/// Something that a server holds.
struct Held {
    what: &'static str,
    least: u64,
    of: fn(&ServerState) -> u64,
    words: fn(u64) -> String,
}

const HELD: [Held; 2] = [
    Held {
        what: "open descriptors",
        least: DESCRIPTORS_GROWN,
        of: |state| state.descriptors,
        words: show::count,
    },
    Held {
        what: "resident memory",
        least: MEMORY_GROWN,
        of: |state| state.memory_bytes,
        words: show::bytes,
    },
];

impl Held {
    fn has_grown(&self, before: u64, after: u64) -> bool {
        after as f64 > before as f64 * GROWN && after.saturating_sub(before) > self.least
    }

    /// Before the case, after it, and after each further round.
    fn leaks(&self, levels: &[u64]) -> bool {
        let [before, first, second, third] = levels else { return false };
        let (one, other) = (second.saturating_sub(*first), third.saturating_sub(*second));
        let step = self.least / STEP;
        self.has_grown(*before, *third) && one >= step && other >= step && other >= one / STEADY
    }
}

/// After a case that pressed: presses on where the server holds much more than before.
pub(crate) fn look_for(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) {
    let settled = !matches!(result.outcome, TestOutcome::Inconclusive | TestOutcome::Skipped);
    let Some(before) = runner.life.before().cloned().filter(|_| settled && !runner.life.is_gone())
    else {
        return;
    };
    // a whole machine grows for reasons of its own
    if !before.machine.is_empty()
        || !has_grown(runner, &before)
        || !runner.world.governor().may_repeat()
    {
        return;
    }
    runner.world.pause(SETTLE);
    let plans = runner.pressed.plans().to_vec();
    if plans.is_empty() || !has_grown(runner, &before) {
        return;
    }
    let mut levels = vec![before];
    levels.extend(runner.world.server());
    for _ in 0..ROUNDS {
        if runner.has_to_end() {
            return;
        }
        press_once_more(runner, &case.id, &plans, &mut levels);
    }
    let leaks = leaks(runner, &levels, None);
    if !leaks.is_empty() {
        result.show(TestOutcome::Leak);
        result.notes.extend(leaks);
        keep_leaking(runner, case, result);
    }
}

fn press_once_more(
    runner: &mut Runner<'_>,
    case: &str,
    plans: &[Plan],
    levels: &mut Vec<ServerState>,
) {
    for plan in plans {
        pressure::round(runner, case, plan);
    }
    runner.world.pause(SETTLE);
    levels.extend(runner.world.server());
}

/// What leaks, where the server held this before, after, and after each further round. What it had grown
/// by before, from `first` on, is left out.
fn leaks(runner: &Runner<'_>, levels: &[ServerState], first: Option<&ServerState>) -> Vec<String> {
    // workers that were started hold something each
    let same = |state: &ServerState| state.workers.len() == levels[0].workers.len();
    if runner.life.is_gone() || !levels.iter().all(same) {
        return Vec::new();
    }
    HELD.iter()
        .map(|held| (held, levels.iter().map(held.of).collect::<Vec<u64>>()))
        .filter(|(held, all)| {
            let grown = first.map_or(0, |first| all[0].saturating_sub((held.of)(first)));
            held.leaks(&all.iter().map(|level| level.saturating_sub(grown)).collect::<Vec<u64>>())
        })
        .map(|(held, all)| leaked(held, &all))
        .collect()
}

/// What so many of these conversations leave behind, once more: rounds of them, all at once. `None`
/// where the server's processes are not seen.
pub(crate) fn leaks_again(
    runner: &mut Runner<'_>,
    case: &Case,
    script: &TalkScript,
    count: usize,
    first: &mut Option<ServerState>,
) -> Option<Vec<String>> {
    let plan = Plan::paced(vec![script.clone(); count], PACE, HOLD);
    let plan = Plan { until_over: true, armed_early: true, ..plan };
    let before = runner.world.server()?;
    // tries before this one have left something too: against all of that, one more is little
    first.get_or_insert_with(|| before.clone());
    let mut levels = vec![before];
    for _ in 0..=ROUNDS {
        if runner.is_stopped() {
            return None;
        }
        press_once_more(runner, &case.id, std::slice::from_ref(&plan), &mut levels);
    }
    Some(leaks(runner, &levels, first.as_ref()))
}

fn has_grown(runner: &mut Runner<'_>, before: &ServerState) -> bool {
    let Some(now) = runner.world.server() else { return false };
    HELD.iter().any(|held| held.has_grown((held.of)(before), (held.of)(&now)))
}

/// What the connections said that the server does not get over.
fn keep_leaking(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) {
    let kinds = blame::kinds(runner.pressed.plans());
    let by_itself = |runner: &mut Runner<'_>, (count, script): &(u64, TalkScript)| {
        if runner.case_is_over() {
            return false;
        }
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        let leaks = leaks_again(runner, case, script, count, &mut None);
        leaks.is_some_and(|leaks| !leaks.is_empty())
    };
    let guilty = match kinds.len() {
        0 | 1 => None,
        _ => kinds.iter().take(blame::KINDS_MAX).find(|kind| by_itself(runner, kind)).cloned(),
    };
    let Some((count, script)) = guilty.or_else(|| kinds.into_iter().next()) else { return };
    let name = format!("{} connections at once", show::count(count));
    let why = "what such connections take does not come back";
    blame::keep(runner, case, &name, script, why, result);
}

fn leaked(held: &Held, levels: &[u64]) -> String {
    let said: Vec<String> = levels.iter().map(|level| (held.words)(*level)).collect();
    let (before, rest) = said.split_first().expect("it was looked at before the case");
    format!(
        "{} of the server: {before} before the case, {} after it and after each of two more such \
         rounds: what a round takes does not come back",
        held.what,
        rest.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_growing_leaks_and_what_finds_its_size_does_not() {
        let [descriptors, memory] = HELD;
        let mib = |levels: [u64; 4]| levels.map(|level| level << 20);
        for (levels, leaks) in [
            ([10, 40, 70, 100], true),
            // a fifth of much is more than the floor
            ([1_000, 1_080, 1_140, 1_190], false),
            // filled once
            ([10, 100, 100, 100], false),
            // levels out
            ([10, 60, 80, 85], false),
            // too little to say
            ([10, 20, 30, 40], false),
            ([10, 40, 44, 48], false),
            ([100, 40, 70, 60], false),
        ] {
            assert_eq!(descriptors.leaks(&levels), leaks, "{levels:?}");
        }
        for (levels, leaks) in [
            ([20, 40, 60, 80], true),
            ([20, 60, 61, 62], false),
            ([20, 60, 75, 76], false),
            ([500, 550, 560, 570], false),
        ] {
            assert_eq!(memory.leaks(&mib(levels)), leaks, "{levels:?}");
        }
        assert!(!memory.leaks(&[1, 2]));
    }
}
