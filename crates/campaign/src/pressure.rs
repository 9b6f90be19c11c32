//! Many connections at once, probes beside them: armed, pressed, released and watched until all is as
//! before. What it did to well-behaved clients is judged by [`outcome`] alone.

mod blame;
mod calm;
mod outcome;
mod volley;

pub(crate) use calm::Calm;
pub use outcome::{
    ARMED, BACK_WITHIN, CORRECT_HELD, DENIED_SHARE, DENIED_WINDOW, LATE_GRAVE, LATE_MAX, LOST_SHED,
    P99_FACTOR, P99_MORE, Pressed, PressureVerdict, REFUSED_MAX, SERVED_DEGRADED, SHED_SHARE,
    SLOW_FEW, health, outcome, slow_from,
};
pub(crate) use volley::{Ended, Volley};

use super::Runner;
use super::life::Struck;
use dialogue::talk::{Move, TalkScript};
use torture::judge::PressureOutcome;
use torture::result::{Health, Probe, Seen};
use units::{Nanos, show};

/// How often a round is repeated when the instrument was at fault.
pub const SICK_TRIES: u32 = 3;
/// Share of one core above which our own work is in the way: what is slow then may be ours.
pub const CPU_MAX: f64 = 0.8;
/// Kinds of pressure of one case that are kept.
const PRESSED_MAX: usize = 4;
/// Before anything presses, so that the kept probe has its connection.
const LEAD: Nanos = Nanos::from_millis(500);

/// So long every round presses, for some probes to fall due.
const PRESS_MIN: Nanos = Nanos::SECOND;

/// What is done in one round.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The conversations, and when each begins after the first.
    pub(crate) scripts: Vec<(Nanos, TalkScript)>,
    /// From the last one's beginning to the release of all.
    pub(crate) hold: Nanos,
    /// Released as soon as every conversation is over, and [`PRESS_MIN`] has passed.
    pub(crate) until_over: bool,
    /// Released when well-behaved clients were served again for so long, after they had been denied.
    pub(crate) until_served: Option<Nanos>,
    /// It presses from the first conversation on, and not only once all have begun.
    pub(crate) armed_early: bool,
    /// Probes are as before for so long: the round is over.
    pub(crate) calm: Nanos,
}

impl Plan {
    /// The server's end of a connection shows only where it is read.
    fn sees_ends(&self) -> bool {
        let deaf = |(_, script): &(Nanos, TalkScript)| script.steps.contains(&Move::StopReading);
        !self.scripts.iter().any(deaf)
    }

    /// These conversations, a `pace` apart.
    pub(crate) fn paced(scripts: Vec<TalkScript>, pace: Nanos, hold: Nanos) -> Plan {
        let at = |index: usize| pace * index as u64;
        Plan {
            scripts: scripts.into_iter().enumerate().map(|(i, script)| (at(i), script)).collect(),
            hold,
            until_over: false,
            until_served: None,
            armed_early: false,
            calm: Nanos::SECOND,
        }
    }
}

/// A round that is over.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) outcome: PressureOutcome,
    pub(crate) notes: Vec<String>,
    pub(crate) health: Health,
    /// What became of the conversations that pressed.
    pub(crate) ended: Vec<Ended>,
    /// The kept probe was served while all of them stood: it had a slot of its own.
    pub(crate) kept: bool,
    /// How long well-behaved clients were denied, from the first lost probe on.
    pub(crate) denied_for: Nanos,
    /// They were served again while the pressure went on ...
    pub(crate) served_again: bool,
    /// ... as the server ended some of it.
    pub(crate) came_back: bool,
}

impl Round {
    /// As many stood as were meant to.
    pub(crate) fn is_armed(&self) -> bool {
        self.health.armed as f64 >= self.health.wanted as f64 * ARMED
    }

    /// Well-behaved clients were not all served.
    pub(crate) fn is_bound(&self) -> bool {
        matches!(
            self.outcome,
            PressureOutcome::Denied
                | PressureOutcome::Crashed
                | PressureOutcome::Leak
                | PressureOutcome::Shed
        )
    }
}

