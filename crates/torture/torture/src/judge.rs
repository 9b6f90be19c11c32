//! Compares observations with the expected outcomes. Pure functions: a recorded conversation can be
//! judged again by newer rules.

mod again;
mod class;
mod kind;
mod outcome;
pub mod renegotiation;
pub mod severity;
mod waits;

pub use again::{again, random};
pub use class::{Class, description};
pub use kind::{FailureKind, parses_content};
pub use outcome::{ConversationOutcome, LimitOutcome, LoadOutcome, PressureOutcome, TestOutcome};
pub use severity::{Risk, Severity};
use waits::awaits_continue;
pub use waits::{MissingPart, is_hang, lacks_continue, missing_part, part_still_awaited};

use crate::case::{Exchange, RequirementLevel};
use crate::framing::{self, MessageEnd};
use dialogue::http2::{FOLLOW_UP, FrameReader, FrameSeen, GOAWAY, RST_STREAM, SOCKET};
use dialogue::http3::{datagrams, packets};
use dialogue::replies::Response;
use dialogue::talk::{Move, Talk, TalkEnd, What, is_raw};
use sha2::{Digest, Sha256};
use units::show;

/// The usual response of the probed page to a plain GET.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plain {
    pub status: u16,
    pub body_len: u64,
    /// Digest of the body, or `None` if two plain calls had different bodies.
    pub digest: Option<[u8; 32]>,
    /// Digest of a file that the server must not serve.
    pub outside: Option<[u8; 32]>,
}

impl Plain {
    /// Returns the digest of content, as of a response.
    pub fn digest_of(content: &[u8]) -> [u8; 32] {
        Sha256::digest(content).into()
    }

    /// Returns whether a response has the content of the file that must not be served.
    pub fn discloses(&self, answer: &Response) -> bool {
        answer.complete && self.outside == Some(answer.digest)
    }

    /// Returns whether this is the usual response to a plain GET, or to a plain call of gRPC.
    pub fn is(&self, answer: &Response) -> bool {
        let same_body = self.digest.is_none_or(|digest| digest == answer.digest);
        answer.complete && answer.status == self.status && same_body && !fails_call(answer)
    }
}

/// Returns whether this is a response of gRPC without the status OK.
fn fails_call(answer: &Response) -> bool {
    answer.is_grpc_response() && !answer.call_status().is_some_and(|status| status.is_ok())
}

/// Description of an empty response.
pub const NOTHING: &str = "closed without a byte";

/// A judgment with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    pub outcome: TestOutcome,
    /// Short description of the response.
    pub seen: String,
    /// The conforming outcomes.
    pub expected: String,
    /// All conforming outcomes refuse an invalid message.
    pub must_refuse: bool,
    /// Reason why the outcome is not a pass.
    pub why: String,
    /// Kind of the failure.
    pub kind: Option<FailureKind>,
    /// The cause, if the outcome shows it regardless of the sent data.
    pub cause: Option<Cause>,
}

/// A cause that does not depend on the bytes of a message. Findings with one cause are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The server fails by chance.
    Chance,
    /// A response lacks this field; in lower case.
    Missing(String),
    /// The interim response that a client waits for before it sends content is missing.
    NoContinue,
    /// No final response follows the interim response 100 (Continue).
    OnlyContinue,
    /// Connections leak regardless of what they send: a plain request suffices.
    EveryConnection,
    /// The received bytes are not a response, for this reason.
    NoHttp(String),
    /// The response begins with the version of the request, regardless of which.
    EchoedVersion,
    /// A response to HEAD has content, which the client parses as the next response.
    HeadContent,
    /// A response to many ranges is much longer than the page.
    LongRanges,
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
    let kind = (outcome == ConversationOutcome::Fail).then(|| FailureKind::new(talk, plain));
    let judged = outcome >= ConversationOutcome::Advisory;
    // a server error fails for another reason
    let is_error = kind.is_some_and(|kind| matches!(kind, FailureKind::Status(_)));
    let cause = match judged && !is_error {
        true => cause_of(kind, talk).or_else(|| missing_cause(exchange, talk, plain)),
        false => None,
    };
    Judgement {
        outcome: outcome.into(),
        seen: seen(talk),
        expected: expected.join(" or "),
        must_refuse: must_refuse(exchange),
        why,
        kind,
        cause,
    }
}

