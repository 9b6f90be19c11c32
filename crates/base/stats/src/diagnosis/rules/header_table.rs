use super::super::shape::ratio;
use super::super::{Confidence, Rule, Sign, View};
use units::show;

const STREAMS_MIN: f64 = 50.0;
const SAVED_MAX: f64 = 0.5;

pub(crate) const RULE: Rule = Rule {
    id: "header-table",
    title: "The table for fields is too small, or fields never repeat",
    reasoning: "HPACK sends a field that is in the connection's table as one byte. A connection \
        that carries many messages with the same fields therefore saves nine tenths of them. If it \
        saves less than half, the table does not hold the repeated fields: it is smaller than one \
        field list, so each list evicts what the next one needs, or the fields are new each time \
        (ids, dates to the microsecond, cookies).",
    source: "RFC 7541 §2.3.2 and §4; RFC 9113 §6.5.2 (SETTINGS_HEADER_TABLE_SIZE, 4,096 at first).",
    thresholds: &[
        (STREAMS_MIN, "streams a connection, at least"),
        (SAVED_MAX, "share of the bytes of fields that compression saved, at most"),
    ],
    advice: "Raise the table (--header-table for responses, --encoder-table for requests, and the \
             server's own setting), and omit fields that differ in each message.",
    excludes: &[],
    find,
};

fn find(view: &View<'_>) -> Option<Sign> {
    let facts = &view.total.connections.http2;
    let limits = view.evidence.http2?;
    let connections = view.total.connections.established.max(1) as f64;
    let streams = facts.streams as f64;
    if !view.enough() || streams / connections < STREAMS_MIN {
        return None;
    }
    let sides = [
        ("responses", facts.fields_received, facts.coded_received, limits.header_table),
        ("requests", facts.fields_sent, facts.coded_sent, limits.encoder_table),
    ];
    let one = |(what, plain, coded, table): (&str, u64, u64, u32)| {
        let saved = 1.0 - ratio(coded as f64, plain as f64);
        if plain == 0 || saved > SAVED_MAX {
            return None;
        }
        let list = plain as f64 / streams;
        let small = list > f64::from(table);
        let confidence = if small { Confidence::Likely } else { Confidence::Possible };
        let why = if small { "smaller than one list of fields" } else { "enough for one list" };
        let text = format!(
            "compression saved {} of the fields of {what}, {} a message, over {} streams a \
             connection; the table of {} is {why}",
            show::share(saved.max(0.0)),
            show::bytes(list as u64),
            show::count((streams / connections) as u64),
            show::bytes(u64::from(table))
        );
        Sign::new(confidence, text)
    };
    sides.into_iter().find_map(one)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{http2_facts, measured};
    use super::super::super::{Evidence, Http2Limits};
    use super::*;

    /// Returns the finding for a connection that carried 1,000 responses whose fields, 200,000
    /// bytes, were sent as `coded` bytes, with a table of `table`.
    fn finding(coded: u64, table: u32) -> Option<Confidence> {
        let mut facts = http2_facts(1_000);
        (facts.fields_received, facts.coded_received) = (200_000, coded);
        let mut measurement = measured(facts);
        measurement.total.connections.established = 1;
        let mut evidence = Evidence::new(&measurement);
        evidence.http2 = Some(Http2Limits {
            streams: 10,
            stream_window: 1 << 30,
            connection_window: 1 << 30,
            header_table: table,
            encoder_table: 4_096,
        });
        find(&View::new(&evidence)).map(|sign| sign.confidence)
    }

    #[test]
    fn little_saving_is_reported_as_a_small_table() {
        assert_eq!(finding(100_000, 4_096), Some(Confidence::Possible));
        assert_eq!(finding(100_000, 100), Some(Confidence::Likely));
        assert_eq!(finding(99_000, 100), None);
    }
}
