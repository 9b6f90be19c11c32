//! Messages on WebSockets in virtual time: the production worker against a scripted server on the
//! server side of the same protocol.

use plan::{Arrivals, Load, MessageAnswer, Plan, Think};
use sample::{FailureClass, SocketClose};
use sim::{
    Action, Admission, Client, ClosureServer, Server, Simulated, World, execute, execute_journeys,
    plan_for,
};
use std::collections::BTreeMap;
use units::{Nanos, Rate};
use websocket::handshake::read_request;
use websocket::{SocketEvent, SocketOptions, WebSocket};

const fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

/// Replies of the server to a message: delay and content.
type Reply = Vec<(Nanos, Out)>;

#[derive(Clone, Debug)]
enum Out {
    Text(Vec<u8>),
    Raw(&'static [u8]),
    Close(u16),
    /// Ends the connection.
    Fin,
}

/// Returns a server that accepts every upgrade, and calls `reply` for each message with its number.
fn server(mut reply: impl FnMut(u64, Nanos, &[u8]) -> Reply + 'static) -> Box<dyn Server> {
    let mut sockets: BTreeMap<Client, (Vec<u8>, Option<WebSocket>)> = BTreeMap::new();
    let mut seen = 0;
    let react = move |now: Nanos, client: Client, bytes: &[u8]| {
        let (head, socket) = sockets.entry(client).or_default();
        let mut actions = Vec::new();
        let mut input = bytes.to_vec();
        if socket.is_none() {
            head.extend_from_slice(&input);
            let Some((size, request)) = read_request(head) else { return actions };
            input = head.split_off(size);
            let request = request.expect("a good upgrade");
            let offered = request.subprotocols.first().cloned();
            let response = request.response(offered.as_deref(), true);
            let deflate = request.deflate.map(|(_, agreed)| agreed);
            *socket = Some(WebSocket::new(&SocketOptions { deflate, ..SocketOptions::server() }));
            actions.push((now, Action::Bytes(response)));
        }
        let Some(socket) = socket else { return actions };
        let mut rest = &input[..];
        while !rest.is_empty() {
            let mut out = Vec::new();
            let Ok(received) = socket.receive(rest, &mut out) else { break };
            if let SocketEvent::Message { payload, .. } = &received.event {
                let message = socket.payload(payload, rest).to_vec();
                for (after, what) in reply(seen, now, &message) {
                    let mut out = Vec::new();
                    let action = match what {
                        Out::Text(text) => {
                            socket.send(true, &text, &mut out);
                            Action::Bytes(out)
                        }
                        Out::Raw(bytes) => Action::Bytes(bytes.to_vec()),
                        Out::Close(code) => {
                            socket.close(Some(code), "", &mut out);
                            Action::Bytes(out)
                        }
                        Out::Fin => Action::End,
                    };
                    actions.push((now + after, action));
                }
                seen += 1;
            }
            if !out.is_empty() {
                actions.push((now, Action::Bytes(out)));
            }
            rest = &rest[received.consumed..];
        }
        actions
    };
    Box::new(ClosureServer { admit: Admission::Accept, react })
}

fn echo_after(delay: Nanos) -> Box<dyn Server> {
    server(move |_, _, message| vec![(delay, Out::Text(message.to_vec()))])
}

fn plan() -> Plan {
    let mut plan = plan_for("ws://sim.example/");
    plan.stop.warm_up = Nanos::ZERO;
    plan.stop.duration = Some(Nanos::from_secs(10));
    plan.timeouts.call = ms(3_000);
    plan
}

fn closed(users: u32) -> Plan {
    let mut plan = plan();
    plan.load = Load::Closed { users, think: Think::None, session: None };
    plan
}

fn open(rate: f64, sockets: u32) -> Plan {
    let mut plan = plan();
    plan.load = Load::Open {
        arrivals: Arrivals::constant(Rate(rate)),
        session: None,
        connections_max: Some(sockets),
        queue_max: None,
    };
    plan.settle_websocket();
    plan
}

fn near(found: Nanos, wanted: Nanos, off: Nanos) {
    assert!(found.0.abs_diff(wanted.0) <= off.0, "{found:?} for {wanted:?}");
}

fn outcomes(run: &Simulated) -> (u64, u64, u64) {
    let counts = &run.measurement.total.counts;
    (counts.succeeded, counts.failed, counts.timed_out)
}

#[test]
fn an_echo_after_a_fixed_delay_has_that_response_time() {
    for (plan, count) in [(closed(5), None), (open(200.0, 5), Some(2_000))] {
        for workers in [1, 2] {
            let run = execute(plan.clone(), echo_after(ms(20)), workers);
            let total = &run.measurement.total;
            let (good, failed, timed_out) = outcomes(&run);
            assert_eq!((failed, timed_out), (0, 0));
            assert!(count.is_none_or(|count| count == good), "{good}");
            near(total.response().quantile(0.5), ms(20), Nanos::from_micros(100));
            let messages = &total.messages;
            assert_eq!((messages.counts.opened, messages.counts.unmatched), (5, 0));
            assert_eq!(messages.counts.sent, messages.counts.received);
            assert_eq!(messages.closes.get(&SocketClose::Client(1000)), Some(&5));
        }
    }
}

#[test]
fn a_stall_of_a_second_shows_in_the_open_loop() {
    // silent from 4 s to 5 s: a tenth of the messages of 10 s wait half a second on average
    let mut first = None;
    let reply = move |_, now: Nanos, message: &[u8]| {
        let stall = *first.get_or_insert(now) + Nanos::from_secs(4);
        let wait = match now >= stall && now < stall + Nanos::SECOND {
            true => stall + Nanos::SECOND - now,
            false => Nanos::ZERO,
        };
        vec![(wait + ms(1), Out::Text(message.to_vec()))]
    };
    let run = execute(open(1_000.0, 10), server(reply), 1);
    assert_eq!(outcomes(&run), (10_000, 0, 0));
    let response = run.measurement.total.response();
    near(response.quantile(0.89), ms(1), ms(1));
    near(response.quantile(0.95), ms(500), ms(15));
    near(response.quantile(0.99), ms(900), ms(15));
    near(response.max(), ms(1_001), ms(10));
}

#[test]
fn answers_out_of_order_find_their_messages_by_id() {
    // every other answer takes 50 ms, and is overtaken by later ones
    let reply = |n: u64, _, message: &[u8]| {
        let delay = if n.is_multiple_of(2) { ms(50) } else { ms(1) };
        vec![(delay, Out::Text(message.to_vec()))]
    };
    let mut plan = open(100.0, 1);
    plan.websocket.message = Some(br#"{"op":"x","id":{id}}"#.to_vec());
    for (rule, by_id) in [
        (MessageAnswer::Json("/id".to_owned()), true),
        (MessageAnswer::Regex("\"id\":(\\d+)".to_owned()), true),
        (MessageAnswer::Echo, true),
        (MessageAnswer::Next, false),
    ] {
        plan.websocket.expect = rule.clone();
        let run = execute(plan.clone(), server(reply), 1);
        assert_eq!(outcomes(&run), (1_000, 0, 0), "{rule:?}");
        let response = run.measurement.total.response();
        let wanted = if by_id { (ms(1), ms(50)) } else { (ms(31), ms(41)) };
        // matched by order, every answer goes to the oldest message: the pairs are wrong, and so
        // are the times
        if by_id {
            near(response.quantile(0.25), wanted.0, Nanos::from_micros(100));
            near(response.quantile(0.75), wanted.1, Nanos::from_micros(500));
        } else {
            assert!(response.quantile(0.25) > ms(5), "{:?}", response.quantile(0.25));
        }
        assert_eq!(run.measurement.total.messages.counts.unmatched, 0, "{rule:?}");
    }
}

#[test]
fn lost_answers_time_out_and_late_ones_are_counted() {
    let reply = |n: u64, _, message: &[u8]| match n % 100 {
        7 => vec![],
        8 => vec![(ms(3_500), Out::Text(message.to_vec()))],
        9 => {
            vec![(ms(1), Out::Text(b"nobody asked".to_vec())), (ms(1), Out::Text(message.to_vec()))]
        }
        _ => vec![(ms(1), Out::Text(message.to_vec()))],
    };
    let run = execute(open(100.0, 4), server(reply), 2);
    assert_eq!(outcomes(&run), (980, 0, 20));
    let messages = &run.measurement.total.messages;
    assert_eq!(messages.counts.unmatched, 10);
    // the answers to the last messages arrive after the run
    assert!((8..=10).contains(&messages.counts.late), "{}", messages.counts.late);
    let timed_out = run.measurement.total.response().max();
    near(timed_out, ms(3_000), ms(30));
}

#[test]
fn an_order_without_ids_survives_a_lost_deadline() {
    // the third answer is late: it must not be taken for that of the fourth message
    let reply = |n: u64, _, _: &[u8]| {
        vec![(if n == 2 { ms(3_200) } else { ms(10) }, Out::Text(b"same".to_vec()))]
    };
    let mut plan = closed(1);
    plan.stop.duration = None;
    plan.stop.requests = Some(5);
    plan.websocket.expect = MessageAnswer::Next;
    let run = execute(plan, server(reply), 1);
    // in order on the wire the late answer comes first: the others wait for it
    assert_eq!((outcomes(&run).0 + outcomes(&run).2, outcomes(&run).1), (5, 0));
    assert!(run.measurement.total.messages.counts.late >= 1);
}

#[test]
fn a_message_without_answer_is_done_when_it_has_gone_out() {
    let mut plan = open(200.0, 3);
    plan.websocket.expect = MessageAnswer::None;
    let push = |_, _, _: &[u8]| vec![(ms(2), Out::Text(b"push".to_vec()))];
    let run = execute(plan, server(push), 1);
    assert_eq!(outcomes(&run), (2_000, 0, 0));
    let messages = &run.measurement.total.messages;
    assert_eq!(
        (messages.counts.sent, messages.counts.unmatched),
        (2_000, messages.counts.received)
    );
    assert!(run.measurement.total.response().max() < ms(5));
}

#[test]
fn ends_of_connections_are_distinguished() {
    let close_at = |n: u64, what: Out| {
        move |seen: u64, _: Nanos, message: &[u8]| match seen == n {
            true => vec![(ms(1), what.clone()), (ms(2), Out::Fin)],
            false => vec![(ms(1), Out::Text(message.to_vec()))],
        }
    };
    let table: [(Out, SocketClose, FailureClass); 4] = [
        (Out::Close(1011), SocketClose::Server(1011), FailureClass::SocketClosed),
        (Out::Fin, SocketClose::Lost, FailureClass::ClosedEarly),
        (
            Out::Raw(b"\x81\x02\xff\xff"),
            SocketClose::Violation(1007),
            FailureClass::MessageProtocol,
        ),
        (Out::Raw(b"\xc1\x00"), SocketClose::Violation(1002), FailureClass::MessageProtocol),
    ];
    for (what, close, class) in table {
        let run = execute(closed(1), server(close_at(30, what.clone())), 1);
        let total = &run.measurement.total;
        assert_eq!(outcomes(&run).1, 1, "{what:?}");
        assert_eq!(total.failures.get(&class), Some(&1), "{what:?}: {:?}", total.failures);
        assert_eq!(total.messages.closes.get(&close), Some(&1), "{what:?}");
        assert_eq!(total.messages.counts.opened, 2, "the user goes on with another connection");
    }
}

#[test]
fn a_refused_upgrade_fails_its_message_with_the_reason() {
    let answers: [(&'static [u8], FailureClass, &str); 5] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", FailureClass::UpgradeRefused, "the server answered 200, not 101"),
        (b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n", FailureClass::UpgradeRefused, "the server answered 426, not 101"),
        (b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n", FailureClass::UpgradeInvalid, "Sec-WebSocket-Accept does not match the key"),
        (b"SSH-2.0-x\r\n\r\n", FailureClass::NotHttp, "the response is not HTTP/1.1"),
        (b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\nLong: 123456789\r\n\r\n", FailureClass::UpgradeInvalid, "a head above --head-max"),
    ];
    for (answer, class, why) in answers {
        let react = move |now: Nanos, _: Client, _: &[u8]| {
            vec![(now + ms(1), Action::Bytes(answer.to_vec()))]
        };
        let mut plan = closed(1);
        plan.stop.duration = None;
        plan.stop.requests = Some(3);
        plan.connection.head_max = 100;
        let server = Box::new(ClosureServer { admit: Admission::Accept, react });
        let run = execute(plan, server, 1);
        assert_eq!(outcomes(&run), (0, 3, 0), "{why}");
        let total = &run.measurement.total;
        assert_eq!(total.failures.get(&class), Some(&3), "{why}: {:?}", total.failures);
        assert_eq!(total.messages.violations.get(why), Some(&3), "{:?}", total.messages.violations);
        assert_eq!(total.messages.closes.get(&SocketClose::Refused), Some(&3));
    }
}

#[test]
fn heartbeats_are_answered_apart_from_messages() {
    let mut plan = open(10.0, 4);
    plan.websocket.message = Some(b"m {id}".to_vec());
    plan.websocket.ping = Some(ms(500));
    let run = execute(plan, echo_after(ms(5)), 1);
    assert_eq!(outcomes(&run), (100, 0, 0));
    let messages = &run.measurement.total.messages;
    // 4 connections for 10 s, two a second each, less a phase
    assert!((72..=80).contains(&messages.counts.pongs), "{}", messages.counts.pongs);
    assert_eq!(messages.ping.count(), messages.counts.pongs);
    assert!(messages.ping.max() < ms(1), "the server's library answers pings at once");
}

#[test]
fn connections_that_are_held_send_pings_alone() {
    let mut plan = closed(8);
    plan.websocket.ping = Some(ms(1_000));
    plan.settle_websocket();
    let run = execute(plan, echo_after(ms(5)), 2);
    let messages = &run.measurement.total.messages;
    assert_eq!((messages.counts.sent, messages.counts.opened), (0, 8));
    assert_eq!(outcomes(&run).0, messages.counts.pongs);
    assert!((72..=96).contains(&messages.counts.pongs), "{}", messages.counts.pongs);
}

#[test]
fn compression_and_churn_keep_every_answer() {
    let mut plan = closed(3);
    plan.websocket.compress = true;
    plan.websocket.message = Some([b"the same words ".repeat(50), b"{id}".to_vec()].concat());
    plan.connection.calls = Some(10);
    plan.stop.duration = None;
    plan.stop.requests = Some(300);
    let run = execute(plan, echo_after(ms(1)), 1);
    assert_eq!(outcomes(&run), (300, 0, 0));
    let messages = &run.measurement.total.messages;
    assert_eq!((messages.counts.opened, messages.counts.compressed), (30, 30));
    assert!(messages.counts.wire_sent * 3 < messages.counts.payload_sent, "{:?}", messages.counts);
    assert_eq!(messages.closes.get(&SocketClose::Client(1000)), Some(&30));
}

#[test]
fn the_same_seed_sends_the_same_bytes() {
    let bytes = |seed: u64| {
        let mut plan = closed(2);
        (plan.seed, plan.stop.duration, plan.stop.requests) = (seed, None, Some(20));
        let run = execute(plan, echo_after(ms(1)), 1);
        let total = &run.measurement.total;
        (total.bytes_sent, total.messages.counts)
    };
    assert_eq!(bytes(1), bytes(1));
}

/// Returns an HTTP server that issues a token at `/login` and upgrades requests with the token;
/// `reply` as in [`server`].
fn chat(reply: impl FnMut(u64, Nanos, &[u8]) -> Reply + 'static) -> Box<dyn Server> {
    let mut sockets = server(reply);
    let react = move |now: Nanos, client: Client, bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let body = match text.lines().next() {
            Some("GET /login HTTP/1.1") => "{\"token\":\"t-1\"}",
            Some("GET /chat?token=t-1 HTTP/1.1") => return sockets.receive(now, client, bytes),
            Some(line) if line.ends_with(" HTTP/1.1") => {
                let refused = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n".to_vec();
                return vec![(now, Action::Bytes(refused))];
            }
            _ => return sockets.receive(now, client, bytes),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        vec![(now + ms(1), Action::Bytes(head.into_bytes()))]
    };
    Box::new(ClosureServer { admit: Admission::Accept, react })
}

fn journey(steps: &str, requests: u64) -> Plan {
    let text = format!(
        "version = 1\nurl = 'http://sim.example/'\n[load]\nusers = 2\n[stop]\nrequests = {requests}\n\
         [timeouts]\ncall = '3s'\n[[journey]]\nname = 'j'\n{steps}"
    );
    let plan = plan::from_toml(&text, &plan::NoFiles).unwrap_or_else(|why| panic!("{why:?}"));
    if let Err(problems) = plan::validate(&plan) {
        panic!("{problems:?}");
    }
    plan
}

fn travel(plan: Plan, server: Box<dyn Server>) -> Simulated {
    let world = World::new(server, Nanos::ZERO, Nanos::from_secs(1_000));
    execute_journeys(plan, world, 1, &BTreeMap::new())
}

const CHAT: &str = "
[[journey.step]]
name = 'login'
url = '/login'
capture = { token = { json = '/token' } }
[[journey.step]]
name = 'open'
connect = '/chat?token={{token}}'
[[journey.step]]
name = 'ask'
send = { op = 'sum', n = '{{iteration.number}}' }
expect = { match = { json = { '/re' = '{{iteration.number}}' } }, body = { contains = 'ok' } }
capture = { room = { json = '/room' } }
[[journey.step]]
name = 'tell'
send = 'join {{room}}'
[[journey.step]]
name = 'hear'
expect = { match = { regex = '^joined ' }, count = 3, timeout = '500ms' }
[[journey.step]]
name = 'leave'
close = 1000
";

/// Answers a question after 20 ms, following a message that is not an answer, and a `join` with
/// three messages.
fn room(_: u64, _: Nanos, message: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(message).into_owned();
    let say = |after: u64, text: String| (ms(after), Out::Text(text.into_bytes()));
    if let Some(room) = text.strip_prefix("join ") {
        assert_eq!(room, "r7");
        return (1..=3).map(|n| say(10 * n, format!("joined {room}"))).collect();
    }
    let asked: serde_json::Value = serde_json::from_str(&text).expect("a question");
    let answer = format!("{{\"re\":{},\"room\":\"r7\",\"is\":\"ok\"}}", asked["n"]);
    vec![say(5, "{\"re\":-1}".to_owned()), say(20, answer)]
}

#[test]
fn steps_of_a_journey_talk_on_a_websocket() {
    let run = travel(journey(CHAT, 10), chat(room));
    let total = &run.measurement.total;
    assert_eq!(outcomes(&run), (60, 0, 0), "{:?}", total.failures);
    let rows: Vec<u64> = total.targets.iter().map(|row| row.succeeded).collect();
    assert_eq!(rows, [10; 6]);
    // the server causes the wait for an answer: all calls were issued
    assert_eq!(total.service.count(), 60);
    near(total.service.max(), ms(30), ms(1));
    let p50 = |row: usize| total.targets[row].response.quantile(0.5);
    near(p50(2), ms(20), Nanos::from_micros(100));
    near(p50(3), Nanos::ZERO, Nanos::from_micros(100));
    near(p50(4), ms(30), Nanos::from_micros(100));
    let messages = &total.messages;
    let counts = &messages.counts;
    assert_eq!((counts.opened, counts.sent, counts.received, counts.unmatched), (10, 20, 50, 10));
    assert_eq!(messages.closes.get(&SocketClose::Client(1000)), Some(&10));
    // a limit of the server on responses per connection would look like this
    assert_eq!(total.connections.lives.served(), []);
}

#[test]
fn a_step_that_waits_in_vain_times_out_and_goes_on() {
    let steps = CHAT.replace("count = 3", "count = 4");
    let run = travel(journey(&steps, 4), chat(room));
    assert_eq!(outcomes(&run), (20, 0, 4));
    let hear = &run.measurement.total.targets[4];
    near(hear.response.quantile(0.5), ms(500), ms(1));
    // the last step closes the same WebSocket in any case
    let closes = &run.measurement.total.messages.closes;
    assert_eq!(closes.get(&SocketClose::Client(1000)), Some(&4));
}

#[test]
fn steps_on_a_websocket_that_is_gone_fail() {
    let reply = |_, _, message: &[u8]| match message {
        b"bye" => vec![(ms(1), Out::Close(4001)), (ms(1), Out::Fin)],
        _ => vec![],
    };
    let open = "[[journey.step]]\nname = 'open'\nconnect = '/chat?token=t-1'\n";
    let bye = "[[journey.step]]\nname = 'bye'\nsend = 'bye'\nexpect = {}\n";
    let more = "[[journey.step]]\nname = 'more'\nsend = 'more'\n";
    let run = travel(journey(&[open, bye, more].concat(), 4), chat(reply));
    let total = &run.measurement.total;
    assert_eq!(outcomes(&run), (4, 8, 0));
    assert_eq!(total.failures.get(&FailureClass::SocketClosed), Some(&8));
    assert_eq!(total.messages.closes.get(&SocketClose::Server(4001)), Some(&4));
    // a refused upgrade fails its own step and, without a WebSocket, the next one
    let refused = open.replace("t-1", "wrong");
    let run = travel(journey(&[&refused, more].concat(), 2), chat(reply));
    let failures = &run.measurement.total.failures;
    assert_eq!(failures.get(&FailureClass::UpgradeRefused), Some(&2), "{failures:?}");
    assert_eq!(failures.get(&FailureClass::SocketClosed), Some(&2), "{failures:?}");
}

/// A user requests two messages. The second one waits for its step, which rejects it.
const PAIR: &str = "
[[journey.step]]
name = 'open'
connect = '/chat?token=t-1'
[[journey.step]]
name = 'ask'
send = 'two'
expect = {}
[[journey.step]]
name = 'hear'
expect = { body = { contains = 'other' } }
[[journey.step]]
name = 'again'
send = 'two'
expect = {}
";

#[test]
fn a_rejected_message_that_waited_is_its_own_sample() {
    let two = |_, _, _: &[u8]| {
        ["first", "second"].map(|text| (ms(1), Out::Text(text.into()))).into_iter().collect()
    };
    let run = travel(journey(PAIR, 2), chat(two));
    let total = &run.measurement.total;
    assert_eq!(outcomes(&run), (6, 2, 0), "{:?}", total.failures);
    let starts: Vec<_> =
        total.failed_responses.kinds.values().flatten().map(|it| it.start.clone()).collect();
    assert_eq!(starts, [b"second".to_vec(), b"second".to_vec()]);
}

#[test]
fn only_steps_on_a_websocket_may_be_answered_with_101() {
    let mut server = chat(|_, _, _| vec![]);
    let react = move |now: Nanos, client: Client, bytes: &[u8]| {
        if !bytes.starts_with(b"GET /plain") {
            return server.receive(now, client, bytes);
        }
        vec![(now, Action::Bytes(b"HTTP/1.1 101 No\r\nUpgrade: x\r\n\r\n".to_vec()))]
    };
    let plain = "[[journey.step]]\nname = 'plain'\nurl = '/plain'\n";
    let open = "[[journey.step]]\nname = 'open'\nconnect = '/chat?token=t-1'\n";
    let tell = "[[journey.step]]\nname = 'tell'\nsend = 'x'\n";
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    let run = travel(journey(&[plain, open, tell].concat(), 2), server);
    let rows: Vec<_> = run.measurement.total.targets.iter().map(|it| it.succeeded).collect();
    assert_eq!(rows, [0, 2, 2], "{:?}", run.measurement.total.failures);
}

#[test]
fn a_message_objective_of_a_journey_names_its_step() {
    let mut plan = journey(CHAT, 1);
    let objective = stats::Objective::parse("message-p99<50ms").expect("an objective");
    plan.measure.slo = vec![objective];
    assert_eq!(plan::validate(&plan).expect_err("a wrong plan")[0].option, "--slo");
}

#[test]
fn answers_that_differ_fail_their_step() {
    let steps = CHAT.replace("contains = 'ok'", "contains = 'other'");
    let run = travel(journey(&steps, 4), chat(room));
    let total = &run.measurement.total;
    assert_eq!(total.failures.get(&FailureClass::Body), Some(&4), "{:?}", total.failures);
    assert_eq!(total.targets[2].failed, 4);
}

#[test]
fn sessions_that_arrive_open_their_own_websockets() {
    let text = CHAT.replace("close = 1000", "send = 'join r7'");
    let plan = journey(&text, 20);
    let text = plan::to_toml(&plan, plan::Secrets::Shown).replace("users = 2", "rate = '20/s'");
    let plan = plan::from_toml(&text, &plan::NoFiles).unwrap_or_else(|why| panic!("{why:?}"));
    let run = travel(plan, chat(room));
    let messages = &run.measurement.total.messages;
    assert_eq!(outcomes(&run), (120, 0, 0), "{:?}", run.measurement.total.failures);
    assert_eq!(messages.counts.opened, 20);
    assert_eq!(messages.closes.get(&SocketClose::Client(1000)), Some(&20));
}

/// Delivery of a room's message to one member.
type Deliver = Box<dyn FnMut(u64, u64) -> Vec<Nanos>>;

/// Bytes of the request so far and, after the upgrade, the room and its connection.
type RoomMember = (Vec<u8>, Option<(String, WebSocket)>);

/// Server with rooms by URL: a member's message is sent to all members of its room, including
/// itself. `deliver` determines the number and the delay of deliveries, from the numbers of the
/// message and of the member.
struct Rooms {
    sockets: BTreeMap<Client, RoomMember>,
    members: BTreeMap<Client, u64>,
    /// Delay of the upgrade response, multiplied by the member's number, and when it is sent.
    upgrade: Nanos,
    upgraded: BTreeMap<Client, Nanos>,
    queue: BTreeMap<(Nanos, u64), (Client, Vec<u8>)>,
    seen: u64,
    put: u64,
    deliver: Deliver,
}

fn rooms(deliver: impl FnMut(u64, u64) -> Vec<Nanos> + 'static) -> Box<dyn Server> {
    rooms_joined_in(Nanos::ZERO, deliver)
}

/// Like [`rooms`], with members that join late. Each receives its upgrade response this much later
/// than the previous one, and then also the messages sent since its request.
fn rooms_joined_in(
    upgrade: Nanos,
    deliver: impl FnMut(u64, u64) -> Vec<Nanos> + 'static,
) -> Box<dyn Server> {
    Box::new(Rooms {
        sockets: BTreeMap::new(),
        members: BTreeMap::new(),
        upgrade,
        upgraded: BTreeMap::new(),
        queue: BTreeMap::new(),
        seen: 0,
        put: 0,
        deliver: Box::new(deliver),
    })
}

impl Rooms {
    fn broadcast(&mut self, now: Nanos, room: &str, message: &[u8]) {
        for (client, (_, socket)) in &mut self.sockets {
            let Some((_, socket)) = socket.as_mut().filter(|(own, _)| own == room) else {
                continue;
            };
            for after in (self.deliver)(self.seen, self.members[client]) {
                let mut out = Vec::new();
                socket.send(true, message, &mut out);
                self.put += 1;
                let at = (now + after).max(self.upgraded[client]);
                self.queue.insert((at, self.put), (*client, out));
            }
        }
        self.seen += 1;
    }
}

impl Server for Rooms {
    fn receive(&mut self, now: Nanos, client: Client, bytes: &[u8]) -> Vec<(Nanos, Action)> {
        let (head, socket) = self.sockets.entry(client).or_default();
        let Some((room, open)) = socket else {
            head.extend_from_slice(bytes);
            let Some((_, request)) = read_request(head) else { return Vec::new() };
            let room = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
            let room = String::from_utf8_lossy(room).into_owned();
            *socket = Some((room, WebSocket::new(&SocketOptions::server())));
            let number = self.members.len() as u64;
            self.members.insert(client, number);
            let response = request.expect("a good upgrade").response(None, false);
            let at = now + Nanos(self.upgrade.0 * number);
            self.upgraded.insert(client, at);
            return vec![(at, Action::Bytes(response))];
        };
        let (room, mut rest, mut messages) = (room.clone(), bytes, Vec::new());
        while !rest.is_empty() {
            let Ok(received) = open.receive(rest, &mut Vec::new()) else { break };
            if let SocketEvent::Message { payload, .. } = &received.event {
                messages.push(open.payload(payload, rest).to_vec());
            }
            rest = &rest[received.consumed..];
        }
        for message in messages {
            self.broadcast(now, &room, &message);
        }
        Vec::new()
    }

    fn ended(&mut self, _: Nanos, client: Client) {
        self.sockets.remove(&client);
    }

    fn due(&self) -> Nanos {
        self.queue.keys().next().map_or(Nanos::NEVER, |(at, _)| *at)
    }

    fn wake(&mut self, now: Nanos) -> Vec<(Client, Action)> {
        let mut all = Vec::new();
        while self.due() <= now
            && let Some((_, (client, bytes))) = self.queue.pop_first()
        {
            all.push((client, Action::Bytes(bytes)));
        }
        all
    }
}

fn broadcast(rooms: u32, connections: u32) -> Plan {
    let mut plan = plan_for("ws://sim.example/chat?room={room}");
    plan.stop.warm_up = ms(100);
    plan.stop.duration = Some(Nanos::from_secs(10));
    plan.load = open(100.0, connections).load;
    plan.websocket.rooms = Some(rooms);
    plan.settle_websocket();
    assert_eq!(plan::validate(&plan), Ok(()));
    plan
}

#[test]
fn a_broadcast_reaches_every_receiver() {
    // five rooms on three workers: each room has the same share of the messages
    for (count, workers) in [(1, 1), (4, 2), (5, 3)] {
        let server = rooms(|_, member| vec![ms(2 + member % 5)]);
        let run = execute(broadcast(count, 20), server, workers);
        let fan_out = &run.measurement.total.messages.fan_out;
        let receivers = u64::from(20 / count) - 1;
        assert_eq!(outcomes(&run), (1_000, 0, 0));
        assert_eq!((fan_out.messages, fan_out.complete), (1_000, 1_000));
        assert_eq!((fan_out.expected, fan_out.received), (1_000 * receivers, 1_000 * receivers));
        assert_eq!((fan_out.duplicates, fan_out.out_of_order), (0, 0));
        near(fan_out.last.quantile(0.5), ms(6), ms(1));
        near(fan_out.first.quantile(0.5), ms(2), ms(1));
        assert_eq!(run.measurement.total.messages.counts.unmatched, 0);
    }
}

/// A server may add a member to its room before the member knows it.
#[test]
fn messages_that_arrive_while_a_member_joins_are_not_unmatched() {
    let run = execute(broadcast(1, 20), rooms_joined_in(ms(7), |_, _| vec![ms(1)]), 1);
    let messages = &run.measurement.total.messages;
    assert_eq!(messages.counts.unmatched, 0);
    assert_eq!((messages.fan_out.reach(), messages.fan_out.duplicates), (1.0, 0));
}

#[test]
fn one_lost_broadcast_of_a_hundred_is_a_reach_of_99_percent() {
    let lost = |message: u64, member: u64| (message * 31 + member * 17).is_multiple_of(100);
    let server = rooms(move |n, member| if lost(n, member) { vec![] } else { vec![ms(1)] });
    let run = execute(broadcast(1, 101), server, 1);
    let fan_out = &run.measurement.total.messages.fan_out;
    assert_eq!(fan_out.expected, 100_000);
    assert!((fan_out.reach() - 0.99).abs() < 0.000_5, "{}", fan_out.reach());
    let objective = stats::Objective::parse("reach>=98.9%").expect("an objective");
    let figures = stats::Figures::new(&run.measurement.total, Nanos::from_secs(10));
    assert!(objective.evaluate(&figures).1);
}

#[test]
fn copies_and_overtaken_broadcasts_are_counted() {
    // member 3 gets every message twice, and member 5 every tenth one 15 ms late, after the next
    let server = rooms(|n, member| match (member, n % 10) {
        (3, _) => vec![ms(1), ms(4)],
        (5, 0) => vec![ms(16)],
        _ => vec![ms(1)],
    });
    let run = execute(broadcast(1, 10), server, 1);
    let fan_out = &run.measurement.total.messages.fan_out;
    assert_eq!((fan_out.messages, fan_out.complete), (1_000, 1_000));
    assert!((999..=1_000).contains(&fan_out.duplicates), "{}", fan_out.duplicates);
    assert!((99..=100).contains(&fan_out.out_of_order), "{}", fan_out.out_of_order);
}

#[test]
fn rooms_that_cannot_be_are_refused() {
    let describe = |change: &dyn Fn(&mut Plan)| {
        let mut plan = broadcast(2, 20);
        change(&mut plan);
        plan::validate(&plan).expect_err("a wrong plan")[0].option.to_string()
    };
    assert_eq!(describe(&|plan| plan.websocket.rooms = Some(3)), "--ws-rooms");
    assert_eq!(describe(&|plan| plan.websocket.message = Some(b"same".to_vec())), "--ws-message");
    assert_eq!(describe(&|plan| plan.websocket.expect = MessageAnswer::Next), "--ws-expect");
    assert_eq!(describe(&|plan| plan.load = closed(20).load), "--ws-rooms");
    let url = |plan: &mut Plan| plan.targets = plan_for("ws://sim.example/").targets;
    assert_eq!(describe(&url), "--ws-rooms");
}

/// Returns the messages that a small server of a protocol on top of WebSocket sends after a message
/// from the client.
fn small_server(protocol: &str, message: &str) -> Vec<String> {
    let between = |from: &str, to: char| {
        let rest = message.split_once(from).expect(message).1;
        rest.split(to).next().unwrap_or_default().to_owned()
    };
    let all: Vec<String> = match (protocol, message) {
        ("socketio", "40") => {
            vec!["0{\"sid\":\"a\"}".into(), "40{\"sid\":\"b\"}".into(), "2".into()]
        }
        ("socketio", "3") => vec![],
        ("socketio", _) => vec!["42[\"news\",1]".into(), format!("43{}[1]", between("42", '['))],
        ("stomp", text) if text.starts_with("CONNECT\n") => {
            vec!["CONNECTED\nversion:1.2\n\n\0".into(), "\n".into()]
        }
        ("stomp", _) => vec![format!("RECEIPT\nreceipt-id:{}\n\n\0", between("receipt:", '\n'))],
        ("graphql-ws", "{\"type\":\"connection_init\"}") => {
            vec!["{\"type\":\"connection_ack\"}".into(), "{\"type\":\"ping\"}".into()]
        }
        ("graphql-ws", "{\"type\":\"pong\"}") => vec![],
        ("graphql-ws", _) => {
            let id = between("\"id\":\"", '"');
            let line = |kind: &str| format!("{{\"type\":\"{kind}\",\"id\":\"{id}\"}}");
            vec![line("next"), line("complete")]
        }
        ("signalr", text) if text.contains("protocol") => {
            vec!["{}\u{1e}".into(), "{\"type\":6}\u{1e}".into()]
        }
        ("signalr", "{\"type\":6}\u{1e}") => vec![],
        ("signalr", _) => {
            let id = between("\"invocationId\":\"", '"');
            vec![format!("{{\"type\":3,\"invocationId\":\"{id}\",\"result\":1}}\u{1e}")]
        }
        ("phoenix", text) if text.contains("phx_join") => {
            vec!["[\"join\",\"join\",\"room:lobby\",\"phx_reply\",{\"status\":\"ok\"}]".into()]
        }
        ("phoenix", text) if text.contains("heartbeat") => {
            vec!["[null,\"heartbeat\",\"phoenix\",\"phx_reply\",{\"status\":\"ok\"}]".into()]
        }
        ("phoenix", _) => {
            let id = between("[\"join\",\"", '"');
            vec![format!("[\"join\",\"{id}\",\"room:lobby\",\"phx_reply\",{{\"status\":\"ok\"}}]")]
        }
        ("actioncable", text) if text.contains("\"subscribe\"") => vec![
            "{\"type\":\"welcome\"}".into(),
            "{\"type\":\"ping\",\"message\":1}".into(),
            "{\"identifier\":\"x\",\"type\":\"confirm_subscription\"}".into(),
        ],
        ("actioncable", _) => {
            let id = between("\\\"id\\\":", '}');
            vec![format!("{{\"identifier\":\"x\",\"message\":{{\"id\":{id}}}}}")]
        }
        other => panic!("{other:?}"),
    };
    all
}

#[test]
fn presets_greet_beat_and_find_their_answers() {
    for (name, unmatched, reply, beats) in [
        ("socketio", 500, Some("3"), 0),
        ("stomp", 0, None, 0),
        ("graphql-ws", 0, Some("{\"type\":\"pong\"}"), 0),
        ("signalr", 0, None, 3),
        ("phoenix", 0, None, 1),
        ("actioncable", 0, None, 0),
    ] {
        let log = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let seen = log.clone();
        let server = server(move |_, _, message| {
            let message = String::from_utf8_lossy(message).into_owned();
            let answers = small_server(name, &message);
            seen.borrow_mut().push(message);
            answers.into_iter().map(|text| (ms(2), Out::Text(text.into_bytes()))).collect()
        });
        let text =
            format!("version = 1\nurl = 'ws://sim.example/'\n[websocket]\npreset = '{name}'\n");
        let mut plan = plan::from_toml(&text, &plan::NoFiles).expect(name);
        plan.load = open(10.0, 1).load;
        plan.stop = open(10.0, 1).stop;
        plan.stop.duration = Some(Nanos::from_secs(50));
        plan.settle_websocket();
        assert_eq!(plan::validate(&plan), Ok(()), "{name}");
        let run = execute(plan, server, 1);
        assert_eq!(outcomes(&run), (500, 0, 0), "{name}");
        let messages = &run.measurement.total.messages;
        assert_eq!(messages.counts.unmatched, unmatched, "{name}");
        assert_eq!((messages.counts.sent, messages.counts.opened), (500, 1), "{name}");
        assert!((beats..=beats + 1).contains(&messages.counts.pings), "{name}: {messages:?}");
        let log = log.borrow();
        assert!(reply.is_none_or(|reply| log.iter().any(|it| it == reply)), "{name}: {log:?}");
    }
}

/// Returns a closed load whose WebSockets are all reset after 3 s.
fn stormy(users: u32) -> Plan {
    let mut plan = closed(users);
    plan.websocket.storm = Some(Nanos::from_secs(3));
    plan
}

#[test]
fn all_sockets_return_after_a_storm_and_no_message_is_lost() {
    for (mut plan, name) in [(stormy(50), "closed"), (open(500.0, 50), "open")] {
        plan.websocket.storm = Some(Nanos::from_secs(3));
        for workers in [1, 2] {
            let run = execute(plan.clone(), echo_after(ms(20)), workers);
            let total = &run.measurement.total;
            total.counts.conserved().unwrap();
            let (_, failed, timed_out) = outcomes(&run);
            assert_eq!((failed, timed_out), (0, 0), "{name}");
            let messages = &total.messages;
            assert_eq!(messages.counts.opened, 100, "{name}");
            let back = &messages.reconnects;
            assert_eq!((back.lost, back.restored(), back.failed), (50, 50, 0), "{name}");
            assert!(back.times.max() < ms(100), "{name}: {:?}", back.times.max());
            assert!((back.peak_per_s() - 500.0).abs() < 1e-9, "{name}");
            // reset by the client: nothing abnormal
            assert_eq!(messages.closes.get(&SocketClose::Client(1006)), Some(&50), "{name}");
            assert_eq!(messages.abnormal(), 0, "{name}");
        }
    }
}

#[test]
fn held_sockets_return_after_a_storm_without_a_call() {
    let mut plan = plan();
    plan.load = Load::Closed { users: 20, think: Think::None, session: None };
    plan.websocket.ping = Some(Nanos::from_secs(300));
    plan.websocket.storm = Some(Nanos::from_secs(3));
    plan.settle_websocket();
    let run = execute(plan, echo_after(ms(20)), 1);
    let back = &run.measurement.total.messages.reconnects;
    assert_eq!((back.lost, back.restored()), (20, 20));
    assert!(back.times.max() < ms(100), "{:?}", back.times.max());
}

/// Returns a run of 20 held sockets whose first reconnects after a storm fail.
fn refused_after_a_storm(ping: Nanos) -> Simulated {
    // it ends every connection for half a second after the storm
    let mut inner = echo_after(ms(1));
    let mut first = None;
    let react = move |now: Nanos, client: Client, bytes: &[u8]| {
        let storm = *first.get_or_insert(now) + Nanos::from_secs(3);
        match now > storm - ms(50) && now < storm + ms(500) && bytes.starts_with(b"GET") {
            true => vec![(now, Action::End)],
            false => inner.receive(now, client, bytes),
        }
    };
    let mut plan = plan();
    plan.load = Load::Closed { users: 20, think: Think::None, session: None };
    plan.websocket.ping = Some(ping);
    plan.websocket.storm = Some(Nanos::from_secs(3));
    plan.settle_websocket();
    let server = Box::new(ClosureServer { admit: Admission::Accept, react });
    execute(plan, server, 1)
}

#[test]
fn a_repeated_reconnect_belongs_to_its_user() {
    let run = refused_after_a_storm(Nanos::from_secs(2));
    let messages = &run.measurement.total.messages;
    assert_eq!((messages.reconnects.lost, messages.reconnects.restored()), (20, 20));
    // no user opens a second one for its next ping
    assert_eq!(messages.counts.opened, 40);
    assert_eq!(run.measurement.connections_peak, 20);
}

#[test]
fn refused_reconnects_are_counted_and_repeated() {
    let run = refused_after_a_storm(Nanos::from_secs(300));
    let back = &run.measurement.total.messages.reconnects;
    assert_eq!((back.lost, back.restored(), back.failed), (20, 20, 20));
    // the second attempt is made a second later
    assert!(back.times.max() > ms(900) && back.times.max() < ms(1_200), "{:?}", back.times.max());
}

#[test]
fn lifetimes_end_sockets_and_others_follow() {
    for mut plan in [closed(10), open(100.0, 10)] {
        plan.websocket.live = Some(Nanos::SECOND);
        let run = execute(plan, echo_after(ms(20)), 1);
        assert_eq!(outcomes(&run).1, 0);
        let messages = &run.measurement.total.messages;
        // ten sockets for ten seconds, each open for a mean of one second
        let opened = messages.counts.opened;
        assert!((85..=125).contains(&opened), "{opened}");
        assert_eq!(messages.closes.get(&SocketClose::Client(1000)), Some(&opened));
        assert_eq!(messages.counts.sent, messages.counts.received);
    }
}
