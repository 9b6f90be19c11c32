//! A proxy in front of a server: nginx, which generates new framing for every message, and servers
//! that parse messages differently.

use super::support::nginx::Nginx;
use super::support::{Site, free_port, naive, run, text};
use serde_json::Value;

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["requests"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn arrivals_behind_nginx_are_shown_with_its_changes() {
    let origin = free_port();
    let nginx = Nginx::proxy_to_port(origin);
    let address = format!("127.0.0.1:{origin}");
    let ran = run(&["torture", "chain", &nginx.url(), "--origin", &address, "--json", "-"]);
    let document = ran.expect(&[0]).json();
    assert_eq!(text(&document, "/schema"), "loadstone.torture-chain/1");
    let plain = row(&document, "a chunked request");
    assert_eq!(plain["handling"], "made-clear", "{plain}");
    let changes = plain["changes"].as_array().unwrap();
    let framed = "framed by Content-Length 5 instead of chunked";
    assert!(changes.iter().any(|change| change == framed), "{plain}");
    let both = row(&document, "both framings, the length too long");
    assert_eq!((&both["handling"], &both["back"]), (&"refused".into(), &Value::Null), "{both}");
}

#[test]
fn a_server_that_reads_a_body_as_a_request_is_found() {
    let (origin, range) = (free_port(), Site::start(&[("range", "leaves-bodies")]));
    let nginx = Nginx::proxy_to_port(origin);
    let (address, back) = (format!("127.0.0.1:{origin}"), range.url("/page"));
    let arguments = ["torture", "chain", &nginx.url(), "--origin", &address, "--back", &back];
    let ran = run(&[&arguments[..], &["--json", "-"]].concat());
    let document = ran.expect(&[1]).json();
    let found = row(&document, "a length with GET");
    assert_eq!((&found["pair"], &found["meeting"]), (&"0.CL".into(), &"finds-more".into()));
    assert_eq!((&found["disagrees"], &found["reused"]), (&true.into(), &true.into()), "{found}");
    assert_eq!(row(&document, "a plain request")["meeting"], "agrees");
}

/// A proxy that copies HTTP/2 field values into HTTP/1.1 unchanged: every way in which one request
/// becomes several.
#[test]
fn a_proxy_that_trusts_http2_bytes_is_found() {
    let origin = free_port();
    let proxy = naive::proxy_to(origin);
    let address = format!("127.0.0.1:{origin}");
    let arguments = ["torture", "chain", "--http", "2", "--origin", &address];
    let ran = run(&[&arguments[..], &[&proxy.url("/page"), "--json", "-"]].concat());
    let document = ran.expect(&[1]).json();
    assert_eq!(text(&document, "/http"), "2");
    for (name, handling, how) in [
        ("a plain request", "made-clear", ""),
        ("content and its length", "made-clear", ""),
        ("a length that is too long", "passed-on", "declares more content than it has"),
        ("a length that is too short", "passed-on", "continues after its end, with "),
        ("a length of 0", "passed-on", "continues after its end, with "),
        ("chunked alone", "passed-on", "continues after its end, with "),
        ("chunked after CR LF in a value", "passed-on", "continues after its end, with "),
        ("CR LF in a value", "passed-on", "has a field that was part of another field"),
        ("CR LF in a name", "passed-on", "has a field that was part of another field"),
        ("CR LF in the path", "passed-on", "has a field that was part of another field"),
        ("CR LF in the authority", "passed-on", "has a field that was part of another field"),
        ("a request after an empty line in a value", "passed-on", "continues after its end"),
        ("a space in the path", "passed-on", "begins with a request line of 5 words"),
        ("a space in the method", "passed-on", "begins with a request line of 4 words"),
        ("a field named by Connection", "made-clear", ""),
    ] {
        let found = row(&document, name);
        assert_eq!(found["handling"], handling, "{found:#}");
        let disagrees = !how.is_empty();
        assert_eq!(found["disagrees"], disagrees, "{found:#}");
        let first = found["changes"][0].as_str().unwrap_or_default();
        assert!(first.starts_with(how), "{how}: {found:#}");
        let why = found["why"].as_str().unwrap_or_default();
        assert_eq!(
            why.contains("the proxy turned one HTTP/2 request into output that"),
            disagrees,
            "{why}"
        );
    }
    // the backend gets the arrived request, not the frames
    let range = Site::start(&[("range", "none")]);
    let back = range.url("/page");
    let ran = run(&[&arguments[..], &[&proxy.url("/page"), "--back", &back, "-q"]].concat());
    let output = ran.expect(&[1]).stdout;
    assert!(output.contains("over HTTP/2 (local)"), "{output}");
    assert!(output.contains("DISAGREE H2.CL: a length that is too short"), "{output}");
    assert!(output.contains("finds more"), "{output}");
}

#[test]
fn a_correct_proxy_forwards_one_message_per_request() {
    let origin = free_port();
    let nginx = Nginx::http2_in_front_of(origin);
    let address = format!("127.0.0.1:{origin}");
    let arguments = ["torture", "chain", "--http", "2", "--origin", &address, "--json", "-"];
    let document = run(&[&arguments[..], &[&nginx.url()]].concat()).expect(&[0]).json();
    assert_eq!(row(&document, "CR LF in a value")["handling"], "refused");
    let chunked = row(&document, "chunked alone");
    assert_eq!(chunked["handling"], "made-clear", "{chunked:#}");
    assert_eq!(document["disagreements"], 0);
}

#[test]
fn a_chain_needs_own_addresses_and_names_missing_options() {
    for (arguments, why) in [
        (&["http://127.0.0.1:8089/"][..], "name the server behind the proxy"),
        (&["http://127.0.0.1:8089/", "--back", "http://192.168.0.9/"], "--own 192.168.0.9"),
        (
            &["http://203.0.113.9/", "--origin", "127.0.0.1:8090"],
            "chain needs addresses of your own",
        ),
        (
            &["http://127.0.0.1:8089/", "--origin", "0.0.0.0:8090"],
            "chain needs addresses of your own",
        ),
        (&["http://127.0.0.1:8089/", "--origin", "127.0.0.1"], "invalid"),
        (
            &["http://127.0.0.1:8089/", "--http", "2", "--back", "http://127.0.0.1:8090/"],
            "whose received requests are sent to --back",
        ),
        (
            &[
                "http://127.0.0.1:8089/",
                "--http",
                "2",
                "--origin",
                "127.0.0.1:8090",
                "--back",
                "https://127.0.0.1:8091/",
            ],
            "give its http:// URL",
        ),
        (
            &["http://127.0.0.1:8089/", "--http", "3", "--origin", "127.0.0.1:8090"],
            "HTTP/3 requires TLS",
        ),
    ] {
        let ran = run(&[&["torture", "chain"][..], arguments].concat()).expect(&[2]);
        assert!(ran.stderr.contains(why), "{why}: {ran:?}");
    }
}
