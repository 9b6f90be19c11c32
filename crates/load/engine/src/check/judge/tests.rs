use super::super::capture::capture;
use super::*;
use plan::NoFiles;
use plan::check::{Action, Ask, Given, from_toml};
use protocol::http1::response::ResponseFacts;
use std::collections::BTreeMap;

fn send_request(rest: &str) -> Ask {
    let text = format!(
        "version = 1\n[check]\nbase = 'h'\n[[step]]\nname = 'before'\nurl = '/'\n\
         capture = {{ id = {{ header = 'X' }} }}\n[[step]]\nname = 'a'\nurl = '/'\n{rest}"
    );
    let mut plan = from_toml(&text, &Given::default(), &NoFiles).unwrap();
    match plan.steps.remove(1).action {
        Action::Ask(ask) => *ask,
        other => panic!("{other:?}"),
    }
}

fn reply(status: u16, fields: &str, body: &str) -> Result<Reply, ExchangeError> {
    Ok(Reply {
        facts: ResponseFacts { status, ..ResponseFacts::default() },
        head: format!("HTTP/1.1 {status} X\r\n{fields}\r\n").into_bytes(),
        body: body.as_bytes().to_vec(),
    })
}

fn silent(class: FailureClass) -> Result<Reply, ExchangeError> {
    Err(ExchangeError::new(class, class.explain().to_owned()))
}

fn captured() -> BTreeMap<String, String> {
    BTreeMap::from([("id".to_owned(), "7".to_owned())])
}

/// Returns `✓`, or the first difference.
fn judged(expect: &str, result: &Result<Reply, ExchangeError>) -> String {
    let ask = send_request(&format!("expect = {{ {expect} }}"));
    let came = Answered { result, took: Nanos::from_millis(1_500) };
    match difference(&ask.expect, &came, &captured()) {
        None => "✓".to_owned(),
        Some(Difference { what, expected, got }) => format!("{what}: {expected} / {got}"),
    }
}

