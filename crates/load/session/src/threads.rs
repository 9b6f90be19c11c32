//! Worker threads, and the collector's end of their channel. One thread per worker; this thread
//! merges, watches for signals and shows the live line.

use crate::console::inherited;
use crate::grpc_tls::RuledTls;
use crate::network::{ConnectionKind, Network};
use crate::signals;
use crate::watcher::{Lease, Takeovers, Watcher};
use anyhow::Context;
use engine::{Collector, Directory, LateShare, Link, Order, Row, Setup, Worker};
use eventloop::HeldCount;
use host::cpu::ThreadTime;
use record::run::RunReport;
use sample::{CallRecord, Ends, HeldFacts};
use stats::Snapshot;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use units::Nanos;
use workload::{Guide, RequestMaker, Script, ScriptError};

/// Message of a worker thread.
enum Message {
    Row(Box<Row>),
    Calls(Vec<CallRecord>),
    Broken(String),
    Ends(Ends),
    /// Final state of the connections that a worker held.
    Held(Box<HeldFacts>),
}

/// Source of a worker's requests, instead of the plan.
#[derive(Debug)]
pub enum RequestSource {
    Script(Box<dyn Script>),
    Guide(Box<dyn Guide>, Box<dyn Directory>),
    /// Only the content of requests, call by call.
    Maker(Box<dyn RequestMaker>),
}

/// Number of clear snapshots for reuse, per worker.
const SPARES: usize = 2;

/// Maximum number of messages queued for the collector. A log of calls that is written too slowly
/// delays the workers, which shows as lag, instead of filling memory.
const BACKLOG: usize = 64;

/// A worker thread's channel to the collector.
struct ThreadLink {
    worker: u32,
    takeovers: Option<Arc<Takeovers>>,
    order: Arc<AtomicU8>,
    lease: Option<Arc<Lease>>,
    out: SyncSender<Message>,
    spares: Receiver<Box<Snapshot>>,
    setup: Arc<Setup>,
    /// The load is open: its calls have slip.
    open: bool,
    /// The clocks at the end of the previous row.
    before: ThreadTime,
}

impl Link for ThreadLink {
    #[inline]
    fn order(&mut self) -> Order {
        match self.order.load(Ordering::Relaxed) {
            0 if self
                .lease
                .as_ref()
                .is_some_and(|lease| !lease.holds(net::reactor::monotonic())) =>
            {
                Order::Stop
            }
            0 => Order::Go,
            1 => Order::Stop,
            _ => Order::Abandon,
        }
    }

    fn row(&mut self, mut row: Row) -> Box<Snapshot> {
        let now = ThreadTime::now();
        let ThreadTime { cpu, wall } = now.since(self.before);
        (row.cpu, row.passed) = (cpu, wall);
        self.before = now;
        // the collector outlives the workers: it joins them
        self.out.send(Message::Row(Box::new(row))).ok();
        self.spares.try_recv().unwrap_or_else(|_| {
            let mut fresh = self.setup.fresh_snapshot();
            if self.open {
                fresh.expect_slip();
            }
            fresh
        })
    }

    fn more(&mut self, taken: usize) -> Option<LateShare> {
        self.takeovers.as_ref()?.part(self.worker, taken)
    }

    fn log(&mut self, calls: &mut Vec<CallRecord>) {
        self.out.send(Message::Calls(std::mem::take(calls))).ok();
    }

    fn report_script_failure(&mut self, text: String) {
        self.out.send(Message::Broken(text)).ok();
    }

    fn ends(&mut self, ends: &mut Ends) {
        self.out.send(Message::Ends(std::mem::take(ends))).ok();
    }
}

/// The workers of a run, before they start.
pub(crate) struct WorkerThreads<'a> {
    pub(crate) setup: &'a Arc<Setup>,
    pub(crate) tls: Option<&'a net::tls::Client>,
    /// Core for each worker; empty for no binding.
    pub(crate) cores: &'a [u32],
    pub(crate) network: &'a Network,
    /// Source of requests for each worker; with several loads, one for each load.
    pub(crate) sources: Vec<RequestSource>,
}

