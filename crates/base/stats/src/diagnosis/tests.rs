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
