use super::super::queueing::queueing;
use super::super::shape::{mean, ratio, round, variation};
use super::super::{Confidence, Rule, Sign, View};
use units::show;

const REFUSED_MIN: f64 = 0.01;
const FLAT_MAX: f64 = 0.05;
const THROTTLED_FLAT_MAX: f64 = 0.02;
const ROUND_WITHIN: f64 = 0.01;
const WORKING_MAX: f64 = 0.5;
const ROWS_MIN: usize = 4;
const CHANCE_SHARE: f64 = 0.5;

pub(crate) const RULE: Rule = Rule {
    id: "rate-limit",
    title: "A rate limiter admits a fixed number of calls per second",
    reasoning: "A limiter with a token bucket admits a burst and then exactly its rate: the same \
        number of calls succeeds in every second, regardless of the load, and the rest get 429 (Too \
        Many Requests) or 503. A limiter that delays instead of refusing shows as a constant \
        throughput at a round rate, although a single call is far faster than that rate requires: \
        the server is idle while calls wait.",
    source: "RFC 6585 §4 (429); Turner, IEEE Communications 24(10), 1986 (leaky bucket); nginx's \
             limit_req, which answers 503 by default and delays with a burst.",
    thresholds: &[
        (REFUSED_MIN, "share of 429 or 503 among the responses, at least, or else"),
        (WORKING_MAX, "calls in service while calls wait, at most"),
        (FLAT_MAX, "standard deviation over mean of the successes in each second, at most"),
        (CHANCE_SHARE, "the same with 503 over that of refusals by chance, √(n·p·(1−p)), at most"),
        (
            ROUND_WITHIN,
            "distance to a round rate, where nothing is refused, or to be certain with 503",
        ),
    ],
    advice: "Find the limiter (proxy, gateway, framework, provider) and raise its rate for this \
             client, or keep the load below it: refused calls do not describe the server.",
    excludes: &[
        "serial-handler",
        "worker-pool",
        "connection-cap",
        "drift",
        "warm-up",
        "periodic-stall",
        "mixed-backends",
        "scheduling-quantum",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    refused(view).or_else(|| delayed(view))
}

/// Returns the successful responses per second, excluding the first second, which has the burst.
fn success_rates(view: &View<'_>) -> Vec<f64> {
    let rows = view.rows.iter().skip(1);
    rows.map(|row| row.counts.succeeded as f64 / row.span_s).collect()
}

fn refused(view: &View<'_>) -> Option<Sign> {
    let (many, unavailable) = (view.status(429), view.status(503));
    let (status, count) = if many >= unavailable { (429, many) } else { (503, unavailable) };
    let responses: u64 = view.total.status.seen().map(|(_, count)| count).sum();
    let share = ratio(count as f64, responses as f64);
    if !view.enough() || share < REFUSED_MIN {
        return None;
    }
    let rates = success_rates(view);
    let spread = variation(&rates);
    let flat = rates.len() + 1 >= ROWS_MIN
        && spread <= FLAT_MAX + 1.0 / mean(&rates).max(1.0)
        && (status == 429 || !by_chance(view, share));
    let mut text = format!("{} of the responses are {status}", show::share(share));
    if flat {
        text += &format!(
            "; the successes are {} in every second, within {}",
            show::rate(mean(&rates)),
            show::share(spread)
        );
        let burst = burst(view, mean(&rates));
        if burst >= 1.0 {
            text += &format!(", after a burst of about {burst:.0}");
        }
    }
    // a server at its capacity that sheds the rest also succeeds at an even rate, but hardly at a round one
    let chosen = status == 429 || round(mean(&rates), ROUND_WITHIN).is_some();
    match (status, flat) {
        (_, true) if chosen => Sign::new(Confidence::Certain, text),
        (_, true) | (429, false) => Sign::new(Confidence::Likely, text),
        // an overloaded server sends 503 as well
        _ => Sign::new(Confidence::Possible, text),
    }
}

/// Returns whether the successes scatter as if each call were refused with this probability: of n
/// calls the successes then have a standard deviation of √(n·p·(1−p)) (the binomial distribution).
/// A limiter lets the same number through.
fn by_chance(view: &View<'_>, share: f64) -> bool {
    let counts = || view.rows.iter().skip(1).map(|row| &row.counts);
    let asked: Vec<f64> = counts().map(|counts| counts.done() as f64).collect();
    let good: Vec<f64> = counts().map(|counts| counts.succeeded as f64).collect();
    let deviation = variation(&good) * mean(&good);
    deviation > CHANCE_SHARE * (mean(&asked) * share * (1.0 - share)).sqrt()
}

/// Returns the number of successes in the first second beyond the rate.
fn burst(view: &View<'_>, rate: f64) -> f64 {
    let first = view.rows.first();
    first.map_or(0.0, |row| row.counts.succeeded as f64 - rate * row.span_s).max(0.0).floor()
}

fn delayed(view: &View<'_>) -> Option<Sign> {
    let queueing = queueing(view)?;
    let rates = success_rates(view);
    let spread = variation(&rates);
    let waits = view.service().quantile(0.25) > queueing.alone * 4;
    if queueing.working > WORKING_MAX
        || queueing.crowd < 1.0
        || !waits
        || rates.len() + 1 < ROWS_MIN
        || spread > THROTTLED_FLAT_MAX
    {
        return None;
    }
    let rate = round(mean(&rates), ROUND_WITHIN)?;
    let text = format!(
        "{} in every second, within {} (near {}), although a call alone takes {}: the server is \
         idle while {:.0} calls wait",
        show::rate(mean(&rates)),
        show::share(spread),
        show::rate(rate),
        show::duration(queueing.alone),
        queueing.crowd
    );
    Sign::new(Confidence::Likely, text)
}

#[cfg(test)]
mod tests {
    use super::super::super::Evidence;
    use super::*;
    use crate::{Measurement, Second};
    use units::Nanos;

    /// Returns the finding for a thousand calls per second, one in ten of which is answered 503:
    /// successes in each second.
    fn finding(succeeded: [u64; 10]) -> Option<Confidence> {
        let mut measurement =
            Measurement { window: Nanos::from_secs(10), ..Measurement::default() };
        for (at, good) in succeeded.into_iter().enumerate() {
            let mut row = Second { at_s: at as f64, span_s: 1.0, ..Second::default() };
            (row.counts.succeeded, row.counts.failed) = (good, 1_000 - good);
            measurement.series.push(row);
            measurement.total.counts.succeeded += good;
            measurement.total.counts.failed += 1_000 - good;
            measurement.total.status.add_n(200, good);
            measurement.total.status.add_n(503, 1_000 - good);
        }
        find(&View::new(&Evidence::new(&measurement))).map(|sign| sign.confidence)
    }

    #[test]
    fn refusals_by_chance_are_not_a_limiter() {
        let by_chance = [900, 909, 890, 912, 892, 905, 889, 907, 896, 910];
        assert_eq!(finding(by_chance), Some(Confidence::Possible));
        let limited = [920, 900, 901, 900, 899, 900, 900, 901, 899, 900];
        assert_eq!(
            finding(limited),
            Some(Confidence::Likely),
            "a full server sheds load like that"
        );
        let chosen = [770, 750, 751, 750, 749, 750, 750, 751, 749, 750];
        assert_eq!(finding(chosen), Some(Confidence::Certain));
    }
}
