//! Correct and faulty scripts, with real processes.

use super::{Stage, content, ended, eventually, get, in_time, post, reaped, state, whole};
use crate::breaks::Breaks;
use crate::cgi::Places;
use crate::cgi::per_request::PerRequest;
use crate::exchange::{Content, Entity, Piece, Reply, Spooled};
use hyper::body::Bytes;
use hyper::http::{Method, StatusCode};
use std::sync::Arc;

const HEAD: &str = "printf 'Content-Type: text/plain\\n\\n'\n";

/// Returns the whole response of a shell script to a GET, and the log.
async fn ran(stage: &Stage, script: &str) -> (String, String) {
    let script = stage.script(script);
    let reply = script.answer(get(None), &Breaks::default()).await;
    let text = whole(reply).await;
    (text, stage.log())
}

#[track_caller]
fn refused((response, log): (String, String), status: u16, expected: &str) {
    assert!(response.starts_with(&format!("{status}\n")), "{response}\n{log}");
    assert!(log.contains(expected), "{expected:?} expected in: {log}");
}

#[tokio::test]
async fn a_document_passes() {
    let stage = Stage::new();
    let text = "printf 'Status: 404 Gone\\nContent-Type: text/plain\\nX-A: b\\n\\n'; echo \"in $PWD\"; echo no >&2";
    let (response, log) = ran(&stage, text).await;
    let folder = stage.folder.path().display();
    assert_eq!(response, format!("404\ncontent-type: text/plain\nx-a: b\n\nin {folder}\n"));
    assert_eq!(log, "CGI: no");
}

#[tokio::test]
async fn redirects_pass() {
    let stage = Stage::new();
    let (response, log) = ran(&stage, "printf 'Location: http://a.example/\\n\\n'").await;
    assert_eq!((response.as_str(), log.as_str()), ("302\nlocation: http://a.example/\n\n", ""));
    let (response, _) = ran(&stage, "printf 'Location: /index.html?x\\n\\n'").await;
    assert_eq!(response, "200\n\nelsewhere: /index.html?x");
}

#[tokio::test]
async fn standard_input_is_the_body_from_memory_and_from_a_file() {
    let stage = Stage::new();
    let script = stage.script(&format!("{HEAD}cat; echo \"|$CONTENT_LENGTH\""));
    // more than a pipe holds, while the script writes already
    let long = "0123456789".repeat(30_000);
    let reply = script.answer(post("text/plain", long.clone()), &Breaks::default()).await;
    assert_eq!(content(reply).await, (format!("{long}|300000\n"), None));
    let mut ask = post("text/plain", "");
    let path = stage.path("spool");
    std::fs::write(&path, &long).unwrap();
    let mut spooled = Spooled::new(path.clone(), Arc::new(std::fs::File::open(&path).unwrap()));
    spooled.len = 300_000;
    ask.body = Entity::Spooled(spooled);
    let reply = script.answer(ask, &Breaks::default()).await;
    assert_eq!(content(reply).await, (format!("{long}|300000\n"), None));
    assert!(!path.exists());
    let broken = Breaks::parse("cgi-stdin").unwrap();
    let reply = script.answer(post("text/plain", "abc"), &broken).await;
    assert_eq!(content(reply).await, ("|3\n".to_owned(), None));
    assert_eq!(stage.log(), "");
}

#[tokio::test]
async fn a_script_that_does_not_read_its_input_answers_all_the_same() {
    let stage = Stage::new();
    let script = stage.script(&format!("{HEAD}echo done"));
    let reply = script.answer(post("text/plain", vec![b'x'; 1 << 20]), &Breaks::default()).await;
    assert_eq!(content(reply).await, ("done\n".to_owned(), None));
}

#[tokio::test]
async fn unstartable_programs_are_refused() {
    let stage = Stage::new();
    let none = Breaks::default();
    let missing = stage.at(&stage.path("missing")).answer(get(None), &none).await;
    refused((whole(missing).await, stage.log()), 404, "CGI DIR/missing: there is no such file");
    let folder = stage.at(stage.folder.path()).answer(get(None), &none).await;
    assert_eq!(folder.status, 404);
    let closed = stage.program("#!/bin/sh\n", 0o644).answer(get(None), &none).await;
    refused((whole(closed).await, stage.log()), 403, "it may not be executed");
    let strange = stage.program("#!/no/such/interpreter\n", 0o755).answer(get(None), &none).await;
    refused(
        (whole(strange).await, stage.log()),
        500,
        "the interpreter of its first line is missing",
    );
    let garbage = stage.program("\u{1}\u{2}garbage", 0o755).answer(get(None), &none).await;
    refused((whole(garbage).await, stage.log()), 500, "cannot be started");
    let parsed = stage.at(&stage.path("nph-x")).answer(get(None), &none).await;
    refused((whole(parsed).await, stage.log()), 501, "nph- scripts are not supported");
}

