mod coverage;

use super::*;
use crate::{Blocks, Looks, Recorder};
use proptest::prelude::*;
use sample::{FailureClass, Outcome, Sample};

#[test]
fn objectives_are_parsed() {
    for (text, metric, op, bound) in [
        ("p99<50ms", Metric::Response(0.99), Op::Below, 0.05),
        (" p99.9 <= 1 s ", Metric::Response(0.999), Op::AtMost, 1.0),
        ("p50≤20us", Metric::Response(0.5), Op::AtMost, 0.000_02),
        ("max<1m30s", Metric::Response(1.0), Op::Below, 90.0),
        ("p100<1s", Metric::Response(1.0), Op::Below, 1.0),
        ("median<1s", Metric::Response(0.5), Op::Below, 1.0),
        ("mean>1ns", Metric::ResponseMean, Op::Above, 1e-9),
        ("failures<0.1%", Metric::Failures, Op::Below, 0.001),
        ("failures<=0", Metric::Failures, Op::AtMost, 0.0),
        ("failures > 50 %", Metric::Failures, Op::Above, 0.5),
        ("throughput>=2,000/s", Metric::Throughput, Op::AtLeast, 2000.0),
        ("goodput>60/m", Metric::Goodput, Op::Above, 1.0),
        ("conforming≥95%", Metric::Conforming, Op::AtLeast, 0.95),
        ("first-event-p99.9<1s", Metric::FirstEvent(0.999), Op::Below, 1.0),
        ("event-gap-max<=50ms", Metric::EventGap(1.0), Op::AtMost, 0.05),
        ("event-gap-median<50ms", Metric::EventGap(0.5), Op::Below, 0.05),
        ("events>=500/s", Metric::Events, Op::AtLeast, 500.0),
        ("ttft-p95<500ms", Metric::FirstEvent(0.95), Op::Below, 0.5),
        ("inter-token-p99<80ms", Metric::EventGap(0.99), Op::Below, 0.08),
        ("tpot-p95<40ms", Metric::TokenTime(0.95), Op::Below, 0.04),
        ("tokens>1000/s", Metric::Tokens, Op::Above, 1000.0),
        ("first-message-p95<50ms", Metric::FirstEvent(0.95), Op::Below, 0.05),
        ("message-gap-p99<=1s", Metric::EventGap(0.99), Op::AtMost, 1.0),
        ("status-ok>99.9%", Metric::StatusOk, Op::Above, 0.999),
        ("message-p99<50ms", Metric::Response(0.99), Op::Below, 0.05),
        ("handshake-p99<1s", Metric::Handshake(0.99), Op::Below, 1.0),
        ("abnormal-closes<0.1%", Metric::AbnormalCloses, Op::Below, 0.001),
        ("reach>=99.9%", Metric::Reach, Op::AtLeast, 0.999),
        ("messages>1000/s", Metric::Messages, Op::Above, 1000.0),
    ] {
        let parsed = Objective::parse(text).unwrap();
        assert_eq!((parsed.metric, parsed.op), (metric, op), "{text}");
        assert!((parsed.bound - bound).abs() < 1e-15, "{text}: {}", parsed.bound);
        assert_eq!(parsed.text, text.trim());
    }
}

#[test]
fn invalid_objectives_are_reported_with_a_fix() {
    for (text, why) in [
        ("", "it has no <"),
        ("p99", "it has no <"),
        ("p99=50ms", "a bound is <"),
        ("p99<50", "the time \"50\" needs a unit"),
        ("p99<", "the time \"\" needs a unit"),
        ("p99<fast", "does not begin with a number"),
        ("p101<1s", "\"p101\" is not a metric"),
        ("p0<1s", "\"p0\" is not a metric"),
        ("pNaN<1s", "\"pNaN\" is not a metric"),
        ("latency<1s", "\"latency\" is not a metric"),
        ("p(95)<200ms", "\"p(95)\" is p95 here"),
        ("avg<200ms", "\"avg\" is mean here"),
        ("http_req_failed<1%", "\"http_req_failed\" is failures here"),
        ("failures<5", "over 100 %; a percentage ends in %"),
        ("failures<101%", "over 100 %"),
        ("failures<1", "\"1\" has no unit: write 1% or 100%"),
        ("throughput>100", "it has no unit"),
        ("failures<-1%", "is not a percentage"),
        ("failures<inf", "is not a percentage"),
        ("failures<%", "is not a percentage"),
        ("throughput>0/s", "above zero"),
        ("throughput>1000/y", "\"y\" is not a unit of time"),
    ] {
        let message = Objective::parse(text).unwrap_err().0;
        assert!(message.contains(why), "{text}: {message}");
        assert!(message.starts_with(&format!("{text:?} is not")), "{message}");
        assert!(message.contains("p99<50ms"), "{message}");
    }
}

