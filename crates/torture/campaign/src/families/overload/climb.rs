//! Finds the knee: the rate doubles from a low start, and the last step is bisected until the
//! bracket is narrow.

use super::course::{self, LoadPlan, Played};
use super::load::{Flow, Route};
use super::load_effect;
use super::steps::LoadStep;
use crate::Runner;
use crate::knee::{Knee, Limit, RATE_LOW};
use crate::pressure::{CPU_MAX, UNHEALTHY_TRIES};
use torture::case::{Case, KneeSearch};
use torture::judge::PressureOutcome;
use units::{Nanos, show};

/// Maximum number of steps: from a tenth of a request per second to far beyond any maximum.
const STEPS_MAX: usize = 40;
/// Share of a limit that is offered: evenly due requests are not sent evenly.
const OF_BOUND: f64 = 0.95;
/// Maximum share of a case's time for the search.
const SEARCH_SHARE: f64 = 0.4;

/// Returns the knee, found once per run.
pub(super) fn knee(runner: &mut Runner<'_>, case: &Case, search: KneeSearch) -> Knee {
    if let Some(known) = runner.profile.knee() {
        return known.clone();
    }
    let route = course::probed_route(runner);
    let found = find(runner, case, search, route);
    if found.limit != Some(Limit::Time) {
        runner.profile.learn_knee(found.clone());
    }
    found
}

/// Returns the maximum rate in requests per second, and its origin.
fn rate_max(runner: &mut Runner<'_>, case: f64) -> (f64, Limit) {
    let Some(bounds) = runner.world.governor().bounds().cloned() else {
        return (case, Limit::Case);
    };
    match bounds.requests_max.map(|most| most as f64 * OF_BOUND) {
        Some(most) if most < case => (most, Limit::Bound("--requests-max")),
        _ => (case, Limit::Case),
    }
}

/// Finds the knee of a page.
pub(super) fn find(runner: &mut Runner<'_>, case: &Case, search: KneeSearch, route: Route) -> Knee {
    let (most, most_is) = rate_max(runner, search.ceiling);
    let mut knee = Knee {
        low: None,
        high: None,
        peak: 0.0,
        crashed: None,
        limit: None,
        most,
        most_is: most_is.clone(),
    };
    let mut rate = search.from.max(RATE_LOW).min(most);
    let (began, time) = (runner.now(), search_time(runner));
    let mut tries = 0;
    for _ in 0..STEPS_MAX {
        if runner.must_end_run() || runner.now() - began > time {
            knee.limit = Some(Limit::Time);
            break;
        }
        let span = search.step;
        let flow = Flow::new(0, Nanos::ZERO, span, rate);
        let course = LoadPlan::new(vec![route.clone()], vec![flow], span);
        let played = course::play(runner, case, search.waiting, course);
        let step = LoadStep::new(played.load.calls(), 0, Nanos::ZERO, span);
        if played.cut_short {
            knee.limit = Some(Limit::Time);
            break;
        }
        let (_, verdict) = load_effect(runner, &played, Nanos::ZERO);
        if verdict.outcome == PressureOutcome::Crashed {
            let why = verdict.notes.into_iter().next().unwrap_or_default();
            knee.crashed = Some(format!("at {}: {why}", show::rate(rate)));
            knee.high = Some(rate);
            break;
        }
        // rates that we could not offer show nothing about the server, but served ones do
        let ours = if step.is_followed() { None } else { is_ours(runner, &played, &step) };
        if let Some(limit) = ours {
            tries += 1;
            if tries < UNHEALTHY_TRIES && matches!(limit, Limit::Ourselves(_)) {
                continue;
            }
            knee.limit = Some(limit);
            break;
        }
        tries = 0;
        knee.peak = knee.peak.max(step.goodput());
        match step.is_followed() {
            true => knee.low = Some(rate),
            false => knee.high = Some(rate),
        }
        match knee.next(rate) {
            Some(next) => rate = next,
            None => break,
        }
    }
    if knee.high.is_none() && knee.low.is_some_and(|low| low >= most) {
        knee.limit.get_or_insert(most_is);
    }
    knee
}

fn search_time(runner: &mut Runner<'_>) -> Nanos {
    let bound = runner.world.governor().bounds().map(|bounds| bounds.case_max);
    bound.map_or(Nanos::NEVER, |span| Nanos::from_secs_f64(span.as_secs_f64() * SEARCH_SHARE))
}

/// Returns the problem on our side that prevented the rate of a step.
fn is_ours(runner: &Runner<'_>, played: &Played, step: &LoadStep) -> Option<Limit> {
    if played.load.is_short() {
        return Some(Limit::Ourselves("this machine ran out of descriptors or ports".to_owned()));
    }
    if let Some(late) = step.lateness() {
        return Some(Limit::Ourselves(late));
    }
    if let Some(share) = played.work.filter(|share| *share > CPU_MAX) {
        return Some(Limit::Ourselves(format!("it used {} of a core", show::share(share))));
    }
    let most = played.load.waiting_max();
    step.limiting_option(runner.profile.quiet().p50, most).map(Limit::Bound)
}
