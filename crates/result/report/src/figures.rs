//! The figures of a run in the form that is drawn: points along the window, parts of a call's time.

pub(crate) use record::figures::*;
use record::run::{OTHER_TIMINGS, RunRecord, SecondRecord, TimesRecord};
use stats::{Endings, Hist, Spread};
use units::Nanos;

/// Returns the rows inside the measured window, by their place in the series: excluding the warm-up
/// and the time after the window, in which only the outcomes of due calls are awaited.
fn in_window(run: &RunRecord) -> impl Iterator<Item = (usize, &SecondRecord)> {
    // a row begins at a multiple of the interval; half a microsecond is rounding
    let within = |row: &SecondRecord| row.at_s < run.duration_s - 5e-7;
    let rows = run.series.iter().enumerate();
    rows.filter(move |(_, row)| !row.warm_up && row.span_s > 0.0 && within(row))
}

/// Returns the rows after the window.
pub(crate) fn after_window(run: &RunRecord) -> impl Iterator<Item = &SecondRecord> {
    run.series.iter().filter(|row| !row.warm_up && row.at_s >= run.duration_s - 5e-7)
}

/// Neighboring rows of the series as one point of a chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket {
    /// Number of them.
    pub(crate) rows: usize,
    pub(crate) at_s: f64,
    pub(crate) span_s: f64,
    pub(crate) done: u64,
    /// Failed, timed out or dropped.
    pub(crate) bad: u64,
    /// From here on, maximums over the rows: quantiles have no mean.
    pub(crate) p50: Nanos,
    pub(crate) p90: Nanos,
    pub(crate) p99: Nanos,
    pub(crate) max: Nanos,
    pub(crate) slip_p99: Nanos,
    /// For streams: time to the first event, and from one event to the next.
    pub(crate) first_event_p99: Nanos,
    pub(crate) event_gap_p99: Nanos,
    /// For WebSockets: messages in each direction.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) in_flight: u64,
    pub(crate) open_connections: u64,
    /// Share of its core that a worker was busy, 0..=1.
    pub(crate) driver_cpu: f64,
    pub(crate) spread: Spread,
    /// Empty where it was not recorded.
    pub(crate) endings: Endings,
}

impl Bucket {
    /// Returns a count of the bucket per second.
    pub(crate) fn per_s(&self, count: u64) -> f64 {
        ratio(count as f64, self.span_s)
    }
}

/// Divides the window into at most `count_max` buckets of equally many rows (the last may have
/// fewer).
pub(crate) fn buckets(run: &RunRecord, count_max: usize) -> Vec<Bucket> {
    let rows: Vec<(usize, &SecondRecord)> = in_window(run).collect();
    let spreads = run.measured.as_ref().map_or(&[][..], |measured| &measured.spreads);
    let size = rows.len().div_ceil(count_max).max(1);
    let time = |time: Option<f64>| Nanos::from_secs_f64(time.unwrap_or(0.0));
    let bucket = |rows: &[(usize, &SecondRecord)]| {
        let start = Bucket { at_s: rows[0].1.at_s, rows: rows.len(), ..Bucket::default() };
        rows.iter().fold(start, |mut bucket, (place, row)| {
            bucket.span_s += row.span_s;
            bucket.done += row.outcomes.done();
            bucket.bad += row.outcomes.bad();
            bucket.p50 = bucket.p50.max(time(row.response_p50_s));
            bucket.p90 = bucket.p90.max(time(row.response_p90_s));
            bucket.p99 = bucket.p99.max(time(row.response_p99_s));
            bucket.max = bucket.max.max(time(row.response_max_s));
            bucket.slip_p99 = bucket.slip_p99.max(Nanos::from_secs_f64(row.slip_p99_s));
            bucket.first_event_p99 = bucket.first_event_p99.max(time(row.first_event_p99_s));
            bucket.event_gap_p99 = bucket.event_gap_p99.max(time(row.event_gap_p99_s));
            bucket.sent += row.messages_sent.unwrap_or(0);
            bucket.received += row.messages_received.unwrap_or(0);
            bucket.in_flight = bucket.in_flight.max(row.in_flight);
            bucket.open_connections = bucket.open_connections.max(row.open_connections);
            bucket.driver_cpu = bucket.driver_cpu.max(row.driver_cpu);
            spreads.get(*place).iter().for_each(|spread| bucket.spread.merge(&spread.0));
            row.endings().iter().for_each(|endings| bucket.endings.merge(endings));
            bucket
        })
    };
    rows.chunks(size).map(bucket).collect()
}

/// Returns the server's own timings: a row per name, names beyond the limit in one, the last.
pub(crate) fn server_timings(run: &RunRecord) -> Vec<(&str, Hist)> {
    let names = run.server_timings.server_timing_s.keys();
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_by_key(|name| *name == OTHER_TIMINGS);
    names.into_iter().map(|name| (name, run.hist_of_timing(name))).collect()
}

/// Returns the mean contribution of each part of a call to its response time, in seconds per issued
/// call: waiting for a connection, our own lateness, and the phases, each with the number of its
/// color. They add up to the mean time of issued calls, except for calls without a first byte, and
/// for the time after the first byte of calls that did not succeed.
pub(crate) fn composition(run: &RunRecord) -> Vec<(usize, &'static str, f64)> {
    let phases = &run.phases_s;
    let parts = [
        ("wait", &run.wait_s),
        ("lag", &run.lag_s),
        ("connect", &phases.connect),
        ("TLS", &phases.tls),
        ("first byte", &phases.first_byte),
        ("transfer", &phases.transfer),
    ];
    let issued = run.service_time_s.count as f64;
    let per_call = |times: &TimesRecord| ratio(times.mean * times.count as f64, issued);
    let parts = parts.into_iter().enumerate();
    let parts = parts.map(|(color, (name, times))| (color, name, per_call(times)));
    parts.filter(|(_, _, seconds)| *seconds > 0.0).collect()
}
