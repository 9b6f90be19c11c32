//! The pages of `loadstone ramp --html` and `loadstone compare --html`.

use crate::support::browser::Browser;
use crate::support::{Site, run};
use serde_json::json;
use std::path::PathBuf;
use tempfile::TempDir;

/// Page of a ramp: three loads of half a second each, ten points a second.
fn ramp_page(folder: &TempDir) -> PathBuf {
    let site = Site::start(&[]);
    let file = folder.path().join("ramp.html");
    let url = site.url("/hw");
    let words = ["ramp", "--from", "20/s", "--to", "60/s", "--step", "20/s", "--hold", "500ms"];
    let outputs = ["--interval", "100ms", "-q", "--html", file.to_str().unwrap(), &url];
    run(&[&words[..], &outputs].concat()).expect(&[0, 4]);
    file
}

fn compare_page(folder: &TempDir) -> PathBuf {
    let (quick, slow) = (Site::start(&[("delay", "1ms")]), Site::start(&[("delay", "60ms")]));
    let file = folder.path().join("compare.html");
    let words = ["compare", "-c", "1", "-n", "8", "--blocks", "5", "-q", "--html"];
    let sides = [format!("quick={}", quick.url("/hw")), format!("slow={}", slow.url("/hw"))];
    run(&[&words[..], &[file.to_str().unwrap(), &sides[0], &sides[1]]].concat()).expect(&[0, 4]);
    file
}

/// Checks that the text of a page contrasts with its background, and that charts are drawn, in both
/// color schemes.
#[track_caller]
pub(crate) fn is_readable_light_and_dark(browser: &mut Browser) {
    let paper = "getComputedStyle(document.body).backgroundColor";
    let ink = "getComputedStyle(document.querySelector('.answer')).color";
    let mut papers = Vec::new();
    for scheme in ["light", "dark"] {
        browser.media(scheme, "screen");
        browser.drawn();
        let there = browser.eval(paper);
        assert_ne!(there, browser.eval(ink), "{scheme}");
        papers.push(there);
        let live = "document.querySelectorAll('figure.live .uplot').length > 0";
        assert_eq!(browser.eval(live), true, "{scheme}");
        assert!(browser.screenshot().starts_with(b"\x89PNG"));
    }
    assert_ne!(papers[0], papers[1]);
}

/// On a screen of 390 pixels nothing is wider than the screen, and each regression is shown with
/// its size.
#[track_caller]
fn regressions_are_seen_on_a_phone(browser: &mut Browser) {
    let broad = "getComputedStyle(document.querySelector('.chart.broad')).display";
    browser.on_a_phone("compare", |browser| {
        let inside = "[...document.querySelectorAll('.chart.narrow svg *')].every(one => \
                      { const box = one.getBoundingClientRect(); \
                      return box.left >= 0 && box.right <= innerWidth })";
        assert_eq!(browser.eval(inside), true);
        let shown = "[...document.querySelectorAll('.chart.narrow text.change.t-red')]\
                     .map(t => t.textContent)";
        let shown = browser.eval(shown);
        let signs = |sign: char| {
            shown.as_array().unwrap().iter().any(|text| text.as_str().unwrap().starts_with(sign))
        };
        assert!(signs('+') && signs('-'), "slower, and less of it: {shown}");
        assert_eq!(browser.eval(broad), "none");
    });
    assert_eq!(browser.eval(broad), "block");
}

#[test]
fn a_ramp_shows_its_curve_and_opens_its_steps() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::open();
    browser.go_to_file(&ramp_page(&folder));
    browser.drawn();
    for chart in ["curve", "response"] {
        let drawn =
            format!("document.querySelectorAll('figure[data-chart={chart}] .uplot').length");
        assert_eq!(browser.eval(&drawn), 1, "{chart}");
    }
    browser.point_at("figure[data-chart=curve] .u-over");
    let legend = browser.text("figure[data-chart=curve] .u-legend");
    assert!(legend.contains("achieved") && legend.contains("/s"), "{legend}");
    let folded = "document.querySelectorAll('details:not(.advice)').length";
    assert_eq!(browser.eval(folded), 3 + 1, "three steps and the plan with its defaults");

    browser.fits_a_phone("ramp");
    // a step and its charts are collapsed until it is clicked
    let second = "details:nth-of-type(2)";
    let open = format!("document.querySelector('{second}').open");
    let charts = format!("document.querySelectorAll('{second} .uplot').length");
    assert_eq!((browser.eval(&open), browser.eval(&charts)), (json!(false), json!(0)));
    let heading = browser.text(&format!("{second} summary"));
    assert!(heading.starts_with("Step 2 · 40") && heading.contains(" · up"), "{heading}");
    browser.click(&format!("{second} summary"));
    browser.wait_for(&format!("{open} && {charts} >= 2"));
    let details = browser.text(second);
    assert!(details.contains("Idle before it for"), "{details}");
    is_readable_light_and_dark(&mut browser);
    assert!(browser.problems().is_empty(), "{:?}", browser.problems());
}

#[test]
fn a_comparison_shows_each_difference_and_both_distributions() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::open();
    browser.go_to_file(&compare_page(&folder));
    browser.drawn();
    let answer = browser.text(".answer");
    assert!(answer.starts_with("B is worse than A"), "{answer}");
    let named = "[...document.querySelectorAll('figure svg text')].map(text => text.textContent)";
    let named = browser.eval(named);
    assert!(named.as_array().unwrap().contains(&json!("p50")), "{named}");
    regressions_are_seen_on_a_phone(&mut browser);
    let spectrum = "figure[data-chart=spectrum]";
    browser.point_at(&format!("{spectrum} .u-over"));
    let legend = browser.text(&format!("{spectrum} .u-legend"));
    assert!(legend.contains("A: quick") && legend.contains("B: slow"), "{legend}");
    // a click sorts the runs
    let sides = "[...document.querySelectorAll('table.sortable tr')].slice(1)\
                 .map(row => row.cells[0].textContent).join('')";
    assert_eq!(browser.eval(sides), "AAAAAAAAAABBBBBBBBBB");
    browser.click("table.sortable th:first-child button");
    browser.click("table.sortable th:first-child button");
    assert_eq!(browser.eval(sides), "BBBBBBBBBBAAAAAAAAAA");
    is_readable_light_and_dark(&mut browser);
    assert!(browser.problems().is_empty(), "{:?}", browser.problems());
}
