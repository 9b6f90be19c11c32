//! h2load's options, parsed in order: the first invalid one ends the program.

use super::candidates::proposal;
use super::values;
use crate::Ending;
use crate::longopt::{self, Found, Long, Takes};
use units::Nanos;

/// Protocol without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cleartext {
    Http2,
    Http1,
}

/// Values as typed, before they are checked against each other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub(super) requests: Option<u64>,
    pub(super) clients: u64,
    pub(super) threads: u64,
    /// Requests outstanding in a client.
    pub(super) streams: u64,
    pub(super) input: Option<String>,
    /// True if the file of `-i` has instants before its URIs.
    pub(super) timing: bool,
    pub(super) frame_max: u32,
    pub(super) window_bits: u32,
    pub(super) connection_window_bits: u32,
    /// Header lines, with names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) ciphers: Option<String>,
    pub(super) newest_ciphers: Option<String>,
    pub(super) groups: Option<String>,
    pub(super) cleartext: Cleartext,
    pub(super) data: Option<String>,
    /// Number of clients that start in each period; `None` for all at once.
    pub(super) rate: Option<u64>,
    pub(super) period: Nanos,
    /// Zero: as long as the requests take.
    pub(super) duration: Nanos,
    pub(super) warm_up: Nanos,
    pub(super) active_timeout: Nanos,
    pub(super) inactivity_timeout: Nanos,
    pub(super) base: Option<String>,
    pub(super) unix: Option<String>,
    /// Protocols offered by ALPN, in order of preference; empty for the default.
    pub(super) alpn: Vec<String>,
    pub(super) header_table: u32,
    pub(super) encoder_table: u32,
    pub(super) log: Option<String>,
    pub(super) connect_to: Option<(String, u16)>,
    /// Requests a second of each client; zero: as fast as responses arrive.
    pub(super) rps: f64,
    pub(super) verbose: bool,
    pub(super) uris: Vec<String>,
    /// Warnings on standard error.
    pub(super) complaints: String,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            requests: None,
            clients: 1,
            threads: 1,
            streams: 1,
            input: None,
            timing: false,
            frame_max: FRAME_MIN,
            window_bits: BITS_MAX,
            connection_window_bits: BITS_MAX,
            headers: Vec::new(),
            ciphers: None,
            newest_ciphers: None,
            groups: None,
            cleartext: Cleartext::Http2,
            data: None,
            rate: None,
            period: Nanos::SECOND,
            duration: Nanos::ZERO,
            warm_up: Nanos::ZERO,
            active_timeout: Nanos::ZERO,
            inactivity_timeout: Nanos::ZERO,
            base: None,
            unix: None,
            alpn: Vec::new(),
            header_table: TABLE,
            encoder_table: TABLE,
            log: None,
            connect_to: None,
            rps: 0.0,
            verbose: false,
            uris: Vec::new(),
            complaints: String::new(),
        }
    }
}

const BITS_MAX: u32 = 30;
const TABLE: u32 = 4 << 10;
const FRAME_MIN: u32 = 16 << 10;
const FRAME_MAX: u32 = (16 << 20) - 1;
/// A Unix socket's path, without the zero at its end.
const UNIX_PATH_MAX: usize = 107;
/// Maximum requested payload of a datagram.
const DATAGRAM_MAX: u64 = 64 << 10;

const SHORT: &str = "hvW:c:d:m:n:p:t:w:f:H:i:r:T:N:D:B:";

const fn long(name: &'static str, takes: Takes) -> Long {
    Long { name, takes, short_forms: true }
}

