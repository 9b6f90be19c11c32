//! The rules of `--fail-if`: a figure and how far it may move, `p99 +5%`.

use super::amount::{amount, interval};
use super::{BoundRecord, DifferenceRecord, Judgement};
use crate::figures::{FigureKind, RUN_FIGURES};
use crate::run::{CauseRecord, Headline, RunRecord};
use stats::compare::Scale;
use stats::sequential::Margin;
use stats::verdict::INVALID;
use stats::{CauseId, State, samples_needed};
use units::{ParseError, quoted};

/// Figures that only a gate judges: they are computed from complete runs, not from headline
/// figures.
const GATE_FIGURES: [&str; 2] = ["p95", "cpu"];

/// Reason why a figure is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotCompared {
    FailingSide,
    TooFewCalls,
}

impl NotCompared {
    fn text(self) -> &'static str {
        match self {
            NotCompared::FailingSide => "counts the failures of a failing side",
            NotCompared::TooFewCalls => "has too few calls in a run to be judged",
        }
    }
}

/// Maximum change of one figure before the comparison fails.
#[derive(Clone, Debug, PartialEq)]
pub struct FailIf {
    /// A name of the figures: `p99`, `throughput`.
    figure: &'static str,
    /// Signed, as a share: 0.05 for `+5%`; of `failures`, points of their share.
    limit: f64,
    text: String,
}

impl FailIf {
    /// Parses a bound: `p99 +5%`, `throughput -3%`; for failures, the percentage is in points:
    /// `failures +0.1%`.
    ///
    /// # Errors
    /// Fails for an unknown figure, a number without sign or `%`, or a bound that a server which
    /// got better would cross.
    pub fn parse(text: &str) -> Result<FailIf, ParseError> {
        let text = text.trim();
        let bad = |why: &str| {
            ParseError(format!(
                "{} is not a bound: {why}; write a figure and its allowed change, such as 'p99 \
                 +5%' or 'throughput -3%'",
                quoted(text)
            ))
        };
        let at = text.find(['+', '-', '−']).ok_or_else(|| bad("it has no + or -"))?;
        let (name, signed) = (text[..at].trim(), &text[at..]);
        let known = RUN_FIGURES.iter().find(|(figure, ..)| *figure == name);
        let known = known.map(|(figure, _, kind)| (*figure, *kind));
        let of_gates = GATE_FIGURES.iter().find(|figure| **figure == name);
        let known = known.or(of_gates.map(|figure| (*figure, FigureKind::Time)));
        let names = [RUN_FIGURES.map(|(figure, ..)| figure).join(" "), GATE_FIGURES.join(" ")];
        let unknown = || bad(&format!("{} is not one of {}", quoted(name), names.join(" ")));
        let (figure, kind) = known.ok_or_else(unknown)?;
        let sign = if signed.starts_with('+') { 1.0 } else { -1.0 };
        let digits = signed.trim_start_matches(['+', '-', '−']).trim();
        let digits =
            digits.strip_suffix('%').ok_or_else(|| bad("it does not end in %"))?.trim_end();
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let percent: Option<f64> = plain.then(|| digits.parse().ok()).flatten();
        let percent =
            percent.ok_or_else(|| bad(&format!("{} is not a percentage", quoted(digits))))?;
        let grows_worse = kind == FigureKind::Time || figure == "failures";
        if (sign > 0.0) != grows_worse {
            let other = if grows_worse { '+' } else { '-' };
            let why =
                format!("this bound would fail a server that improves; did you mean {other}?");
            return Err(bad(&why));
        }
        if sign < 0.0 && percent >= 100.0 {
            return Err(bad("a decrease must be below 100 %"));
        }
        Ok(FailIf { figure, limit: sign * percent / 100.0, text: text.to_owned() })
    }

