//! The command line: letters, defaults, and ab's error messages.

use super::address::{Address, parse_url};
use crate::getopt::{Getopt, OptionStep};
use crate::words::atoi;
use crate::{Ending, Files};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const LETTERS: &str = "n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:";
/// `-t` implies this maximum number of requests, unless `-n` follows it.
const REQUESTS_OF_T: i32 = 50_000;
const CONCURRENCY_MAX: i32 = 200_000;
/// EISDIR: a folder can be opened, but not read.
const IS_A_FOLDER: i32 = 21;
/// EINVAL, which the usage text ends with.
const USAGE_CODE: u8 = 22;

/// Parsed options, by ab's own names.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Message for an unknown letter, which ends only the parsing of options.
    pub(super) complaint: String,
    pub(super) address: Address,
    pub(super) requests: i32,
    pub(super) concurrency: i32,
    /// Time limit in seconds; 0 for no limit.
    pub(super) time_limit: i32,
    /// Seconds without any progress.
    pub(super) timeout: i32,
    pub(super) window: i32,
    pub(super) bind: Option<String>,
    pub(super) method: Method,
    pub(super) body: Option<Vec<u8>>,
    pub(super) body_file: Option<String>,
    pub(super) content_type: String,
    pub(super) verbosity: i32,
    pub(super) keep_alive: bool,
    pub(super) html: bool,
    pub(super) table: String,
    pub(super) row: String,
    pub(super) cell: String,
    pub(super) cookie: Option<String>,
    /// Header lines as given; `Authorization` and similar ones are kept separately, because ab
    /// writes them first.
    pub(super) headers: Vec<String>,
    pub(super) logins: Vec<String>,
    pub(super) proxy: Option<(String, u16)>,
    pub(super) percentiles: bool,
    pub(super) confidence: bool,
    pub(super) progress: bool,
    pub(super) any_length: bool,
    pub(super) gnuplot: Option<String>,
    pub(super) csv: Option<String>,
    pub(super) receive_errors_ok: bool,
    pub(super) sni: bool,
    pub(super) ciphers: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) identity: Option<(String, Vec<u8>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Put,
    Post,
    Custom(String),
}

impl Method {
    pub(super) fn name(&self) -> &str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Put => "PUT",
            Method::Post => "POST",
            Method::Custom(name) => name,
        }
    }
}

/// Options parsed so far.
struct Draft<'a> {
    files: &'a dyn Files,
    method: Option<Method>,
    options: Options,
}

pub(super) fn parse(program: &str, args: &[String], files: &dyn Files) -> Result<Options, Ending> {
    let short = program.rsplit('/').next().unwrap_or(program);
    let mut draft = Draft { files, method: None, options: Options::default() };
    let mut letters = Getopt::new(args, LETTERS);
    let complaint = loop {
        match letters.step() {
            OptionStep::Option('h', _) => return Err(usage(program, String::new())),
            OptionStep::Option(letter, value) => draft.take(letter, value)?,
            OptionStep::Unknown(letter) => break format!("{short}: illegal option -- {letter}\n"),
            OptionStep::NoValue(letter) => {
                break format!("{short}: option requires an argument -- {letter}\n");
            }
            OptionStep::End => break String::new(),
        }
    };
    let wrong = |what: &str| usage(program, format!("{complaint}{program}: {what}\n"));
    if letters.at() + 1 != args.len() {
        return Err(wrong("wrong number of arguments"));
    }
    let Draft { method, mut options, .. } = draft;
    options.method = method.unwrap_or(Method::Get);
    options.address = parse_url(&args[letters.at()]).ok_or_else(|| wrong("invalid URL"))?;
    if !(0..=CONCURRENCY_MAX).contains(&options.concurrency) {
        return Err(wrong(&format!("Invalid Concurrency [Range 0..{CONCURRENCY_MAX}]")));
    }
    if options.concurrency > options.requests {
        return Err(wrong("Cannot use concurrency level greater than total number of requests"));
    }
    options.complaint = complaint;
    Ok(options)
}

