//! Rust files through a real parser: test lines, used paths, renames by `use`, string literals.
//! Works on tokens below the item level, so that macro bodies count too.

use super::{Finding, Tree};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// One parsed file.
pub(super) struct Source {
    pub(super) file: syn::File,
    /// Lines of `#[cfg(test)]` items and `#[test]` functions.
    tests: Vec<RangeInclusive<usize>>,
    /// Modules declared `#[cfg(test)] mod name;`
    pub(super) test_modules: Vec<String>,
    /// All tokens, without comments.
    tokens: TokenStream,
}

/// A path such as `std::fs::read` in the code, with renames resolved.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) path: String,
    pub(super) line: usize,
}

impl Source {
    /// # Errors
    /// Fails with the parser's error, with its line.
    pub(super) fn parse(text: &str) -> Result<Source, (usize, String)> {
        let said =
            |error: &dyn std::fmt::Display, span: Span| (span.start().line, error.to_string());
        let file = syn::parse_file(text).map_err(|error| said(&error, error.span()))?;
        let tokens: TokenStream =
            text.parse().map_err(|error: proc_macro2::LexError| said(&error, error.span()))?;
        let mut finder = TestFinder::default();
        finder.visit_file(&file);
        Ok(Source { file, tests: finder.lines, test_modules: finder.modules, tokens })
    }

    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// Returns every path of two segments or more, and every leaf of a `use`, in order of
    /// appearance.
    pub(super) fn paths(&self) -> Vec<Named> {
        let mut uses = UseFinder::default();
        uses.visit_file(&self.file);
        let mut named = uses.leaves;
        walk(&self.tokens, &mut |trees| {
            let mut at = 0;
            while at < trees.len() {
                let (segments, after) = path_at(trees, at);
                let path = undo_rename(&segments, &uses.renames);
                if path.contains("::") {
                    named.push(Named { path, line: trees[at].span().start().line });
                }
                at = after.max(at + 1);
            }
        });
        named
    }

    /// Returns string literals and doc comments: line and text.
    pub(super) fn literals(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        walk(&self.tokens, &mut |trees| {
            for tree in trees {
                let TokenTree::Literal(literal) = tree else { continue };
                let line = literal.span().start().line;
                if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    found.push((line, text.value()));
                }
            }
        });
        found
    }

    /// Returns the line and name of each macro call and attribute, such as `todo!` or `#[ignore]`.
    pub(super) fn marks(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        walk(&self.tokens, &mut |trees| {
            for pair in trees.windows(2) {
                let line = pair[0].span().start().line;
                match pair {
                    [TokenTree::Ident(name), TokenTree::Punct(mark)] if mark.as_char() == '!' => {
                        found.push((line, format!("{name}!")));
                    }
                    [TokenTree::Punct(mark), TokenTree::Group(group)]
                        if mark.as_char() == '#' && group.delimiter() == Delimiter::Bracket =>
                    {
                        if let Some(TokenTree::Ident(name)) = group.stream().into_iter().next() {
                            found.push((line, format!("#[{name}]")));
                        }
                    }
                    _ => {}
                }
            }
        });
        found
    }
}

/// Checks that every file of this repository can be parsed.
pub(super) fn parses(tree: &Tree) -> Vec<Finding> {
    tree.unparsed()
        .map(|(path, line, said)| Finding::new(path, line, format!("cannot be parsed: {said}")))
        .collect()
}

/// Returns the files that are compiled for tests only: integration tests, benches, and modules
/// declared by `#[cfg(test)] mod name;`, with everything below them.
pub(super) fn test_files(tree: &Tree) -> BTreeSet<String> {
    let mut roots = Vec::new();
    for (path, source) in tree.sources() {
        let folder = module_folder(path);
        roots.extend(source.test_modules.iter().map(|name| format!("{folder}{name}")));
    }
    let is_test = |path: &str| {
        let outside = ["/tests/", "/benches/"]
            .iter()
            .any(|part| path.find(part).is_some_and(|at| !path[..at].contains("/src")));
        let stem = path.trim_end_matches(".rs");
        outside || roots.iter().any(|root| stem == root || stem.starts_with(&format!("{root}/")))
    };
    tree.rust().map(|(path, _)| path).filter(|path| is_test(path)).map(str::to_owned).collect()
}

/// Returns the folder of the modules declared in a file: `src/` for `src/lib.rs`, `src/a/` for
/// `src/a.rs`.
fn module_folder(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/"),
        _ => format!("{folder}/{}/", name.trim_end_matches(".rs")),
    }
}

