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

/// Streams without an end, by each protocol: the first call and the measured ones stop after three
/// messages, or at one that is too long.
#[test]
fn the_client_ends_streams_after_their_messages() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Repeat");
    let endless = r#"{"text": "twenty letters, or so", "count": 1000000, "gap_ms": 10}"#;
    let call = ["-c", "2", "-n", "10", "--message", endless, "--proto", PROTO, &url];
    let web = ["--grpc-protocol", "grpc-web", "--http", "2"];
    let connect = ["--grpc-protocol", "connect", "--http", "2"];
    for protocol in [&[][..], &web, &connect] {
        let enough = [&call[..], &["--response-messages", "3"], protocol].concat();
        let json = measured(&enough, &[0, 4]);
        assert_eq!(outcomes(&json)[..2], [10, 10], "{protocol:?}");
        assert_eq!(whole(&json, "/streams/events"), 30, "{protocol:?}");
        assert_eq!(text(&json, "/grpc/statuses/0/name"), "CANCELLED", "{protocol:?}");
        assert_eq!(whole(&json, "/connections/established"), 2, "{protocol:?}");
        let long = [&call[..], &["--response-message-max", "20"], protocol];
        let json = measured(&long.concat(), &[0, 1, 4]);
        assert_eq!(outcomes(&json)[..3], [10, 0, 10], "{protocol:?}");
        assert_eq!(text(&json, "/grpc/statuses/0/name"), "RESOURCE_EXHAUSTED", "{protocol:?}");
    }
    let say = method(&site, "/loadstone.v1.Echo/Say");
    for (args, part) in [
        (vec!["--message", "{}", &*say], "/loadstone.v1.Echo/Say returns one message"),
        (vec!["--grpc-protocol", "connect", "--message", "{}", &*url], "give --http 2"),
        (vec!["--message", "{\"count\": {{user.number}}}", &*url], "works only with a grpc:// URL"),
    ] {
        let args = [vec!["run", "-n", "1", "--response-messages", "2"], args].concat();
        let errors = run(&args).expect(&[2]).stderr;
        assert!(errors.contains(part), "{args:?}: {errors}");
    }
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
        let errors = run(&args).expect(&[2]).stderr;
        assert!(errors.contains(part), "{args:?}: {errors}");
    }
}

fn plan_file(site: &Site, text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a file");
    let url = method(site, "");
    file.write_all(text.replace("URL", &url).as_bytes()).expect("room");
    file
}

const JOURNEY: &str = r#"
version = 1
url = "URL"
[load]
users = 2
[stop]
requests = 10
[[feeder]]
name = "people"
generate = { name = ["ann", "bob"] }
[[journey]]
name = "talk"
[[journey.step]]
name = "log in"
url = "/login"
query = { name = "{{people.name}}" }
capture = { token = { json = "/token" } }
[[journey.step]]
name = "say"
grpc = "loadstone.v1.Echo/Say"
headers = { authorization = "Bearer {{token}}" }
message = { text = "{{people.name}} {{iteration.number}}" }
expect = { body = { json = { "/text" = "{{people.name}} {{iteration.number}}" } } }
capture = { number = { json = "/number" } }
[[journey.step]]
name = "missing"
grpc = "loadstone.v1.Echo/Say"
message = { status = 5 }
grpc-status = "NOT_FOUND"
[[journey.step]]
name = "repeat"
grpc = "loadstone.v1.Echo/Repeat"
message = '{"text": "x", "count": {{number}}3}'
expect = { body = { json = { "/12/number" = 13 } } }
"#;

