//! The request as passed to a script: the meta-variables of RFC 3875 §4.1.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName,
    PROXY_AUTHORIZATION, TRANSFER_ENCODING,
};
use hyper::http::Version;
use percent_encoding::percent_decode_str;

use super::CgiSettings;
use crate::breaks::{Break, Breaks};
use crate::exchange::{Ask, Entity};

/// Informs scripts of the built-in tree which of their behaviors to break.
const BREAKS_VARIABLE: &str = "SITE_BREAKS";

/// Request fields that do not become `HTTP_…`: they are passed elsewhere, are secret, or concern
/// the connection (§4.1.18).
const LEFT_OUT: [HeaderName; 6] = [
    AUTHORIZATION,
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    PROXY_AUTHORIZATION,
    TRANSFER_ENCODING,
];

/// Returns the whole environment of a script. A variable without a value is omitted, except
/// QUERY_STRING, which is always there.
pub(super) fn variables(
    ask: &Ask,
    settings: &CgiSettings,
    breaks: &Breaks,
) -> BTreeMap<OsString, OsString> {
    let mut all = fields(&ask.headers);
    // after the request's own, so that no request can replace what we set
    all.extend(settings.passed.iter().cloned());
    all.extend(metas(ask, settings).map(|(name, value)| (OsString::from(name), value)));
    if breaks.has(Break::CgiQuery) {
        let query = percent_decode_str(ask.query.as_deref().unwrap_or_default());
        all.insert("QUERY_STRING".into(), OsString::from_vec(query.collect()));
    }
    if breaks.has(Break::CgiEnv) {
        all.remove(OsStr::new("SERVER_SOFTWARE"));
    }
    let spoiled = [(Break::FormGreeting, "form-greeting"), (Break::LineCount, "line-count")];
    let spoiled = spoiled.iter().filter(|(which, _)| breaks.has(*which)).map(|(_, name)| *name);
    let spoiled = spoiled.collect::<Vec<_>>().join(" ");
    if !spoiled.is_empty() {
        all.insert(BREAKS_VARIABLE.into(), spoiled.into());
    }
    all
}

fn metas(ask: &Ask, settings: &CgiSettings) -> impl Iterator<Item = (&'static str, OsString)> {
    let address = ask.peer.ip().to_canonical().to_string();
    let body = !matches!(ask.body, Entity::None);
    let kind = ask.headers.get(CONTENT_TYPE);
    let rest = &ask.rest;
    let below = settings.root.as_deref().filter(|_| !rest.is_empty());
    [
        ("AUTH_TYPE", ask.user.as_ref().map(|_| "Basic".into())),
        ("CONTENT_LENGTH", body.then(|| ask.body.len().to_string().into())),
        ("CONTENT_TYPE", kind.map(|kind| OsString::from_vec(kind.as_bytes().to_vec()))),
        ("GATEWAY_INTERFACE", Some("CGI/1.1".into())),
        ("PATH_INFO", (!rest.is_empty()).then(|| rest.into())),
        ("PATH_TRANSLATED", below.map(|root| translated(root, rest))),
        ("QUERY_STRING", Some(ask.query.clone().unwrap_or_default().into())),
        ("REMOTE_ADDR", Some(address.clone().into())),
        // names are not looked up; the address is used instead (§4.1.9)
        ("REMOTE_HOST", Some(address.into())),
        ("REMOTE_USER", ask.user.as_ref().map(Into::into)),
        ("REQUEST_METHOD", Some(ask.method.as_str().into())),
        ("SCRIPT_NAME", Some((&ask.node_path).into())),
        ("SERVER_NAME", Some(server_name(ask).into())),
        ("SERVER_PORT", Some(ask.local.port().to_string().into())),
        ("SERVER_PROTOCOL", Some(protocol(ask.version).into())),
        ("SERVER_SOFTWARE", Some((&settings.software).into())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
}

/// Translates the rest of the path as if it were a path of the site (§4.1.6).
fn translated(root: &Path, rest: &str) -> OsString {
    root.join(rest.trim_start_matches('/')).into_os_string()
}

/// Returns the requested host name, if valid, or our address (§4.1.14).
fn server_name(ask: &Ask) -> String {
    let host = ask.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        // the colon may be one of an address in brackets
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let good = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !name.is_empty() && name.bytes().all(plain)
        }
    };
    match ask.local.ip().to_canonical() {
        _ if good => name.to_owned(),
        std::net::IpAddr::V6(address) => format!("[{address}]"),
        std::net::IpAddr::V4(address) => address.to_string(),
    }
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

/// Returns the request's fields as `HTTP_…`; repeated fields are joined.
///
/// A name with anything but letters, digits and `-` is omitted: `X_Y` and `X-Y` would be the same
/// variable. `Proxy` is omitted because programs interpret HTTP_PROXY as a setting ("httpoxy").
fn fields(headers: &HeaderMap) -> BTreeMap<OsString, OsString> {
    let plain = |name: &HeaderName| {
        name.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let wanted =
        |name: &&HeaderName| plain(name) && !LEFT_OUT.contains(name) && name.as_str() != "proxy";
    let mut all = BTreeMap::new();
    for name in headers.keys().filter(wanted) {
        let joint: &[u8] = if *name == COOKIE { b"; " } else { b", " };
        let values: Vec<&[u8]> =
            headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
        let variable = format!("HTTP_{}", name.as_str().to_ascii_uppercase().replace('-', "_"));
        all.insert(variable.into(), OsString::from_vec(values.join(joint)));
    }
    all
}
