//! The emulated path of a run.

use sample::{PathDirection, PathFacts, PathKind};
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Nanos;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PathRecord {
    /// The path as configured.
    pub spec: String,
    pub seed: u64,
    /// Duration of the observation.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub span_s: f64,
    /// Clients with the same kind of path.
    pub kinds: Vec<PathKindRecord>,
    /// Lateness of packet delivery relative to the due time.
    pub late_s: LateRecord,
    /// Share of the span in which the forwarder neither slept nor spun.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub forwarder_busy: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub forwarder_spin_s: f64,
    /// Packets lost by the emulation itself, not by the emulated path.
    pub overflowed: u64,
    /// Packets that were not of this path.
    pub foreign: u64,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct LateRecord {
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p50: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub p99: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub max: f64,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PathKindRecord {
    pub name: String,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 1)))]
    pub clients: u32,
    /// Round trip of an empty packet, without queues; tcp.rtt_s is the value measured by TCP.
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0)))]
    pub rtt_asked_s: f64,
    /// Client to server.
    pub up: PathDirectionRecord,
    /// Server to client.
    pub down: PathDirectionRecord,
}
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct PathDirectionRecord {
    /// Description of its effect on packets.
    pub link: String,
    /// Packets.
    pub arrived: u64,
    /// Packets, copies among them.
    pub delivered: u64,
    /// IP bytes.
    pub delivered_bytes: u64,
    pub duplicated: u64,
    pub corrupted: u64,
    pub lost_to_model: u64,
    pub lost_to_outage: u64,
    pub lost_to_queue: u64,
    pub lost_to_codel: u64,
}

impl PathRecord {
    /// Returns the figures of a path that has been used.
    pub fn new(facts: &PathFacts) -> PathRecord {
        let kind = |kind: &PathKind| PathKindRecord {
            name: kind.name.clone(),
            clients: kind.clients,
            rtt_asked_s: kind.rtt.as_secs_f64(),
            up: PathDirectionRecord::new(&kind.up),
            down: PathDirectionRecord::new(&kind.down),
        };
        PathRecord {
            spec: facts.spec.clone(),
            seed: facts.seed,
            span_s: facts.span.as_secs_f64(),
            kinds: facts.kinds.iter().map(kind).collect(),
            late_s: LateRecord {
                p50: facts.late_p50.as_secs_f64(),
                p99: facts.late_p99.as_secs_f64(),
                max: facts.late_max.as_secs_f64(),
            },
            forwarder_busy: facts.busy,
            forwarder_spin_s: facts.spun.as_secs_f64(),
            overflowed: facts.overflowed,
            foreign: facts.foreign,
        }
    }

    /// Returns the facts of the path in the form of a measurement.
    pub fn facts(&self) -> PathFacts {
        let kind = |kind: &PathKindRecord| PathKind {
            name: kind.name.clone(),
            clients: kind.clients,
            rtt: Nanos::from_secs_f64(kind.rtt_asked_s),
            up: kind.up.facts(),
            down: kind.down.facts(),
        };
        PathFacts {
            spec: self.spec.clone(),
            seed: self.seed,
            span: Nanos::from_secs_f64(self.span_s),
            kinds: self.kinds.iter().map(kind).collect(),
            late_p50: Nanos::from_secs_f64(self.late_s.p50),
            late_p99: Nanos::from_secs_f64(self.late_s.p99),
            late_max: Nanos::from_secs_f64(self.late_s.max),
            busy: self.forwarder_busy,
            spun: Nanos::from_secs_f64(self.forwarder_spin_s),
            overflowed: self.overflowed,
            foreign: self.foreign,
        }
    }
}

impl PathDirectionRecord {
    fn new(facts: &PathDirection) -> PathDirectionRecord {
        PathDirectionRecord {
            link: facts.link.clone(),
            arrived: facts.arrived,
            delivered: facts.delivered,
            delivered_bytes: facts.delivered_bytes,
            duplicated: facts.duplicated,
            corrupted: facts.corrupted,
            lost_to_model: facts.lost_to_model,
            lost_to_outage: facts.lost_to_outage,
            lost_to_queue: facts.lost_to_queue,
            lost_to_codel: facts.lost_to_codel,
        }
    }

    fn facts(&self) -> PathDirection {
        PathDirection {
            link: self.link.clone(),
            arrived: self.arrived,
            delivered: self.delivered,
            delivered_bytes: self.delivered_bytes,
            duplicated: self.duplicated,
            corrupted: self.corrupted,
            lost_to_model: self.lost_to_model,
            lost_to_outage: self.lost_to_outage,
            lost_to_queue: self.lost_to_queue,
            lost_to_codel: self.lost_to_codel,
        }
    }
}
