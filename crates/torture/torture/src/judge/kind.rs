//! Kinds of failures of a conversation: two failures of one kind may have the same cause.

use super::{
    Plain, announces_close, awaits_continue, broken_server, has_ended, is_hang, is_refusal,
    is_unfinished, out_of_step,
};
use crate::framing::{self, FramingFault, MessageEnd};
use dialogue::http2::FOLLOW_UP;
use dialogue::replies::Response;
use dialogue::talk::{Talk, TalkEnd};

/// A kind of failure: the received data, and the effect on the connection and on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// A response with a status that reports a server error.
    Status(u16),
    /// Everything was sent, there was no response, and the connection stays open.
    Hang,
    /// The client waits for 100 (Continue) and gets no response.
    NoContinue,
    /// A response began and did not end within the deadline.
    Unfinished,
    /// The response is not HTTP.
    NoHttp,
    /// Responses no longer match requests.
    OutOfStep,
    /// The valid request after the message was refused, although the message was processed or the
    /// connection stays open.
    NextRefused,
    /// Both were refused, and the connection ended.
    BothRefused,
    /// The valid request after it on the connection got no response, and the connection stays open.
    /// It is our follow-up, or a request of the same pipeline.
    NextHangs,
    /// Afterwards plain requests did not get their usual response.
    Lost,
    /// No plain request got a response afterwards.
    Stopped,
    /// Afterwards the memory of the server grows without further requests.
    Exhausts,
    /// It fails after a request of another client, but not alone.
    Inherited,
    /// The response of another request was received.
    Foreign,
    /// The response took longer than its size explains.
    Slow,
    /// The connection ended without a response.
    Closed,
    /// It was refused, but not as required.
    Refused,
    /// It was processed, and its content was parsed as another request.
    ContentParsed,
    /// It was processed although it must be refused, and the connection ended.
    AnswerClosed,
    /// The response violates the specification in another way.
    Answer,
}

impl FailureKind {
    /// All kinds except statuses.
    pub const NAMED: [FailureKind; 19] = [
        FailureKind::Hang,
        FailureKind::NoContinue,
        FailureKind::Unfinished,
        FailureKind::NoHttp,
        FailureKind::OutOfStep,
        FailureKind::NextRefused,
        FailureKind::BothRefused,
        FailureKind::NextHangs,
        FailureKind::Lost,
        FailureKind::Stopped,
        FailureKind::Exhausts,
        FailureKind::Inherited,
        FailureKind::Foreign,
        FailureKind::Slow,
        FailureKind::Closed,
        FailureKind::Refused,
        FailureKind::ContentParsed,
        FailureKind::AnswerClosed,
        FailureKind::Answer,
    ];

    /// Parses the shown form: `hang`, `500`.
    pub fn from_name(text: &str) -> Option<FailureKind> {
        let named = FailureKind::NAMED.into_iter().find(|kind| kind.to_string() == text);
        named.or_else(|| text.parse().ok().map(FailureKind::Status))
    }

    /// Returns whether the valid request after the message shows the failure.
    pub fn is_behind(self) -> bool {
        matches!(
            self,
            FailureKind::OutOfStep
                | FailureKind::NextRefused
                | FailureKind::BothRefused
                | FailureKind::NextHangs
        )
    }

    /// Returns how this conversation failed.
    pub fn new(talk: &Talk, plain: &Plain) -> FailureKind {
        let fault =
            |status: u16| (500..600).contains(&status) && !matches!(status, 501 | 503 | 505);
        let answers = &talk.replies.responses;
        match answers.iter().find(|answer| fault(answer.status)) {
            Some(answer) if broken_server(talk).is_some() => FailureKind::Status(answer.status),
            _ if awaits_continue(talk) => FailureKind::NoContinue,
            _ if is_hang(talk) => FailureKind::Hang,
            _ if is_unfinished(talk) => FailureKind::Unfinished,
            _ if answers.is_empty() && talk.replies.junk.is_some() && !is_cut_off(talk) => {
                FailureKind::NoHttp
            }
            _ if follow_up_got_nothing(talk) && out_of_step(talk, plain).is_some() => {
                FailureKind::Hang
            }
            _ if out_of_step(talk, plain).is_some() => follow_up_kind(talk),
            _ => own(talk),
        }
    }
}

