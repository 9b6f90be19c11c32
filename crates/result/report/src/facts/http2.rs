//! One-line facts of HTTP/2.

use crate::words::{counted, printable};
use record::run::{FieldsRecord, Http2Record};
use sample::http2_code;
use std::collections::BTreeMap;
use units::show;

/// Characters of a reason that are shown.
const REASON_MAX: usize = 160;

pub(super) fn facts(facts: &Http2Record) -> Vec<(&'static str, String)> {
    let mut lines = vec![("HTTP/2", streams(facts)), ("", fields(&facts.fields))];
    lines.extend(frames(facts).map(|text| ("", text)));
    let violation = |(why, count): (&String, &u64)| {
        let connections = counted(*count, "connection");
        ("", format!("{connections} broken off: {}", printable(why, REASON_MAX)))
    };
    lines.extend(facts.violations.iter().map(violation));
    lines
}

fn streams(facts: &Http2Record) -> String {
    let allowed = match facts.streams_max {
        None if facts.no_settings => "the server sent no settings".to_owned(),
        None => "the server sets no limit".to_owned(),
        Some(max) => format!("the server allows {}", show::count(u64::from(max))),
    };
    format!(
        "{}, at most {} at once on a connection; {allowed}",
        counted(facts.streams, "stream"),
        show::count(facts.streams_peak)
    )
}

/// Returns the bytes of fields sent and received, each before and after their compression.
pub(super) fn fields(fields: &FieldsRecord) -> String {
    let one = |way: &str, plain: u64, coded: u64| {
        let (before, after) = (show::bytes(plain), show::bytes(coded));
        let saved = if plain == 0 { 0.0 } else { 1.0 - coded as f64 / plain as f64 };
        format!("{before} {way} as {after} ({} saved)", show::share(saved))
    };
    let sent = one("sent", fields.sent, fields.sent_coded);
    format!("fields: {sent}, {}", one("received", fields.received, fields.received_coded))
}

/// Describes the server's announcements about streams, and the connections that it ends.
fn frames(facts: &Http2Record) -> Option<String> {
    let codes = |name: &str, codes: &BTreeMap<String, u64>| {
        let mut codes: Vec<(&String, &u64)> = codes.iter().collect();
        codes.sort_by_key(|(code, _)| http2_code(code));
        let one = |(code, count): &(&String, &u64)| format!("{code} {}", show::count(**count));
        let all: Vec<String> = codes.iter().map(one).collect();
        (!all.is_empty()).then(|| format!("{name} {}", all.join(", ")))
    };
    let refused = (facts.refused > 0)
        .then(|| format!("{} refused and sent again", counted(facts.refused, "stream")));
    let reasons: Vec<String> = facts
        .goaway_reasons
        .iter()
        .map(|(why, count)| format!("{} × {}", show::count(*count), printable(why, REASON_MAX)))
        .collect();
    let goaway = codes("GOAWAY", &facts.goaways).map(|text| match reasons.is_empty() {
        true => text,
        false => format!("{text} ({})", reasons.join(", ")),
    });
    let pings = (facts.pings_sent > 0).then(|| {
        let answered = show::count(facts.pings_answered);
        format!("{} sent, {answered} acknowledged", counted(facts.pings_sent, "ping"))
    });
    let parts: Vec<String> = [refused, codes("RST_STREAM", &facts.resets), goaway, pings]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fact_has_its_sentence() {
        let mut seen = sample::Http2Facts {
            streams: 12_000,
            streams_peak: 10,
            streams_max: Some(128),
            refused: 3,
            resets: [(7, 3), (2, 1)].into(),
            goaways: [(0, 12), (11, 1)].into(),
            goaway_reasons: [("too_many_pings".to_owned(), 1)].into(),
            pings_sent: 4,
            pings_answered: 3,
            fields_sent: 1_000_000,
            coded_sent: 50_000,
            fields_received: 2_000_000,
            coded_received: 400_000,
            ..sample::Http2Facts::default()
        };
        seen.add_violation("PROTOCOL_ERROR: x (RFC 9113 section 5.4.1)", 2);
        let lines: Vec<String> =
            facts(&Http2Record::new(&seen).unwrap()).into_iter().map(|(_, text)| text).collect();
        assert_eq!(
            lines,
            [
                "12,000 streams, at most 10 at once on a connection; the server allows 128",
                "fields: 977 KiB sent as 48.8 KiB (95.0 % saved), 1.91 MiB received as 391 KiB (80.0 % saved)",
                "3 streams refused and sent again; RST_STREAM INTERNAL_ERROR 1, REFUSED_STREAM 3; \
                 GOAWAY NO_ERROR 12, ENHANCE_YOUR_CALM 1 (1 × too_many_pings); 4 pings sent, 3 acknowledged",
                "2 connections broken off: PROTOCOL_ERROR: x (RFC 9113 section 5.4.1)",
            ]
        );
    }
}
