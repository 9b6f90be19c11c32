//! An agent of a fleet: waits for plans, runs its part of them and sends its counts.

use crate::bundle::Bundle;
use crate::fleet_run::{plan_hash, refusal};
use crate::plan_bundle::PlanBundle;
use crate::usage;
use engine::{Order, Row, Share};
use fleet::protocol::agent::{Agent, AgentAction, ReadyFacts};
use fleet::protocol::message::{self, Final, FinalCause, FromAgent, Hello, PartEnding};
use fleet::protocol::stamp::Stamped;
use fleet::protocol::{DEAD_MAN, PROTOCOL};
use fleet::{Credentials, Incoming, NatsEndpoint, NatsLink, SealKey, Subjects};
use plan::Plan;
use record::run::PathRecord;
use report::RunReport;
use sample::CallRecord;
use session::console::print_message;
use session::exit::{Code, Failure};
use session::{
    Calibration, Lease, MachinePart, Observers, RunLoad, Session, Takeovers, Watcher, rate_peak,
    signals,
};
use stats::{Second, Snapshot};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use units::{Nanos, Rate};
use url::Url;

/// Maximum wait of the machine between calls.
const TURN: Duration = Duration::from_millis(20);

/// Message from the thread that runs a plan to the thread that talks to the manager.
enum Word {
    Prepared { step: u64, hash: String, outcome: Result<Box<ReadyPlan>, String> },
    Row(Vec<u8>),
    Over(Box<Final>),
}

/// Plan that is ready to run.
struct ReadyPlan {
    session: Session,
    hash: String,
}

/// Orders to the workers' thread, without a lock.
struct Orders {
    /// 0: continue; 1: stop; 2: abandon.
    order: AtomicU8,
    /// Dead-man switch.
    lease: Arc<Lease>,
    /// Parts taken over from other agents.
    takeovers: Arc<Takeovers>,
}

impl Orders {
    fn new(watched: Nanos) -> Arc<Orders> {
        let (lease, takeovers) = (Arc::new(Lease::new(DEAD_MAN, watched)), Arc::default());
        Arc::new(Orders { order: AtomicU8::new(0), lease, takeovers })
    }
}

/// Terms under which an agent joins a fleet.
#[derive(Debug)]
pub struct AgentTask {
    pub endpoint: NatsEndpoint,
    /// File with the agent's credentials.
    pub creds: PathBuf,
    /// Longest wait for the server.
    pub wait: Nanos,
    pub labels: Vec<(String, String)>,
    /// True to accept plans with scripts.
    pub allow_scripts: bool,
    /// Maximum rate of this agent; refuses loads without a rate.
    pub rate_max: Option<Rate>,
    /// Hosts that plans may call; empty: all.
    pub targets: Vec<String>,
}

/// Runs until the fleet is disbanded.
///
/// # Errors
/// Fails without valid credentials or a server.
pub fn agent(task: &AgentTask) -> Result<Code, Failure> {
    let credentials = Credentials::read(&task.creds).map_err(usage)?;
    let seal_key = SealKey::generate().map_err(usage)?;
    let hello = hello(task, &seal_key);
    let subjects = Subjects::new(&credentials.fleet);
    let id = credentials.id();
    let listen = vec![subjects.command(), subjects.agent_subject(&id)];
    let patience = Duration::from_secs_f64(task.wait.as_secs_f64());
    let link = NatsLink::connect(&task.endpoint, &credentials, listen, patience).map_err(usage)?;
    let (give, words) = channel();
    let mut post = AgentPost {
        machine: Agent::new(&id, hello, net::reactor::monotonic()),
        link,
        subjects,
        id,
        seal_key,
        orders: Orders::new(net::reactor::monotonic()),
        ready: None,
        give,
        scripts: task.allow_scripts,
        rate_max: task.rate_max.map(|rate| rate.0),
        hosts: task.targets.clone(),
        dead_man: false,
    };
    post.run(&words)
}

