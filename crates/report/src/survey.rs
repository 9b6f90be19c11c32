//! The record of a survey: text, CSV, JSON (`loadstone.survey/1`, described by
//! `docs/schema/survey.schema.json`) and a page.

use crate::Style;
use crate::page::html::frame::{self, Plots};
use crate::page::text::ascii;
use crate::page::text::layout::Page;
use crate::words::{counted, printable};
use maud::{Markup, html as markup};
use record::survey::{SurveyKind, SurveyRecord, SurveyedServer};
use std::fmt::Write as _;
use units::{Nanos, show};

/// Characters of a name, and of what a server says of itself.
const NAME_MAX: usize = 60;

/// The record as JSON, indented, with a line feed at its end.
pub fn json(record: &SurveyRecord) -> String {
    record::document::printed(record)
}

/// The table of software as `uniq -c` prints it, then what is known of each server.
pub fn text(record: &SurveyRecord, style: Style) -> String {
    let mut page = Page::default();
    let most = record.software.iter().map(|row| show::count(row.count).len()).max().unwrap_or(1);
    for row in &record.software {
        let (count, name) = (show::count(row.count), printable(&row.name, NAME_MAX));
        page.line(&format!("{count:>most$} {name}  ({})", row.least));
    }
    if !record.software.is_empty() {
        page.blank();
    }
    if !style.quiet {
        record.servers.iter().for_each(|server| one_server(&mut page, server));
        page.blank();
    }
    page.wrapped("", &summary(record));
    if style.unicode { page.finish() } else { ascii(&page.finish()) }
}

fn one_server(page: &mut Page, server: &SurveyedServer) {
    page.line(&printable(&named(server), 2 * NAME_MAX));
    if let Some(why) = &server.trouble {
        return page.wrapped("    not reached: ", &printable(why, 200));
    }
    for (label, text) in facts(server) {
        page.wrapped(&format!("    {label:<11}"), &printable(&text, 400));
    }
}

fn named(server: &SurveyedServer) -> String {
    let address = server.address.as_deref();
    let names: Vec<&str> =
        server.names.iter().map(String::as_str).filter(|name| Some(*name) != address).collect();
    match (address, names.is_empty()) {
        (Some(address), true) => address.to_owned(),
        (Some(address), false) => format!("{address} {}", names.join(" ")),
        (None, _) => names.join(" "),
    }
}

fn facts(server: &SurveyedServer) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let confidence = server.confidence.as_deref().unwrap_or_default();
    facts
        .push(("is", format!("{} ({confidence})", server.software.as_deref().unwrap_or_default())));
    let said = if server.claim.is_empty() { "nothing" } else { &server.claim };
    facts.push(("says", said.to_owned()));
    facts.push((
        "behaves as",
        server.behaves.as_ref().map_or("nothing that is known here".to_owned(), |one| {
            format!("{}, {} of its fingerprint", one.software, show::share(one.share))
        }),
    ));
    if !server.http.is_empty() {
        facts.push(("HTTP", server.http.join(", ")));
    }
    if !server.tls.is_empty() {
        facts.push(("TLS", server.tls.join(", ")));
    }
    if let Some(deadlines) = &server.deadlines {
        let span = |seconds: Option<f64>| {
            let longer = || "longer than 75 s".to_owned();
            seconds.map_or_else(longer, |s| show::duration(Nanos::from_secs_f64(s)))
        };
        let (idle, half) = (span(deadlines.idle_s), span(deadlines.half_head_s));
        facts.push(("deadlines", format!("idle {idle}, half a head {half}")));
    }
    facts
}

fn summary(record: &SurveyRecord) -> String {
    let reached = record.servers.iter().filter(|server| server.reached).count() as u64;
    let lost = record.servers.len() as u64 - reached;
    let what = match record.kind {
        SurveyKind::WebServers => "web server",
        SurveyKind::NameServers => "name server",
    };
    let lost =
        if lost == 0 { String::new() } else { format!(", {} not reached", show::count(lost)) };
    let early = if record.interrupted { "; interrupted" } else { "" };
    let took = show::duration(Nanos::from_secs_f64(record.elapsed_s));
    format!("{} answered{lost}, in {took}{early}", counted(reached, what))
}

