//! The module k6/net/grpc. Descriptors are read once for all users. A call is a request over HTTP/2
//! whose URL has the scheme `grpc` or `grpcs`.

use crate::call::{HttpReply, VuAnswer, VuCall, VuRequest, WireRequest};
use crate::context::{Context, PendingCall};
use crate::grpc_tls::TlsParameter;
use crate::metrics::row;
use crate::program::Program;
use crate::request::flat_headers;
use ::grpc::reflection::{Inquiry, PATHS, QUESTIONS_MAX};
use ::grpc::{GrpcMethod, Schema, SchemaError};
use protocol::grpc::{Code, PREFIX_BYTES, messages, prefixed, status_of, timeout};
use rquickjs::function::Constructor;
use rquickjs::prelude::Func;
use rquickjs::{Array, Ctx, Exception, Object, Result, Value};
use sample::FailureClass;
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;
use url::Url;

/// Timeout of a call; `invoke` has this default in k6.
const CALL_TIMEOUT: Nanos = Nanos::from_secs(120);
/// Timeout of a stream without one: streams have none in k6.
const STREAM_TIMEOUT: Nanos = Nanos::from_secs(86_400);
/// Maximum size of a message that a script can allow: the engine keeps no longer responses.
const MESSAGE_BYTES_MAX: usize = (16 << 20) - PREFIX_BYTES;

/// Part of the health-check service that clients need (`grpc/health/v1/health.proto`).
const HEALTH: &str = r#"
    syntax = "proto3";
    package grpc.health.v1;
    message HealthCheckRequest { string service = 1; }
    message HealthCheckResponse {
      enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
      ServingStatus status = 1;
    }
    service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); }
"#;

/// gRPC call in progress.
#[derive(Debug)]
struct GrpcCall {
    address: String,
    method: GrpcMethod,
    tags: Vec<String>,
    group: String,
    /// True if the call is a stream.
    streams: bool,
    discards: bool,
    /// Maximum sizes of received and of sent messages.
    receive_max: usize,
    send_max: usize,
    /// Received start of a stream's incomplete message.
    partial: Vec<u8>,
    /// Error that our side detected; it ends a stream.
    fault: Option<(Code, String)>,
    is_canceled: bool,
}

/// Server of the calls, with the header fields to send.
struct Destination {
    address: String,
    secure: bool,
    authority: String,
    metadata: Vec<String>,
    limit: Nanos,
    /// True if the server is notified of the limit: false for a stream without a timeout.
    is_limited: bool,
}

pub(crate) fn install<'js>(
    native: &Object<'js>,
    program: &Arc<Program>,
    context: &Rc<Context>,
) -> Result<()> {
    let p = program.clone();
    native.set(
        "grpcLoad",
        Func::from(move |ctx: Ctx<'js>, paths: Vec<String>, names: Vec<String>, set: bool| {
            load(&p, &paths, &names, set).map_err(|why| Exception::throw_message(&ctx, &why))
        }),
    )?;
    let c = context.clone();
    native.set(
        "grpcCall",
        Func::from(move |ctx: Ctx<'js>, spec: Object<'js>| -> Result<Object<'js>> {
            let (mut call, wire) = prepare(&ctx, &c, &spec)?;
            if call.fault.is_some() {
                return ended(&ctx, &c, &mut call, &HttpReply::default());
            }
            let request = VuRequest::Http(Box::new(wire));
            let Some(VuAnswer::Http(reply)) = c.exchange(request) else {
                return Err(Exception::throw_message(&ctx, "interrupted"));
            };
            ended(&ctx, &c, &mut call, &reply)
        }),
    )?;
    let c = context.clone();
    native.set(
        "grpcBegin",
        Func::from(move |ctx: Ctx<'js>, spec: Object<'js>| begin(&ctx, &c, &spec)),
    )?;
    let c = context.clone();
    native.set(
        "grpcWrite",
        Func::from(move |ctx: Ctx<'js>, key: u32, json: Option<String>| -> Result<()> {
            let written = c.write(key, json.as_deref());
            written.map_err(|why| Exception::throw_message(&ctx, &why))
        }),
    )?;
    connections(native, program, context)
}

