//! `loadstone ramp` as a user runs it, against servers in this process. What a busy machine may make
//! of the figures is not tested here: the curves are, in virtual time, in `crates/load/sim/tests/ramp.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod courses;
mod trouble;
mod wrong;

/// Codes of a ramp that came to its end: on a busy machine no step may be usable (4).
const ENDED: &[i32] = &[0, 4];

/// A command line as it is typed, and what has no place in one: a URL.
fn words<'a>(line: &'a str, last: &'a str) -> Vec<&'a str> {
    line.split_whitespace().chain([last]).collect()
}
