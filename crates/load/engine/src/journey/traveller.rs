//! One user on its journey: its position, its values, its next action.

use super::Travel;
use super::carried::{Carried, CarriedView, Taken};
use super::program::Op;
use crate::check::judge::meets;
use crate::decimal::put_decimal;
use plan::check::{Scope, ValueSource};
use plan::journey::{AfterFailure, Condition, StepGuard};
use sample::{Noticed, Remark};
use std::collections::BTreeSet;
use std::sync::Arc;
use units::{Nanos, Purpose, Stream};
use url::Url;
use workload::ActorAction;

/// Number of operations without a call after which an iteration is abandoned: an empty loop.
const OPS_MAX: u32 = 100_000;

/// Next action of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Call(u32),
    /// The iteration is over.
    Over,
}

/// A block that the user is in.
#[derive(Clone, Copy, Debug)]
struct Inside {
    block: u32,
    rounds: u32,
    took: Nanos,
    failed: bool,
}

#[derive(Debug)]
pub(super) struct Traveller {
    pub(super) user: u64,
    pub(super) user_number: String,
    pub(super) iteration_number: String,
    pub(super) journey: usize,
    /// Index of the next operation.
    at: usize,
    /// Remaining rounds of the current step; 0: not begun.
    rounds: u32,
    inside: Vec<Inside>,
    took: Nanos,
    failed: bool,
    /// Calls of this iteration so far.
    pub(super) calls: u32,
    /// Random draws of this iteration.
    stream: Stream,
    /// Values kept for an iteration, or for the lifetime of the user.
    pub(super) carried: Carried,
    pub(super) kept: Carried,
    /// Rows taken, by place of the feeder.
    pub(super) taken: Vec<Taken>,
    /// Steps that run once and have succeeded.
    done: BTreeSet<u32>,
    /// A login to repeat before the step whose response reported an expired login.
    login_due: Option<u32>,
    /// The user has logged in again for the current step.
    refreshed: bool,
    /// The pause before the next call.
    pub(super) pause: Nanos,
    turns: u64,
    /// Server of the WebSocket that a step opened last.
    pub(super) socket: Option<Arc<Url>>,
    pub(super) iteration: u64,
    /// Next action of a program's journey.
    pub(super) action: Option<ActorAction>,
    /// Statuses expected of the call in flight.
    pub(super) statuses: Vec<u16>,
    /// The user has received the result.
    pub(super) answered: bool,
}

impl Traveller {
    pub(super) fn new(travel: &Travel, user: u64) -> Traveller {
        Traveller {
            user,
            user_number: user.to_string(),
            iteration_number: String::new(),
            journey: 0,
            at: 0,
            rounds: 0,
            inside: Vec::new(),
            took: Nanos::ZERO,
            failed: false,
            calls: 0,
            stream: travel.seed.stream(Purpose::Journeys, 0),
            carried: Carried::default(),
            kept: Carried::default(),
            taken: vec![Taken::default(); travel.feeders.len()],
            done: BTreeSet::new(),
            login_due: None,
            refreshed: false,
            pause: Nanos::ZERO,
            turns: 0,
            socket: None,
            iteration: 0,
            action: None,
            statuses: Vec::new(),
            answered: false,
        }
    }

    /// Begins an iteration.
    pub(super) fn begin(&mut self, iteration: u64, journey: usize, stream: Stream) {
        self.iteration_number.clear();
        put_decimal(iteration, &mut self.iteration_number);
        (self.iteration, self.action) = (iteration, None);
        (self.journey, self.stream) = (journey, stream);
        (self.at, self.rounds, self.calls) = (0, 0, 0);
        (self.took, self.failed) = (Nanos::ZERO, false);
        self.inside.clear();
        self.carried.clear();
        self.taken.iter_mut().for_each(|taken| taken.is_taken = false);
        (self.login_due, self.refreshed) = (None, false);
    }

    /// Returns the next call of the iteration. Blocks that end before it are reported.
    pub(super) fn advance(
        &mut self,
        travel: &Travel,
        now: Nanos,
        remarks: &mut Vec<Remark>,
    ) -> Move {
        if let Some(row) = self.login_due {
            return Move::Call(row);
        }
        for _ in 0..OPS_MAX {
            let Some(op) = travel.journeys[self.journey].ops.get(self.at).copied() else {
                break;
            };
            match op {
                Op::Step { row } => {
                    let step = travel.step(row);
                    if self.rounds == 0 {
                        let done = step.once && self.done.contains(&row);
                        if done || !self.decide_to_run(travel, &step.guard) {
                            self.at += 1;
                            continue;
                        }
                        self.rounds = self.draw_between(step.guard.repeat);
                    }
                    return Move::Call(row);
                }
                Op::Enter { block, past } => {
                    let guard = &travel.blocks[block as usize].guard;
                    if !self.decide_to_run(travel, guard) {
                        self.at = past as usize;
                        continue;
                    }
                    let rounds = self.draw_between(guard.repeat);
                    self.inside.push(Inside { block, rounds, took: Nanos::ZERO, failed: false });
                    self.at += 1;
                }
                Op::Exit { start, .. } => self.end_round(travel, start, now, remarks),
            }
        }
        self.finish(travel, now, remarks);
        Move::Over
    }

