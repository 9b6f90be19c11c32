//! Single exchanges over real sockets, with name lookup and TLS. For checks, crawls, and pages that
//! a face examines before its run.

use crate::over_quic;
use conduit::{Io, Peer, TlsFactory};
use engine::exchange::{
    self, Exchange, ExchangeError, ExchangeOutcome, Message, Outgoing, Pause, Request,
};
use engine::{Endpoint, endpoint_key};
use net::reactor::Reactor;
use ownstack::OwnNetwork;
use sample::FailureClass;
use std::collections::BTreeMap;
use std::sync::Arc;
use tunnel::{TunnelTerms, Tunnels};
use units::Nanos;
use url::Url;

/// Maximum delay until a signal is noticed.
const SIGNAL_CHECK: Nanos = Nanos::from_millis(50);

/// ALPN name of HTTP/1.1 (RFC 7301 section 6).
pub(crate) const HTTP1: &str = "http/1.1";

/// Resolves an endpoint by the rules of a plan, or returns the reason.
pub type Meet = Box<dyn Fn(&Url) -> Result<Endpoint, String>>;

/// Performs exchanges, each on a separate connection.
pub struct Caller {
    pub reactor: Reactor,
    /// Makes connections with the program's own TCP, over this network and with this seed for its
    /// links.
    own: Option<(Arc<OwnNetwork>, u64)>,
    connect: Nanos,
    /// Addresses by host and port, or the reason why there are none.
    known: BTreeMap<(String, u16), Result<Vec<Peer>, String>>,
    /// Routes of a plan's calls by endpoint key: through a proxy, or by another name.
    ways: BTreeMap<String, Endpoint>,
    /// Finds the route to an endpoint without a known one.
    meet: Option<Meet>,
    /// True if the server prefers HTTP/2, by endpoint.
    preferences: BTreeMap<String, bool>,
    settings: net::tls::Settings,
    tls: Option<net::tls::Factory>,
    /// TLS client that offers HTTP/2 and HTTP/3 by ALPN.
    tls_http2: Option<net::tls::Factory>,
    tls_http3: Option<net::tls::Client>,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

impl Caller {
    /// Creates a caller. `connect`: connect timeout. TLS is prepared when a URL needs it.
    ///
    /// # Errors
    /// Fails if no descriptor is left.
    pub fn new(connect: Nanos, settings: net::tls::Settings) -> Result<Caller, String> {
        let reactor = Reactor::new(Nanos::ZERO)
            .map_err(|error| format!("cannot wait for sockets: {error}"))?;
        let known = BTreeMap::new();
        Ok(Caller {
            reactor,
            own: None,
            connect,
            known,
            ways: BTreeMap::new(),
            meet: None,
            preferences: BTreeMap::new(),
            settings,
            tls: None,
            tls_http2: None,
            tls_http3: None,
        })
    }

    /// Makes exchanges over the program's own TCP; nothing else may use the first worker's device
    /// meanwhile.
    pub fn with_own_stack(mut self, own: Option<(Arc<OwnNetwork>, u64)>) -> Caller {
        self.own = own;
        self
    }

    /// Prepares TLS when it is first used: reading the system's certificates takes a while.
    pub fn ready_tls(&mut self) -> Result<(), String> {
        if self.tls.is_none() {
            self.tls = Some(client_of(&self.settings)?.factory());
        }
        Ok(())
    }

    fn ready_http2(&mut self) -> Result<(), String> {
        if self.tls_http2.is_none() {
            self.tls_http2 = Some(client_for(&self.settings, http2::ALPN)?.factory());
        }
        Ok(())
    }

    fn ready_http3(&mut self) -> Result<(), String> {
        if !cfg!(feature = "h3") {
            return Err("this program was built without HTTP/3 (the feature h3)".to_owned());
        }
        if self.tls_http3.is_none() {
            self.tls_http3 = Some(client_for(&self.settings, protocol::http3::ALPN)?);
        }
        Ok(())
    }

    /// Prepares the encryption below this message.
    fn secure(&mut self, message: &Message) -> Result<(), String> {
        match message {
            Message::Socket(_) if message.is_http3() => self.ready_http3(),
            // its shared connection has its own TLS
            Message::Socket(_) if message.is_tunneled() => Ok(()),
            Message::Handshake | Message::Http1 { .. } | Message::Socket(_) => self.ready_tls(),
            Message::Http2 { .. } => self.ready_http2(),
            Message::Http3 { .. } => self.ready_http3(),
        }
    }