/// Installs functions for the servers of a script.
fn connections<'js>(
    native: &Object<'js>,
    program: &Arc<Program>,
    context: &Rc<Context>,
) -> Result<()> {
    let p = program.clone();
    native.set(
        "grpcConnect",
        Func::from(move |ctx: Ctx<'js>, address: String, tls: Option<Object<'js>>| -> Result<()> {
            let given = tls.as_ref().map(tls_parameter).transpose()?;
            // an address that is not valid is reported by the first call
            let Ok(url) = Url::parse(&format!("grpcs://{address}/")) else { return Ok(()) };
            let added = p.grpc_tls.add(url.host_str().unwrap_or_default(), given);
            added.map_err(|why| Exception::throw_message(&ctx, &why))
        }),
    )?;
    let p = program.clone();
    native.set(
        "grpcHealth",
        Func::from(move |ctx: Ctx<'js>| -> Result<usize> {
            let read = |name: &str| (name == "health.proto").then(|| HEALTH.to_owned());
            let make = || Schema::compile("health.proto", &read).map_err(|why| why.0);
            let made =
                p.schema("health", make).map_err(|why| Exception::throw_message(&ctx, &why))?;
            Ok(made.0)
        }),
    )?;
    let c = context.clone();
    native.set(
        "grpcReflect",
        Func::from(move |ctx: Ctx<'js>, spec: Object<'js>| -> Result<Array<'js>> {
            let made = reflect(&ctx, &c, &spec)?;
            let all = Array::new(ctx)?;
            all.set(0, made.0)?;
            all.set(1, made.1)?;
            Ok(all)
        }),
    )
}

/// Reads descriptors: their number in the program, and their methods as JSON.
fn load(
    program: &Program,
    paths: &[String],
    names: &[String],
    set: bool,
) -> std::result::Result<Vec<String>, String> {
    let key = format!("{set} {paths:?} {names:?}");
    let (number, schema) = program.schema(&key, || match set {
        true => {
            let path = names.first().map(String::as_str).unwrap_or_default();
            let bytes = program.open(&program.entry, path);
            let bytes = bytes.map_err(|why| format!("couldn't open protoset: {why}"))?;
            Schema::from_set(&bytes).map_err(|why| format!("{path}: {why}"))
        }
        false => compile(program, paths, names),
    })?;
    Ok(vec![number.to_string(), described(&schema)])
}

