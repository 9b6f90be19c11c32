//! Converts measurements into the facts of a run, from which its record is made.

use crate::judge::printed_quantiles;
use crate::session::{Fit, Session};
use record::run::{
    Driver, DummyRun, Headline, RunReport, SloResult, merged, merged_paths, merged_stacks,
};
use sample::{FailureClass, FleetFacts};
use stats::{Cause, CauseId, Counts, Measurement, State, Verdict};
use units::Nanos;

/// Returns the facts of a run that are known before it is measured.
pub(crate) fn initial_report(session: &Session, fit: &Fit) -> RunReport {
    let plan = &*fit.plan;
    let io = fit.network.name(plan);
    let known = session.env.calibration.as_ref();
    RunReport {
        name: session.name.clone(),
        plan: plan.clone(),
        plan_toml: plan::to_toml(plan, plan::Secrets::Masked),
        started_unix_s: crate::wall_clock::unix_seconds(),
        environment: session.env.environment.clone(),
        measurement: Measurement::default(),
        verdict: Verdict { state: State::default(), causes: Vec::new() },
        driver: Driver {
            io: match host::cpu::scheduling() {
                Some(policy) => format!("{io}, {policy}"),
                None => io.into(),
            },
            threads: fit.placement.workers,
            dummy: known.map(|known| DummyRun {
                call_s: known.call_p50_s,
                taken_unix_s: known.taken_unix_s,
            }),
            ..Driver::default()
        },
        resolved: session.servers.resolved.clone(),
        first_call: session.first_call.clone(),
        runs: Vec::new(),
        slo: Vec::new(),
        findings: Vec::new(),
        sut: None,
        path: None,
        stack: None,
        held: None,
        posts: None,
        tokens: None,
        fleet: None,
    }
}

/// Adds the facts that follow from the measurement.
pub(crate) fn finished(mut run: RunReport) -> RunReport {
    run.plan.measure.quantiles = printed_quantiles(&run.plan, &run.measurement);
    if let Some(fleet) = &run.fleet {
        run.driver.threads = fleet.workers();
    }
    run.driver.spin_s = run.measurement.total.spin.as_secs_f64();
    run.slo = SloResult::judge(&run.plan.measure.slo, &run.measurement);
    run.findings = record::findings(&run);
    run
}

impl Session {
    /// Combines the repeats of a plan into one run; without any, returns the run that a signal
    /// prevented.
    pub fn merged(&self, mut runs: Vec<RunReport>) -> RunReport {
        match runs.pop() {
            None => self.interrupted(),
            Some(only) if runs.is_empty() => only,
            Some(last) => {
                runs.push(last);
                self.merge(runs)
            }
        }
    }

    fn merge(&self, mut runs: Vec<RunReport>) -> RunReport {
        let mut all = initial_report(self, &self.fit);
        all.started_unix_s = runs.first().map_or(0.0, |run| run.started_unix_s);
        all.runs =
            runs.iter().map(|run| Headline::new(&run.measurement, run.verdict.state)).collect();
        all.verdict = worst_verdict(&runs);
        for run in &runs {
            add_cost(&mut all.driver, &run.driver);
        }
        // those of the last run, because figures of a machine do not add up over runs
        all.sut = runs.last_mut().and_then(|run| run.sut.take());
        all.held = runs.last_mut().and_then(|run| run.held.take());
        // the run with the greatest loss: a later run of a smaller fleet does not show the lost
        // agents
        let lost = |run: &&mut RunReport| run.fleet.as_ref().map(FleetFacts::lost);
        all.fleet = runs.iter_mut().max_by_key(lost).and_then(|run| run.fleet.take());
        all.path = merged_paths(runs.iter_mut().filter_map(|run| run.path.take()));
        all.stack = merged_stacks(runs.iter().filter_map(|run| run.stack));
        all.posts = runs.iter_mut().filter_map(|run| run.posts.take()).reduce(|mut all, more| {
            all.add(&more);
            all
        });
        all.tokens = runs.iter_mut().filter_map(|run| run.tokens.take()).reduce(|mut all, more| {
            all.add(&more);
            all
        });
        let measurements: Vec<Measurement> = runs.into_iter().map(|run| run.measurement).collect();
        all.measurement = merged(&measurements);
        finished(all)
    }

    /// Returns the run that a signal prevented.
    pub fn interrupted(&self) -> RunReport {
        let mut run = initial_report(self, &self.fit);
        run.measurement.interrupted = true;
        run.verdict = Verdict {
            state: State::Degraded,
            causes: vec![Cause {
                id: CauseId::Interrupted,
                figure: 0.0,
                text: "interrupted before the first call fell due".into(),
                advice: "Nothing was measured: let the run finish.".into(),
            }],
        };
        finished(run)
    }

    /// Returns a run that consists only of the first call, which got no connection.
    pub fn unreached(&self) -> RunReport {
        let mut run = initial_report(self, &self.fit);
        // this machine's ceiling is irrelevant here
        run.driver.dummy = None;
        let mut call = run.first_call.take().unwrap_or_default();
        let total = &mut run.measurement.total;
        total.counts = Counts { due: 1, failed: 1, ..Counts::default() };
        total.connections.attempted = 1;
        if let Some((class, _)) = &call.failure {
            total.failures.insert(*class, 1);
        }
        total.failed.record(call.took);
        (run.measurement.elapsed, run.measurement.window) = (call.took, call.took);
        if let plan::Load::Open { arrivals, .. } = &run.plan.load {
            run.measurement.intended = Some(1);
            run.measurement.intended_span = Some(Nanos::from_secs_f64(1.0 / arrivals.from.0));
        }
        let class = call.failure.as_ref().map(|(class, _)| *class);
        let text = call.failure.as_ref().map(|(_, text)| text.clone()).unwrap_or_default();
        // printed once: here, not in the line of the first call
        let fix = call.fix_text.take().unwrap_or_else(|| fix_for(class).to_owned());
        run.verdict = Verdict {
            state: State::Invalid,
            causes: vec![Cause {
                id: CauseId::AllFailed,
                figure: 1.0,
                text: format!("the first call got no connection: {text}"),
                advice: format!("Nothing was measured. {fix}"),
            }],
        };
        run.first_call = Some(call);
        finished(run)
    }
}

