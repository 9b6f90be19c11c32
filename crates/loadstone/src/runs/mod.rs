//! `loadstone runs`: manages stored results.

mod gate;
mod list;

use crate::exit::{Code, Failure};
use crate::files;
use crate::report_command::of_one_kind;
use crate::run::{keeping, output};
use args::{ListArgs, RunsArgs, RunsTask, ShowArgs, Sink, StoreArgs};
use record::compare::SideRecord;
use record::run::PlanRecord;
use std::path::Path;
use store::{Filter, RunId, Store, StoreError, Stored};

pub(crate) fn runs(args: RunsArgs) -> Result<Code, Failure> {
    match args.task {
        RunsTask::List(args) => list(&args),
        RunsTask::Show(args) => show(&args),
        RunsTask::Gate(args) => gate::gate(&args),
        RunsTask::Tag { result, tag, store } => {
            let mut store = open_for_change(&store)?;
            let id = store.find(&result).map_err(refused)?;
            let before = store.tag(&id, &tag).map_err(refused)?;
            let from =
                before.map_or_else(String::new, |before| format!("; previously of {before}"));
            print_text(&format!("{id} has the tag {tag}{from}"))
        }
        RunsTask::Untag { tag, store } => {
            let id = open_for_change(&store)?.untag(&tag).map_err(refused)?;
            print_text(&format!("{id} no longer has the tag {tag}"))
        }
        RunsTask::Delete { ids, yes, store } => delete(&ids, yes, &store),
        RunsTask::Export { file, results, store } => export(&file, &results, &store),
        RunsTask::Import { file, store } => import(&file, &store),
    }
}

/// Returns the failure for an unusable store: exit code 2.
pub(crate) fn refused(error: StoreError) -> Failure {
    Failure::usage(error.to_string())
}

/// Opens a store for reading: of the option, of the environment, or the default store.
pub(crate) fn to_read(option: &StoreArgs) -> Result<Store, Failure> {
    Ok(keeping::noted(
        Store::open_to_read(&keeping::requested_store(option.store.as_ref()).unwrap_or_default())
            .map_err(refused)?,
    ))
}

/// Opens an existing store to change it.
fn open_for_change(option: &StoreArgs) -> Result<Store, Failure> {
    let place = keeping::requested_store(option.store.as_ref()).unwrap_or_default();
    drop(keeping::noted(Store::open_to_read(&place).map_err(refused)?));
    Ok(keeping::noted(Store::open(&place).map_err(refused)?))
}

fn print_text(text: &str) -> Result<Code, Failure> {
    files::write_stdout(&format!("{text}\n")).map_err(|error| Failure::not_written(&error))?;
    Ok(Code::Done)
}

fn list(args: &ListArgs) -> Result<Code, Failure> {
    let filter = args.filter(crate::wall_clock::unix_seconds())?;
    // an empty store is an empty list
    let store = match to_read(&args.store) {
        Ok(store) => Some(store),
        Err(failure) if is_empty_default(&args.store) => {
            crate::print_message(&failure.text);
            None
        }
        Err(failure) => return Err(failure),
    };
    let entries =
        store.as_ref().map_or(Ok(Vec::new()), |store| store.list(&filter)).map_err(refused)?;
    if let Some(sink) = &args.json {
        let written = files::write_to(sink, &list::json(&entries));
        written.map_err(|error| Failure::not_written(&error))?;
    }
    if args.json != Some(Sink::Stdout) {
        let text = list::text(&entries, list::Width::from_stdout());
        files::write_stdout(&text).map_err(|error| Failure::not_written(&error))?;
    }
    Ok(Code::Done)
}

/// Returns whether the default store will be read but does not exist yet.
fn is_empty_default(option: &StoreArgs) -> bool {
    let place = keeping::requested_store(option.store.as_ref());
    place.is_none()
        && matches!(Store::open_to_read(&store::StorePlace::Default), Err(StoreError::Missing(_)))
}

