//! The scripts that make a run's requests.

use faces::wrk::{Errors, Spread, WrkFigures};
use faces::{ScriptJob, StartTrouble};
use lua::{Director, JourneySpec, LuaActor, Program, Site};
use plan::journey::{Journey, JourneyPart, ProgramOutline};
use plan::{Plan, ScriptPlan};
use std::collections::BTreeMap;
use workload::{Actor, Script};

/// A loaded script, and the server that it has resolved.
#[derive(Debug)]
pub struct LoadedScript {
    program: Program,
    site: Site,
    args: Vec<String>,
    director: Director,
}

impl LoadedScript {
    /// Loads the script and runs its setup.
    /// `complain` receives the error of a text that cannot be loaded; as in wrk, the run continues
    /// without the script.
    ///
    /// # Errors
    /// Fails if there is no server, or the script fails.
    pub fn open(
        job: ScriptJob,
        complain: &mut dyn FnMut(&str),
    ) -> Result<LoadedScript, StartTrouble> {
        let ScriptJob { text, scheme, host, port, path, headers, args, method, body, aside } = job;
        let (name, text) = text.unwrap_or_else(|| (String::new(), Ok(Vec::new())));
        let program = Program { name, text };
        let site = Site { scheme, host, port, path, headers, method, body, aside };
        let mut complain = |text: &str| complain(&format!("{}: {text}\n", program.name));
        let director = Director::new(&program, &site, &mut complain).map_err(trouble)?;
        Ok(LoadedScript { program, site, args, director })
    }

    /// Returns the workers' parts.
    ///
    /// # Errors
    /// Fails if the script fails.
    pub fn parts(
        &mut self,
        workers: u32,
        complain: &mut dyn FnMut(&str),
    ) -> Result<Vec<Box<dyn Script>>, StartTrouble> {
        let name = &self.program.name;
        let mut complain = |text: &str| complain(&format!("{name}: {text}\n"));
        let parts = self.director.make_states(
            &self.program,
            &self.site,
            workers,
            &self.args,
            &mut complain,
        );
        parts.map_err(trouble)
    }

    /// Flushes the script's output before the report.
    pub fn flush(&self) {
        self.director.flush();
    }

    /// Runs the script's own report, if it has one.
    ///
    /// # Errors
    /// Fails if the script fails.
    pub fn done(&self, figures: &WrkFigures) -> Result<(), StartTrouble> {
        if !self.director.wants_done() {
            return Ok(());
        }
        let Errors { connect, read, write, status, timeout } = figures.errors;
        let sums = lua::RunSums {
            duration_us: figures.runtime_us,
            requests: figures.requests,
            bytes: figures.bytes,
            errors: lua::Errors { connect, read, write, status, timeout },
        };
        let (latency, rates) = (spread(&figures.latency), spread(&figures.rates));
        self.director.done(&sums, latency, rates).map_err(trouble)
    }
}

/// Returns a script's description of its journey; `None` if it has wrk's interface.
///
/// # Errors
/// Fails if the script defines a journey and has an error: the line, and the message.
pub fn outline(script: &ScriptPlan) -> Result<Option<ProgramOutline>, String> {
    let found = lua::outline(&script.name, &script.text).map_err(|trouble| trouble.to_string())?;
    Ok(found.map(|lua::Outline { steps, servers }| ProgramOutline {
        steps,
        servers,
        metrics: Vec::new(),
    }))
}

/// Returns one worker's programs of the plan's journeys, by their rows. `given`: values that the
/// setup captured; `aside`: they must not print on standard output.
///
/// # Errors
/// Fails if a script fails at its start.
pub fn actors(
    plan: &Plan,
    given: &BTreeMap<String, String>,
    aside: bool,
) -> Result<Vec<Option<Box<dyn Actor>>>, String> {
    let Some(journeys) = &plan.journeys else { return Ok(Vec::new()) };
    let mut values = journeys.vars.clone();
    values.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
    let values: Vec<(String, String)> = values.into_iter().collect();
    let one = |(row, journey): (u64, &Journey)| -> Result<Option<Box<dyn Actor>>, String> {
        // no user starts a journey that its scenario does not include
        let program = journey.script.as_ref().filter(|it| !it.script.is_javascript());
        let Some(program) = program.filter(|_| journey.weight > 0.0) else {
            return Ok(None);
        };
        let names = journey.parts.iter().filter_map(|part| match part {
            JourneyPart::Step(step) => Some(step.name.clone()),
            JourneyPart::Block(_) => None,
        });
        let actor = LuaActor::new(&JourneySpec {
            name: program.script.name.clone(),
            text: program.script.text.clone(),
            args: program.script.args.clone(),
            steps: names.collect(),
            base: journeys.base.clone(),
            servers: program.servers.clone(),
            given: values.clone(),
            seed: plan.seed.wrapping_add(row),
            aside,
        });
        Ok(Some(Box::new(actor.map_err(|trouble| trouble.to_string())?)))
    };
    (0..).zip(&journeys.journeys).map(one).collect()
}

fn spread(spread: &Spread) -> lua::RecordedValues {
    let (mean, stdev) = (spread.mean(), spread.stdev());
    lua::RecordedValues { values: spread.values.clone(), mean, stdev }
}

fn trouble(trouble: lua::ScriptTrouble) -> StartTrouble {
    match trouble {
        lua::ScriptTrouble::Script(text) => StartTrouble::Script(text),
        lua::ScriptTrouble::Resolve(text) => StartTrouble::Lookup(text),
        lua::ScriptTrouble::Connect(text) => StartTrouble::Connect(text),
        lua::ScriptTrouble::Request(text) => StartTrouble::Request(text),
    }
}
