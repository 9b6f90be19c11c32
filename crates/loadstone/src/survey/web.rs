//! Visits to web servers.

use super::list::{Listed, Resolved};
use super::permit::Permit;
use crate::exit::Failure;
use args::SurveyArgs;
use campaign::World;
use conduit::{Peer, TlsFactory};
use dialogue::governor::{Bounds, Governor, Stop};
use dialogue::talk::TalkEnd;
use dialogue::text::Values;
use record::survey::SurveyedServer;
use sample::TlsFacts;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use torture::survey::http::PLAIN;
use torture::survey::{Depth, HALF, IDLE, Tour, TourResult, TourStop, classify, http};
use units::Nanos;
use url::Position;
use world::Sockets;

/// Time limit for a connection, and for each piece of a handshake.
const WAIT: Duration = Duration::from_secs(5);
/// Maximum number of handshake pieces that are read.
const PIECES_MAX: usize = 64;
/// Maximum number of bytes sent on one connection before a response.
const MESSAGE_MAX: u64 = 64 << 10;

pub(super) fn visit(
    args: &SurveyArgs,
    listed: &Resolved,
    permit: &Permit,
) -> Result<Vec<SurveyedServer>, Failure> {
    let stops: Vec<TourStop> =
        listed.servers.iter().map(|one| stop(args, one, permit.depth(one.address.ip()))).collect();
    let secure = stops.iter().any(|stop| stop.tls_name.is_some());
    let tls = if secure { Some(factory(net::tls::Versions::Any, &["http/1.1"])?) } else { None };
    let addresses: Vec<SocketAddr> = listed.servers.iter().map(|one| one.address).collect();
    let outside = || (crate::signals::received_signal() > 0).then_some(Stop::Interrupted);
    let governor = Governor::new(bounds(args), addresses, false);
    let mut sockets = Sockets::new(tls, governor, Box::new(outside))?;
    let mut tour = Tour::new(stops, args.at_once as usize);
    sockets.play(&mut tour);
    let gap = Duration::from_secs(1) / args.rate.max(1);
    let mut servers = Vec::new();
    for (one, visit) in listed.servers.iter().zip(tour.into_visits()) {
        let mut server = survey_row(one, &visit);
        if server.reached && permit.depth(one.address.ip()) != Depth::Plain {
            probe_tls(one, &mut server, gap)?;
        }
        servers.push(server);
    }
    Ok(servers)
}

fn bounds(args: &SurveyArgs) -> Bounds {
    Bounds {
        connections_max: u64::from(args.at_once),
        opens_max: u64::from(args.rate),
        requests_max: None,
        bytes_max: None,
        message_max: MESSAGE_MAX,
        case_max: Nanos::NEVER,
        run_max: None,
        lost_max: None,
    }
}

fn stop(args: &SurveyArgs, one: &Listed, depth: Depth) -> TourStop {
    let url = one.entry.url.as_ref();
    let host = &one.entry.host;
    let port = url.and_then(url::Url::port).map_or(String::new(), |port| format!(":{port}"));
    let contact = args.contact.as_ref().map_or(String::new(), |mail| format!("From: {mail}\r\n"));
    let path = url.map_or("/", |url| &url[Position::BeforePath..Position::AfterQuery]);
    let secure = url.is_some_and(|url| url.scheme() == "https");
    TourStop {
        peer: Peer::Tcp(one.address),
        tls_name: secure.then(|| host.trim_matches(['[', ']']).to_owned()),
        values: Values {
            path: path.to_owned(),
            host: format!("{host}{port}"),
            fields: format!("User-Agent: {}\r\n{contact}", super::agent()),
            ..Values::default()
        },
        depth,
    }
}

