//! What good users felt whose load went on beside the cases: a row for each case that they felt.

use super::Report;
use crate::RunReport;
use crate::text::layout::Page;
use serde::{Deserialize, Serialize};
use torture::beside::{CaseFelt, Felt, Interval};
use units::{Nanos, show};

/// A load that went on beside a torture.
#[derive(Clone, Debug)]
pub struct Beside {
    pub felt: Felt,
    /// Its own measurement, from before the first case to after the last.
    pub run: RunReport,
}

/// Heads of the table, after the case's own.
pub(crate) const HEADS: [&str; 7] = ["due", "answered", "lost", "p50", "p99", "max", "back after"];

impl Beside {
    /// What the load was, and what it met before the first case.
    pub(crate) fn head(&self) -> String {
        let (run, total) = (&self.run, &self.run.measurement.total.counts);
        let base = &self.felt.base;
        let mut said = format!(
            "{} on {}: {} calls, {} of them answered; the measurement is {}. Before the first case: \
             {} calls, {} lost, p50 {}, p99 {}.",
            crate::words::load(&run.plan),
            run.name,
            show::count(total.due),
            show::count(total.succeeded),
            run.verdict.state.id(),
            show::count(base.due),
            show::count(base.lost),
            show::duration(base.p50),
            show::duration(base.p99),
        );
        if self.felt.left_out > 0 {
            let many = show::count(self.felt.left_out);
            said.push_str(&format!(" The last {many} calls belong to no case here: too many."));
        }
        said
    }

    /// Cases that the load felt, with a cell for each of [`HEADS`].
    pub(crate) fn rows(&self) -> Vec<(&str, Vec<String>)> {
        let felt = self.felt.cases.iter().filter(|case| self.felt.is_felt(case));
        felt.map(|case| (case.case.as_str(), cells(case))).collect()
    }

    /// How many cases it did not feel, in a sentence.
    pub(crate) fn unfelt(&self) -> Option<String> {
        let cases = &self.felt.cases;
        let met = |case: &&CaseFelt| case.during.due > 0 && !self.felt.is_felt(case);
        let unfelt = cases.iter().filter(met).count() as u64;
        let empty = cases.iter().filter(|case| case.during.due == 0).count() as u64;
        let mut parts = Vec::new();
        if unfelt > 0 {
            parts.push(format!("not felt: {}", crate::words::counted(unfelt, "case")));
        }
        if empty > 0 {
            let many = crate::words::counted(empty, "case");
            parts.push(format!("too short for any call to fall due: {many}"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn cells(case: &CaseFelt) -> Vec<String> {
    let during = &case.during;
    let time = |span: Nanos| if during.answered() == 0 { "-".into() } else { show::duration(span) };
    vec![
        show::count(during.due),
        show::count(during.answered()),
        show::share(during.lost_share()),
        time(during.p50),
        time(during.p99),
        time(during.max),
        match case.recovery {
            Some(Nanos::ZERO) => "at once".to_owned(),
            Some(span) => show::duration(span),
            None => "never".to_owned(),
        },
    ]
}

/// The section of the text.
pub(super) fn text(page: &mut Page, report: &Report) {
    let Some(beside) = &report.beside else { return };
    page.heading("Good users beside it");
    page.wrapped("  ", &super::words::safe(&beside.head()));
    let rows = beside.rows();
    if !rows.is_empty() {
        let mut table = vec![std::iter::once("").chain(HEADS).map(str::to_owned).collect()];
        for (case, cells) in rows {
            table.push(std::iter::once(case.to_owned()).chain(cells).collect());
        }
        page.table(&table);
    }
    if let Some(said) = beside.unfelt() {
        page.wrapped("  ", &said);
    }
}

/// `beside` of the document. Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BesideRow {
    /// Calls that fell due before the first case.
    pub base: IntervalRow,
    pub cases: Vec<BesideCase>,
    pub left_out: u64,
    /// The load's own measurement: `loadstone.run/1`.
    pub run: serde_json::Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BesideCase {
    pub case: String,
    /// It lost more, or was slower, than before the first case.
    pub felt: bool,
    #[serde(flatten)]
    pub during: IntervalRow,
    /// Until the first second that was as before.
    pub recovery_s: super::document::Recovery,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    pub due: u64,
    pub answered: u64,
    pub lost: u64,
    pub p50_s: f64,
    pub p99_s: f64,
    pub max_s: f64,
}

impl IntervalRow {
    fn of(found: &Interval) -> IntervalRow {
        IntervalRow {
            due: found.due,
            answered: found.answered(),
            lost: found.lost,
            p50_s: found.p50.as_secs_f64(),
            p99_s: found.p99.as_secs_f64(),
            max_s: found.max.as_secs_f64(),
        }
    }
}

impl BesideRow {
    pub(super) fn of(beside: &Beside) -> BesideRow {
        let case = |one: &CaseFelt| BesideCase {
            case: one.case.clone(),
            felt: beside.felt.is_felt(one),
            during: IntervalRow::of(&one.during),
            recovery_s: super::document::Recovery::of(one.recovery),
        };
        BesideRow {
            base: IntervalRow::of(&beside.felt.base),
            cases: beside.felt.cases.iter().map(case).collect(),
            left_out: beside.felt.left_out,
            run: crate::json::value(&beside.run),
        }
    }
}
