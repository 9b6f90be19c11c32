//! What a proxy makes of requests, as text.

use super::words;
use crate::page::text::layout::Page;
use crate::words::counted;
use record::torture::chain::{ChainRecord, ChainRequestRecord};

/// Bytes of a message that a line shows.
const SHOWN_MAX: usize = 300;

/// A chain as text, with a line feed at its end; `quiet`: disagreements and the summary only.
pub fn chain_text(record: &ChainRecord, quiet: bool) -> String {
    let mut page = Page::default();
    let over = if record.http == "2" { " over HTTP/2" } else { "" };
    page.wrapped(
        "",
        &format!("Chain behind {}{over} ({})", words::safe(&record.front), record.class.id()),
    );
    if let Some(origin) = &record.origin {
        page.wrapped("  origin  ", &format!("ours, at {origin}: it recorded what arrived"));
    }
    if let Some(back) = &record.back {
        let what = match record.origin {
            Some(_) => "it got what arrived",
            None => "it got the same requests",
        };
        page.wrapped("  server  ", &format!("{}: {what}", words::safe(back)));
    }
    page.blank();
    page.wrapped("", &summary(record));
    if let Some(why) = &record.ended_early {
        page.wrapped("", &format!("It ended early: {}.", words::safe(why)));
    }
    if record.interrupted {
        page.wrapped("", "Interrupted before the end.");
    }
    let shown = |row: &&ChainRequestRecord| row.disagrees || !quiet;
    for row in record.requests.iter().filter(shown) {
        page.blank();
        one(&mut page, row);
    }
    page.finish()
}

fn summary(record: &ChainRecord) -> String {
    let all = &record.requests;
    let mut parts = Vec::new();
    for (id, text) in [
        ("refused", "refused by the proxy"),
        ("waits", "that it waits behind"),
        ("made-clear", "made clear"),
        ("passed-on", "passed on as they came"),
        ("cut-off", "begun and cut off"),
        ("split", "taken for several"),
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
        text.push_str(&format!("; {count} {verb} read differently by proxy and server"));
    } else if record.disagreements > 0 {
        text.push_str(&format!("; {} put the proxy out of step", record.disagreements));
    }
    text + "."
}

fn one(page: &mut Page, row: &ChainRequestRecord) {
    let mark = if row.disagrees { "DISAGREE " } else { "" };
    page.wrapped("", &format!("{mark}{}: {} ({})", row.pair, row.name, row.reference));
    let mut through = row.through.clone();
    if let Some(handling) = &row.handling {
        through = format!("{}; {through}", handling.replace('-', " "));
    }
    page.wrapped("    proxy    ", &words::safe(&through));
    if !row.changes.is_empty() {
        page.wrapped("    changed  ", &words::safe(&row.changes.join("; ")));
    }
    if !row.faults.is_empty() {
        page.wrapped("    still    ", &words::safe(&row.faults.join("; ")));
    }
    if let Some(back) = &row.back {
        let meeting = row.meeting.clone().unwrap_or_default().replace('-', " ");
        page.wrapped("    server   ", &format!("{meeting}; {}", words::safe(back)));
    }
    if let Some(why) = &row.why {
        page.wrapped("    because  ", &words::safe(why));
        for (label, bytes) in std::iter::once(("    sent     ", &row.sent))
            .chain(row.arrived.iter().map(|bytes| ("    arrived  ", bytes)))
        {
            let text = bytes.0.escape_ascii().to_string();
            let cut = text.get(..SHOWN_MAX).map(|start| format!("{start} ..."));
            page.wrapped(label, &cut.unwrap_or(text));
        }
    }
}
