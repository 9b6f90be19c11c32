//! Mutations by the grammar of a request, and of raw bytes.

use super::{Havoc, MutableChunk, MutableContent, MutableLine, PARTS_MAX, Specimen};
use units::Stream;

/// Pieces that can be inserted anywhere.
const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b"\x0b",
    b";",
    b":",
    b",",
    b"0\r\n\r\n",
    b"\"",
    b"\\",
    b"=",
    b"+",
    b"-",
    b"_",
    b"0x",
    b"%00",
    b"%n",
    b"\xff",
    b"\xc0\xaf",
    b"Host: h\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"ffffffffffffffff",
    b"7fffffffffffffff",
    b"80000000",
    b"ffffffff0",
    b"18446744073709551616",
];

const NUMBERS: &[&str] = &[
    "",
    "0",
    "1",
    "4",
    "5",
    "6",
    "00005",
    "+5",
    "-5",
    " 5",
    "5 ",
    "5 5",
    "5,5",
    "5, 6",
    "0x5",
    "5a",
    "1_0",
    "5.0",
    "1e1",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "4294967301",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "18446744073709551621",
    "999999999999999999999999",
];

const SIZES: &[&str] = &[
    "",
    "0",
    "00",
    "5",
    "05",
    "0000000000000005",
    "00000000000000000000000005",
    "5 ",
    " 5",
    "5\t",
    "+5",
    "-5",
    "-0",
    "0x5",
    "0X5",
    "5h",
    "5_0",
    "5.0",
    "7fffffff",
    "80000000",
    "ffffffff",
    "100000000",
    "100000005",
    "7fffffffffffffff",
    "8000000000000000",
    "ffffffffffffffff",
    "fffffffffffffffe",
    "10000000000000000",
    "10000000000000005",
    "ffffffffffffffff0",
    "g",
];

/// Chunk extensions, usual and odd ones, picked equally often: a server that refuses the unusual
/// ones shows its handling of extensions only with usual ones.
const EXTENSIONS: [&[&str]; 2] = [USUAL_EXTENSIONS, ODD_EXTENSIONS];

const USUAL_EXTENSIONS: &[&str] =
    &[";a", ";a=b", ";a=\"b\"", ";a=\"b;c\"", ";a=\"\\\"\"", ";chunked"];

const ODD_EXTENSIONS: &[&str] = &[
    ";",
    ";a=\"",
    ";=b",
    ";;",
    " ;a",
    "; a",
    ";a =b",
    ";a=\r",
    ";a\n",
    ";a=\0",
    ";a=\x7f",
    ";0\r\n\r\n",
];

const CODINGS: &[&str] = &[
    "chunked",
    "Chunked",
    "xchunked",
    "chunkedx",
    "chunked,",
    ",chunked",
    "chunked, chunked",
    "identity",
    "identity, chunked",
    "chunked, identity",
    "gzip, chunked",
    "gzip",
    "\"chunked\"",
    "chunked;a=b",
    "\x0bchunked",
    "chunked\x0c",
    "chunked\0",
    "chu nked",
    "",
    "\tchunked",
];

const FIELDS: &[(&str, &str)] = &[
    ("Content-Length", "5"),
    ("Content-Length", "0"),
    ("Transfer-Encoding", "chunked"),
    ("Transfer_Encoding", "chunked"),
    ("Connection", "close"),
    ("Connection", "keep-alive"),
    ("Connection", "Content-Length"),
    ("Connection", "Transfer-Encoding"),
    ("TE", "trailers"),
    ("Trailer", "X-T"),
    ("Expect", "100-continue"),
    ("Expect", "loadstone"),
    ("Upgrade", "loadstone"),
    ("Content-Encoding", "gzip"),
    ("Content-Type", "multipart/form-data; boundary=b"),
    ("Content-Type", "multipart/form-data"),
    ("Content-Type", "application/json"),
    ("Range", "bytes=0-0"),
    ("Content-Range", "bytes 0-4/5"),
    ("Content-MD5", "x"),
    ("Cookie", "a=b"),
    ("X-HTTP-Method-Override", "GET"),
];

const TRAILERS: &[(&str, &str)] = &[
    ("X-T", "1"),
    ("Content-Length", "5"),
    ("Transfer-Encoding", "chunked"),
    ("Host", "loadstone.invalid"),
    ("Authorization", "Basic YTpi"),
    ("", ""),
    ("X-T", "\u{e4}"),
    ("Content-Type", "text/html"),
    ("Connection", "close"),
    ("Expect", "100-continue"),
];

const METHODS: &[&str] = &["POST", "GET", "HEAD", "OPTIONS", "LOADSTONE", "post", "TRACE"];
const VERSIONS: &[&str] = &["HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/1.", ""];
const LINE_ENDS: &[&[u8]] = &[b"\r\n", b"\n", b"\r", b"", b"\r\r\n", b"\r\n ", b"\n\r"];
const COLONS: &[&[u8]] = &[b":", b": ", b" : ", b":\t", b":  ", b"\t:", b"", b"\r\n "];

