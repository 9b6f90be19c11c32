//! HTTP/2 and HTTP/3 requests to a proxy that uses HTTP/1.1 toward its server:
//! `chain/downgrade.toml`,
//! compiled in. HTTP/2 delimits requests and fields by frames, so their bytes may contain HTTP/1.1
//! delimiters. A proxy that writes HTTP/1.1 must validate them (RFC 9113 sections 8.2.1 and 10.3).

use super::arrival::Arrival;
use crate::framing::{self, MessageEnd};
use dialogue::http2::{DATA, END_HEADERS, END_STREAM, HEADERS, write};
use dialogue::http3;
use dialogue::text;
use dialogue::text::Values;
use serde::Deserialize;

const TEXT: &str = include_str!("../../chain/downgrade.toml");

/// The field that reveals a smuggled line.
const SMUGGLED: &str = "x-smuggled";
/// Number of missing content bytes.
const MISSING: usize = 5;
/// The stream of the request.
const STREAM: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DowngradesText {
    request: Vec<Downgrade>,
}

/// One HTTP/2 request. Text uses the language of case files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Downgrade {
    pub(super) name: String,
    pub(super) pair: String,
    #[serde(rename = "ref")]
    pub(super) reference: String,
    #[serde(default = "get")]
    method: String,
    scheme: Option<String>,
    authority: Option<String>,
    path: Option<String>,
    #[serde(default)]
    fields: Vec<(String, String)>,
    /// The fields precede ours, directly after the pseudo-header fields; the path comes last.
    #[serde(default)]
    early: bool,
    #[serde(default)]
    late: bool,
    content: Option<String>,
}

fn get() -> String {
    "GET".to_owned()
}

pub(super) fn read() -> Result<Vec<Downgrade>, String> {
    let read: DowngradesText = toml::from_str(TEXT).map_err(|error| error.to_string())?;
    Ok(read.request)
}

/// Values of the placeholders of a request.
struct DowngradeMarks<'a> {
    values: &'a Values,
    inner: String,
    /// Size of the content, and of the part before the inner request.
    whole: usize,
    before: usize,
}

impl DowngradeMarks<'_> {
    fn bytes(&self, text: &str) -> Result<Vec<u8>, String> {
        let text = text.replace("{N}", &self.whole.to_string());
        let text = text.replace("{M}", &(self.whole + MISSING).to_string());
        let text = text.replace("{K}", &self.before.to_string());
        let (before, after) = text.split_once("{inner}").unwrap_or((&text, ""));
        let mut out = text::bytes(before, self.values)?;
        if text.contains("{inner}") {
            out.extend_from_slice(self.inner.as_bytes());
        }
        out.extend_from_slice(&text::bytes(after, self.values)?);
        Ok(out)
    }
}

