//! Who watches the target's machine (`fleet watch`), as a machine: messages and time in, messages and
//! readings to be made out. It commands nobody and is commanded nothing: it hears where the seconds of
//! a step begin, and tells what happened in each.

use crate::BEAT;
use crate::agent::PATIENCE;
use crate::clock::{ClockEstimate, ClockExchange, Offset};
use crate::message::{FromWatch, ManagerWord, ToAgent, WatchHello, What};
use sample::SutRow;
use std::collections::VecDeque;
use units::Nanos;

/// What a watch is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchDeed {
    Say(FromWatch),
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

/// See the module.
#[derive(Debug)]
pub struct FleetWatch {
    hello: WatchHello,
    epoch: u64,
    welcome: bool,
    heard: Nanos,
    next_sign: Nanos,
    next_probe: Nanos,
    clock: ClockEstimate,
    step: Option<u64>,
    deeds: VecDeque<WatchDeed>,
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
            deeds: VecDeque::new(),
        }
    }

    /// What is to be done next.
    pub fn deed(&mut self) -> Option<WatchDeed> {
        self.deeds.pop_front()
    }

    /// How far the manager's clock is ahead of ours at `now`; `None` before the first exchange.
    pub fn offset(&self, now: Nanos) -> Option<Offset> {
        self.clock.best(now)
    }

    /// A row of the step that goes on.
    pub fn row(&mut self, row: SutRow) {
        if let Some(step) = self.step {
            self.deeds.push_back(WatchDeed::Say(FromWatch::Row { step, row }));
        }
    }

    /// Nothing can be read any more.
    pub fn trouble(&mut self, why: String) {
        self.deeds.push_back(WatchDeed::Say(FromWatch::Trouble { why }));
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Nanos) {
        // said again and again: a manager that has another's place left takes it then
        if now >= self.next_sign {
            self.next_sign = now + BEAT;
            self.deeds.push_back(WatchDeed::Say(FromWatch::Hello(self.hello.clone())));
        }
        if self.welcome && now >= self.next_probe {
            self.next_probe = now + self.clock.pause(1);
            self.deeds.push_back(WatchDeed::Say(FromWatch::Clock { sent: now.0 }));
        }
        if now - self.heard > PATIENCE {
            let why = format!("the manager was silent for {}", units::show::duration(PATIENCE));
            self.deeds.push_back(WatchDeed::Exit { done: false, why });
        }
    }

    /// Whether a message of this epoch is one of our manager's; a later one is followed, and begins
    /// anew: with steps and a clock of its own.
    fn obeys(&mut self, epoch: u64, now: Nanos) -> bool {
        if epoch < self.epoch {
            return false;
        }
        if epoch > self.epoch {
            (self.welcome, self.next_probe) = (false, now);
            self.clock = ClockEstimate::default();
            if self.step.take().is_some() {
                self.deeds.push_back(WatchDeed::Rest);
            }
        }
        (self.epoch, self.heard) = (epoch, now);
        true
    }

    /// A message to this watch; `now` is when it came.
    pub fn told(&mut self, message: ToAgent, now: Nanos) {
        match message {
            // who is followed has made an earlier welcome void
            ToAgent::Welcome { epoch, .. } => self.welcome |= self.obeys(epoch, now),
            ToAgent::Refused { epoch, why } if epoch >= self.epoch => {
                self.deeds.push_back(WatchDeed::Exit { done: false, why });
            }
            ToAgent::Clock { epoch, sent, received, returned } if epoch == self.epoch => {
                let [sent, received, returned] = [sent, received, returned].map(Nanos);
                self.heard = now;
                self.clock.add(ClockExchange { sent, received, returned, answered: now });
            }
            // the rest is for agents
            _ => {}
        }
    }

    /// A message to all.
    pub fn commanded(&mut self, command: &ManagerWord, now: Nanos) {
        if !self.obeys(command.epoch, now) {
            return;
        }
        match &command.what {
            What::Measuring { step, from } if self.step != Some(*step) => {
                let Some(offset) = self.clock.best(now) else { return };
                self.step = Some(*step);
                let from = offset.here(Nanos(*from));
                self.deeds.push_back(WatchDeed::Follow { step: *step, from });
            }
            What::Done { step } if self.step == Some(*step) => {
                self.step = None;
                self.deeds.push_back(WatchDeed::Rest);
            }
            What::Disband { why } => {
                self.deeds.push_back(WatchDeed::Exit { done: true, why: why.clone() });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(watch: &mut FleetWatch) -> Vec<WatchDeed> {
        std::iter::from_fn(|| watch.deed()).collect()
    }

    fn word(what: What) -> ManagerWord {
        ManagerWord { epoch: 3, at: 0, unheard: Vec::new(), what }
    }

    #[test]
    fn a_step_is_followed_by_our_own_clock_and_ends_with_it() {
        let now = Nanos::from_secs(100);
        let mut watch = FleetWatch::new(WatchHello::default(), now);
        watch.tick(now);
        assert!(matches!(said(&mut watch)[..], [WatchDeed::Say(FromWatch::Hello(_))]));
        // before the clocks are known there is nothing to follow
        let measuring = word(What::Measuring { step: 1, from: 1_000 });
        watch.commanded(&measuring, now);
        assert_eq!(said(&mut watch), []);
        watch.told(ToAgent::Welcome { epoch: 3, agents: 1 }, now);
        watch.tick(now);
        assert_eq!(said(&mut watch), [WatchDeed::Say(FromWatch::Clock { sent: now.0 })]);
        // the manager's clock is 40 s ahead, the exchange took 2 ms
        let there = Nanos::from_secs(140) + Nanos::from_millis(1);
        let answer = ToAgent::Clock { epoch: 3, sent: now.0, received: there.0, returned: there.0 };
        watch.told(answer, now + Nanos::from_millis(2));
        let from = Nanos::from_secs(150);
        watch.commanded(&word(What::Measuring { step: 1, from: from.0 }), now);
        let follow = WatchDeed::Follow { step: 1, from: Nanos::from_secs(110) };
        assert_eq!(said(&mut watch), [follow]);
        watch.row(SutRow { at_s: 1.0, ..SutRow::default() });
        assert!(matches!(said(&mut watch)[..], [WatchDeed::Say(FromWatch::Row { step: 1, .. })]));
        watch.commanded(&word(What::Done { step: 1 }), now);
        watch.row(SutRow::default());
        assert_eq!(said(&mut watch), [WatchDeed::Rest]);
    }

    #[test]
    fn a_later_manager_counts_steps_and_time_anew() {
        let now = Nanos::from_secs(100);
        let mut watch = FleetWatch::new(WatchHello::default(), now);
        let clock = |epoch| ToAgent::Clock { epoch, sent: now.0, received: now.0, returned: now.0 };
        let measuring = What::Measuring { step: 1, from: now.0 };
        watch.told(ToAgent::Welcome { epoch: 3, agents: 1 }, now);
        watch.told(clock(3), now);
        // it is said again and again, and followed once
        watch.commanded(&word(measuring.clone()), now);
        watch.commanded(&word(measuring.clone()), now);
        let follow = WatchDeed::Follow { step: 1, from: now };
        assert_eq!(said(&mut watch), std::slice::from_ref(&follow));
        watch.commanded(&ManagerWord { epoch: 4, ..word(What::Beat) }, now);
        assert_eq!(said(&mut watch), [WatchDeed::Rest]);
        watch.told(clock(3), now);
        assert_eq!(watch.offset(now), None);
        watch.told(clock(4), now);
        watch.commanded(&ManagerWord { epoch: 4, ..word(measuring) }, now);
        assert_eq!(said(&mut watch), [follow]);
    }

    #[test]
    fn a_manager_that_was_followed_by_another_is_not_heard() {
        let now = Nanos::from_secs(1);
        let mut watch = FleetWatch::new(WatchHello::default(), now);
        watch.told(ToAgent::Welcome { epoch: 9, agents: 1 }, now);
        watch.commanded(&word(What::Disband { why: "over".into() }), now);
        assert_eq!(said(&mut watch), []);
        watch.tick(now + PATIENCE + Nanos(1));
        let last = said(&mut watch).pop();
        assert!(matches!(last, Some(WatchDeed::Exit { done: false, .. })), "{last:?}");
    }
}
