//! Converts TypeScript to JavaScript by removing types. Line numbers are kept; types are not
//! checked.

mod types;

use crate::scan::{TokenKind, line_of, tokens};
use types::Types;

/// Meaning of the tokens between two brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyntaxFrame {
    Block,
    Object,
    Class,
    /// Parameters, which may have types.
    Parameters,
    Paren,
    Bracket,
}

/// Returns the text as JavaScript.
///
/// # Errors
/// Fails with `:LINE: ` and an unsupported construct.
pub(crate) fn strip(text: &str) -> Result<String, String> {
    let all = tokens(text);
    let types = Types { text, all: &all };
    let mut stripper = Stripper {
        types,
        removed: vec![false; all.len()],
        inserted: Vec::new(),
        frames: vec![BracketLevel::new(SyntaxFrame::Block)],
        properties: Vec::new(),
    };
    let mut at = 0;
    while at < all.len() {
        at = stripper.step(at).map_err(|(row, why)| {
            let start = all.get(row).map_or(text.len(), |token| token.start);
            format!(":{}: {why}", line_of(text, start))
        })?;
    }
    stripper.drop_exported_types();
    stripper.drop_unused_imports();
    Ok(stripper.finish())
}

/// An open bracket.
#[derive(Clone, Debug)]
struct BracketLevel {
    frame: SyntaxFrame,
    /// Number of conditional operators whose colon has not been read yet.
    questions: u32,
    /// True in a declaration of variables.
    declares: bool,
    /// True where a binding, a parameter or a member of a class begins.
    begins: bool,
    /// True if the brackets are a destructuring pattern, which a type may follow.
    pattern: bool,
}

impl BracketLevel {
    fn new(frame: SyntaxFrame) -> BracketLevel {
        let begins = matches!(frame, SyntaxFrame::Class | SyntaxFrame::Parameters);
        BracketLevel { frame, questions: 0, declares: false, begins, pattern: false }
    }
}

type StripStep = Result<usize, (usize, String)>;

struct Stripper<'a> {
    types: Types<'a>,
    removed: Vec<bool>,
    /// Text to insert after a token.
    inserted: Vec<(usize, String)>,
    frames: Vec<BracketLevel>,
    /// Parameters of the current constructor that become properties.
    properties: Vec<String>,
}

