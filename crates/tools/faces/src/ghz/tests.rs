//! ghz's own output for more than 150 command lines, and ours. `comparisons.txt` was recorded with
//! ghz 0.120.0 against the service `loadstone.v1.Echo` of the reference server; measured values are
//! masked in both.

use super::*;
use crate::SystemError;
use grpc::Schema;
use protocol::grpc::{Code, EarlyEnd, MessageLimits, Status};
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

/// Returns the status code and message that call `index` requests from the server, in JSON form.
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

/// Returns how the client ends calls early. Their messages have 24 bytes, and a server's stream has
/// more messages than any count in the recorded lines.
fn early_end(face: &Ghz) -> Option<(EarlyEnd, MessageLimits)> {
    let options = &face.options;
    let count = u32::try_from(options.stream_call_count).ok().filter(|count| *count > 0);
    let limits = MessageLimits { count, length: options.max_recv };
    if options.max_recv.is_some_and(|most| most < 24) {
        return Some((EarlyEnd::TooLong { length: 24 }, limits));
    }
    let ends = options.call.ends_with("Repeat") && count.is_some();
    ends.then_some((EarlyEnd::Enough, limits))
}

/// Returns call `index` of a run, as the engine logs it.
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
    let status = Status { code: Code::from_number(number), number, message, sent: true };
    let early = early_end(face);
    let failed = number != 0 || early.is_some_and(|(end, _)| end != EarlyEnd::Enough);
    let status = early.map_or(status, |(end, limits)| Status::of_early_end(end, limits));
    sample.class = failed.then_some(FailureClass::GrpcStatus);
    let outcome = if failed { Outcome::Failed } else { Outcome::Succeeded };
    let note = (failed || early.is_some()).then(|| Note(Arc::new(status)));
    CallRecord { sample, outcome, response: Vec::new(), note }
}

/// Returns the standard output, standard error and exit code.
fn ours(line: &str) -> (String, String, u8) {
    let Prepared { plan, mut face, .. } = match prepared(line) {
        Ok(prepared) => prepared,
        Err(Ending { out, err, code, .. }) => return (out, err, code),
    };
    plan::validate(&plan).unwrap_or_else(|why| panic!("{line}: {why:?}"));
    face.set_date(&Date { at: Nanos::ZERO, unix_s: 1.8e9, utc_offset_s: 0 });
    let calls: Vec<CallRecord> =
        (0..plan.stop.requests.unwrap_or(0)).map(|index| call(&face, index)).collect();
    face.calls(&calls);
    face.take_until(Nanos::NEVER);
    (face.text(Nanos::from_millis(5), 0), String::new(), 0)
}

/// Replaces digits, with their signs and units, by one mark.
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

/// Returns JSON with measured values masked.
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

/// Returns the counts of a report that do not depend on time.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::<String, u64>::new();
    let mut add = |name: &str, count: &str| {
        let number: f64 = count.trim().parse().unwrap_or_else(|_| panic!("{name}: {count}"));
        *all.entry(name.to_owned()).or_default() += number as u64;
    };
    if text.trim_start().starts_with('{') {
        // the details of the recorded reports are shortened, so they are not JSON
        for (name, key) in [("requested", "\"total\":"), ("count", "\"count\":")] {
            if let Some((_, rest)) = text.split_once(key) {
                add(name, rest.split([',', '}', '\n']).next().unwrap_or_default());
            }
        }
        return all;
    }
    for line in text.lines() {
        let sample = line.split_once('{').zip(line.rsplit_once("} "));
        if let Some(((name, _), (_, value))) = sample
            && ["ghz_run_count", "ghz_run_errors", "ghz_run_histogram_bucket"].contains(&name)
        {
            add(name, value);
        } else if line.starts_with("ghz_run,") {
            let value = |key: &str| line.rsplit_once(key).map_or("", |(_, rest)| rest);
            add("count", value(" count=").split(',').next().unwrap_or_default());
            add("errors", value(",errors=").split(' ').next().unwrap_or_default());
        } else if let Some(count) = line.trim_start().strip_prefix("Count:") {
            add("count", count);
        } else if let Some((status, count)) =
            line.strip_suffix("responses   ").and_then(|line| line.trim().split_once("]   "))
        {
            add(status.trim_start_matches('['), count);
        }
    }
    all
}

/// Cuts off the text of a Go library, which is not compared.
fn short_form(text: &str) -> &str {
    ["Error: ", "toml: ", "TOML: "]
        .iter()
        .fold(text, |text, cut| text.split(cut).next().unwrap_or(text))
}

