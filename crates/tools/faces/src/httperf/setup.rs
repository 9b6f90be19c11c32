//! Converts options to a plan that sends the same bytes as httperf.

use super::arrivals;
use super::options::{Options, Period, Sessions, WorkingSet};
use super::page::{self, Look};
use super::request::{Extra, render, unescape};
use super::servers::{self, Host};
use super::sesslog::{self, Burst, SessionBursts, SessionRequest};
use crate::ab::ciphers;
use crate::{Ending, Files};
use plan::{
    AddressOrder, Arrivals, Expect, Load, Order, Plan, SessionPlan, TargetPlan, Think, Timeouts,
    TlsPlan, TlsVersions, Visit, VisitGroup,
};
use units::{Nanos, Rate};

/// Maximum number of connections per session, and of calls waiting on a connection, in the
/// original.
const CONNECTIONS_MAX: u64 = 4;
const PIPED_MAX: u64 = 32;
/// Maximum number of instants drawn for a random period.
const DRAWN_MAX: u64 = 10_000_000;
/// Maximum number of calls for which the order of a working set, or of servers, is precomputed; the
/// order repeats after them.
pub(super) const ORDER_MAX: u64 = 1_000_000;
/// No limit of the original's is a day here.
const DAY: Nanos = Nanos::from_secs(86_400);

/// Plan, and the output on standard error before anything is sent.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) plan: Plan,
    pub(super) complaints: String,
}

/// # Errors
/// Fails with how the original ends if it discovers an error after announcing its run.
pub(super) fn plan(
    program: &str,
    options: &Options,
    strict: bool,
    files: &dyn Files,
) -> Result<Ready, Ending> {
    let fail = |text: String| {
        let end = if text == page::NOT_ABSOLUTE { "" } else { "\n" };
        Ending::error(format!("{program}{text}{end}"), 1)
    };
    check(options).map_err(&fail)?;
    let extra = extra(options, files).map_err(&fail)?;
    let hosts = servers::hosts(options, files).map_err(&fail)?;
    let tls = tls(options, files).map_err(&fail)?;
    let work = match &options.sessions {
        Some(Sessions::Pages { .. }) => {
            let look = Look { url: &hosts[0].url, host: &hosts[0].name, extra: &extra, tls: &tls };
            page::work(options, &look, files)
        }
        _ => work(options, strict, files),
    };
    let work = work.and_then(|work| servers::spread(options, work, hosts.len()));
    let work = work.map_err(&fail)?;
    let described = matches!(options.sessions, Some(Sessions::Logged { .. }));
    let method = options.method.as_deref().filter(|name| !described && !name.is_empty());
    let target = |host: &Host, request: &SessionRequest| {
        let name = method.unwrap_or(request.method);
        let raw = render(options, &host.name, name, request, &extra.bytes);
        TargetPlan {
            method: (name == "HEAD").then(|| "HEAD".to_owned()),
            raw: Some(raw),
            ..TargetPlan::new(host.url.clone())
        }
    };
    let targets = hosts.iter().flat_map(|host| work.requests.iter().map(|ask| target(host, ask)));
    let mut plan = Plan::for_targets(targets.collect());
    plan.order = if work.once { Order::Once } else { Order::InOrder };
    plan.sequence.clone_from(&work.sequence);
    plan.stop.requests = Some(work.count);
    plan.stop.duration = (options.runtime > 0.0).then(|| seconds(options.runtime));
    plan.stop.at_once = options.runtime > 0.0;
    plan.load = load(options, &work).map_err(&fail)?;
    plan.timeouts = timeouts(options);
    plan.expect = expect(options);
    connection(&mut plan, options).map_err(&fail)?;
    plan.tls = tls;
    plan.measure.tcp_info_share = 0.0;
    plan.driver.threads = Some(1);
    let complaint = |text: &String| format!("{program}: {text}\n");
    Ok(Ready { plan, complaints: extra.complaints.iter().map(complaint).collect() })
}

