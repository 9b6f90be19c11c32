//! The option of `torture` for the server's own processes.

use clap::Args;
use session::sut::{self, SutTarget};

/// Options that identify the server process.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "The server itself")]
pub struct TortureServer {
    /// The server's process on this machine, or the URL of its node exporter, whose exit,
    /// descriptors and memory are watched [default: the process that listens on the target, if it
    /// is on this machine]; none: watch nothing
    #[arg(long, value_name = "PID|URL|none", value_parser = parse)]
    pub sut: Option<Sut>,
}

/// Process to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sut {
    Named(SutTarget),
    Unwatched,
}

fn parse(text: &str) -> Result<Sut, String> {
    match text {
        "none" => Ok(Sut::Unwatched),
        _ => sut::parse(text).map(Sut::Named).map_err(|why| format!("{why}; or none")),
    }
}
