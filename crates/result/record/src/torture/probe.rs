//! Probes of the server's health: each probe, and counts by outcome.

use super::ids;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use torture::result::{Probe, ProbeKind, Seen};
use units::Nanos;

/// One probe of the server's health. Its times count from its due instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ProbeRecord {
    /// On a new connection (new), or on a kept one (keep).
    #[serde(with = "ids::probe_kind")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::probe_kind::schema"))]
    pub kind: ProbeKind,
    /// Due instant of the probe, from the start of the run.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub due_s: f64,
    /// Time from the due instant until it was sent.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub late_s: f64,
    /// Time until the connection was established; omitted if it was established before, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_s: Option<f64>,
    /// Time until the response began; omitted without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_s: Option<f64>,
    /// Time until the response ended, or the probe was abandoned.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub over_s: f64,
    #[serde(with = "ids::seen")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "ids::seen::schema"))]
    pub seen: Seen,
    /// The outcome as text: `200`, `no response in 2 s`.
    pub said: String,
    /// The probe could not be sent because the client ran out of descriptors or ports: it shows
    /// nothing about the server.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ours: bool,
    /// The current case; empty before the first.
    pub case: String,
}

fn is_false(truth: &bool) -> bool {
    !truth
}

/// Probes by outcome: on new connections, and on a kept one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ProbeCounts {
    pub new: ProbeOutcomes,
    pub keep: ProbeOutcomes,
}

/// Probes of one kind, without those that our own machine could not send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct ProbeOutcomes {
    pub correct: u64,
    /// 503 or 429, well-formed, in time.
    pub shed: u64,
    pub lost: u64,
}

impl ProbeRecord {
    pub fn new(probe: &Probe) -> ProbeRecord {
        ProbeRecord {
            kind: probe.kind,
            due_s: probe.due.as_secs_f64(),
            late_s: probe.late.as_secs_f64(),
            connected_s: probe.connected.map(Nanos::as_secs_f64),
            first_byte_s: probe.first_byte.map(Nanos::as_secs_f64),
            over_s: probe.over.as_secs_f64(),
            seen: probe.seen,
            said: probe.said.clone(),
            ours: probe.ours,
            case: probe.case.clone(),
        }
    }

    /// Returns the stable name of its kind.
    pub fn kind_id(&self) -> &'static str {
        ids::probe_kind_id(self.kind)
    }

    /// Returns a stable name of the outcome.
    pub fn seen_id(&self) -> &'static str {
        ids::seen_id(self.seen)
    }
}

impl ProbeCounts {
    pub(super) fn new(probes: &[Probe]) -> ProbeCounts {
        let of = |kind: ProbeKind| {
            let count = |seen: Seen| {
                let own = |probe: &&Probe| probe.kind == kind && probe.seen == seen && !probe.ours;
                probes.iter().filter(own).count() as u64
            };
            ProbeOutcomes {
                correct: count(Seen::Correct),
                shed: count(Seen::Shed),
                lost: count(Seen::Lost),
            }
        };
        ProbeCounts { new: of(ProbeKind::New), keep: of(ProbeKind::Keep) }
    }
}

impl ProbeOutcomes {
    /// Returns the number of probes of any outcome.
    pub fn sum(self) -> u64 {
        self.correct + self.shed + self.lost
    }
}
