//! The timeout meter: how long the server keeps an unfinished connection, one connection for each
//! state. All states are held together if the server has room for them, and otherwise one after the
//! other.

mod meter;
mod states;
mod verdict;

use crate::Runner;
use crate::slow_states::{HeldState, SlowState};
pub(crate) use meter::{
    handle_case_end, hold_in_background, is_given, is_in_background, release_background,
    run_in_background,
};
pub(super) use states::SlowHold;

use torture::case::Case;
use torture::judge::ConversationOutcome;
use torture::record::Execution;
use torture::result::{CaseResult, ExchangeResult, Measure};

/// Runs a case that holds a slow state.
pub(super) fn run(runner: &mut Runner<'_>, case: &Case, result: &mut CaseResult) {
    let hold = SlowHold::new(case).expect("every slow family holds a state");
    let state = hold.state;
    if let Some(why) = meter::hold_states(runner, case) {
        return result.skip(why);
    }
    let others = state.without_drops().map_or(Vec::new(), |other| runner.states.held_in(other));
    let held = runner.states.held_in(state);
    if held.is_empty() {
        result.note(
            ConversationOutcome::Inconclusive,
            "the run ended before the result was known".to_owned(),
        );
        return;
    }
    if held.iter().all(HeldState::was_answered_early) {
        let seen = held.first().map(HeldState::seen).unwrap_or_default();
        return result.skip(format!("responded before the body arrived: {seen}"));
    }
    for held in held.iter().filter(|held| !held.was_answered_early()) {
        let steady = others.iter().find(|one| one.is_as(held));
        let (judgement, measure) = held.judged(&hold, steady);
        runner.report_conversation(&Execution {
            case,
            name: &held.wanted.name,
            attempt: 1,
            script: &held.wanted.script,
            talk: &held.talk,
            judgement: &judgement,
        });
        result.show(judgement.outcome);
        result.measures.extend(measure);
        if runner.states.is_serial() {
            let note = "the server has too few slots for all states at once: they were tested one at a \
                time";
            result.notes = vec![note.to_owned()];
        }
        result.exchanges.push(ExchangeResult {
            name: held.wanted.name.clone(),
            judgement,
            tries: 1,
            failed: 0,
            // only the start: a dripped request without its pauses is a different request
            sent: held.first_sent(),
            received: held.talk.raw.clone(),
            took: held.talk.over,
            pauses: Vec::new(),
        });
    }
}

/// Configurable timeouts, each with the states that it must end.
const DEADLINES: [(&str, &[SlowState]); 3] = [
    ("keep-alive", &[SlowState::Idle]),
    ("head", &[SlowState::Head, SlowState::HeadDripped]),
    ("body", &[SlowState::Body, SlowState::BodyDripped]),
];

/// Records for each timeout the longest connection measured in the group of slow clients, for the
/// page of limits.
pub(super) fn summary(runner: &mut Runner<'_>, result: &mut CaseResult) {
    for (what, states) in DEADLINES {
        let mut longest: Option<Measure> = None;
        for state in states {
            for measure in measured(runner, *state) {
                let endless = longest.as_ref().is_some_and(|known| known.high.is_none());
                let longer = measure.high.is_none()
                    || longest.as_ref().is_none_or(|known| known.high < measure.high);
                if longer && !endless {
                    let note = format!("{}: {}", measure.what, measure.note);
                    longest = Some(Measure { what: what.to_owned(), note, ..measure });
                }
            }
        }
        let Some(measure) = longest else { continue };
        if measure.high.is_none() {
            let span = measure.low.unwrap_or_default();
            let why = format!("no timeout seen within {span:.0} s: {what}");
            result.note(ConversationOutcome::Advisory, why);
        }
        result.measures.push(measure);
    }
    if result.measures.is_empty() {
        result.note(ConversationOutcome::Inconclusive, "no timeout could be measured".to_owned());
    }
}

/// Returns the measures of a state; holds the state now if it was not held before.
fn measured(runner: &mut Runner<'_>, state: SlowState) -> Vec<Measure> {
    let Some(case) = meter::case_of(runner, state) else { return Vec::new() };
    let Some(hold) = SlowHold::new(&case) else { return Vec::new() };
    if meter::hold_states(runner, &case).is_some() {
        return Vec::new();
    }
    let held = runner.states.held_in(state);
    let others = state.without_drops().map_or(Vec::new(), |other| runner.states.held_in(other));
    let waited = held.iter().filter(|held| !held.was_answered_early());
    let measure = |held: &HeldState| {
        let steady = others.iter().find(|one| one.is_as(held));
        held.judged(&hold, steady).1
    };
    waited.filter_map(measure).collect()
}
