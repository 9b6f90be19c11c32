//! Balance of the calls among the back ends of a server.

#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Backends, LoadFigure, LoadTally};

/// `backends` of a run; null over HTTP/1.1 without a report of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BackendsRecord {
    /// Peer addresses of HTTP/2 and HTTP/3 connections in the whole run; the first 64 and
    /// `(other)`.
    pub addresses: Vec<AddressRecord>,
    /// Back ends by the field that --grpc-backend names, in the measured phase; the first 64 and
    /// `(other)`.
    pub names: Vec<BackendRecord>,
    /// Load that back ends report in trailers (ORCA); null without a report.
    pub load: Option<LoadRecord>,
}

/// Connections to one address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct AddressRecord {
    pub address: String,
    pub connections: u64,
    /// Their responses.
    pub calls: u64,
}

/// Responses of one back end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct BackendRecord {
    pub name: String,
    pub calls: u64,
}

/// Reports in the trailer `endpoint-load-metrics-bin`. A figure that no report has is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct LoadRecord {
    pub reports: u64,
    /// Of these, reports that cannot be read.
    pub malformed: u64,
    /// Shares of the CPU and of the memory in use.
    pub cpu: Option<LoadFigureRecord>,
    pub memory: Option<LoadFigureRecord>,
    /// Share of the application's own measure of its capacity.
    pub application: Option<LoadFigureRecord>,
    pub requests_per_s: Option<LoadFigureRecord>,
    pub errors_per_s: Option<LoadFigureRecord>,
}

/// Mean and maximum over the reports that have the figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct LoadFigureRecord {
    pub mean: f64,
    pub max: f64,
}

impl LoadFigureRecord {
    fn new(figure: &LoadFigure) -> Option<LoadFigureRecord> {
        figure.mean().map(|mean| LoadFigureRecord { mean, max: figure.highest() })
    }
}

impl LoadRecord {
    fn new(tally: &LoadTally) -> Option<LoadRecord> {
        (tally.reports > 0).then(|| LoadRecord {
            reports: tally.reports,
            malformed: tally.malformed,
            cpu: LoadFigureRecord::new(&tally.cpu),
            memory: LoadFigureRecord::new(&tally.memory),
            application: LoadFigureRecord::new(&tally.application),
            requests_per_s: LoadFigureRecord::new(&tally.requests_per_s),
            errors_per_s: LoadFigureRecord::new(&tally.errors_per_s),
        })
    }
}

impl BackendsRecord {
    pub(crate) fn new(backends: &Backends) -> Option<BackendsRecord> {
        (*backends != Backends::default()).then(|| BackendsRecord {
            addresses: backends
                .addresses
                .iter()
                .map(|(address, tally)| AddressRecord {
                    address: address.clone(),
                    connections: tally.connections,
                    calls: tally.calls,
                })
                .collect(),
            names: backends
                .names
                .iter()
                .map(|(name, tally)| BackendRecord { name: name.clone(), calls: tally.calls })
                .collect(),
            load: LoadRecord::new(&backends.load),
        })
    }
}
