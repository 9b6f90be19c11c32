//! Stress in virtual time: servers with known slots and timeouts, and the conclusions about them.

use campaign::{Settings, TestTarget, Unwatched, run};
use conduit::Peer;
use dialogue::governor::{Bounds, Governor, Stop};
use dialogue::text::Values;
use sample::FailureClass;
use sim::torture::Field;
use sim::{Action, Admission, Client, Server, World};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use torture::catalogue;
use torture::judge::TestOutcome;
use torture::result::{CaseResult, RunResult};
use torture::safety::Class;
use units::{Nanos, show};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n";
const FAILED: &str = "HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

const START: Nanos = Nanos::from_secs(100);

/// Number of idle workers above which some are stopped.
const SPARE: usize = 5;

/// One process per connection, from its start to its end; other connections wait.
#[derive(Default)]
struct Prefork {
    workers: usize,
    /// Timeout of an incomplete head.
    deadline: Option<Nanos>,
    /// No connection is kept alive.
    closes: bool,
    /// Connections beyond the workers receive 503.
    sheds: bool,
    /// If more connections than this wait, first connection attempts are lost.
    backlog: Option<usize>,
    /// A worker whose client resets is lost forever.
    leaks: bool,
    lost: usize,
    /// Every response of this number is 500.
    fails_each: Option<u64>,
    responses: u64,
    /// The server exits with this many connections, and restarts after a second.
    dies_of: Option<usize>,
    dead_until: Nanos,
    /// Workers are started on demand up to this number, increasingly many per second while clients
    /// wait, and stopped when idle.
    grows_to: Option<usize>,
    started: usize,
    next_look: Nanos,
    busy: BTreeMap<Client, Nanos>,
    queue: VecDeque<Client>,
    heard: BTreeMap<Client, String>,
    served: BTreeSet<Client>,
    doing: BTreeMap<(Nanos, u64), (Client, Action)>,
    number: u64,
}

impl Prefork {
    fn new(workers: usize) -> Prefork {
        Prefork { workers, ..Prefork::default() }
    }

    fn act(&mut self, at: Nanos, client: Client, action: Action) {
        self.number += 1;
        self.doing.insert((at, self.number), (client, action));
    }

    /// Runs every second: starts workers if clients wait, stops some if many are idle.
    fn look(&mut self, now: Nanos) {
        let Some(most) = self.grows_to.filter(|_| self.next_look <= now) else { return };
        self.next_look = now + Nanos::SECOND;
        if self.queue.is_empty() {
            self.started = 1;
            let idle = self.workers - self.busy.len().min(self.workers);
            self.workers -= idle.saturating_sub(SPARE);
            return;
        }
        self.workers = (self.workers + self.started).min(most);
        self.started *= 2;
        self.start_waiting(now);
    }

    fn free(&self) -> bool {
        self.busy.len() + self.lost < self.workers
    }

    fn leave(&mut self, now: Nanos, client: Client) {
        self.queue.retain(|waiting| *waiting != client);
        self.heard.remove(&client);
        self.busy.remove(&client);
        self.served.remove(&client);
        self.start_waiting(now);
    }

    fn start_waiting(&mut self, now: Nanos) {
        while self.free()
            && let Some(next) = self.queue.pop_front()
        {
            self.busy.insert(next, now);
            self.work(now, next);
        }
    }

    fn work(&mut self, now: Nanos, client: Client) {
        if !self.busy.contains_key(&client) {
            return;
        }
        let heard = self.heard.entry(client).or_default();
        let Some(end) = heard.find("\r\n\r\n") else { return };
        let closes = self.closes || heard[..end].contains("Connection: close");
        heard.drain(..end + 4);
        let field = if closes { "Connection: close\r\n" } else { "" };
        self.served.insert(client);
        self.responses += 1;
        if self.fails_each.is_some_and(|each| self.responses.is_multiple_of(each)) {
            return self.act(now, client, Action::Bytes(FAILED.into()));
        }
        self.act(now, client, Action::Bytes(format!("{OK}{field}\r\nok").into_bytes()));
        if closes {
            self.act(now, client, Action::End);
        }
    }
}

