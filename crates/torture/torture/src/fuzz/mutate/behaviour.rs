//! Coarse description of server behavior, so that two responses to the same request match.

use crate::judge;
use dialogue::talk::{Move, Talk, TalkEnd, What};
use units::Nanos;

/// Maximum number of distinguished responses and interim responses.
const RESPONSES_MAX: usize = 4;
const INTERIM_MAX: usize = 2;
/// Boundaries between classes of response time.
const TIMES: [Nanos; 3] = [Nanos::from_millis(30), Nanos::from_millis(200), Nanos::SECOND];

/// Statuses, the length of the first response by powers of two, the class of the time to first
/// byte, the fate of the connection, and whether the follow-up is in step.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Behaviour {
    pub(super) statuses: Vec<u16>,
    pub(super) interim: Vec<u16>,
    pub(super) length: u32,
    pub(super) time: usize,
    pub(super) ending: &'static str,
    pub(super) junk: bool,
    pub(super) in_step: Option<usize>,
}

impl Behaviour {
    pub fn new(talk: &Talk) -> Behaviour {
        let responses = &talk.replies.responses;
        let statuses = responses.iter().take(RESPONSES_MAX).map(|one| one.status).collect();
        let length = responses.first().map_or(0, |one| u64::BITS - one.body_len.leading_zeros());
        Behaviour {
            statuses,
            interim: talk.replies.interim.iter().take(INTERIM_MAX).copied().collect(),
            length,
            time: TIMES.iter().filter(|end| waited(talk) >= **end).count(),
            ending: ending(talk),
            junk: talk.replies.junk.is_some(),
            in_step: talk.before_follow_up.map(|before| responses.len().saturating_sub(before)),
        }
    }
}

/// Returns the time from the last byte sent before the first byte received; our pauses do not
/// count.
fn waited(talk: &Talk) -> Nanos {
    let Some(heard) = talk.events.iter().position(|event| matches!(event.what, What::Received(_)))
    else {
        return talk.over;
    };
    let sent = talk.events[..heard].iter().rev().find(|one| matches!(one.what, What::Sent(_)));
    talk.events[heard].at - sent.map_or(Nanos::ZERO, |event| event.at)
}

fn ending(talk: &Talk) -> &'static str {
    match talk.end {
        TalkEnd::Unconnected(_) => "unconnected",
        TalkEnd::Closed => "closed",
        TalkEnd::Broken(_) => "reset",
        TalkEnd::Open => "open",
        TalkEnd::Silent if judge::part_still_awaited(talk).is_some() => "waits",
        TalkEnd::Silent if talk.steps.contains(&Move::HalfClose) => "silent after our close",
        TalkEnd::Silent => "silent",
        TalkEnd::Bounded => "bounded",
        TalkEnd::Ours => "ours",
    }
}
