//! Who is tested: the URL as an address, with everything that a request needs.

use crate::args::TortureArgs;
use crate::exit::{Code, Failure};
use conduit::Peer;
use std::net::IpAddr;
use torture::session::Target;
use torture::text::Values;
use url::Url;

pub(super) fn tls_for(args: &TortureArgs, url: &Url) -> Result<Option<tls::Factory>, Failure> {
    if url.scheme() != "https" {
        return Ok(None);
    }
    let settings = tls::Settings { insecure: args.what.insecure, ..tls::Settings::default() };
    let client = tls::Client::new(&settings);
    Ok(Some(client.map_err(|error| Failure::usage(error.to_string()))?.factory()))
}

/// # Errors
/// A name that leads nowhere.
pub(super) fn reach(args: &TortureArgs, url: &Url) -> Result<(Target, Vec<IpAddr>), Failure> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let (found, _) = host::resolve(host, port, host::Family::Any)
        .map_err(|error| Failure { code: Code::NoConnection, text: error.to_string() })?;
    let first = *found.first().ok_or_else(|| Failure::usage(format!("{host} has no address")))?;
    let named = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    let target = Target {
        peer: Peer::Tcp(first),
        tls_name: (url.scheme() == "https").then(|| host.trim_matches(['[', ']']).to_owned()),
        values: Values {
            path,
            host: named,
            post: args.what.post.clone().unwrap_or_default(),
            marker: String::new(),
        },
        takes_bodies: args.what.post.is_some(),
        fields: format!("User-Agent: loadstone-torture/{}\r\n", env!("CARGO_PKG_VERSION")),
    };
    Ok((target, found.iter().map(std::net::SocketAddr::ip).collect()))
}
