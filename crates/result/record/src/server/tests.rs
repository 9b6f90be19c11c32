use super::*;
use crate::run::FirstCall;
use sample::{Outcome, Sample};
use stats::lives::{BEATS_MAX, Beats};
use stats::{Objective, Recorder};

/// End of a call: milliseconds into the window, status (0 for none), and the failure.
type Call = (u64, u16, Option<FailureClass>);

const WINDOW: Nanos = Nanos::from_secs(10);

fn served(from_ms: u64, to_ms: u64) -> Vec<Call> {
    (from_ms..to_ms).step_by(10).map(|at| (at, 200, None)).collect()
}

fn failed(from_ms: u64, to_ms: u64, status: u16, class: FailureClass) -> Vec<Call> {
    (from_ms..to_ms).step_by(10).map(|at| (at, status, Some(class))).collect()
}

fn measured(calls: &[Call], abandoned: u64) -> Measurement {
    let mut recorder = Recorder::new(1, (Nanos::ZERO, WINDOW));
    for (index, (at_ms, status, class)) in calls.iter().enumerate() {
        let done = Nanos::from_millis(*at_ms);
        recorder.beat(done);
        let outcome = match class {
            None => Outcome::Succeeded,
            Some(FailureClass::ClientTimeout) => Outcome::TimedOut,
            Some(_) => Outcome::Failed,
        };
        let begun = done - Nanos::from_millis(5);
        let sample = Sample {
            index: index as u64,
            intended: begun,
            admitted: begun,
            issued: begun,
            sent: begun,
            first_byte: done,
            done,
            status: *status,
            class: *class,
            ..Sample::default()
        };
        recorder.due(begun);
        recorder.issued(begun, begun);
        recorder.done(&sample, outcome, true);
    }
    let mut measurement = Measurement { window: WINDOW, ..Measurement::default() };
    measurement.total.merge(&recorder.swap(WINDOW, Box::default()));
    measurement.total.counts.abandoned += abandoned;
    measurement.total.counts.due += abandoned;
    measurement.total.connections.established = 4;
    measurement
}

pub(crate) fn report(measurement: Measurement) -> RunReport {
    RunReport {
        name: String::new(),
        plan: Plan::for_targets(Vec::new()),
        plan_toml: String::new(),
        started_unix_s: 0.0,
        environment: sample::Environment::default(),
        measurement,
        verdict: stats::Verdict::default(),
        driver: crate::run::Driver::default(),
        resolved: Vec::new(),
        first_call: None,
        runs: Vec::new(),
        slo: Vec::new(),
        findings: Vec::new(),
        sut: None,
        path: None,
        stack: None,
        held: None,
        posts: None,
        tokens: None,
        fleet: None,
    }
}

fn sentence(calls: &[Call]) -> String {
    Server::new(&report(measured(calls, 0))).sentence()
}

#[test]
fn a_serving_server_is_described() {
    assert_eq!(sentence(&served(0, 10_000)), "serving: 1,000 calls, all of them as expected");
    let mut calls = served(0, 50_000);
    calls.iter_mut().for_each(|call| call.0 /= 5);
    calls[1_234] = (calls[1_234].0, 503, Some(FailureClass::Status));
    calls[2_000].2 = Some(FailureClass::Reset);
    calls[2_001].2 = Some(FailureClass::Reset);
    assert_eq!(
        sentence(&calls),
        "serving: 5,000 calls, 0.060 % failed (3), mostly 2 × connection reset by the server"
    );
}

#[test]
fn a_failing_share_is_described_by_status_and_error() {
    let mut calls = served(0, 10_000);
    for (index, call) in calls.iter_mut().enumerate() {
        match index % 10 {
            0..3 => *call = (call.0, 500, Some(FailureClass::Status)),
            3 => *call = (call.0, 0, Some(FailureClass::Reset)),
            _ => {}
        }
    }
    let server = Server::new(&report(measured(&calls, 0)));
    assert_eq!(
        server.sentence(),
        "failing: 40.0 % of 1,000 calls (300 answered 500, 100 × connection reset by the server)"
    );
    assert_eq!(server.statuses, [(500, 300)]);
    assert_eq!(server.since_s, None);
    let all = failed(0, 10_000, 404, FailureClass::Status);
    assert_eq!(sentence(&all), "failing: 100 % of 1,000 calls (1,000 answered 404)");
}

