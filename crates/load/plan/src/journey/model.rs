//! Journeys in executable form.

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
    /// Values by name, the same for all users.
    pub vars: BTreeMap<String, String>,
    /// Journeys; at least one.
    pub journeys: Vec<Journey>,
    pub feeders: Vec<Feeder>,
    /// Steps that run once before the first call; their captures are available to all users.
    pub setup: Vec<JourneyStep>,
    /// Steps that run once after the last call.
    pub teardown: Vec<JourneyStep>,
    /// The tables of the plan file, with the contents of files in place of their names.
    pub(crate) tables: Arc<toml::Table>,
}

/// Journey: a user makes its parts in order, and begins again.
#[derive(Clone, Debug, PartialEq)]
pub struct Journey {
    pub name: String,
    /// Share of the iterations among all journeys; above zero.
    pub weight: f64,
    /// Default pause after a step; `None` for the load's.
    pub think: Option<Think>,
    pub failure: AfterFailure,
    pub refresh: Option<Refresh>,
    pub parts: Vec<JourneyPart>,
    /// Program that creates the steps, instead of the plan.
    pub script: Option<JourneyProgram>,
}

/// A program that carries out a journey. Its calls are counted for the steps that the journey
/// names.
#[derive(Clone, Debug, PartialEq)]
pub struct JourneyProgram {
    pub script: ScriptPlan,
    /// Hosts that its requests may use in addition to the base.
    pub servers: Vec<Url>,
    /// Names of the feeders from which each iteration takes a row.
    pub feeders: Vec<String>,
    /// Metrics for which the program provides numbers.
    pub metrics: Vec<CaptureMetric>,
    /// Row of the journey's first step in the target list.
    pub first_row: u32,
}

/// Action of a user after a failed step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterFailure {
    /// Continues with the next step.
    #[default]
    Next,
    /// The iteration ends.
    End,
}

/// Response that indicates an expired login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// Inclusive ranges.
    pub statuses: Vec<(u16, u16)>,
    /// Row of the step that is repeated before the rejected step is retried.
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
    /// Unique name; the block's figures are a row of this name.
    pub name: String,
    /// Line of the plan file, from 1; 0 for the step that is made from a plan's `message`.
    pub line: usize,
    /// Row of the target list.
    pub row: u32,
    pub ask: Ask,
    /// Checks of the response that are only counted.
    pub check: Option<Expect>,
    /// The pause after its response.
    pub think: Option<Think>,
    pub guard: StepGuard,
    /// True if each user repeats the step only until it has succeeded once.
    pub once: bool,
    /// The response is a stream of events.
    pub stream: crate::StepStream,
    /// Action on the user's WebSocket; `None` if the step is a request.
    pub socket: Option<SocketStep>,
    /// gRPC settings, if the step is a gRPC call.
    pub grpc: Option<GrpcStep>,
    /// Number of the step's first capture among all captures of the plan.
    pub first_capture: u32,
    /// Words by which the step's figures can be grouped, by name.
    pub tags: BTreeMap<String, String>,
}

impl JourneyStep {
    /// Returns a request without a condition, a check, a pause or tags. Its row is set when its
    /// position is known.
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
    /// Conditions, all of which must hold.
    pub when: Vec<Condition>,
    /// Probability, above 0 and at most 1.
    pub chance: f64,
    /// Number of rounds: random between these, inclusive; at least 1.
    pub repeat: (u32, u32),
    /// Ends the rounds once all conditions hold after a round. Empty: all rounds are run.
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
    /// Returns the steps of all journeys, by row.
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

    /// Changes each step.
    pub(crate) fn change_steps(&mut self, change: &mut dyn FnMut(&mut JourneyStep)) {
        fn visit(parts: &mut [JourneyPart], change: &mut dyn FnMut(&mut JourneyStep)) {
            for part in parts {
                match part {
                    JourneyPart::Step(step) => change(step),
                    JourneyPart::Block(block) => visit(&mut block.parts, change),
                }
            }
        }
        for journey in &mut self.journeys {
            visit(&mut journey.parts, change);
        }
    }

    /// Returns the items timed in addition to single steps: the iterations of each journey, then
    /// blocks.
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

    /// Returns the names of the metrics for which captures and programs provide numbers, by row.
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

    /// Returns the rows of the steps with each tag, as `name=value`.
    pub fn tags(&self) -> BTreeMap<String, Vec<u32>> {
        let mut all: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for step in self.steps() {
            for (name, value) in &step.tags {
                all.entry(format!("{name}={value}")).or_default().push(step.row);
            }
        }
        all
    }

    /// Returns whether a program of the user carries out a journey.
    pub fn is_scripted(&self) -> bool {
        self.journeys.iter().any(|journey| journey.script.is_some())
    }

    /// Returns the hosts that programs may call in addition to the base.
    pub fn further_servers(&self) -> impl Iterator<Item = &Url> {
        self.journeys
            .iter()
            .filter_map(|journey| journey.script.as_ref())
            .flat_map(|it| &it.servers)
    }

    /// Returns step and name of every capture, by its number.
    pub fn captures(&self) -> Vec<(&str, &str)> {
        let of = |step: &JourneyStep| step.ask.capture.len();
        let mut all = Vec::with_capacity(self.steps().into_iter().map(of).sum());
        for step in self.steps() {
            all.extend(step.ask.capture.iter().map(|(name, _)| (&*step.name, name.as_str())));
        }
        all
    }
}

/// Visits every part in file order, blocks before their contents.
fn gather<'a>(parts: &'a [JourneyPart], visit: &mut dyn FnMut(&'a JourneyPart)) {
    for part in parts {
        visit(part);
        if let JourneyPart::Block(block) = part {
            gather(&block.parts, visit);
        }
    }
}
