//! What a user takes along.

use super::Travel;
use super::traveller::Traveller;
use plan::check::ValueSource;
use plan::journey::{FeederRows, ITERATION_NUMBER, USER_NUMBER};
use regex::bytes::Regex;

/// Values by name; few, so that looking through them is quick. A name once there keeps its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried(Vec<(String, Option<String>)>);

impl Carried {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        value.as_deref()
    }

    pub(super) fn set(&mut self, name: &str, value: Option<String>) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(super) fn clear(&mut self) {
        for (_, value) in &mut self.0 {
            *value = None;
        }
    }
}

/// The row of a feeder that an iteration took.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    pub(super) row: u64,
    /// Its values, where they are generated.
    pub(super) generated: Vec<String>,
}

/// All values that a user has.
pub(super) struct CarriedView<'a> {
    pub(super) travel: &'a Travel,
    pub(super) traveller: &'a Traveller,
}

impl CarriedView<'_> {
    /// The columns of the rows that the iteration took, as `feeder.column`.
    pub(super) fn rows_taken(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for at in &self.travel.journeys[self.traveller.journey].feeders {
            let feeder = &self.travel.feeders[*at];
            for column in &feeder.columns {
                if let Some(value) = self.fed(&feeder.name, column) {
                    all.push((format!("{}.{column}", feeder.name), value.to_owned()));
                }
            }
        }
        all
    }

    fn fed(&self, feeder: &str, column: &str) -> Option<&str> {
        let at = self.travel.feeders.iter().position(|known| known.name == feeder)?;
        let feeder = &self.travel.feeders[at];
        let column = feeder.columns.iter().position(|known| known == column)?;
        let taken = self.traveller.taken.get(at)?.as_ref()?;
        match &feeder.rows {
            FeederRows::Table(_) => feeder.cell(taken.row, column),
            FeederRows::Generated(_) => taken.generated.get(column).map(String::as_str),
        }
    }
}

impl ValueSource for CarriedView<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        match name {
            USER_NUMBER => return Some(&self.traveller.user_number),
            ITERATION_NUMBER => return Some(&self.traveller.iteration_number),
            _ => {}
        }
        if let Some((feeder, column)) = name.split_once('.') {
            return self.fed(feeder, column);
        }
        let own = self.traveller.carried.get(name).or_else(|| self.traveller.kept.get(name));
        own.or_else(|| self.travel.given.get(name).map(String::as_str))
    }

    fn pattern(&self, text: &str) -> Option<Regex> {
        self.travel.patterns.get(text).cloned()
    }
}
