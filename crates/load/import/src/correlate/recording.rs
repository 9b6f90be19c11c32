//! Exchanges of a HAR file, and the places of a request where a value may differ.

use super::replace_parts;
use crate::draft::{Body, DraftStep, LeftOutList};
use crate::recorded::{HarAnswer, HarPostData, boundary, har_body, har_unsent, is_page_header};
use crate::text::Text;
use crate::tree::{TreeNode, Value, parse_json};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use url::{Origin, Url};

/// Maximum number of exchanges of a recording, and of places of a request.
const EXCHANGES_MAX: usize = 5_000;
const SLOTS_MAX: usize = 500;

/// Request with its response.
#[derive(Clone, Debug)]
pub(super) struct RecordedExchange {
    pub(super) line: usize,
    pub(super) method: String,
    pub(super) url: Url,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<String>,
    /// Start in nanoseconds since 1970, and duration.
    pub(super) at: u64,
    pub(super) took: u64,
    /// Zero if unknown.
    pub(super) status: u64,
    pub(super) response_headers: Vec<(String, String)>,
    pub(super) response_body: String,
}

/// Part of a request with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slot {
    /// `path segment 2`, `query id`, `header X`, `body /a/b`.
    pub(super) place: String,
    pub(super) value: String,
    pub(super) kind: SlotKind,
    /// Range of the value in the URL or the body.
    range: std::ops::Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SlotKind {
    Url,
    Header,
    Body,
    /// Contents of a string in a JSON body.
    Json,
    /// Value of a form in its encoding (`application/x-www-form-urlencoded`).
    Form,
}

/// Header fields whose values are credentials.
const LOGINS: [&str; 2] = ["authorization", "proxy-authorization"];

impl Slot {
    /// Returns whether it has credentials.
    pub(super) fn is_login(&self) -> bool {
        let header = self.place.strip_prefix("header ").unwrap_or_default();
        self.kind == SlotKind::Header && LOGINS.iter().any(|it| it.eq_ignore_ascii_case(header))
    }

    pub(super) fn header(name: &str, value: &str) -> Slot {
        Slot {
            place: format!("header {name}"),
            value: value.to_owned(),
            kind: SlotKind::Header,
            range: 0..value.len(),
        }
    }

    /// Returns the value without the encoding of its place.
    pub(super) fn decoded(&self) -> Option<String> {
        match self.kind {
            SlotKind::Form => form_decoded(&self.value),
            // a query is a form in practice
            SlotKind::Url if self.place.starts_with("query ") => form_decoded(&self.value),
            SlotKind::Url => {
                percent_decode_str(&self.value).decode_utf8().ok().map(|text| text.into_owned())
            }
            SlotKind::Header | SlotKind::Body | SlotKind::Json => Some(self.value.clone()),
        }
    }

    /// Returns whether it is the media type of a multipart body. The boundary of such a body
    /// differs between recordings.
    pub(super) fn has_boundary(&self) -> bool {
        self.place.eq_ignore_ascii_case("header content-type") && boundary(&self.value).is_some()
    }

    /// Returns the last word of the description.
    pub(super) fn name(&self) -> String {
        let last = self.place.rsplit(['/', ' ']).next().unwrap_or_default();
        if last.chars().all(|c| c.is_ascii_digit()) { "id".to_owned() } else { last.to_owned() }
    }
}

/// Fields of a request that depend on the cache of the browser.
const VALIDATORS: [&str; 3] = ["if-none-match", "if-modified-since", "if-range"];

/// Header fields that browsers add, or that the user's cookie jar sends.
const SKIPPED: [&str; 13] = [
    "cookie",
    "user-agent",
    "referer",
    "origin",
    "sec-fetch-site",
    "if-none-match",
    "if-modified-since",
    "if-range",
    "date",
    "accept-encoding",
    "connection",
    "content-length",
    "host",
];

