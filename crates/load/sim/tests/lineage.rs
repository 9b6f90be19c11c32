//! The curves of `docs/lineage` that need no real machine: WebMark's figures 2, 3 and 4 (Zhang,
//! Zheng, Ju, 2003), in virtual time, against a server with the costs that follow from the
//! published peaks. Figure 1 of torture.pl is tested in `loadstone`, figure 5 in `wan`, S-Client's
//! in `s_client.rs`.

use plan::{Arrivals, HttpVersion, Load, Plan, Think};
use sim::{Action, Admission, Client, ClosureServer, Server, execute, plan_for};
use std::collections::BTreeSet;
use units::{Nanos, Rate};

const SECONDS: u64 = 20;
/// Cost of a connection and of a request at that server: 1/351.824 = r + c, 1/518.56 = r + c/10.
const CONNECTION: Nanos = Nanos(1_015_500);
const REQUEST: Nanos = Nanos(1_826_900);
/// Cost of a handshake, from figure 4: 1/184.592 = r + (c + h)/10.
const HANDSHAKE: Nanos = Nanos(34_888_000);

/// One processor, which works on a connection when its first request arrives.
fn server(connection: Nanos) -> Box<dyn Server> {
    let mut free = Nanos::ZERO;
    let mut met: BTreeSet<Client> = BTreeSet::new();
    let react = move |now: Nanos, client: Client, bytes: &[u8]| {
        free = free.max(now);
        if met.insert(client) {
            free += connection;
        }
        let last = bytes.windows(8).any(|at| at == b"HTTP/1.0" || at == b"n: close");
        let requests = bytes.windows(4).filter(|at| at == b"\r\n\r\n").count();
        let mut actions = Vec::new();
        for _ in 0..requests {
            free += REQUEST;
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx".to_vec();
            actions.push((free, Action::Bytes(response)));
        }
        if last {
            actions.push((free, Action::End));
        }
        actions
    };
    Box::new(ClosureServer { admit: Admission::Accept, react })
}

fn served(change: impl FnOnce(&mut Plan), connection: Nanos) -> f64 {
    let mut plan = plan_for("http://sim.example/hw");
    (plan.stop.duration, plan.stop.warm_up) = (Some(Nanos::from_secs(SECONDS)), Nanos::ZERO);
    change(&mut plan);
    let measured = execute(plan, server(connection), 1).measurement;
    measured.total.good_in_window as f64 / SECONDS as f64
}

fn near(found: f64, wanted: f64, off: f64, what: &str) {
    assert!((found / wanted - 1.0).abs() < off, "{what}: {found} is not {wanted}");
}

/// Users that wait for responses, with this many calls per connection, optionally in groups.
fn users(number: u32, calls: u32, group: Option<u32>) -> impl FnOnce(&mut Plan) {
    move |plan: &mut Plan| {
        plan.load = Load::Closed { users: number, think: Think::None, session: None };
        (plan.connection.calls, plan.connection.group) = (Some(calls), group);
    }
}

/// The requested load is served up to the knee; the peak is the published one, and load beyond it
/// waits. The published decline beyond the knee is the cost of abandoned connections: see S-Client.
#[test]
fn figure_2_is_straight_up_to_its_peak() {
    let at = |rate: f64| {
        let change = |plan: &mut Plan| {
            plan.request.version = HttpVersion::Http10;
            plan.connection.calls = Some(1);
            plan.load = Load::Open {
                arrivals: Arrivals::constant(Rate(rate)),
                session: None,
                connections_max: Some(10_000),
                queue_max: None,
            };
        };
        served(change, CONNECTION)
    };
    for rate in [100.0, 200.0, 300.0] {
        near(at(rate), rate, 0.01, "below the knee");
    }
    for rate in [400.0, 500.0, 700.0] {
        near(at(rate), 351.824, 0.01, "beyond it");
    }
}

/// Persistent connections (A) exceed HTTP/1.0 by the cost of connections, and groups of five (B)
/// are not slower.
#[test]
fn figure_3_gains_the_cost_of_connections() {
    let old = served(users(16, 1, None), CONNECTION);
    let persistent = served(users(16, 10, None), CONNECTION);
    let grouped = served(users(16, 10, Some(5)), CONNECTION);
    near(old, 351.824, 0.01, "a connection for each");
    near(persistent, 518.56, 0.01, "ten one after the other");
    assert!(persistent / old > 1.2, "{persistent} of {old}");
    assert!(grouped >= persistent * 0.995, "{grouped} of {persistent}");
}

/// A handshake for each connection: the published peak, and the cost falls as more requests share a
/// connection.
#[test]
fn figure_4_loses_the_cost_of_handshakes() {
    let tls = CONNECTION + HANDSHAKE;
    near(served(users(16, 10, Some(5)), tls), 184.592, 0.02, "ten a handshake");
    let shares = [1, 10, 100].map(|calls| {
        served(users(16, calls, None), tls) / served(users(16, calls, None), CONNECTION)
    });
    assert!(shares.is_sorted() && shares[0] > 0.0 && shares[2] < 1.0, "{shares:?}");
    assert!(shares[2] > 2.0 * shares[1], "{shares:?}");
}
