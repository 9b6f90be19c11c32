//! Exchanges as an HTTP Archive, version 1.2.

use crate::{RecordedExchange, RecordedResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::UNIX_EPOCH;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Returns the text of a HAR file.
pub fn to_har(exchanges: &[RecordedExchange], version: &str) -> String {
    let entries: Vec<Value> = exchanges.iter().map(entry).collect();
    let har = json!({"log": {
        "version": "1.2",
        "creator": {"name": "loadstone", "version": version},
        "entries": entries,
    }});
    format!("{har:#}\n")
}

fn entry(exchange: &RecordedExchange) -> Value {
    let since = exchange.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = OffsetDateTime::from_unix_timestamp_nanos(since.as_nanos() as i128).ok();
    let at = at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default();
    let query = exchange.url.query_pairs().map(|(name, value)| pair(&name, &value));
    let mut request = json!({
        "method": exchange.method,
        "url": exchange.url.as_str(),
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": pairs(&exchange.headers),
        "queryString": query.collect::<Vec<_>>(),
        "headersSize": -1,
        "bodySize": exchange.body.len(),
    });
    if !exchange.body.is_empty() {
        let mut data = content(&exchange.body);
        data["mimeType"] = field(&exchange.headers, "content-type").into();
        request["postData"] = data;
    }
    json!({
        "startedDateTime": at,
        "time": exchange.took_ms,
        "request": request,
        "response": response(exchange.response.as_ref()),
        "cache": {},
        "timings": {"send": 0, "wait": exchange.took_ms, "receive": 0},
    })
}

fn response(response: Option<&RecordedResponse>) -> Value {
    let empty = RecordedResponse::default();
    let response = response.unwrap_or(&empty);
    let mut body = content(&response.body);
    body["size"] = response.body.len().into();
    body["mimeType"] = field(&response.headers, "content-type").into();
    json!({
        "status": response.status,
        "statusText": response.reason,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": pairs(&response.headers),
        "content": body,
        "redirectURL": field(&response.headers, "location"),
        "headersSize": -1,
        "bodySize": response.body.len(),
    })
}

/// Returns a body as text, or in Base64 if it is not text.
fn content(body: &[u8]) -> Value {
    match std::str::from_utf8(body) {
        Ok(text) => json!({"text": text}),
        Err(_) => json!({"text": STANDARD.encode(body), "encoding": "base64"}),
    }
}

fn field<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
    let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value)
}

fn pair(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

fn pairs(all: &[(String, String)]) -> Vec<Value> {
    all.iter().map(|(name, value)| pair(name, value)).collect()
}
