//! k6/ws and k6/websockets: the WebSockets of a user, by their numbers.

use crate::buffer::view;
use crate::call::{HttpReply, SocketRequest, VuAnswer, VuCall, VuRequest};
use crate::context::{Context, PendingCall, SocketState};
use crate::metrics::row;
use crate::request::{HttpCall, failure, flat_headers, upgrade};
use rquickjs::function::Constructor;
use rquickjs::prelude::Func;
use rquickjs::{Array, ArrayBuffer, Ctx, Exception, IntoJs, Object, Result, Value};
use sample::FailureClass;
use std::rc::Rc;
use units::Nanos;
use workload::opcode;

/// Maximum number of WebSockets that a user has open.
const SOCKETS_MAX: usize = 1_000;

/// Status of a successful action.
const OPEN: u16 = 101;
/// Code for a connection that ends without a close frame (RFC 6455 section 7.1.5).
const ABNORMAL: u16 = 1006;

pub(crate) fn install<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let c = context.clone();
    native.set("socketNew", Func::from(move |ctx: Ctx<'js>| new_socket(&ctx, &c)))?;
    let c = context.clone();
    native.set(
        "socketOpen",
        Func::from(move |ctx: Ctx<'js>, socket: u32, made: Object<'js>| {
            let request = open(&ctx, &c, socket, &made)?;
            let reply = exchange(&ctx, &c, socket, request)?;
            opened(&ctx, &c, socket, &reply)
        }),
    )?;
    let c = context.clone();
    native.set(
        "socketBeginOpen",
        Func::from(move |ctx: Ctx<'js>, socket: u32, made: Object<'js>| -> Result<u32> {
            let request = open(&ctx, &c, socket, &made)?;
            Ok(begin(&c, socket, request, true))
        }),
    )?;
    let c = context.clone();
    native.set(
        "socketSend",
        Func::from(move |ctx: Ctx<'js>, socket: u32, data: Value<'js>| -> Result<bool> {
            let (text, payload) = match data.as_string() {
                Some(text) => (true, text.to_string()?.into_bytes()),
                None => (false, bytes_of(&data)),
            };
            c.record_all(&[(row::WS_SENT, 1.0)], &socket_tags(&c, socket));
            act(&ctx, &c, socket, SocketRequest::Send { text, payload })
        }),
    )?;
    let c = context.clone();
    native.set(
        "socketPing",
        Func::from(move |ctx: Ctx<'js>, socket: u32, counted: bool| -> Result<bool> {
            if counted {
                c.record_all(&[(row::WS_SENT, 1.0)], &socket_tags(&c, socket));
            }
            if let Some(state) = c.sockets.borrow_mut().get_mut(&socket) {
                state.pinged = Some(c.now());
            }
            act(&ctx, &c, socket, SocketRequest::Ping)
        }),
    )?;
    install_ends(native, context)
}

/// Installs the functions for listening and closing.
fn install_ends<'js>(native: &Object<'js>, context: &Rc<Context>) -> Result<()> {
    let c = context.clone();
    native.set(
        "socketListen",
        Func::from(move |ctx: Ctx<'js>, socket: u32, ms: f64| {
            let limit = Nanos::from_secs_f64((ms / 1e3).clamp(0.0, 86_400.0)).max(Nanos(1));
            let limit = (ms >= 0.0).then_some(limit);
            let reply = exchange(&ctx, &c, socket, SocketRequest::Listen(limit))?;
            heard(&ctx, &c, socket, &reply)
        }),
    )?;
    let c = context.clone();
    native.set(
        "socketBeginListen",
        Func::from(move |socket: u32| begin(&c, socket, SocketRequest::Listen(None), false)),
    )?;
    let c = context.clone();
    native.set(
        "socketClose",
        Func::from(move |ctx: Ctx<'js>, socket: u32, code: f64| -> Result<()> {
            // the connection may have ended already
            act(&ctx, &c, socket, SocketRequest::Close(close_code(code))).map(|_| ())
        }),
    )?;
    let c = context.clone();
    native.set(
        "socketBeginClose",
        Func::from(move |socket: u32, code: f64| {
            // k6/websockets counts control frames as messages
            c.record_all(&[(row::WS_SENT, 1.0)], &socket_tags(&c, socket));
            begin(&c, socket, SocketRequest::Close(close_code(code)), false)
        }),
    )?;
    let c = context.clone();
    native.set("socketOver", Func::from(move |socket: u32| end(&c, socket)))
}

fn close_code(code: f64) -> u16 {
    if (1000.0..5000.0).contains(&code) { code as u16 } else { 1000 }
}

/// Returns the number for another WebSocket.
fn new_socket(ctx: &Ctx<'_>, context: &Context) -> Result<u32> {
    let mut sockets = context.sockets.borrow_mut();
    if sockets.len() >= SOCKETS_MAX {
        let why = format!("a user has at most {SOCKETS_MAX} WebSockets: close some of them");
        return Err(Exception::throw_message(ctx, &why));
    }
    let number = context.last_socket.get().wrapping_add(1);
    context.last_socket.set(number);
    sockets.insert(number, SocketState::default());
    Ok(number)
}

/// Action of a promise.
#[derive(Debug)]
struct PendingAction {
    socket: u32,
    opens: bool,
}

