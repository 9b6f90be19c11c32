use super::*;
use crate::{Counts, Hist, Second};

/// Returns 10 s of 1,000 calls per second that took 10 ms each and slipped 20 µs: no cause.
fn good() -> Measurement {
    let mut measurement = Measurement {
        window: Nanos::from_secs(10),
        intended: Some(10_000),
        ..Measurement::default()
    };
    let total = &mut measurement.total;
    total.counts = Counts { due: 10_000, succeeded: 10_000, ..Counts::default() };
    total.succeeded.record_n(Nanos::from_millis(10), 10_000);
    total.service.record_n(Nanos::from_millis(10), 10_000);
    total.slip.record_n(Nanos::from_micros(20), 10_000);
    total.lag.record_n(Nanos::from_micros(20), 10_000);
    total.wait.record_n(Nanos::ZERO, 10_000);
    total.punctual.record_n(Nanos::from_millis(10), 10_000);
    measurement.series = (0..10).map(|at| row(at, 1000, 10)).collect();
    measurement
}

fn row(at: u64, done: u64, p50_ms: u64) -> Second {
    Second {
        at_s: at as f64,
        span_s: 1.0,
        counts: Counts { due: done, succeeded: done, ..Counts::default() },
        p50: Nanos::from_millis(p50_ms),
        ..Second::default()
    }
}

const QUANTILES: &[f64] = &[0.5, 0.9, 0.99, 0.999, 1.0];

/// Returns the verdict as text: the state, then `id figure: text` and the advice per cause.
fn judge_margin(evidence: &Evidence<'_>) -> String {
    let verdict = judge(&Evidence { quantiles: QUANTILES, ..evidence.clone() });
    let mut out = verdict.state.id().to_owned();
    for Cause { id, figure, text, advice } in verdict.causes {
        assert!(advice.ends_with('.') && !advice.contains("  "), "{advice}");
        assert!(!text.contains("  "), "{text}");
        out += &format!("\n{id} {figure:.4}: {text}");
    }
    out
}

fn check(measurement: &Measurement, expected: &str) {
    assert_eq!(judge_margin(&Evidence::new(measurement)), expected);
}

#[test]
fn a_good_run_is_valid() {
    let good = good();
    check(&good, "VALID");
    let evidence = Evidence {
        driver_busy: Some(0.949),
        closed_loop: true,
        foreign_share: Some(0.05),
        steal_share: Some(0.05),
        ..Evidence::new(&good)
    };
    assert_eq!(judge_margin(&evidence), "VALID", "thresholds are not crossed by standing on them");
}

#[test]
fn a_load_that_is_not_offered_is_invalid() {
    let mut measurement = good();
    measurement.intended = Some(10_101);
    check(&measurement, "VALID");
    measurement.intended = Some(10_102); // 98.990 %
    check(
        &measurement,
        "INVALID\nnot-offered 0.9899: offered 99.0 % of the intended 1,010.2/s (at least 99.0 %)",
    );
    measurement.intended = None;
    check(&measurement, "VALID");

    let total = &mut measurement.total;
    total.counts.due = 20_000;
    total.counts.dropped = 7_000;
    total.counts.timed_out = 3_000;
    total.timed_out.record_n(Nanos::from_millis(10), 3_000);
    measurement.intended = Some(20_000);
    check(
        &measurement,
        "INVALID\nnot-offered 0.5000: offered 50.0 % of the intended 2,000/s (at least 99.0 %)",
    );
    let advice = judge(&Evidence::new(&measurement)).causes.remove(0).advice;
    assert!(
        advice.starts_with("10,000 arrivals found neither") && advice.contains("--connections-max")
    );
}

