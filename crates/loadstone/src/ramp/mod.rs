//! `loadstone ramp`: steps of load, one after the other, and what they say together.

mod assemble;
mod lane;
mod rest;
mod watch;

use crate::args::{Disk, RampArgs, RampTask};
use crate::exit::{Code, Failure};
use crate::run::elsewhere::Elsewhere;
use crate::run::keeping::{self, Keeper, Keeping};
use crate::run::meters::Meters;
use crate::run::output;
use crate::run::trial::{Reached, TrialSession, reach};
use crate::run::view::{self, View};
use lane::{Lane, LaneTurn};
use record::run::VerdictRecord;
use report::RunReport;
use report::ramp::{RampRecord, RampStep, RampStepRecord};
use stats::State;
use std::sync::Arc;
use store::{Beginning, ResultKind};

/// Reaches the targets, runs their steps in turns, reports.
pub(crate) fn ramp(args: RampArgs, fleet: Option<&Arc<dyn Elsewhere>>) -> Result<Code, Failure> {
    let task = args.into_task(&Disk)?;
    if task.outputs.print_plan {
        return print_plans(&task);
    }
    output::check(&task.outputs)?;
    view::check(&task.outputs)?;
    if let Some(fleet) = fleet {
        let mut plans = task.targets.iter().map(|target| fleet.admit(&target.plan));
        plans.try_for_each(|admitted| admitted.map(drop)).map_err(Failure::from_run)?;
    }
    crate::sut::check(task.outputs.sut.as_ref())?;
    let keeper = Keeper::open(task.outputs.store.as_ref())?;
    let mut session = TrialSession::of(task.targets.iter().map(|target| &target.plan));
    session.meters = Meters::open(&task.outputs)?;
    let started_unix_s = crate::wall_clock::unix_seconds();
    let mut lanes = Vec::new();
    for (row, target) in task.targets.iter().enumerate() {
        match reach(&lane::at_first(target), &target.name, &session)? {
            Reached::Target(mut reached) => {
                reached.prepared.sut.clone_from(&task.outputs.sut);
                reached.prepared.hand_to(fleet);
                if !task.outputs.quiet {
                    reached.prepared.told().for_each(crate::say);
                }
                lanes.push(Lane::new(row, target, *reached, &task)?);
            }
            Reached::Nobody(run) => return nobody(*run, &task, &session, started_unix_s),
            Reached::Interrupted => return Err(interrupted()),
        }
    }
    session.keeping = keep(keeper, &task, &session, started_unix_s)?;
    session.view = open_view(&task)?;
    if !task.outputs.quiet {
        lanes.iter().filter_map(Lane::longest).for_each(|text| crate::say(&text));
    }
    let climbed = climb(&session, &mut lanes, &labels(&task));
    // the report goes to the terminal that was there before
    session.view = None;
    session.meters.take().into_iter().for_each(Meters::close);
    let keeping = std::mem::replace(&mut session.keeping, Keeping::nowhere());
    let steps = match climbed {
        Ok(steps) if !steps.is_empty() || crate::signals::caught() == 0 => steps,
        nothing => {
            keeping.discard();
            return Err(nothing.err().unwrap_or_else(interrupted));
        }
    };
    let record = assemble::assemble(&task, &session, lanes, steps, started_unix_s);
    let written = write(&record, &task);
    if record.steps.is_empty() {
        keeping.discard();
        written?;
    } else {
        written.and(keeping.finish_ramp(&record, task.outputs.quiet))?;
    }
    Ok(exit_code(&record))
}

/// Takes the terminal for `--live`.
fn open_view(task: &RampTask) -> Result<Option<View>, Failure> {
    let first = task.targets.first().filter(|_| task.outputs.live);
    let climb = || live::terminal::Climb {
        step: "before the first step".to_owned(),
        ..live::terminal::Climb::default()
    };
    first.map(|target| View::open(&target.plan, &target.name, Some(climb()))).transpose()
}

