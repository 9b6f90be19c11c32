//! odd requests repeated for the requested time, with background load, to detect any drift.

mod drift;

use super::course::{self, LoadPlan};
use super::found;
use super::load::Flow;
use super::steps::LoadStep;
use super::{is_ours, load_effect};
use crate::scripts::LINGER;
use crate::{GRACE, PLAIN_DEADLINE, Runner, families, gate, memory, scripts};
use dialogue::talk::TalkScript;
use drift::{Drift, ROWS_MAX, ROWS_MIN, ROWS_WANTED, Row};
use torture::case::{Case, Exchange, Fuzz, OverloadSoak};
use torture::judge::PressureOutcome;
use torture::result::CaseResult;
use torture::{catalogue, fuzz};
use units::{Nanos, show};

/// Background load, as a share of the knee.
const EASY: f64 = 0.3;
/// Minimum length of a window.
const WINDOW_MIN: Nanos = Nanos::from_secs(2);
/// Extra time for the search for the knee and the end of a window.
const MARGIN: Nanos = Nanos::from_secs(300);
/// Samples of the memory without requests, if it drifts, and the interval between them.
const REST_SAMPLES: usize = 20;
const REST_EVERY: Nanos = Nanos::from_secs(3);
/// Latest start of odd requests, as a share of a window.
const LAST: f64 = 0.8;

/// Odd request that is repeated.
enum Odd {
    Exchange(Exchange),
    Random(Case, Fuzz),
}

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &OverloadSoak,
    result: &mut CaseResult,
) {
    let Some(span) = runner.settings.soak else { return };
    runner.world.governor().lengthen_case(span + MARGIN);
    let Some(knee) = found(runner, case, with.search(), result) else { return };
    let easy = knee.sustainable_rate(EASY);
    let cases = cases(runner);
    let (odd, between) = (odd_requests(&cases), between(&cases));
    let (began, mut turn, mut rows) = (runner.now(), 0, Vec::new());
    while runner.now() - began < span && rows.len() < ROWS_MAX {
        let window = window(with, span);
        let flow = Flow::new(0, Nanos::ZERO, window, easy);
        let scripts = odd_scripts(runner, with, &odd, window, &mut turn);
        let course = LoadPlan {
            odd: scripts,
            ..LoadPlan::new(vec![course::probed_route(runner)], vec![flow], window)
        };
        let at = runner.now() - began;
        let played = course::play(runner, case, with.waiting, course);
        let step = LoadStep::new(played.load.calls(), 0, Nanos::ZERO, window);
        let (health, verdict) = load_effect(runner, &played, Nanos::ZERO);
        if runner.must_end_run() {
            break;
        }
        if verdict.outcome == PressureOutcome::Crashed || health.recovery.is_none() {
            let after = show::duration(at);
            result.outcome = verdict.outcome.max(PressureOutcome::Leak).into();
            result.notes.push(format!("after {after} of it:"));
            result.notes.extend(verdict.notes);
            break;
        }
        // problems of ours yield no row
        if is_ours(&played, &step).is_none() {
            let server = runner.world.server().filter(|state| state.machine.is_empty());
            rows.push(Row::new(at, &step, server.as_ref()));
        }
        if let Some(one) = between.get(rows.len() % between.len().max(1)) {
            let mut scratch = CaseResult::new(one);
            if let Some(family) = &one.family {
                families::run(runner, one, family, &mut scratch);
            }
            gate::pass(runner);
        }
    }
    judge(runner, &rows, span, result);
}

fn judge(runner: &mut Runner<'_>, rows: &[Row], span: Nanos, result: &mut CaseResult) {
    let cut = runner.must_end_run();
    let drifts = drift::drifts(rows);
    result.measures.extend(drifts.iter().map(|one| one.measure(rows.len())));
    let mut found: Vec<&Drift> = drifts.iter().filter(|one| one.is_found()).collect();
    // memory that grows without requests does not grow because of the soak
    if found.iter().any(|one| one.is_memory()) && memory::note_idle_growth(runner, result) {
        found.retain(|one| !one.is_memory());
    }
    if let Some(drift) = found.iter().copied().find(|one| one.is_memory())
        && let Some(rest) = growth_at_rest(runner).filter(|rest| drift.is_explained_by(*rest))
    {
        found.retain(|one| !one.is_memory());
        result.notes.push(drift.note_at_rest(rest));
    }
    result.notes.extend(found.iter().map(|one| one.words()));
    let word = match found.is_empty() {
        false => PressureOutcome::Degraded,
        true if rows.len() < ROWS_MIN || cut => {
            let (rows, span) = (show::count(rows.len() as u64), show::duration(span));
            result.notes.push(format!(
                "too short to detect a drift: {rows} windows of {span}, {ROWS_MIN} are needed"
            ));
            PressureOutcome::Inconclusive
        }
        true => PressureOutcome::Held,
    };
    result.show(word);
}

