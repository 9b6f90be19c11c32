//! `loadstone workload import` of recordings: HAR, curl commands, OpenAPI.

use super::access_log::at_speed;
use super::token_trace;
use crate::exit::Failure;
use args::{
    By, Disk, ImportArgs, ImportFrom, apply_request_options, plan_from_grpcurl, set_login,
    set_targets,
};
use import::recorded::{Curl, Recorded, Recording};
use plan::{Arrivals, FileSource, Load, Plan, SessionPlan, Think, Visit, VisitGroup};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, Read};
use std::path::Path;
use units::{Nanos, Rate, show};
use url::Url;

/// Number of bytes at the start of a file that decide its format.
pub(super) const SNIFFED: usize = 64 << 10;
/// Maximum size of text held in memory: OpenAPI, commands.
const TEXT_MAX: u64 = 64 << 20;
/// Maximum number of reasons listed individually.
const LISTED_MAX: usize = 10;

/// Header fields whose values are credentials.
const LOGINS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Detects the format of a file by its first bytes.
///
/// # Errors
/// Fails if it cannot be read.
pub(super) fn sniff(name: &str, input: &mut dyn BufRead) -> std::io::Result<ImportFrom> {
    let start = input.fill_buf()?;
    let start = String::from_utf8_lossy(&start[..start.len().min(SNIFFED)]).into_owned();
    let text = start.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if let Some(format) = import::detect(name, text) {
        return Ok(ImportFrom::new(format));
    }
    let keys = if text.starts_with('{') { import::top_keys(text) } else { Vec::new() };
    let names = |name: &str| keys.iter().any(|key| key == name);
    let dense: String = text.chars().filter(|char| !char.is_whitespace()).take(4096).collect();
    Ok(match () {
        () if token_trace::begins(text) => ImportFrom::Tokens,
        () if names("log") && dense.contains("\"log\":{") => ImportFrom::Har,
        // Swagger 2 is refused where it is read, by its name
        () if names("openapi") || names("swagger") => ImportFrom::Openapi,
        () if text
            .lines()
            .any(|line| line.starts_with("openapi:") || line.starts_with("swagger:")) =>
        {
            ImportFrom::Openapi
        }
        () if import::recorded::has_command(text) || import::recorded::is_grpcurl(text) => {
            ImportFrom::Curl
        }
        () => ImportFrom::Log,
    })
}

/// Returns why a file of another tool cannot be imported; `None` for other files.
///
/// # Errors
/// Fails if it cannot be read.
pub(super) fn refusal_for_other_tool(
    name: &str,
    input: &mut dyn BufRead,
) -> std::io::Result<Option<&'static str>> {
    let start = input.fill_buf()?;
    let start = String::from_utf8_lossy(&start[..start.len().min(SNIFFED)]).into_owned();
    // documents may quote scripts
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_document = ["yaml", "yml", "json", "har", "xml", "jmx", "md"].contains(&&*ending);
    let imports_k6 = |line: &str| {
        let line = line.trim_start();
        (line.starts_with("import ") || line.starts_with('}'))
            && (line.contains("from 'k6") || line.contains("from \"k6"))
    };
    if !is_document && start.lines().any(imports_k6) {
        return Ok(Some(
            "a script of k6, which is not a recording; run it with loadstone k6 run FILE",
        ));
    }
    Ok(import::refusal(name, &start))
}

/// Returns whether a file is one document in YAML, XML or JSON, rather than lines of a log.
///
/// # Errors
/// Fails if it cannot be read.
pub(super) fn is_document(name: &str, input: &mut dyn BufRead) -> std::io::Result<bool> {
    let start = input.fill_buf()?;
    let start = String::from_utf8_lossy(&start[..start.len().min(SNIFFED)]);
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let first = start.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Ok(match ending.as_str() {
        "yaml" | "yml" | "xml" | "jmx" | "har" => true,
        "json" => serde_json::from_str::<serde_json::Value>(first).is_err(),
        // a line of syslog begins with a number in angle brackets
        _ => ["<?", "<!"].iter().any(|it| first.starts_with(it)) || first.trim() == "{",
    })
}

