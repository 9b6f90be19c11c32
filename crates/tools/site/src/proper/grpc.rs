//! gRPC, gRPC-Web and Connect: the service of `echo.proto`, health checks and reflection.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::Read as _;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use grpc::Schema;
use grpc::reflection;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Bytes, Frame};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response};
use prost::Message;
use protocol::grpc::{Code, PREFIX_BYTES, prefixed};
use tokio::time::{Instant, Sleep};

use super::Common;
use super::body::{PageBody, Upload};
use super::grpc_form::{CallForm, form_response};

const ECHO: &str = include_str!("echo.proto");
/// Replies that a stream may have.
const REPLIES_MAX: u32 = 1_000_000;
/// SERVING of grpc.health.v1.HealthCheckResponse.
const SERVING: [u8; 2] = [8, 1];
const CHAT: &str = "/loadstone.v1.Echo/Chat";
const HEALTH: &str = "/grpc.health.v1.Health/Check";
/// Services whose health is known; the empty name is the server's.
const SERVICES: [&str; 2] = ["", "loadstone.v1.Echo"];
/// Maximum size of one message, as in other servers.
const MESSAGE_MAX: usize = 4 << 20;

static SCHEMA: LazyLock<Option<Schema>> = LazyLock::new(|| {
    let read = |name: &str| (name == "echo.proto").then(|| ECHO.to_owned());
    Schema::compile("echo.proto", &read).ok()
});

#[derive(Clone, PartialEq, Message)]
struct SayRequest {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(uint32, tag = "2")]
    count: u32,
    #[prost(uint32, tag = "3")]
    gap_ms: u32,
    #[prost(uint32, tag = "4")]
    wait_ms: u32,
    #[prost(uint32, tag = "5")]
    status: u32,
    #[prost(string, tag = "6")]
    status_message: String,
}

#[derive(Clone, PartialEq, Message)]
struct SayReply {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(uint32, tag = "2")]
    number: u32,
}

#[derive(Clone, PartialEq, Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

/// Messages of a response, each at its time, followed by the status.
#[derive(Debug)]
pub(super) struct GrpcReplies {
    text: String,
    /// A message that is sent unchanged, in place of replies.
    fixed: Option<Bytes>,
    count: u32,
    next: u32,
    gap: Duration,
    sleep: Pin<Box<Sleep>>,
    status: Option<(u32, String)>,
    form: CallForm,
}

impl GrpcReplies {
    fn new(count: u32, text: String, request: &SayRequest) -> GrpcReplies {
        let wait = Duration::from_millis(u64::from(request.wait_ms));
        GrpcReplies {
            text,
            fixed: None,
            count: count.min(REPLIES_MAX),
            next: 0,
            gap: Duration::from_millis(u64::from(request.gap_ms)),
            sleep: Box::pin(tokio::time::sleep_until(Instant::now() + wait)),
            status: Some((request.status, request.status_message.clone())),
            form: CallForm::GRPC,
        }
    }

    /// Sends the response in this form.
    pub(super) fn with_form(self, form: CallForm) -> GrpcReplies {
        GrpcReplies { form, ..self }
    }

    /// Returns the status of a response without messages, and the instant at which it is due.
    pub(super) fn failure(&self) -> Option<(u32, &str, Instant)> {
        let (code, message) = self.status.as_ref().filter(|(code, _)| *code != 0)?;
        (self.count == 0).then(|| (*code, &**message, self.sleep.deadline()))
    }

    fn fixed(message: Vec<u8>) -> GrpcReplies {
        let fixed = Some(Bytes::from(message));
        GrpcReplies { fixed, ..GrpcReplies::new(1, String::new(), &SayRequest::default()) }
    }

    /// Returns the next message, or the trailers; `None` after them.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        if self.next < self.count {
            ready!(self.sleep.as_mut().poll(cx));
            self.next += 1;
            let at = self.sleep.deadline() + self.gap;
            self.sleep.as_mut().reset(at);
            let reply = SayReply { text: self.text.clone(), number: self.next };
            let message = self.fixed.take();
            let message = message.unwrap_or_else(|| prefixed(&reply.encode_to_vec()).into());
            return Poll::Ready(Some(Frame::data(self.form.message(message))));
        }
        let end = self.status.take().and_then(|(code, message)| self.form.end(code, &message));
        Poll::Ready(end)
    }
}

