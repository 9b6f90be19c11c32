//! The results store.
#![forbid(unsafe_code)]
