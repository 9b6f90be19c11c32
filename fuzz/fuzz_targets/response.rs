//! Arbitrary bytes as responses: the same result for all cuts, every byte counted once.
#![no_main]

#[path = "../../crates/http/protocol/tests/http1_checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::response(data));
