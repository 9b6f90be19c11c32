//! HTTP/3 in virtual time: datagrams that may be lost, and a QUIC server that responds to each
//! request according to a queueing model. The worker, the HTTP/3 session and the client side of
//! QUIC are those of production; the server side is quinn-proto.

use crate::quic_sockets::{EchoStream, HEAD};
use crate::run::{Bench, Simulated};
use crate::servers::Queue;
use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use dialogue::governor::{Governor, Stop};
use dialogue::talk::{Carried, Conversations, Director, WaitUntil, play};
use engine::{Endpoint as Place, Setup, Worker, drive, endpoint_key};
use plan::Plan;
use quic::ignoring::{IgnoredInput, ignoring};
use quic::session::{HandSessions, SessionWords};
use quic::{Limits, Moves, Quic};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};
use sample::{FailureClass, SocketFacts};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tunnel::{TunnelTerms, Tunnels};
use units::Nanos;

/// The name in the certificate of the simulated server.
const NAME: &str = "sim.example";

/// `:status: 425`, encoded in the same way.
const TOO_EARLY: [u8; 6] = [1, 4, 0, 0, 0xff, 0x07];

/// The server's control stream: its type, and empty SETTINGS.
const CONTROL: [u8; 3] = [0, 4, 0];

/// Direction of datagrams: to the server, or to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Up,
    Down,
}

/// The outcome of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTreatment {
    Served,
    /// H3_REQUEST_REJECTED.
    Rejected,
    /// H3_INTERNAL_ERROR.
    Failed,
    /// The request never gets a response.
    Ignored,
}

/// Treatment of early data by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyDataMode {
    /// The server's tickets do not permit early data.
    Shut,
    Open,
    /// Permits early data, and accepts that of a ticket each time it arrives (RFC 8446 section 8).
    Repeating,
    /// Requests in early data get 425 (RFC 8470 section 5.2).
    TooEarly,
    /// The server's tickets permit it, but it has no session when a client returns.
    Forgetful,
}

/// A server, and the link to it.
pub struct QuicWorld {
    pub queue: Queue,
    /// One-way delay.
    pub delay: Nanos,
    /// Maximum number of concurrent streams per connection.
    pub streams_max: u32,
    /// Connection window of the server for uploads in bytes; `None` for no limit.
    pub upload_window: Option<u32>,
    /// Bytes of content of each response.
    pub body: usize,
    /// Number of requests on a connection before GOAWAY.
    pub calls_max: Option<u32>,
    /// Returns whether the datagram with this number in its direction is lost.
    pub loses: fn(Way, u64) -> bool,
    /// Returns the outcome of the request with this number.
    pub treatment: fn(u64) -> RequestTreatment,
    /// The port is closed: datagrams are answered with ICMP errors.
    pub closed_port: bool,
    /// Treatment of requests in early data.
    pub early: EarlyDataMode,
    /// Clients may not migrate (RFC 9000 section 18.2).
    pub fixed: bool,
    /// Input that the server ignores.
    pub ignored: IgnoredInput,
    /// Returns the first bytes of the control stream of the connection with this number.
    pub control: fn(u64) -> Vec<u8>,
    /// Delay of the stream's remaining bytes after the first.
    pub control_after: Nanos,
    /// Requests are for WebSockets, which echo; extended CONNECT is among the settings.
    pub echoes: bool,
}

/// The control stream of a server that accepts extended CONNECT.
const CONNECT_CONTROL: [u8; 5] = [0, 4, 2, 8, 1];

impl QuicWorld {
    /// Creates a server of WebSockets that echo.
    pub fn echoing() -> QuicWorld {
        let queue = Queue::new(0, crate::Service::Fixed(Nanos::ZERO), 1);
        QuicWorld { echoes: true, control: |_| CONNECT_CONTROL.to_vec(), ..QuicWorld::new(queue) }
    }

