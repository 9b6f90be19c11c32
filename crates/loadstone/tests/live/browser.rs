//! `loadstone ui` from a user's view: in a real browser, by clicks.

use crate::support::browser::Browser;
use crate::support::{Site, finish, program, run};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

/// Program that runs until the test ends it.
struct RunningProgram(Child);

impl RunningProgram {
    fn start(args: &[&str]) -> RunningProgram {
        let mut command = program(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        RunningProgram(command.spawn().unwrap())
    }

    /// Returns the first line that the program prints.
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts the user interface for the store of a test.
fn ui(store: &Path) -> (RunningProgram, String) {
    let mut ui =
        RunningProgram::start(&["ui", "--listen", "0", "--store", &store.display().to_string()]);
    let url = ui.first_line();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    (ui, url)
}

fn measure(store: &Path, url: &str) {
    let args = ["run", "-n", "200", "-q", "--store", &store.display().to_string(), url];
    // a busy machine may make such a short run INVALID
    run(&args).expect(&[0, 4]);
}

/// Opens the target of a click.
#[track_caller]
fn follow(browser: &mut Browser, selector: &str, path: &str) {
    browser.follow(selector);
    assert_eq!(browser.eval("location.pathname"), json!(path));
}

#[test]
fn results_are_found_looked_at_tagged_compared_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("results.db");
    let site = Site::start(&[]);
    measure(&store, &site.url("/hw"));
    measure(&store, &site.url("/bytes/2000").replace("127.0.0.1", "localhost"));
    let (_ui, url) = ui(&store);
    let mut browser = Browser::open();
    browser.go(&url);
    let rows = |browser: &mut Browser| browser.eval("document.querySelectorAll('tbody tr').length");
    assert_eq!(rows(&mut browser), json!(2));
    browser.keep_shot("ui-list");
    browser.fits_a_phone("ui-list");
    let cards = "[...document.querySelectorAll('.results td:not(:empty)')].every(one => \
                 { const box = one.getBoundingClientRect(); return box.width > 0 && box.right <= innerWidth })";
    assert_eq!(browser.eval(cards), json!(true));

    sorted_and_filtered(&mut browser);
    browser.go(&url);
    browser.eval("document.querySelector('[name=name]').value = 'BYTES'");
    follow(&mut browser, ".filter button", "/");
    assert_eq!(rows(&mut browser), json!(1));
    follow(&mut browser, "tbody a", "/result/run-2");
    assert!(browser.text("h1").contains("/bytes/2000"));
    browser.keep_shot("ui-result");
    browser.fits_a_phone("ui-result");

    browser.eval("document.querySelector('input[name=tag]').value = 'before'");
    follow(&mut browser, "form.inline button", "/result/run-2");
    assert!(browser.text("form.tag").contains("before"));
    browser.go(&url);
    browser.eval("document.querySelector('[name=tag]').value = 'before'");
    follow(&mut browser, ".filter button", "/");
    assert_eq!(rows(&mut browser), json!(1));
    assert!(browser.text("tbody .tag").contains("before"));
    browser.go(&format!("{url}result/run-2"));
    follow(&mut browser, "form.tag button", "/result/run-2");
    assert_eq!(browser.eval("document.querySelector('form.tag')"), json!(null));

    browser.go(&url);
    browser.eval("document.querySelectorAll('tbody input').forEach((box) => box.click())");
    follow(&mut browser, "form[action='/compare'] .below button", "/compare");
    assert!(browser.text("h1").contains("run-1, run-2 side by side"));
    browser.keep_shot("ui-compare");
    browser.fits_a_phone("ui-compare");
    browser.go(&format!("{url}compare/page?id=run-1&id=run-2"));
    assert!(browser.text("h1").contains("2 runs"));

    browser.go(&format!("{url}result/run-1"));
    follow(&mut browser, "a[href$='/delete']", "/result/run-1/delete");
    follow(&mut browser, ".danger", "/");
    assert_eq!(rows(&mut browser), json!(1));
    assert_eq!(browser.problems(), &[] as &[String]);
}

/// Clicking a column's heading sorts by it; selecting a host leaves its results.
fn sorted_and_filtered(browser: &mut Browser) {
    let ids = "[...document.querySelectorAll('tbody .id')].map(cell => cell.textContent)";
    let heads = "[...document.querySelectorAll('thead th')].map(head => head.textContent)";
    for name in ["Result", "p99"] {
        let place = browser.eval(&format!("{heads}.indexOf('{name}') + 1"));
        let head = format!("thead th:nth-child({place}) button");
        browser.click(&head);
        let falling = browser.eval(ids);
        browser.click(&head);
        let rising = browser.eval(ids);
        let rising: Vec<_> = rising.as_array().unwrap().iter().rev().cloned().collect();
        assert_eq!(falling, json!(rising), "{name}");
        assert_eq!(falling.as_array().unwrap().len(), 2, "{name}");
        let values = format!(
            "[...document.querySelectorAll('tbody td:nth-child({place})')].map(cell => +cell.dataset.v)"
        );
        let values = browser.eval(&values);
        assert!(values[0].as_f64() <= values[1].as_f64(), "{name}: {values}");
    }
    let hosts = "[...document.querySelector('[name=host]').options].map(one => one.value).sort()";
    assert_eq!(browser.eval(hosts), json!(["", "127.0.0.1", "localhost"]));
    browser.eval("document.querySelector('[name=host]').value = 'localhost'");
    follow(browser, ".filter button", "/");
    assert_eq!(browser.eval(ids), json!(["run-2"]));
}

/// Three runs of one name have a line in the list; clicking it opens their trend.
#[test]
fn the_trend_of_a_gate_is_opened_from_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("results.db");
    let site = Site::start(&[]);
    for _ in 0..3 {
        measure(&store, &site.url("/hw"));
    }
    let (_ui, url) = ui(&store);
    let mut browser = Browser::open();
    browser.go(&url);
    follow(&mut browser, "tbody .spark a", "/trend");
    assert!(browser.text("h1").contains("/hw"));
    assert_eq!(browser.eval("document.querySelectorAll('.graphs figure').length"), json!(4));
    let points = "[...document.querySelectorAll('.graphs figure')]\
                  .map(one => one.querySelectorAll('circle').length)";
    assert_eq!(browser.eval(points), json!([3, 3, 3, 3]));
    browser.keep_shot("ui-trend");
    browser.fits_a_phone("ui-trend");
    assert_eq!(browser.problems(), &[] as &[String]);
}

