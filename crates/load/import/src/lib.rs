//! Converts files of other load tools and HTTP clients to plans: Postman, JMeter, Artillery,
//! Bruno, Insomnia, `.http` files, vegeta, siege and the command lines of small load tools.
//! [`recorded`] reads HAR files, curl's command lines and OpenAPI; [`access_log`] reads the logs of
//! servers.
//!
//! All formats of plans share one entry point ([`import`]) and one model (`draft`): a reader makes a draft,
//! and `write` prints it as a plan with comments. Elements that a reader does not know are listed
//! with name and line, in the plan and in the result; they never cause a refusal. Layer 3: texts
//! in, text out; the caller reads files. No part of a file is executed.
#![forbid(unsafe_code)]

pub mod access_log;
mod artillery;
mod bruno;
mod command_lines;
mod correlate;
mod detect;
mod draft;
mod dynamic;
mod filter;
mod http_file;
mod insomnia;
mod jmx;
mod login;
mod names;
mod place;
mod postman;
pub mod recorded;
mod scripts;
mod targets;
mod text;
mod toml_text;
mod tree;
mod write;

pub use correlate::{Correlation, correlate, import_visit};
pub use detect::{Format, detect, refusal, top_keys};
pub use draft::LeftOut;
pub use postman::{PostmanScript, postman_script};

use draft::PlanDraft;
use plan::FileSource;
use url::Url;

/// Maximum size of all texts of one import in bytes.
pub const TEXT_MAX: usize = 64 << 20;

/// Text with the name of its file.
#[derive(Clone, Debug)]
pub struct Document {
    pub name: String,
    pub text: String,
}

/// Input of an import, and its settings.
#[derive(Clone, Copy)]
pub struct ImportRequest<'a> {
    /// The imported file; for Bruno, all files of the folder.
    pub documents: &'a [Document],
    /// Postman environment.
    pub environment: Option<&'a Document>,
    /// Files that the documents name: data, bodies, uploads.
    pub files: &'a dyn FileSource,
    /// Server that replaces the one in the file.
    pub base: Option<&'a Url>,
    /// Imports only the folder, block, journey or request of this name.
    pub only: Option<&'a str>,
    /// Requests with these methods are omitted.
    pub skip_methods: &'a [String],
    /// JMeter properties, as given with `-J name=value`.
    pub properties: &'a [(String, String)],
    /// Names files by absolute paths, for a plan that is not written to the current folder.
    pub absolute_paths: bool,
}

impl ImportRequest<'_> {
    /// Reads a file that a document names, and returns its path for the plan: from the current
    /// folder, or absolute. Relative paths in documents start at the document.
    fn read(&self, file: &str) -> Result<(String, Vec<u8>), String> {
        let folders = self.documents.iter().map(|document| folder_of(&document.name));
        let folder = folders.min_by_key(|folder| folder.len()).unwrap_or_default();
        let absolute = file.starts_with(['/', '\\']) || folder.is_empty();
        let path = if absolute { file.to_owned() } else { format!("{folder}/{file}") };
        if file.trim().is_empty() {
            return Err("it names no file".to_owned());
        }
        let bytes = self.files.read(&path)?;
        if !self.absolute_paths {
            return Ok((path, bytes));
        }
        let named = std::path::absolute(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok((named.to_string_lossy().into_owned(), bytes))
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder)
}

impl std::fmt::Debug for ImportRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("documents", &self.documents).finish_non_exhaustive()
    }
}

/// Plan made from a file.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The plan file, with comments.
    pub toml: String,
    /// Elements that are missing in the plan, in the order of the file.
    pub left_out: Vec<LeftOut>,
    pub journeys: usize,
    /// Number of steps of the journeys, or of targets if there are none.
    pub steps: usize,
    pub captures: usize,
    pub checks: usize,
}

impl Imported {
    /// Returns the number of lines of scripts that have no equivalent in a plan.
    pub fn script_lines(&self) -> usize {
        self.left_out.iter().filter(|one| one.why == scripts::NOT_EXECUTED).count()
    }
}

/// Reason why a file cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError(pub String);

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ImportError {}

/// Makes a plan from a file.
///
/// # Errors
/// Fails if the text is not of the format, or has no request.
pub fn import(format: Format, request: &ImportRequest<'_>) -> Result<Imported, ImportError> {
    let first =
        request.documents.first().ok_or_else(|| ImportError("there is no file".to_owned()))?;
    let size: usize = request.documents.iter().map(|document| document.text.len()).sum();
    if size > TEXT_MAX {
        return Err(ImportError("it is longer than 64 MiB".to_owned()));
    }
    let mut draft = read(format, first, request).map_err(ImportError)?;
    login::move_from_urls(&mut draft);
    filter::filter(&mut draft, request).map_err(ImportError)?;
    let name = first.name.rsplit(['/', '\\']).next().unwrap_or_default();
    let head = match draft::one_line(name) {
        name if name.is_empty() => format!("Imported from standard input ({}).", format.name()),
        name => format!("Imported from {name} ({}).", format.name()),
    };
    let targets = draft.targets.len();
    let written = write::write(draft, &head, request.base).map_err(ImportError)?;
    let write::ImportCounts { journeys, steps, captures, checks } = written.counts;
    let write::WrittenPlan { toml, left_out, .. } = written;
    let steps = steps.max(if journeys == 0 { targets } else { 0 });
    Ok(Imported { toml, left_out, journeys, steps, captures, checks })
}

fn read(
    format: Format,
    first: &Document,
    request: &ImportRequest<'_>,
) -> Result<PlanDraft, String> {
    let text = first.text.trim_start_matches('\u{feff}');
    match format {
        Format::Postman => postman::read(text, request),
        Format::Jmeter => jmx::read(text, request),
        Format::Artillery => artillery::read(text, request),
        Format::HttpFile => http_file::read(text, request),
        Format::Bruno => bruno::read(request),
        Format::Insomnia => insomnia::read(text),
        Format::Vegeta => targets::read_vegeta(text, request),
        Format::Siege => targets::read_siege(text, request),
        Format::CommandLine => command_lines::read(text, request),
    }
}

#[cfg(test)]
mod tests;
