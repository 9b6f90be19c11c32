//! The language of steps: parsed from names with values, printed as one line.

use crate::text::{self, Values, written};
use std::fmt;
use units::{Nanos, parse_duration, quoted};

/// Default time that a step waits for an expected segment.
const WITHIN: Nanos = Nanos::SECOND;
const WITHIN_MAX: Nanos = Nanos::from_secs(60);
/// Maximum number of copies of a segment, and of bytes of options.
const TIMES_MAX: u16 = 1_000;
const OPTIONS_MAX: usize = 40;

/// One step of a conversation of raw TCP segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketStep {
    /// Bytes that parts are taken from.
    Stream(PacketContent),
    Open(Opening),
    Segment(Box<SegmentStep>),
    Expect {
        kinds: Vec<PacketKind>,
        within: Nanos,
    },
    Acks(Acks),
    Window(u16),
}

/// Bytes, or their text until the values of a run are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketContent {
    Text(String),
    Bytes(Vec<u8>),
}

impl PacketContent {
    /// Returns the bytes; invalid text, which the parser of cases rules out, is empty.
    pub fn bytes(&self, values: &Values) -> Vec<u8> {
        match self {
            PacketContent::Text(text) => text::bytes(text, values).unwrap_or_default(),
            PacketContent::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// A handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// MSS option; `None` omits it.
    pub mss: Option<u16>,
    /// The advertised window, now and later.
    pub window: u16,
    /// Offers timestamps (RFC 7323).
    pub stamps: bool,
}

impl Default for Opening {
    fn default() -> Opening {
        Opening { mss: Some(1_460), window: u16::MAX, stamps: false }
    }
}

/// Kind of segment that a step can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    SynAck,
    /// A pure acknowledgment.
    Ack,
    Data,
    Fin,
    Rst,
    /// No segment arrived.
    Nothing,
}

impl PacketKind {
    pub const ALL: [PacketKind; 6] = [
        PacketKind::SynAck,
        PacketKind::Ack,
        PacketKind::Data,
        PacketKind::Fin,
        PacketKind::Rst,
        PacketKind::Nothing,
    ];

    pub fn id(self) -> &'static str {
        match self {
            PacketKind::SynAck => "syn-ack",
            PacketKind::Ack => "ack",
            PacketKind::Data => "data",
            PacketKind::Fin => "fin",
            PacketKind::Rst => "rst",
            PacketKind::Nothing => "nothing",
        }
    }

    pub fn from_name(id: &str) -> Option<PacketKind> {
        PacketKind::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Returns the name used in a sentence.
    pub fn text(self) -> &'static str {
        match self {
            PacketKind::SynAck => "a SYN-ACK",
            PacketKind::Ack => "an ACK",
            PacketKind::Data => "data",
            PacketKind::Fin => "a FIN",
            PacketKind::Rst => "a RST",
            PacketKind::Nothing => "no segment",
        }
    }
}

/// Mode of acknowledging received data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// Every segment with content individually.
    #[default]
    Each,
    None,
    /// Acknowledges every segment by several acknowledgments for parts of its bytes (ACK division:
    /// Savage et al., 1999).
    Split,
    /// Acknowledges bytes that have not arrived yet too (optimistic ACKs: CVE-2005-0675).
    Ahead,
}

impl Acks {
    const ALL: [(&'static str, Acks); 4] = [
        ("each", Acks::Each),
        ("none", Acks::None),
        ("split", Acks::Split),
        ("ahead", Acks::Ahead),
    ];

    fn id(self) -> &'static str {
        Acks::ALL.iter().find(|(_, one)| *one == self).map_or("each", |(name, _)| name)
    }
}

/// Reference point of a segment's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceBase {
    Next,
    Start,
    Edge,
}

/// A sequence number by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqPlace {
    pub base: PlaceBase,
    pub more: i32,
}

/// Part of the stream; a negative end counts from the stream's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPart {
    pub from: i32,
    pub to: Option<i32>,
}

impl StreamPart {
    pub const ALL: StreamPart = StreamPart { from: 0, to: None };

