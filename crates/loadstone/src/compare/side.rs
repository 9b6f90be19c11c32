//! One side of a comparison: a target that is already running, or a server that is started for each
//! run and ended after it.

use super::server::ServerProcess;
use crate::exit::{Code, Failure};
use crate::run::live::Live;
use crate::signals;
use args::{CompareSide, LiveTask};
use engine::Setup;
use record::compare::FailIf;
use record::server::{Conduct, Server};
use report::RunReport;
use session::sut::SutTarget;
use session::{Change, Env, Session, Watcher, no_connection};
use std::sync::Arc;
use std::time::Duration;
use units::{Nanos, show};

/// Duration of the uncounted load before the first block and after each start of a server, in which
/// caches fill, pools grow and processors wake up.
const PRACTICE: Nanos = Nanos::from_secs(1);
/// Maximum duration of a check that a port is silent, and minimum duration of a check that it
/// responds.
const CHECK_MAX: Nanos = Nanos::from_secs(1);
const CHECK_MIN: Nanos = Nanos::from_millis(100);
/// Interval between two checks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// Side that can be measured.
pub(super) struct Side<'a> {
    asked: &'a CompareSide,
    /// Letter of the side: `A`, `B`, …
    letter: char,
    env: &'a Arc<Env>,
    quiet: bool,
    /// Maximum time for a server to answer.
    ready: Nanos,
    /// Running target; `None` if a command starts it.
    running: Option<Session>,
    /// Number of servers started so far.
    started: usize,
    /// True if the CPU time of its server is measured.
    watched: bool,
}

/// Result of the first check of a side.
pub(super) enum Found<'a> {
    Side(Box<Side<'a>>),
    /// No server responds, which was reported.
    NoServer(Code),
    Interrupted,
}

/// Result of a run.
pub(super) enum TrialEnd {
    Run(Box<RunReport>),
    /// The server exited, refuses connections, or never started; with the reason.
    Died(String),
    /// The server answers but fails every call: which side, and how.
    Failed(String),
    /// A signal arrived before the end of the run.
    Interrupted,
}

/// Result of starting a server.
enum Start {
    Ready(ServerProcess, Box<Session>),
    Not(Failure),
    Interrupted,
}

/// Result of waiting until a port responds, or until it is silent.
enum FirstLook {
    Response(Box<Session>),
    /// Reason why there is no session.
    Silence(String),
    Interrupted,
}

