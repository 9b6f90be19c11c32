//! Command lines that are parsed and refused, their plans, and reports of records, without a run.

use super::*;
use crate::SystemError;
use plan::{Load, Order};
use sample::{ConnectionRecord, FailureClass, Outcome, Sample, SessionRecord};
use units::Nanos;

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        match path {
            "list" => Ok(b"/a\0/b\0/c\0".to_vec()),
            "sessions" => Ok(b"/a think=0.5\n /b\n /b\n/c method=HEAD\n\n/a\n".to_vec()),
            "posts" => Ok(b"/a method=POST contents=\"ab\\ncd\"\n".to_vec()),
            "bad" => Ok(b"/a colour=red\n".to_vec()),
            _ => Err(SystemError { number: 2, text: "No such file or directory".into() }),
        }
    }
}

fn reading(line: &str) -> Reading {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    read("httperf", &args, Extras::default(), &NoFiles)
}

fn plan_of(line: &str) -> Plan {
    match reading(line) {
        Reading::Run(job) => {
            assert_eq!(plan::validate(&job.plan), Ok(()), "{line}");
            job.plan
        }
        other => panic!("{line}: {other:?}"),
    }
}

/// Returns the standard output, standard error and code of a command line that runs nothing.
fn refusal(line: &str) -> String {
    match reading(line) {
        Reading::End(Ending { out, err, code, .. }) => {
            let first = out.lines().next().unwrap_or("").split(" --client").next().unwrap_or("");
            format!("{first}|{}|{code}", err.trim_end())
        }
        Reading::Run(_) | Reading::Idle(_) => format!("{line} runs"),
    }
}

#[test]
fn refusals_are_the_original_s() {
    for (line, wanted) in [
        ("--bogus", "|httperf: unrecognized option '--bogus'|1"),
        ("--rat", "|httperf: option '--rate' requires an argument|1"),
        ("--client 1", "|httperf: client id not followed by `/' (rest: `')|1"),
        ("--client 5/3", "|httperf: bad number of clients (rest: `3')|1"),
        ("--client a/b", "|httperf: bad client id (rest: `a/b')|1"),
        ("--period x1", "|httperf: illegal interarrival distribution 'x' in x1|1"),
        (
            "--period u1",
            "|httperf: minimum interarrival time not followed by `,MAX_IAT' (rest: `')|1",
        ),
        ("--period e", "|httperf: illegal mean interarrival time|1"),
        ("--rate abc", "|httperf: illegal request rate abc|1"),
        ("--num-conns 5x", "|httperf: illegal number of connections 5x|1"),
        ("--burst-length 0", "|httperf: illegal burst-length 0|1"),
        ("--wsess 1,2", "|httperf: bad user think time (3rd param) in --wsess arg (rest: `')|1"),
        ("--wsess 1,1,1,5", "|httperf: extraneous parameter in --wsess arg (rest: `,5')|1"),
        (
            "--wsesslog 1,x,f",
            "|httperf: bad user think time (2nd param) in --wsesslog arg (rest: `x,f')|1",
        ),
        (
            "--wset 10",
            "|httperf: bad target miss rate (2nd parameter) in --wset arg (rest: `10')|1",
        ),
        (
            "--wset 10,2",
            "|httperf: bad target miss rate (2nd parameter) in --wset arg (rest: `2')|1",
        ),
        ("--port 99999", "|httperf: illegal port number 99999|1"),
        ("--timeout x", "|httperf: illegal connect timeout x|1"),
        (
            "--session-cookies",
            "|httperf: --session-cookie requires session-oriented workload (e.g., --wsess)|255",
        ),
        ("--wlog y,none", "httperf|httperf: can't open none|1"),
        ("--wsesslog 1,1,none", "httperf|httperf: can't open none|1"),
        ("--wsesslog 1,1,bad", "httperf|httperf: did not recognize arg 'colour=red' in bad|1"),
        ("--http-version 2.0", "httperf|httperf: unexpected version code 20000|1"),
        (
            "--max-connections 9 --wsess 1,1,1",
            "httperf|httperf.session_init: --max-conns must be <= 4|1",
        ),
        ("-h", "Usage: httperf [-hdvV] [--add-header S] [--burst-length N] [--client N/N]||0"),
    ] {
        assert_eq!(refusal(line), wanted, "{line}");
    }
}

