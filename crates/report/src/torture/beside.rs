//! What the background load observed: a row for each case that it suffered from.

use super::words;
use crate::page::text::layout::Page;
use crate::words::counted;
use record::torture::{LoadRecord, LoadedCase, TortureRecord};
use units::{Nanos, show};

/// Heads of the table, after the case's own.
pub(crate) const HEADS: [&str; 7] = ["due", "answered", "lost", "p50", "p99", "max", "recovery"];

/// What the load was, and what it observed before the first case.
pub(crate) fn head(load: &LoadRecord) -> String {
    let (run, base) = (&load.run, &load.base);
    let mut said = format!(
        "{} on {}: {} calls, {} of them answered; the measurement is {}. Before the first case: \
         {} calls, {} lost, p50 {}, p99 {}.",
        run.load,
        run.name,
        show::count(run.outcomes.due),
        show::count(run.outcomes.succeeded),
        run.verdict.state.id(),
        show::count(base.due),
        show::count(base.lost),
        time(base.p50_s),
        time(base.p99_s),
    );
    if load.left_out > 0 {
        let many = show::count(load.left_out);
        said.push_str(&format!(" Too many calls: the last {many} are assigned to no case."));
    }
    said
}

/// Cases that the load suffered from, with a cell for each of [`HEADS`].
pub(crate) fn rows(load: &LoadRecord) -> Vec<(&str, Vec<String>)> {
    let hit = load.cases.iter().filter(|case| case.felt);
    hit.map(|case| (case.case.as_str(), cells(case))).collect()
}

/// How many cases had no impact on it, in a sentence.
pub(crate) fn without_impact(load: &LoadRecord) -> Option<String> {
    let met = |case: &&LoadedCase| case.during.due > 0 && !case.felt;
    let none = load.cases.iter().filter(met).count() as u64;
    let empty = load.cases.iter().filter(|case| case.during.due == 0).count() as u64;
    let mut parts = Vec::new();
    if none > 0 {
        parts.push(format!("no impact: {}", counted(none, "case")));
    }
    if empty > 0 {
        parts.push(format!("too short for any call to fall due: {}", counted(empty, "case")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn time(seconds: f64) -> String {
    show::duration(Nanos::from_secs_f64(seconds))
}

fn cells(case: &LoadedCase) -> Vec<String> {
    let during = &case.during;
    let time = |seconds: f64| if during.answered == 0 { "-".into() } else { time(seconds) };
    vec![
        show::count(during.due),
        show::count(during.answered),
        show::share(during.lost_share()),
        time(during.p50_s),
        time(during.p99_s),
        time(during.max_s),
        words::recovery(case.recovery_s),
    ]
}

/// The section of the text.
pub(super) fn text(page: &mut Page, record: &TortureRecord) {
    let Some(load) = &record.beside else { return };
    page.heading("Background load");
    page.wrapped("  ", &words::safe(&head(load)));
    let rows = rows(load);
    if !rows.is_empty() {
        let mut table = vec![std::iter::once("").chain(HEADS).map(str::to_owned).collect()];
        for (case, cells) in rows {
            table.push(std::iter::once(case.to_owned()).chain(cells).collect());
        }
        page.table(&table);
    }
    if let Some(said) = without_impact(load) {
        page.wrapped("  ", &said);
    }
}
