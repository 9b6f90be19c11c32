//! The page that Prometheus scrapes during a run.

use crate::metrics::board::Board;
use crate::metrics::exposition;
use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A running endpoint; dropping it ends it.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens immediately, and serves on a separate thread.
    ///
    /// # Errors
    /// Fails if the address cannot be used.
    pub fn start(address: SocketAddr, board: Board) -> anyhow::Result<Endpoint> {
        let refused =
            || format!("cannot listen on {address} for --metrics; give another port, or 0");
        let listener = TcpListener::bind(address).with_context(refused)?;
        listener.set_nonblocking(true).with_context(refused)?;
        let address = listener.local_addr().with_context(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let body = move || {
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let app = Router::new()
                    .route("/", get(front))
                    .route("/metrics", get(metrics))
                    .with_state(board);
                let serving = axum::serve(listener, app);
                tokio::select! {
                    // it has no separate end
                    _ = serving.into_future() => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(body)?;
        Ok(Endpoint { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the listening address, with the port that the kernel chose for 0.
    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // dropping the sender is the shutdown signal
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // a panic there has already been printed
            thread.join().ok();
        }
    }
}

async fn front() -> &'static str {
    "Loadstone: the figures of the running test are at /metrics.\n"
}

async fn metrics(State(board): State<Board>, headers: HeaderMap) -> Response {
    let reading = board.latest();
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let (kind, body) = if wants_protobuf(accept.unwrap_or("")) {
        (exposition::PROTOBUF, exposition::protobuf(&reading))
    } else {
        (exposition::OPENMETRICS, exposition::text(&reading).into_bytes())
    };
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

/// Returns whether Prometheus' protobuf is preferred to text, by the weights of RFC 9110 §12.5.1.
pub(crate) fn wants_protobuf(accept: &str) -> bool {
    let (mut protobuf, mut text) = (0.0, 0.0_f64);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
        let kind = parts.next().unwrap_or_default();
        let parameters: Vec<String> = parts.collect();
        let weight = parameters.iter().find_map(|parameter| parameter.strip_prefix("q="));
        let weight = weight.map_or(1.0, |weight| weight.parse::<f64>().unwrap_or(0.0));
        let named = |wanted: &str| parameters.iter().any(|parameter| parameter == wanted);
        if kind == "application/vnd.google.protobuf" {
            if named("proto=io.prometheus.client.metricfamily") && named("encoding=delimited") {
                protobuf = weight;
            }
        } else if ["application/openmetrics-text", "text/plain", "text/*", "*/*"].contains(&&*kind)
        {
            text = text.max(weight);
        }
    }
    protobuf > 0.0 && protobuf >= text
}
