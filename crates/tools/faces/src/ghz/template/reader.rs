//! Reads the notation of Go's templates.

use super::{Branches, DataField, Expr, Pipeline, Template, TemplatePart, WORDS};
use crate::ghz::functions::Function;
use crate::ghz::go::quoted;
use std::collections::BTreeMap;

/// Maximum depth of parentheses and of control structures.
const NESTING_MAX: usize = 50;
/// Characters that count as whitespace in Go's templates.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
/// Words that begin or end control structures.
const KEYWORDS: [&str; 10] =
    ["if", "range", "with", "else", "end", "break", "continue", "define", "block", "template"];

/// Reads a template from a text.
pub(super) struct TemplateReader<'a> {
    text: &'a str,
    at: usize,
    /// True if functions other than Go's own are available.
    functions: bool,
    /// Variables in scope.
    variables: Vec<String>,
    named: BTreeMap<String, Vec<TemplatePart>>,
    /// Number of `range` structures around the current place.
    ranges: usize,
}

/// End of a list of parts.
#[derive(Debug, PartialEq, Eq)]
enum ListEnd {
    Text,
    End,
    Else,
}

impl<'a> TemplateReader<'a> {
    pub(super) fn new(text: &'a str, functions: bool) -> TemplateReader<'a> {
        TemplateReader {
            text,
            at: 0,
            functions,
            variables: vec!["$".to_owned()],
            named: BTreeMap::new(),
            ranges: 0,
        }
    }

    /// Reads the whole text.
    pub(super) fn template(mut self) -> Result<Template, String> {
        let (parts, end) = self.list(0)?;
        match end {
            ListEnd::Text => Ok(Template { parts, named: self.named }),
            ListEnd::End => Err(self.fault("unexpected {{end}}")),
            ListEnd::Else => Err(self.fault("unexpected {{else}}")),
        }
    }

    /// Reads parts up to the end of the text, or past the next `end` or `else`.
    fn list(&mut self, depth: usize) -> Result<(Vec<TemplatePart>, ListEnd), String> {
        if depth > NESTING_MAX {
            return Err(self.fault("control structures are nested too deeply"));
        }
        let mut parts = Vec::new();
        loop {
            let rest = self.rest();
            let Some(open) = rest.find("{{") else {
                push_text(&mut parts, rest);
                self.at = self.text.len();
                return Ok((parts, ListEnd::Text));
            };
            let before = self.at;
            let open = self.at + open;
            self.at = open + 2;
            let text = &self.text[before..open];
            let trims = self.skip_trim_mark();
            push_text(&mut parts, if trims { text.trim_end_matches(BLANKS) } else { text });
            if self.comment()? {
                continue;
            }
            self.skip_blanks();
            match self.keyword() {
                None => {
                    let pipeline = self.pipeline(1, "command", 0)?;
                    self.close()?;
                    parts.push(TemplatePart::Action(pipeline));
                }
                Some("end") => {
                    self.close()?;
                    return Ok((parts, ListEnd::End));
                }
                // the caller reads the remainder of the `else` action
                Some("else") => return Ok((parts, ListEnd::Else)),
                Some(word) => parts.extend(self.structure(word, depth)?),
            }
        }
    }

    /// Reads the rest of a structure after its first word; `None` for a definition.
    fn structure(&mut self, word: &str, depth: usize) -> Result<Option<TemplatePart>, String> {
        match word {
            "break" | "continue" => {
                self.close()?;
                if self.ranges == 0 {
                    return Err(self.fault(&format!("{{{{{word}}}}} outside {{{{range}}}}")));
                }
                let ends = word == "break";
                Ok(Some(if ends { TemplatePart::Break } else { TemplatePart::Continue }))
            }
            "define" | "block" | "template" => self.by_name(word, depth),
            word => self.branches(word, depth).map(Some),
        }
    }

    /// Reads the rest of `if`, `with` or `range`, up to its `end`.
    fn branches(&mut self, word: &str, depth: usize) -> Result<TemplatePart, String> {
        let declared = self.variables.len();
        let most = if word == "range" { 2 } else { 1 };
        let pipeline = self.pipeline(most, word, 0)?;
        self.close()?;
        self.ranges += usize::from(word == "range");
        let read = self.list(depth + 1);
        self.ranges -= usize::from(word == "range");
        let (then, end) = read?;
        let otherwise = match end {
            ListEnd::Text => return Err(self.fault("unexpected EOF")),
            ListEnd::End => Vec::new(),
            ListEnd::Else => self.otherwise(word, depth)?,
        };
        self.variables.truncate(declared);
        let branches = Branches { then, otherwise };
        Ok(match word {
            "if" => TemplatePart::If(pipeline, branches),
            "with" => TemplatePart::With(pipeline, branches),
            _ => TemplatePart::Range(pipeline, branches),
        })
    }

    /// Reads the rest of `else`: another condition, or parts up to `end`.
    fn otherwise(&mut self, word: &str, depth: usize) -> Result<Vec<TemplatePart>, String> {
        self.skip_blanks();
        if let Some(again) = self.keyword() {
            if again != word || word == "range" {
                return Err(self.fault(&format!("unexpected <{again}> in input")));
            }
            if depth > NESTING_MAX {
                return Err(self.fault("control structures are nested too deeply"));
            }
            return Ok(vec![self.branches(again, depth + 1)?]);
        }
        self.close()?;
        match self.list(depth + 1)? {
            (parts, ListEnd::End) => Ok(parts),
            (_, ListEnd::Else) => Err(self.fault("expected end; found {{else}}")),
            (_, ListEnd::Text) => Err(self.fault("unexpected EOF")),
        }
    }

    /// Reads the rest of `define`, `block` or `template`.
    fn by_name(&mut self, word: &str, depth: usize) -> Result<Option<TemplatePart>, String> {
        self.skip_blanks();
        let Some(Expr::Text(name)) = self.operand(0)? else {
            return Err(self.fault(&format!("missing name of {{{{{word}}}}}")));
        };
        self.skip_blanks();
        let has_data = word == "block" || (word == "template" && !self.at_close());
        let pipeline = has_data.then(|| self.pipeline(1, word, 0)).transpose()?;
        self.close()?;
        if word != "template" {
            let outer = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
            let (parts, end) = self.list(depth + 1)?;
            self.variables = outer;
            if end != ListEnd::End {
                return Err(self.fault("unexpected EOF"));
            }
            self.named.insert(name.clone(), parts);
        }
        Ok((word != "define").then_some(TemplatePart::Named(name, pipeline)))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches(BLANKS).len();
    }

    /// Skips the left trim mark (`-` and a space), which removes the whitespace before an action.
    fn skip_trim_mark(&mut self) -> bool {
        let mut letters = self.rest().chars();
        let found = letters.next() == Some('-')
            && letters.next().is_some_and(|letter| BLANKS.contains(&letter));
        self.at += usize::from(found);
        found
    }

    fn skip(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    /// Skips a comment with the end of its action.
    fn comment(&mut self) -> Result<bool, String> {
        let blanks = self.rest().len() - self.rest().trim_start_matches(BLANKS).len();
        if !self.rest()[blanks..].starts_with("/*") {
            return Ok(false);
        }
        let Some(end) = self.rest().find("*/") else {
            return Err(self.fault("unclosed comment"));
        };
        self.at += end + 2;
        match self.close() {
            Ok(()) => Ok(true),
            Err(_) => Err(self.fault("comment ends before closing delimiter")),
        }
    }

    /// Returns whether the action ends here.
    fn at_close(&self) -> bool {
        let rest = self.rest().trim_start_matches(BLANKS);
        let before = &self.text[..self.text.len() - rest.len()];
        rest.starts_with("}}") || (rest.starts_with("-}}") && before.ends_with(BLANKS))
    }

    /// Skips the end of an action, and the whitespace after it if it has a trim mark.
    fn close(&mut self) -> Result<(), String> {
        self.skip_blanks();
        let trims = self.text[..self.at].ends_with(BLANKS) && self.skip("-");
        if !self.skip("}}") {
            return Err(self.unexpected());
        }
        if trims {
            self.skip_blanks();
        }
        Ok(())
    }

    fn fault(&self, why: &str) -> String {
        let line = self.text[..self.at].matches('\n').count() + 1;
        format!("template: {WORDS}:{line}: {why}")
    }

    fn unexpected(&self) -> String {
        match self.rest().chars().next() {
            None => self.fault("unclosed action"),
            Some(letter) => {
                self.fault(&format!("unexpected {} in operand", quoted(&letter.to_string())))
            }
        }
    }

    /// Skips a word that begins or ends a control structure.
    fn keyword(&mut self) -> Option<&'static str> {
        let word = name_at(self.rest());
        let found = KEYWORDS.iter().find(|known| **known == word)?;
        self.at += found.len();
        Some(found)
    }

    /// Reads up to `most` variables, then commands separated by `|`. The value of a command is the
    /// last argument of the next. `of`: name of the construct, for messages.
    fn pipeline(&mut self, most: usize, of: &str, depth: usize) -> Result<Pipeline, String> {
        if depth > NESTING_MAX {
            return Err(self.fault("too many parentheses"));
        }
        let (variables, declares) = self.variables_to_set();
        if variables.len() > most {
            return Err(self.fault(&format!("too many declarations in {of}")));
        }
        self.skip_blanks();
        if self.at_close() {
            return Err(self.fault(&format!("missing value for {of}")));
        }
        let mut value = self.command(None, depth)?;
        loop {
            self.skip_blanks();
            if !self.skip("|") {
                break;
            }
            value = self.command(Some(value), depth)?;
        }
        if declares {
            self.variables.extend(variables.iter().cloned());
        }
        Ok(Pipeline { variables, declares, value })
    }

    /// Reads `$x :=`, `$x =`, or in `range` also `$x, $y :=`. Returns the variables, and whether
    /// they are declared. Leaves the position unchanged if none of these follows.
    fn variables_to_set(&mut self) -> (Vec<String>, bool) {
        let start = self.at;
        let mut names = Vec::new();
        loop {
            self.skip_blanks();
            if !self.rest().starts_with('$') {
                break;
            }
            names.push(self.variable_name());
            self.skip_blanks();
            let (declares, sets) = (self.skip(":="), self.rest().starts_with('='));
            if declares || sets {
                self.skip("=");
                return (names, declares);
            }
            if !self.skip(",") {
                break;
            }
        }
        self.at = start;
        (Vec::new(), false)
    }

    fn knows(&self, name: &str) -> bool {
        self.variables.iter().any(|known| known == name)
    }

    /// Reads `$` and the name after it.
    fn variable_name(&mut self) -> String {
        let name = name_at(&self.rest()[1..]);
        self.at += 1 + name.len();
        format!("${name}")
    }

    fn command(&mut self, piped: Option<Expr>, depth: usize) -> Result<Expr, String> {
        self.skip_blanks();
        if !self.rest().starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            let operand = self.operand(depth)?;
            return match (operand, piped) {
                (Some(operand), None) => Ok(operand),
                (Some(_), Some(_)) => Err(self.fault("non executable command in pipeline")),
                (None, _) if self.rest().is_empty() => Err(self.fault("unclosed action")),
                (None, _) if self.at_close() => Err(self.fault("missing value for command")),
                (None, _) => Err(self.unexpected()),
            };
        }
        let name = self.name();
        if let Some(value) = switch(&name) {
            return match piped {
                None => Ok(value),
                Some(_) => Err(self.fault("non executable command in pipeline")),
            };
        }
        let function = self.function(&name)?;
        let mut arguments = Vec::new();
        loop {
            self.skip_blanks();
            match self.operand(depth)? {
                Some(argument) => arguments.push(argument),
                None => break,
            }
        }
        arguments.extend(piped);
        Ok(Expr::Call(function, arguments))
    }

