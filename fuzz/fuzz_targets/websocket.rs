//! Arbitrary bytes as frames of a WebSocket connection: the same messages for all cuts.
#![no_main]

#[path = "../../crates/http/websocket/tests/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::session(data));
