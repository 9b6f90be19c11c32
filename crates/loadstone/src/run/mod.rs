//! `loadstone run`: from options to a report.

pub(crate) mod call_log;
pub(crate) mod keeping;
pub(crate) mod live;
pub(crate) mod meters;
pub(crate) mod output;
pub(crate) mod view;

use crate::exit::{Code, Failure, NotBegun};
use crate::sut;
use args::Outputs;
use args::Sink;
use call_log::LogFile;
use keeping::{Keeper, Keeping};
use live::Live;
use meters::Meters;
use plan::{HttpVersion, Plan};
use record::run::{CauseRecord, SloRecord};
use report::{RunRecord, RunReport};
use session::{Env, Fleet, Observers, RunLoad, Scripts, Session, Watcher, Watchers, no_connection};
use stats::{CauseId, State};
use std::sync::Arc;
use view::View;

/// Observers of a command's runs.
struct RunObservers {
    view: Option<View>,
    meters: Option<Meters>,
    keeping: Keeping,
    /// Name of the run.
    name: String,
}

impl RunObservers {
    /// Creates the watchers of run number `repeat`, counted from 0.
    fn watch(
        &self,
        setup: &engine::Setup,
        session: &Session,
        repeat: u32,
    ) -> Vec<Box<dyn Watcher>> {
        let mut all: Vec<Box<dyn Watcher>> = Vec::new();
        if let Some(view) = &self.view {
            all.push(Box::new(view.watch(setup, session.judge(), repeat)));
        }
        if let Some(meters) = &self.meters {
            all.push(Box::new(meters.watch(setup, &self.name, repeat + 1)));
        }
        all.extend(self.keeping.watcher(repeat as usize));
        all
    }

    /// Releases the terminal, on which the report is printed, and returns the store's part.
    fn close(self) -> Keeping {
        drop(self.view);
        if let Some(meters) = self.meters {
            meters.close();
        }
        self.keeping
    }
}

/// Runs a plan with its repeats, reports, and returns the exit code.
pub(crate) fn run(
    plan: Plan,
    outputs: &Outputs,
    fleet: Option<&Arc<dyn Fleet>>,
) -> Result<Code, Failure> {
    output::check(outputs)?;
    view::check(outputs)?;
    if let Some(fleet) = fleet {
        admit(fleet.as_ref(), &plan, outputs)?;
    }
    let meters = Meters::open(outputs)?;
    let keeper = Keeper::open(outputs.store.as_ref())?;
    let name = outputs.name.as_str();
    let env = Arc::new(Env::here());
    sut::check(outputs.sut.as_ref())?;
    let Some(mut session) = Session::reach(&plan, name, &env)? else {
        let run = Session::unopened(&plan, name, &env).interrupted();
        return deliver(&RunRecord::new(&run), outputs, keep(keeper, &plan, outputs, &env)?);
    };
    session.watch_server(outputs.sut.as_ref());
    if let Some(fleet) = fleet {
        session.move_to(fleet);
    }
    let quiet = outputs.quiet;
    let fixed = plan.request.version != HttpVersion::Auto;
    if outputs.version_open && fixed && !quiet && session.is_reachable() && fleet.is_none() {
        session.note_unused_http2();
    }
    if !quiet {
        session.notes().for_each(crate::print_message);
    }
    let plan = session.plan().clone();
    if !session.is_reachable() {
        let run = session.unreached();
        crate::print_message(&no_connection(&run));
        deliver(&RunRecord::new(&run), outputs, keep(keeper, &plan, outputs, &env)?)?;
        return Ok(Code::NoConnection);
    }
    let view = outputs.live.then(|| View::open(&plan, name, None)).transpose()?;
    let keeping = keep(keeper, &plan, outputs, &env)?;
    let onlookers = RunObservers { view, meters, keeping, name: name.to_owned() };
    measured(session, outputs, onlookers)
}

/// Measures the session's plan with its repeats, and reports.
fn measured(session: Session, outputs: &Outputs, onlookers: RunObservers) -> Result<Code, Failure> {
    let mut scripts = Scripts::default();
    let repeats = repeats(&session, outputs, &onlookers, &mut scripts);
    let keeping = onlookers.close();
    let repeats = repeats.map(|Repeats { runs, not_begun }| (session.merged(runs), not_begun));
    let torn_down = session.close();
    let (mut run, not_begun) = match repeats {
        Ok(repeats) => repeats,
        Err(failure) => {
            keeping.discard();
            return Err(failure);
        }
    };
    run.require_samples();
    let code = deliver(&RunRecord::new(&run), outputs, keeping)?;
    scripts.report()?;
    torn_down?;
    not_begun.map_or(Ok(code), Err)
}

/// Checks that a fleet can carry out the plan.
fn admit(fleet: &dyn Fleet, plan: &Plan, outputs: &Outputs) -> Result<(), Failure> {
    if outputs.log.is_some() {
        return Err(Failure::usage(
            "--log writes the calls of one machine, and a fleet's calls stay on its agents: omit \
             --log",
        ));
    }
    fleet.admit(plan).map_err(Failure::from_run)?;
    Ok(())
}

fn keep(keeper: Keeper, plan: &Plan, outputs: &Outputs, env: &Env) -> Result<Keeping, Failure> {
    keeper.run(&outputs.name, plan, &env.environment)
}

/// Writes the report to all its destinations, including the store, and returns the exit code.
/// Attempts every destination.
fn deliver(run: &RunRecord, outputs: &Outputs, keeping: Keeping) -> Result<Code, Failure> {
    let written = output::write(run, outputs);
    let kept = keeping.finish_run(run, outputs.quiet);
    written.and(kept)?;
    Ok(exit_code(run))
}

