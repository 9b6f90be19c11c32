//! Checks the values that feeders insert into gRPC messages, before the first call.

use grpc::GrpcMethod;
use plan::check::Text;
use plan::journey::{ColumnLaw, Feeder, FeederRows, ITERATION_NUMBER, USER_NUMBER};
use protocol::grpc::MessageCodec;
use std::collections::BTreeMap;
use units::{Seed, quoted};

/// Maximum number of values of a column that are checked.
const VALUES_MAX: u64 = 100_000;

/// Placeholders for values that are captured during the run. Each fits other types of fields.
const STAND_INS: [&str; 4] = ["0", "true", "", "1970-01-01T00:00:00Z"];

/// Values of a message, by placeholder name.
type MessageValues = BTreeMap<String, String>;

/// Checks that the values of each column that a message inserts fit their field. One column varies
/// at a time; the others have their first value. At most [`VALUES_MAX`] rows of a file are checked.
/// Values captured during the run are replaced by one of [`STAND_INS`]; if none of them fits, the
/// check is skipped.
///
/// # Errors
/// Fails with the feeder, the row and the column of the first value that does not fit its field.
pub(crate) fn check_values(
    text: &Text,
    feeders: &[Feeder],
    method: &GrpcMethod,
) -> Result<(), String> {
    let columns: Vec<FeederColumn<'_>> =
        text.names().filter_map(|name| FeederColumn::find(name, feeders)).collect();
    if columns.is_empty() {
        return Ok(());
    }
    let fits = |values: &MessageValues| {
        let json = text.expand(values)?;
        method.request_body(Some(&json)).map(drop)
    };
    let stand_ins = STAND_INS.map(|stand_in| first_values(text, &columns, stand_in));
    let Some(first) = stand_ins.iter().find(|values| fits(values).is_ok()) else {
        let is_known =
            |name: &str| is_number(name) || columns.iter().any(|column| column.name == name);
        // a message with captured values may fail only because of the placeholders
        return match text.names().all(is_known) {
            true => first_fault(&columns, &stand_ins[0], &fits),
            false => Ok(()),
        };
    };
    let mut values = first.clone();
    for column in &columns {
        for (row, value) in column.values() {
            values.insert(column.name.to_owned(), value);
            fits(&values).map_err(|why| column.fault(row, &why))?;
        }
        values.clone_from(first);
    }
    Ok(())
}

/// Returns the first error among the first values of all columns. If other values of one column
/// fit, that column is named.
fn first_fault(
    columns: &[FeederColumn<'_>],
    first: &MessageValues,
    fits: &dyn Fn(&MessageValues) -> Result<(), String>,
) -> Result<(), String> {
    let Err(why) = fits(first) else { return Ok(()) };
    let other_fits = |column: &&FeederColumn<'_>| {
        let mut values = first.clone();
        column.values().take(OTHERS_MAX).any(|(_, value)| {
            values.insert(column.name.to_owned(), value);
            fits(&values).is_ok()
        })
    };
    match (columns.iter().find(other_fits), columns) {
        (Some(column), _) | (None, [column]) => Err(column.fault(1, &why)),
        (None, _) => {
            let names: Vec<String> = columns.iter().map(|column| quoted(column.name)).collect();
            Err(format!("the first values of {}: {why}", names.join(", ")))
        }
    }
}

/// Maximum number of other values that are tried to find the column with the error.
const OTHERS_MAX: usize = 100;

/// Returns values for a message: 0 for numbers of users and iterations, the first value of each
/// column, and `stand_in` for all other names.
fn first_values(text: &Text, columns: &[FeederColumn<'_>], stand_in: &str) -> MessageValues {
    let value = |name: &str| {
        let column = columns.iter().find(|column| column.name == name);
        match column.and_then(|column| column.values().next()) {
            Some((_, value)) => value,
            None if is_number(name) => "0".to_owned(),
            None => stand_in.to_owned(),
        }
    };
    text.names().map(|name| (name.to_owned(), value(name))).collect()
}

fn is_number(name: &str) -> bool {
    matches!(name, ITERATION_NUMBER | USER_NUMBER)
}

/// Column of a feeder that a message inserts.
struct FeederColumn<'a> {
    /// `feeder.column`, as in the message.
    name: &'a str,
    feeder: &'a Feeder,
    number: usize,
    index: usize,
}

