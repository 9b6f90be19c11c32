//! The stages of a script in wrk's order: from its text to the workers' parts, and `done` at the
//! end.

use crate::count;
use crate::figures::{RecordedValues, RunSums, object, summary};
use crate::part::ScriptPart;
use crate::state::{LuaState, trouble};
use crate::thread::{self, WorkerState};
use mlua::{Function, LuaString, Table};
use std::sync::Arc;
use workload::{Script, Wants};

/// A script's text under its name, or the reason why it could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub name: String,
    pub text: Result<Vec<u8>, String>,
}

/// Destination of requests, as in the script's table `wrk`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    pub scheme: String,
    /// Host without the brackets of an IPv6 address.
    pub host: String,
    /// Port in the URL; `None` if absent.
    pub port: Option<String>,
    /// Path and query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// Method; `None` for GET.
    pub method: Option<String>,
    pub body: Option<Vec<u8>>,
    /// `print` and `io.write` write to standard error.
    pub aside: bool,
}

/// Error that ends a run before it starts, or only its script's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptTrouble {
    /// The script failed; the error has its name, the line and the reason.
    Script(String),
    /// `HOST:SERVICE REASON` for a name without an address.
    Resolve(String),
    /// `HOST:SERVICE REASON` for a server that accepts no connection.
    Connect(String),
    /// The script's request is invalid: `REASON at LINE:COLUMN`.
    Request(String),
}

impl std::fmt::Display for ScriptTrouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (ScriptTrouble::Script(text)
        | ScriptTrouble::Resolve(text)
        | ScriptTrouble::Connect(text)
        | ScriptTrouble::Request(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for ScriptTrouble {}

/// Main state of a script, and the states of its threads.
#[derive(Debug)]
pub struct Director {
    main: LuaState,
    threads: Vec<Arc<WorkerState>>,
}

impl Director {
    /// Loads the script and finds the server: connects to every address once, and omits addresses
    /// that accept no connection.
    ///
    /// `complain` receives errors in the text itself; the run continues without the script, as in
    /// wrk.
    ///
    /// # Errors
    /// Fails if there is no address, none accepts a connection, or the script fails meanwhile.
    pub fn new(
        program: &Program,
        site: &Site,
        complain: &mut dyn FnMut(&str),
    ) -> Result<Director, ScriptTrouble> {
        let main = LuaState::new(site).map_err(|error| trouble(&error))?;
        if let Err(text) = main.load(program) {
            complain(&text);
        }
        let mut director = Director { main, threads: Vec::new() };
        director.resolve(site)?;
        Ok(director)
    }

    fn resolve(&mut self, site: &Site) -> Result<(), ScriptTrouble> {
        let service = site.port.as_deref().unwrap_or(&site.scheme);
        self.main.start("resolve", (site.host.as_str(), service))?;
        let addresses: Option<Table> = self.main.wrk.get("addrs").map_err(|e| trouble(&e))?;
        if addresses.is_none_or(|table| table.raw_len() == 0) {
            let why = crate::address::why_unreachable(&site.host, service);
            return Err(ScriptTrouble::Connect(format!("{}:{service} {why}", site.host)));
        }
        Ok(())
    }

    /// Makes the threads' states and runs `setup` and `init` for each.
    ///
    /// # Errors
    /// Fails if the script fails, or its first text is not a request.
    pub fn make_states(
        &mut self,
        program: &Program,
        site: &Site,
        threads: u32,
        args: &[String],
        complain: &mut dyn FnMut(&str),
    ) -> Result<Vec<Box<dyn Script>>, ScriptTrouble> {
        let mut wants = None;
        let mut parts: Vec<Box<dyn Script>> = Vec::new();
        let mut fixed = false;
        for _ in 0..threads {
            let shared = self.begin(program, site, args, complain)?;
            let state = shared.state();
            let wants = match wants {
                Some(known) => known,
                None => {
                    fixed = !state.has("request");
                    *wants.insert(look(&state)?)
                }
            };
            let text = if fixed { Some(text(&state)?) } else { None };
            state.flush();
            drop(state);
            parts.push(Box::new(ScriptPart::new(shared, wants, text)));
        }
        self.main.flush();
        Ok(parts)
    }

    /// Creates the state of one thread: loads and sets up the script, and passes its arguments.
    fn begin(
        &mut self,
        program: &Program,
        site: &Site,
        args: &[String],
        complain: &mut dyn FnMut(&str),
    ) -> Result<Arc<WorkerState>, ScriptTrouble> {
        let state = LuaState::new(site).map_err(|error| trouble(&error))?;
        if let Err(text) = state.load(program) {
            complain(&text);
        }
        let shared = Arc::new(WorkerState::new(state));
        {
            let state = shared.state();
            let own = thread::own(&state, &shared.control).map_err(|error| trouble(&error))?;
            state.wrk.raw_set("thread", own).map_err(|error| trouble(&error))?;
        }
        let handle = thread::handle(&self.main, &shared).map_err(|error| trouble(&error))?;
        self.main.start("setup", handle)?;
        {
            let state = shared.state();
            let given = arguments(&state, args).map_err(|error| trouble(&error))?;
            state.start("init", given)?;
        }
        self.threads.push(shared.clone());
        Ok(shared)
    }

    /// Returns whether the script needs the figures at the end.
    pub fn wants_done(&self) -> bool {
        self.main.has("done")
    }

    /// Flushes the output of the threads.
    pub fn flush(&self) {
        for thread in &self.threads {
            thread.state().flush();
        }
    }

    /// Calls the script's `done`. Times in microseconds; requests per second of a thread.
    ///
    /// # Errors
    /// Fails if the script fails.
    pub fn done(
        &self,
        figures: &RunSums,
        latency: RecordedValues,
        requests: RecordedValues,
    ) -> Result<(), ScriptTrouble> {
        let call = || {
            let lua = &self.main.lua;
            let done: Function = lua.globals().get("done")?;
            let latency = object(&self.main, latency)?;
            let requests = object(&self.main, requests)?;
            done.call::<()>((summary(lua, figures)?, latency, requests))
        };
        let called = call().map_err(|error| trouble(&error));
        self.main.flush();
        called
    }
}

/// Returns the callbacks that the first thread's script defines.
fn look(state: &LuaState) -> Result<Wants, ScriptTrouble> {
    let first = text(state)?;
    let requests = count::requests(&first).map_err(ScriptTrouble::Request)?;
    Ok(Wants { pauses: state.has("delay"), responses: state.has("response"), requests })
}

/// Returns the text of one request.
fn text(state: &LuaState) -> Result<Vec<u8>, ScriptTrouble> {
    let made: Option<LuaString> = state.request.call(()).map_err(|error| trouble(&error))?;
    Ok(made.map(|text| text.as_bytes().to_vec()).unwrap_or_default())
}

/// Returns a script's arguments: counted from 0, the URL first.
fn arguments(state: &LuaState, args: &[String]) -> mlua::Result<Table> {
    let table = state.lua.create_table()?;
    for (row, arg) in args.iter().enumerate() {
        table.raw_set(row, arg.as_str())?;
    }
    Ok(table)
}
