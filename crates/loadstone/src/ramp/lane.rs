//! The steps of one target.

use super::RampSession;
use super::pace::{LaneLeft, StepPace};
use super::rest::{Rest, TargetRest};
use super::watch::RecoveryStop;
use crate::exit::Failure;
use crate::run::live::Live;
use args::{RampTarget, RampTask, Vary};
use engine::Setup;
use engine::ramp::{Agenda, PlannedStep, StepsLeft};
use live::terminal::{Climb, TimeLeft};
use net::reactor::monotonic;
use plan::{Load, Plan};
use record::server::{Conduct, Server};
use report::RunReport;
use report::ramp::{Purpose, RampStep};
use sample::FailureClass;
use session::{Change, Session, Watcher};
use stats::Objective;
use stats::curve::{Axis, Curve, Point, as_before, fails_alike};
use std::sync::Arc;
use units::{Nanos, Rate, show};

/// Approximate number of calls per row of a recovery, within bounds.
const CALLS_A_ROW: f64 = 5.0;
const ROW_MIN: Nanos = Nanos::from_millis(100);
const ROW_MAX: Nanos = Nanos::from_secs(5);

/// One target and its progress.
pub(super) struct Lane {
    row: usize,
    label: String,
    axis: Axis,
    /// The paths of the levels, if the axis is a property of the path.
    vary: Option<Vary>,
    objectives: Vec<Objective>,
    target: Arc<Session>,
    rest: Rest,
    settle: Nanos,
    quiet: bool,
    many: bool,
    agenda: Agenda,
    /// Step requested before its turn: the step after an overload follows at once.
    next: Option<PlannedStep>,
    steps: usize,
    so_far: Vec<Point>,
    /// Median response time of the lowest step so far, with its level.
    lowest: Option<(f64, Nanos)>,
    overload_ended_unix_s: f64,
    recovery_s: f64,
    notes: Vec<String>,
    pace: StepPace,
    /// Reason why the lane ended before its last step, and whether the target caused that.
    ended: Option<(String, bool)>,
}

/// Result of a lane's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneTurn {
    /// A step was run, or no step is left.
    Done,
    Interrupted,
}

impl Lane {
    pub(super) fn new(
        row: usize,
        asked: &RampTarget,
        target: Session,
        task: &RampTask,
    ) -> Result<Lane, Failure> {
        let target = Arc::new(target);
        let Some(rest) = Rest::new(&target)? else { return Err(super::interrupted()) };
        let pace = StepPace::new(target.base().stop.warm_up);
        Ok(Lane {
            pace,
            row,
            label: asked.label.clone(),
            axis: asked.course.axis,
            vary: asked.vary.clone(),
            objectives: asked.course.objectives.clone(),
            target,
            rest,
            settle: task.settle,
            quiet: task.outputs.quiet,
            many: task.targets.len() > 1,
            agenda: Agenda::new(asked.course.clone()),
            next: None,
            steps: 0,
            so_far: Vec::new(),
            lowest: None,
            overload_ended_unix_s: f64::NAN,
            recovery_s: f64::NAN,
            notes: Vec::new(),
            ended: None,
        })
    }

    /// Returns the remaining time of its steps.
    pub(super) fn remaining(&self) -> LaneLeft {
        if self.ended.is_some() {
            return LaneLeft::default();
        }
        let next = self.next.map(|next| StepsLeft { steps: 1, held: next.hold, at_most: false });
        self.pace.remaining(self.agenda.remaining() + next.unwrap_or_default())
    }

