//! The load client against the defects of the firing range: no response panics it, and each defect
//! is named.

use super::support;
use serde_json::Value;
use support::{Site, run};

/// Returns the failure classes of four calls, and of the first call.
fn failures(switch: &str, path: &str, more: &[&str]) -> Vec<String> {
    let site = Site::start(&[("range", switch)]);
    let url = site.url(path);
    // only requests that hang should time out
    let patience = if switch == "hangs-on-nul" { "400ms" } else { "10s" };
    let mut arguments = vec!["run", &url, "-n", "4", "-c", "1", "--timeout", patience];
    arguments.extend(["--json", "-"]);
    arguments.extend(more);
    // 3: nothing could be measured; 4: the measurement is invalid
    let document: Value = run(&arguments).expect(&[0, 1, 3, 4]).json();
    let counted = document["failures"].as_array().unwrap().iter().map(|one| &one["class"]);
    let first = &document["first_call"]["failure"]["class"];
    counted.chain([first]).filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn no_range_defect_panics_the_client_and_each_is_reported() {
    let nul = "/page?%00";
    for (switch, path, more, named) in [
        ("none", "/page", &[][..], ""),
        ("no-date", "/page", &[], ""),
        ("fails-on-nul", nul, &[], "status"),
        ("hangs-on-nul", nul, &[], "client-timo"),
        ("dies-on-nul", nul, &[], "conn"),
        ("crashes", nul, &[], "conn"),
        ("head-body", "/page", &["--method", "HEAD"], "unasked"),
        ("ignores-close", "/page", &["-H", "Connection: close"], ""),
        ("limits-fail", "/page", &["-H", &format!("X: {}", "a".repeat(9_000))], "status"),
        ("lost-error", "/page", &["-H", &format!("X: {}", "a".repeat(9_000))], "connreset"),
        ("silent-refusal", "/page", &["-H", "Expect: x"], "closed-early"),
    ] {
        let classes = failures(switch, path, more);
        assert_eq!(classes.is_empty(), named.is_empty(), "{switch}: {classes:?}");
        assert!(classes.iter().all(|class| class.starts_with(named)), "{switch}: {classes:?}");
    }
}
