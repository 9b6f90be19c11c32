//! `loadstone torture diff`: two results held against each other.

use crate::args::{Disk, TortureDiff};
use crate::exit::{Code, Failure};
use crate::files;
use plan::FileSource;
use report::torture::{Document, diff};

pub(super) fn diff(args: &TortureDiff) -> Result<Code, Failure> {
    args.check().map_err(|error| Failure::usage(error.to_string()))?;
    files::check_results(args.json.as_ref(), &args.md)?;
    let (a, b) = (document(&args.a)?, document(&args.b)?);
    let diff = diff::compare(&a, &b);
    let json = args.json.as_ref().map(|sink| (sink, diff::json(&diff)));
    let md = args.md.as_ref().map(|path| (path, diff::markdown(&diff)));
    let style = crate::run::output::style(args.quiet, false);
    files::write_results(json, md, || diff::text(&diff, style))?;
    Ok(if diff.worse > 0 { Code::Missed } else { Code::Done })
}

fn document(path: &str) -> Result<Document, Failure> {
    let bytes = Disk.read(path).map_err(Failure::usage)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{path} is no JSON: it is not UTF-8 text")))?;
    report::torture::read(&text).map_err(|why| Failure::usage(format!("{path} {why}")))
}
