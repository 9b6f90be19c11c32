//! Journeys of a plan against the built-in site.

use crate::support::{Site, measured, run, whole};
use serde_json::Value;
use std::path::PathBuf;

fn written(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("journey-{name}"));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Users that log in once and send their token; with a setup and a teardown.
fn visit(site: &Site) -> String {
    let people = written("people.csv", "name,likes\nann,tea\nbob,rum\neve,milk\n");
    let people = PathBuf::from(people).file_name().unwrap().to_str().unwrap().to_owned();
    format!(
        "version = 1\nurl = '{}'\n[load]\nusers = 3\n[stop]\nrequests = 30\n\
         [[setup]]\nname = 'admin'\nurl = '/login?name=admin'\n\
         capture = {{ admin = {{ json = '/token' }} }}\n\
         [[feeder]]\nname = 'people'\nfile = '{people}'\norder = 'unique'\n\
         [[journey]]\nname = 'visit'\nrefresh = {{ step = 'login' }}\n\
         [[journey.step]]\nname = 'login'\nurl = '/login'\nquery = {{ name = '{{{{people.name}}}}' }}\n\
         once = true\ncapture = {{ token = {{ json = '$.token', scope = 'user' }} }}\n\
         [[journey.step]]\nname = 'me'\nurl = '/me'\n\
         headers = {{ Authorization = 'Bearer {{{{token}}}}' }}\n\
         expect = {{ body = {{ json = {{ '/name' = '{{{{people.name}}}}' }} }} }}\n\
         [[journey.step]]\nname = 'both'\n\
         [[journey.step.step]]\nname = 'hop'\nurl = '/redirect/1'\nexpect = {{ status = 302 }}\n\
         capture = {{ next = {{ header = 'Location' }} }}\n\
         [[journey.step.step]]\nname = 'land'\nurl = '{{{{next}}}}'\n\
         [[journey.step.step]]\nname = 'pay'\nurl = '/echo'\n\
         json = {{ likes = '{{{{people.likes}}}}', of = '{{{{admin}}}}', round = '{{{{iteration.number}}}}' }}\n\
         check = {{ body = {{ contains = 'tea' }}, time = '<60s' }}\n\
         tags = {{ kind = 'api' }}\ncapture = {{ of = {{ json = '/round', metric = true }} }}\n\
         [[teardown]]\nname = 'bye'\nurl = '/me'\nheaders = {{ Authorization = 'Bearer {{{{admin}}}}' }}\n",
        site.url("/")
    )
}

fn row<'a>(rows: &'a Value, key: &str, name: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| row[key] == name);
    found.unwrap_or_else(|| panic!("{name}: {rows:#}"))
}

#[test]
fn users_log_in_and_bring_their_token() {
    let site = Site::start(&[]);
    let plan = written("visit.toml", &visit(&site));
    let slo = "login: max<60s, both: failures<50%, kind=api: p50<60s, metric of: max<30";
    let line = [&plan, "--slo", slo, "--threads", "2"];
    let json = measured(&line, &[0, 4]);
    // three logins, and 30 rounds of four calls
    assert_eq!(whole(&json, "/outcomes/succeeded"), 123, "{:#}", json["failures"]);
    let rows = &json["per_url"];
    assert_eq!(row(rows, "name", "login")["count"], 3);
    assert_eq!(row(rows, "name", "me")["succeeded"], 30);
    let journeys = &json["journeys"];
    assert_eq!(row(&journeys["transactions"], "name", "visit")["succeeded"], 30);
    assert_eq!(row(&journeys["transactions"], "name", "both")["succeeded"], 30);
    assert_eq!(row(&journeys["metrics"], "name", "of")["max"], 29.0);
    assert_eq!(row(&json["by_tag"], "tag", "kind=api")["count"], 30);
    assert_eq!(row(rows, "name", "pay")["tags"]["kind"], "api");
    let pay = row(&journeys["steps"], "step", "pay");
    let (met, unmet) = (whole(pay, "/check_met"), whole(pay, "/check_unmet/count"));
    assert_eq!(met + unmet, 30, "{pay:#}");
    assert!(pay["check_unmet"]["example"].as_str().unwrap().contains("\"tea\" in it"), "{pay:#}");
    assert!(
        json["slo"].as_array().unwrap().iter().all(|slo| slo["met"] == true),
        "{:#}",
        json["slo"]
    );
}

#[test]
fn a_journey_sends_only_the_requests_of_its_plan() {
    let site = Site::start(&[]);
    let text = format!(
        "version = 1\nurl = '{}'\n[load]\nusers = 1\n[stop]\nrequests = 3\n[[journey]]\nname = 'j'\n\
         [[journey.step]]\nname = 's'\nmethod = 'POST'\nurl = '/hw'\nbody = 'x'\n",
        site.url("/")
    );
    run(&["run", &written("post.toml", &text), "--quiet"]);
    assert_eq!(site.served().requests, 3);
}

#[test]
fn missed_objectives_are_in_the_report() {
    let site = Site::start(&[]);
    let text = format!(
        "version = 1\nurl = '{}'\n[load]\nrate = '100/s'\n[stop]\nrequests = 5\n\
         [[journey]]\nname = 'j'\n[[journey.step]]\nname = 'look'\nurl = '/hw'\n\
         capture = {{ id = {{ regex = 'id=([0-9]+)' }} }}\n\
         [[journey.step]]\nname = 'use'\nurl = '/bytes/{{{{id}}}}'\n",
        site.url("/")
    );
    let ran = run(&["run", &written("missed.toml", &text), "--full"]).expect(&[1, 4]);
    for found in [
        "look: capture id found nothing 5 times: wanted a match of id=([0-9]+), searched",
        "\"hello world\"",
        "use: skipped 5 times: {{id}} has no value",
    ] {
        let flat = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(found), "{found}\n{}", ran.stdout);
    }
}

#[test]
fn a_wrong_journey_and_a_failed_setup_end_before_the_run() {
    let site = Site::start(&[]);
    let url = site.url("/");
    let head = format!("version = 1\nurl = '{url}'\n");
    let step = "[[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\nurl = '/{{nothing}}'\n";
    let ran = run(&["run", &written("wrong.toml", &format!("{head}{step}"))]).expect(&[2]);
    assert!(ran.stderr.contains("line 7: url: {{nothing}} is not defined"), "{ran:#?}");
    let step = step.replace("/{{nothing}}", "/hw");
    let setup = "[[setup]]\nname = 'key'\nurl = '/me'\n";
    let ran = run(&["run", &written("setup.toml", &format!("{head}{setup}{step}"))]).expect(&[1]);
    let text = "line 3: setup step \"key\": status: expected below 400, got 401";
    assert!(ran.stderr.contains(text), "{ran:#?}");
    let printed = run(&["run", &written("print.toml", &visit(&site)), "--print-plan"]).expect(&[0]);
    assert!(!printed.stdout.contains("milk"), "{}", printed.stdout);
    assert!(printed.stdout.contains("[[journey.step]]"), "{}", printed.stdout);
}
