//! Detects drift in figures of a soak: the trend by the Mann-Kendall test, its size by the
//! Theil-Sen slope. Both are required, because in a long soak even a negligible trend is
//! significant.

use super::super::steps::LoadStep;
use sample::ServerState;
use stats::steady::{mann_kendall, theil_sen};
use torture::result::{Measure, Unit};
use units::{Nanos, show};

/// Number of windows: wanted, minimum and maximum.
pub(super) const ROWS_WANTED: u64 = 30;
pub(super) const ROWS_MIN: usize = 8;
pub(super) const ROWS_MAX: usize = 500;
/// Largest p-value of a significant trend.
const P_MAX: f64 = 0.01;
/// Minimum growth of a figure, relative to its start and absolute.
const GROWTH: f64 = 0.25;
const HOUR_S: f64 = 3_600.0;

/// Figures of one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// Time since the start of the soak.
    pub(super) at: Nanos,
    p99_s: f64,
    /// Regular requests without a correct response, per thousand.
    lost: f64,
    /// Resident bytes, descriptors and threads, if visible.
    server: Option<[f64; 3]>,
}

impl Row {
    pub(super) fn new(at: Nanos, step: &LoadStep, server: Option<&ServerState>) -> Row {
        let seen = |state: &ServerState| {
            [state.memory_bytes, state.descriptors, state.threads].map(|count| count as f64)
        };
        Row {
            at,
            p99_s: step.p99.as_secs_f64(),
            lost: 1_000.0 * (1.0 - step.share(step.right)),
            server: server.map(seen),
        }
    }
}

/// Figure, with the minimum growth that is relevant.
#[derive(Clone, Copy, Debug)]
struct Figure {
    what: &'static str,
    unit: Unit,
    least: f64,
    of: fn(&Row) -> Option<f64>,
}

const FIGURES: [Figure; 5] = [
    Figure { what: "p99 of a soak", unit: Unit::Spent, least: 0.005, of: |row| Some(row.p99_s) },
    Figure {
        what: "lost per 1,000 in a soak",
        unit: Unit::Count,
        least: 10.0,
        of: |row| Some(row.lost),
    },
    Figure {
        what: "memory in a soak",
        unit: Unit::Bytes,
        least: 4_194_304.0,
        of: |row| row.server.map(|[bytes, _, _]| bytes),
    },
    Figure {
        what: "descriptors in a soak",
        unit: Unit::Count,
        least: 8.0,
        of: |row| row.server.map(|[_, count, _]| count),
    },
    Figure {
        what: "threads in a soak",
        unit: Unit::Count,
        least: 4.0,
        of: |row| row.server.map(|[_, _, count]| count),
    },
];

/// Drift of a figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drift {
    figure: Figure,
    low: f64,
    high: f64,
    /// Start value by the fitted line; total growth; growth per hour.
    first: f64,
    growth: f64,
    an_hour: f64,
    /// Probability of a score this extreme without a trend; 1 if all values are equal.
    p_value: f64,
}

/// Returns the drift of every figure present in all rows.
pub(super) fn drifts(rows: &[Row]) -> Vec<Drift> {
    FIGURES.iter().filter_map(|figure| drift(*figure, rows)).collect()
}

/// Returns the growth per hour of these levels, each with its time.
pub(super) fn per_hour(levels: &[(Nanos, u64)]) -> Option<f64> {
    let point = |(at, level): &(Nanos, u64)| (at.as_secs_f64() / HOUR_S, *level as f64);
    theil_sen(&levels.iter().map(point).collect::<Vec<(f64, f64)>>())
}

fn drift(figure: Figure, rows: &[Row]) -> Option<Drift> {
    let x = |row: &Row| row.at.as_secs_f64() / HOUR_S;
    let points: Option<Vec<(f64, f64)>> =
        rows.iter().map(|row| (figure.of)(row).map(|y| (x(row), y))).collect();
    let points = points.filter(|points| points.len() >= ROWS_MIN)?;
    let values: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
    let an_hour = theil_sen(&points)?;
    let third = points.len() / 3;
    let mut first = values[..third].to_vec();
    first.sort_by(f64::total_cmp);
    let span = points.last().map_or(0.0, |(x, _)| *x) - points.first().map_or(0.0, |(x, _)| *x);
    Some(Drift {
        figure,
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        first: first[first.len() / 2],
        growth: an_hour * span,
        an_hour,
        p_value: mann_kendall(&values).map_or(1.0, |trend| trend.p_value),
    })
}

impl Drift {
    /// Returns whether it grows significantly and by more than noise.
    pub(super) fn is_found(&self) -> bool {
        let enough = self.growth >= self.figure.least && self.growth >= self.first * GROWTH;
        enough && self.p_value <= P_MAX
    }

    /// Returns whether this is the drift of the memory.
    pub(super) fn is_memory(&self) -> bool {
        self.figure.unit == Unit::Bytes
    }

