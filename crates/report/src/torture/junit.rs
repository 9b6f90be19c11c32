//! The XML that JUnit's tools write and build servers read: one suite, a case per case.

use super::{Report, words};
use crate::words::timestamp;
use crate::xml::escaped;
use torture::judge::Outcome;
use torture::result::{Baseline, CaseResult};

/// The report as XML, with a line feed at its end.
pub fn junit(report: &Report) -> String {
    let result = &report.result;
    let untested = result.cases.iter().filter(|case| is_untested(case.outcome)).count() as u64;
    // what is waived is there to be read and counts for nothing
    let (failed, skipped) = (report.findings().len(), untested + report.waived_count());
    let totals = format!(
        "tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{:.6}\"",
        result.cases.len(),
        result.took.as_secs_f64()
    );
    // ISO 8601 without a zone, as the tools expect it
    let started = timestamp(report.started_unix_s).replace(" UTC", "").replace(' ', "T");
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str(&format!("<testsuites name=\"torture\" {totals}>\n"));
    out.push_str(&format!(
        "  <testsuite name=\"{}\" {totals} timestamp=\"{}\">\n",
        escaped(&report.target),
        escaped(&started)
    ));
    result.cases.iter().for_each(|case| row(&mut out, report, case));
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn row(out: &mut String, report: &Report, case: &CaseResult) {
    let took = case.took.as_secs_f64();
    let name = escaped(&format!("{} {}", case.case.id, case.case.title));
    let head = format!("    <testcase name=\"{name}\" classname=\"torture\" time=\"{took:.6}\"");
    let inner = match case.outcome {
        bad if bad.is_finding()
            && let Some(waived) = report.waived(&case.case.id) =>
        {
            let waiver = &waived.waiver;
            let why = format!("waived until {}: {}; {}", waiver.until, waiver.reason, bad.id());
            format!("<skipped message=\"{}\"/>", escaped(&why))
        }
        bad if bad.is_finding() => {
            let id = case.outcome.id();
            let account = escaped(&account(case, report.result.baseline.as_ref()));
            format!("<failure type=\"{id}\" message=\"{account}\"/>")
        }
        outcome if is_untested(outcome) => {
            let why = words::untested(case).unwrap_or_default();
            format!("<skipped message=\"{}\"/>", escaped(&why))
        }
        _ => return out.push_str(&format!("{head}/>\n")),
    };
    out.push_str(&format!("{head}>\n      {inner}\n    </testcase>\n"));
}

fn is_untested(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Skipped | Outcome::Inconclusive | Outcome::Unseen)
}

/// What came back where it should not have, and what polite clients felt.
fn account(case: &CaseResult, base: Option<&Baseline>) -> String {
    let bad = case.exchanges.iter().filter(|exchange| exchange.judgement.outcome == case.outcome);
    let one = |exchange: &torture::result::ExchangeResult| {
        let judgement = &exchange.judgement;
        format!("{}: {}; expected {}", exchange.name, judgement.seen, judgement.expected)
    };
    let mut parts: Vec<String> = bad.map(one).collect();
    parts.extend(case.notes.iter().cloned());
    let felt = case.health.iter().flat_map(|health| words::felt(health, base));
    parts.extend(felt.map(|(label, said)| format!("{label}: {said}")));
    parts.extend(case.recovery.map(words::afterwards));
    parts.join("\n")
}
