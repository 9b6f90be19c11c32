//! `loadstone report`: renders stored results, and records from JSON files, in any form.

mod recorded;

use crate::exit::{Code, Failure};
use crate::{files, run};
use args::{BenchmarkName, ReportArgs, Sink};
use faces::webstone::Benchmark;
use record::check::CheckRecord;
use record::compare::CompareRecord;
use record::torture::TortureRecord;
use report::ramp::RampRecord;
use report::{Named, RunRecord, Style};
use std::path::Path;
use store::{Filter, Store, StorePlace, Stored};

/// Results to show, of one kind, each with its name.
pub(crate) enum ShownResults {
    Runs(Vec<(String, RunRecord)>),
    Ramps(Vec<(String, RampRecord)>),
    Comparison(Box<CompareRecord>),
    Torture(Box<TortureRecord>),
    Check(Box<CheckRecord>),
}

pub(crate) fn report(args: &ReportArgs) -> Result<Code, Failure> {
    args.check()?;
    let wanted = match recorded::only(&args.results)? {
        Some(wanted) => wanted,
        None => of_one_kind(load(args)?)?,
    };
    let wanted = check_comparable_results(wanted, args)?;
    if let Some(benchmark) = args.benchmark {
        return wanted.as_benchmark(benchmark);
    }
    if !args.has_outputs() {
        let style = run::output::style(args.quiet, args.percentiles, args.full);
        files::write_stdout(&wanted.text(style)).map_err(|error| Failure::not_written(&error))?;
        return Ok(Code::Done);
    }
    let page = args.html.clone().map(Sink::File);
    type Render = fn(&ShownResults) -> String;
    let junit = args.junit.clone().map(Sink::File);
    let outputs: [(&Option<Sink>, Render); 5] = [
        (&page, ShownResults::html),
        (&args.json, ShownResults::json),
        (&args.csv, ShownResults::csv),
        (&args.md, ShownResults::markdown),
        (&junit, ShownResults::junit),
    ];
    let mut done = Ok(());
    for (sink, render) in outputs {
        if let Some(sink) = sink {
            done = done.and(files::write_to(sink, &render(&wanted)));
        }
    }
    done.map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

/// Loads every named result.
fn load(args: &ReportArgs) -> Result<Vec<(String, Stored)>, Failure> {
    let mut stored = Vec::new();
    let mut usual: Option<Store> = None;
    for name in &args.results {
        if let Some(file) = exported(name) {
            stored.extend(all_of(file)?);
            continue;
        }
        if usual.is_none() {
            let place =
                run::keeping::requested_store(args.store.store.as_ref()).unwrap_or_default();
            usual = Some(run::keeping::noted(Store::open_to_read(&place).map_err(unreadable)?));
        }
        if let Some(store) = &usual {
            stored.push((name.clone(), store.load(name).map_err(unreadable)?));
        }
    }
    Ok(stored)
}

fn unreadable(error: store::StoreError) -> Failure {
    Failure::usage(error.to_string())
}

/// Returns the file that a name refers to; ids and tags contain neither a slash nor a dot.
fn exported(name: &str) -> Option<&Path> {
    name.contains(['/', '.']).then(|| Path::new(name))
}

/// Returns all results in a file, oldest first.
fn all_of(file: &Path) -> Result<Vec<(String, Stored)>, Failure> {
    let place = StorePlace::File(file.to_owned());
    let store = run::keeping::noted(Store::open_to_read(&place).map_err(unreadable)?);
    let mut entries = store.list(&Filter::default()).map_err(unreadable)?;
    entries.sort_by(|a, b| a.started_unix_s.total_cmp(&b.started_unix_s));
    if entries.is_empty() {
        return Err(Failure::usage(format!("{}: it contains no result", file.display())));
    }
    let stem =
        file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let only = entries.len() == 1;
    let load = |entry: &store::ListEntry| {
        let id = entry.id.to_string();
        let name = if only { stem.clone() } else { format!("{stem}:{id}") };
        Ok((name, store.load(&id).map_err(unreadable)?))
    };
    entries.iter().map(load).collect()
}

pub(crate) fn of_one_kind(stored: Vec<(String, Stored)>) -> Result<ShownResults, Failure> {
    let (mut runs, mut ramps) = (Vec::new(), Vec::new());
    let (mut comparisons, mut tortures) = (Vec::new(), Vec::new());
    let mut first: Option<(String, &str)> = None;
    for (name, one) in stored {
        let kind = one.kind().id();
        if let Some((other, before)) = first.as_ref().filter(|(_, before)| *before != kind) {
            return Err(Failure::usage(format!(
                "{other} is a {before} and {name} is a {kind}: only results of one kind can be shown \
                 together"
            )));
        }
        first.get_or_insert((name.clone(), kind));
        match one {
            Stored::Run(run) => runs.push((name, *run)),
            Stored::Ramp(ramp) => ramps.push((name, *ramp)),
            Stored::Compare(compare) => comparisons.push(compare),
            Stored::Torture(torture) => tortures.push(torture),
        }
    }
    if comparisons.len() > 1 {
        return Err(Failure::usage("comparisons are shown one at a time; name one"));
    }
    if tortures.len() > 1 {
        return Err(Failure::usage(
            "tortures are shown one at a time; loadstone torture diff A B compares two",
        ));
    }
    Ok(match (comparisons.pop(), tortures.pop()) {
        (Some(compare), _) => ShownResults::Comparison(compare),
        (None, Some(torture)) => ShownResults::Torture(torture),
        (None, None) if ramps.is_empty() => ShownResults::Runs(runs),
        (None, None) => ShownResults::Ramps(ramps),
    })
}

/// Refuses results that cannot be shown side by side.
fn check_comparable_results(
    wanted: ShownResults,
    args: &ReportArgs,
) -> Result<ShownResults, Failure> {
    let count = match &wanted {
        ShownResults::Runs(runs) => runs.len(),
        ShownResults::Ramps(ramps) => ramps.len(),
        ShownResults::Comparison(_) | ShownResults::Torture(_) | ShownResults::Check(_) => 1,
    };
    let has_cases = match &wanted {
        ShownResults::Runs(runs) => runs.len() == 1,
        ShownResults::Torture(_) | ShownResults::Check(_) => true,
        ShownResults::Ramps(_) | ShownResults::Comparison(_) => false,
    };
    if args.junit.is_some() && !has_cases {
        return Err(Failure::usage("--junit takes one run, torture or check; name only that one"));
    }
    if matches!(wanted, ShownResults::Check(_))
        && (args.html.is_some() || args.csv.is_some() || args.md.is_some())
    {
        return Err(Failure::usage("a check is rendered as text, --json or --junit only"));
    }
    if let ShownResults::Torture(torture) = &wanted
        && args.csv.is_some()
        && !torture.has_probes()
    {
        return Err(Failure::usage(
            "--csv: the JSON of an earlier version does not contain the probes of a torture; name a \
             result of the store",
        ));
    }
    if count > 1 && args.csv.is_some() {
        return Err(Failure::usage("--csv takes one result; give one, or take --json for several"));
    }
    if let ShownResults::Ramps(ramps) = &wanted
        && ramps.len() > 1
        && report::combine_ramps(ramps).is_none()
    {
        return Err(Failure::usage(
            "these ramps are not over the same axis: one is over rates, another over users",
        ));
    }
    Ok(wanted)
}

fn named(runs: &[(String, RunRecord)]) -> Vec<Named<'_>> {
    runs.iter().map(|(name, report)| Named { name: name.clone(), report }).collect()
}

