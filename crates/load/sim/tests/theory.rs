//! The worker against queueing theory: its measured figures must equal the true ones.

use plan::{Arrivals, Gaps, Load, Plan, Think};
use sim::{Queue, Service, Stall, execute, plan_for};
use units::{Nanos, Rate};

const URL: &str = "http://sim.example/";
const MILLISECOND: Nanos = Nanos::from_millis(1);

fn open(rate: f64, gaps: Gaps, seconds: u64) -> Plan {
    let mut plan = plan_for(URL);
    let arrivals = Arrivals { gaps, ..Arrivals::constant(Rate(rate)) };
    plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
    plan.stop.duration = Some(Nanos::from_secs(seconds));
    plan.measure.interval = Nanos::from_secs(10);
    plan
}

fn closed(users: u32, think: Think, seconds: u64) -> Plan {
    let mut plan = plan_for(URL);
    plan.load = Load::Closed { users, think, session: None };
    plan.stop.duration = Some(Nanos::from_secs(seconds));
    plan.measure.interval = Nanos::from_secs(10);
    plan
}

/// Checks that a value is within `tolerance` (a share) of `expected`, both in milliseconds.
#[track_caller]
fn near(name: &str, measured: Nanos, expected_ms: f64, tolerance: f64) {
    let measured_ms = measured.as_millis_f64();
    let off = (measured_ms - expected_ms).abs() / expected_ms;
    assert!(off <= tolerance, "{name}: measured {measured_ms:.3} ms, theory {expected_ms:.3} ms");
}

/// M/M/1 with mean service 1 ms: response is exponential with mean 1/(μ−λ) (Kleinrock 1975).
/// Standard errors grow like 1/(1−ρ)²: runs get longer and tolerances wider with ρ.
#[test]
fn poisson_arrivals_at_an_exponential_server_are_m_m_1() {
    for (rate, seconds, tolerance) in [(500.0, 200, 0.02), (800.0, 400, 0.04), (950.0, 2_000, 0.12)]
    {
        let server = Queue::new(1, Service::Exponential(MILLISECOND), 3);
        let run = execute(open(rate, Gaps::Poisson, seconds), Box::new(server), 1);
        let response = run.measurement.total.response();
        let mean_ms = 1_000.0 / (1_000.0 - rate);
        near("mean", response.mean(), mean_ms, tolerance);
        near("p50", response.quantile(0.5), mean_ms * 2f64.ln(), tolerance);
        near("p99", response.quantile(0.99), mean_ms * 100f64.ln(), tolerance * 2.0);
    }
}

/// M/D/1: mean response s + ρ·s / (2(1−ρ)) (Pollaczek-Khinchine with C² = 0).
#[test]
fn poisson_arrivals_at_a_constant_server_are_m_d_1() {
    for (rate, seconds, tolerance) in [(500.0, 200, 0.02), (800.0, 400, 0.03), (950.0, 2_000, 0.10)]
    {
        let server = Queue::new(1, Service::Fixed(MILLISECOND), 3);
        let run = execute(open(rate, Gaps::Poisson, seconds), Box::new(server), 1);
        let rho = rate / 1_000.0;
        let mean_ms = 1.0 + rho / (2.0 * (1.0 - rho));
        near("mean", run.measurement.total.response().mean(), mean_ms, tolerance);
    }
}

/// A closed system with one exponential station, against exact mean value analysis.
#[test]
fn a_closed_loop_follows_mean_value_analysis() {
    let think = Think::Exponential(Nanos::from_millis(9));
    for (users, per_second, response_ms) in
        [(5, 475.09, 1.524), (10, 832.04, 3.019), (20, 999.38, 11.012)]
    {
        let server = Queue::new(1, Service::Exponential(MILLISECOND), 5);
        let run = execute(closed(users, think, 300), Box::new(server), 1);
        let total = &run.measurement.total;
        let throughput = total.in_window as f64 / run.measurement.window.as_secs_f64();
        assert!((throughput / per_second - 1.0).abs() < 0.02, "X({users}) = {throughput}");
        near("R", total.response().mean(), response_ms, 0.03);
    }
}