#[test]
fn a_torture_is_listed_and_its_page_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("results.db");
    let site = Site::start(&[("range", "two-hosts")]);
    let name = store.display().to_string();
    let words = ["torture", "--no-audit", "--quick", "--fail-on", "low", "--only", "S-03"];
    let words = [&words[..], &["-q", "--store", &name]].concat();
    run(&[&words[..], &[&site.url("/page")]].concat()).expect(&[1]);
    let (_ui, url) = ui(&store);
    let mut browser = Browser::open();
    browser.go(&format!("{url}?kind=torture"));
    let row = browser.text("tbody tr");
    assert!(row.contains("fail") && row.contains("1 finding in 1 case"), "{row}");
    browser.keep_shot("ui-torture");
    follow(&mut browser, "tbody a", "/result/torture-1");
    browser.go(&format!("{url}result/torture-1/page"));
    let page = browser.text("body");
    assert!(page.contains("S-03") && page.contains("two Host fields"), "{page}");
    assert_eq!(browser.problems(), &[] as &[String]);
}

#[test]
fn a_running_test_is_followed_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("results.db");
    let site = Site::start(&[]);
    let (_ui, url) = ui(&store);
    let mut browser = Browser::open();
    browser.go(&url);
    assert!(browser.text("#nothing").contains("there is no results store"));
    let store_name = store.display().to_string();
    let plan = folder.path().join("journey.toml");
    let steps = format!(
        "version = 1\nurl = \"{}\"\n[load]\nthink = \"5ms\"\n[[journey]]\nname = \"visit\"\n\
         [[journey.step]]\nname = \"front page\"\nurl = \"/hw\"\n\
         [[journey.step]]\nname = \"pictures\"\nurl = \"/bytes/2000\"\n",
        site.url("/")
    );
    std::fs::write(&plan, steps).unwrap();
    let run = ["run", "-d", "10m", "--store", &store_name, &plan.to_string_lossy()];
    let run = RunningProgram::start(&run);
    open_live(&mut browser, &url, "run-1");
    // two points of a line are two seconds
    browser.wait_for("document.querySelector('#times polyline').points.length >= 2");
    browser.wait_for("document.querySelector('#facts').textContent.includes('calls due')");
    let steps = "[...document.querySelectorAll('#urls tr')].map(row => row.cells[0].textContent)";
    browser.wait_for(&format!("{steps}.length >= 2"));
    assert_eq!(browser.eval(steps), json!(["front page", "pictures"]));
    assert_eq!(browser.text("#progress"), "running");
    browser.keep_shot("ui-live");
    browser.fits_a_phone("ui-live");
    let busy = finish(curl_delete(&url), b"");
    assert!(busy.stdout.contains("is still running"), "{}", busy.stdout);
    follow_to_the_end(&mut browser, &run, "run-1");
}

