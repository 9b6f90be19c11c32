//! CSV, HdrHistogram log, per-call log, JSON.

use super::fixtures;
use super::rendered::{csv, hdr_log, html, json, text};
use crate::{LOG_HEADER, log_line};
use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use sample::{FailureClass, Outcome, Sample};
use units::Nanos;

#[test]
fn the_series_as_csv() {
    insta::assert_snapshot!(csv(&fixtures::troubled()));
}

#[test]
fn every_row_of_csv_has_every_column() {
    for report in [fixtures::troubled(), fixtures::empty()] {
        let csv = csv(&report);
        let columns = csv.lines().next().unwrap().split(',').count();
        assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
        assert_eq!(csv.lines().count(), 1 + report.measurement.series.len());
    }
}

#[test]
fn the_json_has_everything_of_a_troubled_run() {
    insta::assert_snapshot!(without_measured(&json(&fixtures::troubled())));
}

#[test]
fn the_json_is_complete_without_a_connection() {
    insta::assert_snapshot!(without_measured(&json(&fixtures::empty())));
}

/// Removes the last key, whose histograms are not human-readable.
fn without_measured(json: &str) -> String {
    let (before, _) = json.split_once(",\n  \"measured\": {").expect("it is the last key");
    format!("{before}\n}}\n")
}

/// More names than are listed separately, in each output that names them.
#[test]
fn server_timings_beyond_the_bound_are_in_one_row() {
    let mut report = fixtures::valid();
    let timings = &mut report.measurement.total.server_timings;
    (0..40).for_each(|n| timings.record(&format!("part-{n:02}"), Nanos::from_millis(n)));
    let document: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let found = document["server_timing_s"].as_object().unwrap();
    assert_eq!(found.len(), 33);
    assert_eq!(found["(other)"]["count"], 8);
    assert_eq!(found["part-31"]["count"], 1);
    assert_eq!(document["server_timing_malformed"], 0);
    for output in
        [text(&report, crate::Style { full: true, ..crate::Style::default() }), html(&report)]
    {
        assert!(output.contains("Server-Timing") && output.contains("(other)"), "{output}");
        assert!(output.contains("part-31") && !output.contains("part-32"), "{output}");
    }
    let none = fixtures::empty();
    for output in [text(&none, crate::Style::default()), html(&none)] {
        assert!(!output.contains("Server-Timing"), "{output}");
    }
}

/// Returns (tag, histogram) of each interval, parsed like a public reader.
fn read_back(log: &str) -> Vec<(String, Histogram<u64>)> {
    let mut read = Vec::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let encoded = interval.encoded_histogram();
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
            let hist = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            read.push((interval.tag().unwrap().as_str().to_owned(), hist));
        }
    }
    read
}

#[test]
fn the_hdr_log_reads_back_without_loss() {
    let report = fixtures::troubled();
    let total = &report.measurement.total;
    let read = read_back(&hdr_log(&report));
    let tags: Vec<&str> = read.iter().map(|(tag, _)| tag.as_str()).collect();
    assert_eq!(tags, ["response", "service", "slip", "failed"]);
    for ((tag, hist), ours) in
        read.iter().zip([&total.response(), &total.service, &total.slip, &total.failed])
    {
        assert_eq!(hist.len(), ours.count(), "{tag}");
        assert_eq!(*hist, ours.to_hdr(), "{tag}");
    }
    let p99 = read[0].1.value_at_quantile(0.99);
    assert_eq!(p99, total.response().quantile(0.99).0);
}

#[test]
fn the_hdr_log_has_its_start_and_length() {
    let log = hdr_log(&fixtures::valid());
    assert!(log.starts_with("#[Histogram log format version 1.3]\n#[StartTime: 1795235590.000"));
    assert!(log.contains("\nTag=response,0.000,10.000,37.9"), "{log}");
}

#[test]
fn an_hdr_log_of_nothing_is_a_header() {
    let log = hdr_log(&fixtures::empty());
    assert!(log.lines().all(|line| line.starts_with('#')), "{log}");
}

fn logged(sample: &Sample, outcome: Outcome) -> String {
    let line = log_line(sample, outcome, Nanos::from_secs(5));
    assert_eq!(line.split('\t').count(), LOG_HEADER.split('\t').count(), "{line}");
    line.replace('\t', "|")
}

#[test]
fn the_log_has_a_line_per_call() {
    let sample = Sample {
        index: 1,
        intended: Nanos(5_005_054_000),
        issued: Nanos(5_005_054_001),
        done: Nanos(5_007_188_000),
        status: 200,
        bytes_received: 172,
        ..Sample::default()
    };
    assert_eq!(
        logged(&sample, Outcome::Succeeded),
        "1|0.005054000|0.002134000|0.002133999|0.000000001|succeeded||200|172|0"
    );
    let timed_out = Sample {
        intended: Nanos::from_millis(4_000),
        issued: Nanos::from_millis(4_250),
        done: Nanos::from_millis(34_000),
        class: Some(FailureClass::ClientTimeout),
        target: 7,
        ..Sample::default()
    };
    assert_eq!(
        logged(&timed_out, Outcome::TimedOut),
        "0|-1.000000000|30.000000000|29.750000000|0.250000000|timed_out|client-timo|0|0|7"
    );
}

#[test]
fn a_call_has_only_the_times_that_it_has() {
    let sample = Sample { intended: Nanos::from_secs(6), ..Sample::default() };
    assert_eq!(logged(&sample, Outcome::Dropped), "0|1.000000000||||dropped||0|0|0");
    let queued = Sample { done: Nanos::from_secs(9), ..sample.clone() };
    assert_eq!(logged(&queued, Outcome::TimedOut), "0|1.000000000|3.000000000|||timed_out||0|0|0");
    let abandoned = Sample { issued: Nanos::from_millis(6_500), ..sample };
    assert_eq!(
        logged(&abandoned, Outcome::Abandoned),
        "0|1.000000000|||0.500000000|abandoned||0|0|0"
    );
}
