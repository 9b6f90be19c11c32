//! Lines of InfluxDB.

use super::Report;
use crate::ghz::go::{json, json_text};
use crate::ghz::options::Schedule;
use k6::duration::show as show_duration;
use serde_json::Value;
use units::Nanos;

pub(super) fn summary(report: &Report<'_>) -> String {
    let figures = &report.figures;
    let errors = report.error_count();
    let mut fields = format!(
        "count={},total={},average={},fastest={},slowest={},rps={:.2}",
        figures.count,
        figures.total.0,
        figures.average.0,
        figures.fastest.0,
        figures.slowest.0,
        figures.rate
    );
    for (percentage, latency) in &figures.percentiles {
        match percentage {
            50 => put!(fields, ",median={}", latency.0),
            95 => put!(fields, ",p95={}", latency.0),
            _ => {}
        }
    }
    put!(fields, ",errors={errors}");
    let tags = tags(report);
    let at = report.unix_ns(report.ended);
    format!("ghz_run,{tags},errors={errors},has_errors={} {fields} {at}", errors > 0)
}

pub(super) fn details(report: &Report<'_>) -> String {
    let tags = tags(report);
    let mut out = String::new();
    for detail in &report.tally.details {
        let failed = !detail.error.is_empty();
        let error = escaped(&detail.error);
        let at = report.unix_ns(detail.done);
        putln!(
            out,
            "ghz_detail,{tags},hasError={failed} latency={},error=\"{error}\",status=\"{}\" {at}",
            detail.latency.0,
            detail.status
        );
    }
    out
}

fn tags(report: &Report<'_>) -> String {
    let options = report.options;
    let mut tags = Vec::new();
    let name = options.name.trim();
    if !name.is_empty() {
        tags.push(format!("name=\"{}\"", escaped(name)));
    }
    match (options.proto.as_str(), options.protoset.as_str()) {
        ("", "") => {}
        ("", protoset) => tags.push(format!("Protoset=\"{protoset}\"")),
        (proto, _) => tags.push(format!("proto=\"{proto}\"")),
    }
    tags.push(format!("call=\"{}\"", options.call));
    tags.push(format!("host=\"{}\"", options.host));
    tags.push(format!("n={}", report.total));
    schedule(&mut tags, "concurrency", &options.workers, &format!("c={}", options.concurrency));
    schedule(&mut tags, "load", &options.load, &format!("rps={}", options.rps));
    let seconds = |span: Nanos| span.as_secs_f64();
    tags.push(format!("z={}", options.time_limit().0));
    tags.push(format!("timeout={}", seconds(options.timeout)));
    tags.push(format!("dial_timeout={}", seconds(options.connect_timeout)));
    tags.push(format!("keepalive={}", seconds(options.keepalive)));
    let quoted = |value: &Value| escaped(&json_text(&json(value)));
    tags.push(format!("data={}", quoted(&report.data)));
    let metadata = report.metadata.as_ref().map_or("\"\"".to_owned(), quoted);
    tags.push(format!("metadata={metadata}"));
    let own = match options.tags.is_empty() {
        true => "\"\"".to_owned(),
        false => quoted(&Value::Object(options.tags.clone())),
    };
    tags.push(format!("tags={own}"));
    tags.join(",")
}

fn schedule(tags: &mut Vec<String>, name: &str, schedule: &Schedule, constant: &str) {
    if schedule.kind == "const" {
        return tags.push(constant.to_owned());
    }
    for (part, value) in [
        ("schedule", schedule.kind.clone()),
        ("start", schedule.start.to_string()),
        ("end", schedule.end.to_string()),
        ("step", schedule.step.to_string()),
        ("step-duration", show_duration(schedule.step_length())),
        ("max-duration", show_duration(schedule.max_duration)),
    ] {
        tags.push(format!("{name}-{part}={value}"));
    }
}

/// Escapes spaces, commas and equal signs in tags.
fn escaped(text: &str) -> String {
    text.replace(' ', "\\ ").replace(',', "\\,").replace('=', "\\=")
}