    /// Runs the next step, if there is one. `others`: remaining steps of the other lanes.
    pub(super) fn step(
        &mut self,
        session: &RampSession,
        steps: &mut Vec<RampStep>,
        others: LaneLeft,
    ) -> Result<LaneTurn, Failure> {
        let began = monotonic();
        if crate::signals::received_signal() > 0 {
            return Ok(LaneTurn::Interrupted);
        }
        if self.ended.is_some() {
            return Ok(LaneTurn::Done);
        }
        let Some(planned) = self.next.take().or_else(|| self.agenda.next_step()) else {
            return Ok(LaneTurn::Done);
        };
        let Some(settled_s) = self.settle(&planned, steps)? else {
            let interrupted = crate::signals::received_signal() > 0;
            return Ok(if interrupted { LaneTurn::Interrupted } else { LaneTurn::Done });
        };
        let run = match self.run(session, &planned, others) {
            Ok(run) => run,
            // beyond the capacity of this machine; the lower steps were measured
            Err(failure) if self.steps > 0 => {
                let load = self.load_words(planned.level);
                self.ended = Some((format!("{load} cannot be offered: {}", failure.text), false));
                return Ok(LaneTurn::Done);
            }
            Err(failure) => return Err(failure),
        };
        let interrupted = run.measurement.interrupted;
        self.take(&planned, run, settled_s, steps);
        if planned.purpose != Purpose::Recovery {
            self.pace.step(planned.hold, monotonic() - began);
        }
        if interrupted {
            return Ok(LaneTurn::Interrupted);
        }
        let why = self.agenda.unusable().or_else(|| self.fails_by_itself(steps));
        if let Some(why) = why {
            self.ended = Some((why, false));
            return Ok(LaneTurn::Done);
        }
        if planned.purpose == Purpose::Overload {
            self.next = self.agenda.next_step();
            if self.next.is_some_and(|next| next.purpose == Purpose::Recovery) {
                return self.step(session, steps, others);
            }
        }
        Ok(LaneTurn::Done)
    }

    /// Returns why no further step is run, if the server fails for a reason other than the load:
    /// most calls of the first step fail for such a reason, or the first two steps of an automatic
    /// course fail alike. After the first step, a plain call is checked too.
    fn fails_by_itself(&self, steps: &[RampStep]) -> Option<String> {
        let own: Vec<&RampStep> = steps.iter().filter(|step| step.label == self.row).collect();
        let points: Vec<Point> = own.iter().map(|step| step.point).collect();
        let first = own.first()?;
        let wrong = own.len() == 1 && first.point.fails() && answers_wrong(&first.run);
        let alike = self.agenda.known_length().is_none() && fails_alike(&points);
        (wrong || alike).then(|| fails_at_any_load(&first.run))
    }

