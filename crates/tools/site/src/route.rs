//! From a request target to a page: paths, their parameters, their bounds. Pure.

use std::borrow::Cow;

use units::{Nanos, parse_duration};

/// Users of `/auth` and `/digest`.
pub const AUTH_USER: &str = "fred";
/// The password of [`AUTH_USER`].
pub const AUTH_PASSWORD: &str = "flintstone";
/// `Basic` credentials of the two above (RFC 7617 §2): base64 of `fred:flintstone`.
pub(crate) const AUTH_TOKEN: &str = "ZnJlZDpmbGludHN0b25l";

pub(crate) const BYTES_MAX: u64 = 1 << 30;
pub(crate) const GZIP_MAX: u64 = 16 << 20;
pub(crate) const SLEEP_MAX: Nanos = Nanos::from_secs(3_600);
pub(crate) const REDIRECTS_MAX: u64 = 1_000;
/// Maximum length of a piece of a chunked body: one slice of the pattern.
pub(crate) const PIECE_MAX: u64 = crate::pattern::BLOCK_LEN as u64;
const PIECES_DEFAULT: u64 = 4;
pub(crate) const EVENTS_MAX: u64 = 1_000_000;
const EVENTS_DEFAULT: u64 = 10;
const EVERY_DEFAULT: Nanos = Nanos::from_millis(100);

/// A page, with its parameters within their bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Welcome,
    Hello,
    Sleep {
        /// Seconds as typed, for the response's text.
        seconds: String,
        span: Nanos,
    },
    /// Waits, and reports how long.
    Timed(Nanos),
    Bytes(u64),
    Status {
        code: u16,
        /// Target of a 3xx.
        to: String,
    },
    Echo {
        head_only: bool,
    },
    Chunked {
        len: u64,
        pieces: u64,
        trailer: bool,
    },
    Close(u64),
    Cookie {
        set: Option<String>,
    },
    Gzip(u64),
    /// A sequence of events on a schedule.
    Events(EventPlan),
    /// Language model.
    Model(ModelPage),
    /// WebSocket that echoes.
    Socket(SocketPlan),
    Auth,
    /// Page with Digest authentication; path and query as requested.
    Digest(String),
    /// Page that returns a token for a name.
    Login {
        name: String,
    },
    /// Issues a token with this lifetime, as for OAuth client credentials.
    Token(Nanos),
    /// Page that returns the name that a token was issued for.
    Me,
    /// Number of redirects left.
    Redirect(u64),
    /// A file of the set that is served, by its path without a slash in front.
    File(String),
    /// A dynamic page that belongs to a file set.
    Dynamic(String),
}

/// Interface of a language model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelPage {
    /// Chat completions, as of OpenAI.
    Chat,
    /// Messages, as of Anthropic.
    Messages,
}

/// Stream of events: their number, the time of the first, and the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventPlan {
    pub(crate) count: u64,
    pub(crate) first: Nanos,
    pub(crate) every: Nanos,
    /// True for a line of JSON per event, instead of Server-Sent Events.
    pub(crate) lines: bool,
}

/// Behavior of a WebSocket other than immediate echo.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SocketPlan {
    pub(crate) delay: Nanos,
    /// Unsolicited messages per second.
    pub(crate) push: f64,
    /// Share of the messages that are not echoed.
    pub(crate) lose: f64,
    /// Silent for the first time at the end of each period of the second.
    pub(crate) stall: Option<(Nanos, Nanos)>,
    /// Echoes before the connection is closed, and the code; 0: without a close frame.
    pub(crate) close_after: Option<u64>,
    pub(crate) close_code: u16,
    /// Room whose members receive all messages, including their own, in place of an echo.
    pub(crate) room: Option<String>,
}

impl Eq for SocketPlan {}

impl SocketPlan {
    /// Returns the time from one push to the next.
    pub(crate) fn push_interval(&self) -> Option<std::time::Duration> {
        (self.push > 0.0).then(|| std::time::Duration::from_secs_f64(1.0 / self.push))
    }
}