    /// Returns the range in a stream of this length.
    pub fn range(self, length: usize) -> std::ops::Range<usize> {
        let place = |at: i32| match usize::try_from(at) {
            Ok(at) => at.min(length),
            Err(_) => length.saturating_sub(at.unsigned_abs() as usize),
        };
        let from = place(self.from);
        let to = self.to.map_or(length, place);
        from.min(to)..to
    }
}

/// One segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentStep {
    /// Bits of [`tcp::flag`]; `None` for the usual ones.
    pub flags: Option<u8>,
    pub seq: Option<SeqPlace>,
    pub ack: Option<SeqPlace>,
    pub window: Option<u16>,
    pub urgent: u16,
    /// Three bits (RFC 9293 section 3.1).
    pub reserved: u8,
    /// Declared size of the header in words.
    pub offset: Option<u8>,
    pub options: Vec<u8>,
    pub stamp: i32,
    pub part: Option<StreamPart>,
    pub data: Option<PacketContent>,
    pub size: Option<u16>,
    pub gap: Nanos,
    pub times: u16,
    pub wrong_sum: bool,
}

const FLAGS: [(char, u8); 8] = [
    ('F', tcp::flag::FIN),
    ('S', tcp::flag::SYN),
    ('R', tcp::flag::RST),
    ('P', tcp::flag::PSH),
    ('A', tcp::flag::ACK),
    ('U', tcp::flag::URG),
    ('E', tcp::flag::ECE),
    ('C', tcp::flag::CWR),
];

/// Names with their values, as in a file.
pub(super) type StepFields = [(String, String)];

impl PacketStep {
    /// Parses a step: its name, its value, and its fields.
    ///
    /// # Errors
    /// Fails with the invalid name or value.
    pub fn read(
        name: &str,
        value: &str,
        fields: &[(String, String)],
    ) -> Result<PacketStep, String> {
        let none = |step: PacketStep| match fields.first() {
            None => Ok(step),
            Some((field, _)) => Err(unknown(name, field)),
        };
        match name {
            "stream" => none(PacketStep::Stream(content(value)?)),
            "open" => opening(fields).map(PacketStep::Open),
            "segment" => segment(fields).map(|step| PacketStep::Segment(Box::new(step))),
            "expect" => expected(value, fields),
            "acks" => {
                let found = Acks::ALL.iter().find(|(known, _)| *known == value);
                let why = || {
                    format!(
                        "{} is not a mode of acknowledgment; write each, none, split or ahead",
                        quoted(value)
                    )
                };
                none(PacketStep::Acks(found.ok_or_else(why)?.1))
            }
            "window" => none(PacketStep::Window(number("window", value)?)),
            _ => Err(format!(
                "{} is not a step; write stream, open, segment, expect, acks or window",
                quoted(name)
            )),
        }
    }

    /// Parses the line written by `Display`.
    ///
    /// # Errors
    /// Fails for an invalid line.
    pub fn parse(line: &str) -> Result<PacketStep, String> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        if name == "stream" {
            return Ok(PacketStep::Stream(made(content(rest)?)));
        }
        let (rest, data) = match rest.split_once("data=") {
            Some((rest, data)) => (rest, Some(data)),
            None => (rest, None),
        };
        let mut fields = Vec::new();
        let mut value = "";
        for word in rest.split_whitespace() {
            match word.split_once('=') {
                Some((field, value)) => fields.push((field.to_owned(), value.to_owned())),
                None => value = word,
            }
        }
        let mut step = PacketStep::read(name, value, &fields)?;
        if let (PacketStep::Segment(segment), Some(data)) = (&mut step, data) {
            segment.data = Some(made(content(data)?));
        }
        Ok(step)
    }

    /// Replaces texts with their bytes.
    #[must_use]
    pub fn compiled(&self, values: &Values) -> PacketStep {
        let made = |content: &PacketContent| PacketContent::Bytes(content.bytes(values));
        match self {
            PacketStep::Stream(content) => PacketStep::Stream(made(content)),
            PacketStep::Segment(segment) => {
                let data = segment.data.as_ref().map(made);
                PacketStep::Segment(Box::new(SegmentStep { data, ..(**segment).clone() }))
            }
            other => other.clone(),
        }
    }

    /// Returns the maximum waiting time.
    pub fn waits(&self) -> Nanos {
        match self {
            PacketStep::Expect { within, .. } => *within,
            _ => Nanos::ZERO,
        }
    }
}