const LONG: [Long; 38] = [
    long("requests", Takes::Argument),
    long("clients", Takes::Argument),
    long("data", Takes::Argument),
    long("threads", Takes::Argument),
    long("max-concurrent-streams", Takes::Argument),
    long("window-bits", Takes::Argument),
    long("max-frame-size", Takes::Argument),
    long("connection-window-bits", Takes::Argument),
    long("input-file", Takes::Argument),
    long("header", Takes::Argument),
    long("no-tls-proto", Takes::Argument),
    long("verbose", Takes::Nothing),
    long("help", Takes::Nothing),
    long("version", Takes::Nothing),
    long("ciphers", Takes::Argument),
    long("rate", Takes::Argument),
    long("connection-active-timeout", Takes::Argument),
    long("connection-inactivity-timeout", Takes::Argument),
    long("duration", Takes::Argument),
    long("timing-script-file", Takes::Argument),
    long("base-uri", Takes::Argument),
    long("npn-list", Takes::Argument),
    long("rate-period", Takes::Argument),
    long("h1", Takes::Nothing),
    long("header-table-size", Takes::Argument),
    long("encoder-header-table-size", Takes::Argument),
    long("warm-up-time", Takes::Argument),
    long("log-file", Takes::Argument),
    long("connect-to", Takes::Argument),
    long("rps", Takes::Argument),
    long("groups", Takes::Argument),
    long("tls13-ciphers", Takes::Argument),
    long("no-udp-gso", Takes::Nothing),
    long("qlog-file-base", Takes::Argument),
    long("max-udp-payload-size", Takes::Argument),
    long("ktls", Takes::Nothing),
    // names of later versions
    Long { name: "alpn-list", takes: Takes::Argument, short_forms: false },
    Long { name: "h3", takes: Takes::Nothing, short_forms: false },
];

/// The fix for HTTP/3 options.
pub(super) const NO_HTTP3: &str =
    "HTTP/3 is not part of this face; use `loadstone run --http 3`, or --npn-list=h2 or --h1";

/// # Errors
/// Fails with how the program ends: help, a version, or the first error.
pub(super) fn parse(program: &str, args: &[String]) -> Result<Options, Ending> {
    let mut options = Options::default();
    for found in longopt::read(args, SHORT, &LONG) {
        match found {
            Ok(Found::Operand(uri)) => options.uris.push(uri),
            Ok(Found::Short(letter, value)) => options.take(letter, value.unwrap_or_default())?,
            Ok(Found::Long(name, value)) => options.take_long(name, value.unwrap_or_default())?,
            Err(text) => return Err(refusal(program, args, &text)),
        }
    }
    Ok(options)
}

fn wrong(text: impl std::fmt::Display) -> Ending {
    Ending::error(format!("{text}\n"), 1)
}

/// Returns the C library's message about a word, and the possible meanings.
fn refusal(program: &str, args: &[String], text: &str) -> Ending {
    let quoted = text.split('\'').nth(1).unwrap_or_default();
    let dashed = if quoted.starts_with("--") { quoted.to_owned() } else { format!("-{quoted}") };
    let typed = |arg: &&String| {
        **arg == dashed || arg.strip_prefix(&dashed).is_some_and(|rest| rest.starts_with('='))
    };
    let word = args.iter().find(typed).cloned().unwrap_or_else(|| dashed.clone());
    // an unknown option is quoted with its value
    let text = match text.starts_with("unrecognized") {
        true => text.replace(&dashed, &word),
        false => text.to_owned(),
    };
    Ending::error(format!("{program}: {text}\n{}", proposal(&word, &LONG)), 1)
}

impl Options {
    fn take(&mut self, letter: char, value: String) -> Result<(), Ending> {
        let count = || {
            let bad = || wrong(format!("-{letter}: bad option value: {value}"));
            values::whole(&value).ok_or_else(bad)
        };
        match letter {
            'n' => self.requests = Some(count()?),
            'c' => self.clients = count()?,
            't' => self.threads = count()?,
            'm' => self.streams = count()?,
            'd' => self.data = Some(value),
            'i' => self.input = Some(value),
            'w' | 'W' => self.take_bits(letter, &value)?,
            'f' => self.frame_max = frame(&value)?,
            'H' => self.headers.push(header(&value)?),
            'p' => self.cleartext = cleartext(&value)?,
            'r' => {
                let rate = count()?;
                let none = "-r: the rate at which connections are made must be positive.";
                self.rate = Some(rate).filter(|rate| *rate > 0);
                self.rate.ok_or_else(|| wrong(none))?;
            }
            'T' => self.active_timeout = span(&value, |value| timeout('T', "active", value))?,
            'N' => {
                self.inactivity_timeout = span(&value, |value| timeout('N', "inactivity", value))?;
            }
            'D' => self.duration = span(&value, |value| format!("-D: value error {value}"))?,
            'B' => self.take_base(value)?,
            'v' => self.verbose = true,
            _ => return Err(Ending::text(include_str!("usage.txt"))),
        }
        Ok(())
    }

