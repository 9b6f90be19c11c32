//! Feeders with fewer rows than users: users without a row would leave and reduce the load.

use super::Problems;
use crate::journey::FeederOrder;
use crate::{Arrivals, Load, Plan};
use units::{Nanos, quoted, show};

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    if let Some(text) = shortage(plan) {
        problems.add("used-up", text);
    }
}

/// Describes the first feeder of unique rows that has too few for the plan's users or sessions;
/// `None` if all have enough or set `used-up`.
pub fn shortage(plan: &Plan) -> Option<String> {
    plan.journeys.as_ref()?;
    let lanes = plan.lanes();
    let of_scenario = |row: usize| match plan.scenarios.get(row) {
        Some(scenario) => format!(" of scenario {}", quoted(&scenario.name)),
        None => String::new(),
    };
    lanes.iter().enumerate().find_map(|(row, lane)| shortage_of(lane, &of_scenario(row)))
}

fn shortage_of(lane: &Plan, of_scenario: &str) -> Option<String> {
    let journeys = lane.journeys.as_ref()?;
    let (needed, what) = needed(lane)?;
    let made = journeys.journeys.iter().filter(|journey| journey.weight > 0.0);
    let mut taken: Vec<usize> = made.flat_map(|journey| journeys.feeders_of(journey)).collect();
    taken.sort_unstable();
    let feeders = taken.into_iter().filter_map(|at| journeys.feeders.get(at));
    let mut unique = feeders.filter(|it| it.order == FeederOrder::Unique && it.used_up.is_none());
    unique.find_map(|feeder| {
        let rows = feeder.count().filter(|rows| *rows < needed)?;
        let name = quoted(&feeder.name);
        Some(format!(
            "feeder {name} has {} for {} {what}{of_scenario}, and each takes a row that no other \
             has: add rows, or set used-up = \"wrap\" (rows are used again) or \"stop\" (users \
             without a row leave)",
            match rows {
                1 => "1 row".to_owned(),
                rows => format!("{} rows", show::count(rows)),
            },
            show::count(needed),
        ))
    })
}

/// Returns the number of users or sessions that will need a row, with the noun for them, as far as
/// the plan determines it.
fn needed(lane: &Plan) -> Option<(u64, &'static str)> {
    match &lane.load {
        Load::Closed { users, .. } => {
            let staged = lane.stages.as_ref().map_or(0, |it| it.levels.highest().ceil() as u64);
            Some((u64::from(*users).max(staged), "users"))
        }
        Load::Open { arrivals, .. } => {
            let timed = lane.stop.duration.map(|span| expected(lane, arrivals, span));
            let counted = lane.stop.requests;
            let all = timed.into_iter().chain(counted).min()?;
            Some((all, "sessions"))
        }
    }
}

/// Returns the number of arrivals of the whole run; the expected number if they are random.
fn expected(lane: &Plan, arrivals: &Arrivals, span: Nanos) -> u64 {
    if let Some(at) = &arrivals.at {
        return at.iter().filter(|at| **at <= span).count() as u64;
    }
    let warm_up = lane.stop.warm_up.as_secs_f64();
    let span = span.as_secs_f64();
    let Some(stages) = &lane.stages else {
        let mean = (arrivals.from.0 + arrivals.to.0) / 2.0;
        return (arrivals.from.0 * warm_up + mean * span).floor() as u64;
    };
    let (mut left, mut all) = (span, stages.levels.first() * warm_up);
    for stage in stages.levels.stages() {
        let over = stage.over.as_secs_f64();
        let part = left.min(over);
        if over > 0.0 {
            let reached = stage.from + (stage.to - stage.from) * part / over;
            all += (stage.from + reached) / 2.0 * part;
        }
        left -= part;
    }
    (all + stages.levels.last() * left).floor() as u64
}