/// 1,000 sessions of five calls: `due` counts calls, `intended` sessions.
#[test]
fn sessions_are_offered_as_sessions() {
    let mut measurement = good();
    measurement.intended = Some(1_000);
    measurement.total.counts.due = 5_000;
    measurement.total.counts.succeeded = 5_000;
    measurement.total.sessions.started = 1_000;
    check(&measurement, "VALID");
    measurement.total.counts.dropped = 20;
    let verdict = judge_margin(&Evidence::new(&measurement));
    assert!(verdict.starts_with("INVALID\nnot-offered 0.9800: "), "{verdict}");
    measurement.total.counts.dropped = 0;
    measurement.total.sessions.started = 900;
    let verdict = judge_margin(&Evidence::new(&measurement));
    assert!(verdict.starts_with("INVALID\nnot-offered 0.9000: "), "{verdict}");
    // a surplus does not hide the dropped ones
    measurement.total.sessions.started = 2_000;
    check(&measurement, "VALID");
    measurement.total.counts.dropped = 20;
    let verdict = judge_margin(&Evidence::new(&measurement));
    assert!(verdict.starts_with("INVALID\nnot-offered 0.9800: "), "{verdict}");
    let mut tally = crate::ScenarioTally { intended: Some(1_000), ..Default::default() };
    (tally.sessions_started, tally.unissued) = (2_000, 20);
    assert_eq!(tally.offered_share(), Some(0.98));
}

/// Returns 10,000 response times of 10 ms, of which the last 200 took `late_ms` because the client
/// was late by that time.
fn late(late_ms: u64) -> Measurement {
    let mut measurement = good();
    let total = &mut measurement.total;
    total.succeeded.clear();
    total.succeeded.record_n(Nanos::from_millis(10), 9_800);
    total.succeeded.record_n(Nanos::from_millis(10 + late_ms), 200);
    measurement
}

#[test]
fn lateness_is_held_against_the_p99() {
    check(&late(3), "VALID");
    check(
        &late(5),
        "INVALID\nslip 0.3335: up to 5.01 ms of the 15.0 ms p99 is client delay: 33.4 % (limit 25.0 %)",
    );
    let evidence = |doubt_max, measurement: &Measurement| {
        judge_margin(&Evidence { doubt_max, ..Evidence::new(measurement) })
    };
    assert_eq!(evidence(0.40, &late(5)), "VALID");
    assert!(evidence(0.0, &late(1)).starts_with("VALID"), "a millisecond is nobody's doubt");
    assert!(evidence(0.0, &late(2)).starts_with("INVALID\nslip"));
    let mut unknown = late(500);
    unknown.total.punctual.clear();
    check(&unknown, "VALID");
}

#[test]
fn an_objective_is_met_missed_or_undecided() {
    let held = |text, measurement: &Measurement| {
        let objectives = [Objective::parse(text).unwrap()];
        judge_margin(&Evidence { objectives: &objectives, ..Evidence::new(measurement) })
    };
    let measurement = late(50);
    let lag = "lag 0.8334: up to 50.0 ms of the 60.0 ms p99 is client delay: 83.3 % (limit 25.0 %)";
    assert_eq!(held("p99<70ms", &measurement), format!("DEGRADED\n{lag}"), "met all the same");
    assert_eq!(held("p99<9ms", &measurement), format!("DEGRADED\n{lag}"), "missed all the same");
    assert_eq!(
        held("p99<20ms", &measurement),
        "INVALID\nslip 0.0500: p99<20ms is undecided: 60.0 ms measured, 10.0 ms without client \
         delay"
    );
    assert_eq!(held("p50<11ms", &measurement), format!("DEGRADED\n{lag}"));
    // no time objective: the p99 is the default
    assert!(held("failures<1%", &measurement).starts_with("INVALID\nslip 0.83"));
    assert_eq!(held("p99<14ms", &late(3)), "VALID");
}

#[test]
fn a_wait_for_connections_is_the_loads() {
    let mut measurement = good();
    measurement.total.wait.record_n(Nanos::from_millis(24), 150);
    check(
        &measurement,
        "DEGRADED\nwait 0.0240: calls waited for a free connection, p99 24.0 ms (at most 1.00 ms)",
    );
    let advice = judge(&Evidence::new(&measurement)).causes.remove(0).advice;
    assert!(advice.contains("--connections-max"), "{advice}");
}

