//! Effect on the background load: a row for each case that affected it.

use super::words;
use crate::section::{Block, DataTable, Document, Forms, Voice, heading, with_lead};
use crate::words::{counted, seconds as time};
use record::torture::{LoadRecord, LoadedCase, TortureRecord};
use units::show;

pub(super) fn load(document: &mut Document, record: &TortureRecord) {
    let Some(load) = &record.beside else { return };
    let forms = Forms::LONG | Forms::PAGE;
    let what = with_lead("  ", Voice::Plain, words::safe(&head(load)));
    document.add(forms, [heading("Background load"), what]);
    let rows: Vec<Vec<String>> = load.cases.iter().filter(|case| case.felt).map(cells).collect();
    if !rows.is_empty() {
        let heads = ["", "due", "answered", "lost", "p50", "p99", "max", "recovery"];
        document.add(forms, [Block::Table(DataTable::new(heads).with(rows))]);
    }
    document.add(forms, without_impact(load).map(|text| with_lead("  ", Voice::Note, text)));
}

/// Describes the load, and its results before the first case.
fn head(load: &LoadRecord) -> String {
    let (run, base) = (&load.run, &load.base);
    let mut text = format!(
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
        text.push_str(&format!(" Too many calls: the last {many} are not assigned to a case."));
    }
    text
}

/// Returns how many cases had no effect on it, in a sentence.
fn without_impact(load: &LoadRecord) -> Option<String> {
    let met = |case: &&LoadedCase| case.during.due > 0 && !case.felt;
    let none = load.cases.iter().filter(met).count() as u64;
    let empty = load.cases.iter().filter(|case| case.during.due == 0).count() as u64;
    let mut parts = Vec::new();
    if none > 0 {
        parts.push(format!("no impact: {}", counted(none, "case")));
    }
    if empty > 0 {
        parts.push(format!("too short for any call to be due: {}", counted(empty, "case")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn cells(case: &LoadedCase) -> Vec<String> {
    let during = &case.during;
    let time = |seconds: f64| if during.answered == 0 { "-".into() } else { time(seconds) };
    vec![
        case.case.clone(),
        show::count(during.due),
        show::count(during.answered),
        show::share(during.lost_share()),
        time(during.p50_s),
        time(during.p99_s),
        time(during.max_s),
        words::recovery(case.recovery_s),
    ]
}
