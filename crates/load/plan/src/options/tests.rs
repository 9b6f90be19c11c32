use super::*;
use crate::{NoFiles, TargetPlan};
use std::collections::BTreeSet;
use std::path::Path;

fn page(name: &str) -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guide");
    let text = std::fs::read_to_string(guide.join(name).with_extension("md"));
    text.unwrap_or_else(|error| panic!("the guide has no page {name}: {error}"))
}

/// Every row has complete help, and its links exist.
#[test]
fn every_row_is_whole() {
    let mut names = BTreeSet::new();
    for row in all() {
        assert!(!row.help.is_empty() && !row.heading.is_empty(), "{row:?}");
        assert!(!row.help.ends_with('.'), "{row:?} is a line of help, no sentence");
        let wanted = if row.name.is_empty() { row.label() } else { format!("--{}", row.name) };
        assert!(page(row.page).contains(&wanted), "{row:?}: {}.md does not name it", row.page);
        assert!(row.name.is_empty() || names.insert(row.name), "{row:?} is there twice");
        assert!(crate::file::TABLES.contains(&row.key().0), "{row:?}: no such table");
        // `validate` checks the bounds of the other tables
        assert!(row.bounds.is_empty() || !["tls", "expect", ""].contains(&row.key().0), "{row:?}");
        if !row.name.is_empty() && row.value.is_empty() {
            let inputs = Inputs { files: &NoFiles, traces: &wan::NoTraces };
            assert_eq!(row.check(row.means, inputs), Ok(()), "{row:?}");
        }
    }
    for row in all() {
        let unknown = row.without.iter().find(|name| !names.contains(*name));
        assert_eq!(unknown, None, "{row:?} contradicts what is not there");
    }
    for (table, keys) in PRINTED_FIRST {
        let known: Vec<&str> = keys_of(table).iter().map(|row| row.key().1).collect();
        let keys: Vec<&str> = keys.split_whitespace().collect();
        assert_eq!(known[..keys.len()], keys, "{table}");
    }
}

#[test]
fn the_defaults_are_within_their_bounds() {
    let plan = Plan::for_targets(Vec::<TargetPlan>::new());
    for table in crate::file::TABLES {
        assert_eq!(faults(&plan, table), []);
    }
}
