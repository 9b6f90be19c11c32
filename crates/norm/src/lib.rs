//! Swerve's test site for today: every behaviour known, configured by files, with the fourteen
//! timing points of its chapter. Layer 4.
//!
//! A connection (module `connection`) reads a request, spools a long body (`spool`), finds the node
//! for its path (`route`) and asks it: a directory of files (`files`, guarded by `auth`), a CGI
//! script (`cgi`), an interpreter kept inside (`interpreter`) or a built-in handler (`builtin`).
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the nodes land one by one; goes when all are wired")]

mod auth;
mod breaks;
mod cgi;
mod exchange;
mod files;
#[cfg(feature = "lua")]
mod interpreter;

pub use breaks::{BREAKS, Break, Breaks};
