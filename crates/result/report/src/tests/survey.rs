//! A survey as text and as a page.

use crate::{Style, survey};
use record::survey::SurveyRecord;
use serde_json::json;

/// Returns the record of a known server, a silent server, and a line without a server.
fn record() -> SurveyRecord {
    let server = |names: &[&str], address: Option<&str>| {
        json!({
            "names": names, "address": address, "reached": address.is_some(), "trouble": null,
            "software": null, "confidence": null, "claim": "", "behaves": null, "http": [], "tls": [],
            "deadlines": null, "evidence": [],
        })
    };
    let mut known = server(&["http://a.example/", "b"], Some("192.0.2.1:80"));
    known["software"] = "nginx".into();
    known["confidence"] = "agreed".into();
    known["claim"] = "nginx/1.22.1 <b>".into();
    known["behaves"] = json!({ "software": "nginx", "share": 0.93 });
    known["http"] = json!(["1.0", "1.1", "2"]);
    known["tls"] = json!(["1.2", "1.3"]);
    known["deadlines"] = json!({ "idle_s": 65.0, "half_head_s": null });
    let mut silent = server(&["192.0.2.2:80"], Some("192.0.2.2:80"));
    silent["software"] = "unknown".into();
    silent["confidence"] = "unknown".into();
    let mut nowhere = server(&["nowhere.example\u{1b}[31m"], None);
    nowhere["trouble"] = "no such name".into();
    let record = json!({
        "schema": "loadstone.survey/1", "kind": "web-servers", "started": "2026-11-21 04:33:10 UTC",
        "started_unix_s": 1_795_235_590.0, "elapsed_s": 2.25, "interrupted": false,
        "software": [
            { "name": "nginx", "count": 12_000, "least": "agreed" },
            { "name": "unknown", "count": 1, "least": "unknown" },
        ],
        "servers": [known, silent, nowhere],
    });
    serde_json::from_value(record).expect("a record of a survey")
}

#[test]
fn what_answers_as_text() {
    let style = Style { unicode: true, ..Style::default() };
    insta::assert_snapshot!(survey::text(&record(), style));
}

#[test]
fn brief_is_the_table_of_software() {
    let style = Style { unicode: true, quiet: true, ..Style::default() };
    let brief = "12,000 nginx  (agreed)\n     1 unknown  (unknown)\n\n\
                 2 web servers answered, 1 not reached, in 2.25 s\n";
    assert_eq!(survey::text(&record(), style), brief);
}

#[test]
fn the_page_has_a_row_for_each_server() {
    let page = survey::html(&record());
    for part in ["192.0.2.1:80 http://a.example/ b", "nginx (93.0 %)", "nginx/1.22.1 &lt;b&gt;"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains(">not reached</td>") && page.contains("no such name"), "{page}");
}
