use crate::terminal::keys::{KeyAction, parse_keys};
use crate::terminal::model::HISTORY_MAX;
use crate::terminal::{Climb, Judged, Look, Model, Subject, TimeLeft, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use report::SloResult;
use sample::FailureClass;
use stats::{
    Cause, CauseId, Counts, Endings, Second, Snapshot, State, StatusTally, TargetTally, Verdict,
};
use units::Nanos;

const LOOK: Look = Look { color: false, unicode: true, help: false };

fn grid(model: &Model, (width, height): (u16, u16), look: Look) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, look)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(width));
    let row = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
    };
    rows.map(row).collect::<Vec<_>>().join("\n")
}

fn subject() -> Subject {
    Subject {
        name: "http://127.0.0.1:2020/hw".into(),
        load: "2,000/s, open load".into(),
        span_s: Some(120.0),
        calls_max: None,
        repeat: (1, 1),
        climb: None,
        steps: Vec::new(),
    }
}

/// Returns a journey of four steps, one of which fails.
fn of_steps() -> Model {
    let mut model = busy();
    model.subject.steps = ["log in", "search", "put into the cart", "pay"].map(Into::into).into();
    let mut total = total(60);
    total.targets = vec![TargetTally::default(); 4];
    for (tally, n) in total.targets.iter_mut().zip(1..) {
        tally.succeeded = 1_000 * n;
        tally.response.record_n(Nanos::from_millis(3 * n), 1_000 * n);
    }
    total.targets[3].failed = 12;
    model.second(&second(60), &total);
    model
}

#[test]
fn a_journey_has_a_row_for_each_step() {
    let shown = grid(&of_steps(), (80, 24), LOOK);
    for row in ["log in                          1,000        0   3.00 ms", "pay  "] {
        assert!(shown.contains(row), "{shown}");
    }
    assert!(!shown.contains("Calls a second"), "no room for the graphs: {shown}");
    let large = grid(&of_steps(), (100, 34), LOOK);
    assert!(large.contains(" Per step ") && large.contains("pay  "), "{large}");
    assert!(large.contains("p50") && large.contains("due"), "and the graphs: {large}");
    let small = grid(&of_steps(), (80, 21), LOOK);
    assert!(small.contains("Per step (3 more in the report)") || !small.contains("Per step"));
}

/// Returns the seventh step of a ramp.
fn climbing() -> Model {
    let step = |n: u32| {
        let load = f64::from(n * 50);
        let p99 = Nanos::from_millis(u64::from(2 * n));
        [units::show::rate(load), units::show::rate(load - 1.0), units::show::duration(p99)]
    };
    let climb = Climb {
        step: "step 7 of 20".into(),
        steps: (1..=6).map(step).collect(),
        known: vec!["peak 299/s".into(), "no knee yet".into()],
        left: Some(TimeLeft { span: Nanos::from_secs(1_560), at_most: false }),
    };
    let mut model = busy();
    model.subject.load = "open loop at 350/s, constant gaps, 5 s".into();
    model.subject.span_s = Some(120.0);
    model.subject.climb = Some(climb);
    model
}

#[test]
fn a_step_of_a_ramp_is_drawn() {
    insta::assert_snapshot!(grid(&climbing(), (80, 24), LOOK));
}

#[test]
fn a_large_terminal_adds_the_curve_of_a_ramp() {
    let shown = grid(&climbing(), (130, 30), LOOK);
    assert!(shown.contains("Curve so far") && shown.contains("Responses and failures"), "{shown}");
}

/// Returns second `index` of a load of 2,000/s that slows down in the middle.
fn second(index: u32) -> Second {
    let wave = f64::from(index) / 8.0;
    let time = |ms: f64| Nanos::from_secs_f64(ms / 1e3);
    let slow = 1.0 + 9.0 * (-(wave - 4.0).powi(2)).exp();
    Second {
        at_s: f64::from(index),
        span_s: 1.0,
        counts: Counts { due: 2_000, succeeded: 1_990, failed: 8, dropped: 2, ..Counts::default() },
        bytes_received: 2_000 * 512,
        p50: time(0.4 * slow),
        p90: time(1.1 * slow),
        p99: time(8.0 * slow),
        max: time(30.0 * slow),
        slip_p99: Nanos::from_micros(80),
        in_flight: 7,
        open_connections: 64,
        driver_cpu: 0.31,
        endings: Some(Endings {
            statuses: vec![(200, 1_990), (503, 5)],
            other_statuses: 0,
            failures: vec![(FailureClass::Reset, 3), (FailureClass::Status, 5)],
        }),
        ..Second::default()
    }
}

