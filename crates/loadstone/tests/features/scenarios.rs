//! Several loads at once, and loads in stages, against the built-in site.

use crate::support::{Site, measured, run, whole};
use std::path::PathBuf;

fn written(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("scenario-{name}"));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn two(site: &Site) -> String {
    format!(
        "version = 1\n\
         [[targets]]\nurl = '{0}'\nname = 'front'\n\
         [[targets]]\nurl = '{0}login?name=ann'\nname = 'login'\n\
         [[scenario]]\nname = 'visiting'\ntargets = ['front']\n\
         load = {{ stages = '200ms:0..4, 400ms:4, 200ms:0', think = '5ms' }}\n\
         [[scenario]]\nname = 'signing'\ntargets = ['login']\nstart = '200ms'\n\
         duration = '400ms'\nload = {{ rate = '50/s' }}\n",
        site.url("/")
    )
}

#[test]
fn each_scenario_has_its_load_and_its_figures() {
    let site = Site::start(&[]);
    let plan = written("two.toml", &two(&site));
    let line = [&plan, "--threads", "2", "--slo", "signing: p99<60s, visiting: failures<1%"];
    let json = measured(&line, &[0, 4]);
    let rows = &json["by_scenario"];
    assert_eq!((&rows[0]["name"], &rows[1]["name"]), (&"visiting".into(), &"signing".into()));
    // 50 a second for 400 ms
    assert_eq!(whole(&json, "/by_scenario/1/outcomes/due"), 20, "{rows:#}");
    assert_eq!(whole(&json, "/by_scenario/1/intended"), 20);
    assert!(rows[0]["intended"].is_null());
    let due = |row: usize| whole(&json, &format!("/by_scenario/{row}/outcomes/due"));
    assert_eq!(due(0) + due(1), whole(&json, "/outcomes/due"));
    let of = |row: usize| whole(&json, &format!("/per_url/{row}/count"));
    assert_eq!(of(0).max(of(1)), due(0), "targets are their scenario's: {:#}", json["per_url"]);
    assert_eq!(json["slo"].as_array().unwrap().len(), 2);
    assert_eq!(json["load"], "2 scenarios at once: visiting, signing, 800 ms");
}

#[test]
fn a_single_scenario_has_figures_as_well() {
    let site = Site::start(&[]);
    let text = format!(
        "version = 1\n[[targets]]\nurl = '{}'\nname = 'front'\n[[scenario]]\nname = 'a'\n\
         targets = ['front']\nload = {{ rate = '100/s' }}\nduration = '500ms'\n",
        site.url("/")
    );
    let plan = written("single.toml", &text);
    let json = measured(&[&plan, "--slo", "a: failures<50%, a: p50<60s"], &[0, 4]);
    assert_eq!(whole(&json, "/by_scenario/0/outcomes/due"), 50, "{:#}", json["by_scenario"]);
    assert_eq!(json["slo"][0]["met"], true, "{:#}", json["slo"]);
    assert!(json["slo"][1]["figure"].is_number(), "{:#}", json["slo"]);
}

#[test]
fn options_of_a_single_load_are_refused_with_scenarios() {
    let site = Site::start(&[]);
    let plan = written("refused.toml", &two(&site));
    let ran = run(&["run", &plan, "-c", "5"]).expect(&[2]);
    assert!(ran.stderr.contains("the plan has scenarios"), "{}", ran.stderr);
}