/// An HTTP login, values in messages, captures from responses, and statuses per step.
#[test]
fn calls_are_steps_of_a_journey() {
    let site = Site::start(&[]);
    let file = plan_file(&site, JOURNEY);
    let path = file.path().to_string_lossy().into_owned();
    let json = measured(&[&path], &[0, 4]);
    assert_eq!(outcomes(&json)[..3], [40, 40, 0]);
    assert_eq!(whole(&json, "/grpc/statuses/0/calls"), 20);
    assert_eq!(text(&json, "/grpc/statuses/1/name"), "NOT_FOUND");
    assert_eq!(json.pointer("/grpc/statuses/1/expected"), Some(&true.into()));
    assert_eq!(whole(&json, "/streams/events"), 10 + 10 * 13);
    // the printed plan is the same run
    let printed = run(&["run", &path, "--print-plan"]).expect(&[0]).stdout;
    let file = plan_file(&site, &printed);
    let again = measured(&[&file.path().to_string_lossy()], &[0, 4]);
    assert_eq!(outcomes(&again)[..3], [40, 40, 0]);
}

/// gRPC-Web and Connect in a journey: the same steps, with the plan's protocol.
#[test]
fn steps_use_the_protocol_of_the_plan() {
    let site = Site::start(&[]);
    let file = plan_file(&site, JOURNEY);
    let path = file.path().to_string_lossy().into_owned();
    for variant in ["grpc-web", "grpc-web-text", "connect"] {
        let args = ["--grpc-protocol", variant, "--proto", PROTO, &path];
        let json = measured(&args, &[0, 4]);
        assert_eq!(outcomes(&json)[..3], [40, 40, 0], "{variant}");
        assert_eq!(text(&json, "/grpc/statuses/1/name"), "NOT_FOUND", "{variant}");
        assert_eq!(whole(&json, "/streams/events"), 10 + 10 * 13, "{variant}");
        // the printed plan is the same run
        let printed = ["run", "--print-plan"].into_iter().chain(args).collect::<Vec<_>>();
        let printed = run(&printed).expect(&[0]).stdout;
        let file = plan_file(&site, &printed);
        let again = measured(&[&file.path().to_string_lossy()], &[0, 4]);
        assert_eq!(outcomes(&again)[..3], [40, 40, 0], "{variant}");
    }
    let errors = run(&["run", "--grpc-protocol", "connect", &path]).expect(&[2]).stderr;
    assert!(errors.contains("give --proto FILE"), "{errors}");
}

#[test]
fn steps_are_divided_among_scenarios() {
    let site = Site::start(&[]);
    let (head, steps) = JOURNEY.split_once("[load]").expect("a load");
    let (_, steps) = steps.split_once("[[feeder]]").expect("a feeder");
    let health = "[[journey]]\nname = \"health\"\n[[journey.step]]\nname = \"check\"\n\
                  grpc = \"loadstone.v1.Echo/Say\"\n";
    let scenarios = "[[scenario]]\nname = \"a\"\njourneys = [\"talk\"]\nduration = \"400ms\"\n\
                     load = { users = 2 }\n[[scenario]]\nname = \"b\"\n\
                     journeys = [\"health\"]\nduration = \"400ms\"\nload = { rate = \"50/s\" }\n";
    let plan = format!("{head}[[feeder]]{steps}{health}{scenarios}");
    let file = plan_file(&site, &plan);
    let json = measured(&[&file.path().to_string_lossy()], &[0, 4]);
    let [calls, good, failed, ..] = outcomes(&json);
    assert_eq!((calls, failed), (good, 0));
    assert_eq!(whole(&json, "/by_scenario/1/outcomes/due"), 20);
    let (ok, missing) = ("/grpc/statuses/0/calls", "/grpc/statuses/1/calls");
    // the end may cut a journey of each user between its calls
    assert!(whole(&json, ok).abs_diff(2 * whole(&json, missing) + 20) <= 2, "{:#}", json["grpc"]);
}

