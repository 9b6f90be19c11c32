//! Two targets measured in turns, in blocks whose order is drawn.

use crate::args::{CompareSide, LiveTask};
use crate::exit::{Code, Failure};
use crate::run::keeping::{Keeper, Keeping, command_line};
use crate::run::live::Live;
use crate::run::output;
use crate::run::threads::Watcher;
use crate::run::trial::{Change, Reached, Session, Target, reach};
use engine::Setup;
use report::RunReport;
use report::compare::{Comparison, assemble};
use stats::curve::Axis;
use store::{Beginning, Kind};
use units::{Nanos, Purpose, Seed};

/// Before the first block each target is loaded for this long and not counted: caches fill, pools
/// grow, processors wake up.
const PRACTICE: Nanos = Nanos::from_secs(1);

/// The runs of both, block by block.
#[derive(Default)]
struct Blocks {
    runs: [Vec<RunReport>; 2],
    order: Vec<&'static str>,
    /// Why it ended before its last block.
    ended: Option<String>,
}

pub(super) fn compare(task: LiveTask) -> Result<Code, Failure> {
    if task.outputs.print_plan {
        return print_plans(&task);
    }
    output::check(&task.outputs)?;
    let keeper = Keeper::open(task.outputs.store.as_ref())?;
    let session = Session::new();
    let started_unix_s = crate::wall_clock::unix_seconds();
    let mut targets = Vec::new();
    for side in &task.sides {
        match reach(&side.plan, &side.name, &session.environment)? {
            Reached::Target(target) => {
                if !task.outputs.quiet {
                    target.prepared.notes.iter().for_each(|note| crate::say(note));
                }
                targets.push(*target);
            }
            Reached::Nobody(report) => {
                crate::say(&crate::run::no_connection(&report));
                let way_out = report.verdict.causes.first().map_or("", |cause| &cause.advice);
                crate::say(way_out);
                return Ok(Code::NoConnection);
            }
            Reached::Interrupted => return Err(interrupted()),
        }
    }
    let keeping = begun(keeper, &session, &task, started_unix_s)?;
    let Blocks { runs, order, ended } = in_turns(&session, &targets, &task, &keeping)?;
    if order.is_empty() {
        keeping.discard();
        return Err(match ended {
            Some(text) => Failure { code: Code::Invalid, text },
            None => interrupted(),
        });
    }
    let [before, after] = task.sides;
    let mut cautions = task.cautions;
    let died = ended.is_some();
    cautions.extend(ended);
    let report = assemble(Comparison {
        name: task.outputs.name.clone(),
        labels: [before.label, after.label],
        started_unix_s,
        runs,
        order: order.join(" "),
        bounds: task.bounds,
        cautions,
    });
    let written = super::finish(&report, &task.outputs);
    let kept = keeping.finish_compare(&report, task.outputs.quiet);
    let code = written?;
    kept?;
    Ok(if died { Code::Invalid } else { code })
}

fn begun(
    keeper: Keeper,
    session: &Session,
    task: &LiveTask,
    started_unix_s: f64,
) -> Result<Keeping, Failure> {
    let [before, after] = &task.sides;
    let beginning = Beginning {
        name: &task.outputs.name,
        plan: &before.plan,
        command_line: &command_line(&[&before.plan, &after.plan]),
        environment: &session.environment,
        started_unix_s,
        labels: &[before.label.clone(), after.label.clone()],
        axis: Axis::Rate,
    };
    keeper.begin(Kind::Compare, &beginning)
}

fn interrupted() -> Failure {
    let text = "interrupted before the first block was whole: nothing is compared".to_owned();
    Failure { code: Code::Interrupted, text }
}

fn print_plans(task: &LiveTask) -> Result<Code, Failure> {
    let plan = |side: &CompareSide| {
        let toml = plan::to_toml(&side.plan, plan::Secrets::Masked);
        format!("# {}: {} blocks of four runs\n{toml}", side.label, task.blocks)
    };
    let text: String = task.sides.iter().map(plan).collect();
    crate::print(text.as_bytes())
}

/// A block that is broken off is left out: half of one would favour a side.
fn in_turns(
    session: &Session,
    targets: &[Target],
    task: &LiveTask,
    keeping: &Keeping,
) -> Result<Blocks, Failure> {
    let mut blocks = Blocks::default();
    let seed = task.sides[0].plan.seed;
    for (side, target) in targets.iter().enumerate() {
        let span = task.sides[side].plan.stop.duration;
        let practice =
            Change { duration: span.map(|span| span.min(PRACTICE)), ..Change::default() };
        if measured(session, target, task, &practice, "practice")?.is_none() {
            return Ok(blocks);
        }
    }
    let mut draws = Seed(seed).stream(Purpose::Bootstrap, 1);
    for block in 0..task.blocks {
        let (name, order) = match draws.below(2) {
            0 => ("ABBA", [0, 1, 1, 0]),
            _ => ("BAAB", [1, 0, 0, 1]),
        };
        let mut runs: [Vec<RunReport>; 2] = [Vec::new(), Vec::new()];
        for side in order {
            // both get the same arrivals and draws, each block its own
            let nth = u64::from(block) * 2 + runs[side].len() as u64;
            let change = Change { seed: Some(seed.wrapping_add(nth)), ..Change::default() };
            let heading = format!("block {} of {} · {name}", block + 1, task.blocks);
            let Some(run) = measured(session, &targets[side], task, &change, &heading)? else {
                return Ok(blocks);
            };
            if nobody_answered(&run) {
                let calls = units::show::count(run.measurement.total.counts.due);
                blocks.ended = Some(format!(
                    "{} stopped answering in block {}: none of {calls} calls succeeded.",
                    task.sides[side].label,
                    block + 1
                ));
                return Ok(blocks);
            }
            keeping.side(side, blocks.runs[side].len() + runs[side].len(), &run);
            runs[side].push(run);
        }
        for (all, runs) in blocks.runs.iter_mut().zip(runs) {
            all.extend(runs);
        }
        blocks.order.push(name);
    }
    Ok(blocks)
}

/// `None` when a signal came before the end.
fn measured(
    session: &Session,
    target: &Target,
    task: &LiveTask,
    change: &Change,
    heading: &str,
) -> Result<Option<RunReport>, Failure> {
    if crate::signals::caught() > 0 {
        return Ok(None);
    }
    let span = change.duration.or(target.plan.stop.duration);
    let mut watcher = |setup: &Setup| -> Box<dyn Watcher> {
        let live = Live::new(task.outputs.quiet, span, setup.requests_max(), None);
        Box::new(live.headed(heading.to_owned()))
    };
    let run = session.trial(target, change, &mut watcher)?;
    let cut_off = run.measurement.interrupted || crate::signals::caught() > 0;
    Ok((!cut_off).then_some(run))
}

/// The server is gone, or refuses everything.
fn nobody_answered(run: &RunReport) -> bool {
    let counts = &run.measurement.total.counts;
    counts.due > 0 && counts.succeeded == 0
}