/// Reason why there is no page, as a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Route {
    /// Parses `target`: path and query as in the request line.
    pub(crate) fn parse(target: &str) -> Result<Route, Refusal> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let Some(path) = path.strip_prefix('/') else { return Err(no_page()) };
        let (page, argument) = match path.split_once('/') {
            Some((page, argument)) => (page, Some(argument)),
            None => (path, None),
        };
        match (page, argument) {
            ("", None) => Ok(Route::Welcome),
            ("hw", None) => Ok(Route::Hello),
            ("sleep", None) => {
                let (seconds, span) = pause(query.unwrap_or_default(), "/sleep")?;
                Ok(Route::Sleep { seconds, span })
            }
            ("timed", None) => {
                let (_, span) = pause(query.unwrap_or_default(), "/timed")?;
                Ok(Route::Timed(span))
            }
            ("bytes", Some(len)) => Ok(Route::Bytes(number(len, 0, BYTES_MAX)?)),
            ("status", Some(code)) => Ok(Route::Status {
                code: number(code, 100, 599)? as u16,
                to: text_of(query, "to")?.unwrap_or_else(|| "/".to_owned()),
            }),
            ("echo", None) => Ok(Route::Echo { head_only: value_of(query, "headers").is_some() }),
            ("chunked", Some(len)) => chunked(number(len, 0, BYTES_MAX)?, query),
            ("close", Some(len)) => Ok(Route::Close(number(len, 0, BYTES_MAX)?)),
            ("cookie", None) => Ok(Route::Cookie { set: text_of(query, "set")? }),
            ("gzip", Some(len)) => Ok(Route::Gzip(number(len, 0, GZIP_MAX)?)),
            ("events", None) => events(query),
            ("v1", Some("chat/completions")) => Ok(Route::Model(ModelPage::Chat)),
            ("v1", Some("messages")) => Ok(Route::Model(ModelPage::Messages)),
            ("ws", None) => socket(query),
            ("auth", None) => Ok(Route::Auth),
            ("digest", None) => Ok(Route::Digest(target.to_owned())),
            ("login", None) => login(query),
            ("token", None) => token(query),
            ("me", None) => Ok(Route::Me),
            ("redirect", Some(hops)) => Ok(Route::Redirect(number(hops, 0, REDIRECTS_MAX)?)),
            _ => Err(no_page()),
        }
    }

    /// Returns the methods that make sense here, as `Allow` lists them (RFC 9110 §10.2.1).
    pub(crate) fn allow(&self) -> &'static str {
        match self {
            Route::Echo { .. } | Route::Status { .. } | Route::Login { .. } => {
                "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
            }
            Route::Dynamic(_) => "GET, HEAD, POST, OPTIONS",
            Route::Token(_) | Route::Model(_) => "POST, OPTIONS",
            _ => "GET, HEAD, OPTIONS",
        }
    }

    pub(crate) fn allows(&self, method: &str) -> bool {
        self.allow().split(", ").any(|allowed| allowed == method)
    }
}

/// Returns the path and query of a target that may be in absolute form, which every server must
/// take (RFC 9112 §3.2.2).
pub(crate) fn origin_form(target: &str) -> Cow<'_, str> {
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.starts_with('/') => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            match &rest[end..] {
                path if path.starts_with('/') => path.into(),
                query => format!("/{query}").into(),
            }
        }
        _ => target.into(),
    }
}

/// Characters of a name at `/login`.
const NAME_MAX: usize = 100;

fn login(query: Option<&str>) -> Result<Route, Refusal> {
    let name = text_of(query, "name")?.unwrap_or_default();
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if name.is_empty() || name.len() > NAME_MAX || !plain {
        return Err(bad(format!(
            "Give a name of letters, digits, - and _, at most {NAME_MAX}: /login?name=fred.\n"
        )));
    }
    Ok(Route::Login { name })
}

/// Parses `?expires=5s`.
fn token(query: Option<&str>) -> Result<Route, Refusal> {
    let lifetime = value_of(query, "expires").map_or(Some(SLEEP_MAX), time_of);
    let lifetime = lifetime.filter(|span| *span <= SLEEP_MAX);
    lifetime.map(Route::Token).ok_or_else(|| {
        bad("Give the token's lifetime, at most an hour, like /token?expires=5s.\n".to_owned())
    })
}

/// Start of the names of tokens that expire; the millisecond since 1970 follows.
const UNTIL: &str = "until-";

