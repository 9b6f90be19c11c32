//! A reading in the formats that Prometheus scrapes: OpenMetrics text with classic histograms, and
//! its protobuf with classic and native ones.

use crate::exponential::SCHEMA;
use crate::reading::{BOUNDS, MetricFamily, MetricKind, MetricUnit, Reading, Times, Value};
use anyhow::Context;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, MetricEncoder, NativeHistogram, NativeHistogramBuckets, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit as TheirUnit};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Content type of [`text`].
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Content type of [`protobuf`].
pub const PROTOBUF: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Zeros are exact; a threshold below the clock's step keeps their bucket apart from all others.
const ZERO_THRESHOLD: f64 = 1e-9;

/// OpenMetrics 1.0 text.
///
/// # Errors
/// The encoder refuses; that is a bug.
pub fn text(reading: &Arc<Reading>) -> anyhow::Result<String> {
    let mut out = String::new();
    prometheus_client::encoding::text::encode(&mut out, &registry(reading))
        .context("the metrics cannot be written as text")?;
    Ok(out)
}

/// Prometheus' protobuf, each family with its length before it.
///
/// # Errors
/// The encoder refuses; that is a bug.
pub fn protobuf(reading: &Arc<Reading>) -> anyhow::Result<Vec<u8>> {
    prometheus_client::encoding::prometheus_protobuf::encode_to_vec(&registry(reading))
        .map_err(|error| anyhow::anyhow!("the metrics cannot be written as protobuf: {error:?}"))
}

fn registry(reading: &Arc<Reading>) -> Registry {
    let mut registry = Registry::with_prefix("loadstone");
    registry.register_collector(Box::new(ReadingCollector(reading.clone())));
    registry
}

#[derive(Debug)]
struct ReadingCollector(Arc<Reading>);

impl Collector for ReadingCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let started = self.0.run.started_unix_s;
        let created = Duration::try_from_secs_f64(started).ok().map(|since| UNIX_EPOCH + since);
        self.0.families.iter().try_for_each(|family| one(family, &mut encoder, created))
    }
}

fn one(
    family: &MetricFamily,
    encoder: &mut DescriptorEncoder<'_>,
    created: Option<SystemTime>,
) -> fmt::Result {
    let unit = match family.unit {
        MetricUnit::None => None,
        MetricUnit::Seconds => Some(TheirUnit::Seconds),
        MetricUnit::Bytes => Some(TheirUnit::Bytes),
        MetricUnit::Ratio => Some(TheirUnit::Other("ratio".to_owned())),
    };
    let kind = match family.kind {
        MetricKind::Counter => MetricType::Counter,
        MetricKind::Gauge => MetricType::Gauge,
        MetricKind::Histogram => MetricType::Histogram,
        MetricKind::Info => MetricType::Info,
    };
    let mut metric = encoder.encode_descriptor(family.name, family.help, unit.as_ref(), kind)?;
    for sample in &family.samples {
        if family.kind == MetricKind::Info {
            metric.encode_info(&sample.labels)?;
        } else if sample.labels.is_empty() {
            figure(&sample.value, family.kind, &mut metric, created)?;
        } else {
            let mut with_labels = metric.encode_family(&sample.labels)?;
            figure(&sample.value, family.kind, &mut with_labels, created)?;
        }
    }
    Ok(())
}

fn figure(
    value: &Value,
    kind: MetricKind,
    metric: &mut MetricEncoder<'_>,
    created: Option<SystemTime>,
) -> fmt::Result {
    match (value, kind) {
        (Value::Count(count), MetricKind::Counter) => {
            metric.encode_counter::<NoLabelSet, u64, f64>(count, None)
        }
        (Value::Number(number), MetricKind::Counter) => {
            metric.encode_counter::<NoLabelSet, f64, f64>(number, None)
        }
        (Value::Count(count), _) => metric.encode_gauge(&(*count as f64)),
        (Value::Number(number), _) => metric.encode_gauge(number),
        (Value::Times(times), _) => histogram(times, metric, created),
    }
}

fn histogram(
    times: &Times,
    metric: &mut MetricEncoder<'_>,
    created: Option<SystemTime>,
) -> fmt::Result {
    let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
    let classic: Vec<(f64, u64)> = bounds.zip(times.classic.iter().copied()).collect();
    let (spans, deltas) = times.native.spans();
    let native = NativeHistogram {
        schema: SCHEMA,
        zero_threshold: ZERO_THRESHOLD,
        zero_count: times.native.zeros,
        negative: NativeHistogramBuckets { spans: &[], deltas: &[] },
        positive: NativeHistogramBuckets { spans: &spans, deltas: &deltas },
        created,
    };
    let exemplars = None;
    metric.encode_histogram_with_native::<NoLabelSet>(
        times.sum,
        times.count,
        &classic,
        exemplars,
        native,
    )
}
