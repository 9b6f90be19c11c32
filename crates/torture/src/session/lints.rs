//! Every answer of a run, held against the rules that bind whoever sends one.

use super::{CaseResult, ExchangeResult, Runner, spoken};
use crate::case::Level;
use crate::judge::{Judgement, Outcome};
use crate::lint::{Rule, lint};
use crate::talk::{Script, Talk};
use std::collections::BTreeMap;

/// Rules that were broken, how often, and by which answer first.
#[derive(Debug, Default)]
pub(super) struct Lints {
    answers: u64,
    broken: BTreeMap<Rule, Example>,
}

#[derive(Debug)]
struct Example {
    count: u64,
    sent: Vec<u8>,
    head: Vec<u8>,
}

/// What was sent, as far as its answers depend on it.
#[derive(Debug)]
pub(super) struct Asked {
    sent: Vec<u8>,
    http_10: bool,
}

impl Asked {
    pub(super) fn of(script: &Script) -> Asked {
        let sent = spoken(&script.steps);
        let line = sent.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Asked { http_10: line.trim_ascii_end().ends_with(b"HTTP/1.0"), sent }
    }
}

impl Lints {
    pub(super) fn see(&mut self, asked: &Asked, talk: &Talk) {
        for (index, answer) in talk.replies.answers.iter().enumerate() {
            self.answers += 1;
            // further requests of the same connection may be of another version
            for rule in lint(answer, asked.http_10 && index == 0) {
                let example = self.broken.entry(rule).or_insert_with(|| Example {
                    count: 0,
                    sent: asked.sent.clone(),
                    head: answer.head.clone(),
                });
                example.count += 1;
            }
        }
    }
}

impl Runner<'_> {
    /// Says what is wrong with the answers of the whole run.
    pub(super) fn linted(&mut self, result: &mut CaseResult) {
        let answers = self.lints.answers;
        for (rule, example) in std::mem::take(&mut self.lints.broken) {
            let outcome = if rule.level == Level::Must { Outcome::Fail } else { Outcome::Advisory };
            result.outcome = result.outcome.max(outcome);
            result.exchanges.push(ExchangeResult {
                name: rule.text.to_owned(),
                judgement: Judgement {
                    outcome,
                    seen: format!("{} of {answers} answers", example.count),
                    expected: format!("{}, {}", rule.reference, rule.level.id()),
                    why: String::new(),
                },
                tries: 1,
                failed: 1,
                sent: example.sent,
                received: example.head,
                took: units::Nanos::ZERO,
            });
        }
    }
}
