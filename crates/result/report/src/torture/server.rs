//! The server during the torture run: what its own machine showed before the first case, after
//! cases with changes, and at the end.

use super::words;
use crate::section::chart::{
    AxisUnit, Chart, Dash, Dots, Horizontal, Line, POINTS_MAX, Tone, Values,
};
use crate::section::{
    Block, DataTable, Document, Forms, Voice, aligned, placed, text_block, with_lead,
};
use crate::words::counted;
use record::torture::{
    CaseRecord, DeathRecord, MomentRecord, ServerCaseRecord, ServerRecord, StateRecord,
    TortureRecord,
};
use units::{Nanos, show};

/// Maximum number of cases with a row.
const ROWS_MAX: usize = 30;
/// A change is reported from this on: relative and absolute.
const CHANGED: f64 = 0.2;
const DESCRIPTORS_CHANGED: u64 = 8;
const MEMORY_CHANGED: u64 = 4 << 20;
const THREADS_CHANGED: u64 = 2;
const MEBIBYTE: f64 = 1_048_576.0;

/// Adds nothing if the server was not watched.
pub(super) fn server(document: &mut Document, record: &TortureRecord) {
    let Some(server) = &record.server else { return };
    let forms = Forms::LONG | Forms::PAGE;
    let processes = with_lead("  ", Voice::Plain, head(server));
    document.add(forms, [placed("server", "The server during the torture"), processes]);
    document.add(Forms::PAGE, charts(&server.series).into_iter().map(Block::from));
    let heads = ["", "memory", "descriptors", "threads", "connections", "CPU"];
    document.add(forms, [Block::Table(DataTable::new(heads).with(rows(record, server)))]);
    let note = "Cases without changes have no row. CPU is the CPU time during the case; the last \
        row is the total of all cases.";
    document.add(Forms::PAGE, [text_block(Voice::Note, note)]);
    let events = events(record);
    if !events.is_empty() {
        let rows = events.into_iter().map(|(case, text)| (format!("{case}  "), text));
        document.add(forms, [aligned(2, 0, rows)]);
    }
}