fn compile(
    program: &Program,
    paths: &[String],
    names: &[String],
) -> std::result::Result<Schema, String> {
    let bare = |text: &str| text.strip_prefix("file://").unwrap_or(text).to_owned();
    let folders: Vec<String> = match paths {
        [] => vec![".".to_owned()],
        paths => paths.iter().map(|path| bare(path)).collect(),
    };
    let compile_one = |name: &String| {
        let name = bare(name);
        // the compiler knows files by paths below a folder
        let outside = name.starts_with('/') || name.split('/').any(|part| part == "..");
        let (inner, file) = name.rsplit_once('/').filter(|_| outside).unwrap_or(("", &name));
        let own = folders.iter().filter(|_| outside).map(|folder| match inner.starts_with('/') {
            true => inner.to_owned(),
            false => format!("{folder}/{inner}"),
        });
        let places: Vec<String> = own.chain(folders.iter().cloned()).collect();
        let read = |name: &str| {
            let at = |folder: &String| program.open(&program.entry, &format!("{folder}/{name}"));
            let found = places.iter().find_map(|folder| at(folder).ok());
            found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        Schema::compile(file, &read).map_err(|why| {
            let found = why.0.strip_suffix("; name its folder with --proto-path");
            match found {
                Some(text) => format!("{text}; name its folder in the first argument of load()"),
                None => why.0,
            }
        })
    };
    let all =
        names.iter().map(compile_one).collect::<std::result::Result<Vec<Schema>, String>>()?;
    Schema::merged(all.iter()).map_err(|why| why.0)
}

/// Returns the methods of a schema as JSON.
fn described(schema: &Schema) -> String {
    let all = schema.methods().map(|method| {
        let service = method.service();
        let (package, name) = service.rsplit_once('.').unwrap_or(("", &service));
        serde_json::json!({
            "package": package, "service": name, "fullMethod": method.path(),
            "clientStream": method.is_client_streaming(),
            "serverStream": method.is_server_streaming(),
        })
    });
    serde_json::Value::Array(all.collect()).to_string()
}

fn tls_parameter(given: &Object<'_>) -> Result<TlsParameter> {
    Ok(TlsParameter {
        authorities: given.get("cacerts")?,
        cert: given.get("cert")?,
        key: given.get("key")?,
        password: given.get("password")?,
    })
}

fn destination(spec: &Object<'_>) -> Result<Destination> {
    let millis: f64 = spec.get("timeout")?;
    let streams = spec.get::<_, Option<bool>>("stream")?.unwrap_or(false);
    let limit = match millis > 0.0 {
        true => Nanos::from_secs_f64((millis / 1e3).min(86_400.0)).max(Nanos(1)),
        false if streams => STREAM_TIMEOUT,
        false => CALL_TIMEOUT,
    };
    Ok(Destination {
        address: spec.get("address")?,
        secure: spec.get("secure")?,
        authority: spec.get("authority")?,
        metadata: spec.get("metadata")?,
        limit,
        is_limited: millis > 0.0 || !streams,
    })
}

/// Returns the request of a call; its body contains messages with length prefixes.
fn wire(
    context: &Context,
    to: &Destination,
    path: &str,
    body: Vec<u8>,
) -> std::result::Result<WireRequest, String> {
    let (scheme, port) = if to.secure { ("grpcs", 443) } else { ("grpc", 80) };
    let url = Url::parse(&format!("{scheme}://{}{path}", to.address));
    let mut url = url.map_err(|why| {
        format!("\"{}\" is not an address ({why}); write it like host:port", to.address)
    })?;
    if url.host_str().is_none_or(str::is_empty) || url.path() != path {
        return Err(format!("\"{}\" is not an address; write it like host:port", to.address));
    }
    if url.port().is_none() && url.set_port(Some(port)).is_err() {
        return Err(format!("\"{}\" has no port; write it like host:port", to.address));
    }
    let authority = if to.authority.is_empty() { &to.address } else { &to.authority };
    if !authority.bytes().all(|byte| byte.is_ascii_graphic()) {
        let text = authority.escape_debug();
        return Err(format!("invalid authority \"{text}\"; write it like host:port"));
    }
    let mut headers = vec![("Host".to_owned(), authority.clone())];
    let agent = context.program.options().map(|it| it.user_agent.clone()).unwrap_or_default();
    headers.push(("user-agent".to_owned(), agent));
    let variant = protocol::grpc::Variant::Grpc;
    let own = variant.fields().iter();
    headers.extend(own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    if to.is_limited {
        headers.push(("grpc-timeout".to_owned(), timeout(to.limit)));
    }
    for pair in to.metadata.chunks_exact(2) {
        let (name, value) = (pair[0].to_ascii_lowercase(), pair[1].trim());
        let clean = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !clean || name.is_empty() || value.bytes().any(|byte| !(b' '..127).contains(&byte)) {
            return Err(format!("invalid metadata \"{}\": \"{}\"", pair[0], pair[1]));
        }
        headers.push((name, value.to_owned()));
    }
    Ok(WireRequest {
        method: "POST".into(),
        url: url.into(),
        headers: headers.into(),
        body,
        name: String::new(),
        expected: None,
        timeout: Some(to.limit),
        keeps_open: false,
    })
}

/// Returns a message of the method, with its length prefix.
fn encoded(method: &GrpcMethod, json: &str) -> std::result::Result<Vec<u8>, String> {
    let message = method.message(json.as_bytes());
    message
        .map(|message| prefixed(&message))
        .map_err(|why| format!("unable to serialise request object to protocol buffer: {why}"))
}

/// Builds the call of `spec`, which contains the messages as JSON.
fn prepare(ctx: &Ctx<'_>, context: &Context, spec: &Object<'_>) -> Result<(GrpcCall, WireRequest)> {
    let refused = |why: &str| Exception::throw_message(ctx, why);
    let to = destination(spec)?;
    let (number, path): (usize, String) = (spec.get("schema")?, spec.get("method")?);
    let schema = context.program.schema_at(number).ok_or_else(|| refused("unknown descriptors"))?;
    let method = schema.method(&path).map_err(|why| refused(&why.0))?;
    let mut body = Vec::new();
    let sent: Vec<String> = spec.get("messages")?;
    for json in &sent {
        body.extend(encoded(&method, json).map_err(|why| refused(&why))?);
    }
    let size = body.len().saturating_sub(PREFIX_BYTES);
    let size_max = |name: &str| -> Result<usize> {
        let given = spec.get::<_, Option<f64>>(name)?;
        // a whole number, checked by the script's side
        Ok(given.map_or(MESSAGE_BYTES_MAX, |bytes| bytes as usize))
    };
    let streams: bool = spec.get("stream")?;
    let wire = wire(context, &to, &path, body).map_err(|why| refused(&why))?;
    let wire = WireRequest { keeps_open: streams, ..wire };
    let mut call = GrpcCall {
        address: to.address,
        method,
        tags: spec.get("tags")?,
        group: context.group.borrow().clone(),
        streams,
        discards: spec.get("discards")?,
        receive_max: size_max("maxReceiveSize")?.min(MESSAGE_BYTES_MAX),
        send_max: size_max("maxSendSize")?,
        partial: Vec::new(),
        fault: None,
        is_canceled: false,
    };
    call.fault = call.fault_of_sent(size);
    if streams {
        context.record_all(&[(row::GRPC_STREAMS, 1.0)], &call.all_tags(context, None));
    }
    Ok((call, wire))
}

/// Begins a call of a promise, or a stream; returns its key.
fn begin(ctx: &Ctx<'_>, context: &Context, spec: &Object<'_>) -> Result<u32> {
    let (call, wire) = prepare(ctx, context, spec)?;
    let key = context.new_lane();
    match call.fault {
        Some(_) => context.keep_early_reply(key, HttpReply::default()),
        None => context.push_call(key, VuCall::Http(Box::new(wire))),
    }
    context.add_pending(key, Box::new(call));
    Ok(key)
}

impl GrpcCall {
    fn fault_of_sent(&self, size: usize) -> Option<(Code, String)> {
        let most = self.send_max;
        let text = format!("trying to send message larger than max ({size} vs. {most})");
        (size > most).then_some((Code::ResourceExhausted, text))
    }

    /// Returns the error for a received message that is compressed or too large.
    fn fault_of_received(&self, flag: u8, size: usize) -> Option<(Code, String)> {
        if flag != 0 {
            let text = "a message is compressed, which was not offered".to_owned();
            return Some((Code::Internal, text));
        }
        let most = self.receive_max;
        let text = format!("received message larger than max ({size} vs. {most})");
        (size > most).then_some((Code::ResourceExhausted, text))
    }

    /// Abandons the stream, once; its end reports the fault.
    fn cancel(&mut self, context: &Context, lane: u32) {
        if !std::mem::replace(&mut self.is_canceled, true) {
            context.push_call(lane, VuCall::Cancel);
        }
    }

    /// Adds bytes of a stream; returns the messages that they complete, as JSON. Nothing is read
    /// after a fault.
    fn take_messages(&mut self, context: &Context, bytes: &[u8]) -> Vec<String> {
        if self.fault.is_some() {
            return Vec::new();
        }
        self.partial.extend_from_slice(bytes);
        let (mut texts, mut at, mut count) = (Vec::new(), 0, 0_u32);
        while let Some([flag, length @ ..]) = self.partial[at..].first_chunk::<PREFIX_BYTES>() {
            let (start, length) = (at + PREFIX_BYTES, u32::from_be_bytes(*length) as usize);
            if let Some(fault) = self.fault_of_received(*flag, length) {
                self.fault = Some(fault);
                break;
            }
            let Some(message) = self.partial[start..].get(..length) else { break };
            if !self.discards {
                match self.method.whole_json(message) {
                    Ok(text) => texts.push(text),
                    Err(why) => {
                        self.fault = Some((Code::Internal, unreadable(&why)));
                        break;
                    }
                }
            }
            (at, count) = (start + length, count + 1);
        }
        match self.fault {
            Some(_) => self.partial = Vec::new(),
            None => drop(self.partial.drain(..at)),
        }
        if count > 0 {
            let tags = self.all_tags(context, None);
            context.record_all(&[(row::GRPC_STREAM_RECEIVED, f64::from(count))], &tags);
        }
        texts
    }

    fn all_tags(&self, context: &Context, code: Option<u32>) -> Vec<(String, String)> {
        if !context.wants_tags() {
            return Vec::new();
        }
        let path = self.method.path();
        let named = self.tags.chunks_exact(2).any(|pair| pair[0] == "name");
        let mut system = vec![
            ("url", format!("{}{path}", self.address)),
            ("service", self.method.service()),
            ("method", self.method.name().to_owned()),
        ];
        if !named {
            system.push(("name", path));
        }
        if let Some(code) = code {
            system.push(("status", code.to_string()));
        }
        let system = system.into_iter().filter(|(name, _)| context.wants_system_tag(name));
        let system = system.map(|(name, value)| (name.to_owned(), value));
        let own = self.tags.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let group = context.group.replace(self.group.clone());
        let all = context.all_tags(system.chain(own));
        *context.group.borrow_mut() = group;
        all
    }
}

impl PendingCall for GrpcCall {
    /// Returns the messages of a stream that a part of the response completes.
    fn part<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        context: &Context,
        lane: u32,
        reply: &HttpReply,
    ) -> Result<Option<Value<'js>>> {
        let texts = self.take_messages(context, &reply.body);
        if self.fault.is_some() {
            self.cancel(context, lane);
        }
        if texts.is_empty() {
            return Ok(None);
        }
        let made = Object::new(ctx.clone())?;
        made.set("messages", texts)?;
        Ok(Some(made.into_value()))
    }

    fn write(
        &mut self,
        context: &Context,
        lane: u32,
        json: Option<&str>,
    ) -> std::result::Result<(), String> {
        if self.fault.is_some() {
            return Ok(());
        }
        let bytes = json.map(|json| encoded(&self.method, json)).transpose()?;
        let ends = bytes.is_none();
        let bytes = bytes.unwrap_or_default();
        if let Some(fault) = self.fault_of_sent(bytes.len().saturating_sub(PREFIX_BYTES)) {
            self.fault = Some(fault);
            self.cancel(context, lane);
            return Ok(());
        }
        if !context.extend(lane, bytes, ends) {
            let why = "too many messages wait to be sent; let the script wait for replies";
            return Err(why.to_owned());
        }
        if !ends {
            context.record_all(&[(row::GRPC_STREAM_SENT, 1.0)], &self.all_tags(context, None));
        }
        Ok(())
    }

    fn end<'js>(
        mut self: Box<Self>,
        response: &Constructor<'js>,
        context: &Context,
        lane: u32,
        reply: HttpReply,
    ) -> Result<Option<(u32, Value<'js>)>> {
        let result = ended(response.ctx(), context, &mut self, &reply)?;
        Ok(Some((lane, result.into_value())))
    }
}

