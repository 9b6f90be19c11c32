//! Worker threads, and the collector's end of their channel. One thread per worker; this thread
//! merges, watches for signals and shows the live line.

use super::path::EmulatedPath;
use super::sockets::SocketLoop;
use crate::signals;
use anyhow::Context;
use engine::{Collector, Directory, LateShare, Link, Order, Row, Setup, Share, Worker, lanes};
use eventloop::{HeldCount, Network};
use host::cpu::ThreadTime;
use net::reactor::{Reactor, RingReactor};
use ownstack::OwnNetwork;
use sample::{AgentNow, CallRecord, Ends, HeldFacts};
use stats::{Measurement, Second, Snapshot};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::Nanos;
use workload::{Guide, Script, ScriptError};

/// What a worker thread says.
enum Message {
    Row(Box<Row>),
    Calls(Vec<CallRecord>),
    Broken(String),
    Ends(Ends),
    /// What became of the connections that a worker held.
    Held(Box<HeldFacts>),
}

/// Who decides what a worker's users ask for, in place of the plan.
#[derive(Debug)]
pub(crate) enum Cast {
    Script(Box<dyn Script>),
    Guide(Box<dyn Guide>, Box<dyn Directory>),
}

/// Clear snapshots that wait for their next use, per worker.
const SPARES: usize = 2;

/// Messages that may wait for the collector. A log of calls that is written too slowly holds the
/// workers up, which shows as lag, instead of filling memory.
const BACKLOG: usize = 64;

/// Ends a load that nobody watches any more. Every worker looks at it before it issues anything, so
/// that one that was frozen for too long issues nothing when it thaws.
#[derive(Debug)]
#[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "only agents of a fleet have one"))]
pub(crate) struct Leash {
    /// The longest silence.
    most: Nanos,
    heard: AtomicU64,
    /// The part is another's from this instant on.
    end: AtomicU64,
    broken: AtomicBool,
}

#[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "only agents of a fleet have one"))]
impl Leash {
    pub(crate) fn new(most: Nanos, now: Nanos) -> Leash {
        let (heard, end) = (AtomicU64::new(now.0), AtomicU64::new(u64::MAX));
        Leash { most, heard, end, broken: AtomicBool::new(false) }
    }