fn total(seconds: u64) -> Snapshot {
    let mut total = Snapshot::default();
    let counts = &mut total.counts;
    counts.due = 2_000 * seconds;
    counts.succeeded = 1_990 * seconds;
    counts.failed = 8 * seconds;
    counts.dropped = 2 * seconds;
    let times = [(300, 500), (900, 1_100), (1_800, 300), (6_000, 70), (27_000, 20)];
    for (micros, count) in times {
        total.succeeded.record_n(Nanos::from_micros(micros), count * seconds);
    }
    for (hist, micros) in [
        (&mut total.connect, 120),
        (&mut total.tls, 1_400),
        (&mut total.first_byte, 700),
        (&mut total.transfer, 60),
    ] {
        hist.record_n(Nanos::from_micros(micros), 1_980 * seconds);
        hist.record_n(Nanos::from_micros(micros * 30), 20 * seconds);
    }
    total.status.add_n(200, 1_990 * seconds);
    total.status.add_n(503, 5 * seconds);
    total.failures.insert(FailureClass::Status, 5 * seconds);
    total.failures.insert(FailureClass::Reset, 3 * seconds);
    total.failures.insert(FailureClass::ConnectionLimit, 2 * seconds);
    total.connections.established = 64;
    total.bytes_received = 2_000 * 512 * seconds;
    total
}

fn busy() -> Model {
    let mut model = Model::new(subject());
    for index in 0..60 {
        model.second(&second(index), &total(u64::from(index) + 1));
    }
    let cause = Cause {
        id: CauseId::ForeignCpu,
        figure: 0.12,
        text: "other programs took 12.0 % of our cores (at most 5.00 %)".into(),
        advice: String::new(),
    };
    let objectives = stats::parse_objectives("p99<50ms, failures<0.1%").unwrap();
    let figures = [0.0276, 0.005];
    let slo = objectives.into_iter().zip(figures);
    let slo = slo.map(|(objective, figure)| SloResult {
        interval: None,
        without_lag: None,
        undecided: false,
        unsure: None,
        met: figure < objective.bound,
        objective,
        figure,
    });
    model.set_verdict(Judged {
        server: ("serving: 5,000 calls, all of them as expected".to_owned(), true),
        verdict: Verdict { state: State::Degraded, causes: vec![cause] },
        slo: slo.collect(),
    });
    model
}

#[test]
fn a_usual_terminal_shows_graphs_and_tables() {
    insta::assert_snapshot!(grid(&busy(), (80, 24), LOOK));
}

#[test]
fn a_large_terminal_shows_larger_graphs() {
    insta::assert_snapshot!(grid(&busy(), (120, 40), LOOK));
}

#[test]
fn a_small_terminal_shows_tables_only() {
    insta::assert_snapshot!(grid(&busy(), (60, 15), LOOK));
}

/// Returns the third of the panels below the graphs, row by row.
fn third_panel(model: &Model) -> Vec<String> {
    let shown = grid(model, (80, 24), LOOK);
    let cells =
        |line: &str| line.chars().skip(55).take(24).collect::<String>().trim_end().to_owned();
    shown.lines().skip(10).take(8).map(cells).collect()
}

/// If a name and its count do not fit, the name is cut: a truncated count would be wrong.
#[test]
fn counts_of_failures_are_whole() {
    let mut all = total(1);
    all.failures.clear();
    all.failures.insert(FailureClass::FirstByteTimeout, 12_345);
    let mut model = Model::new(subject());
    model.second(&second(0), &all);
    let shown = third_panel(&model).join("\n");
    assert!(shown.contains("first-byte server 12,345"), "{shown}");
}

