//! No circles among the modules of a crate: what uses each other cannot be read, or changed, alone.

use super::source::{Source, test_files};
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Crates that are held to it.
const HELD: &[&str] = &["record", "report", "store"];

/// For each module of a crate those of its modules that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The modules right below `lib.rs`, with all that is below them, use each other one way only.
pub(super) fn among_modules(tree: &Tree) -> Vec<Finding> {
    let found = |name: &&str| {
        let told = |circle: BTreeSet<String>| {
            let names: Vec<String> = circle.into_iter().collect();
            let text = format!("modules that use each other in a circle: {}", names.join(", "));
            Finding::new(&format!("crates/{name}/src/lib.rs"), 0, text)
        };
        circles(&uses(tree, name)).into_iter().map(told).collect::<Vec<_>>()
    };
    HELD.iter().flat_map(found).collect()
}

fn uses(tree: &Tree, name: &str) -> Uses {
    let folder = format!("crates/{name}/src/");
    let Some(library) = tree.text(&format!("{folder}lib.rs")) else { return Uses::new() };
    let Ok(library) = Source::parse(library) else { return Uses::new() };
    let modules = modules(&library);
    let homes = homes(&library, &modules);
    let tests = test_files(tree);
    let mut uses = Uses::new();
    for (path, text) in tree.rust().filter(|(path, _)| !tests.contains(*path)) {
        let Some(file) = path.strip_prefix(&folder) else { continue };
        let module = file.split('/').next().unwrap_or(file).trim_end_matches(".rs");
        let Ok(source) = Source::parse(text) else { continue };
        if !modules.contains(module) {
            continue;
        }
        let used = source.paths().into_iter().filter(|named| !source.is_test_line(named.line));
        let used = used.filter_map(|named| {
            let first = named.path.strip_prefix("crate::")?.split("::").next()?.to_owned();
            let home = homes.get(&first).cloned().unwrap_or(first);
            (home != module && modules.contains(&home)).then_some(home)
        });
        uses.entry(module.to_owned()).or_default().extend(used);
    }
    uses
}

/// The modules that `lib.rs` declares, without those of tests.
fn modules(library: &Source) -> BTreeSet<String> {
    let name = |item: &syn::Item| match item {
        syn::Item::Mod(module) => Some(module.ident.to_string()),
        _ => None,
    };
    let all = library.file.items.iter().filter_map(name);
    all.filter(|name| !library.test_modules.contains(name)).collect()
}

/// The module of each name that `lib.rs` takes from one.
fn homes(library: &Source, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let home = |path: &str| {
        let (module, rest) = path.split_once("::")?;
        let name = rest.rsplit("::").next()?;
        modules.contains(module).then(|| (name.to_owned(), module.to_owned()))
    };
    library.paths().iter().filter_map(|named| home(&named.path)).collect()
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
    fn a_circle_is_found_also_by_a_name_of_the_library() {
        let files = [
            ("crates/report/src/ramp/text.rs", "fn f() { crate::html(); }"),
            ("crates/report/src/page.rs", "use crate::words;"),
            ("crates/report/src/words.rs", "use crate::ramp::answer;"),
        ];
        assert_eq!(found(&files), ["modules that use each other in a circle: page, ramp, words"]);
    }
}
