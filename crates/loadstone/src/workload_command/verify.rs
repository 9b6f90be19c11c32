//! `loadstone workload verify`: files, a sequence or a server's log against a model.

use super::access_log::{open, read};
use crate::exit::{Code, Failure};
use crate::files;
use args::{Sink, VerifyArgs};
use import::access_log::Log;
use record::fit::{FitKind, FitRecord};
use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;
use units::{Nanos, quoted};
use workload::fileset::fit::{Fit, FitModel, Requests, fit_files, fit_requests};

/// Maximum number of files in a folder.
const FILES_MAX: usize = 10_000_000;
/// Maximum number of requests in a sequence.
const REQUESTS_MAX: usize = 10_000_000;
/// Time cells for a log with a fine clock, and for a log in whole seconds.
const FINE: Nanos = Nanos::from_millis(10);
/// Silence after which a client has left (as in `describe`).
const PAUSE: Nanos = Nanos::from_secs(30 * 60);

pub(super) fn verify(args: &VerifyArgs) -> Result<Code, Failure> {
    files::check_results(args.json.as_ref(), &args.html)?;
    let model = args.fit_model();
    let (kind, broken, fit) = match Path::new(&args.what).is_dir() {
        true => (FitKind::Files, 0, fit_files(&model, &sizes_below(Path::new(&args.what))?)),
        false => verify_requests(args, &model)?,
    };
    if let (Some(top), Some(why)) = (args.top_count, &fit.no_reference) {
        return Err(Failure::usage(format!("--top-count {top}: {}", why.0)));
    }
    let record = FitRecord::new(&args.what, kind, &model, broken, &fit);
    let unwritten = |error: anyhow::Error| Failure::not_written(&error);
    if let Some(path) = &args.html {
        files::write_whole(path, &report::fit::html(&record)).map_err(unwritten)?;
    }
    if let Some(sink) = &args.json {
        files::write_to(sink, &report::fit::json(&record)).map_err(unwritten)?;
    }
    if args.json != Some(Sink::Stdout) {
        let style = crate::run::output::style(args.quiet, false, true);
        files::write_stdout(&report::fit::text(&record, style)).map_err(unwritten)?;
    }
    Ok(if record.fits { Code::Done } else { Code::Missed })
}

/// Returns the sizes of all files in a folder and its subfolders.
fn sizes_below(folder: &Path) -> Result<Vec<u64>, Failure> {
    let (mut open, mut sizes) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        let cannot = |error: std::io::Error| {
            Failure::usage(format!("cannot read {}: {error}", folder.display()))
        };
        for entry in std::fs::read_dir(&folder).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            // links are not followed: they may lead back
            let kind = entry.file_type().map_err(cannot)?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                sizes.push(entry.metadata().map_err(cannot)?.len());
            }
            if sizes.len() > FILES_MAX {
                let folder = folder.display();
                return Err(Failure::usage(format!("{folder} holds more than ten million files")));
            }
        }
        if crate::signals::received_signal() != 0 {
            return Err(Failure { code: Code::Interrupted, text: "interrupted".to_owned() });
        }
    }
    if sizes.is_empty() {
        return Err(Failure::usage(format!("{} holds no file", folder.display())));
    }
    Ok(sizes)
}

fn verify_requests(args: &VerifyArgs, model: &FitModel) -> Result<(FitKind, u64, Fit), Failure> {
    let mut input = open(&args.what)?;
    let start = input.fill_buf();
    let start = start.map_err(|error| Failure::usage(format!("{}: {error}", args.what)))?;
    let start = String::from_utf8_lossy(start).into_owned();
    let mut lines = start.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    if lines.any(|line| import::access_log::parse_line(line).is_ok()) {
        let log = read(&args.what, &mut input, vec!["GET".to_owned()])?;
        return Ok((FitKind::Log, log.broken, fit_requests(model, &requests_from_log(&log))));
    }
    let requests = parse_sequence(&mut input);
    let requests = requests.map_err(|why| Failure::usage(format!("{}: {why}", args.what)))?;
    Ok((FitKind::Sequence, 0, fit_requests(model, &requests)))
}

/// Targets by path, without duplicates.
#[derive(Default)]
struct PathRows {
    rows: HashMap<String, u32>,
    all: Vec<String>,
}

