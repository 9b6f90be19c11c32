//! The capacity search and the comparison of two servers, measured by the production worker in
//! virtual time: queues with known true figures.

use plan::{Arrivals, Gaps, Load, Plan};
use sim::{Queue, Service, execute, plan_for};
use stats::compare::{Block, Compared, Effort, Scale, Series, compare};
use stats::curve::{CapacityEnd, Next, Search, SearchConfig, TrialEnd};
use stats::{Figures, Measurement, Objective};
use units::{Nanos, Purpose, Rate, Seed};

fn poisson(rate: f64, seconds: u64, seed: u64) -> Plan {
    let mut plan = plan_for("http://sim.example/");
    let arrivals = Arrivals { gaps: Gaps::Poisson, ..Arrivals::constant(Rate(rate)) };
    plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
    plan.stop.duration = Some(Nanos::from_secs(seconds));
    plan.measure.interval = Nanos::from_secs(10);
    plan.seed = seed;
    plan
}

/// Measures an M/M/1 queue under this load.
fn measured(rate: f64, seconds: u64, service: Nanos, seed: u64) -> Measurement {
    let server = Queue::new(1, Service::Exponential(service), seed);
    execute(poisson(rate, seconds, seed), Box::new(server), 1).measurement
}

/// With μ = 1,000/s the response time is exponential with rate μ − λ (Kleinrock 1975), so that p99 is
/// at the bound where λ = μ − ln 100 / bound.
#[test]
fn the_search_finds_the_capacity_of_an_m_m_1_queue() {
    for (objective, truth) in [("p99<=20ms", 769.7), ("p99<=10ms", 539.5)] {
        let search = searched(&Objective::parse(objective).unwrap(), 1_000);
        let (found, trials) = (search.capacity().unwrap(), search.trials());
        let at = found.at;
        assert_eq!(found.how, CapacityEnd::Bracketed);
        assert!((at.at / truth - 1.0).abs() < 0.05, "{truth}: {at:?}");
        // the coverage of the interval is tested next to the search, with many seeds
        assert!(at.low * 0.98 <= truth && truth <= at.high * 1.02, "{truth}: {at:?}");
        assert!(trials <= 40, "{trials} trials");
    }
}

/// Trials of 10 and 60 s, each with separate random draws.
fn searched(objective: &Objective, seed: u64) -> Search {
    let config = SearchConfig::from(300.0, vec![objective.clone()]);
    let mut search = Search::new(SearchConfig { precision: 0.08, ..config });
    while let Next::Try(trial) = search.next() {
        let seconds = if trial.long { 60 } else { 10 };
        let seed = seed + search.trials() as u64;
        let measurement = measured(trial.level, seconds, Nanos::from_millis(1), seed);
        let figures = Figures::new(&measurement.total, measurement.window);
        let met = objective.evaluate(&figures).1;
        search.record_end(trial, if met { TrialEnd::Met } else { TrialEnd::Missed });
    }
    search
}

/// Six blocks of A B B A with runs of 10 s at 300/s; returns p50 of both.
fn session(slower: Nanos, seed: u64) -> Compared {
    let mut blocks = vec![Block::default(); 6];
    let mut run_seed = seed * 1_000;
    for block in &mut blocks {
        for after in [false, true, true, false] {
            run_seed += 1;
            let service = if after { slower } else { Nanos::from_millis(1) };
            let measurement = measured(300.0, 10, service, run_seed);
            let p50 = measurement.total.response().quantile(0.5).as_secs_f64();
            if after { &mut block.after } else { &mut block.before }.push(p50);
        }
    }
    let series = Series { scale: Scale::Ratio, blocks };
    let mut stream = Seed(seed).stream(Purpose::Bootstrap, 0);
    compare(&[series], Effort { resamples: 2_000, family: 1 }, &mut stream)[0]
}

/// A service time 10 % longer makes the response time 1/(μ − λ) 15 % longer.
#[test]
fn a_slower_queue_is_distinguished_from_an_equal_one() {
    let found = session(Nanos::from_micros(1_100), 1);
    let truth = 700.0 / (1_000.0 / 1.1 - 300.0) - 1.0;
    assert!(found.different && found.change > 0.0, "{found:?}");
    assert!(found.low <= truth && truth <= found.high, "{truth}: {found:?}");
    let same = (0..5).filter(|seed| session(Nanos::from_millis(1), 10 + seed).different).count();
    assert!(same <= 1, "{same} of 5");
}
