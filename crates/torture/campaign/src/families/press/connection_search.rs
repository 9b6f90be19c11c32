//! The search for the number of connections at which well-behaved clients are no longer served, the
//! confirmation, and the control run.

use super::refill::{enough, refill};
use super::{OPENS, pace};
use crate::pressure::{Plan, Round};
use crate::{Runner, bounds, pressure};
use dialogue::talk::TalkScript;
use torture::case::Case;
use torture::cost::SLOTS;
use torture::judge::{LoadOutcome, PressureOutcome};
use torture::result::{CaseResult, Measure, Unit};
use units::{Nanos, show};

/// Growth factor of the number of connections.
const GROWTH: u64 = 4;
/// Maximum duration of the confirmation, if the server may recover under load ...
const LONG: Nanos = Nanos::from_secs(30);
/// ... and how long it must have served again to end it.
const SERVED_AGAIN: Nanos = Nanos::from_secs(3);
/// Time of a round in addition to its load.
const ROUND: Nanos = Nanos::from_secs(4);

/// Time beyond a probe's deadline, so that enough probes complete.
const PROBE_WAIT_MORE: Nanos = Nanos::SECOND;

/// Builds the conversation of one connection of the load.
pub(super) type Make<'m> = &'m dyn Fn(&mut Runner<'_>) -> TalkScript;

/// Held state, number of connections, and duration.
pub(super) struct ConnectionSearch<'m> {
    pub(super) case: &'m Case,
    /// Description: `half a head`.
    pub(super) state: &'m str,
    pub(super) make: Make<'m>,
    /// Well-behaved form of the connection; `None` if the connection is already well-behaved.
    pub(super) control: Option<Make<'m>>,
    pub(super) most: u64,
    /// Duration for which the maximum is held if nothing failed before.
    pub(super) hold: Nanos,
}

/// The largest number of connections without an effect on well-behaved clients, and the smallest
/// with one.
#[derive(Default)]
struct Bracket {
    good: Option<(u64, Round)>,
    bad: Option<(u64, Round)>,
    /// Rounds in which the upper end had an effect.
    seen: u32,
}

