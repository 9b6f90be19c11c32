//! The server: a listener, a thread, a shutdown.

use crate::browser::guard::{self, Guard};
use crate::browser::routes::{Desk, routes};
use crate::browser::token::Token;
use anyhow::Context;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use store::StorePlace;
use tokio::sync::oneshot;

/// Maximum size of a form in bytes.
const FORM_MAX: usize = 16 << 10;

#[derive(Clone, Debug)]
pub struct UiConfig {
    pub listen: SocketAddr,
    pub place: StorePlace,
}

/// The running server; dropping it ends it.
#[derive(Debug)]
pub struct Ui {
    address: SocketAddr,
    token: Option<Token>,
    stop: Option<oneshot::Sender<()>>,
    ended: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Ui {
    /// Listens immediately, and serves on a separate thread.
    ///
    /// # Errors
    /// Fails if the address cannot be used, or no token can be created.
    pub fn start(config: UiConfig) -> anyhow::Result<Ui> {
        let listen = config.listen;
        let refused =
            || format!("cannot listen on {listen}; give another with --listen, or port 0");
        let listener = TcpListener::bind(listen).with_context(refused)?;
        listener.set_nonblocking(true).with_context(refused)?;
        let address = listener.local_addr().with_context(refused)?;
        let token = if address.ip().is_loopback() { None } else { Some(Token::new()?) };
        let guard = Guard { token: token.clone(), port: address.port() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let (report_end, ended) = mpsc::channel();
        let body = move || {
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let app = routes(Desk::new(config.place))
                    .layer(DefaultBodyLimit::max(FORM_MAX))
                    .layer(middleware::from_fn_with_state(Arc::new(guard), guard::around));
                let serving = axum::serve(listener, app);
                tokio::select! {
                    // the server does not exit on its own
                    _ = serving.into_future() => {}
                    _ = stopped => {}
                }
            });
            drop(report_end);
        };
        let thread = std::thread::Builder::new().name("ui".into()).spawn(body)?;
        Ok(Ui { address, token, stop: Some(stop), ended, thread: Some(thread) })
    }

    /// Returns the address to open, with the token if one is needed.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let start = format!("http://{host}:{}/", self.address.port());
        match &self.token {
            Some(token) => format!("{start}?token={}", token.as_str()),
            None => start,
        }
    }

    /// Waits until the server has ended, which only a bug can cause; returns true if it has.
    pub fn wait(&self, span: Duration) -> bool {
        matches!(self.ended.recv_timeout(span), Err(mpsc::RecvTimeoutError::Disconnected))
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        // dropping the sender is the shutdown signal
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // a panic there has already been printed
            thread.join().ok();
        }
    }
}
