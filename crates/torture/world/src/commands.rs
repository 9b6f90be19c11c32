//! User commands that act on the server: run by a shell in their own process group while the load
//! runs.

use campaign::{Done, ServerCommand};
use rustix::process::{Pid, Signal, kill_process_group};
use session::shell::{remember_limit, shell};
use std::process::{Child, ExitStatus, Stdio};
use units::{Nanos, show};

/// Time after which a running command is killed.
const COMMAND_MAX: Nanos = Nanos::from_secs(60);

/// Pending and running commands.
#[derive(Debug)]
pub struct Commands {
    commands: Vec<(ServerCommand, String)>,
    due: Vec<(Nanos, ServerCommand)>,
    running: Vec<RunningCommand>,
    done: Vec<Done>,
}

#[derive(Debug)]
struct RunningCommand {
    action: ServerCommand,
    began: Nanos,
    child: Child,
}

impl Commands {
    pub fn new(commands: Vec<(ServerCommand, String)>) -> Commands {
        remember_limit();
        Commands { commands, due: Vec::new(), running: Vec::new(), done: Vec::new() }
    }

    pub fn schedule_command(&mut self, action: ServerCommand, at: Nanos) {
        self.due.push((at, action));
    }

    /// Starts due commands, and records completed ones.
    pub fn look(&mut self, now: Nanos) {
        let due: Vec<ServerCommand> = self.take_due(|at, _| at <= now);
        due.into_iter().for_each(|action| self.begin(action, now));
        let running = std::mem::take(&mut self.running);
        for mut one in running {
            match one.child.try_wait() {
                Ok(None) if now < one.began + COMMAND_MAX => self.running.push(one),
                Ok(None) => {
                    let span = show::duration(COMMAND_MAX);
                    self.end_command(one, now, Some(format!("had not exited after {span}")));
                }
                Ok(Some(status)) => self.note(one.action, one.began, now, trouble(status)),
                Err(error) => self.note(one.action, one.began, now, Some(error.to_string())),
            }
        }
    }

    /// Finishes after the last run of the cases: starts the restoring command if needed, and waits
    /// for the end of the starving command.
    pub fn conclude(&mut self, now: Nanos) {
        let begun = self.running.iter().map(|one| one.action);
        let starves = begun
            .chain(self.done.iter().map(|one| one.action))
            .any(|one| one == ServerCommand::Starve);
        let relief = self.take_due(|_, action| action == ServerCommand::Relieve);
        self.due.clear();
        if starves {
            relief.into_iter().for_each(|action| self.begin(action, now));
        }
    }

    /// Returns whether a call of `look` can change anything.
    pub fn is_awaited(&self) -> bool {
        !self.due.is_empty() || !self.running.is_empty()
    }

    pub fn is_over(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes the completed commands in the order of their start.
    pub fn take(&mut self) -> Vec<Done> {
        let mut done = std::mem::take(&mut self.done);
        done.sort_by_key(|one| one.began);
        done
    }

    fn take_due(&mut self, wanted: impl Fn(Nanos, ServerCommand) -> bool) -> Vec<ServerCommand> {
        let taken = |(at, action): &(Nanos, ServerCommand)| wanted(*at, *action);
        let due = self.due.iter().filter(|one| taken(one)).map(|(_, action)| *action).collect();
        self.due.retain(|one| !taken(one));
        due
    }

    fn begin(&mut self, action: ServerCommand, now: Nanos) {
        if action == ServerCommand::Relieve {
            let running = std::mem::take(&mut self.running);
            for one in running {
                match one.action {
                    // holding a resource may be the way to starve a server of it
                    ServerCommand::Starve => self.end_command(one, now, None),
                    _ => self.running.push(one),
                }
            }
        }
        let known = self.commands.iter().find(|(known, _)| *known == action);
        let Some((_, command)) = known else { return };
        // its standard error is that of this program
        match shell(command).stdout(Stdio::null()).spawn() {
            Ok(child) => self.running.push(RunningCommand { action, began: now, child }),
            Err(error) => {
                self.note(action, now, now, Some(format!("cannot be started: {error}")));
            }
        }
    }

    /// Kills the process group of the command: the shell and its children.
    fn end_command(&mut self, mut one: RunningCommand, now: Nanos, trouble: Option<String>) {
        kill_process_group(Pid::from_child(&one.child), Signal::KILL).ok();
        one.child.wait().ok();
        self.note(one.action, one.began, now, trouble);
    }

    fn note(&mut self, action: ServerCommand, began: Nanos, ended: Nanos, trouble: Option<String>) {
        self.done.push(Done { action, began, ended, trouble });
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        let running = std::mem::take(&mut self.running);
        for one in running {
            self.end_command(one, Nanos::ZERO, None);
        }
    }
}

fn trouble(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| format!("exited with {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs to the end, regardless of the clock.
    fn run(commands: &[(ServerCommand, &str)]) -> Vec<Done> {
        let commands =
            commands.iter().map(|(action, text)| (*action, (*text).to_owned())).collect();
        let mut commands = Commands::new(commands);
        commands.schedule_command(ServerCommand::Restart, Nanos(5));
        commands.schedule_command(ServerCommand::Starve, Nanos(6));
        commands.schedule_command(ServerCommand::Relieve, Nanos::NEVER);
        commands.look(Nanos(4));
        assert!(commands.is_over());
        commands.look(Nanos(6));
        commands.conclude(Nanos(7));
        while !commands.is_over() {
            std::thread::yield_now();
            commands.look(Nanos(8));
        }
        commands.take()
    }

    #[test]
    fn commands_run_and_relief_always_runs() {
        let mut done = run(&[
            (ServerCommand::Restart, "exit 3"),
            // the restoring command ends what holds a resource
            (ServerCommand::Starve, "exec sleep 1000"),
            (ServerCommand::Relieve, "true"),
        ]);
        done.sort_by_key(|one| one.action);
        let lines: Vec<_> = done.iter().map(|one| (one.action, one.trouble.as_deref())).collect();
        assert_eq!(
            lines,
            [
                (ServerCommand::Restart, Some("exited with exit status: 3")),
                (ServerCommand::Starve, None),
                (ServerCommand::Relieve, None),
            ]
        );
        assert_eq!(run(&[]), []);
    }
}
