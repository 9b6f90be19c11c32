//! Two servers against each other, as a user compares them.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod commands;
mod gate;
mod live;
mod stored;
