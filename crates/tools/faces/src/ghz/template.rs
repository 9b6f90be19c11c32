//! Call data of ghz in the notation of Go's `text/template`: fields, variables, functions,
//! pipelines, `if`, `range`, `with`, and templates by name.

mod reader;
#[cfg(test)]
mod tests;

use super::functions::{DataValue, Function};
use super::go::rfc3339;
use reader::TemplateReader;
use std::collections::BTreeMap;
use units::Stream;

/// A text with actions.
#[derive(Clone, Debug)]
pub(super) struct Template {
    parts: Vec<TemplatePart>,
    /// Templates by name, of `define` and `block`.
    named: BTreeMap<String, Vec<TemplatePart>>,
}

#[derive(Clone, Debug)]
enum TemplatePart {
    Text(String),
    /// A pipeline; its value is printed unless it sets a variable.
    Action(Pipeline),
    If(Pipeline, Branches),
    With(Pipeline, Branches),
    Range(Pipeline, Branches),
    Break,
    Continue,
    /// Template of this name, with its data.
    Named(String, Option<Pipeline>),
}

/// Parts for a nonempty value (`then`), and for an empty one (`otherwise`).
#[derive(Clone, Debug, Default)]
struct Branches {
    then: Vec<TemplatePart>,
    otherwise: Vec<TemplatePart>,
}

/// A value, and the variables that it sets.
#[derive(Clone, Debug)]
struct Pipeline {
    variables: Vec<String>,
    /// True for a declaration (`:=`), false for an assignment (`=`).
    declares: bool,
    value: Expr,
}

#[derive(Clone, Debug)]
enum Expr {
    /// The current value of `.`: the call data, an item of `range`, or the value of `with`.
    Dot,
    /// Variable by name; `$` is the data of the template.
    Variable(String),
    /// Field of the data of the call.
    Field(Box<Expr>, DataField),
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

            fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
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
/// Maximum depth of templates that contain templates.
const DEPTH_MAX: usize = 100;
/// Maximum number of parts that one execution processes.
const STEPS_MAX: usize = 1 << 20;

impl Template {
    /// Reads a text. `functions`: whether functions are known.
    ///
    /// # Errors
    /// Fails with Go's message about the first fault.
    pub(super) fn parse(text: &str, functions: bool) -> Result<Template, String> {
        TemplateReader::new(text, functions).template()
    }

    /// Returns whether the template contains an action outside of control structures. ghz executes
    /// only those templates.
    pub(super) fn has_actions(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Action(_)))
    }

    /// Returns whether the template contains anything other than text.
    pub(super) fn has_parts(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, TemplatePart::Text(_)))
    }

    /// Returns the text for one call.
    ///
    /// # Errors
    /// Fails if a function gets invalid arguments, a value lacks a field, or a limit is exceeded.
    pub(super) fn execute(&self, data: &mut CallData<'_>) -> Result<String, String> {
        let variables = vec![("$".to_owned(), DataValue::Call)];
        let mut run =
            TemplateRun { named: &self.named, data, variables, out: String::new(), steps: 0 };
        run.parts(&self.parts, &DataValue::Call, 0)?;
        Ok(run.out)
    }
}

/// Reason why the execution of a list of parts ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartsEnd {
    Done,
    Break,
    Continue,
}

/// Items of `range`.
enum RangeItems {
    List(Vec<DataValue>),
    /// The numbers from 0 up to this one, exclusive.
    Below(i64),
}

impl RangeItems {
    fn at(&self, index: usize) -> Option<DataValue> {
        match self {
            RangeItems::List(items) => items.get(index).cloned(),
            RangeItems::Below(end) => {
                let number = i64::try_from(index).ok().filter(|number| number < end);
                number.map(DataValue::Number)
            }
        }
    }
}

/// Execution of a template.
struct TemplateRun<'a, 'b> {
    named: &'a BTreeMap<String, Vec<TemplatePart>>,
    data: &'a mut CallData<'b>,
    /// Variables in the order of their declarations.
    variables: Vec<(String, DataValue)>,
    out: String,
    steps: usize,
}

impl TemplateRun<'_, '_> {
    fn parts(
        &mut self,
        parts: &[TemplatePart],
        dot: &DataValue,
        depth: usize,
    ) -> Result<PartsEnd, String> {
        let declared = self.variables.len();
        for part in parts {
            let end = self.part(part, dot, depth)?;
            if end != PartsEnd::Done {
                self.variables.truncate(declared);
                return Ok(end);
            }
        }
        self.variables.truncate(declared);
        Ok(PartsEnd::Done)
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        match self.steps > STEPS_MAX || self.out.len() > STEPS_MAX {
            true => Err(format!("template: {WORDS}: the text of one call exceeds 1 MiB")),
            false => Ok(()),
        }
    }

    fn part(
        &mut self,
        part: &TemplatePart,
        dot: &DataValue,
        depth: usize,
    ) -> Result<PartsEnd, String> {
        self.step()?;
        match part {
            TemplatePart::Text(text) => self.out.push_str(text),
            TemplatePart::Action(pipeline) => {
                let value = self.pipeline(pipeline, dot)?;
                if pipeline.variables.is_empty() {
                    self.out.push_str(&printable(&value)?.text());
                }
            }
            TemplatePart::If(pipeline, branches) => {
                let declared = self.variables.len();
                let chosen = match self.pipeline(pipeline, dot)?.is_empty() {
                    false => &branches.then,
                    true => &branches.otherwise,
                };
                let end = self.parts(chosen, dot, depth)?;
                self.variables.truncate(declared);
                return Ok(end);
            }
            TemplatePart::With(pipeline, branches) => {
                let declared = self.variables.len();
                let value = self.pipeline(pipeline, dot)?;
                let end = match value.is_empty() {
                    false => self.parts(&branches.then, &value, depth)?,
                    true => self.parts(&branches.otherwise, dot, depth)?,
                };
                self.variables.truncate(declared);
                return Ok(end);
            }
            TemplatePart::Range(pipeline, branches) => {
                self.range(pipeline, branches, dot, depth)?
            }
            TemplatePart::Break => return Ok(PartsEnd::Break),
            TemplatePart::Continue => return Ok(PartsEnd::Continue),
            TemplatePart::Named(name, pipeline) => {
                self.named(name, pipeline.as_ref(), dot, depth)?
            }
        }
        Ok(PartsEnd::Done)
    }