/// Returns the plan with its description.
///
/// # Errors
/// Fails for a file that is invalid in its format, or has no usable request.
pub(super) fn plan(
    from: ImportFrom,
    input: &mut dyn BufRead,
    args: &ImportArgs,
) -> Result<(Plan, String), Failure> {
    let wrong = |why: &str| Failure::usage(format!("{}: {why}", units::quoted(&args.log)));
    let mut plan = Plan::for_targets(Vec::new());
    let recording = match from {
        ImportFrom::Har => import::recorded::read_har(input).map_err(|error| wrong(&error.0))?,
        ImportFrom::Openapi => {
            let text = text(input).map_err(|why| wrong(&why))?;
            let folder = Path::new(&args.log).parent().unwrap_or(Path::new("")).to_owned();
            let read = |file: &str| Disk.read(&folder.join(file).to_string_lossy());
            let read = import::recorded::read_openapi(&text, args.base.as_ref(), &read);
            read.map_err(|error| wrong(&error.0))?
        }
        // other formats were converted to plans before
        _ => {
            let text = text(input).map_err(|why| wrong(&why))?;
            let read = |path: &str| match path {
                // it has been read completely
                "-" if args.log == "-" => {
                    Err("a command reads standard input (@-), from which the \
                                               commands are read: write them to a file"
                        .to_owned())
                }
                path => Disk.read(path),
            };
            if import::recorded::is_grpcurl(&text) {
                let call = plan_from_grpcurl(&text, &ReadBy(&read)).map_err(|why| wrong(&why))?;
                return Ok((call, "1 call of gRPC".to_owned()));
            }
            commands(&text, &mut plan, &read).map_err(|why| wrong(&why))?
        }
    };
    let recording = chosen(recording, args, from);
    let left_out = describe_omissions(&recording);
    if recording.requests.is_empty() {
        return Err(wrong(&format!("it has no usable request{left_out}")));
    }
    let targets = distinct(&recording.requests);
    set_targets(&mut plan, &targets.each);
    if from == ImportFrom::Har {
        set_load(&mut plan, &recording.requests, &targets.rows, args);
    } else if args.by.is_some() {
        return Err(wrong("it has no times, which --by needs; omit --by"));
    }
    let requests = record::words::counted(recording.requests.len() as u64, "request");
    let count = record::words::counted(targets.each.len() as u64, "target");
    Ok((plan, format!("{requests} for {count}{left_out}")))
}

/// Reads files through a function.
struct ReadBy<'a>(&'a dyn Fn(&str) -> Result<Vec<u8>, String>);

impl FileSource for ReadBy<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        (self.0)(path)
    }
}

pub(super) fn text(input: &mut dyn BufRead) -> Result<String, String> {
    let mut text = String::new();
    let read = input.take(TEXT_MAX + 1).read_to_string(&mut text);
    let read = read.map_err(|error| format!("it cannot be read as text: {error}"))?;
    if read as u64 > TEXT_MAX {
        return Err("it is longer than 64 MiB".to_owned());
    }
    Ok(text)
}

