//! The options of `compare`: two targets or two sets of stored runs, and the options of `run` for
//! the load that both get.

use super::apply::refuse_until_sure;
use super::gate::{Commits, GateArgs, GateTask, Gated};
use super::ramp::label_of;
use super::run::*;
use super::{Outputs, UsageError, parse};
use clap::Args;
use plan::{FileSource, HttpVersion, Load, Plan};
use record::compare::{FailIf, LETTERS, Scope, plan_differences};
use stats::compare::BLOCKS_MIN;
use std::path::PathBuf;
use units::Nanos;

/// Is B slower than A? Two servers measured in turns, or two sets of stored runs
///
/// Two URLs are measured in blocks, A B B A or B A A B as drawn by the seed, so that changes on the
/// machines affect both sides alike. With --a-command and --b-command, the servers are restarted
/// for each run, on one port if you like, and stopped after it. Stored runs are named by id or tag,
/// separated by commas; a comparison needs at least four runs on each side to be conclusive (run
/// --repeat 4).
///
/// One URL over two or three protocols, --http 1.1,2,3, is measured in the same way, with the same
/// number of calls in flight over each, and each is compared with the first; HTTP/2 and HTTP/3 use
/// --streams per connection.
///
/// All other options are those of run: see loadstone run --help.
#[derive(Args, Clone, Debug, Default)]
#[command(
    override_usage = "loadstone compare [OPTIONS] [LABEL=]URL|PLAN.toml [LABEL=]URL|PLAN.toml\n       loadstone compare --a-command CMD --b-command CMD [OPTIONS] URL|PLAN.toml\n       loadstone compare --commit-a REV --commit-b REV --start CMD [OPTIONS] URL\n       loadstone compare --http 1.1,2[,3] [OPTIONS] URL|PLAN.toml\n       loadstone compare [OPTIONS] RUN[,RUN...] RUN[,RUN...]",
    mut_arg("duration", |arg| arg.visible_alias("hold").help("Duration of a run [default: 10s]")),
    mut_arg("repeat", |arg| arg.hide(true)),
    mut_arg("hdr", |arg| arg.hide(true)),
    mut_arg("junit", |arg| arg.help("Write the bounds (--fail-if) as JUnit XML, a test case for each")),
    mut_arg("md", |arg| arg.help("Write the answer, the bounds and the differences as Markdown")),
    mut_arg("log", |arg| arg.hide(true)),
    mut_arg("live", |arg| arg.hide(true)),
    mut_arg("full", |arg| arg.hide(true)),
    mut_arg("line", |arg| arg.hide(true)),
    mut_arg("metrics", |arg| arg.hide(true)),
    mut_arg("otlp", |arg| arg.hide(true)),
    mut_arg("sut", |arg| arg.hide(true)),
    after_help = "\
Examples:
  loadstone compare http://old:8080/ http://new:8080/
                                                 six blocks of four runs of 10 s
  loadstone compare -c 64 -d 30s --blocks 10 old=URL new=URL
  loadstone compare --fail-if 'p99 +5%' --fail-if 'throughput -3%' URL URL
                                                 exit code 1 when it got worse
  loadstone compare --a-command ./old --b-command ./new http://localhost:8080/
                                                 two builds, on one port
  loadstone compare --budget 10m --fail-if 'p99 +3%' --a-command ./old --b-command ./new URL
                                                 stops as soon as the answer is certain
  loadstone compare --http 1.1,2,3 -c 60 --streams 60 https://shop/
                                                 60 connections against one and one
  loadstone compare last~1 last                  two stored runs"
)]
pub struct CompareArgs {
    /// Baseline: a URL, a plan, or stored runs
    #[arg(value_name = "A")]
    before: String,
    /// Candidate: the same kind of argument; omit it where both commands serve one URL, and where
    /// protocols are compared
    #[arg(value_name = "B")]
    after: Option<String>,
    /// Arguments of a script; for one of k6, variables as NAME=VALUE
    #[arg(last = true, value_name = "ARGUMENT")]
    script_args: Vec<String>,
    #[command(flatten)]
    comparison: ComparisonArgs,
    #[command(flatten)]
    gate: GateArgs,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Comparison")]
struct ComparisonArgs {
    /// Number of blocks, at least five, with two runs of each side [default: 6]
    #[arg(long, value_name = "N", value_parser = parse::count::<u32>)]
    blocks: Option<u32>,
    /// Start A's server before each of its runs (sh -c COMMAND) and stop everything it started
    /// after the run: with SIGTERM, after 5 s with SIGKILL
    #[arg(long, visible_alias = "start-a", value_name = "COMMAND")]
    a_command: Option<String>,
    /// The same for B
    #[arg(long, visible_alias = "start-b", value_name = "COMMAND")]
    b_command: Option<String>,
    /// Longest time such a server may take to become ready [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    ready: Option<Nanos>,
    /// Exit with code 1 if a figure of B (or C) has moved by more than this: 'p99 +5%'; may be given
    /// several times
    #[arg(long, value_name = "BOUND", value_parser = FailIf::parse)]
    fail_if: Vec<FailIf>,
    /// Compare even if the plans differ
    #[arg(long)]
    force: bool,
}

/// Parsed options of `compare`.
#[derive(Debug)]
pub enum CompareTask {
    Live(Box<LiveTask>),
    Stored(Box<StoredTask>),
}

/// Targets that are measured in turns.
#[derive(Debug)]
pub struct LiveTask {
    /// Two, or more of which each is compared with the first.
    pub sides: Vec<CompareSide>,
    /// Maximum time for a server to answer after its start.
    pub ready: Nanos,
    pub blocks: u32,
    pub bounds: Vec<FailIf>,
    /// Bounds checked after every block until the answer is certain; without a gate, all blocks are
    /// measured first.
    pub gate: Option<GateTask>,
    /// Commits that the sides are built from.
    pub commits: Option<Commits>,
    /// Cautions about differences between the plans, which an option permits.
    pub cautions: Vec<String>,
    pub outputs: Outputs,
}

#[derive(Debug)]
pub struct CompareSide {
    pub label: String,
    pub name: String,
    pub plan: Plan,
    /// Command that starts the target's server for each run; `None` if the server is started
    /// separately.
    pub command: Option<String>,
    /// Working directory of `command`; `None` for the current one.
    pub directory: Option<PathBuf>,
    /// Server process to watch, if its CPU time is bounded.
    pub sut: Option<session::sut::SutTarget>,
}

/// Two sets of stored runs to compare.
#[derive(Debug)]
pub struct StoredTask {
    pub labels: [String; 2],
    /// Ids or tags of the runs.
    pub sets: [Vec<String>; 2],
    pub force: bool,
    pub bounds: Vec<FailIf>,
    pub outputs: Outputs,
}

const BLOCKS: u32 = 6;
/// Options that end a comparison early.
const EARLY: &str = "a comparison ends early with --budget and --fail-if; leave it out";
/// Maximum number of blocks. A session of this length takes eleven hours with runs of 10 s.
pub(super) const BLOCKS_MAX: u32 = 1_000;
const READY: Nanos = Nanos::from_secs(10);
/// Maximum length of a command as the name of its side, in characters.
const LABEL_CHARS_MAX: usize = 60;
/// Maximum number of characters of a command that are read to make a label.
const COMMAND_CHARS_MAX: usize = 10_000;
/// Maximum number of stored runs per side.
const SET_MAX: usize = 1_000;

impl CompareArgs {
    /// # Errors
    /// Fails like [`RunArgs::into_plan`], for a URL against a stored run, and for plans that differ
    /// without `--force`.
    pub fn into_task(mut self, files: &dyn FileSource) -> Result<CompareTask, UsageError> {
        self.gate
            .settle_commands(&mut self.comparison.a_command, &mut self.comparison.b_command)?;
        self.refuse()?;
        self.gate.check(&self.gated())?;
        if !self.before.ends_with(".toml") {
            self.gate.settle_duration(&mut self.common.given);
        }
        if self.common.given.versions().len() > 1 {
            return self.into_protocols(files);
        }
        let Some(after) = &self.after else { return self.into_live(files) };
        match (is_target(&self.before), is_target(after)) {
            (true, true) => self.into_live(files),
            (false, false) => self.into_stored(),
            (before, _) => {
                let (url, stored) =
                    if before { (&self.before, after) } else { (after, &self.before) };
                Err(UsageError::new(format!(
                    "{url} is a URL and {stored} is a stored run; compare two URLs or two stored runs (a \
                     URL has a scheme: http://{stored}/)"
                )))
            }
        }
    }

