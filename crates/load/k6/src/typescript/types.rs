//! Finds the end of a type.

use crate::scan::{Token, TokenKind};

/// Tokens of a text, with functions that skip the types among them.
#[derive(Clone, Copy)]
pub(super) struct Types<'a> {
    pub(super) text: &'a str,
    pub(super) all: &'a [Token],
}

/// Maximum nesting depth of types.
const DEPTH_MAX: u32 = 200;

impl<'a> Types<'a> {
    pub(super) fn word(&self, at: usize) -> &'a str {
        self.all.get(at).map_or("", |token| &self.text[token.start..token.end])
    }

    pub(super) fn kind(&self, at: usize) -> Option<TokenKind> {
        self.all.get(at).map(|token| token.kind)
    }

    /// Returns the byte position after a token.
    pub(super) fn end(&self, at: usize) -> usize {
        self.all.get(at).map_or(self.text.len(), |token| token.end)
    }

    /// Returns whether `mark` follows the token without a space.
    pub(super) fn precedes_mark(&self, at: usize, mark: &str) -> bool {
        self.text[self.end(at)..].starts_with(mark)
    }

    /// Returns whether a token is the first of its line.
    pub(super) fn starts_line(&self, at: usize) -> bool {
        let Some(token) = self.all.get(at) else { return true };
        let before = if at == 0 { 0 } else { self.all[at - 1].end };
        self.text[before..token.start].contains('\n')
    }

    /// Returns the bracket that closes the bracket at `at`.
    pub(super) fn closing(&self, at: usize) -> usize {
        let mut depth = 0_u32;
        for row in at..self.all.len() {
            match self.word(row) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                word if self.kind(row) == Some(TokenKind::Template) => {
                    depth += u32::from(word.ends_with("${"));
                    depth = depth.saturating_sub(u32::from(word.starts_with('}')));
                }
                _ => {}
            }
            if depth == 0 {
                return row;
            }
        }
        self.all.len()
    }

    /// Returns the token after this one, or after its brackets.
    pub(super) fn after(&self, at: usize) -> usize {
        match self.word(at) {
            "(" | "[" | "{" => (self.closing(at) + 1).min(self.all.len()),
            _ => at + 1,
        }
    }

    /// Returns the token after the type at `at`.
    pub(super) fn skip(&self, at: usize) -> usize {
        self.union(at, 0)
    }

    fn union(&self, at: usize, depth: u32) -> usize {
        if depth > DEPTH_MAX {
            return self.all.len();
        }
        let mut at = if matches!(self.word(at), "|" | "&") { at + 1 } else { at };
        loop {
            at = self.primary(at, depth);
            match self.word(at) {
                // `||` and `&&` are operators
                "|" | "&" if self.word(at + 1) != self.word(at) => at += 1,
                "is" if !self.starts_line(at) => at += 1,
                "extends" => {
                    let condition = self.union(at + 1, depth + 1);
                    if self.word(condition) != "?" {
                        return condition;
                    }
                    let yes = self.union(condition + 1, depth + 1);
                    at = if self.word(yes) == ":" { yes + 1 } else { return yes };
                }
                _ => return at,
            }
        }
    }

    fn primary(&self, at: usize, depth: u32) -> usize {
        let word = self.word(at);
        let next = match word {
            "keyof" | "readonly" | "infer" | "unique" | "asserts" | "typeof"
                if self.kind(at + 1) == Some(TokenKind::Word)
                    || self.word(at + 1) == "["
                    || self.word(at + 1) == "(" =>
            {
                return self.primary(at + 1, depth + 1);
            }
            "new" => return self.primary(at + 1, depth + 1),
            "<" => match self.skip_arguments(at) {
                Some(end) => return self.primary(end, depth + 1),
                None => return at + 1,
            },
            "(" => {
                let end = (self.closing(at) + 1).min(self.all.len());
                if self.word(end) == "=>" {
                    return self.union(end + 1, depth + 1);
                }
                end
            }
            "{" | "[" => (self.closing(at) + 1).min(self.all.len()),
            "-" => at + 2,
            "" | ")" | "]" | "}" | "," | ";" | "=" | ":" | "=>" => return at,
            _ if self.kind(at) == Some(TokenKind::Template) => return self.template(at),
            _ => at + 1,
        };
        self.postfix(next, depth)
    }

    fn template(&self, at: usize) -> usize {
        let mut row = at;
        while row < self.all.len()
            && !(self.word(row).ends_with('`') && (row > at || self.word(row).len() > 1))
        {
            row += 1;
        }
        (row + 1).min(self.all.len())
    }

    /// Skips `.name`, `<…>`, `[]` and `[key]` after a type.
    fn postfix(&self, mut at: usize, depth: u32) -> usize {
        loop {
            match self.word(at) {
                "." => at += 2,
                "<" => match self.skip_arguments(at) {
                    Some(end) => at = end,
                    None => return at,
                },
                "[" if !self.starts_line(at) && depth < DEPTH_MAX => {
                    at = (self.closing(at) + 1).min(self.all.len());
                }
                _ => return at.min(self.all.len()),
            }
        }
    }

    /// Returns the token after `<…>`; `None` if these are not type arguments.
    pub(super) fn skip_arguments(&self, at: usize) -> Option<usize> {
        let mut row = at + 1;
        loop {
            while matches!(self.word(row), "const" | "in" | "out")
                && self.kind(row + 1) == Some(TokenKind::Word)
            {
                row += 1;
            }
            let end = self.argument(row, at)?;
            match self.word(end) {
                "," => row = end + 1,
                ">" => return Some(end + 1),
                _ => return None,
            }
            if self.word(row) == ">" {
                return Some(row + 1);
            }
        }
    }

    fn argument(&self, row: usize, from: usize) -> Option<usize> {
        // deep nesting is not supported: each level calls this function again
        let depth = (from..row).filter(|at| self.word(*at) == "<").count() as u32;
        if depth > DEPTH_MAX || row >= self.all.len() {
            return None;
        }
        let end = self.union(row, depth);
        let end = if self.word(end) == "=" { self.union(end + 1, depth) } else { end };
        (end > row).then_some(end)
    }

    /// Returns the token after a statement that is a type: `interface`, `type`, `declare`, `import
    /// type`.
    pub(super) fn statement_end(&self, at: usize) -> usize {
        let mut row = at;
        let alias =
            (at..at + 3).find(|row| self.word(*row) == "type" && self.word(row + 2) != "from");
        if let Some(alias) = alias.filter(|row| matches!(self.word(row + 2), "=" | "<")) {
            let mut from = alias + 2;
            if self.word(from) == "<" {
                from = self.skip_arguments(from).unwrap_or(from + 1);
            }
            let end = self.skip(from + 1);
            return if self.word(end) == ";" { end + 1 } else { end };
        }
        while row < self.all.len() {
            match self.word(row) {
                ";" => return row + 1,
                "{" => {
                    let end = (self.closing(row) + 1).min(self.all.len());
                    if self.word(end) == "from" {
                        row = end;
                        continue;
                    }
                    return if self.word(end) == ";" { end + 1 } else { end };
                }
                _ => row += 1,
            }
            if self.starts_line(row)
                && self.kind(row.saturating_sub(1)) != Some(TokenKind::Mark)
                && !matches!(self.word(row), "{" | "extends")
            {
                return row;
            }
        }
        self.all.len()
    }
}
