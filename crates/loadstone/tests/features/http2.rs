//! HTTP/2 from the command line: measurements, messages, and refusals.

use crate::support::tls::{TlsOptions, TlsServer};
use crate::support::{Scripted, Site, measured, outcomes, run, text, whole};
use std::io::Write as _;

#[test]
fn streams_share_connections_and_are_counted() {
    let site = Site::start(&[]);
    let url = site.url("/bytes/3000");
    let args = ["-c", "3", "-n", "300", "--http", "2", "--streams", "5", &url];
    let json = measured(&args, &[0, 4]);
    assert_eq!(outcomes(&json), [300, 300, 0, 0, 0, 0]);
    assert_eq!(whole(&json, "/connections/established"), 3);
    assert_eq!(whole(&json, "/http2/streams"), 300);
    assert_eq!(whole(&json, "/http2/streams_peak"), 5);
    assert_eq!(whole(&json, "/bytes/body"), 300 * 3_000);
    assert_eq!(text(&json, "/first_call/http_version"), "2");
    let (plain, coded) =
        (whole(&json, "/http2/fields/sent"), whole(&json, "/http2/fields/sent_coded"));
    assert!(coded * 4 < plain, "{coded} of {plain}");

    let json = measured(&["--rate", "500/s", "-n", "200", "--http", "2", &url], &[0, 4]);
    assert_eq!(outcomes(&json)[..2], [200, 200]);
    assert_eq!(whole(&json, "/connections/established"), whole(&json, "/client/threads"));
}

/// The site accepts heads of 64 KiB, over HTTP/2 as over HTTP/1.1.
#[test]
fn a_head_of_forty_kilobytes_is_served() {
    let site = Site::start(&[]);
    let (field, url) = (format!("X: {}", "x".repeat(40_000)), site.url("/hw"));
    for version in ["1.1", "2"] {
        let json =
            measured(&["-c", "1", "-n", "2", "--http", version, "-H", &field, &url], &[0, 4]);
        assert_eq!(outcomes(&json)[..2], [2, 2], "{version}");
    }
}

#[test]
fn bodies_redirects_and_cookies_go_over_streams() {
    let site = Site::start(&[]);
    let body = "b".repeat(100_000);
    let url = site.url("/echo");
    let args = ["-c", "2", "-n", "20", "--http", "2", "--streams", "4", "--body", &body, &url];
    let json = measured(&args, &[0, 4]);
    assert_eq!(outcomes(&json)[..2], [20, 20]);
    assert_eq!(whole(&json, "/bytes/body"), 20 * 100_000);
    assert!(whole(&json, "/bytes/sent") > 20 * 100_000);
    let url = site.url("/status/302?to=/bytes/10");
    let args = ["-c", "1", "-n", "5", "--http", "2", "--follow", "--cookies", &url];
    let json = measured(&args, &[0, 4]);
    assert_eq!((outcomes(&json)[1], whole(&json, "/redirects")), (5, 5));
}

#[test]
fn the_text_shows_the_protocol() {
    let site = Site::start(&[]);
    let found = run(&[
        "run",
        "-n",
        "50",
        "--http",
        "2",
        "--streams",
        "2",
        "--full",
        &site.url("/bytes/100"),
    ]);
    let found = found.expect(&[0, 4]).stdout;
    assert!(!found.contains("Priority"), "{found}");
    assert!(found.contains("GET, HTTP/2, 2 streams"), "{found}");
    assert!(found.contains("50 streams, at most 2 at once on a connection"), "{found}");
    assert!(found.contains("fields: ") && found.contains(" saved)"), "{found}");
}

/// A server without HTTP/2 is reported before anything is measured.
#[test]
fn a_server_without_http2_is_reported() {
    let old = Scripted::start(|mut stream, _| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").ok();
    });
    let ran = run(&["run", "-n", "5", "--http", "2", &old.url("/")]).expect(&[3]);
    let text = "the server speaks HTTP/1.x where HTTP/2 was requested";
    assert!(ran.stderr.contains(text), "{}", ran.stderr);
    let one_line = ran.stdout.split_whitespace().collect::<Vec<&str>>().join(" ");
    let advice = "Does the server speak HTTP/2 on this port? --http 1.1 uses";
    assert!(one_line.contains(advice), "{}", ran.stdout);

    let secure = TlsServer::start(&TlsOptions::default());
    let args = ["run", "-n", "5", "--http", "2", "--ca", &secure.files.ca, &secure.url("/")];
    let ran = run(&args).expect(&[3]);
    let text = "the server chose no protocol where HTTP/2 (ALPN h2) was offered";
    assert!(ran.stderr.contains(text), "{}", ran.stderr);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let url = "http://127.0.0.1:1/";
    for (args, found) in [
        (&["--streams", "3"][..], "--streams is an option of HTTP/2; add --http 2"),
        (&["--stream-window", "1M"], "--stream-window is an option of HTTP/2"),
        (&["--http", "2", "--pipeline", "3"], "--pipeline is an HTTP/1.1 option"),
        (&["--http", "2", "--group", "3"], "--http 2 cannot be used with --group"),
        (&["--http", "2", "--alpn", "http/1.1,h2"], "--http 2 cannot be used with --alpn"),
        (&["--http", "2", "--proxy", "http://127.0.0.1:2"], "--http 2 cannot be used with --proxy"),
        (&["--http", "2", "--connection-window", "1K"], "give 65535 to 2147483647"),
        (&["--http", "4"], "'4'"),
    ] {
        let ran = run(&[&["run"][..], args, &[url]].concat()).expect(&[2]);
        assert!(ran.stderr.contains(found), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_plan_file_has_the_same_settings() {
    let args = ["run", "--print-plan", "--http", "2", "--streams", "7", "http://127.0.0.1:1/"];
    let plan = run(&args).expect(&[0]).stdout;
    assert!(plan.contains("http = 2") || plan.contains("http = \"2\""), "{plan}");
    assert!(plan.contains("streams = 7") && plan.contains("[http2]"), "{plan}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.toml").display().to_string();
    std::fs::write(&file, &plan).unwrap();
    assert_eq!(run(&["run", "--print-plan", &file]).expect(&[0]).stdout, plan);
}

/// The field is sent with every request, or a target's own value instead; the plan and the report
/// show it.
#[test]
fn a_priority_is_sent_and_reported() {
    let site = Site::start(&[]);
    let url = site.url("/hw");
    let args = ["run", "-n", "20", "--http", "2", "--priority", "u=1, i", "--full", &url];
    let output = run(&args).expect(&[0, 4]).stdout;
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = "Priority u=1, i: a field of each request, and a PRIORITY_UPDATE frame before it";
    assert!(output.contains(text), "{output}");
    let plan = run(&["run", "--print-plan", "--priority", "i", &url]).expect(&[0]).stdout;
    assert!(plan.contains("priority = \"u=3, i\""), "{plan}");
    let ran = run(&["run", "--priority", "soon", &url]).expect(&[2]);
    assert!(ran.stderr.contains("\"soon\" is not part of a priority; write u=0"), "{}", ran.stderr);
}
