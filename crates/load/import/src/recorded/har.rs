//! HAR 1.2, as browsers and proxies write it.

use crate::recorded::{Recorded, RecordedError, Recording, is_connection_header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::http1::fields;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::io::Read;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use units::Nanos;
use url::Url;

/// Parsed fields of an entry; the response's body, the largest part of a file, is skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarEntry {
    started_date_time: Option<String>,
    request: HarRequest,
    response: Option<HarResponse>,
    #[serde(rename = "_fromCache")]
    from_cache: Option<Json>,
}

/// Fields that show whether the server answered.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarResponse {
    status: Option<Json>,
    #[serde(rename = "_transferSize")]
    transfer_size: Option<Json>,
    from_disk_cache: Option<Json>,
}

impl HarEntry {
    fn unsent(&self) -> Option<&'static str> {
        let response = self.response.as_ref()?;
        har_unsent(&HarAnswer {
            status: response.status.as_ref().and_then(Json::as_u64),
            transferred: response.transfer_size.as_ref().and_then(Json::as_i64),
            from_cache: self.from_cache.as_ref().is_some_and(Json::is_string)
                || response.from_disk_cache.as_ref().and_then(Json::as_bool) == Some(true),
        })
    }
}

/// A response as described by a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct HarAnswer {
    pub status: Option<u64>,
    /// Number of bytes of the response on the wire; a field that browsers add to the format.
    pub transferred: Option<i64>,
    /// The browser states that the response is from its cache.
    pub from_cache: bool,
}

/// Returns why a recorded request did not reach the server, if it did not.
#[must_use]
pub fn har_unsent(answer: &HarAnswer) -> Option<&'static str> {
    let success = answer.status.is_some_and(|status| (200..300).contains(&status));
    if success && (answer.from_cache || answer.transferred == Some(0)) {
        return Some("a response from the browser's cache: the request was not sent");
    }
    (answer.status == Some(0))
        .then_some("a request without a response: the browser blocked or canceled it")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    post_data: Option<HarPostData>,
    body_size: Option<Json>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

/// Body of a request: its text, or the fields of a form.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HarPostData {
    mime_type: Option<String>,
    text: Option<String>,
    encoding: Option<String>,
    params: Option<Vec<HarParam>>,
}

/// Field of a form. Some programs write the members of a JSON object in this way.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarParam {
    name: String,
    value: Option<Json>,
    file_name: Option<String>,
    content_type: Option<String>,
}

impl HarParam {
    fn value(&self) -> Cow<'_, str> {
        match &self.value {
            None | Some(Json::Null) => Cow::Borrowed(""),
            Some(Json::String(text)) => Cow::Borrowed(text),
            Some(other) => Cow::Owned(other.to_string()),
        }
    }
}

/// Reads a file of any length entry by entry: only requests are kept.
///
/// # Errors
/// Fails if the text is not a HAR, its JSON is damaged, or it has more requests than are kept.
pub fn read_har(input: impl Read) -> Result<Recording, RecordedError> {
    let mut read = HarReading { seen: false, recording: Recording::default(), times: Vec::new() };
    let mut json = serde_json::Deserializer::from_reader(input);
    let outcome = HarLevel::Top(&mut read).deserialize(&mut json);
    let outcome = outcome.and_then(|()| json.end());
    outcome.map_err(|error| RecordedError(format!("it is not a HAR: {error}")))?;
    if !read.seen {
        return Err(RecordedError("it is not a HAR: it has no log with entries".to_owned()));
    }
    Ok(read.finish())
}

struct HarReading {
    seen: bool,
    recording: Recording,
    /// Times of the requests since 1970.
    times: Vec<Option<Nanos>>,
}

