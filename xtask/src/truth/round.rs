//! One round of the truth test, read from the files that `bench/truth.sh` leaves.

use anyhow::{Context, bail};
use serde_json::Value;
use std::fmt::Write as _;

pub(super) const QUANTILES: [&str; 4] = ["p50", "p90", "p99", "p99.9"];
/// Largest relative difference to the reference client.
pub(super) const TOLERANCE: f64 = 0.05;

/// Lateness at which a server by itself moves the median of 10 ms by a fifth of the tolerance.
const SERVER_LATE_P50_US_MAX: f64 = 100.0;
/// Lateness of the last of a response's hundreds after a freeze aside, this moves p90 by a percent.
const SERVER_LATE_P99_US_MAX: f64 = 3_000.0;
/// A freeze that lasts longer than planned moves every upper quantile by as much.
const FREEZE_OVER_MS_MAX: f64 = 5.0;
/// Maximum lateness of the reference client itself.
const REFERENCE_LATE_P99_MS_MAX: f64 = 1.0;

/// Seconds at [`QUANTILES`].
type Times = [f64; 4];

/// One client's run.
#[derive(Debug)]
struct Ran {
    name: &'static str,
    times: Times,
    /// The server's own figures of the run.
    server: ServerLog,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ServerLog {
    late_p50_us: f64,
    late_p99_us: f64,
    freeze_over_ms: f64,
}

/// Figures of one round.
#[derive(Debug, PartialEq)]
pub(super) enum Judgement {
    Right,
    Wrong(Vec<String>),
    /// The server or the reference client was late by its own log.
    Unfit(String),
}

#[derive(Debug)]
pub(super) struct Round {
    reference: Ran,
    ours: Ran,
    reference_64: Ran,
    ours_64: Ran,
    /// Service times of a closed loop, which hides the freeze: shown, not judged.
    closed: Times,
    reference_late_p99_ms: f64,
    wrong: Vec<String>,
}

impl Round {
    /// Reads a round through `read`, which knows the folder.
    ///
    /// # Errors
    /// Fails if a file is missing or malformed.
    pub(super) fn read(read: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<Round> {
        let server = |name: &str| server_log(&read(&format!("{name}.server"))?);
        let reference = |name: &str| -> anyhow::Result<(Times, f64)> {
            let text = read(&format!("{name}.txt"))?;
            let late = milliseconds(&text, "send later than due", "p99").context("no lateness")?;
            let times = reference_times(&text);
            Ok((times.with_context(|| format!("no times of the reference client: {text}"))?, late))
        };
        let json = |name: &str| -> anyhow::Result<Value> {
            serde_json::from_str(&read(&format!("{name}.json"))?)
                .with_context(|| format!("{name}.json"))
        };
        let open = json("ours")?;
        let pool = json("ours-64")?;
        let closed = json("ours-closed")?;
        let (times, reference_late_p99_ms) = reference("reference")?;
        let (times_64, _) = reference("reference-64")?;
        let ran = |name, file: &str, times| -> anyhow::Result<Ran> {
            Ok(Ran { name, times, server: server(file)? })
        };
        Ok(Round {
            reference: ran("reference client", "reference", times)?,
            ours: ran("loadstone", "ours", quantiles(&open, "response_time_s")?)?,
            reference_64: ran("reference client, 64 connections", "reference-64", times_64)?,
            ours_64: ran(
                "loadstone --connections-max 64",
                "ours-64",
                quantiles(&pool, "response_time_s")?,
            )?,
            closed: quantiles(&closed, "service_time_s")?,
            reference_late_p99_ms,
            wrong: other_errors(&open, &pool),
        })
    }

    pub(super) fn judge(&self) -> Judgement {
        if self.reference_late_p99_ms > REFERENCE_LATE_P99_MS_MAX {
            let late = self.reference_late_p99_ms;
            return Judgement::Unfit(format!("the reference client sent {late:.2} ms late (p99)"));
        }
        for ran in [&self.reference, &self.ours, &self.reference_64, &self.ours_64] {
            if let Some(why) = ran.server.unfit() {
                return Judgement::Unfit(format!("with {}, {why}", ran.name));
            }
        }
        let mut wrong = self.wrong.clone();
        wrong.extend(differences(&self.ours, &self.reference));
        wrong.extend(differences(&self.ours_64, &self.reference_64));
        if wrong.is_empty() { Judgement::Right } else { Judgement::Wrong(wrong) }
    }

    /// Renders the figures side by side, for readers.
    pub(super) fn table(&self) -> String {
        let mut text = format!("{:<36}", "ms");
        for quantile in QUANTILES {
            write!(text, "{quantile:>9}").ok();
        }
        let runs = [&self.reference, &self.ours, &self.reference_64, &self.ours_64];
        let closed = ("loadstone -c 20, closed: service time", &self.closed);
        for (name, times) in runs.iter().map(|ran| (ran.name, &ran.times)).chain([closed]) {
            write!(text, "\n{name:<36}").ok();
            for time in times {
                write!(text, "{:>9.2}", time * 1e3).ok();
            }
        }
        text
    }
}

impl ServerLog {
    fn unfit(self) -> Option<String> {
        if self.late_p50_us > SERVER_LATE_P50_US_MAX || self.late_p99_us > SERVER_LATE_P99_US_MAX {
            return Some(format!(
                "the server answered {:.0} µs (p50) and {:.0} µs (p99) late by its own log",
                self.late_p50_us, self.late_p99_us
            ));
        }
        let over = self.freeze_over_ms;
        (over > FREEZE_OVER_MS_MAX)
            .then(|| format!("the server's freeze lasted {over:.1} ms longer than planned"))
    }
}

/// Checks errors other than times: the open load must drop no call, and the small pool must be
/// reported as wait.
fn other_errors(open: &Value, pool: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let outcomes = &open["outcomes"];
    for kind in ["failed", "timed_out", "dropped", "abandoned"] {
        if outcomes[kind].as_u64() != Some(0) {
            wrong.push(format!("the open load had {} {kind}", outcomes[kind]));
        }
    }
    let causes = pool["verdict"]["causes"].as_array();
    let waited = causes.is_some_and(|causes| causes.iter().any(|cause| cause["id"] == "wait"));
    if !waited {
        wrong.push("64 connections were too few, and the verdict does not say wait".to_owned());
    }
    wrong
}

fn differences(ours: &Ran, reference: &Ran) -> Vec<String> {
    let pairs = ours.times.iter().zip(&reference.times).zip(QUANTILES);
    pairs
        .filter(|((own, reference), _)| {
            let off = (*own / *reference - 1.0).abs();
            off > TOLERANCE || off.is_nan()
        })
        .map(|((own, reference), quantile)| {
            let own_ms = own * 1e3;
            let reference_ms = reference * 1e3;
            format!(
                "{}: {quantile} {own_ms:.2} ms where the reference client has {reference_ms:.2} ms",
                ours.name
            )
        })
        .collect()
}

fn quantiles(report: &Value, of: &str) -> anyhow::Result<Times> {
    let mut times = [0.0; 4];
    for (time, quantile) in times.iter_mut().zip(QUANTILES) {
        let figure = report[of][quantile].as_f64();
        *time = figure.with_context(|| format!("the JSON has no {of}.{quantile}"))?;
    }
    Ok(times)
}

/// Parses `latency from due time  p50 10.00 p90 … ms (n 10000)` of bench/limit's openref.
fn reference_times(text: &str) -> Option<Times> {
    let mut times = [0.0; 4];
    for (time, quantile) in times.iter_mut().zip(QUANTILES) {
        *time = milliseconds(text, "latency from due time", quantile)? / 1e3;
    }
    Some(times)
}

fn milliseconds(text: &str, row: &str, quantile: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(row))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != quantile);
    words.nth(1)?.parse().ok()
}

/// Parses `late n 9000 p50_us 2 p99_us 40 max_us 900 freeze_over_ms 0.1` of bench/limit's
/// nullserver.
fn server_log(text: &str) -> anyhow::Result<ServerLog> {
    let of = |key: &str| {
        let mut words = text.split_whitespace().skip_while(|word| *word != key);
        words.nth(1).and_then(|figure| figure.parse::<f64>().ok())
    };
    match (of("p50_us"), of("p99_us"), of("freeze_over_ms")) {
        (Some(late_p50_us), Some(late_p99_us), Some(freeze_over_ms)) => {
            Ok(ServerLog { late_p50_us, late_p99_us, freeze_over_ms })
        }
        _ => bail!("the server's log says something else: {text}"),
    }
}

#[cfg(test)]
mod tests;
