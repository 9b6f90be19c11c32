//! `loadstone run`: from options to a report.

pub(crate) mod call_log;
pub(crate) mod directory;
pub(crate) mod elsewhere;
pub(crate) mod first_call;
pub(crate) mod journeys;
pub(crate) mod keeping;
pub(crate) mod live;
pub(crate) mod measure;
pub(crate) mod meters;
pub(crate) mod negotiate;
pub(crate) mod output;
mod own_stack;
pub(crate) mod path;
pub(crate) mod peak;
pub(crate) mod placement;
pub(crate) mod prepare;
pub(crate) mod scripted;
pub(crate) mod settled;
mod sockets;
mod specweb99;
pub(crate) mod threads;
pub(crate) mod trial;
pub(crate) mod view;
pub(crate) mod watchers;

use crate::args::Outputs;
use crate::calibration::Calibration;
use crate::exit::{Code, Failure, NotBegun};
use crate::files::Sink;
use crate::sut;
use call_log::LogFile;
use elsewhere::Elsewhere;
use first_call::Found;
use keeping::{Keeper, Keeping};
use live::Live;
use measure::{Measured, measure};
use meters::Meters;
use plan::{HttpVersion, Load, Plan};
use prepare::{Loads, Prepared, prepare};
use record::run::{CauseRecord, SloRecord};
use report::{DummyRun, FirstCall, Headline, RunRecord, RunReport, SloResult};
use sample::{Environment, FailureClass, FleetFacts};
use scripted::Stages;
use stats::{Cause, CauseId, Counts, Measurement, State, Verdict};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use threads::{DriverCost, Watcher};
use units::Nanos;
use view::View;
use watchers::Watchers;
use workload::Template;

/// Who else looks on while the runs of a command go on.
struct Onlookers {
    view: Option<View>,
    meters: Option<Meters>,
    keeping: Keeping,
    /// What the run is called.
    name: String,
}

impl Onlookers {
    /// Their watchers of run number `repeat`, counted from 0.
    fn watch(
        &self,
        setup: &engine::Setup,
        prepared: &Prepared,
        calibration: Option<&Calibration>,
        repeat: u32,
    ) -> Vec<Box<dyn Watcher>> {
        let mut all: Vec<Box<dyn Watcher>> = Vec::new();
        if let Some(view) = &self.view {
            all.push(Box::new(view.watch(setup, prepared, calibration, repeat)));
        }
        if let Some(meters) = &self.meters {
            all.push(Box::new(meters.watch(setup, &self.name, repeat + 1)));
        }
        all.extend(self.keeping.watcher(repeat as usize));
        all
    }

    /// The report goes to the terminal that was there before the view, and to the store.
    fn close(self) -> Keeping {
        drop(self.view);
        if let Some(meters) = self.meters {
            meters.close();
        }
        self.keeping
    }
}

/// How long a signal may go unnoticed while the first call blocks.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// Redirects of the first target followed in search of hosts that the run will be sent to.
const HOPS_MAX: usize = 10;

