use super::*;

/// Returns the result of a five-second step at an offered rate against a server of this capacity.
fn saturates(capacity: f64, level: f64) -> Point {
    let achieved = level.min(capacity);
    let busy = (level / capacity).min(0.999);
    let response = 1.0 / capacity / (1.0 - busy);
    Point {
        level,
        offered_per_s: level,
        achieved_per_s: achieved,
        goodput_per_s: achieved,
        concurrency: achieved * response,
        response_mean_s: response,
        service_mean_s: response,
        p99_s: response * 100f64.ln(),
        window_s: 5.0,
        ..Point::default()
    }
}

/// Returns the result of a closed loop against a server with this capacity and unloaded response
/// time.
fn users(capacity: f64, rest_s: f64, level: f64) -> Point {
    let achieved = (level / rest_s).min(capacity);
    let response = level / achieved;
    Point {
        offered_per_s: achieved,
        achieved_per_s: achieved,
        goodput_per_s: achieved,
        concurrency: level,
        response_mean_s: response,
        service_mean_s: response,
        ..saturates(f64::INFINITY, level)
    }
}

fn course(range: Range) -> Course {
    Course {
        axis: Axis::Rate,
        range,
        repeat: 1,
        shuffle: None,
        down: false,
        overload: false,
        find: None,
        objectives: Vec::new(),
        hold: Nanos::from_secs(5),
        confirm_factor: 3,
        recovery_max: Nanos::from_secs(30),
    }
}

/// Runs all steps; returns them with their purposes, and the curve at the end.
fn walk(course: Course, react: impl Fn(f64) -> Point) -> (Vec<(Purpose, f64)>, Curve) {
    let mut agenda = Agenda::new(course);
    let mut steps = Vec::new();
    while let Some(planned) = agenda.next_step() {
        steps.push((planned.purpose, planned.level));
        agenda.record(&planned, react(planned.level));
    }
    let curve = agenda.curve();
    (steps, curve)
}

fn levels_of(steps: &[(Purpose, f64)], purpose: Purpose) -> Vec<f64> {
    steps.iter().filter(|(known, _)| *known == purpose).map(|(_, level)| *level).collect()
}

#[test]
fn a_given_staircase_is_climbed_unchanged() {
    let range = Range::Given(vec![100.0, 200.0]);
    let (steps, _) = walk(Course { repeat: 2, ..course(range) }, |level| saturates(1e6, level));
    assert_eq!(levels_of(&steps, Purpose::Up), [100.0, 100.0, 200.0, 200.0]);
    assert_eq!(steps.len(), 4);
}

#[test]
fn the_way_down_has_the_same_levels() {
    let range = Range::Given(vec![100.0, 200.0, 300.0]);
    let (steps, curve) =
        walk(Course { down: true, ..course(range) }, |level| saturates(1e6, level));
    assert_eq!(levels_of(&steps, Purpose::Down), [300.0, 200.0, 100.0]);
    assert!(curve.hysteresis.is_some());
}

#[test]
fn a_shuffled_staircase_has_all_steps_in_the_seeds_order() {
    let levels: Vec<f64> = (1..=20).map(|index| f64::from(index) * 10.0).collect();
    let shuffled = |seed| {
        let range = Range::Given(levels.clone());
        let course = Course { shuffle: Some(seed), ..course(range) };
        levels_of(&walk(course, |level| saturates(1e6, level)).0, Purpose::Up)
    };
    let (one, again, other) = (shuffled(1), shuffled(1), shuffled(2));
    assert_eq!(one, again);
    assert_ne!(one, other);
    let mut sorted = one.clone();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(sorted, levels);
    assert_ne!(one, levels);
}

#[test]
fn without_a_range_the_load_doubles_and_the_gap_is_filled() {
    let range = Range::Automatic { from: 10.0, to: 1e6 };
    let (steps, curve) = walk(Course { overload: true, ..course(range) }, |l| saturates(350.0, l));
    let up = levels_of(&steps, Purpose::Up);
    assert_eq!(up[..8], [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1_280.0]);
    assert!(up[8..].iter().all(|level| (320.0..640.0).contains(level)), "{up:?}");
    assert_eq!(up.len(), 8 + FILL_IN);
    let knee = curve.knee.unwrap().at.at;
    assert!((300.0..=410.0).contains(&knee), "{knee}");
    let overload = levels_of(&steps, Purpose::Overload);
    assert_eq!(overload.len(), 4);
    assert!((overload[3] / overload[0] - 2.0).abs() < 1e-3, "{overload:?}");
    let recovery = levels_of(&steps, Purpose::Recovery);
    assert_eq!(recovery.len(), 1);
    assert!((recovery[0] / overload[0] - POLITE_SHARE).abs() < 1e-3, "{recovery:?}");
}

#[test]
fn a_first_level_that_is_too_high_is_lowered() {
    let range = Range::Automatic { from: 10.0, to: 1e6 };
    let (steps, curve) = walk(course(range), |level| saturates(1.2, level));
    let up = levels_of(&steps, Purpose::Up);
    assert_eq!(up[..3], [10.0, 5.0, 2.5]);
    let knee = curve.knee.unwrap().at.at;
    assert!((0.6..=2.5).contains(&knee), "{knee}");
}

