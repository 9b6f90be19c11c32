//! Call data of ghz in the notation of Go's `text/template`: fields, functions, pipelines. Control
//! structures are refused.

use super::functions::{DataValue, Function};
use super::go::{quoted, rfc3339};
use units::Stream;

/// A text with actions.
#[derive(Clone, Debug)]
pub(super) struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug)]
enum TemplatePart {
    Text(String),
    Action(Expr),
}

#[derive(Clone, Debug)]
enum Expr {
    Field(DataField),
    Text(String),
    Number(i64),
    Float(f64),
    Switch(bool),
    Call(&'static Function, Vec<Expr>),
}

macro_rules! names {
    ($type:ident, $doc:literal, $($variant:ident => $name:literal),* $(,)?) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum $type { $($variant,)* }

        impl $type {
            fn named(name: &str) -> Option<$type> {
                match name { $($name => Some($type::$variant),)* _ => None }
            }
        }
    };
}

names!(DataField, "A field of the call data.",
    WorkerId => "WorkerID", RequestNumber => "RequestNumber",
    FullyQualifiedName => "FullyQualifiedName", MethodName => "MethodName",
    ServiceName => "ServiceName", InputName => "InputName", OutputName => "OutputName",
    IsClientStreaming => "IsClientStreaming", IsServerStreaming => "IsServerStreaming",
    Timestamp => "Timestamp", TimestampUnix => "TimestampUnix",
    TimestampUnixMilli => "TimestampUnixMilli", TimestampUnixNano => "TimestampUnixNano",
    Uuid => "UUID",
);

/// Facts of a method that call data repeats.
#[derive(Clone, Debug, Default)]
pub(super) struct MethodFacts {
    pub(super) full_name: String,
    pub(super) name: String,
    pub(super) service: String,
    pub(super) input: String,
    pub(super) output: String,
    pub(super) client_streaming: bool,
    pub(super) server_streaming: bool,
}

/// Data of one call.
#[derive(Debug)]
pub(super) struct CallData<'a> {
    pub(super) method: &'a MethodFacts,
    pub(super) worker: String,
    /// Number of the call, from 0.
    pub(super) number: u64,
    /// Nanoseconds since 1970, UTC.
    pub(super) unix_ns: u64,
    pub(super) utc_offset_s: i32,
    pub(super) uuid: String,
    pub(super) random: Stream,
}

const WORDS: &str = "call_template_data";
/// Maximum depth of parentheses.
const DEPTH_MAX: usize = 50;
/// Characters that count as whitespace in Go's templates.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

impl Template {
    /// Reads a text. `functions`: whether functions are known.
    ///
    /// # Errors
    /// Fails with Go's message about the first fault.
    pub(super) fn parse(text: &str, functions: bool) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(open) = text[at..].find("{{") {
            let open = at + open;
            let mut reader = ActionReader { text, at: open + 2, functions };
            let before = match reader.skip_trim_mark() {
                true => text[at..open].trim_end_matches(BLANKS),
                false => &text[at..open],
            };
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.to_owned()));
            }
            parts.push(TemplatePart::Action(reader.pipeline(0)?));
            reader.skip_blanks();
            let trims = text[..reader.at].ends_with(BLANKS) && reader.skip("-");
            if !reader.skip("}}") {
                return Err(reader.unexpected());
            }
            at = reader.at;
            if trims {
                at += text[at..].len() - text[at..].trim_start_matches(BLANKS).len();
            }
        }
        if at < text.len() {
            parts.push(TemplatePart::Text(text[at..].to_owned()));
        }
        Ok(Template { parts })
    }

    /// Returns whether the template contains an action.
    pub(super) fn has_actions(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Action(_)))
    }

    /// Returns the text for one call.
    ///
    /// # Errors
    /// Fails if the arguments of a function do not fit.
    pub(super) fn execute(&self, data: &mut CallData<'_>) -> Result<String, String> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Action(expr) => out.push_str(&evaluate(expr, data)?.text()),
            }
        }
        Ok(out)
    }
}

/// Reads actions from a text.
struct ActionReader<'a> {
    text: &'a str,
    at: usize,
    functions: bool,
}

