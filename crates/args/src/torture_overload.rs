//! The options of `torture` for the overload cases.

use super::torture::path;
use campaign::ServerCommand;
use clap::Args;
use units::Nanos;

/// Options of the overload cases.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Overload and recovery, with --press")]
pub struct TortureOverload {
    /// A page much more expensive than URL, to test whether load on it starves URL
    #[arg(long, value_name = "PATH", value_parser = path)]
    pub expensive: Option<String>,
    /// Duration of odd requests under background load, to detect drift, such as 1h
    #[arg(long, value_name = "SPAN", value_parser = units::parse_duration)]
    pub soak: Option<Nanos>,
    /// Shell command that restarts the server on this machine, run during background load
    #[arg(long, value_name = "CMD", value_parser = command)]
    restart_command: Option<String>,
    /// Shell command that withdraws a resource from the server: descriptors, disk
    #[arg(long, value_name = "CMD", value_parser = command, requires = "relieve_command")]
    starve_command: Option<String>,
    /// Shell command that restores the resource; always run after --starve-command
    #[arg(long, value_name = "CMD", value_parser = command, requires = "starve_command")]
    relieve_command: Option<String>,
}

impl TortureOverload {
    /// Returns the given commands.
    pub fn commands(&self) -> Vec<(ServerCommand, String)> {
        let all = [
            (ServerCommand::Restart, &self.restart_command),
            (ServerCommand::Starve, &self.starve_command),
            (ServerCommand::Relieve, &self.relieve_command),
        ];
        all.into_iter().filter_map(|(action, text)| Some((action, text.clone()?))).collect()
    }
}

fn command(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("write a shell command".to_owned()),
        false => Ok(text.to_owned()),
    }
}
