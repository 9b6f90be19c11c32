//! Detects leaks of descriptors and memory, if the server's processes are visible: resources that
//! stay allocated and grow with each further round. A pool that is filled once, or a heap that has
//! reached its size, stays allocated too, but stops growing. If workers change, nothing is
//! reported.

use crate::pressure::{Plan, blame};
use crate::{Runner, pressure, scripts};
use dialogue::talk::TalkScript;
use sample::ServerState;
use torture::case::Case;
use torture::judge::{Cause, TestOutcome};
use torture::result::CaseResult;
use units::{Nanos, show};

/// Growth beyond this factor is examined ...
const GROWN: f64 = 1.2;
/// ... and the minimum number of descriptors: less is noise.
const DESCRIPTORS_GROWN: u64 = 32;
const MEMORY_GROWN: u64 = 16 << 20;
/// Each further round adds at least the minimum growth divided by this ...
const STEP: u64 = 4;
/// ... and the last growth must be at least the first divided by this: otherwise the growth levels
/// out.
const STEADY: u64 = 2;
/// Time for the server to settle after a round.
const SETTLE: Nanos = Nanos::from_secs(2);
/// Number of further rounds ...
const ROUNDS: usize = 2;
/// ... and of all further rounds while memory still grows, within this time: a heap that is
/// garbage-collected late stops growing only after many rounds, ...
const ROUNDS_MAX: usize = 20;
const ROUNDS_TIME: Nanos = Nanos::from_secs(100);
/// ... until it has grown by this amount and by this factor.
const ENOUGH: u64 = 64 << 20;
const ENOUGH_FACTOR: u64 = 4;

/// Maximum number of levels shown, besides the last one.
const SHOWN_MAX: usize = 4;

/// Interval between the conversations of a repeated round.
const PACE: Nanos = Nanos::from_millis(10);

/// Maximum duration of a round that looks for leaks: they occur at once.
const HOLD: Nanos = Nanos::from_secs(5);

/// A resource that a server holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldResource {
    Descriptors,
    Memory,
    Threads,
}

impl HeldResource {
    pub(crate) fn text(self) -> &'static str {
        match self {
            HeldResource::Descriptors => "open descriptors",
            HeldResource::Memory => "resident memory",
            HeldResource::Threads => "threads",
        }
    }

    /// Returns the amount that the server holds.
    pub(crate) fn level(self, state: &ServerState) -> u64 {
        match self {
            HeldResource::Descriptors => state.descriptors,
            HeldResource::Memory => state.memory_bytes,
            HeldResource::Threads => state.threads,
        }
    }

    /// Returns an amount of it as text.
    pub(crate) fn format_amount(self, amount: u64) -> String {
        match self {
            HeldResource::Memory => show::bytes(amount),
            HeldResource::Descriptors | HeldResource::Threads => show::count(amount),
        }
    }
}

/// A resource that leaks, for reports.
#[derive(Clone, Debug)]
pub(crate) struct Leak {
    what: HeldResource,
    pub(crate) text: String,
}

/// Resource and its minimum growth.
struct Held {
    what: HeldResource,
    least: u64,
}

const HELD: [Held; 2] = [
    Held { what: HeldResource::Descriptors, least: DESCRIPTORS_GROWN },
    Held { what: HeldResource::Memory, least: MEMORY_GROWN },
];

impl Held {
    fn has_grown(&self, before: u64, after: u64) -> bool {
        after as f64 > before as f64 * GROWN && after.saturating_sub(before) > self.least
    }

    /// Returns whether a resource leaks, by its levels before the case, after it, and after each
    /// further round.
    fn leaks(&self, levels: &[u64]) -> bool {
        let [before, further @ ..] = levels else { return false };
        let steps: Vec<u64> =
            further.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        let ([first, .., last], Some(now)) = (&steps[..], levels.last()) else { return false };
        let step = self.least / STEP;
        self.has_grown(*before, *now)
            && steps.iter().all(|one| *one >= step)
            && *last >= first / STEADY
    }
}

