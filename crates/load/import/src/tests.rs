//! Imports of small handwritten files, compared as the resulting plans. Every plan is read by
//! `plan` and validated.

mod any;
mod artillery;
mod browser;
mod clients;
mod correlate;
mod escapes;
mod jmx;
mod postman;
mod small;

use crate::{Document, Format, ImportRequest, Imported, import};
use plan::FileSource;
use std::collections::BTreeMap;

/// Files by name.
#[derive(Debug, Default)]
struct TestFiles(BTreeMap<&'static str, &'static str>);

impl FileSource for TestFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let found = self.0.get(path).map(|text| text.as_bytes().to_vec());
        found.ok_or_else(|| {
            format!("{} cannot be read: it is not on the shelf", units::quoted(path))
        })
    }
}

fn test_files() -> TestFiles {
    TestFiles(BTreeMap::from([
        ("users.csv", "ann,tea\nbob,coffee\n"),
        ("people.csv", "name;likes\nann;tea\nbob;coffee\n"),
        ("body.json", "{\"a\":1}"),
        ("targets.txt", "GET http://h:1/a\nGET http://h:1/b\n"),
        ("urls.txt", "http://h:1/a\nhttp://h:1/b POST x=1\n"),
    ]))
}

/// Options of an import.
#[derive(Default)]
struct How {
    name: &'static str,
    environment: Option<&'static str>,
    base: Option<&'static str>,
    only: Option<&'static str>,
    skip: &'static [&'static str],
    properties: &'static [(&'static str, &'static str)],
    absolute_paths: bool,
}

fn try_import(format: Format, text: &str, how: &How) -> Result<Imported, String> {
    let documents = [Document { name: how.name.to_owned(), text: text.to_owned() }];
    let environment =
        how.environment.map(|text| Document { name: "env.json".to_owned(), text: text.to_owned() });
    let base = how.base.map(|base| base.parse().unwrap());
    let skip: Vec<String> = how.skip.iter().map(|it| (*it).to_owned()).collect();
    let properties: Vec<(String, String)> = how
        .properties
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let request = ImportRequest {
        documents: &documents,
        environment: environment.as_ref(),
        files: &test_files(),
        base: base.as_ref(),
        only: how.only,
        skip_methods: &skip,
        properties: &properties,
        absolute_paths: how.absolute_paths,
    };
    import(format, &request).map_err(|error| error.0)
}

/// Returns the plan for a text, after reading and validating it.
fn with(format: Format, text: &str, how: &How) -> Imported {
    let imported = try_import(format, text, how).unwrap_or_else(|why| panic!("{why}\n{text}"));
    check_plan(&imported.toml);
    imported
}

fn plan_of(format: Format, text: &str) -> Imported {
    with(format, text, &How::default())
}

fn check_plan(toml: &str) {
    let plan = plan::from_toml(toml, &test_files()).unwrap_or_else(|why| panic!("{why}\n{toml}"));
    if let Err(problems) = plan::validate(&plan) {
        panic!("{problems:?}\n{toml}");
    }
    let listed = toml.lines().filter(|line| line.starts_with("# - ")).count();
    assert!(listed >= plan.not_imported.len(), "the comments list what the key lists\n{toml}");
}

/// Omissions, one line each.
fn left_out(imported: &Imported) -> Vec<String> {
    imported.left_out.iter().map(ToString::to_string).collect()
}

/// Returns the plan without the comments at its head about omitted elements.
fn below_head(imported: &Imported) -> &str {
    let at = imported.toml.find("version = 1").unwrap_or(0);
    &imported.toml[at..]
}
