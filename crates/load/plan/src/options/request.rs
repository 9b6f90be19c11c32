//! Requests: source, content, client settings.

use super::field::{KeyValue, NO_FIELD, PlanField, content, field};

use super::grammar::*;
use super::{SETTING, Setting, most};
use crate::model_request::parse_tokens;
use crate::options::Scalar;
use crate::representative::parse_representative;
use crate::rules::{parse_aws_sigv4, parse_digest, parse_user};
use crate::secrets::MASK;
use crate::{Auth, Plan, Secrets};
use protocol::login::sigv4::SignatureScope;
use units::ParseError;

const ROW: Setting = Setting { heading: "Request", page: "requests", ..SETTING };
const SOURCE: Setting = Setting { page: "requests", ..ROW };

/// Requests to a language model; the plan needs the URL of its server.
const MODEL: PlanField =
    PlanField { check: |text, _| parse_representative(text).map(drop), ..NO_FIELD };

/// Source of a plan's requests: the plan starts from it, before other options change it.
#[rustfmt::skip] // a row is read as a row
pub(super) static SOURCES: &[Setting] = &[
    Setting { name: "urls", value: "FILE|-", common: true,
        help: "URLs from a file, or - for standard input: lines of [METHOD] URL [weight=N] [body=TEXT]", ..SOURCE },
    Setting { name: "workload", value: "MODEL", page: "workloads", field: MODEL, without: &["urls", "script", "curl", "body", "body-file"],
        help: "Files below the URL, by users or clients after a model: surge-like:users=200,connections=2, specweb99-like:connections=100, webstone-like:clients=50 or webbench-like:clients=50; or the URL itself, by new connections at a rate of sockets / timeout: s-client-like:sockets=100,timeout=500ms", ..SOURCE },
    Setting { name: "random", means: "random", without: &["once"], field: field!(at order, ORDER),
        help: "Choose URLs from the list at random, by weight", ..SOURCE },
    Setting { name: "once", means: "once", field: field!(at order, ORDER),
        help: "Request each URL of the list exactly once", ..SOURCE },
    Setting { name: "curl", value: "COMMAND", without: &["urls", "script"], page: "bring-what-you-have",
        help: "Take the request from a command line of curl, as browsers copy it, or of grpcurl", ..SOURCE },
    Setting { name: "script", value: "FILE|-", page: "journeys",
        help: "Requests from a script: wrk's or a journey in Lua, or k6's in JavaScript; - is standard input", ..SOURCE },
];

/// Defines a login method: the grammar of its value, and how it combines with the login in the
/// plan.
macro_rules! login {
    ($key:literal, $parse:expr, $login:expr) => {
        PlanField {
            key: concat!("request.", $key),
            check: |text, _| $parse(text).map(drop),
            read: |plan, _, value, _| {
                let KeyValue::One(value) = value else { return Ok(()) };
                let Some(text) = value.typed() else { return Ok(()) };
                plan.request.auth = Some($login($parse(&text)?, plan.request.auth.take())?);
                Ok(())
            },
            show: |plan, secrets| ("", KeyValue::One(show_login(plan, $key, secrets))),
            ..NO_FIELD
        }
    };
}

/// Returns the value of a login key in a printed plan.
fn show_login(plan: &Plan, key: &str, secrets: Secrets) -> Scalar {
    let hide = |secret: &str| match secrets {
        Secrets::Shown => secret.to_owned(),
        Secrets::Masked => MASK.to_owned(),
    };
    let pair = |name: &str, secret: &str| format!("{name}:{}", hide(secret));
    Scalar::Text(match (key, &plan.request.auth) {
        ("user", Some(Auth::Basic { user, password })) => pair(user, password),
        ("user", Some(Auth::AwsSigV4 { key, secret, .. })) => pair(key, secret),
        ("aws_sigv4", Some(Auth::AwsSigV4 { scope, .. })) => scope.to_string(),
        ("digest", Some(Auth::Digest { user, password })) => pair(user, password),
        ("bearer", Some(Auth::Bearer(token))) => hide(token),
        _ => return Scalar::Off,
    })
}

fn is_given(plan: &Plan, key: &str) -> bool {
    show_login(plan, key, Secrets::Masked) != Scalar::Off
}

fn replaced(login: Auth, _: Option<Auth>) -> Result<Auth, ParseError> {
    Ok(login)
}

/// Returns the login for signatures: a name and password become key and secret.
fn signed(scope: SignatureScope, login: Option<Auth>) -> Result<Auth, ParseError> {
    match login {
        Some(Auth::Basic { user: key, password: secret }) => {
            Ok(Auth::AwsSigV4 { key, secret, scope })
        }
        _ => Err(ParseError("give key and secret too, as user".to_owned())),
    }
}

/// Sources of requests that exclude a chat with a language model.
const NO_MODEL: &[&str] = &["body", "body-file", "form", "urls", "curl", "script", "workload"];

fn token(text: &str) -> Result<Auth, ParseError> {
    Ok(Auth::Bearer(text.to_owned()))
}

