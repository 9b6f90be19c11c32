//! States held during other cases. They take minutes without a timeout but almost no server
//! resources: if the server has room, no case needs to wait for them.

use super::OthersServed;
use crate::families::slow::meter;
use crate::families::{is_slow, precedes_states};
use crate::probes::ProbeListener;
use crate::{CampaignEvent, Runner, gate};
use dialogue::governor::Bounds;
use dialogue::talk::{Conversations, Director, Move, Talk, TalkScript, Wake};
use torture::case::Case;
use torture::result::{CaseResult, Probe, Recovery};
use torture::safety;
use torture::safety::Class;
use units::Nanos;

/// Number of half heads that a server must sustain in addition to the states: as many connections
/// as cases without load use at once, each of which occupies a worker.
const SPARE: usize = 24;
/// Bytes that each half head sends.
const SPARE_HEAD: &[u8] = b"GET / HTTP/1.1\r\n";
/// Maximum lifetime of half heads: until it is known whether the server is full.
const SPARE_FOR: Nanos = Nanos::from_secs(10);
/// Number of new connections that must all be served in addition. Together they take longer than
/// the timeout of a probe, because some workers may be full while others still respond.
const RIGHT: u32 = 15;
/// Interval of checking whether they are over, at most the probe interval.
const POLL_INTERVAL: Nanos = Nanos::from_millis(200);

/// Limits of connections with room for both: those for servers on this machine.
const CONNECTIONS: u64 = 200;

/// Returns whether states are held during these cases: other cases can use the time, and the limits
/// have room for both.
pub(crate) fn run_in_background(cases: &[Case], bounds: Option<&Bounds>) -> bool {
    cases.iter().any(is_slow)
        && cases.iter().any(precedes_states)
        && bounds.is_none_or(|bounds| bounds.connections_max >= CONNECTIONS)
}

/// Starts to hold the states of all selected cases, if other cases can use the time and the server
/// has room.
pub(crate) fn hold_in_background(runner: &mut Runner<'_>) {
    let Some(first) = first_background(runner) else { return };
    let mut wanted = meter::wanted_states(runner, &meter::slow_cases(runner, &first));
    if wanted.is_empty() {
        return;
    }
    let now = runner.now();
    wanted.iter_mut().for_each(|one| one.script.start = now);
    runner.world.carried().begin(wanted.iter().map(|one| one.script.clone()).collect());
    runner.states.begin_background(wanted);
    let head = || vec![Move::Send(SPARE_HEAD.to_vec())];
    let spare = (0..SPARE).map(|_| TalkScript { hold: true, ..runner.bare(head(), SPARE_FOR) });
    let mut room = Room { scripts: spare.collect(), served: OthersServed::default() };
    runner.play_with_probes(&first.id, &mut room);
    if !room.served.are_all(RIGHT) {
        release_background(runner);
        gate::pass(runner);
    }
}

/// Returns the first case whose states can be held alongside others.
fn first_background(runner: &mut Runner<'_>) -> Option<Case> {
    let address = runner.target.peer.address();
    let local = address.is_none_or(|address| safety::strictest(&[address.ip()]) == Class::Local);
    let beside = run_in_background(runner.cases, runner.world.governor().bounds());
    if !local || !beside || runner.target.protocol.has_frames() || runner.settings.soak.is_some() {
        return None;
    }
    let mut slow =
        runner.cases.iter().filter(|case| is_slow(case) && meter::is_given(runner, case));
    slow.next().cloned()
}

/// Returns whether states are held alongside the cases.
pub(crate) fn is_in_background(runner: &Runner<'_>) -> bool {
    runner.states.is_in_background()
}

/// Releases the states held during the cases; they are held again on request.
pub(crate) fn release_background(runner: &mut Runner<'_>) {
    let wanted = runner.states.end_background();
    if wanted.is_empty() {
        return;
    }
    let states: Vec<_> = wanted.iter().map(|one| one.state).collect();
    runner.states.forget(&states);
    runner.world.carried().release();
    runner.world.talk(Vec::new());
    runner.world.carried().take_over();
}

/// Handles the end of a case that may have closed held connections.
pub(crate) fn handle_case_end(runner: &mut Runner<'_>, done: &CaseResult) {
    let died = done.server.as_ref().is_some_and(|server| !server.deaths.is_empty());
    let lost = done.health.is_some_and(|felt| felt.lost > 0.0 || felt.shed > 0.0);
    if !(died || lost || done.recovery.is_late()) || !is_in_background(runner) {
        return;
    }
    release_background(runner);
    if done.recovery != Recovery::Never && runner.states.may_hold_again() {
        hold_in_background(runner);
    }
}

/// Waits for the connections held alongside the cases.
pub(super) fn await_background(runner: &mut Runner<'_>, case: &str) {
    if !is_in_background(runner) {
        return;
    }
    let until = runner.states.background_ends();
    let names = runner.states.background_names();
    runner.report(CampaignEvent::Awaits { names: &names, until });
    let mut rest = AwaitCarried(OthersServed::default());
    runner.play_with_probes(case, &mut rest);
    if rest.0.is_full {
        return release_background(runner);
    }
    let wanted = runner.states.end_background();
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

/// Director that holds half heads until it is known whether other clients are served.
struct Room {
    scripts: Vec<TalkScript>,
    served: OthersServed,
}

impl Director for Room {
    fn direct(&mut self, _: Nanos, stage: &mut Conversations<'_>, _: Vec<(usize, Talk)>) -> Wake {
        for script in std::mem::take(&mut self.scripts) {
            stage.add(script);
        }
        let known = self.served.right >= RIGHT || self.served.any_lost;
        if known { Wake::Done } else { Wake::WhenOver }
    }
}

impl ProbeListener for Room {
    fn probed(&mut self, probe: &Probe) {
        self.served.probed(probe);
    }
}

/// Director that waits until all carried conversations are over, or no other client is served.
struct AwaitCarried(OthersServed);

impl Director for AwaitCarried {
    fn direct(&mut self, now: Nanos, stage: &mut Conversations<'_>, _: Vec<(usize, Talk)>) -> Wake {
        let over = stage.carried_count() == 0 || self.0.is_full;
        if over { Wake::Done } else { Wake::At(now + POLL_INTERVAL) }
    }
}

impl ProbeListener for AwaitCarried {
    fn probed(&mut self, probe: &Probe) {
        self.0.probed(probe);
    }
}