impl Downgrade {
    fn marks<'a>(&self, values: &'a Values) -> Result<DowngradeMarks<'a>, String> {
        let (path, host) = (&values.path, &values.host);
        let inner = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{SMUGGLED}: 1\r\n\r\n");
        let mut marks = DowngradeMarks { values, inner, whole: 0, before: 0 };
        let content = self.content.clone().unwrap_or_default();
        let before = content.split_once("{inner}").map_or(content.as_str(), |(before, _)| before);
        marks.before = text::bytes(before, values)?.len();
        marks.whole = marks.bytes(&content)?.len();
        Ok(marks)
    }

    /// Returns the HTTP/2 frames of its stream. `ours`: field lines as in HTTP/1.1.
    pub(super) fn frames(&self, values: &Values, ours: &str) -> Result<Vec<u8>, String> {
        let mut block = Vec::new();
        let content = self.frames_text(values, ours, &mut |name, value| {
            write::field(name, value, &mut block);
        })?;
        let Some(content) = content else {
            return Ok(write::frame(HEADERS, END_HEADERS | END_STREAM, STREAM, &block));
        };
        let mut all = write::frame(HEADERS, END_HEADERS, STREAM, &block);
        all.extend(write::frame(DATA, END_STREAM, STREAM, &content));
        Ok(all)
    }

    /// Returns the same request for HTTP/3, as pieces of its first stream.
    pub(super) fn pieces(&self, values: &Values, ours: &str) -> Result<Vec<u8>, String> {
        let mut section = http3::write::PREFIX.to_vec();
        let content = self.frames_text(values, ours, &mut |name, value| {
            http3::write::field(name, value, &mut section);
        })?;
        let head = http3::write::frame(http3::HEADERS, &section);
        let content = content.map(|content| http3::write::frame(http3::DATA, &content));
        Ok(http3::write::stream_bytes(0, &[head, content.unwrap_or_default()].concat(), true))
    }

    /// Passes each field to `put` in order, and returns the content, if any.
    fn frames_text(
        &self,
        values: &Values,
        ours: &str,
        put: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<Option<Vec<u8>>, String> {
        // the user's fields are already among ours
        let values = &Values { fields: String::new(), ..values.clone() };
        let marks = self.marks(values)?;
        let scheme = if values.scheme.is_empty() { "http" } else { &values.scheme };
        let page = if self.content.is_some() { &values.post } else { &values.path };
        let own = |text: &Option<String>, usual: &str| match text {
            Some(text) => marks.bytes(text),
            None => Ok(usual.as_bytes().to_vec()),
        };
        let (scheme, authority) = (own(&self.scheme, scheme)?, own(&self.authority, &values.host)?);
        let path = own(&self.path, page)?;
        put(b":method", &marks.bytes(&self.method)?);
        put(b":scheme", &scheme);
        if !authority.is_empty() {
            put(b":authority", &authority);
        }
        if !self.late {
            put(b":path", &path);
        }
        if self.early {
            self.put_fields(&marks, put)?;
        }
        for (name, value) in ours.lines().filter_map(|line| line.split_once(':')) {
            put(name.trim().to_ascii_lowercase().as_bytes(), value.trim().as_bytes());
        }
        if !self.early {
            self.put_fields(&marks, put)?;
        }
        if self.late {
            put(b":path", &path);
        }
        self.content.as_ref().map(|content| marks.bytes(content)).transpose()
    }

    fn put_fields(
        &self,
        marks: &DowngradeMarks<'_>,
        put: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), String> {
        for (name, value) in &self.fields {
            put(&marks.bytes(name)?, &marks.bytes(value)?);
        }
        Ok(())
    }

    /// Returns the regular HTTP/1.1 message with its content.
    pub(super) fn plain(&self, values: &Values, ours: &str) -> Result<Vec<u8>, String> {
        let values = &Values { fields: String::new(), ..values.clone() };
        let (host, content) = (&values.host, &self.content);
        let Some(content) = content else {
            let path = &values.path;
            return Ok(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{ours}\r\n").into_bytes());
        };
        let content = self.marks(values)?.bytes(content)?;
        let (path, length) = (&values.post, content.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{ours}Content-Length: {length}\r\n\r\n"
        );
        Ok([head.into_bytes(), content].concat())
    }
}

/// Describes how the arrival differs from one message with the fields of one HTTP/2 request; `None`
/// if it does not, or nothing arrived.
pub fn merge_difference(arrived: &[Arrival]) -> Option<String> {
    let [one] = arrived else {
        return (!arrived.is_empty()).then(|| format!("is {} messages", arrived.len()));
    };
    let bytes = &one.bytes;
    let reading = framing::read(bytes);
    let end = if reading.head == 0 { bytes.len() } else { reading.head };
    let head = &bytes[..end.min(bytes.len())];
    let mut lines = head.split(|byte| *byte == b'\n');
    let words = lines.next().unwrap_or_default().split(|byte| *byte == b' ').count();
    if words != 3 {
        return Some(format!("begins with a request line of {words} words"));
    }
    let smuggled = |line: &[u8]| {
        let name = line.get(..SMUGGLED.len()).unwrap_or_default();
        name.eq_ignore_ascii_case(SMUGGLED.as_bytes())
    };
    if lines.any(smuggled) {
        return Some("has a field that was part of another field".to_owned());
    }
    match reading.end {
        MessageEnd::At(end) if end < bytes.len() => Some(format!(
            "continues after its end, with {} bytes of another request",
            bytes.len() - end
        )),
        // closing the connection cancels the message
        MessageEnd::Later if !one.cut_off => Some("declares more content than it has".to_owned()),
        MessageEnd::At(_) | MessageEnd::Nowhere | MessageEnd::Later => None,
    }
}
