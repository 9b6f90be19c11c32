//! Name servers: the questions, the kept part of a reply, and fingerprints measured on loopback
//! with Debian 12 packages. No question makes a server query others (recursion is not desired) or
//! changes anything.

use crate::survey::table::{Fingerprint, Trait};

/// The header of a message (RFC 1035 section 4.1.1), in bytes.
const HEADER: usize = 12;
/// Record types and classes (RFC 1035 section 3.2).
const A: u16 = 1;
const TXT: u16 = 16;
const IN: u16 = 1;
const CHAOS: u16 = 3;
const HESIOD: u16 = 4;
const ANY_CLASS: u16 = 255;
/// The server-status opcode, which is undefined (RFC 1035 section 4.1.1).
const STATUS: u16 = 2;
/// A name that no server has (RFC 6761 section 6.4).
const NOWHERE: &str = "loadstone.invalid";
/// EDNS (RFC 6891): its record type, and the announced UDP payload size.
const OPT: u16 = 41;
const PAYLOAD: u16 = 1_232;
/// Maximum size of a server's claim in bytes.
const CLAIM_MAX: usize = 100;

/// One question: its name, and its message without an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    pub name: &'static str,
    opcode: u16,
    asked: &'static [(&'static str, u16, u16)],
    /// The EDNS version.
    edns: Option<u8>,
}

const fn query(name: &'static str) -> Query {
    Query { name, opcode: 0, asked: &[], edns: None }
}

/// The question for a name server's claim.
pub const VERSION: &str = "version.bind";

/// The questions, in order. `version.bind` and `id.server` are conventions (RFC 4892); the rest are
/// harmless oddities.
pub const QUERIES: [Query; 11] = [
    Query { asked: &[("version.bind", TXT, CHAOS)], ..query(VERSION) },
    Query { asked: &[("id.server", TXT, CHAOS)], ..query("id.server") },
    Query { asked: &[("version.server", TXT, CHAOS)], ..query("version.server") },
    Query { asked: &[("authors.bind", TXT, CHAOS)], ..query("authors.bind") },
    Query { asked: &[(NOWHERE, TXT, CHAOS)], ..query("an unknown name of class CH") },
    Query { asked: &[(NOWHERE, A, HESIOD)], ..query("class HS") },
    Query { asked: &[(NOWHERE, A, ANY_CLASS)], ..query("any class") },
    Query { asked: &[(NOWHERE, A, IN)], opcode: STATUS, ..query("opcode STATUS") },
    Query { asked: &[], ..query("no question") },
    Query { asked: &[(NOWHERE, A, IN), (NOWHERE, TXT, IN)], ..query("two questions") },
    Query { asked: &[(NOWHERE, A, IN)], edns: Some(1), ..query("EDNS version 1") },
];

/// Returns the only question for third-party servers.
pub fn plain() -> &'static Query {
    &QUERIES[0]
}

impl Query {
    /// Returns the message with this id.
    pub fn message(&self, id: u16) -> Vec<u8> {
        let count = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let mut out = Vec::with_capacity(64);
        let extra = u16::from(self.edns.is_some());
        for word in [id, self.opcode << 11, count(self.asked.len()), 0, 0, extra] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        for (name, kind, class) in self.asked {
            for label in name.split('.') {
                // the names are ours, and their labels shorter than 64 bytes
                out.push(label.len() as u8);
                out.extend_from_slice(label.as_bytes());
            }
            out.push(0);
            out.extend_from_slice(&kind.to_be_bytes());
            out.extend_from_slice(&class.to_be_bytes());
        }
        if let Some(version) = self.edns {
            out.push(0);
            out.extend_from_slice(&OPT.to_be_bytes());
            out.extend_from_slice(&PAYLOAD.to_be_bytes());
            out.extend_from_slice(&[0, version, 0, 0, 0, 0]);
        }
        out
    }
}

/// Returns whether this is a reply to a question with this id.
pub fn is_reply(message: &[u8], id: u16) -> bool {
    message.len() >= HEADER && message.starts_with(&id.to_be_bytes()) && message[2] & 0x80 != 0
}

/// Returns the distinguishing part of a reply: flags, code, and the number of records of each kind.
/// `None` means no reply.
pub fn signature(reply: Option<&[u8]>) -> String {
    let Some(head) = reply.and_then(|reply| reply.get(..HEADER)) else {
        return "silent".to_owned();
    };
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let bits = word(2);
    const FLAGS: [(u16, &str); 4] =
        [(0x0400, "aa "), (0x0200, "tc "), (0x0080, "ra "), (0x0040, "z ")];
    let flags: String =
        FLAGS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    let some = |count: u16| if count == 0 { "0" } else { "n" };
    // the number of authors changes between versions
    let (asked, answers, rest) = (word(4), some(word(6)), some(word(8)));
    format!("{flags}rcode {} {asked}/{answers}/{rest}", bits & 15)
}

