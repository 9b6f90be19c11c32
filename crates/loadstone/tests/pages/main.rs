//! The pages from a reader's view: in a real browser, by pointer and keys.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod curve_pages;
mod report_command;
mod run_page;
mod torture_page;