/// Exchanges of a recording in chronological order, and the list of omitted requests.
#[derive(Debug, Default)]
pub(super) struct RecordedVisit {
    pub(super) exchanges: Vec<RecordedExchange>,
    pub(super) left_out: LeftOutList,
}

pub(super) fn read_visit(text: &str) -> Result<RecordedVisit, String> {
    let root = parse_json(text.trim_start_matches('\u{feff}'))
        .map_err(|why| format!("it is not a HAR: {why}"))?;
    let entries =
        root.at(&["log", "entries"]).ok_or("it is not a HAR: it has no log with entries")?;
    let mut visit = RecordedVisit::default();
    let site = site_of(entries.list());
    let mut others: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for entry in entries.list() {
        let Some(url) = request_url(entry) else { continue };
        // a page sends requests to other servers too
        if site.as_ref().is_some_and(|site| *site != url.origin()) {
            let host = url.host_str().unwrap_or_default().to_owned();
            others.entry(host).or_insert((entry.line, 0)).1 += 1;
            continue;
        }
        match exchange(entry, url.clone()) {
            Ok(exchange) => visit.exchanges.push(exchange),
            Err(why) => {
                let request = entry.get("request").map(|it| it.text_at("method"));
                let what = format!("{} {}", request.unwrap_or_default(), url.path());
                visit.left_out.add(entry.line, what, why);
            }
        }
        if visit.exchanges.len() > EXCHANGES_MAX {
            return Err(format!("it has more than {EXCHANGES_MAX} requests; shorten it"));
        }
    }
    if visit.exchanges.is_empty() {
        return Err("it has no request over HTTP".to_owned());
    }
    for (host, (line, count)) in others {
        let what = format!("requests to {host} ({count})");
        visit.left_out.add(
            line,
            what,
            "only requests to the server of the first page are imported",
        );
    }
    visit.exchanges.sort_by_key(|exchange| exchange.at);
    Ok(visit)
}

/// Returns the server of the visit: that of the first page, because browsers also send requests of
/// their own (for updates), or that of the first request.
fn site_of(entries: &[TreeNode]) -> Option<Origin> {
    let is_page = |entry: &&TreeNode| {
        let headers = header_fields(entry.get("request"));
        let status = whole(entry.at(&["response", "status"]));
        status != Some(0) && headers.iter().any(|(name, value)| is_page_header(name, value))
    };
    let page = entries.iter().filter(is_page).find_map(request_url);
    page.or_else(|| entries.iter().find_map(request_url)).map(|url| url.origin())
}

/// Returns the URL of a request over HTTP.
fn request_url(entry: &TreeNode) -> Option<Url> {
    let url = Url::parse(entry.get("request")?.text_at("url")).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// Returns header fields, without those that some programs write twice: as a page set them and as
/// they were sent.
fn header_fields(node: Option<&TreeNode>) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for field in node.map(|node| node.list_at("headers")).unwrap_or_default() {
        let (name, value) = (field.text_at("name"), field.text_at("value"));
        let is_known =
            |(known, other): &(String, String)| known.eq_ignore_ascii_case(name) && other == value;
        if !fields.iter().any(is_known) {
            fields.push((name.to_owned(), value.to_owned()));
        }
    }
    fields
}

fn whole(node: Option<&TreeNode>) -> Option<i64> {
    node.and_then(TreeNode::number).map(|number| number as i64)
}

