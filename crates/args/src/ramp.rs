//! The options of `ramp`: the sequence of loads, and the options of `run` shared by all steps.

use super::apply::refuse_until_sure;
use super::run::*;
use super::vary::Vary;
use super::{Outputs, UsageError, parse};
use clap::Args;
use engine::ramp::{Course, Range, STEPS_MAX, Staircase};
use plan::rules::show_span;
use plan::{FileSource, Plan};
use stats::Objective;
use stats::curve::{Axis, SearchConfig};
use units::Nanos;

/// Step the load up: where is the knee, what is the capacity, and what comes after?
///
/// Without a range, the rate is doubled from 10/s (with --population: the number of users from 1)
/// until the server no longer keeps up. The gap around the knee is then filled in, and the server
/// is overloaded on purpose, up to twice its knee. With --to, the load never exceeds that value
/// unless --overload is given.
///
/// All other options are those of run: see loadstone run --help.
#[derive(Args, Clone, Debug, Default)]
#[command(
    override_usage = "loadstone ramp [OPTIONS] URL|PLAN.toml\n       loadstone ramp [OPTIONS] LABEL=URL LABEL=URL ...\n       loadstone ramp [OPTIONS] --script FILE URL [-- ARGUMENT...]",
    mut_arg("rate", |arg| arg.hide(true)),
    mut_arg("connections", |arg| arg.hide(true)),
    mut_arg("duration", |arg| arg.hide(true)),
    mut_arg("requests", |arg| arg.hide(true)),
    mut_arg("bytes-max", |arg| arg.hide(true)),
    mut_arg("once", |arg| arg.hide(true)),
    mut_arg("hdr", |arg| arg.hide(true)),
    mut_arg("junit", |arg| arg.hide(true)),
    mut_arg("log", |arg| arg.hide(true)),
    mut_arg("full", |arg| arg.hide(true)),
    mut_arg("line", |arg| arg.hide(true)),
    after_help = "\
Examples:
  loadstone ramp http://localhost:8080/          find the knee by itself
  loadstone ramp --from 100/s --to 350/s --step 10/s --repeat 4 URL
                                                 a staircase, as in a table
  loadstone ramp --find capacity --slo 'p99<50ms, failures<0.1%' URL
                                                 how much can it take?
  loadstone ramp --population --slo 'conforming>=95%' URL
                                                 how many smooth connections?
  loadstone ramp --vary 'loss=0..10%' -c 20 URL    what do lost packets cost?
  loadstone ramp prefork=URL cgi=URL             several, in turns, in one picture"
)]
pub struct RampArgs {
    /// URL or PLAN.toml, optionally as LABEL=URL; several are measured in turns
    #[arg(value_name = "[LABEL=]URL|PLAN.toml")]
    targets: Vec<String>,
    /// Arguments of a script; for one of k6, variables as NAME=VALUE
    #[arg(last = true, value_name = "ARGUMENT")]
    script_args: Vec<String>,
    #[command(flatten)]
    steps: StepArgs,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Steps")]
struct StepArgs {
    /// Lowest load: a rate, or users with --population [default: 10/s, or 1]
    #[arg(long, value_name = "LOAD")]
    from: Option<String>,
    /// Highest load [default: doubled until the server no longer keeps up]
    #[arg(long, value_name = "LOAD")]
    to: Option<String>,
    /// Difference between successive loads [default: ten loads]
    #[arg(long, value_name = "LOAD", conflicts_with = "factor")]
    step: Option<String>,
    /// Ratio of successive loads, instead of --step
    #[arg(long, value_name = "N")]
    factor: Option<f64>,
    /// Step the number of users of a closed load, instead of a rate
    #[arg(long, visible_alias = "users")]
    population: bool,
    /// Vary the path at a load that stays: loss=0..10%, rtt=0..300ms or rate=1M..16M (needs root)
    #[arg(long, value_name = "ITEM=A..B")]
    vary: Option<String>,
    /// Duration of a step [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    hold: Option<Nanos>,
    /// Longest wait for the server to become idle between steps [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    settle: Option<Nanos>,
    /// Run the steps in random order
    #[arg(long)]
    shuffle: bool,
    /// Repeat the same loads in descending order
    #[arg(long)]
    down: bool,
    /// Search for the highest load that meets the objectives: 'capacity' (those of --slo), or the
    /// objectives themselves
    #[arg(long, value_name = "capacity|RULES")]
    find: Option<String>,
    /// Overload at 1, 1.1, 1.5 and 2 times the knee and observe recovery, even beyond --to
    #[arg(long, conflicts_with = "no_overload")]
    overload: bool,
    /// Do not overload the server on purpose
    #[arg(long)]
    no_overload: bool,
}

/// Target with a label, both as given.
type Named = (Option<String>, Option<String>);

/// Parsed options of `ramp`.
#[derive(Debug)]
pub struct RampTask {
    pub targets: Vec<RampTarget>,
    pub outputs: Outputs,
    /// Maximum time for the server to become idle between steps.
    pub settle: Nanos,
}

/// Target with the course of its ramp.
#[derive(Debug)]
pub struct RampTarget {
    pub label: String,
    pub name: String,
    pub plan: Plan,
    pub course: Course,
    /// The paths of the levels, if the axis is a property of the path.
    pub vary: Option<Vary>,
}

const FROM_RATE: f64 = 10.0;
const USERS_FROM: f64 = 1.0;
/// Maximum automatic rate: the maximum that a plan accepts.
const TO_RATE: f64 = 1e7;
const TO_USERS: f64 = 100_000.0;
const LEVELS_DEFAULT: f64 = 10.0;
const HOLD: Nanos = Nanos::from_secs(5);
const SETTLE: Nanos = Nanos::from_secs(10);
const RECOVERY_MAX: Nanos = Nanos::from_secs(30);
/// A confirming trial is this many times as long as a search trial.
const CONFIRM_FACTOR: u32 = 3;
/// Maximum number of targets in a session.
const TARGETS_MAX: usize = 16;

impl RampArgs {
    /// # Errors
    /// Fails like [`RunArgs::into_plan`], and for contradictory steps.
    pub fn into_task(self, files: &dyn FileSource) -> Result<RampTask, UsageError> {
        self.refuse()?;
        let mut targets = Vec::new();
        let mut outputs = None;
        for (label, target) in self.named()? {
            let (mut plan, results) =
                self.one_run()?.into_plan(target.as_deref(), self.script_args.clone(), files)?;
            refuse_until_sure(&plan, "a ramp measures each step for --hold; leave it out")?;
            let vary = self.vary(&plan)?;
            let course = self.course(&plan, vary.as_ref())?;
            if let Some(vary) = &vary {
                plan.connection.path = Some(vary.at(vary.levels[0])?);
                // a path has its own rules
                plan::validate(&plan).map_err(UsageError::from)?;
            }
            let label = label.unwrap_or_else(|| results.name.clone());
            if targets.iter().any(|known: &RampTarget| known.label == label) {
                return Err(UsageError::new(format!(
                    "two targets are called {label}; give each its own label: LABEL=URL"
                )));
            }
            targets.push(RampTarget { label, name: results.name.clone(), plan, course, vary });
            outputs.get_or_insert(results);
        }
        let outputs = outputs.ok_or_else(no_target)?;
        Ok(RampTask { targets, outputs, settle: self.steps.settle.unwrap_or(SETTLE) })
    }

