//! Values that contain quotation marks, inserted into JSON bodies.

use super::*;
use crate::correlate;

/// Returns the line of the plan's first body.
fn body_line(imported: &Imported) -> &str {
    let line = imported.toml.lines().find(|line| line.starts_with("body = "));
    line.unwrap_or_else(|| panic!("no body in\n{}", imported.toml))
}

#[test]
fn artillery_and_bruno_escape_values_in_strings() {
    let script = "config:\n  target: http://h:1\n  payload:\n    - path: users.csv\n      fields: [name, likes]\nscenarios:\n  - flow:\n      - post:\n          url: /\n          json:\n            name: 'I am {{ name }}'\n";
    let imported = plan_of(Format::Artillery, script);
    assert_eq!(body_line(&imported), r#"body = '{"name":"I am {{data1.name|json}}"}'"#);
    let request = "meta {\n  name: one\n  type: http\n}\npost {\n  url: http://h:1/\n  body: json\n}\nvars:pre-request {\n  name: ann\n  n: 1\n}\nbody:json {\n  {\"name\": \"{{name}}\", \"n\": {{n}}}\n}\n";
    let imported = plan_of(Format::Bruno, request);
    let expected = r#"{"name": "{{name|json}}", "n": {{n}}}"#;
    assert!(imported.toml.contains(expected), "{}", imported.toml);
}

#[test]
fn postman_escapes_values_in_graphql_queries_only() {
    let collection = |body: &str| {
        format!(
            r#"{{"info": {{"name": "c"}}, "variable": [{{"key": "v", "value": "a\"b"}}],
            "item": [{{"name": "one", "request": {{"url": "http://h/", "method": "POST", "body": {body}}}}}]}}"#
        )
    };
    let query = r#"{"mode": "graphql", "graphql": {"query": "{ a(id: \"{{v}}\") }", "variables": "{\"b\": {{v}}}"}}"#;
    let imported = plan_of(Format::Postman, &collection(query));
    let expected = r#"body = '{"query":"{ a(id: \"{{v|json}}\") }","variables":{"b": {{v}}}}'"#;
    assert_eq!(body_line(&imported), expected);
    let raw = r#"{"mode": "raw", "raw": "{\"a\": \"{{v}}\"}"}"#;
    let imported = plan_of(Format::Postman, &collection(raw));
    assert_eq!(body_line(&imported), r#"body = '{"a": "{{v}}"}'"#);
}

#[test]
fn strings_of_recorded_json_bodies_are_compared_decoded() {
    let recording = |name: &str| {
        let sent = format!(r#"{{"n": 7, "owner": {}}}"#, serde_json::Value::from(name));
        let first = format!(
            r#"{{"request":{{"method":"GET","url":"http://h:1/me"}},"response":{{"status":200,"content":{{"text":{}}}}}}}"#,
            serde_json::Value::from(format!("{{\"name\": {}}}", serde_json::Value::from(name)))
        );
        let second = format!(
            r#"{{"request":{{"method":"POST","url":"http://h:1/orders","postData":{{"mimeType":"application/json","text":{}}}}},"response":{{"status":200}}}}"#,
            serde_json::Value::from(sent)
        );
        format!("{{\"log\":{{\"entries\":[{first},{second}]}}}}")
    };
    let found =
        correlate(&recording("Ann \"the\n1st\" \\"), &recording("Bob \"2\" \u{e9}"), None).unwrap();
    check_plan(&found.imported.toml);
    let body = body_line(&found.imported);
    assert!(body.contains(r#"{"n": 7, "owner": "{{"#) && body.contains(r#"|json}}"}"#), "{body}");
    assert!(found.imported.toml.contains(r#"json = "/name""#), "{}", found.imported.toml);
}