impl Draft<'_> {
    fn take(&mut self, letter: char, value: &str) -> Result<(), Ending> {
        let options = &mut self.options;
        let text = || value.to_owned();
        match letter {
            'n' => {
                options.requests = atoi(value);
                if options.requests <= 0 {
                    return Err(fatal("Invalid number of requests\n"));
                }
            }
            'c' => options.concurrency = atoi(value),
            't' => (options.time_limit, options.requests) = (atoi(value), REQUESTS_OF_T),
            's' => options.timeout = atoi(value),
            'b' => options.window = atoi(value),
            'v' => options.verbosity = atoi(value),
            'k' => options.keep_alive = true,
            'q' => options.progress = false,
            'd' => options.percentiles = false,
            'S' => options.confidence = false,
            'l' => options.any_length = true,
            'r' => options.receive_errors_ok = true,
            'w' => options.html = true,
            'I' => options.sni = false,
            'g' => options.gnuplot = Some(text()),
            'e' => options.csv = Some(text()),
            'B' => options.bind = Some(text()),
            'T' => options.content_type = text(),
            'C' => options.cookie = Some(text()),
            'H' => options.headers.push(text()),
            'x' => (options.html, options.table) = (true, text()),
            'y' => (options.html, options.row) = (true, text()),
            'z' => (options.html, options.cell) = (true, text()),
            'X' => options.proxy = Some(proxy(value)),
            'A' => self.login("Authorization", "Authentication", value)?,
            'P' => self.login("Proxy-Authorization", "Proxy", value)?,
            'm' => self.method = Some(Method::Custom(text())),
            'Z' => options.ciphers = Some(text()),
            'f' => options.protocol = Some(text()),
            'V' => return Err(Ending::text(super::banner::text())),
            _ => return self.take_file(letter, value),
        }
        Ok(())
    }

    /// Parses options that name a method or a file.
    fn take_file(&mut self, letter: char, value: &str) -> Result<(), Ending> {
        if letter == 'E' {
            let lacks = |what| Ending::error(format!("unable to get {what} from '{value}'\n"), 1);
            let pem = self.files.read(value).map_err(|_| lacks("certificate"))?;
            let text = String::from_utf8_lossy(&pem);
            for (part, what) in [("CERTIFICATE-----", "certificate"), ("KEY-----", "private key")] {
                if !text.contains(part) {
                    return Err(lacks(what));
                }
            }
            self.options.identity = Some((value.to_owned(), pem));
            return Ok(());
        }
        let (method, name) = match letter {
            'i' => (Method::Head, "HEAD"),
            'p' => (Method::Post, "POST"),
            _ => (Method::Put, "PUT"),
        };
        if self.method.is_some() {
            return Err(fatal(&format!("Cannot mix {name} with other methods\n")));
        }
        if method != Method::Head {
            let body = self.files.read(value).map_err(|error| {
                let what = match error.number {
                    IS_A_FOLDER => "Could not read POST data file".to_owned(),
                    _ => format!("Could not open POST data file ({value})"),
                };
                Ending::error(format!("ab: {what}: {}\n", error.text), 1)
            })?;
            self.options.body = Some(body);
            self.options.body_file = Some(value.to_owned());
        }
        self.method = Some(method);
        Ok(())
    }

    fn login(&mut self, field: &str, what: &str, value: &str) -> Result<(), Ending> {
        /// Bytes of ab's buffer for the encoded login.
        const LOGIN_MAX: usize = 1024;
        let code = STANDARD.encode(value.trim_start());
        if code.len() >= LOGIN_MAX {
            return Err(fatal(&format!("{what} credentials too long\n")));
        }
        self.options.logins.push(format!("{field}: Basic {code}"));
        Ok(())
    }
}

/// Parses `host[:port]`; without a port ab uses port 0.
fn proxy(value: &str) -> (String, u16) {
    let (host, port) = value.split_once(':').unwrap_or((value, "0"));
    (host.to_owned(), atoi(port) as u16)
}

/// Ends the run like ab's `err`.
fn fatal(text: &str) -> Ending {
    Ending::error(format!("{text}\n"), 1)
}

fn usage(program: &str, complaint: String) -> Ending {
    let text = include_str!("usage.txt");
    let first = format!("Usage: {program} [options] [http[s]://]hostname[:port]/path\n");
    Ending::error(complaint + &first + text, USAGE_CODE)
}

impl Default for Options {
    fn default() -> Options {
        Options {
            complaint: String::new(),
            address: Address::default(),
            requests: 1,
            concurrency: 1,
            time_limit: 0,
            timeout: 30,
            window: 0,
            bind: None,
            method: Method::Get,
            body: None,
            body_file: None,
            content_type: "text/plain".to_owned(),
            verbosity: 0,
            keep_alive: false,
            html: false,
            table: String::new(),
            row: String::new(),
            cell: "bgcolor=white".to_owned(),
            cookie: None,
            headers: Vec::new(),
            logins: Vec::new(),
            proxy: None,
            percentiles: true,
            confidence: true,
            progress: true,
            any_length: false,
            gnuplot: None,
            csv: None,
            receive_errors_ok: false,
            sni: true,
            ciphers: None,
            protocol: None,
            identity: None,
        }
    }
}
