//! The XML that JUnit's tools write and build servers read: one suite, a case per case.

use super::words;
use crate::page::junit::escaped;
use record::torture::{BaselineRecord, CaseRecord, ExchangeRecord, TortureRecord};

/// The record as XML, with a line feed at its end. A finding is a failure if it is grave enough to
/// fail the run; another passes, with what was found beside it.
pub fn junit(record: &TortureRecord) -> String {
    let untested = record.cases.iter().filter(|case| !case.outcome.is_tested()).count() as u64;
    // what is waived is listed and counts for nothing
    let failed = record.cases.iter().filter(|case| case.fails(record.fail_on)).count();
    let skipped = untested + record.waived_count();
    let error = nothing_tested(record);
    let totals = format!(
        "tests=\"{}\" failures=\"{failed}\" errors=\"{}\" skipped=\"{skipped}\" time=\"{:.6}\"",
        record.cases.len() + usize::from(error.is_some()),
        u8::from(error.is_some()),
        record.elapsed_s
    );
    // ISO 8601 without a zone, as the tools expect it
    let started = record.started.replace(" UTC", "").replace(' ', "T");
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str(&format!("<testsuites name=\"torture\" {totals}>\n"));
    out.push_str(&format!(
        "  <testsuite name=\"{}\" {totals} timestamp=\"{}\">\n",
        escaped(&record.target),
        escaped(&started)
    ));
    if let Some(why) = error {
        out.push_str("    <testcase name=\"the server is tested\" classname=\"torture\">\n");
        out.push_str(&format!("      <error message=\"{}\"/>\n    </testcase>\n", escaped(&why)));
    }
    record.cases.iter().for_each(|case| row(&mut out, record, case));
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// Why no case was carried out, where none was: a build server must not show that in green.
fn nothing_tested(record: &TortureRecord) -> Option<String> {
    if record.is_conclusive() {
        return None;
    }
    let why = record.ended_early.clone().or_else(|| words::untested(record.cases.first()?));
    Some(why.unwrap_or_else(|| "no case was carried out".to_owned()))
}

fn row(out: &mut String, record: &TortureRecord, case: &CaseRecord) {
    let took = case.elapsed_s;
    let name = escaped(&format!("{} {}", case.id, case.title));
    let head = format!("    <testcase name=\"{name}\" classname=\"torture\" time=\"{took:.6}\"");
    let inner = match case.outcome {
        bad if bad.is_finding()
            && let Some(waived) = record.waiver_of(&case.id) =>
        {
            let waiver = &waived.waiver;
            let why = format!("waived until {}: {}; {}", waiver.until, waiver.reason, bad.id());
            format!("<skipped message=\"{}\"/>", escaped(&why))
        }
        bad if bad.is_finding() => {
            let id = case.outcome.id();
            let account = escaped(&account(case, record.baseline.as_ref()));
            match (case.fails(record.fail_on), case.severity) {
                (false, Some(severity)) => {
                    format!("<system-out>{id}, {}: {account}</system-out>", severity.id())
                }
                _ => format!("<failure type=\"{id}\" message=\"{account}\"/>"),
            }
        }
        outcome if !outcome.is_tested() => {
            let why = words::untested(case).unwrap_or_default();
            format!("<skipped message=\"{}\"/>", escaped(&why))
        }
        _ => return out.push_str(&format!("{head}/>\n")),
    };
    out.push_str(&format!("{head}>\n      {inner}\n    </testcase>\n"));
}

/// What came back where it should not have, and what well-behaved clients observed.
fn account(case: &CaseRecord, base: Option<&BaselineRecord>) -> String {
    let bad = case.exchanges.iter().filter(|exchange| exchange.outcome == case.outcome);
    let one = |exchange: &ExchangeRecord| {
        format!("{}: {}; expected {}", exchange.name, exchange.seen, exchange.expected)
    };
    let mut parts: Vec<String> = bad.map(one).collect();
    parts.extend(case.notes.iter().cloned());
    let impact = case.health.iter().flat_map(|health| words::impact(health, base));
    parts.extend(impact.map(|(label, said)| format!("{label}: {said}")));
    parts.extend(case.recovery_s.map(words::afterwards));
    parts.join("\n")
}
