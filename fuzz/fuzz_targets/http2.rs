//! Arbitrary bytes as the data of an HTTP/2 server.
#![no_main]

#[path = "../../crates/http/http2/tests/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::server_bytes(data));