#[tokio::test]
async fn invalid_request_content_is_a_client_error() {
    let stage = Stage::new();
    let script = stage.script(HEAD);
    let mut ask = get(None);
    ask.rest = "/a\0b".to_owned();
    assert_eq!(script.answer(ask, &Breaks::default()).await.status, 400);
    // longer than Linux permits for a variable
    let long = get(Some(&"x".repeat(300_000)));
    assert_eq!(script.answer(long, &Breaks::default()).await.status, 431);
}

#[tokio::test]
async fn no_header_is_a_bad_gateway() {
    let stage = Stage::new();
    refused(ran(&stage, "exit 0").await, 502, "CGI DIR/script: it ended without output");
    refused(ran(&stage, "exit 3").await, 502, "it ended without output");
    refused(ran(&stage, "kill -9 $$").await, 502, "it ended without output");
    refused(ran(&stage, "printf 'Content-Type: a/b\\n'").await, 502, "inside the header");
    refused(
        ran(&stage, "echo hello; echo; echo").await,
        502,
        "line 1 of the header is not a field",
    );
    refused(ran(&stage, "echo; echo text").await, 502, "has no Content-Type, Location or Status");
    let flood = "while :; do echo 'X-A: 0123456789012345678901234567890123456789'; done";
    refused(ran(&stage, flood).await, 502, "no end of the header within 65536 bytes");
}

#[tokio::test]
async fn a_script_that_dies_midway_aborts_the_response() {
    let stage = Stage::new();
    let (response, log) = ran(&stage, &format!("{HEAD}echo half; kill -9 $$")).await;
    let text = "it died: signal: 9 (SIGKILL)";
    assert_eq!(response, format!("200\ncontent-type: text/plain\n\nhalf\n\nbroken off: {text}"));
    assert_eq!(log, format!("CGI DIR/script: {text}"));
    // an exit status has no meaning (RFC 3875 names none)
    let (response, _) = ran(&stage, &format!("{HEAD}echo all; exit 1")).await;
    assert_eq!(response, "200\ncontent-type: text/plain\n\nall\n");
}

#[tokio::test]
async fn a_content_length_is_kept_to() {
    let stage = Stage::new();
    let head =
        |length: u32| format!("printf 'Content-Type: a/b\\nContent-Length: {length}\\n\\n'\n");
    let (response, log) = ran(&stage, &format!("{}printf hello", head(5))).await;
    assert_eq!(response, "200\ncontent-length: 5\ncontent-type: a/b\n\nhello");
    assert_eq!(log, "");
    let (response, log) = ran(&stage, &format!("{}printf 'hello world'", head(5))).await;
    assert_eq!(response, "200\ncontent-length: 5\ncontent-type: a/b\n\nhello");
    assert!(log.ends_with("more output than its Content-Length"), "{log}");
    let (response, _) = ran(&stage, &format!("{}printf hello", head(8))).await;
    assert!(
        response.ends_with("hello\nbroken off: 3 bytes of its Content-Length are missing"),
        "{response}"
    );
}

const HANG: &str = "echo $$ >leader; sleep 1000 & echo $! >child; wait";

#[tokio::test]
async fn a_script_that_hangs_is_killed_with_its_children() {
    for (script, status, expected) in [
        (HANG.to_owned(), "504\n", "no header within the time limit; killed"),
        (format!("{HEAD}{HANG}"), "200\n", "silent for longer than the time limit; killed"),
    ] {
        let (leader, child) = in_time(async |stage| {
            let (response, log) = ran(stage, &script).await;
            let child = stage.written_pid("child").filter(|_| response.starts_with(status))?;
            assert!(log.contains(expected), "{log}");
            assert_eq!(response.contains(&format!("broken off: {expected}")), status == "200\n");
            Some((stage.pid("leader").await, child))
        })
        .await;
        reaped(leader).await;
        ended(child).await;
    }
}

#[tokio::test]
async fn a_script_that_closes_its_output_and_stays_is_killed() {
    let script = format!("{HEAD}exec >&- 2>&-; echo $$ >leader; sleep 1000");
    let leader = in_time(async |stage| {
        let (response, _) = ran(stage, &script).await;
        let leader = stage.written_pid("leader")?;
        assert!(
            response.contains("broken off: it closed its output and did not end"),
            "{response}"
        );
        Some(leader)
    })
    .await;
    reaped(leader).await;
}

