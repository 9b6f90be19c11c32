//! Holds the states: all of them together with health probes, so that a server with few slots is
//! noticed. If it has spare slots, they are held from the start of the run, during the cases
//! without load.

mod background;

pub(crate) use background::{
    handle_case_end, hold_in_background, is_in_background, release_background, run_in_background,
};

use super::states::SlowHold;
use crate::probes::ProbeListener;
use crate::slow_states::{HeldState, SlowState, WantedState};
use crate::{PLAIN_DEADLINE, Runner};
use dialogue::talk::{Conversations, Director, Move, Talk, TalkEnd, TalkScript, Wake};
use torture::case::{Case, Need};
use torture::catalogue;
use torture::result::{Probe, ProbeKind, Seen};
use torture::safety;
use torture::safety::Class;
use units::{Nanos, show};

/// Waiting time for the end of a state of a remote server, and of states held one after the other.
const HORIZON_ELSEWHERE: Nanos = Nanos::from_secs(75);
const HORIZON_SERIAL: Nanos = Nanos::from_secs(75);
/// Time for the rest of a response that was not read for a long time.
const DRAIN: Nanos = Nanos::from_secs(60);
/// Part of a case's time reserved for its start and end.
const MARGIN: Nanos = Nanos::from_secs(5);
/// Number of consecutive new connections without a response after which the server counts as full.
const LOST_MAX: u32 = 3;

/// Ensures that the states of this case have been held, together with those of all further cases.
/// Returns the reason if the state of this case cannot be held.
pub(crate) fn hold_states(runner: &mut Runner<'_>, case: &Case) -> Option<String> {
    let SlowHold { state, page, .. } = SlowHold::new(case)?;
    // the page that it needs exists and is long enough
    if let Some(why) = page.and_then(|(least, _)| big_page(runner, least).err()) {
        return Some(why);
    }
    background::await_background(runner, &case.id);
    if !runner.states.tried_states().contains(&state) && !runner.states.is_serial() {
        let wanted = wanted_states(runner, &slow_cases(runner, case));
        hold_all_states(runner, &case.id, wanted);
    }
    if !runner.states.tried_states().contains(&state) {
        let wanted = wanted_states(runner, std::slice::from_ref(case));
        hold_states_in_turn(runner, wanted);
    }
    None
}

/// Returns this case, the selected ones, and those needed for comparison.
fn slow_cases(runner: &Runner<'_>, case: &Case) -> Vec<Case> {
    let mut all = vec![case.clone()];
    let state = |case: &Case| SlowHold::new(case).map(|hold| hold.state);
    let asked = runner.cases.iter().filter(|one| !one.press && state(one).is_some());
    all.extend(asked.cloned());
    // the tests parse the catalog
    let known = catalogue::cases().unwrap_or_default();
    let partners: Vec<SlowState> =
        all.iter().filter_map(|one| state(one)?.without_drops()).collect();
    all.extend(known.into_iter().filter(|one| state(one).is_some_and(|s| partners.contains(&s))));
    let mut seen: Vec<SlowState> = runner.states.tried_states().to_vec();
    all.retain(|one| {
        let fresh = state(one).filter(|state| !seen.contains(state));
        seen.extend(fresh);
        fresh.is_some()
    });
    all.retain(|one| is_given(runner, one));
    all
}

/// Returns the case that holds a state if its needs are met: a selected case, or that of the
/// catalog.
pub(super) fn case_of(runner: &Runner<'_>, state: SlowState) -> Option<Case> {
    let holds = |case: &&Case| SlowHold::new(case).is_some_and(|hold| hold.state == state);
    let known = catalogue::cases().unwrap_or_default();
    let case = runner.cases.iter().find(holds).or_else(|| known.iter().find(holds))?.clone();
    is_given(runner, &case).then_some(case)
}

pub(crate) fn is_given(runner: &Runner<'_>, case: &Case) -> bool {
    case.needs.iter().all(|need| match need {
        Need::Post => runner.target.takes_bodies,
        Need::Tls => runner.target.tls_name.is_some(),
        _ => false,
    })
}

/// Returns the page that exceeds all buffers, and its length.
fn big_page(runner: &mut Runner<'_>, least: u64) -> Result<(String, u64), String> {
    let enough = show::bytes(least);
    let Some(path) = runner.settings.big.clone() else {
        let own = runner.profile.plain().body_len;
        return match own >= least {
            true => Ok((runner.target.values.path.clone(), own)),
            false => Err(format!("no page of {enough} or more is given (--big PATH)")),
        };
    };
    let (host, ours) = (&runner.target.values.host, &runner.target.fields);
    let head = format!("HEAD {path} HTTP/1.1\r\nHost: {host}\r\n{ours}Connection: close\r\n\r\n");
    let mut script = runner.bare(vec![Move::Send(head.into_bytes())], PLAIN_DEADLINE);
    script.methods = vec!["HEAD".to_owned()];
    script.probe = true;
    let talk = runner.hold(script);
    let response = talk.replies.responses.first().filter(|response| response.status == 200);
    let length =
        response.and_then(|response| response.field("content-length").next()?.parse().ok());
    match length {
        Some(length) if length >= least => Ok((path, length)),
        Some(length) => {
            let length = show::bytes(length);
            Err(format!("the --big page is too short: {length}, {enough} are needed"))
        }
        None => {
            let seen = torture::judge::seen(&talk);
            Err(format!("HEAD of the --big page returned no length: {seen}"))
        }
    }
}