/// Returns an id for this process, derived from its key, which no other process has.
pub(crate) fn session(key: &SealKey) -> u64 {
    key.public().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)).max(1)
}

fn hello(task: &AgentTask, key: &SealKey) -> Hello {
    let environment = host::environment();
    let calibration = Calibration::load(&environment);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Hello {
        protocol: PROTOCOL,
        build: environment.version.clone(),
        host: environment.host.clone(),
        boot: boot.trim().to_owned(),
        cores: host::cpu::affinity().len() as u32,
        memory_bytes: environment.memory_bytes,
        calls_per_core: calibration.map_or(0.0, |known| known.calls_per_s),
        labels: task.labels.iter().cloned().collect(),
        seal_key: key.public().to_vec(),
        session: session(key),
        proof: 0,
        scripts: task.allow_scripts,
        rate_max: task.rate_max.map(|rate| rate.0),
    }
}

/// Handle of the thread that talks to the manager.
struct AgentPost {
    machine: Agent,
    link: NatsLink,
    subjects: Subjects,
    id: String,
    seal_key: SealKey,
    orders: Arc<Orders>,
    ready: Option<Box<ReadyPlan>>,
    give: Sender<Word>,
    scripts: bool,
    rate_max: Option<f64>,
    hosts: Vec<String>,
    dead_man: bool,
}

impl AgentPost {
    fn run(&mut self, words: &Receiver<Word>) -> Result<Code, Failure> {
        loop {
            match self.link.inbox.recv_timeout(TURN) {
                Ok(Incoming::Message { subject, bytes, at }) => self.message(&subject, &bytes, at),
                Ok(Incoming::Refused(why)) => print_message(&format!("the server refuses: {why}")),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::usage("the network's thread ended; this is a bug"));
                }
            }
            while let Ok(word) = words.try_recv() {
                self.word(word);
            }
            let now = net::reactor::monotonic();
            self.machine.tick(now);
            self.orders.lease.renew(self.machine.watched_at(), now);
            while let Some(action) = self.machine.next_action() {
                if let Some(code) = self.act(action)? {
                    return Ok(code);
                }
            }
            if signals::received_signal() > 0 {
                self.orders.order.store(2, Ordering::Relaxed);
                let leaving = self.machine.leave("ended by a signal");
                self.send(&leaving);
                return Ok(Code::Interrupted);
            }
        }
    }

    fn send(&self, content: &Stamped<FromAgent>) {
        self.link.sender().send(self.subjects.from(&self.id), message::write(content));
    }

    fn message(&mut self, subject: &str, bytes: &[u8], at: Nanos) {
        if subject == self.subjects.command() {
            match message::read(bytes) {
                Ok(command) => self.machine.commanded(&command, at),
                Err(why) => print_message(&why),
            }
        } else {
            match message::read(bytes) {
                Ok(content) => self.machine.receive(content, at),
                Err(why) => print_message(&why),
            }
        }
    }

    fn word(&mut self, word: Word) {
        match word {
            Word::Prepared { step, hash, outcome } => {
                let facts = match &outcome {
                    Ok(ready) => Ok(ReadyFacts {
                        hash: ready.hash.clone(),
                        workers: ready.session.workers(),
                        rate_peak: rate_peak(ready.session.plan()).ok(),
                    }),
                    Err(why) => Err(why.clone()),
                };
                // nothing is kept of an obsolete plan
                if self.machine.prepared(step, &hash, facts) {
                    self.ready = outcome.ok();
                }
            }
            Word::Row(row) => self.machine.row(row),
            Word::Over(report) => {
                self.dead_man |= report.ending == PartEnding::DeadMan;
                self.machine.report_end(*report, net::reactor::monotonic());
            }
        }
    }

    fn act(&mut self, action: AgentAction) -> Result<Option<Code>, Failure> {
        match action {
            AgentAction::Say(content) => self.send(&content),
            AgentAction::Row(row) => self.link.sender().send(self.subjects.rows(&self.id), row),
            AgentAction::Prepare { step, hash, sealed } => self.prepare(step, &hash, &sealed)?,
            AgentAction::Take { parts, from } => self.orders.takeovers.give(parts, from),
            AgentAction::Run { run, step, shares, start } => {
                self.start((run, step), shares, start)?
            }
            AgentAction::Cease { at } => self.orders.lease.end(at),
            AgentAction::Stop => drop(self.orders.order.fetch_max(1, Ordering::Relaxed)),
            AgentAction::Abandon => self.orders.order.store(2, Ordering::Relaxed),
            AgentAction::Exit { done, why } => {
                print_message(&why);
                let code = if done && !self.dead_man { Code::Done } else { Code::Missed };
                return Ok(Some(code));
            }
        }
        Ok(None)
    }

    /// Prepares a plan on a separate thread: names are looked up, certificate files are read.
    fn prepare(&mut self, step: u64, hash: &str, sealed: &[u8]) -> Result<(), Failure> {
        // frees the devices of an earlier preparation that was not started
        self.ready = None;
        let opened = self.seal_key.open(sealed).map_err(|error| error.to_string());
        let (give, hash) = (self.give.clone(), hash.to_owned());
        let (scripts, rate_max, hosts) = (self.scripts, self.rate_max, self.hosts.clone());
        let body = move || {
            let outcome = opened.and_then(|text| {
                let consent = Consent { scripts, rate_max, hosts: &hosts };
                ready(&text, &hash, &consent)
            });
            give.send(Word::Prepared { step, hash, outcome }).ok();
        };
        let thread = std::thread::Builder::new().name("prepare".into()).spawn(body);
        thread.map_err(|error| Failure::usage(format!("cannot start a thread: {error}")))?;
        Ok(())
    }

    fn start(&mut self, step: (u64, u64), shares: Vec<Share>, start: Nanos) -> Result<(), Failure> {
        let Some(mut ready) = self.ready.take() else { return Ok(()) };
        self.orders = Orders::new(self.machine.watched_at());
        ready.session.take_part(MachinePart { shares, start });
        let (give, orders) = (self.give.clone(), self.orders.clone());
        let body = move || {
            let report = guarded(|| run_part_of_plan(step, &ready, &give, &orders));
            give.send(Word::Over(Box::new(report))).ok();
        };
        let thread = std::thread::Builder::new().name("run".into()).spawn(body);
        thread.map_err(|error| Failure::usage(format!("cannot start a thread: {error}")))?;
        Ok(())
    }
}