    pub fn new(queue: Queue) -> QuicWorld {
        QuicWorld {
            queue,
            delay: Nanos::ZERO,
            streams_max: 100,
            upload_window: None,
            body: 5,
            calls_max: None,
            loses: |_, _| false,
            treatment: |_| RequestTreatment::Served,
            closed_port: false,
            early: EarlyDataMode::Shut,
            fixed: false,
            ignored: IgnoredInput::default(),
            control: |_| CONTROL.to_vec(),
            control_after: Nanos::ZERO,
            echoes: false,
        }
    }
}

impl std::fmt::Debug for QuicWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicWorld").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// A completed run, and the data received by the server on its streams, in order: stream number and
/// bytes.
#[derive(Debug)]
pub struct QuicOutcome {
    pub outcome: Simulated,
    pub heard: Vec<(u64, Vec<u8>)>,
    /// Number of datagrams sent, up and down.
    pub datagrams: [u64; 2],
    /// Codes with which the client closed connections, if the server received them.
    pub closed: Vec<u64>,
}

/// Runs a plan for HTTP/3 with one worker. `origin`: start of the library's clock; only differences
/// to it are used.
///
/// # Panics
/// Panics if the plan is invalid: a test's plan is valid.
pub fn execute_quic(plan: Plan, world: QuicWorld, origin: Instant) -> QuicOutcome {
    let start = Nanos::from_secs(1_000);
    let endpoints = places(&plan);
    let mut setup = Setup::new(plan, endpoints, 1, start).expect("a test's plan is valid");
    setup.logging.calls = true;
    setup.logging.ends = true;
    let setup = Arc::new(setup);
    let (client, _, server) = handshakes(world.early);
    let network = SimulatedNetwork::new(world, start, origin, server);
    let seed = Some([7; 32]);
    let moves = setup.plan.connection.migrate.map(|when| match when {
        plan::Migrate::Every(span) => Moves::Every(span),
        plan::Migrate::Calls(count) => Moves::Requests(count),
    });
    let shares = setup.plan.tunnels_websockets();
    let limits = Limits { keeps_alive: shares, ..Limits::default() };
    let mut io = Quic::new(network, origin, client, &limits, seed).moving(moves);
    let mut bench = Bench::new(&setup);
    if shares {
        let terms = TunnelTerms {
            settings: engine::http2_settings(&setup.plan),
            per_connection: setup.plan.websockets_per_connection(),
            tls: None,
        };
        let mut tunnels = Tunnels::new(&mut io, terms);
        drive(&mut Worker::new(setup, 0, None), &mut tunnels, &mut bench);
    } else {
        drive(&mut Worker::new(setup, 0, None), &mut io, &mut bench);
    }
    let network = io.inner();
    let (ended_at, datagrams) = (network.now - start, network.sent);
    let heard = std::mem::take(&mut network.host.heard);
    let closed = std::mem::take(&mut network.host.closed);
    QuicOutcome { outcome: bench.finish(false, ended_at), heard, datagrams, closed }
}

/// A torture session with a QUIC server, in virtual time.
pub struct QuicField {
    quic: Quic<SimulatedNetwork>,
    governor: Governor,
    carried: Carried,
}

impl std::fmt::Debug for QuicField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicField").field("governor", &self.governor).finish_non_exhaustive()
    }
}

impl QuicField {
    /// Creates the session; `origin` as in [`execute_quic`].
    pub fn new(world: QuicWorld, origin: Instant) -> QuicField {
        let (client, by_hand, server) = handshakes(world.early);
        let network = SimulatedNetwork::new(world, Nanos::from_secs(1_000), origin, server);
        let quic = Quic::new(network, origin, client, &Limits::default(), Some([7; 32]));
        let quic = quic.by_hand(by_hand);
        QuicField { quic, governor: Governor::unbounded(), carried: Carried::default() }
    }

    /// Returns the server's address.
    pub fn peer() -> Peer {
        Peer::Quic { address: SERVER.parse().expect("an address"), name: NAME.to_owned() }
    }
}

impl campaign::World for QuicField {
    fn now(&mut self) -> Nanos {
        self.quic.now()
    }

