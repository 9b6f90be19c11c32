//! Any bytes as a Server-Timing value: bounds that hold, a list read as its parts.
#![no_main]

#[path = "../../crates/wire/tests/checks/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::server_timing(data));
