//! Bottlenecks of the server, from its clients' measurements.
//!
//! Each pathology is a [`Rule`] in its own file under `rules/`: its reasoning, its source, its
//! thresholds and its advice as data, and one function that detects it. Rules read a [`View`] of
//! one measurement; findings are ranked by confidence, then by how specific the rule is. A rule
//! that explains the evidence of another rule excludes it.

mod curve;
mod phase;
mod queueing;
mod rules;
mod shape;
mod view;

pub use curve::of_ramp;
pub use rules::RULES;
pub use view::View;

use crate::Measurement;
use sample::{PathFacts, SutSeries};
use units::Nanos;

/// Certainty of a finding, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// The evidence fits, but other causes would fit as well.
    Possible,
    /// The evidence fits, and other causes would be a coincidence.
    Likely,
    /// Two independent signs agree, or the server or kernel reported it.
    Certain,
}

impl Confidence {
    pub const ALL: [Confidence; 3] =
        [Confidence::Possible, Confidence::Likely, Confidence::Certain];

    /// Returns `certain`, `likely` or `possible`.
    pub fn id(self) -> &'static str {
        match self {
            Confidence::Certain => "certain",
            Confidence::Likely => "likely",
            Confidence::Possible => "possible",
        }
    }
}

impl std::fmt::Display for Confidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}

/// One pathology: its description, its detection, and the source.
#[derive(Debug)]
pub struct Rule {
    /// Stable name for JSON: `nagle-delayed-ack`.
    pub id: &'static str,
    /// A short name of the pathology.
    pub title: &'static str,
    /// Reason why the evidence supports the finding: a paragraph.
    pub reasoning: &'static str,
    /// Source of the reasoning.
    pub source: &'static str,
    /// Every threshold of the rule, with the value that it bounds.
    pub thresholds: &'static [(f64, &'static str)],
    /// Advice; `try` in JSON.
    pub advice: &'static str,
    /// Findings whose evidence this finding explains: they are omitted if it is at least likely.
    pub excludes: &'static [&'static str],
    pub(crate) find: fn(&View<'_>) -> Option<Sign>,
}

impl Rule {
    /// Returns the rule as a section of the guide: its name, the reasoning, every threshold, the
    /// source, the advice.
    pub fn section(&self) -> String {
        let mut text = format!("### {}\n\n**{}.** {}\n\n", self.id, self.title, self.reasoning);
        for (bound, what) in self.thresholds {
            text += &format!("- {what}: {bound}\n");
        }
        text + &format!("\nTry: {}\n\nSource: {}\n", self.advice, self.source)
    }
}

/// Observations of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sign {
    pub(crate) confidence: Confidence,
    /// The evidence as a sentence with the figures, without a final period.
    pub(crate) evidence: String,
}

impl Sign {
    pub(crate) fn new(confidence: Confidence, evidence: String) -> Option<Sign> {
        Some(Sign { confidence, evidence })
    }

    /// Returns the observation on a machine whose other programs may be the cause.
    pub(crate) fn possibly_local(self) -> Sign {
        let evidence =
            format!("{}; other programs used the cores, which may be the cause", self.evidence);
        Sign { confidence: self.confidence.min(Confidence::Possible), evidence }
    }
}

/// A bottleneck of the server.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    pub rule: &'static Rule,
    pub confidence: Confidence,
    pub evidence: String,
}

/// Input of a diagnosis. `None` means not observed.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    pub measurement: &'a Measurement,
    /// Users of a closed load; `None` if the load is open.
    pub users: Option<u32>,
    /// True if users make one call after the other: no pauses, no groups, no pipelining.
    pub one_by_one: bool,
    /// Maximum number of calls per connection, set by the plan.
    pub calls_max: Option<u32>,
    /// The plan's limits for a call and for a connect.
    pub timeout: Nanos,
    pub connect_timeout: Nanos,
    /// The plan changes the load within the window.
    pub ramped: bool,
    /// True if the load itself may vary: it has stages, or calls are due in bursts or at recorded
    /// instants.
    pub uneven: bool,
    /// Time of a call while no other was in flight, excluding its connect.
    pub alone: Option<Nanos>,
    /// The busiest worker's share of a core without its spinning, 0..=1.
    pub driver_busy: Option<f64>,
    /// Other programs, or the hypervisor, used our cores: the machine's speed may have changed.
    pub machine_busy: bool,
    pub sut: Option<&'a SutSeries>,
    /// The emulated path of all traffic.
    pub path: Option<&'a PathFacts>,
    /// Settings announced by the client; `None` if HTTP/2 was not used.
    pub http2: Option<Http2Limits>,
    /// Maximum bytes per second that each WebSocket reads, if the plan limits it.
    pub read_rate: Option<u32>,
}

/// Announcements of an HTTP/2 client, and the number of streams it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Limits {
    /// Maximum number outstanding on one connection, set by the plan.
    pub streams: u32,
    /// Flow-control windows, in bytes: of one response and of a whole connection.
    pub stream_window: u32,
    pub connection_window: u32,
    /// Sizes of the header tables in bytes: of responses, and of requests.
    pub header_table: u32,
    pub encoder_table: u32,
}

impl<'a> Evidence<'a> {
    /// Creates evidence without any other observation.
    pub fn new(measurement: &'a Measurement) -> Evidence<'a> {
        Evidence {
            measurement,
            users: None,
            one_by_one: false,
            calls_max: None,
            timeout: Nanos::NEVER,
            connect_timeout: Nanos::NEVER,
            ramped: false,
            uneven: false,
            alone: None,
            driver_busy: None,
            machine_busy: false,
            sut: None,
            path: None,
            http2: None,
            read_rate: None,
        }
    }
}

/// Minimum number of completions for any conclusion.
pub const COMPLETIONS_MIN: u64 = 20;

/// Returns the bottlenecks of the server, most certain first; empty without findings.
pub fn of_run(evidence: &Evidence<'_>) -> Vec<Diagnosis> {
    let view = View::new(evidence);
    let found = RULES.iter().filter_map(|rule| {
        let mut sign = (rule.find)(&view)?;
        if evidence.machine_busy && BY_CORES.contains(&rule.id) {
            sign = sign.possibly_local();
        }
        Some(Diagnosis { rule, confidence: sign.confidence, evidence: sign.evidence })
    });
    ranked(found.collect())
}

/// Findings that also occur if other programs use the machine's cores: its speed varies between
/// seconds and connections, and threads wait for the scheduler's tick. They are at most possible
/// then.
const BY_CORES: [&str; 5] =
    ["warm-up", "drift", "cpu-contention", "scheduling-quantum", "mixed-backends"];

/// Removes findings that another finding explains, and sorts the others by certainty.
fn ranked(found: Vec<Diagnosis>) -> Vec<Diagnosis> {
    let explained = |id: &str| {
        let sure = found.iter().filter(|other| other.confidence >= Confidence::Likely);
        sure.into_iter().any(|other| other.rule.excludes.contains(&id))
    };
    let mut kept: Vec<Diagnosis> =
        found.iter().filter(|one| !explained(one.rule.id)).cloned().collect();
    // stable: equally sure ones keep the order of the rules
    kept.sort_by_key(|one| std::cmp::Reverse(one.confidence));
    kept
}

/// Returns the rule with this id.
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
