//! A reading in the formats that Prometheus scrapes: OpenMetrics text with classic histograms, and
//! its protobuf with classic and native ones.

use crate::metrics::exponential::SCHEMA;
use crate::metrics::protobuf::WireMessage;
use crate::metrics::reading::{BOUNDS, MetricFamily, MetricKind, Reading, Sample, Times, Value};

/// Content type of [`text`].
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Content type of [`protobuf`].
pub const PROTOBUF: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Threshold of the zero bucket. Zeros are exact; a threshold below the clock's step keeps their
/// bucket apart from all others.
const ZERO_THRESHOLD: f64 = 1e-9;

/// Renders OpenMetrics 1.0 text.
pub fn text(reading: &Reading) -> String {
    let mut out = String::new();
    for family in &reading.families {
        text_of_family(family, &mut out);
    }
    out.push_str("# EOF\n");
    out
}

fn text_of_family(family: &MetricFamily, out: &mut String) {
    let name = family.openmetrics_name();
    let kind = match family.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
        MetricKind::Info => "info",
    };
    *out += &format!("# HELP {name} {}\n# TYPE {name} {kind}\n", family.help);
    let unit = family.unit.name();
    if !unit.is_empty() {
        *out += &format!("# UNIT {name} {unit}\n");
    }
    for sample in &family.samples {
        match (&sample.value, family.kind) {
            (_, MetricKind::Info) => line(out, &name, "_info", sample, None, "1"),
            (Value::Count(count), MetricKind::Counter) => {
                line(out, &name, "_total", sample, None, &count.to_string());
            }
            (Value::Number(number), MetricKind::Counter) => {
                line(out, &name, "_total", sample, None, &decimal(*number));
            }
            (Value::Count(count), _) => {
                line(out, &name, "", sample, None, &decimal(*count as f64));
            }
            (Value::Number(number), _) => line(out, &name, "", sample, None, &decimal(*number)),
            (Value::Times(times), _) => text_of_times(out, &name, sample, times),
        }
    }
}

fn text_of_times(out: &mut String, name: &str, sample: &Sample, times: &Times) {
    line(out, name, "_sum", sample, None, &decimal(times.sum));
    line(out, name, "_count", sample, None, &times.count.to_string());
    for (bound, count) in cumulative(times) {
        line(out, name, "_bucket", sample, Some(&decimal(bound)), &count.to_string());
    }
}

/// Returns the classic buckets: upper bound, and the number of values at or below it.
fn cumulative(times: &Times) -> impl Iterator<Item = (f64, u64)> {
    let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
    bounds.zip(&times.classic).scan(0, |below, (bound, count)| {
        *below += count;
        Some((bound, *below))
    })
}

/// Writes a sample: `name{label="value",le="0.1"} 3`.
fn line(out: &mut String, name: &str, end: &str, sample: &Sample, le: Option<&str>, value: &str) {
    out.push_str(name);
    out.push_str(end);
    let labels = sample.labels.iter().map(|(label, value)| (*label, value.as_str()));
    let labels = labels.chain(le.map(|bound| ("le", bound)));
    let mut before = '{';
    for (label, value) in labels {
        out.push(before);
        before = ',';
        *out += &format!("{label}=\"{}\"", escaped(value));
    }
    if before == ',' {
        out.push('}');
    }
    *out += &format!(" {value}\n");
}

/// Escapes the value of a label (OpenMetrics, "Escaping").
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Formats a number with a decimal point in every case: `5.0`, `0.25`, `+Inf`.
fn decimal(number: f64) -> String {
    match number {
        _ if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => format!("{number:?}"),
    }
}

/// Renders Prometheus' protobuf (`io/prometheus/client/metrics.proto`), each family preceded by its
/// length.
pub fn protobuf(reading: &Reading) -> Vec<u8> {
    let mut out = Vec::new();
    let started = reading.run.started_unix_s;
    for family in &reading.families {
        protobuf_of_family(family, started).delimited(&mut out);
    }
    out
}

fn protobuf_of_family(family: &MetricFamily, started_unix_s: f64) -> WireMessage {
    let kind = match family.kind {
        MetricKind::Counter => 0,
        // facts are a gauge of 1: Prometheus has no type for them
        MetricKind::Gauge | MetricKind::Info => 1,
        MetricKind::Histogram => 4,
    };
    let metrics = family.samples.iter().map(|sample| {
        let labels = sample.labels.iter();
        let labels =
            labels.map(|(key, value)| WireMessage::default().string(1, key).string(2, value));
        let metric = WireMessage::default().messages(1, labels);
        match (&sample.value, family.kind) {
            (Value::Times(times), _) => metric.message(7, histogram(times, started_unix_s)),
            (value, MetricKind::Counter) => metric.message(3, number(value)),
            (value, _) => metric.message(2, number(value)),
        }
    });
    let whole = WireMessage::default().string(1, &family.prometheus_name()).string(2, family.help);
    whole.uint(3, kind).messages(4, metrics).string(5, family.unit.name())
}

/// Encodes the value of a counter or a gauge.
fn number(value: &Value) -> WireMessage {
    let number = match value {
        Value::Count(count) => *count as f64,
        Value::Number(number) => *number,
        Value::Times(_) => 0.0,
    };
    WireMessage::default().double(1, number)
}

fn histogram(times: &Times, started_unix_s: f64) -> WireMessage {
    let buckets = cumulative(times)
        .map(|(bound, count)| WireMessage::default().uint(1, count).double(2, bound));
    let (spans, deltas) = times.native.spans();
    let spans = spans.into_iter().map(|(offset, length)| {
        WireMessage::default().sint(1, offset.into()).uint(2, length.into())
    });
    let whole =
        WireMessage::default().uint(1, times.count).double(2, times.sum).messages(3, buckets);
    let whole = whole.sint(5, SCHEMA.into()).double(6, ZERO_THRESHOLD).uint(7, times.native.zeros);
    whole.messages(12, spans).sints(13, deltas).message(15, timestamp(started_unix_s))
}

/// Encodes seconds since 1970 as `google.protobuf.Timestamp`.
fn timestamp(unix_s: f64) -> WireMessage {
    let seconds = unix_s.max(0.0);
    let nanos = (seconds.fract() * 1e9) as u64;
    WireMessage::default().uint(1, seconds as u64).uint(2, nanos)
}
