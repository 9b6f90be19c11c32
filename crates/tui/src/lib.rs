//! The live view of a run in a terminal.
#![forbid(unsafe_code)]
