//! The script that makes a run's requests.

use super::tell;
use faces::wrk::{Errors, Figures, Spread};
use faces::{ScriptJob, Trouble};
use lua::{Director, Program, Site};
use plan::{Load, Plan};
use units::Rate;
use workload::Script;

/// A script that has been loaded, and the server that it has looked for.
#[derive(Debug)]
pub(super) struct Stage {
    program: Program,
    site: Site,
    args: Vec<String>,
    director: Director,
}

impl Stage {
    /// # Errors
    /// No server there, or the script went wrong.
    pub(super) fn open(job: ScriptJob) -> Result<Stage, Trouble> {
        let ScriptJob { text, scheme, host, port, path, headers, args } = job;
        let (name, text) = text.unwrap_or_else(|| (String::new(), Ok(Vec::new())));
        let program = Program { name, text };
        let site = Site { scheme, host, port, path, headers };
        let mut complain = |text: &str| tell(&format!("{}: {text}\n", program.name));
        let director = Director::new(&program, &site, &mut complain).map_err(trouble)?;
        Ok(Stage { program, site, args, director })
    }

    /// The workers' parts. A rate counts requests, of which one of the plan's calls may hold several.
    ///
    /// # Errors
    /// The script went wrong.
    pub(super) fn cast(
        &mut self,
        plan: &mut Plan,
        workers: u32,
    ) -> Result<Vec<Box<dyn Script>>, Trouble> {
        let name = &self.program.name;
        let mut complain = |text: &str| tell(&format!("{name}: {text}\n"));
        let parts =
            self.director.cast(&self.program, &self.site, workers, &self.args, &mut complain);
        let parts = parts.map_err(trouble)?;
        let together = parts.first().map_or(1, |part| part.wants().requests.max(1));
        if let Load::Open { arrivals, .. } = &mut plan.load {
            arrivals.from = Rate(arrivals.from.0 / f64::from(together));
            arrivals.to = Rate(arrivals.to.0 / f64::from(together));
        }
        Ok(parts)
    }

    /// What the script has printed goes out before the report.
    pub(super) fn flush(&self) {
        self.director.flush();
    }

    /// The script's own report, where it has one.
    ///
    /// # Errors
    /// The script went wrong.
    pub(super) fn done(&self, figures: &Figures) -> Result<(), Trouble> {
        if !self.director.wants_done() {
            return Ok(());
        }
        let Errors { connect, read, write, status, timeout } = figures.errors;
        let sums = lua::Figures {
            duration_us: figures.runtime_us,
            requests: figures.requests,
            bytes: figures.bytes,
            errors: lua::Errors { connect, read, write, status, timeout },
        };
        let (latency, rates) = (spread(&figures.latency), spread(&figures.rates));
        self.director.done(&sums, latency, rates).map_err(trouble)
    }
}

fn spread(spread: &Spread) -> lua::Spread {
    let (mean, stdev) = (spread.mean(), spread.stdev());
    lua::Spread { values: spread.values.clone(), mean, stdev }
}

fn trouble(trouble: lua::Trouble) -> Trouble {
    match trouble {
        lua::Trouble::Script(text) => Trouble::Script(text),
        lua::Trouble::Resolve(text) => Trouble::Lookup(text),
        lua::Trouble::Connect(text) => Trouble::Connect(text),
        lua::Trouble::Request(text) => Trouble::Request(text),
    }
}
