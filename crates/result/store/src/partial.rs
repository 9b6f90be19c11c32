//! The known part of an unfinished result: its program was killed, or is still running.

use plan::{Load, Plan};
use record::compare::{CompareRecord, Comparison, LETTERS, OF_A_BLOCK, assemble};
use record::ramp::{RampRecord, RampReport, RampStepRecord};
use record::run::{Driver, RunRecord, RunReport, SloResult, VerdictRecord, merged};
use sample::Environment;
use stats::curve::{Axis, curve};
use stats::verdict::{Evidence, judge};
use stats::{CauseId, Measurement, Second, Snapshot, State, Verdict, samples_needed};
use units::{Nanos, show};

/// State before anything was measured.
pub(crate) struct Begun {
    /// True if the program is still running.
    pub(crate) alive: bool,
    pub(crate) name: String,
    pub(crate) plan: Plan,
    pub(crate) plan_toml: String,
    pub(crate) environment: Environment,
    pub(crate) started_unix_s: f64,
    pub(crate) labels: Vec<String>,
    /// For a comparison, the commands that started its servers.
    pub(crate) commands: Vec<Option<String>>,
    pub(crate) axis: Axis,
}

impl Begun {
    fn why(&self, after: &str) -> String {
        match self.alive {
            true => format!("still running {after}: the figures so far"),
            false => format!("its program was killed {after}: the figures until then"),
        }
    }
}

/// A measurement in progress.
pub(crate) struct LiveTrial {
    /// Number of the repeat of a run.
    pub(crate) position: usize,
    /// Everything that was counted up to its last stored second.
    pub(crate) total: Snapshot,
    pub(crate) seconds: Vec<Second>,
}

/// Returns the record of an unfinished run from its stored seconds; repeats are combined.
pub(crate) fn run(mut begun: Begun, mut live: Vec<LiveTrial>) -> RunRecord {
    live.sort_by_key(|step| step.position);
    let plan = &begun.plan;
    let mut all: Vec<Measurement> = live.into_iter().map(|step| measurement(plan, step)).collect();
    let measurement = match all.len() {
        0 | 1 => all.pop().unwrap_or_default(),
        _ => merged(&all),
    };
    let measurement = Measurement { interrupted: true, ..measurement };
    let count = measurement.total.response().count();
    begun.plan.measure.quantiles.retain(|q| *q >= 1.0 || count >= samples_needed(*q));
    let verdict = verdict(&begun, &measurement);
    RunRecord::new(&RunReport {
        name: begun.name,
        plan_toml: begun.plan_toml,
        started_unix_s: begun.started_unix_s,
        environment: begun.environment,
        verdict,
        driver: Driver::default(),
        resolved: Vec::new(),
        first_call: None,
        runs: Vec::new(),
        slo: SloResult::judge(&begun.plan.measure.slo, &measurement),
        findings: Vec::new(),
        sut: None,
        path: None,
        stack: None,
        held: None,
        posts: None,
        tokens: None,
        fleet: None,
        plan: begun.plan,
        measurement,
    })
}

fn measurement(plan: &Plan, step: LiveTrial) -> Measurement {
    let LiveTrial { mut total, seconds, .. } = step;
    let measured = seconds.iter().filter(|second| !second.warm_up);
    let end_s = measured.map(|second| second.at_s + second.span_s).fold(0.0, f64::max);
    let end = Nanos::from_secs_f64(end_s);
    let window = plan.stop.duration.map_or(end, |span| span.min(end));
    // their outcome was never determined
    for counts in [&mut total.counts, &mut total.warm_up] {
        let open = counts.queued.max(0) + counts.in_flight.max(0);
        counts.abandoned += open as u64;
        (counts.queued, counts.in_flight) = (0, 0);
    }
    Measurement {
        connections_peak: seconds.iter().map(|row| row.open_connections).max().unwrap_or(0),
        intended: intended(plan, &total),
        total,
        series: seconds,
        window,
        elapsed: end + plan.stop.warm_up,
        intended_span: None,
        interrupted: true,
        ..Measurement::default()
    }
}

