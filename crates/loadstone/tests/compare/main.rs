//! Comparison of two servers, from a user's view.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod commands;
mod gate;
mod live;
mod stored;