/// Adds rounds after a load case if the server holds much more than before.
pub(crate) fn detect(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) {
    let settled = !matches!(result.outcome, TestOutcome::Inconclusive | TestOutcome::Skipped);
    let Some(before) = runner.life.before().cloned().filter(|_| settled && !runner.life.is_gone())
    else {
        return;
    };
    // the memory use of a whole machine grows for other reasons
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
        if runner.must_end_run() {
            return;
        }
        repeat_round(runner, &case.id, &plans, &mut levels);
    }
    let mut found = leaks(runner, &levels, None);
    let start = runner.now();
    for _ in ROUNDS..ROUNDS_MAX {
        let memory_grows = found.iter().any(|leak| leak.what == HeldResource::Memory);
        let over = has_grown_enough(&levels) || runner.now() - start > ROUNDS_TIME;
        if !memory_grows || over || runner.must_end_run() {
            break;
        }
        repeat_round(runner, &case.id, &plans, &mut levels);
        found = leaks(runner, &levels, None);
    }
    if !found.is_empty() {
        result.show(TestOutcome::Leak);
        let leaking: Vec<HeldResource> = found.iter().map(|leak| leak.what).collect();
        result.notes.extend(found.into_iter().map(|leak| leak.text));
        record_leaks(runner, case, &leaking, result);
    }
}

/// Returns whether memory has grown by more than a heap that is collected late.
fn has_grown_enough(levels: &[ServerState]) -> bool {
    let level = |state: Option<&ServerState>| state.map_or(0, |state| state.memory_bytes);
    let (before, now) = (level(levels.first()), level(levels.last()));
    now.saturating_sub(before) >= ENOUGH && now >= before * ENOUGH_FACTOR
}

fn repeat_round(
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

/// Returns the resources that leak, from the levels before, after, and after each further round.
/// Earlier growth, since `first`, is subtracted.
fn leaks(runner: &Runner<'_>, levels: &[ServerState], first: Option<&ServerState>) -> Vec<Leak> {
    // each started worker holds some resources
    let same = |state: &ServerState| state.workers.len() == levels[0].workers.len();
    if runner.life.is_gone() || !levels.iter().all(same) {
        return Vec::new();
    }
    let of = |held: &Held| levels.iter().map(|state| held.what.level(state)).collect::<Vec<u64>>();
    attributable(runner)
        .map(|held| (held, of(held)))
        .filter(|(held, all)| {
            let grown = first.map_or(0, |first| all[0].saturating_sub(held.what.level(first)));
            held.leaks(&all.iter().map(|level| level.saturating_sub(grown)).collect::<Vec<u64>>())
        })
        .map(|(held, all)| Leak { what: held.what, text: leaked(held, &all) })
        .collect()
}

/// Repeats rounds of these conversations, all at once, and returns the leaked resources. `None` if
/// the server's processes are not visible.
pub(crate) fn repeat_leaking_rounds(
    runner: &mut Runner<'_>,
    case: &Case,
    script: &TalkScript,
    count: usize,
    first: &mut Option<ServerState>,
) -> Option<Vec<Leak>> {
    let plan = Plan::paced(vec![script.clone(); count], PACE, HOLD);
    let plan = Plan { until_over: true, armed_early: true, ..plan };
    let before = runner.world.server()?;
    // earlier attempts leaked too: compared with their total, one more leak looks small
    first.get_or_insert_with(|| before.clone());
    let mut levels = vec![before];
    for _ in 0..=ROUNDS {
        if runner.is_stopped() {
            return None;
        }
        repeat_round(runner, &case.id, std::slice::from_ref(&plan), &mut levels);
    }
    Some(leaks(runner, &levels, first.as_ref()))
}

/// Returns the resources whose growth can be attributed to a round. Memory is excluded if it grows
/// without further requests, because it then grows during any round.
fn attributable(runner: &Runner<'_>) -> impl Iterator<Item = &'static Held> + use<> {
    let grows = runner.memory.is_growing();
    HELD.iter().filter(move |held| !grows || held.what != HeldResource::Memory)
}

fn has_grown(runner: &mut Runner<'_>, before: &ServerState) -> bool {
    let Some(now) = runner.world.server() else { return false };
    attributable(runner).any(|held| held.has_grown(held.what.level(before), held.what.level(&now)))
}

/// Result of comparing one kind of conversation with the leak of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeakComparison {
    /// It leaks one of the same resources.
    Leaks,
    /// It leaks none of them.
    Releases,
    /// The time was over, or the server's processes were not visible.
    CutShort,
}

/// Compares the leaks of one kind of conversation, `None` if they are unknown, with leaking
/// resources.
fn compare(leaks: Option<&[Leak]>, leaking: &[HeldResource]) -> LeakComparison {
    match leaks {
        None => LeakComparison::CutShort,
        Some(leaks) if leaks.iter().any(|leak| leaking.contains(&leak.what)) => {
            LeakComparison::Leaks
        }
        Some(_) => LeakComparison::Releases,
    }
}

/// Records the conversations whose resources leak.
fn record_leaks(
    runner: &mut Runner<'_>,
    case: &Case,
    leaking: &[HeldResource],
    result: &mut CaseResult,
) {
    let kinds = blame::kinds(runner.pressed.plans());
    let by_itself = |runner: &mut Runner<'_>, (count, script): &(u64, TalkScript)| {
        if runner.case_is_over() {
            return LeakComparison::CutShort;
        }
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        let leaks = repeat_leaking_rounds(runner, case, script, count, &mut None);
        compare(leaks.filter(|_| !runner.case_is_over()).as_deref(), leaking)
    };
    let guilty = match kinds.len() {
        0 | 1 => None,
        _ => {
            let mut some = kinds.iter().take(blame::KINDS_MAX);
            some.find(|kind| by_itself(runner, kind) == LeakComparison::Leaks).cloned()
        }
    };
    let Some((count, script)) = guilty.or_else(|| kinds.into_iter().next()) else { return };
    let name = format!("{} connections at once", show::count(count));
    let plain = (count.min(PLAIN_MAX), scripts::plain(runner));
    let (why, cause) = match by_itself(runner, &plain) {
        LeakComparison::Leaks => (EVERY_CONNECTION, Some(Cause::EveryConnection)),
        // fewer of them may leak too little to be seen
        LeakComparison::Releases if count > PLAIN_MAX => (UNCOMPARED_MANY, None),
        LeakComparison::Releases => ("resources of such connections are not released", None),
        LeakComparison::CutShort => (UNCOMPARED, None),
    };
    blame::keep(runner, case, &name, script, why, result);
    if let Some(last) = result.exchanges.last_mut() {
        last.judgement.cause = cause;
    }
}

