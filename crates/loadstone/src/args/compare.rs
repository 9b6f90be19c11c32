//! The options of `compare`: two targets or two sets of stored runs, beside the options of `run` for
//! the load that both get.

use super::ramp::label_of;
use super::run::*;
use super::{Outputs, UsageError, parse};
use clap::Args;
use plan::{FileSource, Plan};
use report::compare::{FailIf, Scope, plan_differences};
use stats::compare::BLOCKS_MIN;

/// Is B slower than A? Two servers measured in turns, or two sets of stored runs
///
/// Two URLs are measured in blocks, A B B A or B A A B as the seed draws, so that what changes on
/// the machines falls on both alike. Stored runs are named by id or tag, several between commas:
/// they say something where there are four or more a side (run --repeat 4).
///
/// All that is not about the comparison is as with run: see loadstone run --help.
#[derive(Args, Clone, Debug, Default)]
#[command(
    override_usage = "loadstone compare [OPTIONS] [LABEL=]URL|PLAN.toml [LABEL=]URL|PLAN.toml\n       loadstone compare [OPTIONS] RUN[,RUN...] RUN[,RUN...]",
    mut_arg("duration", |arg| arg.visible_alias("hold").help("Length of a run [default: 10s]")),
    mut_arg("repeat", |arg| arg.hide(true)),
    mut_arg("hdr", |arg| arg.hide(true)),
    mut_arg("log", |arg| arg.hide(true)),
    mut_arg("live", |arg| arg.hide(true)),
    mut_arg("metrics", |arg| arg.hide(true)),
    mut_arg("otlp", |arg| arg.hide(true)),
    after_help = "\
Examples:
  loadstone compare http://old:8080/ http://new:8080/
                                                 six blocks of four runs of 10 s
  loadstone compare -c 64 -d 30s --blocks 10 old=URL new=URL
  loadstone compare --fail-if 'p99 +5%' --fail-if 'throughput -3%' URL URL
                                                 exit code 1 when it got worse
  loadstone compare last~1 last                  two stored runs"
)]
pub(crate) struct CompareArgs {
    /// What is compared with: a URL, a plan, or stored runs
    #[arg(value_name = "A")]
    before: String,
    /// What is compared: the same kind of thing
    #[arg(value_name = "B")]
    after: String,
    #[command(flatten)]
    comparison: ComparisonArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    expect: ExpectArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    driver: DriverArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Comparison")]
struct ComparisonArgs {
    /// Blocks of four runs; five or more [default: 6]
    #[arg(long, value_name = "N", value_parser = parse::count::<u32>)]
    blocks: Option<u32>,
    /// Exit code 1 when a figure of B is shown to have moved further: 'p99 +5%'; may be given
    /// several times
    #[arg(long, value_name = "BOUND", value_parser = FailIf::parse)]
    fail_if: Vec<FailIf>,
    /// Compare even if the plans differ
    #[arg(long)]
    force: bool,
}

/// What was asked of `compare`.
#[derive(Debug)]
pub(crate) enum CompareTask {
    Live(Box<LiveTask>),
    Stored(Box<StoredTask>),
}

/// Two targets in turns.
#[derive(Debug)]
pub(crate) struct LiveTask {
    pub(crate) sides: [CompareSide; 2],
    pub(crate) blocks: u32,
    pub(crate) bounds: Vec<FailIf>,
    /// That the plans differ, where they may.
    pub(crate) cautions: Vec<String>,
    pub(crate) outputs: Outputs,
}

#[derive(Debug)]
pub(crate) struct CompareSide {
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) plan: Plan,
}

/// Two sets of stored runs.
#[derive(Debug)]
pub(crate) struct StoredTask {
    pub(crate) labels: [String; 2],
    /// Ids or tags.
    pub(crate) sets: [Vec<String>; 2],
    pub(crate) force: bool,
    pub(crate) bounds: Vec<FailIf>,
    pub(crate) outputs: Outputs,
}

const BLOCKS: u32 = 6;
/// A session of these, of 10 s each, takes eleven hours.
const BLOCKS_MAX: u32 = 1_000;
/// Stored runs on one side.
const SET_MAX: usize = 1_000;

impl CompareArgs {
    /// # Errors
    /// As [`RunArgs::into_plan`]; a URL against a stored run; plans that differ without `--force`.
    pub(crate) fn into_task(self, files: &dyn FileSource) -> Result<CompareTask, UsageError> {
        self.refuse()?;
        match (is_target(&self.before), is_target(&self.after)) {
            (true, true) => self.into_live(files),
            (false, false) => self.into_stored(),
            (before, _) => {
                let (url, stored) = match before {
                    true => (&self.before, &self.after),
                    false => (&self.after, &self.before),
                };
                Err(UsageError::new(format!(
                    "{url} is to be measured and {stored} is a stored run; compare two of a kind (a \
                     URL has a scheme: http://{stored}/)"
                )))
            }
        }
    }

