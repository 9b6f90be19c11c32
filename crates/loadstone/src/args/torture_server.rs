//! The option of `torture` that has to do with the server's own processes.

use clap::Args;

/// Which process of this machine is the server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "The server itself")]
pub(crate) struct TortureServer {
    /// The server's process on this machine, whose end, descriptors and memory are watched; without
    /// it, whoever listens on a target of this machine; none: nobody is looked at
    #[arg(long, value_name = "PID|none", value_parser = parse)]
    pub(crate) sut: Option<Sut>,
}

/// Who is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sut {
    Process(u32),
    Nobody,
}

fn parse(text: &str) -> Result<Sut, String> {
    match (text, text.parse::<u32>()) {
        ("none", _) => Ok(Sut::Nobody),
        (_, Ok(pid)) => Ok(Sut::Process(pid)),
        _ => {
            Err("give the number of a process on this machine (see `ss -ltnp`), or none".to_owned())
        }
    }
}
