//! The list of stored results.

use crate::hists::StoredHists;
use crate::rows::{parse, text};
use crate::tree::{Damage, Unpack, record};
use crate::{Progress, ResultKind, RunId, Store, StoreError, alive};
use record::compare::{CompareRecord, Judgement};
use record::history::HistoryRun;
use record::ramp::RampRecord;
use record::run::{Headline, RunRecord};
use record::runs::{ListedRecord, LoadSpanRecord, TorturedRecord};
use record::server::Conduct;
use record::torture::TortureRecord;
use rusqlite::Row;
use serde_json::Value;
use stats::State;
use stats::curve::{Axis, Span};
use torture::judge::TestOutcome;

/// A row of the list.
#[derive(Clone, Debug)]
pub struct ListEntry {
    pub id: RunId,
    /// Kind; `None` if damaged.
    pub kind: Option<ResultKind>,
    pub name: String,
    /// Tags in alphabetical order.
    pub tags: Vec<String>,
    /// Start in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    pub progress: Progress,
    /// Verdict; `None` for unfinished results.
    pub verdict: Option<State>,
    /// Headline of a finished run.
    pub headline: Option<Headline>,
    /// For a finished ramp, the label and the capacity of each target.
    pub capacities: Vec<(String, Option<Span>)>,
    /// For a finished ramp without objectives, the label and the knee of each target; open above if
    /// the steps showed none. Empty with objectives, and for results of earlier versions.
    pub knees: Vec<(String, Option<Span>)>,
    /// State of the server in a finished run; `None` if an earlier version wrote it.
    pub conduct: Option<Conduct>,
    /// For a ramp: the unit of its capacities.
    pub axis: Option<Axis>,
    /// For a finished comparison, its worst judgment.
    pub judgement: Option<Judgement>,
    /// Summary of a finished torture.
    pub tortured: Option<Tortured>,
    pub command_line: String,
}

impl ListEntry {
    /// Returns a finished run of exactly this name, for its history.
    fn history_run(self, name: &str) -> Option<HistoryRun> {
        let wanted = self.name == name && self.progress == Progress::Finished;
        let headline = self.headline.filter(|_| wanted)?;
        let started_unix_s = self.started_unix_s;
        Some(HistoryRun { id: self.id.to_string(), started_unix_s, headline })
    }

    /// Returns the published form.
    pub fn record(&self) -> ListedRecord {
        let run = self.headline.as_ref();
        // NaN in memory, null in the record
        let figure = |of: fn(&Headline) -> f64| run.map(of).filter(|figure| figure.is_finite());
        let spans = |spans: &[(String, Option<Span>)]| {
            spans.iter().map(|(label, span)| LoadSpanRecord::new(label, *span)).collect()
        };
        ListedRecord {
            id: self.id.to_string(),
            kind: self.kind,
            name: self.name.clone(),
            tags: self.tags.clone(),
            started: record::timestamp(self.started_unix_s),
            started_unix_s: Some(self.started_unix_s).filter(|instant| instant.is_finite()),
            state: self.progress,
            verdict: self.verdict,
            server: self.conduct,
            throughput_per_s: figure(|run| run.throughput_per_s),
            goodput_per_s: figure(|run| run.goodput_per_s),
            failure_share: figure(|run| run.failure_share),
            response_p50_s: figure(|run| run.p50_s),
            response_p99_s: figure(|run| run.p99_s),
            axis: self.axis,
            capacities: spans(&self.capacities),
            knees: spans(&self.knees),
            judgement: self.judgement,
            torture: self.tortured.map(|tortured| TorturedRecord {
                cases: tortured.cases,
                findings: tortured.findings,
                worst: tortured.worst,
            }),
            command_line: self.command_line.clone(),
        }
    }
}

/// Summary of a torture for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tortured {
    /// Cases that were not skipped.
    pub cases: u64,
    /// Findings that count against the server.
    pub findings: u64,
    /// Severity of the worst finding, including waived ones.
    pub worst: TestOutcome,
}

impl Tortured {
    /// Formats the outcome: `2 findings in 85 cases`.
    pub fn words(self) -> String {
        record::torture::found(self.findings, self.cases)
    }
}

/// Selection of the results in a list; an empty filter shows all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Part of the name, in any case.
    pub name: Option<String>,
    pub tag: Option<String>,
    pub kind: Option<ResultKind>,
    /// Begun at or after this instant, in seconds since 1970-01-01 UTC.
    pub since_unix_s: Option<f64>,
    /// At most this many, latest first.
    pub count_max: Option<usize>,
}