/// Returns whether a reset ended the head of a response, whose rest may have been sent.
fn is_cut_off(talk: &Talk) -> bool {
    let begun = talk.replies.junk.as_ref().is_some_and(|(_, bytes)| bytes.starts_with(b"HTTP/1."));
    begun && matches!(talk.end, TalkEnd::Broken(_))
}

/// Returns whether the follow-up got no response over HTTP/2, which is different from a wrong one.
fn follow_up_got_nothing(talk: &Talk) -> bool {
    let whole = |answer: &Response| answer.stream == FOLLOW_UP && answer.complete;
    talk.replies.frames.is_some() && !talk.replies.responses.iter().any(whole)
}

/// Returns what happened to the valid request after the message.
fn follow_up_kind(talk: &Talk) -> FailureKind {
    let (own, behind) = talk.own_and_following();
    let refused = !own.is_empty() && own.iter().all(is_refusal);
    match behind {
        // the connection stays usable, and its client takes the further ones for later responses
        [one] if one.persistent && !has_ended(talk) && has_spare_refusals(talk) => {
            FailureKind::OutOfStep
        }
        [] => FailureKind::NextHangs,
        // the rest of the message and the follow-up were parsed as one request
        [one] if !is_refusal(one) && own.len() == 1 && leaves_bytes(talk) => {
            FailureKind::ContentParsed
        }
        [one] if !is_refusal(one) || talk.replies.junk.is_some() => FailureKind::OutOfStep,
        [one] if refused && (has_ended(talk) || !one.persistent) => FailureKind::BothRefused,
        [_] => FailureKind::NextRefused,
        _ => FailureKind::OutOfStep,
    }
}

/// Returns whether one message was processed, a parser may take some of its bytes for the start of
/// the next request, and no received byte is outside of a response.
fn leaves_bytes(talk: &Talk) -> bool {
    let (own, _) = talk.own_and_following();
    if talk.replies.frames.is_some() || talk.replies.junk.is_some() || own.iter().any(is_refusal) {
        return false;
    }
    let sent = crate::record::sent(&talk.steps);
    let reading = framing::read(&sent);
    // the response to HEAD has its own rules
    let is_head = reading.method == "HEAD";
    let has_rest = reading.head > 0 && reading.head < sent.len();
    let is_unclear = reading.ambiguities().next().is_some() || reading.has_valid_content();
    !is_head && is_unclear && has_rest && is_single(talk)
}

/// Returns what happened to the message itself.
fn own(talk: &Talk) -> FailureKind {
    let (own, behind) = talk.own_and_following();
    // a client must not send more after an announced end (RFC 9112 section 9.6)
    let over = (has_ended(talk) || announces_close(talk)) && behind.is_empty();
    match own.first() {
        // bytes after a message without a known end must not be processed
        Some(first) if refuses_framing(first) && serves_more(talk) => FailureKind::ContentParsed,
        Some(first) if is_refusal(first) => FailureKind::Refused,
        Some(_) if parses_content(talk) || serves_beyond_end(talk) => FailureKind::ContentParsed,
        Some(_) if over => FailureKind::AnswerClosed,
        Some(_) if lacks_pipelined(talk) => FailureKind::NextHangs,
        Some(_) => FailureKind::Answer,
        None if is_reset(talk) => FailureKind::Refused,
        None if over => FailureKind::Closed,
        None => FailureKind::Answer,
    }
}

/// Returns whether a single request was refused several times; 408 is sent to idle connections too.
fn has_spare_refusals(talk: &Talk) -> bool {
    let (own, _) = talk.own_and_following();
    let refusals = own.iter().filter(|one| is_refusal(one) && one.status != 408).count();
    refusals > 1 && refusals == own.len() && is_single(talk)
}

