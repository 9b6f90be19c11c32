//! The script that makes a run's requests.

use faces::wrk::{Errors, Spread, WrkFigures};
use faces::{ScriptJob, StartTrouble};
use lua::{Director, Program, Site};
use workload::Script;

/// A script that has been loaded, and the server that it has looked for.
#[derive(Debug)]
pub(crate) struct LoadedScript {
    program: Program,
    site: Site,
    args: Vec<String>,
    director: Director,
}

impl LoadedScript {
    /// `complain` is told of a text that cannot be loaded; as in wrk, it goes on without it.
    ///
    /// # Errors
    /// No server there, or the script went wrong.
    pub(crate) fn open(
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

    /// The workers' parts.
    ///
    /// # Errors
    /// The script went wrong.
    pub(crate) fn cast(
        &mut self,
        workers: u32,
        complain: &mut dyn FnMut(&str),
    ) -> Result<Vec<Box<dyn Script>>, StartTrouble> {
        let name = &self.program.name;
        let mut complain = |text: &str| complain(&format!("{name}: {text}\n"));
        let parts =
            self.director.cast(&self.program, &self.site, workers, &self.args, &mut complain);
        parts.map_err(trouble)
    }

    /// What the script has printed goes out before the report.
    pub(crate) fn flush(&self) {
        self.director.flush();
    }

    /// The script's own report, where it has one.
    ///
    /// # Errors
    /// The script went wrong.
    pub(crate) fn done(&self, figures: &WrkFigures) -> Result<(), StartTrouble> {
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
