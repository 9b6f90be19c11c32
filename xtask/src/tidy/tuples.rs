//! Tuples that hide statements and names: two bindings or assignments in one statement, to save a
//! line, and pairs of one type in public signatures, which a caller can swap unnoticed.

use super::{Finding, Tree};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Folders that still have tuples of this kind: a folder is removed from the list when it has none.
/// Tests may have them.
const NOT_YET: &[&str] = &[
    "bench/limit/",
    "crates/base/conduit/",
    "crates/base/sample/",
    "crates/base/stats/",
    "crates/http/http2/",
    "crates/http/protocol/",
    "crates/http/websocket/",
    "crates/load/",
    "crates/loadstone/",
    "crates/result/",
    "crates/system/host/",
    "crates/system/net/",
    "crates/system/netpath/",
    "crates/system/ownstack/",
    "crates/system/wan/",
    "crates/tools/",
    "crates/torture/",
];

/// Finds `let (a, b) = (x, y);` and `(a, b) = (x, y);` that could be two statements.
pub(super) fn packed_statements(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, source) in tree.sources() {
        let tests = path.contains("/tests/") || path.ends_with("tests.rs");
        if tests || NOT_YET.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let mut packed = Packed::default();
        packed.visit_file(&source.file);
        let lines = packed.lines.into_iter().filter(|line| !source.is_test_line(*line));
        let text = "two statements packed into a tuple: write a statement for each";
        found.extend(lines.map(|line| Finding::new(path, line, text)));
    }
    found
}

#[derive(Default)]
struct Packed {
    lines: Vec<usize>,
}

impl Packed {
    /// Records the line if a tuple is assigned to a tuple, and no value needs a name that an
    /// earlier assignment would replace.
    fn judge(&mut self, line: usize, places: &[String], value: &syn::Expr) {
        let syn::Expr::Tuple(values) = value else { return };
        if values.elems.len() != places.len() || places.len() < 2 {
            return;
        }
        let values: Vec<String> = values.elems.iter().map(words).collect();
        let needs = |at: usize| places[..at].iter().any(|place| has(&values[at], place));
        if !(1..values.len()).any(needs) {
            self.lines.push(line);
        }
    }
}

/// Renders code on one line.
fn words(of: &impl Spanned) -> String {
    let text = of.span().source_text().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has(value: &str, place: &str) -> bool {
    let place = place.trim_start_matches("mut ");
    let parts = |text: &str| -> Vec<String> {
        let cut = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        cut.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let place = parts(place);
    let value = parts(value);
    !place.is_empty() && value.windows(place.len()).any(|part| part == place)
}

impl<'ast> Visit<'ast> for Packed {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        // two patterns that may not match have one `else`
        if let (syn::Pat::Tuple(names), Some(init)) = (&local.pat, &local.init)
            && init.diverge.is_none()
        {
            let names: Vec<String> = names.elems.iter().map(words).collect();
            self.judge(local.let_token.span().start().line, &names, &init.expr);
        }
        syn::visit::visit_local(self, local);
    }

    fn visit_expr_assign(&mut self, assign: &'ast syn::ExprAssign) {
        if let syn::Expr::Tuple(places) = &*assign.left {
            let places: Vec<String> = places.elems.iter().map(words).collect();
            self.judge(assign.eq_token.span().start().line, &places, &assign.right);
        }
        syn::visit::visit_expr_assign(self, assign);
    }
}

/// Finds pairs of one bare type in a public function's parameters or result.
pub(super) fn bare_pairs(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, source) in tree.sources() {
        if NOT_YET.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let mut pairs = Pairs::default();
        pairs.visit_file(&source.file);
        for (line, pair) in pairs.found.into_iter().filter(|(line, _)| !source.is_test_line(*line))
        {
            let text =
                format!("a public function has a pair of {pair}: name its parts in a struct");
            found.push(Finding::new(path, line, text));
        }
    }
    found
}

#[derive(Default)]
struct Pairs {
    /// Line, and the type that occurs twice.
    found: Vec<(usize, String)>,
    public: bool,
}

impl Pairs {
    fn signature(&mut self, visibility: &syn::Visibility, signature: &syn::Signature) {
        self.public = matches!(visibility, syn::Visibility::Public(_));
        self.visit_signature(signature);
        self.public = false;
    }
}

impl<'ast> Visit<'ast> for Pairs {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.signature(&function.vis, &function.sig);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.signature(&function.vis, &function.sig);
    }

    /// Skips slices: a list of ranges or of fields is not a pair.
    fn visit_type_slice(&mut self, _: &'ast syn::TypeSlice) {}

    fn visit_type_tuple(&mut self, tuple: &'ast syn::TypeTuple) {
        let types: Vec<String> = tuple.elems.iter().map(words).collect();
        if self.public
            && let [one, other] = types.as_slice()
            && one == other
        {
            self.found.push((tuple.span().start().line, one.clone()));
        }
        syn::visit::visit_type_tuple(self, tuple);
    }
}
