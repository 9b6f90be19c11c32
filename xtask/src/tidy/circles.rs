//! Refuses circular uses among the modules of a crate, because such modules can only be read and
//! changed together.

use super::source::Source;
use super::tree::source_of;
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Modules to which the rule applies: those directly below a root.
struct Held {
    folder: String,
    /// File that declares them.
    root: &'static str,
    /// Form of a reference between modules.
    prefixes: &'static [&'static str],
}

/// An accepted circle of modules.
struct Named {
    folder: &'static str,
    modules: &'static [&'static str],
    #[expect(dead_code, reason = "documentation of this list")]
    reason: &'static str,
}

/// The file with the list of known cycles.
const LIST: &str = "xtask/src/tidy/circles.rs";

const NAMED: &[Named] = &[
    Named {
        folder: "crates/torture/dialogue/src/",
        modules: &[
            "calls", "front", "governor", "http2", "http3", "packets", "replies", "talk", "text",
        ],
        reason: "a conversation uses every protocol, and each protocol defines actions and events \
                 of conversations",
    },
    Named {
        folder: "crates/load/lua/src/",
        modules: &["address", "director", "figures", "part", "state", "thread"],
        reason: "a script's state creates objects whose methods use the state",
    },
    Named {
        folder: "crates/tools/site/src/",
        modules: &["faults", "weakness"],
        reason: "faults contain weaknesses, which share the parser of faults",
    },
    Named {
        folder: "crates/torture/torture/src/",
        modules: &["case", "fuzz", "judge", "record", "result"],
        reason: "a case defines its expectation in terms of the judge, which reads the case",
    },
    Named {
        folder: "crates/result/live/src/browser/",
        modules: &["pages", "refusal"],
        reason: "a refusal is rendered as a page, and pages return refusals",
    },
];

/// Modules that are as large as a crate, with the paths by which their own modules name each other.
const LARGE: &[(&str, &[&str])] = &[
    ("crates/tools/faces/src/ab/", &["super::", "crate::ab::"]),
    ("crates/tools/fleet/src/protocol/", &["crate::protocol::"]),
    ("crates/http/protocol/src/http1/", &["crate::http1::"]),
    ("crates/http/protocol/src/http3/", &["crate::http3::"]),
    ("crates/http/protocol/src/login/", &["crate::login::"]),
    ("crates/load/workload/src/schedule/", &["crate::schedule::"]),
    ("crates/load/workload/src/fileset/", &["crate::fileset::"]),
    ("crates/load/import/src/access_log/", &["crate::access_log::"]),
    ("crates/load/import/src/recorded/", &["crate::recorded::"]),
    ("crates/torture/torture/src/survey/", &["crate::survey::"]),
    ("crates/result/live/src/terminal/", &["crate::terminal::"]),
    ("crates/result/live/src/browser/", &["crate::browser::"]),
    ("crates/result/live/src/metrics/", &["crate::metrics::"]),
    ("crates/system/net/src/reactor/", &["crate::reactor::"]),
    ("crates/system/net/src/tls/", &["crate::tls::"]),
];

/// Modules of a folder, each with the modules of the folder that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Checks that the modules directly below the root of a crate, with everything below them, use each
/// other only in one direction, except for the named circles. Each of those must exist, and so must
/// its crate.
pub(super) fn among_modules(tree: &Tree) -> Vec<Finding> {
    among(tree, NAMED)
}

fn among(tree: &Tree, all_named: &[Named]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for held in all_held(tree) {
        let root = format!("{}{}", held.folder, held.root);
        for circle in circles(&uses(tree, &held)) {
            let is_named =
                |named: &Named| named.folder == held.folder && circle.iter().eq(named.modules);
            match all_named.iter().position(is_named) {
                Some(row) => drop(seen.insert(row)),
                None => {
                    let names: Vec<String> = circle.into_iter().collect();
                    let names = names.join(", ");
                    let text = format!("modules that use each other in a circle: {names}");
                    findings.push(Finding::new(&root, 0, text));
                }
            }
        }
    }
    // a partial tree without this list says nothing about the others
    let whole = tree.text(LIST).is_some();
    for (_, named) in all_named.iter().enumerate().filter(|(row, _)| !seen.contains(row)) {
        if whole || tree.rust().any(|(path, _)| path.starts_with(named.folder)) {
            let modules = named.modules.join(", ");
            let text = format!("no circle of just these, change or take it off: {modules}");
            findings.push(Finding::new(named.folder, 0, text));
        }
    }
    findings
}