fn made(content: PacketContent) -> PacketContent {
    PacketContent::Bytes(content.bytes(&Values::default()))
}

fn unknown(step: &str, field: &str) -> String {
    format!("{step} has no field {}", quoted(field))
}

fn number<N: std::str::FromStr>(what: &str, text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{} is not a valid {what}", quoted(text)))
}

/// Parses a text, checked with any values.
fn content(text: &str) -> Result<PacketContent, String> {
    text::bytes(text, &Values::default())?;
    Ok(PacketContent::Text(text.to_owned()))
}

fn opening(fields: &StepFields) -> Result<Opening, String> {
    let mut with = Opening::default();
    for (name, value) in fields {
        match (name.as_str(), value.as_str()) {
            ("mss", "none") => with.mss = None,
            ("mss", value) => with.mss = Some(number("mss", value)?),
            ("window", value) => with.window = number("window", value)?,
            ("stamps", "yes") => with.stamps = true,
            _ => return Err(unknown("open", name)),
        }
    }
    Ok(with)
}

fn expected(value: &str, fields: &StepFields) -> Result<PacketStep, String> {
    let kind = |word: &str| {
        let found = PacketKind::from_name(word).filter(|kind| *kind != PacketKind::Nothing);
        found.ok_or_else(|| {
            format!("{} cannot be expected; write syn-ack, ack, data, fin or rst", quoted(word))
        })
    };
    let words = value.split([',', ' ']).filter(|word| !word.is_empty());
    let kinds = words.map(kind).collect::<Result<Vec<PacketKind>, String>>()?;
    if kinds.is_empty() {
        return Err("`expect` names no kind of segment".to_owned());
    }
    let mut within = WITHIN;
    for (name, value) in fields {
        match name.as_str() {
            "within" => within = span(value, WITHIN_MAX)?,
            _ => return Err(unknown("expect", name)),
        }
    }
    Ok(PacketStep::Expect { kinds, within })
}

fn span(text: &str, most: Nanos) -> Result<Nanos, String> {
    match parse_duration(text) {
        Ok(span) if span <= most => Ok(span),
        Ok(_) => Err(format!("{} is more than {}", quoted(text), units::show::duration(most))),
        Err(error) => Err(error.to_string()),
    }
}

fn segment(fields: &StepFields) -> Result<SegmentStep, String> {
    let mut step = SegmentStep { times: 1, ..SegmentStep::default() };
    for (name, value) in fields {
        match name.as_str() {
            "flags" => step.flags = Some(flags(value)?),
            "seq" => step.seq = Some(place(value)?),
            "ack" => step.ack = Some(place(value)?),
            "window" => step.window = Some(number("window", value)?),
            "urgent" => step.urgent = number("urgent pointer", value)?,
            "reserved" => {
                step.reserved =
                    number("number from 0 to 7", value).and_then(|bits: u8| match bits {
                        0..=7 => Ok(bits),
                        _ => Err(format!("{bits} has more than three bits")),
                    })?;
            }
            "offset" => {
                step.offset =
                    Some(number("number from 0 to 15", value).and_then(|words: u8| {
                        if words > 15 {
                            Err(format!("{words} has more than four bits"))
                        } else {
                            Ok(words)
                        }
                    })?);
            }
            "options" => step.options = options(value)?,
            "stamp" => step.stamp = number("number of ticks", value)?,
            "part" => step.part = Some(part(value)?),
            "data" => step.data = Some(content(value)?),
            "size" => step.size = Some(number("number of bytes", value)?),
            "gap" => step.gap = span(value, WITHIN_MAX)?,
            "times" => step.times = number("number of copies", value)?,
            "sum" if value == "wrong" => step.wrong_sum = true,
            _ => return Err(unknown("segment", name)),
        }
    }
    if step.part.is_some() && step.data.is_some() {
        return Err("a segment has either a part or data, not both".to_owned());
    }
    if step.size == Some(0) || step.times == 0 || step.times > TIMES_MAX {
        return Err(format!("size is at least 1, and times is 1 to {TIMES_MAX}"));
    }
    Ok(step)
}

