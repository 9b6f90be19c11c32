//! The HTML page.

use super::fixtures;
use crate::{RunReport, html};

fn all() -> [RunReport; 5] {
    [
        fixtures::valid(),
        fixtures::troubled(),
        fixtures::repeated(),
        fixtures::empty(),
        fixtures::extreme(),
    ]
}

#[test]
fn nothing_runs_and_nothing_is_fetched() {
    for report in all() {
        let page = html(&report).to_lowercase();
        assert!(page.contains("content-security-policy\" content=\"default-src 'none'; style-src"));
        let forbidden = [
            "<script",
            " src=",
            "<link",
            "@import",
            "url(",
            "<iframe",
            "<img",
            " style=\"",
            "<base",
        ];
        for forbidden in forbidden {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }
}

#[test]
fn a_peers_bytes_are_text() {
    let page = html(&fixtures::troubled());
    assert!(page.contains("&lt;/td&gt;&lt;script&gt;alert(1)"), "{page}");
    let hostile = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!page.contains(hostile));
}

/// Names, plans and everything else that somebody else wrote are escaped as well.
#[test]
fn every_text_that_comes_in_is_escaped() {
    let mut report = fixtures::troubled();
    let hostile = "<b onload=\"x\">'&".to_owned();
    report.name = hostile.clone();
    report.plan_toml = hostile.clone();
    report.environment.host = hostile.clone();
    report.resolved[0].host = hostile.clone();
    report.plan.request.method = hostile.clone();
    report.driver.io = hostile.clone();
    report.findings[0].evidence = hostile.clone();
    report.verdict.causes[0].advice = hostile.clone();
    report.verdict.causes[0].text = hostile.clone();
    report.slo[0].objective.text = hostile.clone();
    let (facts, count) = report.measurement.total.connections.tls.pop_first().unwrap();
    let facts = sample::TlsFacts { alpn: hostile.clone(), cipher: hostile, ..facts };
    report.measurement.total.connections.tls.insert(facts, count);
    let page = html(&report);
    assert!(!page.contains("<b onload"), "{page}");
    assert!(page.matches("&lt;b onload").count() >= 10, "{page}");
}

#[test]
fn the_verdict_and_the_answer_stand_at_the_top() {
    let page = html(&fixtures::troubled());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("<strong>INVALID</strong>") < at("Half of the calls took at most"));
    assert!(at("Half of the calls took at most") < at("<h2>Over time"));
    assert!(page.contains("slip p99 770 ms"));
}

#[test]
fn a_run_without_a_measurement_has_no_charts() {
    let page = html(&fixtures::empty());
    assert!(page.contains("No call fell due, so nothing was measured."));
    assert!(!page.contains("<svg"), "{page}");
}

#[test]
fn every_tag_is_closed_and_no_figure_is_nan() {
    for report in all() {
        let page = html(&report);
        for tag in
            ["main", "section", "table", "tr", "td", "th", "dl", "dd", "div", "svg", "figure"]
        {
            let open = page.matches(&format!("<{tag} ")).count()
                + page.matches(&format!("<{tag}>")).count();
            assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf "), "{page}");
    }
}

#[test]
fn the_page_of_a_long_run_stays_small() {
    let size = html(&fixtures::extreme()).len();
    assert!(size < 400_000, "{size} bytes");
}
