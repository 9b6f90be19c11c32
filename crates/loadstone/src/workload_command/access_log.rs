//! `loadstone workload import` of a server's access log.

use super::{foreign, recording, token_trace};
use crate::exit::{Code, Failure};
use crate::files;
use args::{By, ImportArgs, ImportFrom, Sink};
use import::access_log::{Access, LineError, Log, LogReader};
use plan::{Arrivals, Load, Plan, SessionPlan, TargetPlan, Think, Visit, VisitGroup};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use units::{Nanos, Rate, show};
use url::Url;

/// Maximum length of a line; a longer one is skipped and is not a request.
pub(super) const LINE_MAX: u64 = 1 << 20;

pub(super) fn import(args: &ImportArgs) -> Result<Code, Failure> {
    if let Sink::File(path) = &args.output {
        files::check_writable(path).map_err(|error| Failure::not_written(&error))?;
    }
    if std::path::Path::new(&args.log).is_dir() {
        let args = &args.clone().for_format(args.from.unwrap_or(ImportFrom::Bruno))?;
        return foreign::import_folder(args);
    }
    let mut input = open(&args.log)?;
    let cannot = |error: std::io::Error| cannot_read(&args.log, &error);
    if let Some(what) = recording::refusal_for_other_tool(&args.log, &mut input).map_err(cannot)? {
        return Err(Failure::usage(format!("{} is {what}", units::quoted(&args.log))));
    }
    let sniffed = || recording::sniff(&args.log, &mut input);
    let from = args.from.map_or_else(sniffed, Ok).map_err(cannot)?;
    if args.from.is_none()
        && from == ImportFrom::Log
        && recording::is_document(&args.log, &mut input).map_err(cannot)?
    {
        return Err(Failure::usage(format!(
            "{}: its format is not recognized as an access log, HAR, OpenAPI, Postman, JMeter, \
             Artillery or Insomnia file; name the format with --from",
            units::quoted(&args.log)
        )));
    }
    let args = &args.clone().for_format(from)?;
    if let Some(format) = from.foreign() {
        return foreign::import_file(format, &mut input, args);
    }
    if let Some(second) = &args.second {
        return foreign::import_two(&mut input, second, args);
    }
    let (mut plan, summary) = match from {
        ImportFrom::Log => plan_from_log(&mut input, args)?,
        ImportFrom::Tokens => token_trace::plan(&mut input, args)?,
        from => recording::plan(from, &mut input, args)?,
    };
    plan.not_imported = summary
        .lines()
        .filter_map(|line| line.trim().strip_prefix("left out: "))
        .map(str::to_owned)
        .collect();
    if args.dry_run {
        return foreign::dry_run(&plan, &args.log);
    }
    let text = brief(&plan);
    files::write_to(&args.output, &text).map_err(|error| Failure::not_written(&error))?;
    if !args.quiet {
        crate::print_message(&summary);
    }
    Ok(Code::Done)
}

/// Renders the plan without default values, unless it is a long list of requests.
pub(super) fn brief(plan: &Plan) -> String {
    let whole = plan::to_toml(plan, plan::Secrets::Shown);
    plan::to_brief_toml(&whole).unwrap_or(whole)
}

/// Returns the plan of a log, with its description.
fn plan_from_log(input: &mut dyn BufRead, args: &ImportArgs) -> Result<(Plan, String), Failure> {
    let methods = args.methods.clone().unwrap_or_default();
    let log = read(&args.log, input, methods)?;
    let requests = show::count(log.accesses.len() as u64);
    let span = show::duration(at_speed(log.span(), args.speed()));
    let targets = show::count(log.asks.len() as u64);
    let text = format!("{requests} requests for {targets} targets in {span}");
    Ok((replay(&log, args), format!("{text}{}", describe_omissions(&log))))
}

pub(super) fn cannot_read(path: &str, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", units::quoted(path)))
}

/// Opens a file, or standard input. Skips a byte order mark. UTF-16 text, as PowerShell writes it,
/// is read completely and converted to UTF-8.
pub(super) fn open(path: &str) -> Result<Box<dyn BufRead>, Failure> {
    let mut input: Box<dyn BufRead> = match path {
        "-" => session::console::stdin(),
        path => {
            let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
            Box::new(BufReader::with_capacity(recording::SNIFFED, file))
        }
    };
    let cannot = |error: std::io::Error| cannot_read(path, &error);
    let start = input.fill_buf().map_err(cannot)?;
    match start {
        [0xef, 0xbb, 0xbf, ..] => input.consume(3),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            let text = utf16(&mut input).map_err(cannot)?;
            return Ok(Box::new(std::io::Cursor::new(text)));
        }
        _ => {}
    }
    Ok(input)
}

/// Maximum length of a UTF-16 text.
const UTF16_MAX: u64 = 256 << 20;

