//! A build without Lua has no scripts.

use faces::wrk::Figures;
use faces::{ScriptJob, Trouble};
use workload::Script;

/// Never made.
#[derive(Debug)]
pub(crate) enum Stage {}

impl Stage {
    /// # Errors
    /// Always: there is no Lua.
    pub(crate) fn open(_: ScriptJob, _: &mut dyn FnMut(&str)) -> Result<Stage, Trouble> {
        let text =
            "this build has no Lua, which makes the requests here: build with the feature lua";
        Err(Trouble::Other(text.to_owned()))
    }

    pub(crate) fn cast(
        &mut self,
        _: u32,
        _: &mut dyn FnMut(&str),
    ) -> Result<Vec<Box<dyn Script>>, Trouble> {
        match *self {}
    }

    pub(crate) fn flush(&self) {
        match *self {}
    }

    pub(crate) fn done(&self, _: &Figures) -> Result<(), Trouble> {
        match *self {}
    }
}