fn survey_row(one: &Listed, visit: &TourResult) -> SurveyedServer {
    let server = SurveyedServer::at(one.address, &one.names);
    let Some(plain) = visit.talk(PLAIN) else {
        return server.unreached("the survey ended before it");
    };
    if let TalkEnd::Unconnected(class) = plain.end {
        return server.unreached(class.explain());
    }
    if plain.replies.responses.is_empty() {
        return server.unreached(&format!("no response: {}", torture::judge::seen(plain)));
    }
    let asked = visit.talks.iter().filter(|(question, _)| ![IDLE, HALF].contains(question));
    let evidence: Vec<(String, String)> = asked
        .map(|(question, talk)| ((*question).to_owned(), http::signature(question, talk)))
        .collect();
    let mut server = server;
    server.set_software(&classify(&http::TABLE, &http::claim(plain), &evidence), &evidence);
    server.http.extend(http::version(plain).map(str::to_owned));
    let seconds = |question| visit.deadline(question).map(Nanos::as_secs_f64);
    if visit.talk(IDLE).is_some() {
        server.deadlines = Some(record::survey::SurveyedDeadlines {
            idle_s: seconds(IDLE),
            half_head_s: seconds(HALF),
        });
    }
    server
}

/// Returns the TLS versions that complete a handshake, and whether HTTP/2 is supported: two more
/// connections, each `gap` after the previous one.
fn probe_tls(one: &Listed, server: &mut SurveyedServer, gap: Duration) -> Result<(), Failure> {
    let secure = one.entry.url.as_ref().is_some_and(|url| url.scheme() == "https");
    if !secure {
        return Ok(());
    }
    for versions in [net::tls::Versions::Tls12, net::tls::Versions::Tls13] {
        if !crate::signals::pause(gap) {
            return Ok(());
        }
        let mut factory = factory(versions, &["h2", "http/1.1"])?;
        let name = one.entry.host.trim_matches(['[', ']']);
        let Some(facts) = handshake_facts(one.address, &mut factory, name) else { continue };
        server.tls.push(facts.version);
        if facts.alpn == "h2" && !server.http.iter().any(|version| version == "2") {
            server.http.push("2".to_owned());
        }
    }
    Ok(())
}

/// Returns the negotiated parameters of a handshake; `None` if it failed.
fn handshake_facts(
    address: SocketAddr,
    factory: &mut net::tls::Factory,
    name: &str,
) -> Option<TlsFacts> {
    let mut session = factory.session(name).ok()?;
    let mut stream = TcpStream::connect_timeout(&address, WAIT).ok()?;
    stream.set_read_timeout(Some(WAIT)).ok()?;
    stream.set_write_timeout(Some(WAIT)).ok()?;
    let (mut out, mut plain, mut piece) = (Vec::new(), Vec::new(), vec![0; 16 << 10]);
    for _ in 0..PIECES_MAX {
        out.clear();
        session.drain(&mut out);
        stream.write_all(&out).ok()?;
        if let Some(facts) = session.facts().filter(|_| !session.handshaking()) {
            session.close();
            out.clear();
            session.drain(&mut out);
            stream.write_all(&out).ok();
            return Some(facts);
        }
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        session.feed(&piece[..count], &mut plain).ok()?;
    }
    None
}

/// Returns a TLS factory that accepts any certificate: nothing secret is sent, and the certificate
/// is not evaluated.
fn factory(versions: net::tls::Versions, alpn: &[&str]) -> Result<net::tls::Factory, Failure> {
    let alpn = alpn.iter().map(|name| (*name).to_owned()).collect();
    let settings =
        net::tls::Settings { insecure: true, versions, alpn, ..net::tls::Settings::default() };
    let client = net::tls::Client::new(&settings);
    Ok(client.map_err(|error| Failure::usage(error.to_string()))?.factory())
}

#[cfg(test)]
mod tests {
    use super::super::list;
    use super::*;

    #[test]
    fn each_handshake_waits_for_its_turn() {
        // there is no server
        let place = "127.0.0.1:1".parse().unwrap();
        let listed = list::resolved(&list::read(&format!("https://{place}/"), false).unwrap());
        let mut server = SurveyedServer::at(place, &[]);
        let begun = net::reactor::monotonic();
        probe_tls(&listed.servers[0], &mut server, Duration::from_millis(100)).unwrap();
        assert!(net::reactor::monotonic() - begun >= Nanos::from_millis(200));
    }
}
