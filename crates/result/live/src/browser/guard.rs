//! Access control: every request is checked here before it reaches a page.

use crate::browser::refusal::HttpRefusal;
use crate::browser::token::Token;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use url::form_urlencoded;

/// The cookie that holds the token after a browser has presented it.
const COOKIE: &str = "loadstone-ui";

/// Policy of our own pages: only our own files, and no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; frame-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// Policy of a result's own page, which is shown in a frame: its script and style are inline and
/// restricted by its own policy; it has no origin, so it cannot send requests to this server.
pub(crate) const REPORT_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
     frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox allow-scripts";

/// Properties of the guarded server.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Token required from every client; `None` on loopback.
    pub(crate) token: Option<Token>,
    pub(crate) port: u16,
}

/// Decision about a request.
#[derive(Clone, Debug)]
pub(crate) enum Ruling {
    Pass,
    /// The token was in the query: it moves to a cookie, and out of the address.
    Cookie {
        value: String,
        to: String,
    },
    Refuse(HttpRefusal),
}

impl Guard {
    pub(crate) fn rule(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Ruling {
        let Some(host) = one(headers, &header::HOST) else {
            return refuse(StatusCode::BAD_REQUEST, "the request names no host, or two");
        };
        if self.token.is_none() && !self.is_loopback(host) {
            // a name that resolves here could belong to a foreign page (DNS rebinding)
            let text = format!(
                "this server answers to 127.0.0.1, [::1] and localhost only: open \
                 http://127.0.0.1:{}/",
                self.port
            );
            return refuse(StatusCode::MISDIRECTED_REQUEST, &text);
        }
        if !matches!(*method, Method::GET | Method::HEAD) && !same_origin(host, headers) {
            return refuse(
                StatusCode::FORBIDDEN,
                "only this server's own pages may change something (the Origin is another)",
            );
        }
        match &self.token {
            Some(token) => known(token, uri, headers),
            None => Ruling::Pass,
        }
    }

    fn is_loopback(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = ["127.0.0.1", "[::1]", "localhost"].contains(&authority.host());
        name && authority.port_u16().unwrap_or(80) == self.port && !host.contains('@')
    }
}

fn refuse(status: StatusCode, text: &str) -> Ruling {
    Ruling::Refuse(HttpRefusal::new(status, text))
}

/// Returns the only value of a header.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let only = values.next()?;
    if values.next().is_some() { None } else { only.to_str().ok() }
}

/// Returns whether one of this server's pages sent the request: the browser reports it, and no
/// script can forge it (Fetch standard, "Origin" and "Sec-Fetch-Site").
fn same_origin(host: &str, headers: &HeaderMap) -> bool {
    let origin = one(headers, &header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    origin == Some(host) && site.is_none_or(|site| site == b"same-origin")
}

/// Checks the token of a request: in the cookie, or in the query of a typed address.
fn known(token: &Token, uri: &Uri, headers: &HeaderMap) -> Ruling {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|value| value.split(';')).filter_map(|c| c.trim().split_once('='));
    if pairs.any(|(name, value)| name == COOKIE && token.is(value)) {
        return Ruling::Pass;
    }
    let query = uri.query().unwrap_or("");
    let given = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token");
    if given.is_some_and(|(_, value)| token.is(&value)) {
        let value = format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", token.as_str());
        return Ruling::Cookie { value, to: uri.path().to_owned() };
    }
    refuse(
        StatusCode::UNAUTHORIZED,
        "this address needs its token: open the one that loadstone ui printed",
    )
}

/// Returns the guard around all routes, with the headers of every response.
pub(crate) async fn around(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let ruling = guard.rule(request.method(), request.uri(), request.headers());
    let mut response = match ruling {
        Ruling::Pass => next.run(request).await,
        Ruling::Refuse(refusal) => refusal.into_response(),
        Ruling::Cookie { value, to } => {
            let target = [(header::LOCATION, to), (header::SET_COOKIE, value)];
            (StatusCode::SEE_OTHER, target).into_response()
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        // a result's page has a policy of its own
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
