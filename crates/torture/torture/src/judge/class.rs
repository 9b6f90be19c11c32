//! Outcome classes: the words of `accept`, `also`, `advise` and `unlearned`.

mod calls;
mod http2;
pub(super) mod sockets;

use super::{Plain, announces_close, has_ended, is_refusal};
use dialogue::http2::FrameSeen;
use dialogue::http3::packets;
use dialogue::packets::PacketKind;
use dialogue::replies::Response;
use dialogue::talk::{Talk, TalkEnd, TalkEvent, What};
use dialogue::text::{self, Values};
use units::{Nanos, quoted};

/// A conjunction of words: `400 close` holds when both do.
///
/// | word | holds when |
/// |---|---|
/// | `200`, `2xx` | the first final response has this status |
/// | `statuses:200,400` | the final responses have exactly these statuses |
/// | `all:2xx` | there are responses, and all have this status |
/// | `reject` | the first response is 4xx, 501 or 505, or the connection closes without one |
/// | `answered` | there is a final response |
/// | `one-answer` | there is exactly one; a response after an announced close counts too |
/// | `no-answer` | no response was received |
/// | `close` | the server closed the connection, gracefully or not |
/// | `closing` | the server closed the connection, or its last response announces that it will |
/// | `ended` | it responded or closed the connection: it does not hang |
/// | `silent` | no final response, and the connection stays open |
/// | `interim`, `no-interim` | an interim response was received; none was |
/// | `not:101` | no response has this status |
/// | `has:NAME`, `lacks:NAME` | the first final response has the field; it has no such field |
/// | `lacks-text:TEXT` | the received bytes do not contain this text |
/// | `not-to:HOST` | no response redirects to this host |
/// | `undisclosed` | no response has the content of the file named by --outside |
/// | `cut-off` | the first final response is incomplete |
/// | `nothing-more` | no bytes were received beyond the responses |
/// | `no-body` | the first final response has no content |
/// | `plain` | the first final response is that of a plain GET |
/// | `all-plain` | there are responses, and all are those of a plain GET |
/// | `not-longer` | the received bytes exceed those of a plain GET by at most a tenth plus 1 KiB |
/// | `connection:CODE,…` | HTTP/2: GOAWAY with one of these codes, or the server closed the connection without one; not closed by us |
/// | `connection` | the same with any code but NO_ERROR |
/// | `stream:CODE,…`, `stream` | HTTP/2: RST_STREAM with one of these codes, with any |
/// | `goaway` | HTTP/2: GOAWAY with a code other than NO_ERROR |
/// | `acknowledged:N` | HTTP/2: this many of our SETTINGS were acknowledged |
/// | `announced:NAME,N` | the server's SETTINGS have at least this value, as `MAX_FRAME_SIZE,16384` |
/// | `last-plain` | the last final response is that of a plain GET |
/// | `one-plain` | one of the final responses is that of a plain GET |
/// | `first-data:N` | HTTP/2: the first DATA had at most this many bytes |
/// | `stands` | HTTP/2: no GOAWAY, and the connection stays open |
/// | `pong` | HTTP/2: the PING after everything else was acknowledged |
/// | `unheard` | QUIC datagrams: no reply |
/// | `threefold` | QUIC datagrams: the replies have at most three times the bytes sent |
/// | `one-beyond` | QUIC datagrams: the same, plus one datagram that started within the limit |
/// | `smaller` | QUIC datagrams: the replies are smaller than what was sent |
/// | `sound-table` | HTTP/3: the server's QPACK table has no faults |
/// | `negotiated` | QUIC datagrams: Version Negotiation for the requested connection |
/// | `heard:NAME` | QUIC packets: a frame with this name was received, `stateless-reset`, the result of early data (`early-accepted`), or nothing was to be done: `unlimited`, `unmoved` |
/// | `not-heard:NAME` | QUIC packets: not so |
/// | `echoed:TEXT` | QUIC packets: PATH_RESPONSE with these eight bytes was received |
/// | `saw:KIND,…` | the steps that waited for a segment received these, in order: `syn-ack`, `ack`, `data`, `fin`, `rst`, `nothing` |
/// | `is:NAME=VALUE` | the first final response has this field with this value |
/// | `ws-open`, `ws-refused` | WebSocket: the server opened it, by 101 or over HTTP/2 by a 2xx; it did not |
/// | `ws-over` | WebSocket: the server ended the connection, or over HTTP/2 the stream |
/// | `ws-close:CODE,…` | WebSocket: the server closed the connection, or over HTTP/2 ended the stream, after a Close frame with one of these codes |
/// | `ws-failed:CODE,…`, `ws-failed` | WebSocket: the same or without a Close frame; without codes, with any that reports an error |
/// | `ws-pong:TEXT`, `ws-no-pong:TEXT` | WebSocket: a pong with this payload was received, whose bytes may be written `\xHH`; none was |
/// | `ws-no-empty` | WebSocket: no empty message was received |
/// | `ws-sound` | WebSocket: every frame of the server is valid |
/// | `grpc:CODE,…` | gRPC: the first call ended with one of these statuses, such as `INTERNAL` |
/// | `call-failed` | gRPC: it ended with a status other than OK, an HTTP error, RST_STREAM, or the end of the connection |
/// | `sound-calls` | gRPC: every response has the form of gRPC, with one status at its end |
/// | `answers:N` | there are exactly N final responses |
/// | `prompt` | the first data of the server arrived within one second of the request |
#[derive(Clone, Debug)]
pub struct Class {
    words: Vec<Word>,
    text: String,
}

