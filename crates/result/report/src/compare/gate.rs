//! The outcome of a gate: its procedure, possible improvements, and JUnit cases.

use crate::page;
use crate::page::junit::{CaseEnding, TestCase, TestSuite};
use crate::section::{Block, Caution, Document, Forms, Voice, text_block};
use crate::words::{self, counted, printable};
use record::compare::{BoundRecord, CompareRecord, Contrast};

/// Derivation of a gate's answers.
pub(super) const METHOD: &str = "Intervals are confidence sequences: they hold at every block, so the gate may stop as soon as it \
     is certain. A wrong fail and a wrong pass have a probability of at most 5 % each. pp: percentage \
     points.";

/// Renders the procedure of the gate, and how to make it decidable.
pub(super) fn gate(document: &mut Document, report: &CompareRecord) {
    let Some(gate) = &report.gate else { return };
    let help = gate
        .help
        .iter()
        .map(|text| Block::Caution(Caution { word: "Fix", text: printable(text, 1_000) }));
    document.add(Forms::ALL, help);
    let mut how = vec![gate.restarts_text()];
    if gate.blocks_invalid > 0 {
        let count = counted(gate.blocks_invalid, "block");
        how.push(format!("{count} left out because a run was INVALID."));
    }
    if gate.design == "duet" {
        how.push("Both sides were measured at the same moment.".to_owned());
    }
    if !gate.pilot.is_empty() {
        how.push(gate.pilot.clone());
    }
    let lines = how.into_iter().map(|line| text_block(Voice::Plain, line));
    document.add(Forms::LONG | Forms::PAGE | Forms::MARKDOWN, lines);
}

/// Renders the bounds as JUnit XML, a test case each, with a line feed at its end. An undecided
/// bound is a skipped case.
pub fn junit(report: &CompareRecord) -> String {
    let of = |contrast: Contrast<'_>| -> Vec<TestCase> {
        let mark = contrast.mark(report);
        contrast.bounds.iter().map(|bound| case(report, &mark, bound)).collect()
    };
    page::junit::junit(&TestSuite {
        names: ["loadstone compare".to_owned(), report.name.clone()],
        started: words::timestamp(report.started_unix_s),
        elapsed_s: report.gate.as_ref().map_or(0.0, |gate| gate.spent_s),
        properties: vec![
            ("A", report.before.label.clone()),
            ("B", report.after.label.clone()),
            ("answer", report.answer.clone()),
        ],
        cases: report.contrasts().flat_map(of).collect(),
    })
}

fn case(report: &CompareRecord, mark: &str, bound: &BoundRecord) -> TestCase {
    let ending = match (bound.crossed, bound.undecided) {
        (true, _) => CaseEnding::Failed {
            kind: "bound".to_owned(),
            message: bound.why.clone(),
            account: String::new(),
        },
        (false, true) => CaseEnding::Skipped(format!("undecided: {}", bound.why)),
        (false, false) => CaseEnding::Noted(bound.why.clone()),
    };
    TestCase {
        name: format!("{mark}{}", bound.text),
        class: report.name.clone(),
        elapsed_s: None,
        ending,
    }
}