impl ConnectionSearch<'_> {
    pub(super) fn run(&self, runner: &mut Runner<'_>, result: &mut CaseResult) {
        if let Some(why) = pressure::noise(runner) {
            result.outcome = PressureOutcome::Inconclusive.into();
            result.notes.push(why);
            return;
        }
        if runner.settings.probing.keep && !runner.prober.keeps() {
            result.notes.push(
                "one kept connection alone blocks all others: probes used new connections only"
                    .to_owned(),
            );
        }
        let start = runner.now();
        let most = bounds::connections_max(runner.world.governor(), self.most);
        let mut bracket = Bracket::default();
        if let Some(round) = self.raise_connections(runner, most, &mut bracket) {
            return conclude(result, round);
        }
        while self.bisect(runner, start, &mut bracket) {}
        let former = bracket.good.as_ref().map(|(count, _)| *count);
        // well-behaved connections without an effect need no control
        let former =
            former.filter(|_| bracket.bad.is_some() || self.control.is_some() && !self.case.press);
        self.concluded(runner, result, bracket);
        if let Some(former) = former.filter(|_| runner.world.governor().may_repeat()) {
            refill(runner, result, former, &|runner, hold| self.find_places(runner, former, hold));
        }
    }

    /// Returns how many of `former` connections in this state, which had no effect before, have
    /// none now: all or zero.
    fn find_places(&self, runner: &mut Runner<'_>, former: u64, hold: Nanos) -> Option<u64> {
        let count = enough(former);
        let round = self.round(runner, count, hold.max(hold_time(runner)));
        match round.outcome {
            PressureOutcome::Inconclusive => None,
            // more workers were started for them
            _ if round.served_again => Some(count),
            _ if round.is_bound() => Some(0),
            _ => Some(count),
        }
    }

    fn concluded(&self, runner: &mut Runner<'_>, result: &mut CaseResult, mut bracket: Bracket) {
        match (bracket.bad.take(), bracket.good.take()) {
            (Some((count, first)), good) => {
                runner.profile.learn_slots(slots(result, good.as_ref(), Some((count, &first))));
                self.again(runner, result, count, first, bracket.seen);
            }
            (None, Some((count, round))) => {
                slots(result, Some(&(count, round.clone())), None);
                self.confirm(runner, result, count, round);
            }
            (None, None) => result.outcome = PressureOutcome::Inconclusive.into(),
        }
    }

    /// Adds connections until something fails; an inconclusive round ends it.
    fn raise_connections(
        &self,
        runner: &mut Runner<'_>,
        most: u64,
        bracket: &mut Bracket,
    ) -> Option<Round> {
        let mut count = 1;
        loop {
            let hold = if count == most { self.hold } else { hold_time(runner) };
            let round = self.round(runner, count, hold);
            if round.outcome == PressureOutcome::Inconclusive || runner.is_stopped() {
                return Some(Round { outcome: PressureOutcome::Inconclusive, ..round });
            }
            if bracket.place(count, round) || count == most {
                return None;
            }
            count = (count * GROWTH).min(most);
        }
    }

    /// Runs a round halfway between the bounds; returns false if the search is complete.
    fn bisect(&self, runner: &mut Runner<'_>, start: Nanos, bracket: &mut Bracket) -> bool {
        let Some((bad, _)) = &bracket.bad else { return false };
        let good = bracket.good.as_ref().map_or(0, |(count, _)| *count);
        let hold = hold_time(runner);
        if bad - good <= 1
            || runner.now() + hold + ROUND > start + bounds::rounds_max(runner.world.governor())
            || runner.is_stopped()
        {
            return false;
        }
        let middle = good + (bad - good) / 2;
        let round = self.round(runner, middle, hold);
        if round.outcome == PressureOutcome::Inconclusive {
            return false;
        }
        bracket.place(middle, round);
        true
    }

    fn round(&self, runner: &mut Runner<'_>, count: u64, hold: Nanos) -> Round {
        self.run_round(runner, self.make, count, hold, None)
    }

    fn run_round(
        &self,
        runner: &mut Runner<'_>,
        make: Make<'_>,
        count: u64,
        hold: Nanos,
        until_served: Option<Nanos>,
    ) -> Round {
        let scripts = (0..count).map(|_| make(runner)).collect();
        let plan = Plan {
            until_served,
            ..Plan::paced(scripts, pace(bounds::opens_max(runner.world.governor(), OPENS)), hold)
        };
        pressure::round(runner, &self.case.id, &plan)
    }

    /// Repeats a slow result if nothing failed, to exclude chance.
    fn confirm(
        &self,
        runner: &mut Runner<'_>,
        result: &mut CaseResult,
        count: u64,
        mut round: Round,
    ) {
        let mut word = None;
        if round.outcome == PressureOutcome::Degraded {
            word = self.look_again(runner, count, &mut round);
        }
        if let Some(note) = unarmed(&round) {
            round.notes.push(note);
        }
        if round.health.armed == 0 {
            // without load, the effect on well-behaved clients says nothing
            word = Some(PressureOutcome::Inconclusive.into());
        }
        let word = word.unwrap_or(round.outcome.into());
        conclude_as(result, word, round);
    }

    /// Repeats a slow round; returns a different verdict, if any.
    fn look_again(
        &self,
        runner: &mut Runner<'_>,
        count: u64,
        round: &mut Round,
    ) -> Option<LoadOutcome> {
        let second = self.round(runner, count, self.hold);
        if second.outcome == PressureOutcome::Inconclusive {
            round.health.followed = 1;
            let text = "well-behaved clients were slow, and a second round was inconclusive";
            round.notes.push(text.to_owned());
            return Some(PressureOutcome::Inconclusive.into());
        }
        round.health.rounds = 2;
        round.health.followed = 1 + u32::from(second.outcome >= PressureOutcome::Degraded);
        if round.health.followed == 1 {
            let kept = (round.health.rounds, round.health.followed);
            *round = second;
            (round.health.rounds, round.health.followed) = kept;
            round.notes.push("well-behaved clients were slow in one of two rounds".to_owned());
        }
        if round.outcome == PressureOutcome::Degraded && runner.life.has_other_workers(runner.world)
        {
            // a client that arrives during a worker start waits for it, once
            let text = "the server started and stopped workers meanwhile, and clients waited for \
                them";
            round.notes.push(text.to_owned());
            return Some(LoadOutcome::Advisory);
        }
        None
    }

    /// Repeats the load, longer, and the same number of well-behaved connections.
    fn again(
        &self,
        runner: &mut Runner<'_>,
        result: &mut CaseResult,
        count: u64,
        first: Round,
        seen: u32,
    ) {
        if !runner.world.governor().may_repeat() {
            let mut only = first;
            (only.health.rounds, only.health.followed) = (seen, seen);
            only.notes.push("not repeated, to spare the server (--confirm repeats it)".to_owned());
            return conclude(result, only);
        }
        let mut second = match first.outcome {
            PressureOutcome::Denied if self.case.press => {
                self.run_round(runner, self.make, count, LONG, Some(SERVED_AGAIN))
            }
            _ => self.round(runner, count, hold_time(runner)),
        };
        let (rounds, followed) = match second.outcome {
            PressureOutcome::Inconclusive => {
                // the earlier observation is kept
                second = first;
                second.notes.push("a second round was inconclusive".to_owned());
                (seen, seen)
            }
            _ => (seen + 1, seen + u32::from(second.is_bound())),
        };
        (second.health.rounds, second.health.followed) = (rounds, followed);
        if followed < rounds {
            let some = connections(count);
            second.notes.push(format!("{some} had an effect in {seen} of {} rounds", seen + 1));
            if runner.life.has_other_workers(runner.world) {
                let text =
                    "the server started and stopped workers meanwhile, and its slots with them";
                second.notes.push(text.to_owned());
            }
            return conclude_as(result, LoadOutcome::Flaky, second);
        }
        self.under_pressure(&mut second, result);
        if let Some(control) = self.control.filter(|_| second.outcome != PressureOutcome::Shed) {
            self.run_control(runner, control, count, &mut second);
        }
        conclude(result, second);
    }

    /// Runs the control: the same number of well-behaved connections as had an effect in this
    /// round.
    fn run_control(
        &self,
        runner: &mut Runner<'_>,
        control: Make<'_>,
        count: u64,
        round: &mut Round,
    ) {
        let polite = self.run_round(runner, control, count, hold_time(runner), None);
        let learned = polite.outcome != PressureOutcome::Inconclusive;
        let denied = learned.then(|| polite.is_bound());
        round.health.control_denied = denied;
        let (some, state) = (well_behaved_connections(count), self.state);
        round.notes.push(match (denied, round.outcome) {
            (None, _) => format!("the control run with {some} was inconclusive"),
            (Some(true), PressureOutcome::Denied) => {
                format!(
                    "{some} have the same effect: this is a connection limit (C-01), not \
                    caused by {state}"
                )
            }
            (Some(true), _) => format!(
                "{some} have the same effect: their number is the cause, \
                not {state}"
            ),
            (Some(false), _) => format!("{some} have no such effect: {state} is the cause"),
        });
    }

    /// Records the server's behavior under load.
    fn under_pressure(&self, round: &mut Round, result: &mut CaseResult) {
        if round.outcome == PressureOutcome::Crashed {
            return;
        }
        let deadline = server_deadline(round);
        if let Some((span, count)) = deadline {
            result.measures.push(Measure::exact(
                format!("{}, under load", self.state),
                span.as_secs_f64(),
                Unit::Seconds,
                format!("the server closed {count} of {}", round.health.wanted),
            ));
        }
        if round.outcome != PressureOutcome::Denied {
            return;
        }
        let span = show::duration(round.denied_for);
        round.notes.push(match (round.came_back, deadline) {
            (true, Some((held, count))) => format!(
                "no service for {span}, then recovered under load: the server had closed {} \
                after {}",
                connections(count as u64),
                show::duration(held)
            ),
            (true, None) => format!("no service for {span}, then recovered under load"),
            (false, _) => format!("no service for {span}, until the load ended"),
        });
    }
}

