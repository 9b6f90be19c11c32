//! Changes of requests by a proxy, as text.

use super::words;
use crate::Style;
use crate::page;
use crate::section::{Block, Document, Forms, Voice, aligned, text_block, with_lead};
use crate::words::counted;
use record::torture::chain::{ChainRecord, ChainRequestRecord};

/// Maximum number of message bytes shown in a line.
const SHOWN_MAX: usize = 300;

/// Returns a chain as text, with a final line feed; `quiet`: disagreements and the summary only.
pub fn chain_text(record: &ChainRecord, quiet: bool) -> String {
    page::text::text(&document(record), Style { quiet, unicode: true, ..Style::default() })
}

fn document(record: &ChainRecord) -> Document {
    let mut document = Document::default();
    let mut add =
        |lead: &str, text: String| document.add(Forms::TEXT, [with_lead(lead, Voice::Plain, text)]);
    let over = if record.http == "2" { " over HTTP/2" } else { "" };
    let (front, class) = (words::safe(&record.front), record.class.id());
    add("", format!("Chain behind {front}{over} ({class})"));
    if let Some(origin) = &record.origin {
        add("  origin  ", format!("ours, at {origin}: it recorded what arrived"));
    }
    if let Some(back) = &record.back {
        let what = match record.origin {
            Some(_) => "it received what arrived",
            None => "it received the same requests",
        };
        add("  server  ", format!("{}: {what}", words::safe(back)));
    }
    document.add(Forms::TEXT, [Block::Gap, text_block(Voice::Plain, summary(record))]);
    document.add(
        Forms::TEXT,
        words::early_end_reasons(record.ended_early.as_deref(), record.interrupted),
    );
    for row in &record.requests {
        let forms = if row.disagrees { Forms::TEXT } else { Forms::LONG };
        document.add(forms, one(row));
    }
    document
}

fn summary(record: &ChainRecord) -> String {
    let all = &record.requests;
    let mut parts = Vec::new();
    for (id, text) in [
        ("refused", "refused by the proxy"),
        ("waits", "waiting for more input"),
        ("made-clear", "made clear"),
        ("passed-on", "passed on unchanged"),
        ("cut-off", "cut off"),
        ("split", "split into several"),
    ] {
        let count = all.iter().filter(|row| row.handling.as_deref() == Some(id)).count();
        if count > 0 {
            parts.push(format!("{count} {text}"));
        }
    }
    let mut text = counted(all.len() as u64, "request");
    if !parts.is_empty() {
        text.push_str(&format!(": {}", parts.join(", ")));
    }
    if record.back.is_some() {
        let count = record.disagreements;
        let verb = if count == 1 { "is" } else { "are" };
        text.push_str(&format!("; {count} {verb} interpreted differently by proxy and server"));
    } else if record.disagreements > 0 {
        text.push_str(&format!("; {} desynchronized the proxy", record.disagreements));
    }
    text + "."
}

fn one(row: &ChainRequestRecord) -> [Block; 3] {
    let mark = if row.disagrees { "DISAGREE " } else { "" };
    let head = format!("{mark}{}: {} ({})", row.pair, row.name, row.reference);
    let mut rows: Vec<(&str, String)> = Vec::new();
    let mut add = |label, value| rows.push((label, value));
    let mut through = row.through.clone();
    if let Some(handling) = &row.handling {
        through = format!("{}; {through}", handling.replace('-', " "));
    }
    add("proxy", words::safe(&through));
    for (label, list) in [("changed", &row.changes), ("still", &row.faults)] {
        if !list.is_empty() {
            add(label, words::safe(&list.join("; ")));
        }
    }
    if let Some(back) = &row.back {
        let meeting = row.meeting.clone().unwrap_or_default().replace('-', " ");
        add("server", format!("{meeting}; {}", words::safe(back)));
    }
    if let Some(why) = &row.why {
        add("because", words::safe(why));
        let arrived = row.arrived.iter().map(|bytes| ("arrived", bytes));
        for (label, bytes) in std::iter::once(("sent", &row.sent)).chain(arrived) {
            let text = bytes.0.escape_ascii().to_string();
            let cut = text.get(..SHOWN_MAX).map(|start| format!("{start} ..."));
            add(label, cut.unwrap_or(text));
        }
    }
    [Block::Gap, text_block(Voice::Plain, head), aligned(4, 9, rows)]
}
