//! The search against servers with known capacity, and against an M/M/1 queue in virtual time.

use super::*;
use units::{Purpose, Seed};

fn run(config: SearchConfig, mut end: impl FnMut(Trial) -> TrialEnd) -> Search {
    let mut search = Search::new(config);
    while let Next::Try(trial) = search.next() {
        let ended = end(trial);
        search.record_end(trial, ended);
    }
    search
}

fn from(start: f64) -> SearchConfig {
    SearchConfig::from(start, Vec::new())
}

fn edge(capacity: f64) -> impl Fn(Trial) -> TrialEnd {
    move |trial| if trial.level <= capacity { TrialEnd::Met } else { TrialEnd::Missed }
}

#[test]
fn a_sharp_edge_takes_few_trials() {
    for (start, capacity) in [(100.0, 261.0), (100.0, 100.0), (5_000.0, 7.3), (10.0, 48_211.0)] {
        let search = run(from(start), edge(capacity));
        let found = search.capacity().unwrap();
        assert_eq!(found.how, CapacityEnd::Bracketed);
        let Span { at, low, high } = found.at;
        assert!(low <= capacity && capacity <= high, "{:?} of {capacity}", found.at);
        assert!((high - low) / at <= 0.05, "{:?}", found.at);
        let strides = (f64::max(start / capacity, capacity / start)).log2().ceil() as usize;
        assert!(search.trials() <= 15 + strides, "{} trials from {start}", search.trials());
    }
}

#[test]
fn whole_levels_end_between_neighbors() {
    let config = || SearchConfig { whole: true, ..from(10.0) };
    for capacity in [1.0, 7.0, 64.0] {
        let search = run(config(), |trial| {
            assert!(trial.level.fract() == 0.0 && trial.level >= 1.0);
            edge(capacity)(trial)
        });
        let at = search.capacity().unwrap().at;
        assert!(at.low <= capacity && at.high >= capacity && at.high - at.low <= 4.0, "{at:?}");
    }
}

#[test]
fn a_bound_never_met_or_missed_is_confirmed_once() {
    let never = run(SearchConfig { lowest: 10.0, ..from(100.0) }, |_| TrialEnd::Missed);
    let found = never.capacity().unwrap();
    assert_eq!((found.how, found.at.at, found.at.high), (CapacityEnd::NeverMet, 0.0, 10.0));
    assert_eq!(never.trials(), 6);
    let always = run(SearchConfig { highest: 1_000.0, ..from(100.0) }, |_| TrialEnd::Met);
    let found = always.capacity().unwrap();
    assert_eq!((found.how, found.at.low), (CapacityEnd::NeverMissed, 1_000.0));
    assert!(found.at.high.is_infinite());
    assert_eq!(always.trials(), 6);
}

#[test]
fn the_clients_own_limit_ends_the_search_below_it() {
    let limited = |trial: Trial| match trial.level > 700.0 {
        true => TrialEnd::ClientLimited,
        false => TrialEnd::Met,
    };
    let search = run(from(100.0), limited);
    let found = search.capacity().unwrap();
    assert_eq!(found.how, CapacityEnd::ClientLimited);
    assert!(found.at.low > 640.0 && found.at.low <= 700.0, "{:?}", found.at);
    assert!(search.trials() <= 12, "{}", search.trials());
    // a client that cannot offer any load
    let search = run(from(100.0), |_| TrialEnd::ClientLimited);
    assert_eq!(search.capacity(), None);
    // a server's edge below the limit is found as usual
    let search = run(from(100.0), |trial| match trial.level > 700.0 {
        true => TrialEnd::ClientLimited,
        false => edge(500.0)(trial),
    });
    let at = search.capacity().unwrap().at;
    assert!(at.low <= 500.0 && 500.0 <= at.high && at.high < 540.0, "{at:?}");
}

#[test]
fn one_late_step_is_repeated_and_ends_no_search() {
    for late in 0..12 {
        let mut count = 0;
        let search = run(from(100.0), |trial| {
            count += 1;
            match count == late + 1 {
                true => TrialEnd::ClientLimited,
                false => edge(429.5)(trial),
            }
        });
        let found = search.capacity().unwrap();
        assert_eq!(found.how, CapacityEnd::Bracketed, "step {late} was late");
        assert!(found.at.low <= 429.5 && 429.5 <= found.at.high, "{:?}", found.at);
    }
}

#[test]
fn an_interrupted_search_returns_its_result_so_far() {
    let mut search = Search::new(from(100.0));
    assert_eq!(search.capacity(), None);
    for _ in 0..3 {
        let Next::Try(trial) = search.next() else { panic!("three trials are not enough") };
        search.record_end(trial, edge(150.0)(trial));
    }
    let found = search.capacity().unwrap();
    assert!(found.at.low < 150.0 && found.at.high > 150.0, "{found:?}");
}

/// The search ends for any responses of the server.
#[test]
fn the_search_ends_with_nonsensical_results() {
    for seed in 0..20 {
        let mut random = Seed(seed).stream(Purpose::Simulation, 0);
        let search = run(from(100.0), |_| match random.below(5) {
            0 => TrialEnd::ClientLimited,
            1 | 2 => TrialEnd::Met,
            _ => TrialEnd::Missed,
        });
        assert!(search.trials() <= 40);
    }
}

/// Simulates an M/M/1 queue from empty by Lindley's recursion; returns whether at most 1 % of the
/// calls of `seconds` took longer than `bound_s`.
fn queue_keeps(rate: f64, seconds: f64, bound_s: f64, random: &mut units::Stream) -> bool {
    let (mut free_at, mut now, mut calls, mut late) = (0.0f64, 0.0, 0u64, 0u64);
    loop {
        now += random.exponential(1.0 / rate);
        if now > seconds {
            return late * 100 <= calls;
        }
        free_at = free_at.max(now) + random.exponential(0.001);
        calls += 1;
        late += u64::from(free_at - now > bound_s);
    }
}

/// μ = 1,000/s: the load at which 1 % of the calls stay longer than the bound is μ − ln 100 /
/// bound. Trials of 10 and 60 s meet and miss it by chance; the interval must cover the truth as
/// often as stated.
#[test]
fn the_interval_covers_an_m_m_1_capacity_as_often_as_stated() {
    for (bound_s, truth) in [(0.020, 769.7), (0.010, 539.5)] {
        let (mut covered, mut trials, mut seconds, mut width) = (0, 0, 0.0, 0.0);
        const SEARCHES: u64 = 60;
        for seed in 0..SEARCHES {
            let mut random = Seed(seed).stream(Purpose::Simulation, 1);
            let search = run(from(100.0), |trial| {
                let length = if trial.long { 60.0 } else { 10.0 };
                seconds += length;
                match queue_keeps(trial.level, length, bound_s, &mut random) {
                    true => TrialEnd::Met,
                    false => TrialEnd::Missed,
                }
            });
            let at = search.capacity().unwrap().at;
            covered += u64::from(at.low <= truth && truth <= at.high);
            trials += search.trials();
            width += (at.high - at.low) / at.at;
        }
        let each = |sum: f64| sum / SEARCHES as f64;
        let summary = format!(
            "covered {covered} of {SEARCHES}, {:.1} trials, {:.0} s, width {:.3}",
            each(trials as f64),
            each(seconds),
            each(width)
        );
        // 95 % of 60 is 57; fewer than 52 has a chance of 1 %
        assert!(covered >= 52, "{summary}");
        assert!(each(trials as f64) <= 35.0 && each(width) <= 0.07, "{summary}");
    }
}
