//! User commands that act on the server during a load: the world runs them and reports the result.

use units::Nanos;

/// A user command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerCommand {
    /// Restarts the server.
    Restart,
    /// Withdraws a resource that the server needs; restores it.
    Starve,
    Relieve,
}

impl ServerCommand {
    /// Returns the option that sets the command.
    pub fn option(self) -> &'static str {
        match self {
            ServerCommand::Restart => "--restart-command",
            ServerCommand::Starve => "--starve-command",
            ServerCommand::Relieve => "--relieve-command",
        }
    }
}

/// A completed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub action: ServerCommand,
    /// When it started, by the world's clock.
    pub began: Nanos,
    pub ended: Nanos,
    /// Description of the failure, if it failed, without the command itself.
    pub trouble: Option<String>,
}
