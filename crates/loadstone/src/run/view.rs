//! The full-screen view of a run: its terminal, and the state shown each second.

use crate::exit::Failure;
use args::Outputs;
use engine::{Intention, Row, Setup};
use live::terminal::{Climb, Judged, Look, Screen, Subject};
use plan::Plan;
use record::server::{Inputs, Server};
use report::SloResult;
use sample::{AgentNow, CallRecord};
use session::{Circumstances, Judge, Session, Watcher, printed_quantiles};
use stats::{Measurement, Objective, Second, Snapshot};
use std::rc::Rc;
use units::Nanos;

/// Checks that there is a terminal for `--live`.
///
/// # Errors
/// Fails if standard error is a file, a pipe, or a terminal that cannot move its cursor.
pub(crate) fn check(outputs: &Outputs) -> Result<(), Failure> {
    if !outputs.live {
        return Ok(());
    }
    if !session::console::stderr_is_terminal() {
        return Err(Failure::usage(
            "--live draws on standard error, which is not a terminal; leave --live out, or do not \
             redirect standard error",
        ));
    }
    if crate::progress::dumb_terminal() {
        return Err(Failure::usage(
            "--live needs a terminal that can move its cursor, and TERM is dumb; leave --live out",
        ));
    }
    Ok(())
}

/// Terminal in full-screen mode, restored on drop.
pub(crate) struct View {
    screen: Rc<Screen>,
    subject: Subject,
}

impl View {
    /// Opens the view of a run.
    /// `climb`: the ramp of which the runs are steps.
    ///
    /// # Errors
    /// Fails if the terminal cannot be set up.
    pub(crate) fn open(plan: &Plan, name: &str, climb: Option<Climb>) -> Result<View, Failure> {
        // a ramp's load is shown by each of its steps
        let load = if climb.is_some() { String::new() } else { report::load_in_words(plan) };
        let subject = Subject {
            name: name.to_owned(),
            load,
            span_s: plan.stop.duration.map(Nanos::as_secs_f64),
            calls_max: None,
            repeat: (1, plan.measure.repeat.max(1)),
            climb,
            steps: steps(plan),
        };
        let style = super::output::style(false, false, true);
        let color = !super::output::no_color();
        let look = Look { color, unicode: style.unicode, help: false };
        // the terminal must also be restored if a signal ends the program
        crate::signals::before_exit(live::terminal::restore)
            .map_err(|error| Failure::usage(format!("cannot catch signals: {error}")))?;
        let stop = Box::new(crate::signals::interrupt);
        let screen = Screen::open(subject.clone(), look, stop)
            .map_err(|error| Failure::usage(format!("--live: {error:#}")))?;
        Ok(View { screen: Rc::new(screen), subject })
    }

    /// Returns the view of run number `repeat`, counted from 0.
    pub(crate) fn watch(&self, setup: &Setup, judge: Judge, repeat: u32) -> Shown {
        let mut subject = self.subject.clone();
        subject.calls_max = setup.requests_max();
        subject.repeat.0 = repeat + 1;
        self.begin(subject, setup, judge, setup.plan.clone())
    }

    /// Shows a step of a ramp, judged by `objectives`.
    pub(crate) fn watch_step(
        &self,
        setup: &Setup,
        target: &Session,
        objectives: &[Objective],
        climb: Climb,
    ) -> Shown {
        let mut plan = setup.plan.clone();
        plan.measure.slo = objectives.to_vec();
        let subject = Subject {
            name: target.name().to_owned(),
            load: report::load_in_words(&plan),
            span_s: plan.stop.duration.map(Nanos::as_secs_f64),
            calls_max: setup.requests_max(),
            repeat: (1, 1),
            climb: Some(climb),
            steps: steps(&plan),
        };
        self.begin(subject, setup, target.judge(), plan)
    }