fn cells(name: String, state: &StateRecord, cpu: Option<Nanos>) -> Vec<String> {
    vec![
        name,
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

fn needs_row(before: &StateRecord, seen: &ServerCaseRecord) -> bool {
    let after = &seen.after;
    seen.deaths.iter().any(DeathRecord::is_loss)
        || changed(before.descriptors, after.descriptors, DESCRIPTORS_CHANGED)
        || changed(before.memory_bytes, after.memory_bytes, MEMORY_CHANGED)
        || changed(before.threads, after.threads, THREADS_CHANGED)
        || changed(before.connections(), after.connections(), DESCRIPTORS_CHANGED)
}

/// Returns its name: `nginx (pid 71)`.
fn processes(state: &StateRecord) -> String {
    if let Some(machine) = &state.machine {
        return format!("the machine of {}", words::safe(machine));
    }
    let all: Vec<String> =
        state.listeners.iter().map(|one| words::safe(&one.to_string())).collect();
    if all.is_empty() { "no process listens".to_owned() } else { all.join(", ") }
}

/// Describes the server in a sentence.
fn head(server: &ServerRecord) -> String {
    let workers = match server.after.workers {
        0 => String::new(),
        n => format!(" with {}", counted(n, "worker")),
    };
    match (processes(&server.before), processes(&server.after)) {
        (before, after) if before == after => format!("{after}{workers}."),
        (before, after) => format!("At the start {before}; at the end {after}{workers}."),
    }
}

/// Returns each case in which the server was watched, with the state before it; if an earlier
/// version did not record that, with the state after the previous case.
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

/// Returns a row for each change; CPU is the time spent in the case, or in all cases.
fn rows(record: &TortureRecord, server: &ServerRecord) -> Vec<Vec<String>> {
    let mut rows = vec![cells("before the cases".to_owned(), &server.before, None)];
    let changed = observed(record).into_iter().filter_map(|(case, before, seen)| {
        let spent = seen.after.cpu_since(before);
        let row = || cells(format!("after {}", case.id), &seen.after, spent);
        needs_row(before, seen).then(row)
    });
    rows.extend(changed.take(ROWS_MAX));
    let spent = server.after.cpu_since(&server.before);
    rows.push(cells("at the end".to_owned(), &server.after, spent));
    rows
}

/// Returns exits of processes, and connections left open, one sentence each with its case.
fn events(record: &TortureRecord) -> Vec<(String, String)> {
    let early = record.server.iter().flat_map(|seen| grouped(&seen.deaths));
    let mut all: Vec<(String, String)> =
        early.map(|text| ("before the cases".to_owned(), text)).collect();
    for (case, before, seen) in observed(record) {
        all.extend(grouped(&seen.deaths).into_iter().map(|text| (case.id.clone(), text)));
        all.extend(
            unclosed_connections(case, before, &seen.after).map(|text| (case.id.clone(), text)),
        );
    }
    all.extend(renewed(record).map(|text| ("workers".to_owned(), text)));
    all
}

/// Describes normally exited workers over all cases.
fn renewed(record: &TortureRecord) -> Option<String> {
    let seen = record.cases.iter().filter_map(|case| case.server.as_ref());
    let counts = seen.map(|seen| seen.deaths.iter().filter(|death| !death.is_loss()).count());
    let counts: Vec<u64> = counts.filter(|count| *count > 0).map(|count| count as u64).collect();
    let all: u64 = counts.iter().sum();
    let cases = counted(counts.len() as u64, "case");
    (all > 0).then(|| format!("{} exited normally during {cases}", show::count(all)))
}

/// Groups exits of the same kind, without normal exits of workers.
fn grouped(deaths: &[DeathRecord]) -> Vec<String> {
    let lost: Vec<sample::Death> =
        deaths.iter().filter(|death| death.is_loss()).map(DeathRecord::death).collect();
    let describe = |(death, count): (&sample::Death, u64)| match count {
        1 => words::safe(&death.to_string()),
        n => format!("{}; {n} times in total", words::safe(&death.to_string())),
    };
    sample::together(&lost).into_iter().map(describe).collect()
}

/// Returns the number of connections closed by the clients but not by the server.
fn unclosed_connections(
    case: &CaseRecord,
    before: &StateRecord,
    after: &StateRecord,
) -> Option<String> {
    let count = |state: &StateRecord| state.sockets.get("close-wait").copied().unwrap_or(0);
    let more = count(after).saturating_sub(count(before));
    (more >= DESCRIPTORS_CHANGED && case.skipped.is_none()).then(|| {
        let more = show::count(more);
        format!("{more} more connections closed by the client but not by the server (close-wait)")
    })
}

/// Returns two charts over the run; none for fewer than two samples.
fn charts(series: &[MomentRecord]) -> Vec<Chart> {
    let step = series.len().div_ceil(POINTS_MAX).max(1);
    let rows: Vec<&MomentRecord> = series.iter().step_by(step).collect();
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Vec::new() };
    let (low, high) = (first.at_s, last.at_s);
    if rows.len() < 2 || high <= low {
        return Vec::new();
    }
    let x = Horizontal { name: "time", unit: AxisUnit::Time, log: false, low, high };
    let values =
        |of: fn(&MomentRecord) -> f64| -> Values { rows.iter().map(|row| Some(of(row))).collect() };
    let chart = |id: &str, title: &str, lines: Vec<Line>| Chart {
        words: format!("{title} over the time of the run"),
        lines,
        ..Chart::new(id, title, x, AxisUnit::Count)
            .with_places(rows.iter().map(|row| row.at_s).collect())
    };
    let memory = values(|row| row.memory_bytes as f64 / MEBIBYTE);
    let memory = vec![Line::new("in use", Tone::Blue, memory).filled().dotted(Dots::Joined)];
    let open = Line::new("descriptors", Tone::Blue, values(|row| row.descriptors as f64));
    let threads = Line::new("threads", Tone::Orange, values(|row| row.threads as f64));
    let held = vec![open.dotted(Dots::Joined), threads.dashed(Dash::Long)];
    vec![
        chart("server-memory", "Memory of the server, in MiB", memory),
        chart("server-held", "Descriptors and threads of the server", held),
    ]
}