/// Answers the messages of a request one by one as they arrive: clients of reflection send the next
/// request after the response to the previous one.
#[derive(Debug)]
pub(super) struct Conversation {
    incoming: Upload,
    /// Received part of the next message.
    pending: Vec<u8>,
    ended: bool,
    /// Number of answers so far of the method `Chat`; `None` for reflection.
    chat: Option<u32>,
    /// Answers that wait for their time, in the order of the messages.
    later: VecDeque<(Instant, Bytes)>,
    /// Number of bytes of these answers.
    waiting: usize,
    /// Timer until the first of them is due.
    sleep: Option<Pin<Box<Sleep>>>,
    /// The end of the response, after these answers.
    last: Option<Frame<Bytes>>,
}

/// Maximum number of waiting answers, and of their bytes; beyond it, no further message is read.
const ANSWERS_MAX: usize = 10_000;
const ANSWERS_BYTES_MAX: usize = 1 << 20;

/// Maximum size of a request of a conversation in bytes.
const QUESTION_MAX: usize = 64 << 10;

impl Conversation {
    fn new(incoming: Upload, chat: Option<u32>) -> Conversation {
        Conversation {
            incoming,
            pending: Vec::new(),
            ended: false,
            chat,
            later: VecDeque::new(),
            waiting: 0,
            sleep: None,
            last: None,
        }
    }

    /// Returns the answer to a message, and how long it waits.
    fn answer(&mut self, message: &[u8]) -> Option<(Bytes, Duration)> {
        let Some(number) = &mut self.chat else {
            let answer = reflection::answer(message, SCHEMA.as_ref()?).ok()?;
            return Some((answer.into(), Duration::ZERO));
        };
        let request = SayRequest::decode(message.get(PREFIX_BYTES..)?).ok()?;
        *number += 1;
        let reply = SayReply { text: request.text, number: *number };
        let wait = Duration::from_millis(u64::from(request.wait_ms));
        Some((prefixed(&reply.encode_to_vec()).into(), wait))
    }

    /// Returns the next answer, or the trailers; `None` after them.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // a due answer is sent before further messages are read
        while self.last.is_none() && self.has_room() && !self.is_due() {
            match self.poll_message(cx) {
                Poll::Ready(frame) => self.last = frame,
                Poll::Pending => break,
            }
        }
        let Some((at, _)) = self.later.front() else {
            let last = ready_or_pending(self.last.take());
            self.ended = last.is_ready();
            return last.map(Some);
        };
        // a timer is late by up to a millisecond, also one that is over
        if *at > Instant::now() {
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(*at)));
            ready!(sleep.as_mut().poll(cx));
        }
        self.sleep = None;
        let answer = self.later.pop_front().map(|(_, answer)| answer);
        self.waiting -= answer.as_ref().map_or(0, Bytes::len);
        Poll::Ready(answer.map(Frame::data))
    }

    fn has_room(&self) -> bool {
        self.later.len() < ANSWERS_MAX && self.waiting < ANSWERS_BYTES_MAX
    }

    /// Returns whether the first answer is due.
    fn is_due(&self) -> bool {
        self.later.front().is_some_and(|(at, _)| *at <= Instant::now())
    }

    /// Schedules the answer to the next message, or returns the end of the response after the last.
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        loop {
            if let Some(question) = self.take_message() {
                let Some((answer, wait)) = self.answer(&question) else {
                    let end = end(Code::InvalidArgument, "not a request of this method");
                    return Poll::Ready(Some(end));
                };
                self.waiting += answer.len();
                self.later.push_back((Instant::now() + wait, answer));
                return Poll::Ready(None);
            }
            if self.pending.len() > QUESTION_MAX {
                let end = end(Code::ResourceExhausted, "the message is too long");
                return Poll::Ready(Some(end));
            }
            match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.pending.extend_from_slice(data);
                    }
                }
                Some(Err(_)) | None if self.pending.is_empty() => {
                    return Poll::Ready(Some(end(Code::Ok, "")));
                }
                Some(Err(_)) | None => {
                    let end = end(Code::InvalidArgument, "the message is cut off");
                    return Poll::Ready(Some(end));
                }
            }
        }
    }

    /// Returns the first complete message, with its prefix.
    fn take_message(&mut self) -> Option<Vec<u8>> {
        let ([_, length @ ..], _) = self.pending.split_first_chunk::<PREFIX_BYTES>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let end = PREFIX_BYTES.checked_add(length).filter(|end| *end <= self.pending.len())?;
        Some(self.pending.drain(..end).collect())
    }
}

/// Returns the end of a response.
fn end(code: Code, message: &str) -> Frame<Bytes> {
    Frame::trailers(trailers(u32::from(code.number()), message))
}

/// Returns a given value as ready.
fn ready_or_pending<T>(value: Option<T>) -> Poll<T> {
    value.map_or(Poll::Pending, Poll::Ready)
}

