//! `loadstone ramp`: steps of load in sequence, and their combined result.

mod assemble;
mod lane;
mod pace;
mod rest;
mod watch;

use crate::exit::{Code, Failure};
use crate::run::keeping::{self, Keeper, Keeping};
use crate::run::meters::Meters;
use crate::run::output;
use crate::run::view::{self, View};
use args::{Disk, RampArgs, RampTask};
use lane::{Lane, LaneTurn};
use pace::LaneLeft;
use record::run::VerdictRecord;
use report::RunReport;
use report::ramp::{RampRecord, RampStep, RampStepRecord};
use session::{Change, Env, Fleet, Session, Watcher, Watchers};
use stats::State;
use std::cell::Cell;
use std::ops::Add;
use std::sync::Arc;
use store::{Beginning, ResultKind};

/// Reaches the targets, runs their steps in turns, reports.
pub(crate) fn ramp(args: RampArgs, fleet: Option<&Arc<dyn Fleet>>) -> Result<Code, Failure> {
    let task = prepared(args)?;
    if task.outputs.print_plan {
        return print_plans(&task);
    }
    output::check(&task.outputs)?;
    view::check(&task.outputs)?;
    fleet.map_or(Ok(()), |fleet| admit(&task, fleet))?;
    crate::sut::check(task.outputs.sut.as_ref())?;
    if !task.outputs.quiet {
        crate::print_not_imported(task.targets.iter().map(|target| &target.plan));
    }
    let keeper = Keeper::open(task.outputs.store.as_ref())?;
    let mut session = RampSession {
        env: Arc::new(Env::for_variations(task.targets.iter().map(|target| &target.plan))),
        keeping: Keeping::without_store(),
        meters: Meters::open(&task.outputs)?,
        view: None,
        version: None,
        trials: Cell::new(0),
    };
    let started_unix_s = crate::wall_clock::unix_seconds();
    let mut lanes = Vec::new();
    for (row, target) in task.targets.iter().enumerate() {
        let first = lane::plan_at_start(target);
        let Some(mut reached) = Session::reach(&first, &target.name, &session.env)? else {
            return Err(interrupted());
        };
        if !reached.is_reachable() {
            return unreached(&reached.unreached(), &task, &session, started_unix_s);
        }
        reached.watch_server(task.outputs.sut.as_ref());
        if let Some(fleet) = fleet {
            reached.move_to(fleet);
        }
        if !task.outputs.quiet {
            reached.notes().for_each(crate::print_message);
        }
        session.version.get_or_insert(reached.plan().request.version);
        lanes.push(Lane::new(row, target, reached, &task)?);
    }
    session.keeping = keep(keeper, &task, &session, started_unix_s)?;
    session.view = open_view(&task)?;
    if !task.outputs.quiet {
        lanes.iter().filter_map(Lane::longest).for_each(|text| crate::print_message(&text));
    }
    let climbed = run_lanes(&session, &mut lanes, &labels(&task));
    let torn_down = lanes.iter().map(Lane::tear_down).fold(Ok(()), Result::and);
    // the report goes to the original screen of the terminal
    session.view = None;
    session.meters.take().into_iter().for_each(Meters::close);
    let keeping = std::mem::replace(&mut session.keeping, Keeping::without_store());
    let steps = match climbed {
        Ok(steps) if !steps.is_empty() || crate::signals::received_signal() == 0 => steps,
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
    torn_down?;
    Ok(exit_code(&record))
}

/// Checks that a fleet may run every target's plan.
fn admit(task: &RampTask, fleet: &Arc<dyn Fleet>) -> Result<(), Failure> {
    let mut plans = task.targets.iter().map(|target| fleet.admit(&target.plan));
    plans.try_for_each(|admitted| admitted.map(drop)).map_err(Failure::from_run)
}

/// Prepares the task of the options, with the proxy of the environment.
fn prepared(args: RampArgs) -> Result<RampTask, Failure> {
    let mut task = args.into_task(&Disk)?;
    for target in &mut task.targets {
        crate::use_proxy(&mut target.plan, &task.outputs)?;
    }
    Ok(task)
}

/// State shared by the steps of a ramp.
struct RampSession {
    env: Arc<Env>,
    /// Store of the steps while they run.
    keeping: Keeping,
    /// Published figures during a step.
    meters: Option<Meters>,
    /// Terminal that shows each step.
    view: Option<View>,
    /// HTTP version that the first target uses.
    version: Option<plan::HttpVersion>,
    /// Steps so far.
    trials: Cell<usize>,
}

impl RampSession {
    /// Measures the next step.
    fn trial(
        &self,
        target: &Session,
        change: &Change,
        watch: &mut dyn FnMut(&engine::Setup) -> Box<dyn Watcher>,
    ) -> Result<RunReport, Failure> {
        let mut watchers = |setup: &engine::Setup| -> Box<dyn Watcher> {
            let trial = self.trials.replace(self.trials.get() + 1);
            let mut all = vec![watch(setup)];
            all.extend(self.keeping.watcher(trial));
            if let Some(meters) = &self.meters {
                let number = u32::try_from(trial + 1).unwrap_or(u32::MAX);
                all.push(Box::new(meters.watch(setup, target.name(), number)));
            }
            Box::new(Watchers(all))
        };
        target.trial(change, &mut watchers)
    }
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

/// Creates the ramp's entry in the store.
fn keep(
    keeper: Keeper,
    task: &RampTask,
    session: &RampSession,
    started_unix_s: f64,
) -> Result<Keeping, Failure> {
    let plans: Vec<&plan::Plan> = task.targets.iter().map(|target| &target.plan).collect();
    let Some(first) = task.targets.first() else { return Ok(Keeping::without_store()) };
    let beginning = Beginning {
        name: &task.outputs.name,
        plan: &first.plan,
        command_line: &keeping::command_line(&plans),
        environment: &session.env.environment,
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

/// Runs the lanes in alternating order, so that none is always first.
fn run_lanes(
    session: &RampSession,
    lanes: &mut [Lane],
    labels: &[String],
) -> Result<Vec<RampStep>, Failure> {
    let mut steps = Vec::new();
    let mut kept = 0;
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    loop {
        let mut any = false;
        for &row in &order {
            let others = (0..lanes.len()).filter(|other| *other != row);
            let others =
                others.map(|other| lanes[other].remaining()).fold(LaneLeft::default(), Add::add);
            let outcome = lanes[row].step(session, &mut steps, others)?;
            // an overload that ends the lane counts as a step
            for (index, step) in steps.iter().enumerate().skip(kept) {
                session.keeping.step(index, &RampStepRecord::new(step, index + 1, labels));
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

/// Reports that the first call got no connection: a result without steps.
fn unreached(
    run: &RunReport,
    task: &RampTask,
    session: &RampSession,
    started_unix_s: f64,
) -> Result<Code, Failure> {
    crate::print_message(&session::no_connection(run));
    let mut ramp = assemble::assemble(task, session, Vec::new(), Vec::new(), started_unix_s);
    ramp.verdict = VerdictRecord::new(&run.verdict);
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
            md: Some(&|| report::markdown_of_ramp(report)),
            html: Some(&|| report::ramp::html(report)),
            text: &|| report::ramp::text(report, style),
        },
    )
}

/// Returns the first exit code that applies, as with `run`. The server fails if it does at the
/// lowest load. An objective is missed if no tested load meets it.
fn exit_code(report: &RampRecord) -> Code {
    let interrupted = report.steps.iter().any(|step| step.run.interrupted)
        || crate::signals::received_signal() > 0;
    if report.steps.is_empty() {
        Code::NoConnection
    } else if report.fails() {
        // the ramp is not repeated because the server fails
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
