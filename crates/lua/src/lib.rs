//! wrk's scripts as a source of requests: the whole Lua interface of wrk 4 on LuaJIT. One state for
//! each worker and one for `setup` and `done`, as there. Layer 4: it runs programs of the user's,
//! which may read files, look names up and take time.
//!
//! A script has the rights of the user who starts it: it is no sandbox, because wrk's is none and
//! scripts load modules and call C by `ffi`. What it does wrong is told with its name and line and
//! ends the run; it cannot bring the program down.

mod address;
mod count;
mod director;
mod figures;
mod part;
mod state;
mod thread;
mod value;

pub use director::{Director, Program, ScriptTrouble, Site};
pub use figures::{Errors, RecordedValues, RunSums};
