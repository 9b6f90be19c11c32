//! `.http` files, Bruno and Insomnia.

use super::*;

#[test]
fn a_http_file_becomes_a_journey() {
    let text = "@host = http://localhost:3000\n@name = ann\n\n### log in\n# @name login\nPOST {{host}}/login HTTP/1.1\n\
        Content-Type: application/json\n\n{\"name\": \"{{name}}\"}\n\n> {%\n client.test('ok', function() {\n\
        client.assert(response.status === 200, 'no');\n });\n client.global.set(\"id\", response.body.id);\n%}\n\n\
        ### me\n// a comment\nGET {{host}}/me\n    ?full=1\n    &id={{id}}\nAuthorization: Bearer {{login.response.body.$.token}}\n\n\
        ### form\nPOST {{host}}/form\nContent-Type: application/x-www-form-urlencoded\n\na=1&b={{$uuid}}\n\n\
        ### file\nPUT {{host}}/file\nAuthorization: Basic me secret\n\n< body.json\n\n### graph\nGRAPHQL {{host}}/g\n\n{ a }\n";
    let imported = plan_of(Format::HttpFile, text);
    insta::assert_snapshot!(below_head(&imported));
    assert_eq!(left_out(&imported).len(), 1, "{:?}", left_out(&imported));
}

#[test]
fn scripts_in_an_http_file_are_not_requests() {
    let text = "### a\n< {%\n  request.variables.set('x', 1);\n%}\nGET http://h:1/a\n> {%\n\
        client.log('x: y');\n%}\n\n### b\nPOST http://h:1/b\n\nx\n\n>>! out.json\n";
    let imported = plan_of(Format::HttpFile, text);
    let body = below_head(&imported);
    assert_eq!(body.matches("[[journey.step]]").count(), 2, "{body}");
    assert!(!body.contains("%}") && !body.contains("client.log"), "{body}");
    let left = left_out(&imported);
    assert!(left.iter().any(|one| one.contains("line 2")), "{left:?}");
    assert!(left.iter().any(|one| one.contains(">>! out.json")), "{left:?}");
}

#[test]
fn a_bruno_folder_becomes_blocks() {
    let document =
        |name: &str, text: &str| Document { name: name.to_owned(), text: text.to_owned() };
    let documents = [
        document(
            "shop/collection.bru",
            "headers {\n  X-All: yes\n}\nauth {\n  mode: bearer\n}\nauth:bearer {\n  token: {{token}}\n}\n",
        ),
        document("shop/environments/local.bru", "vars {\n  base: http://localhost:3000\n}\n"),
        document(
            "shop/login.bru",
            "meta {\n  name: log in\n  type: http\n  seq: 1\n}\n\npost {\n  url: {{base}}/login\n  body: json\n  auth: none\n}\n\n\
             body:json {\n  {\n    \"name\": \"ann\"\n  }\n}\n\nvars:post-response {\n  token: res.body.token\n}\n\n\
             assert {\n  res.status: eq 200\n  res.body.name: ann\n  res.body.age: gt 5\n}\n\ntests {\n  test(\"x\", function() {\n    expect(res.status).to.equal(200);\n  });\n}\n",
        ),
        document(
            "shop/users/get.bru",
            "meta {\n  name: get user\n  seq: 2\n}\nget {\n  url: {{base}}/users/:id?x=1\n  auth: inherit\n}\nparams:path {\n  id: 7\n}\nheaders {\n  ~X-Off: 1\n  X-On: 2\n}\n",
        ),
    ];
    let request = ImportRequest {
        documents: &documents,
        environment: None,
        files: &test_files(),
        base: None,
        only: None,
        skip_methods: &[],
        properties: &[],
        absolute_paths: false,
    };
    let imported = import(Format::Bruno, &request).unwrap();
    check_plan(&imported.toml);
    insta::assert_snapshot!(below_head(&imported));
    let left = left_out(&imported);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].contains("assert res.body.age: gt 5"), "{left:?}");
}

#[test]
fn an_insomnia_export_becomes_a_journey() {
    let text = r#"{"_type": "export", "__export_format": 4, "resources": [
      {"_id": "wrk_1", "_type": "workspace", "name": "Shop"},
      {"_id": "env_1", "_type": "environment", "parentId": "wrk_1", "data": {"base": "http://h:1", "user": {"id": 5}}},
      {"_id": "fld_1", "_type": "request_group", "parentId": "wrk_1", "name": "Users", "metaSortKey": 2},
      {"_id": "req_2", "_type": "request", "parentId": "fld_1", "name": "get", "method": "GET", "url": "{{ _.base }}/users/{{ _.user.id }}",
       "parameters": [{"name": "a", "value": "1"}, {"name": "b", "value": "2", "disabled": true}],
       "authentication": {"type": "bearer", "token": "t"}},
      {"_id": "req_1", "_type": "request", "parentId": "wrk_1", "name": "post", "method": "POST", "url": "{{ _.base }}/x", "metaSortKey": 1,
       "body": {"mimeType": "application/json", "text": "{\"id\": \"{% uuid 'v4' %}\", \"r\": \"{% response 'body' %}\"}"}},
      {"_id": "ws_1", "_type": "websocket_request", "parentId": "wrk_1", "name": "ws"}]}"#;
    let imported = plan_of(Format::Insomnia, text);
    insta::assert_snapshot!(below_head(&imported));
    assert_eq!(left_out(&imported).len(), 2, "{:?}", left_out(&imported));
    let five = "type: collection.insomnia.rest/5.0\nname: Shop\ncollection:\n  - name: get\n    url: http://h:1/a\n    method: GET\n\
        \x20 - name: folder\n    children:\n      - name: inner\n        url: http://h:1/b\n        method: PUT\n        body:\n          mimeType: text/plain\n          text: hi\n";
    assert_eq!(plan_of(Format::Insomnia, five).steps, 2);
}

#[test]
fn elements_that_clients_lack_here_are_listed() {
    let listed = |format, text: &str| left_out(&plan_of(format, text)).join("\n");
    let http = "# @prompt user\nGET http://h/a\n\n### two\nGRPC http://h/a.B/C\n\n### three\nWEBSOCKET ws://h/\n";
    assert_eq!(
        listed(Format::HttpFile, http),
        "line 1: @prompt user: prompts are not supported; set the value as @name = value in the file\n\
         line 5: GRPC /a.B/C: it is not a request over HTTP\n\
         line 8: WEBSOCKET ws://h/: it is not a request over HTTP"
    );
    let bruno =
        "meta {\n  name: one\n}\nget {\n  url: http://h/a\n  auth: awsv4\n}\nextra {\n  a: b\n}\n";
    assert_eq!(
        listed(Format::Bruno, bruno),
        "line 4: auth awsv4 of one: the file has no values for it\n\
         line 8: extra of one: this block is not imported"
    );
    let insomnia = r#"{"_type": "export", "__export_format": 4, "resources": [
        {"_id": "r", "_type": "request", "name": "get", "method": "GET", "url": "http://h/a"},
        {"_id": "u", "_type": "unit_test", "name": "t"},
        {"_id": "m", "_type": "mock_route", "name": "m"}]}"#;
    assert_eq!(
        listed(Format::Insomnia, insomnia),
        "line 3: unit_test t: tests are not executed\n\
         line 4: mock_route m: this kind of resource is not imported"
    );
}