/// The figures of the list, stored with the result so that listing reads no report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) interrupted: bool,
    headline: Option<Headline>,
    conduct: Option<Conduct>,
    capacities: Vec<(String, Option<Span>)>,
    knees: Vec<(String, Option<Span>)>,
    judgement: Option<Judgement>,
    tortured: Option<Tortured>,
}

record! {
    Summary { interrupted, headline, conduct, capacities, knees, judgement, tortured }
    Tortured { cases, findings, worst }
}

impl Summary {
    pub(crate) fn from_run(run: &RunRecord) -> Summary {
        Summary {
            interrupted: run.interrupted || run.aborted.is_some(),
            headline: Some(run.headline()),
            conduct: Some(run.server.state),
            ..Summary::default()
        }
    }

    pub(crate) fn from_ramp(ramp: &RampRecord) -> Summary {
        let curves = ramp.curves();
        let capacity = |label: usize| {
            let curve = curves.get(label)?;
            curve.capacity.as_ref().map(|capacity| capacity.at)
        };
        let knee = |label: usize| {
            let curve = curves.get(label)?;
            let knee = curve.knee.as_ref().map(|knee| knee.at);
            // without a knee the capacity is the highest step that was kept up with
            knee.or_else(|| curve.capacity.as_ref().map(|capacity| capacity.at))
        };
        let with_objectives = curves.iter().any(|curve| {
            curve.capacity.as_ref().is_some_and(|capacity| !capacity.objectives.is_empty())
        });
        let labels = || ramp.labels.iter().enumerate();
        let knees = labels().map(|(row, label)| (label.clone(), knee(row)));
        Summary {
            interrupted: ramp.ended_early.is_some(),
            capacities: labels().map(|(row, label)| (label.clone(), capacity(row))).collect(),
            knees: if with_objectives { Vec::new() } else { knees.collect() },
            ..Summary::default()
        }
    }

    pub(crate) fn from_compare(compare: &CompareRecord) -> Summary {
        let differences = compare.contrasts().flat_map(|contrast| contrast.differences);
        let judgements = differences.map(|difference| difference.judgement);
        Summary {
            interrupted: compare.ended_early.is_some(),
            judgement: judgements.max_by_key(|judgement| match judgement {
                Judgement::Worse => 3,
                Judgement::Better => 2,
                Judgement::NoneShown => 1,
                Judgement::TooFew => 0,
            }),
            ..Summary::default()
        }
    }

    pub(crate) fn from_torture(torture: &TortureRecord) -> Summary {
        let tested = torture.cases.iter().filter(|case| case.skipped.is_none());
        let tortured = Tortured {
            cases: torture.tested_count(),
            findings: torture.findings,
            worst: tested.map(|case| case.outcome).max().unwrap_or_default(),
        };
        Summary { interrupted: torture.is_cut(), tortured: Some(tortured), ..Summary::default() }
    }
}

/// Columns of the table behind a list.
struct Listed {
    number: i64,
    kind: String,
    name: String,
    tags: Option<String>,
    started_unix_s: Option<f64>,
    state: String,
    writer: String,
    interrupted: bool,
    verdict: Option<String>,
    summary: Option<String>,
    command_line: String,
    axis: Option<String>,
}

/// The axis is in the body of every ramp, finished or not; invalid JSON is reported when it is
/// loaded.
const COLUMNS: &str = "SELECT number, kind, name, \
    (SELECT group_concat(tag.name, char(10)) FROM tag WHERE tag.result = number), \
    started_unix_s, state, writer, interrupted, verdict, summary, command_line, \
    CASE WHEN kind = 'ramp' AND json_valid(body) THEN json_extract(body, '$.axis') END FROM result";

