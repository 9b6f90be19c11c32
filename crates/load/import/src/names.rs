//! Converts names of another tool's variables to names of the plan: variables, captures, columns of
//! feeders.

use crate::draft::{DataTable, LeftOutList};
use crate::text::{DraftPart, Maker, Text};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum nesting depth of variables whose values contain variables.
const EXPANSION_MAX: usize = 8;
/// Maximum number of feeders and columns of one plan; below the limit for plans.
const FEEDERS_MAX: usize = 56;
const COLUMNS_MAX: usize = 250;

/// Feeder with generated rows.
#[derive(Debug)]
pub(crate) struct MadeFeeder {
    pub(crate) name: String,
    pub(crate) columns: Vec<(String, Maker)>,
    pub(crate) random: bool,
    pub(crate) wraps: bool,
}

/// Resolves names while the steps are written in order.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Initial values, by the file's names.
    vars: BTreeMap<String, Text>,
    /// Columns of feeders, by the file's names.
    columns: BTreeMap<String, String>,
    /// Names that any step captures.
    captured_ever: BTreeSet<String>,
    /// Names that an earlier step captures.
    captured: BTreeSet<String>,
    /// Names that live as long as their user.
    kept: BTreeSet<String>,
    plan_names: BTreeMap<String, String>,
    /// Variables that the plan uses.
    pub(crate) used: BTreeMap<String, String>,
    pub(crate) made: Vec<MadeFeeder>,
    pub(crate) left_out: LeftOutList,
    /// True if the current steps belong to no user: `[[setup]]` and `[[teardown]]`.
    pub(crate) without_user: bool,
    constants: u64,
}

impl Names {
    pub(crate) fn new(
        vars: Vec<(String, Text)>,
        made: Vec<(String, Maker)>,
        tables: &[DataTable],
    ) -> Names {
        let mut names = Names { vars: vars.into_iter().collect(), ..Names::default() };
        for table in tables {
            for column in &table.columns {
                let place = format!("{}.{column}", table.name);
                names.columns.entry(column.clone()).or_insert(place.clone());
                names.columns.insert(place.clone(), place);
            }
        }
        for (name, maker) in made {
            let place = names.column_of(&maker, Some(&name));
            names.columns.insert(name, place);
        }
        names
    }

    pub(crate) fn will_capture(&mut self, name: &str, kept: bool) {
        self.captured_ever.insert(name.to_owned());
        if kept {
            self.kept.insert(name.to_owned());
        }
    }

    pub(crate) fn capture(&mut self, name: &str) -> String {
        self.captured.insert(name.to_owned());
        self.plan_name(name)
    }

    /// Returns the names captured so far, to restore them at the end of a journey.
    pub(crate) fn mark(&self) -> BTreeSet<String> {
        self.captured.clone()
    }

    pub(crate) fn restore(&mut self, mark: BTreeSet<String>) {
        self.captured = mark;
    }

    fn plan_name(&mut self, name: &str) -> String {
        if let Some(known) = self.plan_names.get(name) {
            return known.clone();
        }
        let plain =
            |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
        let mut chosen: String = name.chars().map(plain).take(60).collect();
        while chosen.contains("__") {
            chosen = chosen.replace("__", "_");
        }
        if chosen.trim_matches('_').is_empty() {
            "value".clone_into(&mut chosen);
        }
        while self.plan_names.values().any(|known| *known == chosen) {
            chosen.push('_');
        }
        self.plan_names.insert(name.to_owned(), chosen.clone());
        chosen
    }

    fn is_captured(&self, name: &str) -> bool {
        self.captured.contains(name) || self.kept.contains(name) && !self.without_user
    }

