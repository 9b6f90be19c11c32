//! A build without Lua has no scripts.

use faces::wrk::Figures;
use faces::{ScriptJob, Trouble};
use plan::Plan;
use workload::Script;

/// Never made.
#[derive(Debug)]
pub(super) enum Stage {}

impl Stage {
    /// # Errors
    /// Always: there is no Lua.
    pub(super) fn open(_: ScriptJob) -> Result<Stage, Trouble> {
        let text =
            "this build has no Lua, which makes the requests here: build with the feature lua";
        Err(Trouble::Other(text.to_owned()))
    }

    pub(super) fn cast(&mut self, _: &mut Plan, _: u32) -> Result<Vec<Box<dyn Script>>, Trouble> {
        match *self {}
    }

    pub(super) fn flush(&self) {
        match *self {}
    }

    pub(super) fn done(&self, _: &Figures) -> Result<(), Trouble> {
        match *self {}
    }
}