/// Returns whether later requests of a pipeline of valid requests got no response, although all
/// earlier ones did and the connection stays open.
fn lacks_pipelined(talk: &Talk) -> bool {
    let (own, behind) = talk.own_and_following();
    let waits = talk.end == TalkEnd::Silent && talk.all_sent && talk.before_follow_up.is_none();
    let is_served = |one: &Response| one.complete && one.persistent && !is_refusal(one);
    if !waits || talk.replies.frames.is_some() || talk.replies.junk.is_some() {
        return false;
    }
    let requests = framing::valid_requests(&crate::record::sent(&talk.steps));
    behind.is_empty() && own.iter().all(is_served) && requests.is_some_and(|all| all > own.len())
}

/// Returns whether a request behind the first was processed; behind a response that announces the
/// close, its response counts as junk. Frames delimit each message: other streams may be served.
fn serves_more(talk: &Talk) -> bool {
    if talk.replies.frames.is_some() {
        return false;
    }
    let (own, _) = talk.own_and_following();
    let junk = talk.replies.junk.as_ref().map_or(&[][..], |(_, bytes)| bytes);
    let served = |minor| junk.starts_with(format!("HTTP/1.{minor} 2").as_bytes());
    own.iter().skip(1).any(|one| !is_refusal(one)) || served(0) || served(1)
}

/// Returns whether a message whose end is unknown, or depends on the parser, was processed together
/// with the bytes after it: they may be content.
fn serves_beyond_end(talk: &Talk) -> bool {
    let (own, _) = talk.own_and_following();
    let is_second = own.get(1).is_some_and(|second| second.status != 408);
    let reading = framing::read(&crate::record::sent(&talk.steps));
    // the server must close the connection after these (RFC 9112 section 6.1)
    let is_last = |fault| matches!(fault, FramingFault::BothLengths | FramingFault::OldCoding);
    let has_no_end =
        reading.end == MessageEnd::Nowhere || reading.faults.iter().copied().any(is_last);
    talk.replies.frames.is_none() && is_second && has_no_end
}

/// Returns whether a response refuses the framing of its request, or content of its length.
fn refuses_framing(response: &Response) -> bool {
    matches!(response.status, 400 | 413 | 501)
}

/// Returns whether the content of a single request that was processed got a response of its own;
/// 408 is sent to idle connections too.
pub fn parses_content(talk: &Talk) -> bool {
    let (own, _) = talk.own_and_following();
    let processed = own.first().is_some_and(|first| !is_refusal(first));
    processed && own[1..].iter().any(|second| second.status != 408) && is_single(talk)
}

/// Returns whether a single HTTP/1 request was sent: the bytes contain one version, or they are
/// exactly one valid request, whose content may look like a request.
fn is_single(talk: &Talk) -> bool {
    let sent = crate::record::sent(&talk.steps);
    let requests = sent.windows(VERSION.len()).filter(|here| *here == VERSION).count();
    let is_exact = || framing::read(&sent).is_exact(sent.len());
    talk.replies.frames.is_none() && (requests == 1 || is_exact())
}

/// Start of the version in a request line.
const VERSION: &[u8] = b" HTTP/1.";

/// Returns whether the server reset a stream or ended the connection by a frame.
fn is_reset(talk: &Talk) -> bool {
    let frames = talk.replies.frames.as_ref();
    frames.is_some_and(|frames| frames.resets() > 0 || frames.has_goaway())
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FailureKind::Status(status) => return write!(f, "{status}"),
            FailureKind::Hang => "hang",
            FailureKind::NoContinue => "no 100",
            FailureKind::Unfinished => "unfinished",
            FailureKind::NoHttp => "no HTTP",
            FailureKind::OutOfStep => "out of step",
            FailureKind::NextRefused => "next refused",
            FailureKind::BothRefused => "both refused",
            FailureKind::NextHangs => "next hangs",
            FailureKind::Lost => "lost",
            FailureKind::Stopped => "stopped",
            FailureKind::Exhausts => "memory grows",
            FailureKind::Inherited => "inherited",
            FailureKind::Foreign => "foreign",
            FailureKind::Slow => "slow",
            FailureKind::Closed => "closed",
            FailureKind::Refused => "refused",
            FailureKind::ContentParsed => "content parsed",
            FailureKind::AnswerClosed => "answered, closed",
            FailureKind::Answer => "answer",
        })
    }
}
