//! Requests with bodies that are changed again and again: a grammar that knows fields, chunks and
//! trailers, and changes that know nothing. What brings a new behaviour of the server to light is kept,
//! and the next ones are made of it.

mod behaviour;
mod change;

pub use behaviour::Behaviour;

use super::Shot;
use crate::framing;
use dialogue::talk::Move;
use dialogue::text::Values;
use std::collections::BTreeSet;
use units::{Nanos, Purpose, Seed, Stream};

/// Between two pieces of a request that is sent in pieces.
const PIECE_PAUSE: Nanos = Nanos::from_millis(20);
/// Changes of one descendant at most.
const CHANGES_MAX: u64 = 4;
/// Bytes of a request at most; what grows beyond is cut off.
const REQUEST_MAX: usize = 16 << 10;
/// Lists in a specimen grow no longer than this.
const PARTS_MAX: usize = 40;

/// What every request shares.
struct Frame<'a> {
    values: &'a Values,
    /// Field lines of ours.
    fields: &'a str,
}

/// A line of a head or of a trailer, with everything that can be wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MutableLine {
    name: Vec<u8>,
    colon: Vec<u8>,
    value: Vec<u8>,
    end: Vec<u8>,
}

impl MutableLine {
    fn new(name: &str, value: &str) -> MutableLine {
        MutableLine {
            name: name.into(),
            colon: b": ".to_vec(),
            value: value.into(),
            end: b"\r\n".to_vec(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        for part in [&self.name, &self.colon, &self.value, &self.end] {
            out.extend_from_slice(part);
        }
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// A chunk; one without data is the last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MutableChunk {
    size: Vec<u8>,
    extension: Vec<u8>,
    line_end: Vec<u8>,
    data: Vec<u8>,
    end: Vec<u8>,
}

impl MutableChunk {
    fn of(data: &[u8]) -> MutableChunk {
        MutableChunk {
            size: format!("{:x}", data.len()).into(),
            extension: Vec::new(),
            line_end: b"\r\n".to_vec(),
            data: data.to_vec(),
            end: if data.is_empty() { Vec::new() } else { b"\r\n".to_vec() },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum MutableContent {
    Sized(Vec<u8>),
    /// The chunks, their trailers, and the line end behind all.
    Chunked(Vec<MutableChunk>, Vec<MutableLine>, Vec<u8>),
}

/// A change of bytes, wherever they stand: positions are taken modulo the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Havoc {
    Flip(u32, u8),
    Set(u32, u8),
    Drop(u32, u32),
    Repeat(u32, u32, u8),
    /// A piece of the dictionary.
    Insert(u32, u32),
    CutOff(u32),
}

/// A request that can be changed, and its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specimen {
    method: String,
    target: String,
    version: String,
    line_end: Vec<u8>,
    /// Field lines of ours: who we are is not changed by the grammar.
    ours: Vec<u8>,
    lines: Vec<MutableLine>,
    head_end: Vec<u8>,
    content: MutableContent,
    havoc: Vec<Havoc>,
    /// Where it is cut in pieces, modulo the length.
    pieces: Vec<u32>,
    /// The client ends its side behind it.
    half_closes: bool,
    /// Changes since the seed that it comes from.
    generation: u32,
}

impl Specimen {
    fn seed(method: &str, target: &str, frame: &Frame<'_>, content: MutableContent) -> Specimen {
        let mut lines = vec![MutableLine::new("Host", &frame.values.host)];
        match &content {
            MutableContent::Sized(data) if !data.is_empty() => {
                lines.push(MutableLine::new("Content-Length", &data.len().to_string()));
            }
            MutableContent::Sized(_) => {}
            MutableContent::Chunked(..) => {
                lines.push(MutableLine::new("Transfer-Encoding", "chunked"));
            }
        }
        Specimen {
            method: method.to_owned(),
            target: target.to_owned(),
            version: "HTTP/1.1".to_owned(),
            line_end: b"\r\n".to_vec(),
            ours: frame.fields.into(),
            lines,
            head_end: b"\r\n".to_vec(),
            content,
            havoc: Vec::new(),
            pieces: Vec::new(),
            half_closes: false,
            generation: 0,
        }
    }

    /// How many descents lie between it and a seed.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {} {}", self.method, self.target, self.version).into_bytes();
        out.extend_from_slice(&self.line_end);
        out.extend_from_slice(&self.ours);
        self.lines.iter().for_each(|line| line.write(&mut out));
        out.extend_from_slice(&self.head_end);
        match &self.content {
            MutableContent::Sized(data) => out.extend_from_slice(data),
            MutableContent::Chunked(chunks, trailers, end) => {
                for chunk in chunks {
                    let MutableChunk { size, extension, line_end, data, end } = chunk;
                    for part in [size, extension, line_end, data, end] {
                        out.extend_from_slice(part);
                    }
                }
                trailers.iter().for_each(|line| line.write(&mut out));
                out.extend_from_slice(end);
            }
        }
        self.havoc.iter().for_each(|havoc| change::apply(*havoc, &mut out));
        out.truncate(REQUEST_MAX);
        out
    }

    /// What is sent. A valid request follows where this one is whole and nobody can read it otherwise.
    pub fn shot(&self) -> Shot {
        let bytes = self.bytes();
        let reading = framing::read(&bytes);
        const FOLLOWED: [&str; 4] = ["GET", "HEAD", "POST", "OPTIONS"];
        let follows = reading.is_exact(bytes.len())
            && FOLLOWED.contains(&reading.method.as_str())
            && !self.half_closes;
        // the content of responses to GET is nobody's to foretell here
        let head = reading.method.eq_ignore_ascii_case("HEAD");
        let methods = vec![if head { "HEAD" } else { "POST" }.to_owned()];
        Shot { moves: self.moves(&bytes), methods, valid: false, follows }
    }

    fn moves(&self, bytes: &[u8]) -> Vec<Move> {
        let mut cuts: Vec<usize> =
            self.pieces.iter().map(|at| *at as usize % bytes.len().max(1)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut moves = Vec::new();
        let mut from = 0;
        for at in cuts.into_iter().filter(|at| *at > 0) {
            moves.extend([Move::Send(bytes[from..at].to_vec()), Move::Pause(PIECE_PAUSE)]);
            from = at;
        }
        moves.push(Move::Send(bytes[from..].to_vec()));
        if self.half_closes {
            moves.push(Move::HalfClose);
        }
        moves
    }
}

/// Valid requests to begin with.
fn seeds(frame: &Frame<'_>) -> Vec<Specimen> {
    let (post, path) = (frame.values.post.as_str(), frame.values.path.as_str());
    let chunked = |pieces: &[&[u8]]| {
        let chunks = pieces.iter().chain([&&b""[..]]).map(|data| MutableChunk::of(data)).collect();
        MutableContent::Chunked(chunks, Vec::new(), b"\r\n".to_vec())
    };
    let sized = |data: &[u8]| MutableContent::Sized(data.to_vec());
    let mut form = Specimen::seed("POST", post, frame, sized(b"a=1&b=%20&c"));
    form.lines.push(MutableLine::new("Content-Type", "application/x-www-form-urlencoded"));
    let mut waits = Specimen::seed("POST", post, frame, sized(b"abcde"));
    waits.lines.push(MutableLine::new("Expect", "100-continue"));
    vec![
        Specimen::seed("POST", post, frame, sized(b"abcde")),
        Specimen::seed("POST", post, frame, chunked(&[b"abcde"])),
        Specimen::seed("POST", post, frame, chunked(&[b"abc", b"0123456789abcdef"])),
        form,
        waits,
        Specimen::seed("GET", path, frame, sized(b"abcde")),
        Specimen::seed("GET", path, frame, chunked(&[b"abcde"])),
        Specimen::seed("HEAD", path, frame, sized(b"abcde")),
    ]
}

/// Specimens that each brought something to light, and the behaviours that are known.
#[derive(Clone, Debug)]
pub struct Corpus {
    kept: Vec<Specimen>,
    /// Descendants of each so far.
    tries: Vec<u64>,
    known: BTreeSet<Behaviour>,
    seeds: usize,
    /// Kept beyond the seeds at most; 0: nothing is learned from.
    most: usize,
}

impl Corpus {
    /// `fields`: field lines of ours.
    pub fn new(values: &Values, fields: &str, most: usize) -> Corpus {
        let kept = seeds(&Frame { values, fields });
        let (seeds, tries) = (kept.len(), vec![0; kept.len()]);
        Corpus { seeds, kept, tries, known: BTreeSet::new(), most }
    }

    /// Specimen `index` of this seed: the seeds as they are, then descendants.
    pub fn specimen(&mut self, seed: u64, index: u64) -> Specimen {
        if let Some(first) = self.kept[..self.seeds].get(index as usize) {
            return first.clone();
        }
        let mut random = stream(seed, index);
        // half of the descendants are of what has been tried least, the latest first
        let kept = self.kept.len();
        let least = (0..kept).rev().min_by_key(|at| self.tries[*at]).unwrap_or(0);
        let any = random.below(kept as u64) as usize;
        let parent = if random.below(2) == 0 { least } else { any };
        self.tries[parent] += 1;
        let other = random.below(kept as u64) as usize;
        let mut child = self.kept[parent].clone();
        // one change mostly: what is kept is to be built on, not torn down
        let mut changes = 1;
        while changes < CHANGES_MAX && random.below(2) == 0 {
            changes += 1;
        }
        for _ in 0..changes {
            change::change(&mut child, &self.kept[other], &mut random);
        }
        child.generation += 1;
        child
    }

    /// Keeps a specimen whose behaviour is new; whether it is.
    pub fn learn(&mut self, specimen: &Specimen, behaviour: Behaviour) -> bool {
        let is_new = self.known.insert(behaviour);
        if is_new && self.kept.len() - self.seeds < self.most && specimen.generation > 0 {
            self.kept.push(specimen.clone());
            self.tries.push(0);
        }
        is_new
    }

    /// Specimens beyond the seeds.
    pub fn learned(&self) -> usize {
        self.kept.len() - self.seeds
    }

    /// Different behaviours so far.
    pub fn behaviours(&self) -> usize {
        self.known.len()
    }
}

fn stream(seed: u64, index: u64) -> Stream {
    Seed(seed ^ 0x6d75_7461_7465).stream(Purpose::Torture, index)
}

#[cfg(test)]
mod tests;
