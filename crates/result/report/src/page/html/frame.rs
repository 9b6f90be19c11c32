//! The frame of every page: its policy, its style, its script and the script's data.

use super::draw;
use crate::section::chart::Chart;
use base64::Engine;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// uPlot 1.6.32 by Leon Sorokin, under the MIT license printed before it in the page.
const UPLOT: &str = include_str!("../../../vendor/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../../vendor/uplot/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("../../../vendor/uplot/LICENSE");

static STYLE: LazyLock<String> =
    LazyLock::new(|| format!("{UPLOT_STYLE}\n{}", include_str!("style.css")));

static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let license = UPLOT_LICENSE.trim();
    let parts = [include_str!("show.js"), include_str!("charts.js"), include_str!("tables.js")];
    format!("/*\n{license}\n*/\n{UPLOT}\n{}", parts.join("\n"))
});

/// The charts of a page, collected while it is written.
#[derive(Debug, Default)]
pub(crate) struct Plots {
    data: Vec<Value>,
    /// Prefix of each chart's name, which makes it unique.
    part: String,
}

impl Plots {
    /// Renders a chart as SVG, with its data for the script.
    pub(crate) fn figure(&mut self, chart: &Chart) -> Markup {
        let chart = Chart { id: self.named(&chart.id), ..chart.clone() };
        self.data.push(chart.data());
        draw::figure(&chart)
    }

    /// Returns an id that is unique to this part of the page.
    pub(crate) fn named(&self, id: &str) -> String {
        format!("{}{id}", self.part)
    }

    /// Assigns the next charts to this part of the page, if it is one; returns the previous part,
    /// for [`Plots::leave`].
    pub(crate) fn enter(&mut self, part: &str) -> String {
        let before = self.part.clone();
        if !part.is_empty() {
            self.part = part.to_owned();
        }
        before
    }

    pub(crate) fn leave(&mut self, before: String) {
        self.part = before;
    }
}

/// Header that stays at the top of a page while it is scrolled.
#[derive(Debug, Default)]
pub(crate) struct Bar {
    /// Kind of the page.
    pub(crate) kicker: &'static str,
    /// Parts of the page: the id and the name of each.
    pub(crate) places: Vec<(&'static str, String)>,
}

fn bar(bar: &Bar) -> Markup {
    html! {
        nav class="bar" { div {
            a class="brand" href="#top" { "Loadstone" }
            span class="kicker" { (bar.kicker) }
            @if !bar.places.is_empty() {
                span class="places" {
                    @for (id, name) in &bar.places { a href=(format!("#{id}")) { (name) } }
                }
            }
        } }
    }
}

/// Renders the whole page. The script only reads its data, draws and sorts: everything is readable
/// without it.
pub(crate) fn page(title: &str, head: &Bar, body: &Markup, plots: Plots) -> String {
    let data = serde_json::to_string(&plots.data).expect("finite numbers and strings");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE.as_str())) }
            }
            body id="top" {
                (bar(head))
                main { (body) }
                script id="data" type="application/json" { (PreEscaped(harmless(&data))) }
                script { (PreEscaped(SCRIPT.as_str())) }
            }
        }
    }
    .into_string()
}

/// Escapes JSON characters that HTML parses as tags or entities, or scripts as line ends.
fn harmless(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
    out
}

/// Returns a policy without external resources; of the page itself, it permits only the style sheet
/// and the script with these hashes.
fn policy() -> String {
    let hash = |text: &str| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'",
        hash(&STYLE),
        hash(&SCRIPT)
    )
}
