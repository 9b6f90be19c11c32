//! HTML report: the figures of ghz's page, the calls as data, and the options. It needs no network.

use super::Report;
use super::summary::show;

const HEAD: &str = "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n";
const STYLE: &str = "<style>body{font-family:sans-serif;margin:2em;max-width:60em}\
                     td,th{padding:.2em .8em;text-align:left}\
                     .bar{background:#09a;height:1em}pre{background:#eee;padding:1em}</style>\n";

pub(super) fn page(report: &Report<'_>) -> String {
    let figures = &report.figures;
    let name = escaped(&report.options.name);
    let title = if name.is_empty() { "ghz".to_owned() } else { format!("ghz - {name}") };
    let mut out = format!("{HEAD}<title>{title}</title>\n{STYLE}</head>\n<body>\n");
    if !name.is_empty() {
        putln!(out, "<h1>{name}</h1>");
    }
    for (tag, value) in &report.options.tags {
        let value = value.as_str().unwrap_or_default();
        putln!(out, "<p>{}: {}</p>", escaped(tag), escaped(value));
    }
    out += "<h3 id=\"summary\">Summary</h3>\n<table>\n";
    let mut row =
        |name: &str, value: String| putln!(out, "<tr><th>{name}</th><td>{value}</td></tr>");
    row("Count", figures.count.to_string());
    row("Total", show(figures.total));
    row("Slowest", show(figures.slowest));
    row("Fastest", show(figures.fastest));
    row("Average", show(figures.average));
    row("Requests / sec", format!("{:.2}", figures.rate));
    out += "</table>\n<h3 id=\"histogram\">Histogram</h3>\n<table>\n";
    let most = figures.histogram.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    for bar in &figures.histogram {
        let width = bar.count as f64 / most as f64 * 30.0;
        putln!(
            out,
            "<tr><td>{:.3} ms</td><td>{}</td><td><div class=\"bar\" style=\"width:{width:.2}em\">\
             </div></td></tr>",
            bar.mark * 1e3,
            bar.count
        );
    }
    out += "</table>\n<h3 id=\"latency\">Latency distribution</h3>\n<table>\n";
    for (percentage, latency) in &figures.percentiles {
        putln!(out, "<tr><th>{percentage} %</th><td>{}</td></tr>", show(*latency));
    }
    out += "</table>\n";
    counts(&mut out, "status", "Status distribution", &report.tally.statuses, figures.count);
    if !report.tally.errors.is_empty() {
        counts(&mut out, "errors", "Errors", &report.tally.errors, figures.count);
    }
    let options = crate::ghz::go::indented(&super::json::options(report));
    putln!(out, "<h3 id=\"options\">Options</h3>\n<pre>{}</pre>", escaped(&options));
    // the texts in it have no angle bracket, as Go writes JSON
    putln!(out, "<script>\nconst count = {};\n", figures.count);
    putln!(out, "const rawData = {};\n</script>\n</body>\n</html>", super::json::details(report));
    out
}

fn counts(
    out: &mut String,
    id: &str,
    title: &str,
    counts: &std::collections::BTreeMap<std::sync::Arc<str>, u64>,
    all: u64,
) {
    putln!(out, "<h3 id=\"{id}\">{title}</h3>\n<table>");
    for (name, count) in counts {
        let share = *count as f64 / all.max(1) as f64 * 100.0;
        let name = escaped(name);
        putln!(out, "<tr><td>{name}</td><td>{count}</td><td>{share:.2} %</td></tr>");
    }
    out.push_str("</table>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
