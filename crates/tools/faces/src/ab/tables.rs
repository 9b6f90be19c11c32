//! `-e` and `-g`: percentiles as CSV, and a line per request for gnuplot.

use super::options::Options;
use super::results::Results;
use super::times::round_ms;
use crate::OutFile;

pub(super) fn files(options: &Options, results: &Results<'_>) -> Vec<OutFile> {
    let file = |path: &String, text: String, what: &str| OutFile {
        path: path.clone(),
        text,
        append: false,
        complaint: format!("Cannot open {what} output file"),
        code: 1,
    };
    let mut files = Vec::new();
    if results.done() == 0 {
        return files;
    }
    if let Some(path) = &options.csv {
        files.push(file(path, csv(results), "CSV"));
    }
    if let Some(path) = &options.gnuplot {
        files.push(file(path, tsv(results), "gnuplot"));
    }
    files
}

fn csv(results: &Results<'_>) -> String {
    let sorted = &results.sorted;
    let last = sorted.len() - 1;
    let mut out = "Percentage served,Time in ms\n".to_owned();
    for percent in 0..=100 {
        let row = match percent {
            0 => 0,
            100 => last,
            _ => ((0.5 + sorted.len() as f64 * f64::from(percent) / 100.0) as usize).min(last),
        };
        putln!(out, "{percent},{:.3}", sorted[row].total as f64 / 1_000.0);
    }
    out
}

fn tsv(results: &Results<'_>) -> String {
    let mut out = "starttime\tseconds\tctime\tdtime\tttime\twait\n".to_owned();
    for entry in &results.sorted {
        let (unix_s, date) = results.date(entry);
        let [connect, processing, total, wait] =
            [entry.connect, entry.total - entry.connect, entry.total, entry.wait].map(round_ms);
        putln!(out, "{date}\t{unix_s}\t{connect}\t{processing}\t{total}\t{wait}");
    }
    out
}