    /// Returns the name of the figure that is bounded.
    pub(super) fn figure(&self) -> &'static str {
        self.figure
    }

    /// Returns the bound as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether only a gate with a budget can judge this figure.
    pub fn needs_budget(&self) -> bool {
        GATE_FIGURES.contains(&self.figure)
    }

    /// Returns whether the figure is the CPU time of the server per call.
    pub fn is_cpu_time(&self) -> bool {
        self.figure == "cpu"
    }

    pub(super) fn margin(&self) -> Margin {
        let scale = if self.figure == "failures" { Scale::Points } else { Scale::Ratio };
        Margin { scale, limit: self.limit, rises: self.limit >= 0.0 && !self.bounds_rate() }
    }

    fn bounds_rate(&self) -> bool {
        RUN_FIGURES.iter().any(|(name, _, kind)| *name == self.figure && *kind == FigureKind::Rate)
    }

    /// Returns true if a run counts for this figure: it is not INVALID, or only because of the
    /// client's lateness, which makes no response fail.
    pub(super) fn counts(&self, run: &RunRecord) -> bool {
        let harmless =
            |cause: &CauseRecord| cause.id == CauseId::Slip || !INVALID.contains(&cause.id);
        run.verdict.state != State::Invalid
            || (self.figure == "failures" && run.verdict.causes.iter().all(harmless))
    }

    /// Returns the figure of one run; NaN without it.
    pub(super) fn value(&self, run: &RunRecord) -> f64 {
        if self.is_cpu_time() {
            return cpu_per_call(run).unwrap_or(f64::NAN);
        }
        if self.figure == "p95" {
            return run.response().quantile(0.95).as_secs_f64();
        }
        let of = |headline: &Headline| {
            RUN_FIGURES
                .iter()
                .find(|(name, ..)| *name == self.figure)
                .map_or(f64::NAN, |(_, figure, _)| figure(headline))
        };
        run.headlines().first().map_or(f64::NAN, of)
    }

    /// Returns why this run lacks the figure.
    pub(super) fn missing_figure(&self, run: &RunRecord) -> Option<String> {
        if self.is_cpu_time() {
            let why = "the CPU time of the server is unknown in a run".to_owned();
            return cpu_per_call(run).is_none().then_some(why);
        }
        let quantile = self.figure.strip_prefix('p')?.parse::<f64>().ok()?;
        let (needed, calls) = (samples_needed(quantile / 100.0), run.response_time_s.count);
        (calls < needed)
            .then(|| format!("{} needs {needed} calls per run, but one has {calls}", self.figure))
    }

    /// Judges whether a difference is significant and exceeds the bound; with too few calls or runs
    /// the bound is undecided. The throughput of a failing side crosses its bound. `unknown`: why
    /// the figure is not compared; `sound`: every run counts for this figure.
    pub(super) fn judge(
        &self,
        differences: &[DifferenceRecord],
        unknown: Option<NotCompared>,
        sound: bool,
    ) -> BoundRecord {
        let of = |crossed: bool, why: String| BoundRecord {
            text: self.text.clone(),
            crossed,
            certain: false,
            undecided: false,
            why,
        };
        let open = |why: String| BoundRecord { undecided: true, ..of(false, why) };
        let Some(found) = differences.iter().find(|one| one.figure == self.figure) else {
            let reason = unknown.unwrap_or(NotCompared::TooFewCalls);
            let why = format!("{} {}", self.figure, reason.text());
            return match reason {
                NotCompared::TooFewCalls => open(why),
                NotCompared::FailingSide => of(true, why),
            };
        };
        let moved = format!(
            "{} changed by {} ({})",
            found.figure,
            amount(found.change, found.points()),
            interval(found)
        );
        let beyond =
            if self.limit > 0.0 { found.change > self.limit } else { found.change < self.limit };
        match found.judgement {
            Judgement::TooFew => open(format!("{} cannot be judged from these runs", found.figure)),
            Judgement::NoneShown => {
                let far = if self.limit > 0.0 { found.high } else { found.low };
                let possible = far.abs() > self.limit.abs() && far * self.limit > 0.0;
                let more = match possible {
                    true => "; a change beyond the bound cannot be excluded: use more blocks",
                    false => "",
                };
                of(false, format!("{moved}: no significant difference{more}"))
            }
            _ if beyond => BoundRecord { certain: sound, ..of(true, moved) },
            _ => of(false, format!("{moved}: within the bound")),
        }
    }
}

/// Returns the CPU time of the server per call, in seconds.
fn cpu_per_call(run: &RunRecord) -> Option<f64> {
    let sut = run.sut.as_ref().filter(|sut| !sut.series.is_empty())?;
    let cores = sut.series.iter().map(|row| row.0.cpu_cores).sum::<f64>() / sut.series.len() as f64;
    (cores > 0.0 && run.throughput_per_s > 0.0).then(|| cores / run.throughput_per_s)
}
