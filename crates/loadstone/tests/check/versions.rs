//! The same plan over every version of HTTP, and servers without the requested version.

use crate::support::quic::QuicSite;
use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{Scripted, Site, free_port, run, text};
use crate::{check, failed};
use serde_json::Value;
use std::io::Write as _;

/// Plan whose steps check different parts of responses: bodies both ways, cookies, captures,
/// fields, a large body, and two simultaneous requests.
const PLAN: &str = r#"
version = 1
[check]
base = "http://127.0.0.1:1"
[[step]]
name = "greeting"
url = "/hw"
expect = { headers = { Content-Type = { contains = "text/plain" } }, body = { contains = "hello" } }
[[step]]
name = "missing"
url = "/none"
expect = { status = 404 }
[[step]]
name = "form"
url = "/echo"
form = { given = "Fred" }
expect = { body = "given=Fred" }
[[step]]
name = "large"
url = "/bytes/3000000"
expect = { body = { length = 3000000 } }
[[step]]
name = "head"
method = "HEAD"
url = "/bytes/10"
expect = { body = { length = 0 } }
[[step]]
name = "hop"
url = "/redirect/1"
expect = { status = "3xx" }
capture = { next = { header = "Location" } }
[[step]]
name = "land"
url = "${next}"
[[step]]
name = "both"
together = [ { name = "a", url = "/hw" }, { name = "b", url = "/bytes/7", close = true } ]
"#;

fn asked(json: &Value, step: usize) -> &str {
    text(json, &format!("/steps/{step}/asked"))
}

#[test]
fn the_same_steps_pass_over_every_version() {
    let (site, quic, folder) = (Site::start(&[]), QuicSite::start(), tempfile::tempdir().unwrap());
    let plain = site.url("");
    for (version, over) in [("1.0", ""), ("1.1", ""), ("2", " over HTTP/2")] {
        let ran = check(folder.path(), PLAN, &["--base", &plain, "--http", version]).expect(&[0]);
        let json = ran.json();
        assert_eq!((failed(&json), json["counts"]["passed"].as_u64()), (vec![], Some(8)));
        assert_eq!(asked(&json, 0), format!("GET {plain}/hw{over}"));
    }
    let args = ["--base", &quic.url(""), "--http", "3", "--ca", &quic.ca];
    let json = check(folder.path(), PLAN, &args).expect(&[0]).json();
    assert_eq!((failed(&json), json["counts"]["passed"].as_u64()), (vec![], Some(8)));
    assert!(asked(&json, 0).ends_with("/hw over HTTP/3"), "{json:#}");
}

#[test]
fn steps_and_plans_name_versions_of_their_own() {
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let plan = PLAN
        .replace("[check]", "[check]\nhttp = 2")
        .replace("name = \"missing\"", "name = \"missing\"\nhttp = \"1.1\"");
    let plain = site.url("");
    let json = check(folder.path(), &plan, &["--base", &plain]).expect(&[0]).json();
    assert!(asked(&json, 0).ends_with("/hw over HTTP/2"), "{json:#}");
    assert!(asked(&json, 1).ends_with("/none"), "{json:#}");
    let json =
        check(folder.path(), &plan, &["--base", &plain, "--http", "1.1"]).expect(&[0]).json();
    assert!(asked(&json, 0).ends_with("/hw"), "{json:#}");
    let ran = check(folder.path(), PLAN, &["--base", &plain, "--http", "4"]).expect(&[2]);
    assert!(ran.stderr.contains("\"4\" is not a version of HTTP"), "{ran:?}");
    // without TLS a server cannot choose
    let json =
        check(folder.path(), PLAN, &["--base", &plain, "--http", "auto"]).expect(&[0]).json();
    assert!(asked(&json, 0).ends_with("/hw"), "{json:#}");
    let ran = check(folder.path(), PLAN, &["--base", &plain, "--http", "3"]).expect(&[2]);
    assert!(ran.stderr.contains("HTTP/3 requires TLS"), "{ran:?}");
}

/// A difference is reported as for HTTP/1.1, with exit code 1.
#[test]
fn differences_are_reported() {
    let (site, folder) = (Site::start(&[]), tempfile::tempdir().unwrap());
    let plan = PLAN.replace("contains = \"hello\"", "contains = \"bye\"");
    let ran = check(folder.path(), &plan, &["--base", &site.url(""), "--http", "2"]).expect(&[1]);
    let failed = failed(&ran.json());
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].contains("greeting") && failed[0].contains("bye"), "{failed:?}");
}

/// A server without the requested version is reported with the fix; no other version is used.
#[test]
fn a_server_without_the_version_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let old = Scripted::start(|mut stream, _| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").ok();
    });
    let ran = check(folder.path(), PLAN, &["--base", &old.url(""), "--http", "2"]).expect(&[3]);
    let text = "the server speaks HTTP/1.x where HTTP/2 was requested";
    assert!(ran.stderr.contains(text), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("Does the server speak HTTP/2 on this port? --http 1.1"),
        "{}",
        ran.stderr
    );

    let secure = TlsServer::start(&TlsOptions::default());
    let base = secure.url("/");
    let ca = &secure.files.ca;
    let ran =
        check(folder.path(), PLAN, &["--base", &base, "--http", "2", "--ca", ca]).expect(&[3]);
    let text = "the server chose no protocol where HTTP/2 (ALPN h2) was offered";
    assert!(ran.stderr.contains(text), "{}", ran.stderr);

    let nobody = format!("https://127.0.0.1:{}", free_port());
    let args = ["--base", &nobody, "--http", "3", "--insecure"];
    let ran = check(folder.path(), PLAN, &args).expect(&[3]);
    assert!(ran.stderr.contains("(UDP): connection refused"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--http 2 uses TCP"), "{}", ran.stderr);
}

/// Setup and teardown of a journey use the version of the run.
#[test]
fn a_setup_goes_over_the_protocol_of_the_run() {
    let quic = QuicSite::start();
    let folder = tempfile::tempdir().unwrap();
    let plan = |http: &str, url: &str| {
        let file = folder.path().join("journey.toml").display().to_string();
        let text = format!(
            "version = 1\nurl = '{url}'\n[request]\nhttp = '{http}'\n[load]\nusers = 1\n\
             [stop]\nrequests = 2\n[[setup]]\nname = 'log in'\nurl = '/login?name=ann'\n\
             capture = {{ token = {{ json = '/token' }} }}\n[[journey]]\nname = 'j'\n\
             [[journey.step]]\nname = 'me'\nurl = '/me'\n\
             headers = {{ Authorization = 'Bearer {{{{token}}}}' }}\n\
             [[teardown]]\nname = 'bye'\nurl = '/me'\n\
             headers = {{ Authorization = 'Bearer {{{{token}}}}' }}\n"
        );
        std::fs::write(&file, text).unwrap();
        file
    };
    // no server listens there over TCP with TLS: HTTP/1.1 would fail
    let file = plan("3", &quic.url("/"));
    let json = run(&["run", &file, "--ca", &quic.ca, "--json", "-"]).expect(&[0, 4]).json();
    assert_eq!(json["outcomes"]["succeeded"], 2, "{:#}", json["failures"]);

    let old = Scripted::start(|mut stream, _| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").ok();
    });
    let ran = run(&["run", &plan("2", &old.url("/"))]).expect(&[3]);
    assert!(ran.stderr.contains("HTTP/1.x where HTTP/2 was requested"), "{}", ran.stderr);
}
