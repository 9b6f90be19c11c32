//! The content type of a file, by its name.

use std::path::Path;

const OCTETS: &str = "application/octet-stream";

/// Text files without an extension, by convention.
const TEXTS: &[&str] = &[
    "authors",
    "changelog",
    "changes",
    "copying",
    "dockerfile",
    "install",
    "license",
    "makefile",
    "news",
    "notice",
    "readme",
    "todo",
    "version",
];

/// Returns the media type for Content-Type. Text is UTF-8 here.
pub(super) fn media_type(name: &Path) -> String {
    let kind = bare(name);
    match kind.starts_with("text/") {
        true => format!("{kind}; charset=utf-8"),
        false => kind.to_owned(),
    }
}

fn bare(name: &Path) -> &'static str {
    let guess = mime_guess::from_path(name).first_raw();
    guess.unwrap_or_else(|| if is_text_by_custom(name) { "text/plain" } else { OCTETS })
}

fn is_text_by_custom(name: &Path) -> bool {
    let name = name.file_name().and_then(|name| name.to_str()).unwrap_or("");
    TEXTS.iter().any(|text| name.eq_ignore_ascii_case(text))
}

const ARCHIVES: &[&str] = &[
    "7z", "bz2", "deb", "gz", "jar", "rar", "rpm", "tar", "tbz", "tgz", "txz", "xz", "zip", "zst",
];

fn is_archive(name: &Path) -> bool {
    let extension = name.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    ARCHIVES.iter().any(|archive| extension.eq_ignore_ascii_case(archive))
}

/// Icon of an entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Icon {
    Folder,
    Text,
    Image,
    Archive,
    Unknown,
    /// Link to the parent directory.
    Parent,
}

/// Icons: file below the icons' path, and alternative text.
pub(crate) const ICONS: &[(Icon, &str, &str)] = &[
    (Icon::Folder, "folder.svg", "folder"),
    (Icon::Text, "text.svg", "text"),
    (Icon::Image, "image.svg", "image"),
    (Icon::Archive, "archive.svg", "archive"),
    (Icon::Unknown, "unknown.svg", "file"),
    (Icon::Parent, "parent.svg", "up"),
];

impl Icon {
    /// Returns the icon of a regular file.
    pub(super) fn for_file(name: &Path) -> Icon {
        if is_archive(name) {
            return Icon::Archive;
        }
        match bare(name) {
            kind if kind.starts_with("image/") => Icon::Image,
            kind if kind.starts_with("text/") => Icon::Text,
            "application/json" | "application/xml" | "application/x-sh" => Icon::Text,
            _ => Icon::Unknown,
        }
    }

    /// Returns the file name of the icon, and its description.
    pub(super) fn icon(self) -> (&'static str, &'static str) {
        let found = ICONS.iter().find(|(icon, ..)| *icon == self);
        let (_, file, words) = found.expect("every icon is in the table");
        (file, words)
    }
}

#[cfg(test)]
mod tests;