    fn play(&mut self, director: &mut dyn Director) {
        let mut stage = Conversations::new(None, &mut self.governor).carrying(&mut self.carried);
        play(&mut self.quic, &mut stage, director, &mut |io, until, _| {
            let mut ready = Vec::new();
            io.wait(until, &mut ready);
            ready
        });
        stage.return_carried(&mut self.carried);
    }

    fn pause(&mut self, span: Nanos) {
        let until = self.quic.now() + span;
        self.play(&mut WaitUntil { until });
    }

    fn carried(&mut self) -> &mut Carried {
        &mut self.carried
    }

    fn governor(&mut self) -> &mut Governor {
        &mut self.governor
    }

    fn stopped(&self) -> Option<Stop> {
        self.governor.stopped().cloned()
    }
}

fn places(plan: &Plan) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for target in &plan.targets {
        let key = endpoint_key(&target.url);
        if places.iter().all(|place| place.key != key) {
            let address = SERVER.parse().expect("an address");
            let peer = Peer::Quic { address, name: NAME.to_owned() };
            let peers = match plan.tunnels_websockets() {
                true => vec![Peer::Tunnel { to: Box::new(peer), name: None }],
                false => vec![peer],
            };
            places.push(Place { key, peers, tls_name: None, tunnel: None, absolute: false });
        }
    }
    places
}

const SERVER: &str = "10.0.0.2:443";

/// Returns the TLS of both sides; the server's certificate is self-signed.
fn handshakes(early: EarlyDataMode) -> (quic::Handshakes, HandSessions, Arc<QuicServerConfig>) {
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = rustls_pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate that can be trusted");
    let tls13 = &[&rustls::version::TLS13];
    let mut client = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(tls13)
        .expect("TLS 1.3 is there")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"h3".to_vec()];
    client.enable_early_data = true;
    let mut server = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(tls13)
        .expect("TLS 1.3 is there")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .expect("a key for the certificate");
    server.alpn_protocols = vec![b"h3".to_vec()];
    // QUIC permits all early data or none (RFC 9001 section 4.6.1)
    server.max_early_data_size = if early == EarlyDataMode::Shut { 0 } else { u32::MAX };
    match early {
        EarlyDataMode::Forgetful => server.session_storage = Arc::new(Forgets),
        EarlyDataMode::Repeating => {
            server.session_storage = Arc::new(Repeats(server.session_storage.clone()));
        }
        EarlyDataMode::Shut | EarlyDataMode::Open | EarlyDataMode::TooEarly => {}
    }
    let by_hand = HandSessions::new(&client, WORDS);
    let client = QuicClientConfig::try_from(client).expect("a suite for QUIC");
    let server = QuicServerConfig::try_from(server).expect("a suite for QUIC");
    (Arc::new(client), by_hand, Arc::new(server))
}

/// Panics: negotiated parameters are not needed.
const WORDS: SessionWords = SessionWords {
    name: |name| rustls_pki_types::ServerName::try_from(name.to_owned()).ok(),
    facts: |_| None,
    why: |error| error.to_string(),
};

/// Session store that claims to store sessions and returns none.
#[derive(Debug)]
struct Forgets;

impl rustls::server::StoresServerSessions for Forgets {
    fn put(&self, _key: Vec<u8>, _value: Vec<u8>) -> bool {
        true
    }

