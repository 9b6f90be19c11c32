//! Sentences on what users noticed on their journeys.

use crate::finished::RunReport;
use crate::words::{counted, printable};
use stats::{Hist, Noted};

/// Characters of an example.
const EXAMPLE_MAX: usize = 300;

/// A transaction: iterations of a journey, or of a block of steps.
#[derive(Clone, Debug)]
pub struct TransactionRow {
    pub name: String,
    pub count: u64,
    pub failed: u64,
    pub time: Hist,
}

/// In the order of the plan: journeys, then blocks. Empty where the plan has no journeys.
pub fn transactions(report: &RunReport) -> Vec<TransactionRow> {
    let Some(plan) = &report.plan.journeys else { return Vec::new() };
    let tallies = &report.measurement.total.journeys.transactions;
    let row = |(row, name): (usize, &str)| {
        let tally = tallies.get(row).cloned().unwrap_or_default();
        TransactionRow {
            name: name.to_owned(),
            count: tally.succeeded + tally.failed,
            failed: tally.failed,
            time: tally.time,
        }
    };
    plan.transactions().into_iter().enumerate().map(row).collect()
}

/// What is worth a sentence, by the name of its step or feeder.
pub fn notes(report: &RunReport) -> Vec<(String, String)> {
    let Some(plan) = &report.plan.journeys else { return Vec::new() };
    let tally = &report.measurement.total.journeys;
    let mut notes = Vec::new();
    let steps = plan.steps();
    for (row, (step, name)) in plan.captures().into_iter().enumerate() {
        let why = format!("capture {name} found nothing");
        notes.extend(noted(&tally.missed, row, step, &why));
    }
    for (row, step) in steps.iter().enumerate() {
        let step = step.name.as_str();
        notes.extend(noted(&tally.differed, row, step, "not as expected"));
        notes.extend(noted(&tally.skipped, row, step, "skipped"));
        let of = tally.met.get(row).copied().unwrap_or(0)
            + tally.unmet.get(row).map_or(0, |unmet| unmet.count);
        let why = format!("of {} the check was not met", counted(of, "response"));
        notes.extend(noted(&tally.unmet, row, step, &why));
        if let Some(count) = tally.refreshed.get(row).filter(|count| **count > 0) {
            notes.push((step.to_owned(), format!("logged in again {}", times(*count))));
        }
    }
    for (row, feeder) in plan.feeders.iter().enumerate() {
        if let Some(count) = tally.dry.get(row).filter(|count| **count > 0) {
            let text = format!("no row was left for {}", counted(*count, "user"));
            notes.push((format!("feeder {}", feeder.name), text));
        }
    }
    notes
}

fn noted(rows: &[Noted], row: usize, step: &str, why: &str) -> Option<(String, String)> {
    let noted = rows.get(row).filter(|noted| noted.count > 0)?;
    let example = noted.example.as_ref().map(|(_, text)| printable(text, EXAMPLE_MAX));
    let example = example.map_or(String::new(), |text| format!(": {text}"));
    Some((step.to_owned(), format!("{why} {}{example}", times(noted.count))))
}

fn times(count: u64) -> String {
    counted(count, "time")
}
