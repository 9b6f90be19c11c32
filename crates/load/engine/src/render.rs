//! Renders requests: from a plan and a URL to bytes.

use crate::upgrade::upgrade_fields;
use percent_encoding::percent_decode_str;
use plan::{Auth, HttpVersion, Plan};
use protocol::http1::request::{RequestError, RequestHead, Target, Version, basic_authorization};
use url::{Position, Url};
use workload::{Stripped, Template};

/// Renders one request of a plan. `own`: the target's fields, each of which replaces the plan's
/// field of that name. `absolute`: for a plain HTTP proxy.
///
/// # Errors
/// Fails if a method, field or URL would break the message's framing.
pub fn build_template(
    plan: &Plan,
    url: &Url,
    method: &str,
    own: &[(String, String)],
    body: Option<&[u8]>,
    endpoint: u32,
    absolute: bool,
) -> Result<Template, RequestError> {
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let own = Own { target, headers: own, body, ..Own::default() };
    build_own(plan, url, method, &own, endpoint, absolute)
}

/// Content of a request in addition to the plan's fields and login.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Own<'a> {
    /// Path and query as they are sent.
    pub(crate) target: &'a str,
    /// Fields that replace the plan's fields of the same names.
    pub(crate) headers: &'a [(String, String)],
    /// Login that replaces the plan's.
    pub(crate) authorization: Option<&'a str>,
    pub(crate) body: Option<&'a [u8]>,
    /// Fields that redirects have removed.
    pub(crate) stripped: Stripped,
}

impl Own<'_> {
    /// Returns whether a header field of the user is sent.
    fn sends(&self, name: &str) -> bool {
        let foreign = self.stripped.credentials && is_server_specific(name);
        let empty = self.stripped.content && describes_content(name);
        !foreign && !empty
    }
}

/// Returns whether the header field is for a single server: credentials, or a Host field from the
/// user.
fn is_server_specific(name: &str) -> bool {
    name.eq_ignore_ascii_case("host") || plan::is_secret_header(name)
}

