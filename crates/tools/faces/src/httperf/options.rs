//! httperf's command line: 0.9.0 as in Debian, and the additional options of 0.9.1.

use super::number::{decimal, unsigned};
use super::value::{self, Bad};
use crate::longopt::{self, Found, Long, Takes};

/// Printed parts of requests or replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) header: bool,
    pub(super) body: bool,
}

/// The law of the gaps between connections or sessions; times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Period {
    /// Consecutive: each connection or session starts after the end of the previous one.
    #[default]
    Sequential,
    /// `--rate` as a rate; the first line prints it with `%g`.
    Fixed {
        gap: f64,
        rate: f64,
    },
    Uniform {
        low: f64,
        high: f64,
    },
    Exponential {
        mean: f64,
    },
    /// Gaps in turn, each used for its own time (0.9.1).
    Varying(Vec<(f64, f64)>),
}

/// Generator, if not plain connections.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sessions {
    /// Sessions, calls of each, think time between bursts in seconds.
    Fixed { sessions: u64, calls: u64, think: f64 },
    /// Sessions of a log: their number, default think time, and the file that describes them.
    Logged { sessions: u64, think: f64, file: String },
    /// Sessions, page loads of each, think time after each page in seconds.
    Pages { sessions: u64, pages: u64, think: f64 },
}

/// `--wset`: number of files, and the share of calls that request a new file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WorkingSet {
    pub(super) files: u64,
    pub(super) miss_rate: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ssl {
    pub(super) on: bool,
    pub(super) ciphers: Option<String>,
    pub(super) no_reuse: bool,
    /// `auto`, `TLSv1.3`; as typed.
    pub(super) protocol: Option<String>,
    pub(super) server_name: Option<String>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
    pub(super) verify: bool,
    pub(super) ca_file: Option<String>,
    pub(super) ca_path: Option<String>,
}

/// Parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub(super) verbose: u32,
    pub(super) print_reply: Option<Print>,
    pub(super) print_request: Option<Print>,
    pub(super) periodic_stats: bool,
    pub(super) hog: bool,
    pub(super) close_with_reset: bool,
    /// Seconds; 0 for none.
    pub(super) think_timeout: f64,
    pub(super) timeout: f64,
    pub(super) runtime: f64,
    pub(super) client: (u64, u64),
    pub(super) server: String,
    pub(super) server_name: Option<String>,
    /// A file of hosts, which connections or sessions take in turn.
    pub(super) servers: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) uri: String,
    /// Status; 0 for none.
    pub(super) failure_status: u64,
    pub(super) http_version: (u64, u64),
    /// Maximum number of connections; 0 for the default.
    pub(super) max_connections: u64,
    pub(super) max_piped_calls: u64,
    pub(super) period: Period,
    pub(super) send_buffer: u64,
    pub(super) recv_buffer: u64,
    pub(super) retry_on_failure: bool,
    pub(super) session_cookies: bool,
    pub(super) ssl: Ssl,
    pub(super) add_header: Option<String>,
    pub(super) add_header_file: Option<String>,
    pub(super) method: Option<String>,
    pub(super) no_host_header: bool,
    pub(super) timer_cache: bool,
    pub(super) my_address: Option<String>,
    pub(super) conns: u64,
    pub(super) calls: u64,
    pub(super) burst: u64,
    /// True with `--strict`: sends the original's mistakes too.
    pub(super) strict: bool,
    /// A list of URIs, and whether it begins again at its end.
    pub(super) wlog: Option<(bool, String)>,
    pub(super) wset: Option<WorkingSet>,
    pub(super) sessions: Option<Sessions>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            verbose: 0,
            print_reply: None,
            print_request: None,
            periodic_stats: false,
            hog: false,
            close_with_reset: false,
            think_timeout: 0.0,
            timeout: 0.0,
            runtime: 0.0,
            client: (0, 1),
            server: "localhost".to_owned(),
            server_name: None,
            servers: None,
            port: None,
            uri: "/".to_owned(),
            failure_status: 0,
            http_version: (1, 1),
            max_connections: 0,
            max_piped_calls: 0,
            period: Period::Sequential,
            send_buffer: 4_096,
            recv_buffer: 16_384,
            retry_on_failure: false,
            session_cookies: false,
            ssl: Ssl::default(),
            add_header: None,
            add_header_file: None,
            method: None,
            no_host_header: false,
            timer_cache: false,
            my_address: None,
            conns: 1,
            calls: 1,
            burst: 1,
            strict: false,
            wlog: None,
            wset: None,
            sessions: None,
        }
    }
}

impl Options {
    /// Returns the number of connections or sessions to open.
    pub(super) fn count(&self) -> u64 {
        match &self.sessions {
            None => self.conns,
            Some(
                Sessions::Fixed { sessions, .. }
                | Sessions::Logged { sessions, .. }
                | Sessions::Pages { sessions, .. },
            ) => *sessions,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port.unwrap_or(if self.ssl.on { 443 } else { 80 })
    }
}

/// Result of parsing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    /// Run; earlier parts of the line may have printed to either stream already.
    Run(Box<Options>),
    /// Only text is printed: the command line requests it or is invalid.
    End { code: u8 },
}