fn pick<'a, T: ?Sized>(random: &mut Stream, from: &[&'a T]) -> &'a T {
    from[random.below(from.len() as u64) as usize]
}

/// Returns a random place in a list, or `None` if it is empty.
fn place(random: &mut Stream, length: usize) -> Option<usize> {
    (length > 0).then(|| random.below(length as u64) as usize)
}

/// Part of a request that a mutation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MutatedPart {
    Method,
    Version,
    LineEnd,
    Head,
    Framing,
    /// Data or chunks.
    Content,
    /// Trailers, or the end of chunked content.
    Trailers,
    /// The same content, framed the other way.
    Turned,
    /// The content of another specimen.
    Spliced,
    Pieces,
    HalfClose,
    Bytes,
}

impl MutatedPart {
    /// Returns a random part; the content, which few requests reach, more often.
    fn any(random: &mut Stream) -> MutatedPart {
        match random.below(16) {
            0 => MutatedPart::Method,
            1 => MutatedPart::Version,
            2 => MutatedPart::LineEnd,
            3 => MutatedPart::Head,
            4 => MutatedPart::Framing,
            5..=8 => MutatedPart::Content,
            9..=10 => MutatedPart::Trailers,
            11 => MutatedPart::Turned,
            12 => MutatedPart::Spliced,
            13 => MutatedPart::Pieces,
            14 if random.below(4) == 0 => MutatedPart::HalfClose,
            _ => MutatedPart::Bytes,
        }
    }
}

/// Applies one mutation, which may have nothing to change. Every second one changes the part that
/// the last one changed, in this specimen or its parent: a mutation that showed new behavior may
/// show more.
pub(super) fn change(specimen: &mut Specimen, other: &Specimen, random: &mut Stream) {
    let part = match specimen.changed {
        Some(same) if random.below(2) == 0 => same,
        _ => MutatedPart::any(random),
    };
    specimen.changed = Some(part);
    match part {
        MutatedPart::Method => specimen.method = pick(random, METHODS).to_owned(),
        MutatedPart::Version => specimen.version = pick(random, VERSIONS).to_owned(),
        MutatedPart::LineEnd => specimen.line_end = line_end(random),
        MutatedPart::Head => head(specimen, random),
        MutatedPart::Framing => length_or_coding(specimen, random),
        MutatedPart::Content => content(&mut specimen.content, random),
        MutatedPart::Trailers => trailers(&mut specimen.content, random),
        MutatedPart::Turned => reframe(specimen),
        MutatedPart::Spliced => specimen.content = other.content.clone(),
        MutatedPart::Pieces => specimen.pieces.push(random.next_u64() as u32),
        MutatedPart::HalfClose => specimen.half_closes = !specimen.half_closes,
        MutatedPart::Bytes => specimen.havoc.push(havoc(random)),
    }
    specimen.pieces.truncate(PARTS_MAX);
    specimen.havoc.truncate(PARTS_MAX);
    specimen.lines.truncate(PARTS_MAX);
}

fn line_end(random: &mut Stream) -> Vec<u8> {
    pick(random, LINE_ENDS).to_vec()
}

fn new_line(random: &mut Stream, from: &[(&str, &str)]) -> MutableLine {
    let (name, value) = from[random.below(from.len() as u64) as usize];
    MutableLine::new(name, value)
}

/// Adds, removes, repeats or respells a line of the head.
fn head(specimen: &mut Specimen, random: &mut Stream) {
    let Some(at) = place(random, specimen.lines.len()) else { return };
    match random.below(8) {
        0 | 1 => specimen.lines.insert(at, new_line(random, FIELDS)),
        2 => {
            specimen.lines.remove(at);
        }
        3 => specimen.lines.insert(at, specimen.lines[at].clone()),
        4 => specimen.lines[at].colon = pick(random, COLONS).to_vec(),
        5 => specimen.lines[at].end = line_end(random),
        6 => {
            let name = &mut specimen.lines[at].name;
            if let Some(letter) = place(random, name.len()) {
                name[letter] ^= 0x20;
            }
        }
        _ => specimen.head_end = line_end(random),
    }
}

/// Changes the framing of the content.
fn length_or_coding(specimen: &mut Specimen, random: &mut Stream) {
    let framing =
        |line: &MutableLine| line.has_name("Content-Length") || line.has_name("Transfer-Encoding");
    let Some(line) = specimen.lines.iter_mut().find(|line| framing(line)) else { return };
    let words = if line.has_name("Content-Length") { NUMBERS } else { CODINGS };
    line.value = pick(random, words).into();
}

