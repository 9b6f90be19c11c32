//! Views of a running test: the terminal, the browser, and metrics for Prometheus and OTLP.
#![forbid(unsafe_code)]

pub mod browser;
pub mod metrics;
pub mod terminal;