    /// Replaces names of constants in the text by their values.
    pub(crate) fn expanded(&self, text: &Text, depth: usize) -> Text {
        let mut out = Text::default();
        for part in &text.0 {
            let value = match part {
                DraftPart::Named(name)
                    if !self.captured_ever.contains(name) && !self.columns.contains_key(name) =>
                {
                    self.vars.get(name).filter(|_| depth < EXPANSION_MAX)
                }
                _ => None,
            };
            match value {
                Some(value) => out.append(self.expanded(value, depth + 1)),
                None => out.push(part.clone()),
            }
        }
        out
    }

    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.captured_ever.contains(name)
            || self.columns.contains_key(name)
            || self.vars.contains_key(name)
    }

    /// Returns the plan's name for a value; `None` if the value has several parts.
    pub(crate) fn single(&mut self, name: &str, line: usize) -> Option<String> {
        if self.is_captured(name) {
            return Some(self.plan_name(name));
        }
        if let Some(place) = self.columns.get(name).filter(|_| !self.without_user) {
            return Some(place.clone());
        }
        let value = match self.vars.get(name) {
            Some(value) => self.expanded(value, 1).settled()?,
            None => {
                let why = match self.captured_ever.contains(name) {
                    true => {
                        "it is used before the step that captures it; the plan's [vars] has an empty value"
                    }
                    false => "it has no value in the file; set it in [vars] of the plan",
                };
                self.left_out.add(line, format!("variable {name}"), why);
                String::new()
            }
        };
        let mut plan_name = self.plan_name(name);
        if self.captured_ever.contains(name) {
            plan_name.push_str("-initial");
        }
        self.used.insert(plan_name.clone(), value);
        Some(plan_name)
    }

    /// Renders the text for the plan.
    pub(crate) fn render(&mut self, text: &Text, line: usize) -> String {
        let mut out = String::new();
        self.put(text, (line, false), 0, &mut out);
        out
    }

    /// Appends a text to `out`; `in_json` if it is part of a JSON string.
    fn put(&mut self, text: &Text, at: (usize, bool), depth: usize, out: &mut String) {
        let (line, in_json) = at;
        let filter = if in_json { "|json" } else { "" };
        for part in &text.0 {
            match part {
                DraftPart::InJson(inner) => self.put(inner, (line, true), depth, out),
                DraftPart::Plain(plain) => {
                    let plain = if in_json { &json_escaped(plain) } else { plain };
                    out.push_str(&plain.replace("{{", "\\{{").replace("${", "\\${"))
                }
                DraftPart::Made(maker) => {
                    let value = self.generate(maker);
                    match (maker, value.strip_suffix("}}")) {
                        // generated values of other kinds need no escaping
                        (Maker::OneOf(_), Some(start)) => {
                            self.insert(&format!("{start}{filter}}}}}"), out)
                        }
                        (Maker::OneOf(_), None) if in_json => out.push_str(&json_escaped(&value)),
                        _ => self.insert(&value, out),
                    }
                }
                DraftPart::Named(name) => match self.single(name, line) {
                    Some(place) => self.insert(&format!("{{{{{place}{filter}}}}}"), out),
                    None => {
                        let value = self.vars.get(name).cloned().unwrap_or_default();
                        if depth < EXPANSION_MAX {
                            self.put(&value, at, depth + 1, out);
                        } else {
                            self.left_out.add(
                                line,
                                format!("variable {name}"),
                                "its value contains itself",
                            );
                        }
                    }
                },
            }
        }
    }

    /// Replaces a backslash or a brace before a name by a variable: otherwise it would become a
    /// part of the name's mark.
    fn insert(&mut self, value: &str, out: &mut String) {
        let mut before = Vec::new();
        while value.starts_with("{{") {
            // the second brace of an escaped pair ends it
            let (mark, name) = match () {
                () if out.ends_with('\\') => ("\\", "backslash"),
                () if out.ends_with('{') && !out.ends_with("\\{{") => ("{", "brace"),
                () => break,
            };
            out.pop();
            self.used.insert(name.to_owned(), mark.to_owned());
            before.push(name);
        }
        before.iter().rev().for_each(|name| out.push_str(&format!("{{{{{name}}}}}")));
        out.push_str(value);
    }

    fn generate(&mut self, maker: &Maker) -> String {
        if self.without_user {
            self.constants += 1;
            return constant_of(maker, self.constants);
        }
        match maker {
            Maker::UserNumber => "{{user.number}}".to_owned(),
            Maker::IterationNumber => "{{iteration.number}}".to_owned(),
            maker => format!("{{{{{}}}}}", self.column_of(maker, None)),
        }
    }

    /// Returns a column that generates the values of `maker`: a new one if there is room, otherwise
    /// an existing one.
    fn column_of(&mut self, maker: &Maker, wanted: Option<&str>) -> String {
        let (feeder, column, random, wraps) = match maker {
            Maker::Uuid => ("made", "uuid", false, false),
            Maker::Hex(_) => ("made", "hex", false, false),
            Maker::Digits(_) => ("made", "digits", false, false),
            Maker::Letters(_) => ("made", "letters", false, false),
            Maker::OneOf(_) => ("made", "choice", false, false),
            Maker::Seconds => ("seconds", "now", false, true),
            Maker::Millis => ("millis", "now", false, true),
            Maker::Range(..) => ("number", "value", true, false),
            Maker::Counter(..) => ("counter", "value", false, true),
            Maker::UserNumber => return "user.number".to_owned(),
            Maker::IterationNumber => return "iteration.number".to_owned(),
        };
        let own = matches!(maker, Maker::Range(..) | Maker::Counter(..));
        let column = wanted.map_or_else(|| column.to_owned(), column_name);
        let name = match own {
            true => format!(
                "{feeder}{}",
                1 + self.made.iter().filter(|it| it.name.starts_with(feeder)).count()
            ),
            false => feeder.to_owned(),
        };
        let full = self.made.len() >= FEEDERS_MAX;
        if own && full {
            let last = self.made.iter().rfind(|it| it.name.starts_with(feeder));
            let place = last.and_then(|it| Some(format!("{}.{}", it.name, it.columns.first()?.0)));
            return place.unwrap_or_else(|| "iteration.number".to_owned());
        }
        let at = match self.made.iter().position(|it| it.name == name) {
            Some(at) => at,
            None => {
                self.made.push(MadeFeeder {
                    name: name.clone(),
                    columns: Vec::new(),
                    random,
                    wraps,
                });
                self.made.len() - 1
            }
        };
        let columns = &mut self.made[at].columns;
        // the clock has one value in an iteration
        let shared = matches!(maker, Maker::Seconds | Maker::Millis);
        if let Some((known, _)) = columns.first().filter(|_| shared) {
            return format!("{name}.{known}");
        }
        if columns.len() >= COLUMNS_MAX
            && let Some((known, _)) = columns.iter().rfind(|(_, one)| one == maker)
        {
            return format!("{name}.{known}");
        }
        let taken = |name: &str| columns.iter().any(|(known, _)| known == name);
        let mut number = 1;
        let mut free = column.clone();
        while taken(&free) {
            number += 1;
            free = format!("{column}{number}");
        }
        columns.push((free.clone(), maker.clone()));
        format!("{name}.{free}")
    }
}