/// Runs a plan as often as it says, reports, and gives the exit code.
pub(crate) fn run(
    plan: Plan,
    outputs: &Outputs,
    fleet: Option<&Arc<dyn Elsewhere>>,
) -> Result<Code, Failure> {
    output::check(outputs)?;
    view::check(outputs)?;
    if let Some(fleet) = fleet {
        admit(fleet.as_ref(), &plan, outputs)?;
    }
    let meters = Meters::open(outputs)?;
    let keeper = Keeper::open(outputs.store.as_ref())?;
    let name = outputs.name.as_str();
    let environment = host::environment();
    let calibration = Calibration::load(&environment);
    sut::check(outputs.sut.as_ref())?;
    let Some((mut prepared, found)) = reach_unless_interrupted(&plan, Loads::One)? else {
        let (nobody, runs) = (Prepared::of(&plan), vec![interrupted_before()]);
        let keeping = keeper.run(name, &plan, &environment)?;
        let report = assemble(&plan, &nobody, None, runs, &environment, calibration, name);
        let run = RunRecord::of(&report);
        deliver(&run, outputs, keeping)?;
        return Ok(exit_code(&run));
    };
    let plan = prepared.plan.clone();
    prepared.sut.clone_from(&outputs.sut);
    prepared.hand_to(fleet);
    let quiet = outputs.quiet;
    if outputs.version_open && !quiet && !found.unreachable && fleet.is_none() {
        prepared.notes.extend(negotiate::unused_http2(&prepared));
    }
    if !quiet {
        prepared.told().for_each(crate::say);
    }
    if found.unreachable {
        let report = unreachable_report(&plan, &prepared, found, &environment, name);
        crate::say(&no_connection(&report));
        deliver(&RunRecord::of(&report), outputs, keeper.run(name, &plan, &environment)?)?;
        return Ok(Code::NoConnection);
    }
    let view = outputs.live.then(|| View::open(&plan, name, None)).transpose()?;
    let keeping = keeper.run(name, &plan, &environment)?;
    let onlookers = Onlookers { view, meters, keeping, name: name.to_owned() };
    let mut stages = Stages::default();
    let runs = repeats(&plan, &prepared, calibration.as_ref(), outputs, &onlookers, &mut stages);
    let keeping = onlookers.close();
    let torn_down = journeys::tear_down(&plan, &mut prepared);
    let (mut runs, not_begun) = match runs {
        Ok(runs) => runs,
        Err(failure) => {
            keeping.discard();
            return Err(failure);
        }
    };
    if runs.is_empty() {
        runs.push(interrupted_before());
    }
    let call = Some(found.call);
    let mut report = assemble(&plan, &prepared, call, runs, &environment, calibration, name);
    report.require_samples();
    let run = RunRecord::of(&report);
    deliver(&run, outputs, keeping)?;
    stages.done()?;
    torn_down?;
    not_begun.map_or_else(|| Ok(exit_code(&run)), Err)
}

/// Checks that a fleet can carry out the plan.
fn admit(fleet: &dyn Elsewhere, plan: &Plan, outputs: &Outputs) -> Result<(), Failure> {
    if outputs.log.is_some() {
        return Err(Failure::usage(
            "--log writes the calls of one machine, and a fleet's stay on its agents: leave --log out",
        ));
    }
    fleet.admit(plan).map_err(Failure::from_run)?;
    Ok(())
}

/// Writes the report wherever it goes, the store included; every one is tried.
fn deliver(run: &RunRecord, outputs: &Outputs, keeping: Keeping) -> Result<(), Failure> {
    let written = output::write(run, outputs);
    let kept = keeping.finish_run(run, outputs.quiet);
    written.and(kept)
}

/// [`reach`] on a thread of its own, because looking names up, connecting and reading all block.
/// `None` when a signal came first: the thread then ends with the program.
pub(crate) fn reach_unless_interrupted(
    plan: &Plan,
    loads: Loads,
) -> Result<Option<(Prepared, Found)>, Failure> {
    let (tell, told) = mpsc::channel();
    let plan = plan.clone();
    let body = move || {
        // nobody listens any more once a signal has come
        tell.send(reach(&plan, loads)).ok();
    };
    let thread = std::thread::Builder::new().name("first-call".into()).spawn(body);
    thread.map_err(|error| Failure::usage(format!("cannot start a thread: {error}")))?;
    loop {
        match told.recv_timeout(SIGNAL_CHECK) {
            Ok(reached) => return reached.map(Some),
            Err(RecvTimeoutError::Timeout) if crate::signals::caught() > 0 => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::usage("the first call's thread panicked; this is a bug"));
            }
        }
    }
}

/// What is reported when a signal came before anything fell due.
fn interrupted_before() -> Measured {
    let cause = Cause {
        id: CauseId::Interrupted,
        figure: 0.0,
        text: "interrupted before the first call fell due".into(),
        advice: "Nothing was measured: let it run to its end.".into(),
    };
    Measured {
        measurement: Measurement { interrupted: true, ..Measurement::default() },
        verdict: Verdict { state: State::Degraded, causes: vec![cause] },
        cost: DriverCost::default(),
        started_unix_s: crate::wall_clock::unix_seconds(),
        sut: None,
        path: None,
        stack: None,
        held: None,
        posts: None,
        fleet: None,
    }
}

