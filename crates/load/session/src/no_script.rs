//! A build without Lua has no scripts.

use faces::wrk::WrkFigures;
use faces::{ScriptJob, StartTrouble};
use plan::journey::ProgramOutline;
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
/// A journey is run by a script.
pub fn actors(
    plan: &Plan,
    _: &BTreeMap<String, String>,
    _: bool,
) -> Result<Vec<Option<Box<dyn Actor>>>, String> {
    match &plan.journeys {
        Some(journeys)
            if journeys
                .journeys
                .iter()
                .filter_map(|journey| journey.script.as_ref())
                .any(|program| !program.script.is_javascript()) =>
        {
            Err(NONE.to_owned())
        }
        _ => Ok(Vec::new()),
    }
}

/// Never made.
#[derive(Debug)]
pub enum LoadedScript {}

impl LoadedScript {
    /// # Errors
    /// Always: there is no Lua.
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
