//! Permission from the owner of a public server.

use crate::key;
use crate::sources::Internet;
use session::Failure;
use std::net::{IpAddr, SocketAddr};
use torture::safety::proof::{self, CaseGroup, Claim, FILE_PATH};
use torture::safety::{Class, strictest};
use url::Url;

/// Returns whether one of these addresses is on the public Internet.
pub fn is_public(addresses: &[SocketAddr]) -> bool {
    let hosts: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
    !hosts.is_empty() && strictest(&hosts) == Class::Public
}

/// Permits a fleet's load: finds a proof that names this installation and the group `overload`.
///
/// # Errors
/// Fails if the load is not permitted: the reason, and the fix.
pub fn permit_load(url: &Url, addresses: &[SocketAddr]) -> Result<(), Failure> {
    let host = url[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
    let mut sources = Internet::new(url, &host, "").map_err(Failure::usage)?;
    let claim = Claim {
        tester: key::fingerprint(&key::folder()?)?,
        host: host_of(url),
        addresses: addresses.to_vec(),
    };
    let why = match proof::find(&claim, &mut sources) {
        Ok(found) if found.proof.permits(CaseGroup::Overload) => return Ok(()),
        Ok(_) => "the proof does not name the group overload".to_owned(),
        Err(why) => format!("no proof of permission was found: {why}"),
    };
    Err(Failure::usage(format!(
        "{why}\nits owner must publish the output of \"loadstone torture prove --groups overload \
        {url}\" at {FILE_PATH} on every address"
    )))
}

/// Returns `host:port` as in a proof.
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    format!("{host}:{}", url.port_or_known_default().unwrap_or(80))
}