impl<'a> Side<'a> {
    /// Checks whether a server responds, if no command starts it.
    ///
    /// # Errors
    /// Fails like [`Session::reach`].
    pub(super) fn found(
        asked: &'a CompareSide,
        letter: char,
        env: &'a Arc<Env>,
        task: &LiveTask,
    ) -> Result<Found<'a>, Failure> {
        let mut side = Side {
            asked,
            letter,
            env,
            quiet: task.outputs.quiet,
            ready: task.ready,
            running: None,
            started: 0,
            watched: task.bounds.iter().any(FailIf::is_cpu_time),
        };
        if asked.command.is_none() {
            let Some(mut target) = Session::reach(&asked.plan, &asked.name, env)? else {
                return Ok(Found::Interrupted);
            };
            if !target.is_reachable() {
                let report = target.unreached();
                crate::print_message(&no_connection(&report));
                let fix = report.verdict.causes.first().map_or("", |cause| &cause.advice);
                crate::print_message(fix);
                return Ok(Found::NoServer(Code::NoConnection));
            }
            side.print_notes(&target);
            target.watch_server(asked.sut.as_ref());
            side.running = Some(target);
        }
        Ok(Found::Side(Box::new(side)))
    }

    /// Prepares the first block: runs an uncounted load or, for a server that each run starts,
    /// checks that the server starts and ends.
    ///
    /// # Errors
    /// Fails like [`Session::trial`], and for a server that does not start, or exits at once.
    pub(super) fn prepare_first_block(&mut self) -> Result<(), Failure> {
        let died = if let Some(target) = &self.running {
            match self.measured(target, &self.practice(), "practice")? {
                TrialEnd::Died(why) => Some(why),
                TrialEnd::Failed(text) => return Err(Failure { code: Code::Missed, text }),
                TrialEnd::Run(_) | TrialEnd::Interrupted => None,
            }
        } else {
            match self.start()? {
                Start::Ready(server, target) => {
                    self.print_notes(&target);
                    self.close(server)
                }
                Start::Not(failure) => return Err(failure),
                Start::Interrupted => None,
            }
        };
        died.map_or(Ok(()), |text| Err(Failure { code: Code::Invalid, text }))
    }

    /// Returns the number of servers started so far, for a practice or a run.
    pub(super) fn started(&self) -> u32 {
        u32::try_from(self.started).unwrap_or(u32::MAX)
    }

    /// Makes a run that counts.
    ///
    /// # Errors
    /// Fails like [`Session::trial`].
    pub(super) fn run(&mut self, change: &Change, heading: &str) -> Result<TrialEnd, Failure> {
        if let Some(target) = &self.running {
            return self.measured(target, change, heading);
        }
        let (server, target) = match self.start()? {
            Start::Ready(server, target) => (server, target),
            Start::Not(failure) => return Ok(TrialEnd::Died(failure.text)),
            Start::Interrupted => return Ok(TrialEnd::Interrupted),
        };
        let trial = match self.measured(&target, &self.practice(), "practice")? {
            TrialEnd::Run(_) => self.measured(&target, change, heading)?,
            cut_short => cut_short,
        };
        let died = self.close(server);
        Ok(match trial {
            TrialEnd::Interrupted => TrialEnd::Interrupted,
            TrialEnd::Failed(text) => TrialEnd::Failed(text),
            trial => died.map_or(trial, TrialEnd::Died),
        })
    }

    /// Runs the teardown steps of the plan at a server that keeps running. A server started for a
    /// run ends with it.
    pub(super) fn tear_down(&self) -> Result<(), Failure> {
        self.running.as_ref().map_or(Ok(()), |target| target.clone().close())
    }

    fn practice(&self) -> Change {
        let span = self.asked.plan.stop.duration.map(|span| span.min(PRACTICE));
        Change { duration: span, ..Change::default() }
    }

    fn measured(
        &self,
        target: &Session,
        change: &Change,
        heading: &str,
    ) -> Result<TrialEnd, Failure> {
        if signals::received_signal() > 0 {
            return Ok(TrialEnd::Interrupted);
        }
        let span = change.duration.or(target.base().stop.duration);
        let mut watcher = |setup: &Setup| -> Box<dyn Watcher> {
            let live = Live::new(self.quiet, span, setup.requests_max(), None);
            Box::new(live.with_heading(heading.to_owned()))
        };
        let run = target.trial(change, &mut watcher)?;
        if run.measurement.interrupted || signals::received_signal() > 0 {
            return Ok(TrialEnd::Interrupted);
        }
        let counts = &run.measurement.total.counts;
        if counts.due == 0 || counts.succeeded > 0 {
            return Ok(TrialEnd::Run(Box::new(run)));
        }
        let server = Server::new(&run);
        let fails = matches!(server.conduct, Conduct::Failing | Conduct::Unexpected);
        Ok(match fails {
            true => TrialEnd::Failed(format!(
                "{} ({}) fails every call, so there is nothing to compare: {}.",
                self.letter,
                self.label(),
                server.sentence()
            )),
            false => TrialEnd::Died(format!(
                "{} stopped answering: none of {} calls succeeded.",
                self.label(),
                show::count(counts.due)
            )),
        })
    }

    /// Starts the server and waits until it answers.
    fn start(&mut self) -> Result<Start, Failure> {
        let command = self.asked.command.as_deref().expect("only a side with a command is started");
        match self.silence()? {
            FirstLook::Silence(_) => {}
            FirstLook::Response(_) => return Ok(Start::Not(self.address_in_use())),
            FirstLook::Interrupted => return Ok(Start::Interrupted),
        }
        let server = ServerProcess::start(command, self.asked.directory.as_deref())?;
        self.started += 1;
        match self.answer(&server)? {
            FirstLook::Response(mut target) => {
                let process = server.pid().filter(|_| self.watched).map(SutTarget::Process);
                target.watch_server(process.as_ref());
                Ok(Start::Ready(server, target))
            }
            FirstLook::Silence(why) => Ok(Start::Not(self.start_failure(server, &why))),
            FirstLook::Interrupted => Ok(Start::Interrupted),
        }
    }

    /// Checks that no other server answers on the port before the start. The port of the previous
    /// server may take a moment to close.
    fn silence(&self) -> Result<FirstLook, Failure> {
        let patience = if self.started > 0 { self.ready } else { Nanos::ZERO };
        self.look_until(
            patience,
            |look| matches!(look, FirstLook::Silence(_)),
            || false,
            |_| CHECK_MAX,
        )
    }

    fn answer(&self, server: &ServerProcess) -> Result<FirstLook, Failure> {
        let good = |look: &FirstLook| matches!(look, FirstLook::Response(target) if target.first_failure().is_none());
        let look =
            self.look_until(self.ready, good, || server.is_gone(), |left| left.max(CHECK_MIN))?;
        Ok(match look {
            FirstLook::Response(target) => match target.first_failure() {
                _ if server.is_gone() => FirstLook::Silence(String::new()),
                Some(why) => FirstLook::Silence(why.to_owned()),
                None => FirstLook::Response(target),
            },
            other => other,
        })
    }

    /// Repeats the check until it has the expected result, `patience` has elapsed, or waiting is
    /// futile. `length`: returns the duration of one check, given the remaining time.
    fn look_until(
        &self,
        patience: Nanos,
        wanted: impl Fn(&FirstLook) -> bool,
        over: impl Fn() -> bool,
        length: impl Fn(Nanos) -> Nanos,
    ) -> Result<FirstLook, Failure> {
        let start = net::reactor::monotonic();
        let mut pause = PAUSES.0;
        loop {
            let passed = net::reactor::monotonic() - start;
            let look = self.look(length(patience - passed.min(patience)))?;
            // the signal may have ended a server that is silent then
            if signals::received_signal() > 0 {
                return Ok(FirstLook::Interrupted);
            }
            let at_end = wanted(&look) || passed >= patience || over();
            if at_end || matches!(look, FirstLook::Interrupted) {
                return Ok(look);
            }
            if !signals::pause(pause) {
                return Ok(FirstLook::Interrupted);
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Makes one plain call.
    fn look(&self, patience: Nanos) -> Result<FirstLook, Failure> {
        let plan = self.asked.plan.with_patience(patience);
        let Some(mut target) = Session::reach(&plan, &self.asked.name, self.env)? else {
            return Ok(FirstLook::Interrupted);
        };
        if !target.is_reachable() {
            return Ok(FirstLook::Silence(target.first_failure().unwrap_or_default().to_owned()));
        }
        target.replace_base(&self.asked.plan);
        Ok(FirstLook::Response(Box::new(target)))
    }

    /// Ends the server, and returns why the run does not count, if so. After a signal, its exit is
    /// ignored: the signal may have ended it, and the run does not count anyway.
    fn close(&self, server: ServerProcess) -> Option<String> {
        let died = server.is_gone();
        match server.end() {
            _ if signals::received_signal() > 0 => None,
            Err(why) => Some(why),
            Ok(last) if died => {
                let how = last.ended.as_deref().unwrap_or_default();
                let letter = self.letter;
                Some(format!("{letter}'s server exited {how} on its own.{}", last.quoted()))
            }
            Ok(_) => None,
        }
    }

    fn address_in_use(&self) -> Failure {
        let (letter, url) = (self.letter, &self.asked.name);
        let text = match self.started {
            0 => format!(
                "a server answers at {url} before {letter}'s server is started; stop it, or give \
                 another port"
            ),
            _ => format!(
                "a server still answers at {url} after the previous one was stopped; a command \
                 must be the server or its parent: a server that another program starts (docker \
                 run -d, systemctl start) keeps running"
            ),
        };
        Failure::usage(text)
    }

    fn start_failure(&self, server: ServerProcess, why: &str) -> Failure {
        let (letter, url) = (self.letter, &self.asked.name);
        let gone = server.is_gone();
        let text = match server.end() {
            Err(why) => why,
            Ok(last) if gone => {
                let how = last.ended.as_deref().unwrap_or_default();
                format!(
                    "{letter}'s server ended {how} before it answered at {url}.{}",
                    last.quoted()
                )
            }
            Ok(last) => format!(
                "{letter}'s server did not answer at {url} within {}: {why} (--ready waits longer).{}",
                show::duration(self.ready),
                last.quoted()
            ),
        };
        Failure { code: Code::NoConnection, text }
    }

    fn label(&self) -> String {
        report::printable(&self.asked.label, super::LABEL_CHARS_MAX)
    }

    fn print_notes(&self, target: &Session) {
        if !self.quiet {
            target.notes().for_each(crate::print_message);
        }
    }
}
