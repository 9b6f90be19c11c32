//! The history of one name: figures of its stored runs, oldest first, and the latest change of
//! each. The arithmetic is in `stats::history`.

use crate::compare::{Judgement, amount, judgement_id};
use crate::figures::{FigureKind, RUN_FIGURES};
use crate::run::Headline;
#[cfg(any(test, feature = "schema"))]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::State;
use stats::history::{Change, RUNS_MIN, latest_change};
use units::{Purpose, Seed};

/// The schema that is written.
pub const SCHEMA: &str = "loadstone.history/1";

/// Figures whose history is judged. The others follow from them, or have few samples.
const FIGURES: [&str; 4] = ["throughput", "failures", "p50", "p99"];

/// Default number of runs that are examined: the latest ones.
pub const RUNS_LAST: usize = 60;

/// Maximum number of runs of a history.
pub const RUNS_MAX: usize = 500;

/// A stored run.
#[derive(Clone, Debug)]
pub struct HistoryRun {
    pub id: String,
    pub started_unix_s: f64,
    pub headline: Headline,
}

/// The runs of one name and the latest change of each figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HistoryRecord {
    pub schema: String,
    /// The answer in one sentence.
    pub answer: String,
    pub name: String,
    /// worse: the latest change of a figure is a worsening. too-few: fewer runs than are needed to
    /// find a change.
    #[serde(with = "judgement_id")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "judgement_id::schema"))]
    pub judgement: Judgement,
    /// Oldest first; INVALID runs are omitted.
    pub runs: Vec<HistoryRunRecord>,
    /// Number of omitted INVALID runs.
    pub invalid: u64,
    pub figures: Vec<HistoryFigureRecord>,
}

/// A run of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HistoryRunRecord {
    pub id: String,
    pub started_unix_s: f64,
}

/// One figure of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HistoryFigureRecord {
    pub figure: String,
    /// One value for each run; null for a run without the figure.
    pub values: Vec<Option<f64>>,
    #[serde(with = "judgement_id")]
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "judgement_id::schema"))]
    pub judgement: Judgement,
    /// The latest change; null if there is no significant one.
    pub change: Option<HistoryChangeRecord>,
    /// The change in one sentence.
    pub text: String,
}

/// A change of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(JsonSchema))]
pub struct HistoryChangeRecord {
    /// The first run after the change, and the runs between which it lies with 95 % confidence.
    pub run: String,
    pub earliest_run: String,
    pub latest_run: String,
    /// Runs since the change, that run included.
    pub runs_since: u64,
    /// Change of the medians: after/before - 1, or a difference of shares.
    pub size: f64,
    /// Interval of the size, 95 %.
    pub low: f64,
    pub high: f64,
    #[cfg_attr(any(test, feature = "schema"), schemars(range(min = 0.0, max = 1.0)))]
    pub p_value: f64,
}

/// Judges the runs of one name, oldest first.
pub fn assemble(name: &str, runs: &[HistoryRun]) -> HistoryRecord {
    let valid: Vec<&HistoryRun> =
        runs.iter().filter(|run| run.headline.state != State::Invalid).collect();
    let figures: Vec<HistoryFigureRecord> =
        FIGURES.iter().filter_map(|figure| figure_of(figure, &valid)).collect();
    let has = |wanted: Judgement| figures.iter().any(|one| one.judgement == wanted);
    let judgement = if valid.len() < RUNS_MIN {
        Judgement::TooFew
    } else if has(Judgement::Worse) {
        Judgement::Worse
    } else if has(Judgement::Better) {
        Judgement::Better
    } else {
        Judgement::NoneShown
    };
    let record = |run: &&HistoryRun| HistoryRunRecord {
        id: run.id.clone(),
        started_unix_s: run.started_unix_s,
    };
    HistoryRecord {
        schema: SCHEMA.to_owned(),
        answer: answer(judgement, valid.len(), &figures),
        name: name.to_owned(),
        judgement,
        runs: valid.iter().map(record).collect(),
        invalid: (runs.len() - valid.len()) as u64,
        figures,
    }
}

fn answer(judgement: Judgement, runs: usize, figures: &[HistoryFigureRecord]) -> String {
    let texts = |wanted: Judgement| -> String {
        let found = figures.iter().filter(|one| one.judgement == wanted);
        found.map(|one| one.text.as_str()).collect::<Vec<_>>().join(" ")
    };
    match judgement {
        Judgement::TooFew => {
            format!("Too few runs to find a change: {runs}, and {RUNS_MIN} are needed.")
        }
        Judgement::NoneShown => format!("No change was found in {runs} runs."),
        shown => texts(shown),
    }
}

