//! A run observed while it runs: on a terminal, over its metrics, in a browser.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod browser;
mod meters;
mod terminal;
