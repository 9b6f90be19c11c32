//! The list of results: a row for each, colored by its outcome, with its figures in columns.

use super::pages::page;
use super::trend::sparkline;
use maud::{Markup, html};
use record::compare::Judgement;
use record::run::Headline;
use stats::State;
use std::collections::{BTreeMap, BTreeSet};
use store::{ListEntry, Progress, ResultKind};
use units::show::safe;
use units::{Nanos, show};
use url::form_urlencoded;

/// Maximum number of results in a list; the filter finds the others.
pub(crate) const LIST_MAX: usize = 500;
/// Earlier results of the same name that a sparkline shows.
const SPARK_MAX: usize = 20;
/// Minimum number of results for a line.
const SPARK_MIN: usize = 3;
/// Figures shown as columns.
const FIGURES: [&str; 4] = ["Throughput", "p50", "p99", "Failures"];

/// Requested filter and order of the list, as typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListQuery {
    pub(crate) name: String,
    pub(crate) tag: String,
    pub(crate) kind: String,
    pub(crate) host: String,
}

impl ListQuery {
    fn is_empty(&self) -> bool {
        [&self.name, &self.tag, &self.kind, &self.host].iter().all(|text| text.is_empty())
    }
}

/// Store of a list, and notes of its opening.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreHead<'a> {
    pub(crate) store: &'a str,
    pub(crate) notes: &'a [String],
}

/// Renders the list. `note`: reason why it is empty, if known.
pub(crate) fn list(
    all: &[ListEntry],
    wanted: &ListQuery,
    StoreHead { store, notes }: StoreHead<'_>,
    note: Option<&str>,
) -> Markup {
    let of_host = |entry: &&ListEntry| {
        wanted.host.is_empty() || host(&entry.name).as_deref() == Some(wanted.host.as_str())
    };
    let entries: Vec<&ListEntry> = all.iter().filter(of_host).collect();
    let body = html! {
        main {
            h1 { "Results" }
            p class="soft" { (safe(store)) }
            @for note in notes { p role="status" { (safe(note)) } }
            (filter(all, wanted))
            @if entries.is_empty() {
                p id="nothing" {
                    @if let Some(note) = note { (safe(note)) }
                    @else if !wanted.is_empty() { "No stored result matches this filter." }
                    @else { "Nothing is stored yet: loadstone run stores its results." }
                }
            } @else {
                form action="/compare" method="get" {
                    (table(&entries, all))
                    p class="below" {
                        button type="submit" { "Compare" } " the selected results side by side"
                    }
                }
            }
        }
    };
    page("Results", Some("/list.js"), &body)
}

/// Returns the host of a result named by its URL.
fn host(name: &str) -> Option<String> {
    let url = url::Url::parse(name).ok()?;
    Some(url.host_str()?.to_owned()).filter(|host| !host.is_empty())
}

fn filter(all: &[ListEntry], wanted: &ListQuery) -> Markup {
    let mut hosts: BTreeSet<String> = all.iter().filter_map(|entry| host(&entry.name)).collect();
    if !wanted.host.is_empty() {
        hosts.insert(wanted.host.clone());
    }
    let tags: BTreeSet<&String> = all.iter().flat_map(|entry| &entry.tags).collect();
    html! {
        form action="/" method="get" class="filter" {
            label { "Name " input type="search" name="name" value=(wanted.name); }
            label { "Tag " input type="search" name="tag" list="tags" value=(wanted.tag); }
            datalist id="tags" { @for tag in tags { option value=(safe(tag)) {} } }
            @if hosts.len() > 1 || !wanted.host.is_empty() {
                label { "Host "
                    select name="host" {
                        option value="" { "all" }
                        @for host in &hosts {
                            option value=(host) selected[wanted.host == *host] { (safe(host)) }
                        }
                    }
                }
            }
            label { "Kind "
                select name="kind" {
                    option value="" { "all" }
                    @for kind in ResultKind::ALL {
                        option value=(kind.id()) selected[wanted.kind == kind.id()] { (kind.id()) }
                    }
                }
            }
            button type="submit" { "Filter" }
            @if !wanted.is_empty() { " " a href="/" { "all results" } }
        }
    }
}

fn table(entries: &[&ListEntry], all: &[ListEntry]) -> Markup {
    let histories = histories(all);
    html! {
        div class="scroll" { table class="results" {
            thead { tr {
                th {} th { "Result" } th { "Name" } th { "Began" } th { "Outcome" }
                @for head in FIGURES { th class="figure" { (head) } }
                th { "p99 so far" }
            } }
            tbody { @for entry in entries { (row(entry, &histories)) } }
        } }
        @if entries.len() == LIST_MAX {
            p class="soft" { "The last " (LIST_MAX) " are shown; the filter finds the others." }
        }
    }
}

/// p99 of the finished runs of each name, oldest first: start time and figure.
type Histories<'a> = BTreeMap<&'a str, Vec<(f64, f64)>>;

fn histories(all: &[ListEntry]) -> Histories<'_> {
    let mut histories: Histories<'_> = BTreeMap::new();
    for entry in all {
        if let Some(headline) = entry.headline.as_ref().filter(|it| it.has_times()) {
            let point = (entry.started_unix_s, headline.p99_s);
            histories.entry(&entry.name).or_default().push(point);
        }
    }
    for history in histories.values_mut() {
        history.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    histories
}

