//! Forms of a call on the wire: gRPC, gRPC-Web (binary and text) and Connect.

use std::borrow::Cow;

use hyper::body::{Bytes, Frame};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use protocol::grpc::{CONNECT_STREAM, Code, Variant, prefixed};
use serde_json::json;

use super::body::{PageBody, Upload};
use super::grpc::{GrpcReplies, trailers};
use crate::head::SERVER;

/// Form of a call and of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallForm {
    variant: Variant,
    /// Messages have prefixes: every form but unary calls of Connect.
    streams: bool,
}

/// Media types of requests, most specific first.
const KINDS: [(&str, CallForm); 5] = [
    ("application/grpc-web-text", CallForm { variant: Variant::WebText, streams: true }),
    ("application/grpc-web", CallForm { variant: Variant::Web, streams: true }),
    ("application/grpc", CallForm::GRPC),
    (CONNECT_STREAM, CallForm { variant: Variant::Connect, streams: true }),
    ("application/proto", CallForm { variant: Variant::Connect, streams: false }),
];

/// Flags of the frame that ends a call of gRPC-Web and a stream of Connect.
const WEB_END: u8 = 0x80;
const CONNECT_END: u8 = 2;

/// Returns whether a POST of HTTP/1.1 with this media type is a call. `is_connect`: it names a
/// version of Connect.
pub(crate) fn is_http1_call(kind: &str, is_connect: bool) -> bool {
    CallForm::from_media_type(kind, is_connect).is_some_and(|form| form.variant != Variant::Grpc)
}

impl CallForm {
    pub(super) const GRPC: CallForm = CallForm { variant: Variant::Grpc, streams: true };

    /// Returns the form of a request; `None` if it is not a call.
    pub(super) fn new(request: &Request<Upload>) -> Option<CallForm> {
        let kind = request.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
        let is_connect = request.headers().contains_key("connect-protocol-version");
        let form = CallForm::from_media_type(kind, is_connect)?;
        let is_call = form.variant != Variant::Grpc || request.version() >= Version::HTTP_2;
        (is_call && request.method() == Method::POST).then_some(form)
    }

    /// Returns the form of a media type. `is_connect`: the request names a version of Connect.
    fn from_media_type(kind: &str, is_connect: bool) -> Option<CallForm> {
        let (_, form) = KINDS.iter().find(|(known, _)| kind.starts_with(known))?;
        (form.variant != Variant::Connect || is_connect).then_some(*form)
    }

    /// Returns whether the request has messages with prefixes as its body.
    pub(super) fn has_prefixes(self) -> bool {
        self.streams && self.variant != Variant::WebText
    }

    /// Returns the messages of a request with their prefixes; `None` if it is not base64.
    pub(super) fn request(self, body: &[u8]) -> Option<Cow<'_, [u8]>> {
        match self.variant {
            Variant::Grpc | Variant::Web => Some(Cow::Borrowed(body)),
            Variant::Connect if self.streams => Some(Cow::Borrowed(body)),
            Variant::Connect | Variant::WebText => self.variant.response(body, self.streams),
        }
    }

    /// Returns a message of the response, from the message with its prefix.
    pub(super) fn message(self, message: Bytes) -> Bytes {
        match self.variant {
            Variant::Grpc | Variant::Web => message,
            Variant::WebText | Variant::Connect => {
                self.variant.body(message.into(), self.streams).into()
            }
        }
    }

    /// Returns the end of a response; `None` if the head has the status.
    pub(super) fn end(self, code: u32, message: &str) -> Option<Frame<Bytes>> {
        let fields = trailers(code, message);
        Some(match self.variant {
            Variant::Grpc => Frame::trailers(fields),
            Variant::Web | Variant::WebText => {
                let mut text = Vec::new();
                for (name, value) in &fields {
                    let parts = [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"];
                    text.extend(parts.concat());
                }
                Frame::data(self.variant.body(flagged(WEB_END, &text), true).into())
            }
            Variant::Connect if self.streams => {
                let end = match code {
                    0 => json!({}),
                    _ => json!({ "error": described(code, message) }),
                };
                Frame::data(flagged(CONNECT_END, end.to_string().as_bytes()).into())
            }
            Variant::Connect => return None,
        })
    }

    /// Returns the response with these replies. A failed unary call of Connect has its status in the
    /// head, so that it is known only when it is due.
    pub(super) async fn reply(self, replies: GrpcReplies) -> Response<PageBody> {
        if !self.streams
            && let Some((code, message, at)) = replies.failure()
        {
            tokio::time::sleep_until(at).await;
            return connect_error(code, message);
        }
        form_response(self, PageBody::Replies(replies.with_form(self)))
    }

    /// Returns a response without messages: of one list of fields (Trailers-Only) in gRPC and
    /// gRPC-Web.
    pub(super) fn refused(self, code: Code, message: &str) -> Response<PageBody> {
        let number = u32::from(code.number());
        if !self.streams {
            return connect_error(number, message);
        }
        if self.variant == Variant::Connect {
            let end = self.end(number, message).and_then(|frame| frame.into_data().ok());
            return form_response(self, PageBody::Whole(end.unwrap_or_default()));
        }
        let mut response = form_response(self, PageBody::Whole(Bytes::new()));
        response.headers_mut().extend(trailers(number, message));
        response
    }

    fn content_type(self) -> &'static str {
        match self.variant {
            Variant::Connect if self.streams => CONNECT_STREAM,
            variant => variant.fields()[0].1,
        }
    }
}

fn flagged(flag: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = prefixed(content);
    frame[0] = flag;
    frame
}

/// Returns the description of an error in Connect.
fn described(code: u32, message: &str) -> serde_json::Value {
    let known = Code::ALL.iter().find(|known| u32::from(known.number()) == code);
    let name = match known {
        Some(Code::Cancelled) => "canceled".to_owned(),
        known => known.map_or("unknown", |known| known.name()).to_ascii_lowercase(),
    };
    json!({ "code": name, "message": message })
}

fn connect_error(code: u32, message: &str) -> Response<PageBody> {
    let text = described(code, message).to_string();
    let form = CallForm { variant: Variant::Connect, streams: false };
    let mut response = form_response(form, PageBody::Whole(text.into()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    // the table of the Connect protocol
    *response.status_mut() = match code {
        1 => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        3 | 9 | 11 => StatusCode::BAD_REQUEST,
        4 => StatusCode::GATEWAY_TIMEOUT,
        5 => StatusCode::NOT_FOUND,
        6 | 10 => StatusCode::CONFLICT,
        7 => StatusCode::FORBIDDEN,
        8 => StatusCode::TOO_MANY_REQUESTS,
        12 => StatusCode::NOT_IMPLEMENTED,
        14 => StatusCode::SERVICE_UNAVAILABLE,
        16 => StatusCode::UNAUTHORIZED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    response
}

pub(super) fn form_response(form: CallForm, body: PageBody) -> Response<PageBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static(SERVER));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
    response
}