    /// Executes the parts for each item of a list, or for each number from 0 up to a limit.
    fn range(
        &mut self,
        pipeline: &Pipeline,
        branches: &Branches,
        dot: &DataValue,
        depth: usize,
    ) -> Result<(), String> {
        let declared = self.variables.len();
        let items = match self.value(&pipeline.value, dot)? {
            DataValue::List(items) => RangeItems::List(items),
            DataValue::Number(count) if pipeline.variables.len() > 1 => {
                return Err(format!(
                    "template: {WORDS}: can't use {count} to iterate over more than one variable"
                ));
            }
            DataValue::Number(count) => RangeItems::Below(count),
            other => {
                let text = other.text();
                return Err(format!("template: {WORDS}: range can't iterate over {text}"));
            }
        };
        let mut count = 0;
        while let Some(item) = items.at(count) {
            self.step()?;
            let index = DataValue::Number(count as i64);
            count += 1;
            match &pipeline.variables[..] {
                [] => {}
                [only] => self.set(only, item.clone(), pipeline.declares)?,
                [first, second, ..] => {
                    self.set(first, index, pipeline.declares)?;
                    self.set(second, item.clone(), pipeline.declares)?;
                }
            }
            let end = self.parts(&branches.then, &item, depth)?;
            self.variables.truncate(declared);
            if end == PartsEnd::Break {
                break;
            }
        }
        if count == 0 {
            self.parts(&branches.otherwise, dot, depth)?;
        }
        Ok(())
    }

    /// Executes the template of this name; its only variable is `$`.
    fn named(
        &mut self,
        name: &str,
        pipeline: Option<&Pipeline>,
        dot: &DataValue,
        depth: usize,
    ) -> Result<(), String> {
        if depth >= DEPTH_MAX {
            return Err(format!(
                "template: {WORDS}: exceeded maximum template depth ({DEPTH_MAX})"
            ));
        }
        let value = match pipeline {
            Some(pipeline) => self.pipeline(pipeline, dot)?,
            None => DataValue::Text("<no value>".to_owned()),
        };
        let named = self.named;
        let Some(parts) = named.get(name) else {
            return Err(format!("template: {WORDS}: template {name:?} not defined"));
        };
        let own = vec![("$".to_owned(), value.clone())];
        let outer = std::mem::replace(&mut self.variables, own);
        let end = self.parts(parts, &value, depth + 1);
        self.variables = outer;
        end.map(drop)
    }

    /// Evaluates a pipeline, assigns the value to its variables and returns it.
    fn pipeline(&mut self, pipeline: &Pipeline, dot: &DataValue) -> Result<DataValue, String> {
        let value = self.value(&pipeline.value, dot)?;
        for name in &pipeline.variables {
            self.set(name, value.clone(), pipeline.declares)?;
        }
        Ok(value)
    }

    fn set(&mut self, name: &str, value: DataValue, declares: bool) -> Result<(), String> {
        if declares {
            self.variables.push((name.to_owned(), value));
            return Ok(());
        }
        let known = self.variables.iter_mut().rev().find(|(known, _)| known == name);
        let (_, variable) =
            known.ok_or_else(|| format!("template: {WORDS}: undefined variable: {name}"))?;
        *variable = value;
        Ok(())
    }

    fn value(&mut self, expr: &Expr, dot: &DataValue) -> Result<DataValue, String> {
        match expr {
            Expr::Dot => Ok(dot.clone()),
            Expr::Variable(name) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                known
                    .map(|(_, value)| value.clone())
                    .ok_or_else(|| format!("template: {WORDS}: undefined variable {name:?}"))
            }
            Expr::Field(of, field) => match self.value(of, dot)? {
                DataValue::Call => Ok(field_of(*field, self.data)),
                other => Err(format!(
                    "template: {WORDS}: can't evaluate field {} in type {}",
                    field.name(),
                    other.kind()
                )),
            },
            Expr::Text(text) => Ok(DataValue::Text(text.clone())),
            Expr::Number(number) => Ok(DataValue::Number(*number)),
            Expr::Float(number) => Ok(DataValue::Float(*number)),
            Expr::Switch(on) => Ok(DataValue::Switch(*on)),
            Expr::Call(function, arguments) => self.call(function, arguments, dot),
        }
    }

    fn call(
        &mut self,
        function: &'static Function,
        arguments: &[Expr],
        dot: &DataValue,
    ) -> Result<DataValue, String> {
        let mut values = Vec::new();
        for argument in arguments {
            let value = self.value(argument, dot)?;
            let ends = function.ends_at(&value);
            values.push(printable(&value)?.clone());
            if ends {
                break;
            }
        }
        function.call(&values, self.data)
    }
}

/// Returns the value. Fails for the call data as a whole, which have no text form.
fn printable(value: &DataValue) -> Result<&DataValue, String> {
    match value {
        DataValue::Call => Err(format!(
            "template: {WORDS}: {{{{.}}}} cannot be printed; name a field, such as \
             {{{{.RequestNumber}}}}"
        )),
        value => Ok(value),
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