#[test]
fn each_command_line_ends_as_with_ghz() {
    let lines = RECORDED.split("\n== ").next().unwrap_or_default();
    let mut wrong = Vec::new();
    let (mut count, mut counted) = (0, 0);
    for block in lines.split("\n$ ").skip(1) {
        count += 1;
        let (line, rest) = block.split_once('\n').unwrap_or((block, ""));
        let (code, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        let (out, err) = rest.split_once("\n--\n").unwrap_or((rest, ""));
        let (our_out, our_err, our_code) = ours(line);
        let our_out = our_out.replace(HOST, "HOST");
        let (theirs, ours) = (counts(out), counts(&our_out));
        if theirs != ours {
            wrong.push(format!("$ {line}\ntheirs {theirs:?}\nours {ours:?}"));
        }
        counted += usize::from(!theirs.is_empty());
        let (their_out, our_out) =
            (masked(out.trim_end_matches('\n')), masked(our_out.trim_end_matches('\n')));
        let our_err = our_err.trim_end().replace(HOST, "HOST");
        if their_out != our_out {
            wrong.push(format!("$ {line}\ntheirs {their_out:#?}\nours {our_out:#?}"));
        }
        if short_form(err.trim_end()) != short_form(&our_err) || code != our_code.to_string() {
            wrong.push(format!("$ {line}\ntheirs {code} {err}\nours {our_code} {our_err}"));
        }
    }
    assert!(count >= 150, "{count} lines are compared");
    assert!(counted >= 55, "the counts of {counted} reports are compared");
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
fn binary_data_is_sent_with_differing_metadata() {
    let line = format!("{CALL} -B one.bin -m {{\"n\":\"{{{{.RequestNumber}}}}\"}}");
    let request = made(&line, 1);
    assert_eq!(request.body, b"\0\0\0\0\x04\n\x02hi");
    assert_eq!(request.headers, [("n".to_owned(), "1".to_owned())]);
    let two = format!("{CALL} -B two.bin -m {{\"n\":\"{{{{.RequestNumber}}}}\"}}");
    assert_eq!(made(&two, 3).body, b"\0\0\0\0\x04\n\x02ho");
}

#[test]
fn templates_trim_blanks_and_have_built_in_functions() {
    let text = |template: &str| {
        let line = format!("{CALL} --disable-template-functions -d {{\"text\":\"{template}\"}}");
        String::from_utf8(made(&line, 3).body[7..].to_vec()).unwrap()
    };
    assert_eq!(text("a~{{-~.RequestNumber~-}}~b"), "a3b");
    assert_eq!(text("a~{{.RequestNumber}}~b{{-1}}"), "a 3 b-1");
    assert_eq!(text("{{print~.RequestNumber~4~`x`~5}}"), "3 4x5");
    assert_eq!(text("{{len~.MethodName}}{{print~-}}"), "3");
}

/// Returns the face after these calls, of which those with an empty request were not sent.
fn after_calls(line: &str, count: u64) -> Ghz {
    let Prepared { makers, mut face, .. } =
        prepared(line).unwrap_or_else(|ending| panic!("{}", ending.err));
    let mut maker = makers.map(|makers| makers.maker());
    for index in 0..count {
        let mut record = call(&face, index);
        let made = maker.as_mut().map(|maker| maker.make(index, record.sample.intended));
        if made.is_some_and(|made| made.is_none()) {
            record.sample.class = Some(FailureClass::WorkloadEnd);
            record.outcome = Outcome::Failed;
        }
        face.calls(&[record]);
    }
    face.take_until(Nanos::NEVER);
    face
}

#[test]
fn data_that_do_not_fit_a_later_call_are_an_error() {
    let line = format!("{CALL} -d {{\"text\":\"{{{{div~6~(sub~2~.RequestNumber)}}}}\"}}");
    let ending = after_calls(&line, 4).data_error().expect("call 2 has no data");
    assert_eq!(ending.err, "error calling div: runtime error: integer divide by zero\n");
    assert_eq!(ending.code, 1);
    assert!(after_calls(&line, 2).data_error().is_none());
    let fits = format!("{CALL} -d {{\"count\":\"{{{{sub~1~.RequestNumber}}}}\"}}");
    let ending = after_calls(&fits, 4).data_error().expect("-1 is no uint32");
    assert!(ending.err.contains("Error creating message from data"), "{}", ending.err);
    assert!(ending.err.contains("-2"), "{}", ending.err);
}

#[test]
fn a_made_message_above_the_limit_is_a_failed_call() {
    let data = "{\"text\":\"{{repeat~(add~3~.RequestNumber)~`x`}}\"}";
    let line = format!("{CALL} --max-send-message-size 6B -d {data}");
    let face = after_calls(&line, 4);
    let text = face.text(Nanos::from_secs(1), 0);
    assert!(text.contains("[OK]                  2 responses"), "{text}");
    assert!(text.contains("[ResourceExhausted]   2 responses"), "{text}");
    assert!(text.contains("trying to send message larger than max (7 vs. 6)"), "{text}");
}

/// Two threads each pass one second of calls at a time. Like ghz, this skips the first calls to
/// end.
#[test]
fn calls_of_several_threads_count_in_the_order_of_their_ends() {
    let line = format!("{CALL} --skipFirst 2 -O csv");
    let Prepared { mut face, .. } = prepared(&line).unwrap_or_else(|why| panic!("{}", why.err));
    let ended = |ms: u64| {
        let mut record = call(&face, 0);
        record.sample.done = Nanos::from_millis(ms);
        record.sample.issued = record.sample.done - Nanos::from_millis(ms / 100);
        record
    };
    let threads = [[100, 900], [200, 700], [1_100, 1_300], [1_200, 5_400]];
    for calls in threads.map(|calls| calls.map(ended)) {
        face.calls(&calls);
    }
    assert_eq!((face.tally.ended(), face.tally.count), (7, 5), "those that ended 3 s ago");
    face.take_until(Nanos::NEVER);
    let latencies: Vec<u64> =
        face.tally.details.iter().map(|it| it.latency.0 / 1_000_000).collect();
    assert_eq!(latencies, [7, 9, 11, 12, 13, 54]);
}

/// The lines have the keys of ghz's lines, according to its source and a run of ghz 0.120.0.
#[test]
fn the_debug_log_has_the_steps_of_each_call() {
    let line = format!(
        "{CALL} -d {{\"text\":\"{{{{.RequestNumber}}}}\",\"status\":5}} -m {{\"a\":\"b\"}} --debug d.log"
    );
    let Prepared { mut face, .. } = prepared(&line).unwrap_or_else(|why| panic!("{}", why.err));
    face.set_date(&Date { at: Nanos::ZERO, unix_s: 1.8e9, utc_offset_s: 0 });
    let calls: Vec<CallRecord> = (0..2).map(|index| call(&face, index)).collect();
    let begun = face.calls(&calls).log + &face.calls(&calls[..1]).log;
    face.take_until(Nanos::NEVER);
    let text = begun + &face.calls(&[]).log;
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let messages: Vec<&str> =
        lines.iter().map(|line| line["message"].as_str().unwrap_or_default()).collect();
    let of_call = ["Making request", "Received RPC Stats", "Received response"];
    assert_eq!(messages, [&["Start Run"][..], &of_call, &of_call, &of_call].concat());
    assert_eq!(lines[0]["config"]["call"], "loadstone.v1.Echo/Say");
    let making = &lines[7];
    assert_eq!(making["workerID"], "g1c0");
    assert_eq!(making["call"], "loadstone.v1.Echo.Say");
    let input = &making["input"][0];
    assert_eq!((&input["status"], &input["text"]), (&5.into(), &"1".into()));
    assert_eq!(making["metadata"].to_string(), "{\"a\":[\"b\"]}");
    assert_eq!(making["time"], "2027-01-15T08:00:00.001Z");
    let error = "rpc error: code = NotFound desc = ";
    assert_eq!((&lines[8]["code"], &lines[9]["error"]), (&"NotFound".into(), &error.into()));
    let mut ending = Ending::default();
    face.end_log(&mut ending);
    let file = &ending.files[0];
    assert!(file.append && file.path == "d.log", "{file:?}");
    assert!(file.text.contains("Printing report to stdout"), "{}", file.text);
}

#[test]
fn a_run_whose_skipped_calls_ended_is_over() {
    let line = format!("{CALL} -d {{}} --skipFirst 2 -x 1h -O json");
    assert!(after_calls(&line, 4).text(Nanos::SECOND, 0).contains("\"endReason\":\"normal\""));
    assert!(after_calls(&line, 3).text(Nanos::SECOND, 0).contains("\"endReason\":\"timeout\""));
}

#[test]
fn long_schedules_need_no_list_or_are_refused() {
    let say = "HOST --insecure --call loadstone.v1.Echo/Say -d {}";
    let plan = prepared(&format!("{say} -r 10000 -z 10m")).expect("a long run").plan;
    let Load::Open { arrivals, .. } = &plan.load else { panic!("{plan:?}") };
    assert!(arrivals.at.is_none() && arrivals.from.0.total_cmp(&10_000.0).is_eq());
    let step = "--load-schedule step --load-start 100000 --load-step 1 --load-step-duration 1s";
    let ending = prepared(&format!("{say} {step} -z 10m")).map(drop).unwrap_err();
    assert!(ending.err.contains("more than 5000000 calls"), "{}", ending.err);
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
        ("--total 0", "--total 0"),
        ("--async -z 1s", "--async"),
        ("-d {\"text\":\"{{if~.UUID}}\"}", "unexpected EOF"),
    ] {
        let line = format!("HOST --insecure --call loadstone.v1.Echo/Say {flags}");
        let ending = prepared(&line).map(drop).unwrap_err();
        assert!(ending.err.contains(part) && ending.code == 1, "{line}: {}", ending.err);
    }
}

#[test]
fn streams_have_a_pace_and_an_end() {
    let stream = |method: &str, flags: &str| {
        let line = format!("HOST --insecure --call loadstone.v1.Echo/{method} -c 1 {flags}");
        prepared(&line).unwrap_or_else(|ending| panic!("{line}: {}", ending.err))
    };
    let list = "-d [{},{},{},{}]";
    let messages = |found: &Prepared| {
        let body = found.plan.targets[0].body.as_deref().unwrap_or_default();
        protocol::grpc::messages(body).unwrap().len()
    };
    // messages at 0, 50 and 100 ms, as ghz sends them
    let paced = format!("{list} --stream-interval 50ms --stream-call-duration 120ms");
    for method in ["Collect", "Chat"] {
        let found = stream(method, &paced);
        assert_eq!(found.plan.grpc.message_rate, Some(units::Rate(20.0)), "{method}");
        assert_eq!((messages(&found), found.face.tally.cut), (3, false), "{method}");
        plan::validate(&found.plan).unwrap();
    }
    let counted = format!("{paced} --stream-call-count 2");
    assert_eq!(messages(&stream("Collect", &counted)), 2);
    // back to back, all are sent before the time is over
    let at_once = stream("Collect", &format!("{list} --stream-call-duration 120ms"));
    assert_eq!((messages(&at_once), at_once.plan.grpc.message_rate), (4, None));
    let limits = |found: &Prepared| {
        let grpc = &found.plan.grpc;
        (grpc.response_messages, grpc.response_message_max)
    };
    assert_eq!(limits(&stream("Repeat", "-d {} --stream-call-count 3")), (Some(3), None));
    // the count is that of the messages sent, and the server's stream is read to its end
    let both = stream("Chat", &format!("{list} --stream-call-count 3"));
    assert_eq!((messages(&both), limits(&both)), (3, (None, None)));
    let long = stream("Say", "-d {} --stream-call-count 3 --max-recv-message-size 2mb");
    assert_eq!(limits(&long), (None, Some(2_000_000)));
    let sent = stream("Repeat", "-d {} --max-send-message-size 9mb");
    assert_eq!(limits(&sent), (None, Some(4 << 20)), "the default of grpc-go");
    let cut = stream("Repeat", "-d {} --stream-call-duration 120ms");
    assert_eq!((cut.plan.timeouts.call, cut.face.tally.cut), (Nanos::from_millis(120), true));
    let deadline = stream("Repeat", "-d {} --stream-call-duration 2s -t 1s");
    assert_eq!((deadline.plan.timeouts.call, deadline.face.tally.cut), (Nanos::SECOND, false));
    let unary = stream("Say", "-d {} --stream-interval 50ms --stream-call-duration 120ms");
    assert_eq!((unary.plan.grpc.message_rate, unary.face.tally.cut), (None, false));
    stream("Say", "-d {} --lb-strategy round_robin");
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
         -c 1 --streams 2 -n 4 --timeout 20000ms --grpc-timeout 20000ms --connect-timeout \
         10000ms\n"
    );
    let more = native(&format!(
        "{CALL} -d {{}} --authority a.b --proto echo.proto -i x,y --skipFirst 3 -O json"
    ));
    assert!(more.contains("--proto echo.proto --proto-path .,x,y -H 'host: a.b'"), "{more}");
    assert!(more.starts_with("# not translated: --skipFirst"), "{more}");
    assert!(more.contains("# not translated: --output"), "{more}");
    let secure = native("HOST --cname a.b --call loadstone.v1.Echo/Say -d {}");
    assert!(secure.contains("--server-name a.b"), "{secure}");
    // only a plan has the message without reflection
    let reflected = native(&format!("{CALL} -d {{}} --reflect-metadata {{\"a\":\"b\"}}"));
    assert!(reflected.contains("cat > ghz.toml"), "{reflected}");
}