/// Returns whether all conforming outcomes refuse an invalid message.
fn must_refuse(exchange: &Exchange) -> bool {
    !exchange.accept.is_empty() && exchange.accept.iter().all(Class::is_refusal)
}

/// Status of the interim response that encourages a client to send content.
const CONTINUE: u16 = 100;

/// Returns the cause that a kind of failure names, regardless of the expectation.
pub fn cause_of(kind: Option<FailureKind>, talk: &Talk) -> Option<Cause> {
    match kind? {
        FailureKind::NoContinue => Some(Cause::NoContinue),
        FailureKind::Hang if talk.replies.interim.contains(&CONTINUE) => Some(Cause::OnlyContinue),
        FailureKind::NoHttp => {
            let (why, received) = talk.replies.junk.as_ref()?;
            Some(match echoes_version(talk, received) {
                true => Cause::EchoedVersion,
                false => Cause::NoHttp(why.clone()),
            })
        }
        _ => None,
    }
}

/// Returns whether the status line has bytes of the request in place of the version: text other
/// than an HTTP/1 version that follows a space in the request and may span lines.
fn echoes_version(talk: &Talk, received: &[u8]) -> bool {
    let sent = crate::record::sent(&talk.steps);
    let Some(version) = before_status(received) else { return false };
    let is_odd = !matches!(version, b"" | b"HTTP/1.0" | b"HTTP/1.1");
    let after_space = [b" ", version].concat();
    is_odd && sent.windows(after_space.len()).any(|part| part == after_space)
}

/// Returns the bytes before the first space and status code, unless they contain a CR. They contain
/// a bare LF if one was echoed.
fn before_status(received: &[u8]) -> Option<&[u8]> {
    let is_status = |part: &[u8]| {
        let [b' ', digits @ .., end] = part else { return false };
        digits.iter().all(u8::is_ascii_digit) && matches!(end, b' ' | b'\r')
    };
    let at = received.windows(STATUS_PART).position(is_status)?;
    received[..at].iter().all(|byte| *byte != b'\r').then_some(&received[..at])
}

/// Length of a space, a three-digit status code, and the space or CR after it.
const STATUS_PART: usize = 5;

/// Returns the cause if one thing alone is missing.
fn missing_cause(exchange: &Exchange, talk: &Talk, plain: &Plain) -> Option<Cause> {
    if waits::is_closed_before_content(talk) {
        return Some(Cause::NoContinue);
    }
    if has_head_content(talk) {
        return Some(Cause::HeadContent);
    }
    let is_long = |class: &Class| class.lacks_only("not-longer", talk, plain);
    if exchange.accept.iter().any(is_long) {
        return Some(Cause::LongRanges);
    }
    let waits = |class: &Class| class.lacks_only("prompt", talk, plain);
    if waits::expects_continue(talk) && exchange.accept.iter().any(waits) {
        return Some(Cause::NoContinue);
    }
    exchange.accept.iter().find_map(|class| class.missing(talk, plain)).map(Cause::Missing)
}

