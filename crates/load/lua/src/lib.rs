//! Scripts as a source of requests, on LuaJIT. Scripts for wrk have the whole Lua interface of wrk
//! 4: one state for each worker and one for `setup` and `done`. Scripts for journeys have a small
//! interface of this program, and a state for each worker. Layer 4: it runs programs of the user,
//! which may read files, look names up and take time.
//!
//! A script has the rights of the user who starts it: there is no sandbox, because wrk has none and
//! scripts load modules and call C by `ffi`. Its errors are reported with its name and line and end
//! the run; it cannot crash the program.

mod address;
mod count;
mod director;
mod figures;
mod journey;
mod json;
mod part;
mod socket;
mod state;
mod thread;
mod value;

pub use director::{Director, Program, ScriptTrouble, Site};
pub use figures::{Errors, RecordedValues, RunSums};
pub use journey::{JourneySpec, LuaActor, Outline, outline};
