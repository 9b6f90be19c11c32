//! The search for the number of connections at which well-behaved clients are no longer served, the second
//! look, and the control arm.

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

/// The number of connections grows so many times until something gives.
const GROWTH: u64 = 4;
/// How long the second look lasts at most, where the server may come back while it is pressed ...
const LONG: Nanos = Nanos::from_secs(30);
/// ... and for how long it must have served again to be let go.
const SERVED_AGAIN: Nanos = Nanos::from_secs(3);
/// Of a round, besides the time that it presses.
const ROUND: Nanos = Nanos::from_secs(4);

/// Beyond a probe's deadline, so that enough of them are over.
const PROBE_WAIT_MORE: Nanos = Nanos::SECOND;

/// What presses: the conversation of one connection.
pub(super) type Make<'m> = &'m dyn Fn(&mut Runner<'_>) -> TalkScript;

/// What is held, by how many, and how long.
pub(super) struct Siege<'m> {
    pub(super) case: &'m Case,
    /// In words: `half a head`.
    pub(super) state: &'m str,
    pub(super) make: Make<'m>,
    /// The polite form of it; `None` where it is polite itself.
    pub(super) control: Option<Make<'m>>,
    pub(super) most: u64,
    /// How long the most are held when nothing gave before.
    pub(super) hold: Nanos,
}

/// The bracket: the most connections that well-behaved clients did not feel, and the fewest that they did.
#[derive(Default)]
struct Bracket {
    good: Option<(u64, Round)>,
    bad: Option<(u64, Round)>,
    /// Rounds in which the effect showed at the upper end.
    seen: u32,
}

impl Siege<'_> {
    pub(super) fn run(&self, runner: &mut Runner<'_>, result: &mut CaseResult) {
        if let Some(why) = pressure::noise(runner) {
            result.outcome = PressureOutcome::Inconclusive.into();
            result.notes.push(why);
            return;
        }
        if runner.settings.probing.keep && !runner.prober.keeps() {
            result.notes.push(
                "one kept connection alone keeps others from being served: probes came on new ones only"
                    .to_owned(),
            );
        }
        let start = runner.now();
        let most = bounds::connections_max(runner.world.governor(), self.most);
        let mut bracket = Bracket::default();
        if let Some(round) = self.climb(runner, most, &mut bracket) {
            return conclude(result, round);
        }
        while self.narrow(runner, start, &mut bracket) {}
        let former = bracket.good.as_ref().map(|(count, _)| *count);
        // well-behaved connections that had no effect have nothing to be held against
        let former =
            former.filter(|_| bracket.bad.is_some() || self.control.is_some() && !self.case.press);
        self.concluded(runner, result, bracket);
        if let Some(former) = former.filter(|_| runner.world.governor().may_repeat()) {
            refill(runner, result, former, &|runner, hold| self.find_places(runner, former, hold));
        }
    }

    /// Of `former` connections in this state, which well-behaved clients did not feel before, how many they
    /// do not feel now: all that count, or none.
    fn find_places(&self, runner: &mut Runner<'_>, former: u64, hold: Nanos) -> Option<u64> {
        let count = enough(former);
        let round = self.round(runner, count, hold.max(dwell(runner)));
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

    /// Ever more connections until something gives; a round of which nothing can be said ends it.
    fn climb(&self, runner: &mut Runner<'_>, most: u64, bracket: &mut Bracket) -> Option<Round> {
        let mut count = 1;
        loop {
            let hold = if count == most { self.hold } else { dwell(runner) };
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

    /// One round in the middle; false when there is nothing more to learn.
    fn narrow(&self, runner: &mut Runner<'_>, start: Nanos, bracket: &mut Bracket) -> bool {
        let Some((bad, _)) = &bracket.bad else { return false };
        let good = bracket.good.as_ref().map_or(0, |(count, _)| *count);
        let hold = dwell(runner);
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
        self.press(runner, self.make, count, hold, None)
    }

    fn press(
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

    /// Nothing gave. What was slow is looked at again: chance does not come twice.
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
            // nobody pressed: what well-behaved clients observed says nothing
            word = Some(PressureOutcome::Inconclusive.into());
        }
        let word = word.unwrap_or(round.outcome.into());
        conclude_as(result, word, round);
    }

    /// Once more what was slow; another word than that of the round, where there is one.
    fn look_again(
        &self,
        runner: &mut Runner<'_>,
        count: u64,
        round: &mut Round,
    ) -> Option<LoadOutcome> {
        let second = self.round(runner, count, self.hold);
        if second.outcome == PressureOutcome::Inconclusive {
            round.health.followed = 1;
            let said = "well-behaved clients were slow, and a second round said nothing";
            round.notes.push(said.to_owned());
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
            // who comes while a worker is started waits for it, once
            let said = "workers of the server came and went meanwhile, and were waited for";
            round.notes.push(said.to_owned());
            return Some(LoadOutcome::Advisory);
        }
        None
    }

    /// The pressure once more, longer, and the same number of well-behaved connections.
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
            only.notes.push("not tried once more, to spare the server (--confirm)".to_owned());
            return conclude(result, only);
        }
        let mut second = match first.outcome {
            PressureOutcome::Denied if self.case.press => {
                self.press(runner, self.make, count, LONG, Some(SERVED_AGAIN))
            }
            _ => self.round(runner, count, dwell(runner)),
        };
        let (rounds, followed) = match second.outcome {
            PressureOutcome::Inconclusive => {
                // what was seen before stands on its own
                second = first;
                second.notes.push("a second round said nothing".to_owned());
                (seen, seen)
            }
            _ => (seen + 1, seen + u32::from(second.is_bound())),
        };
        (second.health.rounds, second.health.followed) = (rounds, followed);
        if followed < rounds {
            let some = connections(count);
            second.notes.push(format!("{some} had an effect in {seen} of {} rounds", seen + 1));
            if runner.life.has_other_workers(runner.world) {
                let said =
                    "workers of the server came and went meanwhile, and its places with them";
                second.notes.push(said.to_owned());
            }
            return conclude_as(result, LoadOutcome::Flaky, second);
        }
        self.under_pressure(&mut second, result);
        if let Some(control) = self.control.filter(|_| second.outcome != PressureOutcome::Shed) {
            self.hold_against(runner, control, count, &mut second);
        }
        conclude(result, second);
    }

    /// The control arm: as many well-behaved connections as had an effect in this round.
    fn hold_against(
        &self,
        runner: &mut Runner<'_>,
        control: Make<'_>,
        count: u64,
        round: &mut Round,
    ) {
        let polite = self.press(runner, control, count, dwell(runner), None);
        let learned = polite.outcome != PressureOutcome::Inconclusive;
        let denied = learned.then(|| polite.is_bound());
        round.health.control_denied = denied;
        let (some, state) = (polite_connections(count), self.state);
        round.notes.push(match (denied, round.outcome) {
            (None, _) => format!("with {some} nothing could be said"),
            (Some(true), PressureOutcome::Denied) => {
                format!("with {some} it is the same: this is a limit on connections (C-01), not on {state}")
            }
            (Some(true), _) => format!("with {some} it is the same: it is their number, not {state}"),
            (Some(false), _) => format!("with {some} it is not so: {state} does it"),
        });
    }

    /// What the server did while it was pressed.
    fn under_pressure(&self, round: &mut Round, result: &mut CaseResult) {
        if round.outcome == PressureOutcome::Crashed {
            return;
        }
        let deadline = server_deadline(round);
        if let Some((span, count)) = deadline {
            result.measures.push(Measure::exact(
                format!("{}, pressed", self.state),
                span.as_secs_f64(),
                Unit::Seconds,
                format!("the server ended {count} of {}", round.health.wanted),
            ));
        }
        if round.outcome != PressureOutcome::Denied {
            return;
        }
        let span = show::duration(round.denied_for);
        round.notes.push(match (round.came_back, deadline) {
            (true, Some((held, count))) => format!(
                "denied for {span}, then served again while pressed: the server had ended {} after {}",
                connections(count as u64),
                show::duration(held)
            ),
            (true, None) => format!("denied for {span}, then served again while pressed"),
            (false, _) => format!("denied for {span}, as long as the pressure went on"),
        });
    }
}

