//! The page of `loadstone run --html`.

use crate::support::browser::Browser;
use crate::support::{Site, run};
use serde_json::json;
use std::path::PathBuf;
use tempfile::TempDir;
use units::{Nanos, show};

/// Page of a short run against the reference server, over two URLs, four points a second.
fn page(folder: &TempDir) -> PathBuf {
    let site = Site::start(&[("error-share", "2%")]);
    let file = folder.path().join("page.html");
    let urls = folder.path().join("urls.txt");
    std::fs::write(&urls, format!("{}\n{}\n", site.url("/hw"), site.url("/bytes/5000"))).unwrap();
    let (file_text, urls) = (file.to_str().unwrap(), urls.to_str().unwrap());
    let args = ["run", "--urls", urls, "--html", file_text, "-q", "--rate", "400/s", "-d", "3s"];
    let interval = ["--interval", "250ms"];
    run(&[&args[..], &interval].concat()).expect(&[0, 4]);
    file
}

#[track_caller]
fn assert_no_browser_problems(browser: &Browser) {
    assert!(browser.problems().is_empty(), "{:?}", browser.problems());
}

#[test]
fn its_charts_can_be_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::open();
    browser.go_to_file(&page(&folder));
    browser.drawn();
    let charts = browser.eval("document.querySelectorAll('figure[data-chart]').length");
    assert!(charts.as_u64().unwrap() >= 6, "{charts}");
    assert_eq!(browser.eval("document.querySelectorAll('figure.live .uplot').length"), charts);
    // the drawing for paper is hidden
    assert_eq!(browser.eval("document.querySelector('.still').checkVisibility()"), false);

    let chart = "figure[data-chart=response]";
    browser.point_at(&format!("{chart} .u-over"));
    let legend = browser.text(&format!("{chart} .u-legend"));
    assert!(legend.contains("p50") && legend.contains("s") && !legend.contains("–"), "{legend}");
    // the other charts of the same time follow the pointer
    let other = browser.text("figure[data-chart=throughput] .u-legend");
    assert!(other.contains("/s"), "{other}");
    browser.point_at("figure[data-chart=heat] .u-over");
    let cell = browser.text("figure[data-chart=heat] .u-legend");
    assert!(cell.contains(" call"), "{cell}");

    let whole = format!("{chart} .whole");
    let hidden = format!("document.querySelector({}).hidden", json!(whole));
    assert_eq!(browser.eval(&hidden), true);
    browser.drag_across(&format!("{chart} .u-over"), (-120.0, 60.0));
    assert_eq!(browser.eval(&hidden), false, "it is a part of the whole now");
    let others = "document.querySelector('figure[data-chart=heat] .whole').hidden";
    assert_eq!(browser.eval(others), false, "and so are the others");
    browser.click(&whole);
    browser.drawn();
    assert_eq!((browser.eval(&hidden), browser.eval(others)), (json!(true), json!(true)));

    let row = format!("{chart} .u-legend .u-series:nth-child(2)");
    browser.click(&format!("{row} th"));
    let off = format!("document.querySelector({}).classList.contains('u-off')", json!(row));
    assert_eq!(browser.eval(&off), true, "a click on its name hides a line");
    assert_no_browser_problems(&browser);
}

/// If nearly all statuses are 200, errors are a thin line; without the 200 they use the whole
/// height.
#[test]
fn without_the_200_its_errors_are_seen_large() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::open();
    browser.go_to_file(&page(&folder));
    browser.drawn();
    let chart = "figure[data-chart=endings]";
    let legend = browser.text(&format!("{chart} .u-legend"));
    assert!(legend.contains("200") && legend.contains("500"), "{legend}");
    // the red of the light page's style sheet
    let red = format!(
        "(() => {{ const canvas = document.querySelector('{chart} canvas'); \
         const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data; \
         return Array.from({{ length: all.length / 4 }}, (_, n) => 4 * n) \
         .filter(n => all[n] === 0xc0 && all[n + 1] === 0x42 && all[n + 2] === 0x0a).length; }})()"
    );
    let thin = browser.eval(&red).as_u64().unwrap();
    assert!(thin > 0, "an error is seen");
    browser.click(&format!("{chart} .u-legend .u-series:nth-child(2) th"));
    browser.drawn();
    let large = browser.eval(&red).as_u64().unwrap();
    assert!(large > 5 * thin, "{thin} and then {large} pixels");
    browser.drag_across(&format!("{chart} .u-over"), (-120.0, 60.0));
    browser.drawn();
    let hidden = format!("document.querySelector('{chart} .whole').hidden");
    assert_eq!(browser.eval(&hidden), false, "a part of it is seen");
    assert_no_browser_problems(&browser);
}

