//! The bytes that siege sends.

use super::address::Address;
use super::config::Config;
use workload::Template;

/// Content of a request in addition to the configuration's.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtraFields {
    pub(super) authorization: Option<String>,
    pub(super) proxy_authorization: Option<String>,
    pub(super) cookie: Option<String>,
    /// Whole lines that revalidate the user's cached response.
    pub(super) conditions: String,
}

/// Returns the request's target: the whole URL with its port for a proxy.
pub(super) fn target(config: &Config, address: &Address) -> String {
    let url = &address.url;
    if config.proxy_host.is_some() && url.scheme() == "http" {
        let port = url.port_or_known_default().unwrap_or(80);
        return format!("http://{}:{port}{}", address.host(), address.request);
    }
    address.request.clone()
}

/// Returns the whole request.
pub(super) fn text(config: &Config, address: &Address, fields: &ExtraFields) -> Vec<u8> {
    let old = !config.http11 || config.get || config.print;
    let version = if old { "HTTP/1.0" } else { "HTTP/1.1" };
    let mut out = format!("{} {} {version}\r\n", address.method, target(config, address));
    let given = config.headers.to_ascii_lowercase();
    if !given.contains("host:") {
        put!(out, "Host: {}\r\n", address.authority);
    }
    if let Some(value) = &fields.authorization {
        put!(out, "Authorization: {value}\r\n");
    }
    if let Some(value) = &fields.proxy_authorization {
        put!(out, "Proxy-Authorization: {value}\r\n");
    }
    if let Some(value) = &fields.cookie {
        put!(out, "Cookie: {value}\r\n");
    }
    if address.body.is_none() {
        out.push_str(&fields.conditions);
    }
    if !given.starts_with("accept:") {
        out.push_str("Accept: */*\r\n");
    }
    if !(config.get && config.print) {
        put!(out, "Accept-Encoding: {}\r\n", config.accept_encoding);
    }
    put!(out, "User-Agent: {}\r\n", config.user_agent);
    out.push_str(&config.headers);
    put!(out, "Connection: {}\r\n", if config.keep_alive { "keep-alive" } else { "close" });
    let Some(body) = &address.body else {
        out.push_str("\r\n");
        return out.into_bytes();
    };
    put!(out, "Content-Type: {}\r\n", body.content_type);
    put!(out, "Content-Length: {}\r\n\r\n", body.bytes.len());
    [out.as_bytes(), &body.bytes].concat()
}

pub(super) fn template(address: &Address, bytes: Vec<u8>) -> Template {
    Template {
        cookie_at: bytes.len(),
        cookie_at_last: bytes.len(),
        last: bytes.clone(),
        bytes,
        ..Template::new(address.url.clone(), address.method)
    }
}