    /// Refuses options of `run` that a comparison sets itself, and contradictions.
    fn refuse(&self) -> Result<(), UsageError> {
        let blocks = self.comparison.blocks.unwrap_or(BLOCKS);
        let output = &self.common.output;
        let options = &self.common.given;
        let ComparisonArgs { a_command, b_command, ready, .. } = &self.comparison;
        let commands = || [a_command, b_command].into_iter().flatten();
        for (given, text) in [
            (options.has("repeat"), "--repeat: a comparison repeats in blocks; give --blocks"),
            (
                self.common.given.stdin_readers() > 0,
                "standard input can be read for one target only; give a file",
            ),
            (
                output.junit.is_some() && self.comparison.fail_if.is_empty(),
                "--junit has a test case for each bound; add --fail-if 'p99 +5%'",
            ),
            (output.hdr.is_some(), "--hdr is for single runs; give --json, which has every run"),
            (
                output.log.is_some(),
                "--log is for single runs; a comparison writes --json and --csv",
            ),
            (output.full, "--full: the text of a comparison is always complete"),
            (output.line, "--line is for single runs; -q prints the answer"),
            (output.live, "--live shows single runs; a comparison shows its runs on one line"),
            (
                output.metrics.is_some() || output.otlp.is_some(),
                "--metrics and --otlp are for single runs; omit them",
            ),
            (
                output.sut.is_some(),
                "--sut is for single runs and ramps; a gate on cpu has --sut-a and --sut-b",
            ),
            (
                commands().any(|command| command.trim().is_empty()),
                "--a-command and --b-command take the shell command that starts a server; this \
                 one is empty",
            ),
            (
                ready.is_some() && commands().next().is_none(),
                "--ready is for servers that --a-command and --b-command start; add these",
            ),
            (
                self.after.is_none()
                    && self.common.given.versions().len() < 2
                    && (a_command.is_none() || b_command.is_none() || !is_target(&self.before)),
                "one URL needs two servers or several protocols: give both \
                 --a-command and --b-command, or --http 1.1,2",
            ),
        ] {
            if given {
                return Err(UsageError::new(text));
            }
        }
        if blocks < BLOCKS_MIN as u32 || blocks > BLOCKS_MAX {
            return Err(UsageError::new(format!(
                "--blocks {blocks}: must be {BLOCKS_MIN} to {BLOCKS_MAX} to show a difference"
            )));
        }
        Ok(())
    }