    fn take_bits(&mut self, letter: char, value: &str) -> Result<(), Ending> {
        let bits = values::whole(value).and_then(|bits| u32::try_from(bits).ok());
        let bits = bits.filter(|bits| *bits <= BITS_MAX).ok_or_else(|| {
            wrong(format!("-{letter}: specify the integer in the range [0, 30], inclusive"))
        })?;
        match letter {
            'w' => self.window_bits = bits,
            _ => self.connection_window_bits = bits,
        }
        Ok(())
    }

    fn take_base(&mut self, value: String) -> Result<(), Ending> {
        (self.base, self.unix) = (None, None);
        let prefix = value.get(..5).filter(|prefix| prefix.eq_ignore_ascii_case("unix:"));
        let Some(prefix) = prefix else {
            if super::uris::base(&value).is_none() {
                return Err(wrong(format!("--base-uri: invalid base URI: {value}")));
            }
            self.base = Some(value);
            return Ok(());
        };
        let path = &value[prefix.len()..];
        if path.is_empty() || path.len() > UNIX_PATH_MAX {
            return Err(wrong(format!("--base-uri: invalid UNIX domain socket path: {value}")));
        }
        self.unix = Some(path.to_owned());
        Ok(())
    }

    fn take_long(&mut self, name: &'static str, value: String) -> Result<(), Ending> {
        let letter = match name {
            "requests" => 'n',
            "clients" => 'c',
            "data" => 'd',
            "threads" => 't',
            "max-concurrent-streams" => 'm',
            "window-bits" => 'w',
            "connection-window-bits" => 'W',
            "max-frame-size" => 'f',
            "input-file" => 'i',
            "header" => 'H',
            "no-tls-proto" => 'p',
            "verbose" => 'v',
            "help" => 'h',
            "rate" => 'r',
            "connection-active-timeout" => 'T',
            "connection-inactivity-timeout" => 'N',
            "duration" => 'D',
            "base-uri" => 'B',
            _ => return self.take_rest(name, value),
        };
        self.take(letter, value)
    }

    /// Parses options without a letter.
    fn take_rest(&mut self, name: &'static str, value: String) -> Result<(), Ending> {
        match name {
            "version" => return Err(Ending::text("h2load nghttp2/1.52.0\n")),
            "ciphers" => self.ciphers = Some(value),
            "tls13-ciphers" => self.newest_ciphers = Some(value),
            "groups" => self.groups = Some(value),
            "timing-script-file" => {
                self.input = Some(value);
                self.timing = true;
            }
            "npn-list" | "alpn-list" => self.alpn = value.split(',').map(str::to_owned).collect(),
            "h1" => {
                self.alpn = vec!["http/1.1".to_owned()];
                self.cleartext = Cleartext::Http1;
            }
            "rate-period" => {
                self.period = span(&value, |value| format!("--rate-period: value error {value}"))?;
            }
            "warm-up-time" => {
                self.warm_up =
                    span(&value, |value| format!("--warm-up-time: value error {value}"))?;
            }
            "header-table-size" => self.header_table = table(name, &value)?,
            "encoder-header-table-size" => self.encoder_table = table(name, &value)?,
            "log-file" => self.log = Some(value),
            "connect-to" => self.connect_to = Some(host_port(&value)?),
            "rps" => {
                let bad = || wrong(format!("--rps: Invalid value {value}"));
                self.rps = values::rate(&value).ok_or_else(bad)?;
            }
            _ => return self.take_datagrams(name, &value),
        }
        Ok(())
    }

