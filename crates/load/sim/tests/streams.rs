//! Responses that are streams of events, in virtual time: the figures equal the server's schedule,
//! however the bytes are cut and whichever side is late.

use plan::{Arrivals, Load, ModelApi, Plan, Streaming, Think};
use sample::FailureClass;
use sim::{Action, Admission, Client, ClosureServer, Server, execute, plan_for};
use stats::{Hist, Measurement};
use units::{Nanos, Rate};

const fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn plan(users: u32, calls: u64, form: Option<Streaming>) -> Plan {
    let mut plan = plan_for("http://sim.example/");
    plan.load = Load::Closed { users, think: Think::None, session: None };
    (plan.stop.duration, plan.stop.requests) = (None, Some(calls));
    plan.stop.warm_up = Nanos::ZERO;
    plan.timeouts.call = ms(3_000);
    plan.measure.stream = form;
    plan
}

/// Chunks and their times after the request; an empty text ends the body.
type Frames = Vec<(u64, &'static str)>;

fn server(status: u16, mut say: impl FnMut(u64) -> Frames + 'static) -> Box<dyn Server> {
    let mut seen = 0;
    let react = move |now: Nanos, _: Client, _: &[u8]| {
        let head = format!("HTTP/1.1 {status} Said\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut actions = vec![(now + ms(1), Action::Bytes(head.into_bytes()))];
        for (at, text) in say(seen) {
            let end = if text.is_empty() { "\r\n" } else { "" };
            let chunk = match text {
                "" => format!("0\r\n{end}"),
                _ => format!("{:x}\r\n{text}\r\n", text.len()),
            };
            actions.push((now + ms(at), Action::Bytes(chunk.into_bytes())));
        }
        seen += 1;
        actions
    };
    Box::new(ClosureServer { admit: Admission::Accept, react })
}

/// Returns five events: the first after 200 ms, the others each 50 ms after the previous one, one
/// of them split in two. A comment is in between, and the end mark follows 70 ms after the last
/// event.
fn on_schedule() -> Frames {
    vec![
        (200, "data: a\n\n"),
        (210, ": still there\n\n"),
        (250, "data: b\n\n"),
        (280, "id: 3\nda"),
        (300, "ta: c\n\n"),
        (350, "data: d\r\n\r\n"),
        (400, "data: e\n\n"),
        (470, "data: [DONE]\n\n"),
        (470, ""),
    ]
}

fn near(found: Nanos, wanted: Nanos) {
    let off = found.0.abs_diff(wanted.0);
    assert!(off * 100 <= wanted.0, "{found:?} for {wanted:?}");
}

fn assert_all_near(hist: &Hist, count: u64, wanted: Nanos) {
    assert_eq!(hist.count(), count);
    near(hist.quantile(0.001), wanted);
    near(hist.max(), wanted);
}

fn done(measured: &Measurement) -> (u64, u64, u64) {
    let counts = &measured.total.counts;
    (counts.succeeded, counts.failed, counts.timed_out)
}

#[test]
fn the_figures_equal_a_kept_schedule() {
    for workers in [1, 3] {
        let plan = plan(3, 30, Some(Streaming::Sse));
        let measured = execute(plan, server(200, |_| on_schedule()), workers).measurement;
        assert_eq!(done(&measured), (30, 0, 0), "one outcome for each call");
        let streams = &measured.total.streams;
        assert_eq!((streams.whole, streams.cut, streams.empty), (30, 0, 0));
        assert_eq!((streams.events, streams.in_window), (150, 150));
        assert_all_near(&streams.first, 30, ms(200));
        assert_all_near(&streams.gap, 120, ms(50));
        assert_all_near(&streams.pace, 30, ms(50));
        near(measured.total.response().max(), ms(470));
    }
}

#[test]
fn lines_are_split_and_simultaneous_events_have_no_gap() {
    let say = |_| vec![(100, "{}\n{}\n"), (160, "{}\n\n{"), (190, "}"), (220, "")];
    let measured = execute(plan(1, 10, Some(Streaming::Lines)), server(200, say), 1).measurement;
    let streams = &measured.total.streams;
    assert_eq!((streams.whole, streams.events), (10, 40));
    // two at 100 ms, one at 160 ms; the last has no line end and arrives with the end of the body
    assert_eq!(streams.gap.count(), 30);
    assert_eq!(streams.gap.quantile(0.3), Nanos::ZERO);
    near(streams.gap.quantile(0.6), ms(60));
    assert_all_near(&streams.pace, 10, ms(40));
}

#[test]
fn a_stalled_stream_counts_its_last_wait_or_its_first() {
    let say = |n: u64| match n % 3 {
        0 => on_schedule(),
        1 => vec![(200, "data: a\n\n"), (250, "data: b\n\n")],
        _ => vec![(100, ": only a comment\n\n")],
    };
    let measured = execute(plan(1, 30, Some(Streaming::Sse)), server(200, say), 1).measurement;
    assert_eq!(done(&measured), (10, 0, 20));
    let streams = &measured.total.streams;
    assert_eq!((streams.whole, streams.cut, streams.events), (10, 10, 70));
    assert_eq!((streams.first.count(), streams.gap.count()), (30, 40 + 10 + 10));
    near(streams.first.max(), ms(3_000));
    near(streams.gap.max(), ms(2_750));
    assert_eq!(streams.pace.count(), 10);
}

#[test]
fn the_first_event_counts_from_when_its_call_was_due() {
    let mut plan = plan(1, 10, Some(Streaming::Sse));
    // a call each 100 ms that takes 470 ms, on one connection: each waits 370 ms longer than the last
    plan.load = Load::Open {
        arrivals: Arrivals::constant(Rate(10.0)),
        session: None,
        connections_max: Some(1),
        queue_max: None,
    };
    plan.timeouts.call = ms(30_000);
    let measured = execute(plan, server(200, |_| on_schedule()), 1).measurement;
    assert_eq!(done(&measured), (10, 0, 0));
    let streams = &measured.total.streams;
    near(streams.first.max(), ms(9 * 370 + 200));
    near(streams.first.quantile(0.05), ms(200));
    assert_all_near(&streams.gap, 40, ms(50));
}

#[test]
fn a_bad_or_unasked_response_is_not_a_stream() {
    let error = execute(plan(1, 10, Some(Streaming::Sse)), server(503, |_| on_schedule()), 1);
    assert_eq!(done(&error.measurement), (0, 10, 0));
    let unasked = execute(plan(1, 10, None), server(200, |_| on_schedule()), 1);
    assert_eq!(done(&unasked.measurement), (10, 0, 0));
    for measured in [&error.measurement, &unasked.measurement] {
        let streams = &measured.total.streams;
        assert_eq!((streams.events, streams.whole, streams.cut, streams.empty), (0, 0, 0, 0));
        assert!(streams.first.is_empty() && streams.gap.is_empty());
    }
    let empty = execute(plan(1, 10, Some(Streaming::Sse)), server(200, |_| vec![(9, "")]), 1);
    assert_eq!(empty.measurement.total.streams.empty, 10);
}

/// Returns a role, the first token after 200 ms, four tokens in each later event, 25 ms apart, and
/// the token counts before the end mark.
fn tokens() -> Frames {
    let mut lines = vec![
        (1, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"),
        (200, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n"),
    ];
    let four = "data: {\"choices\":[{\"delta\":{\"content\":\" four of them\"}}]}\n\n";
    lines.extend((1..=4).map(|n| (200 + 25 * n, four)));
    lines.extend([
        (
            301,
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":17}}\n\n",
        ),
        (302, "data: [DONE]\n\n"),
        (302, ""),
    ]);
    lines
}

#[test]
fn tokens_count_from_the_due_instant_of_their_call() {
    let form = Some(Streaming::Model(ModelApi::OpenAi));
    for workers in [1, 2] {
        let measured = execute(plan(2, 20, form), server(200, |_| tokens()), workers).measurement;
        assert_eq!(done(&measured), (20, 0, 0));
        let streams = &measured.total.streams;
        assert_eq!((streams.whole, streams.events), (20, 100), "a role is not a token");
        let first = streams.first.quantile(0.5);
        assert!(first.0.abs_diff(ms(200).0) <= ms(1).0, "{first:?}");
        assert_all_near(&streams.gap, 80, ms(25));
        // 100 ms for the sixteen tokens after the first
        assert_all_near(&streams.pace, 20, Nanos(ms(100).0 / 16));
        let counts = &streams.tokens;
        assert_eq!((counts.output, counts.input, counts.reporting), (340, 140, 20));
        let figures = stats::Figures::new(&measured.total, Nanos::from_secs(10));
        let tokens = figures.value(stats::Metric::Tokens);
        assert!((tokens - 34.0).abs() < 0.01, "{tokens}");
        let ttft = stats::Objective::parse("ttft-p95<201ms").expect("an objective");
        assert!(ttft.evaluate(&figures).1);
    }
    // one connection for a call every 100 ms: the wait for it counts
    let mut late = plan(1, 5, form);
    late.load = Load::Open {
        arrivals: Arrivals::constant(Rate(10.0)),
        session: None,
        connections_max: Some(1),
        queue_max: None,
    };
    let measured = execute(late, server(200, |_| tokens()), 1).measurement;
    near(measured.total.streams.first.max(), ms(4 * 202 + 200));
}

#[test]
fn a_stream_of_tokens_without_its_end_mark_fails() {
    let form = Some(Streaming::Model(ModelApi::OpenAi));
    let cut = |n: u64| {
        let mut sent = tokens();
        if n % 2 == 1 {
            sent.remove(sent.len() - 2);
        }
        sent
    };
    let measured = execute(plan(1, 10, form), server(200, cut), 1).measurement;
    assert_eq!(done(&measured), (5, 5, 0));
    assert_eq!(measured.total.failures.get(&FailureClass::StreamFailed), Some(&5));
    let streams = &measured.total.streams;
    assert_eq!((streams.whole, streams.cut, streams.tokens.output), (5, 5, 85));
}
