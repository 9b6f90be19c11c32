//! The server's page, and the one that accepts bodies.

use super::head::{RequestHead, TargetForm, reason};
use super::{Defect, Defects, RANGES_MAX};

/// Path of the probed page, and of the one that accepts bodies.
pub const PATH: &str = "/page";
pub const POST: &str = "/post";
/// Path of an expensive page, if work is limited.
pub const COSTLY: &str = "/costly";
/// Path of a page that exceeds all buffers between two programs, and its size.
pub const BIG: &str = "/big";
pub const BIG_LEN: usize = 20 << 20;
/// Content of the page.
pub const PAGE: &str =
    "The firing range answers.\nEvery line of this page is the same each time.\n";

/// Content of a file outside its tree, which is not served.
pub const OUTSIDE: &str = "a file outside of the tree\n";

const DATE: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
const TAG: &str = "\"range\"";

/// Everything except the status line and the framing.
struct PageResponse {
    status: u16,
    fields: Vec<String>,
    body: Vec<u8>,
}

impl PageResponse {
    fn new(status: u16) -> PageResponse {
        PageResponse { status, fields: Vec::new(), body: Vec::new() }
    }

    fn with(mut self, field: impl Into<String>) -> PageResponse {
        self.fields.push(field.into());
        self
    }

    fn page(status: u16) -> PageResponse {
        let mut response = PageResponse::new(status)
            .with(format!("ETag: {TAG}"))
            .with(format!("Last-Modified: {DATE}"))
            .with("Accept-Ranges: bytes");
        response.body = PAGE.into();
        response
    }

