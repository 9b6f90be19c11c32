//! `loadstone torture emit`: prints failures in a form that can be used without Loadstone.

use super::print;
use crate::exit::{Code, Failure};
use crate::files;
use args::EmitArgs;
use report::torture::{ProbeForm, capture, case_file};
use std::path::{Path, PathBuf};
use torture::case::Case;
use torture::record::Transcript;
use world::evidence;

/// # Errors
/// Fails for evidence that cannot be read, and for the first failure that the form cannot express.
pub(super) fn emit(args: &EmitArgs, cases: &[Case]) -> Result<Code, Failure> {
    let folders = evidence::folders(&args.folder)?;
    let kept = folders
        .iter()
        .map(|folder| evidence::transcript(&file(folder, args.shrunk)?))
        .collect::<Result<Vec<Transcript>, Failure>>()?;
    let form = match args.form.as_str() {
        "sh" => ProbeForm::Sh,
        "curl" => ProbeForm::Curl,
        "nc" => ProbeForm::Nc,
        "rust-test" => ProbeForm::RustTest,
        "case" => return as_case(args, &folders, &kept, cases),
        _ => {
            let all: Vec<&Transcript> = kept.iter().collect();
            let bytes = capture(&all).map_err(Failure::usage)?;
            files::write_stdout_bytes(&bytes).map_err(|error| Failure::not_written(&error))?;
            return Ok(Code::Done);
        }
    };
    let each = kept.iter().map(|one| report::torture::emit(one, form));
    let texts = each.collect::<Result<Vec<String>, String>>().map_err(Failure::usage)?;
    print(&texts.join("\n"))
}

/// Returns one failure as a case file, judged by the recorded rule.
fn as_case(
    args: &EmitArgs,
    folders: &[PathBuf],
    kept: &[Transcript],
    cases: &[Case],
) -> Result<Code, Failure> {
    let ([folder], [transcript]) = (folders, kept) else {
        return Err(Failure::usage(format!(
            "{} contains {} failures, but a case file holds one: name the folder of one failure",
            args.folder.display(),
            kept.len()
        )));
    };
    let rule = evidence::rule(folder, transcript, cases)?;
    print(&case_file(transcript, &rule, &args.id).map_err(Failure::usage)?)
}

/// Returns the transcript of the failure, or of its shrunk form.
fn file(folder: &Path, shrunk: bool) -> Result<PathBuf, Failure> {
    let path = folder.join(if shrunk { "shrunk.lsw" } else { "wire.lsw" });
    if shrunk && !path.is_file() {
        let folder = folder.display();
        return Err(Failure::usage(format!(
            "{folder} has not been shrunk: run loadstone torture shrink {folder} first"
        )));
    }
    Ok(path)
}
