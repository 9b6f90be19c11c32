//! ghz's own output for more than 150 command lines, and ours. `comparisons.txt` was recorded with
//! ghz 0.120.0 against the service `loadstone.v1.Echo` of the reference server; measured values are
//! masked in both.

use super::*;
use crate::SystemError;
use grpc::Schema;
use protocol::grpc::{Code, Status};
use sample::{FailureClass, Note, Sample};
use std::sync::Arc;
use workload::MadeRequest;

const RECORDED: &str = include_str!("comparisons.txt");
const HOST: &str = "127.0.0.1:2020";
const PROTO: &str = include_str!("../../../site/src/proper/echo.proto");

/// Files that the command lines name.
struct EchoFiles;

impl Files for EchoFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        let found = RECORDED.split("\n== ").skip(1).find_map(|part| {
            let (name, text) = part.split_once('\n')?;
            (name == path).then(|| text.replace("HOST", HOST).into_bytes())
        });
        match path {
            "echo.proto" => Ok(PROTO.as_bytes().to_vec()),
            "one.bin" => Ok(b"\n\x02hi".to_vec()),
            "two.bin" => Ok(b"\x04\n\x02hi\x04\n\x02ho".to_vec()),
            _ => found.ok_or_else(|| SystemError {
                number: 2,
                text: "No such file or directory".to_owned(),
            }),
        }
    }

    fn read_input(&self) -> Result<Vec<u8>, SystemError> {
        Ok(Vec::new())
    }

    fn cores(&self) -> u64 {
        2
    }

    fn describe(&self, _plan: &Plan) -> Result<Vec<u8>, String> {
        let read = |name: &str| (name == "echo.proto").then(|| PROTO.to_owned());
        Schema::compile("echo.proto", &read).map(|schema| schema.to_set()).map_err(|why| why.0)
    }
}

fn words(line: &str) -> Vec<String> {
    let word = |word: &str| word.replace("HOST", HOST).replace('~', " ");
    line.split_whitespace().map(word).collect()
}

fn prepared(line: &str) -> Result<Prepared, Ending> {
    prepare(&words(line), Extras::default(), &EchoFiles)
}

/// The status that the request of call `index` requests from the server, in its JSON form.
fn wanted(face: &Ghz, index: u64) -> (u32, String) {
    let data = face.given.shown();
    let item = match &data {
        serde_json::Value::Array(items) => items.get(index as usize % items.len().max(1)),
        other => Some(other),
    };
    let number = item.and_then(|item| item.get("status")?.as_u64()).unwrap_or(0);
    let text = item.and_then(|item| item.get("status_message")?.as_str()).unwrap_or_default();
    (number as u32, text.to_owned())
}

/// Call `index` of a run, as the engine logs it.
fn call(face: &Ghz, index: u64) -> CallRecord {
    let (number, message) = wanted(face, index);
    let intended = Nanos::from_millis(index);
    let mut sample =
        Sample { index, intended, issued: intended, sent: intended, ..Sample::default() };
    sample.done = intended + Nanos::from_micros(1_500 + index);
    sample.body_bytes = 29;
    let slow = face.given.shown().get("wait_ms").and_then(serde_json::Value::as_u64);
    if slow == Some(500) {
        sample.class = Some(FailureClass::ClientTimeout);
        return CallRecord { sample, outcome: Outcome::TimedOut, response: Vec::new(), note: None };
    }
    let status = Status { code: Code::of(number), number, message, sent: true };
    let failed = number != 0;
    sample.class = failed.then_some(FailureClass::GrpcStatus);
    let outcome = if failed { Outcome::Failed } else { Outcome::Succeeded };
    let note = failed.then(|| Note(Arc::new(status)));
    CallRecord { sample, outcome, response: Vec::new(), note }
}

/// Standard output, standard error and exit code.
fn ours(line: &str) -> (String, String, u8) {
    let Prepared { plan, mut face, .. } = match prepared(line) {
        Ok(prepared) => prepared,
        Err(Ending { out, err, code, .. }) => return (out, err, code),
    };
    plan::validate(&plan).unwrap_or_else(|why| panic!("{line}: {why:?}"));
    face.dated(&Date { at: Nanos::ZERO, unix_s: 1.8e9, utc_offset_s: 0 });
    let calls: Vec<CallRecord> =
        (0..plan.stop.requests.unwrap_or(0)).map(|index| call(&face, index)).collect();
    face.calls(&calls);
    (face.text(Nanos::from_millis(5), 0), String::new(), 0)
}

/// Digits, with what belongs to a number, become one mark.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for letter in text.chars() {
        let part = letter.is_ascii_digit() || (inside && matches!(letter, '.' | 'e' | '+'));
        if part && !inside {
            out.push('#');
        }
        if !part {
            out.push(letter);
        }
        inside = part;
    }
    out
}

