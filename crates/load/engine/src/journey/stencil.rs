//! A step's request as a template with placeholders for values, made once. Filling it takes a few
//! copies; making the request from scratch converts text to URL to bytes.
//!
//! The template is made from the output of [`request::make`] with marks in place of values, so that
//! requests are made in only one way. If that is not possible, or a value needs more than a copy,
//! [`request::make`] makes the request.

use super::carried::{CarriedView, ValuePlace};
use super::program::SharedProgram;
use super::request;
use crate::decimal::put_decimal;
use crate::render::translated;
use plan::check::{Ask, Body, Fill, ValueSource};
use plan::journey::{Feeder, JourneyStep};
use plan::{HttpVersion, Plan};
use protocol::http1::response::Asked;
use std::cell::Cell;
use std::sync::Arc;
use url::Url;
use url::form_urlencoded::byte_serialize;
use workload::{RequestUrl, Stripped, Template};

/// Number of bytes reserved for a value.
const VALUE_LENGTH: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Stencil {
    base: Arc<Url>,
    method: Arc<str>,
    asked: Asked,
    version: HttpVersion,
    /// Request line and field lines, except Connection.
    head: Vec<StencilPart>,
    /// The Connection line, for a connection that stays open and for the last call of a connection.
    kept: String,
    last: String,
    /// The empty line and the body.
    tail: Tail,
    /// Number of bytes to reserve.
    room: usize,
    /// True if some calls are the last ones of their connections, or the request is translated from
    /// that form.
    needs_last: bool,
}

/// Memory in which requests are assembled.
#[derive(Debug, Default)]
pub(super) struct FillRoom {
    head: String,
    body: String,
}

#[derive(Clone, Debug)]
enum Tail {
    Plain(Vec<u8>),
    Cut(Vec<StencilPart>),
}

#[derive(Clone, Debug)]
enum StencilPart {
    Plain(String),
    Hole(Hole),
    /// The body's length in decimal digits.
    Length,
}

#[derive(Clone, Debug)]
struct Hole {
    place: ValuePlace,
    put: Put,
}

/// Encoding of an inserted value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Put {
    /// Unchanged, in a field value.
    Field,
    Text(Fill),
    /// Part of a URL whose dot segments are resolved (RFC 3986 section 5.2.4).
    Segment,
    /// `application/x-www-form-urlencoded`, like the pairs of a query.
    Pair,
}

impl Put {
    /// Returns false if the value needs more than a copy.
    fn put(self, value: &str, out: &mut String) -> bool {
        match self {
            Put::Field if !is_plain_field(value) => return false,
            Put::Field => out.push_str(value),
            Put::Text(Fill::Json) if is_plain_json(value) => out.push_str(value),
            Put::Text(Fill::UrlPart) if is_unreserved(value) => out.push_str(value),
            Put::Text(fill) => fill.put(value, out),
            Put::Segment if value.is_empty() || value.starts_with('.') || value.ends_with('.') => {
                return false;
            }
            Put::Segment | Put::Pair if is_unreserved(value) => out.push_str(value),
            Put::Segment => Fill::UrlPart.put(value, out),
            Put::Pair => out.extend(byte_serialize(value.as_bytes())),
        }
        true
    }
}

/// Table indexed by byte, because each call examines the bytes of its values.
const UNRESERVED: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < 128 {
        table[byte] =
            (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'.' | b'_');
        byte += 1;
    }
    table
};

/// Returns whether the byte is unchanged in a URL and in a form; `~` is encoded in a form.
fn is_unreserved(value: &str) -> bool {
    value.bytes().all(|byte| UNRESERVED[usize::from(byte)])
}