/// Permissions set by the agent's operator.
struct Consent<'a> {
    scripts: bool,
    rate_max: Option<f64>,
    /// Hosts that may be called; empty for any.
    hosts: &'a [String],
}

impl Consent<'_> {
    /// Checks a plan against the agent's own rules. `met`: hosts, as URLs, that the first call was
    /// redirected to.
    fn check(&self, plan: &Plan, met: &[Url]) -> Result<(), String> {
        let scripted = plan.journeys.as_ref().is_some_and(|it| it.is_scripted());
        if (plan.script.is_some() || scripted) && !self.scripts {
            return Err("its operator did not allow scripts: start it with --allow-scripts".into());
        }
        if !self.hosts.is_empty() {
            self.check_places(plan, met)?;
        }
        // an open load's part is compared with the ceiling once it is known
        if let (Some(most), Err(why)) = (self.rate_max, rate_peak(plan)) {
            let most = units::show::rate(most);
            return Err(format!("its operator allows {most}, and {why}, or see --rate-max"));
        }
        Ok(())
    }
}

impl Consent<'_> {
    fn allows(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| crate::budget::is_same_host(known, host))
    }

    /// Checks that the operator allowed every destination of the plan.
    fn check_places(&self, plan: &Plan, met: &[Url]) -> Result<(), String> {
        let refused =
            |what: String| Err(format!("its operator did not allow {what}: see --targets"));
        let (journeys, connection) = (plan.journeys.as_ref(), &plan.connection);
        let further = journeys.into_iter().flat_map(|it| it.further_servers());
        let targets = plan.targets.iter().map(|target| &target.url);
        for url in targets.chain(further).chain(&connection.proxy).chain(&plan.token.url).chain(met)
        {
            let host = url.host_str().unwrap_or_default();
            if !self.allows(host) {
                return refused(format!("the target {host}"));
            }
        }
        if let Some(socket) = &connection.unix {
            return refused(format!("the Unix socket {}", socket.display()));
        }
        for rule in &connection.resolve {
            if !self.allows(&rule.address.to_string()) {
                return refused(format!("the address {} for {}", rule.address, rule.host));
            }
        }
        match journeys.and_then(|it| it.step_with_variable_host()) {
            Some(step) => refused(format!("the step {}, whose values set its host", step.name)),
            None => Ok(()),
        }
    }
}