#[test]
fn a_server_that_never_answers_ends_the_halving() {
    let dead = |level| Point { failure_share: 1.0, ..saturates(0.001, level) };
    let (steps, _) = walk(course(Range::Automatic { from: 10.0, to: 1e6 }), dead);
    assert!(steps.len() <= HALVINGS_MAX as usize + 1, "{}", steps.len());
}

#[test]
fn doubling_ends_where_the_client_is_the_limit() {
    let react = |level: f64| Point {
        client_limited: level > 1_000.0,
        offered_per_s: level.min(1_000.0),
        ..saturates(1e9, level)
    };
    let (steps, curve) = walk(course(Range::Automatic { from: 10.0, to: 1e6 }), react);
    let highest = steps.iter().map(|(_, level)| *level).fold(0.0, f64::max);
    assert!((highest - 2_560.0).abs() < 1e-9, "{highest}");
    assert!(curve.knee.is_none());
}

#[test]
fn one_late_step_continues_the_ramp_and_two_at_the_start_end_it() {
    let late_below = |bound: f64| {
        move |level: f64| Point { client_limited: level < bound, ..saturates(350.0, level) }
    };
    let (_, curve) = walk(course(Range::Automatic { from: 10.0, to: 1e6 }), late_below(15.0));
    let knee = curve.knee.unwrap().at.at;
    assert!((300.0..=410.0).contains(&knee), "{knee}");
    let (steps, curve) = walk(course(Range::Automatic { from: 10.0, to: 1e6 }), late_below(30.0));
    assert_eq!(levels_of(&steps, Purpose::Up), [10.0, 20.0]);
    assert!(curve.knee.is_none() && curve.capacity.is_none() && curve.peak.is_none());
    assert!(curve.notes[0].starts_with("2 of 2 steps are unusable"), "{:?}", curve.notes);
}

/// A ramp never builds on discarded steps.
#[test]
fn nothing_is_built_on_unusable_steps() {
    let react = |level: f64| Point { client_limited: level > 15.0, ..saturates(1e9, level) };
    let (steps, curve) = walk(course(Range::Automatic { from: 10.0, to: 1e6 }), react);
    assert_eq!(levels_of(&steps, Purpose::Up), [10.0, 20.0, 40.0]);
    assert!((curve.capacity.unwrap().at.at - 10.0).abs() < 1e-9);
}

#[test]
fn doubling_never_goes_beyond_its_bound() {
    let range = Range::Automatic { from: 10.0, to: 100.0 };
    let (steps, _) = walk(course(range), |level| saturates(1e6, level));
    assert_eq!(levels_of(&steps, Purpose::Up), [10.0, 20.0, 40.0, 80.0, 100.0]);
}

#[test]
fn populations_are_whole_numbers_and_end_at_the_plateau() {
    let range = Range::Automatic { from: 1.0, to: 1e5 };
    let course = Course { axis: Axis::Population, overload: true, ..course(range) };
    let (steps, _) = walk(course, |level| users(400.0, 0.02, level));
    let up = levels_of(&steps, Purpose::Up);
    assert!(up.iter().all(|level| level.fract() == 0.0), "{up:?}");
    let highest = up.iter().copied().fold(0.0, f64::max);
    assert!((16.0..=64.0).contains(&highest), "{highest}");
}

#[test]
fn a_search_finds_the_capacity_and_goes_beyond_it() {
    let objectives = stats::parse_objectives("p99<50ms").unwrap();
    let config =
        SearchConfig { short_length: 1.0 / 3.0, ..SearchConfig::from(10.0, objectives.clone()) };
    let range = Range::Automatic { from: 10.0, to: 1e6 };
    let course = Course { find: Some(config), objectives, overload: true, ..course(range) };
    // exact: the objective holds up to 261
    let react = |level| Point { met: Some(level <= 261.0), ..saturates(300.0, level) };
    let (steps, curve) = walk(course, react);
    let capacity = curve.capacity.unwrap().at;
    assert!(capacity.low <= 261.0 && capacity.high >= 261.0, "{capacity:?}");
    assert!((capacity.at / 261.0 - 1.0).abs() < 0.06, "{capacity:?}");
    assert!(!levels_of(&steps, Purpose::Confirm).is_empty());
    let overload = levels_of(&steps, Purpose::Overload);
    assert!((overload[0] / capacity.at - 1.0).abs() < 1e-3, "{overload:?}");
}

#[test]
fn an_objective_that_is_always_or_never_met_ends_the_search() {
    let objectives = stats::parse_objectives("p99<50ms").unwrap();
    let found = |met: bool| {
        let config = SearchConfig { highest: 1e4, ..SearchConfig::from(10.0, objectives.clone()) };
        let range = Range::Automatic { from: 10.0, to: 1e4 };
        let course = Course { find: Some(config), objectives: objectives.clone(), ..course(range) };
        walk(course, |level| Point { met: Some(met), ..saturates(1e9, level) })
    };
    use stats::curve::CapacityEnd::{NeverMet, NeverMissed};
    for (met, how) in [(true, NeverMissed), (false, NeverMet)] {
        let (steps, curve) = found(met);
        assert_eq!(curve.capacity.unwrap().how, how);
        assert!(steps.len() <= 40, "{}", steps.len());
    }
}

