//! Responses of k6/http as objects of the script.
//!
//! A script reads few of a response's values, and seldom its headers and cookies or the request
//! that was sent. They stay in an [`UnreadResponse`] until the script asks for them.

use crate::call::Headers;
use crate::request::{Finished, HttpCall, INVALID_URL, flat_headers};
use protocol::http1::fields;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Args, Constructor};
use rquickjs::prelude::Func;
use rquickjs::{ArrayBuffer, Class, Ctx, JsLifetime, Object, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;
use url::Url;

/// Number of arguments of the script's class for responses.
const RESPONSE_ARGUMENTS: usize = 16;

/// Request with its response, for values that a script reads on demand.
#[derive(Debug)]
pub(crate) struct UnreadResponse {
    /// Head of the response.
    head: Vec<u8>,
    /// Fields of the last request.
    sent: Arc<Headers>,
    method: Cow<'static, str>,
    url: Arc<Url>,
    /// Method and URL before the first redirect.
    first: Option<[String; 2]>,
    /// Body that the script passed as text.
    body: Vec<u8>,
}

impl UnreadResponse {
    /// Returns method, URL and body of the request that the script made.
    fn request(&self) -> [Cow<'_, str>; 3] {
        let (method, url) = match &self.first {
            Some([method, url]) => (method.as_str(), url.as_str()),
            None => (&*self.method, self.url.as_str()),
        };
        [method.into(), url.into(), String::from_utf8_lossy(&self.body)]
    }

    /// Returns names and values of the fields of the last request, in turn.
    fn sent(&self) -> Vec<&str> {
        let sent = self.sent.iter().filter(|(name, _)| name != "Host");
        sent.flat_map(|(name, value)| [name.as_str(), value.as_str()]).collect()
    }
}

impl<'js> Trace<'js> for UnreadResponse {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: the type has no values of a runtime, and no lifetime.
unsafe impl JsLifetime<'_> for UnreadResponse {
    type Changed<'to> = UnreadResponse;
}

impl<'js> JsClass<'js> for UnreadResponse {
    const NAME: &'static str = "UnreadResponse";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

/// Installs the functions that read the values of an [`UnreadResponse`].
pub(crate) fn install<'js>(native: &Object<'js>) -> Result<()> {
    native.set(
        "headersOf",
        Func::from(|it: Class<'js, UnreadResponse>| flat_headers(&it.borrow().head)),
    )?;
    native.set(
        "cookiesOf",
        Func::from(|it: Class<'js, UnreadResponse>| set_cookies(&it.borrow().head)),
    )?;
    native.set(
        "methodOf",
        Func::from(|it: Class<'js, UnreadResponse>| it.borrow().method.to_string()),
    )?;
    native.set(
        "sentOf",
        Func::from(|ctx: Ctx<'js>, it: Class<'js, UnreadResponse>| -> Result<Value<'js>> {
            rquickjs::IntoJs::into_js(it.borrow().sent(), &ctx)
        }),
    )?;
    native.set(
        "requestOf",
        Func::from(|ctx: Ctx<'js>, it: Class<'js, UnreadResponse>| -> Result<Value<'js>> {
            let response = it.borrow();
            let parts: Vec<Cow<'_, str>> = response.request().into();
            let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
            rquickjs::IntoJs::into_js(parts, &ctx)
        }),
    )
}

impl Finished {
    /// Returns the response as an object of the script's class.
    pub(crate) fn object<'js>(self, class: &Constructor<'js>) -> Result<Object<'js>> {
        let Finished { ask, seen, hop, sent, first } = self;
        let ctx = class.ctx();
        let [blocked, connecting, handshaking, sending, waiting, receiving] = seen.timings();
        let body = body_value(ctx, &ask, seen.status, &seen.body)?;
        let status_text = status_text(&seen.head);
        let url = if seen.code == INVALID_URL { &ask.url } else { hop.url.as_str() };
        let mut made = Args::new(ctx.clone(), RESPONSE_ARGUMENTS);
        made.push_arg(hop.url.host_str().unwrap_or_default().trim_matches(['[', ']']))?;
        made.push_arg(hop.url.port_or_known_default().unwrap_or(0))?;
        made.push_arg(url)?;
        made.push_arg(seen.status)?;
        made.push_arg(&*status_text)?;
        made.push_arg(seen.proto.as_str())?;
        made.push_arg(body)?;
        made.push_args([blocked, connecting, handshaking, sending, waiting, receiving])?;
        made.push_arg(seen.error.as_str())?;
        made.push_arg(seen.code)?;
        let body = if ask.is_text { ask.body } else { Vec::new() };
        let (method, url, head) = (hop.method, hop.url, seen.head);
        let unread = UnreadResponse { head, sent, method, url, first, body };
        made.push_arg(Class::instance(ctx.clone(), unread)?)?;
        made.construct(class)
    }
}

/// Returns the status line without the protocol.
fn status_text(head: &[u8]) -> Cow<'_, str> {
    let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let end = line.iter().position(|byte| *byte == b' ').map_or(line.len(), |space| space + 1);
    String::from_utf8_lossy(&line[end..])
}

fn body_value<'js>(ctx: &Ctx<'js>, ask: &HttpCall, status: u16, body: &[u8]) -> Result<Value<'js>> {
    let discards = ask.response_type == "none" || (ask.response_type.is_empty() && ask.discards);
    if status == 0 || discards {
        return Ok(Value::new_null(ctx.clone()));
    }
    if ask.response_type == "binary" {
        return Ok(ArrayBuffer::new_copy(ctx.clone(), body)?.into_value());
    }
    let text = String::from_utf8_lossy(body);
    Ok(rquickjs::String::from_str(ctx.clone(), &text)?.into_value())
}

/// Returns the cookies that a response sets, as JSON.
fn set_cookies(head: &[u8]) -> String {
    let mut all = Vec::new();
    for value in fields::set_cookies(head) {
        let text = String::from_utf8_lossy(value);
        let mut parts = text.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            continue;
        };
        let attributes: Vec<(String, String)> = parts
            .map(|part| part.split_once('=').unwrap_or((part, "")))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let find =
            |name: &str| attributes.iter().find(|(known, _)| known == name).map(|it| it.1.clone());
        all.push(serde_json::json!({
            "name": name, "value": value,
            "domain": find("domain").unwrap_or_default(),
            "path": find("path").unwrap_or_default(),
            "http_only": find("httponly").is_some(), "secure": find("secure").is_some(),
            "max_age": find("max-age").and_then(|it| it.parse::<i64>().ok()).unwrap_or(0),
            "expires": 0,
        }));
    }
    serde_json::Value::Array(all).to_string()
}
