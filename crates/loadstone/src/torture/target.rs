//! The target: the addresses of the URL, and the data that a request needs. The name is resolved
//! once, and only those addresses are tested.

use super::permit;
use crate::exit::{Code, Failure};
use args::TortureArgs;
use campaign::TestTarget;
use conduit::Peer;
use dialogue::calls;
use dialogue::http2::Protocol;
use dialogue::text::Values;
use std::net::{IpAddr, SocketAddr};
use torture::safety::{Class, proof};
use url::Url;

pub(super) fn tls_for(args: &TortureArgs, url: &Url) -> Result<Option<net::tls::Factory>, Failure> {
    if url.scheme() != "https" {
        return Ok(None);
    }
    let alpn = match args.what.protocol() {
        Protocol::Http1 => Vec::new(),
        Protocol::Http2 | Protocol::Http2Raw => vec![http2::ALPN.to_owned()],
        Protocol::Http3 | Protocol::Datagrams => vec![protocol::http3::ALPN.to_owned()],
    };
    let settings = net::tls::Settings {
        insecure: args.what.is_insecure(),
        exposed_keys: true,
        alpn,
        ..net::tls::Settings::default()
    };
    let client = net::tls::Client::new(&settings);
    Ok(Some(client.map_err(|error| Failure::usage(error.to_string()))?.factory()))
}

/// Returns whether cases call the server over gRPC.
pub(super) fn is_grpc(url: &Url) -> bool {
    plan::http_url(url.as_str()).is_some()
}

/// Returns the URL that is requested: that of a `grpc://` URL has the scheme `http`.
fn as_http(url: &Url) -> Url {
    let http = plan::http_url(url.as_str()).and_then(|text| Url::parse(&text).ok());
    http.unwrap_or_else(|| url.clone())
}

/// Target with the addresses of its name.
#[derive(Debug)]
pub(super) struct Reached {
    /// Requested URL; for gRPC, in its HTTP form.
    pub(super) url: Url,
    pub(super) target: TestTarget,
    /// Hosts; the first is tested.
    pub(super) hosts: Vec<IpAddr>,
    pub(super) addresses: Vec<SocketAddr>,
    /// Strictest class of all hosts.
    pub(super) class: Class,
    /// Identifies the run in the server's log.
    pub(super) run: String,
}

/// # Errors
/// Fails for a name without an address, or with one that may not be tested.
pub(super) fn reach(args: &TortureArgs, url: &Url) -> Result<Reached, Failure> {
    let (url, grpc) = (&as_http(url), is_grpc(url));
    if args.what.protocol().is_http3() {
        check_quic(url)?;
    }
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let (found, _) = host::resolve(host, port, host::Family::Any)
        .map_err(|error| Failure { code: Code::NoConnection, text: unresolved_message(&error) })?;
    let first = *found.first().ok_or_else(|| Failure::usage(format!("{host} has no address")))?;
    let hosts: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
    let class = permit::classify(url, &hosts)?;
    let run = run_id();
    let named = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let name = host.trim_matches(['[', ']']).to_owned();
    let mut path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    if grpc && path == "/" {
        calls::HEALTH.clone_into(&mut path);
    }
    let target = TestTarget {
        peer: match args.what.protocol() {
            Protocol::Http3 | Protocol::Datagrams => {
                Peer::Quic { address: first, name: name.clone() }
            }
            _ => Peer::Tcp(first),
        },
        tls_name: (url.scheme() == "https").then_some(name),
        protocol: args.what.protocol(),
        values: Values {
            scheme: url.scheme().to_owned(),
            path,
            host: named,
            post: args.what.post.clone().unwrap_or_default(),
            socket: args.what.ws_path.clone().unwrap_or_default(),
            fields: own_fields(args),
            message: if grpc { calls::EMPTY.to_vec() } else { Vec::new() },
            ..Values::default()
        },
        takes_bodies: args.what.post.is_some(),
        fields: fields(args, &run),
        secrets: secrets(args),
    };
    Ok(Reached { url: url.clone(), target, hosts, addresses: found, class, run })
}

fn check_quic(url: &Url) -> Result<(), Failure> {
    if !cfg!(feature = "h3") {
        return Err(Failure::usage(
            "this program was built without HTTP/3; use --http 2, or build with the feature h3",
        ));
    }
    if url.scheme() != "https" {
        return Err(Failure::usage(format!(
            "--http 3 cannot be used with {url}: HTTP/3 requires TLS; write https://"
        )));
    }
    Ok(())
}

fn unresolved_message(error: &host::ResolveError) -> String {
    format!("{}; check the spelling, or use an address in the URL", error.why())
}

/// Page that explains these requests to readers of a server's log.
const PAGE: &str = "loadstone/docs/guide/torture-safety.md";

/// Returns our identification, which options cannot replace.
fn fields(args: &TortureArgs, run: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let suffix = args.safety.agent_suffix.as_ref().map_or(String::new(), |text| format!(" {text}"));
    let mut fields =
        format!("User-Agent: loadstone-torture/{version} (run {run}; +{PAGE}){suffix}\r\n");
    if let Some(contact) = &args.safety.contact {
        fields.push_str(&format!("From: {contact}\r\n"));
    }
    fields + &own_fields(args)
}

/// Returns the fields that the user adds to every request.
fn own_fields(args: &TortureArgs) -> String {
    let request = args.safety.request();
    request.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

/// Returns values of the user's fields that are credentials.
fn secrets(args: &TortureArgs) -> Vec<String> {
    let fields = args.safety.request().headers.into_iter();
    let secret = fields.filter(|(name, value)| plan::is_secret_header(name) && !value.is_empty());
    secret.map(|(_, value)| value).collect()
}

/// Returns a unique id for logs of both sides.
pub(crate) fn run_id() -> String {
    let text = format!("{} {}", crate::wall_clock::unix_seconds(), std::process::id());
    proof::digest(text.as_bytes()).chars().take(8).collect()
}
