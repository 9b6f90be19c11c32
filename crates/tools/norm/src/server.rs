//! A running norm site: its threads, its address, its counters.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::LocalSet;

use crate::abort::Aborts;
use crate::breaks::Break;
use crate::cgi::Places;
use crate::connection;
use crate::log::{Level, Log};
use crate::node::{Maker, Node};
use crate::odd::OddFiles;
use crate::route::Routes;
use crate::settings::{LogFile, NodeKind, NodeSettings, NormSettings};
use crate::shared::{Counters, Shared};
use crate::spool::Spool;
use crate::timing::{Point, VisitTiming};
use crate::visit::Visit;

/// Pause of accepting when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(10);
/// Maximum time by which files being read delay the shutdown.
const STOP_MAX: Duration = Duration::from_secs(1);
/// Maximum number of connections that wait to be accepted; the kernel uses the smaller of this and
/// `somaxconn`.
const BACKLOG: i32 = 16_384;

/// Maximum number of concurrent processes, and of requests that wait for one; more are refused with
/// 503.
const PROCESSES_MAX: usize = 64;
const PROCESS_QUEUE_MAX: usize = 1_024;

/// Counters of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections that were served.
    pub connections: u64,
    /// Connections beyond MaxClients, closed at once.
    pub refused: u64,
    pub requests: u64,
    /// Writes to the log that failed.
    pub log_lines_lost: u64,
}

/// Reason why a site could not be started.
#[derive(Debug)]
pub enum StartError {
    Listen {
        address: String,
        reason: io::Error,
    },
    Log {
        path: PathBuf,
        reason: io::Error,
    },
    TmpDir {
        path: PathBuf,
        reason: io::Error,
    },
    OddFiles {
        path: PathBuf,
        reason: io::Error,
    },
    /// Error in an interpreter script, as reported by the interpreter.
    Script(String),
    /// The system refused a thread, a descriptor or an event loop.
    Resources(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Listen { address, reason } => {
                write!(f, "cannot listen on {address}: {}", listen_advice(reason))
            }
            StartError::Log { path, reason } => write!(
                f,
                "cannot write the log {}: {reason}; name another LogFile, or \"stderr\"",
                path.display()
            ),
            StartError::TmpDir { path, reason } => write!(
                f,
                "cannot use {} for temporary files: {reason}; name another TmpDir",
                path.display()
            ),
            StartError::OddFiles { path, reason } => write!(
                f,
                "cannot make odd files in {}: {reason}; drop OddFiles, or make it writable",
                path.display()
            ),
            StartError::Script(why) => f.write_str(why),
            StartError::Resources(reason) => write!(f, "the site cannot start: {reason}"),
        }
    }
}

impl std::error::Error for StartError {}

fn listen_advice(reason: &io::Error) -> String {
    match reason.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is taken by another program; choose another, or 0 for a free one".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "no permission; ports below 1024 need privileges, choose one above".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "no interface of this machine has that address; try 127.0.0.1".to_owned()
        }
        io::ErrorKind::NotFound => "there is no such host; try 127.0.0.1".to_owned(),
        _ => reason.to_string(),
    }
}

/// A running site. Dropping it stops it and waits for its threads.
#[derive(Debug)]
pub struct NormServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Dropping it stops the threads.
    stop: Option<watch::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
    /// Folder of unusual files, removed with the server.
    _odd: Vec<OddFiles>,
}

impl NormServer {
    /// Cleans up after a crash, binds, starts the threads.
    ///
    /// # Errors
    /// Fails if the log or the tmp directory cannot be written, the address cannot be listened on,
    /// or the system has no thread or descriptor left.
    pub fn start(settings: &NormSettings) -> Result<NormServer, StartError> {
        let shared = Arc::new(shared(settings)?);
        let odd = odd_files(settings)?;
        let address = format!("{}:{}", settings.host, settings.port);
        let listener = bind(&address).map_err(|reason| StartError::Listen { address, reason })?;
        let bound = listener.local_addr().map_err(StartError::Resources)?;
        let (sign, stop) = watch::channel(());
        let mut server =
            NormServer { address: bound, shared, stop: Some(sign), threads: Vec::new(), _odd: odd };
        for index in 0..settings.threads {
            let listener = listener.try_clone().map_err(StartError::Resources)?;
            let worker = NormThread::new(listener, Arc::clone(&server.shared), stop.clone())
                .map_err(StartError::Resources)?;
            let thread = std::thread::Builder::new()
                .name(format!("norm-{index}"))
                .spawn(move || worker.serve())
                .map_err(StartError::Resources)?;
            server.threads.push(thread);
        }
        server.shared.log.info(&format!("Listening on {bound}"));
        Ok(server)
    }

