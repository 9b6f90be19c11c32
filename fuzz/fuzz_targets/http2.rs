//! Any bytes as what a server of HTTP/2 says.
#![no_main]

#[path = "../../crates/http/http2/tests/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::server_bytes(data));