#[rustfmt::skip]
pub(super) static SETTINGS: &[Setting] = &[
    Setting { name: "method", value: "NAME", common: true, field: field!(at request.method, METHOD),
        help: "Method [default: GET, POST with a body]", ..ROW },
    Setting { name: "header", short: Some('H'), value: "HEADER", common: true, field: field!(add request.headers, HEADERS),
        help: "A header 'Name: value'; may be given several times", ..ROW },
    Setting { name: "body", value: "TEXT", common: true, without: &["body-file"], field: content!(request.body, typed: "", Values),
        help: "Request body, as text", ..ROW },
    Setting { name: "form", value: "NAME=VALUE", without: &["body", "body-file"],
        field: PlanField { adds: true, check: |text, _| crate::check_form_field(text), ..NO_FIELD },
        help: "A field of a form, or NAME=@FILE for an upload; may be given several times",
        more: "Without uploads the form is sent as application/x-www-form-urlencoded, with one as multipart/form-data. The media type of an upload follows the file: NAME=@FILE;type=image/png.", ..ROW },
    Setting { name: "body-file", value: "FILE|-", common: true, field: content!(request.body, typed: "_file", Values),
        help: "Request body from a file; - is standard input", ..ROW },
    Setting { name: "prompt", value: "TEXT|@FILE", without: NO_MODEL, needs: Some("stream"), page: "llm-servers",
        help: "With --stream openai or anthropic and a URL: the user's message in the request", ..ROW },
    Setting { name: "model", value: "NAME", without: NO_MODEL, needs: Some("stream"), page: "llm-servers",
        help: "With --stream openai or anthropic and a URL: name of the model in the request [default: default]", ..ROW },
    Setting { name: "max-tokens", value: "N", without: NO_MODEL, needs: Some("stream"), page: "llm-servers",
        field: PlanField { check: |text, _| parse_tokens(text).map(drop), ..NO_FIELD },
        help: "With --stream openai or anthropic and a URL: maximum number of tokens of a response [default: 128]", ..ROW },
    Setting { name: "user", value: "NAME:PASSWORD", common: true, without: &["bearer"], field: login!("user", parse_user, replaced),
        help: "Basic authentication", ..ROW },
    Setting { name: "digest", value: "NAME:PASSWORD", without: &["user", "bearer", "aws-sigv4"],
        field: login!("digest", parse_digest, replaced), shown: |plan| is_given(plan, "digest"),
        help: "Digest authentication, as soon as the server requests it", ..ROW },
    Setting { name: "aws-sigv4", value: "SCOPE", needs: Some("user"),
        field: login!("aws_sigv4", parse_aws_sigv4, signed), shown: |plan| is_given(plan, "aws_sigv4"),
        help: "Sign each request with the key and secret of --user: aws:amz:REGION:SERVICE; without region and service those in the host's name", ..ROW },
    Setting { name: "bearer", value: "TOKEN", common: true, field: login!("bearer", token, replaced),
        help: "Bearer token in the Authorization field", ..ROW },
    Setting { name: "user-agent", value: "TEXT", field: field!(at request.user_agent, WORDS),
        help: "The User-Agent header", ..ROW },
    Setting { name: "priority", value: "PRIORITY", page: "http2-and-http3", field: field!(off request.priority, URGENCY),
        help: "Priority of requests (RFC 9218): u=0 (first) to u=7 (last), i (incremental), or 'u=1, i'",
        more: "Each request that has no field priority of its own gets `priority: u=1, i`, in every version of HTTP. With --http 2 the connection also begins with SETTINGS_NO_RFC7540_PRIORITIES, and where the server sends that setting too, a PRIORITY_UPDATE frame goes before each request with a field priority.", ..ROW },
    Setting { name: "http", value: "VERSION", common: true, field: field!(at request.version as "request.http", VERSION),
        help: "HTTP version: 1.0, 1.1, 2 (ALPN over TLS, prior knowledge over cleartext), 3 (QUIC) or auto (the server's choice of 1.1 or 2) [default: auto over TLS, else 1.1]", ..ROW },
    Setting { name: "compressed", field: field!(at request.compressed, SWITCH),
        help: "Request compressed responses and decompress them", ..ROW },
    Setting { name: "follow", value: "N", common: true, omitted: Some("10"), field: field!(at request.follow_max as "request.follow", COUNT_16),
        bounds: &[most(100.0, "is above 100 redirects a call; 10 is plenty")],
        help: "Follow up to N redirects per call [default: none; without =N: 10]", ..ROW },
    Setting { name: "follow-auth", value: "HOST[,HOST]", needs: Some("follow"), field: field!(add request.follow_auth, HOSTS), shown: |plan| !plan.request.follow_auth.is_empty(),
        help: "Hosts that receive the login, cookies and secret headers after a redirect",
        more: "A redirect to another scheme, host or port drops the login (--user, --bearer, --digest, --aws-sigv4), the headers Host, Cookie and Authorization, and those whose names contain token, secret, password, api-key or session. A host that is named here gets them on any port, but not over http after https.", ..ROW },
    Setting { name: "cookies", common: true, field: field!(at request.cookies, SWITCH),
        help: "Keep cookies per user and send them back", ..ROW },
    Setting { field: field!(at request.last_cookie, SWITCH), page: "plans",
        help: "Send only the cookie of a user that was set last", ..ROW },
];
