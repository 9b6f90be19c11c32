//! What the program says limits a real server: the site's weaknesses over real sockets, and healthy
//! servers. The truth set at every load is in virtual time, in the tests of `sim`; here it is that the
//! evidence arrives. A busy machine may add to a finding, so it is looked for, not counted.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod guide;
mod healthy;
mod loss;
mod server;
mod sut;

use serde_json::Value;
use support::{Site, measure};

/// Findings of a run against a site with these options, the surest first.
#[track_caller]
fn findings(site: &[(&str, &str)], path: &str, run: &[&str]) -> Vec<(String, String)> {
    let site = Site::start(site);
    let url = site.url(path);
    let mut args = vec![url.as_str()];
    args.extend(run);
    told(&measure(&args))
}

/// (id, evidence) of the findings in a run's JSON.
fn told(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let found = report["findings"].as_array().unwrap();
    found.iter().map(|one| (text(&one["id"]), text(&one["evidence"]))).collect()
}

#[track_caller]
fn names(id: &str, found: &[(String, String)]) {
    assert!(found.iter().any(|(known, _)| known == id), "no {id} in {found:#?}");
}