    /// Returns the data that the gate is checked against.
    fn gated(&self) -> Gated<'_> {
        Gated {
            bounds: &self.comparison.fail_if,
            protocols: self.common.given.versions().len() > 1,
            stored: self.after.as_ref().is_some_and(|after| !is_target(after)),
            started: self.comparison.a_command.is_some() || self.comparison.b_command.is_some(),
            starts: self.comparison.a_command.is_some() && self.comparison.b_command.is_some(),
            blocks: self.comparison.blocks,
        }
    }

    fn into_live(self, files: &dyn FileSource) -> Result<CompareTask, UsageError> {
        let (mut before, mut outputs) =
            self.side(&self.before, self.comparison.a_command.as_ref(), files)?;
        let after = self.after.as_ref().unwrap_or(&self.before);
        let (mut after, _) = self.side(after, self.comparison.b_command.as_ref(), files)?;
        if before.label == after.label {
            // comparing a server with itself shows its noise
            before.label.push_str(" (A)");
            after.label.push_str(" (B)");
        }
        [before.sut, after.sut] = self.gate.suts();
        let toml = |side: &CompareSide| plan::to_toml(&side.plan, plan::Secrets::Masked);
        let differ = plan_differences(&toml(&before), &toml(&after), Scope::SameLoad);
        let cautions = differing_plans(&differ, self.comparison.force)?;
        outputs.name = format!("{} against {}", after.label, before.label);
        let gate = self.gate.task(&self.comparison.fail_if, &before.plan)?;
        let blocks = if gate.is_some() { BLOCKS_MAX } else { BLOCKS };
        Ok(CompareTask::Live(Box::new(LiveTask {
            sides: vec![before, after],
            ready: self.comparison.ready.unwrap_or(READY),
            blocks: self.comparison.blocks.unwrap_or(blocks),
            bounds: self.comparison.fail_if,
            gate,
            commits: self.gate.commits(),
            cautions,
            outputs,
        })))
    }

