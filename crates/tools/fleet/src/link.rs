//! A connection to the server with a blocking interface: messages are sent without waiting, and
//! received through a channel, each with the time of its arrival.

use crate::{Credentials, FleetError, ServerVersion};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use futures_util::StreamExt;
use futures_util::stream::select_all;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use units::Nanos;

/// Maximum number of messages of one subscription that wait inside the client. More are dropped: a
/// gap that the numbers of rows show.
const SUBSCRIPTION_MAX: usize = 8_192;
/// Pause between two attempts to reach the server at first.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Address of the server, and how its certificate is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatsEndpoint {
    pub url: String,
    /// The only trusted certificates: PEM.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key, for servers that require one, as PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Event of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    Message {
        subject: String,
        bytes: Vec<u8>,
        at: Nanos,
    },
    Connected,
    Disconnected,
    /// Messages were dropped because this side was too slow.
    TooSlow,
    /// The server refused an operation: its message.
    Refused(String),
}

/// Subject and text of a message; without a message, the end.
type OutgoingMessage = (String, Option<Vec<u8>>);

/// Open connection. It reconnects automatically; messages sent meanwhile are delivered afterwards.
#[derive(Debug)]
pub struct NatsLink {
    out: LinkSender,
    pub inbox: Receiver<Incoming>,
    pub version: Option<ServerVersion>,
    thread: Option<JoinHandle<()>>,
}

impl NatsEndpoint {
    /// Returns whether it is on this machine: TLS is required everywhere else.
    pub fn is_loopback(&self) -> bool {
        let rest = self.url.split_once("://").map_or(&*self.url, |(_, rest)| rest);
        let host = match rest.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => rest.split([':', '/']).next().unwrap_or_default(),
        };
        host == "localhost"
            || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
    }
}

/// Sender of a connection; clones share it, in the order of their calls.
#[derive(Clone, Debug)]
pub struct LinkSender(UnboundedSender<OutgoingMessage>);

impl LinkSender {
    /// Creates a sender without a connection, for a manager without a network.
    pub fn disconnected() -> LinkSender {
        LinkSender(unbounded_channel().0)
    }

    /// Sends without waiting.
    pub fn send(&self, subject: String, bytes: Vec<u8>) {
        // a terminated network shows by its silence
        self.0.send((subject, Some(bytes))).ok();
    }
}

impl NatsLink {
    /// Connects, tries again until `patience` is over, and subscribes.
    ///
    /// # Errors
    /// Fails if the server is unreachable or rejects us.
    pub fn connect(
        place: &NatsEndpoint,
        credentials: &Credentials,
        subscriptions: Vec<String>,
        patience: Duration,
    ) -> Result<NatsLink, FleetError> {
        let (out, outgoing) = unbounded_channel();
        let (give, inbox) = channel();
        let (tell, opened) = channel();
        let this = (place.clone(), credentials.clone());
        let body = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(async {
                    let (place, credentials) = this;
                    let opened = open(&place, &credentials, subscriptions, give.clone(), patience);
                    match opened.await {
                        Ok((client, streams)) => {
                            let version = ServerVersion::parse(&client.server_info().version);
                            tell.send(Ok(version.ok())).ok();
                            carry(client, streams, outgoing, give).await;
                        }
                        Err(error) => drop(tell.send(Err(error))),
                    }
                }),
                Err(error) => {
                    let why = FleetError(format!("cannot start the network's loop: {error}"));
                    tell.send(Err(why)).ok();
                }
            }
        };
        let thread = std::thread::Builder::new().name("fleet-net".into()).spawn(body);
        let thread =
            thread.map_err(|error| FleetError(format!("cannot start a thread: {error}")))?;
        let gone = || FleetError::new("the network's thread ended; this is a bug");
        let version = opened.recv().map_err(|_| gone())??;
        Ok(NatsLink { out: LinkSender(out), inbox, version, thread: Some(thread) })
    }

    pub fn sender(&self) -> LinkSender {
        self.out.clone()
    }
}

