//! Sizes: exceeding a limit fails at once.

use super::source::walk;
use super::{Finding, Tree};
use proc_macro2::{Delimiter, TokenTree};
use syn::spanned::Spanned;
use syn::visit::Visit;

pub(super) const FUNCTION_LINES_MAX: usize = 70;
pub(super) const FILE_LINES_MAX: usize = 1_000;
/// A longer name is a sentence for a comment.
pub(super) const NAME_CHARS_MAX: usize = 60;

/// The bare loops and meters are written out by hand on purpose: what they measure is the kernel,
/// and a call that the compiler does not inline would be measured with it.
const UNROLLED: &str = "bench/limit/";

/// Checks that no function is longer than [`FUNCTION_LINES_MAX`] lines, from `fn` to its closing
/// brace, and that none, including tests, has a name longer than [`NAME_CHARS_MAX`].
pub(super) fn functions(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, source) in tree.sources() {
        let mut lengths = Lengths::default();
        lengths.visit_file(&source.file);
        for (line, name, lines) in lengths.found {
            if lines > FUNCTION_LINES_MAX && !path.starts_with(UNROLLED) {
                let text = format!("fn {name} has {lines} lines, more than {FUNCTION_LINES_MAX}");
                found.push(Finding::new(path, line, text));
            }
            let chars = name.chars().count();
            if chars > NAME_CHARS_MAX {
                let text =
                    format!("fn {name}: a name of {chars} characters, more than {NAME_CHARS_MAX}");
                found.push(Finding::new(path, line, text));
            }
        }
    }
    found
}

/// Checks that no Rust file is longer than [`FILE_LINES_MAX`] lines.
pub(super) fn files(tree: &Tree) -> Vec<Finding> {
    let long = |(path, text): (&str, &str)| {
        let lines = text.lines().count();
        let text = format!("{lines} lines, more than {FILE_LINES_MAX}: split it");
        (lines > FILE_LINES_MAX).then(|| Finding::new(path, 0, text))
    };
    tree.rust().filter_map(long).collect()
}

#[derive(Default)]
struct Lengths {
    /// First line, name, number of lines.
    found: Vec<(usize, String, usize)>,
}

impl Lengths {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span().start().line;
        let last = block.brace_token.span.close().end().line;
        self.found.push((first, signature.ident.to_string(), last + 1 - first));
    }
}

impl<'ast> Visit<'ast> for Lengths {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, function);
    }

    // functions inside macros such as proptest! are tokens to the parser
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        walk(&call.tokens, &mut |trees| {
            for at in 0..trees.len().saturating_sub(1) {
                let (TokenTree::Ident(word), TokenTree::Ident(name)) = (&trees[at], &trees[at + 1])
                else {
                    continue;
                };
                let brace = trees[at + 2..].iter().find_map(|tree| match tree {
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
                    _ => None,
                });
                if let (true, Some(body)) = (word == "fn", brace) {
                    let first = word.span().start().line;
                    let last = body.span_close().end().line;
                    self.found.push((first, name.to_string(), last + 1 - first));
                }
            }
        });
    }
}
