//! The protocol of a connection with one request.

use super::message::{ASK_OVER_TCP, SPEAK_HTTP1};
use super::socket::{SocketProgress, SocketVoice};
use super::{BODY_MAX, ExchangeError, Message, SocketTalk};
use crate::speaker::{Event, Fault, Protocol, ProtocolFacts, Speaker, class_of};
use protocol::http1::response::{
    Asked, HeadCache, Leniency, Limits, ResponseError, ResponseFacts, ResponseReader,
};
use protocol::http3;
use sample::{FailureClass, http2_code_name, http3_code_name};
use units::Nanos;

#[derive(Debug)]
pub(super) enum Voice {
    Http1(ResponseReader),
    /// A WebSocket; without the upgrade it becomes `Http1`.
    Socket(Box<SocketVoice>),
    Streams {
        speaker: Box<Speaker>,
        /// The peer has sent data of this protocol.
        met: bool,
    },
}

/// Result of processing a piece of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VoiceOutput {
    /// Number of bytes processed.
    pub(super) used: usize,
    /// Some of the bytes belonged to the response.
    pub(super) begun: bool,
    /// The response is complete.
    pub(super) done: bool,
}

impl Voice {
    pub(super) fn new(message: &Message, head_max: u32) -> Voice {
        let streams = |protocol| {
            let speaker = Box::new(Speaker::new(protocol, true, Leniency::default()));
            Voice::Streams { speaker, met: false }
        };
        match message {
            Message::Handshake | Message::Http1 { .. } => Voice::Http1(reader(head_max as usize)),
            Message::Socket(talk) => {
                let talk = SocketTalk::clone(talk);
                Voice::Socket(Box::new(SocketVoice::new(talk, head_max as usize)))
            }
            Message::Http2 { .. } => {
                let settings = http2::SessionSettings::default();
                let header_list_max = head_max;
                streams(Protocol::Http2(http2::SessionSettings { header_list_max, ..settings }))
            }
            Message::Http3 { .. } => {
                let settings = http3::SessionSettings::default();
                let section_max = head_max;
                streams(Protocol::Http3(http3::SessionSettings { section_max, ..settings }))
            }
        }
    }

    /// Appends the request to `out`; for HTTP/1.x its bytes are moved out of the message.
    pub(super) fn send_request(&mut self, message: &mut Message, out: &mut Vec<u8>) {
        match (self, message) {
            (Voice::Http1(reader), Message::Http1 { bytes, asked }) => {
                reader.start(*asked);
                out.append(bytes);
            }
            (Voice::Socket(socket), _) => socket.send_request(out),
            (Voice::Streams { speaker, .. }, message) => {
                speaker.start(out);
                submit(speaker, message, out);
            }
            (Voice::Http1(_), _) => {}
        }
    }

