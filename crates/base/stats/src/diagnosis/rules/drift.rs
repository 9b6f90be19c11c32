use super::super::{Confidence, Rule, Sign, View};
use crate::steady::{DRIFT_CHANGE_MIN, DRIFT_P_MAX, DRIFT_ROWS_MIN, Drifting, drift};
use units::{Nanos, show};

const SURE_CHANGE: f64 = 0.25;
const SURE_P: f64 = 1e-4;

pub(crate) const RULE: Rule = Rule {
    id: "drift",
    title: "The server gets slower as it runs",
    reasoning: "A leak, a table that grows, a log or a disk that fills, fragmentation or a queue \
        that is never emptied make a server slower with every call, at constant load. The rows of \
        the series then have a trend that lasts to the end: they rise far more often than they \
        fall. Overload makes response times rise as well, so an open load that the server cannot \
        keep up with is excluded.",
    source: "Mann, Econometrica 13, 1945; Kendall, Rank Correlation Methods, 1975.",
    thresholds: &[
        (DRIFT_ROWS_MIN as f64, "rows of the series, at least"),
        (DRIFT_CHANGE_MIN, "change from the first to the last third, at least"),
        (DRIFT_P_MAX, "p-value of the Mann-Kendall test, at most"),
    ],
    advice: "Run longer and watch the server's memory, descriptors and table sizes (--sut shows the \
             first two); a restart that resets the times confirms it.",
    excludes: &["serial-handler", "worker-pool", "cpu-contention"],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let measurement = view.evidence.measurement;
    if view.evidence.ramped || view.overloaded() {
        return None;
    }
    let found = drift(&measurement.series, measurement.window)?;
    let slower = match found.figure {
        Drifting::ResponseP50 => found.last > found.first,
        Drifting::Throughput => found.last < found.first,
    };
    if !slower {
        return None;
    }
    let (name, first, last) = match found.figure {
        Drifting::ResponseP50 => {
            let shown = |secs| show::duration(Nanos::from_secs_f64(secs));
            ("the median response time rose", shown(found.first), shown(found.last))
        }
        Drifting::Throughput => {
            ("throughput fell", show::rate(found.first), show::rate(found.last))
        }
    };
    let text = format!(
        "{name} from {first} to {last} from the first to the last third of the run, and the trend lasted to \
         its end (Mann-Kendall p {:.1e})",
        found.p_value
    );
    let sure = found.change().abs() >= SURE_CHANGE && found.p_value <= SURE_P;
    Sign::new(if sure { Confidence::Likely } else { Confidence::Possible }, text)
}
