//! k6/ws and k6/websockets: the user's WebSocket. A user has one at a time.

use crate::context::Context;
use crate::http::{HttpCall, HttpReply, WireRequest, failure, flat_headers, upgrade};
use crate::metrics::row;
use crate::native::view;
use crate::vu::{VuAnswer, VuRequest};
use rquickjs::prelude::Func;
use rquickjs::{Array, ArrayBuffer, Ctx, Exception, Object, Result, Value};
use sample::FailureClass;
use std::rc::Rc;
use units::Nanos;
use workload::opcode;

/// An action on the user's WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketRequest {
    Open(WireRequest),
    Send {
        text: bool,
        payload: Vec<u8>,
    },
    Ping,
    /// Waits for the next frame of the server; `None`: for the timeout of calls.
    Listen(Option<Nanos>),
    Close(u16),
}

/// Status of an action that succeeded.
const OPEN: u16 = 101;
/// Code for a connection that ends without a close frame (RFC 6455 section 7.1.5).
const ABNORMAL: u16 = 1006;

pub(crate) fn install<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let c = context.clone();
    native.set(
        "socketOpen",
        Func::from(move |ctx: Ctx<'js>, made: Object<'js>| open(&ctx, &c, &made)),
    )?;
    let c = context.clone();
    native.set(
        "socketSend",
        Func::from(move |ctx: Ctx<'js>, data: Value<'js>| -> Result<bool> {
            let (text, payload) = match data.as_string() {
                Some(text) => (true, text.to_string()?.into_bytes()),
                None => (false, bytes_of(&data)),
            };
            c.record_all(&[(row::WS_SENT, 1.0)], &socket_tags(&c));
            act(&ctx, &c, SocketRequest::Send { text, payload })
        }),
    )?;
    let c = context.clone();
    native.set(
        "socketPing",
        Func::from(move |ctx: Ctx<'js>| -> Result<bool> {
            c.pinged.set(Some(c.now()));
            act(&ctx, &c, SocketRequest::Ping)
        }),
    )?;
    let c = context.clone();
    native.set("socketListen", Func::from(move |ctx: Ctx<'js>, ms: f64| listen(&ctx, &c, ms)))?;
    let c = context.clone();
    native.set(
        "socketClose",
        Func::from(move |ctx: Ctx<'js>, code: f64| -> Result<()> {
            let code = if (1000.0..5000.0).contains(&code) { code as u16 } else { 1000 };
            // the connection may have ended already
            act(&ctx, &c, SocketRequest::Close(code)).map(|_| ())
        }),
    )?;
    let c = context.clone();
    native.set("socketOver", Func::from(move || end(&c)))
}

fn bytes_of(data: &Value<'_>) -> Vec<u8> {
    ArrayBuffer::from_value(data.clone()).map_or_else(Vec::new, |data| view(&data).to_vec())
}

fn socket_tags(context: &Context) -> Vec<(String, String)> {
    if !context.wants_tags() {
        return Vec::new();
    }
    let url = context.socket_url.borrow().clone();
    let own = [("url", url.as_str()), ("name", url.as_str()), ("status", "101"), ("method", "GET")];
    let own = own.into_iter().filter(|(name, _)| context.wants_system_tag(name));
    context.all_tags(own.map(|(name, value)| (name.to_owned(), value.to_owned())))
}

fn exchange(ctx: &Ctx<'_>, context: &Context, request: SocketRequest) -> Result<HttpReply> {
    match context.exchange(VuRequest::Socket(Box::new(request))) {
        Some(VuAnswer::Http(reply)) => {
            context.count_bytes(reply.sample.bytes_sent, reply.sample.bytes_received);
            Ok(*reply)
        }
        _ => Err(Exception::throw_message(ctx, "interrupted")),
    }
}

/// Returns whether the WebSocket is still open.
fn act(ctx: &Ctx<'_>, context: &Context, request: SocketRequest) -> Result<bool> {
    Ok(exchange(ctx, context, request)?.sample.class.is_none())
}

/// Opens a WebSocket: the server's response, or an error.
fn open<'js>(ctx: &Ctx<'js>, context: &Context, made: &Object<'js>) -> Result<Object<'js>> {
    let ask = HttpCall::of(ctx.clone(), made, context)?;
    let wire = upgrade(context, &ask).map_err(|why| Exception::throw_message(ctx, &why))?;
    wire.url.as_str().clone_into(&mut context.socket_url.borrow_mut());
    let began = context.now();
    let reply = exchange(ctx, context, SocketRequest::Open(wire))?;
    let status = if reply.head.is_empty() { 0 } else { reply.sample.status };
    let answer = Object::new(ctx.clone())?;
    let mut error = String::new();
    if let Some(class) = reply.sample.class {
        error = match class {
            FailureClass::UpgradeRefused | FailureClass::UpgradeInvalid => {
                "websocket: bad handshake".to_owned()
            }
            _ => failure(&reply.sample, 0).0,
        };
    }
    // failed ones count too, as in k6
    context.socket_began.set(Some(began));
    let connecting = (context.now() - began).as_millis_f64();
    let values = [(row::WS_SESSIONS, 1.0), (row::WS_CONNECTING, connecting)];
    context.record_all(&values, &socket_tags(context));
    answer.set("status", if error.is_empty() { OPEN } else { status })?;
    answer.set("headers", flat_headers(&reply.head))?;
    answer.set("error", error)?;
    Ok(answer)
}

/// Waits for a frame of the server; returns its opcode and its content. `None`: no frame arrived in
/// time; a time of -1 means the limit of calls.
fn listen<'js>(ctx: &Ctx<'js>, context: &Context, ms: f64) -> Result<Option<Array<'js>>> {
    let limit = (ms >= 0.0).then(|| Nanos::from_secs_f64((ms / 1e3).min(86_400.0)).max(Nanos(1)));
    let reply = exchange(ctx, context, SocketRequest::Listen(limit))?;
    let heard = Array::new(ctx.clone())?;
    match (reply.sample.class, reply.body.split_first()) {
        (Some(FailureClass::ClientTimeout), _) => return Ok(None),
        (None, Some((&kind, payload))) => {
            heard.set(0, kind)?;
            match kind {
                opcode::TEXT => heard.set(1, String::from_utf8_lossy(payload).as_ref())?,
                opcode::BINARY => heard.set(1, ArrayBuffer::new_copy(ctx.clone(), payload)?)?,
                opcode::CLOSE => {
                    let code = payload.try_into().map_or(ABNORMAL, u16::from_be_bytes);
                    heard.set(1, code)?;
                }
                _ => {}
            }
            count(context, kind);
        }
        // the connection has ended without a close frame
        _ => {
            heard.set(0, opcode::CLOSE)?;
            heard.set(1, ABNORMAL)?;
        }
    }
    Ok(Some(heard))
}

fn count(context: &Context, kind: u8) {
    match kind {
        opcode::TEXT | opcode::BINARY => {
            context.record_all(&[(row::WS_RECEIVED, 1.0)], &socket_tags(context));
        }
        opcode::PONG => {
            if let Some(sent) = context.pinged.take() {
                let took = (context.now() - sent).as_millis_f64();
                context.record_all(&[(row::WS_PING, took)], &socket_tags(context));
            }
        }
        _ => {}
    }
}

/// Ends the session on the WebSocket.
fn end(context: &Context) {
    if let Some(began) = context.socket_began.take() {
        let took = (context.now() - began).as_millis_f64();
        context.record_all(&[(row::WS_DURATION, took)], &socket_tags(context));
    }
    context.pinged.set(None);
}