    /// Formats `http://127.0.0.1:PORT`. A site on all interfaces names its loopback address.
    pub fn url(&self) -> String {
        let port = self.address.port();
        match self.address {
            SocketAddr::V6(address) if address.ip().is_unspecified() => {
                format!("http://[::1]:{port}")
            }
            SocketAddr::V4(address) if address.ip().is_unspecified() => {
                format!("http://127.0.0.1:{port}")
            }
            address => format!("http://{address}"),
        }
    }

    /// Returns the address where it listens, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the counters so far.
    pub fn served(&self) -> Served {
        let counters = &self.shared.counters;
        Served {
            connections: counters.connections.load(Ordering::Relaxed),
            refused: counters.refused.load(Ordering::Relaxed),
            requests: counters.requests.load(Ordering::Relaxed),
            log_lines_lost: self.shared.log.lines_lost(),
        }
    }

    /// Waits for a while; a norm site never exits on its own.
    pub fn wait(&self, span: Duration) {
        std::thread::sleep(span);
    }

    /// Stops serving, closes all connections, and returns the final counters.
    pub fn stop(mut self) -> Served {
        self.end();
        self.served()
    }

    fn end(&mut self) {
        self.stop = None;
        // their threads wait for them
        self.shared.places.stop();
        let ended = self.threads.drain(..).map(JoinHandle::join).all(|thread| thread.is_ok());
        assert!(ended, "a serving thread ended because of a bug");
    }
}

impl Drop for NormServer {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end();
        }
    }
}

fn shared(settings: &NormSettings) -> Result<Shared, StartError> {
    let log = match &settings.log_file {
        LogFile::Stderr => Log::to_stderr(settings.log_level),
        LogFile::File(path) => Log::to_file(settings.log_level, path)
            .map_err(|reason| StartError::Log { path: path.clone(), reason })?,
    };
    let spool = Spool::new(settings.tmp_dir.clone());
    let path = || settings.tmp_dir.clone();
    let removed = spool.clean().map_err(|reason| StartError::TmpDir { path: path(), reason })?;
    if removed > 0 {
        log.info(&format!("Removed {removed} temporary files that a crash had left"));
    }
    let log = Arc::new(log);
    let places = Places::new(PROCESSES_MAX, PROCESS_QUEUE_MAX);
    let maker = Maker { settings, log: &log, places: &places };
    let made = |node: &NodeSettings| Ok((node.path.clone(), maker.node(node)?));
    let nodes: Result<Vec<(String, Node)>, String> = settings.nodes.iter().map(made).collect();
    let routes = Routes::new(nodes.map_err(StartError::Script)?);
    Ok(Shared {
        routes,
        breaks: settings.breaks.clone(),
        log,
        spool,
        spool_over: settings.spool_over,
        body_max: settings.body_max,
        counters: Counters::default(),
        timing: settings.timing,
        timeout: settings.timeout,
        places,
        room: Arc::new(Semaphore::new(settings.max_clients.min(Semaphore::MAX_PERMITS))),
    })
}

fn odd_files(settings: &NormSettings) -> Result<Vec<OddFiles>, StartError> {
    let directories = settings.nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Directory(directory) if directory.odd_files => Some(&directory.root),
        _ => None,
    });
    let make = |path: &PathBuf| {
        OddFiles::make(path).map_err(|reason| StartError::OddFiles { path: path.clone(), reason })
    };
    directories.map(make).collect()
}

