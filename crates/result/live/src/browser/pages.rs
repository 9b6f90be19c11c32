//! The pages around the results, as templates. Text of a peer or a user is escaped by the template.

use super::list::{self, began, progress};
use crate::browser::refusal::HttpRefusal;
use maud::{DOCTYPE, Markup, html};
use store::{ListEntry, Stored};
use units::show::safe;

pub(crate) const STYLE: &str = include_str!("style.css");
pub(crate) const SCRIPT: &str = include_str!("live.js");
pub(crate) const LIST_SCRIPT: &str = include_str!("list.js");

/// Renders a page, with or without one of the scripts.
pub(crate) fn page(title: &str, script: Option<&str>, body: &Markup) -> Markup {
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
                @if let Some(script) = script { script src=(script) defer {} }
            }
            body {
                nav class="bar" { a class="brand" href="/" { "Loadstone" } a href="/" { "Results" } }
                (body)
            }
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
    page("No", None, &body)
}

/// Renders a result: the actions on it, and its page in a frame.
pub(crate) fn result(entry: &ListEntry) -> Markup {
    let id = entry.id.to_string();
    let at = |rest: &str| format!("/result/{id}/{rest}");
    let body = html! {
        header {
            h1 { (id) " " span class="name" { (safe(&entry.name)) } }
            div class="actions" {
                (progress(entry.progress)) " "
                @for tag in &entry.tags {
                    form class="tag" action=(at("untag")) method="post" {
                        (safe(tag)) " "
                        button type="submit" name="tag" value=(tag)
                            aria-label=(format!("remove the tag {}", safe(tag))) { "×" }
                    }
                }
                form class="inline" action=(at("tag")) method="post" {
                    input name="tag" placeholder="new tag" aria-label="new tag" required maxlength="64";
                    button type="submit" { "Tag" }
                }
                @if entry.headline.is_some() { a href=(list::trend_address(&entry.name)) { "trend" } " " }
                a href=(at("json")) { "JSON" } " "
                a href=(at("page")) { "page alone" } " "
                a href=(at("delete")) { "delete …" }
            }
            p class="soft" { code { (safe(&entry.command_line)) } }
        }
        iframe src=(at("page")) title=(format!("Report of {id}")) {}
    };
    page(&id, None, &body)
}

/// Asks for confirmation before a deletion.
pub(crate) fn confirm_deletion(entry: &ListEntry) -> Markup {
    let id = entry.id.to_string();
    let body = html! {
        main {
            h1 { "Delete " (id) "?" }
            p { (safe(&entry.name)) ", began " (began(entry.started_unix_s)) " UTC." }
            p { "This cannot be undone." }
            form action=(format!("/result/{id}/delete")) method="post" {
                button type="submit" class="danger" { "Delete " (id) }
                " " a href=(format!("/result/{id}")) { "keep it" }
            }
        }
    };
    page(&format!("Delete {id}"), None, &body)
}

/// Renders several results in one frame.
pub(crate) fn side_by_side(ids: &[String]) -> Markup {
    let query: Vec<String> = ids.iter().map(|id| format!("id={id}")).collect();
    let body = html! {
        header {
            h1 { (ids.join(", ")) " side by side" }
        }
        iframe src=(format!("/compare/page?{}", query.join("&"))) title="The results side by side" {}
    };
    page("Side by side", None, &body)
}

/// Renders a result while it is measured; the script updates it each second. `known`: data of the
/// store at the time of the request.
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
                    table id="calls" hidden {
                        thead { tr {
                            th { "Step or URL" } th { "calls" } th { "failed" } th { "p50" } th { "p99" }
                        } }
                        tbody id="urls" {}
                    }
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
    page(&format!("{id} live"), Some("/live.js"), &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    #[test]
    fn foreign_text_neither_reverses_nor_hides_text() {
        let text = "no \u{1b}\u{202e}\u{61c}\u{e0041}";
        let page = refusal(&HttpRefusal::new(StatusCode::NOT_FOUND, text)).into_string();
        assert!(page.contains(r"no \u{1b}\u{202e}\u{61c}\u{e0041}"), "{page}");
    }
}