impl Server for Prefork {
    fn connect(&mut self, now: Nanos, client: Client) -> Admission {
        if now < self.dead_until {
            return Admission::Refuse;
        }
        if self.dies_of.is_some_and(|most| self.busy.len() >= most) {
            self.dead_until = now + Nanos::SECOND;
            let all: Vec<Client> = self.heard.keys().chain(self.busy.keys()).copied().collect();
            for one in all {
                self.act(now, one, Action::Reset);
            }
            self.busy.clear();
            self.heard.clear();
            return Admission::Refuse;
        }
        if self.free() {
            self.busy.insert(client, now);
        } else if self.sheds {
            self.act(now, client, Action::Bytes(BUSY.into()));
            self.act(now, client, Action::End);
        } else {
            let full = self.backlog.is_some_and(|most| self.queue.len() > most);
            self.queue.push_back(client);
            if full {
                return Admission::AcceptAfter(Nanos::SECOND);
            }
        }
        Admission::Accept
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        self.heard.entry(client).or_default().push_str(&String::from_utf8_lossy(bytes));
        self.work(now, client);
        Vec::new()
    }

    fn ended(&mut self, now: Nanos, client: Client) {
        self.leave(now, client);
    }

    fn reset(&mut self, now: Nanos, client: Client) {
        self.lost += usize::from(self.leaks && self.busy.contains_key(&client));
        self.leave(now, client);
    }

    fn due(&self) -> Nanos {
        let act = self.doing.keys().next().map_or(Nanos::NEVER, |(at, _)| *at);
        let late = self.deadline.and_then(|span| {
            let waiting = self.busy.iter().filter(|(client, _)| !self.served.contains(client));
            waiting.map(|(_, since)| *since + span).min()
        });
        let due = late.map_or(act, |late| late.min(act));
        self.grows_to.map_or(due, |_| due.min(self.next_look))
    }

    fn wake(&mut self, now: Nanos) -> Vec<(Client, Action)> {
        self.look(now);
        let late: Vec<Client> = match self.deadline {
            Some(span) => {
                let over = |(client, since): &(&Client, &Nanos)| {
                    !self.served.contains(client) && **since + span <= now
                };
                self.busy.iter().filter(over).map(|(client, _)| *client).collect()
            }
            None => Vec::new(),
        };
        for client in late {
            self.act(now, client, Action::End);
            self.leave(now, client);
        }
        let rest = self.doing.split_off(&(now + Nanos(1), 0));
        std::mem::replace(&mut self.doing, rest).into_values().collect()
    }
}

fn pressed(server: impl Server + 'static, ids: &[&str], connections_max: u64) -> RunResult {
    let bounds = Bounds { connections_max, ..Class::Local.usual() };
    governed(server, ids, Governor::new(bounds, Vec::new(), false))
}

fn governed(server: impl Server + 'static, ids: &[&str], governor: Governor) -> RunResult {
    of_field(Field::governed(world(server), governor), ids)
}

fn world(server: impl Server + 'static) -> World {
    World::new(Box::new(server), Nanos::from_millis(1), START)
}

fn of_field(mut field: Field, ids: &[&str]) -> RunResult {
    let mut cases = catalogue::cases().expect("the catalogue reads");
    cases.retain(|case| ids.contains(&case.id.as_str()));
    run(&target(), &settings(), &cases, &mut field, &mut Unwatched)
}

fn target() -> TestTarget {
    TestTarget {
        peer: Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 80))),
        tls_name: None,
        protocol: Default::default(),
        values: Values { path: "/".into(), host: "a".into(), ..Values::default() },
        takes_bodies: false,
        fields: String::new(),
        secrets: Vec::new(),
    }
}

fn settings() -> Settings {
    Settings { seed: 1, executions_max: 1, baseline: Nanos::from_secs(10), ..Settings::default() }
}

