//! Names of tests: each states a fact in the present tense, such as `a_closed_pipe_ends_the_run`.

use super::words::regex;
use super::{Finding, Tree};
use regex::Regex;
use std::sync::LazyLock;

static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*#\[(?:\w+::)?test\b"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*(?:pub )?(?:async )?fn (\w+)"));

/// Most lines between the attribute of a test and its name.
const BETWEEN_MAX: usize = 8;
/// Verbs of other tenses. A subordinate clause may have them:
/// `the_last_case_that_was_run_is_shown`.
const OTHER_TENSES: &[&str] = &["was", "were", "did", "had", "will", "would", "shall", "should"];
/// Words that begin a subordinate clause.
const SUBORDINATE: &[&str] = &[
    "after", "although", "as", "because", "before", "for", "how", "if", "since", "than", "that",
    "until", "what", "when", "where", "which", "who", "whom", "whose",
];
/// Verbs without the ending of the third person, or irregular.
const VERBS: &[&str] =
    &["are", "can", "cannot", "do", "does", "has", "have", "is", "may", "must", "need", "needs"];
/// First words of a plural subject without a plural ending; its verb has no ending either.
const PLURAL: &[&str] = &["all", "both", "data", "most", "people"];
/// Names that state a fact in a way that the rule does not recognize: path and name.
const ALLOWED: &[(&str, &str)] = &[];

/// Checks that every test's name is a sentence in the present tense.
pub(super) fn facts(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| !path.starts_with("vendor/")) {
        for (line, name) in names(text) {
            if let Some(fault) = fault(name).filter(|_| !ALLOWED.contains(&(path, name))) {
                found.push(Finding::new(path, line, format!("test {name}: {fault}")));
            }
        }
    }
    found
}

/// Returns line and name of each test; `proptest!` has the same attributes.
fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut within = 0_usize;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if ATTRIBUTE.is_match(line) {
            within = BETWEEN_MAX;
        }
        within = within.saturating_sub(1);
        let name = FUNCTION.captures(line).filter(|_| within > 0)?.get(1)?.as_str();
        within = 0;
        Some((index + 1, name))
    })
}

fn fault(name: &str) -> Option<&'static str> {
    let words: Vec<&str> = name.split('_').collect();
    let first = words[0];
    let clause = words.iter().position(|word| SUBORDINATE.contains(word)).unwrap_or(words.len());
    if first == "test" || words[..clause].iter().any(|word| OTHER_TENSES.contains(word)) {
        return Some("write a fact in the present tense");
    }
    let third_person = |word: &&str| {
        word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us")
            || VERBS.contains(word)
    };
    // the plural ending of the subject is as good: `rates_follow_the_plan`
    let plural = PLURAL.contains(&first) || words.contains(&"and") || third_person(&first);
    let has_verb = words[1..].iter().any(third_person) || plural && words.len() > 1;
    (!has_verb).then_some("it states no fact: write a subject and a verb in the present tense")
}
