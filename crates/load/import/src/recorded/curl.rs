//! curl's command lines.

mod form;
mod glob;

use crate::recorded::commands::{self, ShellWord};
use crate::recorded::words;
use crate::recorded::{NOT_UNRESERVED, Recorded, RecordedError, is_connection_header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use form::{BOUNDARY, FormPart};
use percent_encoding::percent_encode;
use units::{Nanos, quoted};
use url::Url;

/// Command: its requests, and options for sending them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curl {
    /// One request for each URL.
    pub requests: Vec<Recorded>,
    pub version: Option<CurlVersion>,
    /// True with `-k`.
    pub insecure: bool,
    /// True with `--compressed`.
    pub compressed: bool,
    /// `-L`: maximum number of followed redirects.
    pub follow: Option<u16>,
    /// A login that needs a proof in each request.
    pub login: Option<CurlLogin>,
}

/// Encodings that curl 7.88 requests with `--compressed`.
const CODINGS: &str = "deflate, gzip, br, zstd";

impl Curl {
    /// Adds the field for `--compressed` to each request that does not set it, for a plan whose
    /// other requests do not use it.
    pub fn ask_for_compression(&mut self) {
        for request in &mut self.requests {
            let asks = |(name, _): &(String, String)| name.eq_ignore_ascii_case("accept-encoding");
            if !request.headers.iter().any(asks) {
                request.headers.push(("Accept-Encoding".to_owned(), CODINGS.to_owned()));
            }
        }
    }
}

/// `--digest` or `--aws-sigv4`, with the name and password of `-u`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurlLogin {
    Digest {
        user: String,
    },
    /// `scope`: provider, region and service, in curl's format.
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

/// Reads a file that a command names (`-d @FILE`); the error states why it cannot.
type FileReader<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, String>;

/// Number of redirects that curl follows if `--max-redirs` does not state it.
const FOLLOW: u16 = 50;
/// Combined result of the options.
#[derive(Default)]
struct CurlDraft {
    urls: Vec<String>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    /// Default fields of curl that the command removes (`-H 'Name:'`).
    removed: Vec<String>,
    /// Fields of options: the last option with a name counts, and `-H` replaces it.
    own: Vec<(&'static str, String)>,
    cookies: Vec<String>,
    data: Option<Vec<u8>>,
    form: Vec<FormPart>,
    json: bool,
    globoff: bool,
    path_as_is: bool,
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

/// Returns whether a text has a line that begins with curl, perhaps after a prompt, `time` or `sudo`.
pub fn has_command(text: &str) -> bool {
    text.lines().any(commands::begins_command)
}

/// Parses the commands of a text. Text before the first line that begins with curl is skipped: a
/// comment, or `#!/bin/sh`.
///
/// # Errors
/// Fails for text that only a shell can interpret, a line that is not part of a command, and the
/// first command that [`parse_curl`] refuses, with its number.
pub fn read_commands(text: &str, files: FileReader<'_>) -> Result<Vec<Curl>, RecordedError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        if commands::begins_command(line) {
            break;
        }
        from += line.len();
    }
    let numbered =
        |row: usize, error: RecordedError| RecordedError(format!("command {}: {error}", row + 1));
    let commands = words::split(&text[from..]).map_err(|it| numbered(it.row, it.error))?;
    let mut read = Vec::new();
    for (row, words) in commands.into_iter().enumerate() {
        let first = words.iter().find(|word| !commands::is_prefix(word));
        if let Some(other) = first.filter(|word| !commands::is_curl(word)) {
            let other = quoted(&String::from_utf8_lossy(other));
            let why = format!("it is {other}, and only curl is supported; delete it");
            return Err(numbered(row, RecordedError(why)));
        }
        let command = command(commands::arguments(words), files);
        read.push(command.map_err(|error| numbered(row, error))?);
    }
    Ok(read)
}

