//! Steps that run once, before or after the run: as single exchanges, outside the measurement.

use super::guide::words;
use super::request;
use crate::check::capture::capture;
use crate::check::judge::{ResponseParts, response};
use crate::exchange::{Caller, Message, Outgoing, Reply};
use crate::proof;
use plan::journey::JourneyStep;
use plan::{Masker, Plan};
use sample::FailureClass;
use std::collections::BTreeMap;
use units::Nanos;
use workload::{ActedCall, Jar, Template};

/// Reason why a setup or teardown step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupStepError {
    pub step: String,
    /// Line in the plan file, from 1.
    pub line: usize,
    pub why: String,
    /// True if a connection was opened.
    pub connected: bool,
}

/// Runs the steps in order, with the plan's login unless a step has its own; `unix_s`: current time
/// for signatures. Captured values are added to `values`, cookies to `jar`.
///
/// # Errors
/// Fails with the first step that cannot be sent, or whose response is not as expected.
pub fn run_setup_steps(
    plan: &Plan,
    steps: &[JourneyStep],
    values: &mut BTreeMap<String, String>,
    jar: &mut Jar,
    unix_s: u64,
    caller: &mut dyn Caller,
) -> Result<(), SetupStepError> {
    for step in steps {
        if caller.interrupted() {
            return Ok(());
        }
        let made = perform_step(plan, step, values, jar, (unix_s, &mut *caller));
        made.map_err(|(why, connected)| SetupStepError {
            step: step.name.clone(),
            line: step.line,
            why: masked(plan, values, &why),
            connected,
        })?;
    }
    Ok(())
}

/// Returns a message about a response without the secrets of the plan and the captured values.
fn masked(plan: &Plan, values: &BTreeMap<String, String>, message: &str) -> String {
    let mut secrets = Masker::new(plan);
    let vars = plan.journeys.as_ref().map(|journeys| &journeys.vars);
    let captured = values.iter().filter(|(name, _)| vars.is_none_or(|it| !it.contains_key(*name)));
    captured.for_each(|(_, value)| secrets.add_value(value));
    secrets.text(message)
}

fn perform_step(
    plan: &Plan,
    step: &JourneyStep,
    values: &mut BTreeMap<String, String>,
    jar: &mut Jar,
    (unix_s, caller): (u64, &mut dyn Caller),
) -> Result<(), (String, bool)> {
    let absolute = plan.connection.proxy.is_some();
    let template = request::make(plan, step, values, 0, absolute).map_err(|why| (why, true))?;
    let url = template.url().clone();
    let signed = proof::first_proof(plan, &template, unix_s);
    let (mut took, mut reply) =
        run_exchange(plan, signed.as_ref().unwrap_or(&template), jar, &mut *caller)?;
    let challenged = reply.facts.status == 401;
    if let Some(answer) =
        challenged.then(|| proof::answer_to(plan, &template, &reply.head)).flatten()
    {
        let (more, last) = run_exchange(plan, &answer, jar, caller)?;
        (took, reply) = (took + more, last);
    }
    for cookie in protocol::http1::fields::set_cookies(&reply.head) {
        jar.absorb(&url, cookie);
    }
    let seen = ResponseParts { status: reply.facts.status, head: &reply.head, body: &reply.body };
    response(&step.ask.expect, &seen, took, values).map_err(|it| (words(&it), true))?;
    for (name, wanted) in &step.ask.capture {
        let value = capture(wanted, &seen, values, &mut |_| 0);
        match value {
            Ok(value) => drop(values.insert(name.clone(), value)),
            Err(_) if wanted.optional => {}
            Err(wrong) => {
                let why =
                    format!("capture {name}: wanted {}, searched {}", wrong.expected, wrong.got);
                return Err((why, true));
            }
        }
    }
    Ok(())
}

/// Makes a call of a program before or after the run. The program keeps its own cookies.
///
/// # Errors
/// Fails with the class of the failure if the request cannot be sent, or no complete response
/// arrives.
pub fn make_call(
    plan: &Plan,
    call: &ActedCall,
    caller: &mut dyn Caller,
) -> Result<(Nanos, Reply), FailureClass> {
    let template = super::scripted::template(plan, call).map_err(|_| FailureClass::OtherIo)?;
    let message = Message::new(template, None);
    let sent =
        Outgoing { url: call.url.clone(), message, timeout: plan.timeouts.call, negotiates: false };
    let heard = caller.exchange(vec![sent]).pop().ok_or(FailureClass::OtherIo)?;
    let reply = heard.result.map_err(|trouble| trouble.class)?;
    Ok((heard.took, reply))
}

/// Makes one exchange; returns its result and duration.
fn run_exchange(
    plan: &Plan,
    template: &Template,
    jar: &Jar,
    caller: &mut dyn Caller,
) -> Result<(Nanos, Reply), (String, bool)> {
    let url = template.url().clone();
    let message = Message::new(template.clone(), jar.header(&url));
    let sent = Outgoing { url, message, timeout: plan.timeouts.call, negotiates: false };
    let Some(heard) = caller.exchange(vec![sent]).pop() else {
        return Err(("no response to this request".to_owned(), true));
    };
    let reply = heard.result.map_err(|trouble| (trouble.with_fix(), heard.connected))?;
    Ok((heard.took, reply))
}
