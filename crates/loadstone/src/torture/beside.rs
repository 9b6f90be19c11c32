//! `--beside`: a background load during the cases, and the effect of each case on it.

use super::permit::classify;
use crate::exit::{Code, Failure};
use args::{Disk, TortureArgs, background_plan};
use campaign::{CampaignEvent, Watcher};
use engine::{Order, Setup};
use plan::{Load, Plan, ResolveRule};
use record::run::RunRecord;
use record::torture::Beside;
use report::RunReport;
use sample::{CallRecord, Outcome};
use session::console::inherited;
use session::{Change, Env, Observers, RunLoad, Session};
use stats::{Second, Snapshot};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use torture::beside::{CaseSpan, LoadCall, load_effect};
use torture::result::CaseResult;
use torture::safety::{Asked, Class};
use units::{Nanos, show};
use url::Url;

/// Time that the load runs before the first case, to measure the reference for all cases.
const BASE: Nanos = Nanos::from_secs(2);
/// Time that the load continues after the last case, so that its last seconds are complete.
const REST: Nanos = Nanos::from_millis(1_500);
/// Maximum number of calls with recorded instants: 96 MB of them.
const CALLS_MAX: usize = 4_000_000;
/// Maximum delay until a signal is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Duration longer than any torture run; the end of the cases ends the load.
const FOR_EVER: Nanos = Nanos::from_secs(7 * 24 * 3_600);

/// A running load.
pub(super) struct Running {
    /// Plan of the background load.
    pub(super) plan: Plan,
    thread: JoinHandle<Result<RunReport, Failure>>,
    shared: Arc<LoadSignals>,
    /// Closed when the thread ends; never receives a message.
    alive: Receiver<Infallible>,
}

/// State shared by the load's thread and ours.
#[derive(Default)]
struct LoadSignals {
    stop: AtomicBool,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    /// Start of the measured phase, past or future.
    from: Option<Nanos>,
    calls: Vec<LoadCall>,
    left_out: u64,
}

