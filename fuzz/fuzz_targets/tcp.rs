//! Arbitrary bytes as the packets that a connection of our own TCP gets.
#![no_main]

// `any` finds the crate through its parent module, in the crate's own tests as well
use tcp;

#[path = "../../crates/system/tcp/src/tests/any.rs"]
mod any;

libfuzzer_sys::fuzz_target!(|data: &[u8]| any::packets(data));