/// Returns an OAuth server's response at this time, in milliseconds since 1970 (RFC 6749 section
/// 5.1).
pub(crate) fn token_text(lifetime: Nanos, unix_ms: u64) -> String {
    let until = unix_ms + lifetime.0 / 1_000_000;
    format!(
        "{{\"access_token\": \"{}\", \"token_type\": \"Bearer\", \"expires_in\": {}}}\n",
        token_of(&format!("{UNTIL}{until}")),
        lifetime.as_secs_f64()
    )
}

/// Body for a client without credentials (RFC 6749 section 5.2).
pub(crate) const INVALID_CLIENT: &str = "{\"error\": \"invalid_client\", \"error_description\": \
    \"the client is fred, its secret flintstone\"}\n";

/// Returns whether the token of a name is valid at this millisecond since 1970.
pub(crate) fn is_current(name: &str, unix_ms: u64) -> bool {
    let until = name.strip_prefix(UNTIL).and_then(|until| until.parse().ok());
    until.is_none_or(|until: u64| unix_ms < until)
}

/// Returns the token of a name: the name, and a checksum (64-bit FNV-1a) that is not guessed by
/// accident. It is not a secret; it identifies issued tokens.
pub(crate) fn token_of(name: &str) -> String {
    let salted = b"loadstone site ".iter().chain(name.as_bytes());
    let sum = salted.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{name}.{sum:016x}")
}

/// Returns the page of a login.
pub(crate) fn login_text(name: &str) -> String {
    format!("{{\"name\": \"{name}\", \"token\": \"{}\"}}\n", token_of(name))
}

/// Returns the page of a token's owner.
pub(crate) fn name_text(name: &str) -> String {
    format!("{{\"name\": \"{name}\"}}\n")
}

/// Challenge and page for a request without a token.
pub(crate) const BEARER: &str = "Bearer realm=\"loadstone site\"";
pub(crate) const NO_TOKEN: &str =
    "Send a token from /login?name=NAME: Authorization: Bearer TOKEN\n";

/// Returns the credentials in an Authorization field of this scheme.
pub(crate) fn credentials<'a>(field: &'a str, wanted: &str) -> Option<&'a str> {
    let (scheme, token) = field.split_once(' ')?;
    // the scheme's case does not matter (RFC 9110 §11.1)
    scheme.eq_ignore_ascii_case(wanted).then_some(token.trim())
}

/// Returns the name in the token of an Authorization field; `None` if none was issued.
pub(crate) fn bearer_of(field: &str) -> Option<&str> {
    credentials(field, "bearer").and_then(name_of)
}

/// Returns the name of a token; `None` if it was never issued.
pub(crate) fn name_of(token: &str) -> Option<&str> {
    let (name, _) = token.split_once('.')?;
    (token_of(name) == token).then_some(name)
}

fn no_page() -> Refusal {
    let text = "There is no such page here; / lists what there is.\n".to_owned();
    Refusal { status: 404, text }
}

fn bad(text: String) -> Refusal {
    Refusal { status: 400, text }
}

fn number(text: &str, min: u64, max: u64) -> Result<u64, Refusal> {
    match text.parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(bad(format!("The number in the path must be {min}-{max}.\n"))),
    }
}

/// Parses `?3`, `?0.5`, `?500ms`: the seconds as typed, and their span.
fn pause(query: &str, page: &str) -> Result<(String, Nanos), Refusal> {
    let span = time_of(query).filter(|span| *span <= SLEEP_MAX);
    let span = span.ok_or_else(|| {
        bad(format!("Give the seconds to take, at most 3600, like {page}?3 or {page}?0.5.\n"))
    })?;
    Ok((format!("{}", span.as_secs_f64()), span))
}

/// Parses a time in a URL. A number without a unit counts seconds, as in the URLs of the norm site.
fn time_of(text: &str) -> Option<Nanos> {
    let bare = text.parse::<f64>().is_ok();
    let text = if bare { format!("{text}s") } else { text.to_owned() };
    parse_duration(&text).ok()
}

fn chunked(len: u64, query: Option<&str>) -> Result<Route, Refusal> {
    let pieces = match value_of(query, "pieces") {
        Some(text) => match text.parse() {
            Ok(pieces) if pieces > 0 => pieces,
            _ => return Err(bad("pieces must be a whole number above 0.\n".to_owned())),
        },
        None => PIECES_DEFAULT,
    };
    // a chunk of length 0 would end the body (RFC 9112 §7.1)
    let pieces = pieces.min(len).max(len.div_ceil(PIECE_MAX));
    let trailer = matches!(value_of(query, "trailer"), Some("" | "1" | "true"));
    Ok(Route::Chunked { len, pieces, trailer })
}

