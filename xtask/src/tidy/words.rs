//! Words: one meaning each (GLOSSARY.md), no unfinished work, no paths of one machine.

use super::{Finding, Tree};
use regex::Regex;
use std::sync::LazyLock;

pub(super) struct Word {
    pattern: LazyLock<Regex>,
    instead: &'static str,
}

pub(super) const fn word(make: fn() -> Regex, instead: &'static str) -> Word {
    Word { pattern: LazyLock::new(make), instead }
}

/// Words that are ambiguous in the field.
static WORDS: [Word; 6] = [
    word(|| regex(r"(?i)\blatenc(y|ies)\b"), "say response time, service time or slip"),
    word(|| regex(r"\b(RPS|rps)\b"), "say requests/s, and whether intended, offered or completed"),
    word(|| regex(r"(?i)\bhits? (per|a) second\b|\bhits/s"), "say calls"),
    word(|| regex(r"(?i)\bvirtual users?\b"), "say user or session"),
    word(|| regex(r"(?i)\baverages?\b"), "say mean"),
    word(|| regex(r"(?i)\berror rates?\b"), "say failures %, and of what"),
];

/// Files that may contain a listed word, because they quote or explain it.
const EXCEPTIONS: &[&str] = &[
    "GLOSSARY.md",
    "bench/",
    // recognizes the names that other tools, such as k6, give to metrics
    "crates/base/stats/src/objective.rs",
    // the names of k6's own options
    "crates/load/k6/",
    // an option of wrk
    "crates/loadstone/src/demo/stall.rs",
    // names of options of other tools
    "crates/load/import/src/command_lines/tools.rs",
    "crates/tools/faces/",
    "crates/args/src/foreign/",
    "docs/design.md",
    "xtask/src/tidy/",
    "xtask/src/truth/",
];

static MACHINE_PATH: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(^|[^\w./:~-])/(work|root|home)/\w"));
static LOOSE_END: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(FIXME|XXX)\b"));
pub(super) static CODE_SPAN: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"`[^`]*`|"[^"]*"|“[^”]*”|\]\([^)]*\)"#));

pub(super) fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern that the tests have used")
}

/// Checks that neither documents nor messages use an ambiguous word.
pub(super) fn banned_words(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let excepted = |path: &str| EXCEPTIONS.iter().any(|start| path.starts_with(start));
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md") && !excepted(path)) {
        for (line, text) in prose(text) {
            banned_in(path, line, &text, &mut found);
        }
    }
    let is_product = |path: &str| !excepted(path) && !tree.tests().contains(path);
    for (path, source) in tree.sources().filter(|(path, _)| is_product(path)) {
        let literals = source.literals();
        for (line, text) in literals.iter().filter(|(line, _)| !source.is_test_line(*line)) {
            banned_in(path, *line, &CODE_SPAN.replace_all(text, ""), &mut found);
        }
    }
    found
}

fn banned_in(path: &str, line: usize, text: &str, found: &mut Vec<Finding>) {
    words_in(&WORDS, path, line, text, found);
}

pub(super) fn words_in(
    words: &[Word],
    path: &str,
    line: usize,
    text: &str,
    found: &mut Vec<Finding>,
) {
    for word in words {
        if let Some(said) = word.pattern.find(text) {
            let text = format!("{:?}: {}", said.as_str(), word.instead);
            found.push(Finding::new(path, line, text));
        }
    }
}

/// Returns a Markdown text without its code, quotations and link targets: line number and remaining
/// text.
pub(super) fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut kept = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            kept.push((index + 1, CODE_SPAN.replace_all(line, "").into_owned()));
        }
    }
    kept
}

/// Finds unfinished work and disabled tests.
pub(super) fn unfinished_work(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, source) in tree.sources() {
        for (line, mark) in source.marks() {
            match mark.as_str() {
                "todo!" | "unimplemented!" => {
                    found.push(Finding::new(path, line, format!("{mark} left in the code")));
                }
                "#[ignore]" => found.push(Finding::new(path, line, "a test switched off")),
                _ => {}
            }
        }
    }
    for (path, text) in tree.texts().filter(|(path, _)| !path.starts_with("xtask/src/tidy/")) {
        for (index, line) in text.lines().enumerate() {
            if let Some(said) = LOOSE_END.find(line) {
                found.push(Finding::new(path, index + 1, format!("{} left behind", said.as_str())));
            }
        }
    }
    found
}

/// Finds examples in doc comments that would be compiled: the tests do not run any, because
/// rustdoc's pass over every crate costs a minute and finds nothing.
pub(super) fn examples(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| path.starts_with("crates/")) {
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let Some(language) = comment.and_then(|text| text.trim_start().strip_prefix("```"))
            else {
                continue;
            };
            let is_code = matches!(language.trim(), "" | "rust" | "should_panic" | "no_run");
            if !fenced && is_code {
                let text = "no test runs an example of a doc comment: write a test, or ```text";
                found.push(Finding::new(path, index + 1, text));
            }
            fenced = !fenced;
        }
    }
    found
}

/// Finds absolute paths of a developer's machine. A test may invent a user's home.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts() {
        for (index, line) in text.lines().enumerate() {
            let Some(said) = MACHINE_PATH.find(line) else { continue };
            let made_up = said.as_str().contains("/home/")
                && (tree.tests().contains(path)
                    || tree.source(path).is_some_and(|source| source.is_test_line(index + 1)));
            if !made_up {
                let text = format!("a path of one machine: {}…", said.as_str().trim());
                found.push(Finding::new(path, index + 1, text));
            }
        }
    }
    found
}