/// JSON whose measured values are masked.
fn masked_json(text: &str) -> String {
    const MEASURED: [&str; 11] = [
        "date",
        "total",
        "average",
        "fastest",
        "slowest",
        "rps",
        "latency",
        "mark",
        "count",
        "frequency",
        "timestamp",
    ];
    let mut out = text.to_owned();
    for key in MEASURED {
        let key = format!("\"{key}\":");
        let mut pieces = out.split(&key);
        let mut masked = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let end = piece.find([',', '}', '\n']).unwrap_or(piece.len());
            masked += &format!("{key}#{}", &piece[end..]);
        }
        out = masked;
    }
    // details are in the order in which calls ended: only their number is compared
    let Some((head, tail)) = out.split_once("\"details\":") else { return out };
    let tags = tail.find("\"tags\"").map_or("", |at| &tail[at..]);
    let (times, errors) = (tail.matches("timestamp").count(), tail.matches("\"error\"").count());
    format!("{head}\"details\":{times} {errors} {tags}")
}

fn masked_line(line: &str) -> String {
    let plain = line.trim_start();
    let measured = ["Total:", "Slowest:", "Fastest:", "Average:", "Requests/sec:"];
    if let Some(name) = measured.iter().find(|name| plain.starts_with(**name)) {
        return format!("  {name}\t#");
    }
    if plain.contains(" % in ") {
        return plain.split(" in ").next().unwrap_or_default().to_owned();
    }
    if plain.starts_with(|letter: char| letter.is_ascii_digit()) && plain.contains("] ") {
        return "  bar".to_owned();
    }
    if let Some(at) = line.find(" count=").or_else(|| line.find(" latency=")) {
        return format!("{}{}", &line[..at], without_numbers(&line[at..]));
    }
    if line.starts_with("ghz_run_")
        && let Some((name, rest)) = line.split_once('{')
        && let Some((labels, value)) = rest.rsplit_once('}')
    {
        let mut labels: Vec<&str> = labels.split(',').collect();
        labels.retain(|label| !label.starts_with("le=\"0."));
        labels.sort_unstable();
        return format!("{name} {labels:?} {}", without_numbers(value));
    }
    match plain.split_once(',') {
        Some((number, rest)) if number.parse::<f64>().is_ok() => format!("#,{rest}"),
        _ => line.to_owned(),
    }
}

fn masked(text: &str) -> Vec<String> {
    if text.trim_start().starts_with('{') {
        return masked_json(text).lines().map(str::to_owned).collect();
    }
    let mut lines: Vec<String> = text.split('\n').map(masked_line).collect();
    lines.dedup_by(|a, b| a == b && a == "  bar");
    // ghz prints maps in no order, and calls as they end
    for group in lines.chunk_by_mut(|a, b| {
        (a.starts_with("  [") && b.starts_with("  ["))
            || (a.starts_with("#,") && b.starts_with("#,"))
    }) {
        group.sort();
    }
    lines
}

/// Text after the reason of a Go library is not compared.
fn in_short(text: &str) -> &str {
    ["Error: ", "toml: ", "TOML: "]
        .iter()
        .fold(text, |text, cut| text.split(cut).next().unwrap_or(text))
}

