//! The catalog: all case files of `cases/`, compiled in. There is one file per case, named after
//! its id, so that a case can be found, read and disputed without reading code. Regressions found
//! on real servers are in `cases/regressions/` and name the server and the date.

use crate::case::{Case, read_case};
use std::sync::LazyLock;

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Returns all cases in the order of groups and numbers. They are parsed once per process: a third
/// of a second in a development build.
///
/// # Errors
/// Fails for an invalid case file, which the tests rule out: file and line.
pub fn cases() -> Result<Vec<Case>, String> {
    static PARSED: LazyLock<Result<Vec<Case>, String>> =
        LazyLock::new(|| CASES.iter().map(|(name, text)| read_case(name, text)).collect());
    PARSED.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Exchange, FOUND, GRPC, HTTP2, HTTP3, ScriptStep};
    use crate::record::digest;
    use dialogue::talk::Awaited;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_file_is_named_after_its_case() {
        let cases = cases().unwrap();
        let mut ids = BTreeSet::new();
        for (case, (name, _)) in cases.iter().zip(CASES) {
            let found = case.group() == FOUND;
            let folder = if found { "regressions/" } else { "" };
            assert_eq!(format!("{folder}{}.toml", case.id), *name);
            let day = case.found.rsplit(' ').next().unwrap_or_default();
            assert_eq!(found, day.len() == 10 && day.starts_with("20"), "{}: its day", case.id);
            assert!(ids.insert(&case.id), "{} appears twice", case.id);
            for part in [&case.title, &case.reference, &case.why] {
                assert!(!part.trim().is_empty(), "{}: an empty field", case.id);
            }
        }
        assert!(cases.len() > 40, "{} cases", cases.len());
    }

    /// Keys of a case file that change neither what is sent nor how it is judged.
    const PROSE: [&str; 6] = ["title", "why", "servers", "ref", "found", "version"];

    /// Digits of a digest in the list of versions.
    const DIGITS: usize = 16;

    /// Returns a digest of what a case file sends, and of its rules.
    fn digest_of_rules(text: &str) -> String {
        let mut file: toml::Table = text.parse().unwrap();
        PROSE.iter().for_each(|key| drop(file.remove(*key)));
        digest(canonical(&toml::Value::Table(file)).as_bytes())[..DIGITS].to_owned()
    }

    /// Returns a value as text, with sorted keys.
    fn canonical(value: &toml::Value) -> String {
        match value {
            toml::Value::Table(table) => {
                let sorted: BTreeMap<&String, String> =
                    table.iter().map(|(key, value)| (key, canonical(value))).collect();
                format!("{sorted:?}")
            }
            toml::Value::Array(all) => all.iter().map(canonical).collect::<Vec<_>>().join(","),
            toml::Value::String(text) => format!("{text:?}"),
            other => other.to_string(),
        }
    }

    /// Results of different runs are compared by id and version of a case: the same version must
    /// mean the same bytes and rules.
    #[test]
    fn changed_cases_have_a_new_version() {
        let listed: BTreeMap<&str, &str> = include_str!("../cases/versions.txt")
            .lines()
            .filter_map(|row| row.split_once(' '))
            .collect();
        let mut wrong = Vec::new();
        for (case, (_, text)) in cases().unwrap().iter().zip(CASES) {
            let (version, digest) = (case.version, digest_of_rules(text));
            let row = format!("{version} {digest}");
            let known = listed.get(case.id.as_str()).copied().unwrap_or_default();
            if known == row {
                continue;
            }
            let (id, same) = (&case.id, known.starts_with(&format!("{version} ")));
            let next = if same { version + 1 } else { version };
            let raise = if same {
                format!("write version = {next} in {id}.toml, and ")
            } else {
                String::new()
            };
            wrong
                .push(format!("{id}: {raise}the row `{id} {next} {digest}` in cases/versions.txt"));
        }
        assert!(wrong.is_empty(), "changed cases:\n{}", wrong.join("\n"));
        assert_eq!(listed.len(), CASES.len(), "rows of cases/versions.txt without a case");
    }

    #[test]
    fn prose_keeps_the_version_and_bytes_do_not() {
        let case = |title: &str, sent: &str| {
            format!("id = 'S-01'\ntitle = '{title}'\n[[exchange]]\nname = 'x'\nsend = ['{sent}']\n")
        };
        let digest = |title, sent| digest_of_rules(&case(title, sent));
        assert_eq!(digest("a", "GET"), digest("b", "GET"));
        assert_ne!(digest("a", "GET"), digest("a", "PUT"));
    }

    /// Returns whether an exchange accepts only outcomes that need a response.
    fn requires_response(exchange: &Exchange) -> bool {
        let classes: Vec<String> =
            exchange.accept.iter().chain(&exchange.also).map(ToString::to_string).collect();
        let responses = ["plain", "all-plain", "answered", "one-answer"];
        let asks = |word: &str| {
            responses.contains(&word)
                || word.starts_with("grpc:")
                || word.starts_with(|first: char| first.is_ascii_digit())
        };
        classes.iter().any(|class| class.split(' ').any(asks))
            && !classes.iter().any(|class| class == "stands")
    }

    /// Over frames, neither the follow-up request nor the PING before it shows whether the response
    /// to the case has arrived: a page may be slow.
    #[test]
    fn frame_exchanges_wait_for_judged_responses() {
        let waits =
            |exchange: &Exchange| exchange.steps.contains(&ScriptStep::Await(Awaited::Response));
        let cases = cases().unwrap();
        let protocol = cases.iter().filter(|case| [GRPC, HTTP2, HTTP3].contains(&case.group()));
        let each = protocol.flat_map(|case| case.exchanges.iter().map(move |one| (&case.id, one)));
        let judged = each.filter(|(_, one)| one.in_step && requires_response(one));
        let (mut count, mut hasty) = (0, Vec::new());
        for (id, exchange) in judged {
            count += 1;
            if !waits(exchange) {
                hasty.push(format!("{id} {}", exchange.name));
            }
        }
        assert!(hasty.is_empty() && count > 80, "of {count}: {hasty:?}");
    }
}