/// Parses one command, with or without the leading word `curl`.
///
/// # Errors
/// Fails for text that only a shell can interpret, an option that is unknown or has no equivalent
/// in a load, an invalid URL, header or file, a missing URL, or a second command.
pub fn parse_curl(text: &str, files: FileReader<'_>) -> Result<Curl, RecordedError> {
    let commands = words::split(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut commands = commands.map_err(|it| it.error)?.into_iter();
    let first = commands.next().unwrap_or_default();
    if commands.next().is_some() {
        let why =
            "it has more than one command; put them into a file for `loadstone workload import`";
        return Err(RecordedError(why.to_owned()));
    }
    command(commands::arguments(first), files)
}

fn command(words: Vec<ShellWord>, files: FileReader<'_>) -> Result<Curl, RecordedError> {
    let mut words = words.into_iter();
    let mut draft = CurlDraft::default();
    let mut only_urls = false;
    while let Some(word) = words.next() {
        match word.as_slice() {
            _ if only_urls => draft.urls.push(text_of(word)?),
            b"--" => only_urls = true,
            [b'-', b'-', long @ ..] => {
                // curl expects a space before a value, but accepts a sign too
                let mut parts = long.splitn(2, |byte| *byte == b'=');
                let name = String::from_utf8_lossy(parts.next().unwrap_or_default());
                let joined = parts.next().map(<[u8]>::to_vec);
                let option = option(&name).ok_or_else(|| unknown(&word))?;
                draft.apply_option(option, joined, &mut words, &word, files)?;
            }
            [b'-', cluster @ ..] if !cluster.is_empty() => {
                draft.cluster(cluster, &mut words, &word, files)?;
            }
            _ => draft.urls.push(text_of(word)?),
        }
    }
    draft.finish()
}

/// Returns a word as text.
fn text_of(word: ShellWord) -> Result<String, RecordedError> {
    String::from_utf8(word).map_err(|error| {
        let word = String::from_utf8_lossy(error.as_bytes());
        RecordedError(format!("{} has bytes that are not UTF-8; only a body may", quoted(&word)))
    })
}

fn unknown(word: &[u8]) -> RecordedError {
    let word = quoted(&String::from_utf8_lossy(word));
    RecordedError(format!("curl's option {word} is not known here; leave it out"))
}

/// Effect of an option.
#[derive(Clone, Copy)]
enum Does {
    Flag(fn(&mut CurlDraft)),
    /// Applies a value of the command line.
    Takes(fn(&mut CurlDraft, ShellWord, FileReader<'_>) -> Result<(), RecordedError>),
    /// Affects only curl's output or its time limits, not the request.
    Nothing,
    /// The same, with a value that is skipped.
    NothingTaken,
    /// The equivalent option of this program.
    Instead(&'static str),
}

/// Long name, short name or a space, effect.
type OptionRow = (&'static str, char, Does);

const OPTIONS: &[OptionRow] = &[
    (
        "url",
        ' ',
        Does::Takes(|draft, url, _| {
            draft.urls.push(text_of(url)?);
            Ok(())
        }),
    ),
    (
        "request",
        'X',
        Does::Takes(|draft, method, _| {
            draft.method = Some(text_of(method)?);
            Ok(())
        }),
    ),
    ("header", 'H', Does::Takes(header)),
    ("user-agent", 'A', Does::Takes(|draft, agent, _| draft.own("User-Agent", &text_of(agent)?))),
    ("referer", 'e', Does::Takes(|draft, from, _| draft.own("Referer", &text_of(from)?))),
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
    (
        "form",
        'F',
        Does::Takes(|draft, text, files| {
            draft.form.push(form::part(&text, Some(files))?);
            Ok(())
        }),
    ),
    (
        "form-string",
        ' ',
        Does::Takes(|draft, text, _| {
            draft.form.push(form::part(&text, None)?);
            Ok(())
        }),
    ),
    ("get", 'G', Does::Flag(|draft| draft.get = true)),
    ("head", 'I', Does::Flag(|draft| draft.head = true)),
    (
        "user",
        'u',
        Does::Takes(|draft, user, _| {
            draft.user = Some(text_of(user)?);
            Ok(())
        }),
    ),
    ("basic", ' ', Does::Flag(|draft| draft.digest = false)),
    ("digest", ' ', Does::Flag(|draft| draft.digest = true)),
    (
        "aws-sigv4",
        ' ',
        Does::Takes(|draft, scope, _| {
            draft.aws_sigv4 = Some(text_of(scope)?);
            Ok(())
        }),
    ),
    (
        "oauth2-bearer",
        ' ',
        Does::Takes(|draft, token, _| {
            draft.own("Authorization", &format!("Bearer {}", text_of(token)?))
        }),
    ),
    ("insecure", 'k', Does::Flag(|draft| draft.insecure = true)),
    ("compressed", ' ', Does::Flag(|draft| draft.compressed = true)),
    ("location", 'L', Does::Flag(|draft| draft.follow = true)),
    (
        "max-redirs",
        ' ',
        Does::Takes(|draft, count, _| {
            let count = text_of(count)?;
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
    ("globoff", 'g', Does::Flag(|draft| draft.globoff = true)),
    ("path-as-is", ' ', Does::Flag(|draft| draft.path_as_is = true)),
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

/// Interpretation of a value in `@FILE` form.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    /// The whole file.
    Whole,
    /// Without line ends; see [`stripped`].
    Stripped,
    /// Not a file: the `@` is text.
    Nothing,
}

fn read(text: &[u8], files: FileReader<'_>, reads: Reads) -> Result<Vec<u8>, RecordedError> {
    let Some(path) = text.strip_prefix(b"@").filter(|_| reads != Reads::Nothing) else {
        return Ok(text.to_vec());
    };
    let path = String::from_utf8_lossy(path);
    let content = files(&path)
        .map_err(|why| RecordedError(format!("cannot read {}: {why}", quoted(&path))))?;
    Ok(if reads == Reads::Stripped { stripped(&content) } else { content })
}

/// Reads the lines of such a file: curl 7.88 reads lines of at most 255 bytes, each up to a CR, an
/// LF or a NUL.
fn stripped(content: &[u8]) -> Vec<u8> {
    const LINE_MAX: usize = 255;
    let (mut kept, mut rest) = (Vec::with_capacity(content.len()), content);
    while !rest.is_empty() {
        let end = rest.iter().take(LINE_MAX).position(|byte| *byte == b'\n').map(|at| at + 1);
        let (line, after) = rest.split_at(end.unwrap_or(LINE_MAX.min(rest.len())));
        kept.extend(line.iter().take_while(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
        rest = after;
    }
    kept
}

/// Parses `Name: value`; `Name;` has no value, and `Name:` removes a default field of curl.
fn header(draft: &mut CurlDraft, line: ShellWord, _: FileReader<'_>) -> Result<(), RecordedError> {
    let line = text_of(line)?;
    let (name, value) = match (line.split_once(':'), line.strip_suffix(';')) {
        (Some((name, value)), _) => (name.trim().to_owned(), value.trim().to_owned()),
        (None, Some(name)) => return draft.field(name, String::new()),
        (None, None) => {
            let line = quoted(&line);
            return Err(RecordedError(format!("-H {line} is not a header: write Name: value")));
        }
    };
    if value.is_empty() {
        draft.removed.push(name);
        return Ok(());
    }
    draft.field(&name, value)
}

fn cookie(draft: &mut CurlDraft, text: ShellWord, _: FileReader<'_>) -> Result<(), RecordedError> {
    let text = text_of(text)?;
    if !text.contains('=') {
        let why = "names a file of cookies, which is not read here; give NAME=VALUE, or --cookies";
        return Err(RecordedError(format!("-b {} {why}", quoted(&text))));
    }
    draft.cookies.push(text);
    Ok(())
}

/// Parses a value of `--data-urlencode`: `content`, `=content`, `name=content`, `@file`,
/// `name@file`.
fn urlencode(
    draft: &mut CurlDraft,
    text: ShellWord,
    files: FileReader<'_>,
) -> Result<(), RecordedError> {
    let (name, content) = match text.iter().position(|byte| matches!(byte, b'=' | b'@')) {
        None => (&[][..], text.clone()),
        Some(at) if text[at] == b'=' => (&text[..at], text[at + 1..].to_vec()),
        Some(at) => (&text[..at], read(&text[at..], files, Reads::Whole)?),
    };
    let mut written = name.to_vec();
    if !name.is_empty() {
        written.push(b'=');
    }
    written.extend(encoded(&content).into_bytes());
    draft.append(&written, "&");
    Ok(())
}

/// Encodes like curl 7.88, with `+` for a space.
fn encoded(content: &[u8]) -> String {
    percent_encode(content, NOT_UNRESERVED).to_string().replace("%20", "+")
}

impl CurlDraft {
    fn field(&mut self, name: &str, value: String) -> Result<(), RecordedError> {
        if !is_connection_header(name) {
            self.headers.push((name.to_owned(), value));
        } else if name.eq_ignore_ascii_case("host") {
            let way = "the name of the server is the URL's; give --resolve for its address";
            return Err(RecordedError(format!("-H 'Host: {value}': {way}")));
        }
        Ok(())
    }

    /// Sets a field by an option; curl does not send it if its value is empty.
    fn own(&mut self, name: &'static str, value: &str) -> Result<(), RecordedError> {
        self.own.retain(|(known, _)| *known != name);
        self.own.push((name, value.to_owned()));
        Ok(())
    }

    fn add_own(&mut self) {
        for (name, value) in std::mem::take(&mut self.own) {
            if !value.is_empty() && !self.has(name) {
                self.headers.push((name.to_owned(), value));
            }
        }
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
        text: &[u8],
        files: FileReader<'_>,
        reads: Reads,
    ) -> Result<(), RecordedError> {
        self.append(&read(text, files, reads)?, "&");
        Ok(())
    }

    fn apply_option(
        &mut self,
        does: Does,
        joined: Option<ShellWord>,
        words: &mut dyn Iterator<Item = ShellWord>,
        word: &[u8],
        files: FileReader<'_>,
    ) -> Result<(), RecordedError> {
        let shown = String::from_utf8_lossy(word);
        let value = |words: &mut dyn Iterator<Item = ShellWord>| {
            let lacks = || RecordedError(format!("curl's option {shown} lacks its value"));
            joined.clone().or_else(|| words.next()).ok_or_else(lacks)
        };
        match does {
            Does::Flag(set) => set(self),
            Does::Takes(take) => take(self, value(words)?, files)?,
            Does::Nothing => {}
            Does::NothingTaken => drop(value(words)?),
            Does::Instead(ours) => {
                let text = format!("give {ours} in place of curl's option {shown}");
                return Err(RecordedError(text));
            }
        }
        Ok(())
    }

    /// Parses short options: `-sSL`, `-XPOST`, `-d x`.
    fn cluster(
        &mut self,
        cluster: &[u8],
        words: &mut dyn Iterator<Item = ShellWord>,
        word: &[u8],
        files: FileReader<'_>,
    ) -> Result<(), RecordedError> {
        for (at, letter) in cluster.iter().enumerate() {
            let letter = char::from(*letter);
            let row = OPTIONS.iter().find(|(_, short, _)| *short == letter && letter != ' ');
            let (.., does) = row.ok_or_else(|| unknown(word))?;
            let rest = &cluster[at + 1..];
            let takes = matches!(does, Does::Takes(_) | Does::NothingTaken | Does::Instead(_));
            if takes {
                let joined = (!rest.is_empty()).then(|| rest.to_vec());
                return self.apply_option(*does, joined, words, word, files);
            }
            self.apply_option(*does, None, words, word, files)?;
        }
        Ok(())
    }

    /// Returns the URLs of the command.
    fn addresses(&self, query: Option<&[u8]>) -> Result<Vec<Url>, RecordedError> {
        let mut urls = Vec::new();
        for text in &self.urls {
            let each = if self.globoff { vec![text.clone()] } else { glob::expand(text)? };
            for text in each {
                check_path(&text, self.path_as_is)?;
                urls.push(address(&text, query)?);
            }
        }
        Ok(urls)
    }

    fn finish(mut self) -> Result<Curl, RecordedError> {
        if self.urls.is_empty() {
            return Err(RecordedError("it names no URL".to_owned()));
        }
        if self.data.is_some() && !self.form.is_empty() {
            return Err(RecordedError("it has both -d and -F; drop one".to_owned()));
        }
        let query = if self.get { self.data.take() } else { None };
        let urls = self.addresses(query.as_deref())?;
        self.add_own();
        self.join_cookies();
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
        let request = |url: Url| Recorded {
            at: Nanos::ZERO,
            method: method.clone(),
            url,
            headers: self.headers.clone(),
            body: body.clone(),
        };
        Ok(Curl {
            requests: urls.into_iter().map(request).collect(),
            version: self.version,
            insecure: self.insecure,
            compressed: self.compressed,
            follow: self.follow.then(|| self.follow_max.unwrap_or(FOLLOW)),
            login,
        })
    }

    /// Returns a login that needs a proof in each request; any other login becomes a field.
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
            // a bearer token, or a field of -H
            (Some(_), None, false) if self.has("authorization") => Ok(None),
            (Some(user), None, false) => {
                let value = format!("Basic {}", STANDARD.encode(user));
                self.headers.push(("Authorization".to_owned(), value));
                Ok(None)
            }
            (None, None, false) => Ok(None),
        }
    }

    fn has(&self, name: &str) -> bool {
        let is = |known: &String| known.eq_ignore_ascii_case(name);
        self.headers.iter().any(|(known, _)| is(known)) || self.removed.iter().any(is)
    }

    /// Joins all `-b` into one field, as curl does; `-H Cookie` replaces it.
    fn join_cookies(&mut self) {
        if !self.cookies.is_empty() && !self.has("cookie") {
            self.headers.push(("Cookie".to_owned(), self.cookies.join(";")));
        }
    }

    /// Sets the content type that curl would send, unless the command does.
    fn describe_body(&mut self) {
        let kind = match () {
            () if self.json => "application/json".to_owned(),
            () if self.data.is_some() => "application/x-www-form-urlencoded".to_owned(),
            () if !self.form.is_empty() => return self.describe_form(),
            () => return,
        };
        if !self.has("content-type") {
            self.headers.push(("Content-Type".to_owned(), kind));
        }
        if self.json && !self.has("accept") {
            self.headers.push(("Accept".to_owned(), "application/json".to_owned()));
        }
    }

    /// Sets the content type of a form; one from the command gets the boundary too.
    fn describe_form(&mut self) {
        let is_kind = |(name, _): &&mut (String, String)| name.eq_ignore_ascii_case("content-type");
        let removed = self.removed.iter().any(|name| name.eq_ignore_ascii_case("content-type"));
        match self.headers.iter_mut().find(is_kind) {
            Some((_, value)) => value.push_str(&format!("; boundary={BOUNDARY}")),
            None => {
                let kind = if removed { "" } else { "multipart/form-data" };
                let value = format!("{kind}; boundary={BOUNDARY}");
                self.headers.push(("Content-Type".to_owned(), value));
            }
        }
    }

    /// Builds the body, also of a form.
    fn body(&mut self) -> Option<Vec<u8>> {
        if self.form.is_empty() {
            return self.data.take();
        }
        let kind = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = kind.map_or("", |(_, value)| value.as_str()).to_ascii_lowercase();
        // for any other content type, curl sends the parts as attachments
        let of_form = kind.starts_with("multipart/form-data");
        Some(form::body(&self.form, if of_form { "form-data" } else { "attachment" }))
    }
}

/// Refuses a path that parsing a URL would change.
fn check_path(text: &str, as_is: bool) -> Result<(), RecordedError> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let dots = |segment: &&str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        // curl removes `.` and `..`, but not those written with %2e
        matches!(plain.as_str(), "." | "..") && (as_is || plain.len() < segment.len())
    };
    let Some(segment) = path.split('/').find(dots) else { return Ok(()) };
    let option = if as_is { "--path-as-is: " } else { "" };
    Err(RecordedError(format!(
        "{option}the path of {} has the segment {}, which cannot be kept as it is; write the path without it",
        quoted(text),
        quoted(segment)
    )))
}

/// Parses a URL like curl: without a scheme it is http.
fn address(text: &str, query: Option<&[u8]>) -> Result<Url, RecordedError> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let wrong = |why: String| RecordedError(format!("{} is not a URL: {why}", quoted(text)));
    let control = |byte: &u8| byte.is_ascii_control();
    // URL parsing would remove them, and curl refuses them
    if text.as_bytes().iter().any(control) {
        return Err(wrong("it has control characters".to_owned()));
    }
    if query.is_some_and(|query| query.iter().any(control) || std::str::from_utf8(query).is_err()) {
        let why = "-G puts bytes into the URL that a URL cannot have; give --data-urlencode";
        return Err(RecordedError(why.to_owned()));
    }
    let mut url = Url::parse(&whole).map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(format!("its scheme is {}, not http or https", url.scheme())));
    }
    if let Some(query) = query {
        let query = String::from_utf8_lossy(query);
        let old = url.query().filter(|old| !old.is_empty());
        let joined = old.map_or_else(|| query.to_string(), |old| format!("{old}&{query}"));
        url.set_query(Some(&joined));
    }
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests;
