//! Commands of the user that do something to the server while a load goes on: the world has them run,
//! and says what became of them.

use units::Nanos;

/// What a command of the user does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerCommand {
    /// Starts the server anew.
    Restart,
    /// Takes something from the server that it needs; gives it back.
    Starve,
    Relieve,
}

impl ServerCommand {
    /// The option that names the command.
    pub fn option(self) -> &'static str {
        match self {
            ServerCommand::Restart => "--restart-command",
            ServerCommand::Starve => "--starve-command",
            ServerCommand::Relieve => "--relieve-command",
        }
    }
}

/// A command that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub errand: ServerCommand,
    /// By the world's clock.
    pub began: Nanos,
    pub ended: Nanos,
    /// How it ended where it did not end well: in words, without a word of the command itself.
    pub trouble: Option<String>,
}
