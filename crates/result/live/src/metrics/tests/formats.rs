//! The formats contain the reading's data.

use super::openmetrics::read;
use super::prometheus;
use super::reading;
use crate::metrics::{Exponential, Reading, message, protobuf, text};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message;
use stats::Hist;
use units::Nanos;

#[test]
fn the_text_is_openmetrics_and_holds_the_figures() {
    let families = read(&text(&reading()));
    let value = |family: &str, name: &str, label: Option<(&str, &str)>| {
        let lines = &families[family].lines;
        let found = lines.iter().find(|line| {
            line.name == name
                && label.is_none_or(|(key, value)| line.labels.get(key).is_some_and(|v| v == value))
        });
        found.unwrap_or_else(|| panic!("{name} {label:?}")).value
    };
    let total = |family: &str, label| value(family, &format!("{family}_total"), label);
    let figures = [
        total("loadstone_calls_due", None),
        total("loadstone_calls_intended", None),
        total("loadstone_calls", Some(("outcome", "succeeded"))),
        total("loadstone_calls", Some(("outcome", "dropped"))),
        total("loadstone_failures", Some(("class", "status"))),
        total("loadstone_answers", Some(("status", "503"))),
        total("loadstone_received_bytes", None),
        value("loadstone_calls_in_flight", "loadstone_calls_in_flight", None),
        value("loadstone_run_time_seconds", "loadstone_run_time_seconds", None),
        value("loadstone_driver_cpu_ratio", "loadstone_driver_cpu_ratio", None),
    ];
    let expected = "1010 1012 1000 1 3 1 123456 4 5 0.25";
    assert_eq!(figures.map(|figure| figure.to_string()).join(" "), expected);
    let times = "loadstone_response_time_seconds";
    let bucket = |le| value(times, &format!("{times}_bucket"), Some(("le", le)));
    assert_eq!(
        ["0.0001", "0.001", "25.0", "60.0"].map(|le| bucket(le).to_string()).join(" "),
        "100 1000 1000 1002"
    );
    let sum = value(times, &format!("{times}_sum"), None);
    assert!((sum - 60.5005).abs() < 0.1, "{sum}");
    let info = &families["loadstone_run"].lines[0];
    assert_eq!(info.labels["name"], "http://127.0.0.1:2020/a\"b\\c\nd");
}

#[test]
fn before_the_first_second_it_is_empty_and_well_formed() {
    assert!(read(&text(&Reading::default())).is_empty());
}

#[test]
fn the_protobuf_holds_classic_and_native_buckets() {
    let bytes = protobuf(&reading());
    let mut rest = &bytes[..];
    let mut families = Vec::new();
    while !rest.is_empty() {
        families.push(prometheus::MetricFamily::decode_length_delimited(&mut rest).unwrap());
    }
    let named = |name: &str| families.iter().find(|family| family.name == name).unwrap();
    let due = named("loadstone_calls_due_total").metric[0].counter.as_ref().unwrap().value;
    assert_eq!(due.to_string(), "1010");
    let metric = &named("loadstone_response_time_seconds").metric[0];
    let histogram = metric.histogram.as_ref().unwrap();
    assert_eq!(histogram.sample_count, 1_002);
    assert_eq!(histogram.bucket.last().unwrap().cumulative_count, 1_002);
    assert_eq!(histogram.schema, 3);
    // every span's buckets, by their deltas, add up to the count
    let mut level = 0;
    let counts: Vec<i64> = histogram
        .positive_delta
        .iter()
        .map(|delta| {
            level += delta;
            level
        })
        .collect();
    let spanned: u32 = histogram.positive_span.iter().map(|span| span.length).sum();
    assert_eq!(counts.len(), spanned as usize);
    assert_eq!(counts.iter().sum::<i64>(), 1_002);
    assert_eq!(
        named("loadstone_slip_seconds").metric[0].histogram.as_ref().unwrap().zero_count,
        1_005
    );
    assert_eq!(histogram.start_timestamp.map(|at| at.seconds), Some(1_700_000_000));
    let times = named("loadstone_response_time_seconds");
    assert_eq!((times.kind, &*times.unit), (4, "seconds"));
    // facts are a gauge of 1 with labels
    let info = &named("loadstone_run_info").metric[0];
    assert_eq!(info.gauge.map(|one| one.value.to_string()).as_deref(), Some("1"));
    assert!(info.label.iter().any(|one| one.name == "load" && one.value.contains("10 users")));
    // a histogram without recordings is still a native one
    let empty = named("loadstone_tls_time_seconds").metric[0].histogram.as_ref().unwrap();
    assert!(empty.zero_threshold > 0.0 && empty.sample_count == 0);
}

#[test]
fn otlp_holds_sums_and_exponential_histograms() {
    let bytes = message(&reading(), 1_700_000_005.5);
    let request =
        opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest::decode(
            &bytes[..],
        );
    let request = request.unwrap();
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    let named = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap();
    let Some(Data::Sum(due)) = &named("loadstone.calls_due").data else { panic!("a sum") };
    assert!(due.is_monotonic);
    assert_eq!(due.data_points[0].start_time_unix_nano, 1_700_000_000_000_000_000);
    assert_eq!(due.data_points[0].time_unix_nano, 1_700_000_005_500_000_000);
    let response = named("loadstone.response_time");
    assert_eq!(response.unit, "s");
    let Some(Data::ExponentialHistogram(times)) = &response.data else { panic!("a histogram") };
    let point = &times.data_points[0];
    let buckets = point.positive.as_ref().unwrap();
    assert_eq!((point.count, point.scale), (1_002, 3));
    assert_eq!(buckets.bucket_counts.iter().sum::<u64>(), 1_002);
    // the last bucket is the one that 30 s lie in: base^offset < 30 <= base^(offset + 1)
    let last = buckets.offset + buckets.bucket_counts.len() as i32 - 1;
    let bound = |index: i32| 2_f64.powf(f64::from(index) / 8.0);
    assert!(bound(last) < 30.0 && 30.0 <= bound(last + 1), "{last}");
    assert!(metrics.iter().all(|metric| metric.data.is_some()));
}

/// Bucket `i` contains values above b^(i−1) and at or below b^i, with b = 2^(1/8).
#[test]
fn exponential_buckets_by_hand() {
    let mut hist = Hist::new();
    hist.record(Nanos::ZERO);
    // 1 s = b^0 exactly, to the histogram's resolution a little above: bucket 0 or 1
    hist.record_n(Nanos::from_millis(990), 2);
    hist.record(Nanos::from_millis(1_050));
    hist.record_n(Nanos::from_millis(1_500), 3);
    let exponential = Exponential::new(&hist);
    assert_eq!(exponential.zeros, 1);
    // 0.99 = 2^-0.0145 → 0; 1.05 = 2^0.0704 → 0.563 → 1; 1.5 = 2^0.585 → 4.68 → 5
    assert_eq!(exponential.buckets, [(0, 2), (1, 1), (5, 3)]);
    // a gap of three is a new span; of two would be written as zeros
    assert_eq!(exponential.spans(), (vec![(0, 2), (3, 1)], vec![2, -1, 2]));
    assert_eq!(exponential.dense(), (-1, vec![2, 1, 0, 0, 0, 3]));
    let near = Exponential { zeros: 0, buckets: vec![(-3, 4), (0, 6)] };
    assert_eq!(near.spans(), (vec![(-3, 4)], vec![4, -4, 0, 6]));
    assert_eq!(Exponential::default().dense(), (0, vec![]));
}
