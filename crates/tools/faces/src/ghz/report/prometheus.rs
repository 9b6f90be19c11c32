//! Prometheus' text format.

use super::Report;
use crate::ghz::go::prometheus_float;
use std::collections::BTreeMap;

pub(super) fn text(report: &Report<'_>) -> String {
    let figures = &report.figures;
    let labels = labels(report);
    let mut out = String::new();
    for (name, value) in [
        ("count", figures.count as f64),
        ("total", figures.total.0 as f64),
        ("average", figures.average.0 as f64),
        ("fastest", figures.fastest.0 as f64),
        ("slowest", figures.slowest.0 as f64),
        ("rps", figures.rate),
    ] {
        gauge(&mut out, name, &labels, value);
    }
    let sum = prometheus_float(figures.total.0 as f64);
    out += "# TYPE ghz_run_histogram histogram\n";
    // as in ghz: the count of each bar alone, although the format requires cumulative counts
    for bar in &figures.histogram {
        let le = prometheus_float(bar.mark);
        putln!(out, "ghz_run_histogram_bucket{{{labels},le=\"{le}\"}} {}", bar.count);
    }
    putln!(out, "ghz_run_histogram_bucket{{{labels},le=\"+Inf\"}} {}", figures.count);
    putln!(out, "ghz_run_histogram_sum{{{labels}}} {sum}");
    putln!(out, "ghz_run_histogram_count{{{labels}}} {}", figures.count);
    out += "# TYPE ghz_run_latency summary\n";
    for (percentage, latency) in &figures.percentiles {
        let quantile = prometheus_float(f64::from(*percentage) / 100.0);
        let value = prometheus_float(latency.0 as f64);
        putln!(out, "ghz_run_latency{{{labels},quantile=\"{quantile}\"}} {value}");
    }
    putln!(out, "ghz_run_latency_sum{{{labels}}} {sum}");
    putln!(out, "ghz_run_latency_count{{{labels}}} {}", figures.count);
    gauge(&mut out, "errors", &labels, report.error_count() as f64);
    out
}

fn gauge(out: &mut String, name: &str, labels: &str, value: f64) {
    putln!(out, "# TYPE ghz_run_{name} gauge");
    putln!(out, "ghz_run_{name}{{{labels}}} {}", prometheus_float(value));
}

/// Renders the options as labels, sorted by name; ghz prints them in no fixed order.
fn labels(report: &Report<'_>) -> String {
    let options = report.options;
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |name: &str, value: String| {
        labels.insert(name.replace('-', "_"), value);
    };
    add("name", options.name.clone());
    add("end_reason", report.end.name().to_owned());
    add("import-paths", report.import_paths().join(","));
    for (name, value) in [
        ("skipTLS", options.skip_tls),
        ("insecure", options.insecure),
        ("async", options.is_async),
        ("binary", report.is_binary),
        ("count-errors", options.count_errors),
    ] {
        add(name, value.to_string());
    }
    for (name, value) in [
        ("rps", options.rps),
        ("concurrency", options.concurrency),
        ("total", report.total),
        ("connections", options.connections),
        ("CPUs", options.cpus),
        ("skipFirst", options.skip_first),
        ("duration", options.time_limit().0),
        ("timeout", options.timeout.0),
        ("dial-timeout", options.connect_timeout.0),
        ("keepalive", options.keepalive.0),
    ] {
        add(name, value.to_string());
    }
    for (name, value) in [
        ("call", &options.call),
        ("host", &options.host),
        ("proto", &options.proto),
        ("protoset", &options.protoset),
        ("cacert", &options.cacert),
        ("cert", &options.cert),
        ("key", &options.key),
        ("cname", &options.cname),
        ("authority", &options.authority),
    ] {
        if !value.is_empty() {
            add(name, value.clone());
        }
    }
    for (name, schedule) in [("load", &options.load), ("concurrency", &options.workers)] {
        if schedule.kind == "const" {
            continue;
        }
        add(&format!("{name}-schedule"), schedule.kind.clone());
        add(&format!("{name}-start"), schedule.start.to_string());
        add(&format!("{name}-end"), schedule.end.to_string());
        add(&format!("{name}-step"), schedule.step.to_string());
        add(&format!("{name}-step-duration"), schedule.step_length().0.to_string());
        add(&format!("{name}-max-duration"), schedule.max_duration.0.to_string());
    }
    let shown = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    shown.collect::<Vec<_>>().join(",")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