    fn get(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// A session store whose tickets can be used more than once.
#[derive(Debug)]
struct Repeats(Arc<dyn rustls::server::StoresServerSessions>);

impl rustls::server::StoresServerSessions for Repeats {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.0.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// The link as seen by the client side of QUIC.
struct SimulatedNetwork {
    now: Nanos,
    origin: (Nanos, Instant),
    world: QuicWorld,
    host: Host,
    sockets: BTreeMap<Slot, UdpPort>,
    events: BinaryHeap<Reverse<(Nanos, u64)>>,
    payload: BTreeMap<u64, (Way, SocketAddr, Vec<u8>)>,
    sequence: u64,
    /// Datagrams sent so far, up and down.
    sent: [u64; 2],
}

#[derive(Default)]
struct UdpPort {
    port: u16,
    open: bool,
    inbox: VecDeque<Vec<u8>>,
    refused: bool,
}

impl SimulatedNetwork {
    fn new(
        world: QuicWorld,
        now: Nanos,
        instant: Instant,
        tls: Arc<QuicServerConfig>,
    ) -> SimulatedNetwork {
        let host = Host::new(&world, tls);
        SimulatedNetwork {
            now,
            origin: (now, instant),
            world,
            host,
            sockets: BTreeMap::new(),
            events: BinaryHeap::new(),
            payload: BTreeMap::new(),
            sequence: 0,
            sent: [0; 2],
        }
    }

    fn instant(&self) -> Instant {
        self.origin.1 + Duration::from_nanos((self.now - self.origin.0).0)
    }

    /// Sends a datagram, unless it is lost.
    fn send_datagram(&mut self, way: Way, client: SocketAddr, bytes: Vec<u8>) {
        let number = self.sent[way as usize];
        self.sent[way as usize] += 1;
        if (self.world.loses)(way, number) {
            return;
        }
        self.sequence += 1;
        self.payload.insert(self.sequence, (way, client, bytes));
        self.events.push(Reverse((self.now + self.world.delay, self.sequence)));
    }

    /// Returns the time of the next event.
    fn next(&mut self) -> Nanos {
        let flying = self.events.peek().map_or(Nanos::NEVER, |Reverse((at, _))| *at);
        let timer = self.host.timer().map_or(Nanos::NEVER, |at| {
            let span = at.saturating_duration_since(self.origin.1);
            self.origin.0 + Nanos(span.as_nanos() as u64)
        });
        flying.min(timer).min(self.host.due())
    }

    /// Lets the server act at the current time.
    fn act(&mut self) {
        let now = self.instant();
        for (client, bytes) in self.host.advance(self.now, now, &mut self.world) {
            self.send_datagram(Way::Down, client, bytes);
        }
    }

    /// Delivers the datagrams that arrive now. Returns true if some arrive at the client.
    fn deliver_arrived(&mut self, ready: &mut Vec<Ready>) -> bool {
        let mut any = false;
        while let Some(Reverse((at, number))) = self.events.peek().copied() {
            if at > self.now {
                break;
            }
            self.events.pop();
            let Some((way, client, bytes)) = self.payload.remove(&number) else { continue };
            if way == Way::Up {
                let now = self.instant();
                self.host.receive(now, client, &bytes);
                self.act();
                continue;
            }
            let socket = self.sockets.iter_mut().find(|(_, socket)| socket.port == client.port());
            let Some((slot, socket)) = socket.filter(|(_, socket)| socket.open) else { continue };
            socket.inbox.push_back(bytes);
            any = true;
            ready.push(Ready { slot: *slot, readable: true, writable: false, ended: false });
        }
        any
    }
}

impl Io for SimulatedNetwork {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn open(&mut self, slot: Slot, _peer: &Peer, _options: &OpenOptions) -> Result<(), IoError> {
        let port = self.sockets.values().map(|socket| socket.port).max().unwrap_or(1_000) + 1;
        self.sockets.insert(slot, UdpPort { port, open: true, ..UdpPort::default() });
        Ok(())
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let closed_port = self.world.closed_port;
        let Some(socket) = self.sockets.get_mut(&slot) else { return Err(IoError::WouldBlock) };
        socket.refused |= closed_port;
        let client = SocketAddr::from(([10, 0, 0, 1], socket.port));
        if !closed_port {
            self.send_datagram(Way::Up, client, bytes.to_vec());
        }
        Ok(bytes.len())
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let Some(socket) = self.sockets.get_mut(&slot) else { return Err(IoError::WouldBlock) };
        if std::mem::take(&mut socket.refused) {
            return Err(IoError::Failed(FailureClass::Refused));
        }
        let Some(bytes) = socket.inbox.pop_front() else { return Err(IoError::WouldBlock) };
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn close(&mut self, slot: Slot, _how: Close) {
        if let Some(socket) = self.sockets.get_mut(&slot) {
            socket.open = false;
        }
    }

    fn shutdown_write(&mut self, _slot: Slot) {}

    fn facts(&mut self, _slot: Slot) -> Option<SocketFacts> {
        None
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        for (slot, socket) in self.sockets.iter().filter(|(_, socket)| socket.refused) {
            let slot = *slot;
            ready.extend(socket.open.then_some(Ready {
                slot,
                readable: true,
                writable: false,
                ended: true,
            }));
        }
        self.act();
        while !self.deliver_arrived(ready) && ready.is_empty() {
            let next = self.next();
            if next > until {
                assert!(until != Nanos::NEVER, "nothing will ever happen again");
                self.now = self.now.max(until);
                return;
            }
            self.now = self.now.max(next);
            self.act();
        }
    }
}

/// Server.
struct Host {
    endpoint: Endpoint,
    guests: BTreeMap<ConnectionHandle, Guest>,
    /// Responses by the time at which they are due.
    due: BinaryHeap<Reverse<(Nanos, u64, usize, u64)>>,
    requests: u64,
    connections: u64,
    control: fn(u64) -> Vec<u8>,
    echoes: bool,
    /// Received data, by stream: number and bytes.
    heard: Vec<(u64, Vec<u8>)>,
    /// Codes with which clients closed.
    closed: Vec<u64>,
    /// Replies of the endpoint itself.
    aside: Vec<(SocketAddr, Vec<u8>)>,
}

struct Guest {
    connection: Connection,
    /// Index in `heard`, by stream.
    rows: BTreeMap<StreamId, usize>,
    calls: u32,
    control: Option<StreamId>,
    /// Remaining first bytes of the control stream, and when they follow.
    begin: Vec<u8>,
    control_due: Option<Nanos>,
    /// WebSockets on streams, if the server has them.
    sockets: Option<BTreeMap<StreamId, EchoStream>>,
}

impl Host {
    fn new(world: &QuicWorld, tls: Arc<QuicServerConfig>) -> Host {
        let mut transport = TransportConfig::default();
        transport.max_concurrent_bidi_streams(VarInt::from_u32(world.streams_max));
        transport.mtu_discovery_config(None);
        if let Some(window) = world.upload_window {
            transport.receive_window(VarInt::from_u32(window));
        }
        let mut config = ServerConfig::with_crypto(ignoring(tls, world.ignored));
        config.transport_config(Arc::new(transport));
        config.migration(!world.fixed);
        let mut own = EndpointConfig::default();
        own.rng_seed(Some([9; 32]));
        Host {
            endpoint: Endpoint::new(Arc::new(own), Some(Arc::new(config)), false, None),
            guests: BTreeMap::new(),
            due: BinaryHeap::new(),
            requests: 0,
            connections: 0,
            control: world.control,
            echoes: world.echoes,
            heard: Vec::new(),
            closed: Vec::new(),
            aside: Vec::new(),
        }
    }

    fn timer(&mut self) -> Option<Instant> {
        self.guests.values_mut().filter_map(|guest| guest.connection.poll_timeout()).min()
    }

    fn due(&self) -> Nanos {
        let answer = self.due.peek().map_or(Nanos::NEVER, |Reverse((at, ..))| *at);
        let control = self.guests.values().filter_map(|guest| guest.control_due).min();
        control.map_or(answer, |at| at.min(answer))
    }

    fn receive(&mut self, now: Instant, client: SocketAddr, bytes: &[u8]) {
        let mut out = Vec::new();
        let outcome = self.endpoint.handle(now, client, None, None, bytes.into(), &mut out);
        match outcome {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(guest) = self.guests.get_mut(&handle) {
                    guest.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let (handle, connection) = match self.endpoint.accept(incoming, now, &mut out, None)
                {
                    Ok(accepted) => accepted,
                    // its first packet is invalid
                    Err(refused) => {
                        let sent = refused.response.map(|transmit| out[..transmit.size].to_vec());
                        self.aside.extend(sent.map(|sent| (client, sent)));
                        return;
                    }
                };
                let rows = BTreeMap::new();
                let begin = (self.control)(self.connections);
                self.connections += 1;
                let (control, control_due) = (None, None);
                let sockets = self.echoes.then(BTreeMap::new);
                let guest =
                    Guest { connection, rows, calls: 0, control, begin, control_due, sockets };
                self.guests.insert(handle, guest);
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.aside.push((client, out[..transmit.size].to_vec()));
            }
            None => {}
        }
    }

    /// Performs everything due at this time; returns the datagrams to send.
    fn advance(
        &mut self,
        at: Nanos,
        now: Instant,
        world: &mut QuicWorld,
    ) -> Vec<(SocketAddr, Vec<u8>)> {
        while let Some(Reverse((due, _, handle, stream))) = self.due.peek().copied() {
            if due > at {
                break;
            }
            self.due.pop();
            if let Some(guest) = self.guests.get_mut(&ConnectionHandle(handle)) {
                guest.answer(stream, world.body);
            }
        }
        let mut sent = std::mem::take(&mut self.aside);
        let handles: Vec<ConnectionHandle> = self.guests.keys().copied().collect();
        for handle in handles {
            self.advance_guest(handle, at, now, world, &mut sent);
        }
        sent
    }

    fn advance_guest(
        &mut self,
        handle: ConnectionHandle,
        at: Nanos,
        now: Instant,
        world: &mut QuicWorld,
        sent: &mut Vec<(SocketAddr, Vec<u8>)>,
    ) {
        let Some(guest) = self.guests.get_mut(&handle) else { return };
        if guest.connection.poll_timeout().is_some_and(|timer| timer <= now) {
            guest.connection.handle_timeout(now);
        }
        let mut over = false;
        while let Some(event) = guest.connection.poll_endpoint_events() {
            over |= event.is_drained();
            if let Some(answer) = self.endpoint.handle_event(handle, event) {
                guest.connection.handle_event(answer);
            }
        }
        while let Some(event) = guest.connection.poll() {
            let too_early =
                world.early == EarlyDataMode::TooEarly && guest.connection.is_handshaking();
            if let Event::ConnectionLost { reason: ConnectionError::ApplicationClosed(close) } =
                &event
            {
                self.closed.push(close.error_code.into_inner());
            }
            let requests = guest.process(event, &mut self.heard);
            for stream in requests {
                if too_early {
                    guest.send_bytes(id_of(stream), &TOO_EARLY);
                    guest.connection.send_stream(id_of(stream)).finish().ok();
                    continue;
                }
                let number = self.requests;
                self.requests += 1;
                guest.calls += 1;
                match (world.treatment)(number) {
                    RequestTreatment::Served => {
                        let due = world.queue.finish(at);
                        let entry = (due, number, handle.0, stream);
                        self.due.push(Reverse(entry));
                    }
                    RequestTreatment::Rejected => guest.reset(stream, 0x10b),
                    RequestTreatment::Failed => guest.reset(stream, 0x102),
                    RequestTreatment::Ignored => {}
                }
                if world.calls_max == Some(guest.calls) {
                    guest.go_away(stream + 4);
                }
            }
        }
        guest.go_on_with_control(at, world.control_after);
        // requests without a service time get a response at once
        while let Some(Reverse((due, _, of, stream))) = self.due.peek().copied() {
            if due > at || of != handle.0 {
                break;
            }
            self.due.pop();
            guest.answer(stream, world.body);
        }
        let mut out = Vec::new();
        while let Some(transmit) = guest.connection.poll_transmit(now, 1, &mut out) {
            sent.push((transmit.destination, out[..transmit.size].to_vec()));
            out.clear();
        }
        if over {
            self.guests.remove(&handle);
        }
    }
}

impl Guest {
    /// Processes complete requests, by their streams.
    fn process(&mut self, event: Event, heard: &mut Vec<(u64, Vec<u8>)>) -> Vec<u64> {
        let mut whole = Vec::new();
        match event {
            Event::Connected => {
                let control = self.connection.streams().open(Dir::Uni);
                let control = control.expect("a client allows a control stream");
                self.control = Some(control);
            }
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = self.connection.streams().accept(dir) {
                    self.rows.insert(id, heard.len());
                    heard.push((number_of(id), Vec::new()));
                    whole.extend(self.read(id, heard));
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => whole.extend(self.read(id, heard)),
            _ => {}
        }
        whole
    }

    /// Sends the first byte of the control stream at once, the rest after this time.
    fn go_on_with_control(&mut self, at: Nanos, after: Nanos) {
        let Some(control) = self.control else { return };
        let due = self.control_due.is_none_or(|due| due <= at);
        if !due || self.begin.is_empty() {
            return;
        }
        let whole = after == Nanos::ZERO || self.control_due.is_some();
        let count = if whole { self.begin.len() } else { 1 };
        let part: Vec<u8> = self.begin.drain(..count).collect();
        self.send_bytes(control, &part);
        self.control_due = (!whole).then(|| at + after);
    }

    fn read(&mut self, id: StreamId, heard: &mut [(u64, Vec<u8>)]) -> Option<u64> {
        let row = *self.rows.get(&id)?;
        let before = heard[row].1.len();
        let mut stream = self.connection.recv_stream(id);
        let mut chunks = stream.read(true).ok()?;
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => heard[row].1.extend_from_slice(&chunk.bytes),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let _goes_out_with_the_next = chunks.finalize().should_transmit();
        if id.dir() == Dir::Bi && self.sockets.is_some() {
            self.echo(id, &heard[row].1[before..], ended);
            return None;
        }
        (ended && id.dir() == Dir::Bi).then(|| number_of(id))
    }

    /// Answers on a WebSocket, and ends its stream after the closing handshake or with the client.
    fn echo(&mut self, id: StreamId, bytes: &[u8], ended: bool) {
        let Some(sockets) = &mut self.sockets else { return };
        let socket = sockets.entry(id).or_insert_with(EchoStream::new);
        let reply = socket.receive(bytes);
        let over = socket.is_closed() || ended;
        self.send_bytes(id, &reply);
        if over {
            self.connection.send_stream(id).finish().ok();
        }
    }

    fn send_bytes(&mut self, id: StreamId, bytes: &[u8]) {
        let written = self.connection.send_stream(id).write(bytes);
        // a stream canceled by the client accepts nothing
        assert!(written.is_err() || written == Ok(bytes.len()), "windows are never full here");
    }

    fn answer(&mut self, stream: u64, body: usize) {
        let id = id_of(stream);
        let length = (body as u32 | 0x8000_0000).to_be_bytes();
        let bytes = [&HEAD[..], &[0], &length, &vec![b'x'; body]].concat();
        self.send_bytes(id, &bytes);
        self.connection.send_stream(id).finish().ok();
    }

    fn reset(&mut self, stream: u64, code: u32) {
        let code = VarInt::from_u32(code);
        self.connection.send_stream(id_of(stream)).reset(code).ok();
    }

    /// Sends GOAWAY: requests from this stream on are not processed.
    fn go_away(&mut self, stream: u64) {
        let length = (stream as u32 | 0x8000_0000).to_be_bytes();
        if let Some(control) = self.control {
            self.send_bytes(control, &[&[7, 4], &length[..]].concat());
        }
    }
}

/// Returns the library's ID of a client's bidirectional stream (RFC 9000 section 2.1).
fn id_of(stream: u64) -> StreamId {
    StreamId::new(quinn_proto::Side::Client, Dir::Bi, stream >> 2)
}

fn number_of(id: StreamId) -> u64 {
    id.index() << 2 | u64::from(id.dir() == Dir::Uni) << 1
}