impl PartialEq for Class {
    fn eq(&self, other: &Class) -> bool {
        self.text == other.text
    }
}

impl Eq for Class {}

#[derive(Clone, Debug)]
enum Word {
    Status(Mask),
    Statuses(Vec<Mask>),
    All(Mask),
    Not(Mask),
    LacksText(String),
    NotTo(String),
    Has(String),
    Lacks(String),
    /// GOAWAY or RST_STREAM with one of these codes, or with any if there are none.
    Goaway(Vec<u32>),
    Reset(Vec<u32>),
    Acknowledged(usize),
    FirstData(u32),
    /// A setting by its number, and its least value.
    Announced(u16, u32),
    Saw(Vec<PacketKind>),
    /// A QUIC frame by its row; the bytes of PATH_RESPONSE.
    Heard(u8),
    NotHeard(u8),
    Echoed(String),
    /// A field and its value.
    Is(String, String),
    Call(Vec<u8>),
    Answers(usize),
    SocketClose(Vec<u16>),
    SocketFailure(Vec<u16>),
    SocketPong(Vec<u8>),
    NoSocketPong(Vec<u8>),
    Plain(fn(&Talk, &Plain) -> bool),
}

/// `404`, `4xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mask {
    low: u16,
    high: u16,
}

impl Mask {
    fn parse(text: &str) -> Option<Mask> {
        let bytes = text.as_bytes();
        if bytes.len() != 3 || !(b'1'..=b'9').contains(&bytes[0]) {
            return None;
        }
        if &bytes[1..] == b"xx" {
            let low = u16::from(bytes[0] - b'0') * 100;
            return Some(Mask { low, high: low + 99 });
        }
        let all_digits = bytes.iter().all(u8::is_ascii_digit);
        let status = text.parse().ok().filter(|_| all_digits)?;
        Some(Mask { low: status, high: status })
    }

    /// Returns whether each status refuses an invalid message. 404, 412 or 416 reply to valid
    /// requests, which a server must not leave without a response.
    fn refuses_message(self) -> bool {
        let whole = Mask { low: 400, high: 499 };
        let refuses = |status| matches!(status, 400 | 411 | 413 | 414 | 431 | 501 | 505);
        self == whole || (self.low..=self.high).all(refuses)
    }

    fn fits(self, answer: &Response) -> bool {
        (self.low..=self.high).contains(&answer.status)
    }
}

/// A word without an argument: its name, what a server should do, and whether it holds.
type PlainWord = (&'static str, &'static str, fn(&Talk, &Plain) -> bool);