fn unreadable(why: &SchemaError) -> String {
    format!("failed to unmarshal the received message: {}", why.0)
}

/// Returns the status of a call: the numeric code and the message.
fn outcome(reply: &HttpReply) -> (u32, String) {
    let (head, trailers) = parts(&reply.head);
    if head.is_empty() {
        let (code, text) = match reply.sample.class {
            Some(FailureClass::ClientTimeout | FailureClass::FirstByteTimeout) => {
                (Code::DeadlineExceeded, "context deadline exceeded".to_owned())
            }
            Some(FailureClass::StreamReset) => {
                (Code::Internal, "stream terminated by RST_STREAM".to_owned())
            }
            Some(class @ FailureClass::SendQueue) => {
                (Code::ResourceExhausted, class.explain().to_owned())
            }
            Some(class) => (Code::Unavailable, format!("connection error: {}", class.explain())),
            None => (Code::Unavailable, "connection error".to_owned()),
        };
        return (u32::from(code.number()), text);
    }
    let status = status_of(reply.sample.status, head, trailers);
    (status.number, status.message)
}

/// Splits a reply into head and trailers.
fn parts(head: &[u8]) -> (&[u8], &[u8]) {
    let end = head.windows(4).position(|at| at == b"\r\n\r\n").map_or(head.len(), |at| at + 4);
    head.split_at(end)
}

