//! Names of options in texts.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

static OPTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\w-])(--[a-z0-9][a-z0-9-]*)").expect("a pattern that the tests have used")
});

/// Options of other programs that the pages or the help name.
const FOREIGN: &[&str] = &[
    "--config-net",
    "--descriptor",
    "--include",
    "--locked",
    "--network",
    "--nofile",
    "--path",
    "--pid",
    "--release",
    "--rm",
    "--wsesslog",
];
/// Options of every command, documented once.
const EVERYWHERE: &[&str] = &["--help", "--version"];

/// Returns the options that a help text names, in its list or in its text.
pub(super) fn in_help(text: &str) -> BTreeSet<String> {
    named(text)
}

fn named(text: &str) -> BTreeSet<String> {
    let found = OPTION.captures_iter(text).map(|captures| captures[1].to_owned());
    // `--expect-…` refers to several
    found.filter(|option| !option.ends_with('-')).collect()
}

/// Returns whether a page may name options of another tool, as migration pages do.
fn is_migration_page(page: &str) -> bool {
    page.contains("/coming-from-")
}

/// Compares options. `guide`: name and option words of each page; `other` may name any option but
/// need not name all.
pub(super) fn compare(
    help: &BTreeMap<&str, BTreeSet<String>>,
    guide: &[(String, String)],
    other: &(String, String),
) -> Vec<String> {
    let mut known: BTreeSet<&str> = help.values().flatten().map(String::as_str).collect();
    known.extend(EVERYWHERE);
    let mut described = BTreeSet::new();
    let mut faults = Vec::new();
    for (name, text) in guide.iter().chain([other]).filter(|(name, _)| !is_migration_page(name)) {
        for line in text.lines().filter(|line| !line.contains("cargo xtask")) {
            for option in named(line) {
                if !known.contains(option.as_str()) && !FOREIGN.contains(&option.as_str()) {
                    faults.push(format!("{name}: {option} is in no command's help"));
                }
            }
        }
    }
    for (_, text) in guide {
        described.extend(named(text));
    }
    for (command, options) in help {
        let ours = options.iter().filter(|option| !FOREIGN.contains(&option.as_str()));
        for option in ours.filter(|option| !described.contains(*option)) {
            faults.push(format!("docs/guide: no page names {option} of {command}"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_in_one_place_only_is_a_fault() {
        let help =
            BTreeMap::from([("run", in_help("  -c, --connections <N>\n      --rate <R>\n"))]);
        let page = |text: &str| ("docs/guide/a.md".to_owned(), text.to_owned());
        let readme = ("README.md".to_owned(), "cargo build --release".to_owned());
        let good =
            page("`-c/--connections`, `--rate=5`, a -- b, --con-…, cargo xtask guide --check");
        assert_eq!(compare(&help, &[good], &readme), Vec::<String>::new());
        let tool = (
            "docs/guide/coming-from-x.md".to_owned(),
            "-c/--connections --rate --native".to_owned(),
        );
        assert_eq!(compare(&help, &[tool], &readme), Vec::<String>::new());
        let bad = page("give --rate and --ratte");
        assert_eq!(
            compare(&help, &[bad], &readme),
            [
                "docs/guide/a.md: --ratte is in no command's help",
                "docs/guide: no page names --connections of run",
            ]
        );
    }
}
