//! Results as Markdown, for a pull request or a ticket: a table, the verdict, what limits the server.
//! Whatever somebody else wrote is escaped, so that it is text there too.

use crate::compare::{COMMAND_CHARS_MAX, shown, sides_in_words};
use crate::many::Named;
use crate::ramp::{RampRecord, prose};
use crate::{Finding, Headline, RunRecord, RunTimes, figures, words};
use record::compare::{CompareRecord, DifferenceRecord, Judgement, amount, interval};
use record::run::{CauseRecord, ConductRecord, VerdictRecord};
use stats::{Hist, State, samples_needed};
use units::show;

/// Steps of a ramp in its table.
const STEPS_MAX: usize = 100;

/// One run: its verdict, its figures and its findings.
pub fn markdown(report: &RunRecord) -> String {
    let times = RunTimes::of(report);
    let mut out = heading(&report.verdict, &report.name);
    out += &server(&report.server);
    out += &format!("{}\n\n", plain(&words::answer(report, &times)));
    out += &causes(&report.verdict);
    out += &table(&["".to_owned(), "".to_owned()], &run_rows(report, &times.response));
    out += &findings(&report.findings);
    out += &foot(&report.load, report.started_unix_s, &words::machine(&report.environment));
    out
}

/// What the server did, and one of its responses where they are what is wrong.
fn server(server: &ConductRecord) -> String {
    let mut out = format!("**Server {}:** {}\n\n", server.state.word(), plain(server.detail()));
    if let Some(example) = &server.example {
        out += &format!("It responds: {}\n\n", plain(example));
    }
    out
}

/// Several runs: a column each.
pub fn markdown_of_many(runs: &[Named<'_>]) -> String {
    if let [only] = runs {
        return markdown(only.report);
    }
    let headlines: Vec<Headline> = runs.iter().map(|run| run.report.headline()).collect();
    let mut head = vec![String::new()];
    head.extend(runs.iter().map(|run| run.name.clone()));
    let row = |name: &str, cell: &dyn Fn(usize) -> String| -> Vec<String> {
        std::iter::once(name.to_owned()).chain((0..runs.len()).map(cell)).collect()
    };
    let mut rows = vec![
        row("server", &|n| runs[n].report.server.state.word().to_owned()),
        row("verdict", &|n| headlines[n].state.id().to_owned()),
        row("load", &|n| runs[n].report.load.clone()),
    ];
    for (name, figure, kind) in figures::RUN_FIGURES {
        rows.push(row(name, &|n| kind.show(figure(&headlines[n]))));
    }
    let mut out = format!("### {} side by side\n\n", words::counted(runs.len() as u64, "run"));
    out += &table(&head, &rows);
    out += "A difference between single runs may be noise; `loadstone compare` tells.\n";
    for run in runs.iter().filter(|run| !run.report.findings.is_empty()) {
        out += &format!("\n**{}**\n\n", plain(&words::printable(&run.name, 80)));
        out += &findings(&run.report.findings);
    }
    out
}

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

/// A comparison: the answer, the bounds and each difference.
pub fn markdown_of_compare(report: &CompareRecord) -> String {
    let mut out =
        format!("### {}\n\n{}\n\n", plain(&report.answer), plain(&sides_in_words(report)));
    for (letter, side) in report.lettered() {
        let Some(command) = &side.command else { continue };
        let command = plain(&words::printable(command, COMMAND_CHARS_MAX));
        out += &format!("{letter}'s server was restarted for each run: {command}\n\n");
    }
    if let Some(why) = &report.ended_early {
        out += &format!("**Ended early:** {}\n\n", plain(&words::printable(why, 1_000)));
    }
    for caution in &report.cautions {
        out += &format!("- ⚠️ {}\n", plain(&words::printable(caution, 1_000)));
    }
    for contrast in report.contrasts() {
        for bound in contrast.bounds {
            let mark = if bound.crossed { "❌" } else { "✅" };
            let of = contrast.mark(report);
            out += &format!("- {mark} {of}{}: {}\n", plain(&bound.text), plain(&bound.why));
        }
    }
    if !report.cautions.is_empty() || !report.bounds.is_empty() {
        out.push('\n');
    }
    for contrast in report.contrasts() {
        let letter = contrast.letter.to_string();
        let change = format!("{letter} to A");
        let head = ["", "A", &letter, &change, "interval", ""].map(str::to_owned);
        let rows: Vec<Vec<String>> = contrast.differences.iter().map(difference).collect();
        out += &table(&head, &rows);
    }
    out
}

fn difference(one: &DifferenceRecord) -> Vec<String> {
    let word = match one.judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::NoneShown => "no difference shown",
        Judgement::TooFew => "too few runs",
    };
    vec![
        one.figure.clone(),
        shown(one, one.before),
        shown(one, one.after),
        amount(one.change, one.points()),
        interval(one),
        word.to_owned(),
    ]
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

fn run_rows(report: &RunRecord, response: &Hist) -> Vec<Vec<String>> {
    let mut rows = vec![
        ["Throughput".to_owned(), show::rate(report.throughput_per_s)],
        ["Goodput".to_owned(), show::rate(report.goodput_per_s)],
    ];
    if let Some(intended) = report.intended_per_s {
        let offered = format!("{} of {}", show::rate(report.offered_per_s), show::rate(intended));
        rows.push(["Offered".to_owned(), offered]);
    }
    for quantile_of in [0.5, 0.9, 0.99, 0.999] {
        let name = format!("Response {}", stats::quantile_name(quantile_of));
        rows.push([name, quantile(response, quantile_of)]);
    }
    let due = words::counted(report.outcomes.due, "call");
    rows.push(["Failures".to_owned(), format!("{} of {due}", show::share(report.failure_share))]);
    for result in &report.slo {
        let mark = match (result.undecided, result.met) {
            (true, _) => "undecided",
            (false, true) => "✓ met",
            (false, false) => "✗ missed",
        };
        rows.push([result.objective.text.clone(), format!("{mark}: {}", result.figure_text())]);
    }
    rows.into_iter().map(Vec::from).collect()
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

/// A table whose first row is its head, with a line of its own before and behind it.
pub(crate) fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| plain(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let marks: Vec<&str> = (0..head.len()).map(|n| if n == 0 { "---" } else { "---:" }).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}| {} |\n{rows}\n", line(head), marks.join(" | "))
}

/// Text that Markdown takes for nothing but text: no emphasis, link, tag, table cell or mention.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