#[test]
fn failures_that_begin_and_never_end_have_a_beginning() {
    let mut calls = served(0, 6_000);
    calls.extend(failed(6_000, 10_000, 500, FailureClass::Status));
    assert_eq!(
        sentence(&calls),
        "failing: all since 6.00 s; 40.0 % of 1,000 calls (400 answered 500)"
    );
}

#[test]
fn a_server_that_died_is_reported_as_gone() {
    let mut calls = served(0, 3_200);
    calls.extend([(3_201, 0, Some(FailureClass::Reset)), (3_202, 0, Some(FailureClass::Reset))]);
    calls.push((3_202, 0, Some(FailureClass::ClosedEarly)));
    calls.extend(failed(3_300, 10_000, 0, FailureClass::Refused));
    let server = Server::new(&report(measured(&calls, 0)));
    assert_eq!(
        server.sentence(),
        "gone since 3.20 s (died: 2 × connection reset by the server, 1 × the server closed the \
         connection before any byte of the response; then 670 connections were refused)"
    );
    assert_eq!((server.conduct, server.since_s, server.broken), (Conduct::Gone, Some(3.2), 3));
}

#[test]
fn a_refusing_server_is_described() {
    let all = failed(0, 10_000, 0, FailureClass::Refused);
    assert_eq!(
        sentence(&all),
        "refusing: 1,000 connections were refused, from the first to the last"
    );
    let mut later = served(0, 900);
    later.extend(failed(900, 10_000, 0, FailureClass::Refused));
    assert_eq!(sentence(&later), "refusing since 900 ms: 910 connections were refused");
    // a server that returns is failing, not gone
    later.extend(served(9_900, 9_950));
    assert!(sentence(&later).starts_with("failing: "), "{}", sentence(&later));
}

#[test]
fn a_stalled_server_is_described() {
    let server = Server::new(&report(measured(&served(0, 4_100), 8)));
    assert_eq!(
        server.sentence(),
        "stalled since 4.10 s: no response in the last 5.90 s, to 8 calls"
    );
    let silent = failed(2_000, 10_000, 0, FailureClass::ClientTimeout);
    assert_eq!(sentence(&silent), "stalled: no response to any of 800 calls");
    // the last call of a run is always in flight
    assert!(Server::new(&report(measured(&served(0, 9_990), 1))).conduct.is_good());
}

#[test]
fn an_expectation_that_is_missed_shows_a_response() {
    let mut report = report(measured(&failed(0, 10_000, 404, FailureClass::Status), 0));
    report.plan.expect.status = vec![(200, 200)];
    report.first_call = Some(FirstCall {
        status: 404,
        excerpt: Some("HTTP/1.1 404 Not Found | Server: s | no such page".to_owned()),
        ..FirstCall::default()
    });
    let server = Server::new(&report);
    assert_eq!(
        server.sentence(),
        "not as expected: 100 % of 1,000 calls (1,000 answered 404 where 200 was expected)"
    );
    assert!(server.example.unwrap().contains("no such page"));
    let mut report = self::report(measured(&failed(0, 10_000, 200, FailureClass::Body), 0));
    report.plan.expect.body = Some(plan::BodyRule::Contains(b"x".to_vec()));
    let server = Server::new(&report);
    assert_eq!(server.conduct, Conduct::Unexpected);
    assert!(server.detail.contains("1,000 × the body differs from the expected one"));
}

#[test]
fn a_missed_objective_is_slow_unless_it_is_undecided() {
    let mut report = report(measured(&served(0, 10_000), 0));
    let objectives = [Objective::parse("p99<4ms").unwrap()];
    report.slo = SloResult::judge(&objectives, &report.measurement);
    let server = Server::new(&report);
    assert_eq!(server.sentence(), "slow: p99 5.00 ms misses p99<4ms by 25.0 %");
    report.slo = SloResult::judge(&[Objective::parse("p99<1ms").unwrap()], &report.measurement);
    assert_eq!(
        Server::new(&report).sentence(),
        "slow: p99 5.00 ms misses p99<1ms: 5.0 × the bound"
    );
    report.slo[0].undecided = true;
    assert_eq!(Server::new(&report).conduct, Conduct::Serving);
}

#[test]
fn client_failures_do_not_blame_the_server() {
    let ours = failed(0, 10_000, 0, FailureClass::AddressUnavailable);
    let text = sentence(&ours);
    assert_eq!(text, "not reached: 1,000 × no local port left (EADDRNOTAVAIL)");
    assert_eq!(sentence(&[]), "not reached: no call ended");
}

