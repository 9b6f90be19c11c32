//! `loadstone compare`: compares two targets in turns, or two sets of stored runs.

mod duet;
mod live;
mod pilot;
mod sequential;
mod server;
mod side;
mod stored;
mod worktree;

use crate::exit::{Code, Failure};
use crate::run::output;
use args::{CompareArgs, CompareTask, Disk, Outputs};
use record::compare::{BoundRecord, CompareRecord, GateAnswer};
use stats::State;

/// Maximum number of characters shown of a side's label, which may be a long command.
const LABEL_CHARS_MAX: usize = 200;

pub(crate) fn compare(args: CompareArgs) -> Result<Code, Failure> {
    match args.into_task(&Disk)? {
        CompareTask::Live(task) => live::compare(*task),
        CompareTask::Stored(task) => stored::compare(*task),
    }
}

/// Returns the comment that precedes a plan in TOML: the command that starts its server. Empty
/// without a command.
pub(crate) fn command_comment(command: Option<&str>) -> String {
    let Some(command) = command else { return String::new() };
    let lines = command.lines().map(|line| format!("#   {line}\n"));
    format!("# the server, restarted for each run:\n{}", lines.collect::<String>())
}

/// Writes every result and returns the exit code.
fn finish(report: &CompareRecord, outputs: &Outputs) -> Result<Code, Failure> {
    let style = output::style(outputs.quiet, outputs.percentiles, outputs.full);
    let parts = output::Parts {
        json: &|| report::compare::json(report),
        csv: &|| report::compare::csv(report),
        hdr: None,
        junit: Some(&|| report::compare::junit(report)),
        md: Some(&|| report::markdown_of_compare(report)),
        html: Some(&|| report::compare::html(report)),
        text: &|| report::compare::text(report, style),
    };
    output::write_parts(outputs, &parts)?;
    Ok(exit_code(report))
}

/// Returns the first exit code that applies, as with `run`.
fn exit_code(report: &CompareRecord) -> Code {
    if let Some(gate) = &report.gate {
        // its blocks with an INVALID run are excluded
        return match gate.answer {
            GateAnswer::Fail => Code::Missed,
            GateAnswer::Pass => Code::Done,
            GateAnswer::Undecidable if crate::signals::received_signal() > 0 => Code::Interrupted,
            GateAnswer::Undecidable => Code::Invalid,
        };
    }
    let crossed = |wanted: fn(&BoundRecord) -> bool| {
        report.contrasts().any(|one| one.bounds.iter().any(wanted))
    };
    let invalid = report.runs().any(|run| run.state == State::Invalid);
    if invalid && !crossed(|bound| bound.certain) {
        Code::Invalid
    } else if crate::signals::received_signal() > 0 {
        Code::Interrupted
    } else if crossed(|bound| bound.crossed) {
        Code::Missed
    } else if crossed(|bound| bound.undecided) {
        Code::Invalid
    } else {
        Code::Done
    }
}
