//! Correct pages, on hyper: HTTP/1.0 and 1.1, persistent and closed connections, pipelining.
//!
//! Each thread has a current-thread runtime; the threads share the listener. Responses that hyper
//! cannot write (a response that ends with the connection under HTTP/1.1, interim heads,
//! unannounced trailers) are returned, and module `raw` writes them on the same connection.

mod body;
mod converse;
mod dynamic;
mod events;
mod grpc;
mod grpc_form;
mod model;
mod pages;
mod passed;
#[cfg(feature = "h3")]
mod quic;
#[cfg(not(feature = "h3"))]
#[path = "no_quic.rs"]
mod quic;
mod raw;
mod rooms;
mod socket;
mod stream;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::LocalSet;
use workload::fileset::FileSet;

pub(crate) use self::grpc_form::is_http1_call;
pub(crate) use self::passed::{PageThread, PassedConnection, SharedScript};
pub(crate) use self::quic::QuicListener;
use self::stream::Acceptor;
use crate::config::{Engine, ModelPace};
use crate::counters::Counters;
use crate::listen::Listener;
use crate::{AccessLog, Config, Sleeping};

/// State shared by all threads.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    body_max: u64,
    uri_max: u64,
    sleeping: Sleeping,
    /// `/` and unknown paths are "hello world", as in the fault loop, whose connections come here.
    hello: bool,
    files: Option<Arc<FileSet>>,
    /// The pages that belong to the files, where they are SPECweb99's.
    dynamic: Option<Arc<dynamic::DynamicPages>>,
    log: Option<AccessLog>,
    /// The semaphore of `/sleep`: its holder sleeps.
    bed: Arc<Mutex<()>>,
    /// One permit per connection.
    room: Arc<Semaphore>,
    /// Bytes of buffered request bodies: those of unknown length, and those over HTTP/3.
    held: Arc<AtomicU64>,
    held_max: u64,
    /// Times of the tokens of `/v1/…`.
    model: ModelPace,
    /// Rooms of WebSockets.
    rooms: Arc<rooms::Rooms>,
    /// WebSockets on streams so far.
    tunnels: Arc<AtomicU64>,
    stop: watch::Receiver<()>,
}

/// Dropping it stops all threads.
#[derive(Debug)]
pub(crate) struct StopSign(
    #[expect(dead_code, reason = "dropping it is the signal")] watch::Sender<()>,
);

impl Common {
    pub(crate) fn new(config: &Config, connections_max: usize) -> (Common, StopSign) {
        let (sign, stop) = watch::channel(());
        let common = Common {
            body_max: config.body_max,
            uri_max: config.uri_max.unwrap_or(u64::MAX),
            sleeping: config.sleeping,
            hello: config.engine() == Engine::Exact,
            files: config.files.map(|spec| Arc::new(spec.set(config.seed))),
            dynamic: dynamic::DynamicPages::new(config.files, config.seed, config.cgi.clone())
                .map(Arc::new),
            log: config.log.clone(),
            bed: Arc::new(Mutex::new(())),
            room: Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS))),
            held: Arc::new(AtomicU64::new(0)),
            held_max: config.held_max,
            model: config.model,
            rooms: Arc::default(),
            tunnels: Arc::default(),
            stop,
        };
        (common, StopSign(sign))
    }

    /// Returns the number of the next WebSocket on a stream.
    fn next_tunnel(&self) -> u64 {
        self.tunnels.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns an empty buffer for a request's body.
    fn hold(&self) -> body::Held {
        body::Held::new(Arc::clone(&self.held), self.held_max)
    }
}

/// Server of one thread.
#[derive(Debug)]
pub(crate) struct ProperServer {
    runtime: Runtime,
    acceptor: Acceptor,
    common: Common,
    counters: Arc<Counters>,
    quic: Option<QuicListener>,
}

/// Pause of accepting when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(10);

impl ProperServer {
    pub(crate) fn new(
        listener: Listener,
        common: Common,
        counters: Arc<Counters>,
        quic: Option<QuicListener>,
    ) -> std::io::Result<ProperServer> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let acceptor = {
            let _inside = runtime.enter();
            Acceptor::new(listener)?
        };
        Ok(ProperServer { runtime, acceptor, common, counters, quic })
    }

    /// Serves until the stop sign. Connections that are open then are closed.
    pub(crate) fn serve(self) {
        let ProperServer { runtime, acceptor, common, counters, quic } = self;
        let tasks = LocalSet::new();
        let mut stop = common.stop.clone();
        tasks.block_on(&runtime, async {
            tokio::select! {
                // no value is ever sent: this ends when the sender is dropped
                _ = stop.changed() => {}
                () = accept(&acceptor, &common, &counters) => {}
                () = quic::accept(quic, &common, &counters) => {}
            }
        });
    }
}

/// Serves the firing range over HTTP/3 until the stop sign.
///
/// # Errors
/// Fails if the system has no descriptor left.
pub(crate) fn serve_range(
    quic: QuicListener,
    defects: &faulty::Defects,
    common: &Common,
) -> std::io::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let mut stop = common.stop.clone();
    LocalSet::new().block_on(&runtime, async {
        tokio::select! {
            // no value is ever sent: this ends when the sender is dropped
            _ = stop.changed() => {}
            () = quic::serve_range(quic, defects) => {}
        }
    });
    Ok(())
}

/// Accepts connections forever.
async fn accept(acceptor: &Acceptor, common: &Common, counters: &Arc<Counters>) {
    let common = Rc::new(common.clone());
    while let Ok(permit) = Arc::clone(&common.room).acquire_owned().await {
        match acceptor.accept().await {
            Ok((socket, peer)) => {
                counters.connection();
                let visit =
                    converse::ConnectionLog::new(Rc::clone(&common), Arc::clone(counters), peer);
                tokio::task::spawn_local(async move {
                    visit.converse(socket).await;
                    drop(permit);
                });
            }
            Err(error) if is_client_abort(&error) => {}
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Returns whether the client gave up before it was accepted, which is not a failure of the server.
fn is_client_abort(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
