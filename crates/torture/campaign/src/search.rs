//! Common parts of searches after a failure: replay a conversation, check whether the server is
//! lost, whether something usually fails, and find the smallest failing set.

use crate::attempts::Rate;
use crate::life::AffectedPart;
use crate::shrink::fewest;
use crate::trail::Suspect;
use crate::{Runner, TRIES, gate};
use dialogue::talk::TalkScript;
use torture::result::Recovery;
use units::Nanos;

/// Timeout of a suspected conversation: a server that crashes does so quickly.
const SUSPECT_SPAN: Nanos = Nanos::from_secs(10);

/// Reason why a search ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchEnd {
    /// The conversations or the time of the budget are used up, or the run was stopped.
    Spent,
    /// Plain requests have had no response for a while: the server did not restart.
    Lost,
}

/// Effect of repeated conversations on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RepeatEffect {
    pub(crate) recovery: Recovery,
    pub(crate) affected: AffectedPart,
}

impl RepeatEffect {
    /// Returns whether plain requests failed for a while, or a process exited.
    pub(crate) fn is_loss(self) -> bool {
        self.recovery.is_late() || self.affected != AffectedPart::Nothing
    }
}

/// Effect of conversations that were repeated several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossRate {
    pub(crate) rate: Rate,
    pub(crate) affected: AffectedPart,
    /// Plain requests no longer got a response after the last repetition.
    pub(crate) stopped: bool,
}

impl LossRate {
    pub(crate) fn count(&mut self, effect: RepeatEffect) {
        self.rate.count(effect.is_loss());
        self.affected = self.affected.max(effect.affected);
        self.stopped |= effect.recovery == Recovery::Never;
    }
}

/// Plays these conversations one after the other; returns their effect.
pub(crate) fn effect_of(
    runner: &mut Runner<'_>,
    suspects: &[Suspect],
) -> Result<RepeatEffect, SearchEnd> {
    for suspect in suspects {
        repeat_conversation(runner, suspect)?;
    }
    Ok(current_effect(runner))
}

/// Plays these conversations one after the other; returns whether plain requests fail afterwards.
pub(crate) fn lost_after(runner: &mut Runner<'_>, suspects: &[Suspect]) -> Result<bool, SearchEnd> {
    let effect = effect_of(runner, suspects)?;
    decided(effect)
}

/// Returns how often plain requests fail after these conversations. The repetitions end as soon as
/// the majority is certain, or when plain requests no longer get a response.
pub(crate) fn loss_rate(
    runner: &mut Runner<'_>,
    suspects: &[Suspect],
) -> Result<LossRate, SearchEnd> {
    let mut found = LossRate::default();
    while !found.stopped && !is_decided(found.rate) {
        found.count(effect_of(runner, suspects)?);
    }
    Ok(found)
}

/// Replays one conversation.
pub(crate) fn repeat_conversation(
    runner: &mut Runner<'_>,
    suspect: &Suspect,
) -> Result<(), SearchEnd> {
    runner.spend().ok_or(SearchEnd::Spent)?;
    let deadline = suspect.script.deadline.min(SUSPECT_SPAN);
    let start = runner.now();
    runner.hold(TalkScript { start, deadline, ..suspect.script.clone() });
    Ok(())
}

/// Sends suspects together, and returns whether the server fails.
type Trial<'a> = dyn FnMut(&mut Runner<'_>, &[Suspect]) -> Result<bool, SearchEnd> + 'a;

/// Returns the smallest set that fails together; a single conversation does not count.
pub(crate) fn fewest_of(
    runner: &mut Runner<'_>,
    all: &[Suspect],
    fails: &mut Trial<'_>,
) -> Vec<Suspect> {
    fewest(all, &mut |some| match some.is_empty() {
        true => Some(false),
        false => fails(runner, some).ok(),
    })
}

/// Returns whether the server or a worker exited, or plain requests fail for a while.
pub(crate) fn is_lost(runner: &mut Runner<'_>) -> Result<bool, SearchEnd> {
    decided(current_effect(runner))
}

/// Returns whether an effect is a loss; a search ends if the server does not recover.
fn decided(effect: RepeatEffect) -> Result<bool, SearchEnd> {
    match effect.recovery {
        Recovery::Never => Err(SearchEnd::Lost),
        _ => Ok(effect.is_loss()),
    }
}

/// Returns the effect of the earlier conversations.
pub(crate) fn current_effect(runner: &mut Runner<'_>) -> RepeatEffect {
    let recovery = gate::pass(runner);
    RepeatEffect { recovery, affected: runner.life.observe(runner.world) }
}

/// Returns whether it fails in most attempts; false if the first passes.
pub(crate) fn mostly(
    runner: &mut Runner<'_>,
    mut fails: impl FnMut(&mut Runner<'_>) -> Result<bool, SearchEnd>,
) -> Result<bool, SearchEnd> {
    let mut rate = Rate::default();
    while !is_decided(rate) {
        rate.count(fails(runner)?);
    }
    Ok(rate.is_usual())
}

/// Returns whether the majority is certain, or the first attempt passed.
fn is_decided(rate: Rate) -> bool {
    let passed = rate.made > 0 && rate.failed == 0;
    passed || rate.made == TRIES || rate.failed == TRIES.div_ceil(2)
}
