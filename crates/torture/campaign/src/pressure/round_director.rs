//! The director of one round: lead, arm, hold, release, watch.

use super::{PRESS_MIN, Plan, Pressed, RecoveryWatch};
use crate::GATE;
use crate::lints::Lints;
use crate::probes::ProbeListener;
use conduit::Close;
use dialogue::talk::{Conversations, Director, LineState, Talk, TalkEnd, Wake};
use sample::Blame;
use std::collections::{BTreeMap, VecDeque};
use torture::judge::Plain;
use torture::result::{Baseline, Probe, Seen};
use units::Nanos;

/// Result of one conversation of the load.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Index in the plan.
    pub(crate) index: usize,
    pub(crate) end: TalkEnd,
    /// True if we closed the connection because of what the server sent.
    pub(crate) by_us: bool,
    /// Time from scheduled start to established.
    pub(crate) connected: Option<Nanos>,
    pub(crate) over: Nanos,
    /// True if all responses were complete and usual.
    pub(crate) right: bool,
    /// The status of the first response, if any.
    pub(crate) status: Option<u16>,
    /// GOAWAY code of HTTP/2.
    pub(crate) goaway_code: Option<u32>,
    /// Bytes from us that the kernel accepted.
    pub(crate) sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Lead,
    Arm,
    Press,
    Watch,
    Over,
}

#[derive(Debug)]
pub(crate) struct RoundDirector {
    plan: Plan,
    plain: Plain,
    /// The start of the run, from which probes count.
    origin: Nanos,
    phase: Phase,
    lead: Nanos,
    /// Start of the first connection, and the connections still to start.
    first_at: Option<Nanos>,
    to_come: VecDeque<usize>,
    places: BTreeMap<usize, usize>,
    ended: Vec<Ended>,
    broken_at: Vec<Nanos>,
    /// Rule violations in the responses.
    lints: Lints,
    short: bool,
    armed: u64,
    armed_at: Nanos,
    pressed_from: Nanos,
    released_at: Nanos,
    over_at: Nanos,
    back_at: Option<Nanos>,
    /// Due instants of the last probe lost under load, and of the first correct one after it.
    lost_at: Option<Nanos>,
    served_from: Option<Nanos>,
    served_to: Nanos,
    /// The watch of the recovery after the release.
    calm: RecoveryWatch,
    every: Nanos,
}

impl RoundDirector {
    pub(crate) fn new(
        plan: Plan,
        plain: &Plain,
        lead: Nanos,
        slow_from: Nanos,
        origin: Nanos,
        every: Nanos,
    ) -> RoundDirector {
        RoundDirector {
            to_come: (0..plan.scripts.len()).collect(),
            calm: RecoveryWatch::new(slow_from, every, plan.calm),
            plan,
            plain: plain.clone(),
            origin,
            phase: Phase::Lead,
            lead,
            first_at: None,
            places: BTreeMap::new(),
            ended: Vec::new(),
            broken_at: Vec::new(),
            lints: Lints::default(),
            short: false,
            armed: 0,
            armed_at: Nanos::NEVER,
            pressed_from: Nanos::NEVER,
            released_at: Nanos::NEVER,
            over_at: Nanos::NEVER,
            back_at: None,
            lost_at: None,
            served_from: None,
            served_to: Nanos::ZERO,
            every,
        }
    }