/// Text for standard output and standard error, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionOutput {
    pub(super) out: String,
    pub(super) err: String,
}

const fn option(name: &'static str, takes: Takes) -> Long {
    Long { name, takes, short_forms: true }
}

/// Defines an option that 0.9.0 does not have; it cannot be abbreviated, so that it makes no other
/// option ambiguous.
const fn newer(name: &'static str, takes: Takes) -> Long {
    Long { name, takes, short_forms: false }
}

const LONG: &[Long] = &[
    option("add-header", Takes::Argument),
    option("burst-length", Takes::Argument),
    option("client", Takes::Argument),
    option("close-with-reset", Takes::Nothing),
    option("debug", Takes::Argument),
    option("failure-status", Takes::Argument),
    option("help", Takes::Nothing),
    option("hog", Takes::Nothing),
    option("http-version", Takes::Argument),
    option("max-connections", Takes::Argument),
    option("max-piped-calls", Takes::Argument),
    option("method", Takes::Argument),
    option("no-host-hdr", Takes::Nothing),
    option("num-calls", Takes::Argument),
    option("num-conns", Takes::Argument),
    option("period", Takes::Argument),
    option("port", Takes::Argument),
    option("print-reply", Takes::Perhaps),
    option("print-request", Takes::Perhaps),
    option("rate", Takes::Argument),
    option("recv-buffer", Takes::Argument),
    option("retry-on-failure", Takes::Nothing),
    option("send-buffer", Takes::Argument),
    option("server", Takes::Argument),
    option("server-name", Takes::Argument),
    option("session-cookies", Takes::Nothing),
    option("ssl", Takes::Nothing),
    option("ssl-ciphers", Takes::Argument),
    option("ssl-no-reuse", Takes::Nothing),
    option("think-timeout", Takes::Argument),
    option("timeout", Takes::Argument),
    option("uri", Takes::Argument),
    option("verbose", Takes::Nothing),
    option("version", Takes::Nothing),
    option("wlog", Takes::Argument),
    option("wsess", Takes::Argument),
    option("wsesslog", Takes::Argument),
    option("wsesspage", Takes::Argument),
    option("wset", Takes::Argument),
    newer("add-header-file", Takes::Argument),
    newer("myaddr", Takes::Argument),
    newer("periodic-stats", Takes::Nothing),
    newer("runtime", Takes::Argument),
    newer("servers", Takes::Argument),
    newer("ssl-ca-file", Takes::Argument),
    newer("ssl-ca-path", Takes::Argument),
    newer("ssl-certificate", Takes::Argument),
    newer("ssl-key", Takes::Argument),
    newer("ssl-protocol", Takes::Argument),
    newer("ssl-verify", Takes::Perhaps),
    newer("tls-server-name", Takes::Argument),
    newer("use-timer-cache", Takes::Nothing),
];

/// Reads a command line. `program`: the name that messages begin with.
pub(super) fn read(program: &str, args: &[String], option_output: &mut OptionOutput) -> Command {
    let mut options = Options::default();
    for found in longopt::read(args, "d:hnvV", LONG) {
        let done = match found {
            Err(why) => Err(why),
            Ok(Found::Operand(_)) => Ok(()),
            Ok(Found::Short('h', _) | Found::Long("help", _)) => {
                option_output.out += &usage(program);
                return Command::End { code: 0 };
            }
            Ok(Found::Short('d', _) | Found::Long("debug", _)) => {
                let what = "sorry, need to recompile with -DDEBUG on...";
                option_output.err += &format!("{program}: {what}\n");
                Ok(())
            }
            Ok(Found::Short('V', _) | Found::Long("version", _)) => {
                option_output.out += &format!("{program}: {VERSION}\n");
                Ok(())
            }
            Ok(Found::Short(letter, _)) => {
                options.verbose += u32::from(letter == 'v');
                options.periodic_stats |= letter == 'n';
                Ok(())
            }
            Ok(Found::Long(name, value)) => {
                set(&mut options, name, value.as_deref()).map_err(|Bad(why)| why)
            }
        };
        if let Err(why) = done {
            option_output.err += &format!("{program}: {why}\n");
            return Command::End { code: 1 };
        }
    }
    if options.session_cookies && options.sessions.is_none() {
        let what = "--session-cookie requires session-oriented workload (e.g., --wsess)";
        option_output.err += &format!("{program}: {what}\n");
        return Command::End { code: 255 };
    }
    Command::Run(Box::new(options))
}

/// Output of `--version` of the emulated original.
const VERSION: &str = "httperf-0.9.0 compiled without DEBUG without TIME_SYSCALLS.";

fn usage(program: &str) -> String {
    include_str!("usage.txt").replace("PROGRAM", program)
}

