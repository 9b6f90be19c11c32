//! Transformation of requests by a proxy: the record, checked against its schema, and the text.

use super::fits_its_schema;
use record::torture::chain::{ChainEnds, ChainRecord, chain_record};
use torture::chain::{Arrival, ChainResult, ChainRow, Handling, Meeting, changes, requests};
use torture::framing;
use torture::safety::Class;

fn row(index: usize, arrived: &[&str], back: Option<(&str, Meeting)>) -> ChainRow {
    let request = requests().unwrap().swap_remove(index);
    let values = dialogue::text::Values {
        path: "/p".into(),
        host: "h".into(),
        post: "/q".into(),
        ..Default::default()
    };
    let sent = request.bytes(&values, "").unwrap();
    let arrived: Vec<Arrival> = arrived
        .iter()
        .map(|bytes| Arrival { bytes: bytes.as_bytes().to_vec(), cut_off: false })
        .collect();
    let first = arrived.first().map(|one| one.bytes.clone());
    ChainRow {
        request,
        front: "200, the connection stays open".into(),
        handling: Some(Handling::new(&arrived, true)),
        changes: first.as_ref().map_or_else(Vec::new, |first| changes(&sent, first)),
        faults: first.map_or_else(Vec::new, |first| framing::read(&first).faults),
        arrived,
        sent,
        back: back.map(|(seen, meeting)| (seen.to_owned(), meeting)),
        parted: None,
        out_of_step: None,
    }
}

fn record() -> ChainRecord {
    let clear = "POST /q HTTP/1.1\r\nHost: h\r\nVia: 1.1 p\r\nContent-Length: 5\r\n\r\nabcde";
    let both = "POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let closes = "POST /q HTTP/1.0\r\nConnection: close\r\nContent-Length: 9\r\n\r\nabc";
    let rows = vec![
        row(0, &[clear], Some(("200, the connection stays open", Meeting::Agrees))),
        row(2, &[both], Some(("200 400, closed", Meeting::FindsMore))),
        row(3, &[closes], Some(("no response, the connection stays open", Meeting::Waits))),
        row(4, &[], None),
        row(17, &[clear, clear], None),
    ];
    let ends = ChainEnds {
        front: "http://127.0.0.1:1/".into(),
        http: "1.1",
        origin: Some("127.0.0.1:2".into()),
        back: Some("http://127.0.0.1:3/p".into()),
        class: Class::Local,
    };
    let ended_early = Some("a bound".to_owned());
    chain_record(&ends, &ChainResult { rows, ended_early, interrupted: true })
}

#[test]
fn a_chain_matches_its_schema_and_is_parsed_back() {
    let record = record();
    let json = record::document::printed(&record);
    fits_its_schema("torture-chain", &json);
    assert_eq!(serde_json::from_str::<ChainRecord>(&json).unwrap(), record);
    assert_eq!(record.disagreements, 2);
}

#[test]
fn a_chain_as_text() {
    insta::assert_snapshot!(crate::torture::chain_text(&record(), false));
    let quiet = crate::torture::chain_text(&record(), true);
    assert!(!quiet.contains("control"), "{quiet}");
}
