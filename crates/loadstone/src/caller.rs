//! Single exchanges in the real world: sockets, names, TLS. For checks, crawls and pages that a
//! face looks at before its run.

use conduit::{Io, Peer, TlsFactory};
use engine::exchange::{self, Exchange, Heard, Outgoing, Pause, Request, Trouble};
use ownstack::OwnNetwork;
use reactor::Reactor;
use sample::FailureClass;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;
use url::Url;

/// How long a signal may go unnoticed.
const SIGNAL_CHECK: Nanos = Nanos::from_millis(50);

/// Makes exchanges, each on a connection of its own.
pub(crate) struct Caller {
    pub(crate) reactor: Reactor,
    /// Connections are of our own TCP, over this network and with this seed of its links.
    own: Option<(Arc<OwnNetwork>, u64)>,
    connect: Nanos,
    /// Addresses by host and port, or why there are none.
    known: BTreeMap<(String, u16), Result<Vec<Peer>, String>>,
    settings: tls::Settings,
    tls: Option<tls::Factory>,
}

impl Caller {
    /// `connect`: the longest that connecting may take. TLS is made ready when a URL asks for it.
    ///
    /// # Errors
    /// No descriptor left.
    pub(crate) fn new(connect: Nanos, settings: tls::Settings) -> Result<Caller, String> {
        let reactor = Reactor::new(Nanos::ZERO)
            .map_err(|error| format!("cannot wait for sockets: {error}"))?;
        let known = BTreeMap::new();
        Ok(Caller { reactor, own: None, connect, known, settings, tls: None })
    }

    /// The same over our own TCP; nothing else may use the first worker's device meanwhile.
    pub(crate) fn over(mut self, own: Option<(Arc<OwnNetwork>, u64)>) -> Caller {
        self.own = own;
        self
    }

    /// Reading the system's certificates takes a while: only where TLS is spoken.
    pub(crate) fn ready_tls(&mut self) -> Result<(), String> {
        if self.tls.is_none() {
            let client = tls::Client::new(&self.settings).map_err(|error| error.to_string())?;
            self.tls = Some(client.factory());
        }
        Ok(())
    }

    /// The addresses of an endpoint, by its key; they are not looked up then.
    pub(crate) fn know(&mut self, key: &str, peers: &[Peer]) {
        let place = Url::parse(key).ok();
        let host =
            place.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
        if let Some((host, port)) = host {
            self.known.insert((host.to_owned(), port), Ok(peers.to_vec()));
        }
    }

    fn peers(&mut self, url: &Url) -> Result<Vec<Peer>, String> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        let look_up = || match host::resolve(&host, port, host::Family::Any) {
            Ok((found, _)) => Ok(found.into_iter().map(Peer::Tcp).collect()),
            Err(error) => Err(error.to_string()),
        };
        self.known.entry((host.clone(), port)).or_insert_with(look_up).clone()
    }

    /// A request with its addresses.
    fn addressed(&mut self, outgoing: Outgoing) -> Result<Request, Heard> {
        let failed = |class, text| {
            let result = Err(Trouble { class, text });
            Heard { result, connected: false, took: Nanos::ZERO }
        };
        let Outgoing { url, bytes, asked, timeout } = outgoing;
        let secure = url.scheme() == "https";
        if secure {
            self.ready_tls().map_err(|why| failed(FailureClass::Tls, why))?;
        }
        let peers = self.peers(&url).map_err(|why| failed(FailureClass::Unreachable, why))?;
        let tls_name = secure.then(|| url.host_str().unwrap_or_default().to_owned());
        Ok(Request { peers, tls_name, bytes, asked, timeout })
    }

    fn talk(&mut self, requests: Vec<Request>) -> Vec<Heard> {
        let factory = self.tls.as_mut().map(|factory| factory as &mut dyn TlsFactory);
        let mut machine = Exchange::new(requests, self.connect, factory);
        let own = self.own.as_ref().map(|(network, seed)| network.worker(0, *seed, Nanos::ZERO));
        match own {
            None => until_told(&mut machine, &mut self.reactor),
            Some(Ok(mut io)) => until_told(&mut machine, &mut io),
            // no descriptor is left: no kernel's connection stands in for it
            Some(Err(_)) => machine.abandon(&mut self.reactor),
        }
        machine.finish()
    }
}

fn until_told(machine: &mut Exchange<'_>, io: &mut impl Io) {
    let mut ready = Vec::new();
    while let Pause::Until(at) = machine.turn(io) {
        let nap = io.now() + SIGNAL_CHECK;
        io.wait(at.min(nap), &mut ready);
        for event in &ready {
            machine.handle(io, *event);
        }
        if crate::signals::caught() > 0 {
            machine.abandon(io);
            return;
        }
    }
}

impl exchange::Caller for Caller {
    fn exchange(&mut self, requests: Vec<Outgoing>) -> Vec<Heard> {
        let addressed: Vec<Result<Request, Heard>> =
            requests.into_iter().map(|outgoing| self.addressed(outgoing)).collect();
        let ready = addressed.iter().flatten().cloned().collect();
        let mut heard = self.talk(ready).into_iter();
        let place = |addressed: Result<Request, Heard>| match addressed {
            Ok(_) => heard.next(),
            Err(known) => Some(known),
        };
        addressed.into_iter().filter_map(place).collect()
    }

    fn interrupted(&self) -> bool {
        crate::signals::caught() > 0
    }
}
