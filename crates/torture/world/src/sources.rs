//! Sources of proofs in the real world: files over HTTP at pinned addresses, and TXT records.
//! Redirects are not followed, proxies are not used, and the certificate is always checked.

use conduit::{Io, Peer, TlsFactory};
use engine::exchange::{Exchange, ExchangeOutcome, Message, Request};
use net::reactor::Reactor;
use protocol::http1::response::Asked;
use session::wall_clock;
use std::net::SocketAddr;
use torture::safety::proof::{FILE_PATH, PROOF_MAX, Sources};
use units::Nanos;
use url::Url;

/// Timeout of a connection and of its response.
const WAIT: Nanos = Nanos::from_secs(5);

pub struct Internet {
    reactor: Reactor,
    tls: Option<net::tls::Factory>,
    /// Name for SNI and the certificate; `None` without TLS.
    tls_name: Option<String>,
    /// Value of the Host field.
    host: String,
    /// Our additional field lines.
    fields: String,
}

impl std::fmt::Debug for Internet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Internet").finish_non_exhaustive()
    }
}

impl Internet {
    /// Creates a client; `host` and `fields` as in the requests of the run.
    ///
    /// # Errors
    /// Fails if no descriptor is available, or the system's certificates cannot be read.
    pub fn new(url: &Url, host: &str, fields: &str) -> Result<Internet, String> {
        let secure = url.scheme() == "https";
        let tls = match secure {
            true => {
                let client = net::tls::Client::new(&net::tls::Settings::default());
                Some(client.map_err(|error| error.to_string())?.factory())
            }
            false => None,
        };
        let name = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let reactor = Reactor::new(Nanos::ZERO).map_err(|error| error.to_string())?;
        Ok(Internet {
            reactor,
            tls,
            tls_name: secure.then_some(name),
            host: host.to_owned(),
            fields: fields.to_owned(),
        })
    }

    pub fn now(&mut self) -> Nanos {
        self.reactor.now()
    }

    fn fetch(&mut self, address: SocketAddr) -> Option<ExchangeOutcome> {
        let (host, fields) = (&self.host, &self.fields);
        let head = format!(
            "GET {FILE_PATH} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n"
        );
        let request = Request {
            peers: vec![Peer::Tcp(address)],
            tls_name: self.tls_name.clone(),
            tunnel: None,
            message: Message::Http1 { bytes: head.into_bytes(), asked: Asked::Ordinary },
            timeout: WAIT,
        };
        let factory = self.tls.as_mut().map(|factory| factory as &mut dyn TlsFactory);
        let mut machine = Exchange::new(vec![request], WAIT, factory);
        machine.drive(&mut self.reactor);
        machine.finish().pop()
    }
}

impl Sources for Internet {
    fn unix_seconds(&mut self) -> i64 {
        // seconds of this century fit exactly
        wall_clock::unix_seconds() as i64
    }

    fn file(&mut self, address: SocketAddr) -> Result<Vec<u8>, String> {
        let heard = self.fetch(address).ok_or("it was not queried")?;
        let reply = heard.result.map_err(|trouble| trouble.text)?;
        match reply.facts.status {
            200 => {
                let mut body = reply.body;
                body.truncate(PROOF_MAX + 1);
                Ok(body)
            }
            status => {
                Err(format!("answered {status} (it must be 200; redirects are not followed)"))
            }
        }
    }

    fn txt(&mut self, name: &str) -> Result<Vec<Vec<u8>>, String> {
        host::txt(name)
    }
}

/// Source without a proof, for targets that need none.
#[derive(Debug)]
pub struct Nowhere;

impl Sources for Nowhere {
    fn unix_seconds(&mut self) -> i64 {
        wall_clock::unix_seconds() as i64
    }

    fn file(&mut self, _: SocketAddr) -> Result<Vec<u8>, String> {
        Err("this run does not search for proofs".to_owned())
    }

    fn txt(&mut self, _: &str) -> Result<Vec<Vec<u8>>, String> {
        Err("this run does not search for proofs".to_owned())
    }
}
