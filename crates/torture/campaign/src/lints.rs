//! Checks every response of a run against the rules for all responses.

use dialogue::talk::{Move, Talk};
use std::collections::BTreeMap;
use torture::case::RequirementLevel;
use torture::judge::{Cause, Judgement, TestOutcome};
use torture::lint::{LintRule, lint};
use torture::record;
use torture::result::{CaseResult, ExchangeResult};

/// Violated rules, with counts and the first response.
#[derive(Debug, Default)]
pub(crate) struct Lints {
    responses: u64,
    broken: BTreeMap<LintRule, Example>,
}

#[derive(Debug)]
struct Example {
    count: u64,
    sent: Vec<u8>,
    head: Vec<u8>,
}

impl Lints {
    /// Checks every response of a conversation; only the first example of a violation is copied.
    pub(crate) fn note_talk(&mut self, talk: &Talk) {
        for (index, response) in talk.replies.responses.iter().enumerate() {
            self.responses += 1;
            // further requests on the same connection may have another version
            for rule in lint(response, index == 0 && is_http_1_0(&talk.steps)) {
                let example = self.broken.entry(rule).or_insert_with(|| Example {
                    count: 0,
                    sent: record::sent(&talk.steps),
                    head: response.head.clone(),
                });
                example.count += 1;
            }
        }
    }

    /// Appends the observations of another instance.
    pub(crate) fn add(&mut self, other: Lints) {
        self.responses += other.responses;
        for (rule, example) in other.broken {
            match self.broken.get_mut(&rule) {
                Some(known) => known.count += example.count,
                None => {
                    self.broken.insert(rule, example);
                }
            }
        }
    }

    /// Records the violations of the whole run.
    pub(crate) fn report(&mut self, result: &mut CaseResult) {
        let responses = self.responses;
        let broken: Vec<&str> = self
            .broken
            .keys()
            .filter(|rule| rule.level == RequirementLevel::Must)
            .map(|rule| rule.text)
            .collect();
        if !broken.is_empty() {
            // the headline names the violations
            let title = format!("{}: {}", result.case.title, broken.join("; "));
            result.case.title = title;
        }
        for (rule, example) in std::mem::take(&mut self.broken) {
            let outcome = if rule.level == RequirementLevel::Must {
                TestOutcome::Fail
            } else {
                TestOutcome::Advisory
            };
            result.show(outcome);
            result.exchanges.push(ExchangeResult {
                name: rule.text.to_owned(),
                judgement: Judgement {
                    outcome,
                    seen: format!("{} of {responses} responses", example.count),
                    expected: format!("{}, {}", rule.reference, rule.level.id()),
                    why: String::new(),
                    kind: None,
                    cause: rule.missing.map(|field| Cause::Missing(field.to_owned())),
                    ..Judgement::default()
                },
                tries: 1,
                failed: 1,
                sent: example.sent,
                received: example.head,
                took: units::Nanos::ZERO,
                pauses: Vec::new(),
            });
        }
    }
}

/// Returns whether the first request line is HTTP/1.0, as far as its first piece shows.
fn is_http_1_0(steps: &[Move]) -> bool {
    let first = steps.iter().find_map(|step| match step {
        Move::Send(bytes) => bytes.split(|byte| *byte == b'\n').next(),
        _ => None,
    });
    first.is_some_and(|line| line.trim_ascii_end().ends_with(b"HTTP/1.0"))
}
