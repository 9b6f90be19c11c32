//! S-Client's figure (Banga and Druschel, USITS 1997): throughput past overload, in virtual time.

use crate::{Action, Admission, Client, Server, execute, plan_for};
use plan::representative::parse_representative;
use plan::{Load, Plan, Think};
use stats::Measurement;
use std::collections::VecDeque;
use units::{Nanos, show};

const SECONDS: u64 = 20;

/// Processor time of a connection attempt before it is accepted or dropped, and of a request:
/// together they allow 130 requests a second, of which 55 are lost at 2,065 attempts a second.
const SYN: Nanos = Nanos::from_micros(213);
const REQUEST: Nanos = Nanos::from_micros(7_479);
/// Maximum number of connections that wait to be served.
const BACKLOG: usize = 64;

/// Server with one processor: attempts interrupt it, and attempts at a full queue are dropped.
#[derive(Debug, Default)]
struct Interrupted {
    /// Accepted connections that are not yet served, and requests in their order.
    taken: usize,
    asked: VecDeque<Client>,
    /// Completion time of the first request, as known now.
    done: Option<Nanos>,
    /// Work for attempts that arrived while there were no requests.
    busy: Nanos,
}

impl Interrupted {
    fn begin(&mut self, now: Nanos) {
        if self.done.is_none() && !self.asked.is_empty() {
            self.done = Some(self.busy.max(now) + REQUEST);
        }
    }
}

impl Server for Interrupted {
    fn connect(&mut self, now: Nanos, _: Client) -> Admission {
        match &mut self.done {
            Some(done) => *done += SYN,
            None => self.busy = self.busy.max(now) + SYN,
        }
        if self.taken >= BACKLOG {
            return Admission::Ignore;
        }
        self.taken += 1;
        Admission::Accept
    }

    fn receive(&mut self, now: Nanos, client: Client, _: &[u8]) -> Vec<(Nanos, Action)> {
        self.asked.push_back(client);
        self.begin(now);
        Vec::new()
    }

    fn due(&self) -> Nanos {
        self.done.unwrap_or(Nanos::NEVER)
    }

    fn wake(&mut self, now: Nanos) -> Vec<(Client, Action)> {
        self.done = None;
        let Some(client) = self.asked.pop_front() else { return Vec::new() };
        self.taken -= 1;
        self.begin(now);
        let response =
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx".to_vec();
        vec![(client, Action::Bytes(response)), (client, Action::End)]
    }
}

/// A load, the rate at which its connections start, and its completed share.
#[derive(Clone, Copy, Debug)]
pub struct OverloadPoint {
    /// S-Client's sockets, and an equal number of users that wait for their responses.
    pub sockets: u32,
    /// Connections per second that the sockets start, and requests per second that are served.
    pub offered: f64,
    pub served: f64,
    /// Figures of the users, which form a closed load.
    pub users_offered: f64,
    pub users_served: f64,
}

/// Measures both loads at rising sizes, up to sixteen times the server's capacity.
pub fn curves() -> Vec<OverloadPoint> {
    let per_second = |count: u64| count as f64 / SECONDS as f64;
    let point = |sockets: u32| {
        let open = run(sockets_of(sockets), Box::new(Interrupted::default()));
        let mut plan = plan_for("http://sim.example/page");
        plan.load = Load::Closed { users: sockets, think: Think::None, session: None };
        plan.connection.calls = Some(1);
        let closed = run(plan, Box::new(Interrupted::default()));
        OverloadPoint {
            sockets,
            offered: per_second(open.total.connections.attempted),
            served: per_second(open.total.good_in_window),
            users_offered: per_second(closed.total.connections.attempted),
            users_served: per_second(closed.total.good_in_window),
        }
    };
    [20, 40, 60, 65, 100, 200, 400, 700, 1_032].map(point).into()
}

/// Returns the figure in `docs/lineage`: a row for each load, and a bar for each throughput.
pub fn figure(curves: &[OverloadPoint]) -> String {
    /// Number of requests served per second that one character represents.
    const PER_CHARACTER: f64 = 4.0;
    let mut text =
        "sockets  begun/s  served/s                                      users served/s\n"
            .to_owned();
    for row in curves {
        let bar = "#".repeat((row.served / PER_CHARACTER).round() as usize);
        let line = format!(
            "{:>7}  {:>7}  {:>8} {bar:<34}  {:>12}",
            show::count(u64::from(row.sockets)),
            show::count(row.offered.round() as u64),
            format!("{:.1}", row.served),
            format!("{:.1}", row.users_served)
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns the preset with this many sockets.
fn sockets_of(number: u32) -> Plan {
    let mut plan = plan_for("http://sim.example/page");
    let base = plan.targets[0].url.clone();
    let model = parse_representative(&format!("s-client-like:sockets={number},timeout=500ms"));
    model.expect("it is a model").apply(&mut plan, &base, 1).expect("it needs no sequence");
    plan
}

fn run(mut plan: Plan, server: Box<dyn Server>) -> Measurement {
    (plan.stop.duration, plan.stop.warm_up) = (Some(Nanos::from_secs(SECONDS)), Nanos::ZERO);
    execute(plan, server, 1).measurement
}