#[test]
fn messages_are_compressed_on_request() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Say");
    let message = format!(r#"{{"text": "{}"}}"#, "a".repeat(2_000));
    let sent = |more: &[&str]| {
        let args = ["-n", "10", "--message", &message, "--proto", PROTO, &url];
        let args: Vec<&str> = args.into_iter().chain(more.iter().copied()).collect();
        let json = measured(&args, &[0, 4]);
        assert_eq!(outcomes(&json)[..2], [10, 10], "{more:?}");
        whole(&json, "/bytes/sent")
    };
    let gzip = sent(&["--grpc-compress", "gzip"]);
    assert!(gzip < 10 * 500 && gzip < sent(&[]) - 10 * 1_500, "{gzip}");
    sent(&["--grpc-compress", "gzip", "--grpc-protocol", "grpc-web-text"]);
    for (args, part) in [
        (["--grpc-compress", "br"], "write gzip"),
        (["--grpc-compress", "gzip"], "Connect names codings in other fields"),
    ] {
        let typed = ["run", "-n", "1", "--grpc-protocol", "connect", "--proto", PROTO, &url];
        let typed: Vec<&str> = typed.into_iter().chain(args).collect();
        let errors = run(&typed).expect(&[2]).stderr;
        assert!(errors.contains(part), "{errors}");
    }
}

#[test]
fn mistakes_in_steps_end_before_the_first_call() {
    let site = Site::start(&[]);
    for (old, new, part) in [
        ("Echo/Say\"\nheaders", "Echo/Sai\"\nheaders", "known: Say"),
        ("status = 5 }", "status = \"x\" }", "step \"missing\": message"),
        ("NOT_FOUND", "FINE", "not a gRPC status"),
        ("url = \"URL\"", "url = \"http://h:1\"", "grpc://host:port"),
        ("message = { status = 5 }", "json = { status = 5 }", "give message"),
        ("loadstone.v1.Echo/Repeat", "loadstone.v1.Echo.Repeat", "names no method"),
    ] {
        assert!(JOURNEY.contains(old), "{old}");
        let file = plan_file(&site, &JOURNEY.replacen(old, new, 1));
        let errors = run(&["run", &file.path().to_string_lossy()]).expect(&[2]).stderr;
        assert!(errors.contains(part), "{new}: {errors}");
    }
}

#[test]
fn a_message_may_contain_the_number_of_its_call() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Say");
    let args = ["-c", "2", "-n", "12", "--message", r#"{"text": "{id}"}"#, &url];
    let json = measured(&args, &[0, 4]);
    assert_eq!(outcomes(&json)[..2], [12, 12]);
    // texts of one digit for 0 to 9, of two for 10 and 11
    assert_eq!(whole(&json, "/bytes/body"), 12 * (5 + 3 + 2) + 2);
}

/// Values of a file without a journey: each call takes the next row.
#[test]
fn a_message_may_contain_values_of_a_file() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Say");
    let folder = tempfile::tempdir().expect("a folder");
    let people = folder.path().join("people.csv");
    std::fs::write(&people, "name,age\nann,7\nbobby,12\n").expect("room");
    let feeder = format!("people={}", people.display());
    let message = r#"{"text": "{{people.name}}", "count": {{people.age}}}"#;
    let args = ["-c", "1", "-n", "2", "--feeder", &feeder, "--message", message, &url];
    let json = measured(&args, &[0, 4]);
    assert_eq!(outcomes(&json)[..3], [2, 2, 0]);
    // the texts, and the number of the reply
    assert_eq!(whole(&json, "/bytes/body"), (5 + 5 + 2) + (5 + 7 + 2));
    let typed = ["run"].into_iter().chain(args).chain(["--print-plan"]).collect::<Vec<&str>>();
    let printed = run(&typed).expect(&[0]).stdout;
    assert!(printed.contains("grpc = \"loadstone.v1.Echo/Say\""), "{printed}");
    for (more, part) in [
        (["--message", "{\"text\": \"{{people.nam}}\"}"], "the columns of people are"),
        (["--message", "{}"], "which inserts none"),
        (["--message", "{\"count\": \"{{people.name}}\"}"], "--message: "),
    ] {
        let args = ["run", "-n", "1", "--feeder", &feeder, &url];
        let args: Vec<&str> = args.into_iter().chain(more).collect();
        let errors = run(&args).expect(&[2]).stderr;
        assert!(errors.contains(part) && !errors.contains("step \""), "{more:?}: {errors}");
    }
}