    /// Refuses options of `run` that a ramp sets itself.
    fn refuse(&self) -> Result<(), UsageError> {
        let CommonArgs { output, given } = &self.common;
        let reads = given.stdin_readers() > 0;
        let many = self.targets.len() > 1;
        let steps = &self.steps;
        for (wrong, text) in [
            (
                given.has("rate") && steps.vary.is_none(),
                "--rate: a ramp sets the rate of its steps; give --from and --to",
            ),
            (
                given.has("connections") && steps.vary.is_none(),
                "-c: a ramp sets the users of each step; give --population with --from and --to",
            ),
            (given.has("stages"), "--stages: each step of a ramp has one load; omit it"),
            (given.has("duration"), "-d: each step of a ramp lasts --hold; give that"),
            (given.has("requests"), "-n: the steps of a ramp end by time; give --hold"),
            (given.has("bytes-max"), "--bytes-max: the steps of a ramp end by time; give --hold"),
            (given.has("once"), "--once: the steps of a ramp end by time; omit it"),
            (output.hdr.is_some(), "--hdr is for single runs; give --json, which has every step"),
            (output.full, "--full: the text of a ramp is always complete"),
            (output.line, "--line is for single runs; -q prints the verdict and the answers"),
            (output.junit.is_some(), "--junit is for single runs; a ramp writes --json and --csv"),
            (output.log.is_some(), "--log is for single runs; a ramp writes --json and --csv"),
            (many && reads, "standard input can be read for one target only; give a file"),
            (
                steps.shuffle && steps.to.is_none() && steps.vary.is_none(),
                "--shuffle needs to know its steps: add --to",
            ),
            (
                (steps.step.is_some() || steps.factor.is_some())
                    && steps.to.is_none()
                    && steps.vary.is_none(),
                "--step and --factor need a highest load: add --to",
            ),
            (
                steps.find.is_some() && (steps.step.is_some() || steps.factor.is_some()),
                "--find chooses its own steps: omit --step and --factor",
            ),
            (
                steps.find.is_some() && (steps.down || steps.shuffle || given.has("repeat")),
                "--find chooses its own steps and repeats: omit --down, --shuffle and --repeat",
            ),
            (
                steps.hold.is_some_and(Nanos::is_zero),
                "--hold is 0, which leaves no time to measure; give 1s or more",
            ),
            (
                given.count("repeat") == Some(0_u32),
                "--repeat is 0, so nothing would run; give 1 or more",
            ),
        ] {
            if wrong {
                return Err(UsageError::new(text));
            }
        }
        self.refuse_with_vary()?;
        match self.targets.len() {
            count if count > TARGETS_MAX => Err(UsageError::new(format!(
                "a ramp measures at most {TARGETS_MAX} targets, and there are {count}; omit some"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses options without effect when the path varies and the load is constant.
    fn refuse_with_vary(&self) -> Result<(), UsageError> {
        let steps = &self.steps;
        if steps.vary.is_none() {
            return Ok(());
        }
        for (given, option, why) in [
            (steps.from.is_some() || steps.to.is_some(), "--from and --to", "it has its own range"),
            (steps.population, "--population", "the load is constant; give the users by -c"),
            (steps.find.is_some(), "--find", "it tries every path; give --slo alone"),
            (steps.overload || steps.no_overload, "an overload", "the load is constant"),
            (self.common.given.has("clients"), "--clients", "one path is varied, not many"),
        ] {
            if given {
                return Err(UsageError::new(format!("--vary cannot be used with {option}: {why}")));
            }
        }
        Ok(())
    }

    /// Returns the path of each level.
    fn vary(&self, plan: &Plan) -> Result<Option<Vary>, UsageError> {
        let Some(text) = &self.steps.vary else { return Ok(None) };
        if plan.connection.clients.is_some() {
            return Err(UsageError::new(
                "--vary varies one path, and the plan has clients with several paths; give it one path",
            ));
        }
        let base = plan.connection.path.as_ref();
        Vary::parse(text, base, self.steps.step.as_deref(), self.steps.factor).map(Some)
    }

    /// Returns the targets with their labels; one without a name if a list of URLs replaces it.
    fn named(&self) -> Result<Vec<Named>, UsageError> {
        if self.targets.is_empty() {
            let listed = self.common.given.has("urls");
            return if listed { Ok(vec![(None, None)]) } else { Err(no_target()) };
        }
        if let Some(range) = self.targets.iter().find(|text| is_load_range(text)) {
            return Err(UsageError::new(format!(
                "{} is not a URL; a ramp takes its loads as --from and --to",
                units::quoted(range)
            )));
        }
        let split = |text: &String| match label_of(text) {
            Some((label, target)) => (Some(label.to_owned()), Some(target.to_owned())),
            None => (None, Some(text.clone())),
        };
        Ok(self.targets.iter().map(split).collect())
    }

    /// Returns the equivalent options of `run` at the highest load.
    fn one_run(&self) -> Result<CommonArgs, UsageError> {
        let mut one = self.common.clone();
        // if the path is varied, the load is that of the options of `run`
        if self.steps.vary.is_none() {
            self.ends()?;
            let (option, least) = match self.steps.population {
                true => ("connections", USERS_FROM.to_string()),
                false => ("rate", format!("{FROM_RATE}/s")),
            };
            let typed = self.steps.to.as_ref().or(self.steps.from.as_ref());
            one.given.put(option, typed.unwrap_or(&least));
        }
        one.given.put("duration", &show_span(self.steps.hold.unwrap_or(HOLD)));
        one.given.leave_out(&["repeat"]);
        // a ramp measures throughput and objectives: a doubtful p99 does not invalidate a step
        one.given.or("doubt-max", "100%");
        Ok(one)
    }

    /// Returns the lowest load and, if given, the highest.
    fn ends(&self) -> Result<(f64, Option<f64>), UsageError> {
        let from = self.steps.load("--from", self.steps.from.as_deref())?;
        let to = self.steps.load("--to", self.steps.to.as_deref())?;
        let from = from.unwrap_or(match (self.steps.population, to) {
            (true, _) => USERS_FROM,
            // ten loads up to a low maximum start below the default
            (false, Some(to)) => FROM_RATE.min(to / LEVELS_DEFAULT),
            (false, None) => FROM_RATE,
        });
        if let Some(to) = to.filter(|to| *to < from) {
            return Err(UsageError::new(format!(
                "--from {from} is above --to {to}; a ramp goes up (--down adds the way back)"
            )));
        }
        Ok((from, to))
    }

    fn course(&self, plan: &Plan, vary: Option<&Vary>) -> Result<Course, UsageError> {
        let steps = &self.steps;
        if let Some(vary) = vary {
            let range = Range::Given(vary.levels.clone());
            return Ok(self.plain_course(vary.axis, range, plan));
        }
        let (from, to) = self.ends()?;
        let axis = if steps.population { Axis::Population } else { Axis::Rate };
        let mut objectives = plan.measure.slo.clone();
        let find = match steps.find.as_deref() {
            None => None,
            Some(text) => Some(self.search(text, from, to, &mut objectives)?),
        };
        let range = match (find.is_some(), to) {
            (false, Some(to)) => Range::Given(steps.levels(from, to)?),
            _ => Range::Automatic { from, to: to.unwrap_or(steps.most()) },
        };
        let overload = steps.overload || (to.is_none() && !steps.no_overload);
        Ok(Course { overload, find, objectives, ..self.plain_course(axis, range, plan) })
    }

    /// Returns the course of fixed loads: up, and down if requested.
    fn plain_course(&self, axis: Axis, range: Range, plan: &Plan) -> Course {
        let steps = &self.steps;
        Course {
            axis,
            range,
            repeat: self.common.given.count("repeat").unwrap_or(1),
            shuffle: steps.shuffle.then_some(plan.seed),
            down: steps.down,
            overload: false,
            find: None,
            objectives: plan.measure.slo.clone(),
            hold: steps.hold.unwrap_or(HOLD),
            confirm_factor: CONFIRM_FACTOR,
            recovery_max: RECOVERY_MAX,
        }
    }

    fn search(
        &self,
        text: &str,
        from: f64,
        to: Option<f64>,
        objectives: &mut Vec<Objective>,
    ) -> Result<SearchConfig, UsageError> {
        if text != "capacity" {
            objectives.extend(stats::parse_objectives(text).map_err(|error| {
                UsageError::new(format!("--find takes capacity, or objectives: {error}"))
            })?);
        }
        if objectives.is_empty() {
            return Err(UsageError::new(
                "--find capacity needs objectives: add --slo 'p99<50ms, \
                 failures<0.1%'",
            ));
        }
        let least = if self.steps.population { 1.0 } else { FROM_RATE / 1_024.0 };
        Ok(SearchConfig {
            lowest: if self.steps.from.is_some() { from } else { least },
            highest: to.unwrap_or(self.steps.most()),
            whole: self.steps.population,
            short_length: 1.0 / f64::from(CONFIRM_FACTOR),
            ..SearchConfig::from(from, objectives.clone())
        })
    }
}

impl StepArgs {
    /// Returns the load at a level of the requested axis.
    fn load(&self, option: &str, text: Option<&str>) -> Result<Option<f64>, UsageError> {
        let Some(text) = text else { return Ok(None) };
        let wrong = |why: String| UsageError::new(format!("{option}: {why}"));
        if !self.population {
            let rate = units::parse_rate(text).map_err(|error| wrong(error.to_string()))?.0;
            return match rate > 0.0 && rate <= TO_RATE {
                true => Ok(Some(rate)),
                false => {
                    Err(wrong(format!("{rate}/s is not a rate above 0 and up to {TO_RATE}/s")))
                }
            };
        }
        let users = parse::count::<u32>(text).map_err(|error| {
            wrong(format!("{error}; with --population loads are users: give a number like 64"))
        })?;
        match users {
            0 => Err(wrong("0 users make no calls; give 1 or more".to_owned())),
            users => Ok(Some(f64::from(users))),
        }
    }

    fn levels(&self, from: f64, to: f64) -> Result<Vec<f64>, UsageError> {
        let step = self.load("--step", self.step.as_deref())?;
        let staircase = match (step, self.factor) {
            (Some(step), _) => Staircase::Step(step),
            (None, Some(factor)) => Staircase::Factor(factor),
            (None, None) => {
                let gap = (to - from) / (LEVELS_DEFAULT - 1.0);
                Staircase::Step(if gap > 0.0 { gap } else { to })
            }
        };
        staircase.levels(from, to, self.population).ok_or_else(|| match self.factor {
            Some(factor) if factor.is_nan() || factor <= 1.0 => UsageError::new(format!(
                "--factor {factor} does not raise the load; give one above 1, like 2"
            )),
            _ => UsageError::new(format!(
                "that makes more than {STEPS_MAX} steps; give a larger --step or --factor"
            )),
        })
    }

    /// Returns the default highest load.
    fn most(&self) -> f64 {
        if self.population { TO_USERS } else { TO_RATE }
    }
}

/// Parses `LABEL=URL`: a label has letters, digits, `_`, `.`, `-` and spaces. The `=` of a query
/// comes after other characters.
pub(super) fn label_of(text: &str) -> Option<(&str, &str)> {
    let (label, target) = text.split_once('=')?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | ' ');
    (!label.is_empty() && !target.is_empty() && label.chars().all(plain)).then_some((label, target))
}

/// Returns whether the text is a number or a range instead of a URL, as in `--users 1..4`:
/// `--users` takes no value.
fn is_load_range(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.trim_end_matches("/s").chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
        && text.chars().filter(|c| *c == '.').count() < 3
}

fn no_target() -> UsageError {
    UsageError::new(
        "no URL is given; write loadstone ramp http://host:port/path, LABEL=URL LABEL=URL, or --urls \
         FILE",
    )
}