#[test]
fn lists_split_at_commas_but_not_inside_numbers() {
    let texts = |list: &str| -> Vec<String> {
        parse_objectives(list).unwrap().into_iter().map(|one| one.text).collect()
    };
    assert_eq!(texts("p99<50ms"), ["p99<50ms"]);
    assert_eq!(texts("p99<50ms, failures<0.1%"), ["p99<50ms", "failures<0.1%"]);
    assert_eq!(texts("goodput>1,000/s,max<1s"), ["goodput>1,000/s", "max<1s"]);
    for list in ["", ",", "p99<50ms,", "p99<50ms,,max<1s"] {
        assert!(parse_objectives(list).unwrap_err().0.contains("\"\" is not an objective"));
    }
}

#[test]
fn a_part_may_be_a_pattern_of_urls() {
    for (text, name) in [
        ("/user/{id}: p99<200ms", "/user/{id}"),
        ("http://h:81/a?b={c}: max<=1s", "http://h:81/a?b={c}"),
        ("login:failures<1%", "login"),
    ] {
        let objective = Objective::parse(text).unwrap();
        assert_eq!(objective.of.unwrap().name, name);
    }
}

/// Returns ten calls in a window of 2 s: eight succeed in 10..80 ms, one times out at 5 s (after
/// the window), one fails; two more are dropped.
fn figures() -> Figures {
    let start = Nanos::SECOND;
    let mut recorder = Recorder::new(1, (start, start + Nanos::from_secs(2)));
    let ends = [10u64, 20, 30, 40, 50, 60, 70, 80, 5_000, 1];
    for (index, after_ms) in ends.into_iter().enumerate() {
        recorder.due(start);
        recorder.issued(start, start);
        let outcome = match index {
            8 => Outcome::TimedOut,
            9 => Outcome::Failed,
            _ => Outcome::Succeeded,
        };
        let done = start + Nanos::from_millis(after_ms);
        let sample = Sample { intended: start, issued: start, done, ..Sample::default() };
        recorder.done(&sample, outcome, true);
    }
    for _ in 0..2 {
        recorder.due(start);
        recorder.dropped(start, FailureClass::ConnectionLimit);
    }
    recorder.connection_closed(None, Some(true));
    recorder.connection_closed(None, Some(false));
    recorder.connection_closed(None, None);
    Figures::new(&recorder.now, Nanos::from_secs(2))
}

#[test]
fn figures_against_their_bounds() {
    let figures = figures();
    for (text, figure, met) in [
        // Nine response times: 10, 20, …, 80 ms and 5 s; a histogram of three digits.
        ("p50<51ms", 0.05, true),
        ("p50<50ms", 0.05, false),
        ("max<5s", 5.0, false),
        ("max>4s", 5.0, true),
        ("mean<600ms", (0.36 + 5.0) / 9.0, true),
        ("failures<33%", 4.0 / 12.0, false),
        ("failures<34%", 4.0 / 12.0, true),
        ("throughput>=4.5/s", 4.5, true),
        ("throughput>4.5/s", 4.5, false),
        ("goodput>=4/s", 4.0, true),
        ("conforming>=50%", 0.5, true),
        ("conforming>50%", 0.5, false),
    ] {
        let (found, kept) = Objective::parse(text).unwrap().evaluate(&figures);
        assert!((found - figure).abs() <= 0.001 * figure, "{text}: {found}");
        assert_eq!(kept, met, "{text}: {found}");
    }
}