impl ActionReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches(BLANKS).len();
    }

    /// Skips the mark that removes the whitespace before an action: `-` and a space.
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

    /// Parses commands separated by `|`; the value of one is the last argument of the next.
    fn pipeline(&mut self, depth: usize) -> Result<Expr, String> {
        if depth > DEPTH_MAX {
            return Err(self.fault("too many parentheses"));
        }
        let mut value = self.command(None, depth)?;
        loop {
            self.skip_blanks();
            if !self.skip("|") {
                return Ok(value);
            }
            value = self.command(Some(value), depth)?;
        }
    }

    fn command(&mut self, piped: Option<Expr>, depth: usize) -> Result<Expr, String> {
        self.skip_blanks();
        if !self.rest().starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            let operand = self.operand(depth)?;
            return match (operand, piped) {
                (Some(operand), None) => Ok(operand),
                (Some(_), Some(_)) => Err(self.fault("non executable command in pipeline")),
                (None, _) if self.rest().is_empty() => Err(self.fault("unclosed action")),
                (None, _) if self.rest().starts_with("}}") => {
                    Err(self.fault("missing value for command"))
                }
                (None, _) => Err(self.unexpected()),
            };
        }
        let name = self.name();
        if matches!(name.as_str(), "if" | "range" | "with" | "end" | "else" | "define" | "template")
        {
            let why = format!("{{{{{name}}}}} is not supported; write the values themselves");
            return Err(self.fault(&why));
        }
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
        let plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
        let name: String = self.rest().chars().take_while(plain).collect();
        self.at += name.len();
        name
    }

    fn function(&self, name: &str) -> Result<&'static Function, String> {
        Function::named(name)
            .filter(|function| self.functions || function.built_in)
            .ok_or_else(|| self.fault(&format!("function {} not defined", quoted(name))))
    }

    /// Parses a field, a constant, a function without arguments, or an expression in parentheses.
    fn operand(&mut self, depth: usize) -> Result<Option<Expr>, String> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(None) };
        match first {
            '.' => {
                let start = self.at;
                self.at += 1;
                let name = self.name();
                let field = DataField::named(&name).ok_or_else(|| {
                    format!(
                        "template: {WORDS}:1:{start}: executing \"{WORDS}\" at <.{name}>: can't \
                         evaluate field {name} in type *runner.CallData"
                    )
                })?;
                Ok(Some(Expr::Field(field)))
            }
            '"' | '`' => {
                let end = rest[1..].find(first).ok_or_else(|| {
                    self.fault(if first == '"' {
                        "unterminated quoted string"
                    } else {
                        "unterminated raw quoted string"
                    })
                })?;
                let text = rest[1..=end].to_owned();
                self.at += end + 2;
                Ok(Some(Expr::Text(text)))
            }
            '(' => {
                self.at += 1;
                let value = self.pipeline(depth + 1)?;
                self.skip_blanks();
                if !self.skip(")") {
                    return Err(self.fault("unclosed left paren"));
                }
                Ok(Some(value))
            }
            '0'..='9' | '-' | '+' => {
                let digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
                let text = &rest[..=rest[1..].bytes().take_while(digit).count()];
                let number = match text.contains('.') {
                    false => text.parse().map(Expr::Number).ok(),
                    true => text.parse().map(Expr::Float).ok(),
                };
                self.at += if number.is_some() { text.len() } else { 0 };
                Ok(number)
            }
            letter if letter.is_ascii_alphabetic() => {
                let name = self.name();
                if let Some(value) = switch(&name) {
                    return Ok(Some(value));
                }
                Ok(Some(Expr::Call(self.function(&name)?, Vec::new())))
            }
            _ => Ok(None),
        }
    }
}

fn switch(name: &str) -> Option<Expr> {
    match name {
        "true" => Some(Expr::Switch(true)),
        "false" => Some(Expr::Switch(false)),
        _ => None,
    }
}

fn evaluate(expr: &Expr, data: &mut CallData<'_>) -> Result<DataValue, String> {
    match expr {
        Expr::Text(text) => Ok(DataValue::Text(text.clone())),
        Expr::Number(number) => Ok(DataValue::Number(*number)),
        Expr::Float(number) => Ok(DataValue::Float(*number)),
        Expr::Switch(on) => Ok(DataValue::Switch(*on)),
        Expr::Field(field) => Ok(field_of(*field, data)),
        Expr::Call(function, arguments) => {
            let values = arguments.iter().map(|argument| evaluate(argument, data));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            function.call(&values, data)
        }
    }
}

fn field_of(field: DataField, data: &CallData<'_>) -> DataValue {
    let method = data.method;
    let number = |number: u64| DataValue::Number(i64::try_from(number).unwrap_or(i64::MAX));
    match field {
        DataField::WorkerId => DataValue::Text(data.worker.clone()),
        DataField::RequestNumber => number(data.number),
        DataField::FullyQualifiedName => DataValue::Text(method.full_name.clone()),
        DataField::MethodName => DataValue::Text(method.name.clone()),
        DataField::ServiceName => DataValue::Text(method.service.clone()),
        DataField::InputName => DataValue::Text(method.input.clone()),
        DataField::OutputName => DataValue::Text(method.output.clone()),
        DataField::IsClientStreaming => DataValue::Switch(method.client_streaming),
        DataField::IsServerStreaming => DataValue::Switch(method.server_streaming),
        DataField::Timestamp => {
            let seconds = data.unix_ns / 1_000_000_000 * 1_000_000_000;
            DataValue::Text(rfc3339(seconds, data.utc_offset_s))
        }
        DataField::TimestampUnix => number(data.unix_ns / 1_000_000_000),
        DataField::TimestampUnixMilli => number(data.unix_ns / 1_000_000),
        DataField::TimestampUnixNano => number(data.unix_ns),
        DataField::Uuid => DataValue::Text(data.uuid.clone()),
    }
}