    /// Whoever watches was there at the instant `at`, as is heard `now`. After too long a silence that
    /// comes too late: when the whole process was frozen, what was sent meanwhile is read first.
    pub(crate) fn hear(&self, at: Nanos, now: Nanos) {
        self.holds(now);
        self.heard.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Whether the load may go on at `now`; once it may not, it never may again.
    pub(crate) fn holds(&self, now: Nanos) -> bool {
        let silence = now - Nanos(self.heard.load(Ordering::Relaxed));
        if silence > self.most || now.0 >= self.end.load(Ordering::Relaxed) {
            self.broken.store(true, Ordering::Relaxed);
        }
        !self.is_broken()
    }

    /// Nothing is issued from the instant `at` on, whatever is heard.
    pub(crate) fn end(&self, at: Nanos) {
        self.end.fetch_min(at.0, Ordering::Relaxed);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
}

/// Parts of the load that the workers of an agent take over while they run.
#[derive(Debug, Default)]
#[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "only agents of a fleet have one"))]
pub(crate) struct Estate {
    /// By worker.
    parts: Mutex<Vec<Vec<LateShare>>>,
    /// Whether there is anything: workers look at this alone, as long as there is nothing.
    given: AtomicBool,
}

#[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "only agents of a fleet have one"))]
impl Estate {
    /// A part for each worker that gets one, from this time after the first instant on.
    pub(crate) fn give(&self, parts: Vec<Option<Share>>, from: Nanos) {
        let mut all = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let workers = all.len().max(parts.len());
        all.resize(workers, Vec::new());
        for (part, own) in parts.into_iter().zip(all.iter_mut()) {
            own.extend(part.map(|share| LateShare { share, from }));
        }
        self.given.store(true, Ordering::Release);
    }

    /// What the worker gets after the first `taken` parts.
    fn part(&self, worker: u32, taken: usize) -> Option<LateShare> {
        if !self.given.load(Ordering::Acquire) {
            return None;
        }
        let all = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(worker as usize)?.get(taken).cloned()
    }
}

/// How a worker thread reaches the collector.
struct ThreadLink {
    worker: u32,
    estate: Option<Arc<Estate>>,
    order: Arc<AtomicU8>,
    leash: Option<Arc<Leash>>,
    out: SyncSender<Message>,
    spares: Receiver<Box<Snapshot>>,
    setup: Arc<Setup>,
    /// Calls have slip: the load is open.
    open: bool,
    /// The clocks when the row before ended.
    before: ThreadTime,
}

impl Link for ThreadLink {
    #[inline]
    fn order(&mut self) -> Order {
        match self.order.load(Ordering::Relaxed) {
            0 if self
                .leash
                .as_ref()
                .is_some_and(|leash| !leash.holds(net::reactor::monotonic())) =>
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
        self.estate.as_ref()?.part(self.worker, taken)
    }

    fn log(&mut self, calls: &mut Vec<CallRecord>) {
        self.out.send(Message::Calls(std::mem::take(calls))).ok();
    }

    fn broken(&mut self, text: String) {
        self.out.send(Message::Broken(text)).ok();
    }

    fn ends(&mut self, ends: &mut Ends) {
        self.out.send(Message::Ends(std::mem::take(ends))).ok();
    }
}

/// What the driver itself spent.
#[derive(Clone, Debug, Default)]
pub(crate) struct DriverCost {
    /// Share of its core that the busiest worker used in the measured window, spinning excluded.
    pub(crate) busiest: f64,
    /// The same of every worker.
    pub(crate) busy: Vec<f64>,
    /// CPU seconds of the process from the start of the run to its end.
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
}

/// A run as it came out of the threads.
pub(crate) struct Finished {
    pub(crate) measurement: Measurement,
    pub(crate) cost: DriverCost,
    /// Where connections were held beside the load.
    pub(crate) held: Option<HeldFacts>,
}

/// Who wants to know of the run while it runs.
pub(crate) trait Watcher {
    fn second(&mut self, second: &Second, total: &Snapshot);
    /// The machines of a fleet, each second, before that second is told.
    #[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "agents are a fleet's"))]
    fn agents(&mut self, _: &[AgentNow]) {}
    /// One worker's interval, before it is merged.
    fn row(&mut self, _row: &Row) {}
    /// Calls with their outcomes, where they are logged. `Err` ends the run.
    fn calls(&mut self, calls: &[CallRecord]) -> anyhow::Result<()>;
    /// Connections and sessions that have ended, where they are recorded.
    fn ends(&mut self, _: &Ends) {}
    /// What the workers are to be told by the word of the watcher.
    fn order(&self) -> Order {
        Order::Go
    }
    /// What ends the load where nobody watches it from afar any more.
    fn leash(&self) -> Option<Arc<Leash>> {
        None
    }
    /// Where parts of the load come from that are taken over while the run goes on.
    fn estate(&self) -> Option<Arc<Estate>> {
        None
    }
    fn end(&mut self);
    /// Everything that was to be kept is on disk, or the error says why not.
    fn close(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// What connections go through; sockets of this host's network where neither is given.
#[derive(Clone, Copy)]
pub(crate) struct Ways<'a> {
    pub(crate) route: Option<&'a Arc<EmulatedPath>>,
    pub(crate) own: Option<&'a Arc<OwnNetwork>>,
    pub(crate) sockets: SocketLoop,
}

/// Runs a prepared plan to its end. `cores`: one for each worker, or empty for no binding;
/// `casts`: the same for who makes the requests, with several loads one for each of them.
pub(crate) fn execute(
    setup: &Arc<Setup>,
    tls: Option<&net::tls::Client>,
    cores: &[u32],
    casts: Vec<Cast>,
    ways: Ways<'_>,
    watcher: &mut dyn Watcher,
) -> anyhow::Result<Finished> {
    let order = Arc::new(AtomicU8::new(0));
    let (out, inbox) = sync_channel(BACKLOG);
    let mut spares = Vec::new();
    let mut threads = Vec::new();
    let before = host::cpu::process_time();
    let mut casts = casts.into_iter();
    let loads = lanes(setup)?;
    let open = loads.iter().any(|load| load.is_open());
    for id in 0..setup.workers {
        let (give, take) = sync_channel(SPARES);
        spares.push(give);
        let link = ThreadLink {
            worker: id,
            estate: watcher.estate(),
            order: order.clone(),
            leash: watcher.leash(),
            out: out.clone(),
            spares: take,
            setup: setup.clone(),
            open,
            before: ThreadTime::default(),
        };
        let seats = loads.iter().map(|load| Berth { setup: load.clone(), cast: casts.next() });
        threads.push(start_worker(seats.collect(), id, tls, cores, ways, link)?);
    }
    drop(out);
    let mut gather = Gather::new(setup, &order, spares);
    let failed = gather.run(&inbox, watcher);
    for thread in threads {
        match thread.join() {
            Ok(driven) => driven.context("a worker could not start its loop")?,
            Err(_) => {
                anyhow::bail!("a worker thread panicked; this is a bug, the results are gone")
            }
        }
    }
    watcher.end();
    failed?;
    let after = host::cpu::process_time();
    let interrupted = signals::caught() > 0;
    let busy = gather.busy();
    let cost = DriverCost {
        busiest: busy.iter().copied().fold(0.0, f64::max),
        busy,
        user_s: (after.user - before.user).as_secs_f64(),
        system_s: (after.system - before.system).as_secs_f64(),
    };
    let held = gather.held.take();
    Ok(Finished { measurement: gather.finish(interrupted), cost, held })
}

/// One load on one core, and who makes its requests.
struct Berth {
    setup: Arc<Setup>,
    cast: Option<Cast>,
}

impl Berth {
    fn worker(self, id: u32, tls: Option<&net::tls::Client>) -> Worker {
        let factory =
            tls.map(|client| -> Box<dyn conduit::TlsFactory + Send> { Box::new(client.factory()) });
        let worker = Worker::new(self.setup, id, factory);
        match self.cast {
            None => worker,
            Some(Cast::Script(script)) => worker.with_script(script),
            Some(Cast::Guide(guide, directory)) => worker.with_guide(guide, directory),
        }
    }
}

/// `seats`: the loads; one, unless the plan has several scenarios.
fn start_worker(
    seats: Vec<Berth>,
    id: u32,
    tls: Option<&net::tls::Client>,
    cores: &[u32],
    ways: Ways<'_>,
    mut link: ThreadLink,
) -> anyhow::Result<std::thread::JoinHandle<std::io::Result<()>>> {
    let plan = seats.first().map(|seat| &seat.setup.plan).context("a run has a load")?;
    let carrier = tls.and_then(|client| crate::over_quic::carrier(plan, client));
    let core = (!cores.is_empty()).then(|| cores[id as usize % cores.len()]);
    let (nice, spin, seed) = (plan.driver.nice, plan.driver.spin, plan.seed);
    let tls = tls.cloned();
    let (route, own, sockets) = (ways.route.cloned(), ways.own.cloned(), ways.sockets);
    // connections of QUIC are never held alongside a load
    let sockets_of_tcp = carrier.is_none() || own.is_some();
    let held = seats.first().filter(|_| sockets_of_tcp).and_then(|seat| part_held(&seat.setup, id));
    let body = move || {
        net::reactor::sharpen_timers();
        if let Some(route) = &route {
            // sockets belong to the network of the thread that opens them
            route.enter()?;
        }
        if let Some(core) = core {
            // a core that has gone away meanwhile: run anywhere
            host::cpu::bind_thread(&[core]).ok();
        }
        if let Some(nice) = nice {
            host::cpu::set_nice(nice).ok();
        }
        link.before = ThreadTime::now();
        let workers = seats.into_iter().map(|seat| seat.worker(id, tls.as_ref())).collect();
        // a crew counts by scenario, even if there is only one
        let scenarios = !link.setup.plan.scenarios.is_empty();
        let network = Ground { id, seed, spin, carrier, own, sockets }.network()?;
        if let Some(facts) = eventloop::run(id, workers, scenarios, network, held, &mut link) {
            // the collector outlives the workers
            link.out.send(Message::Held(Box::new(facts))).ok();
        }
        Ok(())
    };
    let name = format!("worker-{id}");
    Ok(std::thread::Builder::new().name(name).spawn(body)?)
}

/// How many connections worker `id` is to hold, and to whom; `None` where none are held.
fn part_held(setup: &Setup, id: u32) -> Option<HeldCount> {
    let all = setup.plan.connection.idle?;
    let (each, more) = (all / setup.workers, all % setup.workers);
    // each server's first address: the one that answered the first call
    let peers = setup.endpoints.iter().filter_map(|endpoint| endpoint.peers.first());
    Some(HeldCount { count: each + u32::from(id < more), peers: peers.cloned().collect() })
}

/// What the connections of one worker thread are made on.
struct Ground {
    id: u32,
    seed: u64,
    spin: Nanos,
    carrier: Option<crate::over_quic::Carrier>,
    own: Option<Arc<OwnNetwork>>,
    sockets: SocketLoop,
}

impl Ground {
    /// The thread's connections, made on the thread itself.
    fn network(self) -> std::io::Result<Network> {
        let Ground { id, seed, spin, carrier, own, sockets } = self;
        Ok(match (carrier, own) {
            (_, Some(own)) => Network::Own(Box::new(own.worker(id, seed, spin)?)),
            (Some(carrier), None) => crate::over_quic::network(carrier.over(Reactor::new(spin)?)),
            (None, None) if sockets == SocketLoop::Ring => {
                Network::Ring(Box::new(RingReactor::new(spin)?))
            }
            (None, None) => Network::Sockets(Reactor::new(spin)?),
        })
    }
}

/// The collector's side.
struct Gather<'a> {
    collector: Collector,
    order: &'a AtomicU8,
    spares: Vec<SyncSender<Box<Snapshot>>>,
    /// Per worker: CPU and wall time of measured rows, spinning taken off.
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
            self.give_orders(watcher.order());
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

    fn give_orders(&self, wish: Order) {
        if signals::caught() > 0 || wish == Order::Abandon {
            self.order.store(2, Ordering::Relaxed);
        } else if self.collector.aborted().is_some() || wish == Order::Stop {
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

    /// Share of its core that each worker used; 0 before anything was measured.
    fn busy(&self) -> Vec<f64> {
        let share = |(busy, wall): &(Nanos, Nanos)| {
            if wall.is_zero() { 0.0 } else { busy.as_secs_f64() / wall.as_secs_f64() }
        };
        self.busy.iter().map(share).collect()
    }

    fn finish(self, interrupted: bool) -> Measurement {
        self.collector.finish(interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leash_breaks_by_silence_and_a_late_word_mends_nothing() {
        let at = Nanos::from_secs;
        let leash = Leash::new(at(5), at(100));
        assert!(leash.holds(at(105)));
        leash.hear(at(104), at(104));
        assert!(leash.holds(at(109)));
        // frozen: the word that waited in the socket is read before a worker looks
        leash.hear(at(108), at(110));
        assert!(!leash.holds(at(108)));
        let leash = Leash::new(at(5), at(100));
        // a worker looks first
        assert!(!leash.holds(at(106)));
        leash.hear(at(106), at(106));
        assert!(!leash.holds(at(106)) && leash.is_broken());
    }
}
