//! Recordings as browsers write them.

use super::{check_plan, left_out};
use crate::{Correlation, correlate, import_visit};
use serde_json::{Value, json};

fn fields(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// `body`: its media type and its text.
fn request(target: &str, headers: &[(&str, &str)], body: Option<(&str, &str)>) -> Value {
    let mut all = headers.to_vec();
    let data = body.map(|(media_type, text)| {
        all.push(("Content-Type", media_type));
        json!({"mimeType": media_type, "text": text})
    });
    let method = if data.is_some() { "POST" } else { "GET" };
    let url =
        if target.starts_with('/') { format!("http://h:1{target}") } else { target.to_owned() };
    json!({"method": method, "url": url, "headers": fields(&all), "postData": data})
}

fn response(status: u16, headers: &[(&str, &str)], content: &str) -> Value {
    json!({"status": status, "headers": fields(headers), "content": {"text": content}})
}

fn har(exchanges: &[(Value, Value)]) -> String {
    let entry =
        |(request, response): &(Value, Value)| json!({"request": request, "response": response});
    json!({"log": {"entries": exchanges.iter().map(entry).collect::<Vec<_>>()}}).to_string()
}

/// Makes the plan of a visit that is recorded with the values 1 and 2.
fn correlated(visit: impl Fn(&str) -> Vec<(Value, Value)>) -> Correlation {
    let found = correlate(&har(&visit("1")), &har(&visit("2")), None).unwrap();
    check_plan(&found.imported.toml);
    found
}

/// A login response, and the request that uses its value.
type Scene = (&'static str, fn(&str) -> (Value, Value), &'static [&'static str]);

const SCENES: &[Scene] = &[
    (
        "a header field that is the whole value",
        |v| {
            let tag = format!("\"e{v}\"");
            (response(200, &[("ETag", &tag)], ""), request("/a", &[("If-Match", &tag)], None))
        },
        &["If-Match = { header = \"ETag\" }", "If-Match = \"{{If-Match}}\""],
    ),
    (
        "a header field with a short text before the value",
        |v| {
            let (tag, id) = (format!("v={v}0;x"), format!("/a?id={v}0"));
            (response(200, &[("X-Set", &tag)], ""), request(&id, &[], None))
        },
        &["id = { header = \"X-Set\", regex = \"^v=([^;]+);\" }", "/a?id={{id}}"],
    ),
    (
        "the second of two cookies that are joined by a line feed",
        |v| {
            let set = format!("a=b; Path=/\nsid=tok-{v}; Path=/");
            (
                response(200, &[("Set-Cookie", &set)], ""),
                request(&format!("/a?s=tok-{v}"), &[], None),
            )
        },
        &["s = { cookie = \"sid\" }", "/a?s={{s}}"],
    ),
    (
        "a cookie that is percent-encoded",
        |v| {
            let set = format!("XSRF=abc{v}%3D%3D");
            let sent = format!("abc{v}==");
            (response(200, &[("Set-Cookie", &set)], ""), request("/a", &[("X-XSRF", &sent)], None))
        },
        &["X-XSRF = { cookie = \"XSRF\", regex = \"^([^%]+)%\" }", "X-XSRF = \"{{X-XSRF}}==\""],
    ),
    (
        "a value that a form encodes",
        |v| {
            let body = format!("u=a+b&t=x%2By%2F{v}%3D");
            let form = "application/x-www-form-urlencoded; charset=UTF-8";
            let content = format!("{{\"t\":\"x+y/{v}=\"}}");
            (response(200, &[], &content), request("/a", &[], Some((form, &body))))
        },
        &["t = { json = \"/t\" }", "form = { u = \"a b\", t = \"{{t}}\" }"],
    ),
    (
        "a value that a query encodes",
        |v| {
            let content = format!("{{\"t\":\"x+y/{v}=\"}}");
            (response(200, &[], &content), request(&format!("/a?t=x%2By%2F{v}%3D"), &[], None))
        },
        &["t = { json = \"/t\" }", "/a?t={{t}}"],
    ),
    (
        "a token whose beginning is always the same",
        |v| {
            let content = format!("{{\"t\":\"eyJh.{v}{v}.sig{v}\"}}");
            let sent = format!("Bearer eyJh.{v}{v}.sig{v}");
            (response(200, &[], &content), request("/a", &[("Authorization", &sent)], None))
        },
        &["{ json = \"/t\" }", "Authorization = \"Bearer {{Authorization}}\""],
    ),
    (
        "a part of a multipart body, whose boundary differs",
        |v| {
            let body = format!(
                "--b{v}\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk-{v}\r\n--b{v}--\r\n"
            );
            let media_type = format!("multipart/form-data; boundary=b{v}");
            (
                response(200, &[], &format!("{{\"k\":\"k-{v}\"}}")),
                request("/a", &[], Some((&media_type, &body))),
            )
        },
        &["key = { json = \"/k\" }", "\\r\\n\\r\\n{{key}}\\r\\n--b1--"],
    ),
    (
        "a place of the page that is not the first one with these characters",
        |v| {
            let cell = |text: &str| format!("<td class=\"counter-cell\">{text}</td>");
            let number = format!("7{v}");
            let before = format!("{}{}<a data-id=\"{number}\">", cell("5"), cell(&number));
            (response(200, &[], &before), request(&format!("/a?id=7{v}"), &[], None))
        },
        &["regex = '</td><a data\\-id=\"([^\"]+)\"'", "/a?id={{id}}"],
    ),
];

#[test]
fn values_are_found_in_every_place_of_a_response() {
    for (what, scene, wanted) in SCENES {
        let found = correlated(|v| {
            let (first, next) = scene(v);
            vec![(request("/login", &[], None), first), (next, response(200, &[], ""))]
        });
        let toml = &found.imported.toml;
        for wanted in *wanted {
            assert!(toml.contains(wanted), "{what}: {wanted}\n{toml}");
        }
        assert!(found.imported.left_out.is_empty(), "{what}: {:?}", found.imported.left_out);
    }
}

#[test]
fn requests_that_cannot_be_repeated_are_listed() {
    let upload = [("Content-Type", "multipart/form-data; boundary=x"), ("Content-Length", "300")];
    let mut cached = response(200, &[], "a{}");
    cached["_transferSize"] = 0.into();
    let all = vec![
        (request("/", &[], None), response(200, &[], "")),
        (request("/style.css", &[], None), cached),
        (request("/upload", &upload, None), response(200, &[], "")),
        (request("/ads", &[], None), response(0, &[], "")),
        (request("http://cdn.example/a", &[], None), response(200, &[], "")),
        (request("http://cdn.example/b", &[], None), response(200, &[], "")),
        (request("/favicon.ico", &[], None), response(404, &[], "")),
    ];
    let imported = import_visit(&har(&all), false).unwrap();
    check_plan(&imported.toml);
    let left = left_out(&imported).join("\n");
    for wanted in [
        "GET /style.css: a response from the browser's cache",
        "GET /upload: a body that is not in the file",
        "GET /ads: a request without a response",
        "requests to cdn.example (2): only requests to the server of the first page are imported",
    ] {
        assert!(left.contains(wanted), "{wanted}\n{left}");
    }
    assert_eq!((imported.steps, imported.left_out.len()), (2, 4), "{left}");
    assert!(imported.toml.contains("expect = { status = 404 }"), "{}", imported.toml);
}

#[test]
fn the_server_of_a_visit_is_that_of_its_first_page() {
    let page = [("Accept", "text/html,*/*;q=0.8")];
    let all = vec![
        (request("http://update.example/", &[], Some(("text/plain", "x"))), response(200, &[], "")),
        (request("/", &page, None), response(200, &[], "")),
        (request("/a", &[], None), response(200, &[], "")),
    ];
    let imported = import_visit(&har(&all), false).unwrap();
    assert_eq!(imported.steps, 2, "{}", imported.toml);
    assert!(
        left_out(&imported)[0].contains("requests to update.example (1)"),
        "{:?}",
        imported.left_out
    );
    // without a page, it is that of the first request
    assert_eq!(import_visit(&har(&all[..1]), false).unwrap().steps, 1);
}

#[test]
fn bodies_that_a_recording_has_as_fields_are_built_from_them() {
    let posted = |v: &str, media_type: &str| {
        let mut posted = request("/a", &[("Content-Type", media_type)], None);
        posted["method"] = "POST".into();
        posted["postData"] = json!({"mimeType": media_type, "params": [{"name": "t", "value": v}]});
        posted
    };
    let visit = |v: &str| {
        vec![
            (request("/", &[], None), response(200, &[], &format!("{{\"t\":\"tok-{v}\"}}"))),
            (
                posted(&format!("tok-{v}"), "application/x-www-form-urlencoded"),
                response(200, &[], ""),
            ),
            (posted(&format!("tok-{v}"), "application/json"), response(200, &[], "")),
        ]
    };
    let toml = correlated(visit).imported.toml;
    for wanted in ["form = { t = \"{{t}}\" }", "body = '{\"t\":\"{{t|json}}\"}'"] {
        assert!(toml.contains(wanted), "{wanted}\n{toml}");
    }
}

#[test]
fn common_headers_are_written_once_and_stale_ones_dropped() {
    let visit = |v: &str| {
        let page = format!("http://h:1/home?code=code{v}");
        let stale = format!("http://h:1/other?x=unknown{v}");
        let agent = ("User-Agent", "Browser");
        let host = ("Host", "h:1");
        let zip = ("Accept-Encoding", "gzip, deflate, br, zstd");
        let to = format!("/home?code=code{v}");
        vec![
            (request("/", &[agent, host, zip], None), response(303, &[("Location", &to)], "")),
            (request(&to, &[agent, host, zip, agent], None), response(200, &[], "")),
            (request("/a", &[agent, host, zip, ("Referer", &page)], None), response(200, &[], "")),
            (
                request(
                    "/b",
                    &[agent, host, zip, ("Referer", &stale), ("Origin", "http://h:1")],
                    None,
                ),
                response(200, &[], ""),
            ),
        ]
    };
    let found = correlated(visit);
    let toml = &found.imported.toml;
    for wanted in [
        "headers = [\n  \"User-Agent: Browser\",\n]\ncompressed = true",
        "Referer = \"http://h:1/home?code={{code}}\"",
        "headers = { Origin = \"http://h:1\" }",
    ] {
        assert!(toml.contains(wanted), "{wanted}\n{toml}");
    }
    for stale in ["Accept-Encoding", "Host", "unknown1"] {
        assert!(!toml.contains(stale), "{stale}\n{toml}");
    }
    assert!(found.imported.left_out.is_empty(), "{:?}", found.imported.left_out);
    let base = "https://new.example/".parse().unwrap();
    let moved = correlate(&har(&visit("1")), &har(&visit("2")), Some(&base)).unwrap().imported.toml;
    for wanted in ["Origin = \"https://new.example\"", "Referer = \"https://new.example/home?"] {
        assert!(moved.contains(wanted), "{wanted}\n{moved}");
    }
}

#[test]
fn the_requests_of_a_page_may_come_in_any_order() {
    let page = |targets: &[&str]| {
        let all: Vec<_> =
            targets.iter().map(|to| (request(to, &[], None), response(200, &[], ""))).collect();
        har(&all)
    };
    let first = page(&["/", "/1.png", "/2.png", "/a.js", "/only-first"]);
    let second = page(&["/", "/a.js", "/2.png", "/1.png", "/only-second"]);
    let found = correlate(&first, &second, None).unwrap();
    assert!(found.diff.is_empty(), "{:?}", found.diff);
    assert_eq!(found.imported.steps, 4);
    let left = left_out(&found.imported).join("\n");
    assert!(left.contains("GET /only-first: the second recording has no such request"), "{left}");
    assert!(left.contains("GET /only-second: only the second recording has"), "{left}");
}