/// Returns the intended arrivals of the counted part: those that were due, because the count ends
/// at the last write, not at the end of the window.
fn intended(plan: &Plan, total: &Snapshot) -> Option<u64> {
    match &plan.load {
        Load::Closed { .. } => None,
        Load::Open { session: Some(_), .. } => Some(total.sessions.started),
        Load::Open { session: None, .. } => Some(total.counts.due),
    }
}

fn verdict(begun: &Begun, measurement: &Measurement) -> Verdict {
    let mut evidence = Evidence::new(measurement);
    evidence.closed_loop = begun.plan.is_closed();
    evidence.scenarios = begun.plan.scenario_names();
    evidence.ramped = begun.plan.is_ramped();
    evidence.quantiles = &begun.plan.measure.quantiles;
    let mut verdict = judge(&evidence);
    let after = format!("{} into the measured part", show::duration(measurement.window));
    for cause in verdict.causes.iter_mut().filter(|cause| cause.id == CauseId::Interrupted) {
        cause.text = begun.why(&after);
    }
    verdict
}

/// Returns the record of an unfinished ramp from the steps stored so far.
pub(crate) fn ramp(begun: Begun, steps: Vec<RampStepRecord>) -> RampRecord {
    let why = begun.why(&format!("after {} steps", steps.len()));
    let state = steps.iter().map(|step| step.run.verdict.state).max();
    let objectives = &begun.plan.measure.slo;
    let of_label = |label: &String| {
        let own = steps.iter().filter(|step| step.label == *label);
        let points: Vec<_> = own.map(|step| (step.purpose, step.point())).collect();
        curve(&points, begun.axis, objectives)
    };
    let without_steps = RampReport {
        curves: begun.labels.iter().map(of_label).collect(),
        axis: begun.axis,
        labels: begun.labels,
        ended_early: Some(why),
        findings: Vec::new(),
        steps: Vec::new(),
        name: begun.name,
        plan: begun.plan,
        plan_toml: begun.plan_toml,
        started_unix_s: begun.started_unix_s,
        environment: begun.environment,
    };
    let verdict = VerdictRecord { state: state.unwrap_or(State::Degraded), causes: Vec::new() };
    RampRecord { steps, verdict, ..RampRecord::new(&without_steps) }
}

/// Returns a comparison of the runs known so far, with complete blocks only: half a block would
/// favor one side.
pub(crate) fn compare(begun: Begun, mut runs: Vec<Vec<RunRecord>>) -> CompareRecord {
    let blocks = runs.iter().map(|side| side.len() / OF_A_BLOCK).min().unwrap_or(0);
    let count = |runs: &[Vec<RunRecord>]| runs.iter().map(Vec::len).sum::<usize>();
    let known = count(&runs);
    for side in &mut runs {
        side.truncate(blocks * OF_A_BLOCK);
    }
    let left_out = match known - count(&runs) {
        0 => String::new(),
        1 => " and a run that is left out".to_owned(),
        n => format!(" and {n} runs that are left out"),
    };
    let blocks_in_words =
        if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") };
    let why = begun.why(&format!("after {blocks_in_words}{left_out}"));
    assemble(&Comparison {
        name: begun.name,
        labels: begun.labels,
        commands: begun.commands,
        started_unix_s: begun.started_unix_s,
        order: order(&runs),
        runs,
        bounds: Vec::new(),
        cautions: Vec::new(),
        ended_early: Some(why),
        gate: None,
    })
}

/// Returns the order in which the runs of complete blocks began, as letters.
fn order(runs: &[Vec<RunRecord>]) -> String {
    let blocks = runs.iter().map(|side| side.len() / OF_A_BLOCK).min().unwrap_or(0);
    let block = |number: usize| {
        let of_block = |side: &'_ [RunRecord]| -> Vec<f64> {
            let own = side.iter().skip(number * OF_A_BLOCK).take(OF_A_BLOCK);
            own.map(|run| run.started_unix_s).collect()
        };
        let sides = LETTERS.chars().zip(runs);
        let mut letters: Vec<(f64, char)> = sides
            .flat_map(|(letter, side)| of_block(side).into_iter().map(move |at| (at, letter)))
            .collect();
        letters.sort_by(|a, b| a.0.total_cmp(&b.0));
        letters.into_iter().map(|(_, letter)| letter).collect::<String>()
    };
    (0..blocks).map(block).collect::<Vec<_>>().join(" ")
}
