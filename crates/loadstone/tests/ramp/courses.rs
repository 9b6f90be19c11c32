//! The steps that run, and the output that is written.

use super::{ENDED, words};
use crate::support::process::run;
use crate::support::{Site, number, text};
use serde_json::Value;

fn steps(report: &Value) -> &Vec<Value> {
    report["steps"].as_array().unwrap()
}

fn levels(report: &Value, purpose: &str) -> Vec<f64> {
    let of = steps(report).iter().filter(|step| step["purpose"] == purpose);
    of.map(|step| number(step, "/level")).collect()
}

#[track_caller]
fn ramp(args: &[&str]) -> Value {
    let all: Vec<&str> =
        ["ramp", "--json", "-", "--hold", "200ms"].iter().chain(args).copied().collect();
    run(&all).expect(ENDED).json()
}

/// The number of users is whole. With one server of 5 ms, throughput is one over the service time
/// for any number of users, and that is the peak.
#[test]
fn a_population_at_a_server_that_serves_one_at_a_time() {
    let site = Site::start(&[("service", "5ms")]);
    let url = site.url("/hw");
    let report = ramp(&words("--population --from 1 --to 4 --step 1 --repeat 2", &url));
    assert_eq!(text(&report, "/schema"), "loadstone.ramp/1");
    assert_eq!(text(&report, "/axis"), "population");
    assert_eq!(levels(&report, "up"), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
    for step in steps(&report) {
        // never more than the server's capacity, however slow the machine
        assert!(number(step, "/throughput_per_s") <= 205.0, "{step:#}");
        assert_eq!(text(step, "/schema"), "loadstone.run/1");
        assert_eq!(text(step, "/label"), url);
    }
    if report["verdict"]["state"] != "INVALID" {
        assert!(number(&report, "/curves/0/peak_per_s/value") <= 205.0);
    }
}

#[test]
fn a_ramp_goes_up_down_and_beyond_the_knee() {
    let site = Site::start(&[("service", "20ms")]);
    let report =
        ramp(&words("--from 10/s --to 200/s --factor 4 --down --overload", &site.url("/hw")));
    assert_eq!(levels(&report, "up"), [10.0, 40.0, 160.0, 200.0]);
    assert_eq!(levels(&report, "down"), [200.0, 160.0, 40.0, 10.0]);
    // with a knee there is an overload, and after it a recovery
    if report["knee"].is_object() {
        assert_eq!(levels(&report, "overload").len(), 4);
        assert_eq!(levels(&report, "recovery").len(), 1);
        assert!(
            report["overload"]["recovered"].is_boolean()
                || report["overload"]["recovery_s"].is_null()
        );
    }
}

#[test]
fn several_targets_take_turns() {
    let (slow, fast) = (Site::start(&[("service", "10ms")]), Site::start(&[("service", "1ms")]));
    let (slow, fast) = (format!("slow={}", slow.url("/hw")), format!("fast={}", fast.url("/hw")));
    let report = ramp(&["--population", "--from", "1", "--to", "2", &slow, &fast]);
    assert_eq!(report["labels"], serde_json::json!(["slow", "fast"]));
    let order: Vec<&str> = steps(&report).iter().map(|step| text(step, "/label")).collect();
    assert_eq!(order, ["slow", "fast", "fast", "slow"]);
    assert_eq!(report["curves"].as_array().unwrap().len(), 2);
    let bound = steps(&report).iter().filter(|step| step["label"] == "slow");
    assert!(bound.clone().all(|step| number(step, "/throughput_per_s") <= 105.0));
}

#[test]
fn a_search_ends_at_an_objective_that_always_holds() {
    let site = Site::start(&[]);
    let args =
        ["--population", "--to", "4", "--find", "failures<50%", "--no-overload", &site.url("/hw")];
    let report = ramp(&args);
    let end = &report["capacity"]["end"];
    // otherwise the search can only end at the client's own limit
    assert!(
        end == "never-missed" || end == "client-limited" || report["capacity"].is_null(),
        "{end}"
    );
    assert!(!levels(&report, "search").is_empty());
}

#[test]
fn an_objective_that_is_never_met_is_missed() {
    let site = Site::start(&[("service", "5ms")]);
    let line = "ramp --population --from 1 --to 2 --hold 200ms --slo p99<1ms --json -";
    let found = run(&words(line, &site.url("/hw"))).expect(&[1, 4]);
    let report = found.json();
    assert!(steps(&report).iter().all(|step| step["met"] == false), "{report:#}");
    if found.code == 4 {
        // on a busy machine an unusable step below the lowest usable one leaves the result open
        assert_eq!(steps(&report)[0]["client_limited"], true, "{report:#}");
    }
    if found.code == 1 {
        assert_eq!(text(&report, "/capacity/end"), "never-met");
        assert_eq!(text(&report, "/capacity/objective"), "p99<1ms");
    }
}

#[test]
fn a_shuffled_ramp_has_the_same_steps_in_the_order_of_its_seed() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let order = |seed: &str| {
        let line =
            "ramp --json - --population --from 1 --to 6 --step 1 --shuffle --hold 50ms --seed";
        let all = [words(line, seed), vec![&url]].concat();
        levels(&run(&all).expect(ENDED).json(), "up")
    };
    let (one, two) = (order("1"), order("2"));
    assert_eq!(one, order("1"));
    assert_ne!(one, two);
    let mut sorted = one.clone();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(sorted, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn csv_has_a_row_per_step_and_html_a_page() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (csv, html, json) = (path("r.csv"), path("r.html"), path("r.json"));
    let url = site.url("/hw");
    let steps_of = words("ramp --population --from 1 --to 3 --step 1 --hold 100ms", &url);
    let files = ["--csv", &csv, "--html", &html, "--json", &json];
    let found = run(&[&steps_of[..], &files].concat()).expect(ENDED);
    let lines = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(std::fs::read_to_string(&html).unwrap().contains("<svg"));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(steps(&report).len(), 3);
    assert!(found.stdout.contains("users"), "{}", found.stdout);
    assert!(found.stdout.lines().all(|line| line.chars().count() <= 80), "{}", found.stdout);
}

#[test]
fn a_plan_is_the_base_of_every_step() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("p.toml");
    let text = format!("version = 1\nurl = '{}'\n[request]\nmethod = 'HEAD'\n", site.url("/hw"));
    std::fs::write(&plan, text).unwrap();
    let report = ramp(&["--population", "--to", "1", &plan.to_string_lossy()]);
    assert_eq!(report["plan"]["request"]["method"], "HEAD");
    assert!(steps(&report).iter().all(|step| number(step, "/bytes/body") < 1.0));
}
