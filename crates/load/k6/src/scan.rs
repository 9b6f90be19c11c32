//! Scans the text of a script before it runs: its tokens, its imports, and the lines of names.

/// Token: its kind, and its bytes in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Name or keyword.
    Word,
    Number,
    Text,
    /// Part of a template between its backquotes and `${` `}`.
    Template,
    Regex,
    /// Punctuation character, or `=>`.
    Mark,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte == b'#' || byte >= 0x80
}

/// Splits a text into tokens, without comments and whitespace. Stops at text that cannot be
/// tokenized.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut scanner =
        Scanner { bytes: text.as_bytes(), at: 0, out: Vec::new(), braces: Vec::new() };
    while scanner.next().is_some() {}
    scanner.out
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<Token>,
    /// Open braces; true for the brace of a template.
    braces: Vec<bool>,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        self.out.push(Token { kind, start, end: self.at });
    }

    fn next(&mut self) -> Option<()> {
        let start = self.at;
        let byte = *self.bytes.get(start)?;
        match byte {
            _ if byte.is_ascii_whitespace() => self.at += 1,
            b'#' if start == 0 && self.peek(1) == b'!' => self.skip_line(),
            b'/' if self.peek(1) == b'/' => self.skip_line(),
            b'/' if self.peek(1) == b'*' => self.skip_block(),
            b'/' if self.is_regex_place() => self.regex(),
            b'"' | b'\'' => self.quoted(byte),
            b'`' => self.template(),
            b'0'..=b'9' => self.number(),
            _ if is_word(byte) => {
                while is_word(self.peek(0)) {
                    self.at += 1;
                }
                self.push(TokenKind::Word, start);
            }
            b'{' => {
                self.braces.push(false);
                self.mark(1);
            }
            b'}' => {
                if self.braces.pop() == Some(true) {
                    self.template();
                } else {
                    self.mark(1);
                }
            }
            b'=' if self.peek(1) == b'>' => self.mark(2),
            _ => self.mark(1),
        }
        Some(())
    }

    fn mark(&mut self, count: usize) {
        let start = self.at;
        self.at += count;
        self.push(TokenKind::Mark, start);
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            self.at += 1;
        }
    }

    fn skip_block(&mut self) {
        self.at += 2;
        while self.at < self.bytes.len() && !(self.peek(0) == b'*' && self.peek(1) == b'/') {
            self.at += 1;
        }
        self.at = (self.at + 2).min(self.bytes.len());
    }

    fn quoted(&mut self, quote: u8) {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() && self.peek(0) != quote && self.peek(0) != b'\n' {
            self.at += if self.peek(0) == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(self.bytes.len());
        self.push(TokenKind::Text, start);
    }

    /// Scans from a backquote, or from the brace that ends an expression, to the next of either.
    fn template(&mut self) {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.at += 1,
                b'`' => {
                    self.at += 1;
                    return self.push(TokenKind::Template, start);
                }
                b'$' if self.peek(1) == b'{' => {
                    self.at += 2;
                    self.braces.push(true);
                    return self.push(TokenKind::Template, start);
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.min(self.bytes.len());
        self.push(TokenKind::Template, start);
    }

    fn number(&mut self) {
        let start = self.at;
        while is_word(self.peek(0)) || self.peek(0) == b'.' {
            self.at += 1;
        }
        self.push(TokenKind::Number, start);
    }

    /// Returns whether a slash begins a regular expression rather than a division.
    fn is_regex_place(&self) -> bool {
        let Some(last) = self.out.last() else { return true };
        let text = &self.bytes[last.start..last.end];
        match last.kind {
            TokenKind::Word => matches!(
                text,
                b"return"
                    | b"typeof"
                    | b"case"
                    | b"in"
                    | b"of"
                    | b"delete"
                    | b"void"
                    | b"throw"
                    | b"new"
                    | b"else"
                    | b"do"
                    | b"await"
                    | b"yield"
            ),
            TokenKind::Mark => !matches!(text, b")" | b"]" | b"}"),
            TokenKind::Template => text.ends_with(b"${"),
            _ => false,
        }
    }

    fn regex(&mut self) {
        let start = self.at;
        self.at += 1;
        let mut in_class = false;
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            match self.peek(0) {
                b'\\' => self.at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        while self.peek(0).is_ascii_alphabetic() {
            self.at += 1;
        }
        self.at = self.at.min(self.bytes.len());
        self.push(TokenKind::Regex, start);
    }
}

/// Returns the line of a byte, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// Name in an import or a `require`, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub name: String,
    pub line: usize,
}

/// Returns all imports of a text.
pub fn imports(text: &str) -> Vec<Import> {
    let all = tokens(text);
    let word = |row: usize| all.get(row).map_or("", |token| &text[token.start..token.end]);
    let mut found = Vec::new();
    for (row, token) in all.iter().enumerate() {
        if token.kind != TokenKind::Text || row == 0 {
            continue;
        }
        let before = word(row - 1);
        let by_call = before == "(" && row >= 2 && matches!(word(row - 2), "require" | "import");
        let statement =
            before == "import" || (before == "from" && row >= 2 && is_import(row, &word));
        if by_call || statement {
            let inner = &text[token.start + 1..token.end.saturating_sub(1).max(token.start + 1)];
            found.push(Import { name: inner.to_owned(), line: line_of(text, token.start) });
        }
    }
    found
}

/// Returns whether the `from` before `row` belongs to an import or export.
fn is_import<'a>(row: usize, word: &impl Fn(usize) -> &'a str) -> bool {
    let first = row.saturating_sub(400);
    (first..row - 1)
        .rev()
        .take_while(|at| word(*at) != ";")
        .any(|at| matches!(word(at), "import" | "export"))
}

