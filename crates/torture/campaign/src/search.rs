//! Common parts of searches after a failure: replay a conversation, check whether the server is
//! lost, whether something mostly fails, and find the smallest failing set.

use crate::attempts::Rate;
use crate::life::AffectedPart;
use crate::shrink::fewest;
use crate::trail::Suspect;
use crate::{Runner, TRIES, gate};
use dialogue::talk::TalkScript;
use torture::result::Recovery;
use units::Nanos;

/// Time limit of a suspected conversation: a server that crashes does so quickly.
const SUSPECT_SPAN: Nanos = Nanos::from_secs(10);

/// Why a search ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchEnd {
    /// The conversations or the time of the budget are used up, or the run was stopped.
    Spent,
    /// Plain requests have got no response for a while: the server did not restart.
    Lost,
}

/// Effect of repeated conversations on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RepeatEffect {
    /// Plain requests failed for a while, or a process exited.
    pub(crate) is_lost: bool,
    pub(crate) affected: AffectedPart,
}

/// Plays these conversations one after the other; returns their effect.
pub(crate) fn effect_of(
    runner: &mut Runner<'_>,
    suspects: &[Suspect],
) -> Result<RepeatEffect, SearchEnd> {
    for suspect in suspects {
        repeat_conversation(runner, suspect)?;
    }
    current_effect(runner)
}

/// Plays these conversations one after the other; returns whether plain requests fail afterwards.
pub(crate) fn lost_after(runner: &mut Runner<'_>, suspects: &[Suspect]) -> Result<bool, SearchEnd> {
    effect_of(runner, suspects).map(|effect| effect.is_lost)
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

/// Returns the smallest set that still fails together; a single one does not count.
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
    current_effect(runner).map(|effect| effect.is_lost)
}

fn current_effect(runner: &mut Runner<'_>) -> Result<RepeatEffect, SearchEnd> {
    let gate = gate::pass(runner);
    let affected = runner.life.observe(runner.world);
    match gate {
        Recovery::AtOnce => {
            Ok(RepeatEffect { is_lost: affected != AffectedPart::Nothing, affected })
        }
        Recovery::After(_) => Ok(RepeatEffect { is_lost: true, affected }),
        Recovery::Never => Err(SearchEnd::Lost),
    }
}

/// Returns whether it fails in most attempts; false if the first passes.
pub(crate) fn mostly(
    runner: &mut Runner<'_>,
    fails: impl FnMut(&mut Runner<'_>) -> Result<bool, SearchEnd>,
) -> Result<bool, SearchEnd> {
    rate_of(runner, fails).map(Rate::is_usual)
}

/// Counts failures until the majority is certain, or the first attempt passes.
pub(crate) fn rate_of(
    runner: &mut Runner<'_>,
    mut fails: impl FnMut(&mut Runner<'_>) -> Result<bool, SearchEnd>,
) -> Result<Rate, SearchEnd> {
    let mut rate = Rate::default();
    while rate.made < TRIES {
        rate.count(fails(runner)?);
        if rate.failed == 0 || rate.failed == TRIES.div_ceil(2) {
            break;
        }
    }
    Ok(rate)
}
