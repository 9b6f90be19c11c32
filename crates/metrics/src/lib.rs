//! Figures of a running test for Prometheus and OTLP.
#![forbid(unsafe_code)]
