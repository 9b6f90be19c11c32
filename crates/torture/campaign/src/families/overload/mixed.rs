//! requests an expensive page far beyond its capacity, and a cheap page at an easy rate.

use super::climb;
use super::course::{self, LoadPlan};
use super::load::{Flow, Route};
use super::steps::LoadStep;
use super::{GRAVE, found, load_effect, settle, unreached};
use crate::knee::Knee;
use crate::{PLAIN_DEADLINE, Runner};
use torture::case::{Case, OverloadMixed};
use torture::judge;
use torture::judge::{Plain, PressureOutcome};
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Rates of the expensive page and of the cheap one, in multiples of their knees.
const FACTOR: f64 = 2.0;
const EASY: f64 = 0.3;
/// Maximum share of connections for the expensive page. The cheap page always finds a connection,
/// so any waiting is due to the server.
const SHARE: f64 = 0.75;
/// Maximum time of the expensive page, as a multiple of its time alone.
const PATIENCE: u64 = 10;
/// Duration of requests for the cheap page only, before the other starts.
const ALONE: Nanos = Nanos::from_secs(3);
/// Starved: less than this share of cheap requests is served in time. Denied: less than the second
/// share.
const SERVED: f64 = 0.95;
const SERVED_LITTLE: f64 = 0.5;

pub(in crate::families) fn run(
    runner: &mut Runner<'_>,
    case: &Case,
    with: &OverloadMixed,
    result: &mut CaseResult,
) {
    let Some(path) = runner.settings.expensive.clone() else { return };
    let Some(knee) = found(runner, case, with.search(), result) else { return };
    let costly = match expensive_page(runner, &path) {
        Ok(route) => route,
        Err(why) => {
            result.outcome = PressureOutcome::Inconclusive.into();
            result.notes.push(why);
            return;
        }
    };
    let own = climb::find(runner, case, with.search(), costly.clone());
    result.measures.push(measure_knee(&own, &path));
    if unreached(&own, result) {
        return;
    }
    let (rate, easy) = (own.times(FACTOR), knee.sustainable_rate(EASY));
    let end = ALONE + with.hold;
    let flows = vec![Flow::new(0, Nanos::ZERO, end, easy), Flow::new(1, ALONE, with.hold, rate)];
    let routes = vec![course::probed_route(runner), costly];
    let played = course::play(runner, case, with.waiting, LoadPlan::new(routes, flows, end));
    let alone = LoadStep::new(played.load.calls(), 0, Nanos::ZERO, ALONE);
    let mixed = LoadStep::new(played.load.calls(), 0, ALONE, end);
    let dear = LoadStep::new(played.load.calls(), 1, ALONE, end);
    let (health, verdict) = load_effect(runner, &played, ALONE);
    result.health = Some(health);
    let served = mixed.share(mixed.right);
    result.measures.push(Measure::exact(
        "p99 of the cheap page meanwhile",
        mixed.p99.as_secs_f64(),
        Unit::Spent,
        format!(
            "{} alone; {} of {} served in time, with {} for {path}",
            show::duration(alone.p99),
            show::share(served),
            show::rate(mixed.offered()),
            show::rate(dear.offered()),
        ),
    ));
    let word = match served {
        SERVED.. => PressureOutcome::Held,
        SERVED_LITTLE.. => PressureOutcome::Degraded,
        _ => PressureOutcome::Denied,
    };
    if word != PressureOutcome::Held {
        result.notes.push(format!(
            "the cheap page starves: {} of its requests were served in time while {path} was \
            requested {} per second",
            show::share(served),
            show::rate(dear.offered()).trim_end_matches("/s"),
        ));
    }
    settle(&played, &mixed, verdict, &GRAVE, word, result);
}

fn measure_knee(knee: &Knee, path: &str) -> Measure {
    let [measure, _] = knee.measures();
    Measure { what: format!("knee of {path}"), ..measure }
}

/// Returns the expensive page with its usual response.
fn expensive_page(runner: &mut Runner<'_>, path: &str) -> Result<Route, String> {
    let (host, ours) = (&runner.target.values.host, &runner.target.fields);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{ours}\r\n").into_bytes();
    let mut plain: Option<Plain> = None;
    let mut slowest = Nanos::ZERO;
    for _ in 0..2 {
        let talk = runner.ask(&request);
        let whole = talk.replies.responses.first().filter(|response| response.complete);
        let Some(response) = whole.filter(|response| (200..400).contains(&response.status)) else {
            return Err(format!("{path} got unexpected responses: {}", judge::seen(&talk)));
        };
        slowest = slowest.max(talk.over);
        // a changing page: only its status is compared
        let same = plain.as_ref().is_none_or(|before| before.digest == Some(response.digest));
        plain = Some(Plain {
            status: response.status,
            body_len: response.body_len,
            digest: same.then_some(response.digest),
            outside: None,
        });
    }
    let plain = plain.ok_or_else(|| format!("{path} was not requested"))?;
    let deadline = runner.prober.deadline().max(slowest * PATIENCE).min(PLAIN_DEADLINE);
    Ok(Route { request, plain, deadline, share: SHARE })
}
