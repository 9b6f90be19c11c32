//! The objectives of a run as a suite of build servers: a case per objective.

use crate::page;
use crate::page::junit::{CaseEnding, TestCase, TestSuite};
use crate::{RunRecord, SloRecord, words};
use units::{Nanos, show};

/// Renders the objectives as JUnit XML, with a line feed at its end. An undecided objective is a
/// skipped case.
pub fn junit(report: &RunRecord) -> String {
    let case = |result: &SloRecord| TestCase {
        name: result.objective.text.clone(),
        class: report.name.clone(),
        elapsed_s: None,
        ending: ending(result),
    };
    page::junit::junit(&TestSuite {
        names: ["loadstone run".to_owned(), report.name.clone()],
        started: words::timestamp(report.started_unix_s),
        elapsed_s: report.elapsed_s,
        properties: vec![
            ("target", report.target.clone()),
            ("server", report.server.sentence.clone()),
            ("measurement", report.verdict.state.id().to_owned()),
        ],
        cases: report.slo.iter().map(case).collect(),
    })
}

fn ending(result: &SloRecord) -> CaseEnding {
    let measured = format!("{}: measured {}", result.objective.text, result.measured_text());
    match (result.undecided, result.met) {
        (true, _) => CaseEnding::Skipped(format!("undecided: {measured}{}", without_lag(result))),
        (false, true) => CaseEnding::Noted(measured),
        (false, false) => CaseEnding::Failed {
            kind: "objective".to_owned(),
            message: measured,
            account: String::new(),
        },
    }
}

/// Returns the figure that a client without delay might have measured.
fn without_lag(result: &SloRecord) -> String {
    result.figure_without_lag.map_or_else(String::new, |seconds| {
        let shown = show::duration(Nanos::from_secs_f64(seconds));
        format!(", {shown} without client delay")
    })
}
