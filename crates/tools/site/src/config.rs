//! All switches of the site, how they are typed, and which engine they choose.

use std::path::PathBuf;

use faulty::{Defect, Defects};
use units::{Nanos, Seed, parse_size};

use crate::faults::{self, Misbehaviour, Stall, TimeLaw, WrongLength};
use crate::route::SLEEP_MAX;
use crate::weakness::{self, Cold, Contention, Late, RateLimit, Weaknesses};
use crate::{AccessLog, Faults, Listen, SiteError};

/// Times of the tokens of a language model's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelPace {
    /// Time from the request to the first token.
    pub(crate) first: Nanos,
    /// Time between two tokens.
    pub(crate) every: Nanos,
}

/// Concurrency of `/sleep`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sleeping {
    /// One request after another, as a handler without concurrency.
    #[default]
    OneAtATime,
    Parallel,
}

/// PEM files for HTTP/3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http3 {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Http3 {
    /// Parses `CERT,KEY`, or one file with both.
    fn parse(text: &str) -> Result<Http3, String> {
        let (cert, key) = text.split_once(',').unwrap_or((text, text));
        if cert.is_empty() || key.is_empty() {
            return Err("write CERT.pem,KEY.pem, or one file that holds both".to_owned());
        }
        Ok(Http3 { cert: cert.into(), key: key.into() })
    }
}

/// Treatment of HTTP/3 requests in early data (0-RTT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyData {
    /// Requests are served; those with an unsafe method after the handshake completes (RFC 8470
    /// section 3).
    Accept,
    /// Tickets permit early data, but no session is remembered, as after a restart: the client must
    /// resend.
    Refuse,
    /// Requests are answered with 425 (RFC 8470 section 5.2).
    TooEarly,
}

impl EarlyData {
    fn parse(text: &str) -> Result<EarlyData, String> {
        match text {
            "accept" => Ok(EarlyData::Accept),
            "refuse" => Ok(EarlyData::Refuse),
            "too-early" => Ok(EarlyData::TooEarly),
            _ => Err("write accept, refuse or too-early".to_owned()),
        }
    }
}

/// Everything that can be chosen about a site.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: Listen,
    /// HTTP/3 is served too, over UDP at the port that TCP has.
    pub http3: Option<Http3>,
    /// Handling of early data; `None` if tickets do not permit it.
    pub early_data: Option<EarlyData>,
    /// Number of serving threads, 1..=64; more than one only without faults.
    pub threads: usize,
    /// CPUs of all threads; empty if the kernel chooses.
    pub cpus: Vec<u32>,
    pub log: Option<AccessLog>,
    /// Longest request body in bytes; beyond it the response is 413.
    pub body_max: u64,
    /// Maximum total size of held request bodies in bytes: those of unknown length and those over
    /// HTTP/3. Beyond it the response is 503.
    pub held_max: u64,
    /// Maximum length of a path with its query, in bytes; beyond it the response is 414. A head of
    /// more than 64 KiB is refused with 431 before its path is parsed. `None` means the limit of
    /// heads.
    pub uri_max: Option<u64>,
    /// Maximum number of open connections; `None` means the descriptor limit. Further ones wait in
    /// the kernel's queue.
    pub connections_max: Option<u64>,
    pub sleeping: Sleeping,
    /// Times of the tokens of the language model at `/v1/chat/completions` and `/v1/messages`.
    pub(crate) model: ModelPace,
    /// True if `--ttft` or `--tokens` was given, even with the default times.
    pub(crate) model_given: bool,
    /// A file set served in addition to the pages, computed from the seed; it is on no disk.
    pub files: Option<workload::fileset::Spec>,
    /// Program that makes pages by CGI, with a process for each page: called with `workload cgi`,
    /// the set and the seed. `None` if those pages are refused.
    pub cgi: Option<PathBuf>,
    /// Seed of all random values: files, delays, service times, shares, garbage.
    pub seed: Seed,
    /// True for the fastest server: a constant of 13 bytes after every empty line.
    pub null: bool,
    /// Maximum number of connections that wait to be accepted; the kernel uses the smaller of this
    /// and `somaxconn`.
    pub backlog: u32,
    /// Serve the firing range of `loadstone torture`, with these switches thrown.
    pub range: Option<Defects>,
    pub faults: Faults,
}

