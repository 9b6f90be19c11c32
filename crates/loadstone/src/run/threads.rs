//! Worker threads, and the collector's end of their channel. One thread per worker; this thread
//! merges, watches for signals and shows the live line.

use super::path::EmulatedPath;
use crate::signals;
use anyhow::Context;
use engine::{Collector, Crew, Directory, Driven, Link, Order, Row, Setup, Worker, drive, lanes};
use host::cpu::ThreadTime;
use ownstack::OwnNetwork;
use reactor::Reactor;
use sample::{CallRecord, Ends};
use stats::{Measurement, Second, Snapshot};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use units::Nanos;
use workload::{Guide, Script, ScriptError};

/// What a worker thread says.
enum Message {
    Row(Box<Row>),
    Calls(Vec<CallRecord>),
    Broken(String),
    Ends(Ends),
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

/// How a worker thread reaches the collector.
struct ThreadLink {
    order: Arc<AtomicU8>,
    out: SyncSender<Message>,
    spares: Receiver<Box<Snapshot>>,
    target_count: usize,
    /// Calls have slip: the load is open.
    open: bool,
    /// The clocks when the row before ended.
    before: ThreadTime,
}

impl Link for ThreadLink {
    #[inline]
    fn order(&mut self) -> Order {
        match self.order.load(Ordering::Relaxed) {
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
            let mut fresh = Box::new(Snapshot::prepared(self.target_count));
            if self.open {
                fresh.expect_slip();
            }
            fresh
        })
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
}

/// Who wants to know of the run while it runs.
pub(crate) trait Watcher {
    fn second(&mut self, second: &Second, total: &Snapshot);
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
}

/// Runs a prepared plan to its end. `cores`: one for each worker, or empty for no binding;
/// `casts`: the same for who makes the requests, with several loads one for each of them.
pub(crate) fn execute(
    setup: &Arc<Setup>,
    tls: Option<&tls::Client>,
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
            order: order.clone(),
            out: out.clone(),
            spares: take,
            target_count: setup.targets.len(),
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
    Ok(Finished { measurement: gather.finish(interrupted), cost })
}

/// One load on one core, and who makes its requests.
struct Berth {
    setup: Arc<Setup>,
    cast: Option<Cast>,
}

impl Berth {
    fn worker(self, id: u32, tls: Option<&tls::Client>) -> Worker {
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

/// `seats`: the loads; one, unless the plan has scenarios.
fn start_worker(
    seats: Vec<Berth>,
    id: u32,
    tls: Option<&tls::Client>,
    cores: &[u32],
    ways: Ways<'_>,
    mut link: ThreadLink,
) -> anyhow::Result<std::thread::JoinHandle<std::io::Result<()>>> {
    let plan = seats.first().map(|seat| &seat.setup.plan).context("a run has a load")?;
    let carrier = tls.and_then(|client| super::over_quic::carrier(plan, client));
    let core = (!cores.is_empty()).then(|| cores[id as usize % cores.len()]);
    let (nice, spin) = (plan.driver.nice, plan.driver.spin);
    let tls = tls.cloned();
    let (route, own) = (ways.route.cloned(), ways.own.cloned());
    let body = move || {
        reactor::sharpen_timers();
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
        let mut workers: Vec<Worker> =
            seats.into_iter().map(|seat| seat.worker(id, tls.as_ref())).collect();
        let ground = Ground { id, spin, carrier, own };
        match workers.as_mut_slice() {
            [worker] => ground.drive(worker, &mut link),
            _ => ground.drive(&mut Crew::new(id, workers), &mut link),
        }
    };
    let name = format!("worker-{id}");
    Ok(std::thread::Builder::new().name(name).spawn(body)?)
}

/// What the connections of one worker thread are made on.
struct Ground {
    id: u32,
    spin: Nanos,
    carrier: Option<super::over_quic::Carrier>,
    own: Option<Arc<OwnNetwork>>,
}

impl Ground {
    fn drive(self, driven: &mut impl Driven, link: &mut ThreadLink) -> std::io::Result<()> {
        let Ground { id, spin, carrier, own } = self;
        match (carrier, own) {
            (_, Some(own)) => drive(driven, &mut own.worker(id, spin)?, link),
            (None, None) => drive(driven, &mut Reactor::new(spin)?, link),
            (Some(carrier), None) => {
                drive(driven, &mut carrier.over(Reactor::new(spin)?), link);
            }
        }
        Ok(())
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
        }
    }

    fn run(&mut self, inbox: &Receiver<Message>, watcher: &mut dyn Watcher) -> anyhow::Result<()> {
        let mut trouble = Ok(());
        loop {
            self.give_orders(watcher.order());
            match inbox.recv_timeout(Duration::from_millis(50)) {
                Ok(Message::Row(row)) => self.row(*row, watcher),
                Ok(Message::Ends(ends)) => watcher.ends(&ends),
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
