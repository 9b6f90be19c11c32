//! A running site: its threads, its address, its counters.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::config::{EarlyData, Engine};
use crate::counters::Counters;
use crate::lateness::LatenessLog;
use crate::listen::Listener;
use crate::{AccessLog, Address, Config, Lateness, Served, SiteError, exact, proper};

/// A running site. Dropping it stops it and waits for its threads.
#[derive(Debug)]
pub struct Site {
    address: Address,
    counters: Vec<Arc<Counters>>,
    lateness: Arc<LatenessLog>,
    log: Option<AccessLog>,
    /// Readable once the threads must stop.
    stop: Arc<OwnedFd>,
    stop_sign: Option<proper::StopSign>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
    /// Disconnected once all threads have ended.
    alive: Receiver<()>,
}

/// Descriptors reserved for the rest of the process.
const DESCRIPTORS_KEPT: u64 = 64;
const CONNECTIONS_MIN: u64 = 16;
const CONNECTIONS_MAX: u64 = 1 << 20;

impl Site {
    /// Binds, starts the threads and returns when all of them serve.
    ///
    /// # Errors
    /// Fails for contradicting options, an address that cannot be used, unavailable CPUs, and a
    /// system without threads or descriptors left.
    pub fn start(config: Config) -> Result<Site, SiteError> {
        config.check()?;
        let (listener, address) = Listener::bind(&config.listen, config.backlog())?;
        let mut quic = match (&config.http3, &address) {
            (Some(wanted), Address::Tcp(address)) => {
                // the range reads early data, once the handshake is over
                let early = config.range.as_ref().map(|_| EarlyData::Accept);
                let early = config.early_data.or(early);
                Some(proper::QuicListener::bind(*address, wanted, early)?)
            }
            _ => None,
        };
        let stop = Arc::new(
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|errno| SiteError::Resources(errno.into()))?,
        );
        let (common, stop_sign) = proper::Common::new(&config, connections_max(&config));
        let (ended, alive) = channel();
        let mut site = Site {
            address,
            counters: Vec::new(),
            lateness: Arc::new(LatenessLog::new()),
            log: config.log.clone(),
            stop,
            stop_sign: Some(stop_sign),
            threads: Vec::new(),
            alive,
        };
        let (ready, started) = channel();
        for index in 0..config.threads {
            let listener = listener.share().map_err(SiteError::Resources)?;
            let mut worker = site.worker(listener, &config, &common);
            // one thread serves all of UDP
            worker.quic = quic.take_if(|_| config.range.is_none());
            let reports = Reports { ready: ready.clone(), ended: ended.clone() };
            let thread = std::thread::Builder::new()
                .name(format!("site-{index}"))
                .spawn(move || worker.run(&reports))
                .map_err(SiteError::Resources)?;
            site.threads.push(thread);
        }
        if let (Some(quic), Some(defects)) = (quic, config.range.clone()) {
            let (common, ended) = (common.clone(), ended.clone());
            let serve = move || {
                let result = proper::serve_range(quic, &defects, &common);
                drop(ended);
                result
            };
            let thread = std::thread::Builder::new().name("site-quic".to_owned()).spawn(serve);
            site.threads.push(thread.map_err(SiteError::Resources)?);
        }
        // the threads hold the only descriptors of the listener: when they end, it is closed
        drop((listener, ready, ended));
        for _ in 0..config.threads {
            started.recv().map_err(|_| SiteError::Crashed)??;
        }
        Ok(site)
    }

    fn worker(
        &mut self,
        listener: Listener,
        config: &Config,
        common: &proper::Common,
    ) -> SiteThread {
        let [counters, page_counters] = [(); 2].map(|()| Arc::new(Counters::new()));
        self.counters.extend([&counters, &page_counters].map(Arc::clone));
        SiteThread {
            listener,
            config: config.clone(),
            counters,
            page_counters,
            lateness: Arc::clone(&self.lateness),
            common: common.clone(),
            stop: Arc::clone(&self.stop),
            quic: None,
        }
    }

    /// Formats `http://127.0.0.1:PORT`, or `unix:PATH`. A site on all interfaces names its loopback
    /// address.
    pub fn url(&self) -> String {
        match &self.address {
            Address::Tcp(address) if address.ip().is_unspecified() && address.is_ipv6() => {
                format!("http://[::1]:{}", address.port())
            }
            Address::Tcp(address) if address.ip().is_unspecified() => {
                format!("http://127.0.0.1:{}", address.port())
            }
            Address::Tcp(address) => format!("http://{address}"),
            Address::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    /// Returns the address where it listens, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the counters so far. Exact after [`Site::stop`]; while it serves, some bytes in
    /// flight are not counted yet.
    pub fn served(&self) -> Served {
        let mut served = Served::default();
        for counters in &self.counters {
            served.add(counters);
        }
        served.log_lines_lost = self.log.as_ref().map_or(0, AccessLog::lines_lost);
        served
    }

    /// Returns the lateness of its responses relative to their due instants so far.
    pub fn lateness(&self) -> Lateness {
        self.lateness.read()
    }

    /// Waits until the site has stopped by itself (`die_after`) or `timeout` is over; returns
    /// whether it has ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        matches!(self.alive.recv_timeout(timeout), Err(RecvTimeoutError::Disconnected))
    }

    /// Stops serving, closes all connections, and returns the final counters.
    ///
    /// # Errors
    /// Fails if a thread ended because of a bug or because the system refused an operation.
    pub fn stop(mut self) -> Result<Served, SiteError> {
        self.end()?;
        Ok(self.served())
    }

    fn end(&mut self) -> Result<(), SiteError> {
        self.stop_sign = None;
        // the counter of an eventfd that is not at its limit always takes 1
        rustix::io::write(&*self.stop, &1_u64.to_ne_bytes())
            .map_err(|errno| SiteError::Resources(errno.into()))?;
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(reason)) => result = Err(SiteError::Resources(reason)),
                Err(_) => result = Err(SiteError::Crashed),
            }
        }
        if let Some(log) = &self.log {
            log.flush();
        }
        if let Address::Unix(path) = &self.address {
            // it does not matter if the file has been removed already
            std::fs::remove_file(path).ok();
        }
        result
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            // the receiver is gone
            self.end().ok();
        }
    }
}

