//! Artillery scripts.

use super::*;

pub(super) const SHOP: &str = "config:
  target: http://localhost:3000
  phases:
    - duration: 60
      arrivalRate: 1
      rampTo: 5
      name: warm up
    - duration: 2m
      arrivalRate: 5
  payload:
    - path: users.csv
      fields: [name, likes]
      order: sequence
  variables:
    kind: [a, b]
    fixed: 7
  http:
    timeout: 5
  plugins:
    ensure:
      thresholds:
        - http.response_time.p95: 200
      maxErrorRate: 1
    expect: {}
  processor: ./functions.js
scenarios:
  - name: buy
    weight: 3
    flow:
      - post:
          url: /login
          json:
            name: '{{ name }}'
          capture:
            - json: $.token
              as: token
          expect:
            - statusCode: 200
            - contentType: json
      - think: 2
      - loop:
          - get:
              url: /items/{{ $randomNumber(1, 9) }}?k={{ kind }}
              headers:
                Authorization: Bearer {{ token }}
              ifTrue: token
        count: 3
      - function: setup
      - post:
          url: /pay
          form:
            a: 1
          beforeRequest: sign
  - name: chat
    engine: socketio
    flow:
      - emit: {channel: x}
  - flow:
      - get: {url: /, qs: {q: '{{ fixed }}'}}
before:
  flow:
    - get:
        url: /reset
";

#[test]
fn a_script_becomes_journeys_with_stages() {
    let imported = plan_of(Format::Artillery, SHOP);
    insta::assert_snapshot!(imported.toml);
    let left = left_out(&imported);
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(
        left.iter().any(|one| one.starts_with("line 25: processor ./functions.js")),
        "{left:?}"
    );
    assert!(left.iter().any(|one| one.starts_with("line 48: function setup")), "{left:?}");
    assert!(left.iter().any(|one| one.contains("engine socketio")), "{left:?}");
}

#[test]
fn one_phase_is_a_rate_and_json_is_read_too() {
    let text = r#"{"config": {"target": "http://h", "phases": [{"duration": "10s", "arrivalCount": 20}]},
        "scenarios": [{"flow": [{"get": {"url": "/", "match": {"json": "$.a", "value": "b"}}}]}]}"#;
    let imported = plan_of(Format::Artillery, text);
    assert!(
        imported.toml.contains("rate = \"2/s\"") && imported.toml.contains("duration = \"10s\""),
        "{}",
        imported.toml
    );
    assert!(imported.toml.contains("json = { \"$.a\" = \"b\" }"), "{}", imported.toml);
}

#[test]
fn indexes_after_dots_become_brackets() {
    let text = "config:\n  target: http://h:1\nscenarios:\n  - flow:\n      - get:\n          url: /\n          capture:\n            - json: $.result.0.name\n              as: first\n            - json: \"$['a.0'].items.12[3].0\"\n              as: second\n          match:\n            json: $.list.1\n            value: x\n";
    let imported = plan_of(Format::Artillery, text);
    for wanted in ["$.result[0].name", "$['a.0'].items[12][3][0]", "$.list[1]"] {
        assert!(imported.toml.contains(wanted), "{wanted}\n{}", imported.toml);
    }
    assert!(imported.left_out.is_empty(), "{:?}", left_out(&imported));
}
