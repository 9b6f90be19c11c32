//! States that are held while other cases go on. They take minutes where nothing ends them, and hardly
//! anything of the server: where it has room to spare, nothing has to wait for them.

use super::OthersServed;
use crate::Runner;
use crate::families::{is_slow, place};
use crate::probes::ProbeListener;
use dialogue::governor::Bounds;
use dialogue::talk::{Conversations, Director, Talk, TalkScript, Wake};
use torture::case::Case;
use torture::result::{CaseResult, Probe};
use torture::safety;
use torture::safety::Class;
use units::Nanos;

/// Silent connections that a server must bear beside the states: as many as cases that do not press have
/// at once.
const SPARE: usize = 24;
/// How long they stay at most: until the server is known to be full, or not.
const SPARE_FOR: Nanos = Nanos::from_secs(10);
/// New connections that are to be served beside all of them.
const RIGHT: u32 = 3;
/// How often is looked whether they are over: no more seldom than probes are sent.
const LOOK_EVERY: Nanos = Nanos::from_millis(200);

/// Bounds that leave room for both: those of servers on this machine.
const CONNECTIONS: u64 = 200;

/// Whether, among these cases, states are held beside others: somebody has the use of the time, and the
/// bounds have room for both.
pub(crate) fn are_beside(cases: &[Case], bounds: Option<&Bounds>) -> bool {
    let others = |case: &Case| place(case, true) == 0;
    cases.iter().any(is_slow)
        && cases.iter().any(others)
        && bounds.is_none_or(|bounds| bounds.connections_max >= CONNECTIONS)
}

impl Runner<'_> {
    /// Begins to hold the states of all cases that were asked for, where other cases have the use of the
    /// time and the server has room to spare.
    pub(crate) fn hold_beside(&mut self) {
        let Some(first) = self.first_beside() else { return };
        let mut wanted = self.wanted(&self.all_slow(&first));
        if wanted.is_empty() {
            return;
        }
        let now = self.now();
        wanted.iter_mut().for_each(|one| one.script.start = now);
        self.world.carried().begin(wanted.iter().map(|one| one.script.clone()).collect());
        self.meter.beside = wanted;
        let spare =
            (0..SPARE).map(|_| TalkScript { hold: true, ..self.bare(Vec::new(), SPARE_FOR) });
        let mut room = Room { scripts: spare.collect(), served: OthersServed::default() };
        self.play_probed(&first.id, &mut room);
        if room.served.right < RIGHT {
            self.let_go_beside();
            self.gate();
        }
    }

    /// The first of the cases whose states can be held beside others.
    fn first_beside(&mut self) -> Option<Case> {
        let address = self.target.peer.address();
        let local =
            address.is_none_or(|address| safety::strictest(&[address.ip()]) == Class::Local);
        let beside = are_beside(self.cases, self.world.governor().bounds());
        if !local || !beside || self.target.spoken.has_frames() || self.settings.soak.is_some() {
            return None;
        }
        let mut slow = self.cases.iter().filter(|case| is_slow(case) && self.is_given(case));
        slow.next().cloned()
    }

    /// States are held beside the cases.
    pub(crate) fn is_beside(&self) -> bool {
        !self.meter.beside.is_empty()
    }

    /// Nothing more is learned from what is held beside the cases: it is held again when it is asked for.
    pub(crate) fn let_go_beside(&mut self) {
        let wanted = std::mem::take(&mut self.meter.beside);
        if wanted.is_empty() {
            return;
        }
        self.meter.tried.retain(|tried| wanted.iter().all(|one| one.state != *tried));
        self.world.carried().let_go();
        self.world.talk(Vec::new());
        self.world.carried().take_over();
    }

    /// A case is over that may have ended what is held beside it.
    pub(crate) fn heed_beside(&mut self, done: &CaseResult) {
        let died = done.server.as_ref().is_some_and(|server| !server.deaths.is_empty());
        let lost = done.health.is_some_and(|felt| felt.lost > 0.0 || felt.shed > 0.0);
        if died || lost || done.recovery.is_some() {
            self.let_go_beside();
        }
    }

    /// Waits for what is held beside the cases.
    pub(super) fn await_beside(&mut self, case: &str) {
        if !self.is_beside() {
            return;
        }
        let mut rest = AwaitCarried(OthersServed::default());
        self.play_probed(case, &mut rest);
        if rest.0.is_full {
            return self.let_go_beside();
        }
        let wanted = std::mem::take(&mut self.meter.beside);
        let mut talks: Vec<Option<Talk>> = wanted.iter().map(|_| None).collect();
        for (at, talk) in self.world.carried().take_over() {
            if let Some(known) = talks.get_mut(at) {
                *known = Some(talk);
            }
        }
        for (one, talk) in wanted.into_iter().zip(talks) {
            self.keep(one, talk);
        }
    }
}

/// Holds silent connections until it is known whether others are served beside them.
struct Room {
    scripts: Vec<TalkScript>,
    served: OthersServed,
}

impl Director for Room {
    fn direct(&mut self, _: Nanos, stage: &mut Conversations<'_>, _: Vec<(usize, Talk)>) -> Wake {
        for script in std::mem::take(&mut self.scripts) {
            stage.add(script);
        }
        let known = self.served.right >= RIGHT || self.served.is_full;
        if known { Wake::Done } else { Wake::WhenOver }
    }
}

impl ProbeListener for Room {
    fn probed(&mut self, probe: &Probe) {
        self.served.probed(probe);
    }
}

/// Waits until nothing goes on beside it any more, or nobody else is served.
struct AwaitCarried(OthersServed);

impl Director for AwaitCarried {
    fn direct(&mut self, now: Nanos, stage: &mut Conversations<'_>, _: Vec<(usize, Talk)>) -> Wake {
        let over = stage.carried_count() == 0 || self.0.is_full;
        if over { Wake::Done } else { Wake::At(now + LOOK_EVERY) }
    }
}

impl ProbeListener for AwaitCarried {
    fn probed(&mut self, probe: &Probe) {
        self.0.probed(probe);
    }
}
