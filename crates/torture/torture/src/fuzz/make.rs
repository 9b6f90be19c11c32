//! Generates the bytes by place.

use super::{FuzzPlace, Shot, classic, escaped};
use crate::case::Fuzz;
use dialogue::talk::{Awaited, Move};
use dialogue::text::Values;
use units::{Nanos, Stream};

/// Largest power of two used by [`FuzzPlace::Edges`].
const EDGE_POWER_MAX: u64 = 15;
/// Maximum number of requests of a [`FuzzPlace::Sequence`].
const SEQUENCE_MAX: u64 = 20;
/// Maximum number of mutations of a [`FuzzPlace::Mutate`].
const CHANGES_MAX: u64 = 4;

/// Data shared by all requests of a shot.
struct Frame<'a> {
    values: &'a Values,
    /// Our field lines.
    fields: &'a str,
}

impl Frame<'_> {
    fn get(&self, target: &[u8]) -> Vec<u8> {
        let mut out = b"GET ".to_vec();
        out.extend_from_slice(target);
        out.extend_from_slice(self.tail("").as_bytes());
        out
    }

    /// Returns the rest of the head after the version.
    fn tail(&self, more: &str) -> String {
        format!(" HTTP/1.1\r\nHost: {}\r\n{}{more}\r\n", self.values.host, self.fields)
    }

    fn post(&self, body: &[u8]) -> Vec<u8> {
        let kind = "Content-Type: application/octet-stream";
        let more = format!("{kind}\r\nContent-Length: {}\r\n", body.len());
        let mut out = format!("POST {}{}", self.values.post, self.tail(&more)).into_bytes();
        out.extend_from_slice(body);
        out
    }

    fn query(&self, data: &[u8]) -> Vec<u8> {
        let path = self.values.path.split('?').next().unwrap_or("/");
        self.get(&[path.as_bytes(), b"?", data].concat())
    }

    fn path(&self, data: &[u8]) -> Vec<u8> {
        let path = self.values.path.split('?').next().unwrap_or("/").trim_end_matches('/');
        self.get(&[path.as_bytes(), b"/", data].concat())
    }
}

pub(super) fn shot(
    fuzz: &Fuzz,
    index: u64,
    random: &mut Stream,
    values: &Values,
    fields: &str,
) -> Shot {
    let frame = Frame { values, fields };
    let one = |method: &str, bytes: Vec<u8>| Shot {
        moves: vec![Move::Send(bytes)],
        methods: vec![method.to_owned()],
        valid: false,
        follows: true,
    };
    match fuzz.place {
        FuzzPlace::Query => {
            one("GET", frame.query(escaped(&classic(random, fuzz.length)).as_bytes()))
        }
        FuzzPlace::Path => {
            one("GET", frame.path(escaped(&classic(random, fuzz.length)).as_bytes()))
        }
        FuzzPlace::Body => one("POST", frame.post(&classic(random, fuzz.length))),
        FuzzPlace::Raw => raw(&frame, random, fuzz.length),
        FuzzPlace::Edges => {
            let length = edge(index);
            one("GET", frame.query(&vec![b'a'; length as usize]))
        }
        FuzzPlace::Fields => one("GET", with_fields(&frame, random)),
        FuzzPlace::StartLine => one("GET", start_line(&frame, random)),
        FuzzPlace::Mutate => one("GET", mutated(&frame, random)),
        FuzzPlace::Encodings => one("GET", encoded(&frame, random)),
        FuzzPlace::Sequence => sequence(&frame, random, fuzz.length),
        FuzzPlace::Aborts => aborted(&frame, random),
    }
}

/// Maximum pause before a client gives up, in microseconds.
const PATIENCE_MAX_US: u64 = 3_000;

/// Returns one of these: a request abandoned during its response, two abandoned requests in one
/// segment, an abandoned upload, or an upload that all connections send alike.
fn aborted(frame: &Frame<'_>, random: &mut Stream) -> Shot {
    let pause = Move::Pause(Nanos::from_micros(random.below(PATIENCE_MAX_US)));
    let get = || frame.get(frame.values.path.as_bytes());
    let upload = frame.post(&[b'u'; 512]);
    let posts = !frame.values.post.is_empty();
    let (method, moves) = match random.below(4) {
        0 => ("GET", vec![Move::Send(get()), Move::Await(Awaited::Interim), Move::Reset]),
        1 => ("GET", vec![Move::Send([get(), get()].concat()), pause, Move::Reset]),
        2 if posts => {
            let half = upload[..upload.len() - 256].to_vec();
            ("POST", vec![Move::Send(half), pause, Move::Reset])
        }
        3 if posts => ("POST", vec![Move::Send(upload)]),
        _ => ("GET", vec![Move::Send(get()), pause, Move::Close]),
    };
    Shot { moves, methods: vec![method.to_owned()], valid: false, follows: false }
}

