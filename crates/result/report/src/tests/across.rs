use super::fixtures;
use crate::{Headline, RunRecord, merged};
use stats::State;
use units::Nanos;

#[test]
fn merging_adds_counts_and_puts_series_in_a_row() {
    let one = fixtures::troubled().measurement;
    let two = merged(&[one.clone(), one.clone()]);
    assert_eq!(two.total.counts.due, 2 * one.total.counts.due);
    assert_eq!(two.total.counts.conserved(), Ok(()));
    assert_eq!(two.window, Nanos::from_secs(20));
    assert_eq!(two.intended, Some(8_000));
    assert!(two.interrupted);
    let starts: Vec<f64> = two.series.iter().map(|row| row.at_s).collect();
    assert_eq!(starts, (0..20).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn merged_runs_have_the_quantiles_of_one_and_not_their_mean() {
    let (quick, slow) = (fixtures::valid().measurement, fixtures::troubled().measurement);
    let both = merged(&[quick.clone(), slow.clone()]);
    let mut response = quick.total.response();
    response.merge(&slow.total.response());
    let headline = Headline::new(&both, State::Valid);
    assert!((headline.p99_s - response.quantile(0.99).as_secs_f64()).abs() < 1e-12);
    assert!((headline.max_s - slow.total.response().max().as_secs_f64()).abs() < 1e-12);
}

/// `-n` with `--rate`: 4,000 calls that are due within 8 of the window's 10 seconds.
#[test]
fn a_counted_rate_is_taken_over_the_time_that_it_needs() {
    let mut report = fixtures::troubled();
    report.measurement.intended_span = Some(Nanos::from_secs(8));
    let plan::Load::Open { arrivals, .. } = &mut report.plan.load else { unreachable!() };
    (arrivals.from, arrivals.to) = (units::Rate(500.0), units::Rate(500.0));
    let run = RunRecord::new(&report);
    assert_eq!(run.intended_per_s, Some(500.0));
    let share = run.offered_per_s / RunRecord::new(&fixtures::troubled()).offered_per_s;
    assert!((share - 1.25).abs() < 1e-9, "{share}");
    let twice = merged(&[report.measurement.clone(), report.measurement.clone()]);
    assert_eq!((twice.intended, twice.due_span()), (Some(8_000), Nanos::from_secs(16)));
}

#[test]
fn no_runs_merge_to_nothing() {
    let nothing = merged(&[]);
    assert_eq!(nothing.total.counts.due, 0);
    assert!(Headline::new(&nothing, State::Invalid).throughput_per_s.abs() < 1e-12);
}

#[test]
fn a_session_rate_is_not_mistaken_for_a_rate_of_calls() {
    let mut report = fixtures::troubled();
    let run = RunRecord::new(&report);
    assert_eq!((run.intended_per_s, run.sessions.intended_per_s), (Some(400.0), None));
    let plan::Load::Open { session, .. } = &mut report.plan.load else { unreachable!() };
    *session = Some(plan::SessionPlan::new(3, plan::Think::None));
    let run = RunRecord::new(&report);
    assert_eq!((run.intended_per_s, run.sessions.intended_per_s), (None, Some(400.0)));
}