fn commands(
    text: &str,
    plan: &mut Plan,
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Recording, String> {
    let mut recording = Recording::default();
    let commands = import::recorded::read_commands(text, read);
    let commands = commands.map_err(|error| error.to_string())?;
    let compressed = commands.iter().all(|curl| curl.compressed);
    recording.left_out.extend(shared(&commands));
    let mut login = None;
    for (index, mut curl) in commands.into_iter().enumerate() {
        if curl.compressed && !compressed {
            curl.ask_for_compression();
        }
        apply_request_options(plan, &curl);
        plan.request.compressed = compressed;
        let before = login.get_or_insert_with(|| curl.login.clone());
        if *before != curl.login {
            let why = "its login differs from that of command 1, and a plan has one; import them \
                separately";
            return Err(format!("command {}: {why}", index + 1));
        }
        set_login(plan, &curl).map_err(|why| format!("command {}: {why}", index + 1))?;
        recording.requests.extend(curl.requests);
    }
    Ok(recording)
}

/// Returns options of some commands that apply to all requests of a plan, with the number of
/// commands without them.
fn shared(commands: &[Curl]) -> Vec<(String, u64)> {
    let lacks = |option: &str, has: fn(&Curl) -> bool| {
        let lack = commands.iter().filter(|curl| !has(curl)).count();
        let reason = format!("a command without {option}: a plan applies it to all requests");
        (lack > 0 && lack < commands.len()).then_some((reason, lack as u64))
    };
    let each = [
        lacks("-L", |curl| curl.follow.is_some()),
        lacks("-k", |curl| curl.insecure),
        lacks("its HTTP version", |curl| curl.version.is_some()),
    ];
    each.into_iter().flatten().collect()
}

/// Returns the imported requests. From a HAR, only those to the server of the first page are
/// included, because a page uses other servers too; logins are included on request.
fn chosen(recording: Recording, args: &ImportArgs, from: ImportFrom) -> Recording {
    let Recording { requests, mut left_out } = recording;
    let has_page = |one: &&Recorded| {
        one.headers.iter().any(|(name, value)| import::recorded::is_page_header(name, value))
    };
    let site = requests.iter().find(has_page).or(requests.first()).map(|one| one.url.origin());
    let mut leave_out = |why: String| *left_out.entry(why).or_default() += 1;
    let methods = args.methods.as_ref().map_or(&[][..], Vec::as_slice);
    let mut logins = 0;
    let mut kept = Vec::with_capacity(requests.len());
    for mut request in requests {
        let host = request.url.host_str().unwrap_or_default().to_owned();
        if !methods.is_empty() && !methods.contains(&request.method) {
            leave_out(format!("its method {}", request.method));
            continue;
        }
        let own = site.as_ref() == Some(&request.url.origin()) || args.hosts.contains(&host);
        if from == ImportFrom::Har && !own {
            leave_out(format!("another server, {host}; --hosts {host} includes it"));
            continue;
        }
        if let Some(base) = args.base.as_ref().filter(|_| site == Some(request.url.origin())) {
            request.url = moved(&request.url, base);
        }
        if from == ImportFrom::Har && !args.logins {
            let count = request.headers.len();
            let login = |name: &str| LOGINS.iter().any(|login| login.eq_ignore_ascii_case(name));
            request.headers.retain(|(name, _)| !login(name));
            logins += u64::from(request.headers.len() < count);
        }
        kept.push(request);
    }
    if logins > 0 {
        left_out.insert("(only their cookies and logins; --logins keeps them)".to_owned(), logins);
    }
    let start = kept.first().map_or(Nanos::ZERO, |first| first.at);
    kept.iter_mut().for_each(|request| request.at = Nanos(request.at.0 - start.0));
    Recording { requests: kept, left_out }
}

/// Returns the same path and query at another server.
fn moved(url: &Url, base: &Url) -> Url {
    let mut moved = base.clone();
    moved.set_path(&format!("{}{}", base.path().trim_end_matches('/'), url.path()));
    moved.set_query(url.query());
    moved
}

fn describe_omissions(recording: &Recording) -> String {
    let mut text = String::new();
    let mut reasons: Vec<(&String, &u64)> = recording.left_out.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (why, count) in reasons.iter().take(LISTED_MAX) {
        let count = show::count(**count);
        write!(text, "\n  left out: {count} for {why}").expect("a String accepts all text");
    }
    if reasons.len() > LISTED_MAX {
        let more = reasons.len() - LISTED_MAX;
        write!(text, "\n  and {more} more reasons").expect("a String accepts all text");
    }
    text
}

/// Distinct requests, and the index of each original request among them.
struct Distinct<'a> {
    each: Vec<&'a Recorded>,
    rows: Vec<u32>,
}

fn distinct(requests: &[Recorded]) -> Distinct<'_> {
    let (mut each, mut known, mut rows) = (Vec::new(), HashMap::new(), Vec::new());
    for request in requests {
        let Recorded { method, url, headers, body, .. } = request;
        let row = *known.entry((method, url, headers, body)).or_insert_with(|| {
            each.push(request);
            each.len() as u32 - 1
        });
        rows.push(row);
    }
    Distinct { each, rows }
}

/// Sets the load: each user repeats the recorded visit with its pauses; with `--by requests`, each
/// request is sent at its recorded time.
fn set_load(plan: &mut Plan, requests: &[Recorded], rows: &[u32], args: &ImportArgs) {
    let at = |request: &Recorded| at_speed(request.at, args.speed());
    if args.by == Some(By::Requests) {
        let due: Vec<Nanos> = requests.iter().map(at).collect();
        let count = due.len() as u64;
        let arrivals = Arrivals { at: Some(due.into()), ..Arrivals::constant(Rate(count as f64)) };
        plan.sequence = rows.to_vec();
        plan.load = Load::Open { arrivals, session: None, connections_max: None, queue_max: None };
        (plan.stop.duration, plan.stop.requests) = (None, Some(count));
        return;
    }
    let nexts = requests.iter().skip(1).map(Some).chain([None]);
    let groups = requests.iter().zip(nexts).zip(rows).map(|((request, next), row)| {
        let think = next.map_or(Nanos::ZERO, |next| Nanos(at(next).0 - at(request).0));
        VisitGroup { targets: vec![*row], think }
    });
    let visits = vec![Visit { groups: groups.collect() }];
    let session = SessionPlan { visits, ..SessionPlan::new(1, Think::None) };
    if let Load::Closed { session: slot, .. } = &mut plan.load {
        *slot = Some(session);
    }
}
