//! Requirements on every crate's manifest and root file.

use super::layers::{PURE_LAYER_MAX, layer_of};
use super::{Finding, Tree};

/// Names without meaning, which attract everything.
const NAMELESS: &[&str] =
    &["utils", "util", "common", "core", "helpers", "helper", "misc", "shared"];

/// Checks that no crate has a meaningless name; a crate's name is its folder's.
pub(super) fn names(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, folder) in tree.crate_folders() {
        let path = format!("{folder}/Cargo.toml");
        if NAMELESS.contains(&name) {
            found.push(Finding::new(&path, 0, format!("a crate called {name}: name what it does")));
        }
        let manifest = manifest(tree, &path);
        let said = manifest.get("package").and_then(|package| package.get("name"));
        if said.and_then(toml::Value::as_str) != Some(name) {
            found.push(Finding::new(&path, 0, "the package's name is not its folder's"));
        }
    }
    found
}

/// Pure crates that call a library in C, and deny unsafe code everywhere but where they do.
const WRAPPERS: &[&str] = &["http2"];

/// Checks that every crate inherits the workspace's lints, and that the pure layers forbid unsafe
/// code.
pub(super) fn lints(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, folder) in tree.crate_folders() {
        let path = format!("{folder}/Cargo.toml");
        let manifest = manifest(tree, &path);
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if inherits.and_then(toml::Value::as_bool) != Some(true) {
            found.push(Finding::new(&path, 0, "add [lints] workspace = true"));
        }
        let root = format!("{folder}/src/lib.rs");
        let pure = layer_of(name).is_some_and(|layer| layer <= PURE_LAYER_MAX);
        let pure = pure && !WRAPPERS.contains(&name);
        if let (true, Some(text)) = (pure, tree.text(&root))
            && !text.contains("#![forbid(unsafe_code)]")
        {
            found.push(Finding::new(&root, 1, "a crate of layers 0-3 forbids unsafe code"));
        }
    }
    found
}

/// Returns a manifest's table; empty if it does not parse, which cargo reports better.
pub(super) fn manifest(tree: &Tree, path: &str) -> toml::Table {
    tree.text(path).and_then(|text| text.parse().ok()).unwrap_or_default()
}