fn echoed(line: &str) -> String {
    match reading(line) {
        Reading::Run(mut job) => job.face.begin().out,
        Reading::End(ending) => ending.out,
        Reading::Idle(idle) => idle.opening(),
    }
}

#[test]
fn the_first_line_is_the_original_s() {
    for (line, wanted) in [
        (
            "",
            "httperf --client=0/1 --server=localhost --port=80 --uri=/ --send-buffer=4096 \
              --recv-buffer=16384 --num-conns=1 --num-calls=1\n",
        ),
        (
            "--think-timeout 1e-7 --timeout 5.5 --server-name foo --port 1 --period e0.1 \
             --add-header X:1\\n --method HEAD",
            "httperf --think-timeout=1e-07 --timeout=5.5 --client=0/1 --server=localhost \
             --server_name=foo --port=1 --uri=/ --period=e0.1 --send-buffer=4096 \
             --recv-buffer=16384 --add-header='X:1\\n' --method=HEAD --num-conns=1 --num-calls=1\n",
        ),
        (
            "-vv --print-reply=header --print-request=b --hog --close-with-reset --failure-status \
             404 --max-connections 3 --max-piped-calls 4 --retry-on-failure --port 1",
            "httperf --verbose --print-reply=header --print-request=body --hog --close-with-reset \
             --client=0/1 --server=localhost --port=1 --uri=/ --failure-status=404 \
             --max-connections=3 --max-piped-calls=4 --send-buffer=4096 --retry-on-failure \
             --recv-buffer=16384 --num-conns=1 --num-calls=1\n",
        ),
        (
            "--ssl --ssl-ciphers ECDHE-RSA-AES128-GCM-SHA256 --ssl-no-reuse --wsess 1,3,.1 \
             --burst-length=3 --wset 100,0.5 --session-cookies --rate 1234567",
            "httperf --client=0/1 --server=localhost --port=443 --uri=/ --rate=1.23457e+06 \
             --send-buffer=4096 --recv-buffer=16384 --session-cookies --ssl \
             --ssl-ciphers=ECDHE-RSA-AES128-GCM-SHA256 --ssl-no-reuse --wsess=1,3,0.100 \
             --burst-length=3 --wset=100,0.500\n",
        ),
        (
            "--wsesslog 3,0.05,sessions -V",
            "httperf: httperf-0.9.0 compiled without DEBUG without TIME_SYSCALLS.\n\
             httperf --client=0/1 --server=localhost --port=80 --uri=/ --send-buffer=4096 \
             --recv-buffer=16384 --wsesslog=3,0.050,sessions\n",
        ),
    ] {
        assert_eq!(echoed(line), wanted, "{line}");
    }
}

#[test]
fn connections_become_sessions_of_one_connection() {
    let plan = plan_of("--num-conns 7 --num-calls 5 --burst-length 2");
    let Load::Closed { users: 1, session: Some(session), .. } = &plan.load else {
        panic!("{:?}", plan.load)
    };
    assert_eq!((session.calls, session.one_connection, session.lead), (5, true, false));
    assert_eq!((plan.stop.requests, plan.connection.group), (Some(7), Some(2)));
    assert_eq!((plan.connection.tries, plan.connection.resend), (1, false));
    let plan = plan_of("--num-conns 3 --period u0.1,0.3 --timeout 2 --think-timeout 1");
    let Load::Open { arrivals, .. } = &plan.load else { panic!("{:?}", plan.load) };
    assert_eq!(arrivals.at.as_ref().map(|at| at.len()), Some(3));
    let limits = &plan.timeouts;
    let two = Some(Nanos::from_secs(2));
    assert_eq!((limits.progress, limits.answer), (two, Some(Nanos::from_secs(3))));
}

