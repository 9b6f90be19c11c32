//! Plain English in documents, comments and names.

use super::words::{CODE_SPAN, Word, prose, regex, word, words_in};
use super::{Finding, Tree};
use regex::Regex;
use std::sync::LazyLock;

/// Words and phrases that need a second reading, with the usual form.
static STUMBLES: [Word; 12] = [
    word(
        || regex(r"(?i)\b(whoever|whomever|somebody)\b"),
        "name the party: the client, the caller",
    ),
    word(|| regex(r"(?i)\banew\b"), "write again, or re-"),
    word(|| regex(r"(?i)\bthereof\b"), "write of it"),
    word(|| regex(r"(?i)\bway out\b"), "write fix or hint"),
    word(|| regex(r"(?i)\bputs? up with\b"), "write accept"),
    word(|| regex(r"(?i)\b(is|are|was|were|be|been) told\b"), "write reported or notified"),
    word(|| regex(r"(?i)\b(stood|heeds?|deeds?|errands?)\b"), "write the usual verb or noun"),
    word(|| regex(r"(?i)\b(is|that are) none\b"), "state what it is, or write is not a ..."),
    word(|| regex(r"(?i)\bso many\b"), "write the number, or this many"),
    word(|| regex(r"(?i)\bto be believed\b"), "write valid or trusted"),
    word(|| regex(r"(?i)\bmend(s|ed|ing)?\b"), "write fix"),
    word(|| regex(r"(?i)\bof that [0-9]"), "write including"),
];

/// The same for comments, in which the shorter phrases have ordinary uses too.
static CODE_STUMBLES: [Word; 11] = [
    word(
        || regex(r"(?i)\b(whoever|whomever|somebody|nobody)\b"),
        "name the party: the client, the caller",
    ),
    word(|| regex(r"(?i)\banew\b"), "write again, or re-"),
    word(|| regex(r"(?i)\bthereof\b"), "write of it"),
    word(|| regex(r"(?i)\bway out\b"), "write fix or hint"),
    word(|| regex(r"(?i)\bputs? up with\b"), "write accept"),
    word(|| regex(r"(?i)\b(is|are|was|were) told\b"), "write reported or notified"),
    word(|| regex(r"(?i)\b(stood|heeds?|deeds?|errands?)\b"), "write the usual verb or noun"),
    word(|| regex(r"(?i)\bthat (is|are) none\b"), "state what it is, or write is not a ..."),
    word(|| regex(r"(?i)\b(after|by|for|of|up to) so many\b"), "write the number, or this many"),
    word(|| regex(r"(?i)\bto be believed\b"), "write valid or trusted"),
    word(|| regex(r"(?i)\bmend(s|ed|ing)?\b"), "write fix or repair"),
];

static DOC_START: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^//[/!] (What|Whether|Who|Whoever|Whom|Whose)\b"));
static COMMENT: LazyLock<Regex> = LazyLock::new(|| regex(r"^//[/!]? ?(.*)$"));
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\bfn (?:\w+_)?(anew|deeds?|errands?|heeds?|mend(?:s|ed)?|nobody|somebody|stood|tells?|told|whoever)(?:_\w+)?\s*[<(]",
    )
});

/// Rust files whose doc comments are help texts, or that use one of the words in another sense: the
/// user `nobody`, and the words of this check.
const OTHER_SENSE: &[&str] = &[
    "crates/args/",
    "crates/loadstone/tests/check/servers.rs",
    "crates/loadstone/tests/hard_times/running.rs",
    "vendor/",
    "xtask/src/tidy/",
];

/// Crates whose function names were rewritten.
const PLAIN_NAMES: &[&str] = &[
    "crates/base/conduit/",
    "crates/base/sample/",
    "crates/base/units/",
    "crates/http/http2/",
    "crates/http/protocol/",
    "crates/http/quic/",
    "crates/load/eventloop/",
    "crates/load/lua/",
    "crates/load/plan/",
    "crates/load/sim/",
    "crates/load/workload/",
    "crates/result/record/",
    "crates/result/store/",
    "crates/system/",
    "crates/tools/fleet/",
    "crates/tools/norm/",
    "crates/tools/site/",
    "crates/torture/",
];

/// Parts of the tree that are still to be rewritten.
const NOT_YET: &[&str] = &["crates/load/workload/src/guide.rs"];

/// Documents are in plain English: [`STUMBLES`] may not return to them.
pub(super) fn documents(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (line, text) in prose(text) {
            words_in(&STUMBLES, path, line, &text, &mut found);
        }
    }
    found
}

/// Checks comments, and the function names of rewritten crates.
pub(super) fn code(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_in = |path: &str, list: &[&str]| list.iter().any(|at| path.starts_with(at));
    for (path, text) in tree.rust().filter(|(path, _)| !is_in(path, OTHER_SENSE)) {
        let has_plain_names = is_in(path, PLAIN_NAMES) && !is_in(path, NOT_YET);
        let mut in_docs = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if let Some(comment) = COMMENT.captures(line) {
                let text = CODE_SPAN.replace_all(&comment[1], "");
                words_in(&CODE_STUMBLES, path, index + 1, &text, &mut found);
                if !in_docs && DOC_START.is_match(line) {
                    let text = "a doc comment starts with a verb or a noun phrase";
                    found.push(Finding::new(path, index + 1, text));
                }
            } else if let Some(name) = NAME.captures(line).filter(|_| has_plain_names) {
                let text =
                    format!("{:?} in a function's name: write a verb of the field", &name[1]);
                found.push(Finding::new(path, index + 1, text));
            }
            in_docs = line.starts_with("///") || line.starts_with("//!");
        }
    }
    found
}