const WORDS: [PlainWord; 38] = [
    ("goaway", "end the connection with GOAWAY and an error", |talk, _| http2::named(talk)),
    ("reject", "refuse it with 4xx, 501 or 505, or close the connection", rejected),
    ("answered", "answer", |talk, _| first(talk).is_some()),
    ("one-answer", "answer once", |talk, _| own(talk).len() == 1 && !is_another(talk)),
    ("no-answer", "send no response", |talk, _| own(talk).is_empty()),
    ("close", "close the connection", |talk, _| has_ended(talk)),
    ("closing", "close the connection or announce that it will close", |talk, _| {
        has_ended(talk) || announces_close(talk)
    }),
    ("ended", "respond or close the connection", |talk, _| {
        first(talk).is_some() || has_ended(talk)
    }),
    ("silent", "wait", |talk, _| first(talk).is_none() && talk.end == TalkEnd::Silent),
    ("interim", "send an interim response", |talk, _| !talk.replies.interim.is_empty()),
    ("no-interim", "send no interim response", |talk, _| talk.replies.interim.is_empty()),
    ("cut-off", "end the connection before the end of the response", |talk, _| {
        first(talk).is_some_and(|answer| !answer.complete)
    }),
    ("nothing-more", "send nothing more", |talk, _| talk.replies.junk.is_none()),
    ("no-body", "send no content", |talk, _| first(talk).is_some_and(|one| one.body_len == 0)),
    ("plain", "respond as to a plain GET", |talk, plain| {
        first(talk).is_some_and(|answer| plain.is(answer))
    }),
    ("all-plain", "respond to each request as to a plain GET", all_plain),
    ("undisclosed", "not send the content of the file", |talk, plain| {
        !own(talk).iter().any(|answer| plain.discloses(answer))
    }),
    ("last-plain", "respond to the last request as to a plain GET", |talk, plain| {
        own(talk).last().is_some_and(|answer| plain.is(answer))
    }),
    ("one-plain", "respond to one of the requests as to a plain GET", |talk, plain| {
        own(talk).iter().any(|answer| plain.is(answer))
    }),
    ("not-longer", "send little more than the page", |talk, plain| {
        own_bytes(talk) <= plain.body_len + plain.body_len / 10 + 1024
    }),
    ("prompt", "begin to respond within a second", prompt),
    ("stands", "keep the connection", |talk, _| http2::stays_open(talk)),
    ("pong", "acknowledge a PING afterwards", |talk, _| http2::pong(talk)),
    ("unheard", "not answer", |talk, _| http2::got_no_reply(talk)),
    ("threefold", "send at most three times as much", |talk, _| http2::at_most(talk, 3)),
    ("one-beyond", "send at most three times as much and one datagram", |talk, _| {
        http2::at_most_before_last(talk, 3)
    }),
    ("smaller", "send less than it received", |talk, _| http2::smaller(talk)),
    ("sound-table", "keep a valid QPACK table", |talk, _| http2::sound_table(talk)),
    ("negotiated", "send Version Negotiation", |talk, _| http2::negotiated(talk)),
    ("ws-open", "open the WebSocket", |talk, _| sockets::is_opened(talk)),
    ("ws-refused", "refuse to open the WebSocket", |talk, _| sockets::is_refused(talk)),
    ("ws-over", "end the WebSocket", |talk, _| sockets::is_over(talk)),
    ("ws-no-empty", "send no empty message", |talk, _| sockets::sent_nothing_empty(talk)),
    ("ws-sound", "send valid frames only", |talk, _| sockets::has_valid_frames(talk)),
    ("call-failed", "end the call with an error", |talk, _| calls::failed(talk)),
    ("sound-calls", "send one status at the end of each call", |talk, _| {
        own(talk).iter().all(Response::is_sound_call)
    }),
    ("http2", "speak HTTP/2", |talk, _| super::speaks_http2(talk)),
    ("anything", "do anything", |_, _| true),
];

/// Returns an expectation (classes joined by `or`) as an instruction to a server. Any other
/// text is returned unchanged.
pub fn description(expected: &str) -> String {
    let classes: Result<Vec<Class>, String> = expected.split(" or ").map(Class::parse).collect();
    classes.map_or_else(
        |_| expected.to_owned(),
        |all| all.iter().map(Class::description).collect::<Vec<_>>().join(", or "),
    )
}

impl Class {
    /// # Errors
    /// Fails with the invalid word.
    pub fn parse(text: &str) -> Result<Class, String> {
        let words = text.split_whitespace().map(word).collect::<Result<Vec<Word>, String>>()?;
        if words.is_empty() {
            return Err("an empty class matches everything; write `anything`".to_owned());
        }
        Ok(Class { words, text: text.to_owned() })
    }

    pub fn holds(&self, talk: &Talk, plain: &Plain) -> bool {
        self.words.iter().all(|word| word.holds(talk, plain))
    }

