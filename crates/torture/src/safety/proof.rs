//! Proof of permission for public targets: a small text that the owner of a server publishes. It
//! names the tester, what may be done and until when; what it does not permit is not done.
//!
//! | line | value |
//! |---|---|
//! | `loadstone-torture/1` | the first line, as it stands |
//! | `tester:` | fingerprint of the tester's key: 64 hexadecimal digits |
//! | `host:` | name or address, colon, port |
//! | `groups:` | [groups](CaseGroup), each once, a blank between |
//! | `max-connections:` | connections open at once |
//! | `max-new-connections-per-second:` | |
//! | `max-bytes-per-second:` | bytes sent: `65536`, `64KiB`, `1MiB` |
//! | `window:` | `2026-12-01T01:00Z/2026-12-01T05:00Z`, or `any` |
//! | `not-after:` | the last day, UTC |
//! | `contact:` | who answers for the server |
//! | `behind:` | `none`, a provider, or `provider, permission reference` |
//!
//! All lines, in this order, each once, a line feed after each (after the last it may be missing). As
//! TXT the same lines stand in one record, `"; "` between them.

mod find;
mod moment;
#[cfg(test)]
mod tests;

pub use find::{
    Claim, FILE_PATH, FoundProof, ProofPlace, RECHECK, Sources, digest, find, fingerprint,
    still_there, txt_name,
};
pub use moment::{Day, Minute};

use crate::case::{FOUND, OWN, PACKETS};
use std::fmt;

/// The longest proof, in bytes.
pub const PROOF_MAX: usize = 1 << 10;
/// How far the last day may lie ahead, in days.
pub const DAYS_MAX: i64 = 31;
/// The first line.
const MARK: &str = "loadstone-torture/1";
/// Bytes of a free text: contact, provider, reference.
const WORDS_MAX: usize = 120;
/// The largest number that a proof may name; the ceilings of the program lie far below.
const NUMBER_MAX: u64 = 1 << 40;

/// What may be done to a public target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseGroup {
    Fuzz,
    Syntax,
    Limits,
    Slow,
    Connections,
    Tls,
    Http2,
    Http3,
    Overload,
    /// PUT, DELETE and PATCH.
    Write,
}

impl CaseGroup {
    pub const ALL: [CaseGroup; 10] = [
        CaseGroup::Fuzz,
        CaseGroup::Syntax,
        CaseGroup::Limits,
        CaseGroup::Slow,
        CaseGroup::Connections,
        CaseGroup::Tls,
        CaseGroup::Http2,
        CaseGroup::Http3,
        CaseGroup::Overload,
        CaseGroup::Write,
    ];

    pub fn id(self) -> &'static str {
        match self {
            CaseGroup::Fuzz => "fuzz",
            CaseGroup::Syntax => "syntax",
            CaseGroup::Limits => "limits",
            CaseGroup::Slow => "slow",
            CaseGroup::Connections => "connections",
            CaseGroup::Tls => "tls",
            CaseGroup::Http2 => "http2",
            CaseGroup::Http3 => "http3",
            CaseGroup::Overload => "overload",
            CaseGroup::Write => "write",
        }
    }

    /// The group of a case, by the letter of its id.
    pub fn of_letter(letter: char) -> Option<CaseGroup> {
        Some(match letter {
            'F' => CaseGroup::Fuzz,
            // exchanges like those of S, wherever they come from
            'S' | 'B' | 'J' | 'V' | FOUND | OWN => CaseGroup::Syntax,
            'L' => CaseGroup::Limits,
            'W' => CaseGroup::Slow,
            // valid requests on several connections
            // so is what has segments in place of sockets, which never leaves this machine
            'C' | 'M' | PACKETS => CaseGroup::Connections,
            'T' => CaseGroup::Tls,
            'H' => CaseGroup::Http2,
            'Q' => CaseGroup::Http3,
            'R' => CaseGroup::Overload,
            _ => return None,
        })
    }
}

/// Whose machines stand in front of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    None,
    /// A provider, and where it permitted this.
    Provider {
        name: String,
        permission: Option<String>,
    },
}

/// A proof as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Fingerprint of the tester's key, 64 hexadecimal digits.
    pub tester: String,
    /// `host:port`, lower case.
    pub host: String,
    pub groups: Vec<CaseGroup>,
    pub connections_max: u64,
    /// New connections a second.
    pub opens_max: u64,
    /// Bytes sent a second.
    pub bytes_max: u64,
    /// From and until; `None`: at any time.
    pub window: Option<(Minute, Minute)>,
    /// The last day.
    pub not_after: Day,
    pub contact: String,
    pub behind: Behind,
}