fn set(options: &mut Options, name: &str, value: Option<&str>) -> Result<(), Bad> {
    match value {
        None => {
            set_switch(options, name);
            Ok(())
        }
        Some(text) => match set_number(options, name, text) {
            Some(done) => done,
            None => set_text(options, name, text),
        },
    }
}

fn set_switch(options: &mut Options, name: &str) {
    let both = Some(Print { header: true, body: true });
    match name {
        "close-with-reset" => options.close_with_reset = true,
        "hog" => options.hog = true,
        "no-host-hdr" => options.no_host_header = true,
        "print-reply" => options.print_reply = both,
        "print-request" => options.print_request = both,
        "periodic-stats" => options.periodic_stats = true,
        "retry-on-failure" => options.retry_on_failure = true,
        "session-cookies" => options.session_cookies = true,
        "ssl" => options.ssl.on = true,
        "ssl-no-reuse" => options.ssl.no_reuse = true,
        "ssl-verify" => options.ssl.verify = true,
        "use-timer-cache" => options.timer_cache = true,
        "verbose" => options.verbose += 1,
        other => unreachable!("--{other} takes an argument"),
    }
}

/// Parses options with a single number; `None` for all others.
fn set_number(options: &mut Options, name: &str, text: &str) -> Option<Result<(), Bad>> {
    let (slot, what, least) = match name {
        "burst-length" => (&mut options.burst, "burst-length", 1),
        "failure-status" => (&mut options.failure_status, "failure status", 1),
        "max-connections" => (&mut options.max_connections, "max. # of connection", 0),
        "max-piped-calls" => (&mut options.max_piped_calls, "max. # of piped calls", 0),
        "num-calls" => (&mut options.calls, "number of calls", 1),
        "num-conns" => (&mut options.conns, "number of connections", 1),
        "recv-buffer" => (&mut options.recv_buffer, "receive buffer size", 0),
        "send-buffer" => (&mut options.send_buffer, "send buffer size", 0),
        "runtime" => return Some(set_span(&mut options.runtime, "runtime", text)),
        "timeout" => return Some(set_span(&mut options.timeout, "connect timeout", text)),
        "think-timeout" => {
            return Some(set_span(&mut options.think_timeout, "think timeout value", text));
        }
        _ => return None,
    };
    Some(match unsigned(text, false) {
        Some((number, "")) if (least..=u64::from(u32::MAX)).contains(&number) => {
            *slot = number;
            Ok(())
        }
        _ => Err(Bad(format!("illegal {what} {text}"))),
    })
}

fn set_span(slot: &mut f64, what: &str, text: &str) -> Result<(), Bad> {
    match decimal(text) {
        Some((seconds, "")) => {
            *slot = seconds;
            Ok(())
        }
        _ => Err(Bad(format!("illegal {what} {text}"))),
    }
}

fn set_text(options: &mut Options, name: &str, text: &str) -> Result<(), Bad> {
    let owned = || Some(text.to_owned());
    match name {
        "add-header" => options.add_header = owned(),
        "add-header-file" => options.add_header_file = owned(),
        "client" => options.client = value::client(text)?,
        "http-version" => options.http_version = value::version(text)?,
        "method" => options.method = owned(),
        "myaddr" => options.my_address = owned(),
        "period" => options.period = value::period(text)?,
        "port" => options.port = Some(value::port(text)?),
        "print-reply" => options.print_reply = Some(value::print(text)),
        "print-request" => options.print_request = Some(value::print(text)),
        "rate" => options.period = value::rate(text)?,
        "server" => options.server = text.to_owned(),
        "server-name" => options.server_name = owned(),
        "uri" => options.uri = text.to_owned(),
        "wlog" => options.wlog = Some(value::wlog(text)),
        "wsess" => options.sessions = Some(value::wsess(text)?),
        "wsesslog" => options.sessions = Some(value::wsesslog(text)?),
        "wset" => options.wset = Some(value::wset(text)?),
        "servers" => options.servers = owned(),
        "wsesspage" => options.sessions = Some(value::wsesspage(text)?),
        _ => set_tls(options, name, text)?,
    }
    Ok(())
}

fn set_tls(options: &mut Options, name: &str, text: &str) -> Result<(), Bad> {
    let ssl = &mut options.ssl;
    let owned = || Some(text.to_owned());
    match name {
        "ssl-ca-file" => ssl.ca_file = owned(),
        "ssl-ca-path" => ssl.ca_path = owned(),
        "ssl-certificate" => ssl.certificate = owned(),
        "ssl-ciphers" => ssl.ciphers = owned(),
        "ssl-key" => ssl.key = owned(),
        "ssl-protocol" => {
            value::protocol(text)?;
            (ssl.on, ssl.protocol) = (true, owned());
        }
        "ssl-verify" => ssl.verify = !text.eq_ignore_ascii_case("no"),
        "tls-server-name" => ssl.server_name = owned(),
        other => unreachable!("--{other} takes no argument"),
    }
    Ok(())
}