/// Reads a plan and prepares everything for a part of it.
fn ready(bytes: &[u8], hash: &str, consent: &Consent<'_>) -> Result<Box<ReadyPlan>, String> {
    let plan_bundle = PlanBundle::read(bytes)?;
    let plan = plan_bundle.plan()?;
    let own = plan_hash(&plan);
    if own != hash {
        return Err(
            "it interprets the plan differently than the manager: use the same version of \
                    loadstone on both"
                .into(),
        );
    }
    if let Some(why) = refusal(&plan) {
        return Err(why.into());
    }
    consent.check(&plan, &plan_bundle.redirected_hosts()?)?;
    let session = plan_bundle.open(&plan).map_err(|error| format!("{error:#}"))?;
    Ok(Box::new(ReadyPlan { session, hash: own }))
}

/// Runs the agent's part of the plan, with the same code as on a single machine.
fn run_part_of_plan(
    step: (u64, u64),
    ready: &ReadyPlan,
    give: &Sender<Word>,
    orders: &Arc<Orders>,
) -> Final {
    let first = Arc::new(AtomicU64::new(u64::MAX));
    let mut watch = |setup: &engine::Setup| -> Box<dyn Watcher> {
        let bundle = Bundle::new(step, setup.start, setup.workers);
        Box::new(Reporter {
            bundle,
            give: give.clone(),
            orders: orders.clone(),
            first: first.clone(),
        })
    };
    match ready.session.measure(&RunLoad::Repeat(0), Observers::new(&mut watch)) {
        Ok(run) => {
            let mut report = own_words(&run);
            let first = first.load(Ordering::Relaxed);
            report.first_s = (first < u64::MAX).then_some(first as f64 / 1e9);
            if orders.lease.is_broken() {
                report.ending = PartEnding::DeadMan;
            }
            report
        }
        Err(error) => failed(format!("{error:#}")),
    }
}

/// Runs the part; returns a result even if a bug ends it, because the manager waits for one.
fn guarded(work: impl FnOnce() -> Final) -> Final {
    // no data of the part is used after a panic
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        failed(format!("{text}; this is a bug"))
    })
}

fn failed(why: String) -> Final {
    Final { ending: PartEnding::Failed, trouble: Some(why), ..Final::default() }
}

fn own_words(measured: &RunReport) -> Final {
    let total = &measured.measurement.total;
    let response = total.response();
    let path = measured.path.as_ref().map(PathRecord::new);
    let cause = |cause: &stats::Cause| FinalCause {
        id: cause.id.id().to_owned(),
        text: cause.text.clone(),
        advice: cause.advice.clone(),
    };
    Final {
        state: measured.verdict.state.id().to_owned(),
        causes: measured.verdict.causes.iter().map(cause).collect(),
        p50_s: response.quantile(0.5).as_secs_f64(),
        p99_s: response.quantile(0.99).as_secs_f64(),
        slip_p99_s: total.slip.quantile(0.99).as_secs_f64(),
        offered: stats::verdict::offered(total),
        busy: measured.driver.busy.clone(),
        user_s: measured.driver.cpu_user_s,
        system_s: measured.driver.cpu_system_s,
        path: path.and_then(|path| serde_json::to_string(&path).ok()),
        ..Final::default()
    }
}