/// Option that [`Config::parse_option`] accepts.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    pub name: &'static str,
    /// Placeholder for the value in help; `None` for a switch, whose value is empty.
    pub value: Option<&'static str>,
    pub help: &'static str,
}

/// All options, in the order for help.
pub const OPTIONS: &[OptionInfo] = &[
    with("listen", "ADDR:PORT|unix:PATH", "Listen here; port 0 takes a free one [127.0.0.1:2020]"),
    with("http3", "CERT,KEY", "Serve HTTP/3 too, on the same UDP port, with these PEM files"),
    with(
        "early-data",
        "accept|refuse|too-early",
        "0-RTT over HTTP/3: serve it, forget all sessions, or answer 425 [none]",
    ),
    with("threads", "N", "Serving threads, 1-64; faults need one [1]"),
    with("cpus", "LIST", "Run only on these CPUs: 0,2-3"),
    with("log", "FILE", "Append a line per response to FILE (Common Log Format)"),
    with("body-max", "SIZE", "Longest request body; beyond it 413 [64M]"),
    with("uri-max", "SIZE", "Longest path with its query, 63K at most; beyond it 414"),
    with(
        "connections-max",
        "N",
        "Connections open at once; more wait unaccepted [descriptor limit]",
    ),
    flag("sleep-parallel", "/sleep serves all requests at once, not one after the other"),
    with(
        "tokens",
        "RATE",
        "Tokens of one response of /v1/chat/completions and /v1/messages [50/s]",
    ),
    with("ttft", "TIME", "Time to the first of these tokens [200ms]"),
    with("files", "SET", "Serve a file set too: surge-like, webstone-like; a wrong name lists all"),
    with("seed", "N", "Seed for everything random [1]"),
    with(
        "range",
        "SWITCH,…|none",
        "The firing range of torture with these defects; list names them",
    ),
    flag("null", "Null server: one constant response of 13 bytes, as fast as possible"),
    with("delay", "TIME", "Delay each response by TIME: 10ms, 5ms..20ms or exp:10ms"),
    with(
        "service",
        "TIME",
        "Work this long on each request, one at a time: exp:1ms is an M/M/1 queue",
    ),
    flag("one-at-a-time", "--delay and --drip occupy the server too: other requests wait"),
    with("stall", "LENGTH/PERIOD", "Freeze everything for LENGTH every PERIOD: 500ms/2s"),
    with("error-share", "SHARE", "Answer this share with 500: 1%"),
    with("reset-share", "SHARE", "Reset the connection instead of answering this share"),
    with(
        "connection-cap",
        "N",
        "Close connections beyond N open ones as soon as they are accepted",
    ),
    with("close-after", "N", "Close each connection after N responses"),
    with("drip", "RATE", "Send bodies slowly: 100B/s"),
    with("workers", "N", "Do the work of --service with N workers instead of one"),
    with("quantum", "TIME", "Send responses only at the ticks of a clock, TIME apart: 20ms"),
    flag("nagle", "Write head and body separately, with Nagle's algorithm on"),
    with(
        "rate-limit",
        "RATE[:BURST[:STATUS]]",
        "Answer 429 beyond this rate, or 503: 100/s:20:503",
    ),
    with("cold", "TIME:TIMES", "Be TIMES times slower for TIME after the first request: 4s:5"),
    with("leak", "TIME", "Each request takes this much longer than the one before: 10us"),
    with("bandwidth", "RATE", "All bodies together are sent at this rate: 1M/s"),
    with("contention", "A:B", "Concurrent calls slow each other down (Gunther's law): 0.05:0.002"),
    with("late", "SHARE:TIME", "Answer this share with 504 after TIME: 1%:2s"),
    with("other-delay", "TIME", "The --delay of every second connection, as behind a balancer"),
    with("accept-every", "TIME", "Accept at most one connection in this time"),
    with("backlog", "N", "Connections that wait to be accepted [16384]"),
    with("wrong-length", "short|long", "Declare 5 bytes fewer or more than are sent"),
    flag("garbage", "Answer with bytes that are not HTTP"),
    flag("never-answer", "Read requests and send nothing"),
    flag("close-early", "Close once the request is read"),
    flag("twice", "Send each response twice"),
    flag("truncate", "Close half-way through the body"),
    with("die-after", "N", "Close the listener and all connections after N requests"),
];