/// Everything before the first due instant: names, limits, and the plain call that goes first.
fn reach(typed: &Plan, loads: Loads) -> Result<(Prepared, Found), Failure> {
    let mut extra = Vec::new();
    let mut prepared = prepare(typed, &extra)?;
    prepared.stand(loads)?;
    let choice = negotiate::settle(&mut prepared)?;
    if choice.is_some() && prepared.plan.request.version != HttpVersion::Http2 {
        // what was said of streams holds for HTTP/2 alone
        prepared.keep_to_streams(1);
    }
    let (mut found, mut from) = call_first(&mut prepared)?;
    if let Some(choice) = choice.filter(|choice| !choice.unreached) {
        prepared.notes.push(choice.sentence(&prepared.plan, typed.connection.pipeline));
        found.call.negotiated = Some(choice.offered);
    }
    keep_to_allowed(&mut prepared, found.streams_max);
    let plan = &*prepared.plan.clone();
    if prepared.route.is_some() {
        prepared.notes.extend(path::crowded(plan, found.call.length));
    }
    for _ in 0..HOPS_MAX {
        let Some(url) = first_call::unknown_host(&found, plan, &prepared.endpoints) else { break };
        extra.push(url.clone());
        let settled = prepared.endpoints.clone();
        let mut wider = match prepare(plan, &extra) {
            Ok(wider) => wider,
            Err(error) => {
                let note =
                    format!("the first call leads to {url}, where none can follow: {error:#}");
                prepared.notes.push(note);
                break;
            }
        };
        wider.notes.splice(0..0, prepared.notes);
        wider.route = prepared.route.take();
        wider.own = prepared.own.take();
        wider.settled = prepared.settled;
        (wider.sockets, wider.sockets_note) = (prepared.sockets, prepared.sockets_note.take());
        prepared = wider;
        for (endpoint, before) in prepared.endpoints.iter_mut().zip(settled) {
            *endpoint = before;
        }
        let row = prepared.endpoints.len() - 1;
        let endpoint = &mut prepared.endpoints[row];
        let absolute = endpoint.absolute;
        let place = (row as u32, absolute);
        let Some(template) = first_call::redirected(plan, &from, &url, place) else { break };
        let (tls, route) = (prepared.tls.as_ref(), prepared.route.as_deref());
        let own = prepared.own.as_ref();
        let next = path::through(route, || first_call::make(plan, endpoint, tls, own, &template))?;
        found.location = next.location;
        from = template;
    }
    if !found.unreachable {
        journeys::set_up(plan, &mut prepared)?;
    }
    Ok((prepared, found))
}

/// No connection is given more streams than the server allows, `allowed`; what it would refuse is no
/// measurement.
fn keep_to_allowed(prepared: &mut Prepared, allowed: Option<u32>) {
    let asked = prepared.plan.connection.pipeline;
    let Some(kept) = allowed.map(|most| most.max(1)).filter(|kept| *kept < asked) else { return };
    prepared.keep_to_streams(kept);
    let note =
        format!("the server allows {kept} streams on a connection: {kept} are used, not {asked}");
    prepared.notes.push(note);
}