/// Channel by which a thread reports that it serves, and that it has stopped.
#[derive(Debug)]
struct Reports {
    ready: Sender<Result<(), SiteError>>,
    #[expect(dead_code, reason = "dropping it is the signal")]
    ended: Sender<()>,
}

/// Parameters of a thread.
#[derive(Debug)]
struct SiteThread {
    listener: Listener,
    config: Config,
    counters: Arc<Counters>,
    page_counters: Arc<Counters>,
    lateness: Arc<LatenessLog>,
    common: proper::Common,
    stop: Arc<OwnedFd>,
    quic: Option<proper::QuicListener>,
}

impl SiteThread {
    fn run(self, reports: &Reports) -> std::io::Result<()> {
        let prepared =
            bind_to(&self.config.cpus).and_then(|()| self.prepare().map_err(SiteError::Resources));
        match prepared {
            Ok(engine) => {
                // a closed receiver means that another thread failed: `stop` follows
                reports.ready.send(Ok(())).ok();
                engine.serve()
            }
            Err(error) => {
                reports.ready.send(Err(error)).ok();
                Ok(())
            }
        }
    }

    fn prepare(self) -> std::io::Result<Prepared> {
        let SiteThread { listener, config, counters, page_counters, .. } = self;
        let SiteThread { lateness, common, stop, quic, .. } = self;
        Ok(match config.engine() {
            Engine::Proper => {
                let server = proper::ProperServer::new(listener, common, counters, quic)?;
                Prepared::Proper(Box::new(server))
            }
            Engine::Exact | Engine::Null => {
                let connections_max = connections_max(&config) / config.threads.max(1);
                let shared = exact::Shared {
                    counters,
                    page_counters,
                    lateness,
                    connections_max,
                    nodelay: !config.faults.weak.nagle,
                    pages: Some(common),
                };
                Prepared::Exact(Box::new(exact::Loop::new(listener, stop, config, shared)?))
            }
        })
    }
}

#[derive(Debug)]
enum Prepared {
    Proper(Box<proper::ProperServer>),
    Exact(Box<exact::Loop>),
}

impl Prepared {
    fn serve(self) -> std::io::Result<()> {
        match self {
            Prepared::Proper(server) => {
                server.serve();
                Ok(())
            }
            Prepared::Exact(server) => server.serve(),
        }
    }
}

/// Binds the calling thread.
fn bind_to(cpus: &[u32]) -> Result<(), SiteError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        // the option's parser bounds them, a caller of the library may not have
        if *cpu as usize >= CpuSet::MAX_CPU {
            let reason = rustix::io::Errno::INVAL.into();
            return Err(SiteError::Cpus { cpus: cpus.to_vec(), reason });
        }
        set.set(*cpu as usize);
    }
    sched_setaffinity(None, &set)
        .map_err(|errno| SiteError::Cpus { cpus: cpus.to_vec(), reason: errno.into() })
}

/// Returns the number of connections that all threads may hold at once.
fn connections_max(config: &Config) -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(CONNECTIONS_MAX);
    let room = limit.saturating_sub(DESCRIPTORS_KEPT).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX);
    let wanted = config.connections_max.unwrap_or(room).min(room);
    // each thread may hold at least one
    wanted.max(config.threads as u64) as usize
}