    /// Returns the round as the verdict sees it.
    pub(crate) fn round_facts<'a>(
        &self,
        base: Baseline,
        probes: &'a [Probe],
        wanted: u64,
    ) -> Pressed<'a> {
        let own = |at: Nanos| if at == Nanos::NEVER { at } else { at - self.origin };
        Pressed {
            base,
            every: self.every,
            probes,
            armed_at: own(self.armed_at),
            released_at: own(self.released_at),
            over_at: own(self.over_at),
            back_at: self.back_at,
            wanted,
            armed: self.established(),
            short: self.short,
            broken_at: self.broken_at.iter().map(|at| own(*at)).collect(),
        }
    }

    /// Returns the maximum number of open connections; if none is meant to stay open, the number
    /// ever opened.
    fn established(&self) -> u64 {
        let established = self.ended.iter().filter(|one| one.connected.is_some()).count() as u64;
        if self.plan.armed_early { established } else { self.armed }
    }

    /// Returns whether it did not complete, or the end of the case stopped the load.
    pub(crate) fn is_cut_short(&self, case_ends: Option<Nanos>) -> bool {
        self.over_at == Nanos::NEVER || case_ends.is_some_and(|at| at <= self.released_at)
    }

    pub(crate) fn into_ended(self) -> (Vec<Ended>, Lints) {
        (self.ended, self.lints)
    }

    fn note(&mut self, over: Vec<(usize, Talk)>) {
        for (place, talk) in over {
            let Some(index) = self.places.remove(&place) else { continue };
            self.lints.note_talk(&talk);
            let by_us = torture::judge::is_ended_by_us(&talk);
            match talk.end {
                TalkEnd::Broken(_) if !by_us => self.broken_at.push(talk.start + talk.over),
                TalkEnd::Unconnected(class) if class.blame() == Blame::Driver => self.short = true,
                _ => {}
            }
            let responses = &talk.replies.responses;
            self.ended.push(Ended {
                index,
                end: talk.end,
                connected: talk.connected,
                over: talk.over,
                right: !responses.is_empty() && responses.iter().all(|one| self.plain.is(one)),
                status: responses.first().map(|first| first.status),
                by_us,
                goaway_code: talk.replies.frames.as_ref().and_then(|frames| frames.goaway_code()),
                sent: talk.sent,
            });
        }
    }

    /// Starts the connections that are due; returns the instant of the next.
    fn arm(&mut self, now: Nanos, stage: &mut Conversations<'_>) -> Option<Nanos> {
        let first = *self.first_at.get_or_insert(now);
        while let Some(index) = self.to_come.front().copied() {
            let (offset, script) = &self.plan.scripts[index];
            let at = first + *offset;
            if at > now {
                return Some(at);
            }
            let mut script = script.clone();
            script.start = at;
            self.places.insert(stage.add(script), index);
            self.to_come.pop_front();
        }
        None
    }

    fn count(&mut self, stage: &Conversations<'_>) {
        let open = |place: &&usize| stage.line_state(**place) == LineState::Open;
        self.armed = self.armed.max(self.places.keys().filter(open).count() as u64);
    }

    fn apply_load(&mut self, now: Nanos, stage: &mut Conversations<'_>) -> Wake {
        self.count(stage);
        let end = self.pressed_from + self.plan.hold;
        let least = self.pressed_from + PRESS_MIN.min(self.plan.hold);
        let through = self.plan.until_over && self.places.is_empty() && now >= least;
        if now < end && !through && !self.service_recovered() {
            return Wake::At(if now < least { least } else { end });
        }
        for place in self.places.keys() {
            stage.end(*place, Close::Orderly);
        }
        self.released_at = now;
        self.calm.release(now - self.origin);
        self.phase = Phase::Watch;
        Wake::At(now + GATE)
    }

    /// Returns whether the server visibly closed some connections of the load; otherwise a freed
    /// slot was the kept probe's.
    pub(crate) fn was_cut_short(&self) -> bool {
        let by_server = |one: &Ended| matches!(one.end, TalkEnd::Closed | TalkEnd::Broken(_));
        !self.plan.observes_closes() || self.ended.iter().any(by_server)
    }

    /// Returns whether service was denied, and then available again long enough.
    fn service_recovered(&self) -> bool {
        if !self.was_cut_short() {
            return false;
        }
        match (self.plan.until_served, self.lost_at, self.served_from) {
            (Some(span), Some(_), Some(from)) => self.served_to - from >= span,
            _ => false,
        }
    }

    fn watch(&mut self, now: Nanos) -> Wake {
        if !self.calm.is_calm() && now < self.released_at + GATE {
            return Wake::At(self.released_at + GATE);
        }
        self.back_at = self.calm.recovered_at();
        self.over_at = now;
        self.phase = Phase::Over;
        Wake::Done
    }

    fn note_loaded_probe(&mut self, probe: &Probe) {
        if probe.seen == Seen::Lost {
            self.lost_at = Some(self.lost_at.map_or(probe.due, |at| at.max(probe.due)));
            if self.served_from.is_some_and(|from| from <= probe.due) {
                self.served_from = None;
            }
        } else if self.lost_at.is_some_and(|lost| probe.due > lost) {
            self.served_from = Some(self.served_from.map_or(probe.due, |at| at.min(probe.due)));
            self.served_to = self.served_to.max(probe.due);
        }
    }
}

impl Director for RoundDirector {
    fn direct(
        &mut self,
        now: Nanos,
        stage: &mut Conversations<'_>,
        over: Vec<(usize, Talk)>,
    ) -> Wake {
        if self.first_at.is_none() && self.phase == Phase::Lead {
            self.first_at = Some(now + self.lead);
        }
        // counted before those that ended at this instant are removed
        if self.phase == Phase::Press || self.phase == Phase::Arm {
            self.count(stage);
        }
        self.note(over);
        let first = self.first_at.unwrap_or(now);
        if self.phase == Phase::Lead {
            if now < first {
                return Wake::At(first);
            }
            self.phase = Phase::Arm;
        }
        if self.phase == Phase::Arm {
            if let Some(next) = self.arm(now, stage) {
                return Wake::At(next);
            }
            self.armed_at = if self.plan.armed_early { first } else { now };
            self.pressed_from = now;
            self.phase = Phase::Press;
            return Wake::At((now + self.plan.hold).min(now + COUNT_AFTER));
        }
        match self.phase {
            Phase::Press => self.apply_load(now, stage),
            Phase::Watch => self.watch(now),
            _ => Wake::Done,
        }
    }

    fn on_abandoned(&mut self, over: Vec<(usize, Talk)>) {
        self.note(over);
    }
}

impl ProbeListener for RoundDirector {
    fn probed(&mut self, probe: &Probe) {
        self.calm.note_probe(probe);
        if self.phase == Phase::Press && probe.due >= self.armed_at - self.origin {
            self.note_loaded_probe(probe);
        }
    }
}

/// After this time all possible connections are open.
const COUNT_AFTER: Nanos = Nanos::from_millis(100);
