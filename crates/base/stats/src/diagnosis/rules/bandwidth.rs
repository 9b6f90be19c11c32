use super::super::shape::{ratio, round, variation};
use super::super::{Confidence, Rule, Sign, View};
use units::show;

const RESPONSE_MIN: f64 = 4_096.0;
const TRANSFER_MIN: f64 = 0.6;
const FLAT_MAX: f64 = 0.03;
const ROUND_WITHIN: f64 = 0.06;
/// For a limit per connection: maximum delay of a tenth of the responses relative to the median.
const LATE_MAX: f64 = 0.25;
/// Ten gigabits a second: higher rates are hardly a link limit.
const BYTES_MAX: f64 = 1.25e9;
const ROWS_MIN: usize = 5;

pub(crate) const RULE: Rule = Rule {
    id: "bandwidth-limit",
    title: "Bandwidth is the limit: a link or a traffic shaper is saturated",
    reasoning: "When a link or a traffic shaper is saturated, the first byte of a response arrives \
        soon and the rest takes most of the time. The same number of bytes arrives in each second, \
        and it is a round rate: 10 Mbit/s, or 1 Gbit/s less a few per cent for headers. A limit \
        per connection shows as a transfer time of the response's length divided by that rate, \
        whatever the number of users: never less, and more only where the machine was busy.",
    source: "RFC 2544 §26.1 (throughput in frames and bytes); Ethernet's 94 to 97 % of payload; \
             nginx's limit_rate.",
    thresholds: &[
        (RESPONSE_MIN, "bytes of the mean response, at least"),
        (TRANSFER_MIN, "share of the service time after the first byte, at least"),
        (FLAT_MAX, "standard deviation over mean of the bytes in each second, at most"),
        (ROUND_WITHIN, "distance to a round rate, at most"),
        (
            LATE_MAX,
            "for each connection: share of the median by which p90 of the transfer is later, at most",
        ),
    ],
    advice: "Compress or shorten the responses, cache them nearer to the users, or raise the rate \
        of the link or the shaper.",
    excludes: &[
        "serial-handler",
        "worker-pool",
        "rate-limit",
        "scheduling-quantum",
        "cpu-contention",
        "drift",
        "warm-up",
    ],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let total = view.total;
    let responses = (total.counts.succeeded as f64).max(1.0);
    let size = total.bytes_received as f64 / responses;
    let (transfer, service) = (total.transfer.mean(), total.service.mean());
    let share = ratio(transfer.as_secs_f64(), service.as_secs_f64());
    let busy =
        view.evidence.driver_busy.unwrap_or(0.0) > 0.9 || view.server_cpu().unwrap_or(0.0) > 0.9;
    if !view.enough() || size < RESPONSE_MIN || share < TRANSFER_MIN || busy {
        return None;
    }
    shared(view, size, share).or_else(|| each(view, size, share))
}

/// Detects one rate for all connections together.
fn shared(view: &View<'_>, size: f64, share: f64) -> Option<Sign> {
    let rates: Vec<f64> =
        view.rows.iter().map(|row| row.bytes_received as f64 / row.span_s).collect();
    // the first row has the burst that a shaper lets through
    let steady = rates.get(1..).filter(|rates| rates.len() + 1 >= ROWS_MIN)?;
    let spread = variation(steady);
    let rate = steady.iter().sum::<f64>() / steady.len() as f64;
    // responses that end in another second than they began in
    let grain = ratio(size, rate * view.rows.first().map_or(1.0, |row| row.span_s));
    if spread > FLAT_MAX.max(grain) || rate > BYTES_MAX || view.concurrency < 1.5 {
        return None;
    }
    let figure = round(rate * 8.0, ROUND_WITHIN).or_else(|| round(rate, ROUND_WITHIN))?;
    let text = format!(
        "{} received in each second, within {} (near {}); {} of the service time is after the \
         first byte of a response",
        bytes(rate),
        show::share(spread),
        nearest(figure, rate),
        show::share(share)
    );
    Sign::new(Confidence::Likely, text)
}

/// Detects the same rate for each response.
fn each(view: &View<'_>, size: f64, share: f64) -> Option<Sign> {
    let transfer = &view.total.transfer;
    // no response is faster than the limit; a busy machine delays some of them
    let (low, middle, high) =
        (transfer.quantile(0.05), transfer.quantile(0.5), transfer.quantile(0.9));
    let edge = ratio((middle - low).as_secs_f64(), middle.as_secs_f64());
    let tail = ratio((high - middle).as_secs_f64(), middle.as_secs_f64());
    if edge > 2.0 * FLAT_MAX || tail > LATE_MAX || low.0 < 5_000_000 {
        return None;
    }
    let rate = size / low.as_secs_f64();
    let figure = round(rate, ROUND_WITHIN).or_else(|| round(rate * 8.0, ROUND_WITHIN))?;
    let text = format!(
        "each response arrived at {} (near {}), regardless of the other calls; {} of the service time \
         is after its first byte",
        bytes(rate),
        nearest(figure, rate),
        show::share(share)
    );
    Sign::new(Confidence::Likely, text)
}

fn bytes(rate: f64) -> String {
    format!("{}/s", show::bytes(rate as u64))
}

/// Returns the round value in its own unit.
fn nearest(figure: f64, rate: f64) -> String {
    if figure > 4.0 * rate {
        format!("{} Mbit/s", figure / 1e6)
    } else {
        format!("{} MB/s", figure / 1e6)
    }
}