/// Returns whether the byte is unchanged in a JSON string (RFC 8259 section 7).
fn is_plain_json(value: &str) -> bool {
    value.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

/// Returns false for bytes that field values may not contain (RFC 9110 section 5.5), and for blanks
/// at the ends, which would be trimmed.
fn is_plain_field(value: &str) -> bool {
    let edge = |byte: Option<&u8>| !matches!(byte, None | Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t')
}

/// A mark for each placeholder, in the order in which values are requested.
struct ValueMarks<'a> {
    holes: Vec<(&'a str, Put)>,
    texts: Vec<String>,
    given: Cell<usize>,
}

impl<'a> ValueMarks<'a> {
    /// Returns the placeholders of a request, in the order of filling; `None` if a value is not
    /// inserted as text.
    fn new(ask: &'a Ask) -> Option<ValueMarks<'a>> {
        let mut holes: Vec<(&str, Put)> = Vec::new();
        let form = if let Body::Form(fields) = &ask.body { &fields[..] } else { &[] };
        let fields = ask.query.iter().chain(&ask.headers).chain(form);
        if fields.flat_map(|(_, it)| it.insertions()).any(|(_, fill)| fill != Fill::AsIs) {
            return None;
        }
        // a path is sent as written; any other text becomes a URL
        let path = ask.url.beginning().starts_with('/');
        let part = if path { Put::Text(ask.url.fill()) } else { Put::Segment };
        holes.extend(ask.url.names().map(|name| (name, part)));
        holes.extend(ask.query.iter().flat_map(|(_, text)| text.names()).map(|it| (it, Put::Pair)));
        for (field, text) in &ask.headers {
            if text.names().next().is_some() && field.eq_ignore_ascii_case("content-length") {
                return None;
            }
            holes.extend(text.names().map(|name| (name, Put::Field)));
        }
        match &ask.body {
            Body::None | Body::Bytes(_) => {}
            Body::Text(text) | Body::Json(text) => {
                holes.extend(text.insertions().map(|(name, fill)| (name, Put::Text(fill))));
            }
            Body::Form(fields) => {
                holes
                    .extend(fields.iter().flat_map(|(_, it)| it.names()).map(|it| (it, Put::Pair)));
            }
            Body::Multipart(..) => return None,
        }
        if ask.user.as_ref().is_some_and(|user| user.names().next().is_some()) {
            return None;
        }
        let texts = (0..holes.len()).map(|number| format!("hOlE{number:06}eLoH")).collect();
        Some(ValueMarks { holes, texts, given: Cell::new(0) })
    }
}

impl ValueSource for ValueMarks<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        let number = self.given.get();
        self.given.set(number + 1);
        // the order differs from the order above: there is no stencil
        self.holes.get(number).filter(|(known, _)| *known == name)?;
        self.texts.get(number).map(String::as_str)
    }
}

impl Stencil {
    /// Returns `None` if the request must be made again each time.
    pub(super) fn new(
        plan: &Plan,
        step: &JourneyStep,
        feeders: &[Feeder],
        shared: &mut SharedProgram,
    ) -> Option<Stencil> {
        // a step on a WebSocket is a message; a value at the beginning makes another URL; with a
        // proxy the target is a complete URL
        if step.socket.is_some()
            || step.ask.url.beginning().is_empty()
            || plan.connection.proxy.is_some()
        {
            return None;
        }
        let marks = ValueMarks::new(&step.ask)?;
        let made = request::make(plan, step, &marks, 0, false).ok()?;
        let (head, tail) = made.bytes.split_at(made.cookie_at);
        let (last_head, last_tail) = made.last.split_at(made.cookie_at_last);
        if tail != last_tail {
            return None;
        }
        let (head, last_head) = (str::from_utf8(head).ok()?, str::from_utf8(last_head).ok()?);
        let common = if last_head.starts_with(head) { head } else { last_head };
        let (kept, last) = (head.strip_prefix(common)?, last_head.strip_prefix(common)?);
        let cutter = Cutter { marks: &marks, feeders };
        let marked = |tail: &&str| marks.texts.iter().any(|mark| tail.contains(mark));
        let (head, tail) = match str::from_utf8(tail).ok().filter(marked) {
            Some(tail) => {
                let (before, after) = around_length(common, tail.len() - 2)?;
                let mut head = cutter.split_at_marks(before)?;
                head.push(StencilPart::Length);
                head.extend(cutter.split_at_marks(after)?);
                (head, Tail::Cut(cutter.split_at_marks(tail)?))
            }
            None => (cutter.split_at_marks(common)?, Tail::Plain(tail.to_vec())),
        };
        let holes = holes(&head) + if let Tail::Cut(parts) = &tail { holes(parts) } else { 0 };
        let stencil = Stencil {
            base: shared.base(made.url.shared()),
            asked: made.asked,
            version: plan.request.version,
            room: common.len() + kept.len() + tail.length() + holes * VALUE_LENGTH,
            kept: kept.to_owned(),
            last: last.to_owned(),
            method: shared.method(&made.method),
            needs_last: plan.connection.calls.is_some()
                || plan.request.version.has_streams()
                || crate::proof::needs_proofs(plan),
            head,
            tail,
        };
        // each mark was found once, at its place
        (holes == marks.holes.len()).then_some(stencil)
    }

    /// Returns the request with its values, in the memory of one of `spares`. `None` if it must be
    /// made by [`request::make`], which also reports invalid values.
    #[expect(
        clippy::vec_box,
        reason = "a call has its request in a box, which is returned unchanged"
    )]
    pub(super) fn fill(
        &self,
        values: &CarriedView<'_>,
        room: &mut FillRoom,
        spares: &mut Vec<Box<Template>>,
    ) -> Option<Box<Template>> {
        let tail = match &self.tail {
            Tail::Plain(bytes) => &bytes[..],
            Tail::Cut(parts) => {
                fill(parts, values, 0, &mut room.body)?;
                room.body.as_bytes()
            }
        };
        // everything after the empty line is the body
        fill(&self.head, values, tail.len() - 2, &mut room.head)?;
        let head = room.head.as_bytes();
        let mut template = spares.pop().unwrap_or_else(|| self.fresh());
        self.renew(&mut template);
        template.cookie_at = join_head(&mut template.bytes, [head, self.kept.as_bytes(), tail]);
        template.last.clear();
        template.cookie_at_last = 0;
        if self.needs_last {
            let parts = [head, self.last.as_bytes(), tail];
            template.cookie_at_last = join_head(&mut template.last, parts);
            let translated = translated(self.version, &self.base, &template.last).ok()?;
            (template.http2, template.http3) = translated;
        }
        Some(template)
    }

    fn fresh(&self) -> Box<Template> {
        let url = RequestUrl::with_own_target(&self.base);
        Box::new(Template {
            asked: self.asked,
            bytes: Vec::with_capacity(self.room),
            ..Template::new(url, self.method.clone())
        })
    }

    /// Turns the request of any step, or of a redirect, into a request of this step.
    fn renew(&self, template: &mut Template) {
        template.url.renew(&self.base);
        if !Arc::ptr_eq(&template.method, &self.method) {
            template.method = self.method.clone();
        }
        (template.asked, template.stripped) = (self.asked, Stripped::default());
        (template.http2, template.http3) = (None, None);
    }
}

