//! `30s:0..100, 2m:100, 10s:0`: the number of users, or of calls that become due per second, stage
//! by stage.

use crate::rules::show_span;
use crate::{Arrivals, Load, Think};
use units::{Nanos, ParseError, Rate, parse_count, parse_duration, parse_rate, quoted};
pub use workload::schedule::{Levels, Stage};

/// Unit of the levels of stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageUnit {
    /// Users of a closed loop.
    Users,
    /// Arrivals per second.
    PerSecond,
}

impl StageUnit {
    /// Returns the unit of these stages, whether or not they are well-formed.
    pub fn from_text(text: &str) -> StageUnit {
        if text.contains('/') { StageUnit::PerSecond } else { StageUnit::Users }
    }
}

/// Stages as typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    pub unit: StageUnit,
    pub levels: Levels,
}

impl Stages {
    /// Returns the load with these stages, represented by the highest level; keeps the settings of
    /// `old` if that is of the same kind.
    pub fn load(&self, old: &Load) -> Load {
        let highest = self.levels.highest();
        match (self.unit, old) {
            (StageUnit::Users, Load::Closed { think, session, .. }) => Load::Closed {
                users: highest.ceil() as u32,
                think: *think,
                session: session.clone(),
            },
            (StageUnit::Users, Load::Open { .. }) => {
                Load::Closed { users: highest.ceil() as u32, think: Think::None, session: None }
            }
            (
                StageUnit::PerSecond,
                Load::Open { arrivals, session, connections_max, queue_max },
            ) => {
                let (from, to) = (Rate(highest), Rate(highest));
                Load::Open {
                    arrivals: Arrivals { from, to, at: None, ..arrivals.clone() },
                    session: session.clone(),
                    connections_max: *connections_max,
                    queue_max: *queue_max,
                }
            }
            (StageUnit::PerSecond, Load::Closed { .. }) => Load::Open {
                arrivals: Arrivals::constant(Rate(highest)),
                session: None,
                connections_max: None,
                queue_max: None,
            },
        }
    }
}

const EXAMPLE: &str = "'30s:0..100, 2m:100, 10s:0' of users, or with 100/s of arrivals";

/// Parses stages separated by commas: duration, and the level at its end, or at both ends. Without
/// the first level, a stage starts where the previous one ended; the very first then stays at its
/// level.
///
/// # Errors
/// Fails for malformed stages, and for users mixed with rates.
pub fn parse_stages(text: &str) -> Result<Stages, ParseError> {
    let bad = |part: &str, why: String| {
        ParseError(format!(
            "{} is not a stage: {why}; write stages as {EXAMPLE}",
            quoted(part.trim())
        ))
    };
    let unit = StageUnit::from_text(text);
    let mut stages: Vec<Stage> = Vec::new();
    for part in text.split(',') {
        let (over, levels) =
            part.split_once(':').ok_or_else(|| bad(part, "it has no colon".to_owned()))?;
        let over = parse_duration(over).map_err(|error| bad(part, error.0))?;
        let (first, second) = match levels.split_once("..") {
            Some((first, second)) => (Some(with_unit_of(first, second)), second),
            None => (None, levels),
        };
        let read = |text: &str| level(text, unit).map_err(|error| bad(part, error.0));
        let to = read(second)?;
        let from = match (first, stages.last()) {
            (Some(first), _) => read(&first)?,
            (None, Some(before)) => before.to,
            (None, None) => to,
        };
        stages.push(Stage { over, from, to });
    }
    let levels = Levels::new(&stages)
        .map_err(|why| ParseError(format!("the stages {}: {why}", quoted(text))))?;
    Ok(Stages { unit, levels })
}

/// Applies the unit of the second level to the first level too, unless that has a unit.
fn with_unit_of(first: &str, second: &str) -> String {
    match second.split_once('/') {
        Some((_, per)) if !first.contains('/') => format!("{first}/{per}"),
        _ => first.to_owned(),
    }
}

fn level(text: &str, unit: StageUnit) -> Result<f64, ParseError> {
    let number = text.split('/').next().unwrap_or_default().trim();
    if number.parse::<f64>() == Ok(0.0) {
        return Ok(0.0);
    }
    match unit {
        StageUnit::PerSecond if text.contains('/') => Ok(parse_rate(text)?.0),
        StageUnit::PerSecond => Err(ParseError(format!(
            "{} has no /s, and another level has: stages are all of users or all of rates",
            quoted(text.trim())
        ))),
        StageUnit::Users => Ok(parse_count(text)? as f64),
    }
}

/// Formats stages as [`parse_stages`] reads them.
pub fn show_stages(stages: &Stages) -> String {
    let unit = match stages.unit {
        StageUnit::Users => "",
        StageUnit::PerSecond => "/s",
    };
    let mut before: Option<f64> = None;
    let show = |stage: &Stage| {
        let span = show_span(stage.over);
        let goes_on = before.unwrap_or(stage.to).total_cmp(&stage.from).is_eq();
        before = Some(stage.to);
        match goes_on {
            true => format!("{span}:{}{unit}", stage.to),
            false => format!("{span}:{}{unit}..{}{unit}", stage.from, stage.to),
        }
    };
    stages.levels.stages().iter().map(show).collect::<Vec<_>>().join(", ")
}

/// Returns the total duration of stages, as the length of a run.
pub(crate) fn span_of(stages: &Stages) -> Option<Nanos> {
    Some(stages.levels.span()).filter(|span| !span.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_and_printed() {
        let same = |text: &str, shown: &str| {
            let read = parse_stages(text).unwrap();
            assert_eq!(show_stages(&read), shown);
            assert_eq!(parse_stages(shown).unwrap(), read);
            read
        };
        let hill = same("30s:0..100, 2m:100, 10s:0", "30s:0..100, 120s:100, 10s:0");
        assert_eq!(hill.unit, StageUnit::Users);
        assert_eq!((hill.levels.highest(), hill.levels.span()), (100.0, Nanos::from_secs(160)));
        let rates = same("1m:50/s,10s:0..120/m,1s:7/s..0", "60s:50/s, 10s:0/s..2/s, 1s:7/s..0/s");
        assert_eq!(rates.unit, StageUnit::PerSecond);
        assert_eq!(rates.levels.first().to_bits(), 50.0_f64.to_bits());
    }

    #[test]
    fn an_invalid_stage_is_reported() {
        for (text, reported) in [
            ("30s", "\"30s\" is not a stage: it has no colon"),
            ("30s:5, 1x:3", "is not a unit of time"),
            ("30s:5..9/s, 10s:4", "\"4\" has no /s"),
            ("30s:five", "\"30s:five\" is not a stage"),
            ("30s:0", "all levels are 0"),
            ("", "is not a stage"),
        ] {
            let why = parse_stages(text).unwrap_err().0;
            assert!(why.contains(reported), "{text}: {why}");
        }
    }
}