/// Returns the waiting time within our limits.
fn horizon(runner: &mut Runner<'_>, hold: &SlowHold) -> Nanos {
    let address = runner.target.peer.address();
    let local = address.is_none_or(|address| safety::strictest(&[address.ip()]) == Class::Local);
    let asked = runner.settings.wait_max;
    let mut horizon = asked.unwrap_or(hold.horizon);
    if !local {
        horizon = horizon.min(HORIZON_ELSEWHERE);
    }
    if runner.states.is_serial() {
        horizon = horizon.min(HORIZON_SERIAL);
    }
    if asked.is_some() && local && hold.page.is_none() {
        // they are held alongside the cases, or the case gets this time
        runner.world.governor().lengthen_case(horizon + MARGIN);
        return horizon;
    }
    let permitted = runner.world.governor().bounds().map(|bounds| bounds.case_max);
    let room = permitted.map_or(Nanos::NEVER, |most| match hold.page.is_some() {
        // unread data must be counted within the time of the case
        true => most - DRAIN.min(Nanos(most.0 / 2)),
        false => most - MARGIN,
    });
    horizon.min(room)
}

fn wanted_states(runner: &mut Runner<'_>, cases: &[Case]) -> Vec<WantedState> {
    let mut wanted = Vec::new();
    for case in cases {
        let Some(hold) = SlowHold::new(case) else { continue };
        let state = hold.state;
        let horizon = horizon(runner, &hold);
        let mut big = String::new();
        if let Some((least, _)) = hold.page {
            match big_page(runner, least) {
                Ok((path, _)) => big = path,
                Err(_) => continue,
            }
        }
        runner.states.begin(state);
        for (name, steps) in hold.conversations(runner.target, horizon, &big) {
            let mut script = runner.bare(steps, horizon);
            script.hold = hold.page.is_none();
            if state.is_body() {
                script.methods = vec!["POST".to_owned()];
            }
            if let Some((_, buffer)) = hold.page {
                script.deadline = horizon + DRAIN;
                script.options.recv_buffer = u32::try_from(buffer).ok();
            }
            if state == SlowState::Handshake {
                script.tls_name = None;
            }
            wanted.push(WantedState { state, name, script, horizon });
        }
    }
    wanted
}

/// Holds all states at once. If the server is full because of them, the result is inconclusive.
fn hold_all_states(runner: &mut Runner<'_>, case: &str, mut wanted: Vec<WantedState>) {
    let now = runner.now();
    wanted.iter_mut().for_each(|one| one.script.start = now);
    let scripts: Vec<TalkScript> = wanted.iter().map(|one| one.script.clone()).collect();
    let mut together = Together::new(scripts);
    runner.play_with_probes(case, &mut together);
    if together.served.is_full {
        runner.states.set_serial();
        return;
    }
    for (one, talk) in wanted.into_iter().zip(together.talks) {
        keep(runner, one, talk);
    }
}

fn hold_states_in_turn(runner: &mut Runner<'_>, wanted: Vec<WantedState>) {
    for mut one in wanted {
        if runner.is_stopped() {
            return;
        }
        one.script.start = runner.now();
        let talk = runner.hold(one.script.clone());
        keep(runner, one, Some(talk));
    }
}

fn keep(runner: &mut Runner<'_>, wanted: WantedState, talk: Option<Talk>) {
    match talk.filter(|talk| !matches!(talk.end, TalkEnd::Bounded | TalkEnd::Ours)) {
        Some(talk) => runner.states.keep(HeldState { wanted, talk }),
        // a limit was reached first: the case of this state may have the time
        None => runner.states.forget(&[wanted.state]),
    }
}

/// Director that plays all conversations at once, and notices when no other client is served.
struct Together {
    scripts: Vec<TalkScript>,
    places: Vec<usize>,
    talks: Vec<Option<Talk>>,
    served: OthersServed,
}

impl Together {
    fn new(scripts: Vec<TalkScript>) -> Together {
        let talks = scripts.iter().map(|_| None).collect();
        Together { scripts, places: Vec::new(), talks, served: OthersServed::default() }
    }
}

/// Tracks whether other clients are served, using probes on new connections.
#[derive(Clone, Copy, Debug, Default)]
struct OthersServed {
    /// Number of consecutive losses, up to the last probe.
    lost: u32,
    right: u32,
    any_lost: bool,
    is_full: bool,
}

impl OthersServed {
    fn probed(&mut self, probe: &Probe) {
        if probe.kind != ProbeKind::New || probe.ours {
            return;
        }
        let right = probe.seen == Seen::Correct;
        self.lost = if right { 0 } else { self.lost + 1 };
        self.right += u32::from(right);
        self.any_lost |= !right;
        self.is_full |= self.lost >= LOST_MAX;
    }

    /// Returns whether at least this many were served, and no other was lost.
    fn are_all(&self, right: u32) -> bool {
        self.right >= right && !self.any_lost
    }
}

impl Director for Together {
    fn direct(
        &mut self,
        _: Nanos,
        stage: &mut Conversations<'_>,
        over: Vec<(usize, Talk)>,
    ) -> Wake {
        let scripts = std::mem::take(&mut self.scripts);
        self.places.extend(scripts.into_iter().map(|script| stage.add(script)));
        self.on_abandoned(over);
        let all_over = self.talks.iter().all(Option::is_some);
        if all_over || self.served.is_full { Wake::Done } else { Wake::WhenOver }
    }

    fn on_abandoned(&mut self, over: Vec<(usize, Talk)>) {
        for (place, talk) in over {
            // a probe reuses a slot only after its conversation is over
            let free =
                |(at, known): &(usize, &usize)| **known == place && self.talks[*at].is_none();
            let found = self.places.iter().enumerate().find(free).map(|(at, _)| at);
            if let Some(at) = found {
                self.talks[at] = Some(talk);
            }
        }
    }
}

impl ProbeListener for Together {
    fn probed(&mut self, probe: &Probe) {
        self.served.probed(probe);
    }
}