/// Combines several ramps; returns a single one unchanged.
fn combine_ramps(ramps: &[(String, RampRecord)]) -> Option<RampRecord> {
    match ramps {
        [(_, only)] => Some(only.clone()),
        _ => report::combine_ramps(ramps),
    }
}

/// Renders one document, or a list.
fn list(documents: &[String]) -> String {
    match documents {
        [only] => only.clone(),
        all => {
            let all: Vec<&str> = all.iter().map(|document| document.trim_end()).collect();
            format!("[\n{}\n]\n", all.join(",\n"))
        }
    }
}

/// A check has none of these: they are empty here, and [`check_comparable_results`] refuses them.
impl ShownResults {
    /// Prints the results with another benchmark's figures.
    fn as_benchmark(&self, name: BenchmarkName) -> Result<Code, Failure> {
        let benchmark = match name {
            BenchmarkName::Webstone => Benchmark::Webstone,
            BenchmarkName::Webbench => Benchmark::Webbench,
        };
        let made: Result<Vec<String>, (String, String)> = match self {
            ShownResults::Runs(runs) => {
                let of = |(name, run): &'_ (String, RunRecord)| {
                    benchmark.of_run(run).map_err(|why| (name.clone(), why))
                };
                runs.iter().map(of).collect::<Result<_, _>>()
            }
            ShownResults::Ramps(ramps) => {
                let of = |(name, ramp): &'_ (String, RampRecord)| {
                    benchmark.of_ramp(ramp).map_err(|why| (name.clone(), why))
                };
                ramps.iter().map(of).collect::<Result<_, _>>()
            }
            _ => {
                return Err(Failure::usage(
                    "--as is for runs and ramps: other results lack these figures",
                ));
            }
        };
        let texts = made.map_err(|(name, why)| Failure::usage(format!("--as: {name}: {why}")))?;
        files::write_stdout(&texts.join("\n")).map_err(|error| Failure::not_written(&error))?;
        Ok(Code::Done)
    }

    pub(crate) fn text(&self, style: Style) -> String {
        let titled = |texts: Vec<(String, String)>| match &texts[..] {
            [(_, only)] => only.clone(),
            all => {
                let one = |(name, text): &(String, String)| format!("== {name}\n\n{text}");
                all.iter().map(one).collect::<Vec<_>>().join("\n")
            }
        };
        match self {
            ShownResults::Runs(runs) => {
                let text = |(name, run): &(_, _)| (String::clone(name), report::text(run, style));
                titled(runs.iter().map(text).collect())
            }
            ShownResults::Ramps(ramps) => {
                let text =
                    |(name, ramp): &(_, _)| (String::clone(name), report::ramp::text(ramp, style));
                titled(ramps.iter().map(text).collect())
            }
            ShownResults::Comparison(compare) => report::compare::text(compare, style),
            ShownResults::Torture(torture) => report::torture::text(torture, style),
            ShownResults::Check(check) => report::check::text(check, style),
        }
    }

    fn html(&self) -> String {
        match self {
            ShownResults::Runs(runs) => report::html_of_many(&named(runs)),
            ShownResults::Ramps(ramps) => {
                combine_ramps(ramps).as_ref().map_or_else(String::new, report::ramp::html)
            }
            ShownResults::Comparison(compare) => report::compare::html(compare),
            ShownResults::Torture(torture) => report::torture::html(torture),
            ShownResults::Check(_) => String::new(),
        }
    }

    pub(crate) fn json(&self) -> String {
        match self {
            ShownResults::Runs(runs) => {
                list(&runs.iter().map(|(_, run)| report::json(run)).collect::<Vec<_>>())
            }
            ShownResults::Ramps(ramps) => {
                list(&ramps.iter().map(|(_, ramp)| report::ramp::json(ramp)).collect::<Vec<_>>())
            }
            ShownResults::Comparison(compare) => report::compare::json(compare),
            ShownResults::Torture(torture) => report::torture::json(torture),
            ShownResults::Check(check) => report::check::json(check),
        }
    }

    pub(crate) fn csv(&self) -> String {
        match self {
            ShownResults::Runs(runs) => runs.iter().map(|(_, run)| report::csv(run)).collect(),
            ShownResults::Ramps(ramps) => {
                ramps.iter().map(|(_, ramp)| report::ramp::csv(ramp)).collect()
            }
            ShownResults::Comparison(compare) => report::compare::csv(compare),
            ShownResults::Torture(torture) => report::torture::probes_csv(&torture.probe_series),
            ShownResults::Check(_) => String::new(),
        }
    }

    fn markdown(&self) -> String {
        match self {
            ShownResults::Runs(runs) => report::markdown_of_many(&named(runs)),
            ShownResults::Ramps(ramps) => {
                combine_ramps(ramps).as_ref().map_or_else(String::new, report::markdown_of_ramp)
            }
            ShownResults::Comparison(compare) => report::markdown_of_compare(compare),
            ShownResults::Torture(torture) => report::torture::markdown(torture),
            ShownResults::Check(_) => String::new(),
        }
    }

    /// Renders JUnit; empty for results without cases, which are refused before.
    fn junit(&self) -> String {
        match self {
            ShownResults::Torture(torture) => report::torture::junit(torture),
            ShownResults::Check(check) => report::check::junit(check),
            ShownResults::Runs(runs) => {
                runs.first().map_or_else(String::new, |(_, run)| report::junit(run))
            }
            ShownResults::Ramps(_) | ShownResults::Comparison(_) => String::new(),
        }
    }
}