const fn with(name: &'static str, value: &'static str, help: &'static str) -> OptionInfo {
    OptionInfo { name, value: Some(value), help }
}

const fn flag(name: &'static str, help: &'static str) -> OptionInfo {
    OptionInfo { name, value: None, help }
}

/// Engine of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Proper,
    Exact,
    Null,
}

/// Default times of the tokens of a language model.
const TTFT: Nanos = Nanos::from_millis(200);
const TOKEN_EVERY: Nanos = Nanos::from_millis(20);
const TOKEN_RATE_MIN: f64 = 0.01;
const TOKEN_RATE_MAX: f64 = 100_000.0;

const THREADS_MAX: usize = 64;
const BACKLOG: u32 = 16_384;
const BODY_MAX: u64 = 64 << 20;
/// The longest request head in bytes.
pub(crate) const HEAD_MAX: usize = 64 << 10;
/// Maximum value of `--uri-max`, which still leaves room for the rest of a head with the shortest
/// URI that is too long.
const URI_MAX: u64 = 63 << 10;
const HELD_MAX: u64 = 256 << 20;

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: Listen::Tcp("127.0.0.1:2020".to_owned()),
            http3: None,
            early_data: None,
            threads: 1,
            cpus: Vec::new(),
            log: None,
            body_max: BODY_MAX,
            held_max: HELD_MAX,
            uri_max: None,
            connections_max: None,
            sleeping: Sleeping::OneAtATime,
            model: ModelPace { first: TTFT, every: TOKEN_EVERY },
            model_given: false,
            files: None,
            cgi: None,
            seed: Seed(1),
            null: false,
            backlog: BACKLOG,
            range: None,
            faults: Faults::default(),
        }
    }
}

impl Config {
    /// Returns a site on a free port of 127.0.0.1, for tests and demonstrations.
    pub fn on_free_port() -> Config {
        Config { listen: Listen::Tcp("127.0.0.1:0".to_owned()), ..Config::default() }
    }

    /// Sets one of [`OPTIONS`] from its text; a switch has the empty value.
    ///
    /// # Errors
    /// Fails for an unknown option, an invalid value, or a fault that contradicts another.
    /// [`crate::Site::start`] checks the rest.
    pub fn parse_option(&mut self, name: &str, value: &str) -> Result<(), SiteError> {
        let known = OPTIONS.iter().find(|option| option.name == name);
        let option = known.ok_or_else(|| SiteError::Unknown { option: name.to_owned() })?;
        let refuse = |why: String| SiteError::Value {
            option: name.to_owned(),
            value: value.to_owned(),
            why,
        };
        if option.value.is_none() && !value.is_empty() {
            return Err(refuse("it is a switch and takes no value".to_owned()));
        }
        match name {
            "listen" => self.listen = Listen::parse(value)?,
            "http3" => self.http3 = Some(Http3::parse(value).map_err(refuse)?),
            "early-data" => self.early_data = Some(EarlyData::parse(value).map_err(refuse)?),
            "log" if value.is_empty() => return Err(refuse("the path is missing".to_owned())),
            "log" => self.log = Some(AccessLog::to_file(&PathBuf::from(value))?),
            "threads" => self.threads = count(value).map_err(refuse)? as usize,
            "cpus" => self.cpus = cpu_list(value).map_err(refuse)?,
            "body-max" => {
                self.body_max = parse_size(value).map_err(|error| refuse(error.to_string()))?;
            }
            "uri-max" => {
                let size = parse_size(value).map_err(|error| refuse(error.to_string()))?;
                if size > URI_MAX {
                    return Err(refuse(
                        "the maximum is 63K: a head above 64K is answered with 431, not 414"
                            .to_owned(),
                    ));
                }
                self.uri_max = Some(size);
            }
            "connections-max" => self.connections_max = Some(count(value).map_err(refuse)?),
            "files" => {
                let spec = workload::fileset::Spec::parse(value);
                self.files = Some(spec.map_err(|error| refuse(error.to_string()))?);
            }
            "ttft" => {
                let time = units::parse_duration(value).ok().filter(|time| *time <= SLEEP_MAX);
                self.model_given = true;
                self.model.first = time.ok_or_else(|| refuse("write a time like 200ms".into()))?;
            }
            "tokens" => {
                let rate = units::parse_rate(value).ok().map(|rate| rate.0);
                let rate = rate.filter(|rate| (TOKEN_RATE_MIN..=TOKEN_RATE_MAX).contains(rate));
                let rate = rate.ok_or_else(|| {
                    refuse("write a rate from 0.01/s to 100000/s, as 50/s".into())
                })?;
                self.model_given = true;
                self.model.every = Nanos::from_secs_f64(1.0 / rate);
            }
            "sleep-parallel" => self.sleeping = Sleeping::Parallel,
            "seed" => {
                let seed = value.parse().map_err(|_| refuse("a seed is a whole number".to_owned()));
                self.seed = Seed(seed?);
            }
            "null" => self.null = true,
            "range" => self.range = Some(switches(value).map_err(refuse)?),
            "backlog" => {
                let most = count(value).ok().and_then(|count| u32::try_from(count).ok());
                let fits = most.filter(|count| *count <= BACKLOG);
                self.backlog =
                    fits.ok_or_else(|| refuse(format!("write a number, 1 to {BACKLOG}")))?;
            }
            _ => return self.faults.parse_option(name, value, refuse),
        }
        Ok(())
    }

