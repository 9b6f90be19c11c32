//! Arguments of `done(summary, latency, requests)`.

use crate::state::LuaState;
use mlua::{Lua, Table, Value};
use std::rc::Rc;

/// Socket errors by kind, and responses with a status above 399.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    pub connect: u64,
    pub read: u64,
    pub write: u64,
    pub status: u64,
    pub timeout: u64,
}

/// The whole run's sums. Duration in microseconds, bytes as received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSums {
    pub duration_us: u64,
    pub requests: u64,
    pub bytes: u64,
    pub errors: Errors,
}

/// Recorded values with their counts, ascending, and their mean and standard deviation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedValues {
    pub values: Vec<(u64, u64)>,
    pub mean: f64,
    pub stdev: f64,
}

impl RecordedValues {
    fn count(&self) -> u64 {
        self.values.iter().map(|(_, count)| count).sum()
    }

    fn min(&self) -> u64 {
        self.values.first().map_or(0, |(value, _)| *value)
    }

    fn max(&self) -> u64 {
        self.values.last().map_or(0, |(value, _)| *value)
    }

    /// Returns the value of rank round(p/100 · n + 0.5), as wrk counts ranks, and at most the last.
    fn percentile(&self, percent: f64) -> u64 {
        let count = self.count();
        let rank = (percent / 100.0 * count as f64 + 0.5).round().clamp(0.0, count as f64) as u64;
        let mut reached = 0;
        for (value, times) in &self.values {
            reached += times;
            if reached >= rank {
                return *value;
            }
        }
        self.max()
    }

    /// Returns the `row`-th value, counted from 1, and its count.
    fn row(&self, row: f64) -> (u64, u64) {
        let index = (row - 1.0).max(0.0) as usize;
        self.values.get(index).copied().unwrap_or((0, 0))
    }
}

/// Returns the object with statistics that a script receives.
pub(crate) fn object(state: &LuaState, spread: RecordedValues) -> mlua::Result<Value> {
    let lua = &state.lua;
    let named = lua.create_table()?;
    named.raw_set("min", spread.min() as f64)?;
    named.raw_set("max", spread.max() as f64)?;
    named.raw_set("mean", spread.mean)?;
    named.raw_set("stdev", spread.stdev)?;
    let rows = spread.values.len() as f64;
    let values = Rc::new(spread);
    let rest = values.clone();
    let row = lua.create_function(move |_, row: f64| {
        let (value, count) = values.row(row);
        Ok((value as f64, count as f64))
    })?;
    let percentile =
        lua.create_function(move |_, percent: f64| Ok(rest.percentile(percent) as f64))?;
    state.spread.call((named, rows, row, percentile))
}

/// Returns the table `summary`.
pub(crate) fn summary(lua: &Lua, figures: &RunSums) -> mlua::Result<Table> {
    let Errors { connect, read, write, status, timeout } = figures.errors;
    let table = |rows: &[(&str, u64)]| {
        let table = lua.create_table()?;
        for (name, value) in rows {
            table.raw_set(*name, *value as f64)?;
        }
        Ok::<Table, mlua::Error>(table)
    };
    let errors = table(&[
        ("connect", connect),
        ("read", read),
        ("write", write),
        ("status", status),
        ("timeout", timeout),
    ])?;
    let summary = table(&[
        ("duration", figures.duration_us),
        ("requests", figures.requests),
        ("bytes", figures.bytes),
    ])?;
    summary.raw_set("errors", errors)?;
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_counted_as_wrk_does() {
        let spread =
            RecordedValues { values: vec![(10, 5), (20, 4), (30, 1)], mean: 0.0, stdev: 0.0 };
        let asked = [0.0, 50.0, 51.0, 90.0, 99.0, 100.0];
        let found = asked.map(|percent| spread.percentile(percent));
        // rank round(5.5) = 6 for the median of ten
        assert_eq!(found, [10, 20, 20, 30, 30, 30]);
        assert_eq!(RecordedValues::default().percentile(50.0), 0);
        assert_eq!((spread.row(1.0), spread.row(3.0), spread.row(4.0)), ((10, 5), (30, 1), (0, 0)));
    }
}
