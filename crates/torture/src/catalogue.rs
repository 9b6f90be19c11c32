//! The catalogue: every case file of `cases/`, compiled in. One file per case, its name the case's
//! id, so that a case is found, read and disputed without reading code. What was found on real servers
//! lies in `cases/regressions/` and says where and when.

use crate::case::{Case, read_case};

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Every case, in the order of groups and numbers.
///
/// # Errors
/// A case file with an error, which the tests exclude: file and line.
pub fn cases() -> Result<Vec<Case>, String> {
    CASES.iter().map(|(name, text)| read_case(name, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Exchange, FOUND, HTTP2, HTTP3, ScriptStep};
    use dialogue::talk::Awaited;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_is_a_case_of_its_name() {
        let cases = cases().unwrap();
        let mut ids = BTreeSet::new();
        for (case, (name, _)) in cases.iter().zip(CASES) {
            let found = case.group() == FOUND;
            let folder = if found { "regressions/" } else { "" };
            assert_eq!(format!("{folder}{}.toml", case.id), *name);
            let day = case.found.rsplit(' ').next().unwrap_or_default();
            assert_eq!(found, day.len() == 10 && day.starts_with("20"), "{}: its day", case.id);
            assert!(ids.insert(&case.id), "{} is there twice", case.id);
            for part in [&case.title, &case.reference, &case.why] {
                assert!(!part.trim().is_empty(), "{}: an empty field", case.id);
            }
        }
        assert!(cases.len() > 40, "{} cases", cases.len());
    }

    /// What it accepts asks for a response, and it accepts nothing that the end of the frames alone can show.
    fn asks_for_a_response(exchange: &Exchange) -> bool {
        let classes: Vec<String> =
            exchange.accept.iter().chain(&exchange.also).map(ToString::to_string).collect();
        let responses = ["plain", "all-plain", "answered", "one-answer"];
        let asks = |word: &str| {
            responses.contains(&word) || word.starts_with(|first: char| first.is_ascii_digit())
        };
        classes.iter().any(|class| class.split(' ').any(asks))
            && !classes.iter().any(|class| class == "stands")
    }

    /// Of frames, the request that follows, or the PING before it, tells nothing of whether the response to
    /// the case's own has come: a page may take its time.
    #[test]
    fn who_judges_a_response_over_frames_waits_for_it() {
        let waits =
            |exchange: &Exchange| exchange.steps.contains(&ScriptStep::Await(Awaited::Response));
        let cases = cases().unwrap();
        let spoken = cases.iter().filter(|case| [HTTP2, HTTP3].contains(&case.group()));
        let each = spoken.flat_map(|case| case.exchanges.iter().map(move |one| (&case.id, one)));
        let judged = each.filter(|(_, one)| one.in_step && asks_for_a_response(one));
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