impl PendingCall for PendingAction {
    fn end<'js>(
        self: Box<Self>,
        response: &Constructor<'js>,
        context: &Context,
        lane: u32,
        reply: HttpReply,
    ) -> Result<Option<(u32, Value<'js>)>> {
        let ctx = response.ctx();
        let result = match self.opens {
            true => opened(ctx, context, self.socket, &reply)?.into_value(),
            false => heard(ctx, context, self.socket, &reply)?.into_js(ctx)?,
        };
        Ok(Some((lane, result)))
    }
}

/// Begins an action of a promise; returns its key.
fn begin(context: &Context, socket: u32, request: SocketRequest, opens: bool) -> u32 {
    let key = context.begin(VuCall::Socket(socket, Box::new(request)));
    context.add_pending(key, Box::new(PendingAction { socket, opens }));
    key
}

fn bytes_of(data: &Value<'_>) -> Vec<u8> {
    ArrayBuffer::from_value(data.clone()).map_or_else(Vec::new, |data| view(&data).to_vec())
}

fn socket_tags(context: &Context, socket: u32) -> Vec<(String, String)> {
    if !context.wants_tags() {
        return Vec::new();
    }
    let url = context.sockets.borrow().get(&socket).map(|it| it.url.clone()).unwrap_or_default();
    let own = [("url", url.as_str()), ("name", url.as_str()), ("status", "101"), ("method", "GET")];
    let own = own.into_iter().filter(|(name, _)| context.wants_system_tag(name));
    context.all_tags(own.map(|(name, value)| (name.to_owned(), value.to_owned())))
}

fn exchange(
    ctx: &Ctx<'_>,
    context: &Context,
    socket: u32,
    request: SocketRequest,
) -> Result<HttpReply> {
    match context.exchange(VuRequest::Socket(socket, Box::new(request))) {
        Some(VuAnswer::Http(reply)) => {
            context.count_bytes(reply.sample.bytes_sent, reply.sample.bytes_received);
            Ok(*reply)
        }
        _ => Err(Exception::throw_message(ctx, "interrupted")),
    }
}

/// Returns whether the WebSocket is still open.
fn act(ctx: &Ctx<'_>, context: &Context, socket: u32, request: SocketRequest) -> Result<bool> {
    Ok(exchange(ctx, context, socket, request)?.sample.class.is_none())
}

/// Returns the request that opens a WebSocket.
fn open<'js>(
    ctx: &Ctx<'js>,
    context: &Context,
    socket: u32,
    made: &Object<'js>,
) -> Result<SocketRequest> {
    let ask = HttpCall::new(made, context)?;
    let wire = upgrade(context, &ask).map_err(|why| Exception::throw_message(ctx, &why))?;
    let state =
        SocketState { url: wire.url.as_str().to_owned(), began: Some(context.now()), pinged: None };
    context.sockets.borrow_mut().insert(socket, state);
    Ok(SocketRequest::Open(Box::new(wire)))
}

/// Returns the result of opening a WebSocket: the server's response, or an error.
fn opened<'js>(
    ctx: &Ctx<'js>,
    context: &Context,
    socket: u32,
    reply: &HttpReply,
) -> Result<Object<'js>> {
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
    let began = context.sockets.borrow().get(&socket).and_then(|state| state.began);
    let connecting = (context.now() - began.unwrap_or(context.now())).as_millis_f64();
    let values = [(row::WS_SESSIONS, 1.0), (row::WS_CONNECTING, connecting)];
    context.record_all(&values, &socket_tags(context, socket));
    answer.set("status", if error.is_empty() { OPEN } else { status })?;
    answer.set("headers", flat_headers(&reply.head))?;
    answer.set("error", error)?;
    Ok(answer)
}

/// Returns opcode and content of a message from the server; `None` if no message arrives in time,
/// or if another action on the WebSocket began.
fn heard<'js>(
    ctx: &Ctx<'js>,
    context: &Context,
    socket: u32,
    reply: &HttpReply,
) -> Result<Option<Array<'js>>> {
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
            count(context, socket, kind);
        }
        // the connection has ended without a close frame
        _ => {
            heard.set(0, opcode::CLOSE)?;
            heard.set(1, ABNORMAL)?;
        }
    }
    Ok(Some(heard))
}

fn count(context: &Context, socket: u32, kind: u8) {
    let now = context.now();
    let value = match kind {
        opcode::TEXT | opcode::BINARY => (row::WS_RECEIVED, 1.0),
        opcode::PONG => {
            let mut sockets = context.sockets.borrow_mut();
            let sent = sockets.get_mut(&socket).and_then(|state| state.pinged.take());
            let Some(sent) = sent else { return };
            (row::WS_PING, (now - sent).as_millis_f64())
        }
        _ => return,
    };
    context.record_all(&[value], &socket_tags(context, socket));
}

/// Records the end of the session on the WebSocket, with its duration.
fn end(context: &Context, socket: u32) {
    let began = context.sockets.borrow().get(&socket).and_then(|state| state.began);
    if let Some(began) = began {
        let took = (context.now() - began).as_millis_f64();
        context.record_all(&[(row::WS_DURATION, took)], &socket_tags(context, socket));
    }
    context.sockets.borrow_mut().remove(&socket);
}