#[test]
fn used_up_ports_and_descriptors_are_reported() {
    let mut measurement = good();
    measurement.total.failures.insert(FailureClass::AddressUnavailable, 2);
    measurement.total.failures.insert(FailureClass::FdUnavailable, 3);
    measurement.total.failures.insert(FailureClass::FileTableFull, 4);
    let (ports_out, descriptors_out) = (1, 1);
    let evidence = Evidence { ports_out, descriptors_out, ..Evidence::new(&measurement) };
    assert_eq!(
        judge_margin(&evidence),
        "INVALID\nports 3.0000: 3 connects found no free local port\n\
         descriptors 8.0000: 8 connects found no free file descriptor"
    );
}

#[test]
fn a_run_without_a_success_is_invalid() {
    let mut measurement = Measurement { window: Nanos::SECOND, ..Measurement::default() };
    measurement.total.counts = Counts { due: 12, failed: 11, timed_out: 1, ..Counts::default() };
    measurement.total.timed_out.record(Nanos::from_secs(30));
    measurement
        .total
        .failures
        .extend([(FailureClass::ClientTimeout, 1), (FailureClass::Refused, 11)]);
    check(
        &measurement,
        "INVALID\nall-failed 12.0000: none of 12 calls succeeded; 11 × connection refused",
    );
    measurement.total.counts.succeeded = 1;
    assert!(!judge_margin(&Evidence::new(&measurement)).contains("all-failed"));
    check(
        &Measurement::default(),
        "DEGRADED\nfew-samples 0.0000: p99.9 is printed from 0 response times (at least 3,688)",
    );
}

#[test]
fn a_full_client_counts_in_a_closed_loop_only() {
    let measurement = good();
    for (closed_loop, expected) in [
        (
            true,
            "DEGRADED\ndriver-cpu 0.9500: a worker used 95.0 % of its core (should be below 95.0 %)",
        ),
        (false, "VALID"),
    ] {
        let evidence =
            Evidence { closed_loop, driver_busy: Some(0.95), ..Evidence::new(&measurement) };
        assert_eq!(judge_margin(&evidence), expected);
    }
}

#[test]
fn a_drifting_run_is_degraded() {
    let mut measurement = good();
    measurement.series = (0..12).map(|at| row(at, 1000, 10 + at)).collect();
    measurement.window = Nanos::from_secs(12);
    check(
        &measurement,
        "DEGRADED\ndrift 0.6957: response time p50 rose from 11.5 ms to 19.5 ms from the first to the last third \
         (Mann-Kendall p 8.3e-6; at most 10.0 % change)",
    );
    let evidence = Evidence { ramped: true, ..Evidence::new(&measurement) };
    assert_eq!(judge_margin(&evidence), "VALID");
    measurement.series = (0..12).map(|at| row(at, 2000 - 100 * at, 10)).collect();
    let drift = judge(&Evidence::new(&measurement)).causes.remove(0);
    assert!(drift.text.starts_with("throughput fell from 1,850/s to 1,050/s"), "{}", drift.text);
}

#[test]
fn foreign_work_and_shared_cores() {
    let measurement = good();
    for (foreign_share, steal_share, expected) in [
        (
            Some(0.06),
            Some(0.01),
            "VALID\nforeign-cpu 0.0600: other programs took 6.00 % of our cores (at most 5.00 %)",
        ),
        (
            None,
            Some(0.5),
            "VALID\nforeign-cpu 0.5000: the hypervisor (steal) took 50.0 % of our cores (at most 5.00 %)",
        ),
        (Some(f64::NAN), None, "VALID"),
    ] {
        let evidence = Evidence { foreign_share, steal_share, ..Evidence::new(&measurement) };
        assert_eq!(judge_margin(&evidence), expected);
    }
    // with calls that were issued late it explains why
    let mut late = good();
    late.total.punctual = Hist::from_buckets([(Nanos::from_millis(1), 10_000)]);
    let evidence = Evidence { foreign_share: Some(0.06), ..Evidence::new(&late) };
    let judged_late = judge_margin(&evidence);
    assert!(!judged_late.starts_with("VALID"), "{judged_late}");
    // a closed loop has no due instants: the wait for a core is the measure
    let busy = Evidence { foreign_share: Some(0.5), ..Evidence::new(&measurement) };
    let judged = |closed_loop, waited_share| {
        judge_margin(&Evidence { closed_loop, waited_share, ..busy.clone() })
    };
    let note = "foreign-cpu 0.5000: other programs took 50.0 % of our cores (at most 5.00 %)";
    assert_eq!(judged(true, 0.009), format!("VALID\n{note}"));
    assert_eq!(judged(false, 0.4), format!("VALID\n{note}"));
    assert_eq!(
        judged(true, 0.25),
        format!(
            "DEGRADED\n{note}; up to 25.0 % of the calls (at most 1.00 %) waited for our core as \
             long as the p99"
        )
    );
    let shared_cores = Some("the server may run on our core 1".to_owned());
    let evidence = Evidence { shared_cores, ..Evidence::new(&measurement) };
    assert_eq!(
        judge_margin(&evidence),
        "DEGRADED\nshared-cores 1.0000: the server may run on our core 1"
    );
}