impl<'a> Stripper<'a> {
    fn word(&self, at: usize) -> &'a str {
        self.types.word(at)
    }

    fn level(&mut self) -> &mut BracketLevel {
        self.frames.last_mut().expect("the outermost level is never left")
    }

    fn remove(&mut self, from: usize, to: usize) {
        let to = to.min(self.removed.len());
        self.removed[from.min(to)..to].fill(true);
    }

    /// Returns the last kept token before `at`.
    fn before(&self, at: usize) -> &'a str {
        (0..at).rev().find(|row| !self.removed[*row]).map_or("", |row| self.word(row))
    }

    fn ends_expression(&self, at: usize) -> bool {
        let Some(row) = (0..at).rev().find(|row| !self.removed[*row]) else { return false };
        let word = self.word(row);
        match self.types.all[row].kind {
            TokenKind::Word => !matches!(
                word,
                "return"
                    | "typeof"
                    | "case"
                    | "in"
                    | "of"
                    | "delete"
                    | "void"
                    | "throw"
                    | "new"
                    | "else"
                    | "do"
                    | "await"
                    | "yield"
                    | "instanceof"
                    | "default"
                    | "extends"
            ),
            TokenKind::Number | TokenKind::Text | TokenKind::Regex => true,
            TokenKind::Template => word.ends_with('`'),
            TokenKind::Mark => matches!(word, ")" | "]" | "}"),
        }
    }

    fn is_word(&self, at: usize) -> bool {
        self.types.kind(at) == Some(TokenKind::Word)
    }

    /// Handles the token at `at`; returns the next one.
    fn step(&mut self, at: usize) -> StripStep {
        let word = self.word(at);
        if self.is_word(at)
            && let Some(next) = self.statement(at)?
        {
            return Ok(next);
        }
        let begins = self.level().begins;
        if begins && !matches!(word, ")" | "}" | "]") {
            return match self.level().frame {
                SyntaxFrame::Class => self.member(at),
                _ => self.binding(at),
            };
        }
        match word {
            "(" | "[" | "{" => self.open(at),
            ")" | "]" | "}" => Ok(self.close(at)),
            "," => {
                let level = self.level();
                level.begins = level.frame == SyntaxFrame::Parameters || level.declares;
                Ok(at + 1)
            }
            ";" => {
                let level = self.level();
                (level.declares, level.questions) = (false, 0);
                level.begins = level.frame == SyntaxFrame::Class;
                Ok(at + 1)
            }
            "?" if self.word(at + 1) != "."
                && self.word(at + 1) != "?"
                && self.word(at.wrapping_sub(1)) != "?" =>
            {
                self.level().questions += 1;
                Ok(at + 1)
            }
            ":" => {
                let level = self.level();
                level.questions = level.questions.saturating_sub(1);
                Ok(at + 1)
            }
            "as" | "satisfies" if self.ends_expression(at) && self.is_operator_place(at) => {
                let end =
                    if self.word(at + 1) == "const" { at + 2 } else { self.types.skip(at + 1) };
                self.remove(at, end);
                Ok(end)
            }
            "!" if self.ends_expression(at)
                && !self.types.precedes_mark(at, "=")
                && !self.types.starts_line(at) =>
            {
                self.remove(at, at + 1);
                Ok(at + 1)
            }
            "<" => Ok(self.angle(at)),
            "let" | "const" | "var" if self.before(at) != "." => {
                let level = self.level();
                (level.declares, level.begins) = (true, true);
                Ok(at + 1)
            }
            _ => {
                if self.level().frame == SyntaxFrame::Class && self.starts_member(at) {
                    self.level().begins = true;
                    return Ok(at);
                }
                Ok(at + 1)
            }
        }
    }

    /// Returns whether `as` is an operator between a value and a type, rather than a name.
    fn is_operator_place(&self, at: usize) -> bool {
        let next = self.word(at + 1);
        !matches!(next, "" | "," | ")" | "}" | "=" | ":" | ";" | "." | "(" | "=>") || next == "{"
    }

    /// Removes type arguments or type parameters: `<T, U>` before a call, a template or parameters.
    fn angle(&mut self, at: usize) -> usize {
        let Some(end) = self.types.skip_arguments(at) else { return at + 1 };
        let next = self.word(end);
        let call = next == "(" || self.word(end).starts_with('`');
        let after_new = matches!(next, ")" | ";" | "," | ".") && self.ends_expression(at);
        let generic_arrow = !self.ends_expression(at) && next == "(";
        if (call && self.ends_expression(at)) || generic_arrow || (after_new && self.is_new(at)) {
            self.remove(at, end);
            return end;
        }
        at + 1
    }

    fn is_new(&self, at: usize) -> bool {
        at >= 2 && self.word(at - 2) == "new"
    }

    /// Handles statements that are types, or have their own grammar.
    fn statement(&mut self, at: usize) -> Result<Option<usize>, (usize, String)> {
        let (word, next) = (self.word(at), self.word(at + 1));
        let before = self.before(at);
        if matches!(before, "." | "," | "(" | "=")
            || self.frames.last().is_some_and(|it| it.frame == SyntaxFrame::Object)
        {
            if word == "class" {
                return Ok(Some(self.class(at)));
            }
            if word == "function" {
                return Ok(Some(self.function(at)));
            }
            return Ok(None);
        }
        let in_class = self.level().frame == SyntaxFrame::Class;
        match word {
            "import" | "export"
                if next == "type" && self.word(at + 2) != "from"
                    || word == "import" && next == "type" && self.word(at + 3) == "from" =>
            {
                Ok(Some(self.remove_statement(at)))
            }
            "export"
                if matches!(next, "interface" | "declare")
                    || (next == "type" && self.is_alias(at + 1)) =>
            {
                Ok(Some(self.remove_statement(at)))
            }
            "import" if !matches!(next, "(" | ".") => Ok(Some(self.import(at))),
            "export" if next == "{" => Ok(Some(self.import(at))),
            "interface" if !in_class && self.is_word(at + 1) => Ok(Some(self.remove_statement(at))),
            "declare" if !in_class && self.is_word(at + 1) => Ok(Some(self.remove_statement(at))),
            "type" if !in_class && self.is_alias(at) => Ok(Some(self.remove_statement(at))),
            "namespace" | "module"
                if !in_class && self.is_word(at + 1) && self.word(at + 2) == "{" =>
            {
                Err((at, "namespaces are not read; use modules".to_owned()))
            }
            "enum" if !in_class && self.is_word(at + 1) && self.word(at + 2) == "{" => {
                Ok(Some(self.enumeration(at)))
            }
            "const" if next == "enum" => {
                self.remove(at, at + 1);
                Ok(Some(self.enumeration(at + 1)))
            }
            "abstract" if next == "class" => {
                self.remove(at, at + 1);
                Ok(Some(self.class(at + 1)))
            }
            "class" if !in_class => Ok(Some(self.class(at))),
            "function" => Ok(Some(self.function(at))),
            _ => Ok(None),
        }
    }

    fn is_alias(&self, at: usize) -> bool {
        self.is_word(at + 1) && matches!(self.word(at + 2), "=" | "<")
    }

    /// Removes a statement that is a type; returns the token after it.
    fn remove_statement(&mut self, at: usize) -> usize {
        let end = self.types.statement_end(at);
        self.remove(at, end);
        end
    }

    /// Removes `type` names in the braces of an import or export.
    fn import(&mut self, at: usize) -> usize {
        let mut row = at + 1;
        while row < self.removed.len() && !matches!(self.word(row), ";" | "(") {
            let text = self.types.kind(row) == Some(TokenKind::Text);
            if self.word(row) == "type"
                && self.is_word(row + 1)
                && matches!(self.word(row - 1), "{" | ",")
            {
                let mut end = row + 2;
                while !matches!(self.word(end), "," | "}" | "") {
                    end += 1;
                }
                let end = if self.word(end) == "," { end + 1 } else { end };
                self.remove(row, end);
                row = end;
                continue;
            }
            row += 1;
            if text || (self.word(row - 1) == "}" && self.word(row) != "from") {
                break;
            }
        }
        row
    }

    /// Converts `enum Name { A, B = 2, C = 'x' }` to an object.
    fn enumeration(&mut self, at: usize) -> usize {
        let name = self.word(at + 1);
        let end = self.types.closing(at + 2);
        let mut members = Vec::new();
        let mut row = at + 3;
        while row < end {
            let key = self.word(row).trim_matches(['"', '\'']);
            let mut value = String::new();
            row += 1;
            if self.word(row) == "=" {
                let from = row + 1;
                while row < end && self.word(row) != "," {
                    row = self.types.after(row);
                }
                let stop = self.types.all.get(row.min(end)).map_or(0, |token| token.start);
                value = self.types.text[self.types.all[from.min(end)].start..stop]
                    .trim()
                    .replace('\n', " ");
            }
            members.push((key, value));
            row += 1;
        }
        let lines =
            self.types.text[self.types.all[at].start..self.types.end(end)].matches('\n').count();
        let mut made = format!("var {name} = ((e) => {{ let last = -1;");
        for (key, value) in members {
            let value = if value.is_empty() { "last + 1".to_owned() } else { value };
            made.push_str(&format!(
                " e['{key}'] = last = {value}; if (typeof last === 'number') e[last] = '{key}';"
            ));
        }
        made.push_str(" return e; })({});");
        made.push_str(&"\n".repeat(lines));
        self.remove(at, end + 1);
        // the newlines of the original are removed too: those of the replacement take their place
        self.inserted.push((at, made));
        end + 1
    }

    /// Handles the head of a class.
    fn class(&mut self, at: usize) -> usize {
        let mut row = at + 1;
        while row < self.removed.len() && self.word(row) != "{" {
            match self.word(row) {
                "<" => {
                    let end = self.types.skip_arguments(row).unwrap_or(row + 1);
                    self.remove(row, end);
                    row = end;
                }
                "implements" => {
                    let mut end = self.types.skip(row + 1);
                    while self.word(end) == "," {
                        end = self.types.skip(end + 1);
                    }
                    self.remove(row, end);
                    row = end;
                }
                "(" => row = self.types.closing(row) + 1,
                _ => row += 1,
            }
        }
        self.frames.push(BracketLevel::new(SyntaxFrame::Class));
        row + 1
    }

    /// Handles the head of a function up to its parameters.
    fn function(&mut self, at: usize) -> usize {
        let mut row = at + 1;
        while row < self.removed.len() && !matches!(self.word(row), "(" | "<") {
            row += 1;
        }
        if self.word(row) == "<" {
            let end = self.types.skip_arguments(row).unwrap_or(row + 1);
            self.remove(row, end);
            row = end;
        }
        let close = self.types.closing(row);
        let mut after = close + 1;
        if self.word(after) == ":" {
            after = self.types.skip(after + 1);
        }
        if self.word(after) != "{" {
            // an overload without a body
            let from = if matches!(self.word(at.wrapping_sub(1)), "async" | "default") {
                at - 1
            } else {
                at
            };
            let from = if self.word(from.wrapping_sub(1)) == "export" { from - 1 } else { from };
            let end = if self.word(after) == ";" { after + 1 } else { after };
            self.remove(from, end);
            return end;
        }
        self.frames.push(BracketLevel::new(SyntaxFrame::Parameters));
        row + 1
    }
}