fn show(args: &ShowArgs) -> Result<Code, Failure> {
    args.check()?;
    let store = to_read(&args.store)?;
    let entry = store.show(&args.result).map_err(refused)?;
    let stored = store.load(&entry.id.to_string()).map_err(refused)?;
    if args.plan {
        return crate::print(plan_of(&stored)?.as_bytes());
    }
    let shown = of_one_kind(vec![(args.result.clone(), stored)])?;
    let json = args.json.as_ref().map(|sink| (sink, shown.json()));
    let csv = args.csv.as_ref().map(|sink| (sink, shown.csv()));
    let mut alone = false;
    for (sink, text) in json.into_iter().chain(csv) {
        files::write_to(sink, &text).map_err(|error| Failure::not_written(&error))?;
        alone |= *sink == Sink::Stdout;
    }
    if !alone {
        let head = list::heading(&entry);
        let text = shown.text(output::style(args.quiet, args.percentiles, args.full));
        files::write_stdout(&(head + &text)).map_err(|error| Failure::not_written(&error))?;
    }
    Ok(Code::Done)
}

/// # Errors
/// Fails for a torture without a background load, which has no plan.
fn plan_of(stored: &Stored) -> Result<String, Failure> {
    Ok(match stored {
        Stored::Run(run) => run.plan.toml().to_owned(),
        Stored::Ramp(ramp) => ramp.plan.toml().to_owned(),
        Stored::Compare(compare) => {
            let plan = |side: &SideRecord| {
                let plan = side.plan.as_ref().map_or("", PlanRecord::toml);
                let label = report::printable(&side.label, 200);
                let command = crate::compare::command_comment(side.command.as_deref());
                format!("# {label}\n{command}{plan}")
            };
            compare.sides().map(plan).collect()
        }
        Stored::Torture(torture) => match &torture.beside {
            Some(beside) => beside.run.plan.toml().to_owned(),
            None => {
                let text = "a torture run has no plan: its command line is above its report";
                return Err(Failure::usage(text));
            }
        },
    })
}

/// Deletes results by id only: the meaning of a tag or `last` can change meanwhile.
fn delete(ids: &[String], yes: bool, option: &StoreArgs) -> Result<Code, Failure> {
    let mut store = open_for_change(option)?;
    let mut exact: Vec<RunId> = Vec::new();
    for id in ids {
        let found = store.find(id).map_err(refused)?;
        if found.to_string() != *id {
            return Err(Failure::usage(format!(
                "{} is not deleted: write its full id, {found}",
                units::quoted(id)
            )));
        }
        if !exact.contains(&found) {
            exact.push(found);
        }
    }
    if exact.len() > 1 && !yes {
        let names: Vec<String> = exact.iter().map(ToString::to_string).collect();
        return Err(Failure::usage(format!(
            "{} results would be deleted ({}); add --yes to confirm",
            exact.len(),
            names.join(", ")
        )));
    }
    store.delete(&exact).map_err(refused)?;
    let names: Vec<String> = exact.iter().map(ToString::to_string).collect();
    print_text(&format!("deleted {}", names.join(", ")))
}

fn export(file: &Path, results: &[String], option: &StoreArgs) -> Result<Code, Failure> {
    let mut store = open_for_change(option)?;
    let ids = match results {
        [] => store
            .list(&Filter::default())
            .map_err(refused)?
            .into_iter()
            .map(|entry| entry.id)
            .rev()
            .collect(),
        some => some
            .iter()
            .map(|name| store.find(name))
            .collect::<Result<Vec<_>, _>>()
            .map_err(refused)?,
    };
    if ids.is_empty() {
        return Err(Failure::usage("no result is stored yet, so there is nothing to export"));
    }
    store.export(file, &ids).map_err(refused)?;
    print_text(&format!("{} written to {}", counted(ids.len()), file.display()))
}

fn import(file: &Path, option: &StoreArgs) -> Result<Code, Failure> {
    let place = keeping::requested_store(option.store.as_ref()).unwrap_or_default();
    let mut store = Store::open(&place).map_err(refused)?;
    store.notes.iter().for_each(|note| crate::print_message(note));
    let imported = store.import(file).map_err(refused)?;
    imported.notes.iter().for_each(|note| crate::print_message(note));
    let mut lines =
        vec![format!("{} taken from {}", counted(imported.taken.len()), file.display())];
    let renamed = imported.taken.iter().filter(|(there, here)| there != here);
    lines.extend(renamed.map(|(there, here)| format!("{there} is stored as {here}")));
    if !imported.known.is_empty() {
        let names: Vec<String> = imported.known.iter().map(ToString::to_string).collect();
        lines.push(format!("here already: {}", names.join(", ")));
    }
    let left = imported.tags_left.iter();
    lines.extend(left.map(|tag| format!("the tag {tag} stays on the local result")));
    print_text(&lines.join("\n"))
}

fn counted(count: usize) -> String {
    if count == 1 { "1 result".to_owned() } else { format!("{count} results") }
}
