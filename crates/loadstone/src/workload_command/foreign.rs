//! `loadstone workload import` for files of other load tools and HTTP clients, and the dry run of a
//! plan.

use super::put;
use super::recording::text;
use crate::exit::{Code, Failure};
use crate::files;
use crate::programs;
use args::{Disk, ImportArgs, ScriptsWhen, Sink};
use import::{Document, Format, Imported, LeftOut};
use plan::{Load, Plan, ScriptPlan, Think};
use record::run::{RunRecord, UrlRecord};
use session::{Env, Observers, RunLoad, Session, Watcher, Watchers};
use std::fmt::Write as _;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of elements listed one by one after an import; the plan has all of them.
const LISTED_MAX: usize = 10;
/// Maximum number of files in a folder, and of nested folders.
const FILES_MAX: usize = 5_000;
const DEPTH_MAX: usize = 12;

/// Imports a file of a known format.
pub(super) fn import_file(
    format: Format,
    input: &mut dyn BufRead,
    args: &ImportArgs,
) -> Result<Code, Failure> {
    let text = text(input).map_err(|why| wrong(args, &why))?;
    let name = if args.log == "-" { String::new() } else { args.log.clone() };
    let documents = [Document { name, text }];
    finish(format, &documents, args)
}

/// Imports a Bruno folder.
pub(super) fn import_folder(args: &ImportArgs) -> Result<Code, Failure> {
    let mut documents = Vec::new();
    gather(Path::new(&args.log), 0, &mut documents).map_err(|why| wrong(args, &why))?;
    if documents.is_empty() {
        let why =
            "it is a folder without .bru files; give a file, or the folder of a Bruno collection";
        return Err(wrong(args, why));
    }
    documents.sort_by(|a, b| a.name.cmp(&b.name));
    finish(Format::Bruno, &documents, args)
}

fn wrong(args: &ImportArgs, why: &str) -> Failure {
    Failure::usage(format!("{}: {why}", units::quoted(&args.log)))
}

fn gather(folder: &Path, depth: usize, out: &mut Vec<Document>) -> Result<(), String> {
    let cannot = |path: &Path, error: &std::io::Error| {
        format!("cannot read {}: {error}", units::quoted(&path.to_string_lossy()))
    };
    let entries = std::fs::read_dir(folder).map_err(|error| cannot(folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| cannot(folder, &error))?.path();
        if path.is_dir() && depth < DEPTH_MAX {
            gather(&path, depth + 1, out)?;
        } else if path.extension().is_some_and(|ending| ending == "bru") {
            if out.len() == FILES_MAX {
                return Err(format!("it has more than {FILES_MAX} .bru files"));
            }
            let size = std::fs::metadata(&path).map_err(|error| cannot(&path, &error))?.len();
            if size > import::TEXT_MAX as u64 {
                return Err(format!("{} is longer than 64 MiB", path.display()));
            }
            let text = std::fs::read_to_string(&path).map_err(|error| cannot(&path, &error))?;
            out.push(Document { name: path.to_string_lossy().into_owned(), text });
        }
    }
    Ok(())
}

fn environment(file: &str) -> Result<Document, Failure> {
    let wrong = |why: String| Failure::usage(format!("--environment: {why}"));
    let bytes = plan::FileSource::read(&Disk, file).map_err(wrong)?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(format!("{file} is not UTF-8 text")))?;
    Ok(Document { name: file.to_owned(), text })
}