#[test]
fn nothing_measured_keeps_no_bound() {
    let figures = Figures::new(&Snapshot::default(), Nanos::ZERO);
    for text in ["p99<50ms", "mean<1s", "failures<1%", "throughput>=1/s", "conforming<=100%"] {
        let (figure, met) = Objective::parse(text).unwrap().evaluate(&figures);
        assert!(figure.is_nan() && !met, "{text}: {figure}");
    }
}

/// Returns `count` calls of 10 ms, of which the last `beyond` took 1 s; the warm-up ends at 1 s.
fn calls(count: u64, beyond: u64) -> Snapshot {
    let start = Nanos::SECOND;
    let mut recorder = Recorder::new(2, (start, start + Nanos::from_secs(2)));
    for index in 0..count {
        let took = if index < count - beyond { 10 } else { 1_000 };
        one(&mut recorder, 0, start, start, took);
    }
    *recorder.now
}

/// Records a call of a target: due at `due`, issued at `issued`, answered `took_ms` later.
fn one(recorder: &mut Recorder, target: u32, due: Nanos, issued: Nanos, took_ms: u64) {
    recorder.due(due);
    recorder.issued(due, issued);
    let done = issued + Nanos::from_millis(took_ms);
    let sample = Sample {
        target,
        intended: due,
        admitted: due,
        issued,
        sent: issued,
        first_byte: done,
        done,
        ..Sample::default()
    };
    recorder.done(&sample, Outcome::Succeeded, true);
}

fn ruled(text: &str, snapshot: &Snapshot) -> (bool, Option<Undecided>) {
    let mut objective = Objective::parse(text).unwrap();
    if let Some(of) = &mut objective.of {
        let row = if of.name == "first" { 0 } else { 1 };
        of.rows = SubjectRows::Targets([row].into());
    }
    let ruling = objective.rule(snapshot, Nanos::from_secs(2), &Blocks::default(), Looks::Once);
    (ruling.met, ruling.undecided)
}

#[test]
fn an_interval_that_contains_the_bound_is_undecided() {
    let few = |count, needed| (false, Some(Undecided::FewSamples { count, needed }));
    let interval = |longer| Some(Undecided::Interval { longer: Some(longer) });
    for (text, count, beyond, expected) in [
        ("p99<50ms", 20, 0, few(20, 368)),
        ("p99<50ms", 99, 0, few(99, 368)),
        ("p99<50ms", 100, 0, (true, None)),
        ("p99<50ms", 367, 0, (true, None)),
        ("p99<50ms", 367, 1, few(367, 368)),
        ("p99<50ms", 368, 0, (true, None)),
        ("p99<50ms", 1_000, 3, (true, None)),
        ("p99<50ms", 1_000, 6, (false, interval(2.4))),
        ("p99.9<50ms", 999, 0, few(999, 3_688)),
        ("p99.9<50ms", 1_000, 0, (true, None)),
        ("failures>=2%", 1_000, 0, (false, None)),
        ("p99<50ms", 1_000, 20, (false, None)),
        // one call of twenty beyond the bound may be the one in a hundred; three are not
        ("p99<50ms", 20, 1, few(20, 368)),
        ("p99<50ms", 20, 3, (false, None)),
        ("p99<1ms", 1, 0, (false, None)),
        ("p99>1ms", 20, 0, (true, None)),
        ("p99>50ms", 20, 0, few(20, 368)),
        ("p50<50ms", 1, 0, few(1, 6)),
        ("p50<50ms", 5, 1, few(5, 6)),
        ("p50<50ms", 2, 0, (true, None)),
        ("p50<50ms", 6, 0, (true, None)),
        ("mean<50ms", 1, 0, few(1, 2)),
        ("mean<50ms", 2, 0, (true, None)),
        ("failures<1%", 99, 0, few(99, 368)),
        ("failures<1%", 100, 0, (true, None)),
        ("failures<1%", 368, 0, (true, None)),
        // these are of the calls that were made, not of a share of all calls
        ("max<50ms", 1, 0, (true, None)),
        ("failures<=0", 1, 0, (true, None)),
        ("throughput<1/s", 1, 0, (true, None)),
        ("first: p99<50ms", 20, 0, few(20, 368)),
        ("first: p99<50ms", 368, 0, (true, None)),
    ] {
        let mut found = ruled(text, &calls(count, beyond));
        if let Some(Undecided::Interval { longer: Some(factor) }) = &mut found.1 {
            *factor = (*factor * 10.0).round() / 10.0;
        }
        assert_eq!(found, expected, "{text}, {count}, {beyond}");
    }
}