/// Brackets.
impl Stripper<'_> {
    fn open(&mut self, at: usize) -> StripStep {
        let frame = match self.word(at) {
            "[" => SyntaxFrame::Bracket,
            "(" if self.opens_parameters(at) => SyntaxFrame::Parameters,
            "(" => SyntaxFrame::Paren,
            _ if self.is_object(at) => SyntaxFrame::Object,
            _ => SyntaxFrame::Block,
        };
        self.frames.push(BracketLevel::new(frame));
        Ok(at + 1)
    }

    /// Returns whether the parenthesis opens the parameters of an arrow function or a method.
    fn opens_parameters(&mut self, at: usize) -> bool {
        if self.before(at) == "catch" {
            return true;
        }
        let close = self.types.closing(at);
        let control =
            matches!(self.before(at), "if" | "for" | "while" | "switch" | "catch" | "with");
        let questions = self.level().questions;
        let in_object = self.level().frame == SyntaxFrame::Object;
        match self.word(close + 1) {
            "=>" => true,
            "{" if in_object => true,
            ":" => {
                let after = self.types.skip(close + 2);
                (self.word(after) == "=>" && (questions == 0 || !control))
                    || (self.word(after) == "{" && in_object)
            }
            _ => false,
        }
    }

    fn is_object(&mut self, at: usize) -> bool {
        let questions = self.level().questions;
        let frame = self.level().frame;
        let before = self.before(at);
        match before {
            "" | ";" | "{" | "}" | ")" | "=>" | "else" | "try" | "finally" | "do" => {
                before == "{" && frame == SyntaxFrame::Object
            }
            ":" => {
                questions > 0
                    || frame != SyntaxFrame::Block
                    || self.frames.len() > 1 && self.is_value_colon(at)
            }
            _ => true,
        }
    }

    /// Returns whether the colon before a brace belongs to a value, not to a label or a case.
    fn is_value_colon(&self, at: usize) -> bool {
        let mut row = at.saturating_sub(2);
        while row > 0 && !matches!(self.word(row), ";" | "{" | "}" | "case" | "default") {
            row -= 1;
        }
        !matches!(self.word(row), "case" | "default")
    }

    fn close(&mut self, at: usize) -> usize {
        if self.frames.len() == 1 {
            return at + 1;
        }
        let closed = self.frames.pop().unwrap_or_else(|| BracketLevel::new(SyntaxFrame::Block));
        let level = self.level();
        if level.frame == SyntaxFrame::Class && closed.frame == SyntaxFrame::Block {
            level.begins = true;
        }
        if closed.frame == SyntaxFrame::Parameters {
            return self.after_parameters(at);
        }
        if closed.pattern {
            return self.annotation(at + 1);
        }
        at + 1
    }

    /// Handles the result type and the body.
    fn after_parameters(&mut self, close: usize) -> usize {
        let mut at = close + 1;
        if self.word(at) == ":" {
            let end = self.types.skip(at + 1);
            self.remove(at, end);
            at = end;
        }
        if self.word(at) == "{" {
            let properties = std::mem::take(&mut self.properties);
            if !properties.is_empty() {
                let made: String =
                    properties.iter().map(|name| format!(" this.{name} = {name};")).collect();
                self.inserted.push((self.place_of_properties(at), made));
            }
            self.frames.push(BracketLevel::new(SyntaxFrame::Block));
            return at + 1;
        }
        at
    }

    /// Returns the token after which a constructor sets its properties: the call of `super`, or the
    /// brace.
    fn place_of_properties(&self, brace: usize) -> usize {
        let end = self.types.closing(brace);
        let call = (brace..end).find(|row| self.word(*row) == "super" && self.word(row + 1) == "(");
        match call {
            Some(call) => {
                let close = self.types.closing(call + 1);
                if self.word(close + 1) == ";" { close + 1 } else { close }
            }
            None => brace,
        }
    }

    /// Removes `?`, `!` and a type after a name or pattern.
    fn annotation(&mut self, mut at: usize) -> usize {
        if matches!(self.word(at), "?" | "!")
            && matches!(self.word(at + 1), ":" | "," | ")" | ";" | "=")
        {
            self.remove(at, at + 1);
            at += 1;
        }
        if self.word(at) == ":" {
            let end = self.types.skip(at + 1);
            self.remove(at, end);
            at = end;
        }
        at
    }

    /// Handles a variable or parameter.
    fn binding(&mut self, at: usize) -> StripStep {
        let word = self.word(at);
        let modifier = matches!(word, "public" | "private" | "protected" | "readonly" | "override");
        if modifier && (self.is_word(at + 1)) {
            self.remove(at, at + 1);
            let mut name = at + 1;
            while matches!(self.word(name), "readonly" | "override") && self.is_word(name + 1) {
                self.remove(name, name + 1);
                name += 1;
            }
            self.properties.push(self.word(name).to_owned());
            return Ok(name);
        }
        if word == "." {
            return Ok(at + 1);
        }
        self.level().begins = false;
        match word {
            "{" | "[" => {
                let frame = if word == "{" { SyntaxFrame::Object } else { SyntaxFrame::Bracket };
                self.frames.push(BracketLevel { pattern: true, ..BracketLevel::new(frame) });
                Ok(at + 1)
            }
            "this" if self.word(at + 1) == ":" => {
                let end = self.types.skip(at + 2);
                let end = if self.word(end) == "," { end + 1 } else { end };
                self.remove(at, end);
                self.level().begins = true;
                Ok(end)
            }
            _ => Ok(self.annotation(at + 1)),
        }
    }
}