fn finish(format: Format, documents: &[Document], args: &ImportArgs) -> Result<Code, Failure> {
    let environment = args.environment.as_ref().map(|file| environment(file)).transpose()?;
    if args.scripts == Some(ScriptsWhen::Always) {
        let scripted = Scripted::read(documents, environment.as_ref(), args);
        return scripted.map_err(|why| wrong(args, &why))?.finish(args, "");
    }
    let request = import::ImportRequest {
        documents,
        environment: environment.as_ref(),
        files: &Disk,
        base: args.base.as_ref(),
        only: args.only.as_deref(),
        skip_methods: &args.skip_method,
        properties: &args.properties,
        absolute_paths: is_elsewhere(&args.output),
    };
    let imported = import::import(format, &request).map_err(|error| wrong(args, &error.0))?;
    let lines = imported.script_lines();
    let selects = args.only.is_some() || !args.skip_method.is_empty();
    if format == Format::Postman && args.scripts.is_none() && !selects && lines > 0 {
        // a collection whose scripts need unsupported features is converted to a plan instead
        let scripted = Scripted::read(documents, environment.as_ref(), args);
        if let Some(scripted) = scripted.ok().filter(|it| it.left_out.is_empty()) {
            let (have, them) = if lines == 1 { ("has", "it") } else { ("have", "them") };
            let lines = record::words::counted(lines as u64, "line");
            let why = format!(
                ", because {lines} {have} no equivalent in a plan; --scripts=never leaves {them} out"
            );
            return scripted.finish(args, &why);
        }
    }
    let plan = plan::from_toml(&imported.toml, &Disk).map_err(|error| {
        wrong(
            args,
            &format!("the plan made of it cannot be read ({error}); please report this file"),
        )
    })?;
    if args.dry_run {
        if !args.quiet {
            crate::print_message(&summary(format, &imported));
        }
        return dry_run(&plan, &args.log);
    }
    files::write_to(&args.output, &imported.toml).map_err(|error| Failure::not_written(&error))?;
    if !args.quiet {
        crate::print_message(&summary(format, &imported));
    }
    Ok(Code::Done)
}

/// Returns whether a plan is written to another folder than the current one. A plan names its files
/// from its own folder.
fn is_elsewhere(output: &Sink) -> bool {
    let Sink::File(path) = output else { return false };
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
    folder.is_some() && folder != here
}

/// Postman collection with its scripts, as a plan with a scripted journey.
struct Scripted {
    plan: Plan,
    steps: usize,
    /// Parts of the collection that cannot be run.
    left_out: Vec<LeftOut>,
}

impl Scripted {
    /// # Errors
    /// Fails for another file, or a server that is not known; the text states why.
    fn read(
        documents: &[Document],
        environment: Option<&Document>,
        args: &ImportArgs,
    ) -> Result<Scripted, String> {
        let collection = documents.first().ok_or("there is no file")?;
        let made = import::postman_script(&collection.text, environment.map(|it| it.text.as_str()));
        let import::PostmanScript { text, files, left_out } = made.map_err(|error| error.0)?;
        let file = collection.name.rsplit('/').next().unwrap_or_default();
        let name = file.trim_end_matches(".json").trim_end_matches(".postman_collection");
        let name = format!("{}.js", if name.is_empty() { "collection" } else { name });
        let script = ScriptPlan { name, text: text.into_bytes(), args: Vec::new(), files };
        let outline = programs::outline(&script, &plan::NoFiles)?;
        let outline = outline.ok_or("it makes no request")?;
        let base = args.base.clone().or(outline.base).ok_or(
            "the server of its first request is unknown: give its URL after the file, or the \
             variables in --environment",
        )?;
        let mut plan = Plan::for_url(base);
        let steps = outline.program.steps.len();
        plan.set_journey_script(script, outline.program).map_err(|error| error.0)?;
        plan.not_imported = left_out.iter().map(ToString::to_string).collect();
        Ok(Scripted { plan, steps, left_out })
    }

    /// Writes the plan or runs it once; `why`: reason for its form.
    fn finish(self, args: &ImportArgs, why: &str) -> Result<Code, Failure> {
        if !args.quiet {
            let steps = record::words::counted(self.steps as u64, "step");
            let mut text = format!("Postman: {steps} in 1 journey, whose scripts are run{why}");
            list_omitted(&mut text, &self.left_out);
            crate::print_message(&text);
        }
        if args.dry_run {
            return dry_run(&self.plan, &args.log);
        }
        let toml = super::access_log::brief(&self.plan);
        let head = match why {
            "" => String::new(),
            why => format!("# The scripts of the collection are run{why}.\n"),
        };
        files::write_to(&args.output, &(head + &toml))
            .map_err(|error| Failure::not_written(&error))?;
        Ok(Code::Done)
    }
}

