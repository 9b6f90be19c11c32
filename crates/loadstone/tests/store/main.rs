//! The results store, through the program: the stored data, however the program ends, and data that
//! is never stored.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod keeps;
mod killed;
mod killed_compare;
mod killed_ramp;
mod runs;
mod tortures;