/// Sends rows while the plan runs, and obeys the manager's orders.
struct Reporter {
    bundle: Bundle,
    give: Sender<Word>,
    orders: Arc<Orders>,
    first: Arc<AtomicU64>,
}

impl Watcher for Reporter {
    fn second(&mut self, _: &Second, _: &Snapshot) {}

    fn row(&mut self, row: &Row) {
        for message in self.bundle.add(row) {
            self.give.send(Word::Row(message)).ok();
        }
        if let Some(first) = self.bundle.first_late() {
            self.first.store(first.0, Ordering::Relaxed);
        }
    }

    fn calls(&mut self, _: &[CallRecord]) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns the current order. Also checks the dead-man switch, which idle workers check rarely.
    fn order(&self) -> Order {
        match self.orders.order.load(Ordering::Relaxed) {
            0 if !self.orders.lease.holds(net::reactor::monotonic()) => Order::Stop,
            0 => Order::Go,
            1 => Order::Stop,
            _ => Order::Abandon,
        }
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        Some(self.orders.lease.clone())
    }

    fn takeovers(&self) -> Option<Arc<Takeovers>> {
        Some(self.orders.takeovers.clone())
    }

    fn end(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consent(text: &str, met: &[&str]) -> Result<(), String> {
        let plan = plan::from_toml(
            &format!("version = 1\nurl = 'http://a.example/'\n{text}"),
            &plan::NoFiles,
        );
        let met: Vec<Url> = met.iter().map(|url| url.parse().unwrap()).collect();
        let hosts = ["a.example".to_owned(), "192.0.2.1".to_owned(), "[2001:db8::1]".to_owned()];
        Consent { scripts: false, rate_max: None, hosts: &hosts }.check(&plan.unwrap(), &met)
    }

    #[test]
    fn a_panic_ends_the_part_with_a_message() {
        let report = guarded(|| panic!("row 7 of {}", 3));
        let trouble = report.trouble.unwrap_or_default();
        assert_eq!((report.ending, &*trouble), (PartEnding::Failed, "row 7 of 3; this is a bug"));
        assert_eq!(guarded(Final::default), Final::default());
    }

    #[test]
    fn allowed_targets_bind_every_connection() {
        let resolve =
            |address: &str| format!("[connection]\nresolve = ['a.example:80:{address}']\n");
        let journey = |url: &str| {
            format!(
                "[[feeder]]\nname = 'f'\ngenerate = {{ v = ['x'] }}\n[[journey]]\nname = 'j'\n\
                 [[journey.step]]\nname = 's'\nurl = '{url}'\n"
            )
        };
        for allowed in ["", &resolve("192.0.2.1"), &resolve("2001:db8::1"), &journey("/{{f.v}}")] {
            assert_eq!(consent(allowed, &["http://a.example:8080"]), Ok(()), "{allowed}");
        }
        let elsewhere = [
            (resolve("192.0.2.2"), "the address 192.0.2.2 for a.example"),
            ("[connection]\nunix = '/run/other'\n".to_owned(), "the Unix socket /run/other"),
            ("[connection]\nproxy = 'http://b.example:3128'\n".to_owned(), "the target b.example"),
            (journey("{{f.v}}"), "the step s"),
            (journey("http://b.example/"), "the target b.example"),
        ];
        for (text, reason) in &elsewhere {
            let why = consent(text, &[]).unwrap_err();
            assert!(why.contains(reason) && why.contains("--targets"), "{why}");
        }
        let why = consent("", &["https://c.example:443"]).unwrap_err();
        assert!(why.contains("the target c.example"), "{why}");
    }
}
