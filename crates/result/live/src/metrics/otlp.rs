//! A reading as OTLP's metrics request (opentelemetry-proto 1.x, `metrics.proto`): sums and
//! exponential histograms, cumulative since the start of the run, so that a lost push loses no
//! data. The numbers of the fields are those of opentelemetry-proto; the tests parse the bytes with
//! its crate.

use crate::metrics::exponential::{Exponential, SCHEMA};
use crate::metrics::protobuf::{WireMessage, WireValue, fields};
use crate::metrics::reading::{MetricFamily, MetricKind, MetricUnit, Reading, Sample, Value};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u64 = 2;

/// Encodes the `ExportMetricsServiceRequest` of a reading. `now_unix_s`: when it was taken, in
/// seconds since 1970.
pub fn message(reading: &Reading, now_unix_s: f64) -> Vec<u8> {
    let window = PushWindow { start: nanos(reading.run.started_unix_s), now: nanos(now_unix_s) };
    let version = &reading.run.version;
    let scope = WireMessage::default().string(1, "loadstone").string(2, version);
    let families = reading.families.iter().filter(|family| !family.samples.is_empty());
    let metrics = families.map(|family| metric(family, window));
    let of_scope = WireMessage::default().message(1, scope).messages(2, metrics);
    let attributes =
        [attribute("service.name", "loadstone"), attribute("service.version", version)];
    let resource = WireMessage::default().messages(1, attributes);
    let of_resource = WireMessage::default().message(1, resource).message(2, of_scope);
    WireMessage::default().message(1, of_resource).into_bytes()
}

/// Part of a push that a collector rejected, although it accepted the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) points: u64,
    pub(crate) why: String,
}

/// Reads an `ExportMetricsServiceResponse`; `None` if the bytes are invalid.
pub(crate) fn refused(response: &[u8]) -> Option<Refused> {
    let mut refused = Refused::default();
    for (number, field) in fields(response)? {
        let (1, WireValue::Bytes(partly)) = (number, field) else { continue };
        for (number, field) in fields(partly)? {
            match (number, field) {
                // a negative int64 has its highest bit set; nothing was rejected then
                (1, WireValue::Uint(points)) => {
                    refused.points = i64::try_from(points).map_or(0, i64::unsigned_abs);
                }
                (2, WireValue::Bytes(why)) => {
                    refused.why = std::str::from_utf8(why).ok()?.to_owned()
                }
                _ => {}
            }
        }
    }
    Some(refused)
}

#[derive(Clone, Copy)]
struct PushWindow {
    start: u64,
    now: u64,
}

fn nanos(unix_s: f64) -> u64 {
    (unix_s.max(0.0) * 1e9) as u64
}

/// Encodes a `KeyValue` with a string.
fn attribute(key: &str, value: &str) -> WireMessage {
    WireMessage::default().string(1, key).message(2, WireMessage::default().string(1, value))
}

fn attributes(sample: &Sample) -> impl Iterator<Item = WireMessage> {
    sample.labels.iter().map(|(key, value)| attribute(key, value))
}

fn metric(family: &MetricFamily, window: PushWindow) -> WireMessage {
    // units in UCUM, as OTLP requires
    let unit = match family.unit {
        MetricUnit::Seconds => "s",
        MetricUnit::Bytes => "By",
        MetricUnit::Ratio | MetricUnit::None => "1",
    };
    let name = format!("loadstone.{}", family.name);
    let metric = WireMessage::default().string(1, &name).string(2, family.help).string(3, unit);
    let numbers = || {
        let points = family.samples.iter().filter_map(|sample| number(sample, window));
        WireMessage::default().messages(1, points)
    };
    match family.kind {
        MetricKind::Gauge | MetricKind::Info => metric.message(5, numbers()),
        MetricKind::Counter => metric.message(7, numbers().uint(2, CUMULATIVE).uint(3, 1)),
        MetricKind::Histogram => {
            let points = family.samples.iter().filter_map(|sample| times(sample, window));
            metric.message(10, WireMessage::default().messages(1, points).uint(2, CUMULATIVE))
        }
    }
}

fn number(sample: &Sample, window: PushWindow) -> Option<WireMessage> {
    let point = WireMessage::default().fixed(2, window.start).fixed(3, window.now);
    let point = match &sample.value {
        Value::Number(number) => point.double(4, *number),
        // an sfixed64
        Value::Count(count) => point.fixed(6, (*count).min(i64::MAX.unsigned_abs())),
        Value::Times(_) => return None,
    };
    Some(point.messages(7, attributes(sample)))
}

fn times(sample: &Sample, window: PushWindow) -> Option<WireMessage> {
    let Value::Times(times) = &sample.value else { return None };
    let point = WireMessage::default().messages(1, attributes(sample));
    let point = point.fixed(2, window.start).fixed(3, window.now).fixed(4, times.count);
    let point = point.double(5, times.sum).sint(6, SCHEMA.into()).fixed(7, times.native.zeros);
    Some(point.message(8, buckets(&times.native)))
}

fn buckets(native: &Exponential) -> WireMessage {
    let (offset, counts) = native.dense();
    WireMessage::default().sint(1, offset.into()).uints(2, counts)
}
