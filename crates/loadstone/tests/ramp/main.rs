//! `loadstone ramp` as a user runs it, against servers in this process. Figures that depend on the
//! machine are not tested here; `crates/load/sim/tests/ramp.rs` tests the curves in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod courses;
mod trouble;
mod wrong;

/// Exit codes of a completed ramp; on a busy machine it may be that no step is usable (4).
const ENDED: &[i32] = &[0, 4];

/// Splits a typed command line into words, plus a word that cannot be typed there: a URL.
fn words<'a>(line: &'a str, last: &'a str) -> Vec<&'a str> {
    line.split_whitespace().chain([last]).collect()
}