/// The runs of a plan.
struct Repeats {
    runs: Vec<RunReport>,
    /// Reason why there are fewer runs than planned: a fleet may be unable to begin the next one.
    not_begun: Option<Failure>,
}

fn repeats(
    session: &Session,
    outputs: &Outputs,
    onlookers: &RunObservers,
    scripts: &mut Scripts,
) -> Result<Repeats, Failure> {
    let plan = session.plan();
    let (mut runs, mut not_begun) = (Vec::new(), None);
    let log_file = outputs.log.as_deref().map(LogFile::create).transpose();
    let log_file = log_file.map_err(|error| Failure::not_written(&error))?;
    for repeat in 0..plan.measure.repeat.max(1) {
        if crate::signals::received_signal() > 0 {
            break;
        }
        let open = log_file.as_ref().map(LogFile::open).transpose();
        let mut log = open.map_err(|error| Failure::not_written(&error))?;
        let mut watch = |setup: &engine::Setup| -> Box<dyn Watcher> {
            let log = log.take().map(|log| log.counting_from(setup.measure_from()));
            let span = plan.stop.duration;
            let quiet = outputs.quiet || outputs.live;
            let line = Live::new(quiet, span, setup.requests_max(), log);
            let mut all: Vec<Box<dyn Watcher>> = vec![Box::new(line)];
            all.extend(onlookers.watch(setup, session, repeat));
            Box::new(Watchers(all))
        };
        let mut observers = Observers::new(&mut watch);
        observers.logging.calls = outputs.log.is_some();
        observers.aside = outputs.json == Some(Sink::Stdout);
        observers.scripts = Some(&mut *scripts);
        match session.measure(&RunLoad::Repeat(repeat), observers) {
            Ok(run) => runs.push(run),
            Err(error) => {
                not_begun = Some(failure_before_begin(error, (runs.len(), plan.measure.repeat))?);
                break;
            }
        }
    }
    log_file.map_or(Ok(()), LogFile::keep).map_err(|error| Failure::not_written(&error))?;
    Ok(Repeats { runs, not_begun })
}

/// Returns the failure of a run that did not begin after earlier runs have ended; the caller
/// reports those.
///
/// # Errors
/// Fails if no earlier run has ended, or if the run began and failed.
fn failure_before_begin(
    error: anyhow::Error,
    (ended, of): (usize, u32),
) -> Result<Failure, Failure> {
    let not_begun = error.downcast_ref::<NotBegun>().is_some();
    let failure = Failure::from_run(error);
    if !not_begun || ended == 0 {
        return Err(failure);
    }
    let text = format!("only {ended} of {of} runs were made: {}", failure.text);
    Ok(Failure { text, ..failure })
}

/// Returns the first exit code that applies; usage, output and connection failures are reported
/// before.
fn exit_code(run: &RunRecord) -> Code {
    let nobody = run.connections.attempted > 0 && run.connections.established == 0;
    let posts = run.bodies.specweb99.as_ref().and_then(|found| found.posts.as_ref());
    let failing = server_failed_all(run)
        || run.missed_expectations() > 0
        || run.server.state.has_stopped_serving()
        || posts.is_some_and(|posts| !posts.agree());
    if nobody && run.outcomes.succeeded == 0 {
        Code::NoConnection
    } else if failing {
        // however late this client was: a broken deployment must not be reported as "repeat it"
        if run.interrupted { Code::Interrupted } else { Code::Missed }
    } else if run.verdict.state == State::Invalid && !missed_for_sure(run) {
        Code::Invalid
    } else if run.interrupted {
        Code::Interrupted
    } else if run.aborted.is_some() || run.slo.iter().any(|slo| !slo.met && !slo.undecided) {
        Code::Missed
    } else {
        Code::Done
    }
}

/// Returns whether an objective is certainly missed although the run is INVALID: the only causes
/// are lateness, or missing samples of other objectives.
fn missed_for_sure(run: &RunRecord) -> bool {
    let late = |cause: &CauseRecord| cause.id == CauseId::Slip;
    let other = |cause: &CauseRecord| !late(cause) && stats::verdict::INVALID.contains(&cause.id);
    let is_late = run.verdict.causes.iter().any(late);
    let sure = |slo: &SloRecord| {
        !slo.met && !slo.undecided && (slo.figure_without_lag.is_some() || !is_late)
    };
    run.slo.iter().any(sure) && !run.verdict.causes.iter().any(other)
}

/// Returns whether the server failed every due call. For calls that the client dropped or failed,
/// the server's result is unknown.
fn server_failed_all(run: &RunRecord) -> bool {
    run.outcomes.succeeded + run.outcomes.dropped == 0
        && !run.failures.is_empty()
        && run.failures.iter().all(|failure| failure.blame == sample::Blame::Server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_runs_are_kept_if_a_later_one_did_not_begin() {
        let lost = || anyhow::Error::from(NotBegun("agent 2 is lost".into()));
        let failure = failure_before_begin(lost(), (2, 3)).unwrap();
        assert_eq!(failure.text, "only 2 of 3 runs were made: agent 2 is lost");
        assert_eq!(failure.code, Code::Usage);
        assert_eq!(failure_before_begin(lost(), (0, 3)).unwrap_err().text, "agent 2 is lost");
        assert!(failure_before_begin(anyhow::anyhow!("the log is full"), (2, 3)).is_err());
    }
}