fn connections(count: u64) -> String {
    format!("{count} connection{}", if count == 1 { "" } else { "s" })
}

fn polite_connections(count: u64) -> String {
    format!("{count} well-behaved connection{}", if count == 1 { "" } else { "s" })
}

impl Bracket {
    /// Takes a round in; whether it is one that was felt.
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

/// How long a round presses that only asks whether well-behaved clients are served: a probe's deadline, and
/// enough probes besides.
fn dwell(runner: &Runner<'_>) -> Nanos {
    runner.prober.deadline() + PROBE_WAIT_MORE
}

fn conclude(result: &mut CaseResult, round: Round) {
    conclude_as(result, round.outcome.into(), round);
}

/// The same by another word than that of the round.
fn conclude_as(result: &mut CaseResult, word: LoadOutcome, round: Round) {
    result.show(word);
    result.health = Some(round.health);
    result.notes.extend(round.notes);
}

/// Not as many stood as were meant to, and that was the server's doing.
fn unarmed(round: &Round) -> Option<String> {
    let (armed, wanted) = (round.health.armed, round.health.wanted);
    (!round.is_armed()).then(|| format!("no more than {armed} of {wanted} connections were open at once: the server ended or refused the others"))
}

/// The median time for which the server bore the connections that it ended, and how many they are;
/// `None` where it ended fewer than half.
fn server_deadline(round: &Round) -> Option<(Nanos, usize)> {
    use dialogue::talk::TalkEnd;
    let by_server = |end: TalkEnd| matches!(end, TalkEnd::Closed | TalkEnd::Broken(_));
    let mut spans: Vec<Nanos> =
        round.ended.iter().filter(|one| by_server(one.end)).map(|one| one.over).collect();
    spans.sort_unstable();
    let enough = !spans.is_empty() && spans.len() * 2 >= round.ended.len();
    enough.then(|| (spans[spans.len() / 2], spans.len()))
}

/// Slots: those that pressed, and the kept probe's where it had one. Where they all were served, so
/// was one new probe beside them.
/// The bracket of the slots as a measure, and the slots where they were exhausted.
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
            format!("beyond them well-behaved clients are {}", word(round))
        }
        _ => "no end within the bound".to_owned(),
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

fn word(round: &Round) -> &'static str {
    match round.outcome {
        PressureOutcome::Shed => "answered 503 or 429",
        _ => "not served",
    }
}
