//! Functions of call data: those of Go's templates, of ghz, and of the library Sprig.

use super::go::{json, rfc3339};
use super::template::CallData;
use crate::words::{Moment, moment};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::fmt::Write as _;
use units::Stream;

/// A value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DataValue {
    Text(String),
    Number(i64),
    Float(f64),
    Switch(bool),
    List(Vec<DataValue>),
    /// Nanoseconds since 1970, UTC.
    Time(u64),
    /// The whole call data, whose fields are values.
    Call,
}

type Outcome = Result<DataValue, String>;
type FunctionBody = fn(&[DataValue], &mut CallData<'_>) -> Outcome;

/// A function of call data.
#[derive(Debug)]
pub(super) struct Function {
    name: &'static str,
    /// Go's templates provide it themselves, independent of options.
    pub(super) built_in: bool,
    least: usize,
    most: usize,
    body: FunctionBody,
}

/// Letters and digits of random texts.
const ALPHANUMERIC: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Maximum number of characters of a text, and of items of a list, that a function makes.
const TEXT_MAX: usize = 1 << 20;
/// Any number of arguments.
const ANY: usize = usize::MAX;

const fn own(name: &'static str, (least, most): (usize, usize), body: FunctionBody) -> Function {
    Function { name, built_in: false, least, most, body }
}

const fn go_function(
    name: &'static str,
    (least, most): (usize, usize),
    body: FunctionBody,
) -> Function {
    Function { name, built_in: true, least, most, body }
}

static GO: &[Function] = &[
    go_function("print", (0, ANY), |all, _| Ok(DataValue::Text(printed(all)))),
    go_function("println", (0, ANY), |all, _| Ok(DataValue::Text(texts(all).join(" ") + "\n"))),
    go_function("printf", (1, ANY), |all, _| {
        Ok(DataValue::Text(formatted(&text(all, 0), &all[1..])))
    }),
    go_function("len", (1, 1), |all, _| {
        Ok(DataValue::Number(match &all[0] {
            DataValue::List(items) => items.len() as i64,
            other => other.text().len() as i64,
        }))
    }),
    go_function("index", (1, ANY), |all, _| {
        all[1..].iter().try_fold(all[0].clone(), |list, at| item(&list, at.number()))
    }),
    go_function("eq", (2, ANY), |all, _| {
        switch(all[1..].iter().any(|one| one.text() == all[0].text()))
    }),
    go_function("ne", (2, 2), |all, _| switch(all[0].text() != all[1].text())),
    go_function("lt", (2, 2), |all, _| switch(order(all).is_lt())),
    go_function("le", (2, 2), |all, _| switch(order(all).is_le())),
    go_function("gt", (2, 2), |all, _| switch(order(all).is_gt())),
    go_function("ge", (2, 2), |all, _| switch(order(all).is_ge())),
    go_function("not", (1, 1), |all, _| switch(all[0].is_empty())),
    go_function("and", (1, ANY), |all, _| {
        let last = &all[all.len() - 1];
        Ok(all.iter().find(|one| one.is_empty()).unwrap_or(last).clone())
    }),
    go_function("or", (1, ANY), |all, _| {
        let last = &all[all.len() - 1];
        Ok(all.iter().find(|one| !one.is_empty()).unwrap_or(last).clone())
    }),
];

static RANDOM: &[Function] = &[
    own("newUUID", (0, 0), |_, data| Ok(DataValue::Text(uuid(&mut data.random)))),
    own("uuidv4", (0, 0), |_, data| Ok(DataValue::Text(uuid(&mut data.random)))),
    own("randomString", (1, 1), |all, data| {
        let count = match length(all, 0) {
            0 => 2 + data.random.below(15) as usize,
            count => count,
        };
        Ok(random_text(count, ALPHANUMERIC, &mut data.random))
    }),
    own("randomInt", (2, 2), |all, data| {
        let (least, most) = (number(all, 0).max(0), number(all, 1).max(1));
        let span = most.saturating_sub(least).max(1);
        Ok(DataValue::Number(least + data.random.below(span as u64) as i64))
    }),
    own("randInt", (2, 2), |all, data| {
        let (least, most) = (number(all, 0), number(all, 1));
        let span = most.saturating_sub(least).max(1);
        Ok(DataValue::Number(least.saturating_add(data.random.below(span as u64) as i64)))
    }),
    own("randAlphaNum", (1, 1), |all, data| {
        Ok(random_text(length(all, 0), ALPHANUMERIC, &mut data.random))
    }),
    own("randAlpha", (1, 1), |all, data| {
        Ok(random_text(length(all, 0), &ALPHANUMERIC[..52], &mut data.random))
    }),
    own("randNumeric", (1, 1), |all, data| {
        Ok(random_text(length(all, 0), &ALPHANUMERIC[52..], &mut data.random))
    }),
    own("randAscii", (1, 1), |all, data| {
        let letters: Vec<u8> = (b' '..=b'~').collect();
        Ok(random_text(length(all, 0), &letters, &mut data.random))
    }),
];

static NUMBERS: &[Function] = &[
    own("add", (0, ANY), |all, _| Ok(fold(all, 0, i64::wrapping_add))),
    own("add1", (1, 1), |all, _| Ok(DataValue::Number(number(all, 0).wrapping_add(1)))),
    own("sub", (2, 2), |all, _| Ok(DataValue::Number(number(all, 0).wrapping_sub(number(all, 1))))),
    own("mul", (1, ANY), |all, _| Ok(fold(all, 1, i64::wrapping_mul))),
    own("div", (2, 2), |all, _| divided("div", all, i64::checked_div)),
    own("mod", (2, 2), |all, _| divided("mod", all, i64::checked_rem)),
    own("max", (1, ANY), |all, _| Ok(fold(all, i64::MIN, i64::max))),
    own("biggest", (1, ANY), |all, _| Ok(fold(all, i64::MIN, i64::max))),
    own("min", (1, ANY), |all, _| Ok(fold(all, i64::MAX, i64::min))),
    own("atoi", (1, 1), |all, _| Ok(DataValue::Number(text(all, 0).parse().unwrap_or(0)))),
    own("int", (1, 1), |all, _| Ok(DataValue::Number(number(all, 0)))),
    own("int64", (1, 1), |all, _| Ok(DataValue::Number(number(all, 0)))),
    own("float64", (1, 1), |all, _| Ok(DataValue::Float(all[0].float()))),
    own("floor", (1, 1), |all, _| Ok(DataValue::Float(all[0].float().floor()))),
    own("ceil", (1, 1), |all, _| Ok(DataValue::Float(all[0].float().ceil()))),
    own("round", (2, 3), |all, _| {
        let unit = 10_f64.powi(number(all, 1).clamp(-300, 300) as i32);
        let up = all.get(2).map_or(0.5, DataValue::float);
        let scaled = all[0].float() * unit;
        let rounded = if scaled.fract() >= up { scaled.ceil() } else { scaled.floor() };
        Ok(DataValue::Float(rounded / unit))
    }),
];

static TEXTS: &[Function] = &[
    own("toString", (1, 1), |all, _| Ok(DataValue::Text(text(all, 0)))),
    own("upper", (1, 1), |all, _| Ok(DataValue::Text(text(all, 0).to_uppercase()))),
    own("lower", (1, 1), |all, _| Ok(DataValue::Text(text(all, 0).to_lowercase()))),
    own("title", (1, 1), |all, _| Ok(words(&text(all, 0), |it| it.to_uppercase().collect()))),
    own("untitle", (1, 1), |all, _| Ok(words(&text(all, 0), |it| it.to_lowercase().collect()))),
    own("trim", (1, 1), |all, _| Ok(DataValue::Text(text(all, 0).trim().to_owned()))),
    own("trimAll", (2, 2), |all, _| {
        let letters = text(all, 0);
        let trimmed = |text: &str| text.trim_matches(|it| letters.contains(it)).to_owned();
        Ok(DataValue::Text(trimmed(&text(all, 1))))
    }),
    own("trimSuffix", (2, 2), |all, _| {
        let whole = text(all, 1);
        let short = whole.strip_suffix(&*text(all, 0)).map(str::to_owned);
        Ok(DataValue::Text(short.unwrap_or(whole)))
    }),
    own("trimPrefix", (2, 2), |all, _| {
        let whole = text(all, 1);
        let short = whole.strip_prefix(&*text(all, 0)).map(str::to_owned);
        Ok(DataValue::Text(short.unwrap_or(whole)))
    }),
    own("nospace", (1, 1), |all, _| Ok(DataValue::Text(text(all, 0).split_whitespace().collect()))),
    own("repeat", (2, 2), |all, _| {
        let piece = text(all, 1);
        let most = TEXT_MAX / piece.len().max(1);
        Ok(DataValue::Text(piece.repeat(length(all, 0).min(most))))
    }),
    own("replace", (3, 3), |all, _| {
        Ok(DataValue::Text(text(all, 2).replace(&text(all, 0), &text(all, 1))))
    }),
    own("trunc", (2, 2), |all, _| Ok(DataValue::Text(truncated(number(all, 0), &text(all, 1))))),
    own("substr", (3, 3), |all, _| {
        let letters: Vec<char> = text(all, 2).chars().collect();
        let (from, to) = (number(all, 0), number(all, 1));
        let end = usize::try_from(to).unwrap_or(ANY).min(letters.len());
        let from = usize::try_from(from).unwrap_or(0).min(end);
        Ok(DataValue::Text(letters[from..end].iter().collect()))
    }),
    own("contains", (2, 2), |all, _| switch(text(all, 1).contains(&text(all, 0)))),
    own("hasPrefix", (2, 2), |all, _| switch(text(all, 1).starts_with(&text(all, 0)))),
    own("hasSuffix", (2, 2), |all, _| switch(text(all, 1).ends_with(&text(all, 0)))),
    own("quote", (0, ANY), |all, _| Ok(join_values(all, " ", |one| format!("{:?}", one.text())))),
    own("squote", (0, ANY), |all, _| Ok(join_values(all, " ", |one| format!("'{}'", one.text())))),
    own("cat", (0, ANY), |all, _| Ok(join_values(all, " ", DataValue::text))),
    own("indent", (2, 2), |all, _| Ok(DataValue::Text(indented(all)))),
    own("nindent", (2, 2), |all, _| Ok(DataValue::Text(format!("\n{}", indented(all))))),
    own("plural", (3, 3), |all, _| Ok(all[if number(all, 2) == 1 { 0 } else { 1 }].clone())),
    own("b64enc", (1, 1), |all, _| Ok(DataValue::Text(STANDARD.encode(text(all, 0))))),
    own("b64dec", (1, 1), |all, _| {
        let bytes = STANDARD.decode(text(all, 0));
        Ok(DataValue::Text(match bytes {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            // Sprig inserts the error's text
            Err(_) => "illegal base64 data".to_owned(),
        }))
    }),
    own("toJson", (1, 1), |all, _| Ok(DataValue::Text(json(&all[0].json())))),
];

static LISTS: &[Function] = &[
    own("list", (0, ANY), |all, _| Ok(DataValue::List(all.to_vec()))),
    own("first", (1, 1), |all, _| item(&all[0], 0)),
    own("last", (1, 1), |all, _| item(&all[0], all[0].items().len() as i64 - 1)),
    own("rest", (1, 1), |all, _| {
        Ok(DataValue::List(all[0].items().iter().skip(1).cloned().collect()))
    }),
    own("initial", (1, 1), |all, _| {
        let mut items = all[0].items();
        items.pop();
        Ok(DataValue::List(items))
    }),
    own("reverse", (1, 1), |all, _| {
        Ok(DataValue::List(all[0].items().into_iter().rev().collect()))
    }),
    own("uniq", (1, 1), |all, _| {
        let mut kept: Vec<DataValue> = Vec::new();
        for item in all[0].items() {
            if !kept.contains(&item) {
                kept.push(item);
            }
        }
        Ok(DataValue::List(kept))
    }),
    own("has", (2, 2), |all, _| switch(all[1].items().contains(&all[0]))),
    own("append", (2, 2), |all, _| {
        let mut items = all[0].items();
        items.push(all[1].clone());
        Ok(DataValue::List(items))
    }),
    own("concat", (0, ANY), |all, _| {
        Ok(DataValue::List(all.iter().flat_map(DataValue::items).collect()))
    }),
    own("sortAlpha", (1, 1), |all, _| {
        let mut texts = texts(&all[0].items());
        texts.sort();
        Ok(DataValue::List(texts.into_iter().map(DataValue::Text).collect()))
    }),
    own("join", (2, 2), |all, _| {
        let between = text(all, 0);
        Ok(match &all[1] {
            DataValue::List(items) => join_values(items, &between, DataValue::text),
            other => DataValue::Text(other.text()),
        })
    }),
    own("splitList", (2, 2), |all, _| {
        let (between, whole) = (text(all, 0), text(all, 1));
        let parts = whole.split(&*between).map(|part| DataValue::Text(part.to_owned()));
        Ok(DataValue::List(parts.collect()))
    }),
    own("until", (1, 1), |all, _| {
        let end = number(all, 0);
        Ok(counted(0, end, if end < 0 { -1 } else { 1 }))
    }),
    own("untilStep", (3, 3), |all, _| Ok(counted(number(all, 0), number(all, 1), number(all, 2)))),
];

static LOGIC: &[Function] = &[
    own("default", (1, 2), |all, _| {
        let given = all.get(1).filter(|given| !given.is_empty());
        Ok(given.unwrap_or(&all[0]).clone())
    }),
    own("empty", (1, 1), |all, _| switch(all[0].is_empty())),
    own("coalesce", (0, ANY), |all, _| {
        let first = all.iter().find(|one| !one.is_empty());
        Ok(first.cloned().unwrap_or(DataValue::Text("<no value>".to_owned())))
    }),
    own("ternary", (3, 3), |all, _| Ok(all[usize::from(all[2].is_empty())].clone())),
    own("now", (0, 0), |_, data| Ok(DataValue::Time(data.unix_ns))),
    own("unixEpoch", (1, 1), |all, _| Ok(DataValue::Text((all[0].time_s()).to_string()))),
    own("date", (2, 2), |all, data| {
        Ok(DataValue::Text(format_date(&text(all, 0), &all[1], data.utc_offset_s)))
    }),
    own("htmlDate", (1, 1), |all, data| {
        Ok(DataValue::Text(format_date("2006-01-02", &all[0], data.utc_offset_s)))
    }),
];

impl Function {
    pub(super) fn named(name: &str) -> Option<&'static Function> {
        let all = [GO, RANDOM, NUMBERS, TEXTS, LISTS, LOGIC].into_iter().flatten();
        all.into_iter().find(|function| function.name == name)
    }

    /// Returns whether the value determines the result (`and`, `or`): the remaining arguments are
    /// then not evaluated.
    pub(super) fn ends_at(&self, value: &DataValue) -> bool {
        match self.name {
            "and" => value.is_empty(),
            "or" => !value.is_empty(),
            _ => false,
        }
    }

    /// Calls it.
    ///
    /// # Errors
    /// Fails for a wrong number of arguments, or for values that do not fit.
    pub(super) fn call(&self, values: &[DataValue], data: &mut CallData<'_>) -> Outcome {
        if (self.least..=self.most).contains(&values.len()) {
            return (self.body)(values, data);
        }
        let want = match (self.least, self.most) {
            (least, ANY) => format!("at least {least}"),
            (least, _) => least.to_string(),
        };
        Err(format!("wrong number of args for {}: want {want} got {}", self.name, values.len()))
    }
}

