//! User commands that act on the server: run by a shell in their own process group, during the
//! load.

use crate::shell::shell;
use campaign::{Done, ServerCommand};
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::{Child, ExitStatus, Stdio};
use units::{Nanos, show};

/// A command still running after this time is killed.
pub(super) const ERRAND_MAX: Nanos = Nanos::from_secs(60);
/// The commands: pending and running ones.
#[derive(Debug)]
pub(super) struct Errands {
    commands: Vec<(ServerCommand, String)>,
    due: Vec<(Nanos, ServerCommand)>,
    running: Vec<Running>,
    done: Vec<Done>,
}

#[derive(Debug)]
struct Running {
    errand: ServerCommand,
    began: Nanos,
    child: Child,
}

impl Errands {
    pub(super) fn new(commands: Vec<(ServerCommand, String)>) -> Errands {
        crate::shell::remember_limit();
        Errands { commands, due: Vec::new(), running: Vec::new(), done: Vec::new() }
    }

    pub(super) fn send_for(&mut self, errand: ServerCommand, at: Nanos) {
        self.due.push((at, errand));
    }

    /// Starts due commands, and records completed ones.
    pub(super) fn look(&mut self, now: Nanos) {
        let due: Vec<ServerCommand> = self.take_due(|at, _| at <= now);
        due.into_iter().for_each(|errand| self.begin(errand, now));
        let running = std::mem::take(&mut self.running);
        for mut one in running {
            match one.child.try_wait() {
                Ok(None) if now < one.began + ERRAND_MAX => self.running.push(one),
                Ok(None) => {
                    let span = show::duration(ERRAND_MAX);
                    self.put_to_an_end(one, now, Some(format!("had not exited after {span}")));
                }
                Ok(Some(status)) => self.note(one.errand, one.began, now, trouble(status)),
                Err(error) => self.note(one.errand, one.began, now, Some(error.to_string())),
            }
        }
    }

    /// Finishes after the last play: the restoring command is started if needed, and the starving
    /// one must end.
    pub(super) fn conclude(&mut self, now: Nanos) {
        let begun = self.running.iter().map(|one| one.errand);
        let starves = begun
            .chain(self.done.iter().map(|one| one.errand))
            .any(|one| one == ServerCommand::Starve);
        let relief = self.take_due(|_, errand| errand == ServerCommand::Relieve);
        self.due.clear();
        if starves {
            relief.into_iter().for_each(|errand| self.begin(errand, now));
        }
    }

    /// Returns whether a call of `look` can change anything.
    pub(super) fn is_awaited(&self) -> bool {
        !self.due.is_empty() || !self.running.is_empty()
    }

    pub(super) fn is_over(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes the completed commands in the order of their start.
    pub(super) fn take(&mut self) -> Vec<Done> {
        let mut done = std::mem::take(&mut self.done);
        done.sort_by_key(|one| one.began);
        done
    }

    fn take_due(&mut self, wanted: impl Fn(Nanos, ServerCommand) -> bool) -> Vec<ServerCommand> {
        let taken = |(at, errand): &(Nanos, ServerCommand)| wanted(*at, *errand);
        let due = self.due.iter().filter(|one| taken(one)).map(|(_, errand)| *errand).collect();
        self.due.retain(|one| !taken(one));
        due
    }

    fn begin(&mut self, errand: ServerCommand, now: Nanos) {
        if errand == ServerCommand::Relieve {
            let running = std::mem::take(&mut self.running);
            for one in running {
                match one.errand {
                    // holding a resource may be the way to starve a server of it
                    ServerCommand::Starve => self.put_to_an_end(one, now, None),
                    _ => self.running.push(one),
                }
            }
        }
        let known = self.commands.iter().find(|(known, _)| *known == errand);
        let Some((_, command)) = known else { return };
        // its standard error goes where our messages go
        match shell(command).stdout(Stdio::null()).spawn() {
            Ok(child) => self.running.push(Running { errand, began: now, child }),
            Err(error) => {
                self.note(errand, now, now, Some(format!("cannot be started: {error}")));
            }
        }
    }

    /// Kills its group: the shell and its children.
    fn put_to_an_end(&mut self, mut one: Running, now: Nanos, trouble: Option<String>) {
        kill_process_group(Pid::from_child(&one.child), Signal::KILL).ok();
        one.child.wait().ok();
        self.note(one.errand, one.began, now, trouble);
    }

    fn note(&mut self, errand: ServerCommand, began: Nanos, ended: Nanos, trouble: Option<String>) {
        self.done.push(Done { errand, began, ended, trouble });
    }
}

impl Drop for Errands {
    fn drop(&mut self) {
        let running = std::mem::take(&mut self.running);
        for one in running {
            self.put_to_an_end(one, Nanos::ZERO, None);
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
            commands.iter().map(|(errand, text)| (*errand, (*text).to_owned())).collect();
        let mut errands = Errands::new(commands);
        errands.send_for(ServerCommand::Restart, Nanos(5));
        errands.send_for(ServerCommand::Starve, Nanos(6));
        errands.send_for(ServerCommand::Relieve, Nanos::NEVER);
        errands.look(Nanos(4));
        assert!(errands.is_over());
        errands.look(Nanos(6));
        errands.conclude(Nanos(7));
        while !errands.is_over() {
            std::thread::yield_now();
            errands.look(Nanos(8));
        }
        errands.take()
    }

    #[test]
    fn what_was_sent_for_is_run_and_relief_comes_in_any_case() {
        let mut done = run(&[
            (ServerCommand::Restart, "exit 3"),
            // the restoring command ends what holds a resource
            (ServerCommand::Starve, "exec sleep 1000"),
            (ServerCommand::Relieve, "true"),
        ]);
        done.sort_by_key(|one| one.errand);
        let said: Vec<_> = done.iter().map(|one| (one.errand, one.trouble.as_deref())).collect();
        assert_eq!(
            said,
            [
                (ServerCommand::Restart, Some("exited with exit status: 3")),
                (ServerCommand::Starve, None),
                (ServerCommand::Relieve, None),
            ]
        );
        assert_eq!(run(&[]), []);
    }
}