#[test]
fn rows_of_the_series_replace_missing_beats() {
    let mut calls = served(0, 3_000);
    calls.extend(failed(3_000, 10_000, 0, FailureClass::Refused));
    let mut measurement = measured(&calls, 0);
    measurement.total.beats = Beats::default();
    measurement.series = (0..10)
        .map(|at| {
            let mut row =
                stats::Second { at_s: at as f64, span_s: 1.0, ..stats::Second::default() };
            row.counts.succeeded = if at < 3 { 100 } else { 0 };
            row.counts.failed = 100 - row.counts.succeeded;
            row
        })
        .collect();
    let server = Server::new(&report(measurement.clone()));
    assert_eq!((server.conduct, server.since_s), (Conduct::Refusing, Some(3.0)));
    // if the open connections end too, the server died
    measurement.series.iter_mut().take(3).for_each(|row| row.open_connections = 4);
    let server = Server::new(&report(measurement));
    assert_eq!(
        server.sentence(),
        "gone since 3.00 s (died: 4 idle connections ended; then 700 connections were refused)"
    );
}

#[test]
fn a_random_row_of_failures_is_ignored() {
    // every other call fails, the last three included
    let mut calls = served(0, 10_000);
    for call in calls.iter_mut().step_by(2) {
        call.2 = Some(FailureClass::Refused);
    }
    let last = calls.len() - 2;
    calls[last..].iter_mut().for_each(|call| call.2 = Some(FailureClass::Refused));
    assert!(sentence(&calls).starts_with("failing: 50"), "{}", sentence(&calls));
}

/// Returns a run of 40 minutes, whose beats end after 30: two calls time out, and rows from
/// `gone_s` on have no success.
fn long(gone_s: u64) -> Measurement {
    let mut measurement = Measurement { window: Nanos::from_secs(2_400), ..Measurement::default() };
    let seconds = (0..2_400).map(|at| {
        let mut row = stats::Second { at_s: at as f64, span_s: 1.0, ..stats::Second::default() };
        let counts = &mut row.counts;
        *(if at < gone_s { &mut counts.succeeded } else { &mut counts.failed }) = 100;
        row
    });
    measurement.series = seconds.collect();
    let total = &mut measurement.total;
    total.beats = Beats::from_all(vec![(5, 5); BEATS_MAX]);
    total.counts.succeeded = 100 * gone_s;
    total.counts.failed = 100 * (2_400 - gone_s);
    total.counts.timed_out = 1;
    total.connections.established = 4;
    if gone_s < 2_400 {
        total.failures.insert(FailureClass::Refused, total.counts.failed);
        total.failures.insert(FailureClass::Reset, 1);
    }
    measurement
}

#[test]
fn rows_cover_the_time_after_the_last_beat() {
    let healthy = long(2_400);
    assert_eq!(silence(&healthy), None);
    assert!(Server::new(&report(healthy)).conduct.is_good());
    let server = Server::new(&report(long(2_100)));
    assert_eq!((server.conduct, server.since_s), (Conduct::Gone, Some(2_100.0)));
}

#[test]
fn a_row_across_the_last_beat_counts_once() {
    let mut measurement = long(2_400);
    measurement.series = (0..343)
        .map(|at| {
            let mut row =
                stats::Second { at_s: at as f64 * 7.0, span_s: 7.0, ..stats::Second::default() };
            row.counts.succeeded = 700;
            row
        })
        .collect();
    let steps = steps(&measurement);
    // the row from 1,799 s to 1,806 s includes the beats in it
    assert_eq!(steps[35_979..35_981], [(1_799.0, 5, 5), (1_806.0, 700, 700)]);
    assert_eq!(steps.iter().map(|(_, done, _)| done).sum::<u64>(), 343 * 700);
}

/// A call every two seconds: the plan explains the last second without a response.
#[test]
fn an_old_time_out_waits_for_nothing() {
    let mut calls: Vec<Call> = (0..5).map(|n| (2_000 * n + 5, 200, None)).collect();
    calls[2] = (4_005, 0, Some(FailureClass::ClientTimeout));
    let found = sentence(&calls);
    assert!(found.starts_with("failing: 20.0 % of 5 calls"), "{found}");
    calls[4] = (9_005, 0, Some(FailureClass::ClientTimeout));
    let found = sentence(&calls);
    assert!(found.contains("no response in the last") && found.ends_with("to 1 call"), "{found}");
}