/// A row per server (RFC 4180, with plain line feeds).
pub fn csv(record: &SurveyRecord) -> String {
    let mut out = String::from(
        "address,names,reached,software,confidence,claim,behaves,share,http,tls,idle_s,half_head_s,\
         trouble\n",
    );
    for server in &record.servers {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_default();
        let behaves = server.behaves.as_ref();
        let deadlines = server.deadlines.as_ref();
        let seconds = |s: Option<f64>| s.map_or(String::new(), |s| format!("{s:.3}"));
        let cells = [
            or_none(&server.address),
            server.names.join(" "),
            u8::from(server.reached).to_string(),
            or_none(&server.software),
            or_none(&server.confidence),
            server.claim.clone(),
            behaves.map_or(String::new(), |one| one.software.clone()),
            behaves.map_or(String::new(), |one| format!("{:.3}", one.share)),
            server.http.join(" "),
            server.tls.join(" "),
            seconds(deadlines.and_then(|one| one.idle_s)),
            seconds(deadlines.and_then(|one| one.half_head_s)),
            or_none(&server.trouble),
        ];
        let row: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        writeln!(out, "{}", row.join(",")).expect("a String takes all text");
    }
    out
}

/// A cell: in quotes where it has to be. One that a table program would take for a formula gets a
/// blank in front: what a server says of itself is not to be run.
fn quoted(cell: &str) -> String {
    let plain = printable(cell, 1_000);
    let formula = plain.starts_with(['=', '+', '-', '@']);
    let plain = if formula { format!(" {plain}") } else { plain };
    match plain.contains([',', '"', '\n']) {
        true => format!("\"{}\"", plain.replace('"', "\"\"")),
        false => plain,
    }
}

/// The page.
pub fn html(record: &SurveyRecord) -> String {
    let title = format!("Survey: {}", summary(record));
    frame::page(&title, &body(record), Plots::default())
}

fn body(record: &SurveyRecord) -> Markup {
    markup! {
        header {
            p class="kicker" { "Survey of servers" }
            h1 { (summary(record)) }
            p class="soft" { "Begun " (record.started) "." }
        }
        h2 { "Software" }
        div class="wide" { table class="narrow" {
            tr { th { "" } th { "servers" } th class="text" { "at least" } }
            @for row in &record.software {
                tr { td { (row.name) } td { (show::count(row.count)) } td class="text" { (row.least) } }
            }
        } }
        h2 { "Servers" }
        div class="wide" { table {
            tr {
                th { "Server" } th class="text" { "software" } th class="text" { "confidence" }
                th class="text" { "says" } th class="text" { "behaves as" }
                th class="text" { "HTTP" } th class="text" { "TLS" }
            }
            @for server in &record.servers { (row(server)) }
        } }
        p class="soft" {
            "Agreed: words and behaviour are one software's. Disputed: they are not; the name was "
            "changed, or a proxy stands in front. Behaved: it says nothing. Claimed: its behaviour was not "
            "seen, or is not known."
        }
    }
}

fn row(server: &SurveyedServer) -> Markup {
    let words = |text: &Option<String>| text.clone().unwrap_or_default();
    let behaves = server.behaves.as_ref();
    markup! {
        tr {
            td { (named(server)) }
            @if let Some(why) = &server.trouble {
                td class="text soft" colspan="6" { "not reached: " (why) }
            } @else {
                td class="text" { (words(&server.software)) }
                td class="text" { (words(&server.confidence)) }
                td class="text" { (server.claim) }
                td class="text" {
                    @if let Some(one) = behaves { (one.software) " (" (show::share(one.share)) ")" }
                }
                td class="text" { (server.http.join(", ")) }
                td class="text" { (server.tls.join(", ")) }
            }
        }
    }
}
