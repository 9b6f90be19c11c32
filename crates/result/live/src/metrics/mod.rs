//! Figures of a running test for Prometheus and OTLP: [`Reading`] is what is known at one moment,
//! [`Board`] holds the latest, [`Endpoint`] shows it to whoever asks over HTTP, [`Pusher`] sends it
//! to a collector. Whoever measures pins a reading to the board and goes on; nothing here can stop
//! a run or make it wait.

mod board;
mod endpoint;
mod exponential;
mod exposition;
mod otlp;
mod protobuf;
mod push;
mod reading;

pub use board::Board;
pub use endpoint::Endpoint;
pub use exponential::{Exponential, SCHEMA};
pub use exposition::{OPENMETRICS, PROTOBUF, protobuf, text};
pub use otlp::message;
pub use push::{Collector, Pushed, Pusher, parse_collector};
pub use reading::{MetricFamily, MetricKind, MetricUnit, Reading, RunLabels, Sample, Value};

#[cfg(test)]
mod tests;