    fn draw_between(&mut self, (low, high): (u32, u32)) -> u32 {
        if low == high {
            return low;
        }
        low + self.stream.below(u64::from(high - low) + 1) as u32
    }

    /// Decides whether a part runs this time.
    fn decide_to_run(&mut self, travel: &Travel, guard: &StepGuard) -> bool {
        let lucky = guard.chance >= 1.0 || self.stream.unit() < guard.chance;
        lucky && self.holds(travel, &guard.when)
    }

    fn holds(&self, travel: &Travel, conditions: &[Condition]) -> bool {
        let view = CarriedView { travel, traveller: self };
        conditions.iter().all(|condition| {
            let value = view.value(&condition.name).map(str::as_bytes);
            let met = |rule| meets(rule, value, &view).is_ok_and(|(_, met)| met);
            condition.rules.iter().any(met)
        })
    }

    fn ends_loop(&self, travel: &Travel, guard: &StepGuard) -> bool {
        !guard.until.is_empty() && self.holds(travel, &guard.until)
    }

    fn end_round(&mut self, travel: &Travel, start: u32, now: Nanos, remarks: &mut Vec<Remark>) {
        let Some(inside) = self.inside.last_mut() else { return self.at += 1 };
        inside.rounds -= 1;
        let card = &travel.blocks[inside.block as usize];
        if inside.rounds > 0 && !self.ends_loop(travel, &card.guard) {
            self.at = start as usize;
            return;
        }
        self.leave_block(travel, now, remarks);
        self.at += 1;
    }

    /// Ends the innermost block, which is a transaction.
    fn leave_block(&mut self, travel: &Travel, now: Nanos, remarks: &mut Vec<Remark>) {
        let Some(Inside { block, took, failed, .. }) = self.inside.pop() else { return };
        let transaction = travel.blocks[block as usize].transaction;
        // without a call there is no time to report
        if took > Nanos::ZERO || failed {
            remarks.push(Remark { at: now, fact: Noticed::Together { transaction, took, failed } });
        }
    }

    /// Ends the iteration, with its open blocks.
    pub(super) fn finish(&mut self, travel: &Travel, now: Nanos, remarks: &mut Vec<Remark>) {
        while !self.inside.is_empty() {
            self.leave_block(travel, now, remarks);
        }
        if self.calls > 0 {
            let (transaction, took, failed) = (self.journey as u32, self.took, self.failed);
            remarks.push(Remark { at: now, fact: Noticed::Together { transaction, took, failed } });
        }
    }

    /// Skips the current step, whose request cannot be built.
    pub(super) fn skip(&mut self) {
        if self.login_due.take().is_none() {
            self.rounds = 0;
            self.at += 1;
        }
        self.mark_failed();
    }

    /// Marks the iteration and its open blocks as failed.
    pub(super) fn mark_failed(&mut self) {
        self.failed = true;
        self.inside.iter_mut().for_each(|inside| inside.failed = true);
    }

    /// Handles a response that reports an expired login. Returns true if another login is tried.
    pub(super) fn refresh(&mut self, travel: &Travel, row: u32, status: u16) -> bool {
        let Some(refresh) = &travel.journeys[self.journey].refresh else { return false };
        let is_due = refresh.statuses.iter().any(|(from, to)| (*from..=*to).contains(&status));
        if !is_due || self.refreshed || row == refresh.row {
            return false;
        }
        (self.refreshed, self.login_due) = (true, Some(refresh.row));
        true
    }

    /// Notes the end of a call of this user.
    pub(super) fn note_call_end(&mut self, travel: &Travel, row: u32, took: Nanos, failed: bool) {
        self.calls += 1;
        self.turns += 1;
        self.took += took;
        self.failed |= failed;
        for inside in &mut self.inside {
            inside.took += took;
            inside.failed |= failed;
        }
        if !failed && travel.step(row).once {
            self.done.insert(row);
        }
        match self.login_due {
            // its response reported an expired login: the login goes first, at once
            Some(login) if login != row => return,
            // the login succeeded, and the step is repeated
            Some(_) => return self.login_due = None,
            None => {}
        }
        self.refreshed = false;
        let (step, journey) = (travel.step(row), &travel.journeys[self.journey]);
        let think = step.think.or(journey.think).unwrap_or(travel.think);
        self.pause = think.pause(travel.seed, self.user, self.turns);
        if failed && journey.failure == AfterFailure::End {
            self.at = journey.ops.len();
            self.rounds = 0;
            return;
        }
        self.rounds = self.rounds.saturating_sub(1);
        if self.rounds == 0 || self.ends_loop(travel, &step.guard) {
            self.rounds = 0;
            self.at += 1;
        }
    }

    /// Keeps the captured values, or records that there were none.
    pub(super) fn keep(&mut self, name: &str, value: Option<String>, scope: Scope) {
        match scope {
            Scope::Iteration => self.carried.set(name, value),
            // a user keeps its previous values
            Scope::User if value.is_none() => {}
            Scope::User => self.kept.set(name, value),
        }
    }

    pub(super) fn draw(&mut self, most: u64) -> u64 {
        self.stream.below(most)
    }
}