/// Parses `?n=20&every=50ms&first=200ms&form=lines`; without `first`, the first event leaves at
/// once.
fn events(query: Option<&str>) -> Result<Route, Refusal> {
    let refusal = || {
        bad(format!(
            "Give the number of events (1-{EVENTS_MAX}) and their times, like \
             /events?n=20&every=50ms&first=200ms&form=sse (or lines), at most an hour in total.\n"
        ))
    };
    let count = match value_of(query, "n") {
        Some(text) => text.parse().map_err(|_| refusal())?,
        None => EVENTS_DEFAULT,
    };
    let time = |name: &str, otherwise: Nanos| match value_of(query, name) {
        Some(text) => time_of(text).ok_or_else(refusal),
        None => Ok(otherwise),
    };
    let (first, every) = (time("first", Nanos::ZERO)?, time("every", EVERY_DEFAULT)?);
    let lines = match value_of(query, "form") {
        None | Some("sse") => false,
        Some("lines") => true,
        Some(_) => return Err(refusal()),
    };
    let whole = every.0.checked_mul(count).and_then(|span| span.checked_add(first.0));
    let fits = whole.is_some_and(|span| span <= SLEEP_MAX.0);
    if !(1..=EVENTS_MAX).contains(&count) || !fits {
        return Err(refusal());
    }
    Ok(Route::Events(EventPlan { count, first, every, lines }))
}

/// Parses `?delay=20ms&push=10&lose=0.01&stall=1s&every=5s&close=1011&after=100&room=NAME`.
fn socket(query: Option<&str>) -> Result<Route, Refusal> {
    let refusal = || {
        bad("Give the behavior in addition to echoing: /ws?delay=20ms, push=10 (messages per \
             second, at most 10000), lose=0.01 (a share), stall=1s&every=5s, close=1011&after=100 \
             (close=0: without a close frame), room=NAME (messages go to all in the room).\n"
            .to_owned())
    };
    let time = |name: &str| match value_of(query, name) {
        Some(text) => time_of(text).filter(|span| *span <= SLEEP_MAX).map(Some).ok_or_else(refusal),
        None => Ok(None),
    };
    let amount = |name: &str, most: f64| match value_of(query, name) {
        Some(text) => text.parse().ok().filter(|it| (0.0..=most).contains(it)).ok_or_else(refusal),
        None => Ok(0.0),
    };
    let whole = |name: &str| match value_of(query, name) {
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| refusal()),
        None => Ok(None),
    };
    let stall = match (time("stall")?, time("every")?) {
        (Some(stall), Some(every)) if stall < every => Some((stall, every)),
        (None, None) => None,
        _ => return Err(refusal()),
    };
    let close_code = match whole("close")? {
        None => 1000,
        Some(code) if code == 0 || (1000..=4999).contains(&code) => code as u16,
        Some(_) => return Err(refusal()),
    };
    Ok(Route::Socket(SocketPlan {
        delay: time("delay")?.unwrap_or(Nanos::ZERO),
        push: amount("push", 10_000.0)?,
        lose: amount("lose", 1.0)?,
        stall,
        close_after: whole("after")?,
        close_code,
        room: text_of(query, "room")?,
    }))
}

/// Returns the value of `name` in a query; may be empty.
fn value_of<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    query?.split('&').find_map(|part| {
        let (found, value) = part.split_once('=').unwrap_or((part, ""));
        (found == name).then_some(value)
    })
}

/// Returns a value for a header: percent-decoded, visible ASCII only, so that no peer can inject a
/// header.
fn text_of(query: Option<&str>, name: &str) -> Result<Option<String>, Refusal> {
    let Some(raw) = value_of(query, name) else { return Ok(None) };
    let refusal = || bad(format!("{name} must be visible ASCII and must not be empty.\n"));
    let text = percent_decoded(raw).ok_or_else(refusal)?;
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if text.is_empty() || !visible { Err(refusal()) } else { Ok(Some(text)) }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            (high * 16 + low) as u8
        } else {
            byte
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests;