    /// Parses options of QUIC, and of the kernel's TLS.
    fn take_datagrams(&mut self, name: &'static str, value: &str) -> Result<(), Ending> {
        match name {
            "qlog-file-base" => self
                .complaints
                .push_str("Warning: --qlog-file-base: only effective in quic, ignoring.\n"),
            "max-udp-payload-size" => {
                let bad = || wrong(format!("--max-udp-payload-size: bad option value: {value}"));
                if values::size(value).ok_or_else(bad)? > DATAGRAM_MAX {
                    return Err(wrong("--max-udp-payload-size: must not exceed 65536"));
                }
            }
            // datagrams are not sent: without HTTP/3 they mean nothing there either
            "no-udp-gso" => {}
            "ktls" => {
                return Err(wrong(
                    "--ktls: records are sealed in this program, never by the kernel; leave --ktls \
                     out",
                ));
            }
            _ => return Err(wrong(format!("--{name}: {NO_HTTP3}"))),
        }
        Ok(())
    }
}

fn span(value: &str, bad: impl FnOnce(&str) -> String) -> Result<Nanos, Ending> {
    values::duration(value).ok_or_else(|| wrong(bad(value)))
}

fn timeout(letter: char, kind: &str, value: &str) -> String {
    format!("-{letter}: bad value for the conn_{kind}_timeout wait time: {value}")
}

fn frame(value: &str) -> Result<u32, Ending> {
    let bad = || wrong(format!("--max-frame-size: bad option value: {value}"));
    match values::size(value).ok_or_else(bad)? {
        size if size < u64::from(FRAME_MIN) => Err(wrong("--max-frame-size: minimum 16384")),
        size if size > u64::from(FRAME_MAX) => Err(wrong("--max-frame-size: maximum 16777215")),
        size => Ok(size as u32),
    }
}

fn table(name: &str, value: &str) -> Result<u32, Ending> {
    let size =
        values::size(value).ok_or_else(|| wrong(format!("--{name}: Bad option value: {value}")))?;
    u32::try_from(size).map_err(|_| {
        wrong(format!(
            "--{name}: Value too large.  It should be less than or equal to {}",
            u32::MAX
        ))
    })
}

/// Parses a header line, whose name may begin with a colon.
fn header(text: &str) -> Result<(String, String), Ending> {
    let colon = text.char_indices().skip(1).find(|(_, c)| *c == ':').map(|(at, _)| at);
    let colon = colon.filter(|at| !(text.starts_with(':') && *at == 1));
    let colon = colon.ok_or_else(|| wrong(format!("-H: invalid header: {text}")))?;
    let (name, value) = (&text[..colon], &text[colon + 1..]);
    let value = value.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    if value.is_empty() {
        return Err(wrong(format!("-H: invalid header - value missing: {name}")));
    }
    Ok((name.to_ascii_lowercase(), value.to_owned()))
}

fn cleartext(name: &str) -> Result<Cleartext, Ending> {
    if name.eq_ignore_ascii_case("h2c") {
        Ok(Cleartext::Http2)
    } else if name.eq_ignore_ascii_case("http/1.1") {
        Ok(Cleartext::Http1)
    } else {
        Err(wrong(format!("-p: unsupported protocol {name}")))
    }
}

/// Parses `host`, `host:port`, `[address]:port`; without a port 0.
fn host_port(text: &str) -> Result<(String, u16), Ending> {
    let bad = || wrong(format!("--connect-to: Invalid value {text}"));
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']').ok_or_else(bad)?;
            (address, rest.strip_prefix(':').unwrap_or_default())
        }
        None => text.rsplit_once(':').unwrap_or((text, "")),
    };
    if host.is_empty() {
        return Err(bad());
    }
    let port = match port {
        "" => 0,
        port => values::whole(port).and_then(|port| u16::try_from(port).ok()).ok_or_else(bad)?,
    };
    Ok((host.to_owned(), port))
}