/// Returns the text of the first TXT record of a reply, truncated if too long; empty: none.
pub fn text(reply: &[u8]) -> String {
    first_text(reply).unwrap_or_default()
}

fn first_text(reply: &[u8]) -> Option<String> {
    let head = reply.get(..HEADER)?;
    let (asked, answers) =
        (u16::from_be_bytes([head[4], head[5]]), u16::from_be_bytes([head[6], head[7]]));
    let mut at = HEADER;
    for _ in 0..asked {
        at = skip_name(reply, at)? + 4;
    }
    if answers == 0 {
        return None;
    }
    at = skip_name(reply, at)?;
    let fixed = reply.get(at..at + 10)?;
    if u16::from_be_bytes([fixed[0], fixed[1]]) != TXT {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
    let data = reply.get(at + 10..at + 10 + length)?;
    let words = data.get(1..1 + usize::from(*data.first()?))?;
    let shown = String::from_utf8_lossy(&words[..words.len().min(CLAIM_MAX)]).into_owned();
    Some(shown.chars().filter(|c| !c.is_control()).collect())
}

/// Returns the position after a name: labels up to an empty one, or to a pointer (RFC 1035 section
/// 4.1.4).
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length if length & 0xc0 == 0xc0 => return Some(at + 2),
            length => at += 1 + usize::from(length),
        }
    }
}

/// Returns the claim in a reply to `version.bind`. BIND returns a bare version.
pub fn claim(reply: Option<&[u8]>) -> String {
    let version = reply.map(text).unwrap_or_default();
    match version.starts_with("9.") {
        true => format!("BIND {version}"),
        false => version,
    }
}

