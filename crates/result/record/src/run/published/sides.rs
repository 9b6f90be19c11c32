//! The client, the server's own resources, names and the machine.

use super::known;
use crate::figures::Figures;
use crate::ids;
use crate::run::{DummyRun, FirstCall, Resolved, RunReport};
use sample::{Blame, FailureClass, SutRow, SutSeries};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ClientRecord {
    pub io: String,
    pub threads: u32,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub cpu_user_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub cpu_system_s: f64,
    /// Busy waiting on purpose; part of the CPU times.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub spin_s: f64,
    /// Spinning excluded.
    pub cpu_per_call_s: Option<f64>,
    /// Share of its core that each thread was busy, spinning excluded.
    pub busy: Vec<f64>,
    /// The dummy run of calibrate: median service time of a call that costs the server next to
    /// nothing.
    pub dummy: Option<DummyRun>,
}
impl ClientRecord {
    pub(crate) fn new(report: &RunReport, figures: &Figures) -> ClientRecord {
        let driver = &report.driver;
        ClientRecord {
            io: driver.io.clone(),
            threads: driver.threads,
            cpu_user_s: driver.cpu_user_s,
            cpu_system_s: driver.cpu_system_s,
            spin_s: driver.spin_s,
            cpu_per_call_s: known(figures.cpu_per_call),
            busy: driver.busy.clone(),
            dummy: driver.dummy,
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct SutRecord {
    pub name: String,
    /// Cores that it may use: its affinity, or its container's CPU quota if that is less.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub cores: f64,
    /// Main memory of its machine; 0: not known.
    pub memory_max_bytes: u64,
    /// Descriptors that its first process may have; 0: not known.
    pub descriptors_max: u64,
    /// Connections that may wait to be accepted at the target's ports; 0: not known.
    pub accept_queue_max: u64,
    /// Share of its cores that it used in the measured phase.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub cpu_share: Option<f64>,
    /// Unreadable items, and why.
    pub trouble: Option<String>,
    pub series: Vec<SutRowRecord>,
}
/// A reading of the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(transparent)]
#[cfg_attr(any(test, feature = "schema"), schemars(with = "SutRowForm"))]
pub struct SutRowRecord(#[serde(with = "SutRowForm")] pub SutRow);

/// Text form of a reading.
#[derive(Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
#[serde(remote = "SutRow")]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "SutRowRecord"))]
struct SutRowForm {
    /// End of the interval, seconds from the start of the measured phase.
    at_s: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    cpu_cores: f64,
    memory_bytes: u64,
    threads: u64,
    descriptors: u64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    switches_per_s: f64,
    /// Connections dropped in the interval because a listen queue of the machine was full.
    listen_overflows: u64,
    /// Connections that wait to be accepted at the target's ports, at the end.
    accept_queue: u64,
    /// The server's connections with an incomplete handshake, at the end.
    half_open: u64,
}

impl SutRecord {
    /// Returns the readings as the series that they were measured in.
    pub fn series(&self) -> SutSeries {
        SutSeries {
            name: self.name.clone(),
            cores: self.cores,
            memory_max: self.memory_max_bytes,
            descriptors_max: self.descriptors_max,
            accept_queue_max: self.accept_queue_max,
            rows: self.series.iter().map(|row| row.0).collect(),
            trouble: self.trouble.clone().unwrap_or_default(),
        }
    }

    pub(crate) fn new(sut: &SutSeries) -> SutRecord {
        SutRecord {
            name: sut.name.clone(),
            cores: sut.cores,
            memory_max_bytes: sut.memory_max,
            descriptors_max: sut.descriptors_max,
            accept_queue_max: sut.accept_queue_max,
            cpu_share: sut.cpu_share(),
            trouble: (!sut.trouble.is_empty()).then(|| sut.trouble.clone()),
            series: sut.rows.iter().copied().map(SutRowRecord).collect(),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ResolvedRecord {
    pub host: String,
    pub addresses: Vec<String>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub took_s: f64,
}

impl ResolvedRecord {
    pub(crate) fn new(resolved: &Resolved) -> ResolvedRecord {
        ResolvedRecord {
            host: resolved.host.clone(),
            addresses: resolved.addresses.iter().map(|address| address.to_string()).collect(),
            took_s: resolved.took.as_secs_f64(),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FirstCallRecord {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(max = 999)))]
    pub status: u16,
    pub http_version: String,
    /// With --http auto: the protocols between which the server could choose, by their ALPN names;
    /// empty without TLS.
    pub negotiated: Option<Vec<String>>,
    pub length: u64,
    /// Value as received: untrusted.
    pub server: Option<String>,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub took_s: f64,
    pub failure: Option<FirstFailureRecord>,
    /// Status line, some fields and the first bytes of the body.
    pub excerpt: Option<String>,
    /// The Alt-Svc field as received: other addresses and protocols of the server.
    #[serde(default)]
    pub alt_svc: Option<String>,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct FirstFailureRecord {
    #[serde(with = "ids::failure_class")]
    #[cfg_attr(
        any(test, feature = "schema"),
        schemars(schema_with = "ids::failure_class::schema")
    )]
    pub class: FailureClass,
    #[serde(with = "ids::blame")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::blame::schema"))]
    pub blame: Blame,
    pub detail: String,
    /// Hint, if more is known than the class.
    pub advice: Option<String>,
}

impl FirstCallRecord {
    pub(crate) fn new(call: &FirstCall) -> FirstCallRecord {
        let failure = call.failure.as_ref().map(|(class, detail)| FirstFailureRecord {
            class: *class,
            blame: class.blame(),
            detail: detail.clone(),
            advice: call.fix_text.clone(),
        });
        FirstCallRecord {
            status: call.status,
            http_version: call.http_version.clone(),
            negotiated: call.negotiated.clone(),
            length: call.length,
            server: call.server.clone(),
            took_s: call.took.as_secs_f64(),
            failure,
            excerpt: call.excerpt.clone(),
            alt_svc: call.alt_svc.clone(),
        }
    }
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct EnvironmentRecord {
    pub host: String,
    pub kernel: String,
    pub cpu_model: String,
    pub cores: u32,
    pub memory_bytes: u64,
    pub governor: String,
    /// TCP congestion control of this host: `cubic`, `bbr`; empty if not recorded.
    #[serde(default)]
    pub congestion: String,
    pub container: String,
    pub version: String,
}

impl EnvironmentRecord {
    pub fn new(facts: &sample::Environment) -> EnvironmentRecord {
        EnvironmentRecord {
            host: facts.host.clone(),
            kernel: facts.kernel.clone(),
            cpu_model: facts.cpu_model.clone(),
            cores: facts.cores,
            memory_bytes: facts.memory_bytes,
            governor: facts.governor.clone(),
            congestion: facts.congestion.clone(),
            container: facts.container.clone(),
            version: facts.version.clone(),
        }
    }
}
