//! Proof of permission for public targets: a short text that the owner of a server publishes. It
//! names the tester, the permitted groups and the expiry; everything else is forbidden.
//!
//! | line | value |
//! |---|---|
//! | `loadstone-torture/1` | the literal first line |
//! | `tester:` | fingerprint of the tester's key: 64 hexadecimal digits |
//! | `host:` | name or address, colon, port |
//! | `groups:` | [groups](CaseGroup), each once, separated by spaces |
//! | `max-connections:` | open connections |
//! | `max-new-connections-per-second:` | |
//! | `max-bytes-per-second:` | bytes sent: `65536`, `64KiB`, `1MiB` |
//! | `window:` | `2026-12-01T01:00Z/2026-12-01T05:00Z`, or `any` |
//! | `not-after:` | the last day, UTC |
//! | `contact:` | the person responsible for the server |
//! | `behind:` | `none`, a provider, or `provider, permission reference` |
//!
//! All lines are required, once, in this order, each followed by a line feed (optional after the
//! last). A TXT record contains the same lines, separated by `"; "`.

mod find;
mod moment;
#[cfg(test)]
mod tests;

pub use find::{
    Claim, FILE_PATH, FoundProof, ProofPlace, RECHECK, Sources, digest, find, fingerprint,
    txt_name, verify_published,
};
pub use moment::{Day, Minute};

use crate::case::{FOUND, GRPC, OWN, PACKETS, SOCKETS};
use std::fmt;

/// Maximum size of a proof in bytes.
pub const PROOF_MAX: usize = 1 << 10;
/// Maximum number of days until the last day.
pub const DAYS_MAX: i64 = 31;
/// The first line.
const MARK: &str = "loadstone-torture/1";
/// Maximum size of a free text in bytes: contact, provider, reference.
const WORDS_MAX: usize = 120;
/// Largest number in a proof; the maximums of the program are far lower.
const NUMBER_MAX: u64 = 1 << 40;

/// A group of actions on a public target.
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
    Grpc,
    Overload,
    /// PUT, DELETE and PATCH.
    Write,
}

impl CaseGroup {
    pub const ALL: [CaseGroup; 11] = [
        CaseGroup::Fuzz,
        CaseGroup::Syntax,
        CaseGroup::Limits,
        CaseGroup::Slow,
        CaseGroup::Connections,
        CaseGroup::Tls,
        CaseGroup::Http2,
        CaseGroup::Http3,
        CaseGroup::Grpc,
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
            CaseGroup::Grpc => "grpc",
            CaseGroup::Overload => "overload",
            CaseGroup::Write => "write",
        }
    }

    /// Returns the group of a case by the letter of its id.
    pub fn by_letter(letter: char) -> Option<CaseGroup> {
        Some(match letter {
            'F' => CaseGroup::Fuzz,
            // exchanges like those of S, regardless of their origin
            'S' | 'B' | 'J' | 'V' | SOCKETS | FOUND | OWN => CaseGroup::Syntax,
            'L' => CaseGroup::Limits,
            'W' => CaseGroup::Slow,
            // valid requests on several connections, and raw TCP segments, which never leave this
            // machine
            'C' | 'M' | PACKETS => CaseGroup::Connections,
            'T' => CaseGroup::Tls,
            'H' => CaseGroup::Http2,
            'Q' => CaseGroup::Http3,
            GRPC => CaseGroup::Grpc,
            'R' => CaseGroup::Overload,
            _ => return None,
        })
    }
}

/// Third-party machines in front of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    None,
    /// A provider, and its permission.
    Provider {
        name: String,
        permission: Option<String>,
    },
}

/// A parsed proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Fingerprint of the tester's key, 64 hexadecimal digits.
    pub tester: String,
    /// `host:port` in lowercase.
    pub host: String,
    pub groups: Vec<CaseGroup>,
    pub connections_max: u64,
    /// New connections per second.
    pub opens_max: u64,
    /// Bytes sent per second.
    pub bytes_max: u64,
    /// Start and end of the permitted time, or `None` if any time is permitted.
    pub window: Option<(Minute, Minute)>,
    /// The last day.
    pub not_after: Day,
    pub contact: String,
    pub behind: Behind,
}

/// Reason why a text is not a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofError {
    /// Starts at 1; 0 for the whole text.
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
    /// Parses a proof file.
    ///
    /// # Errors
    /// Fails if it is longer than [`PROOF_MAX`], or invalid; the line is named.
    pub fn parse(bytes: &[u8]) -> Result<Proof, ProofError> {
        Proof::read(bytes, "\n")
    }

    /// Parses a proof in a TXT record, whose strings are concatenated.
    ///
    /// # Errors
    /// Fails like [`Proof::parse`].
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
            behind: lines.value("behind", parse_behind)?,
        };
        lines.expect_end()?;
        Ok(proof)
    }

    /// Parses the value of `behind:`.
    ///
    /// # Errors
    /// Fails if the text is invalid, with a description of the problem.
    pub fn parse_provider(text: &str) -> Result<Behind, String> {
        parse_behind(text)
    }

    /// Returns the text to publish as a file.
    pub fn to_file(&self) -> String {
        let mut text = self.lines().join("\n");
        text.push('\n');
        text
    }

    /// Returns the text to publish as a TXT record.
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

    /// Checks whether it permits this tester to test this host now.
    ///
    /// # Errors
    /// Fails with the first violation, as a sentence.
    pub fn check(&self, claim: &Claim, unix_seconds: i64) -> Result<(), String> {
        if self.tester != claim.tester {
            return Err(format!(
                "it names another tester: {}… instead of {}…",
                &self.tester[..12],
                claim.tester.get(..12).unwrap_or(&claim.tester)
            ));
        }
        if self.host != claim.host {
            return Err(format!("it is for {}, not for {}", self.host, claim.host));
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
                Err(format!("its time window opens at {from}"))
            }
            Some((_, until)) if unix_seconds >= until.unix_seconds() => {
                Err(format!("its time window closed at {until}"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether it permits a group; for stress, a provider in front must permit it too.
    pub fn permits(&self, group: CaseGroup) -> bool {
        self.groups.contains(&group)
    }

    /// Returns the third party in front that has not given permission, if any.
    pub fn party_without_permission(&self) -> Option<&str> {
        match &self.behind {
            Behind::Provider { name, permission: None } => Some(name),
            _ => None,
        }
    }
}

/// The lines not parsed yet.
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

    fn expect_end(mut self) -> Result<(), ProofError> {
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
        Err("write a fingerprint of 64 lowercase hexadecimal digits".to_owned())
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
        Err(format!("write a text of 1 to {WORDS_MAX} bytes without ;"))
    }
}

fn parse_behind(text: &str) -> Result<Behind, String> {
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