fn connections(count: u64) -> String {
    format!("{count} connection{}", if count == 1 { "" } else { "s" })
}

fn well_behaved_connections(count: u64) -> String {
    format!("{count} well-behaved connection{}", if count == 1 { "" } else { "s" })
}

impl Bracket {
    /// Adds a round; returns whether it had an effect.
    fn place(&mut self, count: u64, round: Round) -> bool {
        let felt = round.is_bound();
        if felt {
            self.seen = 1;
            self.bad = Some((count, round));
        } else {
            self.good = Some((count, round));
        }
        felt
    }
}

/// Returns the duration of a round that only checks service: a probe's deadline, and time for
/// enough probes.
fn hold_time(runner: &Runner<'_>) -> Nanos {
    runner.prober.deadline() + PROBE_WAIT_MORE
}

fn conclude(result: &mut CaseResult, round: Round) {
    conclude_as(result, round.outcome.into(), round);
}

/// Concludes with a verdict other than that of the round.
fn conclude_as(result: &mut CaseResult, word: LoadOutcome, round: Round) {
    result.show(word);
    result.health = Some(round.health);
    result.notes.extend(round.notes);
}

/// Returns a note if fewer connections than wanted were open because of the server.
fn unarmed(round: &Round) -> Option<String> {
    let (armed, wanted) = (round.health.armed, round.health.wanted);
    (!round.is_armed()).then(|| {
        format!(
            "no more than {armed} of {wanted} connections were open \
        at once: the server closed or refused the others"
        )
    })
}

