//! State that a user carries.

use super::Travel;
use super::traveller::Traveller;
use plan::check::ValueSource;
use plan::journey::{Feeder, FeederRows, ITERATION_NUMBER, USER_NUMBER};
use regex::bytes::Regex;

/// Values by name; few, so a linear search is fast. A name keeps its memory.
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

/// Row of a feeder used by an iteration.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    /// True if the iteration has used a row. Otherwise the other fields belong to an earlier
    /// iteration.
    pub(super) is_taken: bool,
    pub(super) row: u64,
    /// The values of the row, if they are generated.
    pub(super) generated: Vec<String>,
}

/// Location of a name's value, parsed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValuePlace {
    User,
    Iteration,
    /// Places of a feeder and of one of its columns.
    Fed(usize, usize),
    /// Captured, or shared by all users.
    Named(String),
    /// The name has no value.
    Nowhere,
}

impl ValuePlace {
    pub(super) fn find(name: &str, feeders: &[Feeder]) -> ValuePlace {
        match (name, name.split_once('.')) {
            (USER_NUMBER, _) => ValuePlace::User,
            (ITERATION_NUMBER, _) => ValuePlace::Iteration,
            (_, None) => ValuePlace::Named(name.to_owned()),
            (_, Some((feeder, column))) => {
                let place = feeder_column_place(feeders, feeder, column);
                place.map_or(ValuePlace::Nowhere, |(at, column)| ValuePlace::Fed(at, column))
            }
        }
    }
}

/// Places of a feeder and of its column.
fn feeder_column_place(feeders: &[Feeder], feeder: &str, column: &str) -> Option<(usize, usize)> {
    let at = feeders.iter().position(|known| known.name == feeder)?;
    let column = feeders[at].columns.iter().position(|known| known == column)?;
    Some((at, column))
}

/// All values of a user.
pub(super) struct CarriedView<'a> {
    pub(super) travel: &'a Travel,
    pub(super) traveller: &'a Traveller,
}

impl CarriedView<'_> {
    /// Returns the columns of the rows that the iteration took, as `feeder.column`.
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

    /// Passes the captured values, and the rows that the iteration took, to `add`.
    pub(super) fn secrets(&self, add: &mut dyn FnMut(&str)) {
        let captured = self.traveller.carried.0.iter().chain(&self.traveller.kept.0);
        captured.filter_map(|(_, value)| value.as_deref()).for_each(&mut *add);
        self.rows_taken().iter().for_each(|(_, value)| add(value));
    }

    fn fed(&self, feeder: &str, column: &str) -> Option<&str> {
        let (at, column) = feeder_column_place(&self.travel.feeders, feeder, column)?;
        self.cell(at, column)
    }

    fn cell(&self, at: usize, column: usize) -> Option<&str> {
        let feeder = &self.travel.feeders[at];
        let taken = self.traveller.taken.get(at).filter(|taken| taken.is_taken)?;
        match &feeder.rows {
            FeederRows::Table(_) => feeder.cell(taken.row, column),
            FeederRows::Generated(_) => taken.generated.get(column).map(String::as_str),
        }
    }
}

impl CarriedView<'_> {
    pub(super) fn at(&self, place: &ValuePlace) -> Option<&str> {
        match place {
            ValuePlace::User => Some(&self.traveller.user_number),
            ValuePlace::Iteration => Some(&self.traveller.iteration_number),
            ValuePlace::Fed(at, column) => self.cell(*at, *column),
            ValuePlace::Named(name) => self.named(name),
            ValuePlace::Nowhere => None,
        }
    }

    fn named(&self, name: &str) -> Option<&str> {
        let own = self.traveller.carried.get(name).or_else(|| self.traveller.kept.get(name));
        own.or_else(|| self.travel.given.get(name).map(String::as_str))
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
        self.named(name)
    }

    fn pattern(&self, text: &str) -> Option<Regex> {
        self.travel.patterns.get(text).cloned()
    }
}
