//! Phases of arrivals.

use super::DraftReader;
use crate::draft::{LoadKind, LoadPart};
use crate::tree::TreeNode;
use units::Nanos;

/// Parses seconds, or a text such as `5m` and `1 minute`.
pub(super) fn time(node: &TreeNode) -> Option<Nanos> {
    let text = node.scalar()?;
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return (0.0..=1e9)
            .contains(&seconds)
            .then(|| Nanos((seconds * 1e3).round() as u64 * 1_000_000));
    }
    let words = [
        ("milliseconds", "ms"),
        ("millisecond", "ms"),
        ("seconds", "s"),
        ("second", "s"),
        ("minutes", "m"),
        ("minute", "m"),
        ("hours", "h"),
        ("hour", "h"),
        ("min", "m"),
        ("sec", "s"),
    ];
    let number: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let unit = text[number.len()..].trim();
    let unit = words.iter().find(|(word, _)| *word == unit).map_or(unit, |(_, short)| short);
    units::parse_duration(&format!("{number}{unit}")).ok()
}

impl DraftReader<'_> {
    pub(super) fn phases(&mut self, phases: &[TreeNode]) {
        let mut stages: Vec<(Nanos, f64, f64)> = Vec::new();
        for phase in phases {
            if let Some(pause) = phase.get("pause").and_then(time) {
                stages.push((pause, 0.0, 0.0));
                continue;
            }
            let Some(duration) =
                phase.get("duration").and_then(time).filter(|it| *it > Nanos::ZERO)
            else {
                self.draft.left_out.add(phase.line, "phase", "it has no supported duration");
                continue;
            };
            let number = |key: &str| {
                phase.get(key).and_then(TreeNode::number).filter(|it| (0.0..=1e7).contains(it))
            };
            let rate = number("arrivalRate");
            let count = number("arrivalCount").map(|count| count / duration.as_secs_f64());
            let ramp = number("rampTo");
            let (from, to) = match (rate, count, ramp) {
                (rate, _, Some(to)) => (rate.unwrap_or(0.0), to),
                (Some(rate), ..) => (rate, rate),
                (None, Some(count), None) => (count, count),
                (None, None, None) => {
                    self.draft.left_out.add(
                        phase.line,
                        "phase",
                        "it has no arrivalRate, rampTo or arrivalCount that is a number",
                    );
                    continue;
                }
            };
            if let Some(node) = phase.get("maxVusers") {
                let why =
                    "arrivals are not held back here; connections_max in [load] bounds connections";
                self.draft.left_out.add(node.line, "maxVusers", why);
            }
            stages.push((duration, from, to));
        }
        if stages.iter().all(|(_, from, to)| from.max(*to) <= 0.0) {
            return;
        }
        let duration = Nanos(stages.iter().map(|(over, ..)| over.0).sum());
        let kind = match &stages[..] {
            [(_, from, to)] if from.total_cmp(to).is_eq() => LoadKind::Rate(*from),
            _ => LoadKind::Stages(stages, true),
        };
        self.draft.loads.push(LoadPart {
            name: "phases".to_owned(),
            journeys: Vec::new(),
            start: Nanos::ZERO,
            duration: Some(duration),
            iterations: None,
            kind,
        });
    }
}
