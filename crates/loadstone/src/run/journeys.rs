//! Journeys of a plan: what is done once before and after, and the guides of the workers.

use super::directory::SystemResolver;
use super::prepare::{self, Prepared};
use super::threads::Cast;
use crate::caller::Caller;
use crate::exit::{Code, Failure};
use crate::script;
use engine::journey::{Travel, run_errands};
use plan::Plan;
use plan::journey::JourneyStep;
#[cfg(feature = "fleet")]
use std::collections::BTreeMap;
use std::sync::Arc;

/// Guides for the workers, with several loads one for each; none where the plan has no journeys.
/// `aside`: standard output is not the scripts' to print on.
///
/// # Errors
/// A script went wrong at its start.
pub(crate) fn cast(plan: &Plan, prepared: &Prepared, aside: bool) -> Result<Vec<Cast>, Failure> {
    let lanes = plan.lanes();
    let travels = lanes.iter().map(|lane| Travel::new(lane, &prepared.given));
    let Some(travels) = travels.collect::<Option<Vec<Arc<Travel>>>>() else {
        return Ok(Vec::new());
    };
    let plan = Arc::new(plan.clone());
    let mut all = Vec::new();
    for share in prepared.shares() {
        for (lane, travel) in lanes.iter().zip(&travels) {
            let actors = script::actors(lane, &prepared.given, aside);
            let actors = actors.map_err(|why| Failure::usage(format!("--script: {why}")))?;
            let guide = travel.guide_with(share.clone(), actors);
            all.push(Cast::Guide(guide, Box::new(SystemResolver(plan.clone()))));
        }
    }
    Ok(all)
}

/// Makes the steps of the setup; what they capture is kept for the users.
///
/// # Errors
/// The first step that came to nothing.
pub(super) fn set_up(plan: &Plan, prepared: &mut Prepared) -> Result<(), Failure> {
    let Some(journeys) = &plan.journeys else { return Ok(()) };
    expect_places(plan, prepared)?;
    errands(plan, &journeys.setup, prepared, "setup")
}

/// Takes over what another machine's setup captured.
///
/// # Errors
/// TLS settings that cannot be used.
#[cfg(feature = "fleet")]
pub(crate) fn receive(
    plan: &Plan,
    prepared: &mut Prepared,
    given: BTreeMap<String, String>,
) -> anyhow::Result<()> {
    prepared.given = given;
    expect_places(plan, prepared)
}

/// A place that is captured may be of the other scheme.
fn expect_places(plan: &Plan, prepared: &mut Prepared) -> anyhow::Result<()> {
    let Some(journeys) = &plan.journeys else { return Ok(()) };
    let met = |step: &&JourneyStep| step.ask.url.shown().starts_with('{');
    let asked = journeys.further_servers().any(|url| url.scheme() == "https");
    if asked || journeys.steps().iter().any(met) {
        prepare::expect_tls(plan, prepared)?;
    }
    Ok(())
}

/// Makes the steps of the teardown, whatever became of the run.
///
/// # Errors
/// The first step that came to nothing.
pub(crate) fn tear_down(plan: &Plan, prepared: &mut Prepared) -> Result<(), Failure> {
    let Some(journeys) = &plan.journeys else { return Ok(()) };
    errands(plan, &journeys.teardown, prepared, "teardown")
}

fn errands(
    plan: &Plan,
    steps: &[JourneyStep],
    prepared: &mut Prepared,
    what: &str,
) -> Result<(), Failure> {
    if steps.is_empty() {
        return Ok(());
    }
    let mut settings = prepare::tls_settings(plan);
    // what is offered for HTTP/1.x; other versions offer their own
    settings.alpn = vec!["http/1.1".to_owned()];
    let own = prepared.own.clone().map(|network| (network, plan.seed));
    let caller = Caller::new(plan.timeouts.connect, settings).map_err(Failure::usage)?;
    let mut caller = caller.over(own).by_plan(&prepared.endpoints, prepare::meeting(plan));
    let now = crate::wall_clock::unix_seconds() as u64;
    let (given, jar) = (&mut prepared.given, &mut prepared.jar);
    let made = run_errands(plan, steps, given, jar, now, &mut caller);
    made.map_err(|trouble| Failure {
        code: if trouble.connected { Code::Missed } else { Code::NoConnection },
        text: format!(
            "line {}: {what} step {}: {}",
            trouble.line,
            units::quoted(&trouble.step),
            trouble.why
        ),
    })
}