/// Classes.
impl Stripper<'_> {
    /// Returns whether another member of the class body begins on this line.
    fn starts_member(&self, at: usize) -> bool {
        self.types.starts_line(at)
            && self.ends_expression(at)
            && self.is_word(at)
            && !matches!(self.word(at), "instanceof" | "in")
    }

    /// Handles a member of a class, up to its parameters or its value.
    fn member(&mut self, at: usize) -> StripStep {
        let mut row = at;
        let mut without_body = false;
        while self.is_word(row) && self.is_modifier(row) {
            match self.word(row) {
                "static" | "async" | "get" | "set" | "accessor" => {}
                modifier => {
                    without_body |= matches!(modifier, "abstract" | "declare");
                    self.remove(row, row + 1);
                }
            }
            row += 1;
        }
        if matches!(self.word(row), ";" | "*") {
            return Ok(row + 1);
        }
        self.level().begins = false;
        let name_end = if self.word(row) == "[" { self.types.closing(row) + 1 } else { row + 1 };
        let index_signature = self.word(row) == "[" && self.word(row + 2) == ":";
        if without_body || index_signature {
            return Ok(self.remove_member(at));
        }
        if self.word(name_end) == "{" {
            // a static block
            self.frames.push(BracketLevel::new(SyntaxFrame::Block));
            return Ok(name_end + 1);
        }
        let mut next = name_end;
        if matches!(self.word(next), "?" | "!") {
            self.remove(next, next + 1);
            next += 1;
        }
        if self.word(next) == "<" {
            let end = self.types.skip_arguments(next).unwrap_or(next + 1);
            self.remove(next, end);
            next = end;
        }
        if self.word(next) != "(" {
            let after = self.annotation(next);
            self.level().begins = self.word(after) != "=" && self.word(after) != ";";
            return Ok(after);
        }
        let close = self.types.closing(next);
        let result =
            if self.word(close + 1) == ":" { self.types.skip(close + 2) } else { close + 1 };
        if self.word(result) != "{" {
            return Ok(self.remove_member(at));
        }
        self.frames.push(BracketLevel::new(SyntaxFrame::Parameters));
        Ok(next + 1)
    }

    fn is_modifier(&self, at: usize) -> bool {
        let known = matches!(
            self.word(at),
            "public"
                | "private"
                | "protected"
                | "readonly"
                | "override"
                | "abstract"
                | "declare"
                | "static"
                | "async"
                | "get"
                | "set"
                | "accessor"
        );
        known && !matches!(self.word(at + 1), "(" | "=" | ":" | ";" | "?" | "!" | "<" | "}" | "")
    }

    fn remove_member(&mut self, at: usize) -> usize {
        let mut end = at;
        while end < self.removed.len() && !matches!(self.word(end), ";" | "}") {
            end = self.types.after(end);
            if self.types.starts_line(end) && self.word(end) != "|" {
                break;
            }
        }
        let end = if self.word(end) == ";" { end + 1 } else { end };
        self.remove(at, end);
        self.level().begins = true;
        end
    }
}