/// Returns the median time after which the server closed connections, and their number; `None` if
/// it closed fewer than half.
fn server_deadline(round: &Round) -> Option<(Nanos, usize)> {
    use dialogue::talk::TalkEnd;
    let by_server = |end: TalkEnd| matches!(end, TalkEnd::Closed | TalkEnd::Broken(_));
    let mut spans: Vec<Nanos> =
        round.ended.iter().filter(|one| by_server(one.end)).map(|one| one.over).collect();
    spans.sort_unstable();
    let enough = !spans.is_empty() && spans.len() * 2 >= round.ended.len();
    enough.then(|| (spans[spans.len() / 2], spans.len()))
}

/// Returns the number of slots: those of the load and of the kept probe; if all were served, the
/// new probes used one more. Records the bracket as a measure, and returns the slots if they were
/// exhausted.
fn slots(
    result: &mut CaseResult,
    good: Option<&(u64, Round)>,
    bad: Option<(u64, &Round)>,
) -> Option<u64> {
    let kept = |round: &Round| u64::from(round.kept);
    let high = bad.map(|(count, round)| count + kept(round));
    let low = match good {
        Some((_, round)) if !round.is_armed() => round.health.armed,
        Some((count, round)) => count + kept(round) + 1,
        None => 1,
    };
    let low = high.map_or(low, |high| low.min(high));
    let note = match (bad, high) {
        (Some((_, round)), Some(_)) => {
            format!("beyond them well-behaved clients are {}", label(round))
        }
        _ => "no limit found within our bounds".to_owned(),
    };
    result.measures.push(Measure {
        what: SLOTS.to_owned(),
        low: Some(low as f64),
        high: high.map(|high| high as f64),
        unit: Unit::Connections,
        note,
    });
    high.map(|_| low)
}

fn label(round: &Round) -> &'static str {
    match round.outcome {
        PressureOutcome::Shed => "refused with 503 or 429",
        _ => "not served",
    }
}