/// Returns the exchange of an entry, or why it cannot be repeated.
fn exchange(entry: &TreeNode, url: Url) -> Result<RecordedExchange, &'static str> {
    let request = entry.get("request").ok_or("it has no request")?;
    let response = entry.get("response");
    let status = whole(response.and_then(|it| it.get("status")));
    let unsent = har_unsent(&HarAnswer {
        status: status.and_then(|status| u64::try_from(status).ok()),
        transferred: whole(response.and_then(|it| it.get("_transferSize"))),
        from_cache: entry.get("_fromCache").is_some_and(|it| it.text().is_some())
            || response.and_then(|it| it.get("fromDiskCache")).is_some_and(TreeNode::is_true),
    });
    if let Some(why) = unsent {
        return Err(why);
    }
    let headers = header_fields(Some(request));
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.parse().ok());
    let data = request.get("postData").filter(|data| data.value != Value::Null);
    let data = data.map(|data| serde_json::from_str::<HarPostData>(&data.json())).transpose();
    let data = data.map_err(|_| "its body is damaged")?;
    let body = har_body(data, length.max(whole(request.get("bodySize"))))?;
    let body = body.map(String::from_utf8).transpose();
    let content = response.and_then(|node| node.get("content"));
    let encoded = content.is_some_and(|node| node.text_at("encoding") == "base64");
    let text = content.map(|node| node.text_at("text")).unwrap_or_default();
    let took = entry
        .get("time")
        .and_then(TreeNode::number)
        .filter(|ms| (0.0..1e9).contains(ms))
        .unwrap_or(0.0);
    Ok(RecordedExchange {
        line: entry.line,
        method: request.text_at("method").to_ascii_uppercase(),
        url,
        headers,
        body: body.map_err(|_| "its body is not text; the body of a step must be text")?,
        at: instant(entry.text_at("startedDateTime")),
        took: (took * 1e6) as u64,
        status: status.and_then(|status| u64::try_from(status).ok()).unwrap_or(0),
        response_headers: header_fields(response),
        response_body: if encoded { decoded(text) } else { text.to_owned() },
    })
}

fn decoded(text: &str) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Parses `2026-11-24T10:00:01.500Z` as nanoseconds since 1970; assumes the same offset in the
/// whole file.
fn instant(text: &str) -> u64 {
    let number =
        |range: std::ops::Range<usize>| text.get(range).and_then(|part| part.parse::<u64>().ok());
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return 0;
    };
    let (Some(hour), Some(minute), Some(second)) = (number(11..13), number(14..16), number(17..19))
    else {
        return 0;
    };
    let fraction: String = text
        .get(20..)
        .unwrap_or_default()
        .chars()
        .take_while(char::is_ascii_digit)
        .take(9)
        .collect();
    let nanos: u64 = format!("{fraction:0<9}").parse().unwrap_or(0);
    // days since an epoch in the civil calendar (Hinnant's algorithm)
    let (year, month) = if month <= 2 {
        (year.saturating_sub(1), month + 9)
    } else {
        (year, month.saturating_sub(3))
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    (((days.saturating_sub(719_469) * 24 + hour) * 60 + minute) * 60 + second)
        .saturating_mul(1_000_000_000)
        .saturating_add(nanos)
}

impl RecordedExchange {
    pub(super) fn path(&self) -> &str {
        self.url.path()
    }

    pub(super) fn end(&self) -> u64 {
        self.at.saturating_add(self.took)
    }

    /// Returns a key that is equal for equivalent requests: long path segments, and those with
    /// digits, may differ.
    pub(super) fn shape(&self) -> (String, String) {
        let segment = |segment: &str| {
            let varies = segment.len() >= 16 || segment.bytes().any(|byte| byte.is_ascii_digit());
            if varies { "*".to_owned() } else { segment.to_owned() }
        };
        let path: Vec<String> = self.url.path().split('/').map(segment).collect();
        (self.method.clone(), path.join("/"))
    }

    /// Returns the names of the cookies of the request.
    pub(super) fn cookies_sent(&self) -> impl Iterator<Item = &str> {
        let fields = self.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        fields.flat_map(|(_, value)| value.split(';')).filter_map(cookie_name)
    }

    /// Returns the names of the cookies that the response sets.
    pub(super) fn cookies_set(&self) -> impl Iterator<Item = &str> {
        let fields = self.response_headers.iter();
        let fields = fields.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        // browsers join repeated fields with line feeds
        fields.flat_map(|(_, value)| value.lines()).filter_map(cookie_name)
    }

