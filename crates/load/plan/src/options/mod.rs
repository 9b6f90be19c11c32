//! The option table: one row defines an option of `run` or a key of the plan file.
//!
//! The rows define the command line with its help and completions (the program builds clap's
//! arguments from them), the effect of a given option on the plan, both directions of the plan
//! file, the bounds of values, and the page of options in the guide. Rules between two options are
//! functions in [`validate`](crate::validate).

mod connection;
pub(crate) mod field;
pub(crate) mod grammar;
mod load;
mod request;
mod rest;
mod scalar;
mod token;
mod websocket;

pub(crate) use field::{KeyValue, PlanField, Shape};

use crate::{FileSource, Order, Plan, Secrets};
pub(crate) use scalar::Scalar;
use units::ParseError;
use wan::TraceSource;

/// An option of `run`, a key of the plan file, or, most often, both.
pub struct Setting {
    /// The option without its dashes; empty if the key has no option.
    pub name: &'static str,
    /// One-letter option.
    pub short: Option<char>,
    /// Value placeholder in help: `TIME`; empty for a switch.
    pub value: &'static str,
    /// Value that an option without a value sets.
    pub means: &'static str,
    /// The value of an option whose value is optional: `--follow`, `--follow=3`.
    pub omitted: Option<&'static str>,
    /// Accepted values, if there are few.
    pub choices: &'static [&'static str],
    /// The value names a file of this machine.
    pub is_file: bool,
    /// Names of options that contradict this one, with any value.
    pub without: &'static [&'static str],
    /// Name of an option that this one requires.
    pub needs: Option<&'static str>,
    /// Help section.
    pub heading: &'static str,
    /// Shown by `-h` too; other options only by `--help`.
    pub common: bool,
    /// Short help.
    pub help: &'static str,
    /// Long help.
    pub more: &'static str,
    /// The page of the guide that explains the option, without `.md`.
    pub page: &'static str,
    /// Location in the plan, and the grammar of the values.
    pub(crate) field: PlanField,
    /// True if the row is read after the other rows, because it depends on their values.
    pub(crate) late: bool,
    /// Minimum and maximum (times in seconds), and the error for values outside: it follows the
    /// option's name, with the value for `{}`.
    pub bounds: &'static [Bound],
    /// Decides when a printed plan has the key; always for most rows.
    pub(crate) shown: fn(&Plan) -> bool,
}

/// Bounds of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    pub least: f64,
    pub most: f64,
    pub text: &'static str,
}

const fn within(least: f64, most: f64, text: &'static str) -> Bound {
    Bound { least, most, text }
}

const fn least(least: f64, text: &'static str) -> Bound {
    within(least, f64::INFINITY, text)
}

const fn most(most: f64, text: &'static str) -> Bound {
    within(f64::NEG_INFINITY, most, text)
}

/// Defaults of a row: an option without a value, shown only by `--help`.
const SETTING: Setting = Setting {
    name: "",
    short: None,
    value: "",
    means: "true",
    omitted: None,
    choices: &[],
    is_file: false,
    without: &[],
    needs: None,
    heading: "",
    common: false,
    help: "",
    more: "",
    page: "",
    field: field::NO_FIELD,
    late: false,
    bounds: &[],
    shown: |_| true,
};

/// Source of values given by name.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub files: &'a dyn FileSource,
    pub traces: &'a dyn TraceSource,
}

impl std::fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inputs")
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.label(), self.field.key)
    }
}

impl Setting {
    /// Returns table and key in the plan file, such as `connection.reconnect_pause`. The table is
    /// empty for a key outside all tables, and for a row without a key.
    pub fn key(&self) -> (&'static str, &'static str) {
        self.field.key.split_once('.').unwrap_or(("", self.field.key))
    }

    /// Returns the name in messages: `-d`, `--reconnect-pause`, or the key if the row has no
    /// option.
    pub fn label(&self) -> String {
        match self.short {
            Some(letter) => format!("-{letter}"),
            None if self.name.is_empty() => self.key().1.to_owned(),
            None => format!("--{}", self.name),
        }
    }

    /// Returns whether the option may be repeated, each use adding to the previous ones.
    pub fn is_repeated(&self) -> bool {
        self.field.adds
    }

    /// Checks whether the option accepts the value; files are read only when the value is put into
    /// a plan.
    ///
    /// # Errors
    /// Fails if the value is invalid.
    pub fn check(&self, text: &str, inputs: Inputs<'_>) -> Result<(), ParseError> {
        (self.field.check)(text, inputs)
    }

    /// Returns the error for a plan in which the value is out of bounds.
    fn fault(&self, plan: &Plan) -> Option<String> {
        let (_, KeyValue::One(value)) = (self.field.show)(plan, Secrets::Masked) else {
            return None;
        };
        let text = value.typed()?;
        let amount = match &value {
            Scalar::Text(text) => {
                let seconds = units::parse_duration(text).map(|span| span.as_secs_f64());
                seconds.or_else(|_| units::parse_rate(text).map(|it| it.0)).unwrap_or(f64::MAX)
            }
            number => number.amount(),
        };
        let wrong =
            self.bounds.iter().find(|bound| !(bound.least..=bound.most).contains(&amount))?;
        Some(format!("{} {}", self.label(), wrong.text.replace("{}", &text)))
    }
}

