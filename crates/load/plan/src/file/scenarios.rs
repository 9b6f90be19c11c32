//! `[[scenario]]`: several loads at once, to a plan and back.

use super::keys::Keys;
use super::read::Table;
use super::shape::ScenarioTable;
use super::write::span;
use crate::options::Inputs;
use crate::options::Scalar;
use crate::scenario::{SCENARIOS_MAX, ScenarioPlan};
use crate::{Plan, Secrets};
use units::{Nanos, ParseError, parse_duration, quoted};

/// Reads the scenarios of a plan whose targets and journeys are known. The load of the first
/// becomes the plan's. Unless the plan limits the run, it lasts until the last scenario ends.
pub(super) fn read_scenarios(
    tables: Vec<ScenarioTable>,
    plan: &mut Plan,
    timed: bool,
    inputs: Inputs<'_>,
) -> Result<(), ParseError> {
    if tables.len() > SCENARIOS_MAX {
        let why = format!("there are {}, and {SCENARIOS_MAX} at most", tables.len());
        return Err(Table("").fault("scenario", why));
    }
    for (row, table) in tables.into_iter().enumerate() {
        let at = |error: ParseError| ParseError(format!("scenario {}: {}", row + 1, error.0));
        let scenario = read_scenario(table, plan, inputs).map_err(at)?;
        if plan.scenarios.iter().any(|known| known.name == scenario.name) {
            let why = format!("two scenarios have the name {}; rename one", quoted(&scenario.name));
            return Err(Table("").fault("scenario", why));
        }
        plan.scenarios.push(scenario);
    }
    if let Some(first) = plan.scenarios.first() {
        plan.load = first.load.clone();
        let last = plan.scenarios.iter().filter_map(ScenarioPlan::ends_at).max();
        plan.stop.duration = last.filter(|_| !timed).or(plan.stop.duration);
    }
    Ok(())
}

fn read_scenario(
    table: ScenarioTable,
    plan: &Plan,
    inputs: Inputs<'_>,
) -> Result<ScenarioPlan, ParseError> {
    let place = Table("scenario");
    let name = table.name.filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| place.fault("name", "it is missing"))?;
    let (mut start, mut duration) = (Nanos::ZERO, None);
    place.set("start", table.start, &mut start, parse_duration)?;
    place.set_or_off("duration", table.duration, &mut duration, parse_duration)?;
    let given = table.load.ok_or_else(|| {
        place.fault("load", "it is missing: load = { users = 5 }, or { rate = \"5/s\" }")
    })?;
    let mut own = Plan::for_targets(Vec::new());
    given.read(&mut own, inputs)?;
    let parts = match (&plan.journeys, table.journeys, table.targets) {
        (Some(_), _, Some(_)) => {
            return Err(place.fault(
                "targets",
                "a scenario of a plan with journeys lists journeys, not targets",
            ));
        }
        (None, Some(_), _) => {
            return Err(place.fault("journeys", "the plan has none: write targets"));
        }
        (Some(all), named, None) => {
            let known: Vec<&str> = all.journeys.iter().map(|it| it.name.as_str()).collect();
            rows(place, "journeys", named, &known)?
        }
        (None, None, named) => {
            let known: Vec<&str> =
                plan.targets.iter().map(|it| it.name.as_deref().unwrap_or("")).collect();
            rows(place, "targets", named, &known)?
        }
    };
    let Plan { load, stages, .. } = own;
    Ok(ScenarioPlan { name, load, stages, start, duration, parts })
}

/// Returns the rows of these names; all rows without a name.
fn rows(
    place: Table,
    key: &str,
    named: Option<Vec<String>>,
    known: &[&str],
) -> Result<Vec<u32>, ParseError> {
    let Some(named) = named else { return Ok((0..known.len() as u32).collect()) };
    if named.is_empty() {
        return Err(place.fault(key, "the list is empty; leave it out for all of them"));
    }
    let row = |name: &String| {
        let found = known.iter().position(|one| one == name && !name.is_empty());
        found.map(|row| row as u32).ok_or_else(|| {
            let there: Vec<&str> = known.iter().copied().filter(|one| !one.is_empty()).collect();
            let there = match there.as_slice() {
                [] => "none has a name".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            };
            place.fault(key, format!("nothing is called {}; {there}", quoted(name)))
        })
    };
    named.iter().map(row).collect()
}

/// Returns the table of a scenario as [`read_scenarios`] reads it.
pub(super) fn scenario_table(plan: &Plan, scenario: &ScenarioPlan) -> ScenarioTable {
    let all = match &plan.journeys {
        Some(journeys) => journeys.journeys.len(),
        None => plan.targets.len(),
    };
    let every: Vec<u32> = (0..all as u32).collect();
    let name = |row: &u32| match &plan.journeys {
        Some(journeys) => journeys.journeys.get(*row as usize).map(|it| it.name.clone()),
        None => plan.targets.get(*row as usize).and_then(|it| it.name.clone()),
    };
    let named = (scenario.parts != every)
        .then(|| scenario.parts.iter().filter_map(name).collect::<Vec<String>>());
    let (journeys, targets) = if plan.journeys.is_some() { (named, None) } else { (None, named) };
    let (load, stages) = (scenario.load.clone(), scenario.stages.clone());
    let own = Plan { load, stages, ..Plan::for_targets(Vec::new()) };
    ScenarioTable {
        name: Some(scenario.name.clone()),
        start: Some(span(scenario.start)),
        duration: Scalar::or_off(scenario.duration, span),
        journeys,
        targets,
        load: Some(Keys::show(&own, Secrets::Shown)),
    }
}