impl LoadSignals {
    fn lock_received(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Planned load with its name.
pub(super) struct Planned {
    plan: Plan,
    name: String,
}

impl Planned {
    /// Describes the load in one line.
    pub(super) fn description(&self) -> String {
        format!("\nBackground load: {} on {}\n", report::load_in_words(&self.plan), self.name)
    }
}

/// Returns the requested load, without an end.
///
/// # Errors
/// Fails for a plan that is invalid or not permitted.
pub(super) fn planned(args: &TortureArgs, url: &Url) -> Result<Option<Planned>, Failure> {
    let asked =
        background_plan(args, url, &Disk).map_err(|error| Failure::usage(error.to_string()))?;
    let Some((plan, name)) = asked else { return Ok(None) };
    let resolve = permit(&plan, &name)?;
    let plan = along(&plan, resolve, args.what.path());
    Ok(Some(Planned { plan, name }))
}

/// Returns the plan as it runs alongside the cases: without an end, and limited to the permitted
/// servers.
fn along(plan: &Plan, resolve: Vec<ResolveRule>, path: Option<wan::PathSpec>) -> Plan {
    let mut plan = plan.clone();
    plan.connection.resolve = resolve;
    // well-behaved users are as far away as hostile ones, each kind on its own link
    if plan.connection.path.is_none() && plan.connection.clients.is_none() {
        plan.connection.path = path;
    }
    plan.stop.warm_up = Nanos::SECOND;
    plan.stop.duration = None;
    (plan.stop.requests, plan.stop.bytes, plan.stop.abort_if) = (None, None, None);
    plan
}

/// Returns the limits that remain for the cases: together with the load, the cases send at most as
/// many requests per second as the cases may send without a load.
///
/// # Errors
/// Fails if the load leaves nothing, or has an unknown rate.
pub(super) fn remaining_limits(
    asked: Asked,
    class: Class,
    load: Option<&Planned>,
) -> Result<Asked, Failure> {
    let Some(Planned { plan, name }) = load else { return Ok(asked) };
    remaining_load(asked, class, rate(plan))
        .map_err(|why| Failure::usage(format!("the background load, {name}: {why}")))
}

/// Returns the budget that the load leaves. `rate`: rate of the load; `None` if it has none.
fn remaining_load(asked: Asked, class: Class, rate: Option<f64>) -> Result<Asked, String> {
    let (usual, top) = (class.usual().requests_max, class.ceiling().requests_max);
    let too_high = asked.requests_max.zip(top).is_some_and(|(asked, top)| asked > top);
    let Some(bound) = asked.requests_max.or(top).filter(|_| !too_high) else { return Ok(asked) };
    let named = match asked.requests_max {
        Some(_) => format!("--requests-max {bound}/s"),
        None => format!("the limit of {bound} requests per second for {} servers", class.id()),
    };
    let Some(rate) = rate else {
        return Err(format!("it has no rate and could exceed {named}: set one with --rate"));
    };
    match bound.checked_sub(rate.ceil() as u64) {
        None | Some(0) => {
            Err(format!("{} leaves nothing of {named} for the cases: lower it", show::rate(rate)))
        }
        Some(rest) => {
            let own = asked.requests_max.or(usual).unwrap_or(rest);
            Ok(Asked { requests_max: Some(own.min(rest)), ..asked })
        }
    }
}

/// Returns the maximum rate in calls per second, as a mean for random arrivals; `None` if the plan
/// has none.
fn rate(plan: &Plan) -> Option<f64> {
    match &plan.load {
        _ if !plan.scenarios.is_empty() => None,
        Load::Open { arrivals, session: None, .. } if arrivals.at.is_none() => {
            // the rate counts arrivals, and several whole bursts can begin within one second
            let (rate, burst) = (arrivals.from.0.max(arrivals.to.0), f64::from(arrivals.burst));
            Some(if burst > 1.0 { (rate / burst).ceil() * burst } else { rate })
        }
        _ => None,
    }
}

/// Starts the requested load, and returns after it has run alone for a while.
///
/// # Errors
/// Fails if no server responds.
pub(super) fn start(planned: Option<Planned>) -> Result<Option<Running>, Failure> {
    let Some(Planned { mut plan, name }) = planned else { return Ok(None) };
    plan.stop.duration = Some(FOR_EVER);
    let shared = Arc::<LoadSignals>::default();
    let theirs = shared.clone();
    let (living, alive) = channel();
    let its = plan.clone();
    let body = move || {
        let _living: Sender<Infallible> = living;
        run(&its, &name, &theirs)
    };
    let thread = std::thread::Builder::new().name("beside".into()).spawn(inherited(body));
    let thread =
        thread.map_err(|error| Failure::usage(format!("cannot start a thread: {error}")))?;
    let running = Running { plan, thread, shared, alive };
    let goes_on = running.wait_for(|heard, now| heard.from.is_some_and(|from| now >= from + BASE));
    if !goes_on {
        // it failed, or a signal arrived
        return running.join().map(|_| None);
    }
    Ok(Some(running))
}

/// Runs the load from its first call to its report.
fn run(plan: &Plan, name: &str, shared: &Arc<LoadSignals>) -> Result<RunReport, Failure> {
    let env = Arc::new(Env::for_variations([plan]));
    let Some(session) = Session::reach(plan, name, &env)? else {
        let text = "interrupted before the background load started".to_owned();
        return Err(Failure { code: Code::Interrupted, text });
    };
    if !session.is_reachable() {
        let why = session::no_connection(&session.unreached());
        let text = format!("the background load: {why}");
        return Err(Failure { code: Code::NoConnection, text });
    }
    let mut watch = |setup: &Setup| -> Box<dyn session::Watcher> {
        shared.lock_received().from = Some(setup.measure_from());
        Box::new(LoadObserver { shared: shared.clone() })
    };
    let mut observers = Observers::new(&mut watch);
    observers.logging.calls = true;
    let run = session.measure(&RunLoad::Changed(Change::default()), observers);
    run.map_err(Failure::from_run)
}

/// Checks that every target may be tested, and that the rate is at most that of torture itself;
/// returns rules that pin the current addresses of the targets.
fn permit(plan: &Plan, name: &str) -> Result<Vec<ResolveRule>, Failure> {
    let refused = |why: &str| Err(Failure::usage(format!("the background load, {name}: {why}")));
    let around = &plan.connection;
    let journeys = plan.journeys.as_ref();
    let scripted = plan.script.is_some() || journeys.is_some_and(|it| it.is_scripted());
    if scripted || plan.request.follow_max > 0 {
        return refused("scripts and redirects are not supported: both can lead to other servers");
    }
    if let Some(step) = journeys.and_then(|it| it.step_with_variable_host()) {
        let step = units::quoted(&step.name);
        return refused(&format!(
            "the host of step {step} comes from a variable and can be another server: write the \
            host into the plan"
        ));
    }
    if around.proxy.is_some() || around.unix.is_some() || !around.resolve.is_empty() {
        return refused("proxies, Unix sockets and --resolve are not supported");
    }
    let mut rules: Vec<ResolveRule> = Vec::new();
    for target in &plan.targets {
        let host = target.url.host_str().unwrap_or_default();
        let port = target.url.port_or_known_default().unwrap_or(80);
        if rules.iter().any(|rule| rule.host == host && rule.port == port) {
            continue;
        }
        let (found, _) = host::resolve(host, port, host::Family::Any)
            .map_err(|error| Failure { code: Code::NoConnection, text: error.to_string() })?;
        let addresses: Vec<_> = found.iter().map(std::net::SocketAddr::ip).collect();
        let class = classify(&target.url, &addresses)?;
        if let Some(why) = excess_reason(plan, class) {
            return refused(&why);
        }
        let Some(address) = addresses.first() else { return refused("the name has no address") };
        rules.push(ResolveRule { host: host.to_owned(), port, address: *address, zone: None });
    }
    rules.retain(|rule| rule.host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_err());
    Ok(rules)
}

/// Returns why this load exceeds the limits for servers of that class.
fn excess_reason(plan: &Plan, class: Class) -> Option<String> {
    if class == Class::Public {
        return Some(
            "background load is not allowed on public servers: no proof of permission covers it"
                .into(),
        );
    }
    let most = class.ceiling().requests_max?;
    let Some(rate) = rate(plan) else {
        return Some(format!("it has no rate: set one of at most {most}/s"));
    };
    let above = rate > most as f64;
    let shown = show::rate(rate);
    above.then(|| format!("{shown} exceeds {most}/s, the limit for {} servers", class.id()))
}

/// Receives the calls of the load, and signals its end.
struct LoadObserver {
    shared: Arc<LoadSignals>,
}

impl session::Watcher for LoadObserver {
    fn second(&mut self, _: &Second, _: &Snapshot) {}

    fn calls(&mut self, calls: &[CallRecord]) -> anyhow::Result<()> {
        let mut heard = self.shared.lock_received();
        for CallRecord { sample, outcome, .. } in calls {
            // abandoned at the end of the load: its outcome is unknown
            if *outcome == Outcome::Abandoned {
                continue;
            }
            if heard.calls.len() >= CALLS_MAX {
                heard.left_out += 1;
                continue;
            }
            let response = sample.done.max(sample.intended) - sample.intended;
            let lost = *outcome != Outcome::Succeeded;
            heard.calls.push(LoadCall { due: sample.intended, response, lost });
        }
        Ok(())
    }

    fn order(&self) -> Order {
        if self.shared.stop.load(Ordering::Relaxed) { Order::Stop } else { Order::Go }
    }

    fn end(&mut self) {}
}

impl Running {
    /// Waits for `done`, a signal, or the end of the load; returns whether it continues.
    fn wait_for(&self, mut done: impl FnMut(&Heard, Nanos) -> bool) -> bool {
        while crate::signals::received_signal() == 0
            && !done(&self.shared.lock_received(), net::reactor::monotonic())
        {
            if self.alive.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
                return false;
            }
        }
        true
    }

    fn join(self) -> Result<RunReport, Failure> {
        let gone = || Failure::usage("the thread of the background load panicked; this is a bug");
        self.thread.join().map_err(|_| gone())?
    }

    /// Ends the load; its losses become findings of the cases in which they occurred.
    ///
    /// # Errors
    /// Fails if the load failed.
    pub(super) fn end(self, spans: &Spans, cases: &mut [CaseResult]) -> Result<Beside, Failure> {
        let over = net::reactor::monotonic() + REST;
        self.wait_for(|_, now| now >= over);
        self.shared.stop.store(true, Ordering::Relaxed);
        let shared = self.shared.clone();
        let mut run = self.join()?;
        // it lasted as long as the cases
        run.plan = run.plan.lasting(run.measurement.window);
        run.plan_toml = plan::to_toml(&run.plan, plan::Secrets::Masked);
        let Heard { from, calls, left_out } = std::mem::take(&mut *shared.lock_received());
        let from = from.unwrap_or_default();
        let mut felt = load_effect(calls, &spans.over, (from, from + BASE));
        felt.left_out = left_out;
        felt.judge(cases);
        Ok(Beside { felt, run: RunRecord::new(&run) })
    }
}

/// Intervals of the cases.
#[derive(Default)]
pub(super) struct Spans {
    begun: Nanos,
    over: Vec<CaseSpan>,
}

impl Watcher for Spans {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        match event {
            CampaignEvent::CaseBegins(_) => self.begun = net::reactor::monotonic(),
            CampaignEvent::CaseOver(result) if result.skipped.is_none() => {
                let (case, from) = (result.case.id.clone(), self.begun);
                self.over.push(CaseSpan { case, from, until: net::reactor::monotonic() });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Arrivals;
    use units::Rate;

    #[test]
    fn a_burst_is_part_of_the_rate() {
        let of = |per_s, burst| {
            let arrivals = Arrivals { burst, ..Arrivals::constant(Rate(per_s)) };
            let load =
                Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
            rate(&Plan { load, ..Plan::for_url("http://127.0.0.1/".parse().unwrap()) })
        };
        assert_eq!((of(100.0, 50), of(1.0, 50)), (Some(100.0), Some(50.0)));
        assert_eq!((of(100.0, 80), of(20.5, 1)), (Some(160.0), Some(20.5)));
    }

    #[test]
    fn the_load_and_the_cases_together_keep_the_bound() {
        let table = [
            // requested, class, rate of the load, left for the cases
            (None, Class::Local, Some(500.0), Ok(None)),
            (None, Class::Local, None, Ok(None)),
            (Some(100), Class::Local, Some(20.5), Ok(Some(79))),
            (Some(100), Class::Local, Some(99.0), Ok(Some(1))),
            (Some(100), Class::Local, Some(100.0), Err("leaves nothing of --requests-max 100/s")),
            (Some(100), Class::Local, Some(500.0), Err("leaves nothing")),
            (Some(100), Class::Local, None, Err("it has no rate and could exceed")),
            (None, Class::Private, Some(50.0), Ok(Some(100))),
            (None, Class::Private, Some(1_950.0), Ok(Some(50))),
            (None, Class::Private, Some(2_000.0), Err("the limit of 2000 requests per second")),
            // too high in itself: the limits report that
            (Some(3_000), Class::Private, Some(50.0), Ok(Some(3_000))),
        ];
        for (requests_max, class, rate, expected) in table {
            let asked = Asked { requests_max, ..Asked::default() };
            match (remaining_load(asked, class, rate), expected) {
                (Ok(left), Ok(expected)) => assert_eq!(left.requests_max, expected, "{rate:?}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (got, _) => panic!("{requests_max:?} {class:?} {rate:?}: {got:?}"),
            }
        }
    }
}
