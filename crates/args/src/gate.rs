//! The options of a gate: a comparison that stops as soon as its answer is certain.

use super::UsageError;
use super::options::GivenOptions;
use clap::{Args, ValueEnum};
use plan::Plan;
use record::compare::{FailIf, Gate, OF_A_BLOCK};
use session::sut::SutTarget;
use units::{Nanos, show};

/// Divisor of the budget for the duration of a run if `-d` is not given: 40 blocks of four runs.
const RUNS_OF_BUDGET: u64 = 160;
/// Minimum and maximum duration of such a run.
const RUN_LENGTHS: (Nanos, Nanos) = (Nanos::SECOND, Nanos::from_secs(10));

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Gate")]
pub(super) struct GateArgs {
    /// Judge the --fail-if bounds after every block and stop as soon as the answer is certain: exit
    /// code 0 pass, 1 fail, 4 undecidable within this time
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    budget: Option<Nanos>,
    /// Build and start A from this commit of the repository in the working directory
    #[arg(long, value_name = "REV", requires = "commit_b", requires = "start")]
    commit_a: Option<String>,
    /// The same for B
    #[arg(long, value_name = "REV", requires = "commit_a")]
    commit_b: Option<String>,
    /// Shell command that builds each commit, in its own worktree
    #[arg(long, value_name = "COMMAND", requires = "commit_a")]
    build: Option<String>,
    /// Shell command that starts the server of each commit, in its worktree, before each run
    #[arg(long, value_name = "COMMAND", requires = "commit_a", conflicts_with_all = ["a_command", "b_command"])]
    start: Option<String>,
    /// Measure the sides in turns, both at the same moment (two URLs of running servers and spare
    /// cores), or as a pilot decides
    #[arg(long, value_name = "DESIGN", requires = "budget")]
    design: Option<Design>,
    /// Watch A's running server for a bound on cpu: a process number on this machine, or the URL of
    /// a node exporter
    #[arg(long, value_name = "PID|URL", value_parser = session::sut::parse, requires = "sut_b", requires = "budget")]
    sut_a: Option<SutTarget>,
    /// The same for B
    #[arg(long, value_name = "PID|URL", value_parser = session::sut::parse, requires = "sut_a")]
    sut_b: Option<SutTarget>,
}

/// Properties of a comparison that a gate needs.
pub(super) struct Gated<'a> {
    pub(super) bounds: &'a [FailIf],
    pub(super) protocols: bool,
    pub(super) stored: bool,
    /// A server is started by a command.
    pub(super) started: bool,
    /// Both servers are started by a command.
    pub(super) starts: bool,
    pub(super) blocks: Option<u32>,
}

/// Parameters of a gate.
#[derive(Clone, Debug)]
pub struct GateTask {
    pub budget: Nanos,
    pub design: Design,
}

/// Arrangement of the runs of a block in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Design {
    /// One run after the other
    #[default]
    Turns,
    /// Both sides at the same moment
    Duet,
    /// The design with the smaller variance in a pilot
    Auto,
}

/// Commits of one repository that are built and compared.
#[derive(Clone, Debug)]
pub struct Commits {
    pub revisions: [String; 2],
    pub build: Option<String>,
}

impl GateArgs {
    /// Sets the command that starts a commit's server on both sides.
    ///
    /// # Errors
    /// Fails for an empty revision or command.
    pub(super) fn settle_commands(
        &self,
        a_command: &mut Option<String>,
        b_command: &mut Option<String>,
    ) -> Result<(), UsageError> {
        for (option, text) in [
            ("--commit-a", &self.commit_a),
            ("--commit-b", &self.commit_b),
            ("--build", &self.build),
            ("--start", &self.start),
        ] {
            let bad = text.as_ref().is_some_and(|text| text.trim().is_empty());
            // git would read it as an option
            let dashed = text.as_ref().is_some_and(|text| text.starts_with('-'));
            if bad || (dashed && option.starts_with("--commit")) {
                return Err(UsageError::new(format!(
                    "{option} {:?}: give a commit such as main or HEAD~1, or a shell command",
                    text.as_deref().unwrap_or_default()
                )));
            }
        }
        if let Some(start) = &self.start {
            *a_command = Some(start.clone());
            *b_command = Some(start.clone());
        }
        Ok(())
    }

