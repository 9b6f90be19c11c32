//! A log without personal data: clients, queries and ids become names made by a keyed hash, the
//! same for the same value, so that sessions and popularity are preserved.

use crate::access_log::line::without_marks;
use crate::access_log::{Entry, LineError, parse_line};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::BTreeSet;
use time::OffsetDateTime;
use units::hex;

/// Maximum number of different words of paths that are remembered, to be shown.
pub const WORDS_MAX: usize = 1_000;
/// Maximum length of a part of a path that counts as a word.
const WORD_MAX: usize = 32;
/// Maximum number of consecutive digits in a word, such as a version or a size.
const DIGITS_MAX: usize = 3;

/// Parts of paths that become names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashedPaths {
    /// Parts that look like an id: see [`Anonymiser::line`].
    Ids,
    /// All parts, except for the extension of a file.
    All,
}

/// Result of the conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anonymised {
    pub lines: u64,
    /// Number of invalid lines, and the first of them. They are dropped because their content is
    /// unknown.
    pub broken: u64,
    pub first_broken: Option<(u64, LineError)>,
    /// Number of hashed values, counting repetitions.
    pub query_values: u64,
    pub path_parts: u64,
    /// Number of path parts that were kept, including repetitions, and of distinct parts.
    pub kept_parts: u64,
    pub words: BTreeSet<String>,
}

/// Rewrites the lines of a log.
#[derive(Debug)]
pub struct Anonymiser {
    key: Vec<u8>,
    paths: HashedPaths,
    done: Anonymised,
    lines: u64,
}

impl Anonymiser {
    /// Creates the anonymizer. With the same key, the same values get the same names in every log.
    pub fn new(key: Vec<u8>, paths: HashedPaths) -> Anonymiser {
        Anonymiser { key, paths, done: Anonymised::default(), lines: 0 }
    }

    pub fn finish(self) -> Anonymised {
        self.done
    }

    /// Rewrites a line: as JSON if its clock has fractions of a second, otherwise in combined
    /// format. `None` for an empty line, a comment, and an invalid entry.
    ///
    /// Time, method, status and size are kept. The client is its address and user agent, as one
    /// name; user names, referers and user agents are removed. Every value of a query becomes a
    /// name, and so does each part of the path that looks like an id: a number, more than three
    /// digits in a row, an `@`, an escape, or more than 32 characters.
    pub fn line(&mut self, line: &str) -> Option<String> {
        self.lines += 1;
        let line = without_marks(line);
        if line.trim().is_empty() || line.starts_with('#') {
            return None;
        }
        match parse_line(line) {
            Ok(entry) => {
                self.done.lines += 1;
                Some(self.entry(&entry))
            }
            Err(error) => {
                self.done.broken += 1;
                self.done.first_broken.get_or_insert((self.lines, error));
                None
            }
        }
    }

    fn entry(&mut self, entry: &Entry) -> String {
        let client = self.name("client", &entry.client);
        let target = self.target(&entry.target);
        let Entry { at, fine, method, status, bytes, .. } = entry;
        if *fine {
            let (seconds, rest) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
            // nothing in it needs an escape: names are hexadecimal, words are plain, methods are
            // letters
            return format!(
                "{{\"ts\":{seconds}.{rest:09},\"remote_addr\":\"{client}\",\
                 \"request\":\"{method} {target} HTTP/1.1\",\"status\":{status},\"bytes\":{bytes}}}"
            );
        }
        let at = common_time(at.0);
        format!("{client} - - [{at}] \"{method} {target} HTTP/1.1\" {status} {bytes} \"-\" \"-\"")
    }

    fn target(&mut self, target: &str) -> String {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let parts: Vec<String> = path.split('/').map(|part| self.part(part)).collect();
        let mut made = parts.join("/");
        if let Some(query) = query {
            let pairs: Vec<String> = query.split('&').map(|pair| self.pair(pair)).collect();
            made.push('?');
            made.push_str(&pairs.join("&"));
        }
        made
    }

