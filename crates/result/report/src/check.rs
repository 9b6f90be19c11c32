//! The record of a check, for people, for programs and for build servers: a tree of marks, JSON
//! (`loadstone.check/1`, described by `docs/schema/check.schema.json`) and JUnit's XML.

use crate::Style;
use crate::page;
use crate::page::junit::{CaseEnding, TestCase, TestSuite};
use crate::section::{Block, Document, Forms, MarkedStep, Voice, text_block};
use crate::words::{counted, safe, seconds};
use record::check::{CheckRecord, Mismatch, StepRecord, StepState};

/// Renders the record as JSON, indented, with a line feed at its end.
pub fn json(record: &CheckRecord) -> String {
    record::document::printed(record)
}

/// Renders the tree as text, with a line feed at its end. Quiet: only failures, and the last line.
pub fn text(record: &CheckRecord, style: Style) -> String {
    page::text::text(&document(record), style)
}

/// Renders the record as JUnit XML, with a line feed at its end.
pub fn junit(record: &CheckRecord) -> String {
    page::junit::junit(&suite(record))
}

fn document(record: &CheckRecord) -> Document {
    let mut document = Document::default();
    let name = safe(&format!("{} · {}", record.name, record.base));
    document.add(Forms::TEXT, [text_block(Voice::Plain, name), Block::Gap]);
    // without a connection no step ran, and "skipped" on each line would be useless
    let tried = record.unreachable.is_none();
    for (forms, all) in [(Forms::QUIET, false), (Forms::LONG, tried)] {
        let steps = tree(&record.steps, all);
        if !steps.is_empty() {
            document.add(forms, [Block::Steps(steps), Block::Gap]);
        }
    }
    document.add(Forms::TEXT, [text_block(Voice::Plain, summary(record))]);
    document
}

/// Renders the steps with their members; `all`: not only the failed ones.
fn tree(steps: &[StepRecord], all: bool) -> Vec<MarkedStep> {
    let shown = steps.iter().filter(|step| all || step.state == StepState::Failed);
    shown.map(|step| marked(step, all)).collect()
}

/// Renders a step, with its differences from the expectation.
fn marked(step: &StepRecord, all: bool) -> MarkedStep {
    let met = match step.state {
        StepState::Passed => Some(true),
        StepState::Failed => Some(false),
        StepState::Skipped => None,
    };
    let mut notes = Vec::new();
    notes.extend(step.reason.as_ref().map(|why| ("", safe(why))));
    if let Some(Mismatch { what, expected, got }) = &step.difference {
        let asked = Some(&step.asked).filter(|asked| !asked.is_empty());
        notes.extend(asked.map(|asked| ("", safe(asked))));
        notes.push(("", safe(what)));
        notes.extend([("  expected  ", safe(expected)), ("  got       ", safe(got))]);
    }
    MarkedStep {
        met,
        name: safe(&step.name),
        took: met.map_or_else(String::new, |_| seconds(step.elapsed_s)),
        notes,
        members: tree(&step.members, all),
    }
}

/// Returns one sentence about the whole check.
fn summary(record: &CheckRecord) -> String {
    let counts = record.counts;
    let (passed, failed) = (counts.passed, counts.failed);
    let steps = counted(counts.steps, "step");
    let mut text = format!("{steps}: {passed} passed, {failed} failed");
    if counts.skipped > 0 {
        text.push_str(&format!(", {} skipped", counts.skipped));
    }
    text.push_str(&format!(", in {}", seconds(record.elapsed_s)));
    if let Some(why) = &record.unreachable {
        text.push_str(&format!("; no connection: {}", safe(why)));
    }
    if record.interrupted {
        text.push_str("; interrupted before the end");
    }
    text
}

/// Returns one suite, with a case per step.
fn suite(record: &CheckRecord) -> TestSuite {
    let case = |step: &StepRecord| TestCase {
        name: step.name.clone(),
        class: record.name.clone(),
        elapsed_s: Some(step.elapsed_s),
        ending: ending(step),
    };
    TestSuite {
        names: [record.name.clone(), record.name.clone()],
        started: record.started.clone(),
        elapsed_s: record.elapsed_s,
        properties: vec![("base", record.base.clone())],
        cases: record.steps.iter().map(case).collect(),
    }
}

fn ending(step: &StepRecord) -> CaseEnding {
    match (&step.difference, &step.reason) {
        (Some(difference), _) => CaseEnding::Failed {
            kind: difference.what.clone(),
            message: sentence(difference),
            account: account(step, difference),
        },
        (None, Some(why)) => CaseEnding::Skipped(why.clone()),
        (None, None) => CaseEnding::Passed,
    }
}

fn sentence(difference: &Mismatch) -> String {
    let Mismatch { what, expected, got } = difference;
    format!("{what}: expected {expected}, got {got}")
}

/// Describes the request, the difference, and the state of every member.
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