    pub(crate) fn engine(&self) -> Engine {
        match (self.null, self.faults.any() || self.range.is_some()) {
            (true, _) => Engine::Null,
            (false, true) => Engine::Exact,
            (false, false) => Engine::Proper,
        }
    }

    /// Returns the number of connections that the kernel may queue.
    pub(crate) fn backlog(&self) -> u32 {
        let short = self.range.as_ref().is_some_and(|range| range.contains(&Defect::ShortBacklog));
        if short { faulty::BACKLOG as u32 } else { self.backlog }
    }

    /// Checks that need all options.
    pub(crate) fn check(&self) -> Result<(), SiteError> {
        let conflict = |why: &str| Err(SiteError::Conflict(why.to_owned()));
        if self.threads == 0 || self.threads > THREADS_MAX {
            return conflict("--threads must be 1–64");
        }
        if self.connections_max == Some(0) {
            return conflict("--connections-max must be above 0: no client could connect");
        }
        if self.null && self.faults.any() {
            return conflict("--null answers as fast as it can: leave out the faults, or --null");
        }
        if self.range.is_some() && (self.null || self.faults.any() || self.log.is_some()) {
            return conflict("--range has its own defects: leave out the faults, --null and --log");
        }
        if self.range.is_some() && matches!(self.listen, Listen::Unix(_)) {
            return conflict("--range listens on TCP: give --listen ADDR:PORT");
        }
        if self.null && self.log.is_some() {
            return conflict("--null keeps no log: leave out --log, or --null");
        }
        if self.engine() != Engine::Proper && self.sleeping == Sleeping::Parallel {
            return conflict(
                "--sleep-parallel is for /sleep without faults: omit --null, --range and faults",
            );
        }
        if self.engine() != Engine::Proper && self.uri_max.is_some() {
            return conflict(
                "--uri-max is for the pages without faults: omit --null, --range and faults",
            );
        }
        if self.engine() != Engine::Proper && self.model_given {
            return conflict(
                "--tokens and --ttft are for the pages without faults: omit --null, --range and \
                 faults",
            );
        }
        if self.engine() != Engine::Proper && self.files.is_some() {
            return conflict(
                "--files is for the pages without faults: omit --null, --range and faults",
            );
        }
        if self.http3.is_some() && self.engine() != Engine::Proper && self.range.is_none() {
            return conflict(
                "--http3 is for the pages and --range: leave out --null and the faults",
            );
        }
        if self.early_data.is_some() && self.http3.is_none() {
            return conflict("--early-data needs HTTP/3 here: add --http3 CERT,KEY");
        }
        if self.early_data == Some(EarlyData::TooEarly) && self.range.is_some() {
            return conflict(
                "--range does not answer 425: leave out --early-data too-early, or --range",
            );
        }
        if self.http3.is_some() && matches!(self.listen, Listen::Unix(_)) {
            return conflict("--http3 is over UDP: give --listen ADDR:PORT");
        }
        if self.engine() == Engine::Exact && self.threads > 1 {
            return conflict("faults are kept exact by one thread: leave out --threads");
        }
        match self.faults.conflict() {
            Some(why) => conflict(why),
            None => Ok(()),
        }
    }
}

