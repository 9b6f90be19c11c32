//! curl's command lines.

use crate::{Recorded, RecordedError, is_ours, words};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use units::{Nanos, quoted};
use url::Url;
use url::form_urlencoded::byte_serialize;

/// A command: what is asked for, and what it says of how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curl {
    /// One for each URL.
    pub requests: Vec<Recorded>,
    pub version: Option<CurlVersion>,
    /// `-k`.
    pub insecure: bool,
    /// `--compressed`.
    pub compressed: bool,
    /// `-L`: redirects that are followed at most.
    pub follow: Option<u16>,
    /// A login that is proved request by request.
    pub login: Option<CurlLogin>,
}

/// `--digest` or `--aws-sigv4`, with the name and password of `-u`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurlLogin {
    Digest {
        user: String,
    },
    /// `scope`: provider, region and service, as curl takes them.
    AwsSigV4 {
        user: String,
        scope: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurlVersion {
    Http10,
    Http11,
    Http2,
    Http3,
}

/// Reads a file that a command names (`-d @FILE`); the error says why it cannot.
type FileReader<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// Redirects that curl follows where `--max-redirs` does not say.
const FOLLOW: u16 = 50;
/// Parts of a form are apart by this: 24 dashes and 16 digits as curl's, but the same each time.
const BOUNDARY: &str = "------------------------4c6f616473746f6e";

/// What the options add up to.
#[derive(Default)]
struct CurlDraft {
    urls: Vec<String>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    data: Option<Vec<u8>>,
    /// Name, file name, content type, content.
    form: Vec<FormField>,
    json: bool,
    get: bool,
    head: bool,
    user: Option<String>,
    digest: bool,
    aws_sigv4: Option<String>,
    version: Option<CurlVersion>,
    insecure: bool,
    compressed: bool,
    follow: bool,
    follow_max: Option<u16>,
}

struct FormField {
    name: String,
    file: Option<String>,
    kind: Option<String>,
    content: Vec<u8>,
}

/// The commands of a text: each begins with the word `curl` at the beginning of a line.
pub fn split_commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in text.lines() {
        let begins = line.split_whitespace().next() == Some("curl");
        match commands.last_mut() {
            Some(last) if !begins => {
                last.push('\n');
                last.push_str(line);
            }
            _ if begins => commands.push(line.to_owned()),
            // what stands before the first command is a comment, or `#!/bin/sh`
            _ => {}
        }
    }
    commands
}

/// One command, with or without the word `curl` in front.
///
/// # Errors
/// What a shell would have to do; an option that is unknown, or that has no counterpart in a load; a
/// URL, header or file that is no good; no URL.
pub fn parse_curl(text: &str, files: FileReader<'_>) -> Result<Curl, RecordedError> {
    let words = words::split(text)?;
    let mut words = words.into_iter().peekable();
    words.next_if(|word| word == "curl" || word.ends_with("/curl"));
    let mut draft = CurlDraft::default();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            let (name, joined) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = option(name).ok_or_else(|| unknown(&word))?;
            draft.long(option, joined, &mut words, &word, files)?;
        } else if let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            draft.cluster(cluster, &mut words, &word, files)?;
        } else {
            draft.urls.push(word);
        }
    }
    draft.finish()
}

fn unknown(word: &str) -> RecordedError {
    RecordedError(format!("curl's option {} is not known here; leave it out", quoted(word)))
}