/// Returns the status of a stream and its last messages.
fn end_stream(
    context: &Context,
    call: &mut GrpcCall,
    reply: &HttpReply,
) -> (u32, String, Vec<String>) {
    let texts = call.take_messages(context, &reply.body);
    let (number, text) = outcome(reply);
    if reply.is_cut {
        let text = "more than 16 MiB of messages waited for the script".to_owned();
        call.fault.get_or_insert((Code::ResourceExhausted, text));
    } else if number == 0 && !call.partial.is_empty() {
        call.fault = Some((Code::Internal, "the last message is cut off".to_owned()));
    }
    match call.fault.take() {
        Some((code, text)) => (u32::from(code.number()), text, texts),
        None => (number, text, texts),
    }
}

/// Returns the status of a call with one response, and its message.
fn end_call(call: &mut GrpcCall, reply: &HttpReply) -> (u32, String, Vec<String>) {
    let (mut number, mut text) = outcome(reply);
    if let Some([flag, length @ ..]) = reply.body.first_chunk::<PREFIX_BYTES>() {
        let fault = call.fault_of_received(*flag, u32::from_be_bytes(*length) as usize);
        call.fault = call.fault.take().or(fault);
    }
    let mut received = messages(&reply.body).unwrap_or_default();
    if let Some((code, why)) = call.fault.take() {
        (number, text) = (u32::from(code.number()), why);
        received.clear();
    } else if number == 0 && received.len() != 1 {
        number = u32::from(Code::Internal.number());
        text = format!("the response has {} messages instead of one", received.len());
        received.clear();
    }
    if call.discards {
        return (number, text, Vec::new());
    }
    // as in k6 an error has a message, which is empty
    let message = received.first().map_or(&[][..], |message| message);
    match call.method.whole_json(message) {
        Ok(json) => (number, text, vec![json]),
        Err(why) => (u32::from(Code::Internal.number()), unreadable(&why), Vec::new()),
    }
}