/// Returns a text as it is written inside of a JSON string.
pub(crate) fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn column_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().map(plain).take(60).collect();
    if name.is_empty() { "value".to_owned() } else { name }
}

/// Returns a value for a step that runs once.
fn constant_of(maker: &Maker, number: u64) -> String {
    let digits = |length: usize| {
        let text = number.to_string();
        let length = length.clamp(1, 64);
        format!("{text:0>length$}").chars().take(length).collect::<String>()
    };
    match maker {
        Maker::Uuid => format!("00000000-0000-4000-8000-{number:012x}"),
        Maker::Hex(length) | Maker::Digits(length) => digits(*length),
        Maker::Letters(length) => {
            "abcdefghijklmnopqrstuvwxyz".chars().cycle().take(*length).collect()
        }
        Maker::Range(from, _) | Maker::Counter(from, _) => from.to_string(),
        Maker::OneOf(list) => list.first().cloned().unwrap_or_default(),
        Maker::Seconds => SECONDS.0.to_string(),
        Maker::Millis => MILLIS.0.to_string(),
        Maker::UserNumber | Maker::IterationNumber => "0".to_owned(),
    }
}

/// Ranges that look like times since 1970.
pub(crate) const SECONDS: (i64, i64) = (1_800_000_000, 1_899_999_999);
pub(crate) const MILLIS: (i64, i64) = (1_800_000_000_000, 1_899_999_999_999);
