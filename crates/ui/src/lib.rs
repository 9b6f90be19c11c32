//! The store and the running test in a browser, on loopback.
#![forbid(unsafe_code)]