/// Returns the last figures of a result's name up to the result itself.
fn history(entry: &ListEntry, histories: &Histories<'_>) -> Vec<f64> {
    let all = histories.get(entry.name.as_str()).map_or(&[][..], Vec::as_slice);
    let until = all.partition_point(|(at, _)| *at <= entry.started_unix_s);
    all[until.saturating_sub(SPARK_MAX)..until].iter().map(|(_, p99)| *p99).collect()
}

fn row(entry: &ListEntry, histories: &Histories<'_>) -> Markup {
    let history = history(entry, histories);
    let (outcome, word) = outcome(entry);
    html! {
        tr class=(outcome) {
            td class="pick" { input type="checkbox" name="id" value=(entry.id)
                aria-label=(format!("select {}", entry.id)); }
            td class="id" data-v=(number(entry)) { a href=(address(entry)) { (entry.id) } }
            td class="name" {
                (safe(&entry.name))
                @for tag in &entry.tags { " " span class="tag" { (safe(tag)) } }
            }
            td class="began" data-v=(entry.started_unix_s) { (began(entry.started_unix_s)) }
            td class="outcome" {
                @if entry.progress != Progress::Finished { (progress(entry.progress)) " " }
                (word)
            }
            @match &entry.headline {
                Some(headline) => (figures(headline)),
                None => td class="figures" colspan=(FIGURES.len()) { (description(entry)) },
            }
            td class="spark" {
                @if history.len() >= SPARK_MIN {
                    a href=(trend_address(&entry.name)) aria-label="trend" { (sparkline(&history)) }
                }
            }
        }
    }
}

/// Returns the number of an id, by which ids are sorted.
fn number(entry: &ListEntry) -> String {
    let id = entry.id.to_string();
    id.rsplit('-').next().unwrap_or_default().to_owned()
}

pub(crate) fn trend_address(name: &str) -> String {
    let query: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    format!("/trend?name={query}")
}

/// Returns the address of a result's page.
fn address(entry: &ListEntry) -> String {
    match entry.progress {
        Progress::Running => format!("/result/{}/live", entry.id),
        _ => format!("/result/{}", entry.id),
    }
}

pub(crate) fn progress(progress: Progress) -> Markup {
    html! { span class=(format!("state {}", progress.id())) { (progress.id()) } }
}

/// Formats `2026-11-21 05:58 UTC`; the script converts it to the reader's time zone.
pub(crate) fn began(unix_s: f64) -> Markup {
    if !unix_s.is_finite() {
        return html! {};
    }
    let text = report::timestamp(unix_s);
    let text = text.trim_end_matches(" UTC");
    let machine = format!("{}Z", text.replacen(' ', "T", 1));
    let short = text.rsplit_once(':').map_or(text, |(minutes, _)| minutes);
    html! { time datetime=(machine) { (short) " UTC" } }
}

/// Returns the class of a row, and a short text for the outcome.
fn outcome(entry: &ListEntry) -> (&'static str, String) {
    if let Some(tortured) = entry.tortured {
        let class = if tortured.findings == 0 { "good" } else { "bad" };
        return (class, tortured.worst.id().to_owned());
    }
    let Some(verdict) = entry.verdict else {
        let class = if entry.progress == Progress::Running { "going" } else { "doubtful" };
        return (class, String::new());
    };
    let conduct = entry.conduct.filter(|conduct| !conduct.is_good());
    let class = match verdict {
        _ if conduct.is_some() || entry.judgement == Some(Judgement::Worse) => "bad",
        State::Invalid => "bad",
        State::Degraded => "doubtful",
        State::Valid => "good",
    };
    let conduct = conduct.map_or(String::new(), |conduct| format!("{} · ", conduct.word()));
    (class, format!("{conduct}{}", verdict.id()))
}

fn figures(headline: &Headline) -> Markup {
    // an absent time is sorted before the shortest
    let time = |seconds: f64| match headline.has_times() {
        true => (seconds.to_string(), show::duration(Nanos::from_secs_f64(seconds.max(0.0)))),
        false => (String::new(), "-".to_owned()),
    };
    let figure = |value: f64, text: String| (value.to_string(), text);
    let cells = [
        figure(headline.throughput_per_s, show::rate(headline.throughput_per_s)),
        time(headline.p50_s),
        time(headline.p99_s),
        figure(headline.failure_share, show::share(headline.failure_share)),
    ];
    html! {
        @for (head, (value, text)) in FIGURES.iter().zip(cells) {
            td class="figure" data-label=(head) data-v=(value) { (text) }
        }
    }
}

/// Formats the figures of a result that is not a run.
fn description(entry: &ListEntry) -> String {
    if let Some(judgement) = entry.judgement {
        return match judgement {
            Judgement::Worse => "worse",
            Judgement::Better => "better",
            Judgement::NoneShown => "no significant difference",
            Judgement::TooFew => "too few runs",
        }
        .to_owned();
    }
    if let Some(tortured) = entry.tortured {
        return tortured.words();
    }
    let axis = entry.axis.unwrap_or_default();
    let capacity = |(label, found): &(String, Option<stats::curve::Span>)| match found {
        Some(span) => {
            format!("{label}: capacity {}", report::ramp::capacity_description(axis, span))
        }
        None => format!("{label}: no capacity"),
    };
    let knee = |(label, found): &(String, Option<stats::curve::Span>)| match found {
        Some(span) => format!("{label}: {}", report::ramp::knee_description(axis, span)),
        None => format!("{label}: no knee"),
    };
    let words: Vec<String> = match entry.knees.is_empty() {
        true => entry.capacities.iter().map(capacity).collect(),
        // without an objective the capacity is the knee
        false => entry.knees.iter().map(knee).collect(),
    };
    words.join("; ")
}
