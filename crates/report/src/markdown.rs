//! Results as Markdown, for a pull request or a ticket: a table, the verdict, what limits the server.
//! Whatever somebody else wrote is escaped, so that it is text there too.

use crate::page::markdown::{plain, table};
use crate::ramp::{RampRecord, prose};
use crate::{Finding, words};
use record::run::{CauseRecord, VerdictRecord};
use stats::{Hist, State, samples_needed};
use units::show;

/// Steps of a ramp in its table.
const STEPS_MAX: usize = 100;

/// A ramp: what the curve says, and its steps.
pub fn markdown_of_ramp(report: &RampRecord) -> String {
    let labels: Vec<String> =
        report.labels.iter().map(|label| words::printable(label, 80)).collect();
    let name = if report.name.is_empty() { labels.join(", ") } else { report.name.clone() };
    let mut out = heading(&report.verdict, &format!("ramp of {name}"));
    if let Some(why) = &report.ended_early {
        out += &format!("**Ended early:** {}\n\n", plain(&words::printable(why, 400)));
    }
    for sentence in prose::answers(report) {
        out += &format!("{}\n\n", plain(&sentence));
    }
    out += &causes(&report.verdict);
    let mut head = vec!["target".to_owned()];
    head.extend(prose::FIGURES.map(|(name, _)| name.to_owned()));
    let rows: Vec<Vec<String>> = labels
        .iter()
        .zip(&report.curves)
        .map(|(label, curve)| {
            let figures = prose::FIGURES.map(|(_, figure)| figure(report.axis, &curve.curve()).1);
            std::iter::once(label.clone()).chain(figures).collect()
        })
        .collect();
    out += &table(&head, &rows);
    out += &findings(&report.findings);
    out += &steps(report, &labels);
    let machine = words::machine(&report.environment);
    out += &foot(&words::protocol(report.plan.plan()), report.started_unix_s, &machine);
    out
}

fn steps(report: &RampRecord, labels: &[String]) -> String {
    let many = labels.len() > 1;
    let mut head: Vec<String> =
        ["step", "load", "achieved", "good", "p50", "p99", "failures", "verdict"]
            .map(str::to_owned)
            .to_vec();
    if many {
        head.insert(1, "target".to_owned());
    }
    let mut rows = Vec::new();
    for (n, step) in report.steps.iter().take(STEPS_MAX).enumerate() {
        let (point, response) = (step.point(), step.run.response());
        let limited = if point.client_limited { ", client-limited" } else { "" };
        let mut row = vec![
            format!("{} {}", n + 1, step.purpose.id()),
            prose::level(report.axis, point.level),
            show::rate(point.achieved_per_s),
            show::rate(point.goodput_per_s),
            quantile(&response, 0.5),
            quantile(&response, 0.99),
            show::share(point.failure_share),
            format!("{}{limited}", step.run.verdict.state.id()),
        ];
        if many {
            row.insert(1, words::printable(&step.label, 80));
        }
        rows.push(row);
    }
    let left_out = report.steps.len().saturating_sub(STEPS_MAX);
    let more = match left_out {
        0 => String::new(),
        n => format!("{} more in the JSON.\n\n", words::counted(n as u64, "step")),
    };
    format!("<details><summary>Steps</summary>\n\n{}{more}</details>\n\n", table(&head, &rows))
}

fn heading(verdict: &VerdictRecord, name: &str) -> String {
    let mark = match verdict.state {
        State::Valid => "✅",
        State::Degraded => "⚠️",
        State::Invalid => "❌",
    };
    format!("### {mark} {}: {}\n\n", verdict.state.id(), plain(&words::printable(name, 200)))
}

fn causes(verdict: &VerdictRecord) -> String {
    let cause = |cause: &CauseRecord| {
        let advice = words::sentence(&cause.advice);
        format!("- `{}`: {}. {}\n", cause.id, plain(&cause.text), plain(&advice))
    };
    let causes: String = verdict.causes.iter().map(cause).collect();
    if causes.is_empty() { causes } else { format!("{causes}\n") }
}

fn quantile(hist: &Hist, quantile: f64) -> String {
    if hist.is_empty() {
        return "-".to_owned();
    }
    let mark = if hist.count() < samples_needed(quantile) { "~" } else { "" };
    format!("{mark}{}", show::duration(hist.quantile(quantile)))
}

fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let one = |finding: &Finding| {
        let in_a_name = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let id: String = finding.id.chars().filter(in_a_name).collect();
        let advice = match finding.advice.is_empty() {
            true => String::new(),
            false => format!(" Try: {}", plain(&words::sentence(&finding.advice))),
        };
        let confidence = finding.confidence;
        format!("- `{id}` ({confidence}): {}{advice}\n", plain(&words::sentence(&finding.evidence)))
    };
    let list: String = findings.iter().map(one).collect();
    format!("**What limits this server**\n\n{list}\n")
}

fn foot(load: &str, started_unix_s: f64, machine: &str) -> String {
    let on = if machine.is_empty() { String::new() } else { format!(" on {}", plain(machine)) };
    format!("<sub>{}. Measured {}{on}.</sub>\n", plain(load), words::timestamp(started_unix_s))
}
