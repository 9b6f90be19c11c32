//! Journeys of a plan: setup and teardown steps, and the guides of the workers.

use crate::directory::SystemResolver;
use crate::exit::{Code, Failure};
use crate::programs::{Programs, exchange_caller, run_stage};
use crate::session::{Captured, Session};
use crate::threads::RequestSource;
use engine::Share;
use engine::journey::{Travel, run_setup_steps};
use k6::journey::ScriptStage;
use plan::Plan;
use plan::journey::JourneyStep;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns guides for the workers, one for each load; none if the plan has no journeys. `aside`:
/// scripts print on standard error.
///
/// # Errors
/// Fails if a script fails at its start.
pub(crate) fn sources(
    plan: &Plan,
    values: &BTreeMap<String, String>,
    shares: &[Share],
    aside: bool,
) -> Result<Vec<RequestSource>, Failure> {
    let lanes = plan.lanes();
    // the lanes have the same steps
    let codecs = crate::grpc::codecs(plan)?;
    let travels = lanes.iter().map(|lane| Travel::with_codecs(lane, values, &codecs));
    let Some(travels) = travels.collect::<Option<Vec<Arc<Travel>>>>() else {
        return Ok(Vec::new());
    };
    let wrong = |why: String| Failure::usage(format!("--script: {why}"));
    let programs = lanes.iter().map(|lane| Programs::open(lane, values));
    let programs = programs.collect::<Result<Vec<Programs>, String>>().map_err(wrong)?;
    let plan = Arc::new(plan.clone());
    let mut all = Vec::new();
    for share in shares {
        for ((lane, travel), programs) in lanes.iter().zip(&travels).zip(&programs) {
            let actors = programs.actors(lane, values, aside).map_err(wrong)?;
            let guide = travel.guide_with(share.clone(), actors);
            all.push(RequestSource::Guide(guide, Box::new(SystemResolver(plan.clone()))));
        }
    }
    Ok(all)
}

/// Runs the setup steps; captured values are kept for the users.
///
/// # Errors
/// Fails at the first step that fails.
pub(crate) fn set_up(session: &mut Session) -> Result<(), Failure> {
    expect_places(session)?;
    let plan = session.authorized(&session.fit.plan);
    match &plan.journeys {
        Some(journeys) => {
            make_steps(&plan, &journeys.setup, session, "setup")?;
            run_stage(session, ScriptStage::Setup)
        }
        None => Ok(()),
    }
}

/// Prepares TLS if a captured place may need it.
fn expect_places(session: &mut Session) -> anyhow::Result<()> {
    let plan = session.fit.plan.clone();
    let Some(journeys) = &plan.journeys else { return Ok(()) };
    let met = |step: &&JourneyStep| step.ask.url.shown().starts_with('{');
    let asked = journeys.further_servers().any(|url| url.scheme() == "https");
    if asked || journeys.steps().iter().any(met) {
        session.servers.expect_tls(&plan)?;
    }
    Ok(())
}

impl Session {
    /// Takes over values that another machine's setup captured.
    ///
    /// # Errors
    /// Fails if TLS settings cannot be used.
    pub fn receive(&mut self, values: BTreeMap<String, String>) -> anyhow::Result<()> {
        self.captured.values = values;
        expect_places(self)
    }

    /// Runs the teardown steps of the plan's journeys, whatever the outcome of the runs.
    ///
    /// # Errors
    /// Fails at the first step that fails.
    pub fn close(mut self) -> Result<(), Failure> {
        let journeys = self.fit.plan.journeys.as_ref();
        if journeys.is_some_and(|it| !it.teardown.is_empty() || it.is_scripted()) {
            self.obtain_one_token(&self.fit.plan)?;
        }
        let plan = self.authorized(&self.fit.plan);
        match &plan.journeys {
            Some(journeys) => {
                let ended = run_stage(&mut self, ScriptStage::Teardown);
                make_steps(&plan, &journeys.teardown, &mut self, "teardown").and(ended)
            }
            None => Ok(()),
        }
    }
}

fn make_steps(
    plan: &Plan,
    steps: &[JourneyStep],
    session: &mut Session,
    what: &str,
) -> Result<(), Failure> {
    if steps.is_empty() {
        return Ok(());
    }
    let mut caller = exchange_caller(plan, session)?;
    let now = crate::wall_clock::unix_seconds() as u64;
    let Captured { values, jar } = &mut session.captured;
    let made = run_setup_steps(plan, steps, values, jar, now, &mut caller);
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