    /// Returns a comparison of one URL over several protocols.
    fn into_protocols(self, files: &dyn FileSource) -> Result<CompareTask, UsageError> {
        let versions = self.common.given.versions();
        let streams = self.common.given.count("streams");
        self.refuse_protocols(&versions)?;
        let mut sides = Vec::new();
        let mut outputs = None;
        for version in versions {
            let mut common = self.common.clone();
            let junit = common.output.junit.take();
            common.given.put("http", parse::name_of(version));
            common.given.keep_version(version);
            let (mut plan, mut results) =
                common.into_plan(Some(self.before.as_str()), self.script_args.clone(), files)?;
            refuse_until_sure(&plan, EARLY)?;
            results.junit = junit;
            results.check()?;
            share_calls(&mut plan, streams)?;
            let label = version.name().to_owned();
            let name = results.name.clone();
            sides.push(CompareSide {
                label,
                name,
                plan,
                command: None,
                directory: None,
                sut: None,
            });
            outputs.get_or_insert(results);
        }
        let Some(mut outputs) = outputs else {
            return Err(UsageError::new("a comparison has two sides"));
        };
        let labels: Vec<&str> =
            sides.iter().map(|side: &CompareSide| side.label.as_str()).collect();
        outputs.name =
            format!("{}: {} against {}", outputs.name, labels[1..].join(" and "), labels[0]);
        Ok(CompareTask::Live(Box::new(LiveTask {
            sides,
            ready: READY,
            blocks: self.comparison.blocks.unwrap_or(BLOCKS),
            bounds: self.comparison.fail_if,
            gate: None,
            commits: None,
            // the protocols differ on purpose
            cautions: Vec::new(),
            outputs,
        })))
    }

    /// Refuses options that contradict a comparison of these protocols.
    fn refuse_protocols(&self, versions: &[HttpVersion]) -> Result<(), UsageError> {
        let ComparisonArgs { a_command, b_command, force, .. } = &self.comparison;
        let has = |version| versions.contains(&version);
        for (given, text) in [
            (
                self.after.is_some(),
                "--http with several versions is for one URL, which is measured over each; omit \
                 one URL, or name one version",
            ),
            (
                !is_target(&self.before),
                "--http with several versions needs a new measurement: give a URL or a plan, not a stored run",
            ),
            (
                a_command.is_some() || b_command.is_some(),
                "--http with several versions measures one server over each: start it yourself, \
                 and omit --a-command and --b-command",
            ),
            (*force, "--force: the protocols differ on purpose; omit it"),
            (
                has(HttpVersion::Auto),
                "--http auto leaves the choice to the server: name the protocols, as in --http 1.1,2",
            ),
        ] {
            if given {
                return Err(UsageError::new(text));
            }
        }
        if (1..versions.len()).any(|at| versions[..at].contains(&versions[at])) {
            return Err(UsageError::new(
                "--http names one version twice: that would compare the server with itself; name \
                 each once, as in --http 1.1,2,3, or give the URL twice",
            ));
        }
        if versions.len() > LETTERS.len() {
            return Err(UsageError::new(format!(
                "--http names {} versions; a comparison takes {} at most, as in --http 1.1,2,3",
                versions.len(),
                LETTERS.len()
            )));
        }
        Ok(())
    }

    /// Returns one side of the comparison. Its name is the label or, if one URL serves both sides,
    /// the command.
    fn side(
        &self,
        text: &str,
        command: Option<&String>,
        files: &dyn FileSource,
    ) -> Result<(CompareSide, Outputs), UsageError> {
        let (label, target) = match label_of(text) {
            Some((label, target)) => (Some(label.to_owned()), target),
            None => (None, text),
        };
        let mut common = self.common.clone();
        // its cases are the bounds, not objectives
        let junit = common.output.junit.take();
        let (plan, mut outputs) =
            common.into_plan(Some(target), self.script_args.clone(), files)?;
        refuse_until_sure(&plan, EARLY)?;
        outputs.junit = junit;
        outputs.check()?;
        let name = outputs.name.clone();
        let one_url = self.after.as_ref().is_none_or(|after| *after == self.before);
        let label = label
            .filter(|_| self.after.is_some())
            .or_else(|| command.filter(|_| one_url).map(|text| shortened(text)))
            .unwrap_or_else(|| name.clone());
        let command = command.cloned();
        Ok((CompareSide { label, name, plan, command, directory: None, sut: None }, outputs))
    }