/// The probability is that of the least certain answer that is given: 1 - 1/e for any quantile.
#[test]
fn an_objective_that_few_calls_meet_has_its_probability() {
    let unsure = |text: &str, snapshot: &Snapshot, blocks: &Blocks, looks| {
        let ruling = Objective::parse(text).unwrap().rule(snapshot, Nanos::SECOND, blocks, looks);
        (ruling.met, ruling.unsure.map(|found| found.text()))
    };
    let none = Blocks::default();
    for (text, count, looks, expected) in [
        ("p99<50ms", 100, Looks::Once, Some("63 % (368 calls reach 97.5 %)")),
        ("p99<50ms", 200, Looks::Once, Some("86 % (368 calls reach 97.5 %)")),
        ("p99<50ms", 367, Looks::Once, Some("97 % (368 calls reach 97.5 %)")),
        ("p99<50ms", 368, Looks::Once, None),
        ("p95<50ms", 20, Looks::Once, Some("64 % (72 calls reach 97.5 %)")),
        ("failures<1%", 100, Looks::Once, Some("63 % (368 calls reach 97.5 %)")),
        // an answer that holds at any time is less certain
        ("p99<50ms", 368, Looks::Always, Some("90 % (535 calls reach 97.5 %)")),
        ("p99<50ms", 535, Looks::Always, None),
    ] {
        let expected = expected.map(|text| format!("with a probability of only {text}"));
        let found = unsure(text, &calls(count, 0), &none, looks);
        assert_eq!(found, (true, expected), "{text}, {count}");
    }
    // a call that failed might have been slow
    let mut failed = calls(200, 0);
    failed.counts.due += 1;
    failed.counts.failed += 1;
    assert_eq!(unsure("p99<50ms", &failed, &none, Looks::Once), (false, None));
    // calls that come near the bound together count as fewer
    let objective = Objective::parse("p99<15ms").unwrap();
    let mut blocks = Blocks::default();
    for block in 0..6 {
        let mut row = Snapshot::default();
        let ms = if block == 0 { 14 } else { 1 };
        (0..100).for_each(|_| row.succeeded.record(Nanos::from_millis(ms)));
        blocks.push(objective.block(&row));
    }
    let (met, found) = unsure("p99<15ms", &calls(600, 0), &blocks, Looks::Once);
    assert!(!met && found.is_none(), "600 calls are worth 6: {found:?}");
}

#[test]
fn a_part_that_was_only_called_in_the_warm_up_is_undecided() {
    let start = Nanos::SECOND;
    let mut recorder = Recorder::new(2, (start, start + Nanos::from_secs(2)));
    for _ in 0..3 {
        one(&mut recorder, 0, Nanos::ZERO, Nanos::ZERO, 10);
    }
    for _ in 0..400 {
        one(&mut recorder, 1, start, start, 10);
    }
    let snapshot = *recorder.now;
    let warm_up = Some(Undecided::NoSamples { warm_up: 3 });
    assert_eq!(ruled("first: p99<50ms", &snapshot), (false, warm_up));
    assert_eq!(ruled("first: failures<1%", &snapshot), (false, warm_up));
    assert_eq!(ruled("second: p99<50ms", &snapshot), (true, None));
    // a server that fails every call of the part meets no bound
    let mut failed = snapshot.clone();
    failed.targets[0].failed = 3;
    assert_eq!(ruled("first: p99<50ms", &failed), (false, None));
}

/// Returns 400 calls of each of two targets that took 10 ms; the last `late` of the first one were
/// issued 250 ms late.
fn late(late: u64) -> Snapshot {
    let due = Nanos::SECOND;
    let mut recorder = Recorder::new(2, (due, due + Nanos::from_secs(2)));
    for index in 0..800 {
        let target = (index % 2) as u32;
        let is_late = target == 0 && index / 2 >= 400 - late;
        let lag = if is_late { Nanos::from_millis(250) } else { Nanos::ZERO };
        one(&mut recorder, target, due, due + lag, 10);
    }
    *recorder.now
}