#[test]
fn its_table_of_urls_is_sorted_by_a_click() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::open();
    browser.go_to_file(&page(&folder));
    let urls = "[...document.querySelectorAll('table.sortable td.url')]\
                .map(cell => new URL(cell.textContent).pathname)";
    browser.click("table.sortable th:first-child button");
    assert_eq!(browser.eval(urls), json!(["/bytes/5000", "/hw"]));
    browser.click("table.sortable th:first-child button");
    assert_eq!(browser.eval(urls), json!(["/hw", "/bytes/5000"]));
    let order = "document.querySelector('table.sortable th').ariaSort";
    assert_eq!(browser.eval(order), "descending");
    let falling = "[...document.querySelectorAll('table.sortable tr')].slice(1)\
                   .map(row => Number(row.lastElementChild.dataset.v)).every((v, n, all) => !n || all[n - 1] >= v)";
    browser.click("table.sortable th:last-child button");
    assert_eq!(browser.eval(falling), true, "figures begin with the largest");
    assert_no_browser_problems(&browser);
}

#[test]
fn it_is_whole_without_script_and_on_paper() {
    let folder = tempfile::tempdir().unwrap();
    let file = page(&folder);
    let mut browser = Browser::open();
    browser.scripts(false);
    browser.go_to_file(&file);
    for selector in ["h1", ".verdict", ".answer", ".tiles", ".still svg", "table", "pre"] {
        let there = format!("document.querySelector('{selector}').checkVisibility()");
        assert_eq!(browser.eval(&there), true, "{selector}");
    }
    assert_eq!(browser.eval("document.querySelectorAll('.plot').length"), 0);
    browser.scripts(true);
    browser.go_to_file(&file);
    browser.drawn();
    browser.media("light", "print");
    assert_eq!(browser.eval("document.querySelector('.still').checkVisibility()"), true);
    assert_eq!(browser.eval("document.querySelector('.plot').checkVisibility()"), false);
    assert!(browser.printed().starts_with(b"%PDF"));
    assert_no_browser_problems(&browser);
}

#[test]
fn the_page_fits_narrow_screens_and_dark_mode() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::open();
    browser.window(400, 800);
    browser.go_to_file(&page(&folder));
    browser.drawn();
    // wide tables scroll by themselves, the page does not
    let width = browser.eval("document.documentElement.scrollWidth");
    assert!(width.as_u64().unwrap() <= 400, "{width}");
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = browser.eval(paper);
    browser.media("dark", "screen");
    browser.drawn();
    assert_ne!(browser.eval(paper), light);
    let charts = browser.eval("document.querySelectorAll('figure[data-chart]').length");
    assert_eq!(browser.eval("document.querySelectorAll('figure.live .uplot').length"), charts);
    assert!(browser.screenshot().starts_with(b"\x89PNG"));
    assert_no_browser_problems(&browser);
}

/// The script formats figures in the same way as the tables.
#[test]
fn the_script_and_the_tables_write_figures_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Browser::open();
    browser.go_to_file(&page(&folder));
    let times = [0, 1, 999, 1_000, 999_600, 12_345_678, 1_230_000_000, 59_990_000_000]
        .into_iter()
        .chain([65_400_000_000, 3_725_000_000_000, 190_000_000_000_000]);
    for ns in times {
        let written = browser.eval(&format!("show.duration({ns} / 1e9)"));
        assert_eq!(written, show::duration(Nanos(ns)), "{ns} ns");
    }
    for rate in [0.0, 0.0123, 0.5, 9.996, 99.96, 100.04, 1_234.5, 2_000.0, 12_345.6, 1_234_567.0] {
        assert_eq!(browser.eval(&format!("show.rate({rate})")), show::rate(rate), "{rate}");
    }
    for share in [0.0, 0.000_001, 0.001_23, 0.012_34, 0.5, 0.999, 0.999_999, 1.0] {
        assert_eq!(browser.eval(&format!("show.share({share})")), show::share(share), "{share}");
    }
    assert_no_browser_problems(&browser);
}
