//! Arbitrary bytes as a page: the result is a bounded list of URLs.
#![no_main]

#[path = "../../crates/load/workload/tests/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::page_links(data));
