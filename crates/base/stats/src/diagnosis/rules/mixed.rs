use super::super::{Confidence, Rule, Sign, View};
use units::{Nanos, show};

const CONNECTIONS_MIN: u64 = 6;
const GROUP_MIN: u64 = 2;
const GROUP_SHARE_MIN: f64 = 0.08;
const RATIO_MIN: f64 = 2.0;
const GAP_MIN: f64 = 0.5;
const TIGHT_MAX: f64 = 2.0;
const APART_MIN: Nanos = Nanos::from_millis(1);

pub(crate) const RULE: Rule = Rule {
    id: "mixed-backends",
    title: "Connections reach servers of different speed",
    reasoning: "A balancer that chooses a backend for each connection gives some connections a fast \
                server and others a slow one. The mean time of a connection then depends on the \
                connection alone: the means fall into two groups with nothing between, although \
                each is taken over many calls, which would have evened out any difference between \
                calls.",
    source: "The law of large numbers: means of n calls scatter as 1/√n; Brooker, on bimodal \
             services.",
    thresholds: &[
        (6.0, "connections with at least 10 responses each, at least"),
        (RATIO_MIN, "ratio of the slow group's median to the fast group's, at least"),
        (GAP_MIN, "empty share of that distance (logarithms), at least"),
        (TIGHT_MAX, "ratio of p90 to p10 within a group, at most"),
        (GROUP_SHARE_MIN, "share of the connections in the smaller group, at least"),
    ],
    advice: "Compare the backends (version, hardware, cache, warm-up) and the balancer's weights; \
             measure each backend by itself with --resolve.",
    excludes: &[
        "worker-pool",
        "serial-handler",
        "scheduling-quantum",
        "rate-limit",
        "cpu-contention",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let means = view.lives.mean.buckets();
    let all = view.lives.mean.count();
    // some of several targets, scenarios or kinds of clients take longer as planned
    let total = view.total;
    let alike = total.targets.is_empty() && total.scenarios.is_empty() && total.clients.is_empty();
    if all < CONNECTIONS_MIN || !alike {
        return None;
    }
    let widest = means.windows(2).enumerate().max_by(|(_, a), (_, b)| {
        let gap = |pair: &[(Nanos, u64)]| pair[1].0.as_secs_f64() / pair[0].0.as_secs_f64();
        gap(a).total_cmp(&gap(b))
    });
    let (at, pair) = widest?;
    let (fast, slow) = means.split_at(at + 1);
    let count = |group: &[(Nanos, u64)]| group.iter().map(|(_, count)| count).sum::<u64>();
    let (few, many) = (count(fast).min(count(slow)), all);
    let (quick, lame) = (at_share(fast, 0.5), at_share(slow, 0.5));
    // a few very long calls spread the means of their connections; another server shifts them
    let tight = |group| at_share(group, 0.9).0 as f64 <= TIGHT_MAX * at_share(group, 0.1).0 as f64;
    let ratio = lame.as_secs_f64() / quick.as_secs_f64().max(1e-9);
    let gap = pair[1].0.as_secs_f64() / pair[0].0.as_secs_f64().max(1e-9);
    if few < GROUP_MIN.max((GROUP_SHARE_MIN * many as f64) as u64)
        || ratio < RATIO_MIN
        || lame - quick < APART_MIN
        || !tight(fast)
        || !tight(slow)
        || gap.ln() < GAP_MIN * ratio.ln()
    {
        return None;
    }
    let text = format!(
        "{} connections took {} a call and {} took {}, as means over their lifetimes, with none \
         between",
        show::count(count(fast)),
        show::duration(quick),
        show::count(count(slow)),
        show::duration(lame)
    );
    Sign::new(Confidence::Likely, text)
}

/// Returns the quantile of a group of (value, count).
fn at_share(group: &[(Nanos, u64)], share: f64) -> Nanos {
    let all = group.iter().map(|(_, count)| count).sum::<u64>();
    let wanted = ((all as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    for (value, count) in group {
        seen += count;
        if seen >= wanted {
            return *value;
        }
    }
    Nanos::ZERO
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::*;
    use crate::{Measurement, TargetTally};

    #[test]
    fn differences_by_the_plan_are_not_backends() {
        let mut measurement = Measurement::default();
        let means = &mut measurement.total.connections.lives.mean;
        means.record_n(Nanos::from_millis(6), 10);
        means.record_n(Nanos::from_millis(91), 10);
        let sure = |measurement: &Measurement| {
            find(&View::new(&Evidence::new(measurement))).map(|sign| sign.confidence)
        };
        assert_eq!(sure(&measurement), Some(Confidence::Likely));
        measurement.total.clients = vec![TargetTally::default(), TargetTally::default()];
        assert_eq!(sure(&measurement), None);
    }
}