/// What an option does.
#[derive(Clone, Copy)]
enum Does {
    Flag(fn(&mut CurlDraft)),
    Takes(fn(&mut CurlDraft, String, FileReader<'_>) -> Result<(), RecordedError>),
    /// Says where output goes, or how patient curl is: nothing of the request.
    Nothing,
    /// The same, with a value.
    NothingTaken,
    /// Our option that does it.
    Instead(&'static str),
}

/// Long name, short name or a blank, effect.
type OptionRow = (&'static str, char, Does);

const OPTIONS: &[OptionRow] = &[
    (
        "url",
        ' ',
        Does::Takes(|draft, url, _| {
            draft.urls.push(url);
            Ok(())
        }),
    ),
    (
        "request",
        'X',
        Does::Takes(|draft, method, _| {
            draft.method = Some(method);
            Ok(())
        }),
    ),
    ("header", 'H', Does::Takes(header)),
    ("user-agent", 'A', Does::Takes(|draft, agent, _| draft.field("User-Agent", agent))),
    ("referer", 'e', Does::Takes(|draft, from, _| draft.field("Referer", from))),
    ("cookie", 'b', Does::Takes(cookie)),
    ("data", 'd', Does::Takes(|draft, text, files| draft.data(&text, files, Reads::Stripped))),
    (
        "data-ascii",
        ' ',
        Does::Takes(|draft, text, files| draft.data(&text, files, Reads::Stripped)),
    ),
    ("data-binary", ' ', Does::Takes(|draft, text, files| draft.data(&text, files, Reads::Whole))),
    ("data-raw", ' ', Does::Takes(|draft, text, files| draft.data(&text, files, Reads::Nothing))),
    ("data-urlencode", ' ', Does::Takes(urlencode)),
    (
        "json",
        ' ',
        Does::Takes(|draft, text, files| {
            draft.json = true;
            draft.append(&read(&text, files, Reads::Whole)?, "");
            Ok(())
        }),
    ),
    ("form", 'F', Does::Takes(form)),
    ("form-string", ' ', Does::Takes(|draft, text, _| draft.part(&text, None))),
    ("get", 'G', Does::Flag(|draft| draft.get = true)),
    ("head", 'I', Does::Flag(|draft| draft.head = true)),
    (
        "user",
        'u',
        Does::Takes(|draft, user, _| {
            draft.user = Some(user);
            Ok(())
        }),
    ),
    ("basic", ' ', Does::Flag(|draft| draft.digest = false)),
    ("digest", ' ', Does::Flag(|draft| draft.digest = true)),
    (
        "aws-sigv4",
        ' ',
        Does::Takes(|draft, scope, _| {
            draft.aws_sigv4 = Some(scope);
            Ok(())
        }),
    ),
    (
        "oauth2-bearer",
        ' ',
        Does::Takes(|draft, token, _| draft.field("Authorization", format!("Bearer {token}"))),
    ),
    ("insecure", 'k', Does::Flag(|draft| draft.insecure = true)),
    ("compressed", ' ', Does::Flag(|draft| draft.compressed = true)),
    ("location", 'L', Does::Flag(|draft| draft.follow = true)),
    (
        "max-redirs",
        ' ',
        Does::Takes(|draft, count, _| {
            let wrong =
                || RecordedError(format!("--max-redirs {} is not a number", quoted(&count)));
            draft.follow_max = Some(count.parse().map_err(|_| wrong())?);
            Ok(())
        }),
    ),
    ("http1.0", '0', Does::Flag(|draft| draft.version = Some(CurlVersion::Http10))),
    ("http1.1", ' ', Does::Flag(|draft| draft.version = Some(CurlVersion::Http11))),
    ("http2", ' ', Does::Flag(|draft| draft.version = Some(CurlVersion::Http2))),
    ("http2-prior-knowledge", ' ', Does::Flag(|draft| draft.version = Some(CurlVersion::Http2))),
    ("http3", ' ', Does::Flag(|draft| draft.version = Some(CurlVersion::Http3))),
    ("http3-only", ' ', Does::Flag(|draft| draft.version = Some(CurlVersion::Http3))),
    ("silent", 's', Does::Nothing),
    ("show-error", 'S', Does::Nothing),
    ("verbose", 'v', Does::Nothing),
    ("include", 'i', Does::Nothing),
    ("fail", 'f', Does::Nothing),
    ("fail-with-body", ' ', Does::Nothing),
    ("no-buffer", 'N', Does::Nothing),
    ("progress-bar", '#', Does::Nothing),
    ("remote-name", 'O', Does::Nothing),
    ("globoff", 'g', Does::Nothing),
    ("path-as-is", ' ', Does::Nothing),
    ("tlsv1.2", ' ', Does::Nothing),
    ("output", 'o', Does::NothingTaken),
    ("write-out", 'w', Does::NothingTaken),
    ("dump-header", 'D', Does::NothingTaken),
    ("cookie-jar", 'c', Does::NothingTaken),
    ("retry", ' ', Does::NothingTaken),
    ("max-time", 'm', Does::Instead("--timeout")),
    ("connect-timeout", ' ', Does::Instead("--connect-timeout")),
    ("proxy", 'x', Does::Instead("--proxy")),
    ("unix-socket", ' ', Does::Instead("--unix")),
    ("resolve", ' ', Does::Instead("--resolve")),
    ("cacert", ' ', Does::Instead("--ca")),
    ("cert", 'E', Does::Instead("--cert")),
    ("key", ' ', Does::Instead("--key")),
];

fn option(name: &str) -> Option<Does> {
    OPTIONS.iter().find(|(long, ..)| *long == name).map(|(_, _, does)| *does)
}

/// What a value in `@FILE` form is read as.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    /// As it is.
    Whole,
    /// Without ends of lines and NUL.
    Stripped,
    /// No file: the `@` is text.
    Nothing,
}

fn read(text: &str, files: FileReader<'_>, reads: Reads) -> Result<Vec<u8>, RecordedError> {
    let Some(path) = text.strip_prefix('@').filter(|_| reads != Reads::Nothing) else {
        return Ok(text.as_bytes().to_vec());
    };
    let mut content =
        files(path).map_err(|why| RecordedError(format!("cannot read {}: {why}", quoted(path))))?;
    if reads == Reads::Stripped {
        content.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
    }
    Ok(content)
}

/// `Name: value`; `Name;` is one without a value, and `Name:` takes one of curl's own away.
fn header(draft: &mut CurlDraft, line: String, _: FileReader<'_>) -> Result<(), RecordedError> {
    let (name, value) = match (line.split_once(':'), line.strip_suffix(';')) {
        (Some((name, value)), _) => (name.trim().to_owned(), value.trim().to_owned()),
        (None, Some(name)) => return draft.field(name, String::new()),
        (None, None) => {
            let line = quoted(&line);
            return Err(RecordedError(format!("-H {line} is not a header: write Name: value")));
        }
    };
    if value.is_empty() { Ok(()) } else { draft.field(&name, value) }
}

fn cookie(draft: &mut CurlDraft, text: String, _: FileReader<'_>) -> Result<(), RecordedError> {
    if !text.contains('=') {
        let why = "names a file of cookies, which is not read here; give NAME=VALUE, or --cookies";
        return Err(RecordedError(format!("-b {} {why}", quoted(&text))));
    }
    draft.field("Cookie", text)
}

/// `content`, `=content`, `name=content`, `@file`, `name@file`.
fn urlencode(
    draft: &mut CurlDraft,
    text: String,
    files: FileReader<'_>,
) -> Result<(), RecordedError> {
    let (name, content) = match text.find(['=', '@']) {
        None => ("", text.clone().into_bytes()),
        Some(at) if text.as_bytes()[at] == b'=' => (&text[..at], text[at + 1..].into()),
        Some(at) => (&text[..at], read(&text[at..], files, Reads::Whole)?),
    };
    let encoded: String = byte_serialize(&content).collect();
    // curl writes %20 where a form would have a plus
    let encoded = encoded.replace('+', "%20");
    let sign = if name.is_empty() { "" } else { "=" };
    draft.append(format!("{name}{sign}{encoded}").as_bytes(), "&");
    Ok(())
}

/// `name=content`, `name=@file`, `name=<file`, each with `;type=…` behind.
fn form(draft: &mut CurlDraft, text: String, files: FileReader<'_>) -> Result<(), RecordedError> {
    draft.part(&text, Some(files))
}

impl CurlDraft {
    fn field(&mut self, name: &str, value: String) -> Result<(), RecordedError> {
        if !is_ours(name) {
            self.headers.push((name.to_owned(), value));
        } else if name.eq_ignore_ascii_case("host") {
            let way = "the name of the server is the URL's; give --resolve for its address";
            return Err(RecordedError(format!("-H 'Host: {value}': {way}")));
        }
        Ok(())
    }

    fn append(&mut self, content: &[u8], between: &str) {
        match &mut self.data {
            None => self.data = Some(content.to_vec()),
            Some(data) => {
                data.extend(between.as_bytes());
                data.extend(content);
            }
        }
    }

    fn data(
        &mut self,
        text: &str,
        files: FileReader<'_>,
        reads: Reads,
    ) -> Result<(), RecordedError> {
        self.append(&read(text, files, reads)?, "&");
        Ok(())
    }

    fn part(&mut self, text: &str, files: Option<FileReader<'_>>) -> Result<(), RecordedError> {
        let wrong = || RecordedError(format!("-F {} is not NAME=CONTENT", quoted(text)));
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let name = name.to_owned();
        let Some(files) = files else {
            let content = value.as_bytes().to_vec();
            self.form.push(FormField { name, file: None, kind: None, content });
            return Ok(());
        };
        let mut fields = value.split(';');
        let value = fields.next().unwrap_or_default();
        let (mut kind, mut named) = (None, None);
        for field in fields {
            match field.trim().split_once('=') {
                Some(("type", value)) => kind = Some(value.to_owned()),
                Some(("filename", value)) => named = Some(value.trim_matches('"').to_owned()),
                _ => return Err(wrong()),
            }
        }
        let path = value.strip_prefix(['@', '<']);
        let content = match path {
            None => value.as_bytes().to_vec(),
            Some(path) => read(&format!("@{path}"), files, Reads::Whole)?,
        };
        let base = path.filter(|_| value.starts_with('@'));
        let base = base.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
        let file = named.or(base);
        let kind = kind.or_else(|| file.as_ref().map(|_| "application/octet-stream".to_owned()));
        self.form.push(FormField { name, file, kind, content });
        Ok(())
    }

    fn long(
        &mut self,
        does: Does,
        joined: Option<String>,
        words: &mut dyn Iterator<Item = String>,
        word: &str,
        files: FileReader<'_>,
    ) -> Result<(), RecordedError> {
        let value = |words: &mut dyn Iterator<Item = String>| {
            let lacks = || RecordedError(format!("curl's option {word} lacks its value"));
            joined.clone().or_else(|| words.next()).ok_or_else(lacks)
        };
        match does {
            Does::Flag(set) => set(self),
            Does::Takes(take) => take(self, value(words)?, files)?,
            Does::Nothing => {}
            Does::NothingTaken => drop(value(words)?),
            Does::Instead(ours) => {
                let text = format!("give {ours} in place of curl's option {word}");
                return Err(RecordedError(text));
            }
        }
        Ok(())
    }

    /// `-sSL`, `-XPOST`, `-d x`.
    fn cluster(
        &mut self,
        cluster: &str,
        words: &mut dyn Iterator<Item = String>,
        word: &str,
        files: FileReader<'_>,
    ) -> Result<(), RecordedError> {
        for (at, letter) in cluster.char_indices() {
            let row = OPTIONS.iter().find(|(_, short, _)| *short == letter && letter != ' ');
            let (.., does) = row.ok_or_else(|| unknown(word))?;
            let rest = &cluster[at + letter.len_utf8()..];
            let takes = matches!(does, Does::Takes(_) | Does::NothingTaken | Does::Instead(_));
            if takes {
                let joined = (!rest.is_empty()).then(|| rest.to_owned());
                return self.long(*does, joined, words, word, files);
            }
            self.long(*does, None, words, word, files)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Curl, RecordedError> {
        if self.urls.is_empty() {
            return Err(RecordedError("it names no URL".to_owned()));
        }
        if self.data.is_some() && !self.form.is_empty() {
            return Err(RecordedError("it has both -d and -F; drop one".to_owned()));
        }
        let query = if self.get { self.data.take() } else { None };
        self.describe_body();
        let body = self.body();
        let method = self.method.clone().unwrap_or_else(|| {
            let method = match () {
                () if self.head => "HEAD",
                () if body.is_some() => "POST",
                () => "GET",
            };
            method.to_owned()
        });
        let login = self.login()?;
        let request = |text: &String| {
            Ok(Recorded {
                at: Nanos::ZERO,
                method: method.clone(),
                url: address(text, query.as_deref())?,
                headers: self.headers.clone(),
                body: body.clone(),
            })
        };
        Ok(Curl {
            requests: self.urls.iter().map(request).collect::<Result<_, _>>()?,
            version: self.version,
            insecure: self.insecure,
            compressed: self.compressed,
            follow: self.follow.then(|| self.follow_max.unwrap_or(FOLLOW)),
            login,
        })
    }

    /// A login that is proved request by request; any other is a field from now on.
    fn login(&mut self) -> Result<Option<CurlLogin>, RecordedError> {
        let user = self.user.take();
        let user = user.map(|user| if user.contains(':') { user } else { format!("{user}:") });
        let lacks = |option: &str| {
            RecordedError(format!("curl's option {option} lacks a login; add -u NAME:PASSWORD"))
        };
        match (user, self.aws_sigv4.take(), self.digest) {
            (_, Some(_), true) => {
                let text = "--digest and --aws-sigv4 are two logins; drop one";
                Err(RecordedError(text.to_owned()))
            }
            (Some(user), Some(scope), _) => Ok(Some(CurlLogin::AwsSigV4 { user, scope })),
            (None, Some(_), _) => Err(lacks("--aws-sigv4")),
            (Some(user), None, true) => Ok(Some(CurlLogin::Digest { user })),
            (None, None, true) => Err(lacks("--digest")),
            (Some(user), None, false) => {
                let value = format!("Basic {}", STANDARD.encode(user));
                self.headers.push(("Authorization".to_owned(), value));
                Ok(None)
            }
            (None, None, false) => Ok(None),
        }
    }

    /// The content type that curl would give, where the command does not.
    fn describe_body(&mut self) {
        let has = |draft: &CurlDraft, name: &str| {
            draft.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        let kind = match () {
            () if self.json => "application/json".to_owned(),
            () if self.data.is_some() => "application/x-www-form-urlencoded".to_owned(),
            () if !self.form.is_empty() => format!("multipart/form-data; boundary={BOUNDARY}"),
            () => return,
        };
        if !has(self, "content-type") {
            self.headers.push(("Content-Type".to_owned(), kind));
        }
        if self.json && !has(self, "accept") {
            self.headers.push(("Accept".to_owned(), "application/json".to_owned()));
        }
    }

    /// The body; of a form as RFC 7578 has it.
    fn body(&mut self) -> Option<Vec<u8>> {
        if self.form.is_empty() {
            return self.data.take();
        }
        let mut body = Vec::new();
        for part in &self.form {
            let mut head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"");
            head.push_str(&part.name.replace('"', "%22"));
            head.push('"');
            if let Some(file) = &part.file {
                head.push_str(&format!("; filename=\"{}\"", file.replace('"', "%22")));
            }
            if let Some(kind) = &part.kind {
                head.push_str(&format!("\r\nContent-Type: {kind}"));
            }
            body.extend(head.as_bytes());
            body.extend(b"\r\n\r\n");
            body.extend(&part.content);
            body.extend(b"\r\n");
        }
        body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
        Some(body)
    }
}

/// A URL as curl takes it: without a scheme it is http.
fn address(text: &str, query: Option<&[u8]>) -> Result<Url, RecordedError> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let wrong = |why: String| RecordedError(format!("{} is not a URL: {why}", quoted(text)));
    let mut url = Url::parse(&whole).map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("its scheme is {}, not http or https", url.scheme())));
    }
    if let Some(query) = query {
        let query = String::from_utf8_lossy(query);
        let joined = url.query().map_or_else(|| query.to_string(), |old| format!("{old}&{query}"));
        url.set_query(Some(&joined));
    }
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests;
