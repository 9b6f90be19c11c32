//! Random data: many executions, of which those that fail are tried again.

use super::{CaseResult, ExchangeResult, PLAIN_DEADLINE, Runner, TRIES, spoken};
use crate::case::{Case, Fuzz};
use crate::fuzz::{self, Shot};
use crate::judge::Outcome;
use crate::talk::Talk;

/// Executions that did not pass of which everything is kept.
pub(super) const KEPT_MAX: usize = 20;
/// Failures after which no more is sent: the point is made.
const FAILURES_MAX: u64 = 50;

impl Runner<'_> {
    pub(super) fn random(&mut self, case: &Case, fuzz: &Fuzz, result: &mut CaseResult) {
        let mut failures = 0;
        let count = fuzz.count.min(self.settings.executions_max);
        for turn in 0..count {
            // a sample is spread over the whole
            let index = turn * fuzz.count / count;
            if self.world.interrupted() || failures == FAILURES_MAX {
                break;
            }
            let shot = self.shot(case, fuzz, index);
            let talk = self.fire(&shot);
            *result.tally.entry(fuzz::tallied(&shot, &talk)).or_default() += 1;
            let judgement = fuzz::judge(&shot, &talk, &self.plain);
            if judgement.outcome <= Outcome::Alternative {
                continue;
            }
            let mut kept = ExchangeResult {
                name: format!("number {index}, seed {}", self.settings.seed),
                judgement,
                tries: 1,
                failed: 1,
                sent: spoken(&shot.moves),
                received: talk.raw,
                took: talk.over,
            };
            self.again(&shot, &mut kept);
            failures += u64::from(kept.judgement.outcome == Outcome::Fail);
            result.outcome = result.outcome.max(kept.judgement.outcome);
            if result.exchanges.len() < KEPT_MAX {
                result.exchanges.push(kept);
            }
        }
    }

    fn shot(&self, case: &Case, fuzz: &Fuzz, index: u64) -> Shot {
        let (values, fields) = (&self.target.values, &self.target.fields);
        fuzz::shot(self.settings.seed, &case.id, case.version, fuzz, index, values, fields)
    }

    fn fire(&mut self, shot: &Shot) -> Talk {
        let mut script = self.bare(shot.moves.clone(), PLAIN_DEADLINE);
        script.methods.clone_from(&shot.methods);
        // the answer that follows shows whether the two sides still agree where messages end
        script.follow_up = (!shot.valid).then(|| super::habits::plain_request(self.target, ""));
        self.hold(script)
    }

    /// What does not come back is no finding.
    fn again(&mut self, shot: &Shot, kept: &mut ExchangeResult) {
        while kept.tries < TRIES && !self.world.interrupted() {
            let talk = self.fire(shot);
            let judgement = fuzz::judge(shot, &talk, &self.plain);
            kept.tries += 1;
            kept.failed += u32::from(judgement.outcome > Outcome::Alternative);
        }
        if kept.failed < kept.tries.div_ceil(2) + 1 && kept.judgement.outcome == Outcome::Fail {
            kept.judgement.outcome = Outcome::Flaky;
        }
    }
}
