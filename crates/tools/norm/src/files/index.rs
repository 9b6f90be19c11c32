//! The fancy index: a page that lists a directory.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rustix::fs::{AtFlags, Dir, FileType, OFlags};
use time::OffsetDateTime;

use super::kind::Icon;
use super::place::{self, Folder, FoundPath, Links, Missed};
use crate::breaks::{Break, Breaks};
use crate::names::configures;

/// Maximum number of listed entries; of a larger directory, the first ones that the system returns.
pub(super) const ENTRIES_MAX: usize = 10_000;

/// Percent-encodes all but the unreserved characters (RFC 3986 §2.3). A colon too: `a:b` would be a
/// scheme.
pub(super) const IN_SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A line of the index.
#[derive(Clone, Debug)]
pub(super) struct IndexRow {
    pub(super) name: OsString,
    pub(super) icon: Icon,
    /// Size in bytes; only for regular files.
    pub(super) len: Option<u64>,
    /// Seconds since 1970; `None` for links that cannot be followed.
    pub(super) modified: Option<i64>,
}

#[derive(Debug)]
pub(super) struct Listing {
    /// Directories first, then by name.
    pub(super) entries: Vec<IndexRow>,
    /// True if the directory has more entries.
    pub(super) cut: bool,
}

/// Lists a directory below `root`, at most `entries_max` entries, without configuration files.
///
/// # Errors
/// Fails if the directory cannot be read.
pub(super) fn list(
    root: &Path,
    folder: &Folder,
    links: Links,
    entries_max: usize,
) -> Result<Listing, Missed> {
    let flags = OFlags::DIRECTORY;
    let handle = match place::open_below(&root.canonicalize()?, &folder.below, flags) {
        Err(Missed::Missing) if links == Links::Anywhere => {
            std::fs::File::open(&folder.real)?.into()
        }
        other => other?,
    };
    let mut entries = Vec::new();
    let mut cut = false;
    for item in Dir::read_from(&handle)? {
        let item = item?;
        let name = item.file_name().to_bytes();
        if name == b"." || name == b".." || configures(name) {
            continue;
        }
        if entries.len() == entries_max {
            cut = true;
            break;
        }
        let name = OsString::from_vec(name.to_vec());
        // removed since it was listed
        let Ok(facts) = rustix::fs::statat(&handle, &name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        entries.push(match FileType::from_raw_mode(facts.st_mode) {
            FileType::Symlink => followed(root, folder, name, links),
            kind => entry(name, kind, facts.st_size, facts.st_mtime),
        });
    }
    entries.sort_by_cached_key(|entry| {
        let name = entry.name.to_string_lossy().to_lowercase();
        (entry.icon != Icon::Folder, name, entry.name.clone())
    });
    Ok(Listing { entries, cut })
}

fn entry(name: OsString, kind: FileType, len: i64, modified: i64) -> IndexRow {
    let (icon, len) = match kind {
        FileType::Directory => (Icon::Folder, None),
        FileType::RegularFile => (Icon::for_file(Path::new(&name)), u64::try_from(len).ok()),
        _ => (Icon::Unknown, None),
    };
    IndexRow { name, icon, len, modified: Some(modified) }
}

/// Returns the row of a link: with the properties of its target, if that is within the site.
fn followed(root: &Path, folder: &Folder, name: OsString, links: Links) -> IndexRow {
    use std::os::unix::fs::MetadataExt;
    let path = folder.below.join(&name);
    let found = path.to_str().map(|path| place::find(root, path, links));
    let facts = match found {
        Some(Ok(FoundPath::File(opened))) => Ok(opened.facts),
        Some(Ok(FoundPath::Folder(folder))) => folder.real.metadata(),
        _ => return IndexRow { name, icon: Icon::Unknown, len: None, modified: None },
    };
    match facts {
        Ok(facts) if facts.is_dir() => entry(name, FileType::Directory, 0, facts.mtime()),
        Ok(facts) => {
            let len = i64::try_from(facts.len()).unwrap_or(i64::MAX);
            entry(name, FileType::RegularFile, len, facts.mtime())
        }
        Err(_) => IndexRow { name, icon: Icon::Unknown, len: None, modified: None },
    }
}

const STYLE: &str = include_str!("index.css");

/// Returns the page. `path` is the directory's path in the URL, decoded, with its final slash;
/// `icons` the URL path of the icons.
pub(super) fn page(path: &str, icons: &str, listing: &Listing, breaks: &Breaks) -> String {
    let icons = icons.trim_end_matches('/');
    let title = format!("Index of {}", printable(path));
    let up = path != "/" && !breaks.has(Break::IndexParent);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                @if up {
                    p class="up" {
                        a href="../" { (image(icons, Icon::Parent)) "Up to higher level directory" }
                    }
                }
                @if listing.entries.is_empty() && !breaks.has(Break::IndexEmpty) {
                    p class="note" { "This directory is empty." }
                } @else {
                    (table(icons, &listing.entries, breaks))
                }
                @if listing.cut {
                    p class="note" { "Only " (listing.entries.len()) " of its entries are shown." }
                }
            }
        }
    };
    page.into_string()
}

fn table(icons: &str, entries: &[IndexRow], breaks: &Breaks) -> Markup {
    html! {
        table {
            thead { tr { th { "Name" } th class="size" { "Size" } th class="date" { "Date (UTC)" } } }
            tbody { @for entry in entries { (row(icons, entry, breaks)) } }
        }
    }
}

fn row(icons: &str, entry: &IndexRow, breaks: &Breaks) -> Markup {
    let slash = if entry.icon == Icon::Folder { "/" } else { "" };
    let href = format!("{}{slash}", percent_encode(entry.name.as_bytes(), IN_SEGMENT));
    let icon = if breaks.has(Break::IndexIcons) { Icon::Unknown } else { entry.icon };
    let len = entry.len.filter(|_| !breaks.has(Break::IndexSizes));
    let date = entry.modified.filter(|_| !breaks.has(Break::IndexDates)).and_then(shown_time);
    html! {
        tr {
            td class="name" {
                a href=(href) { (image(icons, icon)) bdi { (printable(&entry.name.to_string_lossy())) (slash) } }
            }
            td class="size" {
                @if let Some(len) = len { data value=(len) { (units::show::bytes(len)) } }
            }
            td class="date" { @if let Some(date) = date { time { (date) } } }
        }
    }
}

fn image(icons: &str, icon: Icon) -> Markup {
    let (file, words) = icon.icon();
    html! { img src=(format!("{icons}/{file}")) alt=(format!("[{words}]")) width="20" height="20"; }
}

/// Formats `2001-09-19 05:31`, UTC; `None` beyond the calendar.
fn shown_time(seconds: i64) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    let (month, day) = (u8::from(at.month()), at.day());
    Some(format!("{}-{month:02}-{day:02} {:02}:{:02}", at.year(), at.hour(), at.minute()))
}

/// Makes a name printable: it may contain line breaks or escapes.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests;
