//! Records in JSON files, which need no store.

use super::ShownResults;
use crate::exit::Failure;
use args::Disk;
use plan::FileSource;
use record::{check, compare, document, ramp, run, torture};
use std::fs::File;
use std::io::Read;

/// First bytes of a store file.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Returns the record of a single JSON file; `None` for results of a store.
///
/// # Errors
/// Fails for a file that is not JSON, of another schema or of a newer version, and for a record
/// among other results.
pub(super) fn only(names: &[String]) -> Result<Option<ShownResults>, Failure> {
    let Some(name) = names.iter().find(|name| is_json(name)) else { return Ok(None) };
    if names.len() > 1 {
        return Err(Failure::usage(format!(
            "{name} is a JSON record, which cannot be combined with other results: name only this file"
        )));
    }
    let bytes = Disk.read(name).map_err(Failure::usage)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{name} is not JSON: it is not UTF-8 text")))?;
    let wanted = read(name, &text).map_err(|why| Failure::usage(format!("{name} {why}")))?;
    Ok(Some(wanted))
}

/// Returns whether the name is a JSON file, existing or not, or a file that is not a store.
fn is_json(name: &str) -> bool {
    if super::exported(name).is_none() {
        return false;
    }
    if name.ends_with(".json") {
        return true;
    }
    if std::fs::metadata(name).is_ok_and(|facts| !facts.is_file() && !facts.is_dir()) {
        // a pipe can be read only once, and a store is a file
        return true;
    }
    let mut start = Vec::new();
    let file = File::open(name).and_then(|file| file.take(16).read_to_end(&mut start));
    file.is_ok() && !start.is_empty() && start != SQLITE
}

/// Reads a record; `name`: name of a run among others.
fn read(name: &str, text: &str) -> Result<ShownResults, String> {
    match document::schema_of(text)?.as_str() {
        torture::SCHEMA => {
            torture::read(text).map(|record| ShownResults::Torture(Box::new(record)))
        }
        check::SCHEMA => check::read(text).map(|record| ShownResults::Check(Box::new(record))),
        run::SCHEMA => {
            let run = run::read(text)?;
            run.is_whole()?;
            Ok(ShownResults::Runs(vec![(name.to_owned(), run)]))
        }
        ramp::SCHEMA => {
            let ramp = ramp::read(text)?;
            ramp.is_whole()?;
            Ok(ShownResults::Ramps(vec![(name.to_owned(), ramp)]))
        }
        compare::SCHEMA => {
            let compare = compare::read(text)?;
            compare.is_whole()?;
            Ok(ShownResults::Comparison(Box::new(compare)))
        }
        other => Err(format!(
            "is {}: only {} can be rendered from JSON",
            units::quoted(other),
            [run::SCHEMA, ramp::SCHEMA, compare::SCHEMA, torture::SCHEMA, check::SCHEMA].join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::check::CheckRecord;

    fn refused(names: &[String]) -> String {
        only(names).map(drop).unwrap_err().text
    }

    #[test]
    fn a_record_is_read_without_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let result = plan::check::CheckResult { name: "front page".into(), ..Default::default() };
        let record = CheckRecord::new(&result);
        let good = file("check.json", &report::check::json(&record));
        let Some(ShownResults::Check(read)) = only(std::slice::from_ref(&good)).unwrap() else {
            panic!("not a check")
        };
        assert_eq!(*read, record);
        assert!(refused(&[good, "last".into()]).contains("name only this file"));
        let run = file("run.json", "{\"schema\": \"loadstone.run/1\"}");
        let why = refused(&[run]);
        assert!(why.contains("run.json is not a valid loadstone.run/1: missing field"), "{why}");
        let newer = file("newer.json", "{\"schema\": \"loadstone.torture/2\"}");
        assert!(refused(&[newer]).contains("is \"loadstone.torture/2\": only"));
        assert!(refused(&[file("cut.json", "{\"sche")]).contains("is damaged or not JSON"));
        assert!(refused(&[file("empty.json", "")]).contains("is damaged or not JSON"));
        let missing = refused(&["/nowhere/run.json".into()]);
        assert!(missing.contains("/nowhere/run.json"), "{missing}");
        for other in [file("empty.db", ""), "missing.db".to_owned(), "last".to_owned()] {
            assert!(only(&[other]).unwrap().is_none());
        }
    }
}
