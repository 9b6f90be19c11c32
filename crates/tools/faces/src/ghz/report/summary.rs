//! The summary, and CSV.

use super::Report;
use crate::ghz::tally::HistogramBar;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Nanos;

/// Formats a time for the summary.
pub(super) fn show(span: Nanos) -> String {
    let millis = span.0 as f64 / 1e6;
    match span.0 {
        0..10_000 => format!("{} ns", span.0),
        _ if millis < 1_000.0 => format!("{millis:.2} ms"),
        _ => format!("{:.2} s", millis / 1_000.0),
    }
}

pub(super) fn text(report: &Report<'_>) -> String {
    let figures = &report.figures;
    let mut out = "\nSummary:\n".to_owned();
    if !report.options.name.is_empty() {
        putln!(out, "  Name:\t\t{}", report.options.name);
    }
    putln!(out, "  Count:\t{}", figures.count);
    for (name, span) in [
        ("Total", figures.total),
        ("Slowest", figures.slowest),
        ("Fastest", figures.fastest),
        ("Average", figures.average),
    ] {
        putln!(out, "  {name}:\t{}", show(span));
    }
    putln!(out, "  Requests/sec:\t{:.2}", figures.rate);
    out += "\nResponse time histogram:\n";
    out += &bars(&figures.histogram);
    out += "\nLatency distribution:";
    for (percentage, latency) in &figures.percentiles {
        put!(out, "\n  {percentage} % in {} ", show(*latency));
    }
    out += "\n\n";
    if !report.tally.statuses.is_empty() {
        out += "Status code distribution:\n";
        let rows = ordered(&report.tally.statuses).into_iter();
        let rows = rows.map(|(name, count)| [format!("  [{name}]"), format!("{count} responses")]);
        out += &columns(&rows.collect::<Vec<_>>());
    }
    out.push('\n');
    if !report.tally.errors.is_empty() {
        out += "Error distribution:\n";
        let rows = ordered(&report.tally.errors).into_iter();
        let rows = rows.map(|(text, count)| [format!("  [{count}]"), text.to_string()]);
        out += &columns(&rows.collect::<Vec<_>>());
    }
    out.push('\n');
    out
}

/// Returns the counts, most frequent first; ghz prints them in no fixed order.
fn ordered(counts: &BTreeMap<Arc<str>, u64>) -> Vec<(&str, u64)> {
    let mut rows: Vec<(&str, u64)> = counts.iter().map(|(name, count)| (&**name, *count)).collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    rows
}

/// Formats two columns, each as wide as its widest cell plus three spaces.
fn columns(rows: &[[String; 2]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0) + 3;
    let (first, second) = (width(0), width(1));
    let mut out = String::new();
    for [left, right] in rows {
        putln!(out, "{left:first$}{right:second$}");
    }
    out
}

/// Renders the histogram; the longest bar has 40 marks.
fn bars(buckets: &[HistogramBar]) -> String {
    const LONGEST: u64 = 40;
    let mark = |bucket: &HistogramBar| format!("{:.3}", bucket.mark * 1e3);
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    let widest = buckets.iter().map(|bucket| mark(bucket).len()).max().unwrap_or(0);
    let digits = most.to_string().len();
    let mut out = String::new();
    for bucket in buckets {
        let length = (bucket.count * LONGEST + most / 2).checked_div(most).unwrap_or(0);
        let count = bucket.count.to_string();
        let gap = " ".repeat(digits - count.len());
        let bar = "\u{220e}".repeat(length as usize);
        putln!(out, "  {:widest$} [{count}]{gap} |{bar}", mark(bucket));
    }
    out
}

pub(super) fn csv(report: &Report<'_>) -> String {
    let mut out = "\nduration (ms),status,error".to_owned();
    for detail in &report.tally.details {
        let millis = detail.latency.as_secs_f64() * 1e3;
        put!(out, "\n{millis:.2},{},{}", detail.status, detail.error);
    }
    out + "\n"
}
