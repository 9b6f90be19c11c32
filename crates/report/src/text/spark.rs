//! The run second by second, as rows of small bars.

use super::layout::{LABEL, Page};
use crate::figures::{self, Bucket};
use crate::{RunRecord, words};
use record::run::SecondRecord;
use units::{Nanos, show};

/// Bars of one row; more intervals than that share one.
const BARS_MAX: usize = 40;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// The plain character for a bar.
pub(crate) fn ascii_level(bar: char) -> Option<char> {
    LEVELS.iter().position(|level| *level == bar).map(|level| ASCII_LEVELS[level])
}

/// Nothing for a run of a single interval.
pub(crate) fn per_second(page: &mut Page, report: &RunRecord) {
    let buckets = figures::buckets(report, BARS_MAX);
    let [first, _, ..] = &buckets[..] else { return };
    let span = words::span(Nanos::from_secs_f64(first.span_s));
    page.heading(&format!("Over time     a bar is {span}"));
    let of = |figure: &dyn Fn(&Bucket) -> f64| buckets.iter().map(figure).collect::<Vec<f64>>();
    row(page, "throughput", &of(&|bucket| bucket.per_s(bucket.done)), &show::rate);
    row(page, "p99", &of(&|bucket| bucket.p99.as_secs_f64()), &words::seconds);
    if buckets.iter().any(|bucket| bucket.bad > 0) {
        row(page, "failures", &of(&|bucket| bucket.bad as f64), &|top| show::count(top as u64));
    }
    after_the_window(page, report);
}

fn after_the_window(page: &mut Page, report: &RunRecord) {
    let late: Vec<&SecondRecord> = figures::after_window(report).collect();
    let count: u64 = late.iter().map(|row| row.outcomes.done()).sum();
    let slowest = late.iter().filter_map(|row| row.response_max_s).fold(0.0, f64::max);
    if count > 0 {
        let text = format!(
            "After the window {} that had fallen due in it came to an end, the slowest after {}.",
            words::counted(count, "call"),
            words::seconds(slowest)
        );
        page.wrapped("  ", &text);
    }
}

fn row(page: &mut Page, label: &str, values: &[f64], shown: &dyn Fn(f64) -> String) {
    let top = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        let level = if top > 0.0 { (value / top * 8.0).ceil() as usize } else { 0 };
        LEVELS[level.clamp(1, 8) - 1]
    };
    let bars: String = values.iter().map(bar).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let width = LABEL - 2;
    page.line(&format!("  {label:<width$}{bars}  {} .. {}", shown(low), shown(top)));
}
