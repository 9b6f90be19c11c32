//! A request of a step as bytes.

use super::talk;
use crate::exchange::{Message, Outgoing};
use plan::HttpVersion;
use plan::check::{Ask, Body, CheckPlan, Text, Upload, UploadContent, ValueSource};
use protocol::http1::multipart::{FormPart, form_data};
use protocol::http1::request::{RequestHead, Target, Version, basic_authorization};
use std::collections::BTreeMap;
use units::{Purpose, Seed, Stream};
use url::{Position, Url};
use workload::{Jar, with_target};

type Captured = BTreeMap<String, String>;

const AGENT: &str = concat!("loadstone/", env!("CARGO_PKG_VERSION"));

/// Checks that the request is valid for any captured values.
pub(super) fn check_sendable(plan: &CheckPlan, ask: &Ask) -> Result<(), String> {
    // captured values are not known yet
    if ask.url.settled().is_none() {
        return Ok(());
    }
    let mut nonces = Seed(0).stream(Purpose::Sockets, 0);
    match prepare(plan, ask, &Captured::new(), &BTreeMap::new(), &mut nonces) {
        Err(why) if !why.ends_with("was not captured") => Err(why),
        _ => Ok(()),
    }
}

pub(super) fn prepare(
    plan: &CheckPlan,
    ask: &Ask,
    captured: &Captured,
    jars: &BTreeMap<String, Jar>,
    nonces: &mut Stream,
) -> Result<Outgoing, String> {
    let mut made = assemble(&base_of(plan, ask), ask, captured)?;
    if ask.version == HttpVersion::Http3 && !plan::is_secure(&made.url) {
        let secure = if ask.talk.is_empty() { "https" } else { "wss" };
        return Err(format!("HTTP/3 requires TLS, but the URL is {}; write {secure}://", made.url));
    }
    let upgrade = (!ask.talk.is_empty()).then(|| talk::upgrade(&mut made, nonces)).transpose()?;
    let jar = ask.jar.as_ref().and_then(|jar| jars.get(jar));
    if let Some(cookies) = jar.and_then(|jar| jar.header(&made.url)) {
        add(&mut made.headers, "Cookie", cookies);
    }
    let head = RequestHead {
        method: &ask.method,
        target: Target::Origin(&made.target),
        version: match ask.version {
            HttpVersion::Http10 => Version::Http10,
            HttpVersion::Http11 | HttpVersion::Http2 | HttpVersion::Http3 | HttpVersion::Auto => {
                Version::Http11
            }
        },
        host: &made.url[Position::BeforeHost..Position::AfterPort],
        headers: &made.headers,
        user_agent: Some(AGENT),
        accept_encoding: None,
        authorization: made.authorization.as_deref(),
        body: made.body.as_deref(),
    };
    let rendered = head.render().map_err(|error| error.to_string())?;
    let bytes = if ask.close { rendered.last } else { rendered.bytes };
    if let Some(upgrade) = upgrade {
        let message = Message::Socket(Box::new(talk::talk(upgrade, bytes, ask, captured)?));
        let (url, timeout) = (made.url, ask.timeout);
        return Ok(Outgoing { url, message, timeout, negotiates: false });
    }
    let version = ask.version;
    // HTTP/1.1 until the server has chosen
    let first = match version {
        HttpVersion::Auto => HttpVersion::Http11,
        named => named,
    };
    let message = Message::translated(first, &made.url, bytes, rendered.asked, ask.close);
    let message = message.map_err(|error| error.to_string())?;
    let negotiates = version == HttpVersion::Auto && made.url.scheme() == "https";
    Ok(Outgoing { url: made.url, message, timeout: ask.timeout, negotiates })
}

/// Returns the base of a step's URL: a WebSocket URL if the step opens a WebSocket.
pub(super) fn base_of(plan: &CheckPlan, ask: &Ask) -> Url {
    match ask.talk.is_empty() {
        true => plan.base.clone(),
        false => plan::journey::websocket_base(&plan.base),
    }
}

/// The parts of a request, with all values inserted.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) url: Url,
    /// Path and query as they are sent.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) authorization: Option<String>,
}

