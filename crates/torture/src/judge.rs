//! What was seen, held against what may be seen. Pure: a conversation that was kept can be judged
//! again by newer rules.

mod again;
mod class;
mod kind;
mod outcome;
pub mod renegotiation;
pub mod severity;
mod waits;

pub use again::{again, random};
pub use class::Class;
pub use kind::FailureKind;
pub use outcome::{ConversationOutcome, LimitOutcome, LoadOutcome, PressureOutcome, TestOutcome};
pub use severity::{Risk, Severity};
pub use waits::{Lacking, is_hang, lacking, rightly_silent};

use crate::case::{Exchange, RequirementLevel};
use dialogue::http2::{FOLLOW_UP, FrameReader, FrameSeen, GOAWAY, RST_STREAM};
use dialogue::http3::{datagrams, packets};
use dialogue::replies::Response;
use dialogue::talk::{Talk, TalkEnd, What};
use units::show;

/// What the probed page answers to a plain GET.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plain {
    pub status: u16,
    pub body_len: u64,
    /// Digest of the body; `None` where two plain calls had different bodies.
    pub digest: Option<[u8; 32]>,
}

impl Plain {
    /// Whether this is what a plain GET gets.
    pub fn is(&self, answer: &Response) -> bool {
        let same_body = self.digest.is_none_or(|digest| digest == answer.digest);
        answer.complete && answer.status == self.status && same_body
    }
}

/// What came back where nothing did.
pub const NOTHING: &str = "closed without a byte";

/// A judgement with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    pub outcome: TestOutcome,
    /// What came back, in a few words.
    pub seen: String,
    /// What is as it should be.
    pub expected: String,
    /// Why the outcome is no pass.
    pub why: String,
    /// In which way it failed, of a conversation that did.
    pub kind: Option<FailureKind>,
}

/// Judges one conversation.
pub fn judge(
    exchange: &Exchange,
    level: RequirementLevel,
    talk: &Talk,
    plain: &Plain,
) -> Judgement {
    let (outcome, why) = outcome(exchange, level, talk, plain);
    let expected: Vec<String> = exchange.accept.iter().map(Class::to_string).collect();
    let kind = (outcome == ConversationOutcome::Fail).then(|| FailureKind::of(talk, plain));
    Judgement {
        outcome: outcome.into(),
        seen: seen(talk),
        expected: expected.join(" or "),
        why,
        kind,
    }
}

fn outcome(
    exchange: &Exchange,
    level: RequirementLevel,
    talk: &Talk,
    plain: &Plain,
) -> (ConversationOutcome, String) {
    if let TalkEnd::Unconnected(class) = talk.end {
        return (ConversationOutcome::Inconclusive, format!("no connection: {}", class.explain()));
    }
    if let Some(broken) = broken_server(talk) {
        return (ConversationOutcome::Fail, broken);
    }
    if is_bounded(talk) {
        return (ConversationOutcome::Inconclusive, BOUNDED.to_owned());
    }
    let holds = |classes: &[Class]| classes.iter().any(|class| class.holds(talk, plain));
    let found = if holds(&exchange.accept) {
        (ConversationOutcome::Pass, String::new())
    } else if holds(&exchange.also) {
        (ConversationOutcome::Alternative, String::new())
    } else if holds(&exchange.advise) {
        (ConversationOutcome::Advisory, "no standard permits it; no harm is known".to_owned())
    } else if holds(&exchange.unlearned) {
        (ConversationOutcome::Inconclusive, UNCOMPARED.to_owned())
    } else if let Some(lacking) = rightly_silent(talk) {
        (
            ConversationOutcome::Alternative,
            format!("it still waits for {}, as it may", lacking.text()),
        )
    } else if is_hang(talk) {
        (
            ConversationOutcome::Fail,
            "everything was sent, nothing came back, and the connection stays open".into(),
        )
    } else if level == RequirementLevel::Must {
        (ConversationOutcome::Fail, "the standard requires a different response".to_owned())
    } else {
        (ConversationOutcome::Advisory, "the standard recommends a different response".to_owned())
    };
    match out_of_step(talk, plain) {
        Some(why) if found.0 != ConversationOutcome::Fail => (ConversationOutcome::Fail, why),
        _ => found,
    }
}

/// Why nothing was learned where the governor ended it.
pub const BOUNDED: &str = "a bound on what may be sent, or for how long, ended it";

/// Why nothing was learned where the case says by what that shows.
pub const UNCOMPARED: &str =
    "nothing was compared: what this is judged by did not come while we listened";

/// 5xx that no request may cause: all but 501, 503 and 505.
pub fn broken_server(talk: &Talk) -> Option<String> {
    let broken = |answer: &&Response| {
        (500..600).contains(&answer.status) && !matches!(answer.status, 501 | 503 | 505)
    };
    let answer = talk.replies.responses.iter().find(broken)?;
    Some(format!("the server answered {}: its own fault by its own word", answer.status))
}

/// The valid request that followed did not get its one right response.
pub fn out_of_step(talk: &Talk, plain: &Plain) -> Option<String> {
    talk.before_follow_up?;
    if let Some(frames) = &talk.replies.frames {
        return followed_wrongly(talk, frames, plain);
    }
    let (_, after) = talk.own_and_behind();
    match after {
        [one] if plain.is(one) && talk.replies.junk.is_none() => None,
        // closing instead of answering is safe
        [] if matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_)) => None,
        [] => Some("a valid request on the same connection got no response".to_owned()),
        [one] => Some(format!(
            "a valid request on the same connection got {} with {} in place of {} with {}",
            one.status,
            show::bytes(one.body_len),
            plain.status,
            show::bytes(plain.body_len)
        )),
        more => Some(format!(
            "a valid request on the same connection got {} responses: they are out of step",
            more.len()
        )),
    }
}