/// Writes the head, the Connection line, and the rest. Returns where the fields end.
fn join_head(out: &mut Vec<u8>, [head, connection, tail]: [&[u8]; 3]) -> usize {
    out.clear();
    out.extend_from_slice(head);
    out.extend_from_slice(connection);
    let end = out.len();
    out.extend_from_slice(tail);
    end
}

impl Tail {
    /// Returns the number of bytes, excluding those of values.
    fn length(&self) -> usize {
        match self {
            Tail::Plain(bytes) => bytes.len(),
            Tail::Cut(parts) => parts.iter().map(StencilPart::length).sum(),
        }
    }
}

impl StencilPart {
    fn length(&self) -> usize {
        match self {
            StencilPart::Plain(text) => text.len(),
            StencilPart::Hole(_) | StencilPart::Length => VALUE_LENGTH,
        }
    }
}

fn holes(parts: &[StencilPart]) -> usize {
    parts.iter().filter(|part| matches!(part, StencilPart::Hole(_))).count()
}

/// Writes the parts over the contents of `out`. `length`: length of the body.
fn fill(
    parts: &[StencilPart],
    values: &CarriedView<'_>,
    length: usize,
    out: &mut String,
) -> Option<()> {
    out.clear();
    for part in parts {
        match part {
            StencilPart::Plain(text) => out.push_str(text),
            StencilPart::Hole(hole) => {
                hole.put.put(values.at(&hole.place)?, out).then_some(())?;
            }
            StencilPart::Length => put_decimal(length as u64, out),
        }
    }
    Some(())
}

