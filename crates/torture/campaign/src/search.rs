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

/// Plays these conversations one after the other; returns whether plain requests fail afterwards.
/// `None`: the search must end, because the budget is used up or the server did not restart.
pub(crate) fn lost_after(runner: &mut Runner<'_>, suspects: &[Suspect]) -> Option<bool> {
    for suspect in suspects {
        repeat_conversation(runner, suspect)?;
    }
    is_lost(runner)
}

/// Replays one conversation; `None`: the budget is used up.
pub(crate) fn repeat_conversation(runner: &mut Runner<'_>, suspect: &Suspect) -> Option<()> {
    runner.spend()?;
    let deadline = suspect.script.deadline.min(SUSPECT_SPAN);
    let start = runner.now();
    runner.hold(TalkScript { start, deadline, ..suspect.script.clone() });
    Some(())
}

/// Returns the smallest set that still fails together; a single one does not count.
pub(crate) fn fewest_of(
    runner: &mut Runner<'_>,
    all: &[Suspect],
    fails: &mut dyn FnMut(&mut Runner<'_>, &[Suspect]) -> Option<bool>,
) -> Vec<Suspect> {
    fewest(all, &mut |some| match some.is_empty() {
        true => Some(false),
        false => fails(runner, some),
    })
}

/// Returns whether the server or a worker exited, or plain requests fail for a while; `None`: they
/// fail permanently.
pub(crate) fn is_lost(runner: &mut Runner<'_>) -> Option<bool> {
    let gate = gate::pass(runner);
    let affected = runner.life.hear(runner.world);
    match gate {
        Recovery::AtOnce => Some(affected != AffectedPart::Nothing),
        Recovery::After(_) => Some(true),
        Recovery::Never => None,
    }
}

/// Returns whether it fails in most attempts; false if the first passes.
pub(crate) fn mostly(
    runner: &mut Runner<'_>,
    fails: impl FnMut(&mut Runner<'_>) -> Option<bool>,
) -> Option<bool> {
    rate_of(runner, fails).map(Rate::is_usual)
}

/// Counts failures until the majority is certain, or the first attempt passes.
pub(crate) fn rate_of(
    runner: &mut Runner<'_>,
    mut fails: impl FnMut(&mut Runner<'_>) -> Option<bool>,
) -> Option<Rate> {
    let mut rate = Rate::default();
    while rate.made < TRIES {
        rate.count(fails(runner)?);
        if rate.failed == 0 || rate.failed == TRIES.div_ceil(2) {
            break;
        }
    }
    Some(rate)
}