impl HarReading {
    fn take(&mut self, entry: HarEntry) -> Result<(), RecordedError> {
        let unsent = entry.unsent();
        let HarRequest { method, url, headers, post_data, body_size } = entry.request;
        let url = match Url::parse(&url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
            Ok(url) => {
                let scheme = url.scheme();
                self.recording.leave_out(format!("no request over HTTP ({scheme}:)"));
                return Ok(());
            }
            Err(_) => {
                self.recording.leave_out("no URL");
                return Ok(());
            }
        };
        if let Some(why) = unsent {
            self.recording.leave_out(why);
            return Ok(());
        }
        let mut url = url;
        url.set_fragment(None);
        let length = headers.iter().find(|pair| pair.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|pair| pair.value.parse::<i64>().ok());
        let size = body_size.as_ref().and_then(Json::as_i64);
        let body = match har_body(post_data, length.max(size)) {
            Ok(body) => body,
            Err(why) => {
                self.recording.leave_out(why);
                return Ok(());
            }
        };
        let mut kept = Vec::new();
        for pair in headers.into_iter().filter(|pair| !is_connection_header(&pair.name)) {
            if !can_be_sent(&pair) {
                self.recording.leave_out("a header with an invalid name or value");
                continue;
            }
            let value = pair.value.trim_matches([' ', '\t']);
            // some programs write a field both as the page set it and as it was sent
            let is_known = |(name, known): &(String, String)| {
                name.eq_ignore_ascii_case(&pair.name) && known == value
            };
            if !kept.iter().any(is_known) {
                kept.push((pair.name.clone(), value.to_owned()));
            }
        }
        let at = entry.started_date_time.as_deref().and_then(instant);
        self.recording.push(Recorded { at: Nanos::ZERO, method, url, headers: kept, body })?;
        self.times.push(at);
        Ok(())
    }

    /// Sorts the requests by time; a request without a time stays after its predecessor.
    fn finish(mut self) -> Recording {
        let start = self.times.iter().flatten().min().copied().unwrap_or_default();
        let mut last = start;
        for (request, at) in self.recording.requests.iter_mut().zip(&self.times) {
            last = at.unwrap_or(last);
            request.at = Nanos(last.0 - start.0);
        }
        self.recording.requests.sort_by_key(|request| request.at);
        self.recording
    }
}

/// Returns whether a header is valid in HTTP (RFC 9110 section 5).
fn can_be_sent(header: &Pair) -> bool {
    let is_value = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    fields::is_token(header.name.as_bytes()) && header.value.bytes().all(is_value)
}

fn instant(text: &str) -> Option<Nanos> {
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from(at.unix_timestamp_nanos()).ok().map(Nanos)
}

/// Returns the body of a request. `length`: its size as the headers state it.
///
/// # Errors
/// Fails with the reason if all or a part of the body is missing from the recording.
pub fn har_body(
    data: Option<HarPostData>,
    length: Option<i64>,
) -> Result<Option<Vec<u8>>, &'static str> {
    let body = data.map(HarPostData::content).transpose()?.flatten();
    if body.is_none() && length.is_some_and(|length| length > 0) {
        return Err("a body that is not in the file: browsers omit uploads, and loadstone record \
                    keeps them");
    }
    Ok(body)
}

impl HarPostData {
    fn content(self) -> Result<Option<Vec<u8>>, &'static str> {
        let base64 = self.encoding.as_deref() == Some("base64");
        let params = self.params.as_deref().unwrap_or_default();
        let media_type = self
            .mime_type
            .as_deref()
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let media_type = media_type.to_ascii_lowercase();
        match self.text.as_ref().filter(|text| !text.is_empty()) {
            Some(text) if base64 => {
                STANDARD.decode(text).map(Some).map_err(|_| "a body with invalid base64")
            }
            Some(text) => Ok(Some(text.clone().into_bytes())),
            None if params.is_empty() => Ok(None),
            None if media_type == "application/x-www-form-urlencoded" => {
                let mut form = url::form_urlencoded::Serializer::new(String::new());
                form.extend_pairs(params.iter().map(|pair| (&pair.name, pair.value())));
                Ok(Some(form.finish().into_bytes()))
            }
            None if media_type == "multipart/form-data" => self.multipart(params).map(Some),
            None if media_type == "application/json" || media_type.ends_with("+json") => {
                let quoted = |name: &str| Json::from(name).to_string();
                let member = |pair: &HarParam| {
                    format!("{}:{}", quoted(&pair.name), pair.value.as_ref().unwrap_or(&Json::Null))
                };
                let members: Vec<String> = params.iter().map(member).collect();
                Ok(Some(format!("{{{}}}", members.join(",")).into_bytes()))
            }
            None => Err("a form whose bytes are not in the file"),
        }
    }

    /// Returns the fields as `multipart/form-data` (RFC 7578) with the recorded boundary.
    fn multipart(&self, params: &[HarParam]) -> Result<Vec<u8>, &'static str> {
        let media_type = self.mime_type.as_deref().unwrap_or_default();
        let boundary = boundary(media_type).ok_or("a form whose bytes are not in the file")?;
        let mut body = String::new();
        let quoted =
            |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        for pair in params {
            body += &format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
                quoted(&pair.name)
            );
            if let Some(file) = &pair.file_name {
                if pair.value.is_none() {
                    return Err("an upload whose file is not in the recording");
                }
                body += &format!("; filename=\"{}\"", quoted(file));
            }
            if let Some(media_type) =
                pair.content_type.as_ref().filter(|text| !text.contains(['\r', '\n']))
            {
                body += &format!("\r\nContent-Type: {media_type}");
            }
            body += &format!("\r\n\r\n{}\r\n", pair.value());
        }
        body += &format!("--{boundary}--\r\n");
        Ok(body.into_bytes())
    }
}

