//! Bottlenecks of a real server: the weaknesses of the site over real sockets, and healthy servers.
//! The complete truth set is tested in virtual time in `sim`; these tests check that the evidence
//! arrives. A busy machine may add findings, so tests search for a finding instead of counting.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod guide;
mod healthy;
mod loss;
mod server;
mod sut;

use serde_json::Value;
use support::Site;
use support::process::measure;

/// Findings of a run against a site with these options, the surest first.
#[track_caller]
fn findings(site: &[(&str, &str)], path: &str, run: &[&str]) -> Vec<(String, String)> {
    let site = Site::start(site);
    let url = site.url(path);
    let mut args = vec![url.as_str()];
    args.extend(run);
    findings_of(&measure(&args))
}

/// Returns (id, evidence) of the findings in a run's JSON.
fn findings_of(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let found = report["findings"].as_array().unwrap();
    found.iter().map(|one| (text(&one["id"]), text(&one["evidence"]))).collect()
}

/// Number of attempts in which the right result must appear once: other processes may load this
/// machine while a real server is measured.
const TRIES: usize = 6;

/// # Panics
/// Panics with the reason of the last attempt, if none succeeds.
#[track_caller]
fn succeeds_in_some_attempt(mut once: impl FnMut() -> Result<(), String>) {
    let mut last = String::new();
    for _ in 0..TRIES {
        match once() {
            Ok(()) => return,
            Err(why) => last = why,
        }
    }
    panic!("in none of {TRIES} tries: {last}");
}

/// Checks that a run against a site with these options finds this; each attempt restarts the site.
#[track_caller]
fn shows(id: &str, site: &[(&str, &str)], path: &str, run: &[&str]) {
    succeeds_in_some_attempt(|| has(id, &findings(site, path, run)));
}

/// Checks that this is among the findings; the error lists all of them.
fn has(id: &str, found: &[(String, String)]) -> Result<(), String> {
    let named = found.iter().any(|(known, _)| known == id);
    if named { Ok(()) } else { Err(format!("no {id} in {found:#?}")) }
}

#[track_caller]
fn names(id: &str, found: &[(String, String)]) {
    assert_eq!(has(id, found), Ok(()));
}
