//! Journeys as lists of operations, so that a user's position is a number.

use super::stencil::Stencil;
use plan::check::{Body, CaptureFrom, Content};
use plan::journey::{
    AfterFailure, Feeder, Journey, JourneyBlock, JourneyPart, JourneyStep, Refresh, StepGuard,
};
use plan::{Plan, Think};
use protocol::grpc::MessageCodec;
use std::collections::BTreeMap;
use std::sync::Arc;
use url::Url;
use workload::with_target;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Step {
        row: u32,
    },
    /// Start of a block; if the block is skipped, execution continues at `past`.
    Enter {
        block: u32,
        past: u32,
    },
    /// End of a round of a block; the next round begins at `start`.
    Exit {
        block: u32,
        start: u32,
    },
}

/// A step with data prepared in advance.
#[derive(Clone, Debug)]
pub(super) struct StepCard {
    pub(super) step: JourneyStep,
    /// The request has no inserted values: it is the plan's target of its row.
    pub(super) is_static: bool,
    /// The request as a template with placeholders for values, if possible.
    pub(super) stencil: Option<Stencil>,
    /// The response must be compared with more than the plan's own expectations.
    pub(super) expects: bool,
    pub(super) looks_at_bodies: bool,
    /// True if the response is not checked, and nothing is captured from it.
    pub(super) judges_nothing: bool,
    /// Converts the messages, if the step is a gRPC call.
    pub(super) codec: Option<Arc<dyn MessageCodec>>,
}

/// A block with data prepared in advance.
#[derive(Clone, Debug)]
pub(super) struct BlockCard {
    pub(super) transaction: u32,
    pub(super) guard: StepGuard,
}

#[derive(Clone, Debug)]
pub(super) struct JourneyCard {
    pub(super) ops: Vec<Op>,
    /// Places of the feeders of which an iteration takes a row.
    pub(super) feeders: Vec<usize>,
    pub(super) think: Option<Think>,
    pub(super) failure: AfterFailure,
    pub(super) refresh: Option<Refresh>,
    /// Row of its first step, if a program runs the journey.
    pub(super) first_row: u32,
    /// Rows of the program's metrics.
    pub(super) metrics: Vec<u32>,
}

/// Data shared by the requests of several steps, stored once: requests keep their memory from step
/// to step, and a worker recognizes the endpoint of a recent URL by its address.
#[derive(Debug, Default)]
pub(super) struct SharedProgram {
    bases: Vec<Arc<Url>>,
    methods: Vec<Arc<str>>,
}

impl SharedProgram {
    /// Returns the URL of another request to the same server.
    pub(super) fn base(&mut self, url: &Url) -> Arc<Url> {
        let base = with_target(url, "/");
        kept(&mut self.bases, |known| **known == base, || Arc::new(base.clone()))
    }

    pub(super) fn method(&mut self, method: &str) -> Arc<str> {
        kept(&mut self.methods, |known| **known == *method, || method.into())
    }
}

fn kept<T: Clone>(list: &mut Vec<T>, is: impl Fn(&T) -> bool, make: impl Fn() -> T) -> T {
    if let Some(known) = list.iter().find(|known| is(known)) {
        return known.clone();
    }
    let made = make();
    list.push(made.clone());
    made
}

impl StepCard {
    pub(super) fn new(
        plan: &Plan,
        step: &JourneyStep,
        feeders: &[Feeder],
        codecs: &Codecs,
        shared: &mut SharedProgram,
    ) -> StepCard {
        let codec = codecs.get(&step.row).cloned();
        let encoded = with_encoded_message(step, codec.as_deref());
        let step = encoded.as_ref().unwrap_or(step);
        let in_body = |from: &CaptureFrom| {
            matches!(from, CaptureFrom::Body | CaptureFrom::Json(_) | CaptureFrom::Html { .. })
        };
        let is_static = super::request::is_static(step);
        let expects = step.ask.expect != plan::check::Expect::default();
        let mut contents = step.check.iter().chain([&step.ask.expect]).map(|it| &it.body);
        StepCard {
            is_static,
            stencil: match is_static || is_made(step) {
                true => None,
                false => Stencil::new(plan, step, feeders, shared),
            },
            expects,
            judges_nothing: !expects && step.check.is_none() && step.ask.capture.is_empty(),
            looks_at_bodies: step.ask.capture.iter().any(|(_, it)| in_body(&it.from))
                || contents.any(|content| *content != Content::default()),
            step: step.clone(),
            codec,
        }
    }
}

/// Returns whether the message is encoded for each call.
fn is_made(step: &JourneyStep) -> bool {
    step.grpc.is_some() && !matches!(step.ask.body, Body::Bytes(_))
}

/// Converters of the messages of steps, by row.
pub type Codecs = BTreeMap<u32, Arc<dyn MessageCodec>>;

/// Returns the step with its message as bytes, if all calls send the same message.
fn with_encoded_message(
    step: &JourneyStep,
    codec: Option<&dyn MessageCodec>,
) -> Option<JourneyStep> {
    step.grpc.as_ref()?;
    let json = match &step.ask.body {
        Body::None => None,
        Body::Json(text) => Some(text.settled()?),
        _ => return None,
    };
    let body = codec?.request_body(json.as_deref()).ok()?;
    let mut step = step.clone();
    step.ask.body = Body::Bytes(body);
    Some(step)
}

impl JourneyCard {
    /// Compiles a journey; its blocks are added to `blocks`.
    pub(super) fn new(
        journey: &Journey,
        feeders: Vec<usize>,
        blocks: &mut Vec<BlockCard>,
    ) -> JourneyCard {
        let mut ops = Vec::new();
        lay_out(&journey.parts, &mut ops, blocks);
        JourneyCard {
            ops,
            feeders,
            think: journey.think,
            failure: journey.failure,
            refresh: journey.refresh.clone(),
            first_row: journey.script.as_ref().map_or(0, |program| program.first_row),
            metrics: journey.script.iter().flat_map(|it| &it.metrics).map(|it| it.row).collect(),
        }
    }
}

fn lay_out(parts: &[JourneyPart], ops: &mut Vec<Op>, blocks: &mut Vec<BlockCard>) {
    for part in parts {
        match part {
            JourneyPart::Step(step) => ops.push(Op::Step { row: step.row }),
            JourneyPart::Block(JourneyBlock { transaction, guard, parts, .. }) => {
                let (block, at) = (blocks.len() as u32, ops.len());
                blocks.push(BlockCard { transaction: *transaction, guard: guard.clone() });
                ops.push(Op::Enter { block, past: 0 });
                lay_out(parts, ops, blocks);
                ops.push(Op::Exit { block, start: at as u32 + 1 });
                ops[at] = Op::Enter { block, past: ops.len() as u32 };
            }
        }
    }
}