/// Calls `see` with the trees of the stream and of every group in it.
pub(super) fn walk(tokens: &TokenStream, see: &mut dyn FnMut(&[TokenTree])) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    see(&trees);
    for tree in &trees {
        if let TokenTree::Group(group) = tree {
            walk(&group.stream(), see);
        }
    }
}

/// Returns the path that starts at `at`, if an identifier is there, and where it ends.
fn path_at(trees: &[TokenTree], at: usize) -> (Vec<String>, usize) {
    let mut segments = Vec::new();
    let mut next = at;
    while let Some(TokenTree::Ident(name)) = trees.get(next) {
        segments.push(name.to_string());
        next += 1;
        let colon = |tree: Option<&TokenTree>| matches!(tree, Some(TokenTree::Punct(mark)) if mark.as_char() == ':');
        let goes_on = colon(trees.get(next)) && colon(trees.get(next + 1));
        if !goes_on || !matches!(trees.get(next + 2), Some(TokenTree::Ident(_))) {
            break;
        }
        next += 2;
    }
    (segments, next)
}

fn undo_rename(segments: &[String], renames: &BTreeMap<String, String>) -> String {
    let joined = match segments.split_first() {
        Some((first, rest)) if renames.contains_key(first) => {
            std::iter::once(renames[first].as_str())
                .chain(rest.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join("::")
        }
        _ => segments.join("::"),
    };
    from_std(&joined)
}

/// `core` and `alloc` contain nothing that `std` does not.
fn from_std(path: &str) -> String {
    match path.strip_prefix("core::").or_else(|| path.strip_prefix("alloc::")) {
        Some(rest) => format!("std::{rest}"),
        None => path.to_owned(),
    }
}

#[derive(Default)]
struct UseFinder {
    leaves: Vec<Named>,
    /// Name in this file → full path.
    renames: BTreeMap<String, String>,
}

impl UseFinder {
    fn follow(&mut self, prefix: &str, tree: &syn::UseTree) {
        let leaf = |name: &dyn std::fmt::Display| from_std(&format!("{prefix}{name}"));
        match tree {
            syn::UseTree::Path(path) => {
                self.follow(&format!("{prefix}{}::", path.ident), &path.tree);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.follow(prefix, tree);
                }
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                let path = from_std(prefix.trim_end_matches("::"));
                let last = path.rsplit("::").next().unwrap_or(&path).to_owned();
                self.keep(last, path, name.span());
            }
            syn::UseTree::Name(name) => {
                self.keep(name.ident.to_string(), leaf(&name.ident), name.span());
            }
            syn::UseTree::Rename(rename) => {
                self.keep(rename.rename.to_string(), leaf(&rename.ident), rename.span());
            }
            syn::UseTree::Glob(glob) => {
                let path = leaf(&"*");
                self.leaves.push(Named { path, line: glob.span().start().line });
            }
        }
    }

    fn keep(&mut self, name: String, path: String, span: Span) {
        self.leaves.push(Named { path: path.clone(), line: span.start().line });
        self.renames.insert(name, path);
    }
}

impl<'ast> Visit<'ast> for UseFinder {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.follow("", &item.tree);
    }
}

#[derive(Default)]
struct TestFinder {
    lines: Vec<RangeInclusive<usize>>,
    modules: Vec<String>,
}

impl<'ast> Visit<'ast> for TestFinder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(module) => &module.attrs,
            syn::Item::Fn(function) => &function.attrs,
            syn::Item::Impl(block) => &block.attrs,
            syn::Item::Use(tree) => &tree.attrs,
            syn::Item::Struct(it) => &it.attrs,
            syn::Item::Const(it) => &it.attrs,
            _ => return syn::visit::visit_item(self, item),
        };
        if !attributes.iter().any(is_test_attribute) {
            return syn::visit::visit_item(self, item);
        }
        if let syn::Item::Mod(module) = item
            && module.content.is_none()
        {
            self.modules.push(module.ident.to_string());
        }
        let span = item.span();
        self.lines.push(span.start().line..=span.end().line);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if function.attrs.iter().any(is_test_attribute) {
            let span = function.span();
            self.lines.push(span.start().line..=span.end().line);
        }
        syn::visit::visit_impl_item_fn(self, function);
    }
}

/// Returns whether the attribute is `#[test]`, `#[cfg(test)]` or `#[cfg(any(test, …))]`, but not
/// `#[cfg(not(test))]`.
fn is_test_attribute(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let said = list.tokens.to_string();
    attribute.path().is_ident("cfg")
        && said.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "test")
        && !said.contains("not")
}
