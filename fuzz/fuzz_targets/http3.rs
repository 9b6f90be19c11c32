//! Any bytes as what a server of HTTP/3 says on its streams.
#![no_main]

#[path = "../../crates/http/protocol/tests/http3_checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::server_bytes(data));
