//! The server's state is determined from client observations: in virtual time, for each kind of
//! server.

use plan::{Arrivals, Load, Plan, Think};
use record::server::{Conduct, Inputs, Server as Observed};
use sim::{Action, Admission, Client, Queue, Server, Service, execute, plan_for};
use stats::Objective;
use units::{Nanos, Rate};

const URL: &str = "http://sim.example/";
/// The start of every simulation.
const START: Nanos = Nanos::from_secs(1_000);
/// The instant of a change, in the middle of the window.
const CHANGE: Nanos = Nanos::from_secs(1_004);

/// Behavior of a server from [`CHANGE`] on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behavior {
    /// Its connections break, and it no longer listens.
    Dies,
    /// It keeps its connections and accepts no new ones.
    Refuses,
    /// It neither reads nor sends.
    Hangs,
    /// It keeps running.
    Lives,
}

/// A server of 2 ms a call that changes at [`CHANGE`]; every `every`-th response is `odd`.
struct ChangingServer {
    queue: Queue,
    treatment: Behavior,
    clients: Vec<Client>,
    woken: bool,
    count: u64,
    every: u64,
    odd: &'static [u8],
}

impl ChangingServer {
    fn new(treatment: Behavior) -> ChangingServer {
        let queue = Queue::new(4, Service::Fixed(Nanos::from_millis(2)), 1);
        let clients = Vec::new();
        ChangingServer {
            queue,
            treatment,
            clients,
            woken: treatment != Behavior::Dies,
            count: 0,
            every: 0,
            odd: b"",
        }
    }

    fn odd(every: u64, odd: &'static [u8]) -> ChangingServer {
        ChangingServer { every, odd, ..ChangingServer::new(Behavior::Lives) }
    }
}

impl Server for ChangingServer {
    fn connect(&mut self, now: Nanos, client: Client) -> Admission {
        match self.treatment {
            Behavior::Dies | Behavior::Refuses if now >= CHANGE => Admission::Refuse,
            _ => {
                self.clients.push(client);
                Admission::Accept
            }
        }
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let mut actions = self.queue.receive(now, client, bytes);
        if matches!(self.treatment, Behavior::Hangs | Behavior::Dies) && now >= CHANGE {
            return Vec::new();
        }
        for (_, action) in &mut actions {
            self.count += 1;
            if self.every > 0 && self.count.is_multiple_of(self.every) {
                *action = Action::Bytes(self.odd.to_vec());
            }
        }
        actions
    }

    fn ended(&mut self, now: Nanos, client: Client) {
        self.clients.retain(|known| *known != client);
        self.queue.ended(now, client);
    }

    fn due(&self) -> Nanos {
        if self.woken { Nanos::NEVER } else { CHANGE }
    }

    fn wake(&mut self, _now: Nanos) -> Vec<(Client, Action)> {
        self.woken = true;
        self.clients.drain(..).map(|client| (client, Action::Reset)).collect()
    }
}

fn open() -> Plan {
    let mut plan = plan_for(URL);
    let arrivals = Arrivals::constant(Rate(500.0));
    plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
    plan.stop.duration = Some(Nanos::from_secs(10));
    plan.timeouts.call = Nanos::from_secs(1);
    plan
}

fn closed(per_connection: Option<u32>) -> Plan {
    let mut plan = open();
    plan.load = Load::Closed { users: 8, think: Think::None, session: None };
    plan.connection.calls = per_connection;
    plan
}

fn observe(plan: &Plan, server: ChangingServer) -> Observed {
    let run = execute(plan.clone(), Box::new(server), 1);
    let slo = report_slo(plan, &run.measurement);
    Observed::observed(&Inputs { measurement: &run.measurement, plan, slo: &slo, first_call: None })
}

fn report_slo(plan: &Plan, measurement: &stats::Measurement) -> Vec<record::run::SloResult> {
    record::run::SloResult::judge(&plan.measure.slo, measurement)
}

#[track_caller]
fn since(server: &Observed, conduct: Conduct) {
    assert_eq!(server.conduct, conduct, "{}", server.sentence());
    let at = server.since_s.expect("it says since when");
    let change = (CHANGE - START).as_secs_f64();
    assert!((at - change).abs() <= 0.11, "{}", server.sentence());
}

#[test]
fn a_server_that_died_is_reported_as_gone() {
    for plan in [open(), closed(None), closed(Some(1))] {
        let server = observe(&plan, ChangingServer::new(Behavior::Dies));
        since(&server, Conduct::Gone);
        // at a low rate no call is in flight when it dies
        let ended = server.broken > 0 || server.detail.contains("idle connections ended");
        assert!(ended && server.detail.contains("refused"), "{}", server.detail);
    }
}

#[test]
fn a_server_that_takes_no_more_is_refusing() {
    since(&observe(&closed(Some(1)), ChangingServer::new(Behavior::Refuses)), Conduct::Refusing);
}

#[test]
fn a_silent_server_is_stalled() {
    for plan in [open(), closed(None)] {
        since(&observe(&plan, ChangingServer::new(Behavior::Hangs)), Conduct::Stalled);
    }
    let mut patient = closed(None);
    patient.timeouts.call = Nanos::from_secs(60);
    since(&observe(&patient, ChangingServer::new(Behavior::Hangs)), Conduct::Stalled);
}

/// Each slot has had many connections by the time the server goes silent.
#[test]
fn each_connection_of_a_slot_has_its_own_limit() {
    let run = execute(closed(Some(1)), Box::new(ChangingServer::new(Behavior::Hangs)), 1);
    let times = &run.measurement.total.timed_out;
    assert!(times.count() >= 8, "{}", times.count());
    let (low, high) = (Nanos::from_millis(999), Nanos::from_millis(1_001));
    assert!(times.min() >= low && times.max() <= high, "{:?} {:?}", times.min(), times.max());
}

#[test]
fn a_failing_share_is_reported_by_status() {
    let busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let server = observe(&open(), ChangingServer::odd(3, busy));
    assert_eq!(server.conduct, Conduct::Failing);
    assert!(server.detail.starts_with("33.3 % of 5,000 calls (1,66"), "{}", server.detail);
    assert!(server.detail.ends_with("answered 503)"), "{}", server.detail);
    let gone = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let server = observe(&open(), ChangingServer::odd(1, gone));
    assert_eq!(server.sentence(), "failing: 100 % of 5,000 calls (5,000 answered 404)");
}

#[test]
fn an_expectation_that_is_missed_is_reported() {
    let mut plan = open();
    plan.expect.status = vec![(200, 200)];
    let moved = b"HTTP/1.1 204 No Content\r\n\r\n";
    let server = observe(&plan, ChangingServer::odd(2, moved));
    assert_eq!(server.conduct, Conduct::Unexpected);
    assert!(server.detail.contains("2,500 answered 204 where 200 was expected"));
}

#[test]
fn an_objective_that_is_missed_is_slow() {
    let mut plan = open();
    plan.measure.slo = vec![Objective::parse("p99<1ms").unwrap()];
    let server = observe(&plan, ChangingServer::new(Behavior::Lives));
    assert_eq!(server.sentence(), "slow: p99 2.00 ms misses p99<1ms: 2.0 × the bound");
    plan.measure.slo = vec![Objective::parse("p99<3ms").unwrap()];
    let server = observe(&plan, ChangingServer::new(Behavior::Lives));
    assert_eq!(server.sentence(), "serving: 5,000 calls, all of them as expected");
}
