//! The content type of a body file, by its name.

/// Extensions of text files: white space at both ends of their content is not sent.
const TEXT: [&str; 22] = [
    "asc", "c", "cc", "css", "csv", "etx", "f", "f90", "h", "hh", "htm", "html", "m", "md", "rtx",
    "sgm", "sgml", "svg", "tsv", "txt", "xml", "yml",
];

/// Properties of a file.
pub(super) struct Media {
    pub(super) text: bool,
    /// Media type, if the extension determines it.
    pub(super) name: Option<&'static str>,
}

/// Returns the type by the file's extension; a file without one is text.
pub(super) fn media_type(path: &str) -> Media {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let guess = mime_guess::from_path(name);
    Media {
        text: ending.as_deref().is_none_or(|ending| TEXT.contains(&ending)),
        name: guess.first_raw(),
    }
}