/// Why a text is no proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofError {
    /// Counted from one; 0 for the whole.
    pub line: usize,
    pub why: String,
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.why),
            line => write!(f, "line {line}: {}", self.why),
        }
    }
}

impl std::error::Error for ProofError {}

fn whole(why: impl Into<String>) -> ProofError {
    ProofError { line: 0, why: why.into() }
}

impl Proof {
    /// Reads a proof as it stands in a file.
    ///
    /// # Errors
    /// Longer than [`PROOF_MAX`], or not of the grammar; the line is named.
    pub fn parse(bytes: &[u8]) -> Result<Proof, ProofError> {
        Proof::read(bytes, "\n")
    }

    /// Reads a proof as it stands in a TXT record, whose strings are put together.
    ///
    /// # Errors
    /// As [`Proof::parse`].
    pub fn parse_txt(bytes: &[u8]) -> Result<Proof, ProofError> {
        Proof::read(bytes, "; ")
    }

    fn read(bytes: &[u8], between: &str) -> Result<Proof, ProofError> {
        if bytes.len() > PROOF_MAX {
            return Err(whole(format!("it is longer than {PROOF_MAX} bytes")));
        }
        let plain = |byte: &u8| *byte == b'\n' || *byte == b' ' || byte.is_ascii_graphic();
        if !bytes.iter().all(plain) {
            return Err(whole("it has bytes other than printable ASCII and line feeds"));
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let mut lines = Lines { lines: text.split(between).collect(), at: 0 };
        lines.mark()?;
        let proof = Proof {
            tester: lines.value("tester", tester)?,
            host: lines.value("host", host)?,
            groups: lines.value("groups", groups)?,
            connections_max: lines.value("max-connections", number)?,
            opens_max: lines.value("max-new-connections-per-second", number)?,
            bytes_max: lines.value("max-bytes-per-second", size)?,
            window: lines.value("window", moment::window)?,
            not_after: lines.value("not-after", Day::parse)?,
            contact: lines.value("contact", words)?,
            behind: lines.value("behind", behind)?,
        };
        lines.over()?;
        Ok(proof)
    }

    /// Reads what stands behind `behind:`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_behind(text: &str) -> Result<Behind, String> {
        behind(text)
    }

    /// The text to publish as a file.
    pub fn to_file(&self) -> String {
        let mut text = self.lines().join("\n");
        text.push('\n');
        text
    }

    /// The text to publish as a TXT record.
    pub fn to_txt(&self) -> String {
        self.lines().join("; ")
    }

    fn lines(&self) -> Vec<String> {
        let groups: Vec<&str> = self.groups.iter().map(|group| group.id()).collect();
        let window = match &self.window {
            None => "any".to_owned(),
            Some((from, until)) => format!("{from}/{until}"),
        };
        let behind = match &self.behind {
            Behind::None => "none".to_owned(),
            Behind::Provider { name, permission: None } => name.clone(),
            Behind::Provider { name, permission: Some(reference) } => {
                format!("{name}, permission {reference}")
            }
        };
        vec![
            MARK.to_owned(),
            format!("tester: {}", self.tester),
            format!("host: {}", self.host),
            format!("groups: {}", groups.join(" ")),
            format!("max-connections: {}", self.connections_max),
            format!("max-new-connections-per-second: {}", self.opens_max),
            format!("max-bytes-per-second: {}", size_text(self.bytes_max)),
            format!("window: {window}"),
            format!("not-after: {}", self.not_after),
            format!("contact: {}", self.contact),
            format!("behind: {behind}"),
        ]
    }

    /// Whether it permits this tester to test this host now.
    ///
    /// # Errors
    /// The first thing that it does not permit, as a sentence.
    pub fn check(&self, claim: &Claim, unix_seconds: i64) -> Result<(), String> {
        if self.tester != claim.tester {
            return Err(format!(
                "it names another tester: {}… and not {}…",
                &self.tester[..12],
                claim.tester.get(..12).unwrap_or(&claim.tester)
            ));
        }
        if self.host != claim.host {
            return Err(format!("it is about {} and not {}", self.host, claim.host));
        }
        let today = unix_seconds.div_euclid(moment::DAY_S);
        if today > self.not_after.since_epoch() {
            return Err(format!("its last day was {}", self.not_after));
        }
        if self.not_after.since_epoch() - today > DAYS_MAX {
            return Err(format!(
                "its last day, {}, is more than {DAYS_MAX} days ahead",
                self.not_after
            ));
        }
        match &self.window {
            Some((from, _)) if unix_seconds < from.unix_seconds() => {
                Err(format!("its window opens at {from}"))
            }
            Some((_, until)) if unix_seconds >= until.unix_seconds() => {
                Err(format!("its window closed at {until}"))
            }
            _ => Ok(()),
        }
    }