    fn name(&mut self) -> String {
        let name = name_at(self.rest());
        self.at += name.len();
        name.to_owned()
    }

    fn function(&self, name: &str) -> Result<&'static Function, String> {
        Function::named(name)
            .filter(|function| self.functions || function.built_in)
            .ok_or_else(|| self.fault(&format!("function {} not defined", quoted(name))))
    }

    /// Reads a field, a variable, a constant, a function without arguments, or an expression in
    /// parentheses.
    fn operand(&mut self, depth: usize) -> Result<Option<Expr>, String> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let value = match first {
            '.' if !name_at(&rest[1..]).is_empty() => return self.field(Expr::Dot).map(Some),
            '.' => {
                self.at += 1;
                return Ok(Some(Expr::Dot));
            }
            '$' => {
                let name = self.variable_name();
                if !self.knows(&name) {
                    return Err(self.fault(&format!("undefined variable {}", quoted(&name))));
                }
                Expr::Variable(name)
            }
            '"' | '`' | '\'' => self.constant(first)?,
            '(' => {
                self.at += 1;
                let inner = self.pipeline(0, "parenthesized pipeline", depth + 1)?;
                self.skip_blanks();
                if !self.skip(")") {
                    return Err(self.fault("unclosed left paren"));
                }
                inner.value
            }
            '0'..='9' | '+' => return self.number().map(Some),
            '-' if rest[1..].starts_with(|next: char| next.is_ascii_digit() || next == '.') => {
                return self.number().map(Some);
            }
            letter if letter.is_ascii_alphabetic() => {
                let name = self.name();
                match switch(&name) {
                    Some(value) => value,
                    None => Expr::Call(self.function(&name)?, Vec::new()),
                }
            }
            _ => return Ok(None),
        };
        match self.rest().starts_with('.') {
            true => self.field(value).map(Some),
            false => Ok(Some(value)),
        }
    }

    /// Reads `.Name` after the expression that it selects from.
    fn field(&mut self, of: Expr) -> Result<Expr, String> {
        let start = self.at;
        self.at += 1;
        let name = self.name();
        let wrong = |name: &str, kind: &str| {
            format!(
                "template: {WORDS}:1:{start}: executing \"{WORDS}\" at <.{name}>: can't evaluate \
                 field {name} in type {kind}"
            )
        };
        let field = DataField::named(&name).ok_or_else(|| wrong(&name, "*runner.CallData"))?;
        if let Some(more) = self.rest().strip_prefix('.') {
            return Err(wrong(name_at(more), "string"));
        }
        Ok(Expr::Field(Box::new(of), field))
    }

    /// Reads a quoted string, a raw string, or a character constant, which is a number.
    fn constant(&mut self, quote: char) -> Result<Expr, String> {
        let rest = &self.rest()[1..];
        let mut escaped = false;
        let ends = |(_, letter): &(usize, char)| {
            let is_end = *letter == quote && !escaped;
            escaped = *letter == '\\' && !escaped && quote != '`';
            is_end
        };
        let end = rest.char_indices().find(ends).map(|(at, _)| at);
        let end = end.filter(|end| quote == '`' || !rest[..*end].contains('\n'));
        let end = end.ok_or_else(|| {
            self.fault(match quote {
                '"' => "unterminated quoted string",
                '`' => "unterminated raw quoted string",
                _ => "unterminated character constant",
            })
        })?;
        self.at += end + 2;
        let inner = &rest[..end];
        if quote == '`' {
            return Ok(Expr::Text(inner.to_owned()));
        }
        let text = unescaped(inner).ok_or_else(|| self.fault("invalid syntax"))?;
        if quote == '"' {
            return Ok(Expr::Text(text));
        }
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(Expr::Number(i64::from(u32::from(letter)))),
            _ => Err(self.fault(&format!("malformed character constant: '{inner}'"))),
        }
    }

    fn number(&mut self) -> Result<Expr, String> {
        let rest = self.rest();
        let mut before = ' ';
        let inside = |letter: &char| {
            let sign = matches!(letter, '+' | '-') && matches!(before, ' ' | 'e' | 'E');
            before = *letter;
            sign || letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_')
        };
        let text: String = rest.chars().take_while(inside).collect();
        let plain = text.replace('_', "");
        let unsigned = plain.trim_start_matches(['+', '-']).to_ascii_lowercase();
        let based = [("0x", 16), ("0b", 2), ("0o", 8)].into_iter().find_map(|(prefix, base)| {
            let number = i64::from_str_radix(unsigned.strip_prefix(prefix)?, base).ok()?;
            Some(if plain.starts_with('-') { -number } else { number })
        });
        let number = based.or_else(|| plain.parse().ok()).map(Expr::Number);
        let number = number.or_else(|| {
            let is_number =
                unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
            plain.parse().ok().filter(|_| is_number).map(Expr::Float)
        });
        let number =
            number.ok_or_else(|| self.fault(&format!("bad number syntax: {}", quoted(&text))))?;
        self.at += text.len();
        Ok(number)
    }
}

fn push_text(parts: &mut Vec<TemplatePart>, text: &str) {
    if !text.is_empty() {
        parts.push(TemplatePart::Text(text.to_owned()));
    }
}

/// Returns the identifier at the start of the text; it may be empty.
fn name_at(text: &str) -> &str {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter| !plain(letter)).next().unwrap_or_default()
}

fn switch(name: &str) -> Option<Expr> {
    match name {
        "true" => Some(Expr::Switch(true)),
        "false" => Some(Expr::Switch(false)),
        _ => None,
    }
}

/// Resolves the escapes of Go's quoted strings; `None` if an escape is invalid.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut letters = after.chars();
        let letter = letters.next()?;
        let digits = match letter {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        out.push(match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'v' => '\x0b',
            '\\' | '"' | '\'' => letter,
            _ if digits > 0 => {
                char::from_u32(u32::from_str_radix(after.get(1..=digits)?, 16).ok()?)?
            }
            _ => return None,
        });
        rest = &after[1 + digits..];
    }
    Some(out + rest)
}
