//! The watch of the target's machine (`fleet watch`) as a state machine: messages and time are
//! input, messages and readings are output. It neither sends nor receives commands: it learns when
//! the seconds of a step start, and reports each of them.

use crate::protocol::BEAT;
use crate::protocol::agent::PATIENCE;
use crate::protocol::clock::{ClockEstimate, ClockExchange, Offset};
use crate::protocol::message::{FromWatch, ManagerMessage, ToAgent, WatchHello, What};
use crate::protocol::stamp::{NumberWindow, RefusedMessages, Stamp, Stamped};
use sample::SutRow;
use std::collections::VecDeque;
use units::Nanos;

/// Action for a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchAction {
    Say(Stamped<FromWatch>),
    /// Read the counters from now on, in rows of a second; the measured phase of this step begins at
    /// this instant of our clock.
    Follow {
        step: u64,
        from: Nanos,
    },
    /// The step is over.
    Rest,
    Exit {
        done: bool,
        why: String,
    },
}

/// The watch's side of the protocol.
#[derive(Debug)]
pub struct FleetWatch {
    hello: WatchHello,
    epoch: u64,
    welcome: bool,
    heard: Nanos,
    next_sign: Nanos,
    next_probe: Nanos,
    clock: ClockEstimate,
    /// The current run and step.
    step: Option<(u64, u64)>,
    number: u64,
    received: NumberWindow,
    commands: NumberWindow,
    refused: RefusedMessages,
    actions: VecDeque<WatchAction>,
}

impl FleetWatch {
    pub fn new(hello: WatchHello, now: Nanos) -> FleetWatch {
        FleetWatch {
            hello,
            epoch: 0,
            welcome: false,
            heard: now,
            next_sign: now,
            next_probe: now,
            clock: ClockEstimate::default(),
            step: None,
            number: 0,
            received: NumberWindow::default(),
            commands: NumberWindow::default(),
            refused: RefusedMessages::default(),
            actions: VecDeque::new(),
        }
    }

    /// Returns the next action.
    pub fn next_action(&mut self) -> Option<WatchAction> {
        self.actions.pop_front()
    }

    /// Returns the offset of the manager's clock from ours at `now`; `None` before the first
    /// exchange.
    pub fn offset(&self, now: Nanos) -> Option<Offset> {
        self.clock.best(now)
    }

    /// Sends a row of the current step.
    pub fn row(&mut self, row: SutRow) {
        if let Some((_, step)) = self.step {
            self.send(FromWatch::Row { step, row });
        }
    }

    /// Reports that no more readings are possible.
    pub fn trouble(&mut self, why: String) {
        self.send(FromWatch::Trouble { why });
    }

    /// Returns how many messages of this or another manager were refused.
    pub fn refused(&self) -> RefusedMessages {
        self.refused
    }

    fn send(&mut self, content: FromWatch) {
        self.number += 1;
        let run = self.step.map_or(0, |(run, _)| run);
        let stamp = Stamp { session: self.hello.session, run, number: self.number };
        self.actions.push_back(WatchAction::Say(Stamped { stamp, content }));
    }

    /// Handles the passage of time.
    pub fn tick(&mut self, now: Nanos) {
        // repeated: a manager that replaced another receives it then
        if now >= self.next_sign {
            self.next_sign = now + BEAT;
            self.send(FromWatch::Hello(self.hello.clone()));
        }
        if self.welcome && now >= self.next_probe {
            self.next_probe = now + self.clock.pause(1);
            self.send(FromWatch::Clock { sent: now.0 });
        }
        if now - self.heard > PATIENCE {
            let why = format!("the manager was silent for {}", units::show::duration(PATIENCE));
            self.actions.push_back(WatchAction::Exit { done: false, why });
        }
    }

    /// Follows a manager with a higher number, which has its own steps and clock.
    fn follow(&mut self, epoch: u64, now: Nanos) {
        self.epoch = epoch;
        self.hello.proof = 0;
        self.received = NumberWindow::default();
        self.commands = NumberWindow::default();
        self.welcome = false;
        self.next_probe = now;
        self.clock = ClockEstimate::default();
        if self.step.take().is_some() {
            self.actions.push_back(WatchAction::Rest);
        }
    }

    /// Handles a message to this watch; `now`: its arrival.
    pub fn receive(&mut self, message: Stamped<ToAgent>, now: Nanos) {
        let Stamped { stamp, content } = message;
        let epoch = content.epoch();
        if stamp.session != self.hello.session {
            self.refused.foreign += 1;
            return;
        }
        if epoch < self.epoch {
            self.refused.late += 1;
            return;
        }
        match content {
            ToAgent::Prove { proof, .. } => {
                if epoch > self.epoch {
                    self.follow(epoch, now);
                }
                self.hello.proof = proof;
                if !self.welcome {
                    self.next_sign = now;
                }
            }
            ToAgent::Refused { why, .. } => {
                self.actions.push_back(WatchAction::Exit { done: false, why });
            }
            ToAgent::Welcome { .. } => {
                if epoch > self.epoch {
                    self.follow(epoch, now);
                }
                self.welcome |= self.accepts(stamp, now);
            }
            ToAgent::Clock { sent, received, returned, .. }
                if epoch == self.epoch && self.accepts(stamp, now) =>
            {
                let [sent, received, returned] = [sent, received, returned].map(Nanos);
                self.clock.add(ClockExchange { sent, received, returned, answered: now });
            }
            // the rest is for agents
            _ => {}
        }
    }

    /// Returns whether a message of our manager is new.
    fn accepts(&mut self, stamp: Stamp, now: Nanos) -> bool {
        let fresh = self.received.accept(stamp.number);
        self.refused.replayed += u64::from(!fresh);
        if fresh {
            self.heard = now;
        }
        fresh
    }

