//! Probes in, verdict out: each row of the table on both sides of its threshold.

use super::*;

const EVERY: Nanos = Nanos::from_millis(200);
const FAST: Nanos = Nanos::from_millis(1);
/// Start of the interval of full load.
const ARMED_AT: Nanos = Nanos::from_secs(10);
const RELEASED_AT: Nanos = Nanos::from_secs(30);

/// Builds probes from letters, one each: `.` correct, `~` correct and slow, `s` shed, `x` lost, `r`
/// refused, `l` correct and slow, but sent late by us, `!` not sent because no descriptor was free.
fn probes(kind: ProbeKind, from: Nanos, letters: &str) -> Vec<Probe> {
    let one = |(index, letter): (usize, char)| {
        let (seen, over) = match letter {
            's' => (Seen::Shed, FAST),
            'x' => (Seen::Lost, Nanos::from_secs(2)),
            'r' => (Seen::Lost, FAST),
            '!' => (Seen::Lost, Nanos::ZERO),
            '~' | 'l' => (Seen::Correct, Nanos::from_millis(100)),
            _ => (Seen::Correct, FAST),
        };
        Probe {
            kind,
            due: from + EVERY * index as u64,
            late: Nanos::from_millis(if letter == 'l' { 6 } else { 0 }),
            connected: None,
            first_byte: None,
            over,
            seen,
            said: String::new(),
            ours: letter == '!',
            refused: letter == 'r',
            case: String::new(),
        }
    };
    letters.chars().enumerate().map(one).collect()
}

/// Builds `count` probes, with this letter at `places`.
fn with(count: usize, letter: char, places: std::ops::Range<usize>) -> String {
    (0..count).map(|index| if places.contains(&index) { letter } else { '.' }).collect()
}

struct Row {
    new: String,
    keep: String,
    /// Time since the release.
    after: String,
    back: Option<Nanos>,
    armed: u64,
    broken_at: Vec<Nanos>,
}

impl Default for Row {
    fn default() -> Row {
        Row {
            new: with(100, '.', 0..0),
            keep: with(100, '.', 0..0),
            after: ".....".to_owned(),
            back: Some(FAST),
            armed: 50,
            broken_at: Vec::new(),
        }
    }
}

fn judged(row: &Row) -> (PressureOutcome, Health, Vec<String>) {
    let mut all = probes(ProbeKind::New, ARMED_AT, &row.new);
    all.extend(probes(ProbeKind::Keep, ARMED_AT, &row.keep));
    all.extend(probes(ProbeKind::New, RELEASED_AT, &row.after));
    let base = Baseline { probes: 100, failed: 0, slow: 0, p50: FAST, p99: Nanos::from_millis(2) };
    let pressed = Pressed {
        base,
        every: EVERY,
        probes: &all,
        armed_at: ARMED_AT,
        released_at: RELEASED_AT,
        over_at: RELEASED_AT + Nanos::from_secs(30),
        back_at: row.back.map(|span| RELEASED_AT + span),
        wanted: 50,
        armed: row.armed,
        short: false,
        broken_at: row.broken_at.clone(),
    };
    let health = health(&pressed);
    let verdict = outcome(&pressed, &health);
    (verdict.outcome, health, verdict.notes)
}

fn outcome_for(row: Row) -> PressureOutcome {
    judged(&row).0
}

#[test]
fn slow_or_unserved_clients_are_not_held() {
    let new = |new: String| outcome_for(Row { new, ..Row::default() });
    assert_eq!(new(with(100, '.', 0..0)), PressureOutcome::Held);
    // two slow probes may be noise
    assert_eq!(new(with(100, '~', 3..5)), PressureOutcome::Held);
    assert_eq!(new(with(100, '~', 3..6)), PressureOutcome::Degraded);
    assert_eq!(new(with(100, 'x', 3..4)), PressureOutcome::Degraded);
    let back = |span| outcome_for(Row { back: Some(span), ..Row::default() });
    assert_eq!(back(BACK_WITHIN), PressureOutcome::Held);
    assert_eq!(back(BACK_WITHIN + Nanos(1)), PressureOutcome::Degraded);
}

#[test]
fn shed_probes_are_not_lost() {
    let new = |new: String| outcome_for(Row { new, ..Row::default() });
    assert_eq!(new(with(100, 's', 0..1)), PressureOutcome::Degraded);
    assert_eq!(new(with(100, 's', 0..2)), PressureOutcome::Shed);
    assert_eq!(new(with(100, 's', 0..100)), PressureOutcome::Shed);
    let mixed = with(100, 's', 0..50).replacen("..", "x.", 1);
    assert_eq!(new(mixed), PressureOutcome::Degraded);
}