    /// Returns the target's first step, if it is the only one so far.
    fn only_step<'a>(&self, steps: &'a [RampStep]) -> Option<&'a RampStep> {
        let mut own = steps.iter().filter(|step| step.label == self.row);
        let first = own.next();
        first.filter(|_| own.next().is_none())
    }

    /// Returns the maximum duration of a search; `None` for other courses.
    pub(super) fn longest(lane: &Lane) -> Option<String> {
        let (steps, span) = lane.agenda.longest_search()?;
        Some(format!(
            "the search takes {steps} steps at most, {} in all; Ctrl-C ends it with the result so \
             far",
            show::duration(span)
        ))
    }

    /// Waits until the target is idle and returns the seconds; `None` if the step must not run.
    fn settle(
        &mut self,
        planned: &PlannedStep,
        steps: &[RampStep],
    ) -> Result<Option<f64>, Failure> {
        if planned.purpose == Purpose::Recovery {
            return Ok(Some(0.0));
        }
        let (stillness, took) = self.rest.wait(self.settle)?;
        let step = self.steps + 1;
        match stillness {
            TargetRest::AtRest { failing } => {
                if let Some(first) =
                    self.only_step(steps).filter(|one| failing && one.point.fails())
                {
                    self.ended = Some((fails_at_any_load(&first.run), false));
                    return Ok(None);
                }
            }
            TargetRest::Restless => self.notes.push(format!(
                "Step {step} began before the server was idle: after {} a plain call was still \
                 slower than before the first step, or connections were still open.",
                show::duration(took)
            )),
            TargetRest::Gone(why) => {
                self.ended = Some((self.death_step(&why, steps), true));
                return Ok(None);
            }
            TargetRest::Interrupted => return Ok(None),
        }
        Ok(Some(took.as_secs_f64()))
    }

    /// Returns the step in which the target died: the last one, if connections already failed in
    /// it.
    fn death_step(&self, why: &str, steps: &[RampStep]) -> String {
        let last = steps.iter().rev().find(|step| step.label == self.row);
        let refused = [FailureClass::Refused, FailureClass::Reset];
        let already = last.is_some_and(|step| {
            let failures = &step.run.measurement.total.failures;
            refused.iter().any(|class| failures.contains_key(class))
        });
        let at = if already { self.steps } else { self.steps + 1 };
        let of = match self.agenda.known_length() {
            Some(all) => format!(" of {all}"),
            None => String::new(),
        };
        let when = if already { "at" } else { "before" };
        let name = if self.many { self.label.as_str() } else { "the target" };
        let load = last.map_or_else(String::new, |step| {
            format!(", after {}", self.load_words(step.point.level))
        });
        format!("{name} died {when} step {at}{of}{load}: {why}")
    }

    fn load_words(&self, level: f64) -> String {
        match self.axis {
            Axis::Rate => show::rate(level),
            Axis::Population => format!("{} users", show::count(level as u64)),
            other => report::ramp::load(other, level),
        }
    }

    fn run(
        &self,
        session: &RampSession,
        planned: &PlannedStep,
        others: LaneLeft,
    ) -> Result<RunReport, Failure> {
        let recovery = planned.purpose == Purpose::Recovery;
        let per_row = || Nanos::from_secs_f64(CALLS_A_ROW / planned.level);
        let path = self.vary.as_ref().map(|vary| vary.at(planned.level)).transpose();
        let path = path.map_err(|error| Failure::usage(error.to_string()))?;
        let change = Change {
            load: self.axis.is_load().then(|| load_at(self.target.base(), planned.level)),
            path,
            duration: Some(planned.hold),
            // each step has its own arrivals and draws, and its seed repeats it
            seed: Some(self.target.base().seed.wrapping_add(self.steps as u64)),
            objectives: Some(self.objectives.clone()),
            interval: recovery.then(|| match self.axis {
                Axis::Rate => per_row().clamp(ROW_MIN, ROW_MAX),
                _ => ROW_MIN,
            }),
        };
        let before = self.lowest.map(|(_, median)| median);
        let heading = self.heading(planned);
        let this = StepsLeft { steps: 1, held: planned.hold, at_most: false };
        let left = TimeLeft::from(self.pace.remaining(this) + self.remaining() + others);
        let mut watcher = |setup: &Setup| -> Box<dyn Watcher> {
            let live: Box<dyn Watcher> = match &session.view {
                Some(view) => {
                    let climb = Climb { left: Some(left), ..self.climb(planned) };
                    Box::new(view.watch_step(setup, &self.target, &self.objectives, climb))
                }
                None => {
                    let calls = setup.requests_max();
                    let live = Live::new(self.quiet, Some(planned.hold), calls, None);
                    Box::new(live.with_heading(heading.clone()).of_all(left))
                }
            };
            match before.filter(|_| recovery) {
                Some(before) => Box::new(RecoveryStop { live, before, series: Vec::new() }),
                None => live,
            }
        };
        session.trial(&self.target, &change, &mut watcher)
    }

    /// Returns the progress of the ramp, for the view of the next step.
    fn climb(&self, planned: &PlannedStep) -> Climb {
        let row = |point: &Point| {
            let p99 = match point.p99_s.is_finite() {
                true => show::duration(Nanos::from_secs_f64(point.p99_s)),
                false => "-".to_owned(),
            };
            let load = match self.axis {
                Axis::Rate => show::rate(point.level),
                Axis::Population => show::count(point.level as u64),
                other => report::ramp::load(other, point.level),
            };
            [load, show::rate(point.goodput_per_s.round()), p99]
        };
        let curve = self.agenda.curve();
        let load = |at: f64| report::ramp::load(self.axis, at);
        let mut known = vec![match &curve.knee {
            Some(knee) => format!("knee {}", load(knee.at.at)),
            None => "no knee yet".to_owned(),
        }];
        known.extend(curve.peak.map(|peak| format!("peak {}", show::rate(peak.at.round()))));
        let found = curve.capacity.filter(|found| !found.objectives.is_empty());
        known.extend(found.map(|found| format!("capacity {}", load(found.at.at))));
        let purpose = match planned.purpose {
            Purpose::Up => String::new(),
            other => format!(", {}", other.id()),
        };
        let name = if self.many { format!("{}: ", self.label) } else { String::new() };
        let step = format!("{name}step {}{}{purpose}", self.steps + 1, self.of_all());
        Climb { step, steps: self.so_far.iter().map(row).collect(), known, left: None }
    }

    /// Formats ` of 20`; empty if the total is unknown.
    fn of_all(&self) -> String {
        self.agenda.known_length().map_or_else(String::new, |all| format!(" of {all}"))
    }

    /// Formats `step 7 of 20  190/s  `.
    fn heading(&self, planned: &PlannedStep) -> String {
        let of = self.of_all();
        let name = if self.many { format!("{}  ", self.label) } else { String::new() };
        let purpose = match planned.purpose {
            Purpose::Up => "",
            other => other.id(),
        };
        let load = self.load_words(planned.level);
        let gap = if purpose.is_empty() { "" } else { " " };
        format!("{name}step {}{of}  {purpose}{gap}{load}  ", self.steps + 1)
    }

    fn take(
        &mut self,
        planned: &PlannedStep,
        run: RunReport,
        settled_s: f64,
        steps: &mut Vec<RampStep>,
    ) {
        let sessions = self.target.base().load.session().is_some();
        let (measurement, verdict) = (&run.measurement, &run.verdict);
        let point = Point::new(planned.level, measurement, verdict, sessions, &self.objectives);
        self.steps += 1;
        // an interrupted step does not describe its load
        if !measurement.interrupted {
            self.agenda.record(planned, point);
            self.so_far.push(point);
            self.remember(planned, &run, &point);
        }
        let (label, purpose, repeat) = (self.row, planned.purpose, planned.repeat);
        steps.push(RampStep { label, purpose, repeat, point, settled_s, run });
    }

    fn remember(&mut self, planned: &PlannedStep, run: &RunReport, point: &Point) {
        let measurement = &run.measurement;
        match planned.purpose {
            Purpose::Overload => {
                self.overload_ended_unix_s = run.started_unix_s + measurement.window.as_secs_f64();
            }
            Purpose::Recovery => {
                let Some((_, before)) = self.lowest else { return };
                let since = run.started_unix_s - self.overload_ended_unix_s;
                self.recovery_s = as_before(&measurement.series, before)
                    .map_or(f64::INFINITY, |at_s| (since + at_s).max(0.0));
            }
            Purpose::Up | Purpose::Down | Purpose::Search | Purpose::Confirm => {
                let response = measurement.total.response();
                let lower = self.lowest.is_none_or(|(level, _)| point.level < level);
                if lower && !response.is_empty() && point.failure_share <= 0.0 {
                    self.lowest = Some((point.level, response.quantile(0.5)));
                }
            }
        }
    }

    /// Makes the teardown steps of its plan.
    pub(super) fn tear_down(&self) -> Result<(), Failure> {
        (*self.target).clone().close()
    }

    /// Concludes from the steps, and reports why the lane ended early and whether the target caused
    /// that.
    pub(super) fn finish(self) -> (Curve, Option<(String, bool)>) {
        let mut curve = self.agenda.curve();
        curve.overload.recovery_s = self.recovery_s;
        curve.notes.extend(self.notes);
        (curve, self.ended)
    }
}

