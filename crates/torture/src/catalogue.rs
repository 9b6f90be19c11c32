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
    use crate::case::FOUND;
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
}
