//! Sessions one after another, by script, on one connection, with failed calls retried; and due
//! instants given one by one.

use plan::{Arrivals, Load, Pace, Plan, SessionPlan, TargetPlan, Think};
use sim::{Action, Admission, Client, ClosureServer, Simulated, execute, plan_for};
use units::{Nanos, Rate};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";

/// Runs `count` sessions of one user, against responses given in turn, a millisecond each; the last
/// response repeats.
fn run(plan: Plan, responses: &'static [&'static [u8]]) -> Simulated {
    let mut given = 0;
    let react = move |now: Nanos, _: Client, bytes: &[u8]| {
        let asked = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        let mut all = Vec::new();
        for _ in 0..asked {
            all.extend_from_slice(responses[given.min(responses.len() - 1)]);
            given += 1;
        }
        vec![(now + Nanos::from_millis(1), Action::Bytes(all))]
    };
    execute(plan, Box::new(ClosureServer { admit: Admission::Accept, react }), 1)
}

fn sessions(count: u64, session: SessionPlan) -> Plan {
    let mut plan = plan_for("http://sim.example/a");
    plan.load = Load::Closed { users: 1, think: Think::None, session: Some(session) };
    plan.stop.duration = None;
    plan.stop.requests = Some(count);
    plan
}

#[test]
fn each_session_begins_when_the_one_before_has_ended() {
    let run = run(sessions(4, SessionPlan::new(3, Think::None)), &[OK]);
    assert_eq!(run.measurement.total.counts.succeeded, 12);
    assert_eq!((run.sessions.len(), run.connections.len()), (4, 4));
    assert!(run.sessions.windows(2).all(|pair| pair[1].intended == pair[0].ended));
    assert!(
        run.sessions
            .iter()
            .all(|one| (one.responses, one.connections, one.failed) == (3, 1, false))
    );
}

#[test]
fn a_visit_runs_in_groups_with_a_lone_first_call() {
    let target = |path: &str| TargetPlan::new(format!("http://sim.example{path}").parse().unwrap());
    let visits = vec![plan::rules::parse_visit("0,1,1 500ms; 2").unwrap()];
    let session = SessionPlan { visits, lead: true, ..SessionPlan::new(1, Think::None) };
    let mut plan = sessions(1, session);
    plan.targets = ["/a", "/b", "/c"].into_iter().map(target).collect();
    let run = run(plan, &[OK]);
    let start = run.sessions[0].intended;
    let calls: Vec<(u32, u64)> = run
        .calls
        .iter()
        .map(|(sample, _)| (sample.target, (sample.intended - start).0 / 1_000_000))
        .collect();
    assert_eq!(calls, [(0, 0), (1, 1), (1, 1), (2, 502)]);
}

#[test]
fn a_session_ends_with_its_one_connection() {
    let session = SessionPlan { one_connection: true, ..SessionPlan::new(5, Think::None) };
    let run = run(sessions(2, session), &[OK, LAST]);
    let responses: Vec<u32> = run.sessions.iter().map(|one| one.responses).collect();
    assert_eq!((responses, run.connections.len()), (vec![2, 1], 2));
    assert!(run.sessions.iter().all(|one| !one.failed));
}

#[test]
fn a_failed_call_fails_its_session_unless_it_is_made_again() {
    let failing = run(sessions(1, SessionPlan::new(2, Think::None)), &[BUSY, BUSY, OK]);
    assert_eq!((failing.sessions[0].failed, failing.calls.len()), (true, 1));
    let session = SessionPlan { retry: true, ..SessionPlan::new(2, Think::None) };
    let again = run(sessions(1, session), &[BUSY, BUSY, OK]);
    assert_eq!((again.sessions[0].failed, again.calls.len()), (false, 4));
    assert_eq!(again.measurement.total.counts.failed, 2);
}

#[test]
fn a_surviving_session_continues_after_a_failed_call() {
    let session = SessionPlan { survives: true, ..SessionPlan::new(4, Think::None) };
    let run = run(sessions(1, session), &[BUSY, OK, BUSY, OK]);
    assert_eq!((run.sessions[0].failed, run.calls.len()), (false, 4));
    assert_eq!(run.measurement.total.counts.failed, 2);
}

/// wrk2's connection: calls delayed by a slow response are sent as soon as it arrives, and each
/// counts from its due instant.
#[test]
fn a_late_session_catches_up_at_once() {
    let mut asked = 0;
    let react = move |now: Nanos, _: Client, _: &[u8]| {
        asked += 1;
        let span = Nanos::from_millis(if asked == 2 { 95 } else { 1 });
        vec![(now + span, Action::Bytes(OK.to_vec()))]
    };
    let session =
        SessionPlan { pace: Some(Pace::Every(Rate(100.0))), ..SessionPlan::new(14, Think::None) };
    let server = ClosureServer { admit: Admission::Accept, react };
    let run = execute(sessions(1, session), Box::new(server), 1);
    let start = run.sessions[0].intended;
    let millis = |span: Nanos| (span.0 + 500_000) / 1_000_000;
    let sent: Vec<u64> = run.calls.iter().map(|(call, _)| millis(call.sent - start)).collect();
    let late: Vec<u64> = (105..115).collect();
    assert_eq!(sent, [&[0, 10][..], &late, &[120, 130]].concat());
    let took = |row: usize| millis(run.calls[row].0.done - run.calls[row].0.intended);
    assert_eq!([0, 1, 2, 3, 11, 12].map(took), [1, 95, 86, 77, 5, 1]);
    // the session's own earlier calls caused the delay, not the client
    assert!(run.calls.iter().all(|(call, _)| call.issued - call.admitted < Nanos::from_millis(1)));
}

#[test]
fn a_trace_defines_every_due_instant() {
    let mut plan = plan_for("http://sim.example/a");
    let at: Vec<Nanos> = [0, 7, 7, 40].map(Nanos::from_millis).into();
    let arrivals = Arrivals { at: Some(at.clone().into()), ..Arrivals::constant(Rate(100.0)) };
    plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
    plan.stop.duration = None;
    plan.stop.requests = Some(4);
    let run = run(plan, &[OK]);
    let start = run.calls[0].0.intended;
    let mut due: Vec<Nanos> = run.calls.iter().map(|(sample, _)| sample.intended - start).collect();
    due.sort_unstable();
    assert_eq!(due, at);
}

/// SURGE's users start 50 ms apart; when a session ends meanwhile, the next one starts at once.
#[test]
fn users_start_a_gap_apart() {
    let session =
        SessionPlan { start_gap: Nanos::from_millis(50), ..SessionPlan::new(2, Think::None) };
    let mut plan = sessions(10, session);
    let Load::Closed { users, .. } = &mut plan.load else { panic!("a closed loop") };
    *users = 4;
    let run = run(plan, &[OK]);
    let first = run.sessions.iter().map(|one| one.intended).min().unwrap();
    let mut begun: Vec<u64> =
        run.sessions.iter().map(|one| (one.intended - first).0 / 1_000_000).collect();
    begun.sort_unstable();
    assert_eq!(begun, [0, 2, 4, 6, 8, 10, 12, 50, 100, 150]);
}
