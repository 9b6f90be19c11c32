//! Postman collections.

use super::*;

pub(super) const SHOP: &str = r#"{
  "info": {"name": "Shop", "_postman_id": "1", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
  "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{token}}"}]},
  "variable": [{"key": "baseUrl", "value": "http://localhost:8080/api"}, {"key": "token", "value": ""}],
  "item": [
    {"name": "Auth", "item": [
      {"name": "Log in",
       "event": [{"listen": "test", "script": {"exec": [
         "const json = pm.response.json();",
         "pm.environment.set('token', json.token);",
         "pm.collectionVariables.set(\"userId\", pm.response.json().user['id']);",
         "pm.test('ok', function () {",
         "  pm.response.to.have.status(200);",
         "  pm.expect(pm.response.responseTime).to.be.below(500);",
         "  pm.expect(json.user.name).to.eql('ann');",
         "});",
         "postman.setNextRequest('x');"]}}],
       "request": {"method": "POST", "auth": {"type": "noauth"},
         "header": [{"key": "X-A", "value": "1"}, {"key": "X-Off", "value": "1", "disabled": true}],
         "url": {"raw": "{{baseUrl}}/login", "host": ["{{baseUrl}}"], "path": ["login"]},
         "body": {"mode": "raw", "raw": "{\n  \"name\": \"ann\"\n}", "options": {"raw": {"language": "json"}}}}}
    ]},
    {"name": "User", "request": {"method": "GET", "url": {"raw": "{{baseUrl}}/users/:id?full=1&off=2",
       "path": ["users", ":id"], "query": [{"key": "full", "value": "1"}, {"key": "off", "value": "2", "disabled": true}],
       "variable": [{"key": "id", "value": "{{userId}}"}]}}},
    {"name": "Order", "request": {"method": "POST", "url": "{{baseUrl}}/orders",
       "body": {"mode": "urlencoded", "urlencoded": [{"key": "id", "value": "{{$guid}}"}, {"key": "n", "value": "{{$randomInt}}"}]}}},
    {"name": "Remove", "request": {"method": "DELETE", "url": "{{baseUrl}}/orders/1"}}
  ]
}"#;

#[test]
fn a_collection_becomes_a_journey_with_captures_and_checks() {
    let imported = with(Format::Postman, SHOP, &How { name: "shop.json", ..How::default() });
    insta::assert_snapshot!(imported.toml);
    assert_eq!((imported.steps, imported.captures), (4, 2));
    let left = left_out(&imported);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(
        left[0].starts_with("line 17: test script of Log in: postman.setNextRequest('x');: "),
        "{left:?}"
    );
}

#[test]
fn folders_and_methods_are_selected() {
    let only = with(Format::Postman, SHOP, &How { only: Some("auth"), ..How::default() });
    assert_eq!(only.steps, 1);
    let skipped = with(Format::Postman, SHOP, &How { skip: &["delete"], ..How::default() });
    assert_eq!(skipped.steps, 3);
    assert!(left_out(&skipped).iter().any(|one| one.contains("Remove (DELETE)")));
    let why =
        try_import(Format::Postman, SHOP, &How { only: Some("x"), ..How::default() }).unwrap_err();
    assert!(why.contains("nothing has this name; known names: Shop, Auth"), "{why}");
}

#[test]
fn an_environment_gives_values_and_a_url_replaces_the_server() {
    let text = r#"{"info": {"name": "c"}, "item": [{"name": "a", "request": {"url": "{{host}}/x", "method": "GET"}}]}"#;
    let environment = r#"{"values": [{"key": "host", "value": "http://h:9", "enabled": true}, {"key": "off", "value": "1", "enabled": false}]}"#;
    let how = How { environment: Some(environment), ..How::default() };
    assert!(with(Format::Postman, text, &how).toml.contains("url = \"http://h:9/\""));
    let moved = with(
        Format::Postman,
        text,
        &How { environment: Some(environment), base: Some("http://n/p"), ..How::default() },
    );
    assert!(
        below_head(&moved).contains("url = \"http://n/p\"")
            && moved.toml.contains("url = \"/p/x\""),
        "{}",
        moved.toml
    );
    let none = plan_of(Format::Postman, text);
    assert!(
        left_out(&none)[0].starts_with("variable host: it names no server"),
        "{:?}",
        left_out(&none)
    );
    let wrong = How { environment: Some("[]"), ..How::default() };
    assert!(try_import(Format::Postman, text, &wrong).unwrap_err().contains("has no values"));
}