/// Returns whether a text has import or export statements.
pub(crate) fn is_module(text: &str) -> bool {
    let all = tokens(text);
    let mut depth = 0_i64;
    all.iter().enumerate().any(|(row, token)| {
        let word = &text[token.start..token.end];
        match word {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        let after_dot = row > 0 && &text[all[row - 1].start..all[row - 1].end] == ".";
        let next = all.get(row + 1).map_or("", |next| &text[next.start..next.end]);
        let statement = word == "export" || (word == "import" && next != "(" && next != ".");
        token.kind == TokenKind::Word && depth == 0 && !after_dot && statement
    })
}

/// Returns the line on which an object key or a text of this name first appears.
pub fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let all = tokens(text);
    let named = |token: &&Token| {
        let word = &text[token.start..token.end];
        word == key || word.trim_matches(['"', '\'']) == key
    };
    let found = all.iter().filter(named).find(|token| {
        let after = text[token.end..].trim_start();
        after.starts_with(':') || after.starts_with(',') || after.starts_with('}')
    });
    found.map(|token| line_of(text, token.start))
}

/// Returns the literal values of an object key; texts without their quotes.
pub(crate) fn values_of_key(text: &str, key: &str) -> Vec<String> {
    let all = tokens(text);
    let word = |token: &Token| &text[token.start..token.end];
    let named = all.windows(3).filter(|three| word(&three[0]) == key && word(&three[1]) == ":");
    named.map(|three| word(&three[2]).trim_matches(['"', '\'', '`']).to_owned()).collect()
}

/// Returns the names that calls may have: literal values of `name` in `tags: { … }`, and literal
/// first arguments of `group(…)`.
pub(crate) fn call_names(text: &str) -> Vec<String> {
    let all = tokens(text);
    let word = |row: usize| all.get(row).map_or("", |token| &text[token.start..token.end]);
    let literal = |row: usize| {
        let token = all.get(row).filter(|token| token.kind == TokenKind::Text)?;
        Some(text[token.start..token.end].trim_matches(['"', '\'']).to_owned())
    };
    let mut found = Vec::new();
    for row in 0..all.len() {
        if word(row) == "group" && word(row + 1) == "(" {
            found.extend(literal(row + 2));
        }
        if word(row) == "tags" && word(row + 1) == ":" && word(row + 2) == "{" {
            let inside = (row + 3..all.len()).take_while(|at| word(*at) != "}");
            let named = inside.filter(|at| word(*at).trim_matches(['"', '\'']) == "name");
            found.extend(named.filter_map(|at| literal(at + 2)));
        }
    }
    found
}

/// Returns literal URLs with a complete host, except those of imports.
pub(crate) fn urls(text: &str) -> Vec<String> {
    let imported = imports(text);
    let mut found = Vec::new();
    for token in tokens(text) {
        if !matches!(token.kind, TokenKind::Text | TokenKind::Template) {
            continue;
        }
        let whole = &text[token.start..token.end];
        let inner = whole.trim_matches(['"', '\'', '`']);
        let inner = inner.strip_suffix("${").map_or(inner, |before| {
            // a host that is continued by an expression is not complete
            let host = before.split_once("://").map_or("", |it| it.1);
            if host.contains('/') { before } else { "" }
        });
        let is_url = inner.starts_with("http://") || inner.starts_with("https://");
        if is_url && imported.iter().all(|import| import.name != inner) {
            found.push(inner.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_with_their_lines() {
        let text = "// import x from 'no'\nimport http from \"k6/http\";\nimport {\n a,\n b } from './b.js'\n\
                    const c = require('./c.js'); const s = \"from 'no'\"; const r = /'/;\n\
                    export * from './d.js'; const t = `${ require('./e.js') } from 'no'`;\n";
        let found: Vec<(String, usize)> =
            imports(text).into_iter().map(|it| (it.name, it.line)).collect();
        let wanted = [("k6/http", 2), ("./b.js", 5), ("./c.js", 6), ("./d.js", 7), ("./e.js", 7)];
        assert_eq!(found, wanted.map(|(name, line)| (name.to_owned(), line)));
    }

    #[test]
    fn modules_are_distinguished_from_common_js() {
        assert!(is_module("export default function () {}"));
        assert!(is_module("import 'x'"));
        assert!(!is_module("const a = require('k6'); exports.default = () => a.import"));
        assert!(!is_module("import('x').then(() => {})"));
    }

    #[test]
    fn names_and_servers_of_calls_are_found() {
        let text = "import x from 'https://jslib.k6.io/url/1/index.js';\nconst u = __ENV.U || 'http://a:1';\n\
                    group('enter', () => http.get(`http://b/x/${id}`, { tags: { kind: 'k', name: 'log in' } }));\n\
                    http.get(`https://${host}/`); const person = { name: 'Bob' };";
        assert_eq!(call_names(text), ["enter", "log in"]);
        assert_eq!(urls(text), ["http://a:1", "http://b/x/"]);
    }

    #[test]
    fn hostile_text_is_read_to_its_end() {
        for text in ["`", "\"", "/", "/*", "${", "`${", "'\\", "/[", "}}}}", "\u{e9}`${\u{e9}"] {
            let all = tokens(text);
            assert!(all.iter().all(|token| text.get(token.start..token.end).is_some()), "{text}");
        }
    }
}