#[test]
fn printed_quantiles_with_few_samples_degrade() {
    let mut measurement = good();
    measurement.intended = None;
    measurement.total.counts.succeeded = 3_688;
    check(&measurement, "VALID");
    measurement.total.counts.succeeded = 1_000;
    check(
        &measurement,
        "DEGRADED\nfew-samples 1000.0000: p99.9 is printed from 1,000 response times (at least 3,688)",
    );
    let advice = judge(&Evidence { quantiles: QUANTILES, ..Evidence::new(&measurement) })
        .causes
        .remove(0)
        .advice;
    assert!(advice.starts_with("Run 3.7 times as long"), "{advice}");
    let verdict = judge(&Evidence { quantiles: &[0.5, 0.99, 1.0], ..Evidence::new(&measurement) });
    assert_eq!(verdict, Verdict::default());
}

#[test]
fn a_run_that_ends_early_is_degraded() {
    let mut measurement = good();
    measurement.interrupted = true;
    check(&measurement, "DEGRADED\ninterrupted 10.0000: interrupted after 10.0 s");
    measurement.aborted = Some("failures>50% for 5s".to_owned());
    check(
        &measurement,
        "DEGRADED\ninterrupted 10.0000: ended after 10.0 s by --abort-if failures>50% for 5s",
    );
}

#[test]
fn an_interruption_comes_first_then_the_gravest_cause() {
    let mut measurement = good();
    measurement.interrupted = true;
    measurement.intended = Some(20_000);
    let evidence = Evidence { steal_share: Some(0.2), ..Evidence::new(&measurement) };
    let verdict = judge(&evidence);
    assert_eq!(verdict.state, State::Invalid);
    let ids: Vec<CauseId> = verdict.causes.iter().map(|cause| cause.id).collect();
    assert_eq!(ids, [CauseId::Interrupted, CauseId::NotOffered, CauseId::ForeignCpu]);
}

#[test]
fn quantiles_have_short_names() {
    for (q, name) in [
        (0.5, "p50"),
        (0.07, "p7"),
        (0.999, "p99.9"),
        (0.9999, "p99.99"),
        (1.0, "max"),
        (0.0, "p0"),
    ] {
        assert_eq!(quantile_name(q), name);
    }
}

#[test]
fn an_objective_without_samples_makes_the_run_invalid() {
    let mut measurement = good();
    let total = &mut measurement.total;
    total.succeeded.clear();
    total.succeeded.record_n(Nanos::from_millis(10), 20);
    total.punctual.clear();
    let held = |objectives: &[&str], measurement: &Measurement| {
        let objectives: Vec<Objective> =
            objectives.iter().map(|text| Objective::parse(text).unwrap()).collect();
        let mut verdict =
            judge(&Evidence { objectives: &objectives, ..Evidence::new(measurement) });
        require_samples(&mut verdict, &objectives, measurement);
        let causes: Vec<String> =
            verdict.causes.iter().map(|cause| format!("{}: {}", cause.id, cause.text)).collect();
        format!("{} {}", verdict.state.id(), causes.join(" | "))
    };
    assert_eq!(
        held(&["p99<50ms", "p99.9<50ms", "p50<50ms"], &measurement),
        "INVALID few-samples: p99<50ms is undecided: 20 samples (at least 368); 1 more undecided"
    );
    assert_eq!(held(&["p50<50ms"], &measurement), "VALID ");
    measurement.total.succeeded.record_n(Nanos::from_millis(10), 80);
    assert_eq!(
        held(&["p50<50ms", "p99<50ms", "p99<40ms"], &measurement),
        "DEGRADED few-samples: p99<50ms is met with a probability of only 63 % (368 calls reach \
         97.5 %); 1 more likewise"
    );
    assert!(
        held(&["p99<50ms", "p99.9<50ms"], &measurement).starts_with("INVALID few-samples: p99.9")
    );
    measurement.interrupted = true;
    assert!(held(&["p99<50ms"], &measurement).starts_with("DEGRADED interrupted"));
}