#[test]
fn lateness_leaves_a_part_undecided_only_where_it_matters() {
    let lateness = (false, Some(Undecided::Lateness));
    for (text, late_calls, expected) in [
        ("first: p99<300ms", 40, (true, None)),
        ("first: p99<100ms", 40, lateness),
        ("first: p99<5ms", 40, (false, None)),
        // four of a hundred cannot change the median
        ("first: p50<9ms", 16, (false, None)),
        ("first: p50<11ms", 16, (true, None)),
        ("second: p99<100ms", 40, (true, None)),
        ("first: mean<20ms", 40, lateness),
        ("first: mean<1ms", 16, (false, None)),
        ("first: mean<1s", 40, (true, None)),
    ] {
        assert_eq!(ruled(text, &late(late_calls)), expected, "{text}, {late_calls} late");
    }
}

proptest! {
    #[test]
    fn the_lower_bound_of_a_part_is_never_above_its_punctual_figure(
        times in prop::collection::vec((1_u64..500, 0_u64..300), 1..60),
    ) {
        let due = Nanos::SECOND;
        let mut recorder = Recorder::new(2, (due, due + Nanos::from_secs(2)));
        for (took, lag) in &times {
            one(&mut recorder, 0, due, due + Nanos::from_millis(*lag), *took);
        }
        let snapshot = *recorder.now;
        for quantile in [0.1, 0.5, 0.9, 0.99, 1.0] {
            let times = &snapshot.targets[0].response;
            let bound = quantile_without(times, quantile, &snapshot.lag, 1);
            let punctual = snapshot.without_lag().unwrap().quantile(quantile);
            // three digits of the histograms
            prop_assert!(bound.0 <= punctual.0 + times.max().0 / 500, "{bound:?} {punctual:?}");
        }
    }

    #[test]
    fn typed_input_never_panics(text in "\\PC*", near in "[pmaxfilure0-9.<>=≤≥,%/ms -]{0,24}") {
        for text in [text, near] {
            if let Ok(objectives) = parse_objectives(&text) {
                prop_assert!(objectives.iter().all(|one| one.bound.is_finite()));
            }
        }
    }
}

#[test]
fn a_metric_of_the_plan_is_bounded_by_a_bare_number() {
    let objective = Objective::parse("metric queue depth: p95<100.5").unwrap();
    assert_eq!((objective.metric, objective.bound), (Metric::Number(0.95), 100.5));
    assert_eq!(objective.of.as_ref().map(|of| of.name.as_str()), Some("metric queue depth"));
    for (text, why) in [
        ("metric q: p95<100x", "\"100x\" is not a number without a unit"),
        ("metric q: failing<1%", "a metric of the plan has p50, p99, max and mean, not failing"),
    ] {
        let error = Objective::parse(text).unwrap_err().0;
        assert!(error.contains(why), "{error}");
    }
    // a part with such a name
    for (text, metric) in [
        ("metric q: p95<100ms", Metric::Response(0.95)),
        ("metric q: failures<1%", Metric::Failures),
    ] {
        let objective = Objective::parse(text).unwrap();
        assert_eq!(objective.metric, metric, "{text}");
        assert_eq!(objective.of.unwrap().name, "metric q");
    }
    let rows = |objective: &Objective| Subject {
        rows: SubjectRows::Number(1),
        ..objective.of.clone().unwrap()
    };
    let objective = Objective { of: Some(rows(&objective)), ..objective };
    let mut snapshot = Snapshot::default();
    let lacking = objective.rule(&snapshot, Nanos::from_secs(1), &Blocks::default(), Looks::Once);
    assert_eq!(lacking.undecided, Some(Undecided::NoSamples { warm_up: 0 }));
    snapshot.journeys.metrics.resize_with(2, NumberTally::default);
    (0..100).for_each(|n| snapshot.journeys.metrics[1].record(Some(n * 1_000_000)));
    let ruling = objective.rule(&snapshot, Nanos::from_secs(1), &Blocks::default(), Looks::Once);
    assert_eq!((ruling.figure, ruling.met, ruling.without_lag), (94.0, true, None));
}
