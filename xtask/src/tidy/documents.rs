//! Documents that must agree with the tree.

use super::{Finding, Tree};
use crate::shell::version_in;
use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

static CRATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"crates(?:/[a-z0-9_-]+)+").expect("a tested pattern"));
static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\]\(([^)\s]+)(?:\s+"[^"]*")?\)"#).expect("a tested pattern"));
static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new("`[^`]*`").expect("a tested pattern"));

const MAP: &str = "ARCHITECTURE.md";

/// Checks that ARCHITECTURE.md names every crate by its folder, and only existing crates.
pub(super) fn crates_on_the_map(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.text(MAP) else {
        return vec![Finding::new(MAP, 0, "missing")];
    };
    let mut named = BTreeSet::new();
    let mut found = Vec::new();
    for (index, line) in map.lines().enumerate() {
        for path in CRATE.find_iter(line).map(|path| path.as_str()) {
            match tree.crate_of(path) {
                Some(name) => drop(named.insert(name)),
                None if tree.holds(path) => {}
                None => {
                    let text = format!("names {path}, which is not there");
                    found.push(Finding::new(MAP, index + 1, text));
                }
            }
        }
    }
    for (_, folder) in tree.crate_folders().filter(|(name, _)| !named.contains(name)) {
        found.push(Finding::new(MAP, 0, format!("does not name {folder}")));
    }
    found
}

/// Checks that CHANGELOG.md has a section for the version in the manifest.
pub(super) fn version_in_changelog(tree: &Tree) -> Vec<Finding> {
    let path = "CHANGELOG.md";
    let Some(version) = tree.text("Cargo.toml").and_then(version_in) else {
        return vec![Finding::new("Cargo.toml", 0, "states no [workspace.package] version")];
    };
    let heading = format!("## [{version}]");
    let told =
        tree.text(path).is_some_and(|text| text.lines().any(|line| line.starts_with(&heading)));
    if told { Vec::new() } else { vec![Finding::new(path, 0, format!("no section {heading}"))] }
}

/// Checks that relative links in Markdown lead to a file, folder or heading that exists.
pub(super) fn links(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in relative_links(text) {
            if let Some(why) = broken(tree, path, &target) {
                found.push(Finding::new(path, line, format!("link to {target}: {why}")));
            }
        }
    }
    found
}

fn relative_links(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let line = CODE.replace_all(line, "``");
        let targets = LINK.captures_iter(&line).filter_map(|captures| captures.get(1));
        let relative = targets.filter(|to| !to.as_str().contains(':'));
        found.extend(relative.map(|to| (index + 1, to.as_str().to_owned())));
    }
    found
}

fn broken(tree: &Tree, from: &str, target: &str) -> Option<&'static str> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) };
    let Some(path) = path else { return Some("leads out of the repository") };
    if !tree.holds(path.trim_end_matches('/')) {
        return Some("there is no such file");
    }
    let text = tree.text(&path);
    let lost =
        |text: &str| !anchor.is_empty() && !text.lines().filter_map(heading).any(|to| to == anchor);
    text.is_some_and(lost).then_some("there is no such heading")
}

/// Returns the path that `target` means in the file `from`; `None` if it leaves the root.
fn resolve(from: &str, target: &str) -> Option<String> {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the anchor of a heading: lower case, spaces as hyphens, no punctuation.
fn heading(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
    Some(anchor(title))
}

/// Returns the anchor of a heading's text.
pub(crate) fn anchor(title: &str) -> String {
    let kept = title.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
