//! Wrong input and hard times: what cannot be is refused in words that name the input and the way
//! out; what breaks under a run is counted; nothing ends in a panic, a hang or half a result.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]
#![allow(clippy::print_stderr, reason = "a test says plainly what this machine does not allow")]

#[path = "../support/mod.rs"]
mod support;

mod arguments;
mod input;
mod outputs;
mod reach;
mod resources;
mod running;
mod signals;
mod torture;
mod unsteady;
