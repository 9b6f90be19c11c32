//! The program: runs the command line of this process.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(loadstone::run())
}
