//! `loadstone torture diff`: compares two results.

use crate::exit::{Code, Failure};
use crate::{files, runs};
use args::{Disk, TortureDiff};
use plan::FileSource;
use record::document;
use record::torture::TortureRecord;
use report::torture::diff;
use std::path::Path;
use store::Stored;

pub(super) fn diff(args: &TortureDiff) -> Result<Code, Failure> {
    args.check().map_err(|error| Failure::usage(error.to_string()))?;
    files::check_results(args.json.as_ref(), &args.md)?;
    let (a, b) = (result(&args.a, args)?, result(&args.b, args)?);
    let diff = record::torture::diff::compare(&a, &b);
    let json = args.json.as_ref().map(|sink| (sink, document::printed(&diff)));
    let md = args.md.as_ref().map(|path| (path, diff::markdown(&diff)));
    let style = crate::run::output::style(args.quiet, false, true);
    files::write_results(json, md, || diff::text(&diff, style))?;
    Ok(if diff.worse > 0 { Code::Missed } else { Code::Done })
}

fn result(name: &str, args: &TortureDiff) -> Result<TortureRecord, Failure> {
    if !is_file(name) {
        return stored(name, args);
    }
    let bytes = Disk.read(name).map_err(Failure::usage)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{name} is not JSON: it is not UTF-8 text")))?;
    record::torture::read(&text).map_err(|why| Failure::usage(format!("{name} {why}")))
}

/// Returns whether the name is a file: ids contain neither a slash nor a dot. A file whose name is
/// also a tag is treated as a file.
fn is_file(name: &str) -> bool {
    name == "-" || name.contains(['/', '.']) || Path::new(name).is_file()
}

fn stored(name: &str, args: &TortureDiff) -> Result<TortureRecord, Failure> {
    let store = runs::to_read(&args.store).map_err(|failure| Failure {
        text: format!(
            "{name} is not a file, and the store cannot be searched for a result of this name: {}",
            failure.text
        ),
        ..failure
    })?;
    match store.load(name).map_err(runs::refused)? {
        Stored::Torture(torture) => Ok(*torture),
        other => {
            let kind = other.kind().id();
            Err(Failure::usage(format!("{name} is a {kind}; torture diff compares tortures")))
        }
    }
}
