//! Call data of ghz in the notation of Go's `text/template`: fields, functions, pipelines. Control
//! structures are refused.

use super::go::{quoted, rfc3339};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
    Call(Function, Vec<Expr>),
}

/// A value of an expression.
#[derive(Clone, Debug)]
enum DataValue {
    Text(String),
    Number(i64),
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

names!(Function, "A function of Go's templates, of ghz or of Sprig.",
    NewUuid => "newUUID", Uuid4 => "uuidv4", RandomString => "randomString",
    RandomInt => "randomInt", RandInt => "randInt", RandAlphaNum => "randAlphaNum",
    RandAlpha => "randAlpha", RandNumeric => "randNumeric", Add => "add", Add1 => "add1",
    Sub => "sub", Mul => "mul", Div => "div", Mod => "mod", Max => "max", Min => "min",
    Atoi => "atoi", Int => "int", ToString => "toString", Print => "print",
    PrintLine => "println", Length => "len", Upper => "upper", Lower => "lower", Trim => "trim",
    Repeat => "repeat", Replace => "replace", Trunc => "trunc", B64Enc => "b64enc",
);

impl Function {
    /// Returns whether Go's templates provide the function themselves, independent of options.
    fn is_built_in(self) -> bool {
        matches!(self, Function::Print | Function::PrintLine | Function::Length)
    }
}

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
/// Letters and digits of random texts.
const ALPHANUMERIC: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Maximum number of characters of a text that a function makes.
const TEXT_MAX: usize = 1 << 20;
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
                TemplatePart::Action(expr) => out.push_str(&text_of(evaluate(expr, data)?)),
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

    fn function(&self, name: &str) -> Result<Function, String> {
        Function::named(name)
            .filter(|function| self.functions || function.is_built_in())
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
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                let Ok(number) = rest[..=digits].parse() else { return Ok(None) };
                self.at += 1 + digits;
                Ok(Some(Expr::Number(number)))
            }
            letter if letter.is_ascii_alphabetic() => {
                let name = self.name();
                Ok(Some(Expr::Call(self.function(&name)?, Vec::new())))
            }
            _ => Ok(None),
        }
    }
}

fn evaluate(expr: &Expr, data: &mut CallData<'_>) -> Result<DataValue, String> {
    match expr {
        Expr::Text(text) => Ok(DataValue::Text(text.clone())),
        Expr::Number(number) => Ok(DataValue::Number(*number)),
        Expr::Field(field) => Ok(field_of(*field, data)),
        Expr::Call(function, arguments) => {
            let values = arguments.iter().map(|argument| evaluate(argument, data));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            call(*function, &values, data)
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
        DataField::IsClientStreaming => DataValue::Text(method.client_streaming.to_string()),
        DataField::IsServerStreaming => DataValue::Text(method.server_streaming.to_string()),
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

fn text_of(value: DataValue) -> String {
    match value {
        DataValue::Text(text) => text,
        DataValue::Number(number) => number.to_string(),
    }
}

fn call(
    function: Function,
    values: &[DataValue],
    data: &mut CallData<'_>,
) -> Result<DataValue, String> {
    let number = |at: usize| match values.get(at) {
        Some(DataValue::Number(number)) => *number,
        // Sprig converts strings to numbers, and any other value to 0
        Some(DataValue::Text(text)) => text.trim().parse().unwrap_or(0),
        None => 0,
    };
    let text = |at: usize| values.get(at).cloned().map(text_of).unwrap_or_default();
    let length = |at: usize| usize::try_from(number(at)).unwrap_or(0).min(TEXT_MAX);
    let numbers = || (0..values.len()).map(number);
    let random = &mut data.random;
    Ok(match function {
        Function::NewUuid | Function::Uuid4 => DataValue::Text(uuid(random)),
        Function::RandomString => {
            let count = match length(0) {
                0 => 2 + random.below(15) as usize,
                count => count,
            };
            DataValue::Text(random_text(count, ALPHANUMERIC, random))
        }
        Function::RandomInt => {
            let (least, most) = (number(0).max(0), number(1).max(1));
            DataValue::Number(least + random.below((most - least).max(1) as u64) as i64)
        }
        Function::RandInt => {
            let (least, most) = (number(0), number(1));
            let span = most.saturating_sub(least).max(1);
            DataValue::Number(least.saturating_add(random.below(span as u64) as i64))
        }
        Function::RandAlphaNum => DataValue::Text(random_text(length(0), ALPHANUMERIC, random)),
        Function::RandAlpha => DataValue::Text(random_text(length(0), &ALPHANUMERIC[..52], random)),
        Function::RandNumeric => {
            DataValue::Text(random_text(length(0), &ALPHANUMERIC[52..], random))
        }
        Function::Add => DataValue::Number(numbers().fold(0, i64::wrapping_add)),
        Function::Add1 => DataValue::Number(number(0).wrapping_add(1)),
        Function::Sub => DataValue::Number(number(0).wrapping_sub(number(1))),
        Function::Mul => DataValue::Number(numbers().fold(1, i64::wrapping_mul)),
        Function::Div | Function::Mod if number(1) == 0 => {
            return Err("error calling div: integer divide by zero".to_owned());
        }
        Function::Div => DataValue::Number(number(0).wrapping_div(number(1))),
        Function::Mod => DataValue::Number(number(0).wrapping_rem(number(1))),
        Function::Max => DataValue::Number(numbers().max().unwrap_or(0)),
        Function::Min => DataValue::Number(numbers().min().unwrap_or(0)),
        Function::Atoi | Function::Int => DataValue::Number(number(0)),
        Function::ToString => DataValue::Text(values.iter().cloned().map(text_of).collect()),
        Function::Print => DataValue::Text(printed(values)),
        Function::PrintLine => {
            let texts: Vec<String> = values.iter().cloned().map(text_of).collect();
            DataValue::Text(texts.join(" ") + "\n")
        }
        Function::Length => DataValue::Number(text(0).len() as i64),
        Function::Upper => DataValue::Text(text(0).to_uppercase()),
        Function::Lower => DataValue::Text(text(0).to_lowercase()),
        Function::Trim => DataValue::Text(text(0).trim().to_owned()),
        Function::Repeat => {
            let piece = text(1);
            let most = TEXT_MAX / piece.len().max(1);
            DataValue::Text(piece.repeat(length(0).min(most)))
        }
        Function::Replace => DataValue::Text(text(2).replace(&text(0), &text(1))),
        Function::Trunc => DataValue::Text(text(1).chars().take(length(0)).collect()),
        Function::B64Enc => DataValue::Text(STANDARD.encode(text(0))),
    })
}

/// Joins the values like Go's `Sprint`: with a space between two values if neither is a text.
fn printed(values: &[DataValue]) -> String {
    let mut out = String::new();
    let mut after_number = false;
    for value in values {
        let is_number = matches!(value, DataValue::Number(_));
        if is_number && after_number {
            out.push(' ');
        }
        out.push_str(&text_of(value.clone()));
        after_number = is_number;
    }
    out
}

fn random_text(count: usize, letters: &[u8], random: &mut Stream) -> String {
    let letter = |_| char::from(letters[random.below(letters.len() as u64) as usize]);
    (0..count).map(letter).collect()
}

/// Returns a random UUID (version 4, RFC 9562 section 5.4).
pub(super) fn uuid(random: &mut Stream) -> String {
    let high = random.next_u64() & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = random.next_u64() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}
