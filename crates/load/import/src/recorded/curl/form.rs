//! curl's `-F`: the parts of a form, and the form as a body (RFC 7578).

use super::{FileReader, Reads, read};
use crate::recorded::RecordedError;
use crate::recorded::commands::ShellWord;
use units::quoted;

/// Separator of the parts of a form: 24 dashes and 16 digits like curl's, but always the same.
pub(super) const BOUNDARY: &str = "------------------------4c6f616473746f6e";

/// Content types that curl 7.88 assigns to files by their extensions.
const KINDS: [(&str, &str); 10] = [
    (".gif", "image/gif"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".png", "image/png"),
    (".svg", "image/svg+xml"),
    (".txt", "text/plain"),
    (".htm", "text/html"),
    (".html", "text/html"),
    (".pdf", "application/pdf"),
    (".xml", "application/xml"),
];

/// Part of a form.
pub(super) struct FormPart {
    name: ShellWord,
    file: Option<ShellWord>,
    kind: Option<String>,
    content: Vec<u8>,
}

/// Parsed `NAME=CONTENT;type=...;filename=...`, as in curl 7.88.
#[derive(Default)]
struct Described {
    content: ShellWord,
    kind: Option<ShellWord>,
    file: Option<ShellWord>,
}

/// Parses a part of `-F`; without `files`, of `--form-string`, whose content is never a file name.
///
/// # Errors
/// Fails if there is no name, a file cannot be read, or an element has no equivalent here.
pub(super) fn part(text: &[u8], files: Option<FileReader<'_>>) -> Result<FormPart, RecordedError> {
    let shown = || quoted(&String::from_utf8_lossy(text));
    let equals = text.iter().position(|byte| *byte == b'=');
    let equals =
        equals.ok_or_else(|| RecordedError(format!("-F {} is not NAME=CONTENT", shown())))?;
    let (name, value) = (text[..equals].to_vec(), &text[equals + 1..]);
    let Some(files) = files else {
        return Ok(FormPart { name, file: None, kind: None, content: value.to_vec() });
    };
    let refuse = |what: &str| RecordedError(format!("-F {}: {what} is not known here", shown()));
    let (sign, value) = match value {
        [sign @ (b'@' | b'<'), rest @ ..] => (Some(*sign), rest),
        [b'(', ..] | [b')', ..] => return Err(refuse("a form within a form")),
        value => (None, value),
    };
    let end = if sign == Some(b'@') { b',' } else { 0 };
    let described = describe(value, end).map_err(|why| refuse(&why))?;
    let (path, content) = match sign {
        None => (None, described.content),
        Some(_) => {
            let path = String::from_utf8_lossy(&described.content).into_owned();
            let content = read(format!("@{path}").as_bytes(), files, Reads::Whole)?;
            (Some(path), content)
        }
    };
    let base = path.as_deref().filter(|_| sign == Some(b'@'));
    let base = base.map(|path| path.rsplit('/').next().unwrap_or(path).as_bytes().to_vec());
    let file = described.file.or(base);
    let given = described.kind.map(|kind| String::from_utf8_lossy(&kind).into_owned());
    let kind = given.or_else(|| usual_kind(file.as_deref(), path.as_deref()));
    Ok(FormPart { name, file, kind, content })
}

/// Returns the content type of a part without one in the command.
fn usual_kind(file: Option<&[u8]>, path: Option<&str>) -> Option<String> {
    let of = |name: &str| {
        let name = name.to_ascii_lowercase();
        KINDS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, kind)| *kind)
    };
    let named = file.and_then(|file| of(&String::from_utf8_lossy(file)));
    let kind = match path {
        Some(path) => named.or_else(|| of(path)).or(file.map(|_| "application/octet-stream")),
        None => named,
    };
    // text is the default for a part without a file name (RFC 7578 section 4.4)
    kind.filter(|kind| file.is_some() || *kind != "text/plain").map(str::to_owned)
}

fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns a word up to `;` or `end`, and its end; within `"…"` these two are part of it.
fn word(text: &[u8], from: usize, end: u8) -> (ShellWord, usize) {
    let ends = |byte: u8| byte == b';' || (byte == end && end != 0);
    if text.get(from) == Some(&b'"') {
        let (mut word, mut at) = (Vec::new(), from + 1);
        while let Some(byte) = text.get(at) {
            match (byte, text.get(at + 1)) {
                (b'\\', Some(escaped @ (b'\\' | b'"'))) => {
                    word.push(*escaped);
                    at += 2;
                }
                (b'"', _) => {
                    // curl warns about text after the quote, and drops it
                    at += 1;
                    while text.get(at).is_some_and(|byte| !ends(*byte)) {
                        at += 1;
                    }
                    return (word, at);
                }
                _ => {
                    word.push(*byte);
                    at += 1;
                }
            }
        }
    }
    let length = text[from..].iter().take_while(|byte| !ends(**byte)).count();
    (text[from..from + length].trim_ascii_end().to_vec(), from + length)
}

fn describe(text: &[u8], end: u8) -> Result<Described, String> {
    let mut described = Described::default();
    let mut at;
    (described.content, at) = word(text, skip_blanks(text, 0), end);
    // start of the content type in progress
    let mut kind: Option<usize> = None;
    while text.get(at) == Some(&b';') {
        at = skip_blanks(text, at + 1);
        let rest = &text[at..];
        let begins = |prefix: &str| {
            rest.len() >= prefix.len()
                && rest[..prefix.len()].eq_ignore_ascii_case(prefix.as_bytes())
        };
        if kind.is_none() && begins("type=") {
            at = skip_blanks(text, at + 5);
            kind = Some(at);
            at += text[at..].iter().take_while(|byte| **byte != b';' && **byte != end).count();
            let found = &text[kind.unwrap_or(at)..at];
            let slash = found.iter().position(|byte| *byte == b'/').filter(|slash| *slash > 0);
            if slash.is_none_or(|slash| slash + 1 == found.len()) {
                return Err("a content type that is not TYPE/SUBTYPE".to_owned());
            }
            described.kind = Some(found.trim_ascii_end().to_vec());
        } else if begins("filename=") {
            kind = None;
            let (name, next) = word(text, skip_blanks(text, at + 9), end);
            (described.file, at) = (Some(name), next);
        } else if begins("headers=") || begins("encoder=") {
            let name = String::from_utf8_lossy(&rest[..7]).to_ascii_lowercase();
            return Err(format!("{name}="));
        } else if let Some(from) = kind {
            // a parameter of the content type
            at += rest.iter().take_while(|byte| **byte != b';' && **byte != end).count();
            described.kind = Some(text[from..at].trim_ascii_end().to_vec());
        } else {
            // curl warns about it, and drops it
            (_, at) = word(text, at, end);
        }
    }
    if text.get(at) == Some(&b',') && end == b',' {
        return Err("several files in one part".to_owned());
    }
    Ok(described)
}

/// Escapes a name in a part's head like curl 7.88.
fn escaped(name: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| -> Vec<u8> {
        match byte {
            b'"' => b"%22".to_vec(),
            b'\r' => b"%0D".to_vec(),
            b'\n' => b"%0A".to_vec(),
            other => vec![*other],
        }
    };
    name.iter().flat_map(escape).collect()
}

/// Returns the parts as a body, each with this disposition.
pub(super) fn body(parts: &[FormPart], disposition: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        body.extend(
            format!("--{BOUNDARY}\r\nContent-Disposition: {disposition}; name=\"").as_bytes(),
        );
        body.extend(escaped(&part.name));
        body.push(b'"');
        if let Some(file) = &part.file {
            body.extend(b"; filename=\"");
            body.extend(escaped(file));
            body.push(b'"');
        }
        if let Some(kind) = &part.kind {
            body.extend(format!("\r\nContent-Type: {kind}").as_bytes());
        }
        body.extend(b"\r\n\r\n");
        body.extend(&part.content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}
