use super::*;
use std::collections::BTreeSet;

#[test]
fn every_rule_is_whole_and_names_others_that_exist() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len(), "an id is given twice");
    for rule in RULES {
        assert!(!rule.thresholds.is_empty(), "{}", rule.id);
        for text in [rule.title, rule.reasoning, rule.source, rule.advice] {
            assert!(text.len() > 20, "{}: {text}", rule.id);
        }
        for other in rule.excludes {
            assert!(ids.contains(other), "{} excludes {other}", rule.id);
            assert_ne!(*other, rule.id);
        }
    }
}

#[test]
fn nothing_measured_is_nothing_found() {
    let measurement = Measurement::default();
    assert!(of_run(&Evidence::new(&measurement)).is_empty());
    assert!(of_ramp(&[Evidence::new(&measurement)], None).is_empty());
}

/// Threads that share a core with other programs also run from tick to tick.
#[test]
fn ticks_are_only_possible_on_a_busy_machine() {
    let mut measurement = Measurement::default();
    let total = &mut measurement.total;
    total.counts.succeeded = 1_000;
    for (ms, calls) in [(10, 400), (20, 300), (30, 200), (40, 100)] {
        total.service.record_n(Nanos::from_millis(ms), calls);
    }
    let found = |machine_busy| {
        let evidence = Evidence { machine_busy, ..Evidence::new(&measurement) };
        let all = of_run(&evidence);
        let named = all.into_iter().find(|one| one.rule.id == "scheduling-quantum").unwrap();
        (named.confidence.id(), named.evidence.contains("other programs used the cores"))
    };
    assert_eq!(found(false), ("certain", false));
    assert_eq!(found(true), ("possible", true));
}
