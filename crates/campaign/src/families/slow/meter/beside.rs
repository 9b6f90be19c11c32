//! States that are held while other cases go on. They take minutes where nothing ends them, and hardly
//! anything of the server: where it has room to spare, nothing has to wait for them.

use super::OthersServed;
use crate::families::slow::meter;
use crate::families::{is_slow, place};
use crate::probes::ProbeListener;
use crate::{Runner, gate};
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

/// Begins to hold the states of all cases that were asked for, where other cases have the use of the
/// time and the server has room to spare.
pub(crate) fn hold_beside(runner: &mut Runner<'_>) {
    let Some(first) = first_beside(runner) else { return };
    let mut wanted = meter::wanted(runner, &meter::all_slow(runner, &first));
    if wanted.is_empty() {
        return;
    }
    let now = runner.now();
    wanted.iter_mut().for_each(|one| one.script.start = now);
    runner.world.carried().begin(wanted.iter().map(|one| one.script.clone()).collect());
    runner.states.begin_beside(wanted);
    let spare = (0..SPARE).map(|_| TalkScript { hold: true, ..runner.bare(Vec::new(), SPARE_FOR) });
    let mut room = Room { scripts: spare.collect(), served: OthersServed::default() };
    runner.play_probed(&first.id, &mut room);
    if room.served.right < RIGHT {
        let_go_beside(runner);
        gate::pass(runner);
    }
}

/// The first of the cases whose states can be held beside others.
fn first_beside(runner: &mut Runner<'_>) -> Option<Case> {
    let address = runner.target.peer.address();
    let local = address.is_none_or(|address| safety::strictest(&[address.ip()]) == Class::Local);
    let beside = are_beside(runner.cases, runner.world.governor().bounds());
    if !local || !beside || runner.target.spoken.has_frames() || runner.settings.soak.is_some() {
        return None;
    }
    let mut slow =
        runner.cases.iter().filter(|case| is_slow(case) && meter::is_given(runner, case));
    slow.next().cloned()
}

/// States are held beside the cases.
pub(crate) fn is_beside(runner: &Runner<'_>) -> bool {
    runner.states.is_beside()
}

/// Nothing more is learned from what is held beside the cases: it is held again when it is asked for.
pub(crate) fn let_go_beside(runner: &mut Runner<'_>) {
    let wanted = runner.states.end_beside();
    if wanted.is_empty() {
        return;
    }
    let states: Vec<_> = wanted.iter().map(|one| one.state).collect();
    runner.states.forget(&states);
    runner.world.carried().let_go();
    runner.world.talk(Vec::new());
    runner.world.carried().take_over();
}

/// A case is over that may have ended what is held beside it.
pub(crate) fn heed_beside(runner: &mut Runner<'_>, done: &CaseResult) {
    let died = done.server.as_ref().is_some_and(|server| !server.deaths.is_empty());
    let lost = done.health.is_some_and(|felt| felt.lost > 0.0 || felt.shed > 0.0);
    if died || lost || done.recovery.is_some() {
        let_go_beside(runner);
    }
}

/// Waits for what is held beside the cases.
pub(super) fn await_beside(runner: &mut Runner<'_>, case: &str) {
    if !is_beside(runner) {
        return;
    }
    let mut rest = AwaitCarried(OthersServed::default());
    runner.play_probed(case, &mut rest);
    if rest.0.is_full {
        return let_go_beside(runner);
    }
    let wanted = runner.states.end_beside();
    let mut talks: Vec<Option<Talk>> = wanted.iter().map(|_| None).collect();
    for (at, talk) in runner.world.carried().take_over() {
        if let Some(known) = talks.get_mut(at) {
            *known = Some(talk);
        }
    }
    for (one, talk) in wanted.into_iter().zip(talks) {
        meter::keep(runner, one, talk);
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