/// Returns the head before and after the digits of its Content-Length, which must occur once.
fn around_length(head: &str, length: usize) -> Option<(&str, &str)> {
    let line = format!("\r\nContent-Length: {length}\r\n");
    let at = head.find(&line).filter(|_| head.matches(&line).count() == 1)?;
    let digits = at + "\r\nContent-Length: ".len();
    Some((&head[..digits], &head[at + line.len() - 2..]))
}

/// Splits texts at the marks in them.
struct Cutter<'a> {
    marks: &'a ValueMarks<'a>,
    feeders: &'a [Feeder],
}

impl Cutter<'_> {
    /// Splits the text at its marks; `None` if a mark occurs twice.
    fn split_at_marks(&self, text: &str) -> Option<Vec<StencilPart>> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (number, mark) in self.marks.texts.iter().enumerate() {
            let mut all = text.match_indices(mark);
            found.extend(all.next().map(|(at, _)| (at, number)));
            if all.next().is_some() {
                return None;
            }
        }
        found.sort_unstable();
        let (mut pieces, mut rest) = (Vec::new(), 0);
        for (at, number) in found {
            pieces.push(StencilPart::Plain(text[rest..at].to_owned()));
            let (name, put) = self.marks.holes[number];
            pieces
                .push(StencilPart::Hole(Hole { place: ValuePlace::find(name, self.feeders), put }));
            rest = at + self.marks.texts[number].len();
        }
        pieces.push(StencilPart::Plain(text[rest..].to_owned()));
        Some(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Travel;
    use super::super::traveller::Traveller;
    use super::*;
    use plan::check::Scope;
    use std::collections::BTreeMap;

    const STEPS: &str = r#"
        version = 1
        url = "http://127.0.0.1:18080/base?a=b"
        [load]
        users = 1
        [stop]
        requests = 1
        [[feeder]]
        name = "f"
        generate = { key = "hex:8" }
        [[journey]]
        name = "visit"
        [[journey.step]]
        name = "s1"
        url = "/start"
        capture = { v = { header = "X-V" }, w = { header = "X-W" } }
        [[journey.step]]
        name = "s2"
        url = "/a/{{v}}/{{f.key}}?x={{w}}"
        headers = { X-One = "<{{v}}>", X-Two = "{{w}} {{v}}", Connection = "close" }
        [[journey.step]]
        name = "s3"
        url = "/{{user.number}}/{{iteration.number}}"
        query = { q = "{{v}}", r = "plain" }
        headers = { X-Key = "{{v}}" }
        [[journey.step]]
        name = "s4"
        url = "/json"
        method = "POST"
        json = { name = "{{v}}", other = ["{{w}}", 1] }
        [[journey.step]]
        name = "s5"
        url = "/form/{{v}}"
        method = "POST"
        form = { one = "{{v}}", two = "{{w}}" }
        [[journey.step]]
        name = "s6"
        url = "/text"
        method = "PUT"
        body = 'said {{v}} {"in":"{{v|json}}"}'
        [[journey.step]]
        name = "s7"
        url = "{{v}}"
        [[journey.step]]
        name = "s8"
        url = "http://127.0.0.1:18081/x/{{v}}?{{w}}#here"
        [[journey.step]]
        name = "s9"
        url = "/login"
        user = "{{v}}:{{w}}"
        [[journey.step]]
        name = "s10"
        url = "/form"
        method = "POST"
        form = { one = '{"in":"{{v|json}}"}' }
    "#;

    /// Returns, for each step with values, whether its request was filled and whether it could be
    /// made. The two requests must be equal.
    fn with_values(version: &str, v: Option<&str>, w: &str) -> String {
        let text = STEPS.replace("[load]", &format!("[request]\nhttp = \"{version}\"\n[load]"));
        let mut plan = plan::from_toml(&text, &plan::NoFiles).unwrap();
        // the last call of a connection has another form
        plan.connection.calls = (version == "1.0").then_some(2);
        let travel = Travel::new(&plan, &BTreeMap::new()).unwrap();
        let mut traveller = Traveller::new(&travel, 7);
        let (journey, stream) = travel.draw(3);
        traveller.begin(3, journey, stream);
        let taken = &mut traveller.taken[0];
        (taken.is_taken, taken.row) = (true, 5);
        travel.feeders[0].generate(travel.seed, 0, 5, &mut taken.generated);
        traveller.keep("v", v.map(str::to_owned), Scope::Iteration);
        traveller.keep("w", Some(w.to_owned()), Scope::User);
        let view = CarriedView { travel: &travel, traveller: &traveller };
        let mut results = String::new();
        // each request takes the memory of the previous one
        let (mut room, mut spares) = (FillRoom::default(), Vec::new());
        for card in travel.steps.iter().filter(|card| !card.is_static) {
            let stencil = card.stencil.as_ref();
            let filled = stencil.and_then(|it| it.fill(&view, &mut room, &mut spares));
            let made = request::make(&plan, &card.step, &view, 0, false);
            results.push(match (&filled, &made) {
                (Some(_), Ok(_)) => 'f',
                (None, Ok(_)) => 'm',
                (None, Err(_)) => '-',
                (Some(filled), Err(why)) => panic!("{filled:?} was filled in spite of {why}"),
            });
            let (Some(filled), Ok(made)) = (filled, made) else { continue };
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(shown(&filled.bytes), shown(&made.bytes));
            if stencil.is_some_and(|it| it.needs_last) {
                assert_eq!(shown(&filled.last), shown(&made.last));
                assert_eq!(filled.cookie_at_last, made.cookie_at_last);
            } else {
                assert!(filled.last.is_empty());
            }
            assert_eq!(
                (filled.cookie_at, &filled.method, filled.asked, filled.stripped),
                (made.cookie_at, &made.method, made.asked, made.stripped)
            );
            assert_eq!(filled.url(), made.url());
            assert_eq!(format!("{:?}", filled.http2), format!("{:?}", made.http2));
            assert_eq!(format!("{:?}", filled.http3), format!("{:?}", made.http3));
            spares.push(filled);
        }
        results
    }

    #[test]
    fn a_filled_request_is_the_one_that_is_made() {
        for version in ["1.0", "1.1", "2"] {
            let with = |v, w| with_values(version, Some(v), w);
            // assembled for each call: a URL that is one value, a login, and a filter in a form
            assert_eq!(with("plain", "00c0ffee"), "fffffmfmm", "{version}");
            for v in ["a b/c?d#e%f&g=h+i", "ä€𝄞", "\"quoted\\", "..", "hOlE000000eLoH", "a\tb"]
            {
                let results = with(v, "it's");
                assert!(results.starts_with("fffff"), "{version}, {v}: {results}");
            }
        }
    }

    #[test]
    fn a_value_that_is_more_than_copied_is_left_to_the_maker() {
        for (v, results) in [
            (Some(" trimmed "), "mmfffmfmm"),
            (Some("line\r\nX: y"), "--fff-f-m"),
            // the next byte may then be the last of the field
            (Some(""), "mmfffmmmm"),
            // a whole URL loses its dot segments
            (Some("a.."), "fffffmmmm"),
            (None, "---------"),
        ] {
            assert_eq!(with_values("1.1", v, "w"), results, "{v:?}");
        }
    }
}
