//! What searches after a failure have in common: a conversation once more, whether the server is lost after
//! it, whether something fails mostly, and as few of several as still fail.

use crate::life::Struck;
use crate::shrink::fewest;
use crate::trail::Suspect;
use crate::{Runner, TRIES, gate};
use dialogue::talk::TalkScript;
use units::Nanos;

/// Time for a conversation that may have done it: a server that it ends is not long about it.
const SUSPECT_SPAN: Nanos = Nanos::from_secs(10);

/// These conversations one after the other; whether plain requests fail afterwards. `None`: the
/// search is to end, as the budget is used up or the server does not come back.
pub(crate) fn lost_after(runner: &mut Runner<'_>, suspects: &[Suspect]) -> Option<bool> {
    for suspect in suspects {
        say_again(runner, suspect)?;
    }
    is_lost(runner)
}

/// One conversation once more; `None`: the budget is used up.
pub(crate) fn say_again(runner: &mut Runner<'_>, suspect: &Suspect) -> Option<()> {
    runner.spend()?;
    let deadline = suspect.script.deadline.min(SUSPECT_SPAN);
    let start = runner.now();
    runner.hold(TalkScript { start, deadline, ..suspect.script.clone() });
    Some(())
}

/// As few of these as still fail together; alone is no failure.
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

/// Whether the server or a worker ended, or plain requests fail for a while; `None`: they fail for good.
pub(crate) fn is_lost(runner: &mut Runner<'_>) -> Option<bool> {
    let gate = gate::pass(runner);
    let struck = runner.life.hear(runner.world);
    match gate {
        None => Some(struck != Struck::Nobody),
        Some(Some(_)) => Some(true),
        Some(None) => None,
    }
}

/// Whether it fails in most of the tries; not, where it passes at the first.
pub(crate) fn mostly(
    runner: &mut Runner<'_>,
    mut fails: impl FnMut(&mut Runner<'_>) -> Option<bool>,
) -> Option<bool> {
    let needed = TRIES.div_ceil(2);
    let mut failed = 0;
    for _ in 0..TRIES {
        failed += u32::from(fails(runner)?);
        if failed == 0 || failed == needed {
            break;
        }
    }
    Some(failed >= needed)
}