/// Returns the growth of memory per hour while no request is sent; `None` if the run ends, or the
/// server's processes are not visible.
fn growth_at_rest(runner: &mut Runner<'_>) -> Option<f64> {
    let start = runner.now();
    let mut levels = Vec::new();
    for _ in 0..REST_SAMPLES {
        runner.world.pause(REST_EVERY);
        if runner.must_end_run() {
            return None;
        }
        levels.push((runner.now() - start, runner.world.server()?.memory_bytes));
    }
    drift::per_hour(&levels)
}

/// Returns the window length: enough windows, but not too many.
fn window(with: &OverloadSoak, span: Nanos) -> Nanos {
    let most = with.window.max(Nanos(span.0 / ROWS_MAX as u64));
    Nanos(span.0 / ROWS_WANTED).clamp(WINDOW_MIN, most.max(WINDOW_MIN))
}

/// Returns the selected cases of syntax, random data and connections; without a selection, those of
/// the catalog.
fn cases(runner: &Runner<'_>) -> Vec<Case> {
    let own =
        |case: &&Case| matches!(case.group(), 'F' | 'S' | 'C') && families::is_given(runner, case);
    let asked: Vec<Case> = runner.cases.iter().filter(own).cloned().collect();
    if !asked.is_empty() {
        return asked;
    }
    // the tests parse the catalog
    let known = catalogue::cases().unwrap_or_default();
    known.iter().filter(|case| !case.press).filter(own).cloned().collect()
}

/// Returns the odd requests that are single conversations.
fn odd_requests(cases: &[Case]) -> Vec<Odd> {
    let of = |case: &Case| {
        let exchanges = case.exchanges.iter().cloned().map(Odd::Exchange);
        let random = case.fuzz.clone().map(|fuzz| Odd::Random(case.clone(), fuzz));
        exchanges.chain(random).collect::<Vec<Odd>>()
    };
    cases.iter().flat_map(of).collect()
}

/// Returns the connection cases in code that need no load: one runs after each window.
fn between(cases: &[Case]) -> Vec<Case> {
    let own = |case: &&Case| {
        case.group() == 'C' && case.family.is_some() && !families::holds_connections(case)
    };
    cases.iter().filter(own).cloned().collect()
}

fn odd_scripts(
    runner: &mut Runner<'_>,
    with: &OverloadSoak,
    odd: &[Odd],
    window: Nanos,
    turn: &mut u64,
) -> Vec<(Nanos, TalkScript)> {
    let rate = with.odd.max(f64::MIN_POSITIVE);
    let count = if odd.is_empty() { 0 } else { (window.as_secs_f64() * LAST * rate) as u64 };
    let mut all = Vec::new();
    for n in 0..count {
        let script = match &odd[(*turn % odd.len() as u64) as usize] {
            Odd::Exchange(exchange) => scripts::of_exchange(runner, exchange),
            Odd::Random(case, random) => shot(runner, case, random, *turn),
        };
        *turn += 1;
        all.push((Nanos::from_secs_f64(n as f64 / rate), script));
    }
    all
}

fn shot(runner: &mut Runner<'_>, case: &Case, random: &Fuzz, index: u64) -> TalkScript {
    let (target, seed) = (runner.target, runner.settings.seed);
    let index = index % random.count.max(1);
    let shot =
        fuzz::shot(seed, &case.id, case.version, random, index, &target.values, &target.fields);
    let script = runner.bare(shot.moves, PLAIN_DEADLINE);
    TalkScript { methods: shot.methods, grace: GRACE, linger: LINGER, ..script }
}