/// Maximum number of plain requests of a round.
const PLAIN_MAX: u64 = 200;

/// Reason of a leak that needs no unusual request.
const EVERY_CONNECTION: &str = "resources of a connection are not released, regardless of what it sends: a plain request suffices";

/// Reason of a leak if there was no time for plain requests.
const UNCOMPARED: &str = "resources of connections are not released; plain requests, which may leak \
    too, were not compared: the time of the case was over";

/// Reason of a leak of more connections than plain requests were sent.
const UNCOMPARED_MANY: &str = "resources of such connections are not released; fewer plain requests \
    were compared, which may leak too little to be seen";

fn leaked(held: &Held, levels: &[u64]) -> String {
    let texts: Vec<String> = levels.iter().map(|level| held.what.format_amount(*level)).collect();
    let (before, rest) = texts.split_first().expect("it was sampled before the case");
    let shown = match rest {
        [first @ .., last] if first.len() > SHOWN_MAX => {
            format!("{}, ..., {last}", first[..SHOWN_MAX].join(", "))
        }
        all => all.join(", "),
    };
    format!(
        "{} of the server: {before} before the case, {shown} after it and after each of {} more \
        such rounds: resources of a round are not released",
        held.what.text(),
        rest.len() - 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_leak_of_the_same_resource_blames_every_connection() {
        let leak = |what| vec![Leak { what, text: String::new() }];
        let leaking = [HeldResource::Descriptors];
        for (leaks, expected) in [
            (Some(leak(HeldResource::Descriptors)), LeakComparison::Leaks),
            (Some(leak(HeldResource::Memory)), LeakComparison::Releases),
            (Some(Vec::new()), LeakComparison::Releases),
            // the server's processes were not visible
            (None, LeakComparison::CutShort),
        ] {
            assert_eq!(compare(leaks.as_deref(), &leaking), expected, "{leaks:?}");
        }
    }

    #[test]
    fn continued_growth_is_a_leak_and_leveling_out_is_not() {
        let [descriptors, memory] = HELD;
        let mib = |levels: [u64; 4]| levels.map(|level| level << 20);
        for (levels, leaks) in [
            ([10, 40, 70, 100], true),
            // a fifth of a large value is above the minimum
            ([1_000, 1_080, 1_140, 1_190], false),
            // filled once
            ([10, 100, 100, 100], false),
            // levels out
            ([10, 60, 80, 85], false),
            // too little to judge
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
        // a Java heap levels out late
        let heap = [92, 128, 173, 233, 259, 262].map(|level| level << 20);
        assert!(memory.leaks(&heap[..4]) && memory.leaks(&heap[..5]) && !memory.leaks(&heap));
        assert!(!memory.leaks(&[1, 2]));
    }
}
