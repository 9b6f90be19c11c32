//! Groups URLs that differ only in an id into one row of the tables: patterns, and the row in which
//! each target is counted. The rows are settled before the run, so that counting only looks them
//! up.

use crate::{Plan, TargetPlan};
use regex::{Regex, RegexSet, escape};
use std::sync::Arc;
use units::{ParseError, quoted};

/// Maximum number of patterns of a plan.
pub const FOLDS_MAX: usize = 100;

/// A pattern of URLs, such as `/user/{id}` or `GET /user/{id}?page={n}`.
#[derive(Clone, Debug)]
pub struct Fold {
    /// Pattern as typed.
    pub text: String,
    /// Regular expression for `METHOD URL`, with or without the query: see [`Fold::has_query`].
    expression: Regex,
}

impl PartialEq for Fold {
    fn eq(&self, other: &Fold) -> bool {
        self.text == other.text
    }
}

impl Fold {
    /// Returns whether the pattern has a query; otherwise it is compared with the URL without its
    /// query.
    fn has_query(&self) -> bool {
        self.text.contains('?')
    }

    fn matches(&self, asked: &Addressed) -> bool {
        self.expression.is_match(asked.whole(self.has_query()))
    }
}

/// Parses `[METHOD] PATH`, or a whole URL instead of the path. `{name}` matches one or more
/// characters inside a segment or a query value, `{*name}` at the end matches the rest.
///
/// # Errors
/// Fails for an invalid pattern; the message has the reason and an example.
pub fn parse_fold(text: &str) -> Result<Fold, ParseError> {
    let bad = |why: &str| {
        let text = quoted(text);
        ParseError(format!("{text} is not a URL pattern: {why}; write one like /user/{{id}}"))
    };
    let (method, place) = match text.split_once(' ') {
        Some((method, place)) => (Some(method), place),
        None => (None, text),
    };
    let is_method = |name: &str| !name.is_empty() && name.bytes().all(|it| it.is_ascii_uppercase());
    if !method.is_none_or(is_method) {
        return Err(bad("only a method in capitals may precede a space"));
    }
    let absolute = ["http://", "https://"].iter().any(|scheme| place.starts_with(scheme));
    if !absolute && !place.starts_with('/') {
        return Err(bad("it begins with / or with http:// or https://"));
    }
    if absolute && place.splitn(4, '/').count() < 4 {
        return Err(bad("it has no path"));
    }
    if !place.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return Err(bad(
            "it has a character that URLs must percent-encode; encode it as the URL does",
        ));
    }
    let method = method.map_or_else(|| "[^ ]+".to_owned(), escape);
    let origin = if absolute { "" } else { "[a-z]+://[^/]+" };
    let rest = pieces(place).map_err(|why| bad(&why))?;
    let expression = Regex::new(&format!("^{method} {origin}{rest}$"));
    let expression = expression.map_err(|_| bad("it is too long"))?;
    Ok(Fold { text: text.to_owned(), expression })
}

/// Returns the pattern after the method, as an expression.
fn pieces(place: &str) -> Result<String, String> {
    let (mut made, mut rest) = (String::new(), place);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        made.push_str(&escape(before));
        let close = from.find('}').filter(|_| from.starts_with('{'));
        let close = close.ok_or("its braces do not match")?;
        let name = &from[1..close];
        rest = &from[close + 1..];
        let (name, all) = name.strip_prefix('*').map_or((name, false), |name| (name, true));
        let is_name = |name: &str| name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
        if name.is_empty() || !is_name(name) {
            return Err("braces must contain a name of letters, digits and _".to_owned());
        }
        if all && !rest.is_empty() {
            return Err(format!("{{*{name}}} takes everything that follows and must be last"));
        }
        made.push_str(if all { ".*" } else { "[^/?&]+" });
    }
    made.push_str(&escape(rest));
    Ok(made)
}

/// A target in the form that patterns match.
struct Addressed {
    text: String,
    /// Start of the query, or the end.
    query: usize,
}

impl Addressed {
    fn new(target: &TargetPlan, method: &str) -> Addressed {
        let mut url = target.url.clone();
        url.set_fragment(None);
        let text = format!("{} {url}", target.method.as_deref().unwrap_or(method));
        let query = text.find('?').unwrap_or(text.len());
        Addressed { text, query }
    }

    fn whole(&self, with_query: bool) -> &str {
        if with_query { &self.text } else { &self.text[..self.query] }
    }
}

/// The patterns of a plan and, once they are settled, the rows in which its targets are counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folds {
    pub patterns: Vec<Fold>,
    /// Row by target; empty: each target has its own row.
    of_target: Arc<[u32]>,
    rows: Arc<[FoldRow]>,
}

