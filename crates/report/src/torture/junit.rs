//! The XML that JUnit's tools write and build servers read: one suite, a case per case.

use super::words;
use crate::xml::escaped;
use record::torture::is_untested;
use record::torture::{BaselineRecord, CaseRecord, ExchangeRecord, Torture, TortureRecord};

/// The record as XML, with a line feed at its end.
pub fn junit(torture: &Torture) -> String {
    let record = &torture.record;
    let untested = record.cases.iter().filter(|case| is_untested(case.outcome)).count() as u64;
    // what is waived is listed and counts for nothing
    let (failed, skipped) = (record.findings, untested + record.waived_count());
    let totals = format!(
        "tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{:.6}\"",
        record.cases.len(),
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
    record.cases.iter().for_each(|case| row(&mut out, record, case));
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
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
