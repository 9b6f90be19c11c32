//! The XML that JUnit's tools write and build servers read: one suite, a case per step.

use crate::words::timestamp;
use crate::xml::escaped;
use plan::check::{CheckResult, Difference, State, StepResult};

/// The result as XML, with a line feed at its end.
pub fn junit(result: &CheckResult) -> String {
    let (_, failed, skipped) = result.counts();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let name = escaped(&result.name);
    let totals = format!(
        "tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{:.6}\"",
        result.steps.len(),
        result.took.as_secs_f64()
    );
    // ISO 8601 without a zone, as the tools expect it
    let started = timestamp(result.started_unix_s).replace(" UTC", "").replace(' ', "T");
    out.push_str(&format!("<testsuites name=\"{name}\" {totals}>\n"));
    out.push_str(&format!(
        "  <testsuite name=\"{name}\" {totals} timestamp=\"{}\">\n",
        escaped(&started)
    ));
    out.push_str(&format!(
        "    <properties>\n      <property name=\"base\" value=\"{}\"/>\n    </properties>\n",
        escaped(&result.base)
    ));
    for step in &result.steps {
        case(&mut out, &result.name, step);
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn case(out: &mut String, suite: &str, step: &StepResult) {
    let head = format!(
        "    <testcase name=\"{}\" classname=\"{}\" time=\"{:.6}\"",
        escaped(&step.name),
        escaped(suite),
        step.took.as_secs_f64()
    );
    match &step.state {
        State::Passed => out.push_str(&format!("{head}/>\n")),
        State::Skipped(why) => out.push_str(&format!(
            "{head}>\n      <skipped message=\"{}\"/>\n    </testcase>\n",
            escaped(why)
        )),
        State::Failed(difference) => {
            let message = format!(
                "{}: expected {}, got {}",
                difference.what, difference.expected, difference.got
            );
            out.push_str(
                &format!(
                    "{head}>\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                    escaped(&difference.what),
                    escaped(&message),
                    escaped(&account(step, difference))
                ),
            );
        }
    }
}

/// What was asked, the difference, and the state of every member.
fn account(step: &StepResult, difference: &Difference) -> String {
    let mut text = format!("line {} of the plan", step.line);
    if !step.asked.is_empty() {
        text.push_str(&format!("\n{}", step.asked));
    }
    let Difference { what, expected, got } = difference;
    text.push_str(&format!("\n{what}\n  expected {expected}\n  got      {got}"));
    for member in &step.members {
        let state = match &member.state {
            State::Passed => "passed".to_owned(),
            State::Skipped(why) => why.clone(),
            State::Failed(wrong) => {
                format!("{}: expected {}, got {}", wrong.what, wrong.expected, wrong.got)
            }
        };
        text.push_str(&format!("\n{}: {state}", member.name));
    }
    text
}