/// torture.pl's `-r`: without escaping, in query, path or body.
fn raw(frame: &Frame<'_>, random: &mut Stream, length: u64) -> Shot {
    let data = classic(random, length);
    let posts = !frame.values.post.is_empty();
    let (method, bytes) = match random.below(if posts { 3 } else { 2 }) {
        0 => ("GET", frame.query(&data)),
        1 => ("GET", frame.path(&data)),
        _ => ("POST", frame.post(&data)),
    };
    Shot {
        moves: vec![Move::Send(bytes)],
        methods: vec![method.to_owned()],
        valid: false,
        follows: true,
    }
}

/// Returns 2^k − 2 … 2^k + 2 for k from 2 up.
fn edge(index: u64) -> u64 {
    let power = 2 + index / 5 % (EDGE_POWER_MAX - 1);
    (1 << power) + index % 5 - 2
}

fn pick<'a>(random: &mut Stream, from: &[&'a str]) -> &'a str {
    from[random.below(from.len() as u64) as usize]
}

fn letters(random: &mut Stream, most: u64) -> String {
    let length = 1 + random.below(most);
    (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// Returns a request with a few fields, most of them valid.
fn with_fields(frame: &Frame<'_>, random: &mut Stream) -> Vec<u8> {
    const NAMES: &[&str] = &[
        "Accept",
        "Accept-Encoding",
        "Accept-Language",
        "Cookie",
        "Range",
        "If-Range",
        "Expect",
        "If-Modified-Since",
        "If-None-Match",
        "Authorization",
        "Referer",
        "TE",
        "Via",
        "Upgrade",
        "Connection",
        "Cache-Control",
        "X-Forwarded-For",
        "Content-Type",
        "Max-Forwards",
        "Trailer",
    ];
    const VALUES: &[&str] = &[
        "",
        "0",
        "-1",
        "*/*",
        "bytes=0-",
        "bytes=-1",
        "gzip;q=0.0000001",
        "\"",
        "W/\"x\"",
        "=",
        ";;;",
        ",,,",
        "close, close",
        "99999999999999999999",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "%s%n%x",
        "a=b; a=b; a",
        "Basic",
        "Basic ====",
        "\u{e4}\u{f6}",
    ];
    let mut out = format!("GET {} HTTP/1.1\r\nHost: {}\r\n", frame.values.path, frame.values.host);
    out.push_str(frame.fields);
    for _ in 0..1 + random.below(6) {
        let name = match random.below(4) {
            0 => letters(random, 40),
            _ => pick(random, NAMES).to_owned(),
        };
        let value = match random.below(4) {
            0 => letters(random, 300),
            1 => escaped(&classic(random, 200)),
            _ => pick(random, VALUES).to_owned(),
        };
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut bytes = out.into_bytes();
    // every fourth request has an invalid line
    if random.below(4) == 0 {
        let mut line = classic(random, 100);
        line.retain(|byte| !matches!(byte, b'\r' | b'\n'));
        bytes.extend_from_slice(&line);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn start_line(frame: &Frame<'_>, random: &mut Stream) -> Vec<u8> {
    const METHODS: &[&str] =
        &["GET", "HEAD", "get", "G", "", "GET\t", "OPTIONS", "TRACE", "PRI", "M-SEARCH", "\u{7f}"];
    const VERSIONS: &[&str] = &[
        "HTTP/1.1",
        "HTTP/1.0",
        "HTTP/1.",
        "HTTP/.1",
        "HTTP/11.1",
        "HTTP/-1.1",
        "HTP/1.1",
        "",
        "1.1",
        "HTTP/1.1 ",
        "HTTP/1.1\u{0}",
    ];
    const GAPS: &[&str] = &[" ", " ", " ", "  ", "\t", ""];
    let method = match random.below(3) {
        0 => letters(random, 20).to_uppercase(),
        _ => pick(random, METHODS).to_owned(),
    };
    let target = match random.below(4) {
        0 => escaped(&classic(random, 60)),
        1 => {
            pick(random, &["*", "", "//", "/../..", "http://", "http:///", "/%", "?", "/.", "///"])
                .to_owned()
        }
        _ => frame.values.path.clone(),
    };
    let (first, second) = (pick(random, GAPS), pick(random, GAPS));
    let version = pick(random, VERSIONS);
    let host = &frame.values.host;
    format!("{method}{first}{target}{second}{version}\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .into_bytes()
}

/// Returns a valid request with a few mutations: repeat, drop, swap, flip, splice, grow a number.
fn mutated(frame: &Frame<'_>, random: &mut Stream) -> Vec<u8> {
    const SEEDS: &[&str] = &[
        "Accept: */*\r\nRange: bytes=0-9\r\n",
        "If-None-Match: \"abc\", W/\"def\"\r\nIf-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
        "Cookie: a=1; b=2\r\nAuthorization: Basic YTpi\r\n",
        "Content-Length: 0\r\nExpect: 100-continue\r\n",
        "Connection: keep-alive, TE\r\nTE: trailers\r\nUpgrade: h2c\r\n",
    ];
    let more = format!("Connection: close\r\n{}", pick(random, SEEDS));
    let mut bytes = format!("GET {}{}", frame.values.path, frame.tail(&more)).into_bytes();
    for _ in 0..1 + random.below(CHANGES_MAX) {
        change(&mut bytes, random);
    }
    // terminate the head, regardless of the mutations
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

fn change(bytes: &mut Vec<u8>, random: &mut Stream) {
    let length = bytes.len() as u64;
    let at = random.below(length.max(1)) as usize;
    let span = (1 + random.below(16)) as usize;
    let end = (at + span).min(bytes.len());
    match random.below(6) {
        0 => {
            let piece = bytes[at..end].to_vec();
            let times = 1 + random.below(64) as usize;
            bytes.splice(at..at, piece.repeat(times));
        }
        1 => {
            bytes.drain(at..end);
        }
        2 => bytes[at..end].reverse(),
        3 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        4 => {
            let from = random.below(length.max(1)) as usize;
            let piece = bytes[from..(from + span).min(bytes.len())].to_vec();
            bytes.splice(at..end, piece);
        }
        _ => grow(bytes, at, random),
    }
}

/// Replaces the next digit with a long number.
fn grow(bytes: &mut Vec<u8>, from: usize, random: &mut Stream) {
    const NUMBERS: &[&str] =
        &["-1", "2147483648", "4294967296", "18446744073709551616", "1e9", "00"];
    let digit = bytes.iter().skip(from).position(u8::is_ascii_digit);
    if let Some(at) = digit.map(|at| at + from) {
        bytes.splice(at..=at, pick(random, NUMBERS).bytes());
    }
}

/// Returns invalid percent-encoding, overlong and lone UTF-8, and NUL.
fn encoded(frame: &Frame<'_>, random: &mut Stream) -> Vec<u8> {
    const PIECES: &[&str] = &[
        "%",
        "%%",
        "%0",
        "%zz",
        "%00",
        "%0a",
        "%0d%0a",
        "%2f",
        "%2e%2e",
        "%25",
        "%c0%af",
        "%e0%80%af",
        "%ed%a0%80",
        "%ff%fe",
        "%u0041",
        "%F4%90%80%80",
        // a log or a page may use the target as a format string
        "%n",
        "%s",
        "%x",
        "a",
        "/",
        ".",
        "..",
        ";",
        "+",
        "%20",
    ];
    let data: String = (0..1 + random.below(12)).map(|_| pick(random, PIECES)).collect();
    match random.below(2) {
        0 => frame.query(data.as_bytes()),
        _ => frame.path(data.as_bytes()),
    }
}

/// Returns valid and random requests, alternating, on one connection.
fn sequence(frame: &Frame<'_>, random: &mut Stream, length: u64) -> Shot {
    let mut shot = Shot { moves: Vec::new(), methods: Vec::new(), valid: true, follows: false };
    for _ in 0..2 + random.below(SEQUENCE_MAX - 1) {
        let valid = random.below(2) == 0;
        let bytes = match valid {
            true => frame.get(frame.values.path.as_bytes()),
            false => frame.query(escaped(&classic(random, length)).as_bytes()),
        };
        shot.moves.push(Move::Send(bytes));
        // only responses to plain requests are known
        shot.methods.push(if valid { "GET" } else { "other" }.to_owned());
    }
    shot
}