    /// Handles a message to all.
    pub fn commanded(&mut self, command: &ManagerMessage, now: Nanos) {
        if command.epoch < self.epoch {
            self.refused.late += 1;
            return;
        }
        if command.epoch > self.epoch {
            self.follow(command.epoch, now);
        }
        if !self.commands.accept(command.number) {
            self.refused.replayed += 1;
            return;
        }
        self.heard = now;
        let run = command.run;
        match &command.what {
            What::Measuring { step, from } if self.step != Some((run, *step)) => {
                let Some(offset) = self.clock.best(now) else { return };
                self.step = Some((run, *step));
                let from = offset.here(Nanos(*from));
                self.actions.push_back(WatchAction::Follow { step: *step, from });
            }
            What::Done { step } if self.step == Some((run, *step)) => {
                self.step = None;
                self.actions.push_back(WatchAction::Rest);
            }
            What::Disband { why } => {
                self.actions.push_back(WatchAction::Exit { done: true, why: why.clone() });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::atomic::{AtomicU64, Ordering};

    /// Numbers of messages in these tests.
    static NUMBER: AtomicU64 = AtomicU64::new(1);

    fn number() -> u64 {
        NUMBER.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns messages without their stamps, and the other actions unchanged.
    #[expect(clippy::result_large_err, reason = "a list of a few messages in a test")]
    fn content(watch: &mut FleetWatch) -> Vec<Result<FromWatch, WatchAction>> {
        let actions = std::iter::from_fn(|| watch.next_action());
        let plain = |action| match action {
            WatchAction::Say(message) => Ok(message.content),
            other => Err(other),
        };
        actions.map(plain).collect()
    }

    fn stamped(content: ToAgent) -> Stamped<ToAgent> {
        let stamp = Stamp { session: 0, run: content.epoch(), number: number() };
        Stamped { stamp, content }
    }

    fn message_for(epoch: u64, what: What) -> ManagerMessage {
        let (run, number) = (epoch, number());
        ManagerMessage { epoch, run, number, at: 0, unheard: Vec::new(), what }
    }

    fn message(what: What) -> ManagerMessage {
        message_for(3, what)
    }

    #[test]
    fn a_step_is_followed_by_our_own_clock_and_ends_with_it() {
        let now = Nanos::from_secs(100);
        let mut watch = FleetWatch::new(WatchHello::default(), now);
        watch.tick(now);
        assert!(matches!(content(&mut watch)[..], [Ok(FromWatch::Hello(_))]));
        // before the clocks are known no step can be followed
        watch.commanded(&message(What::Measuring { step: 1, from: 1_000 }), now);
        assert_eq!(content(&mut watch), []);
        watch.receive(stamped(ToAgent::Welcome { epoch: 3, agents: 1 }), now);
        watch.tick(now);
        assert_eq!(content(&mut watch), [Ok(FromWatch::Clock { sent: now.0 })]);
        // the manager's clock is 40 s ahead, the exchange took 2 ms
        let there = Nanos::from_secs(140) + Nanos::from_millis(1);
        let answer = ToAgent::Clock { epoch: 3, sent: now.0, received: there.0, returned: there.0 };
        watch.receive(stamped(answer), now + Nanos::from_millis(2));
        let from = Nanos::from_secs(150);
        watch.commanded(&message(What::Measuring { step: 1, from: from.0 }), now);
        let follow = Err(WatchAction::Follow { step: 1, from: Nanos::from_secs(110) });
        assert_eq!(content(&mut watch), [follow]);
        watch.row(SutRow { at_s: 1.0, ..SutRow::default() });
        assert!(matches!(content(&mut watch)[..], [Ok(FromWatch::Row { step: 1, .. })]));
        watch.commanded(&message(What::Done { step: 1 }), now);
        watch.row(SutRow::default());
        assert_eq!(content(&mut watch), [Err(WatchAction::Rest)]);
    }

    #[test]
    fn a_later_manager_restarts_steps_and_time() {
        let now = Nanos::from_secs(100);
        let mut watch = FleetWatch::new(WatchHello::default(), now);
        let clock = |epoch| ToAgent::Clock { epoch, sent: now.0, received: now.0, returned: now.0 };
        let measuring = What::Measuring { step: 1, from: now.0 };
        watch.receive(stamped(ToAgent::Welcome { epoch: 3, agents: 1 }), now);
        watch.receive(stamped(clock(3)), now);
        // it is repeated, and followed once
        watch.commanded(&message(measuring.clone()), now);
        watch.commanded(&message(measuring.clone()), now);
        let follow = Err(WatchAction::Follow { step: 1, from: now });
        assert_eq!(content(&mut watch), std::slice::from_ref(&follow));
        watch.commanded(&message_for(4, What::Beat), now);
        assert_eq!(content(&mut watch), [Err(WatchAction::Rest)]);
        watch.receive(stamped(clock(3)), now);
        assert_eq!(watch.offset(now), None);
        watch.receive(stamped(clock(4)), now);
        watch.commanded(&message_for(4, measuring), now);
        assert_eq!(content(&mut watch), [follow]);
    }

    #[test]
    fn a_replaced_manager_is_ignored() {
        let now = Nanos::from_secs(1);
        let mut watch = FleetWatch::new(WatchHello::default(), now);
        watch.receive(stamped(ToAgent::Welcome { epoch: 9, agents: 1 }), now);
        watch.commanded(&message(What::Disband { why: "over".into() }), now);
        assert_eq!(content(&mut watch), []);
        watch.tick(now + PATIENCE + Nanos(1));
        let last = content(&mut watch).pop();
        assert!(matches!(last, Some(Err(WatchAction::Exit { done: false, .. }))), "{last:?}");
    }
}
