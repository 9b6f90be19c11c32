//! Arbitrary bytes as a chunked body, compared with the simplest possible reader.
#![no_main]

#[path = "../../crates/http/protocol/tests/http1_checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::chunked(data));