pub(super) fn trailers(code: u32, message: &str) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert(HeaderName::from_static("grpc-status"), HeaderValue::from(code));
    // every byte that is not plain is percent-encoded
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'%';
    let coded: String = message
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    if let Ok(value) = HeaderValue::from_str(&coded)
        && !coded.is_empty()
    {
        map.insert(HeaderName::from_static("grpc-message"), value);
    }
    map
}

/// Returns the response to a call.
pub(super) async fn respond(
    request: Request<Upload>,
    form: CallForm,
    common: &Common,
) -> Response<PageBody> {
    let path = request.uri().path().to_owned();
    if form == CallForm::GRPC {
        if reflection::PATHS.contains(&path.as_str()) {
            return conversation(request, None);
        }
        if path == CHAT {
            return conversation(request, Some(0));
        }
    }
    let encoding = request.headers().get("grpc-encoding").map(HeaderValue::as_bytes);
    let gzip = match encoding {
        None | Some(b"identity") => false,
        Some(b"gzip") => true,
        Some(_) => return unknown_encoding(form),
    };
    let mut incoming = request.into_body();
    let mut held = common.hold();
    let mut prefixes = Prefixes::default();
    while let Some(Ok(frame)) = incoming.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let too_long = held.len() + data.len() as u64 > common.body_max || !held.push(&data);
        if too_long || (form.has_prefixes() && prefixes.exceed(held.bytes())) {
            return form.refused(Code::ResourceExhausted, "the messages are too long");
        }
    }
    let framed = form.request(held.bytes()).ok_or(Code::Internal);
    let replies = framed.and_then(|framed| {
        let messages = messages(&framed, gzip, common.body_max)?;
        answer(&path, &messages)
    });
    match replies {
        Ok(replies) => form.reply(replies).await,
        Err(code) => refused(form, code),
    }
}

/// Returns the response to a call that the site does not understand.
fn refused(form: CallForm, code: Code) -> Response<PageBody> {
    let why = match code {
        Code::ResourceExhausted => "the messages are too long",
        Code::Unimplemented => "unknown method, or one that takes a single message",
        Code::NotFound => "there is no such service",
        _ => "the request is not a message of this method",
    };
    form.refused(code, why)
}

/// Returns the replies to the messages of a call.
///
/// # Errors
/// Fails if the method does not exist, or takes other messages, or another number of them.
fn answer(path: &str, messages: &[Cow<'_, [u8]>]) -> Result<GrpcReplies, Code> {
    if path == HEALTH {
        let HealthCheckRequest { service } = decoded(only(messages)?)?;
        return match SERVICES.contains(&service.as_str()) {
            true => Ok(GrpcReplies::fixed(prefixed(&SERVING))),
            false => Err(Code::NotFound),
        };
    }
    let replies = match path.strip_prefix("/loadstone.v1.Echo/") {
        Some("Say") => {
            let request: SayRequest = decoded(only(messages)?)?;
            let failed = request.status != 0;
            GrpcReplies::new(u32::from(!failed), request.text.clone(), &request)
        }
        Some("Repeat") => {
            let request: SayRequest = decoded(only(messages)?)?;
            GrpcReplies::new(request.count, request.text.clone(), &request)
        }
        Some("Collect") => {
            let all = messages.iter().map(|message| decoded(message));
            let all = all.collect::<Result<Vec<SayRequest>, Code>>()?;
            let texts: Vec<&str> = all.iter().map(|request| request.text.as_str()).collect();
            GrpcReplies::new(1, texts.join(" "), &all.first().cloned().unwrap_or_default())
        }
        _ => return Err(Code::Unimplemented),
    };
    Ok(replies)
}

/// Returns the message of a method that takes exactly one.
fn only<'m>(messages: &'m [Cow<'_, [u8]>]) -> Result<&'m [u8], Code> {
    match messages {
        [message] => Ok(message),
        _ => Err(Code::Unimplemented),
    }
}

fn decoded<T: Message + Default>(message: &[u8]) -> Result<T, Code> {
    T::decode(message).map_err(|_| Code::Internal)
}

/// Lengths that the prefixes announce while the messages arrive.
#[derive(Default)]
struct Prefixes {
    /// Offset of the next prefix.
    at: usize,
}

impl Prefixes {
    /// Returns whether a message is announced that is longer than [`MESSAGE_MAX`].
    fn exceed(&mut self, body: &[u8]) -> bool {
        while let Some(([_, length @ ..], _)) =
            body.get(self.at..).and_then(<[u8]>::split_first_chunk::<PREFIX_BYTES>)
        {
            let length = u32::from_be_bytes(*length) as usize;
            if length > MESSAGE_MAX {
                return true;
            }
            self.at += PREFIX_BYTES + length;
        }
        false
    }
}

/// Returns the messages of a request, decompressed.
///
/// # Errors
/// Fails if the request is malformed, or its messages have more than `most` bytes after
/// decompression, or one of them more than [`MESSAGE_MAX`].
fn messages(mut body: &[u8], gzip: bool, most: u64) -> Result<Vec<Cow<'_, [u8]>>, Code> {
    let mut all = Vec::new();
    let mut left = most;
    while !body.is_empty() {
        let bad = Code::Internal;
        let ([flag, length @ ..], rest) = body.split_first_chunk::<PREFIX_BYTES>().ok_or(bad)?;
        let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| bad)?;
        let message = rest.get(..length).ok_or(bad)?;
        all.push(match flag {
            _ if length > MESSAGE_MAX => return Err(Code::ResourceExhausted),
            0 => Cow::Borrowed(message),
            1 if gzip => {
                let inflated = inflated(message, left.min(MESSAGE_MAX as u64))?;
                left -= inflated.len() as u64;
                Cow::Owned(inflated)
            }
            _ => return Err(bad),
        });
        body = &rest[length..];
    }
    Ok(all)
}