/// Without think time N users keep the station busy: X = 1/s and R = N·s.
#[test]
fn a_closed_loop_without_think_time_saturates_the_station() {
    let server = Queue::new(1, Service::Exponential(MILLISECOND), 5);
    let run = execute(closed(10, Think::None, 200), Box::new(server), 1);
    let throughput = run.measurement.total.in_window as f64 / 200.0;
    assert!((throughput / 1_000.0 - 1.0).abs() < 0.02, "X = {throughput}");
    near("R", run.measurement.total.response().mean(), 10.0, 0.02);
}

/// One stall of d in a run of D at a constant rate with almost no service time: a share d/D of the
/// calls waits, uniformly on (0, d). So the mean is d²/2D and p99 is d − D/100.
#[test]
fn a_single_stall_is_seen_in_full() {
    let stall = Stall {
        first: Nanos::from_secs(1_010),
        length: Nanos::from_millis(1_400),
        period: Nanos::from_secs(100_000),
    };
    let server = Queue::new(0, Service::Fixed(Nanos::from_micros(1)), 1).with_stall(stall);
    let run = execute(open(2_000.0, Gaps::Constant, 30), Box::new(server), 1);
    let response = run.measurement.total.response();
    assert_eq!(response.count(), 60_000);
    near("mean", response.mean(), 1.4 * 1.4 / 60.0 * 1_000.0, 0.01);
    near("p99", response.quantile(0.99), 1_100.0, 0.01);
    near("max", response.max(), 1_400.0, 0.01);
}

/// Returns the server of the truth test, in virtual time: 10 ms for each response, frozen for 500
/// ms every 2 s. The 10,000 calls due in 5 s encounter two freezes; the arithmetic is in
/// bench/README.md.
fn freezing() -> Box<Queue> {
    let stall = Stall {
        first: Nanos::from_secs(1_002),
        length: Nanos::from_millis(500),
        period: Nanos::from_secs(2),
    };
    Box::new(Queue::new(0, Service::Fixed(Nanos::from_millis(10)), 1).with_stall(stall))
}

#[test]
fn a_freezing_server_is_measured_rightly_with_a_free_pool() {
    let run = execute(open(2_000.0, Gaps::Constant, 5), freezing(), 1);
    let response = run.measurement.total.response();
    assert_eq!(response.count(), 10_000);
    near("p50", response.quantile(0.5), 10.0, 0.01);
    // a frozen server of this model answers at the end of the freeze, without the 10 ms after it
    near("p90", response.quantile(0.90), 260.0, 0.02);
    near("p99", response.quantile(0.99), 485.0, 0.02);
    near("max", response.max(), 510.0, 0.03);
    assert!(run.measurement.total.slip.quantile(0.999) < Nanos::from_micros(10));
    assert!(run.measurement.connections_peak > 900, "{}", run.measurement.connections_peak);
}

/// 64 connections are too few for the freeze: the user experiences the wait for a connection, so it
/// is part of the response time and shown as slip, while the service time alone would look good.
#[test]
fn a_small_pool_shows_its_wait() {
    let mut plan = open(2_000.0, Gaps::Constant, 5);
    let Load::Open { connections_max, .. } = &mut plan.load else { unreachable!("it is open") };
    *connections_max = Some(64);
    let run = execute(plan, freezing(), 1);
    let total = &run.measurement.total;
    assert_eq!(total.response().count(), 10_000);
    assert_eq!(run.measurement.connections_peak, 64);
    near("response p90", total.response().quantile(0.90), 325.0, 0.06);
    near("service p90", total.service.quantile(0.90), 10.0, 0.02);
    assert!(total.slip.quantile(0.90) > Nanos::from_millis(250));
    assert_eq!(total.wait.quantile(0.9), total.slip.quantile(0.9), "it is wait, not lag");
}

/// Little's law: the mean number in flight is throughput times service time, for any load.
#[test]
fn concurrency_obeys_littles_law() {
    for plan in [open(700.0, Gaps::Poisson, 100), closed(8, Think::Fixed(MILLISECOND), 100)] {
        let server = Queue::new(1, Service::Exponential(MILLISECOND), 9);
        let run = execute(plan, Box::new(server), 2);
        let total = &run.measurement.total;
        let window = run.measurement.window;
        let mean_flight = total.flight_integral as f64 / window.0 as f64;
        let throughput = total.in_window as f64 / window.as_secs_f64();
        let product = throughput * total.service.mean().as_secs_f64();
        assert!((mean_flight / product - 1.0).abs() < 0.01, "{mean_flight} against {product}");
    }
}
