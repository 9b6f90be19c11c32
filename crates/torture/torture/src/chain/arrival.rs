//! Compares what arrives after a proxy with what was sent to it.

use crate::framing::{self, FramingReading, MessageEnd};
use std::collections::BTreeMap;

/// Data received on one connection after the proxy: one message from the proxy's point of view,
/// because the origin closes each connection after its response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    pub bytes: Vec<u8>,
    /// The proxy closed the connection before the response: no further message follows.
    pub cut_off: bool,
}

impl Arrival {
    /// Returns whether another message may follow on the connection.
    pub fn may_continue(&self) -> bool {
        if self.cut_off {
            return false;
        }
        let fields = fields(&self.bytes);
        let has_option = |word: &str| {
            let options = fields.get("connection").into_iter().flatten();
            options.clone().any(|value| value.to_ascii_lowercase().contains(word))
        };
        match framing::read(&self.bytes).minor {
            Some(0) => has_option("keep-alive"),
            _ => !has_option("close"),
        }
    }
}

/// Handling of a request by the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Nothing arrived: the proxy responded itself, or closed the connection.
    Refused,
    /// Nothing arrived and the client got no response: the proxy waits for more.
    Waits,
    /// It arrived in an unambiguous form.
    MadeClear,
    /// It arrived incomplete or with a framing violation.
    PassedOn,
    /// The proxy began to forward it and closed the connection before the end.
    CutOff,
    /// The proxy found more than one request in it.
    Split,
}

impl Handling {
    pub const ALL: [Handling; 6] = [
        Handling::Refused,
        Handling::Waits,
        Handling::MadeClear,
        Handling::PassedOn,
        Handling::CutOff,
        Handling::Split,
    ];

    pub fn id(self) -> &'static str {
        match self {
            Handling::Refused => "refused",
            Handling::Waits => "waits",
            Handling::MadeClear => "made-clear",
            Handling::PassedOn => "passed-on",
            Handling::CutOff => "cut-off",
            Handling::Split => "split",
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Handling::Refused => "refused",
            Handling::Waits => "waits for more",
            Handling::MadeClear => "made clear",
            Handling::PassedOn => "passed on",
            Handling::CutOff => "cut off",
            Handling::Split => "split into several requests",
        }
    }

    /// Determines how the proxy handled a request.
    /// `answered`: the client got a response, or the connection was closed.
    pub fn new(arrived: &[Arrival], answered: bool) -> Handling {
        match arrived {
            [] if answered => Handling::Refused,
            [] => Handling::Waits,
            [one] => {
                let reading = framing::read(&one.bytes);
                match is_clear(&reading, one.bytes.len()) {
                    true => Handling::MadeClear,
                    false if one.cut_off && reading.end == MessageEnd::Later => Handling::CutOff,
                    false => Handling::PassedOn,
                }
            }
            _ => Handling::Split,
        }
    }
}

/// Returns whether this is one complete message, regardless of its version and Host.
fn is_clear(reading: &FramingReading, length: usize) -> bool {
    reading.faults.is_empty() && reading.end == MessageEnd::At(length)
}

/// Returns field values by lowercase names from a head whose lines may end in a bare LF.
fn fields(bytes: &[u8]) -> BTreeMap<String, Vec<String>> {
    let head = framing::read(bytes).head;
    let text = String::from_utf8_lossy(&bytes[..head.min(bytes.len())]).into_owned();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        if let Some((name, value)) = line.split_once(':') {
            let name = name.trim().to_ascii_lowercase();
            all.entry(name).or_default().push(value.trim().to_owned());
        }
    }
    all
}

fn first_line(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// Maximum number of names in a list of changes.
const NAMES_MAX: usize = 8;

/// Describes how a message differs from what was sent: first line, fields, framing, content.
pub fn changes(sent: &[u8], arrived: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let (before, after) = (framing::read(sent), framing::read(arrived));
    let lines = (first_line(sent), first_line(arrived));
    if lines.0 != lines.1 {
        found.push(format!("the first line is {}", lines.1));
    }
    if before.framing != after.framing {
        let (was, is) = (before.framing.text(), after.framing.text());
        found.push(format!("framed by {is} instead of {was}"));
    }
    fields_changed(sent, arrived, &mut found);
    let gone = before.faults.iter().filter(|fault| !after.faults.contains(fault));
    found.extend(gone.map(|fault| format!("no longer has {}", fault.text())));
    if before.extensions > 0 && after.extensions == 0 {
        found.push("chunk extensions removed".to_owned());
    }
    if before.trailers > 0 && after.trailers == 0 {
        found.push("trailers removed".to_owned());
    }
    let whole = |reading: &FramingReading| matches!(reading.end, MessageEnd::At(_));
    if whole(&before) && whole(&after) && before.content != after.content {
        let (was, is) = (before.content.len(), after.content.len());
        found.push(format!("{is} bytes of content instead of {was}"));
    }
    found
}

fn fields_changed(sent: &[u8], arrived: &[u8], found: &mut Vec<String>) {
    let (was, is) = (fields(sent), fields(arrived));
    let list = |names: Vec<&String>| {
        let shown: Vec<&str> = names.iter().take(NAMES_MAX).map(|name| name.as_str()).collect();
        shown.join(", ")
    };
    let added: Vec<&String> = is.keys().filter(|name| !was.contains_key(*name)).collect();
    let gone: Vec<&String> = was.keys().filter(|name| !is.contains_key(*name)).collect();
    let other: Vec<&String> = was
        .iter()
        .filter(|(name, values)| is.get(*name).is_some_and(|now| now != *values))
        .map(|(name, _)| name)
        .collect();
    for (names, what) in [(added, "added"), (gone, "removed"), (other, "changed")] {
        if !names.is_empty() {
            found.push(format!("{what}: {}", list(names)));
        }
    }
}