/// Makes the first call; returns its request too.
fn call_first(prepared: &mut Prepared) -> Result<(Found, Template), Failure> {
    let plan = &*prepared.plan.clone();
    let setup = engine::Setup::new(plan.clone(), prepared.endpoints.clone(), 1, Nanos::ZERO)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut template = setup.targets.template(0).clone();
    // never send a non-GET step before the run
    let journeys = plan.journeys.as_ref().filter(|_| &*template.method != "GET");
    let over_quic = plan.request.version == HttpVersion::Http3;
    if let Some(journeys) = journeys.filter(|_| over_quic) {
        let row = template.endpoint;
        let absolute = setup.endpoints[row as usize].absolute;
        let base = first_call::request_for(plan, &journeys.base, row, absolute);
        template = base.unwrap_or(template);
    }
    let endpoint = &mut prepared.endpoints[template.endpoint as usize];
    let tls = prepared.tls.as_ref();
    let (route, own) = (prepared.route.as_deref(), prepared.own.as_ref());
    let found = path::through(route, || match journeys {
        Some(_) if !over_quic => first_call::connect(plan, endpoint, tls, own),
        _ => first_call::make(plan, endpoint, tls, own, &template),
    })?;
    Ok((found, template))
}

/// The runs of a plan, and why there are fewer of them than it says: a fleet may not begin the next one.
fn repeats(
    plan: &Plan,
    prepared: &Prepared,
    calibration: Option<&Calibration>,
    outputs: &Outputs,
    onlookers: &Onlookers,
    stages: &mut Stages,
) -> Result<(Vec<Measured>, Option<Failure>), Failure> {
    let (mut runs, mut not_begun) = (Vec::new(), None);
    let log_file = outputs.log.as_deref().map(LogFile::create).transpose();
    let log_file = log_file.map_err(|error| Failure::not_written(&error))?;
    for repeat in 0..plan.measure.repeat.max(1) {
        if crate::signals::caught() > 0 {
            break;
        }
        // each repeat has its own arrivals and draws, and each can be repeated by its seed
        let mut this = plan.clone();
        this.seed = plan.seed.wrapping_add(u64::from(repeat));
        let open = log_file.as_ref().map(LogFile::open).transpose();
        let mut log = open.map_err(|error| Failure::not_written(&error))?;
        let mut watcher = |setup: &engine::Setup| -> Box<dyn Watcher> {
            let log = log.take().map(|log| log.counting_from(setup.measure_from()));
            let span = plan.stop.duration;
            let quiet = outputs.quiet || outputs.live;
            let line = Live::new(quiet, span, setup.requests_max(), log);
            let mut all: Vec<Box<dyn Watcher>> = vec![Box::new(line)];
            all.extend(onlookers.watch(setup, prepared, calibration, repeat));
            Box::new(Watchers(all))
        };
        let logging = engine::Logging { calls: outputs.log.is_some(), ..Default::default() };
        let aside = outputs.json == Some(Sink::Stdout);
        let casts = stages.cast(&this, prepared, aside)?;
        let measured = measure(&this, prepared, calibration, logging, casts, &mut watcher);
        let mut measured = match measured {
            Ok(measured) => measured,
            Err(error) => {
                not_begun = Some(unless_begun(error, (runs.len(), plan.measure.repeat))?);
                break;
            }
        };
        stages.keep(&mut measured);
        runs.push(measured);
    }
    log_file.map_or(Ok(()), LogFile::keep).map_err(|error| Failure::not_written(&error))?;
    Ok((runs, not_begun))
}

/// Why a run did not begin, where others before it have ended: those are worth their report.
///
/// # Errors
/// Where there are none, or the run itself failed.
fn unless_begun(error: anyhow::Error, (ended, of): (usize, u32)) -> Result<Failure, Failure> {
    let not_begun = error.downcast_ref::<NotBegun>().is_some();
    let failure = Failure::from_run(error);
    if !not_begun || ended == 0 {
        return Err(failure);
    }
    let text = format!("only {ended} of {of} runs were made: {}", failure.text);
    Ok(Failure { text, ..failure })
}