impl PathRows {
    fn row(&mut self, target: &str) -> u32 {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        if let Some(row) = self.rows.get(path) {
            return *row;
        }
        let row = self.all.len() as u32;
        self.rows.insert(path.to_owned(), row);
        self.all.push(path.to_owned());
        row
    }
}

fn requests_from_log(log: &Log) -> Requests {
    let mut targets = PathRows::default();
    let rows: Vec<u32> = log.asks.iter().map(|ask| targets.row(&ask.target)).collect();
    let order = log.accesses.iter().map(|access| rows[access.ask as usize]).collect();
    // a response of 304 or 206 does not show the file's size
    let whole = log.accesses.iter().filter(|access| access.status == 200);
    let cell = if log.fine { FINE } else { Nanos::SECOND };
    Requests {
        targets: targets.all,
        order,
        sizes: Some(whole.map(|access| access.bytes.into()).collect()),
        offs_s: Vec::new(),
        gaps_s: gaps(log),
        cells: log.cells(cell).into_iter().map(|count| count as f64).collect(),
        cell_s: cell.as_secs_f64(),
    }
}

/// Returns the times between two requests of a client, within a visit.
fn gaps(log: &Log) -> Vec<f64> {
    let mut gaps = Vec::new();
    for visit in log.visits(PAUSE) {
        let at = |row: u32| log.accesses[row as usize].at;
        gaps.extend(visit.rows.windows(2).map(|two| (at(two[1]) - at(two[0])).as_secs_f64()));
    }
    gaps
}

/// Parses a list of URLs, or httperf's sessions as written by `workload sequence`: step by step,
/// one user after another.
fn parse_sequence(input: &mut dyn BufRead) -> Result<Requests, String> {
    let mut targets = PathRows::default();
    let mut sessions: Vec<Vec<Vec<u32>>> = vec![Vec::new()];
    let (mut offs_s, mut count) = (Vec::new(), 0_usize);
    for (number, line) in (1..).zip(input.lines()) {
        let line = line.map_err(|error| format!("line {number}: {error}"))?;
        if line.trim_start().starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            if sessions.last().is_some_and(|session| !session.is_empty()) {
                sessions.push(Vec::new());
            }
            continue;
        }
        count += 1;
        if count > REQUESTS_MAX {
            return Err("it has more than ten million requests".to_owned());
        }
        let ListedStep { target, think } =
            step(&line).map_err(|why| format!("line {number}: {why}"))?;
        offs_s.extend(think);
        let row = targets.row(target);
        let session = sessions.last_mut().expect("a session exists from the start");
        match session.last_mut().filter(|_| line.starts_with([' ', '\t'])) {
            Some(burst) => burst.push(row),
            None => session.push(vec![row]),
        }
    }
    if count == 0 {
        return Err("it has no request; give a folder, a list of URLs or an access log".to_owned());
    }
    let longest = sessions.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| sessions.iter().filter_map(move |it| it.get(turn)));
    let order = turns.flatten().copied().collect();
    Ok(Requests { targets: targets.all, order, offs_s, ..Requests::default() })
}

/// Requested target of a line, with its pause.
struct ListedStep<'a> {
    /// Path and query.
    target: &'a str,
    /// Pause after the request, in seconds.
    think: Option<f64>,
}

fn step(line: &str) -> Result<ListedStep<'_>, String> {
    let mut words = line.split_whitespace().peekable();
    let is_method = |word: &&str| word.bytes().all(|byte| byte.is_ascii_uppercase());
    words.next_if(is_method);
    let url = words.next().unwrap_or_default();
    let target = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map(|at| &rest[at..]),
        None => Some(url).filter(|url| url.starts_with('/')),
    };
    let target = target
        .ok_or_else(|| format!("{} is not a log line, a URL or a path", quoted(line.trim())))?;
    let mut think = None;
    for word in words {
        match word.split_once('=') {
            Some(("think", seconds)) => {
                let seconds = seconds.parse::<f64>().ok().filter(|it| it.is_finite() && *it > 0.0);
                think = Some(seconds.ok_or_else(|| format!("{} is not a time", quoted(word)))?);
            }
            Some(("weight", _)) => {
                return Err("a list with weights has no order; draw one from it first".to_owned());
            }
            _ => {}
        }
    }
    Ok(ListedStep { target, think })
}
