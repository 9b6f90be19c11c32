//! A build without Lua has no scripts.

use faces::wrk::WrkFigures;
use faces::{ScriptJob, StartTrouble};
use plan::journey::{Journey, ProgramOutline};
use plan::{Plan, ScriptPlan};
use std::collections::BTreeMap;
use workload::{Actor, Script};

const NONE: &str =
    "this build has no Lua, which makes the requests here: build with the feature lua";

/// Not examined: the missing Lua is reported when the script is opened.
pub fn outline(_: &ScriptPlan) -> Result<Option<ProgramOutline>, String> {
    Ok(None)
}

/// # Errors
/// Fails if a script runs a journey.
pub fn actors(
    plan: &Plan,
    _: &BTreeMap<String, String>,
    _: bool,
) -> Result<Vec<Option<Box<dyn Actor>>>, String> {
    let mut journeys = plan.journeys.iter().flat_map(|it| &it.journeys);
    let in_lua = |it: &Journey| it.script.as_ref().is_some_and(|it| !it.script.is_javascript());
    if journeys.any(in_lua) { Err(NONE.to_owned()) } else { Ok(Vec::new()) }
}

/// Never created in this build.
#[derive(Debug)]
pub enum LoadedScript {}

impl LoadedScript {
    /// # Errors
    /// Always fails: there is no Lua.
    pub fn open(_: ScriptJob, _: &mut dyn FnMut(&str)) -> Result<LoadedScript, StartTrouble> {
        Err(StartTrouble::Other(NONE.to_owned()))
    }

    pub fn parts(
        &mut self,
        _: u32,
        _: &mut dyn FnMut(&str),
    ) -> Result<Vec<Box<dyn Script>>, StartTrouble> {
        match *self {}
    }

    pub fn flush(&self) {
        match *self {}
    }

    pub fn done(&self, _: &WrkFigures) -> Result<(), StartTrouble> {
        match *self {}
    }
}