/// Decompresses a message of at most `most` bytes.
///
/// # Errors
/// Fails if it is longer, or invalid.
fn inflated(message: &[u8], most: u64) -> Result<Vec<u8>, Code> {
    let mut out = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(message).take(most.saturating_add(1));
    decoder.read_to_end(&mut out).map_err(|_| Code::Internal)?;
    if out.len() as u64 > most { Err(Code::ResourceExhausted) } else { Ok(out) }
}

fn conversation(request: Request<Upload>, chat: Option<u32>) -> Response<PageBody> {
    let conversation = Conversation::new(request.into_body(), chat);
    form_response(CallForm::GRPC, PageBody::Conversation(Box::new(conversation)))
}

/// Returns the response to a request in an unknown encoding; it names the known ones.
fn unknown_encoding(form: CallForm) -> Response<PageBody> {
    let mut response = form.refused(Code::Unimplemented, "unknown grpc-encoding");
    let known = HeaderValue::from_static("identity,gzip");
    response.headers_mut().insert(HeaderName::from_static("grpc-accept-encoding"), known);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// Returns `count` compressed messages, each with a text of `length` bytes.
    fn zipped(count: usize, length: usize) -> Vec<u8> {
        let request = SayRequest { text: "a".repeat(length), ..SayRequest::default() };
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&request.encode_to_vec()).unwrap();
        let mut message = prefixed(&encoder.finish().unwrap());
        message[0] = 1;
        message.repeat(count)
    }

    #[test]
    fn the_limit_holds_for_all_compressed_messages_together() {
        let most = 10_000;
        assert_eq!(messages(&zipped(3, 3_000), true, most).unwrap().len(), 3);
        assert_eq!(messages(&zipped(4, 3_000), true, most), Err(Code::ResourceExhausted));
        assert_eq!(messages(&zipped(1, 3_000), false, most), Err(Code::Internal));
        assert_eq!(messages(&zipped(1, 3_000)[..9], true, most), Err(Code::Internal));
        let most = 100 << 20;
        assert!(messages(&zipped(1, MESSAGE_MAX - 10), true, most).is_ok());
        assert_eq!(messages(&zipped(1, MESSAGE_MAX), true, most), Err(Code::ResourceExhausted));
    }

    #[test]
    fn an_announced_length_is_refused_before_the_message_arrives() {
        let mut prefixes = Prefixes::default();
        let mut body = prefixed(b"abc");
        assert!(!prefixes.exceed(&body[..6]));
        body.extend([0, 0, 0x40, 0, 0]);
        assert!(!prefixes.exceed(&body));
        let mut prefixes = Prefixes::default();
        body.truncate(8);
        body.extend([0, 0xff, 0xff, 0xff, 0xff]);
        assert!(!prefixes.exceed(&body[..12]));
        assert!(prefixes.exceed(&body));
    }

    #[test]
    fn health_checks_take_one_message_and_name_a_service() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let code = |messages: &[&[u8]]| {
            let messages: Vec<Cow<'_, [u8]>> = messages.iter().map(|&it| it.into()).collect();
            answer(HEALTH, &messages).map(drop)
        };
        assert_eq!(code(&[b""]), Ok(()));
        assert_eq!(code(&[b"\x0a\x11loadstone.v1.Echo"]), Ok(()));
        assert_eq!(code(&[b"\x0a\x01x"]), Err(Code::NotFound));
        assert_eq!(code(&[b"\x0a\x01\xff"]), Err(Code::Internal));
        assert_eq!(code(&[]), Err(Code::Unimplemented));
        assert_eq!(code(&[b"", b""]), Err(Code::Unimplemented));
    }
}
