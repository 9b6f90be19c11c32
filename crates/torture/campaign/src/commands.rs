//! User commands that act on the server during a load: the world runs them and reports the result.

use units::Nanos;

/// A user command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerCommand {
    /// Restarts the server.
    Restart,
    /// Withdraws a resource that the server needs, or restores it.
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
    /// Start, by the world's clock.
    pub began: Nanos,
    pub ended: Nanos,
    /// Reason of the failure, if it failed, without the command.
    pub trouble: Option<String>,
}