/// Returns whether a request with this header field loads a page into a browser.
#[must_use]
pub fn is_page_header(name: &str, value: &str) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    (is("accept") && value.starts_with("text/html"))
        || (is("sec-fetch-dest") && value == "document")
}

/// Returns the boundary that a media type of a multipart body names (RFC 2046 section 5.1.1).
#[must_use]
pub fn boundary(media_type: &str) -> Option<&str> {
    let is_boundary = |name: &str| name.trim().eq_ignore_ascii_case("boundary");
    let parameters = media_type.split(';').skip(1).filter_map(|one| one.split_once('='));
    let (_, value) = parameters.into_iter().find(|(name, _)| is_boundary(name))?;
    let value = value.trim().trim_matches('"');
    (!value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '))
        .then_some(value)
}

/// Position in the document.
enum HarLevel<'a> {
    Top(&'a mut HarReading),
    Log(&'a mut HarReading),
    Entries(&'a mut HarReading),
}

impl<'de> DeserializeSeed<'de> for HarLevel<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self {
            HarLevel::Entries(_) => deserializer.deserialize_seq(self),
            HarLevel::Top(_) | HarLevel::Log(_) => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for HarLevel<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HarLevel::Top(_) => "an object with a log",
            HarLevel::Log(_) => "a log with entries",
            HarLevel::Entries(_) => "a list of entries",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (key, read) = match self {
            HarLevel::Top(read) => ("log", read),
            HarLevel::Log(read) | HarLevel::Entries(read) => ("entries", read),
        };
        while let Some(found) = map.next_key::<Cow<'de, str>>()? {
            if found != key {
                map.next_value::<IgnoredAny>()?;
            } else if key == "log" {
                map.next_value_seed(HarLevel::Log(read))?;
            } else {
                map.next_value_seed(HarLevel::Entries(read))?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let HarLevel::Entries(read) = self else { return Err(de::Error::custom("a list")) };
        read.seen = true;
        while let Some(entry) = seq.next_element::<HarEntry>()? {
            read.take(entry).map_err(de::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWO: &str = r#"{"log":{"version":"1.2","pages":[],"entries":[
        {"startedDateTime":"2026-11-24T10:00:01.500+01:00","time":3,"request":{"method":"POST",
         "url":"https://h/api#top","headers":[{"name":":authority","value":"h"},
         {"name":"Content-Type","value":"application/json"},{"name":"Content-Length","value":"2"}],
         "postData":{"mimeType":"application/json","text":"{}"}},
         "response":{"status":200,"content":{"text":"long"}}},
        {"startedDateTime":"2026-11-24T09:00:01Z","request":{"method":"GET","url":"http://h/a?b=c"}},
        {"request":{"method":"GET","url":"data:text/plain,x"}}]}}"#;

    fn post(data: &str) -> String {
        format!(
            r#"{{"log":{{"entries":[{{"request":{{"method":"POST","url":"http://h/","postData":{data}}}}}]}}}}"#
        )
    }

    #[test]
    fn requests_are_read_in_the_order_of_their_times() {
        let recording = read_har(TWO.as_bytes()).unwrap();
        let text: Vec<String> = recording
            .requests
            .iter()
            .map(|one| format!("{} {} {} {:?}", one.at.0, one.method, one.url, one.headers))
            .collect();
        assert_eq!(
            text,
            [
                "0 GET http://h/a?b=c []",
                "500000000 POST https://h/api [(\"Content-Type\", \"application/json\")]"
            ]
        );
        assert_eq!(recording.requests[1].body.as_deref(), Some(&b"{}"[..]));
        assert_eq!(recording.left_out["no request over HTTP (data:)"], 1);
    }

    #[test]
    fn bodies_are_text_base64_or_forms() {
        let body = |data: &str| read_har(post(data).as_bytes()).unwrap().requests[0].body.clone();
        let form = r#"{"mimeType":"application/x-www-form-urlencoded",
            "params":[{"name":"a b","value":"c&d"},{"name":"e"}]}"#;
        assert_eq!(body(form).unwrap(), b"a+b=c%26d&e=");
        assert_eq!(body(r#"{"text":"aGk=","encoding":"base64"}"#).unwrap(), b"hi");
        assert_eq!(body(r#"{"mimeType":"x"}"#), None);
        for (data, why) in [
            (r#"{"text":"%","encoding":"base64"}"#, "a body with invalid base64"),
            (
                r#"{"mimeType":"multipart/form-data","params":[{"name":"a"}]}"#,
                "a form whose bytes are not in the file",
            ),
            (
                r#"{"mimeType":"multipart/form-data; boundary=x","params":[{"name":"a","fileName":"f"}]}"#,
                "an upload whose file is not in the recording",
            ),
        ] {
            let recording = read_har(post(data).as_bytes()).unwrap();
            assert_eq!((recording.requests.len(), recording.left_out[why]), (0, 1));
        }
    }

    #[test]
    fn forms_without_their_text_are_built_from_their_fields() {
        let body = |data: &str| {
            let recording = read_har(post(data).as_bytes()).unwrap();
            String::from_utf8(recording.requests[0].body.clone().unwrap()).unwrap()
        };
        let json = r#"{"mimeType":"application/json; charset=utf-8","params":[
            {"name":"a","value":1},{"name":"b \"c","value":{"d":["x",null]}},{"name":"e"}]}"#;
        assert_eq!(body(json), r#"{"a":1,"b \"c":{"d":["x",null]},"e":null}"#);
        let parts = r#"{"mimeType":"multipart/form-data; boundary=\"x y\"","params":[
            {"name":"a","value":"1"},
            {"name":"f","value":"hi","fileName":"a\"b.txt","contentType":"text/plain"}]}"#;
        assert_eq!(
            body(parts),
            "--x y\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x y\r\n\
             Content-Disposition: form-data; name=\"f\"; filename=\"a%22b.txt\"\r\n\
             Content-Type: text/plain\r\n\r\nhi\r\n--x y--\r\n"
        );
    }

    #[test]
    fn unsent_requests_and_those_without_their_body_are_omitted() {
        let entry = |request: &str, rest: &str| {
            format!(r#"{{"request":{{"method":"POST","url":"http://h/"{request}}}{rest}}}"#)
        };
        let all = [
            entry("", r#","response":{"status":200,"_transferSize":0}"#),
            entry("", r#","response":{"status":200},"_fromCache":"memory""#),
            entry("", r#","response":{"status":200,"fromDiskCache":true}"#),
            entry("", r#","response":{"status":0,"_transferSize":0}"#),
            entry(r#","headers":[{"name":"content-length","value":"9"}]"#, ""),
            entry(r#","bodySize":9,"headers":[{"name":"a","value":"b"}]"#, ""),
            entry(r#","bodySize":-1"#, r#","response":{"status":304,"_transferSize":0}"#),
            entry("", r#","response":{"status":"?","_transferSize":-1},"_fromCache":null"#),
        ];
        let text = format!(r#"{{"log":{{"entries":[{}]}}}}"#, all.join(","));
        let recording = read_har(text.as_bytes()).unwrap();
        let counts: Vec<u64> = recording.left_out.values().copied().collect();
        assert_eq!((recording.requests.len(), counts), (2, vec![2, 1, 3]), "{recording:?}");
    }

    #[test]
    fn headers_that_cannot_be_sent_are_left_out() {
        let text = r#"{"log":{"entries":[{"request":{"method":"GET","url":"http://h/","headers":[
            {"name":"Accept;q=1","value":"a"},{"name":"X-A","value":"b\r\nC: d"},{"name":"","value":"x"},
            {"name":"X-Ok","value":" é\tß "},{"name":"x-ok","value":"é\tß"}]}}]}}"#;
        let recording = read_har(text.as_bytes()).unwrap();
        assert_eq!(recording.requests[0].headers, [("X-Ok".to_owned(), "é\tß".to_owned())]);
        assert_eq!(recording.left_out["a header with an invalid name or value"], 3);
    }

    #[test]
    fn an_invalid_har_is_reported() {
        for (text, why) in [
            ("", "EOF while parsing"),
            ("[]", "expected an object with a log"),
            ("{}", "it has no log with entries"),
            (r#"{"log":{}}"#, "it has no log with entries"),
            (r#"{"log":{"entries":[{}]}}"#, "missing field `request`"),
            (r#"{"log":{"entries":[]}} x"#, "trailing characters"),
        ] {
            let error = read_har(text.as_bytes()).unwrap_err().0;
            assert!(error.starts_with("it is not a HAR") && error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_file_is_an_error(cut in 0..TWO.len()) {
            let cut = TWO.floor_char_boundary(cut);
            prop_assert!(read_har(&TWO.as_bytes()[..cut]).is_err());
        }
    }
}