    /// Returns the path and query as text.
    fn target(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// Places where a value may differ, in the order of URL, headers, body.
    pub(super) fn slots(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        let target = self.target();
        let path = target.split('?').next().unwrap_or_default();
        let mut at = 0;
        for (number, segment) in path.split('/').enumerate() {
            let place = format!("path segment {number}");
            slots.push(Slot {
                place,
                value: segment.to_owned(),
                kind: SlotKind::Url,
                range: at..at + segment.len(),
            });
            at += segment.len() + 1;
        }
        if target.len() > path.len() {
            fields(&target[path.len() + 1..], path.len() + 1, "query", SlotKind::Url, &mut slots);
        }
        for (name, value) in &self.headers {
            if !SKIPPED.contains(&name.to_ascii_lowercase().as_str()) && !name.starts_with(':') {
                let place = format!("header {name}");
                slots.push(Slot {
                    place,
                    value: value.clone(),
                    kind: SlotKind::Header,
                    range: 0..value.len(),
                });
            }
        }
        if let Some(body) = &self.body {
            self.body_slots(body, &mut slots);
        }
        slots.truncate(SLOTS_MAX);
        slots
    }

    fn body_slots(&self, body: &str, slots: &mut Vec<Slot>) {
        let media_type = self.header("content-type").unwrap_or_default();
        if let Some(boundary) = boundary(media_type) {
            parts(body, boundary, slots);
        } else if self.has_form() {
            fields(body, 0, "body", SlotKind::Form, slots);
        } else {
            match parse_json(body) {
                Ok(node) if !node.map().is_empty() || !node.list().is_empty() => {
                    leaves(&node, "body ", body, &mut 0, slots);
                }
                _ => fields(body, 0, "body", SlotKind::Body, slots),
            }
        }
    }

    /// Returns the value of a header field of the request.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn has_form(&self) -> bool {
        let media_type = self.header("content-type").unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded")
    }

    /// Writes the request as a step, with these values replaced. `keeps_logins`: credentials
    /// without a replacement are written as recorded.
    pub(super) fn write(
        &self,
        replaced: &[(Slot, Text)],
        keeps_logins: bool,
        step: &mut DraftStep,
    ) {
        let of = |kind: SlotKind| -> Vec<(std::ops::Range<usize>, Text)> {
            let all = replaced.iter().filter(|(slot, _)| slot.kind == kind);
            let mut all: Vec<_> =
                all.map(|(slot, text)| (slot.range.clone(), text.clone())).collect();
            all.sort_by_key(|(range, _)| range.start);
            all
        };
        let origin = &self.url[..url::Position::BeforePath];
        step.url = Text::plain(origin);
        step.url.append(replace_parts(self.target(), &of(SlotKind::Url)));
        for (name, value) in &self.headers {
            let lower = name.to_ascii_lowercase();
            let place = format!("header {name}");
            let found = replaced.iter().find(|(slot, _)| slot.place == place);
            match found {
                Some((_, text)) if text.is_empty() => {}
                Some((_, text)) => step.headers.push((name.clone(), text.clone())),
                None if lower == "cookie" => {}
                None if LOGINS.contains(&lower.as_str()) && !keeps_logins => {}
                None if name.starts_with(':') || VALIDATORS.contains(&lower.as_str()) => {}
                None => step.headers.push((name.clone(), Text::plain(value))),
            }
        }
        let form = of(SlotKind::Form);
        if let Some(body) = &self.body {
            step.body = match form.is_empty() {
                true => {
                    let strings = of(SlotKind::Json).into_iter();
                    let mut parts: Vec<_> =
                        strings.map(|(range, text)| (range, text.in_json())).collect();
                    parts.extend(of(SlotKind::Body));
                    parts.sort_by_key(|(range, _)| range.start);
                    Body::Text(replace_parts(body, &parts))
                }
                false => form_fields(body, &form),
            };
        }
    }
}