impl Runner<'_> {
    /// One round, repeated when the instrument was at fault.
    pub(crate) fn round(&mut self, case: &str, plan: &Plan) -> Round {
        self.remember(plan);
        let mut tries = 1;
        loop {
            let round = self.round_once(case, plan);
            let sick = round.outcome == PressureOutcome::Inconclusive;
            if !sick || tries == SICK_TRIES || self.is_stopped() {
                return round;
            }
            tries += 1;
        }
    }

    /// Keeps the largest round of each kind.
    fn remember(&mut self, plan: &Plan) {
        let first = |plan: &Plan| plan.scripts.first().map(|(_, script)| script.steps.clone());
        let known = self.pressed.iter().position(|known| first(known) == first(plan));
        match known {
            Some(place) if plan.scripts.len() > self.pressed[place].scripts.len() => {
                self.pressed[place] = plan.clone();
            }
            None if self.pressed.len() < PRESSED_MAX => self.pressed.push(plan.clone()),
            _ => {}
        }
    }

    /// One round, whoever was at fault.
    pub(crate) fn round_once(&mut self, case: &str, plan: &Plan) -> Round {
        let base = self.quiet;
        self.world.own_work();
        let every = self.probing.every;
        let slow = slow_from(&base);
        let mut volley = Volley::new(plan.clone(), &self.plain, LEAD, slow, self.start, every);
        let probes = self.play_probed(case, &mut volley);
        let work = self.world.own_work();
        let wanted = plan.scripts.len() as u64;
        let pressed = volley.pressed(base, &probes, wanted);
        let felt = health(&pressed);
        let mut verdict = outcome(&pressed, &felt);
        let busy = work.filter(|share| *share > CPU_MAX);
        if let Some(share) = busy.filter(|_| verdict.outcome == PressureOutcome::Degraded) {
            let percent = show::share(share);
            verdict = PressureVerdict {
                outcome: PressureOutcome::Inconclusive,
                notes: vec![format!("our own work took {percent} of a core")],
            };
        }
        if self.hear_deaths() == Struck::Server {
            verdict.outcome = PressureOutcome::Crashed;
        }
        let (denied_for, served_again) = denial(&pressed);
        let (kept, gave_way) = (pressed.kept_served(), volley.gave_way());
        let (ended, lints) = volley.into_ended();
        self.lints.add(lints);
        Round {
            outcome: verdict.outcome,
            notes: verdict.notes,
            health: felt,
            kept,
            denied_for,
            served_again,
            came_back: served_again && gave_way,
            ended,
        }
    }

    /// Why nothing can be said of what well-behaved clients observe.
    pub(crate) fn noise(&self) -> Option<String> {
        if self.settings.accept_noisy { None } else { self.quiet.trouble() }
    }

    pub(crate) fn now(&mut self) -> Nanos {
        self.world.now()
    }

    /// Connections that may press at once, so many at most.
    pub(crate) fn connections_max(&mut self, most: u64) -> u64 {
        let bound = self.world.governor().bounds().map(|bounds| bounds.connections_max);
        bound.map_or(most, |bound| most.min(bound.saturating_sub(PROBES_OPEN))).max(1)
    }

    /// New connections a second that may press, so many at most.
    pub(crate) fn opens_max(&mut self, most: u64) -> u64 {
        let bound = self.world.governor().bounds().map(|bounds| bounds.opens_max);
        let left = |bound: u64| bound.saturating_sub(PROBES_OPENED).max(bound / 2);
        bound.map_or(most, |bound| most.min(left(bound))).max(1)
    }

    /// Requests that begin at the same instant without one waiting, so many at most: who is granted one
    /// and can write only an instant later asks twice.
    pub(crate) fn requests_max(&mut self, most: u64) -> u64 {
        let bound = self.world.governor().bounds().and_then(|bounds| bounds.requests_max);
        bound.map_or(most, |bound| most.min(bound.saturating_sub(BEACONS) / 2)).max(1)
    }

    /// Whether pressure that had an effect may be tried once more.
    pub(crate) fn may_repeat(&mut self) -> bool {
        self.world.governor().may_repeat()
    }

    /// Time that all rounds of a case may take together.
    pub(crate) fn rounds_max(&mut self) -> Nanos {
        let bound = self.world.governor().bounds().map(|bounds| bounds.case_max);
        bound.map_or(ROUNDS_MAX, |bound| Nanos(bound.0 / 3 * 2).min(ROUNDS_MAX))
    }
}

/// Connections, and new ones a second, that are left for probes: twice what the governor keeps.
const PROBES_OPEN: u64 = 8;
const PROBES_OPENED: u64 = 20;
/// Requests a second that are left for those which name a case to the server's log.
const BEACONS: u64 = 4;
const ROUNDS_MAX: Nanos = Nanos::from_secs(120);

/// How long well-behaved clients were denied while armed: from the first lost probe until one was answered
/// again, or the release; and whether they were served again before that.
fn denial(pressed: &Pressed<'_>) -> (Nanos, bool) {
    let worst = pressed.worst_kind();
    let mut lost = pressed.armed_probes(worst).filter(|probe| probe.seen == Seen::Lost);
    let Some(first) = lost.next() else { return (Nanos::ZERO, false) };
    let last = lost.last().unwrap_or(first);
    let served: Vec<&Probe> =
        pressed.armed_probes(worst).filter(|probe| probe.due > last.due).collect();
    let came_back = served.len() >= SLOW_FEW;
    let again = served.iter().map(|probe| probe.due + probe.over).min();
    let end = again.filter(|_| came_back).unwrap_or(pressed.released_at);
    (end - first.due, came_back)
}