    fn into_stored(self) -> Result<CompareTask, UsageError> {
        let default = CompareArgs {
            before: self.before.clone(),
            after: self.after.clone(),
            script_args: Vec::new(),
            comparison: ComparisonArgs {
                fail_if: self.comparison.fail_if.clone(),
                force: self.comparison.force,
                ..ComparisonArgs::default()
            },
            gate: GateArgs::default(),
            common: CommonArgs { output: self.common.output.clone(), ..CommonArgs::default() },
        };
        // load options would be ignored
        if format!("{self:?}") != format!("{default:?}") {
            return Err(UsageError::new(
                "stored runs are compared as they are: of the options only --fail-if, --force and \
                 those of the output apply; for a new measurement give two URLs",
            ));
        }
        if self.common.output.print_plan {
            return Err(UsageError::new(
                "--print-plan: stored runs are not measured again; loadstone runs show RUN --plan prints \
                 the plan of one",
            ));
        }
        let set = |text: &String| -> Result<Vec<String>, UsageError> {
            let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
            if names.iter().any(String::is_empty) || names.len() > SET_MAX {
                return Err(UsageError::new(format!(
                    "{} names no stored runs; write RUN or RUN,RUN,RUN",
                    units::quoted(text)
                )));
            }
            Ok(names)
        };
        let after = self.after.unwrap_or_default();
        let sets = [set(&self.before)?, set(&after)?];
        let name = format!("{after} against {}", self.before);
        let outputs = self.common.output.outputs(name, false);
        outputs.check()?;
        Ok(CompareTask::Stored(Box::new(StoredTask {
            labels: [self.before, after],
            sets,
            force: self.comparison.force,
            bounds: self.comparison.fail_if,
            outputs,
        })))
    }
}

/// Keeps the number of concurrent calls equal over each protocol: more streams per connection mean
/// fewer connections.
fn share_calls(plan: &mut Plan, streams: Option<u32>) -> Result<(), UsageError> {
    let multiplexed = plan.request.version.has_streams();
    let (Some(streams), Load::Closed { users, .. }) =
        (streams.filter(|_| multiplexed), &mut plan.load)
    else {
        return Ok(());
    };
    if *users == 0 || !users.is_multiple_of(streams) {
        return Err(UsageError::new(format!(
            "-c {users} is not a multiple of --streams {streams}, so a connection would not be \
             full: give a multiple of {streams}, such as -c {}",
            users.div_ceil(streams) * streams
        )));
    }
    *users /= streams;
    Ok(())
}

/// Shortens a command to one line by omitting its middle: commands of builds differ in their names
/// or in their last options.
fn shortened(command: &str) -> String {
    let line = report::printable(command, COMMAND_CHARS_MAX);
    if line.len() <= LABEL_CHARS_MAX {
        return line;
    }
    let half = (LABEL_CHARS_MAX - 3) / 2;
    format!("{}...{}", &line[..half], &line[line.len() - half..])
}

/// Returns whether the text is a URL, a host with a port, or a plan file; anything else names a
/// stored run.
fn is_target(text: &str) -> bool {
    let target = label_of(text).map_or(text, |(_, target)| target);
    target.contains("://")
        || target.ends_with(".toml")
        || plan::is_javascript(target)
        || target.contains([':', '/'])
}

/// Returns a caution if the plans may differ and do.
///
/// # Errors
/// Fails without permission to compare them.
pub fn differing_plans(differ: &[String], force: bool) -> Result<Vec<String>, UsageError> {
    /// Minimum difference to report.
    const SHOWN: usize = 5;
    if differ.is_empty() {
        return Ok(Vec::new());
    }
    let more = match differ.len() {
        0..=SHOWN => String::new(),
        count => format!(", and {} more", count - SHOWN),
    };
    let list = format!("{}{more}", differ[..differ.len().min(SHOWN)].join("; "));
    match force {
        true => Ok(vec![format!("The plans differ: {list}.")]),
        false => Err(UsageError::new(format!(
            "the two did not get the same load, so a difference could be due to the load: {list}; \
             --force compares them nevertheless"
        ))),
    }
}