    fn rendered(self, head: &RequestHead, defects: &Defects, closes: bool) -> Vec<u8> {
        let has = |defect| defects.contains(&defect);
        let mut out = format!("HTTP/1.1 {} {}\r\n", self.status, phrase(self.status));
        if !has(Defect::HasNoDate) {
            out.push_str(&format!("Date: {DATE}\r\n"));
        }
        self.fields.iter().for_each(|field| out.push_str(&format!("{field}\r\n")));
        if !matches!(self.status, 204 | 304) {
            out.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        let typed = self.fields.iter().any(|field| field.starts_with("Content-Type:"));
        if !self.body.is_empty() && !typed && !has(Defect::NamesNoType) {
            out.push_str("Content-Type: text/plain\r\n");
        }
        if closes {
            out.push_str("Connection: close\r\n");
        } else if head.minor == 0 {
            out.push_str("Connection: keep-alive\r\n");
        }
        out.push_str("\r\n");
        let mut bytes = out.into_bytes();
        let silent = head.method == "HEAD" && !has(Defect::SendsBodyToHead);
        if !silent && !matches!(self.status, 204 | 304) {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        405 => "Method Not Allowed",
        416 => "Range Not Satisfiable",
        other => reason(other),
    }
}

/// Returns the response to a request; `closes`: the connection closes after it.
pub(super) fn response(head: &RequestHead, defects: &Defects, closes: bool) -> Vec<u8> {
    chosen(head, defects).rendered(head, defects, closes)
}

/// Returns a response whose content is missing.
pub(super) fn endless() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n";
    format!("{head}Date: {DATE}\r\n\r\n").into_bytes()
}

/// Returns the response to an unparsable request.
pub(super) fn error(status: u16, closes: bool, defects: &Defects) -> Vec<u8> {
    let mut response = PageResponse::new(status);
    response.body = format!("{status} {}\n", phrase(status)).into_bytes();
    response.rendered(&RequestHead { minor: 1, ..RequestHead::default() }, defects, closes)
}

fn chosen(head: &RequestHead, defects: &Defects) -> PageResponse {
    // an absolute target may also address the server as a whole
    if matches!(head.form, TargetForm::Asterisk | TargetForm::Authority) || head.target == b"*" {
        return PageResponse::new(200);
    }
    let path = head.target.split(|byte| *byte == b'?').next().unwrap_or_default();
    if defects.contains(&Defect::ServesParents) && decoded(path).contains("/../") {
        let mut response = PageResponse::new(200);
        response.body = OUTSIDE.into();
        return response;
    }
    if defects.contains(&Defect::LeadsAnywhere) && path.starts_with(b"//") {
        return PageResponse::new(301).with(format!("Location: {}", String::from_utf8_lossy(path)));
    }
    if head.method == "TRACE" && defects.contains(&Defect::EchoesTraces) {
        return echoed(head);
    }
    match (head.method.as_str(), path) {
        ("POST", path) if path == POST.as_bytes() && defects.contains(&Defect::RangesPosts) => {
            let ranges = head.field("range").map(String::from_utf8_lossy);
            ranges.map_or_else(|| PageResponse::page(200), |text| ranged(&text, defects))
        }
        ("POST", path) if path == POST.as_bytes() => PageResponse::page(200),
        ("GET" | "HEAD", path) if path == PATH.as_bytes() || path == POST.as_bytes() => {
            get(head, defects)
        }
        ("GET" | "HEAD", path) if path == COSTLY.as_bytes() => PageResponse::page(200),
        ("GET" | "HEAD", path) if path == BIG.as_bytes() => big(),
        (_, path) if path == PATH.as_bytes() => {
            let response = PageResponse::new(405);
            match defects.contains(&Defect::NamesNoMethods) {
                true => response,
                false => response.with("Allow: GET, HEAD"),
            }
        }
        _ => PageResponse::new(404),
    }
}

/// Returns the request as a response.
fn echoed(head: &RequestHead) -> PageResponse {
    let mut response = PageResponse::new(200).with("Content-Type: message/http");
    for (name, value) in &head.fields {
        response.body.extend_from_slice(name.as_bytes());
        response.body.extend_from_slice(b": ");
        response.body.extend_from_slice(value);
        response.body.extend_from_slice(b"\r\n");
    }
    response
}

fn big() -> PageResponse {
    let mut response = PageResponse::new(200);
    response.body = PAGE.as_bytes().repeat(BIG_LEN / PAGE.len() + 1);
    response.body.truncate(BIG_LEN);
    response
}

/// Evaluates conditions (RFC 9110 section 13), then ranges (section 14).
fn get(head: &RequestHead, defects: &Defects) -> PageResponse {
    match condition(head, defects) {
        Some(304) if defects.contains(&Defect::ForgetsTag) => return PageResponse::new(304),
        Some(304) => return PageResponse::new(304).with(format!("ETag: {TAG}")),
        Some(status) => return PageResponse::new(status),
        None => {}
    }
    match head.field("range") {
        Some(ranges) if head.method == "GET" => ranged(&String::from_utf8_lossy(ranges), defects),
        _ if defects.contains(&Defect::SplitsResponses) => {
            let query = decoded(&head.target);
            let query = query.split_once('?').map_or("", |(_, query)| query).to_owned();
            PageResponse::page(200).with(format!("X-Query: {query}"))
        }
        _ => PageResponse::page(200),
    }
}

/// Decodes percent escapes once.
fn decoded(target: &[u8]) -> String {
    let text = String::from_utf8_lossy(target);
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if *first == b'%' => {
                out.push(byte);
                rest = &after[2..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the status required by a condition, unless it is the page.
fn condition(head: &RequestHead, defects: &Defects) -> Option<u16> {
    let has = |defect| defects.contains(&defect);
    let field = |name| head.field(name).map(String::from_utf8_lossy);
    let (tags, date) = (field("if-none-match"), field("if-modified-since"));
    let tag = |tag: &str| tag.trim().trim_start_matches("W/") == TAG;
    let by_tag = tags.as_ref().map(|tags| tags == "*" || tags.split(',').any(tag));
    let year = date.as_ref().map(|date| year(date));
    let by_date = year.map(|year| match year {
        Some(year) => year >= MODIFIED_YEAR,
        None => has(Defect::BelievesBadDates),
    });
    let future = year.flatten().is_some_and(|year| year > MODIFIED_YEAR);
    let old = date.as_ref().is_some_and(|date| year_of_old(date).is_some());
    let bare = tags.as_ref().is_some_and(|tags| tags != "*" && !tags.contains('"'));
    if has(Defect::FailsOnOddConditions) && (future || old || bare) {
        return Some(500);
    }
    let asked = match has(Defect::AsksDateFirst) {
        true => by_date.or(by_tag),
        false => by_tag.or(by_date),
    };
    (asked == Some(true) && !has(Defect::IgnoresConditions)).then_some(304)
}

/// The year of [`DATE`]: a later date has seen the page.
const MODIFIED_YEAR: u32 = 2026;

/// Returns the year of a date in any of its three formats (RFC 9110 section 5.6.7).
fn year(date: &str) -> Option<u32> {
    let fixed = || {
        let words: Vec<&str> = date.strip_suffix(" GMT")?.split(' ').collect();
        if words.len() == 5 { words[3].parse().ok() } else { None }
    };
    fixed().or_else(|| year_of_old(date))
}

/// Returns the year of a date in an obsolete form: `Thursday, 01-Jan-70 00:00:00 GMT`, `Thu Jan  1
/// 00:00:00 1970`.
fn year_of_old(date: &str) -> Option<u32> {
    let words: Vec<&str> = date.split_whitespace().collect();
    match words.as_slice() {
        [_, day, _, "GMT"] => {
            let year: u32 = day.splitn(3, '-').nth(2)?.parse().ok()?;
            Some(if year < 70 { 2000 + year } else { 1900 + year })
        }
        [_, _, _, _, year] => year.parse().ok(),
        _ => None,
    }
}

fn ranged(text: &str, defects: &Defects) -> PageResponse {
    let has = |defect| defects.contains(&defect);
    let Some(list) = text.strip_prefix("bytes=") else { return PageResponse::page(200) };
    let mut found = Vec::new();
    for one in list.split(',') {
        match range(one.trim(), defects) {
            Ok(Some(range)) => found.push(range),
            Ok(None) => {}
            Err(()) if has(Defect::OverflowsRanges) => return PageResponse::new(500),
            Err(()) => return PageResponse::page(200),
        }
    }
    if found.len() > RANGES_MAX && !has(Defect::MultipliesRanges) {
        return PageResponse::page(200);
    }
    let whole = PAGE.len();
    match found.as_slice() {
        [] => PageResponse::new(416).with(format!("Content-Range: bytes */{whole}")),
        [(first, last)] => {
            let field = format!("Content-Range: bytes {first}-{last}/{whole}");
            let mut response = PageResponse::page(206).with(field);
            response.body = PAGE.as_bytes()[*first..=*last].to_vec();
            response
        }
        many => multipart(many),
    }
}

/// Returns first and last byte; `None` beyond the end; `Err` for an invalid range.
fn range(text: &str, defects: &Defects) -> Result<Option<(usize, usize)>, ()> {
    let (first, last) = text.split_once('-').ok_or(())?;
    let number = |text: &str| -> Result<Option<usize>, ()> {
        match text {
            "" => Ok(None),
            _ if !text.bytes().all(|byte| byte.is_ascii_digit()) => Err(()),
            // a number that does not fit is beyond any end
            _ => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) if defects.contains(&Defect::OverflowsRanges) => Err(()),
                Err(_) => Ok(Some(usize::MAX)),
            },
        }
    };
    let end = PAGE.len() - 1;
    match (number(first)?, number(last)?) {
        (None, None) => Err(()),
        (Some(first), Some(last)) if last < first => Err(()),
        (Some(first), _) if first > end => Ok(None),
        (Some(first), last) => Ok(Some((first, last.unwrap_or(end).min(end)))),
        (None, Some(count)) => Ok(Some((PAGE.len().saturating_sub(count), end))),
    }
}

fn multipart(ranges: &[(usize, usize)]) -> PageResponse {
    let mut response =
        PageResponse::page(206).with("Content-Type: multipart/byteranges; boundary=range");
    response.body.clear();
    for (first, last) in ranges {
        let head = format!("--range\r\nContent-Range: bytes {first}-{last}/{}\r\n\r\n", PAGE.len());
        response.body.extend_from_slice(head.as_bytes());
        response.body.extend_from_slice(&PAGE.as_bytes()[*first..=*last]);
        response.body.extend_from_slice(b"\r\n");
    }
    response.body.extend_from_slice(b"--range--\r\n");
    response
}