fn figure_of(name: &str, runs: &[&HistoryRun]) -> Option<HistoryFigureRecord> {
    let (figure, value, kind) = RUN_FIGURES.iter().find(|(figure, ..)| *figure == name)?;
    let values: Vec<Option<f64>> =
        runs.iter().map(|run| Some(value(&run.headline)).filter(|one| one.is_finite())).collect();
    let points = *kind == FigureKind::Share;
    // runs without the figure have no place in its order
    let known: Vec<(usize, f64)> = values
        .iter()
        .enumerate()
        .filter_map(|(index, value)| Some((index, (*value)?)))
        .filter(|(_, value)| points || *value > 0.0)
        .map(|(index, value)| (index, if points { value } else { value.ln() }))
        .collect();
    let series: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let mut stream = Seed(1).stream(Purpose::Bootstrap, 86);
    let found = latest_change(&series, FIGURES.len(), &mut stream);
    let rises_are_worse = *kind != FigureKind::Rate;
    let judgement = match found {
        _ if series.len() < RUNS_MIN => Judgement::TooFew,
        None => Judgement::NoneShown,
        Some(change) if (change.size > 0.0) == rises_are_worse => Judgement::Worse,
        Some(_) => Judgement::Better,
    };
    let id = |at: usize| known.get(at).map(|(index, _)| runs[*index].id.clone());
    let change = found.and_then(|found| {
        let places = [id(found.at)?, id(found.first)?, id(found.last)?];
        Some(change_record(found, places, series.len(), points))
    });
    let text = sentence(figure, judgement, change.as_ref(), points);
    Some(HistoryFigureRecord { figure: (*figure).to_owned(), values, judgement, change, text })
}

fn change_record(
    found: Change,
    [run, earliest_run, latest_run]: [String; 3],
    runs: usize,
    points: bool,
) -> HistoryChangeRecord {
    let shown = |difference: f64| if points { difference } else { difference.exp_m1() };
    HistoryChangeRecord {
        run,
        earliest_run,
        latest_run,
        runs_since: (runs - found.at) as u64,
        size: shown(found.size),
        low: shown(found.low),
        high: shown(found.high),
        p_value: found.p_value,
    }
}

fn sentence(
    figure: &str,
    judgement: Judgement,
    change: Option<&HistoryChangeRecord>,
    points: bool,
) -> String {
    let Some(change) = change else {
        return match judgement {
            Judgement::TooFew => format!("{figure}: too few runs."),
            _ => format!("{figure}: no change was found."),
        };
    };
    let word = if judgement == Judgement::Worse { "worse" } else { "better" };
    let place = match change.earliest_run == change.latest_run {
        true => String::new(),
        false => format!(" (between {} and {})", change.earliest_run, change.latest_run),
    };
    let low = amount(change.low, points);
    let low = low.rsplit_once(' ').map_or("", |(number, _)| number);
    format!(
        "{figure} is {word} by {} ({low} to {}) since {}{place}.",
        amount(change.size, points),
        amount(change.high, points),
        change.run
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs whose p99 is 10 ms, and from `step` on 20 % more; each differs by up to 1 %.
    fn runs(count: usize, step: usize) -> Vec<HistoryRun> {
        let run = |index: usize| {
            let own = 1.0 + 0.01 * ((index * 7) % 10) as f64 / 10.0;
            let slower = if index >= step { 1.2 } else { 1.0 };
            HistoryRun {
                id: format!("run-{}", index + 1),
                started_unix_s: 1_795_000_000.0 + 3_600.0 * index as f64,
                headline: Headline {
                    state: State::Valid,
                    throughput_per_s: 1_000.0 / own,
                    goodput_per_s: 1_000.0 / own,
                    failure_share: 0.0,
                    mean_s: 0.005 * own,
                    p50_s: 0.004 * own,
                    p90_s: 0.008 * own,
                    p99_s: 0.010 * own * slower,
                    p99_9_s: 0.020 * own,
                    max_s: 0.03,
                    conforming: 0,
                },
            }
        };
        (0..count).map(run).collect()
    }

    fn figure<'a>(record: &'a HistoryRecord, name: &str) -> &'a HistoryFigureRecord {
        record.figures.iter().find(|one| one.figure == name).unwrap()
    }

    #[test]
    fn a_step_is_dated_and_sized() {
        let record = assemble("http://a/", &runs(30, 22));
        assert_eq!(record.judgement, Judgement::Worse, "{}", record.answer);
        assert!(record.answer.starts_with("p99 is worse by +20"), "{}", record.answer);
        let change = figure(&record, "p99").change.clone().unwrap();
        assert_eq!((change.run.as_str(), change.runs_since), ("run-23", 8));
        assert!(change.low > 0.18 && change.high < 0.22, "{change:?}");
        assert_eq!(figure(&record, "p50").judgement, Judgement::NoneShown);
        let back: HistoryRecord =
            serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        assert_eq!(back, record);
    }

    #[test]
    fn few_runs_and_invalid_runs_decide_nothing() {
        assert_eq!(assemble("x", &runs(7, 4)).judgement, Judgement::TooFew);
        assert_eq!(assemble("x", &[]).judgement, Judgement::TooFew);
        let mut invalid = runs(30, 22);
        invalid[22..].iter_mut().for_each(|run| run.headline.state = State::Invalid);
        let record = assemble("x", &invalid);
        assert_eq!((record.judgement, record.invalid), (Judgement::NoneShown, 8));
        assert_eq!(record.answer, "No change was found in 22 runs.");
    }
}
