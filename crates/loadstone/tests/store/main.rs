//! The results store, through the program: what is kept, whatever ends it, and what never is.

#[path = "../support/mod.rs"]
mod support;

mod keeps;
mod killed;
mod runs;