#[test]
fn a_confirming_trial_is_longer() {
    let objectives = stats::parse_objectives("p99<50ms").unwrap();
    let find = Some(SearchConfig::from(10.0, objectives.clone()));
    let range = Range::Automatic { from: 10.0, to: 1e6 };
    let mut agenda = Agenda::new(Course { find, objectives, ..course(range) });
    let mut seen = 0;
    while let Some(planned) = agenda.next_step() {
        let factor = if planned.purpose == Purpose::Confirm { 3 } else { 1 };
        assert_eq!(planned.hold, Nanos::from_secs(5 * factor));
        seen += u32::from(factor == 3);
        agenda.record(&planned, Point { met: Some(planned.level < 100.0), ..saturates(1e3, 1.0) });
    }
    assert!(seen > 0);
}

#[test]
fn the_length_is_known_if_the_course_is_known() {
    let range = Range::Given(vec![1.0, 2.0, 3.0]);
    let course = Course { repeat: 2, down: true, overload: true, ..course(range) };
    assert_eq!(Agenda::new(course.clone()).known_length(), Some(17));
    let open = Course { range: Range::Automatic { from: 1.0, to: 2.0 }, ..course };
    assert_eq!(Agenda::new(open).known_length(), None);
}

#[test]
fn staircases_have_linear_or_geometric_steps() {
    assert_eq!(linear(100.0, 350.0, 100.0).unwrap(), [100.0, 200.0, 300.0, 350.0]);
    assert_eq!(linear(5.0, 5.0, 1.0).unwrap(), [5.0]);
    assert_eq!(linear(0.1, 0.3, 0.1).unwrap().len(), 3);
    assert_eq!(geometric(1.0, 10.0, 2.0).unwrap(), [1.0, 2.0, 4.0, 8.0, 10.0]);
    assert_eq!(geometric(1.0, 8.0, 2.0).unwrap(), [1.0, 2.0, 4.0, 8.0]);
    for (from, to, by) in [(-1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (1.0, 2.0, 0.0), (1.0, 1e9, 1.0)] {
        assert_eq!(linear(from, to, by), None, "{from} {to} {by}");
    }
    assert_eq!(geometric(1.0, 2.0, 1.0), None);
    assert_eq!(geometric(1.0, 1e9, 1.001), None);
    assert_eq!(Staircase::Factor(1.3).levels(1.0, 3.0, true).unwrap(), [1.0, 2.0, 3.0]);
}

/// Runs a course and checks at each step that the remaining steps were announced.
fn announced(course: Course, react: impl Fn(f64) -> Point) -> Vec<StepsLeft> {
    let mut agenda = Agenda::new(course);
    let mut seen: Vec<(StepsLeft, Nanos)> = vec![(agenda.remaining(), Nanos::ZERO)];
    while let Some(planned) = agenda.next_step() {
        seen.push((agenda.remaining(), planned.hold));
        agenda.record(&planned, react(planned.level));
    }
    let all = seen.len() - 1;
    for (number, (left, _)) in seen.iter().enumerate() {
        let came = all - number;
        let held = seen[number + 1..].iter().fold(Nanos::ZERO, |sum, (_, hold)| sum + *hold);
        assert!(left.steps >= came && left.held >= held, "after step {number}: {left:?}, {came}");
        assert!(left.at_most || (left.steps, left.held) == (came, held), "step {number}: {left:?}");
    }
    seen.into_iter().map(|(left, _)| left).collect()
}

#[test]
fn the_remaining_steps_are_never_underestimated() {
    let given = || course(Range::Given(vec![100.0, 200.0, 300.0]));
    let automatic = |from| course(Range::Automatic { from, to: 100_000.0 });
    let under = |rate: f64| move |level: f64| saturates(rate, level);
    let left = announced(Course { repeat: 2, ..given() }, under(1e6));
    assert_eq!(left[0], StepsLeft { steps: 6, held: Nanos::from_secs(30), at_most: false });
    assert_eq!(left.last(), Some(&StepsLeft::default()));
    let full = |course| Course { down: true, overload: true, repeat: 2, ..course };
    for course in [given(), full(given()), automatic(10.0), full(automatic(10.0))] {
        for rate in [5.0, 250.0, 1_000.0, 1e7] {
            announced(course.clone(), under(rate));
        }
    }
    // the first level is beyond the capacity
    announced(automatic(2_000.0), under(100.0));
}

#[test]
fn the_remaining_time_of_a_search_follows_its_trials() {
    let find = SearchConfig::from(100.0, Vec::new());
    let course = Course { find: Some(find), ..course(Range::Given(Vec::new())) };
    let left =
        announced(course, |level| Point { met: Some(level < 420.0), ..saturates(1e6, level) });
    assert_eq!((left[0].steps, left[0].held), (40, Nanos::from_secs(40 * 15)));
    assert_eq!((left[1].steps, left[1].at_most), (39, true));
}
