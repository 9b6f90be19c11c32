//! The record of a survey: text, CSV, JSON (`loadstone.survey/1`, described by
//! `docs/schema/survey.schema.json`) and a page.

use crate::Style;
use crate::csv::quoted;
use crate::page;
use crate::section::{
    Block, CellLook, Column, DataTable, Document, Forms, TableCell, Title, Voice, aligned, heading,
    text_block, with_lead,
};
use crate::words::{counted, printable};
use record::survey::{SoftwareRow, SurveyKind, SurveyRecord, SurveyedServer};
use std::fmt::Write as _;
use units::{Nanos, show};

/// Maximum characters of a name, and of a server's claim.
const NAME_MAX: usize = 60;

/// Renders the record as JSON, indented, with a line feed at its end.
pub fn json(record: &SurveyRecord) -> String {
    record::document::printed(record)
}

/// Renders the table of software in the format of `uniq -c`, then the observations of each server.
pub fn text(record: &SurveyRecord, style: Style) -> String {
    page::text::text(&document(record), style)
}

/// Renders the page.
pub fn html(record: &SurveyRecord) -> String {
    page::html::page(&document(record))
}

fn document(record: &SurveyRecord) -> Document {
    let name = summary(record);
    let mut page = Document::new(format!("Survey: {name}"));
    let (kicker, lines) = ("Survey of servers", vec![format!("Begun {}.", record.started).into()]);
    page.add(Forms::PAGE, [Block::Title(Title { kicker, name: name.clone(), lines })]);
    software(&mut page, &record.software);
    let servers = record.servers.iter();
    page.add(Forms::LONG, servers.flat_map(one_server).chain([Block::Gap]));
    page.add(Forms::PAGE, [heading("Servers"), Block::Table(side_by_side(record))]);
    let legend = "Agreed: name and behavior belong to the same software. Disputed: they do not; \
        the name was changed, or there is a proxy in front. Behaved: the server sends no name. \
        Claimed: its behavior was not observed, or is not known.";
    page.add(Forms::PAGE, [text_block(Voice::Soft, legend)]);
    page.add(Forms::TEXT, [text_block(Voice::Plain, name)]);
    page
}

fn software(document: &mut Document, rows: &[SoftwareRow]) {
    let most = rows.iter().map(|row| show::count(row.count).len()).max().unwrap_or(1);
    let line = |row: &SoftwareRow| {
        let (count, name) = (show::count(row.count), printable(&row.name, NAME_MAX));
        format!("{count:>most$} {name}  ({})", row.least)
    };
    if !rows.is_empty() {
        document.add(Forms::TEXT, [Block::Lines(rows.iter().map(line).collect()), Block::Gap]);
    }
    let columns = [Column::from(""), "servers".into(), Column::text("at least")];
    let table = DataTable::new(columns).narrow().with(
        rows.iter().map(|row| vec![row.name.clone(), show::count(row.count), row.least.clone()]),
    );
    document.add(Forms::PAGE, [heading("Software"), Block::Table(table)]);
}

/// Renders a server with the observations about it.
fn one_server(server: &SurveyedServer) -> [Block; 2] {
    let name = Block::Lines(vec![printable(&named(server), 2 * NAME_MAX)]);
    let known = match &server.trouble {
        Some(why) => with_lead("    not reached: ", Voice::Plain, printable(why, 200)),
        None => {
            let rows = facts(server).into_iter();
            aligned(4, 11, rows.map(|(label, text)| (label, printable(&text, 400))))
        }
    };
    [name, known]
}

/// Returns a table with a row for each server.
fn side_by_side(record: &SurveyRecord) -> DataTable {
    let heads =
        ["software", "confidence", "reports", "behaves as", "HTTP", "TLS"].map(Column::text);
    let columns = std::iter::once(Column::from("Server")).chain(heads);
    DataTable::new(columns).with(record.servers.iter().map(row))
}

fn row(server: &SurveyedServer) -> Vec<TableCell> {
    let mut cells: Vec<TableCell> = vec![named(server).into()];
    if let Some(why) = &server.trouble {
        let soft = |text: &str| TableCell::new(CellLook::Soft, text);
        cells.extend([soft("not reached"), soft(""), soft(why), soft(""), soft(""), soft("")]);
        return cells;
    }
    let words = |text: &Option<String>| text.clone().unwrap_or_default();
    let behaves = server.behaves.as_ref();
    let behaves = behaves.map(|one| format!("{} ({})", one.software, show::share(one.share)));
    let known = [
        words(&server.software),
        words(&server.confidence),
        server.claim.clone(),
        behaves.unwrap_or_default(),
        server.http.join(", "),
        server.tls.join(", "),
    ];
    cells.extend(known.map(TableCell::from));
    cells
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
    let reported = if server.claim.is_empty() { "nothing" } else { &server.claim };
    facts.push(("reports", reported.to_owned()));
    facts.push((
        "behaves as",
        server.behaves.as_ref().map_or("unknown".to_owned(), |one| {
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

/// Renders CSV with a row per server (RFC 4180, with plain line feeds).
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
        let row: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        writeln!(out, "{}", row.join(",")).expect("a String accepts all text");
    }
    out
}

/// Renders a printable cell. Text that a spreadsheet would parse as a formula gets a leading space:
/// text from a server must not be executed.
fn cell(text: &str) -> String {
    let plain = printable(text, 1_000);
    let formula = plain.starts_with(['=', '+', '-', '@']);
    quoted(&if formula { format!(" {plain}") } else { plain })
}