/// Observations of BIND 9.18, Unbound 1.17, NSD 4.6, Knot DNS 3.2, the authoritative server of
/// PowerDNS 4.7 and dnsmasq 2.90, each queried on loopback in November 2026. A server's claim can
/// be disabled and has little weight.
pub static TABLE: [Fingerprint; 6] = [
    Fingerprint {
        software: "BIND",
        claims: &["BIND"],
        traits: &[
            Trait::new("version.server", 2, "rcode 5 1/0/0"),
            Trait::new("authors.bind", 2, "aa tc rcode 0 1/n/*"),
            Trait::new("class HS", 1, "rcode 5 1/0/0"),
            Trait::new("any class", 3, "rcode 1 1/0/0"),
            Trait::new("opcode STATUS", 2, "rcode 4 0/0/0"),
            Trait::new("no question", 1, "rcode 1 0/0/0"),
            Trait::new("EDNS version 1", 1, "rcode 0 1/0/0"),
        ],
    },
    Fingerprint {
        software: "Unbound",
        claims: &["unbound"],
        traits: &[
            Trait::new("authors.bind", 1, "ra rcode 5 1/0/0"),
            Trait::new("an unknown name of class CH", 2, "ra rcode 5 1/0/0"),
            Trait::new("class HS", 2, "ra rcode 5 1/0/0"),
            Trait::new("any class", 1, "ra rcode 5 1/0/0"),
            Trait::new("opcode STATUS", 3, "rcode 4 1/0/0"),
            Trait::new("no question", 2, "rcode 1 0/0/0"),
            Trait::new("two questions", 2, "rcode 1 2/0/0"),
            Trait::new("EDNS version 1", 1, "ra rcode 0 1/0/0"),
        ],
    },
    Fingerprint {
        software: "NSD",
        claims: &["NSD"],
        traits: &[
            Trait::new("authors.bind", 1, "rcode 5 1/0/0"),
            Trait::new("an unknown name of class CH", 1, "rcode 5 1/0/0"),
            Trait::new("class HS", 3, "rcode 5 0/0/0"),
            Trait::new("any class", 1, "rcode 5 1/0/0"),
            Trait::new("opcode STATUS", 2, "rcode 4 0/0/0"),
            Trait::new("no question", 1, "rcode 1 0/0/0"),
            Trait::new("two questions", 3, "rcode 1 0/0/0"),
            Trait::new("EDNS version 1", 1, "rcode 0 1/0/0"),
        ],
    },
    Fingerprint {
        software: "Knot DNS",
        claims: &["Knot DNS"],
        traits: &[
            Trait::new("authors.bind", 1, "rcode 5 1/0/0"),
            Trait::new("an unknown name of class CH", 1, "rcode 5 1/0/0"),
            Trait::new("class HS", 2, "rcode 5 1/0/0"),
            Trait::new("any class", 1, "rcode 5 1/0/0"),
            Trait::new("opcode STATUS", 3, "rcode 4 1/0/0"),
            Trait::new("no question", 1, "rcode 1 0/0/0"),
            Trait::new("two questions", 3, "silent"),
            Trait::new("EDNS version 1", 1, "rcode 0 1/0/0"),
        ],
    },
    Fingerprint {
        software: "PowerDNS",
        claims: &["PowerDNS Authoritative Server", "PowerDNS"],
        traits: &[
            Trait::new("version.server", 1, "aa rcode 5 1/0/0"),
            Trait::new("an unknown name of class CH", 2, "aa rcode 5 1/0/0"),
            Trait::new("class HS", 2, "aa rcode 5 1/0/0"),
            Trait::new("any class", 1, "rcode 5 1/0/0"),
            Trait::new("opcode STATUS", 3, "silent"),
            Trait::new("no question", 2, "silent"),
            Trait::new("two questions", 2, "silent"),
            Trait::new("EDNS version 1", 1, "aa rcode 0 1/0/0"),
        ],
    },
    Fingerprint {
        software: "dnsmasq",
        claims: &["dnsmasq"],
        traits: &[
            Trait::new("id.server", 2, "ra rcode 4 1/0/0"),
            Trait::new("version.server", 2, "ra rcode 4 1/0/0"),
            Trait::new("authors.bind", 2, "aa ra rcode 0 1/n/0"),
            Trait::new("class HS", 1, "ra rcode 5 1/0/0"),
            Trait::new("opcode STATUS", 2, "ra rcode 5 1/0/0"),
            Trait::new("no question", 2, "ra rcode 5 0/0/0"),
            Trait::new("two questions", 2, "ra rcode 5 2/0/0"),
            Trait::new("EDNS version 1", 2, "ra rcode 5 1/0/0"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::classify;

    /// Reply of Unbound 1.17.1 to the question with id 1.
    const UNBOUND: &[u8] =
        b"\x00\x01\x80\x80\x00\x01\x00\x01\x00\x00\x00\x00\x07version\x04bind\x00\
        \x00\x10\x00\x03\xc0\x0c\x00\x10\x00\x03\x00\x00\x00\x00\x00\x0f\x0eunbound 1.17.1";

    #[test]
    fn queries_match_the_wire_format() {
        let bytes = plain().message(0x0102);
        assert_eq!(
            bytes,
            b"\x01\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07version\x04bind\x00\x00\x10\x00\x03"
        );
        let edns = QUERIES.iter().find(|query| query.name == "EDNS version 1").unwrap().message(7);
        assert_eq!(edns[10..12], [0, 1]);
        assert!(edns.ends_with(b"\x00\x00\x29\x04\xd0\x00\x01\x00\x00\x00\x00"));
        let status = QUERIES.iter().find(|query| query.name == "opcode STATUS").unwrap().message(7);
        assert_eq!(status[2], 0x10);
        // none desires recursion, and none has a flag
        for query in &QUERIES {
            let bytes = query.message(1);
            assert_eq!((bytes[2] & 0x87, bytes[3]), (0, 0), "{}", query.name);
        }
    }

    #[test]
    fn a_reply_is_parsed() {
        assert!(is_reply(UNBOUND, 1) && !is_reply(UNBOUND, 2) && !is_reply(&UNBOUND[..11], 1));
        assert!(!is_reply(&plain().message(1), 1), "a question is no reply");
        assert_eq!(signature(Some(UNBOUND)), "ra rcode 0 1/n/0");
        assert_eq!(signature(None), "silent");
        assert_eq!(claim(Some(UNBOUND)), "unbound 1.17.1");
        // truncated anywhere, it causes no failure
        for end in 0..UNBOUND.len() {
            let cut = text(&UNBOUND[..end]);
            assert_eq!(cut, "", "{end}");
        }
        let mut loops = UNBOUND.to_vec();
        loops[12] = 0xc0;
        text(&loops);
    }

    #[test]
    fn fingerprints_are_distinct() {
        for one in &TABLE {
            let own: Vec<(String, String)> = one
                .traits
                .iter()
                .map(|wanted| {
                    (wanted.question.to_owned(), wanted.signature.trim_end_matches('*').to_owned())
                })
                .collect();
            assert!(own.iter().all(|(name, _)| QUERIES.iter().any(|query| query.name == name)));
            let found = classify(&TABLE, "", &own);
            assert_eq!(found.behaves.map(|(name, _)| name), Some(one.software));
        }
    }
}
