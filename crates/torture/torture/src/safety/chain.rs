//! A hash chain of log lines: each is a JSON object that starts with its own digest and that of the
//! previous line, so that edited, removed or moved lines are detected. The link of the last line is
//! stored in a second place, so that missing lines at the end are detected too.
//!
//! It prevents accidents and afterthoughts. A user who can write both files and has this program
//! can create a new chain.

use crate::record::digest;

/// The position of a line in its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// Starts at 1; 0 before the first line.
    pub line: u64,
    /// SHA-256 of the line after its own digest, in hexadecimal digits.
    pub hash: String,
}

const HASH_LEN: usize = 64;

impl ChainLink {
    /// Returns the start of a chain, before the first line.
    pub fn start() -> ChainLink {
        ChainLink { line: 0, hash: "0".repeat(HASH_LEN) }
    }

    /// Returns the text for the second place.
    pub fn to_text(&self) -> String {
        format!("{} {}\n", self.line, self.hash)
    }

    /// Parses a link; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<ChainLink> {
        let (line, hash) = text.strip_suffix('\n').unwrap_or(text).split_once(' ')?;
        let line = line.parse().ok()?;
        is_hash(hash).then(|| ChainLink { line, hash: hash.to_owned() })
    }
}

/// Returns the next line, without a line feed, and its link. `fields` are the members of a JSON
/// object, without braces. `torn`: the remains of a line after a crash, which precede it.
pub fn seal(before: &ChainLink, torn: Option<&[u8]>, fields: &str) -> (String, ChainLink) {
    debug_assert!(!fields.contains('\n'), "a line has no line feed");
    let torn = torn.map_or(String::new(), |rest| format!("\"torn\":\"{}\",", digest(rest)));
    let line = before.line + 1;
    let rest = format!("\"prev\":\"{}\",\"line\":{line},{torn}{fields}}}", before.hash);
    let hash = digest(rest.as_bytes());
    (format!("{{\"hash\":\"{hash}\",{rest}"), ChainLink { line, hash })
}

/// A parsed line of the chain.
struct Sealed<'a> {
    link: ChainLink,
    prev: &'a str,
    torn: Option<&'a str>,
    /// True if the digest matches.
    whole: bool,
}

fn open(line: &[u8]) -> Option<Sealed<'_>> {
    let text = std::str::from_utf8(line).ok()?;
    let rest = text.strip_prefix("{\"hash\":\"")?;
    let (hash, rest) = rest.split_at_checked(HASH_LEN)?;
    let rest = rest.strip_prefix("\",")?;
    let whole = digest(rest.as_bytes()) == hash;
    let inner = rest.strip_prefix("\"prev\":\"")?;
    let (prev, inner) = inner.split_at_checked(HASH_LEN)?;
    let inner = inner.strip_prefix("\",\"line\":")?;
    let (number, inner) = inner.split_once(',')?;
    let torn = inner.strip_prefix("\"torn\":\"").and_then(|rest| rest.get(..HASH_LEN));
    let link = ChainLink { line: number.parse().ok()?, hash: hash.to_owned() };
    (is_hash(hash) && is_hash(prev)).then_some(Sealed { link, prev, torn, whole })
}

/// Returns the last line's link and the remains of a crash after it, from the end of a log;
/// `whole`: from the complete log. `None` if the last line is not a line of a log.
pub fn last(end: &[u8], whole: bool) -> Option<(ChainLink, Option<Vec<u8>>)> {
    let (lines, tail) = match end.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => (&end[..at], &end[at + 1..]),
        None => (&end[..0], end),
    };
    let torn = (!tail.is_empty()).then(|| tail.to_vec());
    let line = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    if line.is_empty() {
        return whole.then(|| (ChainLink::start(), torn));
    }
    open(line).filter(|sealed| sealed.whole).map(|sealed| (sealed.link, torn))
}

/// A broken chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The line of the file, starting at 1.
    pub line: u64,
    pub why: String,
}

/// An intact chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sound {
    /// Digest of the last line.
    pub last: ChainLink,
    /// Truncated lines that the next line covers.
    pub torn: u64,
    /// The remains of the last line after a crash; the next written line covers them.
    pub tail: Option<Vec<u8>>,
}

/// Verifies every line against the previous one, and the end against `head`, the link in the second
/// place.
///
/// # Errors
/// Fails with the first line that was changed.
pub fn verify(text: &[u8], head: Option<&ChainLink>) -> Result<Sound, Breach> {
    let mut found = Sound { last: ChainLink::start(), torn: 0, tail: None };
    let mut at_head = head.is_none_or(|head| *head == found.last);
    let mut pieces: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    // after the last line feed there is nothing, or a truncated line
    let tail = pieces.pop().filter(|tail| !tail.is_empty());
    let mut torn: Option<&[u8]> = None;
    for (index, piece) in pieces.iter().enumerate() {
        let place = index as u64 + 1;
        let breach = |why: String| Err(Breach { line: place, why });
        let Some(sealed) = open(piece) else {
            if torn.is_some() {
                return breach("it is not a line of the log".to_owned());
            }
            torn = Some(piece);
            continue;
        };
        if !sealed.whole {
            return breach("it was edited: its digest does not match".to_owned());
        }
        if let Some(rest) = torn.take() {
            if sealed.torn != Some(digest(rest).as_str()) {
                let why = "it was edited: it is not a line of the log".to_owned();
                return Err(Breach { line: place - 1, why });
            }
            found.torn += 1;
        }
        if let Some(why) = out_of_place(&found.last, &sealed) {
            return breach(why);
        }
        at_head |= head == Some(&sealed.link);
        found.last = sealed.link;
    }
    let after = pieces.len() as u64;
    if torn.is_some() {
        return Err(Breach {
            line: after,
            why: "it was edited: it is not a line of the log".into(),
        });
    }
    match head {
        Some(head) if !at_head && head.line > found.last.line => Err(Breach {
            line: after + 1,
            why: format!("the log had {} lines: the last of them are missing", head.line),
        }),
        Some(head) if !at_head => Err(Breach {
            line: head.line,
            why: "it is not the line that was written: the log was recreated".to_owned(),
        }),
        None if after > 0 => Err(Breach {
            line: after,
            why: "the end cannot be verified: the file that names the last line is missing".into(),
        }),
        _ => {
            found.tail = tail.map(<[u8]>::to_vec);
            Ok(found)
        }
    }
}

