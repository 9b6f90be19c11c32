//! Checks the tree against its own rules. Each rule is a function from a [`Tree`] to its findings;
//! the tests plant a violation of each rule.

mod circles;
mod documents;
mod layers;
mod lines;
mod manifests;
mod nouns;
mod plain;
mod source;
mod testnames;
#[cfg(test)]
mod tests;
mod tree;
mod tuples;
mod words;
mod world;

use anyhow::bail;
pub(crate) use documents::anchor;
use std::path::Path;
pub(crate) use tree::Tree;

/// One violation of one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// Line from 1; 0 for the whole file.
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, text: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, text: text.into() }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[Rule] = &[
    manifests::names,
    manifests::lints,
    layers::ours,
    layers::theirs,
    layers::permissions,
    source::parses,
    world::pure_crates,
    world::clocks,
    world::invocations,
    world::sleeping_tests,
    nouns::shared_names,
    circles::among_modules,
    lines::functions,
    lines::files,
    testnames::facts,
    tuples::packed_statements,
    tuples::bare_pairs,
    words::banned_words,
    plain::documents,
    plain::code,
    words::unfinished_work,
    words::examples,
    words::machine_paths,
    documents::crates_on_the_map,
    documents::version_in_changelog,
    documents::links,
];

/// Returns every finding of every rule, by path and line.
pub(crate) fn findings(tree: &Tree) -> Vec<Finding> {
    let mut found: Vec<Finding> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    found.sort();
    found.dedup();
    found
}

/// Runs `cargo xtask tidy`.
///
/// # Errors
/// Fails if the tree cannot be read, or if anything was found.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    let found = findings(&tree);
    for finding in &found {
        println!("{finding}");
    }
    if !found.is_empty() {
        bail!("tidy: {} to fix", found.len());
    }
    println!("tidy: {} files, nothing found", tree.texts().count());
    Ok(())
}
