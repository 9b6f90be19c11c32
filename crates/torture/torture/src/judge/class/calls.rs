//! Outcomes of gRPC calls.

use super::{first, has_ended, http2};
use dialogue::talk::Talk;

/// Returns whether the first call ended with one of these statuses.
pub(super) fn ended(talk: &Talk, codes: &[u8]) -> bool {
    let status = first(talk).filter(|answer| answer.complete).and_then(|one| one.call_status());
    status.is_some_and(|status| codes.iter().any(|code| u32::from(*code) == status.number))
}

/// Returns whether the first call ended with an error: a status other than OK, an HTTP error, a
/// reset of the stream, or the end of the connection.
pub(super) fn failed(talk: &Talk) -> bool {
    match first(talk).filter(|answer| answer.complete) {
        Some(answer) => {
            answer.status != 200 || answer.call_status().is_none_or(|status| !status.is_ok())
        }
        None => http2::reset(talk, &[]) || has_ended(talk) || http2::named(talk),
    }
}
