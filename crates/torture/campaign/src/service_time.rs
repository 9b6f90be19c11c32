//! Time that a server needed for a response, as far as a conversation shows.

use dialogue::talk::{Talk, TalkEnd, TalkEvent, What};
use units::Nanos;

/// Times below this are ignored: on a busy machine a few milliseconds of work take tens, because of
/// scheduling. Caddy's 20,000 fields took 10 ms or 29 ms there.
pub(crate) const LONG_MIN: Nanos = Nanos::from_millis(100);

/// Returns the time that the server needed: from the last byte sent before the response began to
/// the end of the response, which may begin while the request is read, or to our timeout. `None` if
/// it closed without a response.
pub(crate) fn work_of(talk: &Talk) -> Option<Nanos> {
    let is_received = |event: &&TalkEvent| matches!(event.what, What::Received(_));
    let (came, last) =
        (talk.events.iter().find(is_received), talk.events.iter().rfind(is_received));
    let end = came.map_or(Nanos::NEVER, |came| came.at);
    let is_sent = |what: &What| matches!(what, What::Sent(_));
    let sent = talk.events.iter().rfind(|event| event.at <= end && is_sent(&event.what))?;
    match (came, talk.end) {
        (Some(came), _) => Some(last.map_or(came.at, |last| last.at) - sent.at),
        (None, TalkEnd::Silent) => Some(talk.over - sent.at),
        (None, _) => None,
    }
}

/// Returns whether it is as slow as `before`: half of that time counts, because the machine may be
/// faster now.
pub(crate) fn is_similarly_slow(talk: &Talk, before: Nanos) -> bool {
    work_of(talk).is_some_and(|now| now >= Nanos(before.0 / 2) && now >= Nanos(LONG_MIN.0 / 2))
}