impl<'a> FeederColumn<'a> {
    fn find(name: &'a str, feeders: &'a [Feeder]) -> Option<FeederColumn<'a>> {
        let (of, column) = name.split_once('.')?;
        let number = feeders.iter().position(|feeder| feeder.name == of)?;
        let feeder = &feeders[number];
        let index = feeder.columns.iter().position(|known| known == column)?;
        Some(FeederColumn { name, feeder, number, index })
    }

    /// Returns the values to check with their rows, from 1. For a file, these are all values. For a
    /// rule, they are the listed values, the ends of the range, or one generated value.
    fn values(&self) -> Box<dyn Iterator<Item = (u64, String)> + '_> {
        let rows = self.feeder.count().unwrap_or(1).min(VALUES_MAX);
        match &self.feeder.rows {
            FeederRows::Table(_) => {
                let cell = |row| Some((row + 1, self.feeder.cell(row, self.index)?.to_owned()));
                Box::new((0..rows).filter_map(cell))
            }
            FeederRows::Generated(laws) => match laws.get(self.index) {
                Some(ColumnLaw::OneOf(list)) => Box::new((1..).zip(list.iter().cloned())),
                Some(ColumnLaw::Range(from, to)) => {
                    Box::new((1..).zip([from.to_string(), to.to_string()]))
                }
                _ => {
                    let mut values = Vec::new();
                    self.feeder.generate(Seed(0), self.number, 0, &mut values);
                    Box::new((1..).zip(values.into_iter().nth(self.index)))
                }
            },
        }
    }

    fn fault(&self, row: u64, why: &str) -> String {
        let (feeder, column) =
            (quoted(&self.feeder.name), quoted(&self.feeder.columns[self.index]));
        let place = match self.feeder.rows {
            FeederRows::Table(_) => format!("row {row} of feeder {feeder}, column {column}"),
            FeederRows::Generated(_) => {
                format!("value {row} of column {column} of feeder {feeder}")
            }
        };
        format!("{place}: {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grpc::Schema;

    const PROTO: &str = "syntax = 'proto3'; package t; message M { int32 n = 1; string v = 2; }\n\
        service S { rpc One(M) returns (M); }";

    /// Checks the message of a step with these feeders.
    fn checked(message: &str, feeders: &str) -> Result<(), String> {
        let text = format!(
            "version = 1\nurl = 'grpc://127.0.0.1:1'\n{feeders}\n[[journey]]\nname = 'j'\n\
             [[journey.step]]\nname = 'a'\nurl = '/a'\ncapture = {{ got = {{ json = '/x' }} }}\n\
             [[journey.step]]\nname = 'one'\ngrpc = 't.S/One'\nmessage = '{message}'\n"
        );
        let plan = plan::from_toml(&text, &plan::NoFiles).expect("a plan");
        let source = |name: &str| (name == "t.proto").then(|| PROTO.to_owned());
        let method = Schema::compile("t.proto", &source).expect("a schema").method("/t.S/One");
        let journeys = plan.journeys.as_ref().expect("journeys");
        let plan::check::Body::Json(text) = &journeys.steps()[1].ask.body else {
            panic!("the step has no message")
        };
        check_values(text, &journeys.feeders, &method.expect("a method"))
    }

    fn generated(values: &str) -> String {
        format!("[[feeder]]\nname = 'f'\ngenerate = {{ n = [{values}], v = ['x'] }}")
    }

    #[test]
    fn values_that_do_not_fit_their_field_are_reported() {
        let message = r#"{"n": {{f.n}}, "v": "{{f.v}}"}"#;
        assert_eq!(checked(message, &generated("'1', '2'")), Ok(()));
        let why = checked(message, &generated("'1', 'abc'")).unwrap_err();
        assert!(why.contains("value 2 of column \"n\" of feeder \"f\""), "{why}");
        let why = checked(message, &generated("'abc', '2'")).unwrap_err();
        assert!(why.contains("value 1 of column \"n\""), "{why}");
        let quoted = r#"{"n": "{{f.n}}"}"#;
        let why = checked(quoted, &generated("'1', '99999999999'")).unwrap_err();
        assert!(why.contains("value 2 of column \"n\""), "{why}");
    }

    #[test]
    fn captured_values_hide_no_fault_of_a_feeder() {
        let message = r#"{"n": {{f.n}}, "v": "{{got}}{{iteration.number}}"}"#;
        assert_eq!(checked(message, &generated("'1', '2'")), Ok(()));
        let why = checked(message, &generated("'1', 'x'")).unwrap_err();
        assert!(why.contains("value 2 of column \"n\""), "{why}");
        // a captured value without a column is not checked
        assert_eq!(checked(r#"{"n": {{got}}}"#, ""), Ok(()));
    }
}
