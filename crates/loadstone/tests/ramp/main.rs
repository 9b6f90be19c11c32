//! `loadstone ramp` from a user's view, against servers in this process. Figures that depend on the
//! machine are not tested here: the curves are, in virtual time, in
//! `crates/load/sim/tests/ramp.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod courses;
mod trouble;
mod wrong;

/// Exit codes of a completed ramp: on a busy machine no step may be usable (4).
const ENDED: &[i32] = &[0, 4];

/// A command line as typed, and a part that cannot be in one: a URL.
fn words<'a>(line: &'a str, last: &'a str) -> Vec<&'a str> {
    line.split_whitespace().chain([last]).collect()
}