fn flags(text: &str) -> Result<u8, String> {
    let bit = |letter: char| {
        let found = FLAGS.iter().find(|(known, _)| *known == letter);
        found.map(|(_, bit)| *bit).ok_or_else(|| {
            format!("{} in {} is not a flag; write letters of FSRPAUEC, or -", letter, quoted(text))
        })
    };
    let letters = text.chars().filter(|letter| *letter != '-');
    letters.map(bit).try_fold(0, |all, bit| bit.map(|bit| all | bit))
}

fn place(text: &str) -> Result<SeqPlace, String> {
    let wrong =
        || format!("{} is not a position; write next, start or edge, with +N or -N", quoted(text));
    let at = text.find(['+', '-']).unwrap_or(text.len());
    let (base, more) = text.split_at(at);
    let base = match base {
        "next" => PlaceBase::Next,
        "start" => PlaceBase::Start,
        "edge" => PlaceBase::Edge,
        _ => return Err(wrong()),
    };
    let more = if more.is_empty() { 0 } else { more.parse().map_err(|_| wrong())? };
    Ok(SeqPlace { base, more })
}

fn part(text: &str) -> Result<StreamPart, String> {
    let wrong = || format!("{} is not a part; write FROM..TO", quoted(text));
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let end = |text: &str| text.parse::<i32>().map_err(|_| wrong());
    Ok(StreamPart {
        from: if from.is_empty() { 0 } else { end(from)? },
        to: if to.is_empty() { None } else { Some(end(to)?) },
    })
}

fn options(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || {
        format!(
            "{} is not a list of TCP options; write hexadecimal digits, whole words of four \
            bytes, 40 bytes at most",
            quoted(text)
        )
    };
    if !text.is_ascii() || !text.len().is_multiple_of(8) || text.len() > 2 * OPTIONS_MAX {
        return Err(wrong());
    }
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong());
    (0..text.len()).step_by(2).map(byte).collect()
}

impl fmt::Display for PacketContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketContent::Text(text) => f.write_str(text),
            PacketContent::Bytes(bytes) => f.write_str(&written(bytes)),
        }
    }
}

impl fmt::Display for SeqPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.base {
            PlaceBase::Next => "next",
            PlaceBase::Start => "start",
            PlaceBase::Edge => "edge",
        })?;
        if self.more == 0 { Ok(()) } else { write!(f, "{:+}", self.more) }
    }
}

impl fmt::Display for StreamPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from != 0 {
            write!(f, "{}", self.from)?;
        }
        f.write_str("..")?;
        self.to.map_or(Ok(()), |to| write!(f, "{to}"))
    }
}

impl fmt::Display for SegmentStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("segment")?;
        if let Some(flags) = self.flags {
            let named = FLAGS.iter().filter(|(_, bit)| flags & bit != 0);
            let letters: String = named.map(|(letter, _)| *letter).collect();
            write!(f, " flags={}", if letters.is_empty() { "-" } else { &letters })?;
        }
        let mut put = |name: &str, value: Option<String>| match value {
            Some(value) => write!(f, " {name}={value}"),
            None => Ok(()),
        };
        let some = |number: u16| (number != 0).then(|| number.to_string());
        put("seq", self.seq.map(|place| place.to_string()))?;
        put("ack", self.ack.map(|place| place.to_string()))?;
        put("window", self.window.map(|window| window.to_string()))?;
        put("urgent", some(self.urgent))?;
        put("reserved", some(self.reserved.into()))?;
        put("offset", self.offset.map(|words| words.to_string()))?;
        put("options", (!self.options.is_empty()).then(|| units::hex(&self.options)))?;
        put("stamp", (self.stamp != 0).then(|| self.stamp.to_string()))?;
        put("part", self.part.map(|part| part.to_string()))?;
        put("size", self.size.map(|size| size.to_string()))?;
        put("gap", (self.gap != Nanos::ZERO).then(|| format!("{}ns", self.gap.0)))?;
        put("times", some(self.times).filter(|_| self.times > 1))?;
        put("sum", self.wrong_sum.then(|| "wrong".to_owned()))?;
        // last, because its text may contain spaces
        put("data", self.data.as_ref().map(PacketContent::to_string))
    }
}

