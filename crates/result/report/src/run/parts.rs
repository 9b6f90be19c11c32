//! Parts of a run's report other than tables of times.

use super::done_sentence;
use crate::page::text::layout::shortened;
use crate::section::{
    Block, CellLook, Column, DataTable, Details, Document, Forms, LABEL, Mark, Mood, RowLook,
    Spark, TableCell, TableRow, Tile, Voice, Words, aligned, facts as fact_list, heading, placed,
    subheading, with_lead,
};
use crate::words::{self, counted};
use crate::{RunRecord, RunTimes, blocks, facts, figures};
use record::run::SecondRecord;
use stats::Hist;
use units::{Nanos, show};

/// A label and its sentence.
pub(super) type Fact = (&'static str, String);

/// Returns the facts about the requested run. `room`: maximum number of characters of the name, the
/// target and the load, each.
pub(super) fn run_facts(report: &RunRecord, room: usize) -> Vec<Fact> {
    let (target, name) = (shortened(&report.target, room), shortened(&report.name, room));
    let mut asked = Vec::new();
    if name != target {
        asked.push(("Run", name));
    }
    asked.push(("Target", target));
    asked.push(("Load", done_sentence(report)));
    asked
}

/// Renders target, load, first call and machine.
pub(super) fn describe_setup(report: &RunRecord) -> [Block; 1] {
    let mut done = run_facts(report, usize::MAX);
    done.extend(report.path.iter().map(|path| ("Through", crate::path::describe_path(path))));
    done.extend(words::first_call(report).map(|first| ("First call", first)));
    let when = words::timestamp(report.started_unix_s);
    let at = format!("{when}, {}", words::machine(&report.environment));
    done.push(("Measured", at.trim_end_matches(", ").to_owned()));
    done.extend(stopped(report));
    [fact_list(done)]
}

/// Returns the reason for an early end.
fn stopped(report: &RunRecord) -> Vec<Fact> {
    let rule = |rule: &String| format!("by {}", stats::abort_source(&words::printable(rule, 200)));
    let mut why: Vec<Fact> = Vec::new();
    why.extend(report.aborted.as_ref().map(|one| ("Stopped", rule(one))));
    if report.interrupted {
        let after = words::seconds(report.elapsed_s);
        why.push(("Stopped", format!("interrupted after {after}")));
    }
    why
}

/// Renders throughput, and the loads to compare it with.
pub(super) fn headline(report: &RunRecord) -> [Block; 1] {
    let mut facts = vec![throughput(report), failed(report, false)];
    facts.extend(score(report));
    [fact_list(facts)]
}

/// Returns the facts of SPECweb99: the number of conforming simultaneous connections, and errors in
/// the server's log of posted data.
pub(super) fn score(report: &RunRecord) -> Vec<Fact> {
    let Some(score) = report.score() else { return Vec::new() };
    let posts = facts::posts(report).filter(|posts| !posts.agree());
    let posts = posts.map(|posts| ("POSTs", posts.sentence()));
    std::iter::once(("Score", score.sentence())).chain(posts).collect()
}

pub(super) fn throughput(report: &RunRecord) -> Fact {
    let offered = format!("offered {}", show::rate(report.offered_per_s));
    let offered = match report.intended_per_s {
        Some(intended) => format!("{offered} of {} intended", show::rate(intended)),
        None => offered,
    };
    let (all, good) = (show::rate(report.throughput_per_s), show::rate(report.goodput_per_s));
    ("Throughput", format!("{all} · goodput {good} · {offered}"))
}

/// Maximum number of failure classes in one line.
const CLASSES_MAX: usize = 4;
/// Maximum number of objectives with their own line.
const OBJECTIVES_MAX: usize = 4;

/// Returns the share of failures; `by_class`: with the most frequent classes, if no table shows
/// them.
pub(super) fn failed(report: &RunRecord, by_class: bool) -> Fact {
    let mut classes: Vec<_> = report.failures.iter().collect();
    classes.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    let hidden = classes.len().saturating_sub(CLASSES_MAX);
    let named = classes.iter().take(CLASSES_MAX);
    let mut named: Vec<String> = named
        .map(|one| format!("{} × {}", show::count(one.count), one.class.short_form()))
        .collect();
    if hidden > 0 {
        named.push(format!("{hidden} more"));
    }
    let bad = report.outcomes.bad();
    let mut text = format!("{} of {}", show::count(bad), counted(report.outcomes.due, "call"));
    if bad > 0 {
        text = format!("{text} ({})", show::share(report.failure_share));
    }
    if by_class && !named.is_empty() {
        text = format!("{text}: {}", named.join(", "));
    }
    ("Failed", text)
}

/// Renders the main figures in frames.
pub(super) fn tiles(report: &RunRecord, response: &Hist) -> Block {
    let against = match report.intended_per_s {
        Some(intended) => {
            format!("offered {} of {}", show::rate(report.offered_per_s), show::rate(intended))
        }
        None => format!("good {}", show::rate(report.goodput_per_s)),
    };
    let tile = |label: &str, value: String, sub: &str| Tile {
        label: label.to_owned(),
        value,
        sub: sub.to_owned(),
    };
    let at = |quantile| blocks::quantile(response, quantile);
    let due = format!("of {}", counted(report.outcomes.due, "call"));
    Block::Tiles(vec![
        tile("Throughput", show::rate(report.throughput_per_s), &against),
        tile("Response p50", at(0.5), "half of the calls"),
        tile("Response p99", at(0.99), "99 of 100 calls"),
        tile("Response p99.9", at(0.999), "999 of 1,000 calls"),
        tile("Failures", show::share(report.failure_share), &due),
    ])
}

/// Renders the objectives in a row, missed ones first; empty without objectives.
pub(super) fn marks(report: &RunRecord) -> Option<Block> {
    let mut results: Vec<_> = report.slo.iter().collect();
    results.sort_by_key(|result| (result.met, result.undecided));
    let mark = |result: &&crate::SloRecord| Mark {
        mood: match (result.undecided, result.met) {
            (true, _) => Mood::Doubtful,
            (false, true) => Mood::Good,
            (false, false) => Mood::Bad,
        },
        name: words::printable(&result.objective.text, 60),
        value: match &result.unsure {
            Some(unsure) => {
                let percent = (100.0 * unsure.probability).floor();
                format!("{} ({percent} % sure)", result.figure_text())
            }
            None => result.figure_text(),
        },
    };
    (!results.is_empty()).then(|| Block::Marks(results.iter().map(mark).collect()))
}

/// Renders response times as a table with the meaning of its words, by classes, and by quantile,
/// side by side.
pub(super) fn distribution(report: &RunRecord, all: &RunTimes, bars: usize) -> Block {
    let times = of_page(|document| super::tables::times(document, Forms::PAGE, report, all));
    let picture = histogram(&all.response, bars).into_iter().map(|block| match block {
        Block::Heading(heading) => subheading(heading.text),
        block => block,
    });
    let phases = of_page(|document| super::tables::phases(document, Forms::PAGE, report));
    let spectrum = super::charts::spectrum(report, &all.response);
    Block::Grid(filled([times, picture.collect(), spectrum, phases]))
}

/// Returns the blocks for a page of the document that `make` fills.
fn of_page(make: impl FnOnce(&mut Document)) -> Vec<Block> {
    let mut document = Document::default();
    make(&mut document);
    document.blocks(Forms::PAGE).filter(|block| !matches!(block, Block::Gap)).cloned().collect()
}

fn filled<const N: usize>(groups: [Vec<Block>; N]) -> Vec<Vec<Block>> {
    groups.into_iter().filter(|blocks| !blocks.is_empty()).collect()
}

/// Returns the outcomes of the calls, and failures by class with their statuses, side by side.
pub(super) fn endings(report: &RunRecord) -> Block {
    let came = of_page(|document| outcomes(document, Forms::PAGE, report));
    let failed = of_page(|document| failures(document, Forms::PAGE, report));
    Block::Grid(filled([came, failed]))
}

/// Renders the same figures in short, with the objectives as a table.
pub(super) fn short_form(report: &RunRecord, response: &Hist) -> Block {
    let mut rows = vec![
        ["Throughput".to_owned(), show::rate(report.throughput_per_s)],
        ["Goodput".to_owned(), show::rate(report.goodput_per_s)],
    ];
    if let Some(intended) = report.intended_per_s {
        let offered = format!("{} of {}", show::rate(report.offered_per_s), show::rate(intended));
        rows.push(["Offered".to_owned(), offered]);
    }
    for quantile in [0.5, 0.9, 0.99, 0.999] {
        let name = format!("Response {}", stats::quantile_name(quantile));
        rows.push([name, blocks::quantile(response, quantile)]);
    }
    let due = counted(report.outcomes.due, "call");
    rows.push(["Failures".to_owned(), format!("{} of {due}", show::share(report.failure_share))]);
    for result in &report.slo {
        let judged = objective_cell(result.undecided, result.met).words.bare();
        rows.push([result.objective.text.clone(), format!("{judged}: {}", result.measured_text())]);
    }
    Block::Table(DataTable::new(["", ""]).with(rows.into_iter().map(Vec::from)))
}

fn objective_cell(undecided: bool, met: bool) -> TableCell {
    match (undecided, met) {
        (true, _) => "undecided".into(),
        (false, true) => TableCell::new(CellLook::Met, "✓ met"),
        (false, false) => TableCell::new(CellLook::Missed, "✗ missed"),
    }
}

/// Renders `--slo`: the objectives, and whether they are met.
pub(super) fn objectives(document: &mut Document, forms: Forms, report: &RunRecord) {
    if report.slo.is_empty() {
        return;
    }
    document.add(forms & Forms::TEXT, [heading("Objectives")]);
    document.add(forms & Forms::PAGE, [placed("objectives", "Objectives")]);
    let fact = |result: &crate::SloRecord| {
        let text = words::printable(&result.objective.text, 60);
        (result.word(), format!("{text}: {}", result.measured_text()))
    };
    document.add(forms & Forms::TEXT, [aligned(2, LABEL - 2, report.slo.iter().map(fact))]);
    let table = DataTable::new(["Objective", "Figure", ""]).narrow();
    let table = table.with(report.slo.iter().map(|result| {
        let name = Words::default().code(&result.objective.text);
        vec![
            name.into(),
            result.measured_text().into(),
            objective_cell(result.undecided, result.met),
        ]
    }));
    document.add(forms & Forms::PAGE, [Block::Table(table)]);
}

/// Returns the objectives as one line each, missed ones first.
pub(super) fn objective_lines(report: &RunRecord) -> Vec<Fact> {
    let mut results: Vec<_> = report.slo.iter().collect();
    results.sort_by_key(|result| (result.met, result.undecided));
    let line = |(index, result): (usize, &&crate::SloRecord)| {
        let text = words::printable(&result.objective.text, 60);
        let label = if index == 0 { "Objectives" } else { "" };
        (label, format!("{} {text}: {}", result.word(), result.measured_text()))
    };
    let mut lines: Vec<Fact> = results.iter().take(OBJECTIVES_MAX).enumerate().map(line).collect();
    match results.len().saturating_sub(OBJECTIVES_MAX) {
        0 => {}
        more => lines.push(("", format!("{more} more with --full"))),
    }
    lines
}

/// Describes the number of met objectives, and the others with their figures; empty without
/// objectives.
pub(super) fn short_objectives(report: &RunRecord) -> Option<String> {
    let all = report.slo.len();
    let other = |result: &&crate::SloRecord| !result.met || result.undecided;
    let others = report.slo.iter().filter(other).map(|result| {
        let text = words::printable(&result.objective.text, 60);
        format!("{} {text} ({})", result.word(), result.figure_text())
    });
    let others: Vec<String> = others.collect();
    let mut met = format!("{} of {} met", all - others.len(), counted(all as u64, "objective"));
    let unsure = report.slo.iter().filter_map(|result| Some(result.unsure.as_ref()?.probability));
    if let Some(least) = unsure.reduce(f64::min) {
        met.push_str(&format!(", with a probability of only {:.0} %", (100.0 * least).floor()));
    }
    let parts: Vec<String> = std::iter::once(met).chain(others).collect();
    (all > 0).then(|| parts.join(", "))
}

/// Renders a histogram of the response times; empty for fewer than two calls.
pub(super) fn histogram(response: &Hist, rows: usize) -> Vec<Block> {
    if response.count() < 2 {
        return Vec::new();
    }
    let picture = Block::Histogram(Box::new(response.clone()), rows);
    vec![heading("Response times, by calls"), picture]
}

/// Lines of a failed response in text.
const SAMPLE_LINES_MAX: usize = 8;

/// Renders the content of the first failed responses of each kind.
pub(super) fn failed_responses(document: &mut Document, forms: Forms, report: &RunRecord) {
    let all = &report.bodies.failed_responses;
    if all.is_empty() {
        return;
    }
    document.add(forms & Forms::TEXT, [heading("Failed responses")]);
    document.add(forms & Forms::PAGE, [subheading("Failed responses")]);
    for (place, sample) in all.iter().enumerate() {
        let why = match sample.class {
            sample::FailureClass::Status => format!("status {}", sample.status),
            class => format!("{}, status {}", class.short_form(), sample.status),
        };
        let target = words::printable(&sample.target, 120);
        let body = show::bytes(sample.length);
        let head = format!("{target}: {why}, body of {body}, at {}", words::seconds(sample.at_s));
        let text = sample.body.iter().flat_map(|body| body.lines());
        let lines = sample.head.iter().map(String::as_str).chain([""]).chain(text);
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        let short = lines.iter().filter(|line| !line.is_empty()).take(SAMPLE_LINES_MAX);
        let short = short.map(|line| format!("    {}", words::printable(line, 100)));
        document.add(forms & Forms::TEXT, [with_lead("  ", Voice::Plain, head.clone())]);
        document.add(forms & Forms::TEXT, [Block::Lines(short.collect())]);
        let mut body = Document::default();
        body.add(Forms::PAGE, [Block::Code(lines.join("\n").trim_end().to_owned())]);
        let (open, summary) = (place == 0, head.into());
        let details = Details { open, summary, body, ..Details::default() };
        document.add(forms & Forms::PAGE, [Block::Details(details)]);
    }
}

/// Renders due = succeeded + failed + timed out + dropped + abandoned + lost.
pub(crate) fn outcomes(document: &mut Document, forms: Forms, report: &RunRecord) {
    let counts = &report.outcomes;
    let share = |n: u64| show::share(figures::ratio(n as f64, counts.due as f64));
    let row = |name: &str, n: u64| vec![name.to_owned(), show::count(n), share(n)];
    let mut table = DataTable::new(["", "calls", "share"]).narrow().bare();
    table = table.with(facts::ends(counts).map(|(name, count)| row(name, count)));
    let sum = TableRow { look: RowLook::Sum, ..row("due", counts.due).into() };
    document.add(forms & Forms::PAGE, [subheading("Outcomes")]);
    document.add(forms & Forms::TEXT, [heading("Outcomes")]);
    document.add(forms, [Block::Table(table.with([sum]))]);
    let kept = [("Warm-up", facts::warm_up(report)), ("Sessions", facts::sessions(report))];
    let kept = kept.into_iter().filter_map(|(label, text)| Some(format!("{label}: {}.", text?)));
    document.add(forms, kept.map(|text| with_lead("  ", Voice::Plain, text)));
}

/// Renders the failures by class with the blamed party, and responses by status.
pub(crate) fn failures(document: &mut Document, forms: Forms, report: &RunRecord) {
    failure_classes(document, forms, report);
    let seen = facts::statuses(report);
    if !seen.is_empty() {
        document.add(forms, [Block::Gap, fact_list([("Status", seen)])]);
    }
}

/// Renders the failures by class with the blamed party; empty without failures.
pub(super) fn failure_classes(document: &mut Document, forms: Forms, report: &RunRecord) {
    if report.failures.is_empty() {
        return;
    }
    let counts = report.failures.iter().map(|failure| show::count(failure.count));
    let width = counts.map(|count| count.len()).max().unwrap_or(0);
    let line = |failure: &record::run::FailureRecord| {
        let (class, count) = (failure.class, show::count(failure.count));
        let lead = format!("  {:<15}  {count:>width$}  {:<6}  ", class.id(), class.blame().id());
        with_lead(&lead, Voice::Plain, class.explain())
    };
    document.add(forms & Forms::TEXT, [heading("Failures      class, count, blame")]);
    document.add(forms & Forms::TEXT, report.failures.iter().map(line));
    let columns = ["Class".into(), "calls".into(), Column::text("blame"), Column::text("")];
    let table = DataTable::new(columns).with(report.failures.iter().map(|failure| {
        let class = failure.class;
        vec![
            Words::default().code(class.id()).into(),
            TableCell::from(show::count(failure.count)),
            class.blame().id().into(),
            TableCell::new(CellLook::Soft, class.explain()),
        ]
    }));
    document.add(forms & Forms::PAGE, [subheading("Failures by class"), Block::Table(table)]);
}

/// Maximum number of bars in a row over time; more intervals share one.
const BARS_MAX: usize = 40;

/// Renders the run second by second, as rows of small bars; empty for a run of a single interval.
pub(super) fn per_second(report: &RunRecord) -> Vec<Block> {
    let buckets = figures::buckets(report, BARS_MAX);
    let [first, _, ..] = &buckets[..] else { return Vec::new() };
    let span = words::span(Nanos::from_secs_f64(first.span_s));
    let mut rows = vec![
        spark("throughput", buckets.iter().map(|row| row.per_s(row.done)), show::rate),
        spark("p99", buckets.iter().map(|row| row.p99.as_secs_f64()), words::seconds),
    ];
    if buckets.iter().any(|bucket| bucket.bad > 0) {
        let bad = buckets.iter().map(|bucket| bucket.bad as f64);
        rows.push(spark("failures", bad, |top| show::count(top as u64)));
    }
    let late: Vec<&SecondRecord> = figures::after_window(report).collect();
    let count: u64 = late.iter().map(|row| row.outcomes.done()).sum();
    let slowest = late.iter().filter_map(|row| row.response_max_s).fold(0.0, f64::max);
    let mut blocks = vec![heading(format!("Over time     a bar is {span}")), Block::Sparks(rows)];
    if count > 0 {
        let text = format!(
            "{} due within the window ended after it, the slowest after {}.",
            counted(count, "call"),
            words::seconds(slowest)
        );
        blocks.push(with_lead("  ", Voice::Plain, text));
    }
    blocks
}

fn spark(
    label: &'static str,
    values: impl Iterator<Item = f64>,
    shown: fn(f64) -> String,
) -> Spark {
    let values: Vec<f64> = values.collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let top = values.iter().copied().fold(0.0, f64::max);
    Spark { label, values, ends: format!("{} .. {}", shown(low), shown(top)) }
}

/// Returns facts on connections, bytes, client and the like, a line or two each.
pub(super) fn all_facts(report: &RunRecord) -> Block {
    fact_list(facts::facts(report).into_iter().chain(facts::of_client(report)))
}

/// Renders the one-line facts, the first call, the machine, and the plan.
pub(super) fn details(document: &mut Document, report: &RunRecord) {
    let mut all: Vec<Fact> = score(report).into_iter().take(1).collect();
    all.extend(facts::facts(report));
    all.extend(words::first_call(report).map(|text| ("First call", text)));
    all.extend(stopped(report));
    for lookup in &report.resolved {
        let addresses = lookup.addresses.join(", ");
        let host = words::printable(&lookup.host, 120);
        let took = words::seconds(lookup.took_s);
        all.push(("Name", format!("{host}: {addresses} (in {took})")));
    }
    document.add(Forms::PAGE, [placed("details", "Details"), fact_list(all)]);
    let toml = report.plan.toml();
    if toml.is_empty() {
        return;
    }
    document.add(Forms::PAGE, plan(toml));
}

/// Renders a plan: the options set, and the complete plan with its defaults, collapsed.
pub(crate) fn plan(toml: &str) -> Vec<Block> {
    let mut blocks = vec![placed("plan", "Plan")];
    blocks.extend(record::words::to_brief_toml(toml).map(Block::Code));
    let mut body = Document::default();
    body.add(Forms::PAGE, [Block::Code(toml.to_owned())]);
    let summary = "The complete plan, including defaults".into();
    blocks.push(Block::Details(Details { summary, body, ..Details::default() }));
    blocks
}