impl DataValue {
    /// Formats it as Go does (`%v`).
    pub(super) fn text(&self) -> String {
        match self {
            DataValue::Text(text) => text.clone(),
            DataValue::Number(number) => number.to_string(),
            DataValue::Float(number) => float_text(*number),
            DataValue::Switch(on) => on.to_string(),
            DataValue::List(items) => format!("[{}]", texts(items).join(" ")),
            DataValue::Time(unix_ns) => rfc3339(*unix_ns, 0),
            DataValue::Call => String::new(),
        }
    }

    /// Returns Go's name of its type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            DataValue::Text(_) => "string",
            DataValue::Number(_) => "int",
            DataValue::Float(_) => "float64",
            DataValue::Switch(_) => "bool",
            DataValue::List(_) => "[]interface {}",
            DataValue::Time(_) => "time.Time",
            DataValue::Call => "*runner.CallData",
        }
    }

    /// Returns it as a whole number; Sprig parses texts as numbers, and treats any other value as
    /// 0.
    fn number(&self) -> i64 {
        match self {
            DataValue::Number(number) => *number,
            DataValue::Float(number) => *number as i64,
            DataValue::Switch(on) => i64::from(*on),
            DataValue::Text(text) => text.trim().parse().unwrap_or(0),
            DataValue::List(_) | DataValue::Time(_) | DataValue::Call => 0,
        }
    }

    fn float(&self) -> f64 {
        match self {
            DataValue::Float(number) => *number,
            DataValue::Text(text) => text.trim().parse().unwrap_or(0.0),
            other => other.number() as f64,
        }
    }

    /// Returns whether it is the zero value of its type.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            DataValue::Text(text) => text.is_empty(),
            DataValue::Number(number) => *number == 0,
            DataValue::Float(number) => number.abs() < f64::MIN_POSITIVE,
            DataValue::Switch(on) => !on,
            DataValue::List(items) => items.is_empty(),
            DataValue::Time(_) | DataValue::Call => false,
        }
    }

    fn items(&self) -> Vec<DataValue> {
        match self {
            DataValue::List(items) => items.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns seconds since 1970; a number is already in this form.
    fn time_s(&self) -> i64 {
        match self {
            DataValue::Time(unix_ns) => (*unix_ns / 1_000_000_000) as i64,
            other => other.number(),
        }
    }

    fn json(&self) -> Value {
        match self {
            DataValue::Number(number) => Value::from(*number),
            DataValue::Float(number) => Value::from(*number),
            DataValue::Switch(on) => Value::from(*on),
            DataValue::List(items) => items.iter().map(DataValue::json).collect(),
            DataValue::Text(_) | DataValue::Time(_) | DataValue::Call => Value::from(self.text()),
        }
    }
}

fn switch(on: bool) -> Outcome {
    Ok(DataValue::Switch(on))
}

fn number(all: &[DataValue], at: usize) -> i64 {
    all.get(at).map_or(0, DataValue::number)
}

fn text(all: &[DataValue], at: usize) -> String {
    all.get(at).map(DataValue::text).unwrap_or_default()
}

fn texts(all: &[DataValue]) -> Vec<String> {
    all.iter().map(DataValue::text).collect()
}

fn length(all: &[DataValue], at: usize) -> usize {
    usize::try_from(number(all, at)).unwrap_or(0).min(TEXT_MAX)
}

fn fold(all: &[DataValue], start: i64, with: fn(i64, i64) -> i64) -> DataValue {
    DataValue::Number(all.iter().map(DataValue::number).fold(start, with))
}

fn divided(name: &str, all: &[DataValue], by: fn(i64, i64) -> Option<i64>) -> Outcome {
    match (number(all, 0), number(all, 1)) {
        (_, 0) => Err(format!("error calling {name}: runtime error: integer divide by zero")),
        // the least number divided by -1 stays as it is in Go
        (left, right) => Ok(DataValue::Number(by(left, right).unwrap_or(left))),
    }
}

fn item(list: &DataValue, at: i64) -> Outcome {
    let items = list.items();
    let found = usize::try_from(at).ok().and_then(|at| items.get(at).cloned());
    found.ok_or_else(|| format!("error calling index: index out of range: {at}"))
}

/// Compares two values: as numbers unless one is a text.
fn order(all: &[DataValue]) -> std::cmp::Ordering {
    match (&all[0], &all[1]) {
        (DataValue::Text(left), DataValue::Text(right)) => left.cmp(right),
        (left, right) => left.float().total_cmp(&right.float()),
    }
}

fn join_values(all: &[DataValue], between: &str, shown: fn(&DataValue) -> String) -> DataValue {
    DataValue::Text(all.iter().map(shown).collect::<Vec<String>>().join(between))
}

/// Changes the first letter of each word.
fn words(text: &str, change: fn(char) -> String) -> DataValue {
    let mut begins = true;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if begins {
            out.push_str(&change(letter));
        } else {
            out.push(letter);
        }
        begins = !letter.is_alphanumeric() && letter != '_';
    }
    DataValue::Text(out)
}