/// Returns whether the header field describes the content of a request: a request without content
/// has none of these (RFC 9110 section 15.4).
pub(crate) fn describes_content(name: &str) -> bool {
    let prefixed = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"));
    let others =
        ["digest", "repr-digest", "last-modified", "expect", "transfer-encoding", "trailer"];
    prefixed || others.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Like [`build_template`], for a request with its own fields.
///
/// # Errors
/// Fails like [`build_template`].
pub(crate) fn build_own(
    plan: &Plan,
    url: &Url,
    method: &str,
    own: &Own<'_>,
    endpoint: u32,
    absolute: bool,
) -> Result<Template, RequestError> {
    let request = &plan.request;
    let given = |name: &str| own.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let withheld = own.stripped.credentials || given("authorization");
    let login = request.auth.as_ref().filter(|_| !withheld);
    let authorization = match own.authorization {
        Some(own) => Some(own.to_owned()),
        None => login.map(authorization).transpose()?.flatten(),
    };
    let mut headers = request.headers.clone();
    if !own.headers.is_empty() {
        headers.retain(|(name, _)| !given(name));
        headers.extend_from_slice(own.headers);
    }
    if own.stripped != Stripped::default() {
        headers.retain(|(name, _)| own.sends(name));
    }
    if plan::is_websocket_url(url) {
        headers.extend(upgrade_fields(plan));
    }
    let prioritised = headers.iter().any(|(known, _)| known.eq_ignore_ascii_case("priority"));
    if let Some(priority) = request.priority.filter(|_| !prioritised) {
        headers.push(("Priority".to_owned(), priority.to_string()));
    }
    if let Some(proxy) = plan.connection.proxy.as_ref().filter(|_| absolute) {
        headers.extend(proxy_login(proxy)?);
    }
    let target = if absolute {
        Target::Absolute(&url[..Position::AfterQuery])
    } else {
        Target::Origin(own.target)
    };
    let head = RequestHead {
        method,
        target,
        version: version(plan),
        host: &url[Position::BeforeHost..Position::AfterPort],
        headers: &headers,
        user_agent: Some(&request.user_agent),
        accept_encoding: request.compressed.then_some(protocol::http1::coding::ACCEPTED),
        authorization: authorization.as_deref(),
        body: own.body,
    };
    let rendered = head.render()?;
    let (http2, http3) = translated(plan.request.version, url, &rendered.last)?;
    Ok(Template {
        endpoint,
        asked: rendered.asked,
        bytes: rendered.bytes,
        last: rendered.last,
        cookie_at: rendered.cookie_at,
        cookie_at_last: rendered.cookie_at_last,
        http2,
        http3,
        stripped: own.stripped,
        ..Template::new(url.clone(), method)
    })
}

/// Translates the request to HTTP/2 or HTTP/3, if that is the version.
pub(crate) fn translated(
    version: HttpVersion,
    url: &Url,
    message: &[u8],
) -> Result<(Option<http2::Request>, Option<protocol::http3::Coded>), RequestError> {
    // an upgrade is translated on its connection
    let upgrades = plan::is_websocket_url(url);
    if !version.has_streams() || upgrades {
        return Ok((None, None));
    }
    // RFC 9114 section 4.2 has the same rules as RFC 9113 section 8.2.2
    let request = http2::Request::from_http1(message, url.scheme())
        .map_err(|error| RequestError::Translated { version: version.name(), why: error.0 })?;
    if version == HttpVersion::Http3 {
        let coded = protocol::http3::Coded::new(request.fields(), request.body().cloned());
        return Ok((None, Some(coded)));
    }
    Ok((Some(request), None))
}

/// Returns a request given as bytes in the plan.
pub(crate) fn raw_template(url: &Url, method: &str, raw: &[u8], endpoint: u32) -> Template {
    let end = raw.windows(4).position(|at| at == b"\r\n\r\n");
    let cookie_at = end.map_or(raw.len(), |at| at + 2);
    Template {
        endpoint,
        bytes: raw.to_vec(),
        last: raw.to_vec(),
        cookie_at,
        cookie_at_last: cookie_at,
        // a plan for HTTP/2 or HTTP/3 has no requests given as bytes
        ..Template::new(url.clone(), method)
    }
}

/// Returns the CONNECT request that opens a tunnel through a proxy to `authority` (`host:port`).
///
/// # Errors
/// Fails if the proxy's credentials cannot be sent.
pub fn connect_request(plan: &Plan, authority: &str, proxy: &Url) -> Result<Vec<u8>, RequestError> {
    let headers: Vec<(String, String)> = proxy_login(proxy)?.into_iter().collect();
    let head = RequestHead {
        method: "CONNECT",
        target: Target::Authority(authority),
        version: Version::Http11,
        host: authority,
        headers: &headers,
        user_agent: Some(&plan.request.user_agent),
        accept_encoding: None,
        authorization: None,
        body: None,
    };
    Ok(head.render()?.bytes)
}

/// Returns the field with the login of a proxy's URL (RFC 9110 §11.7.2), if it has one.
fn proxy_login(proxy: &Url) -> Result<Option<(String, String)>, RequestError> {
    if proxy.username().is_empty() {
        return Ok(None);
    }
    let text = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let (user, password) = (text(proxy.username()), text(proxy.password().unwrap_or("")));
    let value = basic_authorization(&user, &password)?;
    Ok(Some(("Proxy-Authorization".to_owned(), value)))
}

fn version(plan: &Plan) -> Version {
    match plan.request.version {
        HttpVersion::Http10 => Version::Http10,
        // the request before translation
        HttpVersion::Http11 | HttpVersion::Http2 | HttpVersion::Http3 | HttpVersion::Auto => {
            Version::Http11
        }
    }
}

/// Returns the constant login of every request; `None` if each request needs its own proof.
fn authorization(auth: &Auth) -> Result<Option<String>, RequestError> {
    match auth {
        Auth::Basic { user, password } => basic_authorization(user, password).map(Some),
        Auth::Bearer(token) => Ok(Some(format!("Bearer {token}"))),
        Auth::Digest { .. } | Auth::AwsSigV4 { .. } => Ok(None),
    }
}

/// Returns the request with further fields at the end of its head.
///
/// # Errors
/// Fails if the plan's protocol cannot carry the fields.
pub(crate) fn with_fields(
    plan: &Plan,
    template: &Template,
    more: &[(String, String)],
) -> Result<Template, RequestError> {
    let lines: String = more.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let put = |bytes: &[u8], at: usize| [&bytes[..at], lines.as_bytes(), &bytes[at..]].concat();
    let (bytes, last) =
        (put(&template.bytes, template.cookie_at), put(&template.last, template.cookie_at_last));
    let (http2, http3) = translated(plan.request.version, template.url.shared(), &last)?;
    Ok(Template { bytes, last, http2, http3, ..template.clone() })
}
