//! A recording proxy: forwards requests to their servers and keeps each exchange as HAR. It is a
//! reverse proxy for one server, or the proxy of a browser; the latter also records `https://`,
//! with certificates of a local certificate authority. Layer 4.
//!
//! Not for measurements: bodies are forwarded only when complete, and every request has its own
//! connection to the server. Everything is bounded: connections, bodies, exchanges, times.
#![forbid(unsafe_code)]

mod authority;
mod bodies;
mod forward;
mod har;
mod proxy;
#[cfg(test)]
mod tests;

pub use authority::LocalAuthority;
pub use har::to_har;

use hyper::body::Bytes;
use proxy::ProxyState;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::SystemTime;
use tokio::sync::oneshot;
use tokio_rustls::rustls::ClientConfig;
use url::Url;

/// Settings of a recorder.
#[derive(Debug)]
pub struct RecorderConfig {
    pub listen: SocketAddr,
    /// Server of requests without a host; `None` if only requests of a browser's proxy are
    /// forwarded.
    pub upstream: Option<Url>,
    pub authority: LocalAuthority,
    /// TLS settings for connections to servers.
    pub tls: Arc<ClientConfig>,
}

/// Request and response, as the server received and sent them.
#[derive(Clone, Debug)]
pub struct RecordedExchange {
    pub at: SystemTime,
    /// Time until the response was complete, in milliseconds.
    pub took_ms: f64,
    pub method: String,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// Response; `None` if there was none.
    pub response: Option<RecordedResponse>,
}

#[derive(Clone, Debug, Default)]
pub struct RecordedResponse {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// A listening recorder.
#[derive(Debug)]
pub struct RecordingProxy {
    address: SocketAddr,
    shared: Arc<ProxyState>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl RecordingProxy {
    /// Starts listening.
    ///
    /// # Errors
    /// Fails if the address cannot be used, or no thread can be started.
    pub fn start(config: RecorderConfig) -> Result<RecordingProxy, String> {
        let listen = config.listen;
        let cannot = |error: std::io::Error| format!("cannot listen on {listen}: {error}");
        let listener = TcpListener::bind(listen).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot wait for sockets: {error}"))?;
        let shared = Arc::new(ProxyState::new(config, address));
        let (stop, stopped) = oneshot::channel();
        let inside = shared.clone();
        let body = move || runtime.block_on(proxy::serve(listener, inside, stopped));
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(body);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(RecordingProxy { address, shared, stop, thread })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of exchanges so far.
    pub fn count(&self) -> usize {
        self.shared.exchanges().len()
    }

    /// Stops it; returns the recorded exchanges in the order of the requests, and the problems.
    pub fn stop(self) -> (Vec<RecordedExchange>, Vec<String>) {
        // fails only if the thread has ended already
        self.stop.send(()).ok();
        self.thread.join().ok();
        let mut all = std::mem::take(&mut *self.shared.exchanges());
        all.sort_by_key(|exchange| exchange.at);
        (all, self.shared.take_troubles())
    }
}
