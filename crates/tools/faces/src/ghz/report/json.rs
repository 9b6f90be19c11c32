//! JSON.

use super::Report;
use crate::ghz::go::{json, json_float, json_text, rfc3339};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object whose keys keep their order.
#[derive(Debug, Default)]
pub(super) struct Entries(Vec<(&'static str, String)>);

impl Entries {
    /// Adds an entry whose value is JSON already.
    pub(super) fn add(&mut self, key: &'static str, value: impl ToString) {
        self.0.push((key, value.to_string()));
    }

    pub(super) fn text(&mut self, key: &'static str, value: &str) {
        self.add(key, json_text(value));
    }

    /// Adds a text unless it is empty.
    pub(super) fn some_text(&mut self, key: &'static str, value: &str) {
        if !value.is_empty() {
            self.text(key, value);
        }
    }

    /// Adds a number unless it is 0.
    pub(super) fn some(&mut self, key: &'static str, value: u64) {
        if value != 0 {
            self.add(key, value);
        }
    }

    /// Adds a switch if it is on.
    pub(super) fn add_switch(&mut self, key: &'static str, value: bool) {
        if value {
            self.add(key, "true");
        }
    }

    pub(super) fn finish(self) -> String {
        let entries = self.0.iter().map(|(key, value)| format!("\"{key}\":{value}"));
        format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
    }
}

pub(super) fn text(report: &Report<'_>) -> String {
    let figures = &report.figures;
    let mut out = Entries::default();
    let seconds = report.unix_ns(report.ended) / 1_000_000_000 * 1_000_000_000;
    out.text("date", &rfc3339(seconds, report.date.utc_offset_s));
    out.some_text("name", &report.options.name);
    out.text("endReason", report.end.name());
    out.add("options", options(report));
    out.add("count", figures.count);
    out.add("total", figures.total.0);
    out.add("average", figures.average.0);
    out.add("fastest", figures.fastest.0);
    out.add("slowest", figures.slowest.0);
    out.add("rps", json_float(figures.rate));
    out.add("errorDistribution", counts(&report.tally.errors));
    out.add("statusCodeDistribution", counts(&report.tally.statuses));
    let percentiles = figures.percentiles.iter().map(|(percentage, latency)| {
        format!("{{\"percentage\":{percentage},\"latency\":{}}}", latency.0)
    });
    out.add("latencyDistribution", list_or_null(percentiles));
    let bars = figures.histogram.iter().map(|bar| {
        let (mark, frequency) = (json_float(bar.mark), json_float(bar.frequency));
        format!("{{\"mark\":{mark},\"count\":{},\"frequency\":{frequency}}}", bar.count)
    });
    out.add("histogram", list_or_null(bars));
    out.add("details", details(report));
    if !report.options.tags.is_empty() {
        out.add("tags", json(&Value::Object(report.options.tags.clone())));
    }
    out.finish()
}

/// Renders a list; Go writes `null` for a nil slice.
fn list_or_null(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "null".to_owned() } else { format!("[{}]", items.join(",")) }
}

fn counts(counts: &BTreeMap<Arc<str>, u64>) -> String {
    let entries = counts.iter().map(|(name, count)| format!("{}:{count}", json_text(name)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// Renders each call.
pub(super) fn details(report: &Report<'_>) -> String {
    list_or_null(report.tally.details.iter().map(|detail| {
        let at = rfc3339(report.unix_ns(detail.done), report.date.utc_offset_s);
        format!(
            "{{\"timestamp\":\"{at}\",\"latency\":{},\"error\":{},\"status\":{}}}",
            detail.latency.0,
            json_text(&detail.error),
            json_text(&detail.status)
        )
    }))
}

/// Renders the options as ghz repeats them.
pub(super) fn options(report: &Report<'_>) -> String {
    let options = report.options;
    let mut out = Entries::default();
    out.some_text("call", &options.call);
    out.some_text("host", &options.host);
    out.some_text("proto", &options.proto);
    out.some_text("protoset", &options.protoset);
    let paths = report.import_paths();
    if !paths.is_empty() {
        out.add("import-paths", json(&Value::from(paths)));
    }
    out.add_switch("enable-compression", options.enable_compression);
    out.some_text("cacert", &options.cacert);
    out.some_text("cert", &options.cert);
    out.some_text("key", &options.key);
    out.some_text("cname", &options.cname);
    out.add_switch("skipTLS", options.skip_tls);
    out.add("insecure", options.insecure);
    out.some_text("authority", &options.authority);
    out.some("rps", options.rps);
    out.text("load-schedule", &options.load.kind);
    let load = &options.load;
    out.add("load-start", load.start);
    out.add("load-end", load.end);
    out.add("load-step", load.step);
    out.add("load-step-duration", load.step_length().0);
    out.add("load-max-duration", load.max_duration.0);
    out.some("concurrency", options.concurrency);
    let workers = &options.workers;
    out.text("concurrency-schedule", &workers.kind);
    out.add("concurrency-start", workers.start);
    out.add("concurrency-end", workers.end);
    out.add("concurrency-step", workers.step);
    out.add("concurrency-step-duration", workers.step_length().0);
    out.add("concurrency-max-duration", workers.max_duration.0);
    out.some("total", report.total);
    out.add_switch("async", options.is_async);
    out.some("connections", options.connections);
    out.some("duration", options.time_limit().0);
    out.some("timeout", options.timeout.0);
    out.some("dial-timeout", options.connect_timeout.0);
    out.some("keepalive", options.keepalive.0);
    if !report.data.is_null() {
        out.add("data", json(&report.data));
    }
    out.add("binary", report.is_binary);
    if let Some(metadata) = &report.metadata {
        out.add("metadata", json(metadata));
    }
    out.add("CPUs", options.cpus);
    out.some_text("name", &options.name);
    out.some("skipFirst", options.skip_first);
    out.add_switch("count-errors", options.count_errors);
    out.finish()
}
