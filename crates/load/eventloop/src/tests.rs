//! Loads on a real listener of this host, over each network that needs no permission.

use crate::{HeldCount, Network, run};
use conduit::Peer;
use engine::{Endpoint, Link, Order, Row, Setup, Worker, endpoint_key};
use net::reactor::{Reactor, RingReactor};
use plan::{Load, Plan, Think};
use sample::CallRecord;
use stats::Snapshot;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use units::Nanos;
use url::Url;

const CALLS: u64 = 20;

/// Returns a server that answers every request with 204, on a thread for each connection.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

/// Answers one request. Requests have no body, so each ends with an empty line.
fn answer(mut stream: TcpStream) {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        request.extend_from_slice(&piece[..count]);
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        }
    }
}

#[derive(Default)]
struct Sum(Snapshot);

impl Link for Sum {
    fn order(&mut self) -> Order {
        Order::Go
    }

    fn row(&mut self, row: Row) -> Box<Snapshot> {
        self.0.merge(&row.snapshot);
        Box::new(Snapshot::prepared(1))
    }

    fn log(&mut self, _: &mut Vec<CallRecord>) {}

    fn report_script_failure(&mut self, text: String) {
        panic!("there is no script: {text}");
    }
}

fn setup(address: SocketAddr) -> Arc<Setup> {
    let mut plan = Plan::for_url(Url::parse(&format!("http://{address}/")).unwrap());
    plan.load = Load::Closed { users: 2, think: Think::None, session: None };
    plan.stop.duration = None;
    plan.stop.requests = Some(CALLS);
    let key = endpoint_key(&plan.targets[0].url);
    let peers = vec![Peer::Tcp(address)];
    let endpoint = Endpoint { key, peers, tls_name: None, tunnel: None, absolute: false };
    Arc::new(Setup::new(plan, vec![endpoint], 1, net::reactor::monotonic()).unwrap())
}

/// Number of succeeded calls, and the final state of the held connections.
fn outcome(loads: usize, network: Network, held: Option<u32>) -> (u64, Option<(u64, u64)>) {
    let address = server();
    let workers = (0..loads).map(|_| Worker::new(setup(address), 0, None)).collect();
    let held = held.map(|count| HeldCount { count, peers: vec![Peer::Tcp(address)] });
    let mut sum = Sum::default();
    let facts = run(0, workers, false, network, held, &mut sum);
    sum.0.counts.conserved().unwrap();
    (sum.0.counts.succeeded, facts.map(|facts| (facts.wanted, facts.stood)))
}

fn sockets() -> Network {
    Network::Sockets(Reactor::new(Nanos::ZERO).unwrap())
}

#[test]
fn one_load_runs_over_sockets() {
    assert_eq!(outcome(1, sockets(), None), (CALLS, None));
}

#[test]
fn one_load_runs_over_io_uring_where_the_kernel_has_it() {
    let Ok(ring) = RingReactor::new(Nanos::ZERO) else { return };
    assert_eq!(outcome(1, Network::Ring(Box::new(ring)), None), (CALLS, None));
}

#[test]
fn several_loads_share_a_network() {
    assert_eq!(outcome(3, sockets(), None), (3 * CALLS, None));
}

#[test]
fn connections_are_held_alongside_loads() {
    assert_eq!(outcome(1, sockets(), Some(5)), (CALLS, Some((5, 5))));
    assert_eq!(outcome(2, sockets(), Some(5)), (2 * CALLS, Some((5, 5))));
}
