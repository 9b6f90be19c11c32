//! `cargo xtask book`: renders the guide as static HTML with a table of contents and a search that
//! runs in the browser. The pages load nothing from the network.
//!
//! docs/guide/SUMMARY.md is the table of contents, in mdBook's format. A page that it does not name
//! is an error.

mod page;
#[cfg(test)]
mod tests;

use crate::shell;
use anyhow::{Context, bail};
use page::{Page, escape, html_name};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Output folder [default: target/book]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prefix of links to files outside the guide: a URL, or a path from the output folder
    #[arg(long, value_name = "PREFIX", default_value = "../..")]
    repository: String,
}

const GUIDE: &str = "docs/guide";
const SUMMARY: &str = "SUMMARY.md";
const STYLE: &str = include_str!("book/style.css");
const SEARCH: &str = include_str!("book/search.js");

/// One line of the table of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Part(String),
    Chapter { title: String, file: String },
}

/// Writes the book.
///
/// # Errors
/// Fails if the summary does not name every page, or names a missing one, or a file cannot be read
/// or written.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let guide = root.join(GUIDE);
    let entries = entries(&read(&guide.join(SUMMARY))?)?;
    let missing = unnamed(&entries, &files(&guide)?);
    if !missing.is_empty() {
        bail!("{GUIDE}/{SUMMARY} does not name {}: add them", missing.join(", "));
    }
    let out = options.out.clone().unwrap_or_else(|| shell::target_folder(root).join("book"));
    std::fs::create_dir_all(&out).with_context(|| format!("making {}", out.display()))?;
    let mut index = String::new();
    let chapters: Vec<(&str, &str)> = chapters(&entries).collect();
    for &(title, file) in &chapters {
        let page = Page::render(&read(&guide.join(file))?, &options.repository);
        for image in &page.images {
            copy_image(&guide, image, &out)?;
        }
        for section in &page.sections {
            index.push_str(&section.json(&html_name(file)));
        }
        let neighbors = neighbors(&chapters, file);
        write(&out.join(html_name(file)), &layout(title, file, &entries, &page.html, neighbors))?;
    }
    write(&out.join("style.css"), STYLE)?;
    write(&out.join("search.js"), &format!("const SECTIONS = [\n{index}];\n{SEARCH}"))?;
    println!("{} pages in {}", chapters.len(), out.display());
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn copy_image(guide: &Path, image: &str, out: &Path) -> anyhow::Result<()> {
    let from = guide.join(image);
    let name = from.file_name().context("an image has a file name")?;
    let folder = out.join("images");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    std::fs::copy(&from, folder.join(name))
        .with_context(|| format!("copying {}", from.display()))?;
    Ok(())
}

/// Parses the table of contents.
fn entries(summary: &str) -> anyhow::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (index, line) in summary.lines().enumerate() {
        if let Some(part) = line.strip_prefix("# ") {
            if part != "Summary" {
                entries.push(Entry::Part(part.to_owned()));
            }
            continue;
        }
        let item = line.strip_prefix("- ").unwrap_or(line);
        if item.is_empty() {
            continue;
        }
        let link = item.strip_prefix('[').and_then(|rest| rest.strip_suffix(')'));
        let Some((title, file)) = link.and_then(|link| link.split_once("](")) else {
            bail!("{SUMMARY}:{}: {line:?} is not a link: write - [Title](file.md)", index + 1);
        };
        entries.push(Entry::Chapter { title: title.to_owned(), file: file.to_owned() });
    }
    Ok(entries)
}

fn chapters(entries: &[Entry]) -> impl Iterator<Item = (&str, &str)> {
    entries.iter().filter_map(|entry| match entry {
        Entry::Chapter { title, file } => Some((title.as_str(), file.as_str())),
        Entry::Part(_) => None,
    })
}

/// Returns the pages of the guide, without the table of contents.
fn files(guide: &Path) -> anyhow::Result<BTreeSet<String>> {
    let paths = crate::guide::files_of(guide, "md")?;
    let names = paths.iter().filter_map(|path| path.file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    Ok(names.filter(|name| name != SUMMARY).collect())
}

/// Returns the files that no chapter names.
fn unnamed(entries: &[Entry], files: &BTreeSet<String>) -> Vec<String> {
    let named: BTreeSet<&str> = chapters(entries).map(|(_, file)| file).collect();
    files.iter().filter(|file| !named.contains(file.as_str())).cloned().collect()
}

type Chapter<'a> = Option<(&'a str, &'a str)>;

/// Returns the chapters before and after a file.
fn neighbors<'a>(chapters: &[(&'a str, &'a str)], file: &str) -> [Chapter<'a>; 2] {
    let at = chapters.iter().position(|(_, name)| *name == file);
    let around = |step: fn(usize) -> Option<usize>| {
        at.and_then(step).and_then(|index| chapters.get(index)).copied()
    };
    [around(|index| index.checked_sub(1)), around(|index| index.checked_add(1))]
}

/// Renders a complete page: navigation, content, links to the neighbors.
fn layout(
    title: &str,
    file: &str,
    entries: &[Entry],
    body: &str,
    around: [Chapter<'_>; 2],
) -> String {
    let mut nav = String::new();
    let mut open = false;
    for entry in entries {
        match entry {
            Entry::Part(part) => {
                let close = if open { "</ul>" } else { "" };
                nav.push_str(&format!("{close}<h2>{}</h2><ul>", escape(part)));
                open = true;
            }
            Entry::Chapter { title, file: name } => {
                let here = if name == file { " aria-current=\"page\"" } else { "" };
                let link = format!("<a href=\"{}\"{here}>{}</a>", html_name(name), escape(title));
                let item = if open { format!("<li>{link}</li>") } else { format!("<p>{link}</p>") };
                nav.push_str(&item);
            }
        }
    }
    if open {
        nav.push_str("</ul>");
    }
    let foot: String = around
        .into_iter()
        .zip(["←", "→"])
        .filter_map(|(chapter, arrow)| Some((chapter?, arrow)))
        .map(|((title, file), arrow)| {
            format!("<a href=\"{}\">{arrow} {}</a>", html_name(file), escape(title))
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{} · Loadstone</title><link rel=\"stylesheet\" href=\"style.css\"></head>\n\
         <body><nav><input id=\"search\" type=\"search\" placeholder=\"Search\" \
         aria-label=\"Search the guide\"><div id=\"results\" hidden></div>{nav}</nav>\n\
         <main>{body}<footer>{foot}</footer></main>\
         <script src=\"search.js\"></script></body></html>\n",
        escape(title)
    )
}
