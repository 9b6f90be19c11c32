//! Redirects: their targets, and the request that is sent there (RFC 9110 section 15.4).
//!
//! Credentials stay with the server that they were given for. A redirect to another scheme, host or port
//! drops them for the rest of the call, unless the plan trusts that host.

use crate::render::{Own, build_own};
use plan::Plan;
use protocol::http1::fields;
use protocol::http1::request::RequestError;
use url::Url;
use workload::{Stripped, Template};

/// A redirect that is followed.
#[derive(Clone, Copy, Debug)]
pub struct Redirect<'a> {
    /// The request that is redirected.
    pub from: &'a Template,
    /// URL in the form of [`location`].
    pub url: &'a Url,
    /// As returned by [`redirect_method`].
    pub method: &'a str,
    /// Header fields of the target, as for [`build_template`](crate::build_template).
    pub headers: &'a [(String, String)],
    /// Sent only if the method stays the same.
    pub body: Option<&'a [u8]>,
    pub endpoint: u32,
    /// The request carries the absolute URL, for a plain HTTP proxy.
    pub absolute: bool,
}

impl Redirect<'_> {
    /// Renders the request.
    ///
    /// # Errors
    /// Fails like [`build_template`](crate::build_template).
    pub fn build(&self, plan: &Plan) -> Result<Template, RequestError> {
        let before = self.from.stripped;
        let stripped = Stripped {
            credentials: before.credentials || !keeps_credentials(plan, self.from.url(), self.url),
            content: before.content || *self.method != *self.from.method,
        };
        let own = Own {
            target: &self.url[url::Position::BeforePath..url::Position::AfterQuery],
            headers: self.headers,
            authorization: None,
            body: self.body.filter(|_| !stripped.content),
            stripped,
        };
        build_own(plan, self.url, self.method, &own, self.endpoint, self.absolute)
    }
}

/// Returns the header fields of a request, without those that the plan adds to every request.
pub(crate) fn own_fields(plan: &Plan, template: &Template) -> Vec<(String, String)> {
    let request = &plan.request;
    let url = template.url();
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let by_itself = |name: &str, value: &str| match name.to_ascii_lowercase().as_str() {
        "host" => value == host,
        "user-agent" => value == request.user_agent,
        "accept-encoding" => request.compressed && value == protocol::http1::coding::ACCEPTED,
        "priority" => request.priority.is_some_and(|priority| value == priority.to_string()),
        "connection" => value == "keep-alive",
        "proxy-authorization" => plan.connection.proxy.is_some(),
        "content-length" => true,
        _ => false,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = fields::fields(&template.bytes).map(|(name, value)| (text(name), text(value)));
    fields.filter(|(name, value)| !by_itself(name, value)).collect()
}

/// Returns the URL of a Location field. A login in the URL is ignored. Bytes that are not UTF-8 are
/// percent-encoded, as in browsers. `None` if the value is not a URL.
pub fn location(from: &Url, value: &[u8]) -> Option<Url> {
    let mut url = match std::str::from_utf8(value) {
        Ok(text) => from.join(text).ok()?,
        Err(_) => {
            let escape = |byte: &u8| match byte {
                0x80.. => format!("%{byte:02X}"),
                ascii => char::from(*ascii).to_string(),
            };
            from.join(&value.iter().map(escape).collect::<String>()).ok()?
        }
    };
    if !url.username().is_empty() || url.password().is_some() {
        url.set_username("").and_then(|()| url.set_password(None)).ok()?;
    }
    Some(url)
}

/// Returns the method after a redirect (RFC 9110 §15.4): 303 always becomes GET, 301 and 302 turn a
/// POST into GET as in every browser, 307 and 308 repeat it unchanged. `None` for no redirect.
pub fn redirect_method(status: u16, method: &str) -> Option<&str> {
    match status {
        303 if method == "HEAD" => Some("HEAD"),
        303 => Some("GET"),
        301 | 302 if method == "POST" => Some("GET"),
        301 | 302 | 307 | 308 => Some(method),
        _ => None,
    }
}

/// Returns whether the credentials for `from` may be sent to `to`. A trusted host gets them on any
/// port, but not in cleartext after TLS.
fn keeps_credentials(plan: &Plan, from: &Url, to: &Url) -> bool {
    let place = |url: &Url| url.port_or_known_default();
    let same_host = from.host_str() == to.host_str();
    if same_host && from.scheme() == to.scheme() && place(from) == place(to) {
        return true;
    }
    let downgraded = from.scheme() == "https" && to.scheme() != "https";
    let trusted = plan.request.follow_auth.iter().any(|host| Some(&**host) == to.host_str());
    trusted && !downgraded
}

#[cfg(test)]
mod tests;
