//! From a plan and a URL to bytes.

use percent_encoding::percent_decode_str;
use plan::{Auth, HttpVersion, Plan};
use url::{Position, Url};
use wire::request::{RequestError, RequestHead, Target, Version, basic_authorization};
use workload::Template;

/// Renders one request of a plan. `own`: the fields of its target, each of which takes the place of
/// the plan's with that name. `absolute`: for a plain HTTP proxy.
///
/// # Errors
/// A method, field or URL that would break the message's framing.
pub fn build_template(
    plan: &Plan,
    url: &Url,
    method: &str,
    own: &[(String, String)],
    body: Option<&[u8]>,
    endpoint: u32,
    absolute: bool,
) -> Result<Template, RequestError> {
    let request = &plan.request;
    let authorization = request.auth.as_ref().map(authorization).transpose()?;
    let mut headers = request.headers.clone();
    headers.retain(|(name, _)| !own.iter().any(|(owned, _)| owned.eq_ignore_ascii_case(name)));
    headers.extend_from_slice(own);
    if let Some(proxy) = plan.connection.proxy.as_ref().filter(|_| absolute) {
        headers.extend(proxy_login(proxy)?);
    }
    let target = if absolute {
        Target::Absolute(&url[..Position::AfterQuery])
    } else {
        Target::Origin(&url[Position::BeforePath..Position::AfterQuery])
    };
    let head = RequestHead {
        method,
        target,
        version: version(plan),
        host: &url[Position::BeforeHost..Position::AfterPort],
        headers: &headers,
        user_agent: Some(&request.user_agent),
        accept_encoding: request.compressed.then_some("gzip, deflate, br"),
        authorization: authorization.as_deref(),
        body,
    };
    let rendered = head.render()?;
    let http2 = http2(plan, url, &rendered.last)?;
    Ok(Template {
        endpoint,
        url: url.clone(),
        method: method.to_owned(),
        asked: rendered.asked,
        bytes: rendered.bytes,
        last: rendered.last,
        cookie_at: rendered.cookie_at,
        cookie_at_last: rendered.cookie_at_last,
        http2,
    })
}

/// The same request for HTTP/2, where that is what the plan speaks.
fn http2(plan: &Plan, url: &Url, message: &[u8]) -> Result<Option<http2::Request>, RequestError> {
    if plan.request.version != HttpVersion::Http2 {
        return Ok(None);
    }
    let request = http2::Request::from_http1(message, url.scheme());
    request.map(Some).map_err(|error| RequestError::Http2(error.0))
}

/// A request that the plan gives as bytes.
pub(crate) fn raw_template(url: &Url, method: &str, raw: &[u8], endpoint: u32) -> Template {
    let end = raw.windows(4).position(|at| at == b"\r\n\r\n");
    let cookie_at = end.map_or(raw.len(), |at| at + 2);
    Template {
        endpoint,
        url: url.clone(),
        method: method.to_owned(),
        asked: wire::request::asked(method),
        bytes: raw.to_vec(),
        last: raw.to_vec(),
        cookie_at,
        cookie_at_last: cookie_at,
        // a plan for HTTP/2 has no requests in bytes
        http2: None,
    }
}

/// The CONNECT request that opens a tunnel through a proxy to `authority` (`host:port`).
///
/// # Errors
/// Credentials of the proxy that cannot be sent.
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

/// The field that carries the login in a proxy's URL (RFC 9110 §11.7.2), where there is one.
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
        // the form in which it is written before it is translated
        HttpVersion::Http11 | HttpVersion::Http2 => Version::Http11,
    }
}

fn authorization(auth: &Auth) -> Result<String, RequestError> {
    match auth {
        Auth::Basic { user, password } => basic_authorization(user, password),
        Auth::Bearer(token) => Ok(format!("Bearer {token}")),
    }
}
