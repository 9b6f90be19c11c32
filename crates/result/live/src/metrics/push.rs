//! Sends readings to an OTLP collector over HTTP, from a separate thread. Failed pushes are counted
//! and reported at the end; the next push carries all data again.

use crate::metrics::otlp::{message, refused};
use crate::metrics::reading::Reading;
use anyhow::{Context, bail};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use units::show::safe;
use url::Url;

/// Timeout of a push.
const PUSH_MAX: Duration = Duration::from_secs(3);
/// Maximum number of readings queued for a slow collector; more are skipped.
const WAITING_MAX: usize = 2;
/// Maximum size of a response that is read, in bytes.
const RESPONSE_MAX: usize = 64 << 10;

/// Destination of the pushes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    url: Url,
}

impl Collector {
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns whether it is reached over TLS.
    pub fn secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the host to connect to: brackets of an IPv6 address belong to the URL only.
    fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }

    fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

/// Parses `http://host:4318` or `https://host:4318`, with a path if it is not the usual
/// `/v1/metrics`.
///
/// # Errors
/// Fails with the error for an invalid URL, with the fix.
pub fn parse_collector(text: &str) -> Result<Collector, String> {
    let fix_text = "write the collector's address, like http://127.0.0.1:4318";
    let mut url =
        Url::parse(text).map_err(|error| format!("{text:?} is not a URL ({error}): {fix_text}"))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
        return Err(format!("{text:?} is not an http:// or https:// URL: {fix_text}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("a login in the URL of --otlp is not sent: {fix_text}"));
    }
    if matches!(url.path(), "" | "/") {
        url.set_path("/v1/metrics");
    }
    url.set_fragment(None);
    Ok(Collector { url })
}

/// Results of the pushes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    pub taken: u64,
    pub failed: u64,
    /// Readings not sent because the collector was still busy with the previous one.
    pub skipped: u64,
    /// Error of the last failed push.
    pub trouble: Option<String>,
}

/// The sending thread.
#[derive(Debug)]
pub struct Pusher {
    to: SyncSender<Reading>,
    thread: JoinHandle<Pushed>,
    skipped: u64,
    /// The last skipped reading: it is sent at the end.
    left: Option<Reading>,
}

impl Pusher {
    /// Starts the thread. `tls`: settings for a collector that is [`Collector::secure`].
    ///
    /// # Errors
    /// Fails if no thread can be started, or for a secure collector without `tls` or with an
    /// invalid host name.
    pub fn start(collector: Collector, tls: Option<Arc<ClientConfig>>) -> anyhow::Result<Pusher> {
        let tls = if collector.secure() { Some(Tls::new(&collector, tls)?) } else { None };
        let (to, from) = sync_channel(WAITING_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let body = move || push_all(&runtime, &collector, tls.as_ref(), &from);
        let thread = std::thread::Builder::new().name("otlp".into()).spawn(body)?;
        Ok(Pusher { to, thread, skipped: 0, left: None })
    }

    /// Sends a reading some time soon; never waits.
    pub fn push(&mut self, reading: Reading) {
        use std::sync::mpsc::TrySendError;
        match self.to.try_send(reading) {
            Ok(()) => self.left = None,
            Err(TrySendError::Full(reading) | TrySendError::Disconnected(reading)) => {
                self.skipped += 1;
                self.left = Some(reading);
            }
        }
    }

    /// Sends the remaining data and reports the outcome of all pushes.
    pub fn end(mut self) -> Pushed {
        if let Some(reading) = self.left {
            self.skipped -= 1;
            // a thread that has ended is reported below
            self.to.send(reading).ok();
        }
        drop(self.to);
        let lost =
            || Pushed { trouble: Some("the sending thread panicked".into()), ..Pushed::default() };
        let pushed = self.thread.join().unwrap_or_else(|_| lost());
        Pushed { skipped: self.skipped, ..pushed }
    }
}

fn push_all(
    runtime: &tokio::runtime::Runtime,
    collector: &Collector,
    tls: Option<&Tls>,
    from: &Receiver<Reading>,
) -> Pushed {
    let mut pushed = Pushed::default();
    while let Ok(reading) = from.recv() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let body = message(&reading, now.as_secs_f64());
        let sent = runtime.block_on(async {
            let in_time = tokio::time::timeout(PUSH_MAX, post(collector, tls, body)).await;
            in_time.unwrap_or_else(|_| bail!("no response within {} s", PUSH_MAX.as_secs()))
        });
        match sent {
            Ok(()) => pushed.taken += 1,
            Err(error) => {
                pushed.failed += 1;
                pushed.trouble = Some(format!("{error:#}"));
            }
        }
    }
    pushed
}

/// Expected name of a secure collector, and the TLS settings.
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    fn new(collector: &Collector, config: Option<Arc<ClientConfig>>) -> anyhow::Result<Tls> {
        let config = config.context("no certificates to verify the collector with")?;
        let name = ServerName::try_from(collector.host().to_owned());
        let name = name.with_context(|| format!("--otlp {}: no name for TLS", collector.url))?;
        Ok(Tls { connector: TlsConnector::from(config), name })
    }
}

async fn post(collector: &Collector, tls: Option<&Tls>, body: Vec<u8>) -> anyhow::Result<()> {
    let port = collector.url.port_or_known_default().unwrap_or(80);
    let stream = TcpStream::connect((collector.host(), port)).await.context("cannot connect")?;
    match tls {
        None => exchange(collector, stream, body).await,
        Some(tls) => {
            let secure = tls.connector.connect(tls.name.clone(), stream).await;
            exchange(collector, secure.context("no TLS")?, body).await
        }
    }
}

async fn exchange<S>(collector: &Collector, stream: S, body: Vec<u8>) -> anyhow::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let url = &collector.url;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driving = tokio::spawn(connection);
    let target = &url[url::Position::BeforePath..];
    let request = Request::builder()
        .method(Method::POST)
        .uri(target)
        .header(header::HOST, collector.authority())
        .header(header::USER_AGENT, concat!("loadstone/", env!("CARGO_PKG_VERSION")))
        .header(header::CONTENT_TYPE, "application/x-protobuf")
        .body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await.context("no response")?;
    let status = response.status();
    let read = Limited::new(response.into_body(), RESPONSE_MAX).collect().await;
    driving.abort();
    if !status.is_success() {
        bail!("answered with {status}");
    }
    let body = read.map_err(|error| anyhow::anyhow!("the response broke off: {error}"))?.to_bytes();
    let refused = refused(&body).context("the response is not OTLP")?;
    if refused.points == 0 {
        return Ok(());
    }
    let why: String = refused.why.chars().take(200).collect();
    bail!("{} figures were refused: {}", refused.points, safe(&why))
}