/// Returns every crate of the program, and the modules that are as large as one.
fn all_held(tree: &Tree) -> Vec<Held> {
    let mut all = Vec::new();
    for (path, _) in tree.rust() {
        let root = match source_of(path) {
            Some((_, "lib.rs")) => "lib.rs",
            Some((_, "main.rs")) => "main.rs",
            _ => continue,
        };
        let folder = path.trim_end_matches(root).to_owned();
        all.push(Held { folder, root, prefixes: &["crate::"] });
    }
    for (folder, prefixes) in LARGE {
        all.push(Held { folder: (*folder).to_owned(), root: "mod.rs", prefixes });
    }
    all
}

fn uses(tree: &Tree, held: &Held) -> Uses {
    let Some(root) = tree.source(&format!("{}{}", held.folder, held.root)) else {
        return Uses::new();
    };
    let modules = modules(root);
    let homes = homes(root, &modules);
    let mut uses = Uses::new();
    for (path, source) in tree.sources().filter(|(path, _)| !tree.tests().contains(*path)) {
        let Some(file) = path.strip_prefix(&held.folder) else { continue };
        let module = file.split('/').next().unwrap_or(file).trim_end_matches(".rs");
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

/// Returns the modules that a root declares, without those of tests.
fn modules(root: &Source) -> BTreeSet<String> {
    let name = |item: &syn::Item| match item {
        syn::Item::Mod(module) => Some(module.ident.to_string()),
        _ => None,
    };
    let all = root.file.items.iter().filter_map(name);
    all.filter(|name| !root.test_modules.contains(name)).collect()
}

/// Returns the module of each name that a root imports.
fn homes(root: &Source, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let home = |path: &str| {
        let (module, rest) = path.split_once("::")?;
        let name = rest.rsplit("::").next()?;
        modules.contains(module).then(|| (name.to_owned(), module.to_owned()))
    };
    root.paths().iter().filter_map(|named| home(&named.path)).collect()
}

/// Returns each largest set of modules that reach each other.
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

    const ERROR_AND_NAMES: Named =
        Named { folder: "crates/tls/src/", modules: &["error", "names"], reason: "" };

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        findings(files, &[])
    }

    fn findings(files: &[(&str, &str)], named: &[Named]) -> Vec<String> {
        let files: Vec<(&str, &str)> = [&[LIBRARY], files].concat();
        among(&Tree::new(&files), named).into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn a_one_way_dependency_is_not_a_circle() {
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
            ("crates/tools/faces/src/ab/mod.rs", "mod options; mod text;"),
            ("crates/tools/faces/src/ab/options.rs", "fn f() { super::text::banner(); }"),
            ("crates/tools/faces/src/ab/text.rs", "use super::options::Options;"),
        ];
        assert_eq!(found(&files), ["modules that use each other in a circle: options, text"]);
    }

    #[test]
    fn a_listed_cycle_is_permitted_until_it_is_gone() {
        let root = ("crates/tls/src/lib.rs", "mod error; mod names;");
        let error = ("crates/tls/src/error.rs", "use crate::names::group_list;");
        let names = ("crates/tls/src/names.rs", "use crate::error::TlsError;");
        let found = |files: &[_]| findings(files, &[ERROR_AND_NAMES]);
        assert_eq!(found(&[root, error, names]), [""; 0]);
        let gone = ["no circle of just these, change or take it off: error, names"];
        assert_eq!(found(&[root, error]), gone);
        // with its crate
        assert_eq!(found(&[(LIST, "")]), gone);
        assert_eq!(found(&[]), [""; 0]);
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
