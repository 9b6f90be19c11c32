//! The options of `torture` that overload needs.

use super::torture::path;
use campaign::ServerCommand;
use clap::Args;
use units::Nanos;

/// What overload needs to know of the server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Overload and recovery, with --press")]
pub(crate) struct TortureOverload {
    /// A page that costs the server much more than URL does: does load on it starve URL?
    #[arg(long, value_name = "PATH", value_parser = path)]
    pub(crate) expensive: Option<String>,
    /// Repeat odd requests for this long beside a background load: does anything drift? Such
    /// as 1h
    #[arg(long, value_name = "SPAN", value_parser = units::parse_duration)]
    pub(crate) soak: Option<Nanos>,
    /// Shell command that restarts the server on this machine while background load goes on
    #[arg(long, value_name = "CMD", value_parser = command)]
    restart_command: Option<String>,
    /// Shell command that takes a resource away from the server: descriptors, disk
    #[arg(long, value_name = "CMD", value_parser = command, requires = "relieve_command")]
    starve_command: Option<String>,
    /// Shell command that gives the resource back; always run once --starve-command was
    #[arg(long, value_name = "CMD", value_parser = command, requires = "starve_command")]
    relieve_command: Option<String>,
}

impl TortureOverload {
    /// The commands that were given.
    pub(crate) fn commands(&self) -> Vec<(ServerCommand, String)> {
        let all = [
            (ServerCommand::Restart, &self.restart_command),
            (ServerCommand::Starve, &self.starve_command),
            (ServerCommand::Relieve, &self.relieve_command),
        ];
        all.into_iter().filter_map(|(errand, text)| Some((errand, text.clone()?))).collect()
    }
}

fn command(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("write a command for sh".to_owned()),
        false => Ok(text.to_owned()),
    }
}