/// Returns all rows, in the order of help, in which they are also read.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    [
        load::LOADS,
        load::ENDS,
        request::SOURCES,
        request::SETTINGS,
        token::SETTINGS,
        rest::EXPECTATIONS,
        rest::GRPC,
        rest::TIME_LIMITS,
        connection::SETTINGS,
        websocket::SETTINGS,
        rest::TLS,
        rest::MEASURING,
        rest::MACHINE,
    ]
    .into_iter()
    .flatten()
}

/// Puts options into the plan: names and typed values.
///
/// # Errors
/// Fails for an invalid value, or an unreadable file, with the option's name.
pub fn put_typed(
    plan: &mut Plan,
    typed: &[(&'static str, String)],
    inputs: Inputs<'_>,
) -> Result<(), (&'static str, ParseError)> {
    // in the order of the table, not of the command line
    let given = all().filter(|row| !row.name.is_empty()).flat_map(|row| {
        let texts = typed.iter().filter(|(name, _)| *name == row.name).map(|(_, text)| text);
        texts.map(move |text| Given {
            row,
            ending: row.field.typed,
            value: KeyValue::One(Scalar::text(text)),
        })
    });
    put(plan, given.collect(), inputs).map_err(|(row, _, why)| (row.name, why))
}

/// Given value of a row, for its key with this suffix.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) row: &'static Setting,
    pub(crate) ending: &'static str,
    pub(crate) value: KeyValue,
}

impl Given {
    fn ends_run(&self) -> bool {
        match self.row.field.key {
            "stop.duration" | "stop.requests" | "stop.bytes" => true,
            "order" => self.value == KeyValue::One(Scalar::text("once")),
            _ => false,
        }
    }
}

/// Writes the given values into the plan. A given end of the run replaces existing ends.
///
/// # Errors
/// Fails with the first value that its row refuses: the row, the suffix of its key, and the reason.
pub(crate) fn put(
    plan: &mut Plan,
    given: Vec<Given>,
    inputs: Inputs<'_>,
) -> Result<(), (&'static Setting, &'static str, ParseError)> {
    let ends = given.iter().any(Given::ends_run);
    let has_duration = given.iter().any(|it| it.row.field.key == "stop.duration");
    let put = |plan: &mut Plan, Given { row, ending, value }| {
        (row.field.read)(plan, ending, value, inputs).map_err(|why| (row, ending, why))
    };
    let (late, first): (Vec<Given>, Vec<Given>) = given.into_iter().partition(|it| it.row.late);
    first.into_iter().try_for_each(|it| put(plan, it))?;
    if ends {
        (plan.stop.duration, plan.stop.requests, plan.stop.bytes) = (None, None, None);
    }
    late.into_iter().try_for_each(|it| put(plan, it))?;
    // stages determine the length of a run without another end
    let stop = &mut plan.stop;
    let endless = (stop.duration, stop.requests, stop.bytes) == (None, None, None);
    if endless && !has_duration && plan.order != Order::Once {
        stop.duration = plan.stages.as_ref().and_then(crate::stages::span_of);
    }
    Ok(())
}

/// Returns the row of an option.
pub fn named(name: &str) -> Option<&'static Setting> {
    all().find(|row| row.name == name)
}

/// Returns the rows of a table of the plan file, one for each key, in reading order.
pub(crate) fn rows_of(table: &str) -> Vec<&'static Setting> {
    let mut rows: Vec<&Setting> = Vec::new();
    for row in all().filter(|row| row.key().0 == table && !row.field.key.is_empty()) {
        // `--close` is an alias of `--calls 1`
        if rows.iter().all(|known| known.field.key != row.field.key) {
            rows.push(row);
        }
    }
    rows
}

/// Returns the rows in printing order.
pub(crate) fn keys_of(table: &str) -> Vec<&'static Setting> {
    let mut rows = rows_of(table);
    let first = PRINTED_FIRST.iter().find(|(known, _)| *known == table).map_or("", |it| it.1);
    let place = |key: &str| first.split(' ').position(|known| known == key).unwrap_or(usize::MAX);
    rows.sort_by_key(|row| place(row.key().1));
    rows
}

/// Returns the values out of bounds in a table of the plan file, each with its option.
pub(crate) fn faults(plan: &Plan, table: &str) -> Vec<(String, String)> {
    let fault = |row: &Setting| Some((row.label(), row.fault(plan)?));
    keys_of(table).into_iter().filter_map(fault).collect()
}

/// Tables whose keys were printed in another order before this option table existed; unlisted keys
/// follow in the order of the rows. The order is kept so that stored plans can be compared with new
/// ones line by line.
const PRINTED_FIRST: &[(&str, &str)] = &[
    (
        "load",
        "users rate rate_to stages arrivals burst at session think visits parallel lead one_connection \
         retry lengths own_order pace pace_at",
    ),
    ("request", "method http headers body user bearer digest aws_sigv4"),
    (
        "connection",
        "calls pipeline streams group depth per_user tries resend unix resolve bind send_buffer \
         recv_buffer nodelay reset reconnect_pause proxy family addresses",
    ),
    ("tls", "insecure ca cert key resumption early_data user_sessions sni"),
    (
        "measure",
        "repeat slo quantiles conforming conforming_heads interval tcp_info_share doubt_max",
    ),
];

#[cfg(test)]
mod tests;
