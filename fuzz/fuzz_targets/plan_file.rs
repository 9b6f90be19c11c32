//! Arbitrary bytes as a plan file: either accepted or refused with a message.
#![no_main]

#[path = "../../crates/load/plan/tests/checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::plan_file(data));