    /// Uses the routes of a plan's calls for its endpoints, and routes to other servers by the same
    /// rules.
    pub fn by_plan<'a>(
        mut self,
        endpoints: impl IntoIterator<Item = &'a Endpoint>,
        meet: Meet,
    ) -> Caller {
        let ways = endpoints.into_iter().map(|endpoint| (endpoint.key.clone(), endpoint.clone()));
        self.ways.extend(ways);
        self.meet = Some(meet);
        self
    }

    fn find_endpoint(&mut self, url: &Url) -> Result<Endpoint, String> {
        let key = endpoint_key(url);
        if let Some(known) = self.ways.get(&key) {
            return Ok(known.clone());
        }
        let Some(meet) = &self.meet else {
            let tls_name = (url.scheme() == "https").then(|| host_of(url));
            let peers = self.peers(url)?;
            return Ok(Endpoint { key, peers, tls_name, tunnel: None, absolute: false });
        };
        let met = meet(url)?;
        self.ways.insert(key, met.clone());
        Ok(met)
    }

    fn peers(&mut self, url: &Url) -> Result<Vec<Peer>, String> {
        let (host, port) = (host_of(url), url.port_or_known_default().unwrap_or(80));
        let look_up = || match host::resolve(&host, port, host::Family::Any) {
            Ok((found, _)) => Ok(found.into_iter().map(Peer::Tcp).collect()),
            Err(error) => Err(error.to_string()),
        };
        self.known.entry((host.clone(), port)).or_insert_with(look_up).clone()
    }

    /// Returns a request with the addresses of its server.
    fn addressed(&mut self, outgoing: Outgoing) -> Result<Request, ExchangeOutcome> {
        let failed = |class, text| ExchangeOutcome::nothing(ExchangeError::new(class, text));
        let Outgoing { url, mut message, timeout, negotiates } = outgoing;
        let secure = url.scheme() == "https";
        if secure
            && negotiates
            && let Some(over_http2) = message.over_http2(&url)
            && self.prefers_http2(&url)
        {
            message = over_http2;
        }
        if secure {
            self.secure(&message).map_err(|why| failed(FailureClass::Tls, why))?;
        }
        let way = self.find_endpoint(&url).map_err(|why| failed(FailureClass::Unreachable, why))?;
        let Endpoint { peers, tls_name, tunnel, .. } = way;
        if message.is_http3() {
            if !secure {
                let why = format!("HTTP/3 requires TLS, but the URL is {url}");
                return Err(failed(FailureClass::Tls, why));
            }
            let name = tls_name.unwrap_or_else(|| host_of(&url));
            let over_quic = |peer: &Peer| match peer {
                Peer::Quic { .. } => Some(peer.clone()),
                _ => peer.address().map(|address| Peer::Quic { address, name: name.clone() }),
            };
            let below = |peer: Peer| match message.is_tunneled() {
                true => Peer::Tunnel { to: Box::new(peer), name: None },
                false => peer,
            };
            let peers = peers.iter().filter_map(over_quic).map(below).collect();
            return Ok(Request { peers, tls_name: None, tunnel: None, message, timeout });
        }
        if message.is_tunneled() {
            let below = |to| Peer::Tunnel { to: Box::new(to), name: tls_name.clone() };
            let peers = peers.into_iter().map(below).collect();
            return Ok(Request { peers, tls_name: None, tunnel: None, message, timeout });
        }
        Ok(Request { peers, tls_name, tunnel, message, timeout })
    }

    /// Returns the terms of WebSockets over HTTP/2 and HTTP/3, each on its own connection.
    fn tunnels(&self, requests: &[Request]) -> Result<Option<TunnelTerms>, String> {
        let mut tunneled = requests.iter().filter(|request| request.message.is_tunneled());
        let secure = |peer: &Peer| matches!(peer, Peer::Tunnel { name: Some(_), .. });
        if tunneled.clone().next().is_none() {
            return Ok(None);
        }
        let is_secure = tunneled.any(|request| request.peers.iter().any(secure));
        let client = is_secure.then(|| client_for(&self.settings, http2::ALPN)).transpose()?;
        let tls = client.map(|client| -> Box<dyn TlsFactory> { Box::new(client.factory()) });
        let settings = http2::SessionSettings::default();
        Ok(Some(TunnelTerms { settings, per_connection: 1, tls }))
    }

    /// Returns whether the URL's server chooses HTTP/2 by ALPN, from a handshake without a request.
    fn prefers_http2(&mut self, url: &Url) -> bool {
        let key = endpoint_key(url);
        if let Some(known) = self.preferences.get(&key) {
            return *known;
        }
        let chosen = self.agreed(url).is_some_and(|name| name == http2::ALPN);
        self.preferences.insert(key, chosen);
        chosen
    }

