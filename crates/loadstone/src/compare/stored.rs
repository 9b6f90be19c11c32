//! Two sets of separately recorded runs.

use crate::exit::{Code, Failure};
use crate::run::keeping::{noted, requested_store};
use crate::run::output;
use args::{StoredTask, UsageError, differing_plans};
use record::compare::{Comparison, Scope, assemble, plan_differences};
use record::run::RunRecord;
use stats::compare::RUNS_MIN;
use store::{Store, Stored};

pub(super) fn compare(task: StoredTask) -> Result<Code, Failure> {
    output::check(&task.outputs)?;
    let place = requested_store(task.outputs.store.as_ref()).unwrap_or_default();
    let store = Store::open_to_read(&place).map_err(|error| Failure::usage(error.to_string()))?;
    let store = noted(store);
    let [before, after] = &task.sets;
    let runs = vec![load(&store, before)?, load(&store, after)?];
    let differ = differences(&runs);
    let mut cautions = differing_plans(&differ, task.force)?;
    refuse_too_few(&runs, !task.bounds.is_empty())?;
    cautions.extend(machine_caution(&runs));
    let started_unix_s =
        runs.iter().flatten().map(|run| run.started_unix_s).fold(f64::MAX, f64::min);
    let report = assemble(&Comparison {
        name: task.outputs.name.clone(),
        labels: task.labels.to_vec(),
        commands: vec![None, None],
        started_unix_s,
        runs,
        order: String::new(),
        bounds: task.bounds,
        cautions,
        ended_early: None,
        gate: None,
    });
    super::finish(&report, &task.outputs)
}

fn load(store: &Store, names: &[String]) -> Result<Vec<RunRecord>, Failure> {
    let one = |name: &String| match store.load(name) {
        Ok(Stored::Run(run)) => Ok(*run),
        Ok(other) => {
            Err(Failure::usage(format!("{name} is a {}; compare takes runs", other.kind().id())))
        }
        Err(error) => Err(Failure::usage(error.to_string())),
    };
    names.iter().map(one).collect()
}

/// Compares every run with the first; returns cautions.
fn differences(runs: &[Vec<RunRecord>]) -> Vec<String> {
    let mut all = runs.iter().flatten();
    let Some(first) = all.next() else { return Vec::new() };
    let mut differ: Vec<String> = all
        .flat_map(|run| plan_differences(first.plan.toml(), run.plan.toml(), Scope::SameCalls))
        .collect();
    differ.dedup();
    differ
}

/// Refuses sets that are too small for a gate, whose result would mislead.
fn refuse_too_few(runs: &[Vec<RunRecord>], gated: bool) -> Result<(), UsageError> {
    let count =
        |runs: &Vec<RunRecord>| -> usize { runs.iter().map(|run| run.runs.len().max(1)).sum() };
    let fewest = runs.iter().map(count).min().unwrap_or(0);
    if gated && fewest < RUNS_MIN {
        return Err(UsageError::new(format!(
            "--fail-if needs {RUNS_MIN} runs a side and there are {fewest}: record them with run \
             --repeat {RUNS_MIN}, or let compare measure two URLs in turns"
        )));
    }
    Ok(())
}

/// Runs of two client machines differ by the machines too.
fn machine_caution(runs: &[Vec<RunRecord>]) -> Option<String> {
    let mut all = runs.iter().flatten();
    let machine =
        |run: &RunRecord| (run.environment.host.clone(), run.environment.cpu_model.clone());
    let first = all.next().map(machine)?;
    all.any(|run| machine(run) != first)
        .then(|| "The runs were made on different client machines.".to_owned())
}
