//! gRPC-Web (`PROTOCOL-WEB.md`) and Connect: the same calls without HTTP/2 and its trailers.

use super::codec::split_frame;
use super::message::END_MAX;
use super::status::MESSAGE_MAX;
use super::{
    CONTENT_TYPE, Code, EarlyEnd, MessageFault, MessageLimits, MessageReader, PREFIX_BYTES, Status,
    prefixed, status_of,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// Protocol variant of gRPC calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    #[default]
    Grpc,
    /// gRPC-Web: the trailers are the last frame of the body.
    Web,
    /// gRPC-Web whose bodies are base64.
    WebText,
    /// Connect: a unary call is a plain POST of its message.
    Connect,
}

impl Variant {
    pub const ALL: [(&str, Variant); 4] = [
        ("grpc", Variant::Grpc),
        ("grpc-web", Variant::Web),
        ("grpc-web-text", Variant::WebText),
        ("connect", Variant::Connect),
    ];

    /// Returns the fields of every request.
    pub fn fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Variant::Grpc => &[("content-type", CONTENT_TYPE), ("te", "trailers")],
            Variant::Web => &[("content-type", "application/grpc-web+proto"), ("x-grpc-web", "1")],
            Variant::WebText => &[
                ("content-type", "application/grpc-web-text+proto"),
                ("accept", "application/grpc-web-text+proto"),
                ("x-grpc-web", "1"),
            ],
            Variant::Connect => {
                &[("content-type", "application/proto"), ("connect-protocol-version", "1")]
            }
        }
    }

    /// Returns a request's body from its messages with prefixes. `streams`: the method has a
    /// stream.
    pub fn body(self, messages: Vec<u8>, streams: bool) -> Vec<u8> {
        match self {
            Variant::Grpc | Variant::Web => messages,
            Variant::WebText => STANDARD.encode(messages).into_bytes(),
            Variant::Connect if streams => messages,
            Variant::Connect => messages.get(PREFIX_BYTES..).unwrap_or_default().to_vec(),
        }
    }

    /// Returns the messages of a complete response with their prefixes, without the frame that ends
    /// the call. `streams`: the method has a stream. `None` if the body is truncated or not base64.
    pub fn response(self, body: &[u8], streams: bool) -> Option<Cow<'_, [u8]>> {
        match self {
            Variant::Grpc => Some(Cow::Borrowed(body)),
            Variant::Web => Some(Cow::Borrowed(&body[..end_at(body, WEB_END)?])),
            Variant::WebText => {
                let mut frames = Vec::new();
                for group in body.chunks(4) {
                    STANDARD.decode_vec(group, &mut frames).ok()?;
                }
                frames.truncate(end_at(&frames, WEB_END)?);
                Some(Cow::Owned(frames))
            }
            Variant::Connect if streams => Some(Cow::Borrowed(&body[..end_at(body, CONNECT_END)?])),
            Variant::Connect => Some(Cow::Owned(prefixed(body))),
        }
    }
}

/// Returns the offset of the first frame with this flag; the body's length if no frame has it.
/// `None` if an earlier frame is truncated.
fn end_at(body: &[u8], flag: u8) -> Option<usize> {
    let mut rest = body;
    while rest.first().is_some_and(|first| *first != flag) {
        (_, _, rest) = split_frame(rest)?;
    }
    Some(body.len() - rest.len())
}

/// Flag of the frame that ends a call of gRPC-Web.
const WEB_END: u8 = 0x80;

/// Flag of the frame that ends a stream of Connect.
const CONNECT_END: u8 = 2;

/// Content type of a Connect request whose method has a stream.
pub const CONNECT_STREAM: &str = "application/connect+proto";

/// Form of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// Messages with prefixes. A frame with this flag ends the call; 0: no frame does.
    Messages { end_flag: u8, text: bool },
    /// A single message.
    Whole,
    /// The description of an error.
    Error,
}

impl BodyForm {
    /// Returns the form of the responses to requests of this content type.
    pub fn new(variant: Variant, content_type: &str) -> BodyForm {
        match variant {
            Variant::Grpc => BodyForm::Messages { end_flag: 0, text: false },
            Variant::Web => BodyForm::Messages { end_flag: WEB_END, text: false },
            Variant::WebText => BodyForm::Messages { end_flag: WEB_END, text: true },
            Variant::Connect if content_type.starts_with("application/connect+") => {
                BodyForm::Messages { end_flag: CONNECT_END, text: false }
            }
            Variant::Connect => BodyForm::Whole,
        }
    }
}

/// Counts the messages of one response as its pieces arrive, and keeps the end of the call.
#[derive(Clone, Debug)]
pub struct BodyReader {
    form: BodyForm,
    messages: MessageReader,
    /// Base64 characters that do not form a complete group yet.
    group: [u8; 4],
    grouped: usize,
    broken: bool,
    /// The beginning of a whole body.
    whole: Vec<u8>,
    /// Number of bytes of a whole body so far, and its limit.
    received: u64,
    length_max: Option<u64>,
}

