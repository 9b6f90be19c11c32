//! Figures of a running test for Prometheus and OTLP: [`Reading`] is the state at one moment,
//! [`Board`] holds the latest, [`Endpoint`] serves it over HTTP, [`Pusher`] sends it to a
//! collector. The measuring thread publishes a reading to the board and continues; nothing here can
//! stop or delay a run.

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