#[test]
fn phases_have_room_without_failures() {
    let mut all = total(1);
    all.failures.clear();
    all.status = StatusTally::default();
    all.status.add_n(200, 1_995);
    let mut model = Model::new(subject());
    model.second(&second(0), &all);
    insta::assert_snapshot!(third_panel(&model).join("\n"), @r"
    Status   last s   so far
    200     1,990/s    1,995
    Failures            none
    Phases       p50     p99
    connect   120 µs  120 µs
    TLS      1.40 ms 1.40 ms
    1st byte  700 µs  700 µs
    transfer 60.4 µs 60.4 µs
    ");
}

#[test]
fn the_rarest_of_many_statuses_and_failures_are_only_counted() {
    let mut all = total(1);
    (300..320).for_each(|status| all.status.add_n(status, 1));
    all.failures.insert(FailureClass::Refused, 1);
    all.failures.insert(FailureClass::Truncated, 1);
    let mut model = Model::new(subject());
    model.second(&second(0), &all);
    insta::assert_snapshot!(third_panel(&model).join("\n"), @r"
    Status   last s   so far
    200     1,990/s    1,990
    503         5/s        5
    and 20 more
    Failures
    status          server 5
    connreset       server 3
    and 3 more
    ");
}

#[test]
fn failures_are_red() {
    let look = Look { color: true, ..LOOK };
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, &busy(), look)).unwrap();
    let buffer = terminal.backend().buffer();
    let color = |row: u16| (buffer[(55, row)].symbol().to_owned(), buffer[(55, row)].fg);
    let red = ratatui::style::Color::Red;
    assert_eq!(color(12), ("5".to_owned(), red), "503");
    assert_eq!(color(14), ("s".to_owned(), red), "status");
    assert!(color(11).0 == "2" && color(11).1 != red, "200");
}

#[test]
fn without_unicode_every_cell_is_ascii() {
    let look = Look { unicode: false, ..LOOK };
    let shown = grid(&busy(), (80, 24), look);
    insta::assert_snapshot!(shown);
    assert!(shown.is_ascii());
}

#[test]
fn the_view_is_empty_before_the_first_second() {
    insta::assert_snapshot!(grid(&Model::new(subject()), (80, 24), LOOK));
}

#[test]
fn keys_and_words() {
    insta::assert_snapshot!(grid(&busy(), (80, 24), Look { help: true, ..LOOK }));
}

#[test]
fn any_size_can_be_drawn() {
    let model = busy();
    for width in [1, 2, 10, 39, 40, 71, 72, 119, 120, 300] {
        for height in [1, 2, 9, 10, 15, 19, 20, 24, 100] {
            for help in [false, true] {
                grid(&model, (width, height), Look { help, ..LOOK });
                grid(&Model::default(), (width, height), Look { help, ..LOOK });
            }
        }
    }
}

#[test]
fn hostile_figures_can_be_drawn() {
    let mut model = Model::new(Subject { span_s: Some(f64::INFINITY), ..Subject::default() });
    let mut strange = second(1);
    strange.span_s = 0.0;
    strange.counts.due = u64::MAX;
    strange.max = Nanos::NEVER;
    strange.p99 = Nanos::NEVER;
    model.second(&strange, &Snapshot::default());
    assert!(grid(&model, (80, 24), LOOK).contains("measuring"));
}

