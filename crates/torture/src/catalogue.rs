//! The catalogue: every case file of `cases/`, compiled in. One file per case, its name the case's
//! id, so that a case is found, read and disputed without reading code.

use crate::case::{Case, read_case};

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Every case, in the order of groups and numbers.
///
/// # Errors
/// A case file with an error, which the tests exclude: file and line.
pub fn cases() -> Result<Vec<Case>, String> {
    CASES.iter().map(|(name, text)| read_case(name, text)).collect()
}

/// The text of a case's file.
pub fn source(id: &str) -> Option<&'static str> {
    let file = format!("{id}.toml");
    CASES.iter().find(|(name, _)| *name == file).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_is_a_case_of_its_name() {
        let cases = cases().unwrap();
        let mut ids = BTreeSet::new();
        for (case, (name, _)) in cases.iter().zip(CASES) {
            assert_eq!(format!("{}.toml", case.id), *name);
            assert!(ids.insert(&case.id), "{} is there twice", case.id);
            for part in [&case.title, &case.reference, &case.why] {
                assert!(!part.trim().is_empty(), "{}: an empty field", case.id);
            }
        }
        assert!(cases.len() > 40, "{} cases", cases.len());
    }
}
