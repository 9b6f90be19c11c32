//! A step's request.

use crate::check::prepare::{Assembled, assemble};
use crate::render::{Own, build_own};
use plan::Plan;
use plan::check::{Body, ValueSource};
use plan::journey::JourneyStep;
use protocol::grpc::MessageCodec;
use std::collections::BTreeMap;
use workload::Template;

/// Returns whether the bytes of the request are always the same.
pub(super) fn is_static(step: &JourneyStep) -> bool {
    step.socket.is_none() && step.grpc.is_none() && step.is_settled()
}

/// Returns the request of a step's row in the target list: the step's own, if no values are
/// inserted; otherwise a GET of the base, which only the first call may send.
pub(crate) fn template(
    plan: &Plan,
    step: &JourneyStep,
    endpoint: u32,
    absolute: bool,
) -> Result<Template, String> {
    if is_static(step) {
        return make(plan, step, &BTreeMap::new(), endpoint, absolute);
    }
    let base = plan.journeys.as_ref().map(|journeys| &journeys.base);
    let url = base.ok_or("the plan has no journeys")?;
    let made = crate::build_template(plan, url, "GET", &[], None, endpoint, absolute);
    made.map_err(|error| error.to_string())
}

/// Returns the request with its values.
///
/// # Errors
/// Fails if a value is missing or makes the request invalid.
pub(super) fn make(
    plan: &Plan,
    step: &JourneyStep,
    values: &dyn ValueSource,
    endpoint: u32,
    absolute: bool,
) -> Result<Template, String> {
    let base = plan.journeys.as_ref().map(|journeys| &journeys.base);
    let base = base.ok_or("the plan has no journeys")?;
    let socket = step.socket.as_ref().map(|_| plan::journey::websocket_base(base));
    let made = assemble(socket.as_ref().unwrap_or(base), &step.ask, values)?;
    build(plan, step, &made, endpoint, absolute)
}

/// Returns the request of a gRPC call whose message has inserted values.
///
/// # Errors
/// Fails like [`make`], and if a message does not fit.
pub(super) fn make_grpc(
    plan: &Plan,
    step: &JourneyStep,
    values: &dyn ValueSource,
    codec: &dyn MessageCodec,
) -> Result<Template, String> {
    let base = plan.journeys.as_ref().map(|journeys| &journeys.base);
    let base = base.ok_or("the plan has no journeys")?;
    let mut made = assemble(base, &step.ask, values)?;
    if let (Body::Json(_), Some(json)) = (&step.ask.body, &made.body) {
        made.body = Some(codec.request_body(Some(&String::from_utf8_lossy(json)))?);
    }
    build(plan, step, &made, 0, plan.connection.proxy.is_some())
}

fn build(
    plan: &Plan,
    step: &JourneyStep,
    made: &Assembled,
    endpoint: u32,
    absolute: bool,
) -> Result<Template, String> {
    let own = Own {
        target: &made.target,
        headers: &made.headers,
        authorization: made.authorization.as_deref(),
        body: made.body.as_deref(),
        ..Own::default()
    };
    let template = build_own(plan, &made.url, &step.ask.method, &own, endpoint, absolute);
    template.map_err(|error| error.to_string())
}