fn shown(case: &CaseResult) -> String {
    let mut text = format!("{} {}", case.case.id, case.outcome.id());
    if let Some(health) = &case.health {
        let span = |span: Option<Nanos>| span.map_or("never".to_owned(), show::duration);
        text.push_str(&format!(
            "\n  correct {:.3} shed {:.3} lost {:.3}, recovery {}, armed {}/{}, followed {}/{}, control denied {:?}",
            health.correct,
            health.shed,
            health.lost,
            span(health.recovery),
            health.armed,
            health.wanted,
            health.followed,
            health.rounds,
            health.control_denied
        ));
    }
    for measure in &case.measures {
        text.push_str(&format!(
            "\n  {}: {:?} to {:?} {:?}, {}",
            measure.what, measure.low, measure.high, measure.unit, measure.note
        ));
    }
    for note in &case.notes {
        text.push_str(&format!("\n  {note}"));
    }
    text.push_str(&format!("\n  took {}", show::duration(case.took)));
    text
}

fn run_case(server: impl Server + 'static, id: &str, connections_max: u64) -> String {
    let result = pressed(server, &[id], connections_max);
    let ended = result.ended_early.map(|why| format!("\nended early: {why}")).unwrap_or_default();
    result.cases.iter().map(shown).collect::<Vec<_>>().join("\n") + &ended
}

#[test]
fn four_processes_without_a_deadline_are_denied_by_half_heads() {
    insta::assert_snapshot!(run_case(Prefork::new(4), "W-10", 256));
}

#[test]
fn four_processes_with_a_deadline_are_denied_until_it_passes() {
    let server = Prefork { deadline: Some(Nanos::from_secs(3)), ..Prefork::new(4) };
    insta::assert_snapshot!(run_case(server, "W-10", 256));
}

#[test]
fn a_pool_larger_than_our_limit_holds() {
    insta::assert_snapshot!(run_case(Prefork::new(25), "W-10", 13));
}

#[test]
fn one_thread_is_denied_by_one_connection() {
    let server = Prefork { closes: true, ..Prefork::new(1) };
    insta::assert_snapshot!(run_case(server, "W-10", 256));
}

#[test]
fn a_full_server_that_refuses_sheds() {
    insta::assert_snapshot!(run_case(Prefork { sheds: true, ..Prefork::new(20) }, "C-01", 256));
}

#[test]
fn a_server_that_exits_under_many_connections_has_crashed() {
    insta::assert_snapshot!(run_case(
        Prefork { dies_of: Some(20), ..Prefork::new(400) },
        "W-10",
        256
    ));
}

#[test]
fn workers_lost_to_disconnected_clients_are_a_leak() {
    insta::assert_snapshot!(run_case(Prefork { leaks: true, ..Prefork::new(50) }, "C-03", 256));
}

/// Apache prefork with its default numbers: the slots at one time show nothing about earlier ones.
#[test]
fn a_dynamic_pool_has_no_leak() {
    let server = Prefork { grows_to: Some(150), started: 1, ..Prefork::new(5) };
    let result = pressed(server, &["C-01", "C-02", "C-03", "C-05", "C-06", "W-10", "W-14"], 256);
    for case in &result.cases {
        assert!(case.outcome < TestOutcome::Leak, "{}", shown(case));
    }
}

#[test]
fn a_server_occupied_by_the_kept_probe_is_probed_without_it() {
    insta::assert_snapshot!(run_case(Prefork::new(1), "W-10", 256));
}

#[test]
fn a_baseline_that_fails_makes_everything_inconclusive() {
    let server = Prefork { fails_each: Some(20), ..Prefork::new(400) };
    let result = pressed(server, &["W-10", "C-01", "C-02", "C-03", "C-05"], 256);
    let outcomes: Vec<TestOutcome> = result.cases.iter().map(|case| case.outcome).collect();
    assert_eq!(outcomes, [TestOutcome::Inconclusive; 5], "{:?}", result.ended_early);
}

#[test]
fn the_accept_queue_of_a_busy_server_is_measured() {
    let server = Prefork { closes: true, backlog: Some(5), ..Prefork::new(1) };
    let result = pressed(server, &["C-07"], 256);
    let case = &result.cases[0];
    let full = case.measures.iter().find(|one| one.what == "workers and accept queue");
    let ends = full.map(|one| (one.low, one.high));
    // the one worker, and the queue of a backlog of 5
    assert_eq!(ends, Some((Some(7.0), Some(8.0))), "{}", shown(case));
    assert_eq!(case.outcome, TestOutcome::Advisory);
}