    /// Returns whether growth at this rate per hour, without requests, explains most of it.
    pub(super) fn is_explained_by(&self, rest: f64) -> bool {
        rest * 2.0 >= self.an_hour
    }

    /// Returns why it is not a finding, if it also grows without requests.
    pub(super) fn note_at_rest(&self, rest: f64) -> String {
        format!(
            "memory drifts by {} per hour, and by {} per hour without requests after it: the soak is \
            not the cause",
            self.amount(self.an_hour),
            self.amount(rest)
        )
    }

    pub(super) fn words(&self) -> String {
        let what = self.figure.what.split(" in a soak").next().unwrap_or_default();
        format!(
            "{} drifts: {} per hour, {}",
            what.split(" of a soak").next().unwrap_or_default(),
            self.amount(self.an_hour),
            p_text(self.p_value)
        )
    }

    pub(super) fn measure(&self, rows: usize) -> Measure {
        let (an_hour, p) = (self.amount(self.an_hour), p_text(self.p_value));
        Measure {
            what: self.figure.what.to_owned(),
            low: Some(self.low),
            high: Some(self.high),
            unit: self.figure.unit,
            note: format!("{an_hour} per hour, {p}, {} windows", show::count(rows as u64)),
        }
    }

    fn amount(&self, value: f64) -> String {
        let sign = if value < 0.0 { "-" } else { "+" };
        let size = value.abs();
        let shown = match self.figure.unit {
            Unit::Spent => show::duration(Nanos::from_secs_f64(size)),
            Unit::Bytes => show::bytes(size as u64),
            _ => format!("{size:.1}"),
        };
        format!("{sign}{shown}")
    }
}

fn p_text(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a row for every ten seconds; `p99` in ms.
    fn rows(count: u64, p99: impl Fn(u64) -> f64, memory: impl Fn(u64) -> f64) -> Vec<Row> {
        let row = |n: u64| Row {
            at: Nanos::from_secs(n * 10),
            p99_s: p99(n) / 1e3,
            lost: 0.0,
            server: Some([memory(n), 20.0, 4.0]),
        };
        (0..count).map(row).collect()
    }

    fn found(rows: &[Row]) -> Vec<String> {
        drifts(rows).iter().filter(|one| one.is_found()).map(Drift::words).collect()
    }

    #[test]
    fn drift_is_found_and_noise_is_not() {
        const MIB: f64 = 1_048_576.0;
        let steady = rows(30, |n| 2.0 + (n * 7 % 5) as f64, |n| (50 + n % 3) as f64 * MIB);
        assert_eq!(found(&steady), Vec::<String>::new());
        assert_eq!(drifts(&steady).len(), FIGURES.len());
        // significant, but far too small to matter
        let little = rows(30, |n| 100.0 + n as f64 / 100.0, |_| 50.0 * MIB);
        assert_eq!(found(&little), Vec::<String>::new());
        let slower = rows(30, |n| 10.0 + n as f64, |_| 50.0 * MIB);
        assert_eq!(found(&slower), ["p99 drifts: +360 ms per hour, p < 0.0001"]);
        let bigger = rows(30, |_| 10.0, |n| (50 + n) as f64 * MIB);
        assert_eq!(found(&bigger), ["memory drifts: +360 MiB per hour, p < 0.0001"]);
        // shrinking is not a finding
        assert_eq!(found(&rows(30, |n| 100.0 - n as f64, |_| 1.0)), Vec::<String>::new());
        assert!(drifts(&slower[..7]).is_empty());
    }

    #[test]
    fn growth_at_rest_explains_a_drift() {
        const MIB: u64 = 1 << 20;
        let grown = rows(30, |_| 10.0, |n| ((50 + n) * MIB) as f64);
        let all = drifts(&grown);
        let memory = all.iter().find(|one| one.is_memory()).unwrap();
        let rest = |kib: u64| {
            let levels: Vec<(Nanos, u64)> =
                (0..20).map(|n| (Nanos::from_secs(n * 3), 80 * MIB + n * kib * 1_024)).collect();
            per_hour(&levels).unwrap()
        };
        // 360 MiB per hour in the soak; 5 KiB per second at rest is noise, 70 KiB is not
        assert!(!memory.is_explained_by(rest(15)) && memory.is_explained_by(rest(210)));
        let note = "memory drifts by +360 MiB per hour, and by +246 MiB per hour without requests \
            after it: the soak is not the cause";
        assert_eq!(memory.note_at_rest(rest(210)), note);
        assert!(!memory.is_explained_by(0.0));
    }

    #[test]
    fn invisible_figures_are_not_reported() {
        let mut rows = rows(10, |_| 1.0, |_| 1.0);
        rows[4].server = None;
        let names: Vec<&str> = drifts(&rows).iter().map(|one| one.figure.what).collect();
        assert_eq!(names, ["p99 of a soak", "lost per 1,000 in a soak"]);
    }
}
