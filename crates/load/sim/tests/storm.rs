//! A client that was suspended for a moment must recover. Opening a connection costs client and
//! server about ten times as much as a call, so a late client that opens one for every due call can
//! delay both further until no descriptor is left (seen against a real server at 50,000/s).

use plan::{Arrivals, Load};
use sim::{Action, Admission, Client, Server, WorkTime, World, execute_with, plan_for};
use units::{Nanos, Rate};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Single-threaded server: accepts and responses take time and are processed in order.
struct Busy {
    free: Nanos,
}

impl Busy {
    fn work(&mut self, now: Nanos, span: Nanos) -> Nanos {
        self.free = self.free.max(now) + span;
        self.free
    }
}

impl Server for Busy {
    fn connect(&mut self, now: Nanos, _client: Client) -> Admission {
        self.work(now, Nanos::from_micros(30));
        Admission::Accept
    }

    fn receive(&mut self, now: Nanos, _client: Client, _bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let read = self.work(now, Nanos::from_micros(8));
        vec![(read + Nanos::from_millis(1), Action::Bytes(RESPONSE.to_vec()))]
    }
}

#[test]
fn a_late_client_recovers_without_a_storm_of_connections() {
    let mut plan = plan_for("http://sim.example/");
    let rate = Rate(50_000.0);
    let arrivals = Arrivals::constant(rate);
    let limit = Some(20_000);
    plan.load = Load::Open { arrivals, session: None, connections_max: limit, queue_max: None };
    plan.stop.duration = Some(Nanos::from_secs(1));
    let start = Nanos::from_secs(1_000);
    let mut world = World::new(Box::new(Busy { free: Nanos::ZERO }), Nanos::ZERO, start);
    world.charge(WorkTime {
        open: Nanos::from_micros(45),
        transfer: Nanos::from_micros(4),
        pause: Some((start + Nanos::from_millis(300), Nanos::from_millis(30))),
    });
    let run = execute_with(plan, world, 1, None);
    let measured = run.measurement;
    assert_eq!(measured.total.counts.succeeded, 50_000);
    // 1,500 calls fell due in the pause; one connection each would be the storm
    assert!(measured.connections_peak < 1_000, "{} connections", measured.connections_peak);
    let end = run.ended_at;
    assert!(end < Nanos::from_millis(1_100), "it ended after {end:?}");
}