/// Starts a test that runs longer than any wait, follows it in the browser until the page has
/// updated, and interrupts it; the page then redirects to the result.
#[track_caller]
fn follow_a_test(args: &[&str], id: &str, moved: &str) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("results.db");
    let site = Site::start(&[]);
    let (_ui, url) = ui(&store);
    let mut browser = Browser::open();
    let (name, page) = (store.display().to_string(), site.url("/hw"));
    let going = RunningProgram::start(&[args, &["--store", &name, &page]].concat());
    open_live(&mut browser, &url, id);
    browser.wait_for(moved);
    assert_eq!(browser.text("#progress"), "running");
    browser.keep_shot(&format!("ui-live-{id}"));
    follow_to_the_end(&mut browser, &going, id);
}

#[test]
fn a_running_ramp_is_followed_to_its_end() {
    let ramp = ["ramp", "--from", "50/s", "--to", "500/s", "--step", "50/s", "--hold", "1s"];
    follow_a_test(&ramp, "ramp-1", "document.querySelectorAll('#steps tr').length >= 2");
}

#[test]
fn a_running_comparison_is_followed_to_its_end() {
    let site = Site::start(&[]);
    let other = site.url("/hw");
    let compare = ["compare", "--think", "5ms", "--blocks", "20", "-d", "500ms", &other];
    let trials = "+(document.querySelector('#facts td + td') || {}).textContent > 0";
    follow_a_test(&compare, "compare-1", trials);
}

/// Polls the list until it includes the test, and opens its live view.
#[track_caller]
fn open_live(browser: &mut Browser, url: &str, id: &str) {
    let link = format!("tbody a[href='/result/{id}/live']");
    browser.go(url);
    while browser.eval(&format!("document.querySelector(\"{link}\") === null")) == json!(true) {
        browser.go(url);
    }
    follow(browser, &link, &format!("/result/{id}/live"));
}

/// The page redirects to the result when the test is interrupted.
#[track_caller]
fn follow_to_the_end(browser: &mut Browser, going: &RunningProgram, id: &str) {
    browser.open_page_by(|| going.interrupt());
    assert_eq!(browser.eval("location.pathname"), json!(format!("/result/{id}")));
    let state = browser.text(".state");
    // a comparison's partial figures are a separate result
    assert!(state == "interrupted" || id.starts_with("compare") && state == "finished", "{state}");
    assert_eq!(browser.problems(), &[] as &[String]);
}

/// Deletes run-1 like the page.
fn curl_delete(url: &str) -> std::process::Command {
    let mut command = std::process::Command::new("curl");
    let origin = url.trim_end_matches('/');
    command.args(["-s", "-X", "POST", "-H", &format!("Origin: {origin}")]);
    command.arg(format!("{url}result/run-1/delete"));
    command
}

#[test]
fn wrong_input_is_reported() {
    for (args, part) in [
        (&["ui", "--listen", "x"][..], "write a port like 8080"),
        (&["ui", "--store", "none"], "has nothing to show"),
        (&["ui", "--store", ":memory:"], "has nothing to show"),
    ] {
        let errors = run(args).expect(&[2]).stderr;
        assert!(errors.contains(part), "{errors}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let errors = run(&["ui", "--listen", &port, "--store", "x.db"]).expect(&[2]).stderr;
    assert!(errors.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{errors}");
}