pub(crate) fn assemble(
    plan: &Plan,
    prepared: &Prepared,
    first_call: Option<FirstCall>,
    mut runs: Vec<Measured>,
    environment: &Environment,
    calibration: Option<Calibration>,
    name: &str,
) -> RunReport {
    let headlines: Vec<Headline> =
        runs.iter().map(|run| Headline::of(&run.measurement, run.verdict.state)).collect();
    let verdict = worst(&runs);
    let mut cost = DriverCost::default();
    for run in &runs {
        cost.user_s += run.cost.user_s;
        cost.system_s += run.cost.system_s;
        cost.busiest = cost.busiest.max(run.cost.busiest);
    }
    let started_unix_s = runs.first().map_or(0.0, |run| run.started_unix_s);
    let repeated = runs.len() > 1;
    // the last run's: figures of a machine do not add up over runs
    let sut = runs.last_mut().and_then(|run| run.sut.take());
    // but of a run in which most was lost before one of a smaller fleet, which does not tell who was lost
    let lost = |run: &&mut Measured| run.fleet.as_ref().map(FleetFacts::lost);
    let fleet = runs.iter_mut().max_by_key(lost).and_then(|run| run.fleet.take());
    let threads = fleet.as_ref().map_or(prepared.workers, FleetFacts::workers);
    let path = report::merged_paths(runs.iter_mut().filter_map(|run| run.path.take()));
    let held = runs.last_mut().and_then(|run| run.held.take());
    let posts = runs.iter_mut().filter_map(|run| run.posts.take()).reduce(|mut all, more| {
        all.add(&more);
        all
    });
    let stack = report::merged_stacks(runs.iter().filter_map(|run| run.stack));
    let measurement = if repeated {
        let all: Vec<Measurement> = runs.into_iter().map(|run| run.measurement).collect();
        report::merged(&all)
    } else {
        runs.into_iter().next().map(|run| run.measurement).unwrap_or_default()
    };
    let slo = SloResult::judge(&plan.measure.slo, &measurement);
    let mut report = RunReport {
        name: name.to_owned(),
        plan: shown_plan(plan, &measurement),
        plan_toml: plan::to_toml(plan, plan::Secrets::Masked),
        started_unix_s,
        environment: environment.clone(),
        driver: driver(plan, prepared, &measurement, &cost, threads, calibration),
        measurement,
        verdict,
        resolved: prepared.resolved.clone(),
        first_call,
        runs: if repeated { headlines } else { Vec::new() },
        slo,
        findings: Vec::new(),
        sut,
        path,
        stack,
        held,
        posts,
        fleet,
    };
    report.findings = report::findings(&report);
    report
}

/// The plan with the quantiles that are printed.
fn shown_plan(plan: &Plan, measurement: &Measurement) -> Plan {
    let mut shown = plan.clone();
    shown.measure.quantiles = measure::printed_quantiles(plan, measurement);
    shown
}

fn driver(
    plan: &Plan,
    prepared: &Prepared,
    measurement: &Measurement,
    cost: &DriverCost,
    threads: u32,
    calibration: Option<Calibration>,
) -> report::Driver {
    report::Driver {
        io: {
            let io = own_stack::name(plan, prepared);
            match host::cpu::scheduling() {
                Some(policy) => format!("{io}, {policy}"),
                None => io.into(),
            }
        },
        threads,
        cpu_user_s: cost.user_s,
        cpu_system_s: cost.system_s,
        spin_s: measurement.total.spin.as_secs_f64(),
        busy: cost.busy.clone(),
        dummy: calibration
            .map(|known| DummyRun { call_s: known.call_p50_s, taken_unix_s: known.taken_unix_s }),
    }
}

