//! Markdown, for pull requests.

use super::rendered::{markdown, side_by_side};
use super::{curves, fixtures, rendered};
use crate::ramp::RampRecord;
use crate::section::{Block, Document, Forms, title};
use crate::{Finding, markdown_of_compare, markdown_of_many, markdown_of_ramp};
use stats::diagnosis::Confidence;

#[test]
fn one_run_is_shown() {
    insta::assert_snapshot!(markdown(&fixtures::troubled()));
    insta::assert_snapshot!(markdown(&fixtures::empty()));
}

#[test]
fn the_title_counts_missed_and_undecided_objectives() {
    let heading = |met, undecided| {
        let mut report = fixtures::valid();
        report.slo = fixtures::troubled().slo;
        report.slo.truncate(1);
        (report.slo[0].met, report.slo[0].undecided) = (met, undecided);
        markdown(&report).lines().next().unwrap_or_default().to_owned()
    };
    assert!(heading(true, false).starts_with("### ✅ VALID: "), "{}", heading(true, false));
    let (missed, undecided) = (heading(false, false), heading(false, true));
    assert!(missed.starts_with("### ❌ VALID, 1 of 1 objectives missed: "), "{missed}");
    assert!(undecided.starts_with("### ⚠️ VALID, 1 of 1 objectives undecided: "), "{undecided}");
}

#[test]
fn several_runs() {
    let reports = [fixtures::valid(), fixtures::troubled()];
    insta::assert_snapshot!(side_by_side(&reports, markdown_of_many));
}

#[test]
fn a_ramp_is_shown() {
    insta::assert_snapshot!(markdown_of_ramp(&RampRecord::new(&curves::ramp(&["prefork", "cgi"]))));
}

#[test]
fn a_comparison_is_shown() {
    let report = rendered::session(1.07, 0.96, &["p99 +5%", "throughput -10%"]);
    insta::assert_snapshot!(markdown_of_compare(&report));
}

/// Text of a server or file cannot mention, link or emphasize anything.
#[test]
fn foreign_text_stays_text() {
    let mut report = fixtures::valid();
    let hostile =
        "|x|<img src=y>@team **[a](http://b)** `c` #1 \n# d\u{202e}\u{61c}\u{e0041}".to_owned();
    report.name.clone_from(&hostile);
    report.environment.host.clone_from(&hostile);
    report.findings = vec![Finding {
        id: hostile.clone(),
        confidence: Confidence::Likely,
        evidence: hostile.clone(),
        advice: hostile,
    }];
    let text = markdown(&report);
    for active in ["<img", "@team", " **[", " [a](", " #1", "|x|"] {
        assert!(!text.contains(active), "{active}: {text}");
    }
    assert!(!text.contains("\n# d"), "{text}");
    assert!(!text.contains(['\u{202e}', '\u{61c}', '\u{e0041}']), "{text}");
    assert!(text.contains(r"\\u{202e}\\u{61c}\\u{e0041}"), "{text}");
}

/// Without it the next text would be part of the last item.
#[test]
fn a_blank_line_ends_a_list() {
    let mut document = Document::default();
    document.add(Forms::MARKDOWN, [Block::List(vec!["one".into()]), title("End")]);
    let text = crate::page::markdown::markdown(&document);
    assert_eq!(text, "- one\n\n### End\n\n");
}