#[test]
fn factors_have_two_digits() {
    for (factor, nearest, enough) in [
        (1.1, "1.1 times", "1.1 times"),
        (2.34, "2.3 times", "2.4 times"),
        (9.97, "10 times", "10 times"),
        (18.4, "18 times", "19 times"),
        (201.7, "200 times", "210 times"),
        (1_234.0, "1,200 times", "1,300 times"),
    ] {
        assert_eq!(times(factor, f64::round), nearest);
        assert_eq!(times(factor, f64::ceil), enough);
    }
}

#[test]
fn calls_in_the_warm_up_are_reported() {
    let mut measurement = Measurement { window: Nanos::SECOND, ..Measurement::default() };
    measurement.total.warm_up = Counts { due: 20, succeeded: 20, ..Counts::default() };
    let mut verdict = Verdict::default();
    require_samples(&mut verdict, &[Objective::parse("p99<50ms").unwrap()], &measurement);
    assert_eq!(verdict.state, State::Invalid);
    assert_eq!(
        verdict.causes[0].text,
        "p99<50ms is undecided: all 20 calls of it were made during the warm-up"
    );
    measurement.total.warm_up = Counts::default();
    let mut verdict = Verdict::default();
    require_samples(&mut verdict, &[Objective::parse("mean<50ms").unwrap()], &measurement);
    assert_eq!(verdict.causes[0].text, "mean<50ms is undecided: no samples");
}

#[test]
fn sessions_without_a_row_are_not_offered() {
    let mut measurement = good();
    measurement.intended = Some(180);
    measurement.total.sessions.started = 180;
    let held = |without_row| judge_margin(&Evidence { without_row, ..Evidence::new(&measurement) });
    assert_eq!(held(0), "VALID");
    assert_eq!(held(1), "VALID");
    assert_eq!(
        held(80),
        "INVALID\nnot-offered 0.5556: 100 of 180 sessions were made (at least 99.0 %): the feeder had \
         no row left for the others"
    );
}

/// 10,000 calls, of which `late` in a thousand took 40 ms because the client was 30 ms late.
#[test]
fn lateness_counts_at_every_printed_quantile() {
    let of = |per_mille: u64| {
        let mut measurement = good();
        let total = &mut measurement.total;
        total.succeeded.clear();
        total.succeeded.record_n(Nanos::from_millis(10), 10_000 - 10 * per_mille);
        total.succeeded.record_n(Nanos::from_millis(40), 10 * per_mille);
        judge_margin(&Evidence::new(&measurement))
    };
    assert_eq!(of(0), "VALID");
    let at =
        |quantile: &str| format!("up to 30.0 ms of the 40.0 ms {quantile} is client delay: 75.0 %");
    assert!(of(5).starts_with("DEGRADED\nlag"), "{}", of(5));
    assert!(of(5).contains(&at("p99.9")), "{}", of(5));
    assert!(of(50).starts_with("INVALID\nslip") && of(50).contains(&at("p99")), "{}", of(50));
    // late at the median, and slow for other reasons at the p99
    let mut measurement = good();
    let total = &mut measurement.total;
    total.succeeded.clear();
    total.succeeded.record_n(Nanos::from_millis(14), 9_000);
    total.succeeded.record_n(Nanos::from_secs(1), 1_000);
    total.punctual.clear();
    total.punctual.record_n(Nanos::from_millis(10), 9_000);
    total.punctual.record_n(Nanos::from_millis(996), 1_000);
    let text = judge_margin(&Evidence::new(&measurement));
    assert!(
        text.contains("up to 4.0") && text.contains(" of the 14.0 ms p50 is client delay: "),
        "{text}"
    );
}