impl Store {
    /// Returns the results that match the filter, latest first. A result with damaged figures is
    /// listed as damaged, without them.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<ListEntry>, StoreError> {
        let statement = format!("{COLUMNS} ORDER BY number DESC");
        let rows = self.connection.prepare(&statement).and_then(|mut statement| {
            statement.query_map([], Listed::read)?.collect::<Result<Vec<_>, _>>()
        });
        let mut entries = Vec::new();
        for row in self.explain_error(rows)? {
            if entries.len() == filter.count_max.unwrap_or(usize::MAX) {
                break;
            }
            let entry = entry(row);
            if filter.passes(&entry) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    /// Returns the last finished runs of exactly this name, oldest first: a gate judges them, and a
    /// trend shows them.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn history(
        &self,
        name: &str,
        since_unix_s: Option<f64>,
        last: usize,
    ) -> Result<Vec<HistoryRun>, StoreError> {
        // the filter matches a part of a name, so the limit comes after it
        let filter = Filter {
            name: Some(name.to_owned()),
            kind: Some(ResultKind::Run),
            since_unix_s,
            ..Filter::default()
        };
        let entries = self.list(&filter)?.into_iter().rev();
        let mut runs: Vec<HistoryRun> =
            entries.filter_map(|entry| entry.history_run(name)).collect();
        runs.sort_by(|a, b| a.started_unix_s.total_cmp(&b.started_unix_s));
        Ok(runs.split_off(runs.len().saturating_sub(last)))
    }

    /// Returns the row of one result.
    ///
    /// # Errors
    /// Fails if there is no such result, or the store cannot be read.
    pub fn show(&self, wanted: &str) -> Result<ListEntry, StoreError> {
        let id = self.find(wanted)?;
        let statement = format!("{COLUMNS} WHERE number = ?1");
        let row = self.connection.query_row(&statement, [id.number], Listed::read);
        self.explain_error(row).map(entry)
    }
}

fn entry(row: Listed) -> ListEntry {
    let id = RunId::new(row.number, &row.kind);
    let progress = match row.state.as_str() {
        "finished" if row.interrupted => Progress::Interrupted,
        "finished" => Progress::Finished,
        _ if alive::is_alive(&row.writer) => Progress::Running,
        _ => Progress::Killed,
    };
    // one damaged row must not hide the others
    let (progress, figures) = match ListFigures::new(&row) {
        Ok(figures) if id.kind.is_some() => (progress, figures),
        _ => (Progress::Damaged, ListFigures::default()),
    };
    let mut tags: Vec<String> =
        row.tags.iter().flat_map(|tags| tags.split('\n')).map(str::to_owned).collect();
    tags.sort();
    ListEntry {
        kind: id.kind,
        id,
        name: row.name,
        tags,
        started_unix_s: row.started_unix_s.unwrap_or(f64::NAN),
        progress,
        verdict: figures.verdict,
        headline: figures.summary.headline,
        capacities: figures.summary.capacities,
        conduct: figures.summary.conduct,
        knees: figures.summary.knees,
        axis: figures.axis,
        judgement: figures.summary.judgement,
        tortured: figures.summary.tortured,
        command_line: row.command_line,
    }
}

/// Fields of a result's row in the list.
#[derive(Default)]
struct ListFigures {
    summary: Summary,
    verdict: Option<State>,
    axis: Option<Axis>,
}

impl ListFigures {
    fn new(row: &Listed) -> Result<ListFigures, Damage> {
        fn named<T: Unpack>(name: &Option<String>) -> Result<Option<T>, Damage> {
            let name = name.as_ref().map(|name| Value::String(name.clone()));
            name.map(|name| T::unpack(&name, &mut StoredHists::default())).transpose()
        }
        let summary = match &row.summary {
            None => Summary::default(),
            Some(text) => Summary::unpack(&parse(text)?, &mut StoredHists::default())?,
        };
        Ok(ListFigures { summary, verdict: named(&row.verdict)?, axis: named(&row.axis)? })
    }
}

impl Listed {
    fn read(row: &Row<'_>) -> rusqlite::Result<Listed> {
        // a value that is not text is treated like a damaged figure
        let figure = |column: usize| row.get(column).unwrap_or_else(|_| Some(String::new()));
        Ok(Listed {
            number: row.get(0)?,
            kind: text(row, 1)?,
            name: text(row, 2)?,
            tags: row.get(3)?,
            started_unix_s: row.get(4)?,
            state: text(row, 5)?,
            writer: text(row, 6)?,
            interrupted: row.get(7)?,
            verdict: figure(8),
            summary: figure(9),
            command_line: text(row, 10)?,
            axis: figure(11),
        })
    }
}

impl Filter {
    fn passes(&self, entry: &ListEntry) -> bool {
        let name = self.name.as_ref().map(|part| part.to_lowercase());
        name.is_none_or(|part| entry.name.to_lowercase().contains(&part))
            && self.tag.as_ref().is_none_or(|tag| entry.tags.contains(tag))
            && self.kind.is_none_or(|kind| entry.kind == Some(kind))
            && self.since_unix_s.is_none_or(|since| entry.started_unix_s >= since)
    }
}
