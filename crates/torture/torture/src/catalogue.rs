//! The catalog: all case files of `cases/`, compiled in. There is one file per case, named after
//! its id, so that a case can be found, read and disputed without reading code. Regressions found
//! on real servers are in `cases/regressions/` and name the server and the date.

use crate::case::{Case, read_case};

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Returns all cases in the order of groups and numbers.
///
/// # Errors
/// Fails for an invalid case file, which the tests rule out: file and line.
pub fn cases() -> Result<Vec<Case>, String> {
    CASES.iter().map(|(name, text)| read_case(name, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Exchange, FOUND, GRPC, HTTP2, HTTP3, ScriptStep};
    use dialogue::talk::Awaited;
    use std::collections::BTreeSet;

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
        let spoken = cases.iter().filter(|case| [GRPC, HTTP2, HTTP3].contains(&case.group()));
        let each = spoken.flat_map(|case| case.exchanges.iter().map(move |one| (&case.id, one)));
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
