//! The server meanwhile: what its own machine showed of it before the first case, after the cases in
//! which that changed, and at the end.

use super::{Report, words};
use crate::text::layout::Page;
use crate::words::counted;
use sample::{Death, ServerState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use torture::result::{CaseResult, Meanwhile, ServerSeen};
use units::{Nanos, show};

/// Heads of the table, after the row's own.
pub(crate) const HEADS: [&str; 5] = ["memory", "descriptors", "threads", "connections", "CPU"];
/// Cases that have a row.
const ROWS_MAX: usize = 30;
/// A change is told of from this on: this share, and this much.
const CHANGED: f64 = 0.2;
const DESCRIPTORS_CHANGED: u64 = 8;
const MEMORY_CHANGED: u64 = 4 << 20;
const THREADS_CHANGED: u64 = 2;
/// States of sockets that hold nothing of the server's any more.
const OVER: [&str; 2] = ["time-wait", "closed"];

/// Connections on the server's side that are not over.
fn connections(state: &ServerState) -> u64 {
    state.sockets.iter().filter(|(name, _)| !OVER.contains(name)).map(|(_, count)| count).sum()
}

fn cells(state: &ServerState, cpu: Option<Nanos>) -> Vec<String> {
    vec![
        show::bytes(state.memory_bytes),
        show::count(state.descriptors),
        show::count(state.threads),
        match state.machine.is_empty() {
            true => show::count(connections(state)),
            false => "-".to_owned(),
        },
        cpu.map_or_else(|| "-".to_owned(), show::duration),
    ]
}

/// CPU time between the two; another server has an account of its own.
fn spent(before: &ServerState, after: &ServerState) -> Option<Nanos> {
    let same = before.listeners == after.listeners;
    same.then(|| Nanos(after.cpu.0.saturating_sub(before.cpu.0)))
}

fn changed(before: u64, after: u64, least: u64) -> bool {
    let by = before.abs_diff(after);
    by >= least && by as f64 > before as f64 * CHANGED
}

fn is_worth_a_row(seen: &Meanwhile) -> bool {
    let (before, after) = (&seen.before, &seen.after);
    seen.deaths.iter().any(is_loss)
        || changed(before.descriptors, after.descriptors, DESCRIPTORS_CHANGED)
        || changed(before.memory_bytes, after.memory_bytes, MEMORY_CHANGED)
        || changed(before.threads, after.threads, THREADS_CHANGED)
        || changed(connections(before), connections(after), DESCRIPTORS_CHANGED)
}

/// Who it is: `nginx (pid 71)`.
fn who(state: &ServerState) -> String {
    if !state.machine.is_empty() {
        return format!("the machine of {}", words::safe(&state.machine));
    }
    let all: Vec<String> =
        state.listeners.iter().map(|one| words::safe(&one.to_string())).collect();
    if all.is_empty() { "nobody listens".to_owned() } else { all.join(", ") }
}

/// Who was seen, in a sentence.
pub(crate) fn head(seen: &ServerSeen) -> String {
    let (Some(first), Some(last)) = (seen.rows.first(), seen.rows.last()) else {
        return String::new();
    };
    let workers = match last.state.workers.len() as u64 {
        0 => String::new(),
        n => format!(" with {}", counted(n, "worker")),
    };
    match (who(&first.state), who(&last.state)) {
        (before, after) if before == after => format!("{after}{workers}."),
        (before, after) => format!("At first {before}; at the end {after}{workers}."),
    }
}

/// A row for each moment that tells something: what it is, and a cell for each of [`HEADS`]; CPU is
/// what was spent in the case, or in all of them.
pub(crate) fn rows(report: &Report) -> Vec<(String, Vec<String>)> {
    let Some(seen) = &report.result.server else { return Vec::new() };
    let (Some(first), Some(last)) = (seen.rows.first(), seen.rows.last()) else {
        return Vec::new();
    };
    let mut rows = vec![("before the cases".to_owned(), cells(&first.state, None))];
    let told = report.result.cases.iter().filter_map(|case| {
        let seen = case.server.as_ref().filter(|seen| is_worth_a_row(seen))?;
        let spent = spent(&seen.before, &seen.after);
        Some((format!("after {}", case.case.id), cells(&seen.after, spent)))
    });
    rows.extend(told.take(ROWS_MAX));
    let spent = spent(&first.state, &last.state);
    rows.push(("at the end".to_owned(), cells(&last.state, spent)));
    rows
}

/// A worker that leaves in order is none.
fn is_loss(death: &Death) -> bool {
    death.whole || !death.how.is_orderly()
}

/// Ends of processes, and connections that were left, a sentence each with the case it belongs to.
pub(crate) fn events(report: &Report) -> Vec<(String, String)> {
    let early = report.result.server.iter().flat_map(|seen| grouped(&seen.deaths));
    let mut all: Vec<(String, String)> =
        early.map(|said| ("before the cases".to_owned(), said)).collect();
    for case in &report.result.cases {
        let id = || case.case.id.clone();
        let Some(seen) = &case.server else { continue };
        all.extend(grouped(&seen.deaths).into_iter().map(|said| (id(), said)));
        all.extend(left(case, seen).map(|said| (id(), said)));
    }
    all.extend(renewed(report).map(|said| ("workers".to_owned(), said)));
    all
}

/// Workers that left in order, over all cases.
fn renewed(report: &Report) -> Option<String> {
    let seen = report.result.cases.iter().filter_map(|case| case.server.as_ref());
    let counts = seen.map(|seen| seen.deaths.iter().filter(|death| !is_loss(death)).count() as u64);
    let counts: Vec<u64> = counts.filter(|count| *count > 0).collect();
    let all: u64 = counts.iter().sum();
    let cases = counted(counts.len() as u64, "case");
    (all > 0).then(|| format!("{} left in order in the course of {cases}", show::count(all)))
}

/// Ends of the same way together, those of workers in order left out.
fn grouped(deaths: &[Death]) -> Vec<String> {
    let said = |(death, count): (&Death, u64)| match count {
        1 => words::safe(&death.to_string()),
        n => format!("{}; {n} times in all", words::safe(&death.to_string())),
    };
    let lost = sample::together(deaths).into_iter().filter(|(death, _)| is_loss(death));
    lost.map(said).collect()
}

/// Connections that the clients have ended and the server has not.
fn left(case: &CaseResult, seen: &Meanwhile) -> Option<String> {
    let count = |state: &ServerState| state.sockets.get("close-wait").copied().unwrap_or(0);
    let more = count(&seen.after).saturating_sub(count(&seen.before));
    (more >= DESCRIPTORS_CHANGED && case.skipped.is_none()).then(|| {
        format!("{} more of its connections wait for its own end (close-wait)", show::count(more))
    })
}

/// The section of the text.
pub(super) fn text(page: &mut Page, report: &Report) {
    let Some(seen) = &report.result.server else { return };
    page.heading("The server meanwhile");
    page.wrapped("  ", &head(seen));
    let mut table = vec![std::iter::once("").chain(HEADS).map(str::to_owned).collect::<Vec<_>>()];
    for (name, cells) in rows(report) {
        table.push(std::iter::once(name).chain(cells).collect());
    }
    page.table(&table);
    for (case, said) in events(report) {
        page.wrapped(&format!("  {case}  "), &said);
    }
}

/// `server` of the document: before the first case, at the end, and who ended before the first case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerRow {
    pub before: StateRow,
    pub after: StateRow,
    pub deaths: Vec<DeathRow>,
}

