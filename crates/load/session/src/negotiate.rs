//! Finds the protocol that a server prefers, if the plan leaves the choice to it: a TLS handshake
//! with each host, without a request, before the first call. Without TLS there is no ALPN, and
//! HTTP/1.1 is used (prior knowledge, RFC 9113 section 3.3, is not assumed).

use crate::caller::HTTP1;
use crate::exit::Failure;
use crate::first_call;
use crate::servers::{offered, tls_client};
use crate::session::Session;
use crate::settled::Negotiated;
use plan::{HttpVersion, Plan, TlsPlan};

/// Result if the choice is left to the server.
#[derive(Debug)]
pub struct Choice {
    /// Protocols in the order in which they were offered; empty without TLS.
    pub(crate) offered: Vec<String>,
    /// ALPN name of the chosen protocol; `None` if the server chose none, or there is no TLS.
    pub chosen: Option<String>,
    /// No host responded; the run will find the reason.
    pub(crate) unreached: bool,
    /// Two hosts that chose different protocols, each with its choice: HTTP/1.1 is used for all.
    split: Option<String>,
}

impl Session {
    /// Determines which protocol is used, and prepares TLS for it; returns `None` if the plan names
    /// the protocol. The servers are queried by a TLS handshake without a request.
    ///
    /// # Errors
    /// Fails if TLS settings cannot be used.
    pub fn negotiate(&mut self) -> Result<Option<Choice>, Failure> {
        let plan = &*self.fit.plan.clone();
        if plan.request.version != HttpVersion::Auto {
            return Ok(None);
        }
        let mut asked: Vec<(String, Option<String>)> = Vec::new();
        let mut silent = 0;
        let (tls, own) = (self.servers.tls.as_ref(), self.fit.network.own());
        for endpoint in &mut self.servers.endpoints {
            if endpoint.tls_name.is_none() {
                continue;
            }
            match first_call::preference(plan, endpoint, tls, own) {
                Some(chosen) => asked.push((endpoint.key.clone(), chosen)),
                None => silent += 1,
            }
        }
        let secure = tls.is_some();
        let offered = if secure { offered(&plan.tls) } else { Vec::new() };
        let split = split(&asked);
        let agreed = asked.first().filter(|_| split.is_none());
        let chosen = agreed.and_then(|(_, chosen)| chosen.clone());
        let http2 = chosen.as_deref() == Some(http2::ALPN);
        let version = if http2 { HttpVersion::Http2 } else { HttpVersion::Http11 };
        // from now on it is required, as if the plan had named it
        let alpn = match offered.iter().any(|name| name == HTTP1) || http2 || !secure {
            true => TlsPlan::default().alpn,
            false => offered.clone(),
        };
        self.set_protocol(Negotiated { version, alpn });
        if secure {
            let plan = self.fit.plan.clone();
            self.servers.renew_tls(&plan).map_err(Failure::from_run)?;
        }
        let unreached = silent > 0 && asked.is_empty();
        Ok(Some(Choice { offered, chosen, unreached, split }))
    }

    /// Adds a note if the session's servers are called over HTTP/1.1 by default and also offer
    /// HTTP/2. This takes a TLS handshake without a request.
    pub fn note_unused_http2(&mut self) {
        let note = self.offers_http2().filter(|offers| *offers).map(|_| {
            "HTTP/1.1 is used; the server also offers HTTP/2 (h2): add --http 2 to measure that"
                .to_owned()
        });
        self.notes.extend(note);
    }

    /// Returns whether the first server with TLS prefers HTTP/2, or `None` if it was not queried,
    /// or did not answer.
    fn offers_http2(&self) -> Option<bool> {
        let by_default = self.fit.plan.tls.alpn == TlsPlan::default().alpn;
        let version = self.fit.plan.request.version;
        if version != HttpVersion::Http11 || !by_default || self.fit.network.route().is_some() {
            return None;
        }
        let mut plan = (*self.fit.plan).clone();
        plan.request.version = HttpVersion::Auto;
        let mut endpoints = self.servers.endpoints.iter();
        let mut endpoint = endpoints.find(|endpoint| endpoint.tls_name.is_some())?.clone();
        let tls = tls_client(&plan).ok()?;
        let own = self.fit.network.own();
        let chosen = first_call::preference(&plan, &mut endpoint, Some(&tls), own)??;
        Some(chosen == http2::ALPN)
    }
}

/// Describes the first two hosts that chose different protocols.
fn split(asked: &[(String, Option<String>)]) -> Option<String> {
    let (first, chosen) = asked.first()?;
    let (key, other) = asked.iter().find(|(_, other)| other != chosen)?;
    let name = |chosen: &Option<String>| chosen.clone().unwrap_or_else(|| "nothing".to_owned());
    Some(format!("{first} chose {}, and {key} {}", name(chosen), name(other)))
}

impl Choice {
    /// Describes the choice. `streams`: the requested number per connection.
    pub(crate) fn sentence(&self, plan: &Plan, streams: u32) -> String {
        let version = plan.request.version.name();
        let ignored = match plan.request.version {
            HttpVersion::Http11 if streams > 1 => {
                format!(
                    "; --streams {streams} has no effect there, and a user has one call in flight"
                )
            }
            _ => String::new(),
        };
        let offered = self.offered.join(" and ");
        if let Some(split) = &self.split {
            return format!(
                "all servers are called over {version}: {split}; set another version with --http{ignored}"
            );
        }
        match &self.chosen {
            _ if self.offered.is_empty() => {
                format!(
                    "{version} is used: without TLS the server cannot choose a version{ignored}"
                )
            }
            Some(_) => format!("{version} is used: the server chose it from {offered}{ignored}"),
            None => {
                format!("{version} is used: the server chose none of {offered} by ALPN{ignored}")
            }
        }
    }
}
