//! Directors decide during a play what starts and what ends: probes on their schedule, connections
//! of a load until their release.

use super::{Conversations, Pause, Talk};
use crate::governor::Governor;
use conduit::{Io, Ready};
use units::Nanos;

/// Maximum time that received packets wait while raw TCP segments are used.
const PACKETS_POLL_INTERVAL: Nanos = Nanos::from_millis(1);

/// Instant of a director's next call. It is always called when a conversation is over, and when a
/// response of a watched one begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    At(Nanos),
    /// Only when a conversation is over.
    WhenOver,
    /// Done: open connections are ended.
    Done,
}

/// Decides what starts and what ends.
pub trait Director {
    /// Called at the start, whenever conversations are over, and when requested. It starts
    /// conversations with [`Conversations::add`] and ends them with [`Conversations::end`].
    fn direct(
        &mut self,
        now: Nanos,
        stage: &mut Conversations<'_>,
        over: Vec<(usize, Talk)>,
    ) -> Wake;

    /// Returns whether it watches its own conversations: with probes alongside, it is then called
    /// for news too.
    fn watches(&self) -> bool {
        false
    }

    /// Receives conversations ended because the play is done or the run must end.
    fn on_abandoned(&mut self, _over: Vec<(usize, Talk)>) {}
}

/// Plays to the end, or until the governor stops the run. `wait` waits for sockets until an
/// instant, and returns what became ready; it may stop the run.
pub fn play<I: Io>(
    io: &mut I,
    stage: &mut Conversations<'_>,
    director: &mut dyn Director,
    wait: &mut dyn FnMut(&mut I, Nanos, &mut Governor) -> Vec<Ready>,
) {
    let mut wake = director.direct(io.now(), stage, Vec::new());
    while wake != Wake::Done {
        let pause = stage.turn(io);
        let over = stage.finished();
        let news = stage.take_news();
        let now = io.now();
        if stage.governor().stopped().is_some() {
            director.on_abandoned(over);
            break;
        }
        if !over.is_empty() || news || matches!(wake, Wake::At(at) if at <= now) {
            wake = director.direct(now, stage, over);
            continue;
        }
        let until = match (pause, wake) {
            (Pause::Until(turn), Wake::At(at)) => turn.min(at),
            (Pause::Until(turn), _) => turn,
            (Pause::Over, Wake::At(at)) => at,
            (Pause::Over, _) => break,
        };
        let until = until.min(stage.carried_due());
        let until = if stage.has_raw() { until.min(now + PACKETS_POLL_INTERVAL) } else { until };
        for event in wait(io, until, stage.governor()) {
            stage.handle(io, event);
        }
    }
    stage.abandon(io);
    director.on_abandoned(stage.finished());
}

/// Waits until an instant, while conversations carried over from earlier plays continue.
#[derive(Clone, Copy, Debug)]
pub struct WaitUntil {
    pub until: Nanos,
}

impl Director for WaitUntil {
    fn direct(&mut self, now: Nanos, _: &mut Conversations<'_>, _: Vec<(usize, Talk)>) -> Wake {
        if now < self.until { Wake::At(self.until) } else { Wake::Done }
    }
}

/// Plays all conversations of a list at once.
#[derive(Debug)]
pub struct All {
    scripts: Vec<super::TalkScript>,
    places: Vec<usize>,
    talks: Vec<Option<Talk>>,
}

impl All {
    pub fn new(scripts: Vec<super::TalkScript>) -> All {
        All { places: Vec::new(), talks: scripts.iter().map(|_| None).collect(), scripts }
    }

    /// Returns the conversations in the order of the scripts.
    pub fn into_talks(self) -> Vec<Talk> {
        self.talks.into_iter().flatten().collect()
    }
}

impl Director for All {
    fn direct(
        &mut self,
        _: Nanos,
        stage: &mut Conversations<'_>,
        over: Vec<(usize, Talk)>,
    ) -> Wake {
        // all are added before one can be over: no position is reused
        let scripts = std::mem::take(&mut self.scripts);
        self.places.extend(scripts.into_iter().map(|script| stage.add(script)));
        self.on_abandoned(over);
        Wake::WhenOver
    }

    fn on_abandoned(&mut self, over: Vec<(usize, Talk)>) {
        for (place, talk) in over {
            let known = self.places.iter().position(|known| *known == place);
            if let Some(slot) = known.and_then(|at| self.talks.get_mut(at)) {
                *slot = Some(talk);
            }
        }
    }
}