    /// Options of `run` that a comparison decides itself.
    fn refuse(&self) -> Result<(), UsageError> {
        let stdin = Some("-");
        let reads =
            self.request.urls.as_deref() == stdin || self.request.body_file.as_deref() == stdin;
        let blocks = self.comparison.blocks.unwrap_or(BLOCKS);
        let output = &self.output;
        for (given, text) in [
            (self.end.repeat.is_some(), "--repeat: a comparison repeats in blocks; give --blocks"),
            (reads, "standard input can be read for one target only; give a file"),
            (output.hdr.is_some(), "--hdr is for single runs; give --json, which has every run"),
            (
                output.log.is_some(),
                "--log is for single runs; a comparison writes --json and --csv",
            ),
            (output.live, "--live shows single runs; a comparison shows its runs on one line"),
            (
                output.metrics.is_some() || output.otlp.is_some(),
                "--metrics and --otlp are for single runs; leave them out",
            ),
        ] {
            if given {
                return Err(UsageError::new(text));
            }
        }
        if blocks < BLOCKS_MIN as u32 || blocks > BLOCKS_MAX {
            return Err(UsageError::new(format!(
                "--blocks {blocks}: it takes {BLOCKS_MIN} to show a difference, and {BLOCKS_MAX} are \
                 the most"
            )));
        }
        Ok(())
    }

    fn into_live(self, files: &dyn FileSource) -> Result<CompareTask, UsageError> {
        let side = |text: &str| -> Result<(CompareSide, Outputs), UsageError> {
            let (label, target) = match label_of(text) {
                Some((label, target)) => (Some(label.to_owned()), target),
                None => (None, text),
            };
            let (plan, outputs) = self.run_args(target).into_plan(files)?;
            let name = outputs.name.clone();
            Ok((CompareSide { label: label.unwrap_or_else(|| name.clone()), name, plan }, outputs))
        };
        let (mut before, mut outputs) = side(&self.before)?;
        let (mut after, _) = side(&self.after)?;
        if before.label == after.label {
            // the same URL twice tells how much a server differs from itself
            before.label.push_str(" (A)");
            after.label.push_str(" (B)");
        }
        let toml = |side: &CompareSide| plan::to_toml(&side.plan, plan::Secrets::Masked);
        let differ = plan_differences(&toml(&before), &toml(&after), Scope::SameLoad);
        let cautions = differing_plans(&differ, self.comparison.force)?;
        outputs.name = format!("{} against {}", after.label, before.label);
        Ok(CompareTask::Live(Box::new(LiveTask {
            sides: [before, after],
            blocks: self.comparison.blocks.unwrap_or(BLOCKS),
            bounds: self.comparison.fail_if,
            cautions,
            outputs,
        })))
    }

    fn into_stored(self) -> Result<CompareTask, UsageError> {
        let default = CompareArgs {
            before: self.before.clone(),
            after: self.after.clone(),
            output: self.output.clone(),
            comparison: ComparisonArgs { blocks: None, ..self.comparison.clone() },
            ..CompareArgs::default()
        };
        // what is typed for a load would be ignored
        if format!("{self:?}") != format!("{default:?}") {
            return Err(UsageError::new(
                "stored runs are compared as they are: of the options only --fail-if, --force and \
                 those of the output apply; for a new measurement give two URLs",
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
        let sets = [set(&self.before)?, set(&self.after)?];
        let name = format!("{} against {}", self.after, self.before);
        let outputs = self.output.outputs(name, false);
        outputs.check()?;
        Ok(CompareTask::Stored(Box::new(StoredTask {
            labels: [self.before, self.after],
            sets,
            force: self.comparison.force,
            bounds: self.comparison.fail_if,
            outputs,
        })))
    }

    /// What `run` would have been told.
    fn run_args(&self, target: &str) -> RunArgs {
        RunArgs {
            target: Some(target.to_owned()),
            script_args: Vec::new(),
            load: self.load.clone(),
            end: self.end.clone(),
            request: self.request.clone(),
            expect: self.expect.clone(),
            limits: self.limits.clone(),
            connection: self.connection.clone(),
            tls: self.tls.clone(),
            measure: self.measure.clone(),
            driver: self.driver.clone(),
            output: self.output.clone(),
        }
    }
}

/// A URL, a host with a port, or a plan file; anything else is a stored run.
fn is_target(text: &str) -> bool {
    let target = label_of(text).map_or(text, |(_, target)| target);
    target.contains("://") || target.ends_with(".toml") || target.contains([':', '/'])
}

/// A caution when plans that differ may be compared.
///
/// # Errors
/// When they may not.
pub(crate) fn differing_plans(differ: &[String], force: bool) -> Result<Vec<String>, UsageError> {
    /// Differences that are told.
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
            "the two did not get the same load, so a difference would not be the server's: {list}; \
             --force compares all the same"
        ))),
    }
}