/// `server` of a case: after it, and who ended meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerCaseRow {
    pub after: StateRow,
    pub deaths: Vec<DeathRow>,
}

/// The server at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateRow {
    /// The figures are of a whole machine, by its exporter's URL; null: of the server's processes.
    pub machine: Option<String>,
    pub listeners: Vec<ProcessRow>,
    /// How many; those that end are named.
    pub workers: u64,
    pub threads: u64,
    pub descriptors: u64,
    pub memory_bytes: u64,
    /// Spent so far.
    pub cpu_s: f64,
    /// Its connections by state.
    pub sockets: BTreeMap<String, u64>,
    pub accept_queue: u64,
    pub accept_queue_max: u64,
    pub half_open: u64,
    /// Since the machine's start, of all its servers.
    pub listen_overflows: u64,
    pub syn_cookies: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRow {
    pub pid: u32,
    /// In clock ticks since the machine's start.
    pub started: u64,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeathRow {
    pub process: ProcessRow,
    /// The server itself, and not one of its workers.
    pub whole: bool,
    /// `signal 11 (SIGSEGV), core dumped`.
    pub how: String,
}

impl ServerRow {
    pub(super) fn of(seen: &ServerSeen) -> Option<ServerRow> {
        let (first, last) = (seen.rows.first()?, seen.rows.last()?);
        Some(ServerRow {
            before: StateRow::of(&first.state),
            after: StateRow::of(&last.state),
            deaths: seen.deaths.iter().map(DeathRow::of).collect(),
        })
    }
}

impl ServerCaseRow {
    pub(super) fn of(seen: &Meanwhile) -> ServerCaseRow {
        ServerCaseRow {
            after: StateRow::of(&seen.after),
            deaths: seen.deaths.iter().map(DeathRow::of).collect(),
        }
    }
}

impl StateRow {
    fn of(state: &ServerState) -> StateRow {
        let sockets = state.sockets.iter().map(|(name, count)| ((*name).to_owned(), *count));
        StateRow {
            machine: Some(&state.machine).filter(|name| !name.is_empty()).cloned(),
            listeners: state.listeners.iter().map(ProcessRow::of).collect(),
            workers: state.workers.len() as u64,
            threads: state.threads,
            descriptors: state.descriptors,
            memory_bytes: state.memory_bytes,
            cpu_s: state.cpu.as_secs_f64(),
            sockets: sockets.collect(),
            accept_queue: state.accept_queue,
            accept_queue_max: state.accept_queue_max,
            half_open: state.half_open,
            listen_overflows: state.overflows,
            syn_cookies: state.cookies,
        }
    }
}

impl ProcessRow {
    fn of(process: &sample::Process) -> ProcessRow {
        ProcessRow { pid: process.pid, started: process.started, name: process.name.clone() }
    }
}

impl DeathRow {
    fn of(death: &Death) -> DeathRow {
        let process = ProcessRow::of(&death.process);
        DeathRow { process, whole: death.whole, how: death.how.to_string() }
    }
}