#[test]
fn a_burst_respects_the_limit_on_connections() {
    for (connections_max, opens_max, established, note) in [
        (256, 200, 248, "; 180 per second, because of our limits"),
        (1_000, 1_000, 512, "all were accepted at once"),
    ] {
        let requests_max = Some(connections_max * 2);
        let usual = Class::Local.usual();
        let bounds = Bounds { connections_max, opens_max, requests_max, ..usual };
        let governor = Governor::new(bounds, Vec::new(), false);
        let result = governed(Prefork::new(600), &["C-07"], governor);
        let case = &result.cases[0];
        assert_eq!(case.outcome, TestOutcome::Held, "{}", shown(case));
        assert_eq!(case.measures[0].low, Some(f64::from(established)), "{}", shown(case));
        assert!(case.measures[0].note.ends_with(note), "{}", shown(case));
        assert_eq!(case.measures.len(), 1, "no queue was full: {}", shown(case));
    }
}

#[test]
fn stress_is_not_repeated_without_permission() {
    for (repeats, rounds) in [(true, 2), (false, 1)] {
        let mut governor = Governor::new(Class::Local.usual(), Vec::new(), false);
        if !repeats {
            governor.forbid_repeats();
        }
        let server = Prefork { closes: true, ..Prefork::new(1) };
        let result = governed(server, &["W-10"], governor);
        let case = &result.cases[0];
        let health = case.health.expect("the case applied load");
        assert_eq!((case.outcome, health.rounds), (TestOutcome::Denied, rounds), "{}", shown(case));
        let spared = case.notes.iter().any(|note| note.contains("to spare the server (--confirm "));
        assert_eq!(spared, !repeats, "{}", shown(case));
        assert_eq!(health.control_denied.is_some(), repeats, "the control run is load too");
    }
}

#[test]
fn responses_under_load_are_checked_too() {
    let result = pressed(Prefork::new(400), &["C-01", "F-13"], 256);
    let lint = result.cases.iter().find(|case| case.case.id == "F-13").expect("it ran");
    // "7 of 300 responses": this server sends no content type
    let seen = &lint.exchanges.first().expect("a rule is broken").judgement.seen;
    let all = seen.split(' ').nth(2).and_then(|count| count.parse::<u64>().ok());
    assert!(all.is_some_and(|all| all > 248), "{seen}");
    assert!(lint.exchanges.iter().all(|one| !one.sent.is_empty() && !one.received.is_empty()));
}

/// A server to which no connection can be opened from some time on, because the client has no
/// descriptors.
struct Unreached<S> {
    server: S,
    from: Nanos,
}

impl<S: Server> Server for Unreached<S> {
    fn connect(&mut self, now: Nanos, client: Client) -> Admission {
        match now < START + self.from {
            true => self.server.connect(now, client),
            false => Admission::Fail(FailureClass::FdUnavailable),
        }
    }

    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        self.server.receive(now, client, bytes)
    }

    fn ended(&mut self, now: Nanos, client: Client) {
        self.server.ended(now, client);
    }

    fn reset(&mut self, now: Nanos, client: Client) {
        self.server.reset(now, client);
    }

    fn due(&self) -> Nanos {
        self.server.due()
    }

    fn wake(&mut self, now: Nanos) -> Vec<(Client, Action)> {
        self.server.wake(now)
    }
}

/// The times are in the second round, and in the control run.
#[test]
fn an_inconclusive_round_confirms_nothing() {
    for (from, rounds, control, note) in [
        (30, 1, None, "a second round was inconclusive"),
        (64, 2, None, "the control run with 3 well-behaved connections was inconclusive"),
        (1_000, 2, Some(true), "3 well-behaved connections have the same effect"),
    ] {
        let server = Unreached { server: Prefork::new(4), from: Nanos::from_secs(from) };
        let result = pressed(server, &["W-10"], 256);
        let case = &result.cases[0];
        let health = case.health.expect("the case applied load");
        let seen = (health.followed, health.rounds, health.control_denied);
        assert_eq!(seen, (rounds, rounds, control), "{}", shown(case));
        assert!(case.notes.iter().any(|line| line.contains(note)), "{}", shown(case));
    }
}