fn fails_at_any_load(run: &RunReport) -> String {
    format!("the server fails at any load: {}", Server::new(run).sentence())
}

/// Returns whether at least half of the calls got an answer that a load does not cause: a status
/// that blames the request, or a violated expectation of the plan.
fn answers_wrong(run: &RunReport) -> bool {
    let total = &run.measurement.total;
    let server = Server::new(run);
    // 408, 425 and 429 ask for a later retry
    let of_request =
        |status: u16| (400..500).contains(&status) && ![408, 425, 429].contains(&status);
    let wrong = server.statuses.iter().filter(|(status, _)| of_request(*status));
    let count: u64 = wrong.map(|(_, count)| count).sum();
    server.conduct == Conduct::Unexpected || count * 2 >= total.counts.done().max(1)
}

/// Returns the plan with the number of clients that the preparations of the first step must
/// support.
pub(super) fn plan_at_start(target: &RampTarget) -> Plan {
    let mut plan = target.plan.clone();
    let with_clients = target.course.axis.is_load() && plan.connection.clients.is_some();
    let first = Agenda::new(target.course.clone()).next_step();
    if let Some(planned) = first.filter(|_| with_clients) {
        plan.load = load_at(&plan, planned.level);
    }
    plan
}

/// Returns the plan's load at another level.
fn load_at(plan: &Plan, level: f64) -> Load {
    let mut load = plan.load.clone();
    match &mut load {
        Load::Closed { users, .. } => *users = level as u32,
        Load::Open { arrivals, .. } => {
            (arrivals.from, arrivals.to, arrivals.at) = (Rate(level), Rate(level), None);
        }
    }
    load
}
