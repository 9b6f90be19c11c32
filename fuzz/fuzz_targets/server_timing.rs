//! Arbitrary bytes as a Server-Timing value: bounds hold, and a list parses like its parts.
#![no_main]

#[path = "../../crates/http/protocol/tests/http1_checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::server_timing(data));
