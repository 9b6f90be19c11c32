//! `loadstone workload import` and `describe`: what a server's access log says.

use super::recording;
use crate::args::{By, DescribeArgs, ImportArgs, ImportFrom, Sink};
use crate::exit::{Code, Failure};
use crate::files;
use plan::{Arrivals, Load, Plan, SessionPlan, TargetPlan, Think, Visit, VisitGroup};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use units::{Nanos, Rate, show};
use url::Url;
use workload::access_log::{Access, Description, Log, LogReader, Model};

/// A line that is longer is not read to its end, and is no request.
pub(super) const LINE_MAX: u64 = 1 << 20;

pub(super) fn import(args: &ImportArgs) -> Result<Code, Failure> {
    if let Sink::File(path) = &args.output {
        files::check_writable(path).map_err(|error| Failure::not_written(&error))?;
    }
    let mut input = open(&args.log)?;
    let cannot = |error: std::io::Error| cannot_read(&args.log, &error);
    if let Some(what) = recording::of_other_tool(&mut input).map_err(cannot)? {
        return Err(Failure::usage(format!("{} is {what}", units::quoted(&args.log))));
    }
    let from = args.from.map_or_else(|| recording::sniff(&mut input), Ok).map_err(cannot)?;
    let args = &args.clone().for_format(from)?;
    let (plan, told) = match from {
        ImportFrom::Log => of_log(&mut input, args)?,
        from => recording::plan(from, &mut input, args)?,
    };
    let text = plan::to_toml(&plan, plan::Secrets::Shown);
    files::write_to(&args.output, &text).map_err(|error| Failure::not_written(&error))?;
    if !args.quiet {
        crate::say(&told);
    }
    Ok(Code::Done)
}

/// The plan, and what is told of it.
fn of_log(input: &mut dyn BufRead, args: &ImportArgs) -> Result<(Plan, String), Failure> {
    let methods = args.methods.clone().unwrap_or_default();
    let log = read(&args.log, input, methods)?;
    let requests = show::count(log.accesses.len() as u64);
    let span = show::duration(sped(log.span(), args.speed()));
    let targets = show::count(log.asks.len() as u64);
    let told = format!("{requests} requests for {targets} targets in {span}");
    Ok((replay(&log, args), format!("{told}{}", left_out(&log))))
}

pub(super) fn cannot_read(path: &str, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", units::quoted(path)))
}

