//! The page of `loadstone torture --html`.

use crate::curve_pages::is_readable_light_and_dark;
use crate::support::browser::Browser;
use crate::support::{Scripted, run};
use serde_json::json;
use std::path::PathBuf;
use tempfile::TempDir;

/// Text from a server that attacks readers of the report.
const HOSTILE: &str =
    "</pre></script><b onload=\"x\"><script>throw 'theirs'</script>\u{1b}[2J\u{202e}&amp;";

/// Page of a report about a 500 for a percent-encoded NUL, whose body tries to run script;
/// everything else is correct.
fn page(folder: &TempDir) -> PathBuf {
    let server = Scripted::answering(|head| {
        let broken = head.windows(3).any(|three| three == b"%00");
        if broken { ("500 No", HOSTILE) } else { ("200 OK", "hi") }
    });
    let file = folder.path().join("torture.html");
    let words = ["torture", "--quick", "--fail-on", "low", "--only", "F-09,S-01,S-08,S-30", "-q"];
    let words = [&words[..], &["--html"]].concat();
    run(&[&words[..], &[file.to_str().unwrap(), &server.url("/")]].concat()).expect(&[1]);
    file
}

#[test]
fn a_torture_page_shows_findings_and_filters_cases() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::open();
    browser.go_to_file(&page(&folder));
    browser.drawn();
    let verdict = browser.text(".verdict");
    assert!(verdict.starts_with("2 FINDINGS") && verdict.contains("F-09 fail"), "{verdict}");
    // the server's output is readable text, and nothing else
    let finding = browser.text("details#F-09");
    assert!(
        finding.contains("<script>throw 'theirs'") || finding.contains(r"\'theirs\'"),
        "{finding}"
    );
    assert!(finding.contains(r"\x1b[2J") && finding.contains("printf 'GET /"), "{finding}");
    assert_eq!(browser.eval("document.querySelectorAll('b').length"), 0);

    browser.click("details#F-09 summary");
    assert_eq!(browser.eval("document.querySelector('details#F-09').open"), false);
    let shown = "[...document.querySelectorAll('table.filtered tr[data-outcome]')]\
                 .filter(row => row.checkVisibility()).map(row => row.cells[0].textContent)";
    assert_eq!(browser.eval(shown), json!(["F-09", "S-01", "S-08", "S-30"]));
    let kinds = "[...document.querySelectorAll('.filter button')].map(one => one.textContent)";
    let kinds = browser.eval(kinds);
    assert!(kinds.as_array().unwrap().contains(&json!("fail 2")), "{kinds}");
    browser.click(".filter button:nth-child(2)");
    assert_eq!(browser.eval(shown), json!(["F-09", "S-01"]), "those that failed");
    browser.click("table.filtered th:first-child button");
    browser.click("table.filtered th:first-child button");
    assert_eq!(browser.eval(shown), json!(["S-01", "F-09"]), "sorted as they are sifted");
    browser.click(".filter button:first-child");
    assert_eq!(browser.eval(shown), json!(["S-30", "S-08", "S-01", "F-09"]));

    browser.point_at("figure[data-chart=probes] .u-over");
    let legend = browser.text("figure[data-chart=probes] .u-legend");
    assert!(legend.contains("on new connections") && legend.contains("case"), "{legend}");
    is_readable_light_and_dark(&mut browser);
    assert!(browser.problems().is_empty(), "{:?}", browser.problems());
}

#[test]
fn a_tortures_page_is_whole_without_script_and_fits_a_phone() {
    let folder = tempfile::tempdir().unwrap();
    let file = page(&folder);
    let mut browser = Browser::open();
    browser.scripts(false);
    browser.window(420, 800);
    browser.go_to_file(&file);
    for selector in ["h1", ".verdict", "details#F-09 pre", ".still svg", "table.filtered", "footer"]
    {
        let there = format!("document.querySelector('{selector}').checkVisibility()");
        assert_eq!(browser.eval(&there), true, "{selector}");
    }
    assert_eq!(browser.eval("document.querySelectorAll('.filter, b').length"), 0);
    let width = browser.eval("document.documentElement.scrollWidth");
    assert!(width.as_u64().unwrap() <= 420, "{width}");
    assert!(browser.printed().starts_with(b"%PDF"));
    assert!(browser.problems().is_empty(), "{:?}", browser.problems());
}
