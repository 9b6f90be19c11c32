//! `loadstone check` from outside: plans against the built-in site, the norm site and Apache.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod apache;
mod built_in;
mod norm;
mod program;
mod servers;
#[cfg(feature = "h3")]
mod versions;

use serde_json::Value;
use support::{Ran, text};

/// Returns every failed step of `loadstone check … --json -`, with its first difference.
#[track_caller]
fn failed(document: &Value) -> Vec<String> {
    let steps = document["steps"].as_array().unwrap();
    let failed = steps.iter().filter(|step| step["state"] == "failed");
    failed.map(|step| format!("{}: {}", text(step, "/name"), step["difference"])).collect()
}

/// Writes a plan into a folder and checks it with more options; standard output is the JSON.
#[track_caller]
fn check(folder: &std::path::Path, plan: &str, options: &[&str]) -> Ran {
    let file = folder.join("plan.toml");
    std::fs::write(&file, plan).unwrap();
    let mut arguments = vec!["check", file.to_str().unwrap(), "--json", "-"];
    arguments.extend(options);
    support::run(&arguments)
}
