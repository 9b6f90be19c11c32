//! S-Client (Banga and Druschel, USITS 1997), in virtual time: connections start at the rate D/T
//! regardless of the server, while users who wait never exceed its capacity.

use plan::representative::parse_representative;
use plan::{Load, Plan, Think};
use sim::s_client::{curves, figure};
use sim::{Action, Admission, Client, ClosureServer, Server, execute, plan_for};
use stats::Measurement;
use units::Nanos;

const SECONDS: u64 = 20;

/// Serves requests one by one, 7.69 ms each as in the paper: 130 per second.
fn slow() -> Box<dyn Server> {
    let mut free = Nanos::ZERO;
    let react = move |now: Nanos, _: Client, _: &[u8]| {
        free = free.max(now) + Nanos::from_micros(7_692);
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx".to_vec();
        vec![(free, Action::Bytes(response))]
    };
    Box::new(ClosureServer { admit: Admission::Accept, react })
}

/// Returns a server whose queue is full: no connection is established.
fn silent_server() -> Box<dyn Server> {
    let react = |_: Nanos, _: Client, _: &[u8]| Vec::new();
    Box::new(ClosureServer { admit: Admission::Ignore, react })
}

fn run(mut plan: Plan, server: Box<dyn Server>) -> Measurement {
    (plan.stop.duration, plan.stop.warm_up) = (Some(Nanos::from_secs(SECONDS)), Nanos::ZERO);
    execute(plan, server, 1).measurement
}

fn sockets(number: u32) -> Plan {
    let mut plan = plan_for("http://sim.example/page");
    let base = plan.targets[0].url.clone();
    let model = parse_representative(&format!("s-client-like:sockets={number},timeout=500ms"));
    model.expect("it is a model").apply(&mut plan, &base, 1).expect("it needs no sequence");
    plan
}

#[test]
fn connections_start_at_their_rate_for_any_server() {
    for number in [30, 65, 500] {
        let wanted = f64::from(number) / 0.5;
        for server in [slow(), silent_server()] {
            let measured = run(sockets(number), server);
            let found = measured.total.connections.attempted as f64 / SECONDS as f64;
            assert!((found / wanted - 1.0).abs() < 0.02, "{number}: {found} of {wanted}");
        }
    }
}

/// Connections not established within T are abandoned, and counted as abandoned.
#[test]
fn a_socket_is_abandoned_after_its_timeout() {
    let measured = run(sockets(50), silent_server());
    let counts = &measured.total.counts;
    assert_eq!((counts.succeeded, counts.due), (0, 2_000), "{counts:?}");
    let longest = measured.total.failed.max().max(measured.total.timed_out.max());
    assert!(longest >= Nanos::from_millis(500) && longest < Nanos::from_millis(510), "{longest:?}");
}

/// The paper's argument: users that wait for their responses offer no more than the capacity.
#[test]
fn waiting_users_never_exceed_the_capacity() {
    for users in [1, 10, 200] {
        let mut plan = plan_for("http://sim.example/page");
        plan.load = Load::Closed { users, think: Think::None, session: None };
        plan.connection.calls = Some(1);
        let measured = run(plan, slow());
        let found = measured.total.connections.attempted as f64 / SECONDS as f64;
        assert!(found <= 130.0 * 1.01 + f64::from(users) / SECONDS as f64, "{users}: {found}");
    }
}

/// Throughput past overload: everything is served up to the capacity; beyond it, attempts take time
/// from requests, down to 55 to 60 % of the peak at sixteen times the capacity. Users that wait for
/// their responses keep the server at its capacity and do not show this.
#[test]
fn past_overload_throughput_falls_except_for_waiting_users() {
    let curves = curves();
    let peak = curves.iter().map(|row| row.served).fold(0.0, f64::max);
    assert!((peak / 130.0 - 1.0).abs() < 0.03, "{peak}");
    for row in &curves {
        let wanted = f64::from(row.sockets) / 0.5;
        assert!((row.offered / wanted - 1.0).abs() < 0.02, "{} of {wanted}", row.offered);
        if wanted < 125.0 {
            assert!((row.served / wanted - 1.0).abs() < 0.03, "{} of {wanted}", row.served);
        }
        assert!(row.users_served <= 130.0 * 1.01, "{}", row.users_served);
        assert!(row.users_served >= 130.0 * 0.9, "{} users: {}", row.sockets, row.users_served);
        // an attempt that finds the queue full is repeated after 5 s
        let again = f64::from(row.sockets) * (1.0 / 5.0 + 1.0 / SECONDS as f64);
        assert!(row.users_offered <= 130.0 * 1.01 + again, "{}", row.users_offered);
    }
    let beyond = || curves.iter().filter(|row| row.offered > 140.0);
    for (before, after) in beyond().zip(beyond().skip(1)) {
        assert!(after.served < before.served * 1.005, "{} after {}", after.served, before.served);
    }
    let last = curves.last().unwrap().served / peak;
    assert!((0.55..0.60).contains(&last), "{last} of the peak at sixteen times the capacity");
    // the figure is in the documents: `cargo xtask lineage --only s-client` puts it there
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/lineage/s-client.md");
    let page = std::fs::read_to_string(page).unwrap();
    let figure = figure(&curves);
    assert!(page.contains(&figure), "docs/lineage/s-client.md has not this figure:\n{figure}");
}