/// Slow clients are cut off; the result for fast clients is known or unknown.
#[test]
fn an_inconclusive_control_blames_no_server() {
    for (until, outcome, note) in [
        (17, TestOutcome::Inconclusive, "as many fast clients was inconclusive"),
        (1_000, TestOutcome::Advisory, "a timeout is too strict for slow links"),
    ] {
        let strict = Prefork { deadline: Some(Nanos::from_secs(2)), ..Prefork::new(400) };
        let governor = Governor::new(Class::Local.usual(), Vec::new(), false);
        let interrupted =
            move |now: Nanos| (now >= START + Nanos::from_secs(until)).then_some(Stop::Interrupted);
        let field = Field::governed(world(strict), governor);
        let result = of_field(field.watched(Box::new(interrupted)), &["W-15"]);
        let case = &result.cases[0];
        assert_eq!(case.outcome, outcome, "{}", shown(case));
        let other = case.notes.iter().find(|line| line.contains("slowness is not the cause"));
        assert_eq!(other, None, "{}", shown(case));
        assert!(case.notes.iter().any(|line| line.contains(note)), "{}", shown(case));
    }
}

/// Interrupted, or at the end of the time of a case.
#[test]
fn an_interrupted_round_is_not_judged() {
    let interrupted = |after: u64| {
        move |now: Nanos| (now >= START + Nanos::from_secs(after)).then_some(Stop::Interrupted)
    };
    for id in ["W-10", "C-02", "C-03", "F-14"] {
        for after in [14, 16, 18, 20] {
            let governor = Governor::new(Class::Local.usual(), Vec::new(), false);
            let field = Field::governed(world(Prefork::new(400)), governor);
            let result = of_field(field.watched(Box::new(interrupted(after))), &[id]);
            cut_short(&result.cases[0], after);
        }
        let bounds = Bounds { case_max: Nanos::from_secs(6), ..Class::Local.usual() };
        let governor = Governor::new(bounds, Vec::new(), false);
        cut_short(&governed(Prefork::new(400), &[id], governor).cases[0], 0);
    }
    // during the load, and while the recovery is observed: more rounds are pending
    for id in ["C-02", "C-03"] {
        for half in 6..=11 {
            let bounds =
                Bounds { case_max: Nanos::from_millis(500 * half), ..Class::Local.usual() };
            let governor = Governor::new(bounds, Vec::new(), false);
            cut_short(&governed(Prefork::new(400), &[id], governor).cases[0], 0);
        }
    }
}

fn cut_short(case: &CaseResult, after: u64) {
    assert_eq!(case.outcome, TestOutcome::Inconclusive, "{after}: {}", shown(case));
    let judged = |note: &&String| note.contains("did not recover");
    assert_eq!(case.notes.iter().find(judged), None, "{after}: {}", shown(case));
    assert!(case.measures.iter().all(|one| one.high.is_none()), "{after}: {}", shown(case));
    let endless = case.measures.iter().find(|one| one.note.starts_with("no limit found"));
    assert_eq!(endless, None, "{after}: {}", shown(case));
    // unknown results are not reported
    let contradictory = case.health.filter(|health| health.cut_short == health.recovery.is_some());
    assert_eq!(contradictory, None, "{after}: {}", shown(case));
    // a round beyond its time limit is not repeated
    assert!(case.took < Nanos::from_secs(15), "{after}: {}", shown(case));
}

/// Connections without sockets: this world has none, and the round must be complete for that to be
/// counted.
#[test]
fn connections_of_an_interrupted_round_are_not_counted() {
    for (until, counted) in [(1_000, 1), (12, 0)] {
        let mut cases = catalogue::cases().expect("the catalogue reads");
        cases.retain(|case| case.id == "P-61");
        cases[0].needs.clear();
        let governor = Governor::new(Class::Local.usual(), Vec::new(), false);
        let interrupted =
            move |now: Nanos| (now >= START + Nanos::from_secs(until)).then_some(Stop::Interrupted);
        let field = Field::governed(world(Prefork::new(400)), governor);
        let mut field = field.watched(Box::new(interrupted));
        let result = run(&target(), &settings(), &cases, &mut field, &mut Unwatched);
        let case = &result.cases[0];
        assert_eq!(case.measures.len(), counted, "{}", shown(case));
    }
}
