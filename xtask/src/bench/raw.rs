//! The raw file of `bench/run.sh`: `# key<TAB>value` lines about the machine, then one figure per
//! line: table, round, tool, metric, value.

use anyhow::bail;
use std::collections::BTreeMap;

/// All figures of one run of the script.
#[derive(Debug, Default)]
pub(super) struct Raw {
    /// Facts about machine and versions, in the order they were written.
    pub(super) facts: Vec<(String, String)>,
    /// Tables in the order of their first line.
    pub(super) tables: Vec<String>,
    figures: BTreeMap<Key, BTreeMap<u32, f64>>,
    tools: BTreeMap<String, Vec<String>>,
}

type Key = (String, String, String);

impl Raw {
    /// # Errors
    /// Fails for a line of another form, with its number.
    pub(super) fn parse(text: &str) -> anyhow::Result<Raw> {
        let mut raw = Raw::default();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() {
                continue;
            }
            if let Some(fact) = line.strip_prefix("# ") {
                let (key, value) = fact.split_once('\t').unwrap_or((fact, ""));
                raw.facts.push((key.to_owned(), value.to_owned()));
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            let figure = match fields[..] {
                [table, round, tool, metric, value] => round
                    .parse()
                    .ok()
                    .zip(value.parse::<f64>().ok().filter(|value| value.is_finite()))
                    .map(|(round, value)| (table, round, tool, metric, value)),
                _ => None,
            };
            let Some((table, round, tool, metric, value)) = figure else {
                bail!(
                    "raw file, line {}: not table, round, tool, metric, value: {line}",
                    index + 1
                );
            };
            raw.add(table, round, tool, metric, value);
        }
        Ok(raw)
    }

    fn add(&mut self, table: &str, round: u32, tool: &str, metric: &str, value: f64) {
        if !self.tables.iter().any(|known| known == table) {
            self.tables.push(table.to_owned());
        }
        let tools = self.tools.entry(table.to_owned()).or_default();
        if !tools.iter().any(|known| known == tool) {
            tools.push(tool.to_owned());
        }
        let key = (table.to_owned(), tool.to_owned(), metric.to_owned());
        self.figures.entry(key).or_default().insert(round, value);
    }

    /// Returns a fact of the run, by its name.
    pub(super) fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Tools of a table in the order of their first line.
    pub(super) fn tools(&self, table: &str) -> &[String] {
        self.tools.get(table).map_or(&[], Vec::as_slice)
    }

    /// Returns figures by round; may be empty.
    pub(super) fn rounds(&self, table: &str, tool: &str, metric: &str) -> Vec<(u32, f64)> {
        let key = (table.to_owned(), tool.to_owned(), metric.to_owned());
        self.figures
            .get(&key)
            .into_iter()
            .flatten()
            .map(|(&round, &value)| (round, value))
            .collect()
    }

    /// Returns figures in order of the rounds.
    pub(super) fn values(&self, table: &str, tool: &str, metric: &str) -> Vec<f64> {
        self.rounds(table, tool, metric).into_iter().map(|(_, value)| value).collect()
    }

    /// Applies `how` to the figures of two tools, within each round that has both.
    pub(super) fn paired(
        &self,
        table: &str,
        metric: &str,
        (tool, reference): (&str, &str),
        how: fn(f64, f64) -> f64,
    ) -> Vec<f64> {
        let against: BTreeMap<u32, f64> =
            self.rounds(table, reference, metric).into_iter().collect();
        let own = self.rounds(table, tool, metric).into_iter();
        own.filter_map(|(round, value)| Some(how(value, *against.get(&round)?)))
            .filter(|value| value.is_finite())
            .collect()
    }
}