/// Each phase of a run has a name and a remaining time.
#[test]
fn the_phase_and_the_time_left_are_shown() {
    let head = |subject: Subject, at: f64, warm_up: bool| {
        let mut model = Model::new(subject);
        let latest = Second { at_s: at, warm_up, ..second(0) };
        model.second(&latest, &total(1));
        let shown = grid(&model, (80, 24), LOOK);
        shown.lines().nth(1).unwrap().trim_start_matches("2,000/s, open load").trim().to_owned()
    };
    let counted = Subject { span_s: None, calls_max: Some(10_000), ..subject() };
    let lines = [
        head(subject(), -3.0, true),
        head(subject(), 29.0, false),
        head(subject(), 120.0, false),
        head(counted, 4.0, false),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    warm-up  2.00 s left of it
    measuring  1 m 30 s left, 25.0 % done
    waiting for the last responses  2 m 00 s measured
    measuring  8,000 calls to go after 5.00 s
    ");
}

#[test]
fn the_time_left_of_all_steps() {
    let describe = |span: u64, at_most: bool, passed_s: f64| {
        TimeLeft { span: Nanos::from_millis(span), at_most }.after(passed_s)
    };
    let lines = [
        describe(150_000, false, 0.0),
        describe(150_000, true, 30.0),
        describe(150_000, false, -5.0),
        describe(59_100, false, 0.2),
        describe(1_000, true, 7.0),
        TimeLeft { span: Nanos::NEVER, at_most: true }.after(0.0),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    about 2 m 30 s
    at most 2 m 00 s
    about 2 m 30 s
    about 59 s
    at most 0 s
    at most 213,504 d 00 h
    ");
}

#[test]
fn the_graphs_keep_a_bounded_number_of_seconds() {
    let mut model = Model::new(subject());
    for index in 0..HISTORY_MAX as u32 + 50 {
        model.second(&second(index), &total(1));
    }
    assert_eq!(model.history.len(), HISTORY_MAX);
    assert!((model.history[0].at_s - 51.0).abs() < 1e-9);
}

#[test]
fn control_characters_of_a_name_are_escaped() {
    let name = "http://x/\u{1b}\u{202e}\u{61c}\u{e0041}".to_owned();
    let model = Model::new(Subject { name, ..subject() });
    let shown = grid(&model, (80, 24), LOOK);
    assert!(shown.starts_with("loadstone http://x/\\u{1b}\\u{202e}\\u{61c}\\u{e0041}"), "{shown}");
}

#[test]
fn keys_have_their_actions() {
    use KeyAction::{Help, NoHelp, Redraw, Stop};
    let describe = |bytes: &str| parse_keys(bytes.as_bytes());
    for stop in ["q", "Q", "\u{3}"] {
        assert_eq!(describe(stop), [Stop], "{stop:?}");
    }
    for help in ["?", "h", "\u{1b}OP", "\u{1b}[11~", "\u{1b}[[A"] {
        assert_eq!(describe(help), [Help], "{help:?}");
    }
    assert_eq!(describe("\u{1b}"), [NoHelp]);
    assert_eq!(describe("\u{c}"), [Redraw]);
    // other keys, and truncated sequences
    for nothing in ["c", "é", "\u{1b}[A", "\u{1b}[1;5q", "\u{1b}[24~", "\u{1b}[", "\u{1b}O"] {
        assert_eq!(describe(nothing), [], "{nothing:?}");
    }
    assert_eq!(describe("?\u{1b}\u{1b}[Bxq"), [Help, NoHelp, Stop]);
    assert_eq!(describe("\u{1b}q"), [NoHelp, Stop]);
    assert_eq!(
        describe("\u{1b}\u{3}"),
        [NoHelp, Stop],
        "Ctrl-C is never taken for a part of a key"
    );
    assert_eq!(parse_keys(&[0xff, 0x1b, b'[', 0xff, 0x80, b'q']), []);
}

#[test]
fn each_machine_has_a_row_and_lost_ones_are_first() {
    let agent = |number, state, p99| sample::AgentNow {
        number,
        host: "vm".into(),
        labels: "region=north".into(),
        state,
        calls_per_s: 50.0,
        p99: Some(Nanos::from_millis(p99)),
        ..sample::AgentNow::default()
    };
    let mut model = busy();
    let lost = sample::AgentNow { lost: 120, ..agent(3, sample::AgentState::Lost, 1) };
    let running = sample::AgentState::Running;
    model.agents(vec![agent(1, running, 2), agent(2, running, 9), lost]);
    let shown = grid(&model, (90, 40), LOOK);
    assert!(shown.contains("2 of 3 agents running"), "{shown}");
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
    assert!(at("3 vm [region=north]") < at("2 vm [region=north]"));
    assert!(at("2 vm [region=north]") < at("1 vm [region=north]"));
    assert!(shown.contains("120 lost") && shown.contains("50/s"), "{shown}");
    // without room they are omitted, and nothing else is
    let small = grid(&model, (80, 18), LOOK);
    assert!(!small.contains("agents running") && small.contains("Response time"), "{small}");
}