fn out_of_place(last: &ChainLink, sealed: &Sealed<'_>) -> Option<String> {
    let expected = last.line + 1;
    let found = sealed.link.line;
    if found > expected {
        return Some(format!(
            "it is number {found} instead of {expected}: lines before it are missing"
        ));
    }
    if found < expected {
        return Some(format!("it is number {found} instead of {expected}: it was moved or added"));
    }
    (sealed.prev != last.hash)
        .then(|| "the previous line is not the one it was written after".into())
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_LEN
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chain(count: u64) -> (Vec<String>, ChainLink) {
        let (mut lines, mut last) = (Vec::new(), ChainLink::start());
        for index in 0..count {
            let (line, link) = seal(&last, None, &format!("\"kind\":\"case\",\"n\":{index}"));
            lines.push(line);
            last = link;
        }
        (lines, last)
    }

    fn text(lines: &[String]) -> Vec<u8> {
        lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
    }

    #[track_caller]
    fn breach(lines: &[String], head: &ChainLink) -> String {
        let found = verify(&text(lines), Some(head)).unwrap_err();
        format!("line {}: {}", found.line, found.why)
    }

    #[test]
    fn an_unchanged_chain_is_valid() {
        for count in [0, 1, 5] {
            let (lines, last) = chain(count);
            let found = verify(&text(&lines), Some(&last)).unwrap();
            assert_eq!(found, Sound { last: last.clone(), torn: 0, tail: None });
            assert_eq!(ChainLink::parse(&last.to_text()), Some(last));
        }
        // a crash between writing the line and the second place
        let (lines, last) = chain(5);
        let (_, before) = chain(4);
        assert_eq!(verify(&text(&lines), Some(&before)).unwrap().last, last);
    }

    #[test]
    fn every_manipulation_of_the_chain_is_reported() {
        let (lines, last) = chain(5);
        let mut edited = lines.clone();
        edited[2] = edited[2].replace("\"n\":2", "\"n\":3");
        assert_eq!(breach(&edited, &last), "line 3: it was edited: its digest does not match");
        let mut spoiled = lines.clone();
        spoiled[2] = "nothing".to_owned();
        assert_eq!(breach(&spoiled, &last), "line 3: it was edited: it is not a line of the log");
        let mut less = lines.clone();
        less.remove(1);
        assert!(breach(&less, &last).starts_with("line 2: it is number 3 instead of 2"));
        let mut moved = lines.clone();
        moved.swap(1, 2);
        assert!(breach(&moved, &last).starts_with("line 2: it is number 3 instead of 2"));
        let mut more = lines.clone();
        more.insert(2, lines[1].clone());
        assert!(breach(&more, &last).contains("line 3: it is number 2 instead of 3"));
        assert!(breach(&lines[..3], &last).starts_with("line 4: the log had 5 lines"));
        assert!(breach(&[], &last).starts_with("line 1: the log had 5 lines"));
        let mut other = lines.clone();
        (other[4], _) = seal(&chain(4).1, None, "\"kind\":\"other\"");
        assert!(breach(&other, &last).starts_with("line 5: it is not the line that was written"));
        let found = verify(&text(&lines), None).unwrap_err();
        assert!(found.why.starts_with("the end cannot be verified"), "{found:?}");
    }

    #[test]
    fn a_line_truncated_by_a_crash_is_recognized() {
        let (lines, last) = chain(3);
        let mut bytes = text(&lines);
        let rest = &lines[2].as_bytes()[..40];
        bytes.extend_from_slice(rest);
        let found = verify(&bytes, Some(&last)).unwrap();
        assert_eq!(found.tail.as_deref(), Some(rest));
        let (next, link) = seal(&found.last, found.tail.as_deref(), "\"kind\":\"begin\"");
        bytes.extend_from_slice(format!("\n{next}\n").as_bytes());
        let found = verify(&bytes, Some(&link)).unwrap();
        assert_eq!((found.torn, found.last, found.tail), (1, link, None));
    }

    proptest! {
        #[test]
        fn every_changed_byte_is_detected(at in 0_usize..10_000, by in 1_u8..=255) {
            let (lines, last) = chain(6);
            let mut bytes = text(&lines);
            let at = at % bytes.len();
            bytes[at] ^= by;
            let found = verify(&bytes, Some(&last));
            // a missing final line feed is a truncated line, which the second copy still has
            prop_assert!(found.is_err(), "{found:?}");
        }

        #[test]
        fn arbitrary_input_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            verify(&bytes, Some(&ChainLink::start())).ok();
            ChainLink::parse(&String::from_utf8_lossy(&bytes));
        }
    }
}