/// Counts a finished call; returns its result for the script.
fn ended<'js>(
    ctx: &Ctx<'js>,
    context: &Context,
    call: &mut GrpcCall,
    reply: &HttpReply,
) -> Result<Object<'js>> {
    let sample = &reply.sample;
    context.count_bytes(sample.bytes_sent, sample.bytes_received);
    let (number, text, texts) = match call.streams {
        true => end_stream(context, call, reply),
        false => end_call(call, reply),
    };
    let from = if sample.sent.is_zero() { sample.intended } else { sample.sent };
    let took = (sample.done - from).as_millis_f64();
    context.record_all(&[(row::GRPC_DURATION, took)], &call.all_tags(context, Some(number)));
    let (head, trailers) = parts(&reply.head);
    let made = Object::new(ctx.clone())?;
    made.set("status", number)?;
    made.set("text", text)?;
    made.set("messages", texts)?;
    made.set("headers", lowered(head))?;
    made.set("trailers", lowered(&[b"HTTP/2 200\r\n", trailers, b"\r\n"].concat()))?;
    Ok(made)
}

/// Returns names in lower case and values, in turn, without those of the status.
fn lowered(head: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for pair in flat_headers(head).chunks_exact(2) {
        let name = pair[0].to_ascii_lowercase();
        if !matches!(name.as_str(), "grpc-status" | "grpc-message" | "grpc-status-details-bin") {
            all.extend([name, pair[1].clone()]);
        }
    }
    all
}

