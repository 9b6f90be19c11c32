//! gRPC calls from the command line.

use crate::support::{Site, measured, outcomes, run, text, whole};
use std::io::Write as _;

const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/site/src/proper/echo.proto");

fn method(site: &Site, name: &str) -> String {
    site.url(name).replacen("http://", "grpc://", 1)
}

#[test]
fn a_message_is_sent_by_reflection_and_its_status_counted() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Say");
    let args = ["-c", "4", "-n", "200", "--message", r#"{"text": "hello"}"#, &url];
    let json = measured(&args, &[0, 4]);
    assert_eq!(outcomes(&json), [200, 200, 0, 0, 0, 0]);
    assert_eq!(text(&json, "/grpc/statuses/0/name"), "OK");
    assert_eq!(whole(&json, "/grpc/statuses/0/calls"), 200);
    assert_eq!(whole(&json, "/streams/events"), 200);
    // five bytes of prefix, "hello" and the number of the reply
    assert_eq!(whole(&json, "/bytes/body"), 200 * (5 + 7 + 2));
}

#[test]
fn failed_statuses_are_failures_unless_they_are_expected() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Say");
    let message = r#"{"status": 5, "status_message": "no user é"}"#;
    let json = measured(&["-n", "30", "--message", message, "--proto", PROTO, &url], &[0, 1, 4]);
    assert_eq!(outcomes(&json)[..3], [30, 0, 30]);
    assert_eq!(text(&json, "/failures/0/class"), "grpc-status");
    assert_eq!(whole(&json, "/grpc/messages/NOT_FOUND: no user é"), 30);
    let expected =
        ["-n", "30", "--message", message, "--proto", PROTO, "--grpc-status", "NOT_FOUND", &url];
    assert_eq!(outcomes(&measured(&expected, &[0, 4]))[..3], [30, 30, 0]);
}

#[test]
fn streams_of_the_server_have_a_first_message_and_gaps() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Repeat");
    let message = r#"{"text": "x", "count": 5, "gap_ms": 10, "wait_ms": 20}"#;
    let json = measured(&["-c", "2", "-n", "10", "--message", message, &url], &[0, 4]);
    assert_eq!((whole(&json, "/streams/events"), whole(&json, "/streams/whole")), (50, 10));
    let seconds = |at: &str| json.pointer(at).and_then(|it| it.as_f64()).expect("a time");
    assert!(seconds("/streams/first_event_s/p50") >= 0.02);
    assert!(seconds("/streams/mean_between_events_s/p50") >= 0.009);
    let url = method(&site, "/loadstone.v1.Echo/Collect");
    let message = r#"[{"text": "a"}, {"text": "b"}]"#;
    let json = measured(&["-n", "5", "--message", message, &url], &[0, 4]);
    assert_eq!(whole(&json, "/bytes/body"), 5 * (5 + 5 + 2), "one reply: a b");
}

#[test]
fn a_plan_has_the_typed_values() {
    let site = Site::start(&[]);
    let url = method(&site, "/grpc.health.v1.Health/Check");
    assert_eq!(outcomes(&measured(&["-n", "5", &url], &[0, 4]))[..2], [5, 5]);
    let typed =
        ["run", "-n", "5", "--grpc-timeout", "2s", "--grpc-status", "OK,5", &url, "--print-plan"];
    let plan = run(&typed).expect(&[0]).stdout;
    for part in
        ["[grpc]", "grpc-timeout: 2000000u", "\"NOT_FOUND\"", "te: trailers", "stream = \"grpc\""]
    {
        assert!(plan.contains(part), "{part} in {plan}");
    }
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a file");
    file.write_all(plan.as_bytes()).expect("room");
    let path = file.path().to_string_lossy().into_owned();
    assert_eq!(outcomes(&measured(&[&path], &[0, 4]))[..2], [5, 5]);
}

#[test]
fn mistakes_end_before_the_first_call() {
    let site = Site::start(&[]);
    let say = method(&site, "/loadstone.v1.Echo/Say");
    let plain = site.url("/hw");
    let (gone, unknown) =
        (method(&site, "/loadstone.v1.Ecko/Say"), method(&site, "/loadstone.v1.Echo/Sai"));
    let bare = method(&site, "/");
    for (args, part) in [
        (vec!["--message", r#"{"txt": 1}"#, &*say], "loadstone.v1.SayRequest"),
        (vec!["--message", r#"{"count": "x"}"#, "--proto", PROTO, &*say], "at \"count\""),
        (vec!["--message", "[{}, {}]", &*say], "takes one message"),
        (vec!["--message", "{}", &*gone], "it has loadstone.v1.Echo"),
        (vec!["--message", "{}", &*unknown], "known: Say"),
        (vec!["--message", "{}", "--proto", "/nowhere.proto", &*say], "/nowhere.proto"),
        (vec!["--message", "{}", &*plain], "grpc://host:port/package.Service/Method"),
        (vec!["--grpc-status", "FINE", &*say], "not a gRPC status"),
        (vec!["--http", "1.1", &*say], "drop --http"),
        (vec![&*bare], "names no method"),
    ] {
        let args: Vec<&str> = ["run", "-n", "1"].into_iter().chain(args).collect();
        let said = run(&args).expect(&[2]).stderr;
        assert!(said.contains(part), "{args:?}: {said}");
    }
}

/// A server of HTTP/2 without gRPC is not a success, whatever its status.
#[test]
fn a_response_without_a_status_fails() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Say");
    let args = ["-n", "3", "--body", "x", "-H", "content-type: text/plain", &url];
    let json = measured(&args, &[0, 1, 4]);
    assert_eq!(outcomes(&json)[1], 0, "the site has no such page");
    assert_eq!(whole(&json, "/grpc/without_status"), 3);
}

/// The face of ghz: reflection message by message, statuses of the calls, call data.
#[test]
fn ghz_calls_by_reflection_and_prints_statuses() {
    let site = Site::start(&[]);
    let host = site.url("").replacen("http://", "", 1);
    let ghz = |flags: &[&str]| {
        let all = ["ghz", "--insecure", "--call", "loadstone.v1.Echo.Say", "-n", "30", "-c", "3"];
        let args: Vec<&str> =
            all.into_iter().chain(flags.iter().copied()).chain([&*host]).collect();
        run(&args)
    };
    let data = r#"[{"text": "x"}, {"status": 5, "status_message": "no user"}]"#;
    let said = ghz(&["-d", data, "-O", "json"]).expect(&[0]).json();
    assert_eq!(whole(&said, "/statusCodeDistribution/OK"), 15);
    let error = "/errorDistribution/rpc error: code = NotFound desc = no user";
    assert_eq!(whole(&said, error), 15);
    let varied = r#"{"text": "{{.RequestNumber}} {{.UUID}}"}"#;
    let said = ghz(&["-d", varied, "-e"]).expect(&[0]).stdout;
    assert!(said.contains("  [OK]   30 responses"), "{said}");
    let said = ghz(&["-d", r#"{"txt": 1}"#]).expect(&[1]).stderr;
    assert!(said.starts_with("Error creating message from data."), "{said}");
}