#[test]
fn messages_of_a_stream_are_sent_and_answered_on_schedule() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Chat");
    let message = r#"[{"text": "a", "wait_ms": 5}]"#;
    let rate = ["--message", message, "--messages", "8", "--message-rate", "100/s"];
    let args: Vec<&str> =
        ["-c", "2", "-n", "4"].into_iter().chain(rate).chain([url.as_str()]).collect();
    let json = measured(&args, &[0, 4]);
    assert_eq!(outcomes(&json)[..2], [4, 4]);
    // the call before the run sends all its messages as well
    assert!(json["first_call"]["failure"].is_null(), "{}", json["first_call"]);
    assert_eq!(whole(&json, "/streams/events"), 4 * 8);
    assert_eq!(whole(&json, "/streams/sent/messages"), 4 * 7);
    let seconds = |at: &str| json.pointer(at).and_then(|it| it.as_f64()).expect("a time");
    // the last message is due 70 ms after the call, and answered 5 ms later at the earliest
    assert!(seconds("/streams/sent/answer_s/min") >= 0.0049);
    assert_eq!(whole(&json, "/streams/sent/answer_s/count"), 4 * 8);
    assert!(seconds("/response_time_s/min") >= 0.0749);
    // matched by a field: two messages have the same text, and both get an answer
    let list = r#"[{"text": "a"}, {"text": "b"}, {"text": "a"}, {"text": "c"}]"#;
    let by_field = |field: &str| {
        let rate = ["--message", list, "--message-rate", "200/s", "--correlate", field];
        ["run", "-n", "3"].into_iter().chain(rate).map(str::to_owned).collect::<Vec<String>>()
    };
    let args: Vec<String> = by_field("field:text").into_iter().chain([url.clone()]).collect();
    let args: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    let json = measured(&args, &[0, 4]);
    assert_eq!(whole(&json, "/streams/sent/answer_s/count"), 3 * 4);
    let collect = method(&site, "/loadstone.v1.Echo/Collect");
    for (field, url, part) in [
        ("field:txt", &url, "loadstone.v1.SayRequest has no single field \"txt\""),
        ("field:text", &collect, "it is for bidirectional streams"),
        ("next", &url, "write order or field:NAME"),
    ] {
        let args: Vec<String> = by_field(field).into_iter().chain([url.clone()]).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let errors = run(&args).expect(&[2]).stderr;
        assert!(errors.contains(part), "{field}: {errors}");
    }
    let say = method(&site, "/loadstone.v1.Echo/Say");
    let args = ["run", "-n", "1", "--message", "{}", "--message-rate", "1/s", &say];
    let errors = run(&args).expect(&[2]).stderr;
    assert!(errors.contains("takes one message"), "{errors}");
}

#[test]
fn a_command_of_grpcurl_is_a_run() {
    let site = Site::start(&[]);
    let host = site.url("").replacen("http://", "", 1);
    let command =
        format!("grpcurl -plaintext -d '{{\"text\": \"hello\"}}' {host} loadstone.v1.Echo.Say");
    let json = measured(&["-n", "5", "--curl", &command], &[0, 4]);
    assert_eq!(outcomes(&json)[..2], [5, 5]);
    assert_eq!(whole(&json, "/bytes/body"), 5 * (5 + 7 + 2));
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(command.as_bytes()).expect("room");
    let path = file.path().to_string_lossy().into_owned();
    let plan = run(&["workload", "import", &path]).expect(&[0]).stdout;
    let plan = plan_file(&site, &plan);
    let imported = measured(&["-n", "5", &plan.path().to_string_lossy()], &[0, 4]);
    assert_eq!(whole(&imported, "/bytes/body"), 5 * (5 + 7 + 2));
    let errors = run(&["run", "--curl", &format!("grpcurl {host} list")]).expect(&[2]).stderr;
    assert!(errors.contains("list and describe make no call"), "{errors}");
}