/// Reports the errors that the original finds while preparing its parts, in its order.
fn check(options: &Options) -> Result<(), String> {
    if options.sessions.is_some() {
        if options.max_connections > CONNECTIONS_MAX {
            return Err(format!(".session_init: --max-conns must be <= {CONNECTIONS_MAX}"));
        }
        if options.max_piped_calls > PIPED_MAX {
            return Err(format!(".session_init: --max-piped-calls must be <= {PIPED_MAX}"));
        }
    }
    match options.http_version {
        (1, 0 | 1) => Ok(()),
        (major, minor) => Err(format!(": unexpected version code {:x}", major << 16 | minor)),
    }
}

fn extra(options: &Options, files: &dyn Files) -> Result<Extra, String> {
    let mut extra = options.add_header.as_deref().map_or_else(Extra::default, unescape);
    if let Some(file) = &options.add_header_file {
        let more = files.read(file).map_err(|_| format!(": can't open {file}"))?;
        extra.bytes.extend_from_slice(&more);
    }
    Ok(extra)
}

/// A request before it is rendered.
pub(super) struct Work {
    pub(super) requests: Vec<SessionRequest>,
    /// Rows by call index; empty for sequential order.
    pub(super) sequence: Vec<u32>,
    pub(super) once: bool,
    pub(super) visits: Vec<Visit>,
    /// Number of connections or sessions.
    pub(super) count: u64,
}

pub(super) const NO_SESSION: &str =
    ": no session to be run: give their number in the first parameter";

fn work(options: &Options, strict: bool, files: &dyn Files) -> Result<Work, String> {
    let count = options.count();
    if count == 0 {
        return Err(NO_SESSION.to_owned());
    }
    let plain =
        |requests| Work { requests, sequence: Vec::new(), once: false, visits: Vec::new(), count };
    let get = |uri: Vec<u8>| SessionRequest { method: "GET", uri, contents: Vec::new() };
    if let Some(Sessions::Logged { think, file, .. }) = &options.sessions {
        return logged(*think, file, files, plain(Vec::new()));
    }
    if let Some((again, file)) = &options.wlog {
        let list = files.read(file).map_err(|_| format!(": can't open {file}"))?;
        let uris = list.split(|byte| *byte == 0).filter(|uri| !uri.is_empty());
        let requests: Vec<SessionRequest> = uris.map(|uri| get(uri.to_vec())).collect();
        if requests.is_empty() {
            return Err(format!(": no URI in {file}"));
        }
        // no connections are made after the end of the list
        let calls = options.calls.max(1);
        let enough = (requests.len() as u64).div_ceil(calls);
        let count = if *again || options.sessions.is_some() { count } else { count.min(enough) };
        return Ok(Work { once: !again, count, ..plain(requests) });
    }
    if let Some(set) = options.wset.filter(|set| set.files > 0) {
        return working_set(options, set, strict, plain(Vec::new()));
    }
    Ok(plain(vec![get(options.uri.clone().into_bytes())]))
}

fn logged(think: f64, file: &str, files: &dyn Files, work: Work) -> Result<Work, String> {
    let bytes = files.read(file).map_err(|_| format!(": can't open {file}"))?;
    let sessions: Vec<SessionBursts> = sesslog::read(&bytes, think).map_err(|why| match &*why {
        "premature EOF seen" => format!(": {why} in '{file}'"),
        _ => format!(": {why} in {file}"),
    })?;
    if sessions.is_empty() {
        return Err(format!(": no session in {file}"));
    }
    let mut requests: Vec<SessionRequest> = Vec::new();
    let mut row = |request: &SessionRequest| {
        let known = requests.iter().position(|known| known == request);
        known.unwrap_or_else(|| {
            requests.push(request.clone());
            requests.len() - 1
        }) as u32
    };
    let mut group = |burst: &Burst| VisitGroup {
        targets: burst.requests.iter().map(&mut row).collect(),
        think: seconds(burst.think),
    };
    let visits = sessions
        .iter()
        .map(|session| Visit { groups: session.iter().map(&mut group).collect() })
        .collect();
    Ok(Work { requests, visits, ..work })
}

