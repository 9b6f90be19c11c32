//! Feeders: data of users, row by row.

use std::fmt::Write as _;
use std::sync::Arc;
use units::{Purpose, Seed};

/// A source of rows. Which row an iteration takes is a function of its index, so that any number of
/// workers takes the same rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Feeder {
    /// A column is written `name.column`.
    pub name: String,
    pub columns: Vec<String>,
    pub rows: FeederRows,
    pub order: FeederOrder,
    /// As given; without it users leave, and their missing load counts against the run.
    pub used_up: Option<UsedUp>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FeederRows {
    Table(Arc<FeederTable>),
    /// A law for each column.
    Generated(Vec<ColumnLaw>),
}

/// Rows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeederTable {
    pub format: FeederFormat,
    /// The file's text, to print it with the plan.
    pub(crate) text: String,
    /// Row by row, one value for each column.
    pub(crate) cells: Vec<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeederFormat {
    Csv,
    JsonLines,
}

/// Content of a generated column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnLaw {
    /// Consecutive integers.
    Range(i64, i64),
    /// One of these, drawn.
    OneOf(Vec<String>),
    /// This many random characters of an alphabet.
    Drawn(&'static [u8], usize),
    /// A UUID of version 4 (RFC 9562 section 5.4), drawn.
    Uuid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeederOrder {
    /// Each iteration takes the next row.
    Sequential,
    /// Each iteration draws a row.
    Random,
    /// Each user has its own row.
    Unique,
}

/// Action when a user finds no row left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedUp {
    /// It leaves.
    Stop,
    /// It starts again at the first row.
    Wrap,
}

impl Feeder {
    /// Number of rows; `None` if unlimited.
    pub fn count(&self) -> Option<u64> {
        match &self.rows {
            FeederRows::Table(table) => {
                Some((table.cells.len() / self.columns.len().max(1)) as u64)
            }
            FeederRows::Generated(laws) => laws.iter().filter_map(ColumnLaw::count).min(),
        }
    }

    /// The row for the `turn`-th iteration that takes one, of user `user`; `None` if none is left.
    /// `number`: the feeder's index in the plan.
    pub fn row(&self, seed: Seed, number: usize, user: u64, turn: u64) -> Option<u64> {
        let index = match self.order {
            FeederOrder::Sequential => turn,
            FeederOrder::Unique => user,
            FeederOrder::Random => {
                let stream = turn.wrapping_mul(FEEDERS_MAX as u64).wrapping_add(number as u64);
                let mut stream = seed.stream(Purpose::Feeders, stream);
                return Some(match self.count() {
                    Some(count) => stream.below(count),
                    None => stream.next_u64(),
                });
            }
        };
        match self.count() {
            Some(count) if index >= count => {
                (self.used_up == Some(UsedUp::Wrap)).then(|| index % count.max(1))
            }
            _ => Some(index),
        }
    }

    /// The value of a column in a row of a file; generated ones are not kept, see
    /// [`Feeder::generate`].
    pub fn cell(&self, row: u64, column: usize) -> Option<&str> {
        let FeederRows::Table(table) = &self.rows else { return None };
        let at = usize::try_from(row).ok()?.checked_mul(self.columns.len())?;
        table.cells.get(at.checked_add(column)?).map(|cell| &**cell)
    }

    /// Writes the values of a row that is generated over `values`; none for a file. Strings that are
    /// there keep their memory.
    pub fn generate(&self, seed: Seed, number: usize, row: u64, values: &mut Vec<String>) {
        let FeederRows::Generated(laws) = &self.rows else { return values.clear() };
        values.resize_with(laws.len(), String::new);
        for (column, (law, value)) in laws.iter().zip(values).enumerate() {
            let place = number * COLUMNS_MAX + column;
            let stream = row.wrapping_mul((FEEDERS_MAX * COLUMNS_MAX) as u64);
            let stream = stream.wrapping_add(place as u64);
            value.clear();
            law.write(row, &mut seed.stream(Purpose::Columns, stream), value);
        }
    }
}