impl Faults {
    fn parse_option(
        &mut self,
        name: &str,
        value: &str,
        refuse: impl Fn(String) -> SiteError,
    ) -> Result<(), SiteError> {
        let misbehaviour = match name {
            "delay" => {
                self.delay = Some(TimeLaw::parse(value).map_err(refuse)?);
                return Ok(());
            }
            "service" => {
                self.service = Some(TimeLaw::parse(value).map_err(refuse)?);
                return Ok(());
            }
            "wrong-length" => Misbehaviour::WrongLength(match value {
                "short" => WrongLength::Short,
                "long" => WrongLength::Long,
                _ => return Err(refuse("write short or long".to_owned())),
            }),
            "garbage" => Misbehaviour::Garbage,
            "never-answer" => Misbehaviour::NeverAnswer,
            "close-early" => Misbehaviour::CloseEarly,
            "twice" => Misbehaviour::Twice,
            "truncate" => Misbehaviour::Truncate,
            _ => return self.parse_quantity(name, value).map_err(refuse),
        };
        match self.misbehaviour {
            Some(other) if other != misbehaviour => Err(SiteError::Conflict(format!(
                "--{name} excludes {other:?}: only one fault per response; start a \
                 second site for the other"
            ))),
            _ => {
                self.misbehaviour = Some(misbehaviour);
                Ok(())
            }
        }
    }

    fn parse_quantity(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "one-at-a-time" => self.one_at_a_time = true,
            "stall" => self.stall = Some(Stall::parse(value)?),
            "error-share" => self.error_share = faults::parse_share(value)?,
            "reset-share" => self.reset_share = faults::parse_share(value)?,
            "connection-cap" => self.connection_cap = Some(count(value)?),
            "close-after" => self.close_after = Some(count(value)?),
            "drip" => self.drip = Some(faults::parse_drip(value)?),
            "die-after" => self.die_after = Some(count(value)?),
            _ => self.weak.parse_option(name, value)?,
        }
        Ok(())
    }
}

impl Weaknesses {
    fn parse_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "workers" => self.workers = Some(within(value, WORKERS_MAX)?),
            "quantum" => self.quantum = Some(weakness::time(value)?),
            "nagle" => self.nagle = true,
            "rate-limit" => self.rate_limit = Some(RateLimit::parse(value)?),
            "cold" => self.cold = Some(Cold::parse(value)?),
            "leak" => self.leak = Some(weakness::time(value)?),
            "bandwidth" => self.bandwidth = Some(faults::parse_drip(value)?),
            "contention" => self.contention = Some(Contention::parse(value)?),
            "late" => self.late = Some(Late::parse(value)?),
            "other-delay" => self.other_delay = Some(TimeLaw::parse(value)?),
            "accept-every" => self.accept_every = Some(weakness::time(value)?),
            _ => unreachable!("every name of OPTIONS is matched, which a test walks through"),
        }
        Ok(())
    }
}

/// Switches of the range by their names.
fn switches(text: &str) -> Result<Defects, String> {
    if text == "none" {
        return Ok(Defects::new());
    }
    let one = |name: &str| Defect::by_id(name.trim()).ok_or_else(|| name.trim().to_owned());
    text.split(',').map(one).collect::<Result<Defects, String>>().map_err(|name| {
        format!(
            "{} is not a switch; `loadstone site --range list` prints them all",
            units::quoted(&name)
        )
    })
}

/// Maximum value of `--workers`.
const WORKERS_MAX: u64 = 10_000;

fn within(text: &str, most: u64) -> Result<u64, String> {
    let fits = count(text)?;
    if fits <= most { Ok(fits) } else { Err(format!("the maximum is {most}")) }
}

fn count(text: &str) -> Result<u64, String> {
    match text.trim().parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("it must be a whole number above 0".to_owned()),
    }
}

/// Parses `0,2-3`.
fn cpu_list(text: &str) -> Result<Vec<u32>, String> {
    const CPU_MAX: u32 = 1_023;
    let bad = || format!("write numbers of CPUs 0–{CPU_MAX} like 0,2-3");
    let number = |text: &str| match text.trim().parse::<u32>() {
        Ok(cpu) if cpu <= CPU_MAX => Ok(cpu),
        _ => Err(bad()),
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(bad());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests;
