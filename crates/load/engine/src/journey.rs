//! Journeys: a guide for the users of each worker, which makes requests from steps, compares
//! responses with expectations, and carries values from step to step.

mod carried;
mod guide;
mod program;
mod request;
mod scripted;
mod setup_steps;
mod sockets;
mod stencil;
mod traveller;

pub use program::Codecs;
pub(crate) use request::template;
pub use setup_steps::{SetupStepError, make_call, run_setup_steps};

use carried::CarriedView;
use plan::journey::{FeederOrder, JourneyStep};
use plan::{Load, Masker, Plan, Think};
use program::{BlockCard, JourneyCard, SharedProgram, StepCard};
use regex::bytes::Regex;
use std::collections::BTreeMap;
use std::sync::Arc;
use traveller::Traveller;
use units::{Purpose, Seed, Stream};
use workload::schedule::Share;
use workload::{Actor, Guide};

/// Prepared journeys, shared by the guides of all workers.
#[derive(Debug)]
pub struct Travel {
    plan: Plan,
    /// Steps by row.
    steps: Vec<StepCard>,
    blocks: Vec<BlockCard>,
    journeys: Vec<JourneyCard>,
    /// Running sums of the weights of the journeys.
    sums: Vec<f64>,
    feeders: Vec<plan::journey::Feeder>,
    /// Values shared by all users: variables, and values that the setup captured.
    given: BTreeMap<String, String>,
    /// Values that the setup captured.
    captured: Vec<String>,
    /// The secrets of the plan and of the setup.
    masker: Masker,
    patterns: BTreeMap<String, Regex>,
    seed: Seed,
    /// Maximum number of iterations in the measured phase, over all workers.
    most: Option<u64>,
    /// True if each user makes one iteration.
    single: bool,
    keeps_bodies: bool,
    /// Pause after steps whose journey sets none.
    think: Think,
}

impl Travel {
    /// Prepares the journeys. `given`: values that the setup captured. `None` if the plan has no
    /// journeys.
    pub fn new(plan: &Plan, given: &BTreeMap<String, String>) -> Option<Arc<Travel>> {
        Travel::with_codecs(plan, given, &Codecs::new())
    }

    /// Prepares the journeys of a plan with gRPC calls.
    pub fn with_codecs(
        plan: &Plan,
        given: &BTreeMap<String, String>,
        codecs: &Codecs,
    ) -> Option<Arc<Travel>> {
        let wanted = plan.journeys.as_ref()?;
        let mut shared = SharedProgram::default();
        let steps: Vec<StepCard> = wanted
            .steps()
            .into_iter()
            .map(|step| StepCard::new(plan, step, &wanted.feeders, codecs, &mut shared))
            .collect();
        let mut blocks = Vec::new();
        let journeys = wanted
            .journeys
            .iter()
            .map(|journey| JourneyCard::new(journey, wanted.feeders_of(journey), &mut blocks));
        let journeys: Vec<JourneyCard> = journeys.collect();
        let mut sum = 0.0;
        let sums = wanted.journeys.iter().map(|journey| {
            sum += journey.weight;
            sum
        });
        let mut masker = Masker::new(plan);
        given.values().for_each(|value| masker.add_value(value));
        let mut values = wanted.vars.clone();
        values.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
        let compiled = wanted.patterns().into_iter();
        let compiled = compiled.filter_map(|text| Some((text.clone(), Regex::new(&text).ok()?)));
        Some(Arc::new(Travel {
            sums: sums.collect(),
            keeps_bodies: wanted.is_scripted() || steps.iter().any(|card| card.looks_at_bodies),
            steps,
            blocks,
            journeys,
            feeders: wanted.feeders.clone(),
            given: values,
            captured: given.values().cloned().collect(),
            masker,
            patterns: compiled.collect(),
            seed: Seed(plan.seed),
            most: plan.stop.requests,
            single: matches!(plan.load, Load::Open { .. }),
            think: match &plan.load {
                Load::Closed { think, .. } => *think,
                Load::Open { session, .. } => session.as_ref().map_or(Think::None, |it| it.think),
            },
            plan: plan.clone(),
        }))
    }

    /// Returns the guide of the worker whose part of the load is `share`.
    pub fn guide(self: &Arc<Travel>, share: Share) -> Box<dyn Guide> {
        self.guide_with(share, Vec::new())
    }

    /// Returns a guide with the programs that run journeys, by row of the journey.
    pub fn guide_with(
        self: &Arc<Travel>,
        share: Share,
        actors: Vec<Option<Box<dyn Actor>>>,
    ) -> Box<dyn Guide> {
        Box::new(guide::JourneyGuide::new(self.clone(), share, actors))
    }

    /// Returns a message about a user's response, without secrets of the plan or of the user.
    fn masked(&self, traveller: &Traveller, message: &str) -> String {
        let mut own = Masker::default();
        CarriedView { travel: self, traveller }.secrets(&mut |value| own.add_value(value));
        own.text(&self.masker.text(message))
    }

    /// Returns the journey of an iteration, and the stream of its other random draws: a function of
    /// its index.
    fn draw(&self, iteration: u64) -> (usize, Stream) {
        let mut stream = self.seed.stream(Purpose::Journeys, iteration);
        let point = stream.unit() * self.sums.last().copied().unwrap_or(0.0);
        let row = self.sums.partition_point(|sum| *sum <= point);
        (row.min(self.sums.len().saturating_sub(1)), stream)
    }

    /// Returns the number of iterations of the measured phase that belong to one worker.
    fn share(&self, share: &Share) -> u64 {
        self.most.filter(|_| !self.single).map_or(u64::MAX, |total| share.count_of(total))
    }

    /// Returns whether an iteration's row depends on the iterations before it.
    fn counts_turns(&self) -> bool {
        self.feeders.iter().any(|feeder| feeder.order != FeederOrder::Unique)
    }

    fn step(&self, row: u32) -> &JourneyStep {
        &self.steps[row as usize].step
    }
}