/// Content of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldRow {
    /// The first target that is counted in the row.
    pub first: usize,
    /// Number of them.
    pub targets: u64,
    /// Number of the pattern that groups them; `None` if the row belongs to a single target.
    pub fold: Option<usize>,
}

impl Folds {
    /// Creates unsettled folds: each target has its own row.
    pub fn new(patterns: Vec<Fold>) -> Folds {
        Folds { patterns, ..Folds::default() }
    }

    /// Returns the row of each target, for counting; empty if each target has its own row.
    pub fn table(&self) -> Arc<[u32]> {
        self.of_target.clone()
    }

    /// Returns the patterns that no target matches, or whose targets all match an earlier pattern.
    pub fn unmatched(&self) -> impl Iterator<Item = &Fold> {
        let matched = |number: usize| self.rows.iter().any(|row| row.fold == Some(number));
        let numbered = self.patterns.iter().enumerate();
        numbered.filter(move |(number, _)| !matched(*number)).map(|(_, fold)| fold)
    }

    /// Returns the row of a pattern, by the pattern's text.
    pub(crate) fn row_of_pattern(&self, text: &str) -> Option<u32> {
        let called = |row: &FoldRow| row.fold.is_some_and(|fold| self.patterns[fold].text == text);
        self.rows.iter().position(called).map(|row| row as u32)
    }

    fn settle(&mut self, targets: &[TargetPlan], method: &str) {
        (self.of_target, self.rows) = (Arc::default(), Arc::default());
        if self.patterns.is_empty() {
            return;
        }
        let taken = self.first_matches(targets, method);
        // the rows of patterns come first: even in a long list, they are never merged into the
        // others
        let mut rows: Vec<FoldRow> = Vec::new();
        let mut row_of_fold = vec![None; self.patterns.len()];
        for (number, row) in row_of_fold.iter_mut().enumerate() {
            let mine = taken.iter().enumerate().filter(|(_, fold)| **fold == Some(number));
            let mut mine = mine.map(|(target, _)| target);
            if let Some(first) = mine.next() {
                *row = Some(rows.len() as u32);
                rows.push(FoldRow { first, targets: 1 + mine.count() as u64, fold: Some(number) });
            }
        }
        let own = |(first, fold): (usize, Option<usize>)| match fold.and_then(|it| row_of_fold[it])
        {
            Some(row) => row,
            None => {
                rows.push(FoldRow { first, targets: 1, fold: None });
                rows.len() as u32 - 1
            }
        };
        self.of_target = taken.into_iter().enumerate().map(own).collect();
        self.rows = rows.into();
    }

    /// Returns the first matching pattern of each target. A target with a name keeps its name.
    fn first_matches(&self, targets: &[TargetPlan], method: &str) -> Vec<Option<usize>> {
        let all = self.patterns.iter().map(|fold| fold.expression.as_str());
        // patterns too large for one automaton are tried one after another
        let set = RegexSet::new(all).ok();
        let taken = |target: &TargetPlan| {
            if target.name.is_some() {
                return None;
            }
            let asked = Addressed::new(target, method);
            let any = |whole: bool| set.as_ref().is_none_or(|set| set.is_match(asked.whole(whole)));
            let worth = any(false) || any(true);
            worth.then(|| self.patterns.iter().position(|fold| fold.matches(&asked))).flatten()
        };
        targets.iter().map(taken).collect()
    }
}

impl Plan {
    /// Settles the row of the tables in which each target is counted.
    pub(crate) fn settle_folds(&mut self) {
        self.measure.folds.settle(&self.targets, &self.request.method);
    }

    /// Returns the number of rows in which targets are counted; with a single target, a table is
    /// kept only if there are patterns.
    pub fn row_count(&self) -> usize {
        match self.measure.folds.of_target.len() {
            0 => self.targets.len(),
            _ => self.measure.folds.rows.len(),
        }
    }

    /// Returns the content of a row; `None` if there is no such row.
    pub fn row(&self, row: usize) -> Option<FoldRow> {
        match self.measure.folds.of_target.len() {
            0 => {
                (row < self.targets.len()).then_some(FoldRow { first: row, targets: 1, fold: None })
            }
            _ => self.measure.folds.rows.get(row).copied(),
        }
    }

    /// Returns the row in which a target is counted.
    pub fn row_of(&self, target: usize) -> u32 {
        self.measure.folds.of_target.get(target).copied().unwrap_or(target as u32)
    }
}

#[cfg(test)]
mod tests;