/// Opens a file, or standard input. A byte order mark at its start is skipped; a text in UTF-16, as
/// PowerShell writes it, is read as a whole and becomes UTF-8.
pub(super) fn open(path: &str) -> Result<Box<dyn BufRead>, Failure> {
    let mut input: Box<dyn BufRead> = match path {
        "-" => Box::new(std::io::stdin().lock()),
        path => {
            Box::new(BufReader::new(File::open(path).map_err(|error| cannot_read(path, &error))?))
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

/// Longest text in UTF-16.
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

/// What was not taken over; empty: nothing.
fn left_out(log: &Log) -> String {
    let mut text = String::new();
    if log.left_out > 0 {
        let count = show::count(log.left_out);
        write!(text, "; {count} left out for their method").expect("a String takes all text");
    }
    if let Some((line, why)) = &log.first_broken {
        let lines = record::words::counted(log.broken, "line");
        let no = if log.broken == 1 { "is not a request" } else { "are not requests" };
        write!(text, "; {lines} {no} (the first is line {line}: {})", why.0)
            .expect("a String takes all text");
    }
    text
}

/// # Errors
/// A log that cannot be read, or that has no request.
pub(super) fn read(
    path: &str,
    input: &mut dyn BufRead,
    methods: Vec<String>,
) -> Result<Log, Failure> {
    let mut line = Vec::new();
    let mut reader = LogReader::new(methods);
    loop {
        line.clear();
        let read = (&mut *input).take(LINE_MAX).read_until(b'\n', &mut line);
        let read = read.map_err(|error| cannot_read(path, &error))?;
        if read == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        reader.line(text).map_err(|error| Failure::usage(format!("{path}: {}", error.0)))?;
        if crate::signals::caught() != 0 {
            return Err(Failure { code: Code::Interrupted, text: "interrupted".to_owned() });
        }
    }
    let log = reader.finish();
    if log.accesses.is_empty() {
        let told = left_out(&log);
        let why = if told.is_empty() { "; it is empty" } else { &told };
        let text = format!(
            "{path} has no request{why}; give an access log in common or combined \
                            format, or JSON lines"
        );
        return Err(Failure::usage(text));
    }
    Ok(log)
}

pub(super) fn sped(at: Nanos, speed: f64) -> Nanos {
    Nanos::from_secs_f64(at.as_secs_f64() / speed)
}

fn replay(log: &Log, args: &ImportArgs) -> Plan {
    let base = args.base.as_ref().expect("the options were held against the format");
    let targets = log.asks.iter().map(|ask| {
        let method = (ask.method != "GET").then(|| ask.method.clone());
        TargetPlan { method, ..TargetPlan::new(joined(base, &ask.target)) }
    });
    let mut plan = Plan::for_targets(targets.collect());
    let at = |access: &Access| sped(access.at, args.speed());
    let (due, session): (Vec<Nanos>, _) = match args.by.unwrap_or(By::Requests) {
        By::Requests => {
            plan.sequence = log.accesses.iter().map(|access| access.ask).collect();
            (log.accesses.iter().map(at).collect(), None)
        }
        By::Visits => {
            let visits = log.visits(args.pause());
            let first = |visit: &workload::access_log::ClientVisit| {
                at(&log.accesses[visit.rows[0] as usize])
            };
            let due = visits.iter().map(first).collect();
            let visits = visits.iter().map(|visit| groups(log, visit, args.speed())).collect();
            (due, Some(SessionPlan { visits, ..SessionPlan::of(1, Think::None) }))
        }
    };
    let count = due.len() as u64;
    let rate = Rate(count as f64);
    let arrivals = Arrivals { at: Some(due.into()), ..Arrivals::constant(rate) };
    plan.load = Load::Open { arrivals, session, connections_max: None, queue_max: None };
    (plan.stop.duration, plan.stop.requests) = (None, Some(count));
    plan
}

fn joined(base: &Url, target: &str) -> Url {
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

/// Each request by itself, and behind its response the pause that the log has.
fn groups(log: &Log, visit: &workload::access_log::ClientVisit, speed: f64) -> Visit {
    let at = |row: &u32| log.accesses[*row as usize].at;
    let nexts = visit.rows.iter().skip(1).map(Some).chain([None]);
    let groups = visit.rows.iter().zip(nexts).map(|(row, next)| VisitGroup {
        targets: vec![log.accesses[*row as usize].ask],
        think: next.map_or(Nanos::ZERO, |next| sped(Nanos(at(next).0 - at(row).0), speed)),
    });
    Visit { groups: groups.collect() }
}

pub(super) fn describe(args: &DescribeArgs) -> Result<Code, Failure> {
    let log = read(&args.log, &mut open(&args.log)?, Vec::new())?;
    let found = workload::access_log::describe(&log, args.pause);
    let text = told(&log, &found, args.pause);
    files::write_stdout(&text).map_err(|error| Failure::not_written(&error))?;
    if log.broken > 0 {
        crate::say(left_out(&log).trim_start_matches("; "));
    }
    Ok(Code::Done)
}

fn told(log: &Log, found: &Description, pause: Nanos) -> String {
    let count = |n: u64| show::count(n);
    let mut rows = vec![
        (
            "Requests",
            format!(
                "{} for {} targets by {} in {}",
                count(log.accesses.len() as u64),
                count(log.asks.len() as u64),
                record::words::counted(u64::from(log.clients), "client"),
                show::duration(log.span())
            ),
        ),
        ("Load", advice(found)),
        (
            "Visits",
            format!(
                "{} of {:.1} requests in the mean (median {}, longest {}), apart by pauses above {}",
                count(found.visits),
                found.mean_visit,
                count(found.median_visit),
                count(found.longest_visit),
                show::duration(pause)
            ),
        ),
    ];
    rows.extend(arrivals(found).map(|text| ("Arrivals", text)));
    rows.push(("Popularity", popularity(found)));
    let classes = found.statuses.iter().zip(1..).filter(|(n, _)| **n > 0);
    let classes: Vec<String> =
        classes.map(|(n, class)| format!("{class}xx {}", count(*n))).collect();
    rows.push(("Statuses", classes.join(", ")));
    let [p10, p50, p90, p99] = found.sizes.map(show::bytes);
    rows.push(("Sizes", format!("p10 {p10}, p50 {p50}, p90 {p90}, p99 {p99}")));
    let mut text = String::new();
    for (name, row) in rows {
        writeln!(text, "{name:<12}{row}").expect("a String takes all text");
    }
    text
}

fn advice(found: &Description) -> String {
    match found.model {
        Model::Open => {
            "open: visits are short, and new ones come whatever the server does; run \
                        --rate, or import --by requests"
        }
        Model::Closed => {
            "closed: visits are long, and a slow server slows its users down; run -c, \
                          or import --by visits"
        }
        Model::PartlyOpen => {
            "partly open: visits come by themselves, and then wait for responses; \
                              run --session, or import --by visits"
        }
    }
    .to_owned()
}

fn arrivals(found: &Description) -> Option<String> {
    let arrivals = found.arrivals?;
    let hurst = arrivals.hurst.map_or_else(String::new, |hurst| {
        let like = if hurst > 0.6 { "bursts at every scale" } else { "as Poisson's" };
        format!(", Hurst {hurst:.2} ({like})")
    });
    Some(format!(
        "{}, {}/s in the busiest second; variance over mean {:.2} (Poisson 1){hurst}",
        show::rate(arrivals.mean),
        show::count(arrivals.peak),
        arrivals.dispersion
    ))
}

fn popularity(found: &Description) -> String {
    let top = show::share(found.top_tenth);
    let top = format!("the most popular tenth of the targets has {top} of the requests");
    match found.zipf {
        Some(exponent) => format!("rank^-{exponent:.2} (Zipf 1); {top}"),
        None => top,
    }
}