    fn part(&mut self, part: &str) -> String {
        if part.is_empty() {
            return String::new();
        }
        if self.paths == HashedPaths::Ids && is_word(part) {
            self.done.kept_parts += 1;
            if self.done.words.len() < WORDS_MAX {
                self.done.words.insert(part.to_owned());
            }
            return part.to_owned();
        }
        self.done.path_parts += 1;
        let ending = part.rsplit_once('.').filter(|(name, ending)| {
            let short = (1..=5).contains(&ending.len());
            !name.is_empty() && short && ending.bytes().all(|byte| byte.is_ascii_alphabetic())
        });
        let name = self.name("path", part);
        ending.map_or_else(|| name.clone(), |(_, ending)| format!("{name}.{ending}"))
    }

    /// Rewrites `name=value`; a name that looks like an id, or that has no value, may be a value
    /// itself.
    fn pair(&mut self, pair: &str) -> String {
        self.done.query_values += 1;
        match pair.split_once('=') {
            Some((name, value)) if is_word(name) => {
                format!("{name}={}", self.name("query", value))
            }
            _ => self.name("query", pair),
        }
    }

    /// Returns 64 bits of HMAC-SHA-256 (RFC 2104) over the kind and the value: among a million
    /// values, two have the same name in one of 37 million logs.
    fn name(&self, kind: &str, value: &str) -> String {
        let mac = Hmac::<Sha256>::new_from_slice(&self.key);
        let mut mac = mac.expect("HMAC takes a key of any length");
        mac.update(kind.as_bytes());
        mac.update(&[0]);
        mac.update(value.as_bytes());
        hex(&mac.finalize().into_bytes()[..8])
    }
}

/// Returns whether a part of a path names content of the site, not a user.
fn is_word(part: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let digits = |run: &[u8]| run[0].is_ascii_digit() && run.len() > DIGITS_MAX;
    let runs = part.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let letters = part.bytes().filter(u8::is_ascii_alphabetic).count();
    part.len() <= WORD_MAX
        && part.bytes().all(plain)
        && letters > 0
        && !runs.into_iter().any(digits)
        && !is_hexadecimal(part)
}

/// Returns whether the text has eight hexadecimal digits or more, of which some are 0 to 9: a hash,
/// or a part of a UUID.
fn is_hexadecimal(part: &str) -> bool {
    let digits = part.bytes().filter(|byte| *byte != b'-');
    let all = digits.clone().all(|byte| byte.is_ascii_hexdigit());
    all && digits.clone().count() >= 8 && digits.clone().any(|byte| byte.is_ascii_digit())
}