#[test]
fn status_and_outcome() {
    let ok = reply(200, "", "");
    let gone = reply(404, "", "");
    let closed = silent(FailureClass::ClosedEarly);
    let refused = silent(FailureClass::Refused);
    let late = silent(FailureClass::ClientTimeout);
    let rows: Vec<String> = [
        ("", &ok),
        ("", &gone),
        ("", &closed),
        ("status = 404", &gone),
        ("status = ['2xx', 404]", &gone),
        ("status = [200, '300-399']", &gone),
        ("outcome = 'closed'", &closed),
        ("outcome = 'closed'", &ok),
        ("outcome = 'closed'", &refused),
        ("outcome = 'refused'", &refused),
        ("outcome = 'timeout'", &late),
        ("outcome = 'timeout'", &closed),
        ("at-least = '1.5s'", &ok),
        ("at-least = '1.6s'", &ok),
        ("at-most = '1.4s'", &ok),
        ("outcome = 'closed', at-most = '1s'", &closed),
    ]
    .map(|(expect, result)| format!("{expect:40} {}", judged(expect, result)))
    .into();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn headers_are_judged() {
    let reply = reply(200, "Content-Type: text/plain\r\nX-A: 1\r\nx-a: 2\r\n", "");
    let rows: Vec<String> = [
        "Content-Type = 'text/plain'",
        "content-type = 'text/html'",
        "Content-Type = { regex = '^text/' }",
        "Content-Type = { regex = '^image/' }",
        "Content-Type = { contains = 'plain' }",
        "Content-Type = { contains = 'html' }",
        "X-A = '1, 2'",
        "X-A = true",
        "X-A = false",
        "X-B = true",
        "X-B = false",
        "X-B = 'x'",
    ]
    .map(|rule| format!("{rule:40} {}", judged(&format!("headers = {{ {rule} }}"), &reply)))
    .into();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn bodies_are_judged() {
    let text = reply(200, "", "hello world, this is item 7\n");
    let json = reply(200, "", r#"{"id": 7, "name": "fred", "tags": ["a", "b"], "n": 1.0}"#);
    let long = "x".repeat(200);
    let row = |expect: String, result: &Result<Reply, ExchangeError>| {
        format!("{:.60}\n  {}", expect, judged(&expect, result))
    };
    let digest = "0000000000000000000000000000000000000000000000000000000000000000";
    let mut rows: Vec<String> = [
        "body = \"hello world, this is item 7\\n\"",
        "body = 'hello world, this is item 8'",
        "body = 'goodbye'",
        "body = ''",
        "body = { exact = \"hello world, this is item ${id}\\n\" }",
        "body = { contains = 'world' }",
        "body = { contains = ['hello', 'item ${id}', 'moon'] }",
        "body = { lacks = 'moon' }",
        "body = { lacks = 'item' }",
        "body = { regex = 'item [0-9]' }",
        "body = { regex = 'item [a-z]' }",
        "body = { count = { 'l' = 3 } }",
        "body = { count = { 'l' = 4 } }",
        "body = { length = 28 }",
        "body = { length = 5000 }",
        &format!("body = {{ sha256 = '{digest}' }}"),
        "body = { json = { '/id' = 7 } }",
    ]
    .map(|expect| row(expect.to_owned(), &text))
    .into();
    rows.extend(
        [
            "body = { json = { '/id' = 7, '/n' = 1, '/tags/1' = 'b', '/tags' = ['a', 'b'] } }",
            "body = { json = { '/id' = '${id}', '/name' = 'fred' } }",
            "body = { json = { '/id' = '7' } }",
            "body = { json = { '/id' = 8 } }",
            "body = { json = { '/who' = 8 } }",
            "body = { json = { '' = {} } }",
        ]
        .map(|expect| row(expect.to_owned(), &json)),
    );
    rows.push(row("body = 'x'".to_owned(), &reply(200, "", &long)));
    rows.push(row("body = 'x'".to_owned(), &reply(200, "", "\u{1b}[31m\u{0}ä")));
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn captures_take_values_from_a_response() {
    let found = reply(200, "Location: /items/12?x\r\n", r#"{"id": 7, "key": "k"} name=wilma."#);
    let document = reply(200, "", r#"{"id": 7, "key": "k"}"#);
    let take = |rule: &str, result: &Result<Reply, ExchangeError>| {
        let ask = send_request(&format!("capture = {{ new = {{ {rule} }} }}"));
        let seen = ResponseParts::new(result.as_ref().unwrap());
        match capture(&ask.capture[0].1, &seen, &captured(), &mut |_| 0) {
            Ok(value) => value,
            Err(Difference { expected, got, .. }) => format!("{expected} / {got}"),
        }
    };
    let rows = [
        take("header = 'location'", &found),
        take("header = 'Location', regex = '/items/([0-9]+)'", &found),
        take("header = 'ETag'", &found),
        take("regex = 'name=([a-z]+)'", &found),
        take("regex = 'id.: ${id}'", &found),
        take("regex = 'age=(.*)'", &found),
        take("json = '/id'", &document),
        take("json = '/key'", &document),
        take("json = '/none'", &document),
        take("json = '/id'", &found),
    ];
    insta::assert_snapshot!(rows.join("\n"));
}

fn member(name: &str, millis: u64, failed: bool) -> StepResult {
    let difference = failed.then(|| Difference::new("outcome", "a response", "closed"));
    StepResult {
        name: name.to_owned(),
        line: 1,
        state: State::new(difference),
        took: Nanos::from_millis(millis),
        asked: String::new(),
        status: None,
        members: Vec::new(),
    }
}

#[test]
fn groups_are_judged() {
    let names = ["x", "y", "z"].map(|name| (name.to_owned(), send_request("")));
    let base = Group { members: names.into(), ..Group::default() };
    let order = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let second = Some(Nanos::from_secs(1));
    let two = [member("x", 300, false), member("y", 100, true), member("z", 200, false)];
    let all = [member("x", 300, false), member("y", 100, false), member("z", 1_200, false)];
    let rows = [
        (base.clone(), &all),
        (base.clone(), &two),
        (Group { succeeded: Some(2), failed: Some(1), ..base.clone() }, &two),
        (Group { succeeded: Some(2), ..base.clone() }, &all),
        (Group { failed: Some(2), ..base.clone() }, &two),
        (Group { order: order(&["y", "x", "z"]), ..base.clone() }, &all),
        (Group { order: order(&["x", "y"]), ..base.clone() }, &all),
        (Group { at_least: second, ..base.clone() }, &all),
        (Group { at_most: second, ..base.clone() }, &all),
    ]
    .map(|(rule, members)| {
        let mut members = members.to_vec();
        let text = match group(&rule, &mut members) {
            None => "✓".to_owned(),
            Some(Difference { what, expected, got }) => format!("{what}: {expected} / {got}"),
        };
        let failed = members.iter().filter(|member| member.state.failed()).count();
        format!("{text} ({failed} shown as failed)")
    });
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn entries_of_folders_are_judged() {
    let names = ["access".to_owned(), "errors".to_owned()];
    let exactly = |names: &[&str]| Entries::Exactly(names.iter().map(|n| (*n).into()).collect());
    assert_eq!(entries(&Entries::Empty, &[]), None);
    assert_eq!(entries(&exactly(&["errors", "access"]), &names), None);
    let wrong = entries(&Entries::Empty, &names).unwrap();
    assert_eq!((wrong.expected.as_str(), wrong.got.as_str()), ("nothing", "access, errors"));
    assert!(entries(&exactly(&["errors"]), &names).is_some());
}

#[test]
fn integers_are_compared_exactly_and_other_numbers_by_value() {
    for (wanted, got, same) in [
        ("9007199254740993", "9007199254740993", true),
        ("9007199254740992", "9007199254740993", false),
        ("-9223372036854775808", "-9223372036854775807", false),
        ("9223372036854775807", "9223372036854775808", false),
        ("18446744073709551615", "18446744073709551614", false),
        ("9223372036854775807", "18446744073709551616", false),
        ("9007199254740993", "9007199254740992.0", false),
        ("1", "1.0", true),
        ("1000", "1e3", true),
        ("0", "-0.0", true),
        ("1", "1.5", false),
        ("0.1", "0.10", true),
        ("[{\"a\": 9007199254740992}]", "[{\"a\": 9007199254740993}]", false),
    ] {
        let value = |text: &str| serde_json::from_str(text).unwrap();
        assert_eq!(same_json(&value(wanted), &value(got)), same, "{wanted} and {got}");
    }
}

#[test]
fn a_value_that_is_filled_in_is_compared_by_its_digits() {
    for (text, digits, same) in [
        ("18446744073709551616", "18446744073709551616", true),
        ("18446744073709551617", "18446744073709551616", false),
        ("1.10", "1.1", true),
        ("1", "1.0", true),
        ("1.2", "1.1", false),
        ("one", "1.1", false),
    ] {
        let value = serde_json::from_str(digits).unwrap();
        assert_eq!(is_written(text, &value, &[digits.to_owned()]), same, "{text} and {digits}");
    }
}