/// Returns whether other bytes follow a response that has no content only because it is one to HEAD.
fn has_head_content(talk: &Talk) -> bool {
    let may_have_content = |last: &Response| {
        let is_empty = || last.field("content-length").any(|length| length == "0");
        !matches!(last.status, 101 | 204 | 304) && !is_empty()
    };
    let bodiless = |last: &&Response| {
        last.complete && last.body_len == 0 && may_have_content(last) && asks_for_head(talk)
    };
    let last = talk.replies.responses.last().filter(bodiless);
    talk.replies.frames.is_none() && talk.replies.junk.is_some() && last.is_some()
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
    if is_unfinished(talk) {
        return (ConversationOutcome::Fail, UNFINISHED.to_owned());
    }
    if is_valid_message(talk) && parses_content(talk) {
        return (ConversationOutcome::Fail, ANSWERED_TWICE.to_owned());
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
    } else if let Some(lacking) = part_still_awaited(talk) {
        (
            ConversationOutcome::Alternative,
            format!("it still waits for {}, which is allowed", lacking.text()),
        )
    } else if lacks_continue(talk) {
        (ConversationOutcome::Fail, NO_CONTINUE.to_owned())
    } else if is_hang(talk) {
        (
            ConversationOutcome::Fail,
            "everything was sent, there was no response, and the connection stays open".into(),
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

/// Reason of a failure if one valid request gets several responses.
pub const ANSWERED_TWICE: &str =
    "one valid request got several responses: a part of it is parsed as another request";

/// Returns whether exactly one valid message was sent, and nothing after it.
fn is_valid_message(talk: &Talk) -> bool {
    let sent = crate::record::sent(&talk.steps);
    let reading = framing::read(&sent);
    reading.faults.is_empty() && reading.end == MessageEnd::At(sent.len())
}

/// Reason of an inconclusive result after the governor stopped it.
pub const BOUNDED: &str = "stopped by a limit on what may be sent, or for how long";

/// Reason of an inconclusive result if the evidence that the case compares did not arrive.
pub const UNCOMPARED: &str =
    "nothing was compared: the packets needed for it did not arrive in time";

/// Returns why no request may get this response: a server error, or no end.
pub fn broken_response(talk: &Talk) -> Option<String> {
    broken_server(talk).or_else(|| is_unfinished(talk).then(|| UNFINISHED.to_owned()))
}

/// Reason of a failure if no interim response precedes the content.
pub const NO_CONTINUE: &str =
    "the client waits for 100 (Continue) before it sends the content, and gets no response";

/// Reason of a failure if a response does not end.
pub const UNFINISHED: &str =
    "the response began and did not end within the deadline, and the connection stays open";

/// Returns whether a final response to a whole request began and did not end within the deadline,
/// although the client reads. Frames are judged by their own rules: a closed window rightly stops a
/// response.
pub fn is_unfinished(talk: &Talk) -> bool {
    let stopped = talk.steps.iter().any(|step| matches!(step, Move::StopReading));
    let (own, _) = talk.own_and_following();
    let cut = || own.iter().any(|one| !one.complete && !may_lack_content(talk, one));
    talk.end == TalkEnd::Silent
        && talk.replies.frames.is_none()
        && !stopped
        && !is_raw(&talk.steps)
        && !waits::is_incomplete(talk)
        && cut()
}

/// Returns whether the missing content need not follow: after a switch to another protocol, or in a
/// response to HEAD, where mutated bytes may ask for it.
fn may_lack_content(talk: &Talk, response: &Response) -> bool {
    response.status == 101 || response.body_len == 0 && asks_for_head(talk)
}

/// Returns whether the sent bytes contain a HEAD request.
fn asks_for_head(talk: &Talk) -> bool {
    crate::record::sent(&talk.steps).windows(5).any(|five| five == b"HEAD ")
}

/// Returns whether a response refuses its request: 4xx, 501 or 505.
pub(crate) fn is_refusal(response: &Response) -> bool {
    is_refusal_status(response.status)
}

fn is_refusal_status(status: u16) -> bool {
    (400..500).contains(&status) || matches!(status, 501 | 505)
}

/// Returns whether the server closed or broke the connection; our own close does not count.
pub(crate) fn has_ended(talk: &Talk) -> bool {
    matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_)) && !is_ended_by_us(talk)
}

/// Returns the reason for a 5xx that no request may cause: all but 501, 503 and 505.
pub fn broken_server(talk: &Talk) -> Option<String> {
    let broken = |answer: &&Response| {
        (500..600).contains(&answer.status) && !matches!(answer.status, 501 | 503 | 505)
    };
    let answer = talk.replies.responses.iter().find(broken)?;
    Some(format!("the server responded {}, which reports its own failure", answer.status))
}

/// Returns why the valid follow-up request did not get its one correct response.
pub fn out_of_step(talk: &Talk, plain: &Plain) -> Option<String> {
    talk.before_follow_up?;
    if let Some(frames) = &talk.replies.frames {
        return wrong_follow_up(talk, frames, plain);
    }
    let (_, after) = talk.own_and_following();
    match after {
        [one] if plain.is(one) && talk.replies.junk.is_none() => None,
        // closing instead of responding is safe
        [] if matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_)) => None,
        [] => Some("a valid request on the same connection got no response".to_owned()),
        [one] => Some(format!(
            "a valid request on the same connection got {} with {} instead of {} with {}",
            one.status,
            show::bytes(one.body_len),
            plain.status,
            show::bytes(plain.body_len)
        )),
        more => Some(format!(
            "a valid request on the same connection got {} responses: requests and responses are \
            desynchronized",
            more.len()
        )),
    }
}