    /// Whether it permits a group; a provider in front has to permit what presses, too.
    pub fn permits(&self, group: CaseGroup) -> bool {
        self.groups.contains(&group)
    }

    /// Whether machines of others stand in front that have not permitted this.
    pub fn lacks_permission_of(&self) -> Option<&str> {
        match &self.behind {
            Behind::Provider { name, permission: None } => Some(name),
            _ => None,
        }
    }
}

/// The lines that are still to be read.
struct Lines<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl Lines<'_> {
    fn wrong(&self, why: impl Into<String>) -> ProofError {
        ProofError { line: self.at, why: why.into() }
    }

    fn mark(&mut self) -> Result<(), ProofError> {
        self.at = 1;
        match self.lines.first() {
            Some(&MARK) => Ok(()),
            _ => Err(self.wrong(format!("it is not {MARK}"))),
        }
    }

    fn value<T>(
        &mut self,
        key: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ProofError> {
        let line = self.lines.get(self.at).copied();
        self.at += 1;
        let value = line
            .and_then(|line| line.strip_prefix(key))
            .and_then(|rest| rest.strip_prefix(": "))
            .ok_or_else(|| self.wrong(format!("it does not begin with \"{key}: \"")))?;
        read(value).map_err(|why| self.wrong(why))
    }

    fn over(mut self) -> Result<(), ProofError> {
        let surplus = self.lines.len() > self.at;
        self.at += 1;
        if surplus { Err(self.wrong("nothing may follow \"behind\"")) } else { Ok(()) }
    }
}

fn tester(text: &str) -> Result<String, String> {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() == 64 && text.bytes().all(digit) {
        Ok(text.to_owned())
    } else {
        Err("a fingerprint is 64 hexadecimal digits, lower case".to_owned())
    }
}

fn host(text: &str) -> Result<String, String> {
    let wrong = || format!("{} is not of the form www.example.org:443", units::quoted(text));
    let (name, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let letter =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._[]:".contains(&byte);
    let good = !name.is_empty() && name.len() <= 255 && name.bytes().all(letter);
    let port_good = port.parse::<u16>().is_ok_and(|found| found > 0 && found.to_string() == port);
    if good && port_good { Ok(text.to_owned()) } else { Err(wrong()) }
}

fn groups(text: &str) -> Result<Vec<CaseGroup>, String> {
    let mut found = Vec::new();
    for name in text.split(' ') {
        let group = CaseGroup::ALL.into_iter().find(|group| group.id() == name);
        let group = group.ok_or_else(|| format!("{} is not a group", units::quoted(name)))?;
        if found.contains(&group) {
            return Err(format!("{name} appears twice"));
        }
        found.push(group);
    }
    Ok(found)
}

fn number(text: &str) -> Result<u64, String> {
    let found = text.parse::<u64>().ok().filter(|found| found.to_string() == text);
    found.filter(|found| (1..=NUMBER_MAX).contains(found)).ok_or_else(|| {
        format!("{} is not a whole number from 1 to {NUMBER_MAX}", units::quoted(text))
    })
}

const UNITS: [(&str, u32); 2] = [("MiB", 20), ("KiB", 10)];

fn size(text: &str) -> Result<u64, String> {
    for (unit, shift) in UNITS {
        if let Some(count) = text.strip_suffix(unit) {
            return Ok(number(count)?.min(NUMBER_MAX >> shift) << shift);
        }
    }
    number(text)
}

fn size_text(bytes: u64) -> String {
    let unit = UNITS.into_iter().find(|(_, shift)| bytes.is_multiple_of(1 << shift));
    unit.map_or(bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

fn words(text: &str) -> Result<String, String> {
    let good = !text.is_empty()
        && text.len() <= WORDS_MAX
        && text.trim() == text
        && !text.contains(';')
        && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!("a text of 1 to {WORDS_MAX} bytes without ; goes here"))
    }
}

fn behind(text: &str) -> Result<Behind, String> {
    if text == "none" {
        return Ok(Behind::None);
    }
    let (name, permission) = match text.split_once(", ") {
        None => (text, None),
        Some((name, rest)) => {
            let reference = rest.strip_prefix("permission ").ok_or_else(|| {
                "write none, a provider, or provider, permission reference".to_owned()
            })?;
            (name, Some(words(reference)?))
        }
    };
    Ok(Behind::Provider { name: words(name)?, permission })
}
