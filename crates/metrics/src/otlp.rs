//! A reading as OTLP's metrics request (opentelemetry-proto 1.x, `metrics.proto`): sums and
//! exponential histograms, cumulative since the start of the run, so that a lost push loses nothing.

use crate::exponential::{Exponential, SCHEMA};
use crate::reading::{MetricFamily, MetricKind, MetricUnit, Reading, Sample, Times, Value};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyKind;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// The request that carries a reading. `now_unix_s`: when it was taken, in seconds since 1970.
pub fn message(reading: &Reading, now_unix_s: f64) -> ExportMetricsServiceRequest {
    let window = PushWindow { start: nanos(reading.run.started_unix_s), now: nanos(now_unix_s) };
    let scope = InstrumentationScope {
        name: "loadstone".into(),
        version: reading.run.version.clone(),
        ..Default::default()
    };
    let families = reading.families.iter().filter(|family| !family.samples.is_empty());
    let metrics = families.map(|family| metric(family, window)).collect();
    let resource = Resource {
        attributes: vec![
            attribute("service.name", "loadstone"),
            attribute("service.version", &reading.run.version),
        ],
        ..Default::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![ScopeMetrics { scope: Some(scope), metrics, ..Default::default() }],
            ..Default::default()
        }],
    }
}

#[derive(Clone, Copy)]
struct PushWindow {
    start: u64,
    now: u64,
}

fn nanos(unix_s: f64) -> u64 {
    (unix_s.max(0.0) * 1e9) as u64
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(AnyKind::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..Default::default() }
}

fn attributes(sample: &Sample) -> Vec<KeyValue> {
    sample.labels.iter().map(|(key, value)| attribute(key, value)).collect()
}

fn metric(family: &MetricFamily, window: PushWindow) -> Metric {
    let cumulative = AggregationTemporality::Cumulative as i32;
    let numbers = || family.samples.iter().filter_map(|sample| number(sample, window)).collect();
    let data = match family.kind {
        MetricKind::Counter => Data::Sum(Sum {
            data_points: numbers(),
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        MetricKind::Gauge | MetricKind::Info => Data::Gauge(Gauge { data_points: numbers() }),
        MetricKind::Histogram => Data::ExponentialHistogram(ExponentialHistogram {
            data_points: family.samples.iter().filter_map(|s| times(s, window)).collect(),
            aggregation_temporality: cumulative,
        }),
    };
    // units by UCUM, as OTLP wants them
    let unit = match family.unit {
        MetricUnit::Seconds => "s",
        MetricUnit::Bytes => "By",
        MetricUnit::Ratio | MetricUnit::None => "1",
    };
    Metric {
        name: format!("loadstone.{}", family.name),
        description: family.help.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Default::default()
    }
}

fn number(sample: &Sample, window: PushWindow) -> Option<NumberDataPoint> {
    let value = match &sample.value {
        Value::Count(count) => Number::AsInt(i64::try_from(*count).unwrap_or(i64::MAX)),
        Value::Number(number) => Number::AsDouble(*number),
        Value::Times(_) => return None,
    };
    Some(NumberDataPoint {
        attributes: attributes(sample),
        start_time_unix_nano: window.start,
        time_unix_nano: window.now,
        value: Some(value),
        ..Default::default()
    })
}

fn times(sample: &Sample, window: PushWindow) -> Option<ExponentialHistogramDataPoint> {
    let Value::Times(times) = &sample.value else { return None };
    let Times { count, sum, native, .. } = &**times;
    Some(ExponentialHistogramDataPoint {
        attributes: attributes(sample),
        start_time_unix_nano: window.start,
        time_unix_nano: window.now,
        count: *count,
        sum: Some(*sum),
        scale: SCHEMA,
        zero_count: native.zeros,
        positive: Some(buckets(native)),
        ..Default::default()
    })
}

fn buckets(native: &Exponential) -> Buckets {
    let (offset, bucket_counts) = native.dense();
    Buckets { offset, bucket_counts }
}
