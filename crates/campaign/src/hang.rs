//! Tries of an exchange. A server that keeps silent costs its whole deadline each time, so silence is
//! waited for side by side: a short first try says whether there is anything to be sure of, and what
//! it takes to be sure is had at once.

use super::Runner;
use super::search::Suspect;
use dialogue::talk::{Talk, TalkEnd, TalkScript};
use std::collections::VecDeque;
use torture::case::{Case, Exchange};
use torture::judge;
use torture::judge::TestOutcome;
use units::Nanos;

/// How long the first try waits for a silent server.
pub(crate) const PATIENCE: Nanos = Nanos::SECOND;
/// A page that takes so long by itself is not taken for a hang.
const PLAIN_TIMES: u64 = 8;
/// Tries that are had side by side behind a first one that met silence.
pub(crate) const TOGETHER: usize = 2;

/// The tries of one exchange that are under way.
#[derive(Debug, Default)]
pub(super) struct Tries {
    /// Had already, to be judged in their turn.
    waiting: VecDeque<(TalkScript, Talk)>,
    /// The first try met silence, and so did all that were had side by side: it counts too.
    pub(super) silent: bool,
    /// What was said before the first try.
    pub(super) before: Vec<Suspect>,
}

impl Runner<'_> {
    /// The next try; `tried`: how many were judged before it.
    pub(super) fn next_try(
        &mut self,
        case: &Case,
        exchange: &Exchange,
        tried: u32,
        tries: &mut Tries,
    ) -> (TalkScript, Talk) {
        if tried == 1 {
            tries.before = self.said_before();
            // the first try itself
            tries.before.pop();
        }
        if let Some(had) = tries.waiting.pop_front() {
            return had;
        }
        if tried > 0 {
            self.begin_anew();
        }
        let full = self.silence(exchange);
        let first = if tried == 0 { full.min(PATIENCE + pauses(exchange)) } else { full };
        let script = TalkScript { deadline: first, ..self.script(exchange) };
        let talk = self.hold(script.clone());
        let silent = |talk: &Talk| talk.end == TalkEnd::Silent;
        if tried > 0 || !silent(&talk) || self.is_stopped() {
            return (script, talk);
        }
        let judgement = judge::judge(exchange, case.level, &talk, &self.plain);
        if judgement.outcome < TestOutcome::Inconclusive {
            // it may wait for more, and says nothing else however long it is given
            return (script, talk);
        }
        self.begin_anew();
        let scripts: Vec<TalkScript> =
            (0..TOGETHER).map(|_| TalkScript { deadline: full, ..self.script(exchange) }).collect();
        let talks = self.together(scripts.clone());
        let all_silent = talks.len() == TOGETHER && talks.iter().all(silent);
        tries.waiting = scripts.into_iter().zip(talks).collect();
        // a moment at which the server was slow is no hang: the short try counts where the others are
        // silent too, and is forgotten where they are not
        tries.silent = all_silent;
        tries.waiting.pop_front().unwrap_or((script, talk))
    }

    /// How long silence lasts until it is a failure.
    fn silence(&self, exchange: &Exchange) -> Nanos {
        let most = self.silence_max().map_or(Nanos::NEVER, |most| most + pauses(exchange));
        exchange.deadline.min(most)
    }

    /// How long silence lasts at most until it is a failure: never shorter than some plain requests take.
    pub(super) fn silence_max(&self) -> Option<Nanos> {
        self.settings.silence_max.map(|most| most.max(Nanos(self.slowest_plain.0 * PLAIN_TIMES)))
    }
}

/// What an exchange waits by itself before all of it is said.
fn pauses(exchange: &Exchange) -> Nanos {
    let pause = |step: &torture::case::ScriptStep| match step {
        torture::case::ScriptStep::Pause(span) => *span,
        torture::case::ScriptStep::Packet(step) => step.waits(),
        _ => Nanos::ZERO,
    };
    exchange.steps.iter().map(pause).fold(Nanos::ZERO, |sum, span| sum + span)
}

/// What a try that met silence costs at most: the short one, then those side by side.
pub(crate) fn cost_of_silence(exchange: &Exchange, silence_max: Option<Nanos>) -> Nanos {
    let most = silence_max.map_or(Nanos::NEVER, |most| most + pauses(exchange));
    let full = exchange.deadline.min(most);
    full.min(PATIENCE + pauses(exchange)) + full
}