#[test]
fn denied_means_over_5_percent_of_10_s_for_either_kind() {
    let new = |new: String| outcome_for(Row { new, ..Row::default() });
    // 0.4 s, then 0.6 s of 10 s
    assert_eq!(new(with(100, 'x', 40..42)), PressureOutcome::Degraded);
    assert_eq!(new(with(100, 'x', 40..43)), PressureOutcome::Denied);
    // as many, but never within 10 s
    let good = with(98, '.', 0..0);
    let apart = format!("x{}x{}x", &good[..54], &good[55..]);
    assert_eq!(new(apart), PressureOutcome::Degraded);
    let keep = outcome_for(Row { keep: with(100, 'x', 40..43), ..Row::default() });
    assert_eq!(keep, PressureOutcome::Denied);
}

#[test]
fn the_notes_distinguish_exhaustion_from_a_stall() {
    let lost = || with(100, 'x', 0..100);
    let pool = judged(&Row { new: lost(), ..Row::default() });
    assert_eq!(
        pool.2,
        ["new connections were not served but a kept one was: accept queue or worker pool \
            exhausted"]
    );
    let still = judged(&Row { new: lost(), keep: lost(), ..Row::default() });
    assert_eq!(
        still.2,
        ["neither new connections nor a kept one were served: the server hangs, or every \
            worker is busy"]
    );
    let one = judged(&Row { keep: lost(), ..Row::default() });
    assert_eq!(one.2, ["a kept connection was not served but new ones were"]);
    assert_eq!((one.1.correct, one.1.lost), (0.0, 1.0));
}

#[test]
fn a_restart_shows_as_simultaneous_refusals_and_resets() {
    let refused = || with(100, 'r', 20..25);
    let at = ARMED_AT + EVERY * 20;
    let row = |broken: usize| Row { new: refused(), broken_at: vec![at; broken], ..Row::default() };
    assert_eq!(outcome_for(row(25)), PressureOutcome::Crashed);
    // without resets the listener just refuses
    assert_eq!(outcome_for(row(0)), PressureOutcome::Denied);
    assert_eq!(outcome_for(row(24)), PressureOutcome::Denied);
    let after = |count: usize| Row { after: with(40, 'r', 0..count), ..Row::default() };
    assert_eq!(outcome_for(after(16)), PressureOutcome::Held);
    assert_eq!(outcome_for(after(17)), PressureOutcome::Crashed);
}

#[test]
fn no_recovery_is_a_leak_and_slowness_is_not() {
    // the watch ends 30 s after the release
    let row = |after: String| Row { back: None, after, ..Row::default() };
    let (outcome, health, notes) = judged(&row(with(150, 'x', 0..150)));
    assert_eq!((outcome, health.recovery), (PressureOutcome::Leak, None));
    assert_eq!(notes, ["probes did not recover within 30.0 s of the end of the load"]);
    assert_eq!(outcome_for(row(with(150, '~', 0..150))), PressureOutcome::Degraded);
    assert_eq!(outcome_for(row(with(150, 'x', 0..125))), PressureOutcome::Degraded);
}

#[test]
fn late_probes_make_slowness_inconclusive() {
    let row = |letters: String| Row { new: letters, ..Row::default() };
    assert_eq!(outcome_for(row(with(100, 'l', 0..2))), PressureOutcome::Held);
    let (outcome, _, notes) = judged(&row(with(100, 'l', 0..3)));
    assert_eq!(outcome, PressureOutcome::Inconclusive);
    assert_eq!(
        notes,
        [
            "3 of 205 probes were sent more than 5.00 ms after they were due (up to 6.00 ms): this machine was too busy"
        ]
    );
    // a delay of six milliseconds does not lose a response of two seconds
    let lost = with(100, 'x', 0..50).replace("xxxxxxxxxx", "xxxxxxxxxl");
    assert_eq!(outcome_for(row(lost)), PressureOutcome::Denied);
    let (outcome, _, notes) = judged(&row(with(100, '!', 0..1)));
    assert_eq!(outcome, PressureOutcome::Inconclusive);
    assert_eq!(notes, ["this machine ran out of descriptors or ports"]);
    let none = Row { new: String::new(), keep: String::new(), ..Row::default() };
    assert_eq!(outcome_for(none), PressureOutcome::Inconclusive);
}

#[test]
fn a_response_after_the_release_does_not_count() {
    // the last two probes were still outstanding at the release
    let row = Row { new: with(100, '~', 99..100), ..Row::default() };
    let mut all = probes(ProbeKind::New, ARMED_AT, &row.new);
    for probe in all.iter_mut().skip(98) {
        probe.over = Nanos::from_secs(1);
    }
    let pressed = Pressed {
        base: Baseline { probes: 100, failed: 0, slow: 0, p50: FAST, p99: FAST },
        every: EVERY,
        probes: &all,
        armed_at: ARMED_AT,
        released_at: RELEASED_AT,
        over_at: RELEASED_AT + Nanos::SECOND,
        back_at: Some(RELEASED_AT),
        wanted: 1,
        armed: 1,
        short: false,
        broken_at: Vec::new(),
    };
    assert_eq!(health(&pressed).probes, 98);
}