impl WorkerThreads<'_> {
    /// Runs the workers to their end, and adds the measurements and their cost. Returns the largest
    /// share of its time that a worker waited for a core, 0..=1.
    ///
    /// # Errors
    /// Fails if a worker cannot start, a script fails, or a watcher cannot continue.
    pub(crate) fn run(self, watcher: &mut dyn Watcher, run: &mut RunReport) -> anyhow::Result<f64> {
        let (setup, order) = (self.setup, Arc::new(AtomicU8::new(0)));
        let before = host::cpu::process_time();
        let Started { inbox, spares, threads } = self.start(&order, watcher)?;
        let mut gather = Gather::new(setup, &order, spares);
        let failed = gather.run(&inbox, watcher);
        let mut waited = 0.0_f64;
        for thread in threads {
            match thread.join() {
                Ok(driven) => {
                    waited = waited.max(driven.context("a worker could not start its loop")?);
                }
                Err(_) => {
                    anyhow::bail!(
                        "a worker thread panicked; this is a bug, and the results are lost"
                    )
                }
            }
        }
        watcher.end();
        failed?;
        let after = host::cpu::process_time();
        let interrupted = signals::received_signal() > 0;
        run.driver.busy = gather.core_shares();
        run.driver.cpu_user_s = (after.user - before.user).as_secs_f64();
        run.driver.cpu_system_s = (after.system - before.system).as_secs_f64();
        run.held = gather.held.take();
        run.measurement = gather.collector.finish(interrupted);
        Ok(waited)
    }

    /// Starts a thread for each worker.
    fn start(mut self, order: &Arc<AtomicU8>, watcher: &dyn Watcher) -> anyhow::Result<Started> {
        let (out, inbox) = sync_channel(BACKLOG);
        let (mut spares, mut threads) = (Vec::new(), Vec::new());
        let loads = self.setup.per_scenario()?;
        let open = loads.iter().any(|load| load.is_open());
        let mut sources = std::mem::take(&mut self.sources).into_iter();
        for id in 0..self.setup.workers {
            let (give, take) = sync_channel(SPARES);
            spares.push(give);
            let link = ThreadLink {
                worker: id,
                takeovers: watcher.takeovers(),
                order: order.clone(),
                lease: watcher.lease(),
                out: out.clone(),
                spares: take,
                setup: self.setup.clone(),
                open,
                before: ThreadTime::default(),
            };
            let loads = loads.iter();
            let loads = loads.map(|load| CoreLoad { setup: load.clone(), source: sources.next() });
            threads.push(self.start_worker(loads.collect(), id, link)?);
        }
        Ok(Started { inbox, spares, threads })
    }
}

/// Thread of a worker, with the share of its time that it waited for a core, 0..=1.
type WorkerThread = JoinHandle<std::io::Result<f64>>;

/// Running workers, with the collector's end of their channels.
struct Started {
    inbox: Receiver<Message>,
    spares: Vec<SyncSender<Box<Snapshot>>>,
    threads: Vec<WorkerThread>,
}

/// One load on one core, with the source of its requests.
struct CoreLoad {
    setup: Arc<Setup>,
    source: Option<RequestSource>,
}

impl CoreLoad {
    fn worker(self, id: u32, tls: Option<&net::tls::Client>) -> Worker {
        let rules = match &self.source {
            Some(RequestSource::Guide(guide, _)) => guide.grpc_tls(),
            _ => None,
        };
        let factory = tls.map(|client| -> Box<dyn conduit::TlsFactory + Send> {
            let plain = client.factory();
            match rules {
                Some(rules) => Box::new(RuledTls::new(&self.setup.plan, plain, rules)),
                None => Box::new(plain),
            }
        });
        let worker = Worker::new(self.setup, id, factory);
        match self.source {
            None => worker,
            Some(RequestSource::Script(script)) => worker.with_script(script),
            Some(RequestSource::Guide(guide, directory)) => worker.with_guide(guide, directory),
            Some(RequestSource::Maker(maker)) => worker.with_maker(maker),
        }
    }
}

impl WorkerThreads<'_> {
    /// Starts a worker. `loads`: a single load, unless the plan has several scenarios.
    fn start_worker(
        &self,
        loads: Vec<CoreLoad>,
        id: u32,
        mut link: ThreadLink,
    ) -> anyhow::Result<WorkerThread> {
        let plan = loads.first().map(|load| &load.setup.plan).context("a run has a load")?;
        let kind = ConnectionKind::new(plan, self.tls);
        let cores = self.cores;
        let core = (!cores.is_empty()).then(|| cores[id as usize % cores.len()]);
        let (nice, spin, seed) = (plan.driver.nice, plan.driver.spin, plan.seed);
        let tls = self.tls.cloned();
        let network = self.network.clone();
        // QUIC connections are never held alongside a load
        let over_quic = matches!(kind, ConnectionKind::Quic(_) | ConnectionKind::SharedQuic(..));
        let sockets_of_tcp = !over_quic || network.own().is_some();
        let held = loads
            .first()
            .filter(|_| sockets_of_tcp)
            .and_then(|load| held_count_of(&load.setup, id));
        let body = move || {
            net::reactor::minimize_timer_slack();
            if let Some(route) = network.route() {
                // sockets belong to the network of the thread that opens them
                route.enter()?;
            }
            if let Some(core) = core {
                // a core that has disappeared meanwhile: run anywhere
                host::cpu::bind_thread(&[core]).ok();
            }
            if let Some(nice) = nice {
                host::cpu::set_nice(nice).ok();
            }
            let start = CoreWait::now();
            link.before = ThreadTime::now();
            let workers = loads.into_iter().map(|load| load.worker(id, tls.as_ref())).collect();
            // workers of scenarios are counted by scenario, even if there is only one
            let scenarios = !link.setup.plan.scenarios.is_empty();
            let connections = network.of_worker(id, seed, spin, kind)?;
            if let Some(facts) =
                eventloop::run(id, workers, scenarios, connections, held, &mut link)
            {
                // the collector outlives the workers
                link.out.send(Message::Held(Box::new(facts))).ok();
            }
            Ok(start.share())
        };
        let name = format!("worker-{id}");
        Ok(std::thread::Builder::new().name(name).spawn(inherited(body))?)
    }
}

