//! HAR 1.2, as browsers and proxies write it.

use crate::recorded::{Recorded, RecordedError, Recording, is_ours};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::http1::fields;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
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
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: String,
    text: Option<String>,
    encoding: Option<String>,
    #[serde(default)]
    params: Vec<Pair>,
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
        let HarRequest { method, url, headers, post_data } = entry.request;
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
        let mut url = url;
        url.set_fragment(None);
        let body = match post_data.map(content).transpose() {
            Ok(body) => body.flatten(),
            Err(why) => {
                self.recording.leave_out(why);
                return Ok(());
            }
        };
        let mut kept = Vec::new();
        for pair in headers.into_iter().filter(|pair| !is_ours(&pair.name)) {
            match can_be_sent(&pair) {
                true => kept.push((pair.name, pair.value.trim_matches([' ', '\t']).to_owned())),
                false => self.recording.leave_out("a header with an invalid name or value"),
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

fn content(data: PostData) -> Result<Option<Vec<u8>>, String> {
    let base64 = data.encoding.as_deref() == Some("base64");
    match data.text.filter(|text| !text.is_empty()) {
        Some(text) if base64 => {
            let content = STANDARD.decode(text);
            content.map(Some).map_err(|_| "a body in base64 that is damaged".to_owned())
        }
        Some(text) => Ok(Some(text.into_bytes())),
        None if data.params.is_empty() => Ok(None),
        None if data.mime_type.starts_with("application/x-www-form-urlencoded") => {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            form.extend_pairs(data.params.iter().map(|pair| (&pair.name, &pair.value)));
            Ok(Some(form.finish().into_bytes()))
        }
        None => Err("a form whose bytes are not in the file".to_owned()),
    }
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
            (r#"{"text":"%","encoding":"base64"}"#, "a body in base64 that is damaged"),
            (
                r#"{"mimeType":"multipart/form-data","params":[{"name":"a"}]}"#,
                "a form whose bytes are not in the file",
            ),
        ] {
            let recording = read_har(post(data).as_bytes()).unwrap();
            assert_eq!((recording.requests.len(), recording.left_out[why]), (0, 1));
        }
    }

    #[test]
    fn headers_that_cannot_be_sent_are_left_out() {
        let text = r#"{"log":{"entries":[{"request":{"method":"GET","url":"http://h/","headers":[
            {"name":"Accept;q=1","value":"a"},{"name":"X-A","value":"b\r\nC: d"},{"name":"","value":"x"},
            {"name":"X-Ok","value":" é\tß "}]}}]}}"#;
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