/// Returns the first `count` letters, or the last ones if it is below zero.
fn truncated(count: i64, text: &str) -> String {
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(ANY);
    match count < 0 {
        false => text.chars().take(size).collect(),
        true => text.chars().skip(text.chars().count().saturating_sub(size)).collect(),
    }
}

fn indented(all: &[DataValue]) -> String {
    let pad = " ".repeat(length(all, 0).min(1_000));
    format!("{pad}{}", text(all, 1).replace('\n', &format!("\n{pad}")))
}

fn counted(from: i64, to: i64, step: i64) -> DataValue {
    let mut items = Vec::new();
    let mut at = from;
    while (step > 0 && at < to || step < 0 && at > to) && items.len() < TEXT_MAX {
        items.push(DataValue::Number(at));
        at = at.saturating_add(step);
    }
    DataValue::List(items)
}

/// Joins the values like Go's `Sprint`: with a space between two values if neither is a text.
fn printed(values: &[DataValue]) -> String {
    let mut out = String::new();
    let mut after_other = false;
    for value in values {
        let is_other = !matches!(value, DataValue::Text(_));
        if is_other && after_other {
            out.push(' ');
        }
        out.push_str(&value.text());
        after_other = is_other;
    }
    out
}

/// Formats values like Go's `Sprintf`: the verbs v, s, d, t, f, x and q, with a width and a
/// precision.
fn formatted(format: &str, values: &[DataValue]) -> String {
    let mut out = String::new();
    let mut values = values.iter();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let end = after.find(|letter: char| letter.is_alphabetic() || letter == '%');
        let Some(end) = end else { break };
        let (flags, verb) = (&after[..end], after[end..].chars().next().unwrap_or('%'));
        rest = &after[end + verb.len_utf8()..];
        if verb == '%' {
            out.push('%');
            continue;
        }
        match values.next() {
            Some(value) => out.push_str(&padded(flags, &shown(verb, flags, value))),
            None => write!(out, "%!{verb}(MISSING)").expect("a String takes all text"),
        }
    }
    out + rest
}

