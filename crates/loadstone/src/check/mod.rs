//! `loadstone check`: a check plan against a site.

mod world;

use crate::exit::{Code, Failure};
use crate::{files, progress};
use args::{CheckArgs, Disk};
use engine::check::{check_sendable, run_check};
use plan::FileSource;
use plan::check::{CheckPlan, CheckResult, Step};
use record::check::CheckRecord;
use std::fmt::Write as _;
use std::path::Path;
use world::CheckedSite;

/// Check plan for the norm site.
const NORM: &str = include_str!("norm.toml");

pub(crate) fn check(args: &CheckArgs) -> Result<Code, Failure> {
    args.check()?;
    if let Some(file) = &args.init {
        return init(file);
    }
    let plan = read_plan(args)?;
    let chosen = |step: &Step| {
        args.only.is_empty() || args.only.iter().any(|part| step.name.contains(part.as_str()))
    };
    if !plan.steps.iter().any(chosen) {
        let only = args.only.join(", ");
        return Err(Failure::usage(format!(
            "--only {only}: no step has this in its name; loadstone check --list prints the names"
        )));
    }
    if args.list {
        return list(plan.steps.iter().filter(|step| chosen(step)));
    }
    files::check_results(args.json.as_ref(), &args.junit)?;
    let mut site = CheckedSite::new(&plan, args)?;
    let started_unix_s = crate::wall_clock::unix_seconds();
    let bar = progress::bar(args.quiet, None, "{pos}  {msg}");
    let result = run_check(&plan, &chosen, &mut site, &mut |step| {
        if let Some(bar) = &bar {
            bar.inc(1);
            bar.set_message(step.name.clone());
        }
    });
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let record = CheckRecord::new(&CheckResult { started_unix_s, ..result });
    if let Some(why) = &record.unreachable {
        crate::print_message(&format!("no connection could be made: {why}"));
    }
    write(&record, args)?;
    Ok(exit_code(&record))
}

fn exit_code(record: &CheckRecord) -> Code {
    match record {
        CheckRecord { unreachable: Some(_), .. } => Code::NoConnection,
        CheckRecord { interrupted: true, .. } => Code::Interrupted,
        _ if record.counts.failed > 0 => Code::Missed,
        _ => Code::Done,
    }
}

fn read_plan(args: &CheckArgs) -> Result<CheckPlan, Failure> {
    let path = args.plan.as_deref().unwrap_or("-");
    let named = |why: String| Failure::usage(format!("{path}: {why}"));
    let bytes = Disk.read(path).map_err(Failure::usage)?;
    let text =
        String::from_utf8(bytes).map_err(|_| named("the file is not UTF-8 text".to_owned()))?;
    let plan = plan::check::from_toml(&text, &args.given(), &Disk);
    let plan = plan.map_err(|error| named(error.to_string()))?;
    check_sendable(&plan).map_err(named)?;
    Ok(plan)
}

fn list<'a>(steps: impl Iterator<Item = &'a Step>) -> Result<Code, Failure> {
    let mut text = String::new();
    for step in steps {
        writeln!(text, "{}", step.name).expect("a String accepts all text");
    }
    files::write_stdout(&text).map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

fn init(file: &Path) -> Result<Code, Failure> {
    if file.as_os_str() == "-" {
        files::write_stdout(NORM).map_err(|error| Failure::not_written(&error))?;
        return Ok(Code::Done);
    }
    if file.exists() {
        return Err(Failure::usage(format!(
            "--init {}: the file exists; name another one",
            file.display()
        )));
    }
    files::write_whole(file, NORM).map_err(|error| Failure::not_written(&error))?;
    let text = format!("{}\n", file.display());
    files::write_stdout(&text).map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

/// Writes every result, even after a failure; the first error is reported.
fn write(record: &CheckRecord, args: &CheckArgs) -> Result<(), Failure> {
    let json = args.json.as_ref().map(|sink| (sink, report::check::json(record)));
    let junit = args.junit.as_ref().map(|path| (path, report::check::junit(record)));
    let style = crate::run::output::style(args.quiet, false, true);
    files::write_results(json, junit, || report::check::text(record, style))
}
