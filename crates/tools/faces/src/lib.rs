//! The faces: command lines and output of the classic tools, on this engine. A face is three pure
//! functions. [`read`]: arguments (and the contents of files that they name) → a [`plan::Plan`] and
//! a [`Face`]. [`Face::calls`] and [`Face::row`]: events of the run → lines, and possibly a request
//! to end it. [`Face::report`]: the finished run → that tool's exact text and exit code. Layer 5:
//! no files, sockets, threads or clocks; `loadstone::face` runs the plan and prints.
//!
//! **The contract.**
//! * Layout, wording, units and exit codes are those of the tool, so that parsers keep working.
//!   Values that the tool computes wrongly are computed correctly, with a [note](Ending::notes),
//!   and as in the tool under `--strict` ([`Extras`]).
//! * The plan is run unchanged, without the plain first call of `run`: exactly the tool's number of
//!   requests is sent. Requirements of a tool on the engine are fields of the plan:
//!   [`plan::TargetPlan::raw`] (the request's bytes), [`plan::AddressOrder`],
//!   [`plan::Stop::at_once`], …
//! * Notes and our verdict are printed on standard error, only on a terminal or with `--notes`.
//! * [`Face::cannot_start`]: the tool's message if a name, an address or a descriptor is missing.
//!
//! **To add a tool:** a folder with a `read` like [`ab::read`], a row in [`Tool`], and its
//! comparisons with the original in `crates/loadstone/tests/faces/`.
#![forbid(unsafe_code)]

/// Appends formatted text to a string.
macro_rules! put {
    ($out:expr, $($text:tt)*) => { $out.push_str(&format!($($text)*)) };
}

/// Like `put`, but ends the line.
macro_rules! putln {
    ($out:expr, $($text:tt)*) => {{
        put!($out, $($text)*);
        $out.push('\n');
    }};
}

pub mod ab;
mod contract;
mod extras;
pub mod getopt;
pub mod ghz;
pub mod h2load;
pub mod httperf;
pub mod idleconn;
pub mod k6;
pub mod longopt;
pub mod siege;
pub mod torture;
pub mod webstone;
pub mod words;
pub mod wrk;

pub use contract::*;
pub use extras::Extras;
pub use idleconn::Idle;

/// The tools that can be worn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Ab,
    Torture,
    Wrk,
    Wrk2,
    Httperf,
    Idleconn,
    Siege,
    H2load,
    Ghz,
    K6,
}

impl Tool {
    pub const ALL: &[Tool] = &[
        Tool::Ab,
        Tool::Torture,
        Tool::Wrk,
        Tool::Wrk2,
        Tool::Httperf,
        Tool::Idleconn,
        Tool::Siege,
        Tool::H2load,
        Tool::Ghz,
        Tool::K6,
    ];

    /// Returns the tool of this name: the name of a command, or the file name that the program was
    /// started under.
    pub fn from_name(name: &str) -> Option<Tool> {
        Tool::ALL.iter().copied().find(|tool| tool.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Tool::Ab => "ab",
            Tool::Torture => "torture.pl",
            Tool::Wrk => "wrk",
            Tool::Wrk2 => "wrk2",
            Tool::Httperf => "httperf",
            Tool::Idleconn => "idleconn",
            Tool::Siege => "siege",
            Tool::H2load => "h2load",
            Tool::Ghz => "ghz",
            Tool::K6 => "k6",
        }
    }
}

/// Parses a tool's command line. `program`: the name under which the tool was started, as in its
/// messages. `args`: the other arguments.
pub fn read(tool: Tool, program: &str, args: &[String], files: &dyn Files) -> Reading {
    let (extras, args) = Extras::take(args);
    match tool {
        Tool::Ab => ab::read(program, &args, extras, files),
        Tool::Torture => torture::read(&args, extras, files),
        Tool::Wrk => wrk::read(program, false, &args, extras, files),
        Tool::Wrk2 => wrk::read(program, true, &args, extras, files),
        Tool::Httperf => httperf::read(program, &args, extras, files),
        Tool::Idleconn => idleconn::read(program, &args),
        Tool::Siege => siege::read(program, &args, extras, files),
        Tool::H2load => h2load::read(program, &args, extras, files),
        Tool::Ghz => ghz::read(&args, extras, files),
        Tool::K6 => k6::read(&args, extras, files),
    }
}