impl fmt::Display for PacketStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketStep::Stream(content) => write!(f, "stream {content}"),
            PacketStep::Open(Opening { mss, window, stamps }) => {
                let mss = mss.map_or("none".to_owned(), |mss| mss.to_string());
                write!(f, "open mss={mss} window={window}")?;
                f.write_str(if *stamps { " stamps=yes" } else { "" })
            }
            PacketStep::Segment(segment) => segment.fmt(f),
            PacketStep::Expect { kinds, within } => {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.id()).collect();
                write!(f, "expect {} within={}ns", kinds.join(","), within.0)
            }
            PacketStep::Acks(acks) => write!(f, "acks {}", acks.id()),
            PacketStep::Window(window) => write!(f, "window {window}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_data_is_parsed_back() {
        for line in [
            "stream GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n",
            "open mss=none window=0",
            "open mss=64 window=1 stamps=yes",
            "segment flags=- seq=edge+1 ack=start-7 window=0 urgent=3 reserved=7 offset=15",
            "segment flags=SA options=0204ffff stamp=-9 part=3..-4 size=1 gap=5000000ns times=7",
            "segment part=.. sum=wrong",
            "segment seq=next data=a b data=c \\x00",
            "expect ack,rst within=200000000ns",
            "acks ahead",
            "window 17",
        ] {
            let step = PacketStep::parse(line).unwrap();
            assert_eq!(step.to_string(), line);
            assert_eq!(step.compiled(&Values::default()), step, "it has its bytes");
        }
    }

    #[test]
    fn errors_name_the_problem() {
        let field = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        for (name, value, fields, why) in [
            ("knock", "", field("a", "b"), "\"knock\" is not a step"),
            ("open", "", field("mss", "x"), "\"x\" is not a valid mss"),
            ("open", "", field("size", "1"), "open has no field \"size\""),
            ("window", "70000", field("a", "b"), "\"70000\" is not a valid window"),
            ("acks", "late", field("a", "b"), "\"late\" is not a mode of acknowledgment"),
            ("expect", "rain", field("within", "1s"), "\"rain\" cannot be expected"),
            ("expect", "", field("within", "1s"), "`expect` names no kind"),
            ("expect", "ack", field("within", "1h"), "\"1h\" is more than"),
            ("segment", "", field("flags", "X"), "X in \"X\" is not a flag"),
            ("segment", "", field("seq", "here"), "\"here\" is not a position"),
            ("segment", "", field("seq", "next+x"), "\"next+x\" is not a position"),
            ("segment", "", field("part", "1-2"), "\"1-2\" is not a part"),
            ("segment", "", field("options", "020"), "\"020\" is not a list of TCP options"),
            ("segment", "", field("reserved", "8"), "8 has more than three bits"),
            ("segment", "", field("offset", "16"), "16 has more than four bits"),
            ("segment", "", field("times", "0"), "times is 1 to"),
            ("segment", "", field("sum", "right"), "segment has no field \"sum\""),
            ("segment", "", field("data", "{nothing}"), "\"nothing\" is not a macro"),
        ] {
            let error = PacketStep::read(name, value, &fields).unwrap_err();
            assert!(error.contains(why), "{name} {fields:?}: {error}");
        }
    }

    #[test]
    fn a_part_counts_from_either_end() {
        for (text, range) in [
            ("..", 0..10),
            ("3..", 3..10),
            ("..-4", 0..6),
            ("-4..", 6..10),
            ("8..2", 2..2),
            ("..99", 0..10),
        ] {
            assert_eq!(part(text).unwrap().range(10), range, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "(stream|open|segment|expect|acks|window)?[ -~]{0,60}") {
            PacketStep::parse(&line).ok();
        }
    }
}