    fn agreed(&mut self, url: &Url) -> Option<String> {
        let Endpoint { peers, tls_name, tunnel, .. } = self.find_endpoint(url).ok()?;
        let alpn = [http2::ALPN, HTTP1].map(str::to_owned).to_vec();
        let client = client_of(&net::tls::Settings { alpn, ..self.settings.clone() }).ok()?;
        let (message, timeout) = (Message::Handshake, self.connect);
        let request = Request { peers, tls_name, tunnel, message, timeout };
        let mut factory = client.factory();
        let mut machine = Exchange::new(vec![request], self.connect, Some(&mut factory));
        run_until_stopped(&mut machine, &mut self.reactor);
        machine.contact(0).agreed
    }

    /// Returns an event loop for QUIC and TCP; `None` if no descriptor is left.
    fn quic(&self) -> Option<impl Io + use<>> {
        let carrier = over_quic::Carrier::new(self.tls_http3.as_ref()?)?;
        Some(carrier.wrap(Reactor::new(Nanos::ZERO).ok()?))
    }

    fn talk(&mut self, requests: Vec<Request>) -> Vec<ExchangeOutcome> {
        let tunnels = match self.tunnels(&requests) {
            Ok(tunnels) => tunnels,
            Err(why) => {
                let failed = |_| {
                    ExchangeOutcome::nothing(ExchangeError::new(FailureClass::Tls, why.clone()))
                };
                return requests.iter().map(failed).collect();
            }
        };
        let over_quic = requests.iter().any(|request| request.message.is_http3());
        let quic = over_quic.then(|| self.quic()).flatten();
        let factory = self.tls.as_mut().map(|factory| factory as &mut dyn TlsFactory);
        let http2 = self.tls_http2.as_mut().map(|factory| factory as &mut dyn TlsFactory);
        let mut machine = Exchange::new(requests, self.connect, factory).http2_over(http2);
        if let Some(io) = quic {
            run_over(&mut machine, io, tunnels);
            return machine.finish();
        }
        let own = self.own.as_ref().map(|(network, seed)| network.caller(*seed));
        match own {
            None if tunnels.is_none() => run_until_stopped(&mut machine, &mut self.reactor),
            None => match Reactor::new(Nanos::ZERO) {
                Ok(io) => run_over(&mut machine, io, tunnels),
                Err(_) => machine.abandon(&mut self.reactor),
            },
            Some(Ok(io)) => run_over(&mut machine, io, tunnels),
            // no descriptor is left: a kernel connection cannot replace it
            Some(Err(_)) => machine.abandon(&mut self.reactor),
        }
        machine.finish()
    }
}

fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

fn client_of(settings: &net::tls::Settings) -> Result<net::tls::Client, String> {
    net::tls::Client::new(settings).map_err(|error| error.to_string())
}

/// Returns a TLS client that offers only one protocol.
fn client_for(settings: &net::tls::Settings, protocol: &str) -> Result<net::tls::Client, String> {
    client_of(&net::tls::Settings { alpn: vec![protocol.to_owned()], ..settings.clone() })
}

/// Runs the exchanges over this network, with the tunnels of WebSockets that they need.
fn run_over(machine: &mut Exchange<'_>, mut io: impl Io, tunnels: Option<TunnelTerms>) {
    match tunnels {
        Some(terms) => run_until_stopped(machine, &mut Tunnels::new(io, terms)),
        None => run_until_stopped(machine, &mut io),
    }
}

/// Runs the exchanges; a signal ends them.
fn run_until_stopped(machine: &mut Exchange<'_>, io: &mut impl Io) {
    let mut ready = Vec::new();
    while let Pause::Until(at) = machine.turn(io) {
        let nap = io.now() + SIGNAL_CHECK;
        io.wait(at.min(nap), &mut ready);
        for event in &ready {
            machine.handle(io, *event);
        }
        if crate::signals::received_signal() > 0 {
            machine.abandon(io);
            return;
        }
    }
}

impl exchange::Caller for Caller {
    fn exchange(&mut self, requests: Vec<Outgoing>) -> Vec<ExchangeOutcome> {
        let addressed: Vec<Result<Request, ExchangeOutcome>> =
            requests.into_iter().map(|outgoing| self.addressed(outgoing)).collect();
        let ready = addressed.iter().flatten().cloned().collect();
        let mut heard = self.talk(ready).into_iter();
        let place = |addressed: Result<Request, ExchangeOutcome>| match addressed {
            Ok(_) => heard.next(),
            Err(known) => Some(known),
        };
        addressed.into_iter().filter_map(place).collect()
    }

    fn interrupted(&self) -> bool {
        crate::signals::received_signal() > 0
    }
}