/// Returns the cookie name in `name=value; …`.
fn cookie_name(text: &str) -> Option<&str> {
    let (name, _) = text.split(';').next()?.split_once('=')?;
    Some(name.trim()).filter(|name| !name.is_empty())
}

/// Appends the values of `a=b&c=d` to `slots`.
fn fields(text: &str, start: usize, what: &str, kind: SlotKind, slots: &mut Vec<Slot>) {
    let mut at = start;
    for field in text.split('&') {
        if let Some((name, value)) = field.split_once('=') {
            let from = at + name.len() + 1;
            let place = format!("{what} {name}");
            slots.push(Slot {
                place,
                value: value.to_owned(),
                kind,
                range: from..from + value.len(),
            });
        }
        at += field.len() + 1;
    }
}

/// Decodes a value of a form or of a query.
fn form_decoded(value: &str) -> Option<String> {
    let spaced = value.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(|text| text.into_owned())
}

/// Returns the decoded fields of a form with the replacements; the plan encodes them when it runs.
fn form_fields(body: &str, replaced: &[(std::ops::Range<usize>, Text)]) -> Body {
    let decoded = |text: &str| form_decoded(text).unwrap_or_else(|| text.to_owned());
    let mut fields = Vec::new();
    let mut at = 0;
    for field in body.split('&') {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let from = at + name.len() + 1;
        let found = replaced.iter().find(|(range, _)| range.start == from);
        let value = match found {
            Some((_, text)) => text.clone().map_plain(decoded),
            None => Text::plain(decoded(value)),
        };
        if !field.is_empty() {
            fields.push((decoded(name), value));
        }
        at += field.len() + 1;
    }
    Body::Form(fields)
}

/// Appends the parts of a `multipart/form-data` body to `slots`.
fn parts(body: &str, boundary: &str, slots: &mut Vec<Slot>) {
    let delimiter = format!("--{boundary}");
    let starts: Vec<usize> = body.match_indices(&delimiter).map(|(at, _)| at).collect();
    for pair in starts.windows(2) {
        let start = pair[0] + delimiter.len();
        let part = &body[start..pair[1]];
        let Some((head, content)) = part.split_once("\r\n\r\n") else { continue };
        let name = head.split("name=\"").nth(1).and_then(|rest| rest.split('"').next());
        let content = content.strip_suffix("\r\n").unwrap_or(content);
        let from = start + head.len() + 4;
        slots.push(Slot {
            place: format!("part {}", name.unwrap_or_default()),
            value: content.to_owned(),
            kind: SlotKind::Body,
            range: from..from + content.len(),
        });
    }
}

/// Appends the texts and numbers of a JSON body to `slots`, with their positions. Skips texts whose
/// escapes differ from those of browsers.
fn leaves(node: &TreeNode, place: &str, body: &str, at: &mut usize, slots: &mut Vec<Slot>) {
    if slots.len() >= SLOTS_MAX {
        return;
    }
    if let Some(value) = node.scalar().filter(|value| !value.is_empty()) {
        // search for a text with its quotation marks, so that it does not match a part of another
        let needle = node.text().map_or_else(|| value.clone(), |_| node.json());
        if let Some(found) = body[*at..].find(&needle) {
            let quote = usize::from(node.text().is_some());
            let from = *at + found + quote;
            let kind = if quote == 1 { SlotKind::Json } else { SlotKind::Body };
            let range = from..from + needle.len() - 2 * quote;
            *at = range.end;
            slots.push(Slot { place: place.to_owned(), range, value, kind });
        }
        return;
    }
    for (index, inner) in node.list().iter().enumerate() {
        leaves(inner, &format!("{place}/{index}"), body, at, slots);
    }
    for (key, inner) in node.map() {
        let quoted = format!("\"{key}\"");
        if let Some(found) = body[*at..].find(&quoted) {
            *at += found + quoted.len();
        }
        leaves(
            inner,
            &format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")),
            body,
            at,
            slots,
        );
    }
}
