//! `ramp --vary loss=0..10%`: the axis is a property of the path, and the load is constant.

use super::UsageError;
use engine::ramp::Staircase;
use plan::rules;
use stats::curve::Axis;
use units::{Nanos, quoted};
use wan::PathSpec;

/// Levels of a property of the path, and the path of each level.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    pub axis: Axis,
    /// Levels, in the unit of [`Axis`].
    pub levels: Vec<f64>,
    /// Constant part of the path, to which the level is added.
    base: Option<PathSpec>,
}

/// Default number of steps between the ends: one per percent for 0..10 %.
const STEPS_DEFAULT: f64 = 10.0;
/// Slowest and fastest link, in bits a second, and the longest round trip.
const RATE: (f64, f64) = (1_000.0, 10e9);
const ROUND_TRIP_MAX_S: f64 = 60.0;

impl Vary {
    /// Parses `loss=0..10%`, `rtt=0..300ms`, `rate=1M..16M`; `step` and `factor` as in `--step` and
    /// `--factor`. The unit of the range may follow only its last number; the step has its own.
    ///
    /// # Errors
    /// Fails for an unknown property or an invalid range; a level that makes no valid path on
    /// `base`.
    pub(super) fn parse(
        text: &str,
        base: Option<&PathSpec>,
        step: Option<&str>,
        factor: Option<f64>,
    ) -> Result<Vary, UsageError> {
        let wrong = |why: &str| {
            UsageError::new(format!(
                "--vary {}: {why}; write one like loss=0..10%, rtt=0..300ms or rate=1M..16M",
                quoted(text)
            ))
        };
        let (name, range) = text.split_once('=').ok_or_else(|| wrong("it has no ="))?;
        let axis = match name.trim() {
            "loss" => Axis::Loss,
            "rtt" => Axis::RoundTrip,
            "rate" => Axis::LinkRate,
            other => {
                let why = format!("{} is not a property that can be varied", quoted(other));
                return Err(wrong(&why));
            }
        };
        let (low, high) = range.split_once("..").ok_or_else(|| wrong("it is not a range"))?;
        let low = low.trim();
        let high = high.trim();
        let unit = high.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let with_unit = |text: &str| match text.ends_with(|c: char| c.is_ascii_digit()) {
            true => format!("{text}{unit}"),
            false => text.to_owned(),
        };
        let level = |text: &str| figure(axis, text).map_err(|why| wrong(&why));
        let from = level(&with_unit(low))?;
        let to = level(high)?;
        if from >= to {
            return Err(wrong("it does not go up"));
        }
        if let Some(bare) = step.filter(|step| with_unit(step) != *step) {
            let why = format!("{} has no unit: write {}", quoted(bare), with_unit(bare));
            return Err(UsageError::new(format!("--step {why}")));
        }
        let staircase = match (step, factor) {
            (Some(step), _) => Staircase::Step(level(step)?),
            (None, Some(factor)) => Staircase::Factor(factor),
            // rates are perceived by their doublings
            (None, None) if axis == Axis::LinkRate => Staircase::Factor(2.0),
            (None, None) => Staircase::Step((to - from) / STEPS_DEFAULT),
        };
        let levels = staircase
            .levels(from, to, false)
            .ok_or_else(|| wrong("--step or --factor makes no step, or more than 1,000"))?;
        let vary = Vary { axis, levels, base: base.cloned() };
        for level in &vary.levels {
            vary.at(*level)?;
        }
        Ok(vary)
    }

    /// Returns the path at a level.
    ///
    /// # Errors
    /// Fails if the level contradicts the constant part.
    pub fn at(&self, level: f64) -> Result<PathSpec, UsageError> {
        let item = match self.axis {
            // percents in decimal notation: 0.1 % and 10 % without a tail of binary digits
            Axis::Loss => format!("loss={}%", (level * 1e8).round() / 1e6),
            Axis::LinkRate => format!("rate={}", level.round()),
            _ => format!("rtt={}us", (level * 1e6).round()),
        };
        let (text, traces) = match &self.base {
            Some(base) => (format!("{}, {item}", base.text), base.traces.clone()),
            None => (item, Vec::new()),
        };
        rules::parse_path(&text, &traces)
            .map_err(|error| UsageError::new(format!("--vary: {error}")))
    }
}

/// Parses a level, in the unit of its axis.
fn figure(axis: Axis, text: &str) -> Result<f64, String> {
    match axis {
        Axis::Loss => units::parse_share(text).map_err(|error| error.0).and_then(|share| {
            if share < 1.0 { Ok(share) } else { Err("a path must deliver some packets".to_owned()) }
        }),
        Axis::LinkRate => {
            let bits = rules::parse_bits(text).map_err(|error| error.0)?;
            let inside = bits >= RATE.0 && bits <= RATE.1;
            inside.then_some(bits).ok_or_else(|| "a link has 1k to 10G bits per second".to_owned())
        }
        _ if text == "0" => Ok(0.0),
        _ => {
            let seconds = units::parse_duration(text).map(Nanos::as_secs_f64);
            let seconds = seconds.map_err(|error| error.0)?;
            let inside = seconds <= ROUND_TRIP_MAX_S;
            inside.then_some(seconds).ok_or_else(|| "a round trip takes at most 60s".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, base: Option<&str>, step: Option<&str>) -> Vec<String> {
        let base = base.map(|text| rules::parse_path(text, &wan::NoTraces).unwrap());
        let vary = Vary::parse(text, base.as_ref(), step, None).unwrap();
        vary.levels.iter().map(|level| vary.at(*level).unwrap().text).collect()
    }

    #[test]
    fn levels_become_paths() {
        let percents = texts("loss=0..10%", None, None);
        assert_eq!((percents.len(), &*percents[0], &*percents[3]), (11, "loss=0%", "loss=3%"));
        assert_eq!(
            texts("rtt=0..300ms", Some("dsl, loss=1%"), Some("150ms")),
            ["dsl, loss=1%, rtt=0us", "dsl, loss=1%, rtt=150000us", "dsl, loss=1%, rtt=300000us"]
        );
        assert_eq!(
            texts("rate=1M..5M", Some("rtt=9ms"), None),
            [
                "rtt=9ms, rate=1000000",
                "rtt=9ms, rate=2000000",
                "rtt=9ms, rate=4000000",
                "rtt=9ms, rate=5000000"
            ]
        );
    }

    #[test]
    fn invalid_ranges_are_refused() {
        let describe = |text: &str| Vary::parse(text, None, None, None).unwrap_err().to_string();
        for (text, part) in [
            ("loss", "it has no ="),
            ("lost=0..1%", "\"lost\" is not a property that can be varied"),
            ("loss=5%", "it is not a range"),
            ("loss=5..1%", "it does not go up"),
            ("loss=0..100%", "a path must deliver some packets"),
            ("rtt=0..2h", "a round trip takes at most 60s"),
            ("rate=1bps..1M", "a link has 1k"),
            ("rtt=a..b", "\"a\" is not a duration"),
        ] {
            assert!(describe(text).contains(part), "{text}: {}", describe(text));
        }
        for (text, bare, fix) in [
            ("rtt=0..300ms", "150", "--step \"150\" has no unit: write 150ms"),
            ("loss=0..10%", "0.5", "--step \"0.5\" has no unit: write 0.5%"),
            ("rate=1M..5M", "1", "--step \"1\" has no unit: write 1M"),
        ] {
            assert_eq!(Vary::parse(text, None, Some(bare), None).unwrap_err().to_string(), fix);
        }
        // bits per second need none
        assert_eq!(texts("rate=1000..3000", None, Some("1000")).len(), 3);
    }
}
