//! The pages around the results, as templates. What a peer or a user wrote is text here: the template
//! escapes it.

use crate::browser::refusal::HttpRefusal;
use maud::{DOCTYPE, Markup, html};
use record::compare::Judgement;
use store::{ListEntry, Progress, ResultKind, Stored};
use units::show::safe;
use units::{Nanos, show};

pub(crate) const STYLE: &str = include_str!("style.css");
pub(crate) const SCRIPT: &str = include_str!("live.js");

/// Results that a list shows at most; the filter finds the others.
pub(crate) const LIST_MAX: usize = 500;

/// What the list was asked to show, as typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListQuery {
    pub(crate) name: String,
    pub(crate) tag: String,
    pub(crate) kind: String,
}

fn page(title: &str, script: bool, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Loadstone" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/style.css";
                @if script { script src="/live.js" defer {} }
            }
            body { (body) }
        }
    }
}

pub(crate) fn refusal(refusal: &HttpRefusal) -> Markup {
    let body = html! {
        main {
            h1 { (refusal.status.canonical_reason().unwrap_or("No")) }
            p { (safe(&refusal.text)) }
            p { a href="/" { "All results" } }
        }
    };
    page("No", false, &body)
}

/// Which store a list is of, and what is to be told of its opening.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreHead<'a> {
    pub(crate) store: &'a str,
    pub(crate) notes: &'a [String],
}

/// The list. `note`: why there is nothing, where that is known.
pub(crate) fn list(
    entries: &[ListEntry],
    wanted: &ListQuery,
    StoreHead { store, notes }: StoreHead<'_>,
    note: Option<&str>,
) -> Markup {
    let filtered = !(wanted.name.is_empty() && wanted.tag.is_empty() && wanted.kind.is_empty());
    let body = html! {
        main {
            h1 { "Results" }
            p class="soft" { (safe(store)) }
            @for note in notes { p role="status" { (safe(note)) } }
            (filter(wanted, filtered))
            @if entries.is_empty() {
                p id="nothing" {
                    @if let Some(note) = note { (safe(note)) }
                    @else if filtered { "Nothing that is stored passes this filter." }
                    @else { "Nothing is stored yet: loadstone run keeps what it measures." }
                }
            } @else {
                form action="/compare" method="get" {
                    (table(entries))
                    p { button type="submit" { "Side by side" } " the results that are ticked" }
                }
            }
        }
    };
    page("Results", false, &body)
}

fn filter(wanted: &ListQuery, filtered: bool) -> Markup {
    html! {
        form action="/" method="get" class="filter" {
            label { "Name " input type="search" name="name" value=(wanted.name); }
            label { "Tag " input type="search" name="tag" value=(wanted.tag); }
            label { "Kind "
                select name="kind" {
                    option value="" { "all" }
                    @for kind in ResultKind::ALL {
                        option value=(kind.id()) selected[wanted.kind == kind.id()] { (kind.id()) }
                    }
                }
            }
            button type="submit" { "Filter" }
            @if filtered { " " a href="/" { "all results" } }
        }
    }
}

fn table(entries: &[ListEntry]) -> Markup {
    html! {
        div class="scroll" { table class="results" {
            thead { tr {
                th {} th { "Result" } th { "Of" } th { "Tags" } th { "Began (UTC)" } th { "State" }
                th { "Verdict" } th { "Figures" }
            } }
            tbody { @for entry in entries { (row(entry)) } }
        } }
        @if entries.len() == LIST_MAX {
            p class="soft" { "The last " (LIST_MAX) " are shown; the filter finds the others." }
        }
    }
}

/// The classes are the places of the cells where the screen is too narrow for a table.
fn row(entry: &ListEntry) -> Markup {
    let tortured = entry.tortured.map(|tortured| tortured.worst.id());
    let verdict = entry.verdict.map(stats::State::id).or(tortured).unwrap_or_default();
    html! {
        tr {
            td class="pick" { input type="checkbox" name="id" value=(entry.id)
                aria-label=(format!("{} for side by side", entry.id)); }
            td class="id" { a href=(address(entry)) { (entry.id) } }
            td class="name" { (safe(&entry.name)) }
            td class="tags" { @for tag in &entry.tags { span class="tag" { (safe(tag)) } " " } }
            td class="began" { (began(entry.started_unix_s)) }
            td class="progress" { (progress(entry.progress)) }
            td class="verdict" { (verdict) }
            td class="figures" { (figures(entry)) }
        }
    }
}

/// Where a result is looked at.
fn address(entry: &ListEntry) -> String {
    match entry.progress {
        Progress::Running => format!("/result/{}/live", entry.id),
        _ => format!("/result/{}", entry.id),
    }
}

fn progress(progress: Progress) -> Markup {
    html! { span class=(format!("state {}", progress.id())) { (progress.id()) } }
}

/// `2026-11-21 05:58:47`.
fn began(unix_s: f64) -> String {
    if !unix_s.is_finite() {
        return String::new();
    }
    report::timestamp(unix_s).trim_end_matches(" UTC").to_owned()
}

