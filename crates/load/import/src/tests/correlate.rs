//! Two recordings of the same visit.

use super::check_plan;
use crate::correlate;
use proptest::prelude::*;

fn recording(token: &str, id: &str, key: &str, csrf: &str, cookie: &str) -> String {
    let entry = |at: &str,
                 method: &str,
                 url: &str,
                 headers: &str,
                 body: &str,
                 response_headers: &str,
                 content: &str| {
        let body = if body.is_empty() {
            String::new()
        } else {
            format!(",\"postData\":{{\"text\":{}}}", serde_json::Value::from(body))
        };
        format!(
            r#"{{"startedDateTime":"2026-11-24T10:00:0{at}.000Z","time":100,"request":{{"method":"{method}","url":"http://h:1{url}","headers":[{headers}]{body}}},
               "response":{{"status":200,"headers":[{response_headers}],"content":{{"text":{}}}}}}}"#,
            serde_json::Value::from(content)
        )
    };
    let auth = format!(r#"{{"name":"Authorization","value":"Bearer {token}"}}"#);
    let all = [
        entry(
            "0",
            "GET",
            "/login",
            "",
            "",
            "",
            &format!(
                "<form><input name=\"csrf\" value=\"{csrf}\"></form><a href=\"/x?build={cookie}\">"
            ),
        ),
        entry(
            "1",
            "POST",
            "/login",
            "",
            &format!("user=ann&csrf={csrf}"),
            "",
            &format!("{{\"a\":{{\"token\":\"{token}\"}}}}"),
        ),
        entry(
            "4",
            "POST",
            "/orders",
            &auth,
            &format!("{{\"key\":\"{key}\",\"n\":1}}"),
            &format!(r#"{{"name":"Location","value":"/orders/{id}"}}"#),
            "ok",
        ),
        entry("5", "GET", &format!("/orders/{id}"), &auth, "", "", ""),
        entry("6", "GET", &format!("/x?build={cookie}"), "", "", "", ""),
    ];
    format!("{{\"log\":{{\"entries\":[{}]}}}}", all.join(","))
}

#[test]
fn values_that_differ_become_captures_and_generators() {
    let first =
        recording("tok-aaa", "17", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "c1c1c1", "b111");
    let second =
        recording("tok-bbb", "18", "9b2504e0-4f89-41d3-9a0c-0305e82c3302", "d2d2d2", "b222");
    let found = correlate(&first, &second, None).unwrap();
    check_plan(&found.imported.toml);
    insta::assert_snapshot!(format!("{}\n\n{}", found.diff.join("\n"), found.imported.toml));
}

#[test]
fn recordings_without_differences_make_a_plain_plan() {
    let same = recording("t", "1", "k", "c", "b");
    let found = correlate(&same, &same, None).unwrap();
    assert!(found.diff.is_empty() && found.imported.captures == 0, "{:?}", found.diff);
    let left = super::left_out(&found.imported);
    assert!(
        left[0].contains("header Authorization of POST /orders: no response contains"),
        "{left:?}"
    );
    let why = correlate(&same, "{\"log\":{\"entries\":[]}}", None).unwrap_err().0;
    assert!(why.contains("the second recording: it has no request over HTTP"), "{why}");
    assert!(
        correlate("x", &same, None).unwrap_err().0.contains("the first recording: it is not a HAR")
    );
}

#[test]
fn credentials_that_two_recordings_share_are_captured() {
    let same = recording("secret-token", "1", "k", "c", "b");
    for plan in [
        correlate(&same, &same, None).unwrap().imported.toml,
        crate::import_visit(&same, false).unwrap().toml,
    ] {
        check_plan(&plan);
        for wanted in ["json = \"/a/token\"", "Authorization = \"Bearer {{Authorization}}\""] {
            assert!(plan.contains(wanted), "{wanted}\n{plan}");
        }
    }
    let unknown = same.replace("{\\\"a\\\":{\\\"token\\\":\\\"secret-token\\\"}}", "");
    let plan = crate::import_visit(&unknown, false).unwrap().toml;
    assert!(plan.contains("Authorization = \"Bearer secret-token\""), "{plan}");
}

#[test]
fn a_plan_accepts_the_certificates_that_its_recorder_accepted() {
    for (scheme, insecure, expected) in
        [("https", true, true), ("https", false, false), ("http", true, false)]
    {
        let recorded = format!(
            r#"{{"log":{{"entries":[{{"request":{{"method":"GET","url":"{scheme}://h:1/a"}},"response":{{"status":200}}}}]}}}}"#
        );
        let imported = crate::import_visit(&recorded, insecure).unwrap();
        let plan = plan::from_toml(&imported.toml, &plan::NoFiles).unwrap();
        assert_eq!(plan.tls.insecure, expected, "{}", imported.toml);
    }
}

#[test]
fn cookies_that_no_response_sets_are_listed() {
    let headers = r#"{"name":"Cookie","value":"old=1; sid=2"}"#;
    let set = r#"{"name":"set-cookie","value":"sid=2; Path=/\nother=3"}"#;
    let entry = |request: &str, response: &str| {
        format!(
            r#"{{"request":{{"method":"GET","url":"http://h/","headers":[{request}]}},"response":{{"headers":[{response}]}}}}"#
        )
    };
    let all = [entry("", set), entry(headers, ""), entry(headers, "")].join(",");
    let imported =
        crate::import_visit(&format!("{{\"log\":{{\"entries\":[{all}]}}}}"), false).unwrap();
    let left = super::left_out(&imported);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].contains("cookie old: no response of the recording sets it"), "{left:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_values_make_a_valid_plan(one in "[a-zA-Z0-9_.%/-]{1,12}", two in "[a-zA-Z0-9_.%/-]{1,12}", id in "[0-9]{1,4}", key in "[ -~é]{0,12}") {
        let key = key.replace(['"', '\\'], "");
        let first = recording(&one, &id, &key, &two, &one);
        let second = recording(&two, "5", "other", &one, &id);
        let found = correlate(&first, &second, None).unwrap();
        check_plan(&found.imported.toml);
    }
}