/// The same over HTTP/2, where the request has a stream of its own; who ends the connection, or refuses
/// the stream, gives no wrong response.
fn followed_wrongly(talk: &Talk, frames: &FrameReader, plain: &Plain) -> Option<String> {
    let answer = talk.replies.responses.iter().find(|answer| answer.stream == FOLLOW_UP);
    let over = matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_));
    let ended = over && !is_ended_by_us(talk) || frames.goodbye();
    match answer {
        Some(answer) if plain.is(answer) => None,
        Some(answer) if answer.complete => Some(format!(
            "a valid request on another stream got {} with {} in place of {} with {}",
            answer.status,
            show::bytes(answer.body_len),
            plain.status,
            show::bytes(plain.body_len)
        )),
        _ if ended => None,
        _ if frames.is_reset(FOLLOW_UP) => {
            Some("a valid request on another stream was reset".into())
        }
        _ => Some("a valid request on another stream got no whole response".to_owned()),
    }
}

/// Frames that say an error, and the responses of streams, in a few words.
fn frames_seen(frames: &FrameReader, parts: &mut Vec<String>) {
    let mut said: Vec<String> = Vec::new();
    for frame in frames.frames.iter().filter(|frame| is_told(frame)) {
        let word = frame.to_string();
        if !said.contains(&word) {
            said.push(word);
        }
    }
    if said.is_empty() && parts.is_empty() && frames.pong() {
        said.push("ignored".to_owned());
    }
    parts.extend(said);
}

fn is_told(frame: &FrameSeen) -> bool {
    let datagram = frame.is_over_quic() && frame.kind == datagrams::CAME;
    let telling = frame.is_over_quic() && frame.kind == packets::FRAME && packets::is_told(frame);
    datagram || telling || matches!(frame.kind, RST_STREAM | GOAWAY)
}

/// What came back begins as HTTP/2 does: with a SETTINGS frame of the connection (RFC 9113 section 3.4).
pub fn speaks_http2(talk: &Talk) -> bool {
    let Some((_, bytes)) = &talk.replies.junk else { return false };
    let [0, high, low, SETTINGS, 0, 0, 0, 0, 0, ..] = **bytes else { return false };
    talk.replies.responses.is_empty() && u16::from_be_bytes([high, low]).is_multiple_of(SETTING)
}

const SETTINGS: u8 = 4;
/// Bytes of one setting.
const SETTING: u16 = 6;

/// The end of a connection of QUIC comes with a word of the peer's.
fn said_goodbye(talk: &Talk) -> bool {
    talk.replies.frames.as_ref().is_some_and(|frames| frames.is_http3() && frames.goodbye())
}

/// A bound of ours came first, which says nothing of the server.
pub(crate) fn is_bounded(talk: &Talk) -> bool {
    let frames = talk.replies.frames.as_ref();
    talk.end == TalkEnd::Bounded
        || frames.is_some_and(|frames| packets::held_too_much(&frames.frames))
}

/// The end of a connection of QUIC is ours: the server sent more than we take, or broke the rules.
pub fn is_ended_by_us(talk: &Talk) -> bool {
    talk.replies.frames.as_ref().is_some_and(|frames| packets::ended_by_us(&frames.frames))
}

/// Responses that are shown; of more, how many they are.
const SHOWN_MAX: usize = 8;

/// The first of these words, and how many more there are.
fn first_of(words: impl ExactSizeIterator<Item = String>) -> String {
    let left = words.len().saturating_sub(SHOWN_MAX);
    let more = if left > 0 { format!(" and {left} more") } else { String::new() };
    let first: Vec<String> = words.take(SHOWN_MAX).collect();
    format!("{}{more}", first.join(" "))
}

/// What came back, in a few words: `400, then closed`.
pub fn seen(talk: &Talk) -> String {
    let mut parts = Vec::new();
    if !talk.replies.interim.is_empty() {
        let interim = first_of(talk.replies.interim.iter().map(u16::to_string));
        parts.push(format!("interim {interim}"));
    }
    let (own, _) = talk.own_and_behind();
    if !own.is_empty() {
        let word = |answer: &Response| {
            let cut = if answer.complete { "" } else { " (cut off)" };
            format!("{}{cut}", answer.status)
        };
        parts.push(first_of(own.iter().map(word)));
    }
    if let Some(frames) = &talk.replies.frames {
        frames_seen(frames, &mut parts);
    }
    if speaks_http2(talk) {
        parts.push("HTTP/2".to_owned());
    } else if let Some((why, _)) = &talk.replies.junk {
        parts.push(format!("bytes that are no response ({why})"));
    }
    for event in &talk.events {
        if let What::Saw(kind) = event.what {
            parts.push(kind.text().to_owned());
        }
    }
    let end = match talk.end {
        TalkEnd::Unconnected(_) => "no connection",
        TalkEnd::Closed if parts.is_empty() => NOTHING,
        TalkEnd::Closed => "closed",
        TalkEnd::Broken(_) if said_goodbye(talk) => "closed",
        TalkEnd::Broken(_) if is_ended_by_us(talk) => "ended by us",
        TalkEnd::Broken(_) if parts.is_empty() => "reset without a byte",
        TalkEnd::Broken(_) => "reset",
        TalkEnd::Open => "the connection stays open",
        TalkEnd::Silent if parts.is_empty() => "nothing, and the connection stays open",
        TalkEnd::Silent => "no more, and the connection stays open",
        TalkEnd::Bounded => "ended by a bound of ours",
        TalkEnd::Ours => "ended by us",
    };
    parts.push(end.to_owned());
    parts.join(", ")
}

#[cfg(test)]
mod tests;