#[test]
fn each_command_line_ends_as_with_ghz() {
    let lines = RECORDED.split("\n== ").next().unwrap_or_default();
    let mut wrong = Vec::new();
    let mut count = 0;
    for block in lines.split("\n$ ").skip(1) {
        count += 1;
        let (line, rest) = block.split_once('\n').unwrap_or((block, ""));
        let (code, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        let (out, err) = rest.split_once("\n--\n").unwrap_or((rest, ""));
        let (our_out, our_err, our_code) = ours(line);
        let our_out = our_out.replace(HOST, "HOST");
        let (their_out, our_out) =
            (masked(out.trim_end_matches('\n')), masked(our_out.trim_end_matches('\n')));
        let our_err = our_err.trim_end().replace(HOST, "HOST");
        if their_out != our_out {
            wrong.push(format!("$ {line}\ntheirs {their_out:#?}\nours {our_out:#?}"));
        }
        if in_short(err.trim_end()) != in_short(&our_err) || code != our_code.to_string() {
            wrong.push(format!("$ {line}\ntheirs {code} {err}\nours {our_code} {our_err}"));
        }
    }
    assert!(count >= 150, "{count} lines are compared");
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

fn made(line: &str, index: u64) -> MadeRequest {
    let prepared = prepared(line).unwrap_or_else(|ending| panic!("{}", ending.err));
    let mut maker = prepared.makers.expect("call data differ").maker();
    maker.make(index, Nanos::from_millis(7)).expect("a request")
}

const CALL: &str = "HOST --insecure --call loadstone.v1.Echo/Say -c 2 -n 4";

#[test]
fn call_data_changes_from_call_to_call() {
    let line = format!("{CALL} -d {{\"text\":\"{{{{.RequestNumber}}}}-{{{{.WorkerID}}}}\"}}");
    assert_eq!(made(&line, 3).body, b"\0\0\0\0\x08\n\x063-g1c0");
    let line = format!("{CALL} -d {{\"text\":\"{{{{add~.RequestNumber~40|~toString}}}}\"}}");
    assert_eq!(made(&line, 2).body, b"\0\0\0\0\x04\n\x0242");
    let line = format!("{CALL} -m {{\"n\":\"{{{{.RequestNumber}}}}\"}} -d {{}}");
    assert_eq!(made(&line, 1).headers, [("n".to_owned(), "1".to_owned())]);
    let line = format!("{CALL} -d {{\"text\":\"{{{{.UUID}}}}\"}}");
    let uuid = made(&line, 0).body[7..].to_vec();
    assert_eq!((uuid.len(), uuid[14], uuid[8]), (36, b'4', b'-'));
    assert_ne!(made(&line, 1).body[7..], uuid);
}

#[test]
fn messages_of_a_list_take_turns_or_make_a_stream() {
    let bodies = |line: &str| {
        let prepared = prepared(line).unwrap_or_else(|ending| panic!("{}", ending.err));
        prepared
            .plan
            .targets
            .iter()
            .map(|it| it.body.clone().unwrap_or_default())
            .collect::<Vec<_>>()
    };
    let (a, b) = (b"\0\0\0\0\x03\n\x01a".to_vec(), b"\0\0\0\0\x03\n\x01b".to_vec());
    let data = "-d [{\"text\":\"a\"},{\"text\":\"b\"}]";
    assert_eq!(bodies(&format!("{CALL} {data}")), [a.clone(), b.clone()]);
    let stream = "HOST --insecure --call loadstone.v1.Echo/Collect -c 1";
    assert_eq!(bodies(&format!("{stream} {data}")), [[a.clone(), b.clone()].concat()]);
    let three = bodies(&format!("{stream} {data} --stream-call-count 3"));
    assert_eq!(three, [[a.clone(), b, a].concat()]);
}

#[test]
fn the_load_is_that_of_the_flags() {
    let plan = |line: &str| prepared(line).unwrap_or_else(|ending| panic!("{}", ending.err)).plan;
    let closed = plan(&format!("{CALL} --connections 2"));
    assert_eq!((closed.connection.pipeline, closed.stop.requests), (1, Some(4)));
    assert!(matches!(closed.load, Load::Closed { users: 2, .. }));
    let open = plan(&format!("{CALL} --rps 100"));
    let Load::Open { arrivals, connections_max: Some(1), .. } = &open.load else {
        panic!("{open:?}")
    };
    let due = [10, 20, 30, 40].map(Nanos::from_millis);
    assert_eq!(arrivals.at.as_deref(), Some(&due[..]));
    let both = plan(&format!("{CALL} -x 3s"));
    assert_eq!((both.stop.requests, both.stop.duration), (Some(4), Some(Nanos::from_secs(3))));
    let workers = "--concurrency-schedule step --concurrency-start 1 --concurrency-end 3 \
                   --concurrency-step-duration 1s";
    let staged = plan(&format!("{CALL} {workers}"));
    assert!(staged.stages.is_some() && matches!(staged.load, Load::Closed { users: 3, .. }));
}

#[test]
fn unsupported_input_is_refused_by_name() {
    for (flags, part) in [
        ("--lb-strategy round_robin", "--lb-strategy round_robin"),
        ("--debug x", "--debug"),
        ("--total 0", "--total 0"),
        ("--async -z 1s", "--async"),
        ("-d {\"text\":\"{{if~.UUID}}\"}", "{{if}}"),
    ] {
        let line = format!("HOST --insecure --call loadstone.v1.Echo/Say {flags}");
        let ending = prepared(&line).map(drop).unwrap_err();
        assert!(ending.err.contains(part) && ending.code == 1, "{line}: {}", ending.err);
    }
    let stream = "HOST --insecure --call loadstone.v1.Echo/Collect -d {} --stream-interval 1s";
    assert!(prepared(stream).map(drop).unwrap_err().err.contains("--stream-interval"));
}

#[test]
fn native_is_a_command_of_ours() {
    let native = |line: &str| {
        let extras = Extras { native: true, ..Extras::default() };
        prepare(&words(line), extras, &EchoFiles).map(drop).unwrap_err().out
    };
    assert_eq!(
        native(&format!("{CALL} -d {{\"text\":\"x\"}}")),
        "loadstone run grpc://127.0.0.1:2020/loadstone.v1.Echo/Say --message '{\"text\":\"x\"}' \
         -c 1 --streams 2 -n 4 --timeout 20000ms --grpc-timeout 20000ms\n"
    );
}