/// Adds the cost of a repeat; a thread counts with its busiest repeat.
fn add_cost(all: &mut Driver, run: &Driver) {
    all.cpu_user_s += run.cpu_user_s;
    all.cpu_system_s += run.cpu_system_s;
    all.busy.resize(all.busy.len().max(run.busy.len()), 0.0);
    for (all, busy) in all.busy.iter_mut().zip(&run.busy) {
        *all = all.max(*busy);
    }
}

/// Returns the verdict over all repeats: the worst state, and each cause once, with its worst
/// figure.
fn worst_verdict(runs: &[RunReport]) -> Verdict {
    let state = runs.iter().map(|run| run.verdict.state).max().unwrap_or_default();
    let mut causes: Vec<Cause> = Vec::new();
    for cause in runs.iter().flat_map(|run| &run.verdict.causes) {
        match causes.iter_mut().find(|known| known.id == cause.id) {
            Some(known) if known.figure < cause.figure => *known = cause.clone(),
            Some(_) => {}
            None => causes.push(cause.clone()),
        }
    }
    Verdict { state, causes }
}

/// Returns advice for this failure of the first call.
fn fix_for(class: Option<FailureClass>) -> &'static str {
    match class {
        Some(FailureClass::Certificate) => {
            "Trust the certificate's issuer with --ca FILE, name the server with --server-name, or \
             accept any certificate with --insecure."
        }
        Some(FailureClass::Tls) => "Check that this port speaks TLS, or use http://.",
        Some(
            FailureClass::ClientTimeout
            | FailureClass::ConnectTimeout
            | FailureClass::SocketTimeout,
        ) => "Check the address, the port and the network between; --connect-timeout waits longer.",
        Some(FailureClass::Unreachable) => "Check the address and this machine's routes.",
        Some(FailureClass::Proxy) => "Check --proxy and what it permits.",
        Some(FailureClass::Protocol) => {
            "The server violated this protocol; choose another one with --http."
        }
        Some(FailureClass::AddressUnavailable) => {
            "Wait for ports to become free, or widen net.ipv4.ip_local_port_range."
        }
        Some(FailureClass::FdUnavailable | FailureClass::FileTableFull) => {
            "Raise the limit of file descriptors."
        }
        _ => "Start the server, or correct the address.",
    }
}

/// Returns a line that reports the failed first call of [`Session::unreached`].
pub fn no_connection(run: &RunReport) -> String {
    let why = run.first_call.as_ref().and_then(|call| call.failure.as_ref());
    let why = why.map_or("", |(_, text)| text.as_str());
    format!("no connection to {}: {why}", run.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Env;
    use plan::Plan;
    use std::sync::Arc;

    fn session() -> Session {
        let plan = Plan::for_url("http://127.0.0.1:1/".parse().expect("a URL"));
        Session::unopened(&plan, "it", &Arc::new(Env::here()))
    }

    fn run(session: &Session, succeeded: u64, busy: &[f64]) -> RunReport {
        let mut run = initial_report(session, &session.fit);
        run.measurement.total.counts = Counts { due: succeeded, succeeded, ..Counts::default() };
        run.measurement.window = Nanos::SECOND;
        run.driver.busy = busy.to_vec();
        run.driver.cpu_user_s = 0.5;
        finished(run)
    }

    #[test]
    fn repeats_add_up_and_one_run_stays_as_it_is() {
        let session = session();
        let only = session.merged(vec![run(&session, 3, &[0.5])]);
        assert_eq!((only.runs.len(), only.measurement.total.counts.due), (0, 3));
        let runs = vec![run(&session, 3, &[0.5, 0.1]), run(&session, 4, &[0.2, 0.3])];
        let both = session.merged(runs);
        assert_eq!((both.runs.len(), both.measurement.total.counts.due), (2, 7));
        assert_eq!(both.measurement.window, Nanos::from_secs(2));
        assert_eq!(both.driver.busy, [0.5, 0.3]);
        assert!((both.driver.cpu_user_s - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_signal_before_the_first_run_is_the_cause() {
        let run = session().merged(Vec::new());
        assert!(run.measurement.interrupted);
        assert_eq!(run.verdict.causes[0].id, CauseId::Interrupted);
    }

    #[test]
    fn a_failed_first_call_is_a_failed_run_with_a_fix() {
        let mut session = session();
        let failure = Some((FailureClass::Refused, "connection refused".to_owned()));
        session.first_call =
            Some(record::run::FirstCall { failure, ..record::run::FirstCall::default() });
        let run = session.unreached();
        assert_eq!(no_connection(&run), "no connection to it: connection refused");
        assert_eq!(run.measurement.total.counts.failed, 1);
        let cause = &run.verdict.causes[0];
        assert_eq!(cause.text, "the first call got no connection: connection refused");
        assert_eq!(cause.advice, "Nothing was measured. Start the server, or correct the address.");
    }
}
