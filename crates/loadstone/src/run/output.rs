//! Writes results to the requested destinations.

use crate::exit::Failure;
use crate::{files, progress};
use args::{Outputs, Sink};
use report::{RunRecord, Style};
use session::console::{stdout_is_terminal, text_variable, variable};
use std::path::PathBuf;

/// Checks, before anything is sent, that every result can be written.
pub(crate) fn check(outputs: &Outputs) -> Result<(), Failure> {
    let others =
        [&outputs.csv, &outputs.hdr, &outputs.html, &outputs.junit, &outputs.md, &outputs.log];
    files::check_results(outputs.json.as_ref(), others.into_iter().flatten())
}

/// Writes all results; every one is attempted, the first failure is reported.
pub(crate) fn write(report: &RunRecord, outputs: &Outputs) -> Result<(), Failure> {
    let style = style(outputs.quiet, outputs.percentiles, outputs.full);
    let parts = Parts {
        json: &|| report::json(report),
        csv: &|| report::csv(report),
        hdr: Some(&|| report::hdr_log(report)),
        html: Some(&|| report::html(report)),
        junit: Some(&|| report::junit(report)),
        md: Some(&|| report::markdown(report)),
        text: &|| match outputs.line {
            true => report::line(report, style),
            false => report::text(report, style),
        },
    };
    write_parts(outputs, &parts)
}

type Render<'a> = &'a dyn Fn() -> String;

/// Result in each form; `None` for a form that the options refuse.
pub(crate) struct Parts<'a> {
    pub(crate) json: Render<'a>,
    pub(crate) csv: Render<'a>,
    pub(crate) hdr: Option<Render<'a>>,
    pub(crate) html: Option<Render<'a>>,
    pub(crate) junit: Option<Render<'a>>,
    pub(crate) md: Option<Render<'a>>,
    pub(crate) text: Render<'a>,
}

/// Writes the result of any command, like [`write`].
pub(crate) fn write_parts(outputs: &Outputs, parts: &Parts<'_>) -> Result<(), Failure> {
    let mut done = Ok(());
    if let Some(sink) = &outputs.json {
        done = files::write_to(sink, &(parts.json)());
    }
    let pages: [(&Option<PathBuf>, Option<Render<'_>>); 4] = [
        (&outputs.csv, Some(parts.csv)),
        (&outputs.hdr, parts.hdr),
        (&outputs.html, parts.html),
        (&outputs.junit, parts.junit),
    ];
    for (path, render) in pages {
        if let (Some(path), Some(render)) = (path, render) {
            let written = files::write_whole(path, &render());
            done = done.and(written);
        }
    }
    if let (Some(path), Some(render)) = (&outputs.md, parts.md) {
        // other programs of the same job may have appended to it
        let written = match variable("GITHUB_STEP_SUMMARY") {
            Some(summary) if summary == *path => files::append(path, &render()),
            _ => files::write_whole(path, &render()),
        };
        done = done.and(written);
    }
    // JSON is the only output on standard output
    if outputs.json != Some(Sink::Stdout) {
        let written = files::write_stdout(&(parts.text)());
        done = done.and(written);
    }
    done.map_err(|error| Failure::not_written(&error))
}

/// Returns the style of text for standard output.
pub(crate) fn style(quiet: bool, percentiles: bool, full: bool) -> Style {
    let terminal = stdout_is_terminal() && !progress::dumb_terminal();
    let size = terminal_size::terminal_size().filter(|_| terminal);
    let columns = size.map_or(0, |(width, _)| usize::from(width.0));
    let color = terminal && !no_color();
    Style { unicode: speaks_unicode(), color, quiet, percentiles, full, columns }
}

/// Returns whether the user disabled colors (no-color.org).
pub(crate) fn no_color() -> bool {
    variable("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Returns whether the locale is UTF-8, or unset.
fn speaks_unicode() -> bool {
    let first = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| text_variable(name))
        .find(|value| !value.is_empty());
    first.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}
