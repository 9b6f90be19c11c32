//! The server during the torture: what its own machine showed before the first case, after the cases
//! in which that changed, and at the end.

use super::words;
use crate::page::text::layout::Page;
use crate::words::counted;
use record::torture::{
    CaseRecord, DeathRecord, ServerCaseRecord, ServerRecord, StateRecord, TortureRecord,
};
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

fn cells(state: &StateRecord, cpu: Option<Nanos>) -> Vec<String> {
    vec![
        show::bytes(state.memory_bytes),
        show::count(state.descriptors),
        show::count(state.threads),
        match state.machine {
            None => show::count(state.connections()),
            Some(_) => "-".to_owned(),
        },
        cpu.map_or_else(|| "-".to_owned(), show::duration),
    ]
}

fn changed(before: u64, after: u64, least: u64) -> bool {
    let by = before.abs_diff(after);
    by >= least && by as f64 > before as f64 * CHANGED
}

fn is_worth_a_row(before: &StateRecord, seen: &ServerCaseRecord) -> bool {
    let after = &seen.after;
    seen.deaths.iter().any(DeathRecord::is_loss)
        || changed(before.descriptors, after.descriptors, DESCRIPTORS_CHANGED)
        || changed(before.memory_bytes, after.memory_bytes, MEMORY_CHANGED)
        || changed(before.threads, after.threads, THREADS_CHANGED)
        || changed(before.connections(), after.connections(), DESCRIPTORS_CHANGED)
}

/// Who it is: `nginx (pid 71)`.
fn who(state: &StateRecord) -> String {
    if let Some(machine) = &state.machine {
        return format!("the machine of {}", words::safe(machine));
    }
    let all: Vec<String> =
        state.listeners.iter().map(|one| words::safe(&one.to_string())).collect();
    if all.is_empty() { "no process listens".to_owned() } else { all.join(", ") }
}

/// Which server it was, in a sentence.
pub(crate) fn head(server: &ServerRecord) -> String {
    let workers = match server.after.workers {
        0 => String::new(),
        n => format!(" with {}", counted(n, "worker")),
    };
    match (who(&server.before), who(&server.after)) {
        (before, after) if before == after => format!("{after}{workers}."),
        (before, after) => format!("At first {before}; at the end {after}{workers}."),
    }
}

/// Each case in which the server was observed, with the state before it; where an earlier version did not write
/// that, with the state after the last case before it.
fn observed(record: &TortureRecord) -> Vec<(&CaseRecord, &StateRecord, &ServerCaseRecord)> {
    let mut last = record.server.as_ref().map(|server| &server.before);
    let mut all = Vec::new();
    for case in &record.cases {
        let Some(seen) = &case.server else { continue };
        let before = seen.before.as_ref().or(last).unwrap_or(&seen.after);
        all.push((case, before, seen));
        last = Some(&seen.after);
    }
    all
}

/// A row for each moment at which something changed: its name, and a cell for each of [`HEADS`]; CPU
/// is the time that was spent in the case, or in all of them.
pub(crate) fn rows(record: &TortureRecord) -> Vec<(String, Vec<String>)> {
    let Some(server) = &record.server else { return Vec::new() };
    let mut rows = vec![("before the cases".to_owned(), cells(&server.before, None))];
    let told = observed(record).into_iter().filter_map(|(case, before, seen)| {
        let spent = seen.after.cpu_since(before);
        let row = || (format!("after {}", case.id), cells(&seen.after, spent));
        is_worth_a_row(before, seen).then(row)
    });
    rows.extend(told.take(ROWS_MAX));
    let spent = server.after.cpu_since(&server.before);
    rows.push(("at the end".to_owned(), cells(&server.after, spent)));
    rows
}

/// Ends of processes, and connections that were left, a sentence each with the case it belongs to.
pub(crate) fn events(record: &TortureRecord) -> Vec<(String, String)> {
    let early = record.server.iter().flat_map(|seen| grouped(&seen.deaths));
    let mut all: Vec<(String, String)> =
        early.map(|said| ("before the cases".to_owned(), said)).collect();
    for (case, before, seen) in observed(record) {
        all.extend(grouped(&seen.deaths).into_iter().map(|said| (case.id.clone(), said)));
        all.extend(left(case, before, &seen.after).map(|said| (case.id.clone(), said)));
    }
    all.extend(renewed(record).map(|said| ("workers".to_owned(), said)));
    all
}

/// Workers that left in order, over all cases.
fn renewed(record: &TortureRecord) -> Option<String> {
    let seen = record.cases.iter().filter_map(|case| case.server.as_ref());
    let counts = seen.map(|seen| seen.deaths.iter().filter(|death| !death.is_loss()).count());
    let counts: Vec<u64> = counts.filter(|count| *count > 0).map(|count| count as u64).collect();
    let all: u64 = counts.iter().sum();
    let cases = counted(counts.len() as u64, "case");
    (all > 0).then(|| format!("{} ended in order in the course of {cases}", show::count(all)))
}

/// Ends of the same way together, those of workers in order left out.
fn grouped(deaths: &[DeathRecord]) -> Vec<String> {
    let lost: Vec<sample::Death> =
        deaths.iter().filter(|death| death.is_loss()).map(DeathRecord::death).collect();
    let said = |(death, count): (&sample::Death, u64)| match count {
        1 => words::safe(&death.to_string()),
        n => format!("{}; {n} times in all", words::safe(&death.to_string())),
    };
    sample::together(&lost).into_iter().map(said).collect()
}

/// Connections that the clients have closed and the server has not.
fn left(case: &CaseRecord, before: &StateRecord, after: &StateRecord) -> Option<String> {
    let count = |state: &StateRecord| state.sockets.get("close-wait").copied().unwrap_or(0);
    let more = count(after).saturating_sub(count(before));
    (more >= DESCRIPTORS_CHANGED && case.skipped.is_none()).then(|| {
        let more = show::count(more);
        format!("{more} more connections that the clients have closed and the server has not (close-wait)")
    })
}

/// The section of the text.
pub(super) fn text(page: &mut Page, record: &TortureRecord) {
    let Some(server) = &record.server else { return };
    page.heading("The server during the torture");
    page.wrapped("  ", &head(server));
    let mut table = vec![std::iter::once("").chain(HEADS).map(str::to_owned).collect::<Vec<_>>()];
    for (name, cells) in rows(record) {
        table.push(std::iter::once(name).chain(cells).collect());
    }
    page.table(&table);
    for (case, said) in events(record) {
        page.wrapped(&format!("  {case}  "), &said);
    }
}
