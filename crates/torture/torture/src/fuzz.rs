//! Random data as sent by torture.pl, extended for modern servers. Each execution is a function of
//! seed, case and index, so number 42 can be generated without 0 to 41 and reproduced later.

mod make;
pub mod mutate;

use crate::case::Fuzz;
use crate::framing;
use crate::judge;
use crate::judge::{ConversationOutcome, Judgement, Plain};
use dialogue::replies::Response;
use dialogue::talk::{Move, Talk, TalkEnd};
use dialogue::text::Values;
use units::{Purpose, Seed, Stream};

/// Version of the cases F-01 to F-04.
const CLASSIC_VERSION: u32 = 1;

/// One execution: the bytes to send and the expected methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shot {
    pub moves: Vec<Move>,
    pub methods: Vec<String>,
    /// Every request in it is valid: each must get a response, in order.
    pub valid: bool,
    /// A valid follow-up request may be sent on the same connection: both sides agree where this
    /// one ends.
    pub follows: bool,
}

/// Place of the random data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuzzPlace {
    Query,
    Path,
    Body,
    /// Query, path or body, without escaping.
    Raw,
    /// The query, with lengths around powers of two.
    Edges,
    Fields,
    StartLine,
    /// Valid requests with mutations.
    Mutate,
    Encodings,
    /// Valid and random requests on one connection.
    Sequence,
    /// Valid requests that the client abandons, and identical uploads.
    Aborts,
}

/// Connections of which some are abandoned while the server serves the others.
const ABORTS_AT_ONCE: usize = 8;

