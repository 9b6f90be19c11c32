//! Content type of a body file, by its name.

/// Endings of files that hold text: white space at both ends of them is not sent.
const TEXT: [&str; 22] = [
    "asc", "c", "cc", "css", "csv", "etx", "f", "f90", "h", "hh", "htm", "html", "m", "md", "rtx",
    "sgm", "sgml", "svg", "tsv", "txt", "xml", "yml",
];

/// Facts of a file.
pub(super) struct Media {
    pub(super) text: bool,
    /// Media type, if the extension determines it.
    pub(super) name: Option<&'static str>,
}

/// Type by the file's extension; without one it is text.
pub(super) fn of_file(path: &str) -> Media {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let guess = mime_guess::from_path(name);
    Media {
        text: ending.as_deref().is_none_or(|ending| TEXT.contains(&ending)),
        name: guess.first_raw(),
    }
}