fn utf16(input: &mut dyn BufRead) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    input.take(UTF16_MAX + 1).read_to_end(&mut bytes)?;
    let wrong = |why: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, why.to_owned());
    if bytes.len() as u64 > UTF16_MAX {
        return Err(wrong("it is a text in UTF-16 of more than 256 MiB; convert it to UTF-8"));
    }
    let little = bytes.starts_with(&[0xff, 0xfe]);
    let unit =
        |pair: &[u8; 2]| if little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) };
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().skip(1).map(unit);
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok().filter(|_| rest.is_empty()).ok_or_else(|| wrong("it is damaged: not UTF-16"))
}

/// Describes the omitted parts; may be empty.
fn describe_omissions(log: &Log) -> String {
    let mut text = String::new();
    if log.left_out > 0 {
        let count = show::count(log.left_out);
        write!(text, "; {count} skipped for their method").expect("a String accepts all text");
    }
    text + &broken(log.broken, log.first_broken.as_ref())
}

/// Describes the lines that are not requests; may be empty.
pub(super) fn broken(count: u64, first: Option<&(u64, LineError)>) -> String {
    let Some((line, why)) = first else { return String::new() };
    let lines = record::words::counted(count, "line");
    let no = if count == 1 { "is not a request" } else { "are not requests" };
    format!("; {lines} {no} (the first is line {line}: {})", why.0)
}

/// # Errors
/// Fails for a log that cannot be read, or that has no request.
pub(super) fn read(
    path: &str,
    input: &mut dyn BufRead,
    methods: Vec<String>,
) -> Result<Log, Failure> {
    let mut reader = LogReader::new(methods);
    lines(path, input, &mut |line| {
        reader.line(line).map_err(|error| Failure::usage(format!("{path}: {}", error.0)))
    })?;
    let log = reader.finish();
    match log.accesses.is_empty() {
        true => Err(without_requests(path, &describe_omissions(&log))),
        false => Ok(log),
    }
}

/// Passes each line on, without its end.
pub(super) fn lines(
    path: &str,
    input: &mut dyn BufRead,
    take: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut *input).take(LINE_MAX).read_until(b'\n', &mut line);
        let read = read.map_err(|error| cannot_read(path, &error))?;
        if read == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        take(text.trim_end_matches(['\r', '\n']))?;
        if crate::signals::received_signal() != 0 {
            return Err(Failure { code: Code::Interrupted, text: "interrupted".to_owned() });
        }
    }
}

pub(super) fn without_requests(path: &str, left_out: &str) -> Failure {
    let why = if left_out.is_empty() { "; it is empty" } else { left_out };
    Failure::usage(format!(
        "{path} has no request{why}; give an access log in common or combined format, or JSON lines"
    ))
}

pub(super) fn at_speed(at: Nanos, speed: f64) -> Nanos {
    Nanos::from_secs_f64(at.as_secs_f64() / speed)
}

fn replay(log: &Log, args: &ImportArgs) -> Plan {
    let base = args.base.as_ref().expect("the options were checked against the format");
    let targets = log.asks.iter().map(|ask| {
        let method = (ask.method != "GET").then(|| ask.method.clone());
        TargetPlan { method, ..TargetPlan::new(join_url(base, &ask.target)) }
    });
    let mut plan = Plan::for_targets(targets.collect());
    let at = |access: &Access| at_speed(access.at, args.speed());
    let (due, session): (Vec<Nanos>, _) = match args.by.unwrap_or(By::Requests) {
        By::Requests => {
            plan.sequence = log.accesses.iter().map(|access| access.ask).collect();
            (log.accesses.iter().map(at).collect(), None)
        }
        By::Visits => {
            let visits = log.visits(args.pause());
            let first =
                |visit: &import::access_log::ClientVisit| at(&log.accesses[visit.rows[0] as usize]);
            let due = visits.iter().map(first).collect();
            let visits = visits.iter().map(|visit| groups(log, visit, args.speed())).collect();
            (due, Some(SessionPlan { visits, ..SessionPlan::new(1, Think::None) }))
        }
    };
    let count = due.len() as u64;
    let rate = Rate(count as f64);
    let arrivals = Arrivals { at: Some(due.into()), ..Arrivals::constant(rate) };
    plan.load = Load::Open { arrivals, session, connections_max: None, queue_max: None };
    (plan.stop.duration, plan.stop.requests) = (None, Some(count));
    plan
}

fn join_url(base: &Url, target: &str) -> Url {
    let mut url = base.clone();
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    url.set_path(path);
    url.set_query(query);
    url.set_fragment(None);
    url
}

/// Returns each request as a group, followed by the log's pause after its response.
fn groups(log: &Log, visit: &import::access_log::ClientVisit, speed: f64) -> Visit {
    let at = |row: &u32| log.accesses[*row as usize].at;
    let nexts = visit.rows.iter().skip(1).map(Some).chain([None]);
    let groups = visit.rows.iter().zip(nexts).map(|(row, next)| VisitGroup {
        targets: vec![log.accesses[*row as usize].ask],
        think: next.map_or(Nanos::ZERO, |next| at_speed(Nanos(at(next).0 - at(row).0), speed)),
    });
    Visit { groups: groups.collect() }
}
