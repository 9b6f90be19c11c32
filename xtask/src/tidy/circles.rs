//! No circles among the modules of a crate: what uses each other cannot be read, or changed, alone.

use super::source::{Source, test_files};
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Modules that are held to it.
struct Held {
    folder: &'static str,
    /// The file that declares them.
    root: &'static str,
    /// How one of them names another.
    prefixes: &'static [&'static str],
}

const fn library(folder: &'static str) -> Held {
    Held { folder, root: "lib.rs", prefixes: &["crate::"] }
}

const HELD: &[Held] = &[
    library("crates/record/src/"),
    library("crates/report/src/"),
    library("crates/store/src/"),
    Held { folder: "crates/loadstone/src/", root: "main.rs", prefixes: &["crate::"] },
    Held { folder: "crates/faces/src/ab/", root: "mod.rs", prefixes: &["super::", "crate::ab::"] },
];

/// For each module of a folder those of its modules that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The modules right below a root, with all that is below them, use each other one way only.
pub(super) fn among_modules(tree: &Tree) -> Vec<Finding> {
    let found = |held: &Held| {
        let told = |circle: BTreeSet<String>| {
            let names: Vec<String> = circle.into_iter().collect();
            let text = format!("modules that use each other in a circle: {}", names.join(", "));
            Finding::new(&format!("{}{}", held.folder, held.root), 0, text)
        };
        circles(&uses(tree, held)).into_iter().map(told).collect::<Vec<_>>()
    };
    HELD.iter().flat_map(found).collect()
}

fn uses(tree: &Tree, held: &Held) -> Uses {
    let Some(root) = tree.text(&format!("{}{}", held.folder, held.root)) else {
        return Uses::new();
    };
    let Ok(root) = Source::parse(root) else { return Uses::new() };
    let modules = modules(&root);
    let homes = homes(&root, &modules);
    let tests = test_files(tree);
    let mut uses = Uses::new();
    for (path, text) in tree.rust().filter(|(path, _)| !tests.contains(*path)) {
        let Some(file) = path.strip_prefix(held.folder) else { continue };
        let module = file.split('/').next().unwrap_or(file).trim_end_matches(".rs");
        let Ok(source) = Source::parse(text) else { continue };
        if !modules.contains(module) {
            continue;
        }
        let used = source.paths().into_iter().filter(|named| !source.is_test_line(named.line));
        let used = used.filter_map(|named| {
            let rest = held.prefixes.iter().find_map(|prefix| named.path.strip_prefix(prefix))?;
            let first = rest.split("::").next()?.to_owned();
            let home = homes.get(&first).cloned().unwrap_or(first);
            (home != module && modules.contains(&home)).then_some(home)
        });
        uses.entry(module.to_owned()).or_default().extend(used);
    }
    uses
}

/// The modules that a root declares, without those of tests.
fn modules(root: &Source) -> BTreeSet<String> {
    let name = |item: &syn::Item| match item {
        syn::Item::Mod(module) => Some(module.ident.to_string()),
        _ => None,
    };
    let all = root.file.items.iter().filter_map(name);
    all.filter(|name| !root.test_modules.contains(name)).collect()
}

/// The module of each name that a root takes from one.
fn homes(root: &Source, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let home = |path: &str| {
        let (module, rest) = path.split_once("::")?;
        let name = rest.rsplit("::").next()?;
        modules.contains(module).then(|| (name.to_owned(), module.to_owned()))
    };
    root.paths().iter().filter_map(|named| home(&named.path)).collect()
}

/// Each largest set of modules that reach each other.
fn circles(uses: &Uses) -> BTreeSet<BTreeSet<String>> {
    let reached = |from: &str| {
        let mut reached: BTreeSet<String> = BTreeSet::new();
        let mut next = vec![from.to_owned()];
        while let Some(module) = next.pop() {
            let new = uses.get(&module).into_iter().flatten();
            next.extend(new.filter(|one| reached.insert((*one).clone())).cloned());
        }
        reached
    };
    let all: BTreeMap<&str, BTreeSet<String>> =
        uses.keys().map(|module| (module.as_str(), reached(module))).collect();
    let circle = |(module, reached): (&&str, &BTreeSet<String>)| {
        let back = |other: &&String| all.get(other.as_str()).is_some_and(|of| of.contains(*module));
        reached.iter().filter(back).cloned().collect::<BTreeSet<String>>()
    };
    all.iter().map(circle).filter(|circle| !circle.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: (&str, &str) = (
        "crates/report/src/lib.rs",
        "mod page; pub mod ramp; mod words; pub use page::html; #[cfg(test)] mod tests;",
    );

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(&str, &str)> = [&[LIBRARY], files].concat();
        among_modules(&Tree::of(&files)).into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn one_way_is_no_circle() {
        let files = [
            ("crates/report/src/ramp.rs", "use crate::{page::Plots, words::{self, span}};"),
            ("crates/report/src/ramp/text.rs", "use super::answer; fn f() { crate::html(); }"),
            ("crates/report/src/page.rs", "#[cfg(test)] mod tests { use crate::ramp::html; }"),
            ("crates/report/src/tests/ramp.rs", "use crate::ramp;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn modules_below_a_folder_name_each_other_by_super() {
        let files = [
            ("crates/faces/src/ab/mod.rs", "mod options; mod text;"),
            ("crates/faces/src/ab/options.rs", "fn f() { super::text::banner(); }"),
            ("crates/faces/src/ab/text.rs", "use super::options::Options;"),
        ];
        assert_eq!(found(&files), ["modules that use each other in a circle: options, text"]);
    }

    #[test]
    fn a_circle_is_found_also_by_a_name_of_the_library() {
        let files = [
            ("crates/report/src/ramp/text.rs", "fn f() { crate::html(); }"),
            ("crates/report/src/page.rs", "use crate::words;"),
            ("crates/report/src/words.rs", "use crate::ramp::answer;"),
        ];
        assert_eq!(found(&files), ["modules that use each other in a circle: page, ramp, words"]);
    }
}