    /// Processes input; content is appended to `body`, protocol replies to `out`.
    ///
    /// # Errors
    /// Fails if the response cannot be completed.
    pub(super) fn process(
        &mut self,
        cache: &mut HeadCache,
        input: &[u8],
        body: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<VoiceOutput, ExchangeError> {
        match self {
            Voice::Http1(reader) => receive_http1(reader, cache, input, body),
            Voice::Socket(socket) => match socket.process(input, body, out)? {
                SocketProgress::Refused(seen) => {
                    let mut reader = reader(socket.head_max());
                    reader.start(Asked::Ordinary);
                    let heard = receive_http1(&mut reader, cache, &seen, body)?;
                    *self = Voice::Http1(reader);
                    // of `seen`, only this input is new
                    let unused = seen.len() - heard.used;
                    Ok(VoiceOutput { used: input.len().saturating_sub(unused), ..heard })
                }
                progress => {
                    let done = matches!(progress, SocketProgress::Over);
                    Ok(VoiceOutput { used: input.len(), begun: !input.is_empty(), done })
                }
            },
            Voice::Streams { speaker, met } => receive_streams(speaker, met, input, body, out),
        }
    }

    /// Returns the text for a response that is not complete within this time.
    pub(super) fn late(&self, within: &str) -> String {
        match self {
            Voice::Socket(socket) => socket.timed_out(within),
            _ => format!("no complete response within {within}"),
        }
    }

    /// Handles the peer's close. `Ok`: the close ends the response.
    pub(super) fn receive_end(&mut self) -> Result<(), ExchangeError> {
        match self {
            Voice::Http1(reader) => reader.end_of_input().map_err(|error| misread(&error, &[])),
            Voice::Socket(socket) => Err(socket.cut_off_error()),
            Voice::Streams { speaker, .. } => {
                let class = speaker.receive_end().err().unwrap_or(FailureClass::ClosedEarly);
                Err(ExchangeError::new(class, class.explain().to_owned()))
            }
        }
    }

    /// Returns true once data from the peer shows that it uses this protocol.
    pub(super) fn is_met(&self) -> bool {
        match self {
            Voice::Http1(_) | Voice::Socket(_) => true,
            Voice::Streams { met, .. } => *met,
        }
    }

    /// Returns facts and head of the response in progress.
    pub(super) fn so_far(&self) -> (ResponseFacts, Vec<u8>) {
        match self {
            Voice::Http1(_) | Voice::Socket(_) => self.reply(),
            Voice::Streams { speaker, .. } => {
                (speaker.partial(0).unwrap_or_default(), speaker.head().to_vec())
            }
        }
    }

    /// Returns the number of streams that the peer permits at once; `None` if unknown or not
    /// applicable.
    pub(super) fn streams_max(&mut self) -> Option<u64> {
        match self {
            Voice::Http1(_) | Voice::Socket(_) => None,
            Voice::Streams { speaker, .. } => match speaker.take_facts()? {
                ProtocolFacts::Http2(facts) => facts.streams_max.map(u64::from),
                ProtocolFacts::Http3(facts) => facts.streams_max,
                ProtocolFacts::WebSocket { .. } => None,
            },
        }
    }

    /// Returns facts and head of the complete response.
    pub(super) fn reply(&self) -> (ResponseFacts, Vec<u8>) {
        match self {
            Voice::Http1(reader) => (reader.facts(), reader.head().to_vec()),
            Voice::Socket(socket) => socket.reply(),
            // a connection is never reused after its one request here
            Voice::Streams { speaker, .. } => {
                let facts = ResponseFacts { persistent: true, ..speaker.facts() };
                (facts, speaker.head().to_vec())
            }
        }
    }
}

/// Returns a reader for an HTTP/1.x response.
fn reader(head_max: usize) -> ResponseReader {
    ResponseReader::with_limits(true, Limits { head_max, ..Limits::default() })
}

/// Sends a message as the stream of its connection; does nothing if the connection uses another
/// protocol.
fn submit(speaker: &mut Speaker, message: &Message, out: &mut Vec<u8>) {
    match (speaker, message) {
        (Speaker::Http2(http2), Message::Http2 { request, cookie, .. }) => {
            http2.submit_last(request, cookie.as_deref(), out);
        }
        (Speaker::Http3(http3), Message::Http3 { request, cookie, .. }) => {
            http3.submit_last(request, cookie.as_deref(), out);
        }
        _ => {}
    }
}

fn receive_http1(
    reader: &mut ResponseReader,
    cache: &mut HeadCache,
    input: &[u8],
    body: &mut Vec<u8>,
) -> Result<VoiceOutput, ExchangeError> {
    let mut used = 0;
    while used < input.len() {
        let rest = &input[used..];
        let advance = reader.advance(cache, rest).map_err(|error| misread(&error, rest))?;
        body.extend_from_slice(&rest[advance.body.clone()]);
        used += advance.consumed;
        if advance.done || body.len() > BODY_MAX {
            return Ok(VoiceOutput { used, begun: true, done: advance.done });
        }
        if advance.consumed == 0 {
            break;
        }
    }
    Ok(VoiceOutput { used, begun: !input.is_empty(), done: false })
}

fn receive_streams(
    speaker: &mut Speaker,
    met: &mut bool,
    input: &[u8],
    body: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<VoiceOutput, ExchangeError> {
    let (mut used, mut begun) = (0, false);
    while used < input.len() {
        let rest = &input[used..];
        let heard = speaker
            .process(rest, Nanos::ZERO, out)
            .map_err(|fault| broken(speaker, fault, *met))?;
        *met = true;
        used += heard.consumed;
        match heard.event {
            Event::Connection => {}
            Event::Response { body: content, done, .. } => {
                body.extend_from_slice(&rest[content]);
                begun = true;
                if done || body.len() > BODY_MAX {
                    return Ok(VoiceOutput { used, begun, done });
                }
            }
            Event::Refused { .. } => {
                let class = FailureClass::StreamRefused;
                return Err(ExchangeError::new(class, "the server refused the stream".to_owned()));
            }
            Event::Failed { class, .. } => {
                return Err(ExchangeError::new(class, given_up(speaker, class)));
            }
        }
    }
    Ok(VoiceOutput { used, begun, done: false })
}

/// Returns why this stream has no response, with the peer's code if it reset the stream.
fn given_up(speaker: &mut Speaker, class: FailureClass) -> String {
    let code = match speaker.take_facts() {
        Some(ProtocolFacts::Http2(facts)) => facts.resets.into_keys().next().map(http2_code_name),
        Some(ProtocolFacts::Http3(facts)) => facts.resets.into_keys().next().map(http3_code_name),
        Some(ProtocolFacts::WebSocket { .. }) | None => None,
    };
    match code.filter(|_| class == FailureClass::StreamReset) {
        Some(code) => format!("the server reset the stream with {code}"),
        None => class.explain().to_owned(),
    }
}

/// Returns the failure for input that violates the protocol; as the first input, it may be of
/// another protocol.
fn broken(speaker: &mut Speaker, fault: Fault, met: bool) -> ExchangeError {
    let (Fault::Broken { class }, over_http2) = (fault, matches!(speaker, Speaker::Http2(_)))
    else {
        return ExchangeError::new(
            FailureClass::Unasked,
            FailureClass::Unasked.explain().to_owned(),
        );
    };
    let violations = match speaker.take_facts() {
        Some(ProtocolFacts::Http2(facts)) => facts.violations,
        Some(ProtocolFacts::Http3(facts)) => facts.violations,
        Some(ProtocolFacts::WebSocket { .. }) | None => std::collections::BTreeMap::new(),
    };
    let text = violations.into_keys().next().unwrap_or_else(|| class.explain().to_owned());
    let another = if over_http2 { SPEAK_HTTP1 } else { ASK_OVER_TCP };
    ExchangeError { class, text, fix_text: (!over_http2 || !met).then_some(another) }
}

pub(super) fn closed_early() -> ExchangeError {
    misread(&ResponseError::ClosedEarly, &[])
}

/// Returns the failure for an unparsable HTTP/1.x response. `at`: the bytes at which parsing
/// failed.
fn misread(error: &ResponseError, at: &[u8]) -> ExchangeError {
    let class = class_of(error);
    // a TLS alert record (RFC 8446 §5.1)
    let alert = class == FailureClass::NotHttp && at.starts_with(&[0x15, 0x03]);
    let text = if alert {
        "the server responded in TLS: is this a port for https://?".to_owned()
    } else {
        error.to_string()
    };
    ExchangeError::new(class, text)
}
