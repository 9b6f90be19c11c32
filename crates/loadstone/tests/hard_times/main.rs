//! Wrong input and difficult conditions. Invalid input is refused with a message that names the
//! input and the fix; failures during a run are counted; nothing ends in a panic, a hang or an
//! incomplete result.

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
