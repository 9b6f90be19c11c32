//! The XML that JUnit's tools write and build servers read: one suite, a case per step.

use crate::xml::escaped;
use record::check::{CheckRecord, Mismatch, StepRecord};

/// The record as XML, with a line feed at its end.
pub fn junit(record: &CheckRecord) -> String {
    let counts = record.counts;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let name = escaped(&record.name);
    let totals = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.6}\"",
        counts.steps, counts.failed, counts.skipped, record.elapsed_s
    );
    // ISO 8601 without a zone, as the tools expect it
    let started = record.started.replace(" UTC", "").replace(' ', "T");
    out.push_str(&format!("<testsuites name=\"{name}\" {totals}>\n"));
    out.push_str(&format!(
        "  <testsuite name=\"{name}\" {totals} timestamp=\"{}\">\n",
        escaped(&started)
    ));
    out.push_str(&format!(
        "    <properties>\n      <property name=\"base\" value=\"{}\"/>\n    </properties>\n",
        escaped(&record.base)
    ));
    for step in &record.steps {
        case(&mut out, &record.name, step);
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn case(out: &mut String, suite: &str, step: &StepRecord) {
    let head = format!(
        "    <testcase name=\"{}\" classname=\"{}\" time=\"{:.6}\"",
        escaped(&step.name),
        escaped(suite),
        step.elapsed_s
    );
    let inner = match (&step.difference, &step.reason) {
        (Some(difference), _) => format!(
            "<failure type=\"{}\" message=\"{}\">{}</failure>",
            escaped(&difference.what),
            escaped(&sentence(difference)),
            escaped(&account(step, difference))
        ),
        (None, Some(why)) => format!("<skipped message=\"{}\"/>", escaped(why)),
        (None, None) => return out.push_str(&format!("{head}/>\n")),
    };
    out.push_str(&format!("{head}>\n      {inner}\n    </testcase>\n"));
}

fn sentence(difference: &Mismatch) -> String {
    let Mismatch { what, expected, got } = difference;
    format!("{what}: expected {expected}, got {got}")
}

/// What was asked, the difference, and the state of every member.
fn account(step: &StepRecord, difference: &Mismatch) -> String {
    let mut text = format!("line {} of the plan", step.line);
    if !step.asked.is_empty() {
        text.push_str(&format!("\n{}", step.asked));
    }
    let Mismatch { what, expected, got } = difference;
    text.push_str(&format!("\n{what}\n  expected {expected}\n  got      {got}"));
    for member in &step.members {
        let state = match (&member.difference, &member.reason) {
            (Some(difference), _) => sentence(difference),
            (None, Some(why)) => why.clone(),
            (None, None) => "passed".to_owned(),
        };
        text.push_str(&format!("\n{}: {state}", member.name));
    }
    text
}