/// Frames the same content the other way.
fn reframe(specimen: &mut Specimen) {
    let data = match &specimen.content {
        MutableContent::Sized(data) => data.clone(),
        MutableContent::Chunked(chunks, ..) => {
            chunks.iter().flat_map(|chunk| chunk.data.clone()).collect()
        }
    };
    specimen
        .lines
        .retain(|line| !line.has_name("Content-Length") && !line.has_name("Transfer-Encoding"));
    let was_sized = matches!(specimen.content, MutableContent::Sized(_));
    if was_sized {
        let chunks = vec![MutableChunk::new(&data), MutableChunk::new(b"")];
        specimen.content = MutableContent::Chunked(chunks, Vec::new(), b"\r\n".to_vec());
        specimen.lines.push(MutableLine::new("Transfer-Encoding", "chunked"));
    } else {
        specimen.lines.push(MutableLine::new("Content-Length", &data.len().to_string()));
        specimen.content = MutableContent::Sized(data);
    }
}

fn content(content: &mut MutableContent, random: &mut Stream) {
    match content {
        MutableContent::Sized(data) => match (random.below(4), place(random, data.len())) {
            (0, Some(at)) => data.truncate(at),
            (1, Some(at)) => data[at] = random.below(256) as u8,
            (2, _) => data.extend_from_slice(pick(random, PIECES)),
            _ => data.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n"),
        },
        MutableContent::Chunked(chunks, ..) => {
            // the last chunk ends the content: its line is parsed by other code
            let last = chunks.len().checked_sub(1).filter(|_| random.below(2) == 0);
            match last.or_else(|| place(random, chunks.len())) {
                Some(at) => chunk(chunks, at, random),
                None => chunks.push(MutableChunk::new(b"abc")),
            }
            chunks.truncate(PARTS_MAX);
        }
    }
}

/// Changes the trailers or the end of chunked content; data with a length grows.
fn trailers(content: &mut MutableContent, random: &mut Stream) {
    match content {
        MutableContent::Sized(data) => data.extend_from_slice(pick(random, PIECES)),
        MutableContent::Chunked(.., end) if random.below(8) == 0 => *end = line_end(random),
        MutableContent::Chunked(_, trailers, _) => {
            trailer(trailers, random);
            trailers.truncate(PARTS_MAX);
        }
    }
}

fn trailer(trailers: &mut Vec<MutableLine>, random: &mut Stream) {
    match (random.below(4), place(random, trailers.len())) {
        (0, Some(at)) => {
            trailers.remove(at);
        }
        (1, Some(at)) => trailers[at].end = line_end(random),
        _ => trailers.push(new_line(random, TRAILERS)),
    }
}

fn chunk(chunks: &mut Vec<MutableChunk>, at: usize, random: &mut Stream) {
    match random.below(8) {
        0 => chunks[at].size = pick(random, SIZES).into(),
        1 | 2 => {
            let from = pick(random, &EXTENSIONS);
            chunks[at].extension = pick(random, from).into();
        }
        3 => chunks[at].line_end = line_end(random),
        4 => chunks[at].end = line_end(random),
        5 => {
            // split in two: the same content in more chunks
            let data = chunks[at].data.clone();
            if let Some(middle) = place(random, data.len()).filter(|middle| *middle > 0) {
                let halves = [&data[..middle], &data[middle..]].map(MutableChunk::new);
                chunks.splice(at..=at, halves);
            }
        }
        6 => {
            chunks.remove(at);
        }
        _ => {
            let data = &mut chunks[at].data;
            match place(random, data.len()) {
                Some(length) => data.truncate(length),
                None => data.extend_from_slice(pick(random, PIECES)),
            }
        }
    }
}

fn havoc(random: &mut Stream) -> Havoc {
    let at = random.next_u64() as u32;
    match random.below(6) {
        0 => Havoc::Flip(at, random.below(8) as u8),
        1 => Havoc::Set(at, random.below(256) as u8),
        2 => Havoc::Drop(at, 1 + random.below(8) as u32),
        3 => Havoc::Repeat(at, 1 + random.below(16) as u32, 1 + random.below(60) as u8),
        4 => Havoc::Insert(at, random.below(PIECES.len() as u64) as u32),
        _ => Havoc::CutOff(at),
    }
}

pub(super) fn apply(havoc: Havoc, bytes: &mut Vec<u8>) {
    let length = bytes.len();
    if length == 0 {
        return;
    }
    let place = |at: u32| at as usize % length;
    let end = |at: usize, count: u32| (at + count as usize).min(length);
    match havoc {
        Havoc::Flip(at, bit) => bytes[place(at)] ^= 1 << (bit % 8),
        Havoc::Set(at, byte) => bytes[place(at)] = byte,
        Havoc::Drop(at, count) => {
            let at = place(at);
            bytes.drain(at..end(at, count));
        }
        Havoc::Repeat(at, count, times) => {
            let at = place(at);
            let piece = bytes[at..end(at, count)].repeat(usize::from(times));
            bytes.splice(at..at, piece);
        }
        Havoc::Insert(at, which) => {
            let at = place(at);
            let piece = PIECES[which as usize % PIECES.len()];
            bytes.splice(at..at, piece.iter().copied());
        }
        Havoc::CutOff(at) => bytes.truncate(place(at)),
    }
}