    fn begin(&self, subject: Subject, setup: &Setup, judge: Judge, plan: Plan) -> Shown {
        self.screen.begin(subject);
        Shown {
            screen: self.screen.clone(),
            plan,
            judge,
            intention: Intention::new(setup),
            measure_from: setup.measure_from(),
            series: Vec::new(),
            busy: vec![(Nanos::ZERO, Nanos::ZERO); setup.workers as usize],
        }
    }
}

/// Returns the names of the steps of a plan's journeys; empty without journeys.
fn steps(plan: &Plan) -> Vec<String> {
    match &plan.journeys {
        Some(_) => record::run::row_labels(plan, plan.row_count()),
        None => Vec::new(),
    }
}

/// Watcher that shows one run.
pub(crate) struct Shown {
    screen: Rc<Screen>,
    plan: Plan,
    judge: Judge,
    intention: Option<Intention>,
    measure_from: Nanos,
    series: Vec<Second>,
    /// CPU time of each worker without busy-waiting, and the elapsed time.
    busy: Vec<(Nanos, Nanos)>,
}

impl Shown {
    /// Returns the verdict and the objectives as of now.
    fn judge(&self, second: &Second, total: &Snapshot) -> Judged {
        let passed = second.at_s + second.span_s;
        let end = self.plan.stop.duration.map_or(f64::INFINITY, Nanos::as_secs_f64);
        let window = Nanos::from_secs_f64(passed.min(end).max(0.0));
        let wanted = self.intention.as_ref().map(|wanted| wanted.until(self.measure_from + window));
        let measurement = Measurement {
            total: total.clone(),
            series: self.series.clone(),
            window,
            elapsed: window,
            intended: wanted.map(|(count, _)| count),
            intended_span: wanted.and_then(|(_, span)| span),
            ..Measurement::default()
        };
        let share = |(busy, passed): &(Nanos, Nanos)| {
            if passed.is_zero() { 0.0 } else { busy.as_secs_f64() / passed.as_secs_f64() }
        };
        let busiest = self.busy.iter().map(share).fold(0.0, f64::max);
        let plan = Plan { measure: self.measured_with(&measurement), ..self.plan.clone() };
        let seen = Circumstances { busiest, waited: 0.0, foreign: None, path: None, fleet: None };
        let verdict = self.judge.verdict(&plan, &measurement, seen);
        let slo = SloResult::judge(&self.plan.measure.slo, &measurement);
        let first_call = None;
        let run = Inputs { measurement: &measurement, plan: &plan, slo: &slo, first_call };
        let server = Server::observed(&run);
        Judged { server: (server.sentence(), server.conduct.is_good()), verdict, slo }
    }

    /// Returns the settings of the measurement with only the quantiles that have enough samples
    /// now: the others may have enough at the end.
    fn measured_with(&self, measurement: &Measurement) -> plan::MeasurePlan {
        let mut quantiles = printed_quantiles(&self.plan, measurement);
        let count = measurement.total.response().count();
        quantiles.retain(|q| *q >= 1.0 || count >= stats::samples_needed(*q));
        plan::MeasurePlan { quantiles, ..self.plan.measure.clone() }
    }
}

impl Watcher for Shown {
    fn second(&mut self, second: &Second, total: &Snapshot) {
        self.series.push(second.clone());
        self.screen.second(second, total);
        if !second.warm_up {
            self.screen.set_verdict(self.judge(second, total));
        }
    }

    fn agents(&mut self, agents: &[AgentNow]) {
        self.screen.agents(agents.to_vec());
    }

    fn row(&mut self, row: &Row) {
        if row.start >= self.measure_from
            && let Some((busy, passed)) = self.busy.get_mut(row.worker as usize)
        {
            *busy += row.cpu - row.snapshot.spin;
            *passed += row.passed;
        }
    }

    fn calls(&mut self, _: &[CallRecord]) -> anyhow::Result<()> {
        Ok(())
    }

    fn end(&mut self) {}
}
