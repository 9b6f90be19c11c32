//! The faces compared with the original programs.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

#[path = "../support/mod.rs"]
mod support;

mod ab;
mod h2load;
mod httperf;
mod idleconn;
mod k6;
mod native;
mod siege;
mod three_tools;
mod torture;
mod wrk;