#[test]
fn calls_without_a_connection_are_failures() {
    let mut calls = served(0, 9_400);
    calls.extend(failed(9_400, 10_000, 0, FailureClass::ConnectTimeout));
    // the last call is a success: nothing has ended
    calls.push((9_999, 200, None));
    let mut report = report(measured(&calls, 0));
    let server = Server::new(&report);
    assert_eq!(
        server.sentence(),
        "failing: 5.99 % of 1,001 calls (60 × no connection within the connect timeout)"
    );
    // the losses of an emulated path are configured
    let text = "version = 1\nurl = 'http://h/'\n[connection]\npath = 'loss=1%'\n";
    report.plan.connection.path = plan::from_toml(text, &plan::NoFiles).unwrap().connection.path;
    assert_eq!(Server::new(&report).conduct, Conduct::Serving);
    let none = failed(0, 10_000, 0, FailureClass::Unreachable);
    assert!(sentence(&none).starts_with("not reached: 1,000 ×"), "{}", sentence(&none));
}

#[test]
fn an_objective_on_failures_defines_failing() {
    let mut calls = served(0, 10_000);
    for call in calls.iter_mut().step_by(100) {
        (call.1, call.2) = (500, Some(FailureClass::Status));
    }
    let mut report = report(measured(&calls, 0));
    let of = |report: &mut RunReport, objective: &str| {
        let objectives = [Objective::parse(objective).unwrap()];
        report.slo = SloResult::judge(&objectives, &report.measurement);
        Server::new(report).sentence()
    };
    assert!(of(&mut report, "p99<1s").starts_with("failing: 1.00 % of 1,000 calls"));
    assert_eq!(
        of(&mut report, "failures<10%"),
        "serving: 1,000 calls, 1.00 % failed, within failures<10%, mostly 10 answered 500"
    );
    assert!(of(&mut report, "failures<0.5%").starts_with("failing: 1.00 %"));
}

/// Below the limit, a server fails only because of an objective.
#[test]
fn few_failures_do_not_fail_a_server() {
    let mut calls = served(0, 10_000);
    // 5 of 1,000: clearly above 0.05 %, by the interval too
    for call in calls.iter_mut().step_by(200) {
        (call.1, call.2) = (500, Some(FailureClass::Status));
    }
    let mut report = report(measured(&calls, 0));
    let of = |report: &mut RunReport, objective: &str| {
        let objectives = [Objective::parse(objective).unwrap()];
        report.slo = SloResult::judge(&objectives, &report.measurement);
        Server::new(report).sentence()
    };
    let serving = "serving: 1,000 calls, 0.500 % failed (5), mostly 5 answered 500";
    assert_eq!(of(&mut report, "p99<1s"), serving);
    assert!(of(&mut report, "p99<1us").starts_with("slow: "), "the failures are not why");
    let failing = "failing: 0.500 % of 1,000 calls (5 answered 500)";
    assert_eq!(of(&mut report, "failures<0.05%"), failing);
}

#[test]
fn unsolicited_bytes_fail_no_call() {
    let mut measurement = measured(&served(0, 10_000), 0);
    measurement.total.failures.insert(FailureClass::Unasked, 20);
    assert_eq!(
        Server::new(&report(measurement)).sentence(),
        "serving: 1,000 calls, all of them as expected; 20 × bytes arrived without a request"
    );
}

/// Returns ten seconds with 300 due calls each, of which this number is answered.
fn rows(answered: [u64; 10]) -> Measurement {
    let mut measurement = measured(&served(0, 10_000), 0);
    measurement.intended = Some(3_000);
    let row = |(at, succeeded): (usize, u64)| {
        let mut row = stats::Second { at_s: at as f64, span_s: 1.0, ..stats::Second::default() };
        (row.counts.due, row.counts.succeeded) = (300, succeeded);
        row
    };
    measurement.series = answered.into_iter().enumerate().map(row).collect();
    measurement
}

#[test]
fn fewer_calls_answered_than_due_is_overload() {
    let describe = |answered| Server::new(&report(rows(answered))).sentence();
    assert_eq!(describe([87; 10]), "cannot keep up: 87/s answered of 300/s due");
    // a call takes two seconds: nothing at first, and then as many as fall due
    let slow = [0, 0, 300, 300, 300, 300, 300, 300, 300, 300];
    assert!(describe(slow).starts_with("serving"), "{}", describe(slow));
    // pauses that are caught up with
    let pauses = [300, 150, 450, 300, 150, 450, 300, 150, 450, 150];
    assert!(describe(pauses).starts_with("serving"), "{}", describe(pauses));
    // the client itself was late
    let mut late = rows([87; 10]);
    late.total.lag.record_n(Nanos::from_secs(1), 5_000);
    assert!(Server::new(&report(late)).sentence().starts_with("serving"));
}
