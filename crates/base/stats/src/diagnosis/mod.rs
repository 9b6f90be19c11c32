//! What limits the server, from what its clients saw of it.
//!
//! Each pathology is a [`Rule`] in a file of its own under `rules/`: its reasoning, its source, its
//! thresholds and its advice as data, and one function that looks for it. Rules read a [`View`] of
//! one measurement; what they find is ranked by confidence, then by how specific the rule is.
//! A rule that explains the evidence of another one excludes it.

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

/// How sure a finding is. Ordered from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// The evidence fits, and other causes would fit as well.
    Possible,
    /// The evidence fits, and other causes would be a coincidence.
    Likely,
    /// Two independent signs agree, or the server or kernel said so.
    Certain,
}

impl Confidence {
    pub const ALL: [Confidence; 3] =
        [Confidence::Possible, Confidence::Likely, Confidence::Certain];

    /// `certain`, `likely`, `possible`.
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

/// One pathology: its description, how it is recognized, and the source.
#[derive(Debug)]
pub struct Rule {
    /// Stable name for JSON: `nagle-delayed-ack`.
    pub id: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Why the evidence means what the finding says: a paragraph.
    pub reasoning: &'static str,
    /// Where the reasoning is known from.
    pub source: &'static str,
    /// Every number that the rule compares with, and what it bounds.
    pub thresholds: &'static [(f64, &'static str)],
    /// What to try: JSON's `try`.
    pub advice: &'static str,
    /// Findings whose evidence this one explains, so that they are left out beside it when it is at
    /// least likely.
    pub excludes: &'static [&'static str],
    pub(crate) find: fn(&View<'_>) -> Option<Sign>,
}

impl Rule {
    /// The rule as a section of the guide: what it is, why the evidence means that, every threshold,
    /// where it is known from, what to try.
    pub fn section(&self) -> String {
        let mut text = format!("### {}\n\n**{}.** {}\n\n", self.id, self.title, self.reasoning);
        for (bound, what) in self.thresholds {
            text += &format!("- {what}: {bound}\n");
        }
        text + &format!("\nTry: {}\n\nSource: {}\n", self.advice, self.source)
    }
}

/// What a rule saw.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sign {
    pub(crate) confidence: Confidence,
    /// The evidence in words, with the figures: a sentence without its full stop.
    pub(crate) evidence: String,
}

impl Sign {
    pub(crate) fn new(confidence: Confidence, evidence: String) -> Option<Sign> {
        Some(Sign { confidence, evidence })
    }
}

/// Something that limits the server.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    pub rule: &'static Rule,
    pub confidence: Confidence,
    pub evidence: String,
}

/// What a diagnosis is made from. What stays `None` was not observed.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    pub measurement: &'a Measurement,
    /// Users of a closed load; `None`: the load is open.
    pub users: Option<u32>,
    /// Users make one call after the other: no pauses, no groups, no pipelining.
    pub one_by_one: bool,
    /// Calls that a connection is to carry at most, by the plan.
    pub calls_max: Option<u32>,
    /// The plan's limits for a call and for a connect.
    pub timeout: Nanos,
    pub connect_timeout: Nanos,
    /// The plan changes the load within the window.
    pub ramped: bool,
    /// The load itself may come and go: it has stages, or calls fall due in bursts or at instants of a record.
    pub uneven: bool,
    /// How long one call took while nothing else was under way, its connect left out.
    pub alone: Option<Nanos>,
    /// The busiest worker's share of a core without its spinning, 0..=1.
    pub driver_busy: Option<f64>,
    /// Other programs, or the hypervisor, used our cores: the machine's speed may have changed.
    pub machine_busy: bool,
    pub sut: Option<&'a SutSeries>,
    /// The emulated path that all of it went through.
    pub path: Option<&'a PathFacts>,
    /// What our side announced; `None`: HTTP/2 was not spoken.
    pub http2: Option<Http2Limits>,
}

/// What a client of HTTP/2 announces, and how many streams it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Limits {
    /// Outstanding on one connection at most, by the plan.
    pub streams: u32,
    /// Bytes that may be under way, of one response and of all of a connection.
    pub stream_window: u32,
    pub connection_window: u32,
    /// Bytes of the tables for fields: of responses, and of requests.
    pub header_table: u32,
    pub encoder_table: u32,
}

impl<'a> Evidence<'a> {
    /// Knows nothing but the measurement.
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
        }
    }
}

/// Fewest completions that anything is concluded from.
pub const COMPLETIONS_MIN: u64 = 20;

/// What limits the server, the surest first; empty when nothing was found.
pub fn of_run(evidence: &Evidence<'_>) -> Vec<Diagnosis> {
    let view = View::new(evidence);
    let found = RULES.iter().filter_map(|rule| {
        let Sign { confidence, evidence: text } = (rule.find)(&view)?;
        let may_be_ours = evidence.machine_busy && BY_SPEED.contains(&rule.id);
        let most = if may_be_ours { Confidence::Possible } else { Confidence::Certain };
        Some(Diagnosis { rule, confidence: confidence.min(most), evidence: text })
    });
    ranked(found.collect())
}

/// Findings that a machine whose speed changes brings about as well: possible at most, where other
/// programs used the cores.
const BY_SPEED: [&str; 3] = ["warm-up", "drift", "cpu-contention"];

/// Leaves out what another finding explains, and puts the surest first.
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

/// The rule with this id.
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