fn shown(verb: char, flags: &str, value: &DataValue) -> String {
    let precision = flags.split_once('.').and_then(|(_, digits)| digits.parse::<usize>().ok());
    match (verb, value) {
        ('q', value) => format!("{:?}", value.text()),
        ('x', DataValue::Number(number)) => format!("{number:x}"),
        ('f', DataValue::Float(number)) => format!("{number:.*}", precision.unwrap_or(6)),
        ('s', value) => value.text().chars().take(precision.unwrap_or(ANY)).collect(),
        ('f', DataValue::Number(number)) => format!("%!f(int={number})"),
        ('d', DataValue::Text(text)) => format!("%!d(string={text})"),
        (_, value) => value.text(),
    }
}

/// Fills a text up to the width of `flags`: `5`, `-5` or `05`, and a precision.
fn padded(flags: &str, text: &str) -> String {
    let width = flags.split('.').next().unwrap_or_default();
    let digits = width.trim_start_matches(['-', '+', '0', ' ']);
    let size = digits.parse::<usize>().unwrap_or(0).min(TEXT_MAX);
    match width.chars().next() {
        Some('-') => format!("{text:<size$}"),
        Some('0') => match text.strip_prefix('-') {
            Some(rest) => format!("-{rest:0>width$}", width = size.saturating_sub(1)),
            None => format!("{text:0>size$}"),
        },
        _ => format!("{text:>size$}"),
    }
}