/// The verdict over all repeats: the worst state, each cause once, with its worst figure.
fn worst(runs: &[Measured]) -> Verdict {
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

/// What is reported when not even the first call got a connection: that call.
pub(crate) fn unreachable_report(
    plan: &Plan,
    prepared: &Prepared,
    mut found: Found,
    environment: &Environment,
    name: &str,
) -> RunReport {
    let mut measurement = Measurement::default();
    measurement.total.counts = Counts { due: 1, failed: 1, ..Counts::default() };
    measurement.total.connections.attempted = 1;
    if let Some((class, _)) = &found.call.failure {
        measurement.total.failures.insert(*class, 1);
    }
    measurement.total.failed.record(found.call.took);
    measurement.elapsed = found.call.took;
    measurement.window = found.call.took;
    if let Load::Open { arrivals, .. } = &plan.load {
        measurement.intended = Some(1);
        measurement.intended_span = Some(Nanos::from_secs_f64(1.0 / arrivals.from.0));
    }
    let text = found.call.failure.as_ref().map(|(_, text)| text.clone()).unwrap_or_default();
    let class = found.call.failure.as_ref().map(|(class, _)| *class);
    let cause = Cause {
        id: CauseId::AllFailed,
        figure: 1.0,
        text: format!("the first call got no connection: {text}"),
        advice: format!(
            "Nothing was measured. {}",
            // said once: here, not in the line of the first call
            found.call.way_out.take().unwrap_or_else(|| way_out(class).to_owned())
        ),
    };
    let run = Measured {
        measurement,
        verdict: Verdict { state: State::Invalid, causes: vec![cause] },
        cost: DriverCost::default(),
        started_unix_s: crate::wall_clock::unix_seconds(),
        sut: None,
        path: None,
        stack: None,
        held: None,
        posts: None,
        fleet: None,
    };
    assemble(plan, prepared, Some(found.call), vec![run], environment, None, name)
}

/// What to do when the first call failed in this way.
fn way_out(class: Option<FailureClass>) -> &'static str {
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
        ) => "Check the address, the port and what lies between; --connect-timeout waits longer.",
        Some(FailureClass::Unreachable) => "Check the address and this machine's routes.",
        Some(FailureClass::Proxy) => "Check --proxy and what it permits.",
        Some(FailureClass::Protocol) => {
            "The server broke the rules of this protocol; ask it in another one with --http."
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

pub(crate) fn no_connection(report: &RunReport) -> String {
    let why = report.first_call.as_ref().and_then(|call| call.failure.as_ref());
    let why = why.map_or("", |(_, text)| text.as_str());
    format!("no connection to {}: {why}", report.name)
}

/// The first that holds; usage, output and connection failures have been told before.
fn exit_code(run: &RunRecord) -> Code {
    let nobody = run.connections.attempted > 0 && run.connections.established == 0;
    let posts = run.bodies.specweb99.as_ref().and_then(|found| found.posts.as_ref());
    let failing = server_failed_all(run)
        || run.missed_expectations() > 0
        || run.server.state.is_an_end()
        || posts.is_some_and(|posts| !posts.agree());
    if nobody && run.outcomes.succeeded == 0 {
        Code::NoConnection
    } else if failing {
        // however late this client was: a broken deployment must not read as "repeat it"
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

/// Whether an objective is missed for certain although the run is INVALID: only lateness or missing
/// samples of other objectives are held against the run.
fn missed_for_sure(run: &RunRecord) -> bool {
    let late = |cause: &CauseRecord| cause.id == CauseId::Slip;
    let other = |cause: &CauseRecord| !late(cause) && stats::verdict::INVALID.contains(&cause.id);
    let is_late = run.verdict.causes.iter().any(late);
    let sure = |slo: &SloRecord| {
        !slo.met && !slo.undecided && (slo.figure_without_lag.is_some() || !is_late)
    };
    run.slo.iter().any(sure) && !run.verdict.causes.iter().any(other)
}

/// Whether the server failed every call that fell due. Where the client dropped or failed some itself,
/// nobody knows what the server would have done with them.
fn server_failed_all(run: &RunRecord) -> bool {
    run.outcomes.succeeded + run.outcomes.dropped == 0
        && !run.failures.is_empty()
        && run.failures.iter().all(|failure| failure.blame == sample::Blame::Server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_ended_outlive_one_that_did_not_begin() {
        let lost = || anyhow::Error::from(NotBegun("agent 2 is lost".into()));
        let failure = unless_begun(lost(), (2, 3)).unwrap();
        assert_eq!(failure.text, "only 2 of 3 runs were made: agent 2 is lost");
        assert_eq!(failure.code, Code::Usage);
        assert_eq!(unless_begun(lost(), (0, 3)).unwrap_err().text, "agent 2 is lost");
        assert!(unless_begun(anyhow::anyhow!("the log is full"), (2, 3)).is_err());
    }
}