/// Formats an instant as 10/Oct/2000:20:55:36 +0000.
fn common_time(nanos: u64) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(nanos));
    let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let month = &at.month().to_string()[..3];
    let (hour, minute, second) = at.to_hms();
    let (day, year) = (at.day(), at.year());
    format!("{day:02}/{month}/{year}:{hour:02}:{minute:02}:{second:02} +0000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::{Describer, Description, Log, LogReader};
    use proptest::prelude::*;
    use units::Nanos;

    fn anonymised(lines: &[&str], paths: HashedPaths) -> (Vec<String>, Anonymised) {
        let mut made = Anonymiser::new(b"a key".to_vec(), paths);
        let lines = lines.iter().filter_map(|line| made.line(line)).collect();
        (lines, made.finish())
    }

    fn log(lines: &[String]) -> Log {
        let mut reader = LogReader::new(Vec::new());
        lines.iter().for_each(|line| reader.line(line).unwrap());
        reader.finish()
    }

    const LINES: [&str; 5] = [
        "192.0.2.1 - fred [24/Nov/2026:10:00:00 +0100] \"GET /user/4711/photo.jpg?q=fred&page=2 HTTP/1.1\" 200 11 \"http://h/secret\" \"Mozilla/5.0\"",
        "192.0.2.2 - - [24/Nov/2026:10:00:00 +0100] \"GET /api/v1/file5k.html HTTP/1.1\" 304 0 \"-\" \"Mozilla/5.0\"",
        "192.0.2.1 - fred [24/Nov/2026:10:31:02 +0100] \"POST /u/fred%40example.org HTTP/1.1\" 201 7 \"-\" \"Mozilla/5.0\"",
        "192.0.2.1 - fred [24/Nov/2026:11:05:00 +0100] \"GET /u/fred@example.org?tag HTTP/1.1\" 200 5 \"-\" \"curl\"",
        "fred's rubbish",
    ];

    #[test]
    fn nothing_personal_is_left() {
        let (lines, done) = anonymised(&LINES, HashedPaths::Ids);
        let text = lines.join("\n");
        for secret in ["192.0.2", "fred", "4711", "example", "secret", "Mozilla", "tag", "page=2"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        for kept in ["/user/", "/api/v1/file5k.html", ".jpg?q=", "&page=", "POST", "304"] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
        let words: Vec<&str> = done.words.iter().map(String::as_str).collect();
        assert_eq!(words, ["api", "file5k.html", "photo.jpg", "u", "user", "v1"]);
        assert_eq!((done.lines, done.broken, done.first_broken.unwrap().0), (4, 1, 5));
        assert_eq!((done.query_values, done.path_parts), (3, 3));
    }

    #[test]
    fn every_part_of_a_path_can_be_hashed() {
        let (lines, done) = anonymised(&LINES, HashedPaths::All);
        let text = lines.join("\n");
        assert!(
            !text.contains("user") && !text.contains("api") && text.contains(".html"),
            "{text}"
        );
        assert_eq!((done.kept_parts, done.words.len()), (0, 0));
    }

    /// Arrival times of clients, and request counts of targets: the input of a model.
    #[test]
    fn sessions_times_and_popularity_are_the_same() {
        let fine = [
            r#"{"ts":1646861401.25,"request":{"remote_ip":"192.0.2.7","method":"HEAD","uri":"/b/77","headers":{"User-Agent":["curl/7"]}},"size":12,"status":200}"#,
            r#"{"ts":1646861402.123456,"request":{"remote_ip":"192.0.2.7","method":"GET","uri":"/b/77","headers":{}},"size":3,"status":500}"#,
        ];
        for lines in [&LINES[..], &fine[..]] {
            for paths in [HashedPaths::Ids, HashedPaths::All] {
                let before = log(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
                let after = log(&anonymised(lines, paths).0);
                assert_eq!(before.accesses, after.accesses);
                assert_eq!((before.clients, before.fine), (after.clients, after.fine));
                let pause = Nanos::from_secs(1_800);
                assert_eq!(before.visits(pause), after.visits(pause));
                let described = |lines: &mut dyn Iterator<Item = &str>| {
                    let mut describer = Describer::new(pause);
                    lines.for_each(|line| describer.line(line));
                    // lines that are not requests are omitted
                    Description { broken: 0, first_broken: None, ..describer.finish() }
                };
                let (hidden, _) = anonymised(lines, paths);
                assert_eq!(
                    described(&mut lines.iter().copied()),
                    described(&mut hidden.iter().map(String::as_str))
                );
            }
        }
    }

    #[test]
    fn names_follow_from_the_key() {
        let name = |key: &str| Anonymiser::new(key.into(), HashedPaths::Ids).name("path", "7");
        assert_eq!(name("a"), name("a"));
        assert_ne!(name("a"), name("b"));
        let made = Anonymiser::new(b"a".to_vec(), HashedPaths::Ids);
        assert_ne!(made.name("path", "7"), made.name("query", "7"));
        // RFC 4231, test case 2: the library implements HMAC-SHA-256 itself
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        assert_eq!(mac.finalize().into_bytes()[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }

    #[test]
    fn words_and_ids_are_distinguished() {
        for word in ["api", "v1", "class1_3", "file5k.html", "dir-a", "x86.css", "deadbeef", "face"]
        {
            assert!(is_word(word), "{word}");
        }
        for id in [
            "7",
            "2026",
            "4711",
            "order-20261",
            "0a1b2c3d",
            "a1b2c3d4-e5f6",
            "me@h",
            "%41",
            "ü",
            "550e8400-e29b-41d4-a716-446655440000",
            "abcdefghijklmnopqrstuvwxyzabcdefgh",
        ] {
            assert!(!is_word(id), "{id}");
        }
    }

    proptest! {
        #[test]
        fn written_records_can_be_read(path in "/[!-~]{0,40}", client in "[0-9a-f.:]{1,20}") {
            let line = format!("{client} - - [24/Nov/2026:10:00:00 +0000] \"GET {path} HTTP/1.1\" 200 1");
            if parse_line(&line).is_ok() {
                let (lines, _) = anonymised(&[&line], HashedPaths::Ids);
                prop_assert!(parse_line(&lines[0]).is_ok(), "{}", lines[0]);
            }
        }
    }
}
