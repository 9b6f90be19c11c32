//! Torture: what makes a web server crash, hang, leak or lock out polite users, proved with bytes
//! that anyone can send again. The catalogue of cases, the machine that talks as a case says, what is
//! seen of the answers, and the judgement of it. Layer 2: sockets, clock and files are handed in.
//!
//! It never uses the polite client: what it sends is what a case says, byte by byte, and what comes
//! back is read by a reader of its own that expects anything.
#![forbid(unsafe_code)]

pub mod beside;
pub mod case;
pub mod catalogue;
pub mod fuzz;
mod hello;
pub mod judge;
pub mod lint;
pub mod range;
pub mod record;
pub mod replies;
pub mod safety;
pub mod session;
pub mod shrink;
pub mod talk;
pub mod text;