/// Does the same over HTTP/2, where the follow-up has its own stream; closing the connection or
/// refusing the stream is not a wrong response.
fn wrong_follow_up(talk: &Talk, frames: &FrameReader, plain: &Plain) -> Option<String> {
    let answer = talk.replies.responses.iter().find(|answer| answer.stream == FOLLOW_UP);
    let over = matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_));
    let ended = over && !is_ended_by_us(talk) || frames.has_goaway();
    match answer {
        Some(answer) if plain.is(answer) => None,
        Some(answer) if answer.complete => Some(format!(
            "a valid request on another stream got {} with {} instead of {} with {}",
            answer.status,
            show::bytes(answer.body_len),
            plain.status,
            show::bytes(plain.body_len)
        )),
        _ if ended => None,
        _ if frames.is_reset(FOLLOW_UP) => {
            Some("a valid request on another stream was reset".into())
        }
        _ => Some("a valid request on another stream got no complete response".to_owned()),
    }
}

/// Describes error frames and the responses of streams.
fn frames_seen(frames: &FrameReader, parts: &mut Vec<String>) {
    let mut words: Vec<String> = Vec::new();
    for frame in frames.frames.iter().filter(|frame| is_reported(frame)) {
        let word = frame.to_string();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.is_empty() && parts.is_empty() && frames.pong() {
        words.push("ignored".to_owned());
    }
    parts.extend(words);
}

fn is_reported(frame: &FrameSeen) -> bool {
    let datagram = frame.is_over_quic() && frame.kind == datagrams::CAME;
    let telling =
        frame.is_over_quic() && frame.kind == packets::FRAME && packets::is_reported(frame);
    datagram || telling || matches!(frame.kind, RST_STREAM | GOAWAY)
}

/// Returns whether the response starts like HTTP/2: with a SETTINGS frame of the connection (RFC
/// 9113 section 3.4), or with GOAWAY, if the request begins like the preface of HTTP/2.
pub fn speaks_http2(talk: &Talk) -> bool {
    let Some((_, bytes)) = &talk.replies.junk else { return false };
    let [0, high, low, kind, 0, 0, 0, 0, 0, ..] = **bytes else { return false };
    let length = u16::from_be_bytes([high, low]);
    let is_expected = match kind {
        SETTINGS => length.is_multiple_of(SETTING),
        GOAWAY_TYPE => length >= GOAWAY_MIN && is_preface(&crate::record::sent(&talk.steps)),
        _ => false,
    };
    talk.replies.responses.is_empty() && is_expected
}

/// Returns whether these bytes begin with the method of the preface, which no other request has (RFC
/// 9113 section 3.4).
fn is_preface(sent: &[u8]) -> bool {
    sent.trim_ascii_start().starts_with(b"PRI ")
}

const SETTINGS: u8 = 4;
const GOAWAY_TYPE: u8 = 7;
/// Size of one setting, and minimum size of GOAWAY, in bytes.
const SETTING: u16 = 6;
const GOAWAY_MIN: u16 = 8;

/// Returns whether the peer closed the QUIC connection with CONNECTION_CLOSE.
fn sent_goodbye(talk: &Talk) -> bool {
    talk.replies.frames.as_ref().is_some_and(|frames| frames.is_http3() && frames.has_goaway())
}

/// Returns whether one of our limits was reached first, which says nothing about the server.
pub(crate) fn is_bounded(talk: &Talk) -> bool {
    let frames = talk.replies.frames.as_ref();
    talk.end == TalkEnd::Bounded
        || frames.is_some_and(|frames| packets::gap_buffer_was_full(&frames.frames))
}

/// Returns whether we closed the QUIC connection: the server exceeded our limits or violated the
/// protocol.
pub fn is_ended_by_us(talk: &Talk) -> bool {
    talk.replies.frames.as_ref().is_some_and(|frames| packets::ended_by_us(&frames.frames))
}

/// Returns whether the server opened a WebSocket.
pub fn opens_socket(talk: &Talk) -> bool {
    class::sockets::is_opened(talk)
}

/// Returns whether the server opened a WebSocket and closed it with a Close frame.
pub fn closes_socket(talk: &Talk) -> bool {
    class::sockets::sent_close(talk)
}

/// Maximum number of responses shown; the rest are counted.
const SHOWN_MAX: usize = 8;

/// Returns the first of these words and the number of the others.
fn first_of(words: impl ExactSizeIterator<Item = String>) -> String {
    let left = words.len().saturating_sub(SHOWN_MAX);
    let more = if left > 0 { format!(" and {left} more") } else { String::new() };
    let first: Vec<String> = words.take(SHOWN_MAX).collect();
    format!("{}{more}", first.join(" "))
}

/// Returns whether the last response announces the end of the connection, which our side did not
/// wait for.
pub(crate) fn announces_close(talk: &Talk) -> bool {
    let last = talk.replies.responses.last();
    talk.replies.frames.is_none() && last.is_some_and(|last| !last.persistent)
}

/// Returns a short description of the response: `400, then closed`.
pub fn seen(talk: &Talk) -> String {
    let mut parts = Vec::new();
    if !talk.replies.interim.is_empty() {
        let interim = first_of(talk.replies.interim.iter().map(u16::to_string));
        parts.push(format!("interim {interim}"));
    }
    let (own, _) = talk.own_and_following();
    if !own.is_empty() {
        let word = |answer: &Response| {
            let is_socket = answer.stream == SOCKET && class::sockets::is_opened(talk);
            let cut = match (answer.complete || is_socket, talk.end) {
                (true, _) => "",
                (false, TalkEnd::Silent) => " (without an end)",
                (false, _) => " (cut off)",
            };
            let status = answer.call_status().map(|status| format!(" {}", status.name));
            format!("{}{}{cut}", answer.status, status.unwrap_or_default())
        };
        parts.push(first_of(own.iter().map(word)));
    }
    if let Some(frames) = &talk.replies.frames {
        frames_seen(frames, &mut parts);
    }
    let frames = class::sockets::seen(talk);
    if speaks_http2(talk) {
        parts.push("HTTP/2".to_owned());
    } else if !frames.is_empty() {
        parts.extend(frames);
    } else if let Some((why, _)) = &talk.replies.junk {
        parts.push(format!("bytes that are not a response ({why})"));
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
        TalkEnd::Broken(_) if sent_goodbye(talk) => "closed",
        TalkEnd::Broken(_) if is_ended_by_us(talk) => "ended by us",
        TalkEnd::Broken(_) if parts.is_empty() => "reset without a byte",
        TalkEnd::Broken(_) => "reset",
        TalkEnd::Open if announces_close(talk) => "close announced",
        TalkEnd::Open => "the connection stays open",
        TalkEnd::Silent if parts.is_empty() && talk.received > 0 => {
            parts.push(match talk.replies.frames.is_some() {
                true => "frames, but no response".to_owned(),
                false => format!("{} of an incomplete response", show::bytes(talk.received)),
            });
            "nothing more, the connection stays open"
        }
        TalkEnd::Silent if parts.is_empty() => "no response, the connection stays open",
        TalkEnd::Silent => "nothing more, the connection stays open",
        TalkEnd::Bounded => "stopped by one of our limits",
        TalkEnd::Ours => "ended by us",
    };
    parts.push(end.to_owned());
    parts.join(", ")
}

#[cfg(test)]
pub(crate) mod tests;