#[tokio::test]
async fn a_scripts_child_processes_end_with_it() {
    let stage = Stage::new();
    // holds standard output open, too
    let (response, _) = ran(&stage, &format!("{HEAD}sleep 1000 & echo $! >child; echo all")).await;
    assert_eq!(response, "200\ncontent-type: text/plain\n\nall\n");
    ended(stage.pid("child").await).await;
}

#[tokio::test]
async fn a_flood_is_slowed_by_the_client_and_cut_at_the_limit() {
    let mut stage = Stage::new();
    stage.limits.output = 3 << 20;
    let script = stage.script(&format!("{HEAD}echo $$ >leader; exec yes"));
    let reply = script.answer(get(None), &Breaks::default()).await;
    let leader = stage.pid("leader").await;
    // nothing is read: it blocks at a full pipe (S), and was not killed
    eventually("the script has to wait", || (state(leader) == Some('S')).then_some(())).await;
    let (text, broken) = content(reply).await;
    assert_eq!(text.len(), 3 << 20);
    assert_eq!(broken.as_deref(), Some("more output than the limit; killed"));
    reaped(leader).await;
}

#[tokio::test]
async fn a_script_whose_client_reads_nothing_is_killed() {
    in_time(async |stage| {
        let script = stage.script(&format!("echo $$ >leader; {HEAD}exec yes"));
        let reply = script.answer(get(None), &Breaks::default()).await;
        let leader = stage.written_pid("leader").filter(|_| reply.status == 200)?;
        reaped(leader).await;
        let text = "the client reads nothing for longer than the time limit; killed";
        eventually("it is told", || stage.log().contains(text).then_some(())).await;
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_client_disconnect_ends_the_script() {
    let stage = Stage::new();
    // after the header
    let hang = "echo $$ >leader; sleep 1000 & echo $! >child";
    let script = stage.script(&format!("{hang}\n{HEAD}wait"));
    drop(script.answer(get(None), &Breaks::default()).await);
    reaped(stage.pid("leader").await).await;
    ended(stage.pid("child").await).await;
    // before it
    let stage = Stage::new();
    let script = stage.script(&format!("{hang}\nwait"));
    let none = Breaks::default();
    let child = tokio::select! {
        reply = script.answer(get(None), &none) => panic!("it answered {reply:?}"),
        child = stage.pid("child") => child,
    };
    reaped(stage.pid("leader").await).await;
    ended(child).await;
    assert_eq!(stage.log(), "");
}

#[test]
fn a_server_that_stops_leaves_nothing() {
    let stage = Stage::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let script = stage.script(&format!("{HEAD}{HANG}"));
    let (reply, leader, child) = runtime.block_on(async {
        let reply = script.answer(get(None), &Breaks::default()).await;
        (reply, stage.pid("leader").await, stage.pid("child").await)
    });
    assert!(state(leader).is_some_and(|state| state != 'Z'));
    drop(runtime);
    // already exited: the runtime waits for the reaper
    assert_eq!(state(leader), None);
    drop(reply);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(ended(child));
}

#[tokio::test]
async fn a_stop_kills_running_and_waiting_scripts() {
    let stage = Stage::new();
    let script = stage.script(&format!("{HEAD}{HANG}"));
    let reply = script.answer(get(None), &Breaks::default()).await;
    let (leader, child) = (stage.pid("leader").await, stage.pid("child").await);
    stage.places.stop();
    reaped(leader).await;
    ended(child).await;
    assert_eq!(content(reply).await.1.as_deref(), Some("it died: signal: 9 (SIGKILL)"));
    assert_eq!(stage.script("sleep 1000").answer(get(None), &Breaks::default()).await.status, 502);
}

#[tokio::test]
async fn a_script_finishes_after_a_head_request() {
    let stage = Stage::new();
    let script = stage.script(&format!("{HEAD}yes | head -c 500000; echo done >after"));
    let mut ask = get(None);
    ask.method = Method::HEAD;
    let reply = script.answer(ask, &Breaks::default()).await;
    // its length is unknown, like that of a GET (RFC 9110 §8.6)
    assert!(matches!(reply.content, Content::Stream(_)), "{reply:?}");
    assert_eq!(content(reply).await, (String::new(), None));
    let after = stage.path("after");
    eventually("the script finishes", || after.exists().then_some(())).await;
}

#[tokio::test]
async fn scripts_beyond_running_and_waiting_ones_are_refused() {
    let mut stage = Stage::new();
    stage.places = Places::new(2, 1);
    // a script runs until there is a file `go`, or for its time limit
    let script =
        stage.script(&format!("echo $$ >>running; while [ ! -e go ]; do sleep 0.01; done; {HEAD}"));
    let script = Arc::new(script);
    let mut responses = tokio::task::JoinSet::new();
    let mut ask = |wanted: usize| {
        for _ in 0..wanted {
            let script = Arc::clone(&script);
            responses.spawn(async move {
                let reply = script.answer(get(None), &Breaks::default()).await;
                (
                    reply.status.as_u16(),
                    reply.headers.contains_key("retry-after"),
                    content(reply).await,
                )
            });
        }
    };
    let running =
        || std::fs::read_to_string(stage.path("running")).unwrap_or_default().lines().count();
    ask(2);
    eventually("two run", || (running() == 2).then_some(())).await;
    ask(3);
    // one of the three waits, two are refused at once
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let (status, again, _) = responses.join_next().await.expect("five were asked").unwrap();
        seen.push((status, again));
    }
    assert_eq!(seen, [(503, true), (503, true)]);
    assert_eq!(running(), 2);
    std::fs::write(stage.path("go"), "").unwrap();
    while let Some(response) = responses.join_next().await {
        assert_eq!(response.unwrap().0, 200);
    }
    assert_eq!(running(), 3);
}

#[tokio::test]
async fn standard_error_is_logged_in_bounded_lines() {
    let stage = Stage::new();
    let script =
        "printf 'one\\ntwo\\033[31m\\r\\n' >&2; yes 'a long complaint' | head -c 1000000 >&2";
    let (response, log) = ran(&stage, &format!("{HEAD}{script}")).await;
    assert_eq!(response, "200\ncontent-type: text/plain\n\n");
    assert!(log.starts_with("CGI: one\nCGI: two[31m\nCGI: a long complaint\n"), "{log}");
    assert!((16_000..40_000).contains(&log.len()), "{}", log.len());
    let (_, log) = ran(&Stage::new(), &format!("{HEAD}printf %5000s x >&2")).await;
    assert!(log.len() <= 1_010, "{}", log.len());
}

/// Returns a static response that passes through a process.
async fn copy_through_process(program: &str, text: &str, content: Content) -> (Reply, Stage) {
    let stage = Stage::new();
    let mut per_request = PerRequest::new(
        Arc::clone(&stage.places),
        stage.limits,
        stage.settings("x".as_ref()).complain,
    );
    if !program.is_empty() {
        let draft = stage.path("program");
        stage.program(&format!("#!/bin/sh\n{program}\n"), 0o755);
        std::fs::rename(stage.path("script"), &draft).expect("both are in one folder");
        per_request.program = draft;
    }
    let mut reply = Reply::text(StatusCode::OK, text);
    if !matches!(content, Content::Empty) || text.is_empty() {
        reply.content = content;
    }
    (per_request.copy_through_process(reply).await, stage)
}

#[tokio::test]
async fn a_static_page_passes_its_process_unchanged() {
    let plain = "content-type: text/plain; charset=utf-8";
    let (reply, stage) = copy_through_process("", "hello", Content::Empty).await;
    assert_eq!(whole(reply).await, format!("200\ncontent-length: 5\n{plain}\n\nhello"));
    assert_eq!(stage.log(), "");
    let (reply, _) = copy_through_process("", "", Content::Empty).await;
    assert_eq!(whole(reply).await, format!("200\n{plain}\n\n"));
    let file = stage.path("page");
    std::fs::write(&file, "0123456789".repeat(10_000)).unwrap();
    let open = || std::fs::File::open(&file).unwrap();
    let pieces = vec![
        Piece::Bytes(Bytes::from_static(b"<")),
        Piece::File { file: open(), start: 99_990, len: 5 },
        Piece::File { file: open(), start: 3, len: 40_000 },
        Piece::Bytes(Bytes::from_static(b">")),
    ];
    let (reply, _) = copy_through_process("", "", Content::Pieces(pieces)).await;
    assert_eq!(reply.headers["content-length"], "40007");
    let (text, broken) = content(reply).await;
    assert!(text.starts_with("<0123434567") && text.ends_with("012>") && text.len() == 40_007);
    assert_eq!(broken, None);
}

#[tokio::test]
async fn a_page_can_be_copied_by_a_separate_process() {
    let (reply, stage) = copy_through_process("tr a-z A-Z", "hello", Content::Empty).await;
    assert_eq!(content(reply).await, ("HELLO".to_owned(), None));
    drop(stage);
    let (reply, _) = copy_through_process("exit 0", "hello", Content::Empty).await;
    let missing = "5 bytes of its Content-Length are missing".to_owned();
    assert_eq!(content(reply).await, (String::new(), Some(missing)));
    let short =
        vec![Piece::File { file: std::fs::File::open("/dev/null").unwrap(), start: 0, len: 9 }];
    let (reply, _) = copy_through_process("", "", Content::Pieces(short)).await;
    let missing = "9 bytes of its Content-Length are missing".to_owned();
    assert_eq!(content(reply).await, (String::new(), Some(missing)));
}
