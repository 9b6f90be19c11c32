//! Feedback-driven mutation of requests with bodies: a grammar that knows fields, chunks and
//! trailers, and mutations of raw bytes. Mutants that show new behavior are kept and mutated
//! further.

mod behaviour;
mod change;

pub use behaviour::Behaviour;

use super::Shot;
use crate::framing;
use dialogue::talk::Move;
use dialogue::text::Values;
use std::collections::BTreeSet;
use units::{Nanos, Purpose, Seed, Stream};

/// Pause between the pieces of a request.
const PIECE_PAUSE: Nanos = Nanos::from_millis(20);
/// Maximum number of mutations per descendant.
const CHANGES_MAX: u64 = 4;
/// Maximum size of a request in bytes; longer ones are truncated.
const REQUEST_MAX: usize = 16 << 10;
/// Number of newest specimens that get more descendants.
const NEWEST: usize = 8;
/// Maximum length of lists in a specimen.
const PARTS_MAX: usize = 40;

/// Data shared by all requests.
struct Frame<'a> {
    values: &'a Values,
    /// Our field lines.
    fields: &'a str,
}

/// A line of a head or a trailer, with everything that can be invalid in a line.
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

    fn has_name(&self, name: &str) -> bool {
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
    fn new(data: &[u8]) -> MutableChunk {
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
    /// The chunks, their trailers, and the final line terminator.
    Chunked(Vec<MutableChunk>, Vec<MutableLine>, Vec<u8>),
}

/// A mutation of raw bytes: positions are taken modulo the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Havoc {
    Flip(u32, u8),
    Set(u32, u8),
    Drop(u32, u32),
    Repeat(u32, u32, u8),
    /// Inserts a piece of the dictionary.
    Insert(u32, u32),
    CutOff(u32),
}

/// A mutable request with its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specimen {
    method: String,
    target: String,
    version: String,
    line_end: Vec<u8>,
    /// Our field lines: the grammar does not change how we identify ourselves.
    ours: Vec<u8>,
    lines: Vec<MutableLine>,
    head_end: Vec<u8>,
    content: MutableContent,
    havoc: Vec<Havoc>,
    /// Positions at which it is split, modulo the length.
    pieces: Vec<u32>,
    /// The client half-closes after it.
    half_closes: bool,
    /// Mutations since its seed.
    generation: u32,
    /// The part changed last.
    changed: Option<change::MutatedPart>,
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
            changed: None,
        }
    }

    /// Returns the number of generations since its seed.
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

    /// Returns the bytes to send. A valid request follows if this one is complete and unambiguous.
    pub fn shot(&self) -> Shot {
        let bytes = self.bytes();
        let reading = framing::read(&bytes);
        const FOLLOWED: [&str; 4] = ["GET", "HEAD", "POST", "OPTIONS"];
        let follows = reading.is_exact(bytes.len())
            && FOLLOWED.contains(&reading.method.as_str())
            && !self.half_closes;
        // the content of GET responses cannot be predicted here
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

/// Returns the valid requests to start with.
fn seeds(frame: &Frame<'_>) -> Vec<Specimen> {
    let (post, path) = (frame.values.post.as_str(), frame.values.path.as_str());
    let chunked = |pieces: &[&[u8]]| {
        let chunks = pieces.iter().chain([&&b""[..]]).map(|data| MutableChunk::new(data)).collect();
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

/// Specimens that showed new behavior, and the known behaviors.
#[derive(Clone, Debug)]
pub struct Corpus {
    kept: Vec<Specimen>,
    /// Number of descendants of each so far.
    tries: Vec<u64>,
    known: BTreeSet<Behaviour>,
    seeds: usize,
    /// Maximum number of specimens kept beyond the seeds; 0 disables learning.
    most: usize,
}

impl Corpus {
    /// Creates a corpus of the seeds.
    /// `fields`: our field lines.
    pub fn new(values: &Values, fields: &str, most: usize) -> Corpus {
        let kept = seeds(&Frame { values, fields });
        let (seeds, tries) = (kept.len(), vec![0; kept.len()]);
        Corpus { seeds, kept, tries, known: BTreeSet::new(), most }
    }

    /// Returns specimen `index` of this seed: first the seeds, then descendants.
    pub fn specimen(&mut self, seed: u64, index: u64) -> Specimen {
        if let Some(first) = self.kept[..self.seeds].get(index as usize) {
            return first.clone();
        }
        let mut random = stream(seed, index);
        // half of the descendants come from the least used specimens, newest first, and a quarter
        // from the newest ones: behavior that they showed is reached by few requests
        let kept = self.kept.len();
        let least = (0..kept).rev().min_by_key(|at| self.tries[*at]).unwrap_or(0);
        let newest = kept - 1 - random.below(kept.min(NEWEST) as u64) as usize;
        let any = random.below(kept as u64) as usize;
        let parent = match random.below(4) {
            0 | 1 => least,
            2 => newest,
            _ => any,
        };
        self.tries[parent] += 1;
        let other = random.below(kept as u64) as usize;
        let mut child = self.kept[parent].clone();
        // usually one mutation: build on what was kept
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

    /// Keeps a specimen with new behavior; returns whether it was new.
    pub fn learn(&mut self, specimen: &Specimen, behaviour: Behaviour) -> bool {
        let is_new = self.known.insert(behaviour);
        if is_new && self.kept.len() - self.seeds < self.most && specimen.generation > 0 {
            self.kept.push(specimen.clone());
            self.tries.push(0);
        }
        is_new
    }

    /// Returns the number of specimens beyond the seeds.
    pub fn learned(&self) -> usize {
        self.kept.len() - self.seeds
    }

    /// Returns the number of different behaviors so far.
    pub fn behavior_count(&self) -> usize {
        self.known.len()
    }
}

fn stream(seed: u64, index: u64) -> Stream {
    Seed(seed ^ 0x6d75_7461_7465).stream(Purpose::Torture, index)
}

#[cfg(test)]
mod tests;