#[test]
fn session_files_become_visits() {
    let plan = plan_of("--wsesslog 4,2,sessions --http-version 1.0");
    let session = plan.load.session().unwrap();
    let visits: Vec<String> = session.visits.iter().map(plan::rules::show_visit).collect();
    assert_eq!(visits, ["0,1,1 500ms; 2 2s", "0 2s"]);
    let methods: Vec<_> = plan.targets.iter().map(|target| target.method.as_deref()).collect();
    assert_eq!(methods, [None, None, Some("HEAD")]);
    assert_eq!((plan.stop.requests, plan.connection.calls), (Some(4), Some(1)));
}

fn uris(plan: &Plan) -> Vec<String> {
    let uri = |target: &plan::TargetPlan| {
        let raw = String::from_utf8_lossy(target.raw.as_deref().unwrap()).into_owned();
        raw.split(' ').nth(1).unwrap().to_owned()
    };
    plan.targets.iter().map(uri).collect()
}

#[test]
fn lists_and_working_sets_name_the_uris() {
    let once = plan_of("--wlog n,list --num-conns 9 --num-calls 2");
    assert_eq!(
        (uris(&once), once.order),
        (vec!["/a".into(), "/b".into(), "/c".into()], Order::Once)
    );
    assert_eq!(once.stop.requests, Some(2), "the list is at its end within the second");
    assert_eq!(plan_of("--wlog y,list --num-conns 9").order, Order::InOrder);
    let set = plan_of("--uri /w --wset 12,0.4 --num-conns 7");
    assert_eq!(set.sequence, [0, 0, 1, 1, 2, 2, 2]);
    assert_eq!(uris(&set)[11], "/w/1/1.html");
    let third = plan_of("--uri /w --wset 100,1 --num-conns 4 --client 2/5");
    assert_eq!(third.sequence, [7, 12, 17, 22]);
    assert_eq!(uris(&plan_of("--wset 10,1"))[3], "/3.html");
}

fn call(index: u64, sent_ms: u64, first_ms: u64, done_ms: u64, status: u16) -> CallRecord {
    let at = |ms: u64| if ms == 0 { Nanos::ZERO } else { START + Nanos::from_millis(ms) };
    let sample = Sample {
        index,
        intended: START,
        sent: at(sent_ms),
        first_byte: at(first_ms),
        done: at(done_ms),
        status,
        bytes_sent: 62,
        head_bytes: 51,
        body_bytes: 12,
        trailer_bytes: 1,
        ..Sample::default()
    };
    CallRecord { sample, outcome: Outcome::Succeeded, response: Vec::new(), note: None }
}

const START: Nanos = Nanos::from_secs(1_000);

fn connection(opened_ms: u64, closed_ms: u64, responses: u32) -> ConnectionRecord {
    let at = |ms: u64| START + Nanos::from_millis(ms);
    ConnectionRecord {
        user: None,
        opened: at(opened_ms),
        established: at(opened_ms + 1),
        closed: at(closed_ms),
        responses,
        class: None,
    }
}