/// Feeders of one plan, columns of one feeder.
pub(crate) const FEEDERS_MAX: usize = 64;
pub(crate) const COLUMNS_MAX: usize = 256;

impl ColumnLaw {
    fn count(&self) -> Option<u64> {
        match self {
            ColumnLaw::Range(from, to) => Some(to.abs_diff(*from).saturating_add(1)),
            ColumnLaw::OneOf(_) | ColumnLaw::Drawn(..) | ColumnLaw::Uuid => None,
        }
    }

    fn write(&self, row: u64, stream: &mut units::Stream, out: &mut String) {
        match self {
            ColumnLaw::Range(from, to) => {
                let count = to.abs_diff(*from).saturating_add(1);
                let number = from.wrapping_add_unsigned(row % count);
                write!(out, "{number}").expect("a String takes all text");
            }
            ColumnLaw::OneOf(list) => {
                let drawn = list.get(stream.below(list.len() as u64) as usize);
                out.push_str(drawn.map_or("", String::as_str));
            }
            ColumnLaw::Drawn(alphabet, length) => {
                let mut one = || alphabet[stream.below(alphabet.len() as u64) as usize];
                out.extend((0..*length).map(|_| char::from(one())));
            }
            ColumnLaw::Uuid => uuid(stream, out),
        }
    }
}

fn uuid(stream: &mut units::Stream, out: &mut String) {
    let high = stream.next_u64() & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = stream.next_u64() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    write!(
        out,
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
    .expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feeder(order: FeederOrder, used_up: UsedUp) -> Feeder {
        let rows = FeederRows::Generated(vec![
            ColumnLaw::Range(7, 9),
            ColumnLaw::Drawn(b"ab", 4),
            ColumnLaw::Uuid,
            ColumnLaw::OneOf(vec!["x".into(), "y".into()]),
        ]);
        let columns = ["id", "key", "uuid", "kind"].map(str::to_owned).to_vec();
        Feeder { name: "f".into(), columns, rows, order, used_up: Some(used_up) }
    }

    fn rows(order: FeederOrder, used_up: UsedUp) -> Vec<Option<u64>> {
        (0..5).map(|turn| feeder(order, used_up).row(Seed(1), 0, 2 * turn, turn)).collect()
    }

    #[test]
    fn rows_are_taken_by_index() {
        let (stop, wrap) = (UsedUp::Stop, UsedUp::Wrap);
        let sequential = FeederOrder::Sequential;
        assert_eq!(rows(sequential, stop), [Some(0), Some(1), Some(2), None, None]);
        assert_eq!(rows(sequential, wrap), [Some(0), Some(1), Some(2), Some(0), Some(1)]);
        assert_eq!(rows(FeederOrder::Unique, stop), [Some(0), Some(2), None, None, None]);
        assert_eq!(rows(FeederOrder::Unique, wrap), [Some(0), Some(2), Some(1), Some(0), Some(2)]);
        let drawn = rows(FeederOrder::Random, stop);
        assert!(drawn.iter().all(|row| row.is_some_and(|row| row < 3)), "{drawn:?}");
        assert_eq!(drawn, rows(FeederOrder::Random, stop));
    }

    #[test]
    fn generated_rows_depend_on_seed_and_index_only() {
        let feeder = feeder(FeederOrder::Sequential, UsedUp::Stop);
        let row = |seed, row| {
            // what is there is written over
            let mut values = vec!["before".to_owned(); 7];
            feeder.generate(Seed(seed), 0, row, &mut values);
            values
        };
        assert_eq!(row(1, 2)[0], "9");
        assert_eq!(row(1, 2), row(1, 2));
        assert_ne!(row(1, 2)[2], row(1, 1)[2]);
        assert_ne!(row(1, 2)[2], row(2, 2)[2]);
        let uuid = &row(1, 0)[2];
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"), "{uuid}");
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        assert!(row(1, 0)[1].bytes().all(|byte| b"ab".contains(&byte)));
    }
}