/// Returns the files of a tree with ten branches at each node: the index in decimal, one directory
/// per digit.
fn working_set(
    options: &Options,
    set: WorkingSet,
    strict: bool,
    work: Work,
) -> Result<Work, String> {
    let files = u32::try_from(set.files).ok().filter(|files| u64::from(*files) <= ORDER_MAX);
    let files = files.ok_or_else(|| format!(": a working set has at most {ORDER_MAX} files"))?;
    let uri = &options.uri;
    // with a slash at its end, the original drops the slash at its start
    let prefix = match uri.strip_suffix('/') {
        Some(_) if strict => &uri[1..],
        Some(bare) => bare,
        None => uri,
    };
    let digits = if files > 1 { (files - 1).ilog10() as usize + 1 } else { 0 };
    let name = |file: u32| {
        let number = format!("{file:0digits$}");
        let path = number.chars().take(digits).flat_map(|digit| ['/', digit]);
        let uri = format!("{prefix}{}.html", path.collect::<String>());
        SessionRequest { method: "GET", uri: uri.into_bytes(), contents: Vec::new() }
    };
    let per = match &options.sessions {
        Some(Sessions::Fixed { calls, .. }) => *calls,
        _ => options.calls,
    };
    let calls = work.count.saturating_mul(per.max(1)).min(ORDER_MAX);
    let (client, clients) = options.client;
    // the first value of an unseeded drand48: it compensates for sums such as ten times 0.1
    let (mut miss, mut file) = (3.907_985_046_680_551e-14, client);
    let sequence = (0..calls).map(|_| {
        miss += set.miss_rate;
        if miss >= 1.0 {
            miss -= 1.0;
            file = (file + clients) % u64::from(files);
        }
        (file % u64::from(files)) as u32
    });
    Ok(Work { sequence: sequence.collect(), requests: (0..files).map(name).collect(), ..work })
}

fn load(options: &Options, work: &Work) -> Result<Load, String> {
    let session = Some(session(options, work));
    let arrivals = match &options.period {
        Period::Sequential => return Ok(Load::Closed { users: 1, think: Think::None, session }),
        Period::Fixed { rate, .. } => Arrivals::constant(Rate(*rate)),
        _ if work.count > DRAWN_MAX => {
            return Err(format!(": a drawn or varying period lasts for {DRAWN_MAX} arrivals"));
        }
        drawn => {
            let instants = arrivals::instants(drawn, options.client.0, work.count);
            let instants = instants.expect("only a sequential period has no instants");
            let last = instants.last().map_or(0.0, |last| last.as_secs_f64());
            let rate = Rate((instants.len() as f64 / last.max(1e-3)).clamp(1e-3, 1e6));
            Arrivals { at: Some(instants.into()), ..Arrivals::constant(rate) }
        }
    };
    // a connection without a free descriptor fails at once
    Ok(Load::Open { arrivals, session, connections_max: None, queue_max: Some(0) })
}

fn session(options: &Options, work: &Work) -> SessionPlan {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    match &options.sessions {
        None => SessionPlan {
            one_connection: true,
            visits: work.visits.clone(),
            ..SessionPlan::new(small(options.calls.max(1)), Think::None)
        },
        Some(Sessions::Fixed { calls, think, .. }) => {
            let think = if *think > 0.0 { Think::Fixed(seconds(*think)) } else { Think::None };
            SessionPlan {
                lead: true,
                retry: options.retry_on_failure,
                visits: work.visits.clone(),
                ..SessionPlan::new(small((*calls).max(1)), think)
            }
        }
        Some(Sessions::Logged { .. } | Sessions::Pages { .. }) => SessionPlan {
            lead: true,
            retry: options.retry_on_failure,
            visits: work.visits.clone(),
            ..SessionPlan::new(1, Think::None)
        },
    }
}

/// Returns the timeouts. Without `--timeout` the original waits forever; `--think-timeout` is added
/// only to that timeout.
fn timeouts(options: &Options) -> Timeouts {
    let limited = options.timeout > 0.0;
    let limit = if limited { seconds(options.timeout).min(DAY) } else { DAY };
    let answer = seconds(options.timeout + options.think_timeout.max(0.0)).min(DAY);
    Timeouts {
        connect: limit,
        first_byte: None,
        progress: limited.then_some(limit),
        answer: limited.then_some(answer),
        call: DAY,
    }
}

/// Returns the expectation: every response is a reply, except one status, which fails its session.
fn expect(options: &Options) -> Expect {
    let bad = options.failure_status;
    let status = match u16::try_from(bad).ok().filter(|bad| (100..=599).contains(bad)) {
        Some(bad) if options.sessions.is_some() => {
            let ranges = [(100, bad - 1), (bad + 1, 599)];
            ranges.into_iter().filter(|(from, to)| from <= to).collect()
        }
        _ => vec![(100, 599)],
    };
    Expect { status, ..Expect::default() }
}