/// Formats a float as Go's `%v` does: with an exponent below 1e-4 and from 1e21 on.
fn float_text(number: f64) -> String {
    let size = number.abs();
    if size < f64::MIN_POSITIVE || (1e-4..1e21).contains(&size) {
        return format!("{number}");
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Formats a time by one of Go's layouts; a value that is no time counts as now in Sprig, here as
/// its seconds since 1970.
fn format_date(layout: &str, value: &DataValue, offset_s: i32) -> String {
    let at = moment(value.time_s(), offset_s);
    let mut out = String::new();
    let mut rest = layout;
    while !rest.is_empty() {
        let piece = LAYOUT_PARTS.iter().find(|(mark, _)| rest.starts_with(mark));
        match piece {
            Some((mark, show)) => {
                out.push_str(&show(&at, offset_s));
                rest = &rest[mark.len()..];
            }
            None => {
                let letter = rest.chars().next().unwrap_or_default();
                out.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    out
}

/// Parts of Go's layouts, longer ones first.
type LayoutPart = (&'static str, fn(&Moment, i32) -> String);
static LAYOUT_PARTS: &[LayoutPart] = &[
    ("January", |at, _| MONTHS[(at.month as usize - 1) % 12].to_owned()),
    ("Jan", |at, _| MONTHS[(at.month as usize - 1) % 12][..3].to_owned()),
    ("Monday", |at, _| {
        let day = DAYS.iter().find(|day| day.starts_with(at.weekday));
        day.copied().unwrap_or(at.weekday).to_owned()
    }),
    ("Mon", |at, _| at.weekday.to_owned()),
    ("MST", |_, offset| if offset == 0 { "UTC".to_owned() } else { zone(offset, "") }),
    ("2006", |at, _| format!("{:04}", at.year)),
    ("-0700", |_, offset| zone(offset, "")),
    ("-07:00", |_, offset| zone(offset, ":")),
    ("Z07:00", |_, offset| if offset == 0 { "Z".to_owned() } else { zone(offset, ":") }),
    ("01", |at, _| format!("{:02}", at.month)),
    ("02", |at, _| format!("{:02}", at.day)),
    ("03", |at, _| format!("{:02}", (at.hour + 11) % 12 + 1)),
    ("04", |at, _| format!("{:02}", at.minute)),
    ("05", |at, _| format!("{:02}", at.second)),
    ("06", |at, _| format!("{:02}", at.year % 100)),
    ("15", |at, _| format!("{:02}", at.hour)),
    ("PM", |at, _| if at.hour < 12 { "AM".to_owned() } else { "PM".to_owned() }),
    ("pm", |at, _| if at.hour < 12 { "am".to_owned() } else { "pm".to_owned() }),
    ("_2", |at, _| format!("{:2}", at.day)),
    ("1", |at, _| at.month.to_string()),
    ("2", |at, _| at.day.to_string()),
    ("3", |at, _| ((at.hour + 11) % 12 + 1).to_string()),
    ("4", |at, _| at.minute.to_string()),
    ("5", |at, _| at.second.to_string()),
];

fn zone(offset_s: i32, between: &str) -> String {
    let sign = if offset_s < 0 { '-' } else { '+' };
    let minutes = offset_s.abs() / 60;
    format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
}

fn random_text(count: usize, letters: &[u8], random: &mut Stream) -> DataValue {
    let letter = |_| char::from(letters[random.below(letters.len() as u64) as usize]);
    DataValue::Text((0..count).map(letter).collect())
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

#[cfg(test)]
mod tests {
    use super::super::template::{MethodFacts, Template};
    use super::*;
    use units::{Purpose, Seed};

    fn result(expression: &str) -> Result<String, String> {
        let mut data = CallData {
            method: &MethodFacts::default(),
            worker: "g0c0".to_owned(),
            number: 3,
            // 2027-01-15 08:00:00
            unix_ns: 1_800_000_000_000_000_000,
            utc_offset_s: 0,
            uuid: String::new(),
            random: Seed(1).stream(Purpose::Scripts, 0),
        };
        Template::parse(&format!("{{{{{expression}}}}}"), true)?.execute(&mut data)
    }

    /// Recorded with ghz 0.120.0, which has Sprig 3.2.3.
    const RECORDED: &[(&str, &str)] = &[
        ("title `hello big world`", "Hello Big World"),
        ("untitle `Hello Big`", "hello big"),
        ("trimAll `$` `$5.00$`", "5.00"),
        ("trimSuffix `-` `a-`", "a"),
        ("trimPrefix `-` `-a`", "a"),
        ("nospace `h e l  lo`", "hello"),
        ("substr 0 5 `hello world`", "hello"),
        ("substr 2 4 `hello`", "ll"),
        ("trunc 3 `hello`", "hel"),
        ("trunc -3 `hello`", "llo"),
        ("contains `ell` `hello`", "true"),
        ("hasPrefix `he` `hello`", "true"),
        ("hasSuffix `lo` `hello`", "true"),
        ("squote 1 `a`", "'1' 'a'"),
        ("cat `a` 1 `b`", "a 1 b"),
        ("plural `one` `many` 1", "one"),
        ("plural `one` `many` 3", "many"),
        ("b64dec `aGk=`", "hi"),
        ("floor 3.7", "3"),
        ("ceil 3.2", "4"),
        ("round 3.14159 2", "3.14"),
        ("round 2.5 0", "3"),
        ("float64 `2.5`", "2.5"),
        ("int `7`", "7"),
        ("int64 3.9", "3"),
        ("atoi `x`", "0"),
        ("add 1 2 3", "6"),
        ("sub 5 7", "-2"),
        ("mul 2 3 4", "24"),
        ("div 7 2", "3"),
        ("mod 7 2", "1"),
        ("max 1 9 3", "9"),
        ("min 4 2 8", "2"),
        ("biggest 1 5", "5"),
        ("list 1 2 `a`", "[1 2 a]"),
        ("first (list 4 5)", "4"),
        ("last (list 4 5)", "5"),
        ("rest (list 4 5 6)", "[5 6]"),
        ("initial (list 4 5 6)", "[4 5]"),
        ("reverse (list 1 2 3)", "[3 2 1]"),
        ("uniq (list 1 1 2)", "[1 2]"),
        ("has 2 (list 1 2)", "true"),
        ("append (list 1) 2", "[1 2]"),
        ("concat (list 1) (list 2 3)", "[1 2 3]"),
        ("sortAlpha (list `b` `a`)", "[a b]"),
        ("join `-` (list 1 2 3)", "1-2-3"),
        ("splitList `,` `a,b,c`", "[a b c]"),
        ("until 4", "[0 1 2 3]"),
        ("untilStep 3 9 3", "[3 6]"),
        ("default `x` ``", "x"),
        ("default `x` `y`", "y"),
        ("empty 0", "true"),
        ("coalesce 0 `` 7", "7"),
        ("ternary `y` `n` true", "y"),
        ("ternary `y` `n` false", "n"),
        ("printf `%s %d%%` `x` 3", "x 3%"),
        ("len `hello`", "5"),
        ("len (list 1 2)", "2"),
        ("index (list 5 6) 1", "6"),
        ("eq 1 1", "true"),
        ("ne `a` `b`", "true"),
        ("lt 1 2", "true"),
        ("gt 1 2", "false"),
        ("and 1 0", "0"),
        ("or 0 5", "5"),
        ("not true", "false"),
        ("indent 2 `a`", "  a"),
        ("toString 5", "5"),
        ("repeat 3 `ab`", "ababab"),
        ("replace `a` `b` `aaa`", "bbb"),
        ("lower `ABC`", "abc"),
        ("add1 4", "5"),
        ("date `2006-01-02` 0", "1970-01-01"),
        ("unixEpoch now | len", "10"),
        ("print 1 2 `a`", "1 2a"),
        ("upper `abc` | lower | title", "Abc"),
        ("1.5", "1.5"),
        ("true", "true"),
        ("trim ` a `", "a"),
        ("floor 3", "3"),
    ];

    #[test]
    fn results_are_those_of_ghz() {
        for (expression, expected) in RECORDED {
            assert_eq!(result(expression).as_deref(), Ok(*expected), "{expression}");
        }
    }

    #[test]
    fn texts_with_quotes_and_times_have_go_s_form() {
        for (expression, expected) in [
            ("printf `%05d|%-4s|%q|%.2f|%v` 42 `a` `b` 1.5 true", "00042|a   |\"b\"|1.50|true"),
            ("printf `%d` `x`", "%!d(string=x)"),
            ("toJson (list 1 `a` true)", "[1,\"a\",true]"),
            ("quote `a` 1", "\"a\" \"1\""),
            ("now | date `Mon Jan _2 15:04:05 MST 2006`", "Fri Jan 15 08:00:00 UTC 2027"),
            ("now | date `02.1.06 3:04 PM Z07:00`", "15.1.27 8:00 AM Z"),
            ("htmlDate now", "2027-01-15"),
            ("unixEpoch now", "1800000000"),
        ] {
            assert_eq!(result(expression).as_deref(), Ok(expected), "{expression}");
        }
        assert_eq!(result("randAscii 12").unwrap().len(), 12);
    }

    #[test]
    fn faults_have_the_words_of_go() {
        for (expression, part) in [
            ("upper", "wrong number of args for upper: want 1 got 0"),
            ("div 1 0", "error calling div: runtime error: integer divide by zero"),
            ("first (list)", "index out of range"),
            ("env `HOME`", "function \"env\" not defined"),
            ("1 | true", "non executable command"),
        ] {
            let why = result(expression).unwrap_err();
            assert!(why.contains(part), "{expression}: {why}");
        }
    }
}