impl BodyReader {
    pub fn new(form: BodyForm) -> BodyReader {
        let end_flag = match form {
            BodyForm::Messages { end_flag, .. } => end_flag,
            BodyForm::Whole | BodyForm::Error => 0,
        };
        let messages = MessageReader::with_end(end_flag);
        BodyReader {
            form,
            messages,
            group: [0; 4],
            grouped: 0,
            broken: false,
            whole: Vec::new(),
            received: 0,
            length_max: None,
        }
    }

    /// Reads messages with these limits. The description of an error has none.
    #[must_use]
    pub fn with_limits(self, limits: MessageLimits) -> BodyReader {
        let length_max = limits.length.filter(|_| self.form == BodyForm::Whole);
        BodyReader { messages: self.messages.with_limits(limits), length_max, ..self }
    }

    /// Returns the first limit that was reached.
    pub fn early_end(&self) -> Option<EarlyEnd> {
        let long = self.length_max.is_some_and(|most| self.received > most);
        let long = long.then_some(EarlyEnd::TooLong { length: self.received });
        self.messages.early_end().or(long)
    }

    /// Returns whether a message so far is marked as compressed.
    pub fn is_compressed(&self) -> bool {
        self.messages.is_compressed()
    }

    /// Processes a piece of the body and returns the number of messages that end in it.
    pub fn push(&mut self, piece: &[u8]) -> u64 {
        match self.form {
            BodyForm::Messages { text: false, .. } => self.messages.push(piece),
            BodyForm::Messages { text: true, .. } => self.push_text(piece),
            BodyForm::Whole | BodyForm::Error => {
                let room = END_MAX - self.whole.len();
                self.whole.extend_from_slice(&piece[..piece.len().min(room)]);
                self.received += piece.len() as u64;
                0
            }
        }
    }

    /// Groups of four characters; padding may end each part of the stream.
    fn push_text(&mut self, piece: &[u8]) -> u64 {
        let mut messages = 0;
        for byte in piece {
            self.group[self.grouped] = *byte;
            self.grouped += 1;
            if self.grouped == 4 {
                self.grouped = 0;
                match STANDARD.decode(self.group) {
                    Ok(bytes) => messages += self.messages.push(&bytes),
                    Err(_) => self.broken = true,
                }
            }
        }
        messages
    }

    /// Completes the body. Returns the number of messages that end with it.
    pub fn finish(&self) -> u64 {
        u64::from(self.form == BodyForm::Whole)
    }

    /// Returns the error in the complete body.
    pub fn fault(&self, has_encoding: bool) -> Option<MessageFault> {
        let partial = self.grouped > 0 && self.early_end().is_none();
        let cut = (self.broken || partial).then_some(MessageFault::Cut);
        self.messages.fault(has_encoding).or(cut)
    }

    /// Returns the content of the frame that ends the call, or the beginning of a whole body.
    pub fn take_end(&mut self) -> Vec<u8> {
        match self.form {
            BodyForm::Messages { .. } => self.messages.take_end(),
            BodyForm::Whole | BodyForm::Error => std::mem::take(&mut self.whole),
        }
    }
}

/// Description of an error by Connect, as JSON has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectError {
    pub code: Option<String>,
    pub message: String,
}