#[test]
fn logins_are_inherited_and_bodies_have_all_modes() {
    let text = r#"{"info": {"name": "c"}, "auth": {"type": "basic", "basic": {"username": "u", "password": "{{pw}}"}},
      "variable": [{"key": "pw", "value": "secret"}],
      "item": [
        {"name": "basic", "request": {"url": "http://h/a", "method": "GET"}},
        {"name": "key", "request": {"url": "http://h/b?x=1", "method": "GET", "auth": {"type": "apikey", "apikey": [{"key": "key", "value": "k"}, {"key": "value", "value": "v"}, {"key": "in", "value": "query"}]}}},
        {"name": "odd", "request": {"url": "http://h/c", "method": "GET", "auth": {"type": "hawk"}}},
        {"name": "graphql", "request": {"url": "http://h/g", "method": "POST", "body": {"mode": "graphql", "graphql": {"query": "{ a(id: \"1\") }", "variables": "{\"b\": 2}"}}}},
        {"name": "form", "request": {"url": "http://h/f", "method": "POST", "body": {"mode": "formdata", "formdata": [
          {"key": "a", "value": "1", "type": "text"}, {"key": "f", "type": "file", "src": "body.json"}, {"key": "g", "type": "file", "src": "none.bin"}]}}},
        {"name": "file", "request": {"url": "http://h/h", "method": "POST", "body": {"mode": "file", "file": {"src": "body.json"}}}},
        {"name": "twice", "request": {"url": "http://h/t", "method": "POST", "body": {"mode": "urlencoded", "urlencoded": [{"key": "a", "value": "1"}, {"key": "a", "value": "2 3"}]}}}
      ]}"#;
    let imported = plan_of(Format::Postman, text);
    insta::assert_snapshot!(below_head(&imported));
    let left = left_out(&imported);
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].contains("auth hawk") && left[1].contains("upload none.bin"), "{left:?}");
}

#[test]
fn scripts_are_recognized_by_their_form() {
    let script = |lines: &str| {
        let exec = serde_json::Value::from(lines.lines().map(str::to_owned).collect::<Vec<_>>());
        let text = format!(
            r#"{{"info": {{"name": "c"}}, "item": [{{"name": "s", "event": [{{"listen": "test", "script": {{"exec": {exec}}}}}],
               "request": {{"url": "http://h/", "method": "GET"}}}},
               {{"name": "t", "request": {{"url": "http://h/{{{{v}}}}", "method": "GET"}}}}]}}"#
        );
        let imported = plan_of(Format::Postman, &text);
        let mine =
            below_head(&imported).split("[[journey.step]]").nth(1).unwrap_or_default().to_owned();
        (mine, left_out(&imported))
    };
    for (lines, wanted) in [
        ("pm.globals.set('v', pm.response.json().a[0].b);", "v = { json = \"$.a[0].b\" }"),
        (
            "let r = JSON.parse(responseBody)\npostman.setEnvironmentVariable(\"v\", r.id)",
            "v = { json = \"$.id\" }",
        ),
        (
            "const { v } = pm.response.json();\npm.environment.set('v', v);",
            "v = { json = \"$.v\" }",
        ),
        (
            "pm.environment.set('v', pm.response.headers.get('Location'));",
            "v = { header = \"Location\" }",
        ),
        ("pm.environment.set('v', pm.cookies.get('sid'));", "v = { cookie = \"sid\" }"),
        (
            "pm.test('x', () => { pm.expect(pm.response.code).to.be.oneOf([200, 201]); });",
            "status = [\"200\", \"201\"]",
        ),
        ("pm.test('x', () => pm.response.to.be.ok);", "status = \"2xx\""),
        ("tests['x'] = responseCode.code === 204;", "status = 204"),
        ("pm.expect(pm.response.text()).to.include('hello');", "contains = [\"hello\"]"),
        ("pm.expect(pm.response.json().n).to.equal(5);", "json = { \"$.n\" = 5 }"),
        ("pm.response.to.have.header('ETag');", "ETag = true"),
    ] {
        let (step, left) = script(lines);
        assert!(step.contains(wanted), "{lines}\n{step}");
        assert!(left.iter().all(|one| one.contains("variable v")), "{lines}: {left:?}");
    }
    let (_, left) =
        script("pm.sendRequest('http://h/');\n// a comment\nconsole.log('x');\nif (a) { b(); }");
    assert!(
        left[0].contains("pm.sendRequest") && left.iter().any(|one| one.contains("if (a)")),
        "{left:?}"
    );
}