fn connection(plan: &mut Plan, options: &Options) -> Result<(), String> {
    let sessions = options.sessions.is_some();
    let old = options.http_version < (1, 1);
    plan.request.cookies = options.session_cookies;
    plan.request.last_cookie = options.session_cookies;
    let connection = &mut plan.connection;
    connection.addresses = AddressOrder::FirstThatAnswers;
    let calls = match &options.sessions {
        None => options.calls,
        Some(Sessions::Fixed { calls, .. }) => *calls,
        Some(Sessions::Logged { .. } | Sessions::Pages { .. }) => 1,
    };
    let burst = options.burst.clamp(1, calls.max(1));
    let piped = match options.max_piped_calls {
        0 if old => 1,
        0 => PIPED_MAX,
        given => given,
    };
    let most = match options.max_connections {
        0 => CONNECTIONS_MAX,
        given => given,
    };
    if sessions && burst - 1 > piped * most {
        return Err(TOO_MANY.to_owned());
    }
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    if sessions && !old {
        (connection.depth, connection.per_user) = (Some(small(piped)), small(most));
    }
    connection.group = Some(small(burst));
    connection.calls = (sessions && old).then_some(1);
    connection.tries = if sessions { u16::MAX } else { 1 };
    connection.resend = sessions;
    let size = |bytes: u64| u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
    connection.send_buffer = size(options.send_buffer);
    connection.recv_buffer = size(options.recv_buffer);
    connection.reset_on_close = options.close_with_reset;
    if let Some(local) = &options.my_address {
        connection.bind = super::value::addresses(local).map_err(|why| format!(": {why}"))?;
    }
    Ok(())
}

const TOO_MANY: &str = ".session_issue_call: too many calls pending!\n\
                        \tIncrease --max-connections and/or --max-piped-calls.";

fn tls(options: &Options, files: &dyn Files) -> Result<TlsPlan, String> {
    let ssl = &options.ssl;
    let read = |file: &Option<String>| -> Result<Option<Vec<u8>>, String> {
        let Some(file) = file else { return Ok(None) };
        files.read(file).map(Some).map_err(|error| format!(": {file}: {}", error.text))
    };
    let versions = match ssl.protocol.as_deref().map(|name| name.replace('_', ".")).as_deref() {
        Some("TLSv1.2") => TlsVersions::Tls12,
        Some("TLSv1.3") => TlsVersions::Tls13,
        _ => TlsVersions::Any,
    };
    let ciphers = match ssl.ciphers.as_deref().filter(|_| ssl.on) {
        None => Vec::new(),
        Some(list) => ciphers::chosen(list, versions).ok_or_else(|| {
            format!(": none of the ciphers {list} is supported here; leave --ssl-ciphers out")
        })?,
    };
    let mut ca = read(&ssl.ca_file)?;
    if let Some(folder) = &ssl.ca_path {
        let all = files.read_folder(folder).map_err(|error| format!(": {folder}: {}", error.text));
        let certificates: Vec<Vec<u8>> =
            all?.into_iter().filter(|file| holds_certificate(file)).collect();
        if certificates.is_empty() {
            return Err(format!(": --ssl-ca-path {folder}: it holds no certificate in PEM"));
        }
        ca.get_or_insert_default().extend(certificates.join(&b'\n'));
    }
    Ok(TlsPlan {
        insecure: !ssl.verify,
        ca,
        cert: read(&ssl.certificate)?,
        key: read(&ssl.key)?,
        // the original resumes a TLS session only within a session
        resumption: !ssl.no_reuse && options.sessions.is_some(),
        versions,
        alpn: Vec::new(),
        sni: ssl.server_name.is_some(),
        server_name: ssl.server_name.clone(),
        ciphers,
        ..TlsPlan::default()
    })
}

/// Returns whether the PEM contains a certificate, not a revocation list or a key.
fn holds_certificate(file: &[u8]) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    file.windows(BEGIN.len()).any(|part| part == BEGIN)
}

pub(super) fn seconds(seconds: f64) -> Nanos {
    Nanos::from_secs_f64(seconds)
}