/// Imports two recordings of the same visit: the plan, and a diff of the values that differ.
pub(super) fn import_two(
    input: &mut dyn BufRead,
    second: &str,
    args: &ImportArgs,
) -> Result<Code, Failure> {
    let first = text(input).map_err(|why| wrong(args, &why))?;
    let mut other = super::access_log::open(second)?;
    let other = text(&mut other)
        .map_err(|why| Failure::usage(format!("--second {}: {why}", units::quoted(second))))?;
    let found = import::correlate(&first, &other, args.base.as_ref())
        .map_err(|error| wrong(args, &error.0))?;
    let plan = plan::from_toml(&found.imported.toml, &Disk).map_err(|error| {
        wrong(
            args,
            &format!("the plan made of it cannot be read ({error}); please report this file"),
        )
    })?;
    if !args.quiet {
        let diff: String = found.diff.iter().map(|line| format!("{line}\n")).collect();
        crate::print_message(&format!("{diff}two recordings: {}", counts(&found.imported)));
    }
    if args.dry_run {
        return dry_run(&plan, &args.log);
    }
    files::write_to(&args.output, &found.imported.toml)
        .map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

fn counts(imported: &Imported) -> String {
    let counted = |count: usize, what: &str| record::words::counted(count as u64, what);
    let what = if imported.journeys > 0 { "step" } else { "target" };
    let mut text = counted(imported.steps, what);
    if imported.journeys > 0 {
        write!(text, " in {}", counted(imported.journeys, "journey"))
            .expect("a String accepts all text");
    }
    for (count, what) in [(imported.captures, "capture"), (imported.checks, "check")] {
        if count > 0 {
            write!(text, ", {}", counted(count, what)).expect("a String accepts all text");
        }
    }
    list_omitted(&mut text, &imported.left_out);
    text
}

/// Lists the first omitted parts, and counts the others.
pub(crate) fn list_omitted(text: &mut String, all: &[LeftOut]) {
    for one in all.iter().take(LISTED_MAX) {
        write!(text, "\n  not imported: {one}").expect("a String accepts all text");
    }
    let more = all.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        write!(text, "\n  and {more} more, which the plan lists")
            .expect("a String accepts all text");
    }
}

fn summary(format: Format, imported: &Imported) -> String {
    format!("{}: {}", format.name(), counts(imported))
}

/// Runs each journey of the plan once with one user, or each of its targets, and shows the result of
/// each step.
///
/// # Errors
/// Fails for a plan that cannot be run; the exit code is 1 if a step fails.
pub(crate) fn dry_run(plan: &Plan, name: &str) -> Result<Code, Failure> {
    let mut plan = plan.clone();
    plan.scenarios.clear();
    plan.stages = None;
    plan.load = Load::Closed { users: 1, think: Think::None, session: None };
    let rounds = if plan.journeys.is_some() { 1 } else { plan.targets.len() };
    (plan.stop.requests, plan.stop.duration) = (Some(rounds as u64), None);
    plan.stop.warm_up = units::Nanos::ZERO;
    plan.measure.slo.clear();
    if let Some(problem) = plan::validate(&plan).err().and_then(|all| all.into_iter().next()) {
        return Err(Failure::usage(problem.to_string()));
    }
    let Some(mut session) = Session::reach(&plan, name, &Arc::new(Env::here()))? else {
        return Ok(Code::Interrupted);
    };
    if !session.is_reachable() {
        let url = plan.targets.first().map(|target| target.url.to_string()).unwrap_or_default();
        let why = session.first_failure().unwrap_or("the server did not accept one");
        let text = format!(
            "no connection to {url}: {why}; start the server, correct [tls] in the plan, or give \
             another URL after the file"
        );
        return Err(Failure { code: Code::NoConnection, text });
    }
    let mut watch = |_: &engine::Setup| -> Box<dyn Watcher> { Box::new(Watchers(Vec::new())) };
    let mut runs = Vec::new();
    let whole = session.plan().clone();
    for part in parts(&whole) {
        session.replace_plan(part);
        let report = session.measure(&RunLoad::Repeat(0), Observers::new(&mut watch));
        runs.push(RunRecord::new(&report.map_err(Failure::from_run)?));
    }
    let (text, failed) = steps(&runs, &whole);
    files::write_stdout(&text).map_err(|error| Failure::not_written(&error))?;
    Ok(if failed { Code::Missed } else { Code::Done })
}

