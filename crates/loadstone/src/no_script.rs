//! A build without Lua has no scripts.

use faces::wrk::WrkFigures;
use faces::{ScriptJob, StartTrouble};
use workload::Script;

/// Never made.
#[derive(Debug)]
pub(crate) enum LoadedScript {}

impl LoadedScript {
    /// # Errors
    /// Always: there is no Lua.
    pub(crate) fn open(
        _: ScriptJob,
        _: &mut dyn FnMut(&str),
    ) -> Result<LoadedScript, StartTrouble> {
        let text =
            "this build has no Lua, which makes the requests here: build with the feature lua";
        Err(StartTrouble::Other(text.to_owned()))
    }

    pub(crate) fn cast(
        &mut self,
        _: u32,
        _: &mut dyn FnMut(&str),
    ) -> Result<Vec<Box<dyn Script>>, StartTrouble> {
        match *self {}
    }

    pub(crate) fn flush(&self) {
        match *self {}
    }

    pub(crate) fn done(&self, _: &WrkFigures) -> Result<(), StartTrouble> {
        match *self {}
    }
}
