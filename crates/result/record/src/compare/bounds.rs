//! The rules of `--fail-if`: a figure and how far it may move, `p99 +5%`.

use super::amount::{amount, interval};
use super::{BoundRecord, DifferenceRecord, Judgement};
use crate::figures::{FigureKind, RUN_FIGURES};
use units::{ParseError, quoted};

/// How far one figure may move before the comparison fails.
#[derive(Clone, Debug, PartialEq)]
pub struct FailIf {
    /// A name of the figures: `p99`, `throughput`.
    figure: &'static str,
    /// Signed, as a share: 0.05 for `+5%`; of `failures`, points of their share.
    limit: f64,
    text: String,
}

impl FailIf {
    /// `p99 +5%`, `throughput -3%`; of failures the percentage is in points, `failures +0.1%`.
    ///
    /// # Errors
    /// An unknown figure, a number without sign or `%`, or a bound that a server which got better
    /// would cross.
    pub fn parse(text: &str) -> Result<FailIf, ParseError> {
        let text = text.trim();
        let bad = |why: &str| {
            ParseError(format!(
                "{} is not a bound: {why}; write a figure and how far it may move, such as 'p99 +5%' \
                 or 'throughput -3%'",
                quoted(text)
            ))
        };
        let at = text.find(['+', '-', '−']).ok_or_else(|| bad("it has no + or -"))?;
        let (name, signed) = (text[..at].trim(), &text[at..]);
        let known = RUN_FIGURES.iter().find(|(figure, ..)| *figure == name);
        let names = RUN_FIGURES.map(|(figure, ..)| figure).join(" ");
        let (figure, _, kind) =
            known.ok_or_else(|| bad(&format!("{} is not one of {names}", quoted(name))))?;
        let sign = if signed.starts_with('+') { 1.0 } else { -1.0 };
        let digits = signed.trim_start_matches(['+', '-', '−']).trim();
        let digits =
            digits.strip_suffix('%').ok_or_else(|| bad("it does not end in %"))?.trim_end();
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let percent: Option<f64> = plain.then(|| digits.parse().ok()).flatten();
        let percent =
            percent.ok_or_else(|| bad(&format!("{} is not a percentage", quoted(digits))))?;
        let grows_worse = *kind == FigureKind::Time || *figure == "failures";
        if (sign > 0.0) != grows_worse {
            let other = if grows_worse { '+' } else { '-' };
            let why = format!("a server that got better would cross it; did you mean {other}?");
            return Err(bad(&why));
        }
        if sign < 0.0 && percent >= 100.0 {
            return Err(bad("nothing falls by all it has or more"));
        }
        Ok(FailIf { figure, limit: sign * percent / 100.0, text: text.to_owned() })
    }

    /// The name of the figure that is bounded.
    pub(super) fn figure(&self) -> &'static str {
        self.figure
    }

    /// Whether a difference is shown and lies beyond the bound. What cannot be judged counts as
    /// crossed: a gate that cannot see stays shut. `unknown`: why the figure is not compared.
    pub(super) fn judge(
        &self,
        differences: &[DifferenceRecord],
        unknown: Option<&str>,
    ) -> BoundRecord {
        let of = |crossed: bool, why: String| BoundRecord { text: self.text.clone(), crossed, why };
        let Some(found) = differences.iter().find(|one| one.figure == self.figure) else {
            let why = unknown.unwrap_or("has too few calls in a run to be judged");
            return of(true, format!("{} {why}", self.figure));
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
            Judgement::TooFew => {
                of(true, format!("{} cannot be judged from these runs", found.figure))
            }
            Judgement::NoneShown => {
                let far = if self.limit > 0.0 { found.high } else { found.low };
                let possible = far.abs() > self.limit.abs() && far * self.limit > 0.0;
                let more =
                    if possible { "; as much cannot be excluded: take more blocks" } else { "" };
                of(false, format!("{moved}: no significant difference{more}"))
            }
            _ if beyond => of(true, moved),
            _ => of(false, format!("{moved}: within the bound")),
        }
    }
}