/// The wait of the calling thread for a core, from an instant on.
struct CoreWait {
    start: Nanos,
    waited: Option<Nanos>,
}

impl CoreWait {
    fn now() -> CoreWait {
        CoreWait { start: net::reactor::monotonic(), waited: host::cpu::core_wait() }
    }

    /// Returns the share of the time since then, 0..=1; 0 if it is unknown.
    fn share(&self) -> f64 {
        let wall = (net::reactor::monotonic() - self.start).as_secs_f64();
        let waits = self.waited.zip(host::cpu::core_wait());
        waits.map_or(0.0, |(before, now)| ((now - before).as_secs_f64() / wall.max(1e-9)).min(1.0))
    }
}

/// Returns the number of connections that worker `id` holds, and their servers; `None` if none are
/// held.
fn held_count_of(setup: &Setup, id: u32) -> Option<HeldCount> {
    let all = setup.plan.connection.idle?;
    let (each, more) = (all / setup.workers, all % setup.workers);
    // each server's first address: the one that answered the first call
    let peers = setup.endpoints.iter().filter_map(|endpoint| endpoint.peers.first());
    Some(HeldCount { count: each + u32::from(id < more), peers: peers.cloned().collect() })
}

/// State of the thread that collects snapshots.
struct Gather<'a> {
    collector: Collector,
    order: &'a AtomicU8,
    spares: Vec<SyncSender<Box<Snapshot>>>,
    /// Per worker: CPU and wall time of measured rows, excluding spinning.
    busy: Vec<(Nanos, Nanos)>,
    measure_from: Nanos,
    measure_until: Nanos,
    held: Option<HeldFacts>,
}

impl<'a> Gather<'a> {
    fn new(
        setup: &Arc<Setup>,
        order: &'a AtomicU8,
        spares: Vec<SyncSender<Box<Snapshot>>>,
    ) -> Self {
        Gather {
            collector: Collector::new(setup.clone()),
            order,
            busy: vec![(Nanos::ZERO, Nanos::ZERO); spares.len()],
            spares,
            measure_from: setup.measure_from(),
            measure_until: setup.measure_until(),
            held: None,
        }
    }

    fn run(&mut self, inbox: &Receiver<Message>, watcher: &mut dyn Watcher) -> anyhow::Result<()> {
        let mut trouble = Ok(());
        loop {
            self.send_order(watcher.order());
            match inbox.recv_timeout(Duration::from_millis(50)) {
                Ok(Message::Row(row)) => self.row(*row, watcher),
                Ok(Message::Ends(ends)) => watcher.ends(&ends),
                Ok(Message::Held(held)) => match &mut self.held {
                    Some(sum) => sum.add(&held),
                    None => self.held = Some(*held),
                },
                Ok(Message::Calls(calls)) => {
                    if trouble.is_ok()
                        && let Err(error) = watcher.calls(&calls)
                    {
                        trouble = Err(error);
                        self.order.store(2, Ordering::Relaxed);
                    }
                }
                Ok(Message::Broken(text)) => {
                    if trouble.is_ok() {
                        trouble = Err(ScriptError(text).into());
                    }
                    self.order.store(2, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return trouble,
            }
        }
    }

    fn send_order(&self, wish: Order) {
        if signals::received_signal() > 0 || wish == Order::Abandon {
            self.order.store(2, Ordering::Relaxed);
        } else if self.collector.is_over() || wish == Order::Stop {
            self.order.fetch_max(1, Ordering::Relaxed);
        }
    }

    fn row(&mut self, row: Row, watcher: &mut dyn Watcher) {
        let worker = row.worker as usize;
        watcher.row(&row);
        if row.start >= self.measure_from && row.end <= self.measure_until + Nanos::SECOND {
            let (busy, wall) = &mut self.busy[worker];
            *busy += row.cpu - row.snapshot.spin;
            *wall += row.passed;
        }
        let (clear, seconds) = self.collector.add(row);
        let seconds = seconds.to_vec();
        self.spares[worker].try_send(clear).ok();
        for second in &seconds {
            watcher.second(second, self.collector.total());
        }
    }

    /// Returns the share of its core that each worker used; 0 before anything was measured.
    fn core_shares(&self) -> Vec<f64> {
        let share = |(busy, wall): &(Nanos, Nanos)| {
            if wall.is_zero() { 0.0 } else { busy.as_secs_f64() / wall.as_secs_f64() }
        };
        self.busy.iter().map(share).collect()
    }
}