#[test]
fn other_versions_are_refused_with_the_fix() {
    for (text, why) in [
        (r#"{"requests": [], "name": "x"}"#, "version 1; export it as version 2.1"),
        (r#"{"item": []}"#, "it has no request that can be made"),
        ("{", "it is not JSON: line 1"),
    ] {
        let error = try_import(Format::Postman, text, &How::default()).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_collection_with_its_scripts_is_a_script() {
    let text = "\u{feff}{\"item\":[{\"name\":\"F\",\"item\":[{\"name\":\"Log \\\"in\\\"\",\"request\":\"h\"}]},\
                {\"name\":\"Me\",\"request\":\"h\"},{\"name\":\"Me\",\"request\":\"h\"}]}";
    let made = crate::postman_script(text, Some("{\"values\":[]}")).unwrap();
    let steps = "  { tags: { name: \"Log \\\"in\\\"\" } },\n  { tags: { name: \"Me\" } },\n]";
    assert!(made.text.contains(steps), "{}", made.text);
    assert!(made.text.contains("open('collection.json'), open('environment.json')"));
    assert_eq!(made.files.len(), 2);
    let why = |text: &str| crate::postman_script(text, None).unwrap_err().0;
    assert!(why("{}").contains("it has no item") && why("[").contains("not JSON"));
}

#[test]
fn parts_of_collections_that_cannot_be_executed_are_listed() {
    let collection = r#"{"info": {"name": "s"}, "auth": {"type": "hawk"},
      "item": [
        {"name": "a", "event": [{"listen": "test", "script": {"exec": [
          "const _ = pm.require('npm:lodash');",
          "const _ = require('lodash');",
          "pm.sendRequest('http://h/b');"]}}],
          "request": {"method": "GET", "url": "http://h/a"}},
        {"name": "folder", "auth": {"type": "noauth"}, "item": [
          {"name": "b", "request": {"method": "POST", "url": "http://h/b", "body": {"mode": "formdata",
            "formdata": [{"key": "f", "type": "file", "src": "x"}]}}}]}]}"#;
    let made = crate::postman_script(collection, None).unwrap();
    let listed: Vec<String> = made.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        listed,
        [
            "line 4: script of a: const _ = pm.require('npm:lodash');: pm.require is not available",
            "line 5: script of a: const _ = require('lodash');: require is not available",
            "line 6: script of a: pm.sendRequest('http://h/b');: pm.sendRequest is not available",
            "line 7: login of a: the login hawk is not available",
            "line 10: body of b: f: uploads are not available",
        ]
    );
    let imported = plan_of(Format::Postman, collection);
    assert_eq!(imported.script_lines(), 3);
}