fn bind(address: &str) -> io::Result<std::net::TcpListener> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in address.to_socket_addrs()? {
        match bind_one(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_one(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Parameters of a thread.
#[derive(Debug)]
struct NormThread {
    runtime: Runtime,
    listener: TcpListener,
    shared: Arc<Shared>,
    stop: watch::Receiver<()>,
}

impl NormThread {
    fn new(
        listener: std::net::TcpListener,
        shared: Arc<Shared>,
        stop: watch::Receiver<()>,
    ) -> io::Result<NormThread> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        Ok(NormThread { runtime, listener, shared, stop })
    }

    /// Serves until the stop sign. Connections that are open then are closed.
    fn serve(self) {
        let NormThread { runtime, listener, shared, mut stop } = self;
        let tasks = LocalSet::new();
        tasks.block_on(&runtime, async {
            let aborts = Rc::new(Aborts::new(shared.timeout));
            let ticking = Rc::clone(&aborts);
            tokio::task::spawn_local(async move { ticking.tick().await });
            tokio::select! {
                // nothing is ever sent: it ends when the sender is dropped
                _ = stop.changed() => {}
                () = accept(&listener, &shared, &aborts) => {}
            }
        });
        {
            let _inside = runtime.enter();
            drop((tasks, listener));
        }
        runtime.shutdown_timeout(STOP_MAX);
    }
}

/// Accepts connections forever.
async fn accept(listener: &TcpListener, shared: &Arc<Shared>, aborts: &Rc<Aborts>) {
    loop {
        match listener.accept().await {
            Ok((socket, peer)) => {
                let timing = VisitTiming::new(shared.timing, Arc::clone(&shared.log));
                if let Some(client_permit) = client_permit(shared).await {
                    serve(Accepted { socket, peer, timing, client_permit }, shared, aborts);
                } else {
                    shared.counters.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) if is_client_abort(&error) => {}
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Returns whether the client gave up before it was accepted, which is not a failure of the server.
fn is_client_abort(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// A connection's place among MaxClients.
#[derive(Debug)]
struct ClientPermit(
    #[expect(dead_code, reason = "held until it is dropped")] Option<OwnedSemaphorePermit>,
);

/// Returns a permit for a client, if one is free.
async fn client_permit(shared: &Shared) -> Option<ClientPermit> {
    /// Number of event loop turns until connections that have already ended notice it: one to
    /// receive the events, one to run their tasks, one in reserve.
    const TURNS: usize = 3;
    if shared.breaks.has(Break::MaxClients) {
        return Some(ClientPermit(None));
    }
    for _ in 0..TURNS {
        if let Ok(permit) = Arc::clone(&shared.room).try_acquire_owned() {
            return Some(ClientPermit(Some(permit)));
        }
        tokio::task::yield_now().await;
    }
    let permit = Arc::clone(&shared.room).try_acquire_owned().ok()?;
    Some(ClientPermit(Some(permit)))
}

/// An accepted connection within the limit on connections.
#[derive(Debug)]
struct Accepted {
    socket: TcpStream,
    peer: SocketAddr,
    timing: VisitTiming,
    client_permit: ClientPermit,
}

/// Sets up a connection and runs it.
fn serve(accepted: Accepted, shared: &Arc<Shared>, aborts: &Rc<Aborts>) {
    let Accepted { socket, peer, timing, client_permit } = accepted;
    let begun = timing.start();
    // fails only for a closed connection, which the next read reports
    socket.set_nodelay(true).ok();
    let Ok(local) = socket.local_addr() else { return };
    let creating = timing.start();
    let watch = aborts.watch();
    let requesting = timing.start();
    let abort = aborts.request(Rc::clone(&watch));
    timing.stop_and_report(Point::AbortRequest, requesting);
    timing.stop_and_report(Point::AbortCreate, creating);
    let visit = Rc::new(Visit::new(Arc::clone(shared), (peer, local), watch, timing));
    visit.timing().stop_and_report(Point::SetupConn, begun);
    shared.counters.connections.fetch_add(1, Ordering::Relaxed);
    log_connection(shared, "New", peer);
    tokio::task::spawn_local(async move {
        connection::run(Rc::clone(&visit), abort, socket).await;
        let timing = visit.timing();
        let dying = timing.start();
        drop(client_permit);
        timing.stop(Point::Died, dying);
        timing.stop(Point::Connection, begun);
        timing.flush();
        log_connection(visit.shared(), "End of", peer);
    });
}

/// Logs `New connection from …` and `End of connection from …`.
fn log_connection(shared: &Shared, what: &str, peer: SocketAddr) {
    if !shared.log.keeps(Level::Info) || shared.breaks.has(Break::LogConnections) {
        return;
    }
    shared.log.info(&format!("{what} connection from {peer}"));
}