/// A response of an HTTP/2 server without gRPC is not a success, regardless of its status.
#[test]
fn a_response_without_a_status_fails() {
    let site = Site::start(&[]);
    let url = method(&site, "/loadstone.v1.Echo/Say");
    let args = ["-n", "3", "--body", "x", "-H", "content-type: text/plain", &url];
    let json = measured(&args, &[0, 1, 4]);
    assert_eq!(outcomes(&json)[1], 0, "the site has no such page");
    assert_eq!(whole(&json, "/grpc/without_status"), 3);
}

/// The face of ghz: reflection, one message at a time; statuses of the calls; call data.
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
    let value = ghz(&["-d", data, "-O", "json"]).expect(&[0]).json();
    assert_eq!(whole(&value, "/statusCodeDistribution/OK"), 15);
    let error = "/errorDistribution/rpc error: code = NotFound desc = no user";
    assert_eq!(whole(&value, error), 15);
    let varied = r#"{"text": "{{.RequestNumber}} {{.UUID}}"}"#;
    let value = ghz(&["-d", varied, "-e"]).expect(&[0]).stdout;
    assert!(value.contains("  [OK]   30 responses"), "{value}");
    let later = r#"{"text": "{{div 6 (sub 2 .RequestNumber)}}"}"#;
    let value = ghz(&["-d", later]).expect(&[1]);
    assert!(
        value.stderr.contains("error calling div: runtime error: integer divide by zero"),
        "{}",
        value.stderr
    );
    assert_eq!(value.stdout, "");
    // a client's stream on a schedule, and a server's stream that the client ends
    let call = ["ghz", "--insecure", "-n", "2", "-c", "1", "-O", "json", "--call"];
    let stream = |rest: &[&str]| {
        let args: Vec<&str> =
            call.into_iter().chain(rest.iter().copied()).chain([&*host]).collect();
        run(&args).expect(&[0]).json()
    };
    let four = r#"[{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}]"#;
    let paced = ["--stream-interval", "30ms", "--stream-call-duration", "80ms", "-d", four];
    let collected = stream(&[&["loadstone.v1.Echo.Collect"], &paced[..]].concat());
    assert_eq!(whole(&collected, "/statusCodeDistribution/OK"), 2);
    // three messages, the last one due 60 ms after the first; the call itself may begin late
    assert!(whole(&collected, "/fastest") >= 50_000_000, "{collected}");
    let endless = r#"{"text": "a", "count": 1000, "gap_ms": 10}"#;
    let cut = ["--stream-call-duration", "80ms", "-d", endless];
    let repeated = stream(&[&["loadstone.v1.Echo.Repeat"], &cut[..]].concat());
    assert_eq!(whole(&repeated, "/statusCodeDistribution/Canceled"), 2);
    let canceled = "/errorDistribution/rpc error: code = Canceled desc = context canceled";
    assert_eq!(whole(&repeated, canceled), 2);
    let counted = ["--stream-call-count", "3", "-d", endless];
    let repeated = stream(&[&["loadstone.v1.Echo.Repeat"], &counted[..]].concat());
    assert_eq!(whole(&repeated, canceled), 2);
    let small = ["--max-recv-message-size", "3B", "-d", endless];
    let repeated = stream(&[&["loadstone.v1.Echo.Repeat"], &small[..]].concat());
    assert_eq!(whole(&repeated, "/statusCodeDistribution/ResourceExhausted"), 2);
    let value = ghz(&["-d", r#"{"txt": 1}"#]).expect(&[1]).stderr;
    assert!(value.starts_with("Error creating message from data."), "{value}");
}