    /// # Errors
    /// Fails for a budget without bounds, a comparison that cannot be judged block by block, or a
    /// figure that only a gate has.
    pub(super) fn check(&self, gated: &Gated<'_>) -> Result<(), UsageError> {
        let cpu = gated.bounds.iter().any(FailIf::is_cpu_time);
        let needs_budget = gated.bounds.iter().find(|bound| bound.needs_budget());
        for (given, text) in [
            (
                self.budget.is_some() && gated.bounds.is_empty(),
                "--budget is the time for a gate to judge its bounds; add one, such as --fail-if \
                 'p99 +3%'",
            ),
            (
                self.budget.is_some() && gated.protocols,
                "--budget compares two servers; with several versions of HTTP give --blocks",
            ),
            (
                self.budget.is_some() && gated.stored,
                "--budget is for new measurements; stored runs are complete: omit it",
            ),
            (
                self.budget.is_some() && gated.blocks.is_some(),
                "--budget and --blocks both set the end: give one of them",
            ),
            (
                self.design.is_some_and(|design| design != Design::Turns) && gated.started,
                "--design duet and auto load both servers at the same moment: start them yourself, \
                 on two ports, and give both URLs",
            ),
            (
                cpu && !gated.starts && self.sut_a.is_none(),
                "a bound on cpu needs servers whose processes are known: start both with --start-a \
                 and --start-b or with --commit-a and --commit-b, or name them with --sut-a and \
                 --sut-b",
            ),
            (
                self.sut_a.is_some() && gated.started,
                "--sut-a and --sut-b name running servers; one that a command starts is watched \
                 anyway: leave them out",
            ),
            (
                self.sut_a.is_some() && !cpu,
                "--sut-a and --sut-b are for a bound on the server's CPU time per call; add \
                 --fail-if 'cpu +5%'",
            ),
        ] {
            if given {
                return Err(UsageError::new(text));
            }
        }
        if let (Some(bound), None) = (needs_budget, self.budget) {
            return Err(UsageError::new(format!(
                "--fail-if '{}': this figure is judged by a gate; add --budget 10m",
                bound.text()
            )));
        }
        Ok(())
    }

    /// Sets the duration of runs from the budget, if none is given.
    pub(super) fn settle_duration(&self, given: &mut GivenOptions) {
        let Some(budget) = self.budget else { return };
        if given.has("duration") || given.has("requests") {
            return;
        }
        let length = Nanos(budget.0 / RUNS_OF_BUDGET).clamp(RUN_LENGTHS.0, RUN_LENGTHS.1);
        let whole = Nanos(length.0 / 100_000_000 * 100_000_000);
        given.put("duration", &format!("{}ms", whole.0 / 1_000_000));
    }

    /// Returns the gate of these bounds.
    ///
    /// # Errors
    /// Fails for a budget too short for any answer.
    pub(super) fn task(
        &self,
        bounds: &[FailIf],
        plan: &Plan,
    ) -> Result<Option<GateTask>, UsageError> {
        let Some(budget) = self.budget else { return Ok(None) };
        let blocks = Gate::blocks_min(bounds.len()) as u64;
        let design = self.design.unwrap_or_default();
        if let Some(run) = plan.stop.duration.filter(|_| design == Design::Turns) {
            let least = run * (blocks * 2 * OF_A_BLOCK as u64);
            if least > budget {
                return Err(UsageError::new(format!(
                    "--budget {}: an answer needs at least {blocks} blocks of four runs of {}, \
                     which is {}; give shorter runs (-d) or a longer budget",
                    show::duration(budget),
                    show::duration(run),
                    show::duration(least)
                )));
            }
        }
        Ok(Some(GateTask { budget, design }))
    }

    /// Returns the running servers of A and B, if their CPU time is bounded.
    pub(super) fn suts(&self) -> [Option<SutTarget>; 2] {
        [self.sut_a.clone(), self.sut_b.clone()]
    }

    pub(super) fn commits(&self) -> Option<Commits> {
        let revisions = [self.commit_a.clone()?, self.commit_b.clone()?];
        Some(Commits { revisions, build: self.build.clone() })
    }
}