#[test]
fn the_report_of_known_records() {
    let args = ["--wsess", "3,2,0"].map(str::to_owned);
    let Command::Run(options) = options::read("httperf", &args, &mut OptionOutput::default())
    else {
        panic!("a good command line")
    };
    let mut tally = Tally::new(&options);
    tally.origin = START;
    for record in [
        call(0, 10, 12, 14, 200),
        call(1, 10, 14, 14, 404),
        call(2, 6_000, 6_002, 6_002, 200),
        CallRecord { outcome: Outcome::TimedOut, ..call(3, 6_010, 0, 9_000, 0) },
    ] {
        tally.call(&record);
    }
    let timed_out = Some(FailureClass::ProgressTimeout);
    let refused = Some(FailureClass::Refused);
    tally.ends(&Ends {
        connections: vec![
            connection(0, 20, 2),
            connection(0, 6_003, 1),
            ConnectionRecord { class: timed_out, ..connection(0, 9_000, 0) },
            ConnectionRecord { class: refused, established: Nanos::ZERO, ..connection(5, 5, 0) },
        ],
        sessions: vec![
            SessionRecord {
                intended: START,
                ended: START + Nanos::from_secs(6),
                responses: 2,
                connections: 2,
                ..SessionRecord::default()
            },
            SessionRecord {
                intended: START,
                ended: START + Nanos::from_secs(9),
                responses: 0,
                failed: true,
                ..SessionRecord::default()
            },
        ],
    });
    let beside = text::ClientUsage { concurrent: 3, user_s: 0.9, system_s: 1.8, strict: false };
    insta::assert_snapshot!(text::report(&options, &tally, &beside));
    let strict = text::ClientUsage { strict: true, ..beside };
    let median = |beside| {
        let text = text::report(&options, &tally, beside);
        text.lines().find(|line| line.contains("median")).map(str::to_owned)
    };
    assert!(median(&strict).unwrap().contains("median 20.5"), "{:?}", median(&strict));
}

/// Samples of rates count from the first due instant, whichever call ends first.
#[test]
fn a_late_end_of_the_first_call_moves_no_sample() {
    let Command::Run(options) = options::read("httperf", &[], &mut OptionOutput::default()) else {
        panic!("a good command line")
    };
    let plan = plan_of("--rate 1 --num-conns 6");
    let mut face = Httperf::new("httperf", *options, OptionOutput::default(), &plan, false);
    face.set_date(&Date { at: START, ..Date::default() });
    let mut fifth = call(5, 5_000, 5_400, 5_500, 200);
    fifth.sample.intended = START + Nanos::from_secs(5);
    face.calls(&[fifth]);
    face.calls(&[call(0, 1, 9_000, 10_000, 200)]);
    let replies: Vec<f64> = face.tally.rates().iter().map(|(replies, _)| *replies).collect();
    assert_eq!(replies, [0.0, 0.4]);
}

#[test]
fn replies_are_printed_chunk_by_chunk() {
    let plan = plan_of("--print-reply --print-request --uri /x");
    let args = ["--print-reply", "--print-request"].map(str::to_owned);
    let Command::Run(options) = options::read("httperf", &args, &mut OptionOutput::default())
    else {
        panic!("a good command line")
    };
    let mut record = call(7, 1, 2, 3, 200);
    record.response =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"
            .to_vec();
    let mut out = String::new();
    Printer::new(&options, &plan).print(&record, &mut out);
    let wanted = "SH7:GET /x HTTP/1.1\r\nSH7:User-Agent: httperf/0.9.0\r\nSH7:Host: localhost\r\n\
                  SH7:\r\nSS7: header 63 content 0\nRH7:HTTP/1.1 200 OK\r\n\
                  RH7:Transfer-Encoding: chunked\r\nRH7:\r\nRB7:ab\nRB7:cd\n\
                  RS7: header 51 content 12 footer 1\n";
    assert_eq!(out, wanted);
}

#[test]
fn an_ipv6_server_is_a_host_in_brackets() {
    let plan = plan_of("--server ::1 --port 81");
    let raw = String::from_utf8_lossy(plan.targets[0].raw.as_deref().unwrap()).into_owned();
    assert!(raw.contains("\r\nHost: [::1]\r\n"), "{raw}");
    assert_eq!(plan.targets[0].url.as_str(), "http://[::1]:81/");
}

#[test]
fn whole_lines_of_contents_are_printed() {
    let line = "--wsesslog 1,0,posts --print-request";
    let plan = plan_of(line);
    let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let Command::Run(options) = options::read("httperf", &args, &mut OptionOutput::default())
    else {
        panic!("a good command line")
    };
    let mut out = String::new();
    Printer::new(&options, &plan).print(&call(0, 1, 2, 3, 200), &mut out);
    assert!(out.contains("SH0:\r\nSB0:ab\nSS0: header 83 content 5\n"), "{out}");
}
