//! The norm site from outside: responses on loopback, the log, and the tmp directory.

mod support;

mod clients;
mod requests;
mod sleeping;
mod spooling;
mod timings;
mod tree;