/// Returns the status of a Connect call. `error`: described in the body or at the end of the
/// stream; `ended`: the stream has its end frame, or the call is unary.
pub fn connect_status(http_status: u16, error: Option<ConnectError>, ended: bool) -> Status {
    let named = |name: &str| match name {
        "canceled" => Some(Code::Cancelled),
        name => Code::ALL.into_iter().find(|code| code.name().eq_ignore_ascii_case(name)),
    };
    let code = error.as_ref().and_then(|error| named(error.code.as_deref()?));
    if let (Some(code), Some(error)) = (code, error) {
        let message = error.message.chars().take(MESSAGE_MAX).collect();
        return Status { code, number: u32::from(code.number()), message, sent: true };
    }
    if http_status == 200 && ended {
        return Status { code: Code::Ok, number: 0, message: String::new(), sent: true };
    }
    status_of(http_status, b"", b"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flag: u8, content: &[u8]) -> Vec<u8> {
        let mut frame = prefixed(content);
        frame[0] = flag;
        frame
    }

    /// Returns messages, end and error of a body, which may arrive in any pieces.
    fn read(form: BodyForm, body: &[u8]) -> (u64, Vec<u8>, Option<MessageFault>) {
        let one = |step: usize| {
            let mut reader = BodyReader::new(form);
            let count: u64 = body.chunks(step.max(1)).map(|piece| reader.push(piece)).sum();
            (count + reader.finish(), reader.take_end(), reader.fault(false))
        };
        let whole = one(body.len());
        for step in 1..body.len() {
            assert_eq!(one(step), whole, "pieces of {step}");
        }
        whole
    }

    #[test]
    fn the_end_of_a_web_call_is_its_last_frame() {
        let form = BodyForm::new(Variant::Web, "");
        let end = b"grpc-status:5\r\ngrpc-message:gone\r\n";
        let body = [prefixed(b"ab"), prefixed(b""), frame(0x80, end)].concat();
        let (count, found, fault) = read(form, &body);
        assert_eq!((count, &found[..], fault), (2, &end[..], None));
        let status = status_of(200, b"", &found);
        assert_eq!((status.code, &*status.message, status.sent), (Code::NotFound, "gone", true));
        // the stream ended without its end frame
        assert_eq!(read(form, &prefixed(b"ab")), (1, Vec::new(), None));
        assert!(!status_of(200, b"", b"").sent);
        let twice = [frame(0x80, end), frame(0x80, end)].concat();
        assert_eq!(read(form, &twice).2, Some(MessageFault::Flag));
        assert_eq!(read(form, &frame(0x81, end)).2, Some(MessageFault::Flag));
        // four GiB are announced and nothing is allocated for them
        assert_eq!(read(form, &[0x80, 255, 255, 255, 255, 1]).2, Some(MessageFault::Cut));
    }

    #[test]
    fn base64_may_be_padded_in_its_middle() {
        let form = BodyForm::new(Variant::WebText, "");
        let (message, end) = (prefixed(b"ab"), frame(0x80, b"grpc-status: 0\r\n"));
        let split = [STANDARD.encode(&message), STANDARD.encode(&end)].concat();
        let joined = STANDARD.encode([message, end].concat());
        for text in [split, joined] {
            assert_eq!(read(form, text.as_bytes()), (1, b"grpc-status: 0\r\n".to_vec(), None));
            assert!(read(form, &text.as_bytes()[1..]).2.is_some(), "{text}");
            let message = Variant::WebText.response(text.as_bytes(), false);
            assert_eq!(message.as_deref(), Some(&prefixed(b"ab")[..]));
            assert_eq!(Variant::WebText.response(&text.as_bytes()[1..], false), None);
        }
        assert_eq!(Variant::WebText.body(prefixed(b""), false), b"AAAAAAA=");
    }

    #[test]
    fn limits_apply_to_each_form() {
        let read = |form, limits, body: &[u8]| {
            let mut reader = BodyReader::new(form).with_limits(limits);
            let count: u64 = body.chunks(3).map(|piece| reader.push(piece)).sum();
            (count, reader.early_end(), reader.fault(false), reader.take_end())
        };
        let end = b"grpc-status:0\r\n".to_vec();
        let one = MessageLimits { count: Some(1), length: Some(9) };
        let frames = [prefixed(b"ab"), prefixed(b"cd"), frame(0x80, &end)].concat();
        let text = STANDARD.encode(&frames);
        let web = BodyForm::new(Variant::Web, "");
        let enough = (1, Some(EarlyEnd::Enough), None, end.clone());
        assert_eq!(read(web, one, &frames), enough);
        assert_eq!(read(BodyForm::new(Variant::WebText, ""), one, text.as_bytes()), enough);
        // the frame that ends the call is no message
        let all = MessageLimits { count: Some(3), length: Some(2) };
        assert_eq!(read(web, all, &frames), (2, None, None, end));
        let unary = BodyForm::new(Variant::Connect, "application/proto");
        let long = Some(EarlyEnd::TooLong { length: 3 });
        assert_eq!(read(unary, all, b"abc"), (0, long, None, b"abc".to_vec()));
        assert_eq!(read(unary, all, b"ab").1, None);
        assert_eq!(read(BodyForm::Error, all, b"abc").1, None);
    }

    #[test]
    fn a_connect_call_has_its_status_in_http_or_json() {
        let form = BodyForm::new(Variant::Connect, "application/proto");
        assert_eq!(read(form, b"\x0a\x01x"), (1, b"\x0a\x01x".to_vec(), None));
        assert_eq!(read(BodyForm::Error, b"{}"), (0, b"{}".to_vec(), None));
        assert_eq!(Variant::Connect.body(prefixed(b"ab"), false), b"ab");
        let error = |code: &str| {
            Some(ConnectError { code: Some(code.to_owned()), message: "no".to_owned() })
        };
        for (http, code, found, sent) in [
            (404, "not_found", Code::NotFound, true),
            (499, "canceled", Code::Cancelled, true),
            (400, "strange", Code::Internal, false),
        ] {
            let status = connect_status(http, error(code), true);
            assert_eq!((status.code, status.sent), (found, sent), "{code}");
        }
        assert_eq!(connect_status(200, None, true).code, Code::Ok);
        let cut = connect_status(200, None, false);
        assert_eq!((cut.code, cut.sent), (Code::Unknown, false));
        assert_eq!(connect_status(503, None, true).code, Code::Unavailable);
        let stream = BodyForm::new(Variant::Connect, CONNECT_STREAM);
        let whole = Variant::Connect.response(b"ab", false);
        assert_eq!(whole.as_deref(), Some(&prefixed(b"ab")[..]));
        let body = [prefixed(b"a"), frame(2, b"{}")].concat();
        let messages = Variant::Connect.response(&body, true);
        assert_eq!(messages.as_deref(), Some(&prefixed(b"a")[..]));
        assert_eq!(Variant::Connect.response(&body[..4], true), None);
        assert_eq!(read(stream, &body), (1, b"{}".to_vec(), None));
    }
}