/// Output.
impl Stripper<'_> {
    /// Drops imported names that only types used, and imports that become empty.
    fn drop_unused_imports(&mut self) {
        let all = self.types.all;
        let mut at = 0;
        while at < all.len() {
            let statement = self.word(at) == "import"
                && !self.removed[at]
                && !matches!(self.word(at + 1), "(" | ".")
                && (self.is_word(at + 1) || matches!(self.word(at + 1), "{" | "*"));
            if !statement {
                at += 1;
                continue;
            }
            let end =
                (at..all.len()).find(|row| all[*row].kind == TokenKind::Text).unwrap_or(all.len());
            self.drop_unused_names(at, end);
            at = end + 1;
        }
    }

    /// Removes names in `export { … }` that only a removed type declares.
    fn drop_exported_types(&mut self) {
        for at in 0..self.types.all.len() {
            if self.word(at) != "export" || self.removed[at] || self.word(at + 1) != "{" {
                continue;
            }
            let Some(end) = (at..self.types.all.len()).find(|row| self.word(*row) == "}") else {
                return;
            };
            if self.word(end + 1) == "from" {
                continue;
            }
            for row in at + 2..end {
                let starts = matches!(self.word(row - 1), "{" | ",") && self.is_word(row);
                if !starts || self.is_used(self.word(row), at, end) {
                    continue;
                }
                let stop = (row..end).find(|stop| self.word(*stop) == ",").map_or(end, |it| it + 1);
                self.remove(row, stop);
            }
        }
    }

    /// Returns whether a kept token outside `from` to `to` has this name.
    fn is_used(&self, name: &str, from: usize, to: usize) -> bool {
        let mut kept = self.types.all.iter().enumerate().filter(|(place, _)| !self.removed[*place]);
        kept.any(|(place, token)| {
            let outside = place < from || place > to;
            let member = place > 0
                && self.word(place - 1) == "."
                && self.word(place.saturating_sub(2)) != ".";
            outside && token.kind == TokenKind::Word && self.word(place) == name && !member
        })
    }

    fn drop_unused_names(&mut self, at: usize, end: usize) {
        let mut names = Vec::new();
        let mut row = at + 1;
        while row < end && self.word(row) != "from" {
            if self.is_word(row) && !self.removed[row] {
                let from = row;
                if self.word(row + 1) == "as" {
                    row += 2;
                }
                names.push((from, row + 1, self.word(row).to_owned()));
            } else if self.word(row) == "*" {
                names.push((row, row + 3, self.word(row + 2).to_owned()));
                row += 2;
            }
            row += 1;
        }
        let unused: Vec<_> =
            names.iter().filter(|(.., name)| !self.is_used(name, at, end)).cloned().collect();
        if unused.len() == names.len() {
            let stop = if self.word(end + 1) == ";" { end + 2 } else { end + 1 };
            return self.remove(at, stop);
        }
        for (from, to, _) in unused {
            let to = if self.word(to) == "," { to + 1 } else { to };
            self.remove(from, to);
        }
    }

    fn finish(self) -> String {
        let text = self.types.text;
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (row, token) in self.types.all.iter().enumerate() {
            out.push_str(&text[at..token.start]);
            let replaced =
                self.inserted.iter().any(|(place, made)| *place == row && made.starts_with("var "));
            if self.removed[row] {
                // line numbers are preserved, except within an enumeration, whose replacement has
                // the same line breaks
                let inner = &text[token.start..token.end];
                out.extend(inner.chars().filter(|letter| *letter == '\n'));
            } else {
                out.push_str(&text[token.start..token.end]);
            }
            for (_, made) in self.inserted.iter().filter(|(place, _)| *place == row) {
                out.push_str(if replaced { made.trim_end_matches('\n') } else { made });
            }
            at = token.end;
        }
        out.push_str(&text[at..]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::strip;

    /// Removes all whitespace: the spaces around removed types remain.
    fn bare(text: &str) -> String {
        text.split_whitespace().collect()
    }

    fn stripped_text(text: &str) -> String {
        bare(&strip(text).unwrap())
    }

    #[test]
    fn types_are_removed() {
        for (typed, plain) in [
            ("const a: number = 1, b: string[] = [];", "const a = 1, b = [];"),
            ("let x: { a: string; b?: number } | null;", "let x ;"),
            (
                "function f<T>(a: T, b?: string, ...c: any[]): Promise<T> { return a as T; }",
                "function f (a , b , ...c ) { return a ; }",
            ),
            ("const g = async (x: number): Promise<void> => { };", "const g = async (x ) => { };"),
            (
                "const h = (x = 1, { a, b }: P = {}) => x ? (a) : b;",
                "const h = (x = 1, { a, b } = {}) => x ? (a) : b;",
            ),
            ("const m = new Map<string, Array<number>>();", "const m = new Map ();"),
            ("const v = foo!.bar! + a[0]!;", "const v = foo .bar + a[0] ;"),
            ("if (a != b && c! !== d) {}", "if (a != b && c !== d) {}"),
            (
                "const o = { a: 1, b: x as const, m(y: string): void {}, n: (z: number) => z };",
                "const o = { a: 1, b: x , m(y ) {}, n: (z ) => z };",
            ),
            ("interface A { x: string }\ntype B = 'a' | 'b';\nlet c = 1;", "let c = 1;"),
            (
                "export interface A extends B<C> { m(): void; }\nexport type D = { [k: string]: number };\nexport const e = 2;",
                "export const e = 2;",
            ),
            (
                "switch (a) { case 1: { b; } default: c; }",
                "switch (a) { case 1: { b; } default: c; }",
            ),
            ("const t = a < b && c > d;", "const t = a < b && c > d;"),
            ("for (const x of list as string[]) { y(x); }", "for (const x of list ) { y(x); }"),
            ("label: for (;;) { break label; }", "label: for (;;) { break label; }"),
            (
                "const s = { scenarios: { a: { executor: 'x' } } } satisfies Options;",
                "const s = { scenarios: { a: { executor: 'x' } } } ;",
            ),
            ("declare const k: string;\nk2;", "k2;"),
            ("function o(a: string): void;\nfunction o(a: any) { }", "function o(a ) { }"),
            (
                "const q = a ? b : c; const r = a ? { x: 1 } : { y: 2 };",
                "const q = a ? b : c; const r = a ? { x: 1 } : { y: 2 };",
            ),
            ("try { } catch (e: unknown) { }", "try { } catch (e ) { }"),
        ] {
            assert_eq!(stripped_text(typed), bare(plain), "{typed}");
        }
    }

    #[test]
    fn classes_lose_their_types() {
        let typed = "abstract class A<T> extends B<T> implements C, D {\n  private readonly x: number = 1;\n\
            static y?: string;\n  z!: T\n  constructor(private a: string, public b = 2) { super(a); this.c(); }\n\
            public async c<U>(d: U): Promise<U> { return d; }\n  abstract e(): void;\n  get f(): number { return 1; }\n}";
        assert_eq!(
            stripped_text(typed),
            bare(
                "class A extends B { x = 1; static y; z constructor(a, b = 2) { super(a); this.a = a; \
             this.b = b; this.c(); } async c(d) { return d; } get f() { return 1; } }"
            )
        );
    }

    #[test]
    fn imports_of_types_are_removed() {
        let typed = "import { Options } from 'k6/options';\nimport http, { RefinedResponse, Response } from 'k6/http';\n\
            import type { X } from './x';\nimport { type Y, z } from './y';\n\
            import { type V, type W } from './w';\n\
            export const options: Options = {};\nconst r: RefinedResponse<any> = http.get(z);";
        assert_eq!(
            stripped_text(typed),
            bare(
                "import http, { } from 'k6/http'; import { z } from './y'; export const options = {}; \
             const r = http.get(z);"
            )
        );
    }

    #[test]
    fn exports_of_types_go() {
        let typed = "interface User { a: string }\ntype Id = number;\nclass Kept implements User { }\n\
            export { User, Kept as K, Id };\nexport { z } from './z';";
        assert_eq!(
            stripped_text(typed),
            bare("class Kept { } export { Kept as K, }; export { z } from './z';")
        );
    }

    #[test]
    fn enumerations_become_objects_and_lines_stay() {
        let typed = "enum E {\n  A,\n  B = 5,\n  C = 'x',\n}\nthrow 1;";
        let plain = strip(typed).unwrap();
        assert_eq!(plain.lines().position(|line| line == "throw 1;"), Some(5), "{plain}");
        assert!(plain.starts_with("var E = ((e) =>"), "{plain}");
        assert!(strip("\nnamespace N { }").unwrap_err().starts_with(":2: namespaces"));
    }

    #[test]
    fn hostile_text_does_not_panic() {
        for text in [
            "class",
            "enum E {",
            "function",
            "a as",
            "x!",
            "<",
            "const",
            "(",
            "import {",
            "type A =",
            "class { [",
            "}}}",
            ":",
            "?",
            "interface A",
        ] {
            strip(text).ok();
        }
    }
}