/// Makes room for the ramp in the store.
fn keep(
    keeper: Keeper,
    task: &RampTask,
    session: &TrialSession,
    started_unix_s: f64,
) -> Result<Keeping, Failure> {
    let plans: Vec<&plan::Plan> = task.targets.iter().map(|target| &target.plan).collect();
    let Some(first) = task.targets.first() else { return Ok(Keeping::nowhere()) };
    let beginning = Beginning {
        name: &task.outputs.name,
        plan: &first.plan,
        command_line: &keeping::command_line(&plans),
        environment: &session.environment,
        started_unix_s,
        labels: &labels(task),
        commands: &[],
        axis: first.course.axis,
    };
    keeper.begin(ResultKind::Ramp, &beginning)
}

fn labels(task: &RampTask) -> Vec<String> {
    task.targets.iter().map(|target| target.label.clone()).collect()
}

/// The lanes in turns, there and back, so that none is always first.
fn climb(
    session: &TrialSession,
    lanes: &mut [Lane],
    labels: &[String],
) -> Result<Vec<RampStep>, Failure> {
    let mut steps = Vec::new();
    let mut kept = 0;
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    loop {
        let mut any = false;
        for &row in &order {
            let outcome = lanes[row].step(session, &mut steps)?;
            // an overload that ends the lane was a step as well
            for (index, step) in steps.iter().enumerate().skip(kept) {
                session.keeping.step(index, &RampStepRecord::of(step, index + 1, labels));
            }
            any |= steps.len() > kept;
            kept = steps.len();
            if outcome == LaneTurn::Interrupted {
                return Ok(steps);
            }
        }
        if !any {
            return Ok(steps);
        }
        order.reverse();
    }
}

fn interrupted() -> Failure {
    let text = "interrupted before the first step: nothing was measured".to_owned();
    Failure { code: Code::Interrupted, text }
}

/// Not even the first call got a connection: a result without steps that says so.
fn nobody(
    run: RunReport,
    task: &RampTask,
    session: &TrialSession,
    started_unix_s: f64,
) -> Result<Code, Failure> {
    crate::say(&crate::run::no_connection(&run));
    let mut ramp = assemble::assemble(task, session, Vec::new(), Vec::new(), started_unix_s);
    ramp.verdict = VerdictRecord::of(&run.verdict);
    ramp.ended_early = Some("before the first step".to_owned());
    write(&ramp, task)?;
    Ok(Code::NoConnection)
}

fn print_plans(task: &RampTask) -> Result<Code, Failure> {
    let mut text = String::new();
    for target in &task.targets {
        let toml = plan::to_toml(&target.plan, plan::Secrets::Masked);
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}{}{toml}", assemble::steps_comment(target)));
    }
    crate::print(text.as_bytes())
}

fn write(report: &RampRecord, task: &RampTask) -> Result<(), Failure> {
    let outputs = &task.outputs;
    let style = output::style(outputs.quiet, outputs.percentiles, outputs.full);
    output::write_parts(
        outputs,
        &output::Parts {
            json: &|| report::ramp::json(report),
            csv: &|| report::ramp::csv(report),
            hdr: None,
            junit: None,
            html: Some(&|| report::ramp::html(report)),
            text: &|| report::ramp::text(report, style),
        },
    )
}

/// The first that holds, as with `run`. The server fails if it does at the lowest load. An objective
/// is missed if no load that was tried keeps it.
fn exit_code(report: &RampRecord) -> Code {
    let interrupted =
        report.steps.iter().any(|step| step.run.interrupted) || crate::signals::caught() > 0;
    if report.steps.is_empty() {
        Code::NoConnection
    } else if report.fails() {
        // a server that fails is no reason to repeat the ramp
        if interrupted { Code::Interrupted } else { Code::Missed }
    } else if report.verdict.state == State::Invalid {
        Code::Invalid
    } else if interrupted {
        Code::Interrupted
    } else if report::ramp::missed(report) {
        Code::Missed
    } else {
        Code::Done
    }
}
