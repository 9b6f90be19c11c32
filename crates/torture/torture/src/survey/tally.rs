//! Counts each software, like `sort | uniq -c`.

use crate::survey::{Confidence, Software};
use std::collections::BTreeMap;

/// A software and its number of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoftwareCount {
    pub name: String,
    pub count: u64,
    /// The least certain confidence.
    pub least: Confidence,
}

/// Counts the software by name, each server once.
pub fn tally<'a>(all: impl IntoIterator<Item = &'a Software>) -> Vec<SoftwareCount> {
    let mut rows: BTreeMap<&str, (u64, Confidence)> = BTreeMap::new();
    for one in all {
        let row = rows.entry(&one.name).or_insert((0, one.confidence));
        row.0 += 1;
        row.1 = row.1.min(one.confidence);
    }
    let row = |(name, (count, least)): (&str, (u64, Confidence))| SoftwareCount {
        name: name.to_owned(),
        count,
        least,
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_one_row() {
        let one = |name: &str, confidence| Software {
            name: name.to_owned(),
            confidence,
            claim: String::new(),
            behaves: None,
        };
        let all = [
            one("nginx 1.22.1", Confidence::Agreed),
            one("Apache 2.4", Confidence::Agreed),
            one("nginx 1.22.1", Confidence::Claimed),
        ];
        let rows = tally(&all);
        let lines: Vec<_> =
            rows.iter().map(|row| (row.name.as_str(), row.count, row.least.id())).collect();
        assert_eq!(lines, [("Apache 2.4", 1, "agreed"), ("nginx 1.22.1", 2, "claimed")]);
    }
}