impl FuzzPlace {
    pub const ALL: [(&'static str, FuzzPlace); 11] = [
        ("query", FuzzPlace::Query),
        ("path", FuzzPlace::Path),
        ("body", FuzzPlace::Body),
        ("raw", FuzzPlace::Raw),
        ("edges", FuzzPlace::Edges),
        ("fields", FuzzPlace::Fields),
        ("start-line", FuzzPlace::StartLine),
        ("mutate", FuzzPlace::Mutate),
        ("encodings", FuzzPlace::Encodings),
        ("sequence", FuzzPlace::Sequence),
        ("aborts", FuzzPlace::Aborts),
    ];

    /// Returns the number of concurrent executions, if the place needs several.
    pub fn together(self) -> Option<usize> {
        (self == FuzzPlace::Aborts).then_some(ABORTS_AT_ONCE)
    }

    /// Returns the place with this name.
    pub fn from_name(name: &str) -> Option<FuzzPlace> {
        FuzzPlace::ALL.iter().find(|(known, _)| *known == name).map(|(_, place)| *place)
    }
}

/// Returns the random stream of one execution of one case.
fn stream(seed: u64, id: &str, version: u32, index: u64) -> Stream {
    // FNV-1a: short and platform-independent
    let fold = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let name = id.bytes().chain(version.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, fold);
    Seed(seed ^ name).stream(Purpose::Torture, index)
}

/// Returns execution `index` of a case.
pub fn shot(
    seed: u64,
    id: &str,
    version: u32,
    fuzz: &Fuzz,
    index: u64,
    values: &Values,
    fields: &str,
) -> Shot {
    let mut random = stream(seed, id, version, index);
    make::shot(fuzz, index, &mut random, values, fields)
}

/// Returns the random data of execution `index` of F-01 (query), F-02 (path), F-03 (body) or F-04
/// (without escaping): fewer than `below` bytes.
pub fn classic_data(seed: u64, id: &str, index: u64, below: u64) -> Vec<u8> {
    classic(&mut stream(seed, id, CLASSIC_VERSION, index), below)
}

/// Generates bytes like torture.pl: fewer than `below`, each from 0 to 254 (`rand` in Perl never
/// returns its argument).
pub fn classic(random: &mut Stream, below: u64) -> Vec<u8> {
    let length = random.below(below.max(1));
    (0..length).map(|_| random.below(255) as u8).collect()
}

/// Percent-encodes the same set of bytes as torture.pl.
pub fn escaped(data: &[u8]) -> String {
    let mut out = String::with_capacity(data.len() * 3);
    for byte in data {
        if byte.is_ascii_alphanumeric() || b";/?:@&=+$,-_.!~*'()".contains(byte) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Returns the class of the outcome for the tally: a status, or how it ended without one.
pub fn outcome_class(shot: &Shot, talk: &Talk) -> String {
    match (talk.replies.responses.first(), talk.end) {
        (Some(response), _) => response.status.to_string(),
        (None, TalkEnd::Closed) if talk.replies.junk.is_some() && is_http_09(shot) => {
            "HTTP/0.9".to_owned()
        }
        (None, TalkEnd::Closed) if talk.replies.junk.is_some() => "no HTTP".to_owned(),
        (None, TalkEnd::Closed) => "closed".to_owned(),
        (None, TalkEnd::Broken(_)) => "reset".to_owned(),
        (None, TalkEnd::Unconnected(_)) => "no connection".to_owned(),
        (None, TalkEnd::Bounded) => "held back".to_owned(),
        (None, _) => "nothing".to_owned(),
    }
}

/// Judges an execution: any well-formed response is fine except server errors.
pub fn judge(shot: &Shot, talk: &Talk, plain: &Plain) -> Judgement {
    let (outcome, why) = found(shot, talk, plain);
    let expected = "a response other than a server error, or a closed connection".to_owned();
    let kind = (outcome == ConversationOutcome::Fail).then(|| judge::FailureKind::new(talk, plain));
    let cause = judge::cause_of(kind, talk);
    let seen = judge::seen(talk);
    Judgement { outcome: outcome.into(), seen, expected, why, kind, cause, ..Judgement::default() }
}

fn found(shot: &Shot, talk: &Talk, plain: &Plain) -> (ConversationOutcome, String) {
    if let TalkEnd::Unconnected(class) = talk.end {
        return (ConversationOutcome::Inconclusive, format!("no connection: {}", class.explain()));
    }
    if let Some(why) = judge::broken_server(talk) {
        return (ConversationOutcome::Fail, why);
    }
    if judge::is_bounded(talk) {
        return (ConversationOutcome::Inconclusive, judge::BOUNDED.to_owned());
    }
    if judge::lacks_continue(talk) {
        return (ConversationOutcome::Fail, judge::NO_CONTINUE.to_owned());
    }
    if judge::is_hang(talk) {
        let why = "everything was sent, there was no response, and the connection \
            stays open";
        return (ConversationOutcome::Fail, why.to_owned());
    }
    if judge::is_unfinished(talk) {
        return (ConversationOutcome::Fail, judge::UNFINISHED.to_owned());
    }
    let is_junk = talk.replies.responses.is_empty() && talk.replies.junk.is_some();
    if is_junk && !is_http_09(shot) && !judge::speaks_http2(talk) {
        return (ConversationOutcome::Fail, "the response is not HTTP".to_owned());
    }
    if let Some(why) = judge::out_of_step(talk, plain)
        && !(is_ambiguous(shot) && follow_up_was_refused(talk, plain))
    {
        return (ConversationOutcome::Fail, why);
    }
    if shot.valid && !answered(shot, &talk.replies.responses, plain) {
        return (
            ConversationOutcome::Fail,
            "valid requests did not get their responses in order".to_owned(),
        );
    }
    if talk.replies.responses.first().is_some_and(|answer| answer.status == 503) {
        return (ConversationOutcome::Advisory, "the server reports overload".to_owned());
    }
    (ConversationOutcome::Pass, String::new())
}

/// Returns whether parsers may find different ends, or bytes follow the end, even an empty line.
fn is_ambiguous(shot: &Shot) -> bool {
    let sent = crate::record::sent(&shot.moves);
    !framing::read(&sent).is_exact(sent.len())
}

/// Returns whether the follow-up request was refused and the connection closed: a server may do so
/// after unparsable input, and no client gets a wrong response.
fn follow_up_was_refused(talk: &Talk, plain: &Plain) -> bool {
    let (_, behind) = talk.own_and_following();
    let Some((last, before)) = behind.split_last() else { return false };
    let closes = matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_)) || !last.persistent;
    closes
        && talk.replies.junk.is_none()
        && judge::is_refusal(last)
        && before.iter().all(|response| judge::is_refusal(response) || plain.is(response))
}

/// Returns whether the first line has no version: the response is a page without a head (RFC 1945
/// section 6).
fn is_http_09(shot: &Shot) -> bool {
    let Some(Move::Send(bytes)) = shot.moves.first() else { return false };
    let line = bytes.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let version = line.and_then(|line| line.split(|byte| matches!(byte, b' ' | b'\t')).next_back());
    version
        .is_some_and(|word| !word.get(..5).is_some_and(|five| five.eq_ignore_ascii_case(b"HTTP/")))
}

/// Returns whether the valid requests of a sequence get correct responses until the connection
/// closes.
fn answered(shot: &Shot, responses: &[Response], plain: &Plain) -> bool {
    let pairs = shot.methods.iter().zip(responses);
    pairs.into_iter().all(|(method, response)| match method.as_str() {
        "GET" => plain.is(response) || !response.complete,
        _ => true,
    })
}

#[cfg(test)]
mod tests;