impl Drop for NatsLink {
    /// Waits until sent messages are on their way before the connection closes.
    fn drop(&mut self) {
        // the last message: a remaining sender has no receiver
        self.out.0.send((String::new(), None)).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Returns the pause before an attempt, counted from 1. The client also calls this before the first
/// connection, which needs no pause.
fn reconnect_delay(attempt: usize) -> Duration {
    match attempt {
        0 | 1 => Duration::ZERO,
        more => Duration::from_millis(100 << more.min(4)),
    }
}

fn options(
    place: &NatsEndpoint,
    credentials: &Credentials,
    give: &Sender<Incoming>,
) -> Result<ConnectOptions, FleetError> {
    let tell = give.clone();
    let mut options = ConnectOptions::with_nkey(credentials.seed().to_owned())
        .name("loadstone")
        .subscription_capacity(SUBSCRIPTION_MAX)
        .ping_interval(Duration::from_secs(5))
        .connection_timeout(Duration::from_secs(5))
        .reconnect_delay_callback(reconnect_delay)
        .max_reconnects(None)
        .require_tls(!place.is_loopback())
        .event_callback(move |event| {
            let content = match event {
                Event::Connected => Some(Incoming::Connected),
                Event::Disconnected => Some(Incoming::Disconnected),
                Event::SlowConsumer(_) => Some(Incoming::TooSlow),
                Event::ServerError(error) => Some(Incoming::Refused(error.to_string())),
                _ => None,
            };
            if let Some(content) = content {
                tell.send(content).ok();
            }
            async {}
        });
    if let Some(ca) = &place.ca {
        options = options.tls_client_config(trust(ca, place.identity.as_ref())?);
    } else if let Some((cert, key)) = &place.identity {
        options = options.add_client_certificate(cert.clone(), key.clone());
    }
    Ok(options)
}

/// Returns a TLS configuration that trusts a single authority.
fn trust(
    ca: &PathBuf,
    identity: Option<&(PathBuf, PathBuf)>,
) -> Result<rustls::ClientConfig, FleetError> {
    use rustls_pki_types::pem::PemObject;
    use rustls_pki_types::{CertificateDer, PrivateKeyDer};
    let named = |path: &PathBuf, why: String| FleetError(format!("{}: {why}", path.display()));
    let certificates = |path: &PathBuf| -> Result<Vec<CertificateDer<'static>>, FleetError> {
        let read = CertificateDer::pem_file_iter(path).map_err(|e| named(path, e.to_string()))?;
        read.collect::<Result<_, _>>().map_err(|error| named(path, error.to_string()))
    };
    let mut roots = rustls::RootCertStore::empty();
    for certificate in certificates(ca)? {
        roots.add(certificate).map_err(|error| named(ca, error.to_string()))?;
    }
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| named(ca, error.to_string()))?
        .with_root_certificates(roots);
    let Some((cert, key)) = identity else { return Ok(config.with_no_client_auth()) };
    let secret =
        PrivateKeyDer::from_pem_file(key).map_err(|error| named(key, error.to_string()))?;
    config
        .with_client_auth_cert(certificates(cert)?, secret)
        .map_err(|error| named(cert, error.to_string()))
}

type Streams = Vec<async_nats::Subscriber>;

async fn open(
    place: &NatsEndpoint,
    credentials: &Credentials,
    subscriptions: Vec<String>,
    give: Sender<Incoming>,
    patience: Duration,
) -> Result<(Client, Streams), FleetError> {
    let until = tokio::time::Instant::now() + patience;
    let client = loop {
        match options(place, credentials, &give)?.connect(&*place.url).await {
            Ok(client) => break client,
            Err(error) => {
                let final_word = matches!(
                    error.kind(),
                    ConnectErrorKind::AuthorizationViolation
                        | ConnectErrorKind::Authentication
                        | ConnectErrorKind::ServerParse
                        | ConnectErrorKind::Tls
                );
                if final_word || tokio::time::Instant::now() >= until {
                    let why = format!("cannot join the fleet at {}: {error}", place.url);
                    return Err(FleetError(why));
                }
            }
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    };
    let mut streams = Vec::new();
    for subject in subscriptions {
        let opened = client.subscribe(subject.clone()).await;
        streams.push(opened.map_err(|error| FleetError(format!("{subject}: {error}")))?);
    }
    client.flush().await.map_err(|error| FleetError(format!("{}: {error}", place.url)))?;
    Ok((client, streams))
}

/// Runs until the end is requested and earlier messages are on their way.
async fn carry(
    client: Client,
    streams: Streams,
    mut outgoing: UnboundedReceiver<OutgoingMessage>,
    give: Sender<Incoming>,
) {
    let reading = tokio::spawn(async move {
        let mut all = select_all(streams);
        while let Some(message) = all.next().await {
            let at = net::reactor::monotonic();
            let subject = message.subject.to_string();
            let heard = Incoming::Message { subject, bytes: message.payload.to_vec(), at };
            if give.send(heard).is_err() {
                break;
            }
        }
    });
    while let Some((subject, Some(bytes))) = outgoing.recv().await {
        if client.publish(subject, bytes.into()).await.is_err() {
            break;
        }
    }
    // a server that has ended accepts nothing more
    tokio::time::timeout(Duration::from_secs(1), client.flush()).await.ok();
    reading.abort();
}
