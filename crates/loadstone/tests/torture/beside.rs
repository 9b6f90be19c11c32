//! A background load during the cases: their effect on regular users.

use super::{outcome, support};
use serde_json::Value;
use support::process::run;
use support::{Site, text};

/// Runs three cases during a load of 100 calls per second.
fn beside(switches: &str, code: i32) -> Value {
    let site = Site::start(&[("range", switches)]);
    let url = site.url(faulty::PATH);
    let only = ["torture", "--quick", "--no-shrink", "--only", "F-09,S-01"];
    let load = ["--beside-rate", "100/s", "--json", "-"];
    run(&[&only[..], &load[..], &[&url]].concat()).expect(&[code]).json()
}

fn felt<'a>(document: &'a Value, id: &str) -> &'a Value {
    let cases = document["beside"]["cases"].as_array().unwrap();
    cases.iter().find(|case| text(case, "/case") == id).unwrap()
}

#[test]
fn a_crash_affects_the_background_load() {
    let document = beside("crashes", 1);
    assert_eq!(outcome(&document, "F-09"), "denied", "{document:#}");
    let crash = felt(&document, "F-09");
    let (due, lost) = (crash["due"].as_u64().unwrap(), crash["lost"].as_u64().unwrap());
    // the case takes half a second per crash, at 100 calls per second
    assert!(due > 30 && lost * 20 > due, "{crash:#}");
    let notes = document["cases"][0]["notes"].to_string();
    assert!(notes.contains("the background load lost"), "{notes}");
    assert_eq!(crash["felt"], true);
    let run = &document["beside"]["run"];
    assert_eq!(text(run, "/schema"), "loadstone.run/1");
    assert!(run["outcomes"]["due"].as_u64().unwrap() >= due, "{run:#}");
}

#[test]
fn a_correct_server_has_no_finding_under_background_load() {
    let mut document = beside("none", 0);
    // a stalled machine spoils the p99 of a second, and only two follow the case
    for _ in 0..2 {
        if felt(&document, "F-09")["recovery_s"].is_null() {
            document = beside("none", 0);
        }
    }
    assert!(document["beside"]["base"]["answered"].as_u64().unwrap() > 0, "{document:#}");
    assert!(felt(&document, "F-09")["recovery_s"].is_number(), "{document:#}");
    assert_eq!(outcome(&document, "F-09"), "pass");
}

#[test]
fn a_background_plan_lasts_as_long_as_the_cases() {
    let site = Site::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("good.toml");
    let plan = |more: &str| {
        let text = format!("version = 1\n{more}\n[[targets]]\nurl = \"{}\"\n", site.url("/hw"));
        std::fs::write(&path, text).unwrap();
    };
    let only = ["torture", "--quick", "--only", "S-01", "--json", "-", "--beside"];
    let name = path.to_str().unwrap();
    plan("[load]\nrate = \"50/s\"\n[stop]\nduration = \"100ms\"\n");
    let document = run(&[&only[..], &[name, &site.url("/hw")]].concat()).expect(&[0]).json();
    assert!(document["beside"]["base"]["due"].as_u64().unwrap() > 50, "{document:#}");
    plan("[request]\nfollow = 3\n");
    let refused = run(&[&only[..], &[name, &site.url("/hw")]].concat()).expect(&[2]);
    assert!(refused.stderr.contains("good.toml"), "{refused:?}");
    let dry = ["torture", "--dry-run", "--beside-rate", "50/s", &site.url("/hw")];
    let output = run(&dry).expect(&[0]).stdout;
    assert!(output.contains("Background load: open loop at 50/s"), "{output}");
}

#[test]
fn load_and_cases_share_the_limit_on_requests() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let load = ["torture", "--dry-run", "--only", "S-01", "--beside-rate", "90/s"];
    let bound = |most| run(&[&load[..], &["--requests-max", most, &url]].concat());
    let output = bound("120").expect(&[0]).stdout;
    let rest = output.lines().find(|line| line.contains("requests per second")).unwrap();
    assert!(rest.ends_with(" 30"), "{output}");
    let refused = bound("90").expect(&[2]).stderr;
    assert!(refused.contains("90/s leaves nothing of --requests-max 90/s"), "{refused}");
}

/// A value of a journey may lead to a server whose owner has not given permission.
#[test]
fn a_load_with_arbitrary_targets_is_refused() {
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let plan = "version = 1\nurl = 'http://127.0.0.1:1/'\n[load]\nrate = '5/s'\n\
                [[feeder]]\nname = 'f'\ngenerate = { v = ['127.0.0.1:1'] }\n\
                [[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\nurl = 'http://{{f.v}}/'\n";
    let file = support::keep(folder.path(), "plan.toml", plan);
    let args = ["torture", "--dry-run", "--only", "S-01", "--beside", &file, &site.url("/hw")];
    let ran = run(&args).expect(&[2]);
    assert!(ran.stderr.contains("the host of step \"s\" comes from a variable"), "{ran:#?}");
}