/// Requests descriptors of all services from the server.
fn reflect(ctx: &Ctx<'_>, context: &Context, spec: &Object<'_>) -> Result<(usize, String)> {
    let refused = |why: &str| Exception::throw_message(ctx, why);
    let to = destination(spec)?;
    let key = format!("reflection {} {} {:?}", to.secure, to.address, to.metadata);
    let known = context.program.schema_known(&key);
    if let Some((number, schema)) = known {
        return Ok((number, described(&schema)));
    }
    let mut unserved = String::new();
    for path in PATHS {
        match reflect_at(context, &to, path) {
            Ok(schema) => {
                let (number, schema) =
                    context.program.schema(&key, || Ok(schema)).map_err(|why| refused(&why))?;
                return Ok((number, described(&schema)));
            }
            Err(ReflectionRefusal::Unimplemented(why)) => unserved = why,
            Err(ReflectionRefusal::Final(why)) => return Err(refused(&why)),
        }
    }
    Err(refused(&unserved))
}

/// Reason why a server sends no descriptors.
enum ReflectionRefusal {
    /// The server does not have this version of the service.
    Unimplemented(String),
    Final(String),
}

impl From<String> for ReflectionRefusal {
    fn from(why: String) -> ReflectionRefusal {
        ReflectionRefusal::Final(why)
    }
}

fn reflect_at(
    context: &Context,
    to: &Destination,
    path: &str,
) -> std::result::Result<Schema, ReflectionRefusal> {
    let ask = |body: Vec<u8>| -> std::result::Result<Vec<u8>, ReflectionRefusal> {
        let wire = wire(context, to, path, body)?;
        let Some(VuAnswer::Http(reply)) = context.exchange(VuRequest::Http(Box::new(wire))) else {
            return Err("interrupted".to_owned().into());
        };
        context.count_bytes(reply.sample.bytes_sent, reply.sample.bytes_received);
        let (number, text) = outcome(&reply);
        let code = Code::from_number(number);
        let why = format!("rpc error: code = {} desc = {text}", code.name());
        match code {
            Code::Ok => Ok(reply.body),
            Code::Unimplemented => Err(ReflectionRefusal::Unimplemented(why)),
            _ => Err(ReflectionRefusal::Final(why)),
        }
    };
    let services = ::grpc::reflection::services(&ask(::grpc::reflection::list_request())?);
    let mut all = Vec::new();
    for service in services.map_err(|why| why.0)? {
        let mut inquiry = Inquiry::for_service(&format!("/{service}/any")).map_err(|why| why.0)?;
        for _ in 0..QUESTIONS_MAX {
            let Some(question) = inquiry.question() else { break };
            inquiry.process(&ask(question)?).map_err(|why| why.0)?;
        }
        all.push(inquiry.schema().map_err(|why| why.0)?);
    }
    Schema::merged(all.iter()).map_err(|why| why.0.into())
}
