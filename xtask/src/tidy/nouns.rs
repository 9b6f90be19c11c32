//! One noun, one type: a name that many crates define differently is useless to a reader.

use super::tree::source_of;
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::Visit;

/// Maximum number of crates that may define a type name: one where the noun belongs, and one for
/// its counterpart across a boundary.
const CRATES_MAX: usize = 3;

/// The file with the exceptions.
const LIST: &str = "xtask/src/tidy/nouns.rs";

/// Names that more crates still define. The list may only shrink: an unnecessary entry is a finding
/// too.
#[rustfmt::skip]
const OWED: &[&str] = &["Session"];

/// Checks that no type name is defined in three crates or more.
pub(super) fn shared_names(tree: &Tree) -> Vec<Finding> {
    // the exceptions belong to the tree with the list, not to a test tree
    let owed = if tree.holds(LIST) { OWED } else { &[] };
    judge(&crates_by_name(tree), owed)
}

type Homes = BTreeMap<String, BTreeMap<String, (String, usize)>>;

/// Returns, for each type name, the crates that define it, and the first place in each.
fn crates_by_name(tree: &Tree) -> Homes {
    let mut homes = Homes::new();
    for (path, source) in tree.sources().filter(|(path, _)| !tree.tests().contains(*path)) {
        let Some((name, _)) = source_of(path) else { continue };
        let mut types = Types::default();
        types.visit_file(&source.file);
        for (noun, line) in types.found {
            if !source.is_test_line(line) {
                let crates = homes.entry(noun).or_default();
                crates.entry(name.to_owned()).or_insert_with(|| (path.to_owned(), line));
            }
        }
    }
    homes
}

fn judge(homes: &Homes, owed: &[&str]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (noun, crates) in homes.iter().filter(|(_, crates)| crates.len() >= CRATES_MAX) {
        if owed.contains(&noun.as_str()) {
            continue;
        }
        let names: Vec<&str> = crates.keys().map(String::as_str).collect();
        let text = format!(
            "{noun} is a type of {} crates ({}); name this one for what it is",
            names.len(),
            names.join(", ")
        );
        let (path, line) = crates.values().last().expect("a name has at least one home");
        found.push(Finding::new(path, *line, text));
    }
    for noun in owed {
        if homes.get(*noun).is_none_or(|crates| crates.len() < CRATES_MAX) {
            let text = format!("{noun} is no longer in too many crates; remove it from the list");
            found.push(Finding::new(LIST, 0, text));
        }
    }
    found
}

/// Type definitions of a file, inside inline modules too; those inside functions are private.
#[derive(Default)]
struct Types {
    found: BTreeSet<(String, usize)>,
}

impl Types {
    fn keep(&mut self, name: &syn::Ident) {
        self.found.insert((name.to_string(), name.span().start().line));
    }
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.keep(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.keep(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.keep(&item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.keep(&item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.keep(&item.ident);
    }

    fn visit_item_fn(&mut self, _: &'ast syn::ItemFn) {}

    fn visit_item_impl(&mut self, _: &'ast syn::ItemImpl) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(files: &[(&str, &str)]) -> Homes {
        crates_by_name(&Tree::new(files))
    }

    #[test]
    fn a_name_in_three_crates_is_found_and_one_in_two_is_not() {
        let two =
            [("crates/a/src/lib.rs", "struct Step;"), ("crates/b/src/x/y.rs", "enum Step {}")];
        assert!(judge(&homes(&two), &[]).is_empty());
        let three = [two[0], two[1], ("crates/c/src/lib.rs", "mod m { pub type Step = u8; }")];
        let found = judge(&homes(&three), &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.starts_with("Step is a type of 3 crates (a, b, c)"), "{found:?}");
    }

    #[test]
    fn tests_functions_and_associated_types_do_not_count() {
        let files = [
            ("crates/a/src/lib.rs", "struct Step;"),
            ("crates/b/src/lib.rs", "struct Step;"),
            ("crates/c/src/lib.rs", "#[cfg(test)] mod tests { struct Step; }"),
            ("crates/d/src/lib.rs", "fn f() { struct Step; }"),
            ("crates/e/src/lib.rs", "impl Iterator for X { type Step = u8; }"),
            ("crates/f/tests/all.rs", "struct Step;"),
        ];
        assert!(judge(&homes(&files), &[]).is_empty());
    }

    #[test]
    fn the_exception_list_is_exact() {
        let three = [
            ("crates/a/src/lib.rs", "struct Step;"),
            ("crates/b/src/lib.rs", "struct Step;"),
            ("crates/c/src/lib.rs", "struct Step;"),
        ];
        assert!(judge(&homes(&three), &["Step"]).is_empty());
        let found = judge(&homes(&three[..2]), &["Step"]);
        assert!(found[0].text.contains("remove it from the list"), "{found:?}");
    }
}
