//! Journeys as they are carried out.

use crate::check::{Ask, CaptureMetric, Expect, HeaderRule};
use crate::{GrpcStep, ScriptPlan, Think};
use std::collections::BTreeMap;
use std::sync::Arc;
use url::Url;

use super::{Feeder, SocketStep};

/// Steps of a user, with values carried between them.
#[derive(Clone, Debug, PartialEq)]
pub struct JourneyPlan {
    /// Base of relative URLs of steps.
    pub base: Url,
    /// Values by name, the same for everyone.
    pub vars: BTreeMap<String, String>,
    /// At least one.
    pub journeys: Vec<Journey>,
    pub feeders: Vec<Feeder>,
    /// Before the first call, once; what they capture is known to everyone.
    pub setup: Vec<JourneyStep>,
    /// After the last call, once.
    pub teardown: Vec<JourneyStep>,
    /// The tables of the plan file, with the contents of files in place of their names.
    pub(crate) tables: Arc<toml::Table>,
}

/// One journey: a user makes its parts in order, and begins again.
#[derive(Clone, Debug, PartialEq)]
pub struct Journey {
    pub name: String,
    /// Share of the iterations among all journeys; above zero.
    pub weight: f64,
    /// Default pause after a step; `None`: the load's.
    pub think: Option<Think>,
    pub failure: AfterFailure,
    pub refresh: Option<Refresh>,
    pub parts: Vec<JourneyPart>,
    /// Program that creates the steps, instead of the plan.
    pub script: Option<JourneyProgram>,
}

/// A program in Lua that carries a journey out. Its calls count for the steps that the journey names.
#[derive(Clone, Debug, PartialEq)]
pub struct JourneyProgram {
    pub script: ScriptPlan,
    /// Hosts that its requests may use in addition to the base.
    pub servers: Vec<Url>,
    /// Names of the feeders of which each iteration takes a row.
    pub feeders: Vec<String>,
    /// Metrics that it gives numbers to.
    pub metrics: Vec<CaptureMetric>,
    /// Row of its first step in the target list.
    pub first_row: u32,
}

/// Action of a user after a failed step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterFailure {
    /// Continues with the next step.
    #[default]
    Next,
    /// The iteration is over.
    End,
}

/// A response that indicates an expired login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// Inclusive ranges.
    pub statuses: Vec<(u16, u16)>,
    /// Row of the step that is repeated before the rejected one is retried.
    pub row: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JourneyPart {
    Step(Box<JourneyStep>),
    Block(JourneyBlock),
}

/// Steps that belong together: a transaction in the report, and a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct JourneyBlock {
    pub name: String,
    /// Row in the list of [`JourneyPlan::transactions`].
    pub transaction: u32,
    pub guard: StepGuard,
    pub parts: Vec<JourneyPart>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JourneyStep {
    /// Unique: its figures are a row of this name.
    pub name: String,
    /// Of the plan file, from 1.
    pub line: usize,
    /// Row of the target list.
    pub row: u32,
    pub ask: Ask,
    /// Checks of the response that are only counted.
    pub check: Option<Expect>,
    /// The pause after its response.
    pub think: Option<Think>,
    pub guard: StepGuard,
    /// Each user makes it until it has succeeded once.
    pub once: bool,
    /// True if its response is a stream of events.
    pub stream: crate::StepStream,
    /// Its action on the user's WebSocket; `None`: it is a request.
    pub socket: Option<SocketStep>,
    /// It is a call of gRPC.
    pub grpc: Option<GrpcStep>,
    /// Number of its first capture among all captures of the plan.
    pub first_capture: u32,
    /// Words that its figures can be grouped by, by name.
    pub tags: BTreeMap<String, String>,
}

impl JourneyStep {
    /// A request without a condition, a check, a pause or tags. Its row is set when it has a place.
    pub(super) fn new(name: String, line: usize, ask: Ask) -> JourneyStep {
        JourneyStep {
            name,
            line,
            row: 0,
            ask,
            check: None,
            think: None,
            guard: StepGuard::default(),
            once: false,
            stream: crate::StepStream::default(),
            socket: None,
            grpc: None,
            first_capture: 0,
            tags: BTreeMap::new(),
        }
    }
}

/// Condition and repetition of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct StepGuard {
    /// All must hold.
    pub when: Vec<Condition>,
    /// Probability, above 0 and at most 1.
    pub chance: f64,
    /// Rounds: drawn between these, inclusive; at least 1.
    pub repeat: (u32, u32),
    /// If all hold after a round, it was the last. Empty: all rounds are run.
    pub until: Vec<Condition>,
}

impl Default for StepGuard {
    fn default() -> Self {
        StepGuard { when: Vec::new(), chance: 1.0, repeat: (1, 1), until: Vec::new() }
    }
}

/// A condition on a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub name: String,
    pub rules: Vec<HeaderRule>,
}

impl JourneyPlan {
    /// The steps of all journeys, by row.
    pub fn steps(&self) -> Vec<&JourneyStep> {
        let mut all = Vec::new();
        for journey in &self.journeys {
            gather(&journey.parts, &mut |part| {
                if let JourneyPart::Step(step) = part {
                    all.push(&**step);
                }
            });
        }
        all
    }

    /// Items timed in addition to single steps: the iterations of each journey, then blocks.
    pub fn transactions(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.journeys.iter().map(|it| it.name.as_str()).collect();
        for journey in &self.journeys {
            gather(&journey.parts, &mut |part| {
                if let JourneyPart::Block(block) = part {
                    all.push(&block.name);
                }
            });
        }
        all
    }

    /// Names of the metrics that captures and programs give numbers to, by row.
    pub fn metrics(&self) -> Vec<&str> {
        let steps = self.steps();
        let captures = steps.iter().flat_map(|step| &step.ask.capture);
        let captured = captures.filter_map(|(_, capture)| capture.metric.as_ref());
        let programs = self.journeys.iter().filter_map(|journey| journey.script.as_ref());
        let mut all: Vec<(u32, &str)> = captured
            .chain(programs.flat_map(|program| &program.metrics))
            .map(|metric| (metric.row, metric.name.as_str()))
            .collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(|(_, name)| name).collect()
    }

    /// The rows of the steps with each tag, as `name=value`.
    pub fn tags(&self) -> BTreeMap<String, Vec<u32>> {
        let mut all: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for step in self.steps() {
            for (name, value) in &step.tags {
                all.entry(format!("{name}={value}")).or_default().push(step.row);
            }
        }
        all
    }

    /// A program of the user carries out a journey.
    pub fn is_scripted(&self) -> bool {
        self.journeys.iter().any(|journey| journey.script.is_some())
    }

    /// Hosts that programs may call in addition to the base.
    pub fn further_servers(&self) -> impl Iterator<Item = &Url> {
        self.journeys
            .iter()
            .filter_map(|journey| journey.script.as_ref())
            .flat_map(|it| &it.servers)
    }

    /// Step and name of every capture, by its number.
    pub fn captures(&self) -> Vec<(&str, &str)> {
        let of = |step: &JourneyStep| step.ask.capture.len();
        let mut all = Vec::with_capacity(self.steps().into_iter().map(of).sum());
        for step in self.steps() {
            all.extend(step.ask.capture.iter().map(|(name, _)| (&*step.name, name.as_str())));
        }
        all
    }
}

/// Every part, blocks before what is in them, in the order of the file.
fn gather<'a>(parts: &'a [JourneyPart], visit: &mut dyn FnMut(&'a JourneyPart)) {
    for part in parts {
        visit(part);
        if let JourneyPart::Block(block) = part {
            gather(&block.parts, visit);
        }
    }
}
