//! The norm site from outside: what a client sees on loopback, and what the log and the tmp
//! directory tell.

mod support;

mod clients;
mod requests;
mod sleeping;
mod spooling;
mod timings;
mod tree;
