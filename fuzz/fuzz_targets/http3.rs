//! Arbitrary bytes on the streams of an HTTP/3 server.
#![no_main]

#[path = "../../crates/http/protocol/tests/http3_checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::server_bytes(data));