/// Returns a plan for each journey, or the plan itself if it has none.
fn parts(plan: &Plan) -> Vec<Plan> {
    let count = plan.journeys.as_ref().map_or(0, |journeys| journeys.journeys.len());
    if count < 2 {
        return vec![plan.clone()];
    }
    let part = |row: usize| {
        let mut part = plan.clone();
        for (number, journey) in
            part.journeys.iter_mut().flat_map(|it| &mut it.journeys).enumerate()
        {
            journey.weight = if number == row { 1.0 } else { 0.0 };
        }
        part
    };
    (0..count).map(part).collect()
}

/// Calls of a step or target.
struct StepCalls {
    name: String,
    made: u64,
    failed: u64,
}

/// Returns the calls of each step, or of each target, of all runs together.
fn calls_by_step(runs: &[RunRecord], plan: &Plan) -> Vec<StepCalls> {
    let rows = runs.first().map_or(&[][..], |run| &run.per_url);
    if let (true, [target]) = (rows.is_empty(), &plan.targets[..]) {
        // a record has no rows for a single target
        let outcomes = || runs.iter().map(|run| &run.outcomes);
        let failed = outcomes().map(|all| all.failed + all.timed_out).sum();
        let succeeded: u64 = outcomes().map(|all| all.succeeded).sum();
        let name = target.name.clone().unwrap_or_else(|| record::words::shown_url(&target.url));
        return vec![StepCalls { name, made: succeeded + failed, failed }];
    }
    let calls = |row: &UrlRecord| {
        let rows = runs.iter().flat_map(|run| &run.per_url).filter(|it| it.target == row.target);
        StepCalls {
            name: row.name.as_ref().unwrap_or(&row.url).clone(),
            made: rows.clone().map(|row| row.count).sum(),
            failed: rows.map(|row| row.failed + row.timed_out).sum(),
        }
    };
    rows.iter().map(calls).collect()
}

/// Returns a line for each step with remarks, and whether a step failed. All runs have the same
/// rows.
fn steps(runs: &[RunRecord], plan: &Plan) -> (String, bool) {
    let mut text = String::new();
    let mut good = 0;
    let mut bad = 0;
    let mut none = 0;
    for step in calls_by_step(runs, plan) {
        let (sum, mark, what) = match (step.made, step.failed) {
            (0, _) => (&mut none, "-", "not made"),
            (_, 0) => (&mut good, "✓", "succeeded"),
            _ => (&mut bad, "✗", "failed"),
        };
        *sum += 1;
        let name = record::words::printable(&step.name, 70);
        put(&mut text, &format!("  {mark} {name}  {what}"));
    }
    let mut failures = std::collections::BTreeMap::new();
    for failure in runs.iter().flat_map(|run| &run.failures) {
        *failures.entry(failure.class).or_insert(0) += failure.count;
    }
    for (class, count) in failures.into_iter().filter(|(_, count)| *count > 0) {
        let count = record::words::counted(count, "failure");
        put(&mut text, &format!("  {count}: {}", class.explain()));
    }
    let notes = runs.iter().flat_map(|run| &run.journeys).flat_map(|journeys| journeys.notes());
    for (step, note) in notes {
        put(&mut text, &format!("  {step}: {note}"));
    }
    let counts = format!("{good} succeeded, {bad} failed, {none} not sent");
    put(&mut text, &format!("dry run of one user: {counts}"));
    (text, bad > 0)
}