    /// Returns whether the class requires the refusal of an invalid message: its first word is one.
    pub(super) fn is_refusal(&self) -> bool {
        match self.words.first() {
            Some(Word::Status(mask)) => mask.refuses_message(),
            _ => matches!(self.text.split_whitespace().next(), Some("reject" | "ws-refused")),
        }
    }

    /// Returns the class as an instruction to a server: `answer 400 and close the connection`.
    fn description(&self) -> String {
        let all: Vec<String> = self.text.split_whitespace().map(describe_word).collect();
        all.join(" and ")
    }

    /// Returns whether only this word keeps the class from holding.
    pub(super) fn lacks_only(&self, alone: &str, talk: &Talk, plain: &Plain) -> bool {
        let words = self.text.split_whitespace().zip(&self.words);
        words.filter(|(_, word)| !word.holds(talk, plain)).map(|(text, _)| text).eq([alone])
    }

    /// Returns the field whose absence alone keeps this class from holding, in lower case.
    pub(super) fn missing(&self, talk: &Talk, plain: &Plain) -> Option<String> {
        let mut failing = self.words.iter().filter(|word| !word.holds(talk, plain));
        match (failing.next(), failing.next()) {
            (Some(Word::Has(name)), None) => Some(name.to_ascii_lowercase()),
            _ => None,
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn word(text: &str) -> Result<Word, String> {
    let wrong = || format!("{} is not a class of outcomes", quoted(text));
    if let Some(mask) = Mask::parse(text) {
        return Ok(Word::Status(mask));
    }
    if let Some((.., holds)) = WORDS.iter().find(|(name, ..)| *name == text) {
        return Ok(Word::Plain(*holds));
    }
    match text {
        "connection" => return Ok(Word::Goaway(Vec::new())),
        "stream" => return Ok(Word::Reset(Vec::new())),
        "ws-failed" => return Ok(Word::SocketFailure(Vec::new())),
        _ => {}
    }
    let (name, argument) = text.split_once(':').ok_or_else(wrong)?;
    let mask = |text: &str| Mask::parse(text).ok_or_else(wrong);
    Ok(match name {
        "statuses" => {
            Word::Statuses(argument.split(',').map(mask).collect::<Result<Vec<Mask>, String>>()?)
        }
        "acknowledged" => Word::Acknowledged(argument.parse().map_err(|_| wrong())?),
        "first-data" => Word::FirstData(argument.parse().map_err(|_| wrong())?),
        "announced" => {
            let (setting, least) = argument.split_once(',').ok_or_else(wrong)?;
            let number = FrameSeen::setting_named(setting).ok_or_else(wrong)?;
            Word::Announced(number, least.parse().map_err(|_| wrong())?)
        }
        "connection" => Word::Goaway(http2::parse_codes(argument)?),
        "stream" => Word::Reset(http2::parse_codes(argument)?),
        "saw" => {
            let kind = |one: &str| PacketKind::from_name(one).ok_or_else(wrong);
            Word::Saw(argument.split(',').map(kind).collect::<Result<Vec<PacketKind>, String>>()?)
        }
        "heard" => Word::Heard(packets::frame_row(argument).ok_or_else(wrong)?),
        "not-heard" => Word::NotHeard(packets::frame_row(argument).ok_or_else(wrong)?),
        "echoed" if argument.len() == 8 => Word::Echoed(argument.to_owned()),
        "is" => {
            let (field, value) = argument.split_once('=').ok_or_else(wrong)?;
            Word::Is(field.to_owned(), value.to_owned())
        }
        "grpc" => {
            Word::Call(dialogue::calls::parse_codes(argument).map_err(|error| error.to_string())?)
        }
        "answers" => Word::Answers(argument.parse().map_err(|_| wrong())?),
        "ws-close" => Word::SocketClose(sockets::parse_codes(argument).ok_or_else(wrong)?),
        "ws-failed" => Word::SocketFailure(sockets::parse_codes(argument).ok_or_else(wrong)?),
        "ws-pong" => Word::SocketPong(text::bytes(argument, &Values::default())?),
        "ws-no-pong" => Word::NoSocketPong(text::bytes(argument, &Values::default())?),
        "all" => Word::All(mask(argument)?),
        "not" => Word::Not(mask(argument)?),
        "lacks-text" if !argument.is_empty() => Word::LacksText(argument.to_owned()),
        "not-to" if !argument.is_empty() => Word::NotTo(argument.to_ascii_lowercase()),
        "has" if !argument.is_empty() => Word::Has(argument.to_owned()),
        "lacks" if !argument.is_empty() => Word::Lacks(argument.to_owned()),
        _ => return Err(wrong()),
    })
}

/// Returns a word of a class as an instruction to a server.
fn describe_word(word: &str) -> String {
    if let Some((_, text, _)) = WORDS.iter().find(|(known, ..)| *known == word) {
        return (*text).to_owned();
    }
    let Some((name, argument)) = word.split_once(':') else {
        return match word {
            "connection" => "end the connection with an error".to_owned(),
            "stream" => "reset the stream".to_owned(),
            "ws-failed" => "close the connection with an error".to_owned(),
            status => format!("answer {status}"),
        };
    };
    let codes = argument.replace(',', " or ");
    match name {
        "statuses" => format!("answer {}", argument.replace(',', ", then ")),
        "acknowledged" => format!("acknowledge {argument} SETTINGS"),
        "first-data" => format!("send at most {argument} bytes in the first DATA"),
        "announced" => format!("announce at least {}", argument.replace(',', " = ")),
        "connection" => format!("end the connection with {codes}"),
        "stream" => format!("reset the stream with {codes}"),
        "saw" => format!("send {}", argument.replace(',', ", then ")),
        "heard" => format!("send {argument}"),
        "not-heard" => format!("not send {argument}"),
        "echoed" => format!("send PATH_RESPONSE with {argument}"),
        "is" => format!("send the field {}", argument.replacen('=', " with ", 1)),
        "grpc" => format!("end the call with {codes}"),
        "answers" => format!("answer {argument} times"),
        "ws-close" => format!("close the connection with {codes}"),
        "ws-failed" => format!("close the connection, with {codes} if it sends a Close frame"),
        "ws-pong" => format!("answer the ping {argument}"),
        "ws-no-pong" => format!("not answer the ping {argument}"),
        "all" => format!("answer {argument} to all"),
        "not" => format!("not answer {argument}"),
        "lacks-text" => format!("not send the text {argument}"),
        "not-to" => format!("not redirect to {argument}"),
        "has" => format!("send the field {argument}"),
        "lacks" => format!("not send the field {argument}"),
        _ => unreachable!("a class has only words that `word` knows"),
    }
}

impl Word {
    fn holds(&self, talk: &Talk, plain: &Plain) -> bool {
        let own = own(talk);
        match self {
            Word::Status(mask) => own.first().is_some_and(|answer| mask.fits(answer)),
            Word::Statuses(masks) => {
                masks.len() == own.len()
                    && masks.iter().zip(own).all(|(mask, answer)| mask.fits(answer))
            }
            Word::All(mask) => !own.is_empty() && own.iter().all(|answer| mask.fits(answer)),
            Word::Not(mask) => !own.iter().any(|answer| mask.fits(answer)),
            Word::Goaway(codes) => http2::goaway(talk, codes),
            Word::Acknowledged(count) => http2::acknowledged(talk) >= *count,
            Word::FirstData(most) => http2::first_data(talk).is_none_or(|first| first <= *most),
            Word::Announced(setting, least) => http2::announced(talk, *setting) >= Some(*least),
            Word::Saw(kinds) => seen_segments(talk) == *kinds,
            Word::Heard(row) => http2::has_frame(talk, *row),
            Word::NotHeard(row) => !http2::has_frame(talk, *row),
            Word::Echoed(text) => http2::echoed(talk, text),
            Word::Reset(codes) => http2::reset(talk, codes),
            Word::LacksText(text) => {
                !talk.raw.windows(text.len()).any(|here| here.eq_ignore_ascii_case(text.as_bytes()))
            }
            Word::NotTo(host) => !own.iter().any(|answer| redirects_to(answer, host)),
            Word::Is(name, value) => {
                own.first().is_some_and(|answer| answer.field(name).any(|found| found == value))
            }
            Word::Call(codes) => calls::ended(talk, codes),
            Word::Answers(count) => own.len() == *count,
            Word::SocketClose(codes) => sockets::closed(talk, codes),
            Word::SocketFailure(codes) => sockets::failed(talk, codes),
            Word::SocketPong(payload) => sockets::pong(talk, payload),
            Word::NoSocketPong(payload) => !sockets::pong(talk, payload),
            Word::Has(name) => own.first().is_some_and(|answer| answer.has_field(name)),
            Word::Lacks(name) => own.first().is_some_and(|answer| !answer.has_field(name)),
            Word::Plain(holds) => holds(talk, plain),
        }
    }
}

/// Returns the responses to what the case itself sent.
fn own(talk: &Talk) -> &[Response] {
    talk.own_and_following().0
}

/// Returns the number of bytes received, without the response to the follow-up request.
fn own_bytes(talk: &Talk) -> u64 {
    let (_, behind) = talk.own_and_following();
    let bytes = |answer: &Response| answer.head.len() as u64 + answer.body_len;
    talk.received.saturating_sub(behind.iter().map(bytes).sum())
}

/// Returns the segments seen by the steps that waited for one.
fn seen_segments(talk: &Talk) -> Vec<PacketKind> {
    let kind = |event: &TalkEvent| match event.what {
        What::Saw(kind) => Some(kind),
        _ => None,
    };
    talk.events.iter().filter_map(kind).collect()
}

/// Returns whether a response redirects to a host: `//HOST`, `http://HOST` and the like.
fn redirects_to(answer: &Response, host: &str) -> bool {
    answer.field("location").any(|place| {
        let place = place.to_ascii_lowercase().replace('\\', "/");
        let authority = match place.split_once("://") {
            Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => rest,
            _ => place.strip_prefix("//").unwrap_or_default(),
        };
        authority.trim_start_matches('/').starts_with(host)
    })
}

fn first(talk: &Talk) -> Option<&Response> {
    own(talk).first()
}

/// Returns whether the connection is closed, by either side.
fn is_over(talk: &Talk) -> bool {
    matches!(talk.end, TalkEnd::Closed | TalkEnd::Broken(_))
}

fn rejected(talk: &Talk, _: &Plain) -> bool {
    match first(talk) {
        Some(answer) => is_refusal(answer),
        None => has_ended(talk) && talk.replies.junk.is_none(),
    }
}

fn all_plain(talk: &Talk, plain: &Plain) -> bool {
    !own(talk).is_empty() && own(talk).iter().all(|answer| plain.is(answer))
}

/// Returns whether a response follows one that announces the close: it counts as junk.
fn is_another(talk: &Talk) -> bool {
    talk.replies.junk.as_ref().is_some_and(|(_, bytes)| bytes.starts_with(b"HTTP/1."))
}

/// Returns whether the server's first reply after the first bytes sent is prompt. Over TLS the
/// handshake does not count; tickets may precede the first HTTP bytes and look the same.
fn prompt(talk: &Talk, _: &Plain) -> bool {
    let secure = talk.events.iter().position(|event| event.what == What::Secure);
    let is_sent = |event: &&TalkEvent| matches!(event.what, What::Sent(_));
    let is_received = |event: &&TalkEvent| matches!(event.what, What::Received(_));
    let mut behind = talk.events[secure.map_or(0, |at| at + 1)..].iter();
    let Some(asked) = behind.find(is_sent) else { return false };
    let answered = behind.skip_while(|event| !is_received(event));
    let heard = answered.take_while(|event| !is_sent(event)).filter(is_received).last();
    heard.is_some_and(|heard| heard.at - asked.at <= Nanos::SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn expectations_are_sentences() {
        for (classes, text) in [
            ("400 close", "answer 400 and close the connection"),
            ("400 or one-answer close", "answer 400, or answer once and close the connection"),
            (
                "connection:FRAME_SIZE_ERROR or stream:NO_ERROR,CANCEL",
                "end the connection with FRAME_SIZE_ERROR, or reset the stream with NO_ERROR or \
                CANCEL",
            ),
            ("4xx or has:date", "answer 4xx, or send the field date"),
            ("a close within 60 s", "a close within 60 s"),
            ("", ""),
        ] {
            assert_eq!(description(classes), text);
        }
    }

    #[test]
    fn every_class_of_the_catalog_is_a_sentence() {
        for case in catalogue::cases().unwrap() {
            for class in case.exchanges.iter().flat_map(|one| &one.accept) {
                let text = class.description();
                assert!(!text.contains(':'), "{}: {text}", case.id);
            }
        }
    }
}
