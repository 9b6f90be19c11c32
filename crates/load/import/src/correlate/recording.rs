//! Exchanges of a HAR file, and the places of a request where a value may differ.

use super::replace_parts;
use crate::draft::{Body, DraftStep};
use crate::text::Text;
use crate::tree::{TreeNode, parse_json};
use url::Url;

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
    pub(super) response_headers: Vec<(String, String)>,
    pub(super) response_body: String,
}

/// Part of a request with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slot {
    /// `path segment 2`, `query id`, `header X`, `body /a/b`.
    pub(super) place: String,
    pub(super) value: String,
    kind: SlotKind,
    /// Range of the value in the URL or the body.
    range: std::ops::Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SlotKind {
    Url,
    Header,
    Body,
}

/// Header fields whose values are credentials.
const LOGINS: [&str; 2] = ["authorization", "proxy-authorization"];

impl Slot {
    /// Returns whether it has credentials.
    pub(super) fn is_login(&self) -> bool {
        let header = self.place.strip_prefix("header ").unwrap_or_default();
        self.kind == SlotKind::Header && LOGINS.iter().any(|it| it.eq_ignore_ascii_case(header))
    }

    /// Returns the last word of the description.
    pub(super) fn name(&self) -> String {
        let last = self.place.rsplit(['/', ' ']).next().unwrap_or_default();
        if last.chars().all(|c| c.is_ascii_digit()) { "id".to_owned() } else { last.to_owned() }
    }
}

/// Header fields that browsers add, or that the user's cookie jar sends.
const SKIPPED: [&str; 12] = [
    "cookie",
    "user-agent",
    "referer",
    "origin",
    "sec-fetch-site",
    "if-none-match",
    "if-modified-since",
    "date",
    "accept-encoding",
    "connection",
    "content-length",
    "host",
];

pub(super) fn exchanges(text: &str) -> Result<Vec<RecordedExchange>, String> {
    let root = parse_json(text.trim_start_matches('\u{feff}'))
        .map_err(|why| format!("it is not a HAR: {why}"))?;
    let entries =
        root.at(&["log", "entries"]).ok_or("it is not a HAR: it has no log with entries")?;
    let mut all: Vec<RecordedExchange> = Vec::new();
    for entry in entries.list() {
        let Some(exchange) = exchange(entry) else { continue };
        // a page sends requests to other servers too
        if all.first().is_none_or(|first| first.url.origin() == exchange.url.origin()) {
            all.push(exchange);
        }
        if all.len() > EXCHANGES_MAX {
            return Err(format!("it has more than {EXCHANGES_MAX} requests; shorten it"));
        }
    }
    if all.is_empty() {
        return Err("it has no request over HTTP".to_owned());
    }
    all.sort_by_key(|exchange| exchange.at);
    Ok(all)
}

fn exchange(entry: &TreeNode) -> Option<RecordedExchange> {
    let request = entry.get("request")?;
    let url = Url::parse(request.text_at("url")).ok()?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return None;
    }
    let pairs = |node: Option<&TreeNode>| -> Vec<(String, String)> {
        let list =
            node.and_then(|node| node.get("headers")).map(TreeNode::list).unwrap_or_default();
        list.iter()
            .map(|it| (it.text_at("name").to_owned(), it.text_at("value").to_owned()))
            .collect()
    };
    let response = entry.get("response");
    let content = response.and_then(|node| node.get("content"));
    let body =
        request.at(&["postData", "text"]).and_then(TreeNode::text).filter(|text| !text.is_empty());
    let encoded = content.is_some_and(|node| node.text_at("encoding") == "base64");
    let text = content.map(|node| node.text_at("text")).unwrap_or_default();
    let took = entry
        .get("time")
        .and_then(TreeNode::number)
        .filter(|ms| (0.0..1e9).contains(ms))
        .unwrap_or(0.0);
    Some(RecordedExchange {
        line: entry.line,
        method: request.text_at("method").to_ascii_uppercase(),
        url,
        headers: pairs(Some(request)),
        body: body.map(str::to_owned),
        at: instant(entry.text_at("startedDateTime")),
        took: (took * 1e6) as u64,
        response_headers: pairs(response),
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
            match parse_json(body) {
                Ok(node) if !node.map().is_empty() || !node.list().is_empty() => {
                    leaves(&node, "body ", body, &mut 0, &mut slots);
                }
                _ => fields(body, 0, "body", SlotKind::Body, &mut slots),
            }
        }
        slots.truncate(SLOTS_MAX);
        slots
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
                Some((_, text)) => step.headers.push((name.clone(), text.clone())),
                None if lower == "cookie" => {}
                None if LOGINS.contains(&lower.as_str()) && !keeps_logins => {}
                None if name.starts_with(':') || lower.starts_with("if-") => {}
                None => step.headers.push((name.clone(), Text::plain(value))),
            }
        }
        if let Some(body) = &self.body {
            step.body = Body::Text(replace_parts(body, &of(SlotKind::Body)));
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

/// Appends the texts and numbers of a JSON body to `slots`, with their positions. Skips values that
/// the body writes in another form.
fn leaves(node: &TreeNode, place: &str, body: &str, at: &mut usize, slots: &mut Vec<Slot>) {
    if slots.len() >= SLOTS_MAX {
        return;
    }
    if let Some(value) = node.scalar().filter(|value| !value.is_empty()) {
        if let Some(found) = body[*at..].find(&value) {
            let from = *at + found;
            *at = from + value.len();
            slots.push(Slot {
                place: place.to_owned(),
                range: from..*at,
                value,
                kind: SlotKind::Body,
            });
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
