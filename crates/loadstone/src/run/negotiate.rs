//! The protocol that a server prefers, where the plan leaves it the choice: a TLS handshake with each
//! host and nothing behind it, before the first call. Without TLS there is no ALPN, and HTTP/1.1 is
//! spoken (RFC 9113 section 3.3 has prior knowledge instead, which nobody has here).

use super::first_call;
use super::prepare::{self, Prepared};
use super::settled::Spoken;
use crate::exit::Failure;
use plan::{HttpVersion, Plan, TlsPlan};
use std::sync::Arc;

/// What is offered where the plan names nothing else.
const OFFERED: [&str; 2] = [http2::ALPN, HTTP1];
const HTTP1: &str = "http/1.1";

/// What came of leaving the choice to the server.
#[derive(Debug)]
pub(crate) struct Choice {
    /// In the order in which they were offered; none without TLS.
    pub(crate) offered: Vec<String>,
    /// By its name in ALPN; `None`: the server chose nothing, or there is no TLS.
    pub(crate) chosen: Option<String>,
    /// No host could be asked; the run will find out why.
    pub(crate) unreached: bool,
}

/// The protocols that a plan offers.
pub(crate) fn offered(tls: &TlsPlan) -> Vec<String> {
    if tls.alpn == TlsPlan::default().alpn {
        return OFFERED.map(str::to_owned).to_vec();
    }
    tls.alpn.clone()
}

/// Settles which protocol is spoken, and makes TLS ready for that one alone. `None`: the plan
/// had said it itself.
///
/// # Errors
/// Hosts that prefer different protocols; TLS settings that cannot be used.
pub(crate) fn settle(prepared: &mut Prepared) -> Result<Option<Choice>, Failure> {
    let plan = &*prepared.plan.clone();
    if plan.request.version != HttpVersion::Auto {
        return Ok(None);
    }
    let mut asked: Vec<(String, Option<String>)> = Vec::new();
    let mut silent = 0;
    for endpoint in &mut prepared.endpoints {
        if endpoint.tls_name.is_none() {
            continue;
        }
        let (tls, own) = (prepared.tls.as_ref(), prepared.own.as_ref());
        match first_call::preference(plan, endpoint, tls, own) {
            Some(chosen) => asked.push((endpoint.key.clone(), chosen)),
            None => silent += 1,
        }
    }
    let secure = prepared.tls.is_some();
    let offered = if secure { offered(&plan.tls) } else { Vec::new() };
    let chosen = asked.first().and_then(|(_, chosen)| chosen.clone());
    if let Some((key, other)) = asked.iter().find(|(_, other)| *other != chosen) {
        let name = |chosen: &Option<String>| chosen.clone().unwrap_or_else(|| "nothing".to_owned());
        return Err(Failure::usage(format!(
            "{} prefers {}, and {key} {}: the calls of a run speak one protocol; name it with --http",
            asked[0].0,
            name(&chosen),
            name(other)
        )));
    }
    let http2 = chosen.as_deref() == Some(http2::ALPN);
    let version = if http2 { HttpVersion::Http2 } else { HttpVersion::Http11 };
    // from now on it is demanded, as if it had been named
    let alpn = match offered.iter().any(|name| name == HTTP1) || http2 || !secure {
        true => TlsPlan::default().alpn,
        false => offered.clone(),
    };
    prepared.speak(Spoken { version, alpn });
    if secure {
        prepare::renew_tls(prepared).map_err(Failure::from_run)?;
    }
    Ok(Some(Choice { offered, chosen, unreached: silent > 0 && asked.is_empty() }))
}

/// A note for a run over HTTP/1.1 by default: that its server offers HTTP/2 as well. This takes a TLS
/// handshake without a request.
pub(crate) fn unused_http2(prepared: &Prepared) -> Option<String> {
    let plan = &prepared.plan;
    let by_default = plan.tls.alpn == TlsPlan::default().alpn;
    let version = plan.request.version;
    if version != HttpVersion::Http11 || !by_default || prepared.route.is_some() {
        return None;
    }
    let mut asking = prepared.clone();
    let mut plan = (**plan).clone();
    plan.request.version = HttpVersion::Auto;
    asking.plan = Arc::new(plan);
    let endpoint = asking.endpoints.iter_mut().find(|endpoint| endpoint.tls_name.is_some())?;
    let mut endpoint = endpoint.clone();
    prepare::renew_tls(&mut asking).ok()?;
    let (tls, own) = (asking.tls.as_ref(), asking.own.as_ref());
    let chosen = first_call::preference(&asking.plan, &mut endpoint, tls, own)??;
    (chosen == http2::ALPN).then(|| {
        "HTTP/1.1 is used; the server also offers HTTP/2 (h2): add --http 2 to measure that"
            .to_owned()
    })
}

impl Choice {
    /// What there is to say of it. `streams`: what was asked for on a connection.
    pub(crate) fn sentence(&self, plan: &Plan, streams: u32) -> String {
        let version = plan.request.version.name();
        let ignored = match plan.request.version {
            HttpVersion::Http11 if streams > 1 => {
                format!(
                    "; --streams {streams} has no meaning there, and a user has one call under way"
                )
            }
            _ => String::new(),
        };
        let offered = self.offered.join(" and ");
        match &self.chosen {
            _ if self.offered.is_empty() => {
                format!(
                    "{version} is spoken: without TLS no server can say what it prefers{ignored}"
                )
            }
            Some(_) => format!("{version} is spoken: the server chose it of {offered}{ignored}"),
            None => {
                format!("{version} is spoken: the server chose none of {offered} by ALPN{ignored}")
            }
        }
    }
}
