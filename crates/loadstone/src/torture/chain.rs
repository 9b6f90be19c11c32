//! `loadstone torture chain`: sends the same requests to a proxy and to the origin behind it.

use super::permit::{self, Permit};
use super::target::{self, Reached};
use crate::exit::{Code, Failure};
use crate::files;
use args::{ChainArgs, TortureArgs};
use campaign::{ChainTargets, RecordingOrigin, TestTarget};
use record::torture::chain::{ChainEnds, chain_record};
use site::{OriginRecorder, RecordedMessage};
use std::net::{IpAddr, SocketAddr};
use torture::chain::{Arrival, ChainResult};
use torture::framing;
use torture::result::RunResult;
use torture::safety::{self, Class};
use url::Url;
use world::Sockets;

/// The recording origin, over sockets.
struct Origin(OriginRecorder);

impl RecordingOrigin for Origin {
    fn take(&mut self) -> Option<Vec<Arrival>> {
        let arrived = self.0.take()?;
        let arrival = |RecordedMessage { bytes, cut_off }| Arrival { bytes, cut_off };
        Some(arrived.into_iter().map(arrival).collect())
    }
}

/// # Errors
/// Fails for third-party addresses, an address that cannot be bound, a result that cannot be
/// written.
pub(super) fn chain(args: &ChainArgs) -> Result<Code, Failure> {
    files::check_results(args.json.as_ref(), [])?;
    check_frames(args)?;
    if args.origin.is_none() && args.back.is_none() {
        return Err(Failure::usage(
            "name the server behind the proxy: --origin ADDR:PORT to listen there and show what \
            arrives, --back URL for an existing server, or both",
        ));
    }
    let run = |url: &Url| args.run(url).map_err(|error| Failure::usage(error.to_string()));
    let protocol = args.protocol().unwrap_or_default();
    let mut front_run = run(&args.proxy)?;
    front_run.what.set_protocol(protocol);
    let mut front = target::reach(&front_run, &args.proxy)?;
    let back = match &args.back {
        Some(url) => Some(target::reach(&run(url)?, url)?),
        None => None,
    };
    check_own(args, &front, back.as_ref())?;
    shape(args, &mut front.target, back.as_ref());
    // only these two are permitted
    if let Some(back) = &back {
        front.hosts.extend(&back.hosts);
        front.addresses.extend(&back.addresses);
        front.class = safety::strictest(&front.hosts);
    }
    let origin = args.origin.map(origin).transpose()?;
    let asked = args.safety.requested();
    let Permit { governor, outside, audit, alone: _alone } =
        permit::permit(&front_run, &args.proxy, &front, &[], &asked)?;
    let factory = tls(args, &front_run)?;
    let mut sockets = Sockets::new(factory, governor, outside)?.over_quic(protocol)?;
    let requests = match protocol.has_frames() {
        true => torture::chain::downgrades(protocol),
        false => torture::chain::requests(),
    };
    let requests = requests.map_err(Failure::usage)?;
    let targets = ChainTargets { front: &front.target, back: back.as_ref().map(|one| &one.target) };
    let mut origin = origin.map(Origin);
    let listening = origin.as_ref().map(|origin| origin.0.address());
    let recording = origin.as_mut().map(|origin| origin as &mut dyn RecordingOrigin);
    let result = campaign::chain(targets, &requests, recording, &mut sockets);
    let code = exit_code(&result);
    if let Some(audit) = audit {
        let ended_early = result.ended_early.clone();
        let ended =
            RunResult { ended_early, interrupted: result.interrupted, ..RunResult::default() };
        audit.borrow_mut().end(&ended, code as u8);
    }
    let ends = ChainEnds {
        front: args.proxy.to_string(),
        http: protocol.version(),
        origin: listening.map(|address| address.to_string()),
        back: args.back.as_ref().map(Url::to_string),
        class: front.class,
    };
    let record = chain_record(&ends, &result);
    let json = args.json.as_ref().map(|sink| (sink, record::document::printed(&record)));
    files::write_results(json, [], || report::torture::chain_text(&record, args.quiet))?;
    Ok(code)
}

/// Returns TLS settings if either of the two uses it.
fn tls(args: &ChainArgs, front: &TortureArgs) -> Result<Option<net::tls::Factory>, Failure> {
    let mut urls = std::iter::once(&args.proxy).chain(&args.back);
    let Some(url) = urls.find(|url| url.scheme() == "https") else { return Ok(None) };
    target::tls_for(front, url)
}

/// Checks that HTTP/2 and HTTP/3 requests go to the proxy only; the origin gets HTTP/1.1, and only
/// the messages that arrived there.
fn check_frames(args: &ChainArgs) -> Result<(), Failure> {
    let Some(protocol) = args.protocol().filter(|protocol| protocol.has_frames()) else {
        return Ok(());
    };
    let version = protocol.version();
    match &args.back {
        Some(back) if args.origin.is_none() => Err(Failure::usage(format!(
            "--http {version} sends frames, which cannot be sent to {back} directly: also give \
            --origin ADDR:PORT, whose received requests are sent to --back"
        ))),
        Some(back) if back.scheme() == "https" => Err(Failure::usage(format!(
            "--back {back}: with --http {version} the server behind the proxy is queried over \
            HTTP/1.1 without TLS; give its http:// URL"
        ))),
        _ => Ok(()),
    }
}

/// Checks that all addresses are on this machine or named with --own: a request that is read as two
/// may affect another client.
fn check_own(args: &ChainArgs, front: &Reached, back: Option<&Reached>) -> Result<(), Failure> {
    let hosts = front.hosts.iter().chain(back.into_iter().flat_map(|back| &back.hosts));
    for host in hosts {
        own(args, *host)?;
    }
    args.origin.map_or(Ok(()), |origin| own(args, origin.ip()))
}

fn own(args: &ChainArgs, host: IpAddr) -> Result<(), Failure> {
    match safety::class(host) {
        Class::Local => Ok(()),
        Class::Private if args.safety.own.contains(&host) => Ok(()),
        Class::Private => Err(Failure::usage(format!(
            "a private address may belong to another party; confirm with --own {host}"
        ))),
        class => Err(Failure::usage(format!(
            "{host} is {}: chain needs addresses of your own: on this machine, or private ones \
            named with --own",
            class.id()
        ))),
    }
}

/// Makes requests name the page of the origin, if known: the proxy must have it too.
fn shape(args: &ChainArgs, front: &mut TestTarget, back: Option<&Reached>) {
    if let Some(back) = back {
        front.values.path.clone_from(&back.target.values.path);
    }
    front.values.post = args.post.clone().unwrap_or_else(|| front.values.path.clone());
}

fn origin(address: SocketAddr) -> Result<OriginRecorder, Failure> {
    OriginRecorder::start(address, |bytes| framing::read(bytes).is_exact(bytes.len()))
        .map_err(|error| Failure::usage(format!("--origin: {error}")))
}

fn exit_code(result: &ChainResult) -> Code {
    let disagree = result.rows.iter().any(|row| row.disagrees());
    match result {
        ChainResult { interrupted: true, .. } => Code::Interrupted,
        ChainResult { rows, .. } if rows.is_empty() => Code::NoConnection,
        ChainResult { ended_early: Some(_), .. } => Code::Invalid,
        _ if disagree => Code::Missed,
        _ => Code::Done,
    }
}