/// # Errors
/// Fails if a value is missing, or makes the URL or request invalid.
pub(crate) fn assemble(
    base: &Url,
    ask: &Ask,
    values: &dyn ValueSource,
) -> Result<Assembled, String> {
    let (mut url, target) = locate(base, &ask.url.expand(values)?)?;
    let query = expanded(&ask.query, values)?;
    let mut target =
        target.unwrap_or_else(|| url[Position::BeforePath..Position::AfterQuery].to_owned());
    if !query.is_empty() {
        let pairs =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&query).finish();
        let sign = if target.contains('?') { '&' } else { '?' };
        target = format!("{target}{sign}{pairs}");
        url.query_pairs_mut().extend_pairs(&query);
    }
    let mut headers = expanded(&ask.headers, values)?;
    let body = content(&ask.body, values, &mut headers)?;
    let login = ask.user.as_ref().map(|user| user.expand(values)).transpose()?;
    let authorization = login.map(|login| authorization(&login)).transpose()?;
    Ok(Assembled { url, target, headers, body, authorization })
}

/// Splits a step's URL into its destination and its path as written: paths are sent unchanged, so
/// that dot segments reach the server.
pub(super) fn locate(base: &Url, text: &str) -> Result<(Url, Option<String>), String> {
    if text.starts_with('/') {
        return Ok((with_target(base, text), Some(text.to_owned())));
    }
    let mut url = base.join(text).map_err(|error| format!("{text:?} is not a URL: {error}"))?;
    let (schemes, kind) = match plan::is_websocket_url(base) {
        true => (["ws", "wss"], "a ws or wss URL"),
        false => (["http", "https"], "an http or https URL"),
    };
    if !schemes.contains(&url.scheme()) || !url.has_host() {
        return Err(format!("{text:?} is not {kind}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("leave the login out of the URL; a step has user = \"name:password\"".into());
    }
    url.set_fragment(None);
    Ok((url, None))
}

fn authorization(login: &str) -> Result<String, String> {
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    basic_authorization(user, password).map_err(|error| error.to_string())
}

fn expanded(
    pairs: &[(String, Text)],
    captured: &dyn ValueSource,
) -> Result<Vec<(String, String)>, String> {
    pairs.iter().map(|(name, value)| Ok((name.clone(), value.expand(captured)?))).collect()
}

/// Adds a default field, unless the step has a field of that name.
fn add(headers: &mut Vec<(String, String)>, name: &str, value: String) {
    if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
        headers.push((name.to_owned(), value));
    }
}

pub(crate) fn content(
    body: &Body,
    captured: &dyn ValueSource,
    headers: &mut Vec<(String, String)>,
) -> Result<Option<Vec<u8>>, String> {
    Ok(match body {
        Body::None => None,
        Body::Text(text) => Some(text.expand(captured)?.into_bytes()),
        Body::Bytes(bytes) => Some(bytes.clone()),
        Body::Json(text) => {
            add(headers, "Content-Type", "application/json".to_owned());
            Some(text.expand(captured)?.into_bytes())
        }
        Body::Form(fields) => {
            let fields = expanded(fields, captured)?;
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            add(headers, "Content-Type", "application/x-www-form-urlencoded".to_owned());
            Some(form.extend_pairs(&fields).finish().into_bytes())
        }
        Body::Multipart(fields, files) => {
            let (kind, bytes) = multipart(fields, files, captured)?;
            add(headers, "Content-Type", kind);
            Some(bytes)
        }
    })
}

fn multipart(
    fields: &[(String, Text)],
    files: &[Upload],
    captured: &dyn ValueSource,
) -> Result<(String, Vec<u8>), String> {
    let fields = expanded(fields, captured)?;
    let mut contents = Vec::new();
    for file in files {
        contents.push(match &file.content {
            UploadContent::Text(text, times) => {
                text.expand(captured)?.repeat(*times as usize).into_bytes()
            }
            UploadContent::Bytes(bytes) => bytes.clone(),
        });
    }
    let texts = fields.iter().map(|(name, value)| FormPart {
        field: name,
        file: None,
        content: value.as_bytes(),
    });
    let uploads = files.iter().zip(&contents).map(|(file, content)| FormPart {
        field: &file.field,
        file: Some((&file.name, &file.media_type)),
        content,
    });
    Ok(form_data(&texts.chain(uploads).collect::<Vec<_>>()))
}