fn figures(entry: &ListEntry) -> String {
    if let Some(headline) = &entry.headline {
        let time = show::duration(Nanos::from_secs_f64(headline.p99_s.max(0.0)));
        let conduct = entry.conduct.filter(|conduct| !conduct.is_good());
        let conduct = conduct.map_or(String::new(), |conduct| format!("{}: ", conduct.word()));
        return format!(
            "{conduct}{} completed, p99 {time}, {} failed",
            show::rate(headline.throughput_per_s),
            show::share(headline.failure_share)
        );
    }
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
    let capacity = |(label, found): &(String, Option<stats::curve::Span>)| match found {
        Some(span) => {
            let axis = entry.axis.unwrap_or_default();
            format!("{label}: capacity {}", report::ramp::capacity_in_words(axis, span))
        }
        None => format!("{label}: no capacity"),
    };
    let knee = |(label, found): &(String, Option<stats::curve::Span>)| match found {
        Some(span) => {
            let axis = entry.axis.unwrap_or_default();
            format!("{label}: {}", report::ramp::knee_in_words(axis, span))
        }
        None => format!("{label}: no knee"),
    };
    let words: Vec<String> = match entry.knees.is_empty() {
        true => entry.capacities.iter().map(capacity).collect(),
        // without an objective the capacity is the knee over again
        false => entry.knees.iter().map(knee).collect(),
    };
    words.join("; ")
}

/// One result: what can be done with it, and its page in a frame.
pub(crate) fn result(entry: &ListEntry) -> Markup {
    let id = entry.id.to_string();
    let at = |rest: &str| format!("/result/{id}/{rest}");
    let body = html! {
        header {
            nav { a href="/" { "All results" } }
            h1 { (id) " " span class="name" { (safe(&entry.name)) } }
            div class="actions" {
                (progress(entry.progress)) " "
                @for tag in &entry.tags {
                    form class="tag" action=(at("untag")) method="post" {
                        (safe(tag)) " "
                        button type="submit" name="tag" value=(tag)
                            aria-label=(format!("take the tag {} off", safe(tag))) { "×" }
                    }
                }
                form class="inline" action=(at("tag")) method="post" {
                    input name="tag" placeholder="new tag" aria-label="new tag" required maxlength="64";
                    button type="submit" { "Tag" }
                }
                a href=(at("json")) { "JSON" } " "
                a href=(at("page")) { "page alone" } " "
                a href=(at("delete")) { "delete …" }
            }
            p class="soft" { code { (safe(&entry.command_line)) } }
        }
        iframe src=(at("page")) title=(format!("Report of {id}")) {}
    };
    page(&id, false, &body)
}

/// Asks before something is gone for good.
pub(crate) fn confirm_deletion(entry: &ListEntry) -> Markup {
    let id = entry.id.to_string();
    let body = html! {
        main {
            h1 { "Delete " (id) "?" }
            p { (safe(&entry.name)) ", began " (began(entry.started_unix_s)) " UTC." }
            p { "It is gone for good then." }
            form action=(format!("/result/{id}/delete")) method="post" {
                button type="submit" class="danger" { "Delete " (id) }
                " " a href=(format!("/result/{id}")) { "keep it" }
            }
        }
    };
    page(&format!("Delete {id}"), false, &body)
}

/// Several results in one frame.
pub(crate) fn side_by_side(ids: &[String]) -> Markup {
    let query: Vec<String> = ids.iter().map(|id| format!("id={id}")).collect();
    let body = html! {
        header {
            nav { a href="/" { "All results" } }
            h1 { (ids.join(", ")) " side by side" }
        }
        iframe src=(format!("/compare/page?{}", query.join("&"))) title="The results side by side" {}
    };
    page("Side by side", false, &body)
}

/// A result while it is measured; the script fills it in each second. `known`: what the store knew
/// when the page was asked for.
pub(crate) fn live(entry: &ListEntry, stored: &Stored) -> Markup {
    let id = entry.id.to_string();
    let graph = |name: &str, title: &str, legend: &[&str]| {
        html! {
            figure {
                figcaption { (title)
                    @for (n, line) in legend.iter().enumerate() {
                        " " span class=(format!("line{n}")) { (line) " " b id=(format!("{name}{n}")) {} }
                    }
                }
                svg id=(name) viewBox="0 0 600 200" role="img" aria-label=(title) {}
            }
        }
    };
    let body = html! {
        header {
            nav { a href="/" { "All results" } }
            h1 { (id) " " span class="name" { (safe(&entry.name)) } }
            p { span id="progress" class="state running" { (entry.progress.id()) } " "
                b id="verdict" {} " " span id="causes" class="soft" {} }
            noscript { p { "Without script this page does not follow the test: "
                a href=(format!("/result/{id}")) { "what is known so far" } "." } }
        }
        main id="live" data-events=(format!("/result/{id}/events")) data-result=(format!("/result/{id}")) {
            @if matches!(stored, Stored::Run(_)) {
                div class="graphs" {
                    (graph("rates", "Calls a second", &["due", "completed"]))
                    (graph("times", "Response time", &["p50", "p90", "p99"]))
                }
            }
            div class="tables" {
                table { tbody id="facts" {} }
                @if matches!(stored, Stored::Run(_)) {
                    table { thead { tr { th { "Failures" } th { "blame" } th {} } } tbody id="failures" {} }
                }
                @if matches!(stored, Stored::Run(_) | Stored::Ramp(_)) {
                    table id="fleet" hidden {
                        thead { tr {
                            th { "Agent" } th { "labels" } th { "state" } th { "calls" } th { "p99" }
                            th { "in flight" } th { "offered" } th { "lost" }
                        } }
                        tbody id="agents" {}
                    }
                }
                @if matches!(stored, Stored::Ramp(_)) {
                    table {
                        thead { tr { th { "Target" } th { "offered" } th { "achieved" } th { "p99" } th { "failures" } } }
                        tbody id="steps" {}
                    }
                }
            }
        }
    };
    page(&format!("{id} live"), true, &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    #[test]
    fn what_others_wrote_neither_turns_nor_hides_text() {
        let text = "no \u{1b}\u{202e}\u{61c}\u{e0041}";
        let page = refusal(&HttpRefusal::new(StatusCode::NOT_FOUND, text)).into_string();
        assert!(page.contains(r"no \u{1b}\u{202e}\u{61c}\u{e0041}"), "{page}");
    }
}
