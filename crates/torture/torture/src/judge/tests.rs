use super::*;
use crate::case::Exchange;
use conduit::streams::{self, PieceKind};
use dialogue::http3::TablePermit;
use dialogue::replies::Replies;
use dialogue::talk::TalkEvent;
use sample::FailureClass;
use units::Nanos;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const BAD: &str = "HTTP/1.1 400 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const BAD_OPEN: &str = "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n";

pub(crate) fn talk(bytes: &str, end: TalkEnd, follow_up_after: Option<usize>) -> Talk {
    let mut replies = Replies::new(&["GET".to_owned()]);
    replies.take(bytes.as_bytes());
    if end == TalkEnd::Closed {
        replies.end();
    }
    Talk {
        start: Nanos::ZERO,
        connected: Some(Nanos::ZERO),
        over: Nanos::SECOND,
        end,
        replies,
        steps: Vec::new(),
        before_follow_up: follow_up_after,
        sent: 10,
        received: bytes.len() as u64,
        raw: bytes.as_bytes().to_vec(),
        events: Vec::new(),
        all_sent: true,
    }
}

fn exchange(accept: &str, also: &str, advise: &str) -> Exchange {
    let classes = |text: &str| {
        let one = |text: &str| Class::parse(text).unwrap();
        text.split('|').filter(|text| !text.is_empty()).map(one).collect()
    };
    Exchange {
        name: "x".into(),
        steps: Vec::new(),
        methods: vec!["GET".into()],
        deadline: Nanos::SECOND,
        attempts: 1,
        accept: classes(accept),
        also: classes(also),
        advise: classes(advise),
        unlearned: Vec::new(),
        needs: Vec::new(),
        in_step: true,
        opening: true,
    }
}

fn judged(lists: [&str; 3], level: RequirementLevel, talk: &Talk) -> String {
    let page = talk_page();
    let found = judge(&exchange(lists[0], lists[1], lists[2]), level, talk, &page);
    let why = if found.why.is_empty() { String::new() } else { format!(": {}", found.why) };
    format!("{} ({}){why}", found.outcome.id(), found.seen)
}

fn talk_page() -> Plain {
    let answer = talk(OK, TalkEnd::Open, None).replies.responses[0].clone();
    Plain { status: 200, body_len: answer.body_len, digest: Some(answer.digest), outside: None }
}

#[test]
fn responses_are_judged_by_the_outcome_lists() {
    let lists = ["400", "reject", "2xx"];
    let table = [
        (talk(BAD, TalkEnd::Closed, None), "pass (400, closed)"),
        (talk("", TalkEnd::Closed, None), "pass-alternative (closed without a byte)"),
        (
            talk("", TalkEnd::Broken(FailureClass::Reset), None),
            "pass-alternative (reset without a byte)",
        ),
        (
            talk(OK, TalkEnd::Open, None),
            "advisory (200, the connection stays open): no standard permits it; no harm is known",
        ),
        (
            talk("HTTP/1.1 302 F\r\nContent-Length: 0\r\n\r\n", TalkEnd::Open, None),
            "fail (302, the connection stays open): the standard requires a different response",
        ),
        (
            talk("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", TalkEnd::Open, None),
            "fail (500, the connection stays open): the server responded 500, which reports its \
            own failure",
        ),
        (
            talk("", TalkEnd::Silent, None),
            "fail (no response, the connection stays open): everything was sent, \
            there was no response, and the connection stays open",
        ),
        (
            talk("", TalkEnd::Unconnected(FailureClass::Refused), None),
            "inconclusive (no connection): no connection: ",
        ),
    ];
    for (talk, expected) in table {
        let found = judged(lists, RequirementLevel::Must, &talk);
        assert!(found.starts_with(expected), "{found}\nexpected {expected}");
    }
}

#[test]
fn the_level_decides_the_outcome_of_a_violation() {
    let odd = talk("HTTP/1.1 302 F\r\nContent-Length: 0\r\n\r\n", TalkEnd::Open, None);
    for (level, expected) in [
        (RequirementLevel::Must, "fail"),
        (RequirementLevel::Should, "advisory"),
        (RequirementLevel::May, "advisory"),
        (RequirementLevel::Opinion, "advisory"),
    ] {
        let found = judged(["400", "", ""], level, &odd);
        assert!(found.starts_with(expected), "{level:?}: {found}");
    }
}

#[test]
fn the_follow_up_must_be_in_step() {
    let two = format!("{OK}{OK}");
    let three = format!("{OK}{OK}{OK}");
    let other = format!("{OK}HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
    let table = [
        (talk(&two, TalkEnd::Open, Some(1)), "pass"),
        (talk(OK, TalkEnd::Closed, Some(1)), "pass"),
        (
            talk(OK, TalkEnd::Silent, Some(1)),
            "fail (200, nothing more, the connection stays open): a valid request on the same \
            connection got no response",
        ),
        (
            talk(&three, TalkEnd::Open, Some(1)),
            "fail (200, the connection stays open): a valid request on the same connection got 2 \
            responses: requests and responses are desynchronized",
        ),
        (
            talk(&other, TalkEnd::Open, Some(1)),
            "fail (200, the connection stays open): a valid request on the same connection got \
            404 with 0 B instead of 200 with 2 B",
        ),
    ];
    for (talk, expected) in table {
        let found = judged(["2xx", "", ""], RequirementLevel::Must, &talk);
        assert!(found.starts_with(expected), "{found}\nexpected {expected}");
    }
}

#[test]
fn every_class_can_match_and_can_fail() {
    let ok = talk(OK, TalkEnd::Open, None);
    let bad = talk(BAD, TalkEnd::Closed, None);
    let none = talk("", TalkEnd::Closed, None);
    let hang = talk("", TalkEnd::Silent, None);
    let cut = talk("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", TalkEnd::Closed, None);
    let interim = talk(&format!("HTTP/1.1 100 Continue\r\n\r\n{OK}"), TalkEnd::Open, None);
    let settings = talk("\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64", TalkEnd::Silent, None);
    let junk = talk("\0\0\x07\x04\0\0\0\0\0", TalkEnd::Silent, None);
    let table = [
        ("200", &ok, &bad),
        ("4xx", &bad, &ok),
        ("statuses:200", &ok, &bad),
        ("all:2xx", &ok, &bad),
        ("reject", &none, &ok),
        ("answered", &bad, &none),
        ("one-answer", &bad, &none),
        ("no-answer", &none, &bad),
        ("close", &bad, &ok),
        ("ended", &none, &hang),
        ("silent", &hang, &none),
        ("interim", &interim, &ok),
        ("no-interim", &ok, &interim),
        ("not:400", &ok, &bad),
        ("has:content-length", &ok, &none),
        ("lacks:date", &ok, &none),
        ("cut-off", &cut, &ok),
        ("no-body", &bad, &ok),
        ("plain", &ok, &bad),
        ("all-plain", &ok, &bad),
        ("all-plain", &ok, &none),
        ("400 close", &bad, &none),
        ("http2", &settings, &junk),
    ];
    let page = talk_page();
    for (text, holds, fails) in table {
        let class = Class::parse(text).unwrap();
        assert!(class.holds(holds, &page), "{text} holds");
        assert!(!class.holds(fails, &page), "{text} fails");
    }
    for text in ["", "4000", "40x", "statuses:", "has:", "what", "all:1"] {
        assert!(Class::parse(text).is_err(), "{text:?}");
    }
}

/// Returns whether a connection with these events is prompt, such as `0 sent, 3 received`, in
/// milliseconds.
fn prompt_at(events: &str) -> bool {
    let one = |text: &str| {
        let (at, what) = text.split_once(' ').unwrap();
        let what = match what {
            "sent" => What::Sent(1),
            "received" => What::Received(1),
            "secure" => What::Secure,
            other => panic!("{other}"),
        };
        TalkEvent { at: Nanos::from_millis(at.parse().unwrap()), what }
    };
    let events = events.split(", ").map(one).collect();
    let talk = Talk { events, ..talk(OK, TalkEnd::Open, None) };
    Class::parse("prompt").unwrap().holds(&talk, &talk_page())
}

#[test]
fn handshakes_and_tickets_are_not_prompt_replies() {
    for (events, expected) in [
        ("0 sent, 3 received", true),
        ("0 sent, 3000 received", false),
        ("0 sent, 1 sent, 3 received, 5 sent, 4000 received", true),
        ("0 sent, 1 received, 1 secure, 2 sent, 4000 received, 4000 sent, 4000 received", false),
        ("0 sent, 1 received, 1 secure, 2 sent, 3 received, 4000 received, 4000 sent", false),
        (
            "0 sent, 1 received, 1 secure, 2 sent, 3 received, 4 received, 4 sent, 4000 received",
            true,
        ),
        // a slow handshake
        ("0 sent, 2000 received, 2000 secure, 2001 sent, 2005 received", true),
        ("0 sent, 1 received, 1 secure, 2 sent", false),
    ] {
        assert_eq!(prompt_at(events), expected, "{events}");
    }
}

#[test]
fn only_the_first_of_many_responses_are_shown() {
    let many = |count: usize| "HTTP/1.1 100 Continue\r\n\r\n".repeat(count) + &OK.repeat(count);
    assert_eq!(
        seen(&talk(&many(2), TalkEnd::Open, None)),
        "interim 100 100, 200 200, the connection stays open"
    );
    let eight = |status: &str| [status; 8].join(" ");
    assert_eq!(
        seen(&talk(&many(20), TalkEnd::Open, None)),
        format!(
            "interim {} and 12 more, {} and 12 more, the connection stays open",
            eight("100"),
            eight("200")
        )
    );
}

#[test]
fn a_response_after_leftover_bytes_is_in_step() {
    use crate::fuzz::{self, Shot};
    use dialogue::talk::Move;
    let page = talk_page();
    let whole = format!("HTTP/1.1 206 P\r\nContent-Length: 900\r\n\r\n{}", "x".repeat(900));
    let behind = format!("HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n{}", "x".repeat(600));
    let both = talk(&format!("{whole}{behind}"), TalkEnd::Open, Some(1));
    assert!(Class::parse("206 not-longer").unwrap().holds(&both, &page));
    assert!(
        !Class::parse("206 not-longer")
            .unwrap()
            .holds(&talk(&both_raw(&both), TalkEnd::Open, None), &page)
    );
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    for (sent, end, expected) in [
        (request.to_owned(), TalkEnd::Closed, TestOutcome::Fail),
        // an extra empty line, and LF that some accept as a line terminator
        (format!("{request}\r\n"), TalkEnd::Closed, TestOutcome::Pass),
        // the refusal announces the close
        (format!("{request}\r\n"), TalkEnd::Open, TestOutcome::Pass),
        (request.replace("h\r\n", "h\n"), TalkEnd::Closed, TestOutcome::Pass),
    ] {
        let steps = vec![Move::Send(sent.clone().into_bytes())];
        let talk = Talk { steps: steps.clone(), ..talk(&format!("{OK}{BAD}"), end, Some(1)) };
        let shot = Shot { moves: steps, methods: vec!["GET".into()], valid: false, follows: true };
        let found = fuzz::judge(&shot, &talk, &page);
        assert_eq!(found.outcome, expected, "{} {end:?}", sent.escape_debug());
    }
    // the response of another request is not excused
    let other = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nher";
    let steps = vec![Move::Send(format!("{request}\r\n").into_bytes())];
    let talk =
        Talk { steps: steps.clone(), ..talk(&format!("{OK}{other}"), TalkEnd::Closed, Some(1)) };
    let shot = Shot { moves: steps, methods: vec!["GET".into()], valid: false, follows: true };
    assert_eq!(fuzz::judge(&shot, &talk, &page).outcome, TestOutcome::Fail);
}

#[test]
fn a_close_may_be_announced_before_it_happens() {
    let class = Class::parse("2xx closing one-answer").unwrap();
    let parting = OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let old = OK.replace("1.1", "1.0");
    for (bytes, end, expected) in [
        (OK, TalkEnd::Closed, true),
        (&parting, TalkEnd::Silent, true),
        (&old, TalkEnd::Silent, true),
        (OK, TalkEnd::Silent, false),
        (&format!("{parting}{OK}"), TalkEnd::Closed, false),
    ] {
        assert_eq!(class.holds(&talk(bytes, end, None), &talk_page()), expected, "{bytes} {end:?}");
    }
}

fn both_raw(talk: &Talk) -> String {
    String::from_utf8_lossy(&talk.raw).into_owned()
}

/// Returns a conversation over QUIC in which these codes were recorded before we closed it.
fn reported_over_quic(kinds: &[u64], follow_up_after: Option<usize>) -> Talk {
    let mut bytes = Vec::new();
    kinds.iter().for_each(|kind| streams::put(&mut bytes, PieceKind::Frame, *kind, &[]));
    let mut replies = Replies::http3(None, TablePermit::default());
    replies.take(&bytes);
    let end = TalkEnd::Broken(FailureClass::Protocol);
    Talk { replies, ..talk("", end, follow_up_after) }
}

/// We close the connection if the server sends invalid data, which says nothing about how it
/// handled the case.
#[test]
fn our_own_close_is_not_a_server_error() {
    let cases = crate::catalogue::cases().unwrap();
    let case = cases.iter().find(|case| case.id == "Q-55").unwrap();
    let outcome = |exchange: &Exchange, kinds: &[u64]| {
        judge(exchange, case.level, &reported_over_quic(kinds, None), &talk_page()).outcome
    };
    let by_server = |exchange| outcome(exchange, &[]) <= TestOutcome::Advisory;
    assert_eq!(case.exchanges.iter().filter(|one| by_server(one)).count(), 12);
    let ends = ["reject", "close", "ended"].map(|word| exchange(word, "", ""));
    assert!(ends.iter().all(|end| outcome(end, &[]) == TestOutcome::Pass));
    assert_eq!(out_of_step(&reported_over_quic(&[], Some(0)), &talk_page()), None);
    for ours in [streams::BEYOND_LIMITS, streams::HELD_LARGE, streams::BROKEN_RULES] {
        // exceeding our buffers violates no rule
        let bounded = ours == streams::HELD_LARGE;
        let expected = if bounded { TestOutcome::Inconclusive } else { TestOutcome::Fail };
        for exchange in case.exchanges.iter().chain(&ends) {
            assert_eq!(outcome(exchange, &[ours]), expected, "{}", exchange.name);
        }
        let followed = out_of_step(&reported_over_quic(&[ours], Some(0)), &talk_page());
        assert_eq!(followed.unwrap(), "a valid request on another stream got no complete response");
    }
    let text = seen(&reported_over_quic(&[streams::BEYOND_LIMITS], None));
    assert!(text.starts_with("it exceeded our") && text.ends_with("ended by us"), "{text}");
}

#[test]
fn a_response_to_content_is_a_failure_of_framing() {
    let message = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n";
    let late = "HTTP/1.1 408 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let kind = |sent: &str, received: &str| {
        let steps = vec![Move::Send(sent.as_bytes().to_vec())];
        let talk = Talk { steps, ..talk(received, TalkEnd::Closed, None) };
        FailureKind::new(&talk, &talk_page())
    };
    assert_eq!(kind(message, &format!("{OK}{BAD}")), FailureKind::ContentParsed);
    assert_eq!(kind(message, OK), FailureKind::AnswerClosed);
    assert_eq!(kind(message, &format!("{BAD_OPEN}{OK}")), FailureKind::ContentParsed);
    assert_eq!(kind(message, &format!("{BAD}{OK}")), FailureKind::ContentParsed);
    assert_eq!(kind(message, &format!("{BAD_OPEN}{BAD}")), FailureKind::Refused);
    // an idle connection gets 408 too, and two requests get two responses
    assert_eq!(kind(message, &format!("{OK}{late}")), FailureKind::AnswerClosed);
    assert_eq!(kind(&message.repeat(2), &format!("{OK}{BAD}")), FailureKind::AnswerClosed);
    // a request in valid content is not a request
    let content = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
    let chunk = format!("{:x}\r\n{content}\r\n0\r\n\r\n", content.len());
    let head = "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let inside = format!("{head}{chunk}");
    assert_eq!(kind(&inside, &format!("{OK}{BAD}")), FailureKind::ContentParsed);
    assert_eq!(kind(&inside, OK), FailureKind::AnswerClosed);
}

/// HTTP/2 delimits messages by frames: a refused stream hides no request, and others are served.
#[test]
fn other_streams_are_not_the_content_of_a_refused_one() {
    let both = talk(&format!("{BAD_OPEN}{OK}"), TalkEnd::Open, None);
    assert_eq!(FailureKind::new(&both, &talk_page()), FailureKind::ContentParsed);
    let replies = both.replies.clone().with_frames(Vec::new());
    let over_frames = Talk { replies, ..both };
    assert_eq!(FailureKind::new(&over_frames, &talk_page()), FailureKind::Refused);
}

#[test]
fn an_expectation_of_refusals_only_must_refuse() {
    let must_refuse = |accept: &str| {
        let talk = talk("", TalkEnd::Silent, None);
        let exchange = exchange(accept, "2xx", "");
        judge(&exchange, RequirementLevel::Must, &talk, &talk_page()).must_refuse
    };
    assert!(must_refuse("4xx|reject") && must_refuse("400 close|501"));
    assert!(must_refuse("431") && must_refuse("501|505|414"));
    // these reply to valid requests
    assert!(!must_refuse("416") && !must_refuse("404") && !must_refuse("412|400"));
    assert!(!must_refuse("400|2xx") && !must_refuse("plain") && !must_refuse("5xx"));
}

#[test]
fn a_judgment_names_its_cause_as_data() {
    let cause = |sent: &str, accept: &str, received: &str| {
        let steps = vec![Move::Send(sent.as_bytes().to_vec())];
        let talk = Talk { steps, ..talk(received, TalkEnd::Silent, None) };
        judge(&exchange(accept, "", ""), RequirementLevel::Must, &talk, &talk_page()).cause
    };
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let waits = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n";
    let html = Cause::NoHttp("it does not begin with HTTP/".to_owned());
    let allow = Cause::Missing("allow".to_owned());
    assert_eq!(cause(waits, "2xx", ""), Some(Cause::NoContinue));
    let late = format!("{waits}x");
    assert_eq!(cause(&late, "answered prompt", OK), Some(Cause::NoContinue));
    let silent = "HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(cause(&late, "2xx", silent), Some(Cause::OnlyContinue));
    // the client does not wait for 100 (Continue), or the response also has the wrong status
    assert_eq!(cause(request, "answered prompt", OK), None);
    assert_eq!(cause(&late, "404 prompt", OK), None);
    assert_eq!(cause(request, "2xx", "<html>no status line\r\n\r\n"), Some(html));
    assert_eq!(cause(request, "200 has:Allow", OK), Some(allow));
    assert_eq!(cause(request, "404", OK), None);
    let head = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
    let sized = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let both = |received: &str| {
        let mut replies = Replies::new(&["HEAD".to_owned()]);
        replies.take(received.as_bytes());
        let steps = vec![Move::Send(head.as_bytes().to_vec())];
        let talk = Talk { steps, replies, ..talk("", TalkEnd::Silent, None) };
        judge(&exchange("nothing-more", "", ""), RequirementLevel::Must, &talk, &talk_page()).cause
    };
    assert_eq!(both(sized), Some(Cause::HeadContent));
    assert_eq!(both(&sized.replace("Length: 2", "Length: 0")), None);
    assert_eq!(both(&sized.replace("Content-Length: 2", "A: b")), Some(Cause::HeadContent));
    let failed = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(cause(request, "500 prompt", failed), None);
}

#[test]
fn a_response_to_half_a_request_need_not_end() {
    let unfinished = |sent: &str| {
        let steps = vec![Move::Send(sent.as_bytes().to_vec())];
        let received = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na";
        is_unfinished(&Talk { steps, ..talk(received, TalkEnd::Silent, None) })
    };
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n";
    assert!(unfinished(&format!("{head}abcde")));
    assert!(!unfinished(&format!("{head}a")));
    assert!(!unfinished(&head.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n")));
}

#[test]
fn a_response_after_an_announced_close_counts_as_a_second() {
    let one = |text: &str| {
        let talk = talk(text, TalkEnd::Closed, None);
        Class::parse("one-answer close").unwrap().holds(&talk, &talk_page())
    };
    assert!(one(BAD));
    assert!(!one(&format!("{BAD}{OK}")));
    assert!(!one(&format!("{BAD_OPEN}{OK}")));
}

#[test]
fn a_missing_interim_response_does_not_count_as_a_hang() {
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n";
    let kind = |sent: &str| {
        let steps = vec![Move::Send(sent.as_bytes().to_vec())];
        let talk = Talk { steps, ..talk("", TalkEnd::Silent, None) };
        FailureKind::new(&talk, &talk_page())
    };
    assert_eq!(kind(head), FailureKind::NoContinue);
    assert_eq!(kind(&format!("{head}x")), FailureKind::Hang);
    // it waits before the rest of its steps
    let steps = vec![Move::Send(head.as_bytes().to_vec())];
    let waits = Talk { steps, all_sent: false, ..talk("", TalkEnd::Silent, None) };
    assert!(awaits_continue(&waits) && !lacks_continue(&waits));
    assert_eq!(FailureKind::new(&waits, &talk_page()), FailureKind::NoContinue);
    // the content is held back
    let steps = [head, "x"].map(|part| Move::Send(part.as_bytes().to_vec())).to_vec();
    let held = Talk { steps, sent: head.len() as u64, ..waits.clone() };
    assert!(awaits_continue(&held) && !awaits_continue(&Talk { sent: held.sent + 1, ..held }));
    let mut junk = Talk { end: TalkEnd::Silent, ..waits.clone() };
    junk.replies.take(b"oops\r\n\r\n");
    assert!(junk.replies.junk.is_some() && !awaits_continue(&junk));
    let closed = Talk { end: TalkEnd::Closed, ..waits };
    assert!(!awaits_continue(&closed));
    assert_eq!(kind("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), FailureKind::Hang);
}

#[test]
fn bytes_that_are_no_response_are_not_silence() {
    let steps = || vec![Move::Send(b"GET / HTTP/1.1\r\n\r\n".to_vec())];
    let junk = Talk { steps: steps(), ..talk("oops\r\n\r\n", TalkEnd::Silent, None) };
    assert_eq!(FailureKind::new(&junk, &talk_page()), FailureKind::NoHttp);
    // a reset destroys what the server sent before it
    for (bytes, kind) in
        [("HTTP/1.1 200 OK\r\nA: b", FailureKind::Closed), ("<html>", FailureKind::NoHttp)]
    {
        let end = TalkEnd::Broken(FailureClass::Reset);
        let mut half = Talk { steps: steps(), ..talk(bytes, end, None) };
        half.replies.end();
        assert!(half.replies.junk.is_some());
        assert_eq!(FailureKind::new(&half, &talk_page()), kind);
    }
    let silent = Talk { steps: steps(), ..talk("", TalkEnd::Silent, None) };
    assert_eq!(FailureKind::new(&silent, &talk_page()), FailureKind::Hang);
}

#[test]
fn a_refused_follow_up_shows_unread_content_unless_closed() {
    let kind = |second: &str, end: TalkEnd| {
        FailureKind::new(&talk(&format!("{BAD_OPEN}{second}"), end, Some(1)), &talk_page())
    };
    assert_eq!(kind(BAD_OPEN, TalkEnd::Open), FailureKind::NextRefused);
    assert_eq!(kind(BAD_OPEN, TalkEnd::Closed), FailureKind::BothRefused);
    assert_eq!(kind(BAD, TalkEnd::Open), FailureKind::BothRefused);
}

/// Sends this and judges what is received until the end.
fn ended(sent: &str, accept: &str, received: &str, end: TalkEnd) -> Judgement {
    let steps = vec![Move::Send(sent.as_bytes().to_vec())];
    let talk = Talk { steps, ..talk(received, end, None) };
    judge(&exchange(accept, "", ""), RequirementLevel::Must, &talk, &talk_page())
}

#[test]
fn a_valid_request_with_two_responses_always_fails() {
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let both = format!("{OK}HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let outcome = |content: &str, accept: &str, received: &str| {
        let found = ended(&format!("{head}{content}"), accept, received, TalkEnd::Closed);
        (found.outcome, found.kind)
    };
    let parsed = (TestOutcome::Fail, Some(FailureKind::ContentParsed));
    // the trailer is parsed as the next request
    assert_eq!(outcome("1\r\nx\r\n0\r\nA: b\r\n\r\n", "2xx", &both), parsed);
    assert_eq!(outcome("1\r\nx\r\n0\r\n\r\n", "2xx", &both), parsed);
    assert_eq!(outcome("1\r\nx\r\n0\r\nA: b\r\n\r\n", "2xx", OK).0, TestOutcome::Pass);
    // what follows a message is another one
    assert_eq!(outcome("1\r\nx\r\n0\r\n\r\nNOISE\r\n\r\n", "2xx", &both).0, TestOutcome::Pass);
}

#[test]
fn a_close_before_the_content_and_an_echoed_version_are_causes() {
    let waits = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n";
    let cause = |sent: &str, received: &str| ended(sent, "2xx", received, TalkEnd::Closed).cause;
    assert_eq!(cause(waits, ""), Some(Cause::NoContinue));
    assert_eq!(cause("GET / HTTP/1.1\r\nHost: h\r\n\r\n", ""), None);
    let request = |version: &str| format!("GET / {version}\r\nHost: h\r\n\r\n");
    for version in ["HTTP/9.9", "HTTP/1.1 x", "zzz"] {
        let received = format!("{version} 200 OK\r\n\r\n");
        assert_eq!(cause(&request(version), &received), Some(Cause::EchoedVersion), "{version}");
    }
    // a server that splits only at spaces echoes text from, or up to, the next line
    let tab = "G /\tHTTP/1.1\r\nHost: h:1\r\nA: b\r\n\r\n";
    assert_eq!(cause(tab, "h:1 404 Not Found\r\n\r\n"), Some(Cause::EchoedVersion));
    let bare = "GET / HTTP/1.1\nHost: h\r\n\r\n";
    assert_eq!(cause(bare, "HTTP/1.1\nHost: h 200 OK\r\n\r\n"), Some(Cause::EchoedVersion));
    let content = cause(&request("HTTP/9.9"), "GET / HTTP/9.9 is not valid\r\n\r\n");
    assert!(matches!(content, Some(Cause::NoHttp(_))), "{content:?}");
    let other = cause(&request("HTTP/9.9"), "zzz 200 OK\r\n\r\n");
    assert!(matches!(other, Some(Cause::NoHttp(_))), "{other:?}");
}

#[test]
fn a_request_behind_an_unknown_end_is_parsed_content() {
    let length =
        |text: &str| format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {text}\r\n\r\n");
    let both = format!("{OK}HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let next = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
    let kind = |sent: String| ended(&sent, "400", &both, TalkEnd::Closed).kind;
    assert_eq!(kind(length("x") + next), Some(FailureKind::ContentParsed));
    // two valid requests
    assert_eq!(kind(length("0") + next), Some(FailureKind::AnswerClosed));
    let chunked = |field: &str, version: &str| {
        let head = format!("POST / HTTP/{version}\r\nHost: h\r\n{field}");
        head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next
    };
    // the connection must end after these, because parsers find different ends
    let both = chunked("Content-Length: 5\r\n", "1.1");
    assert_eq!(kind(both), Some(FailureKind::ContentParsed));
    assert_eq!(kind(chunked("", "1.0")), Some(FailureKind::ContentParsed));
    assert_eq!(kind(chunked("", "1.1")), Some(FailureKind::AnswerClosed));
}

#[test]
fn the_order_of_responses_does_not_depend_on_support_for_head() {
    let cases = crate::catalogue::cases().unwrap();
    let exchange = &cases.iter().find(|case| case.id == "S-43").unwrap().exchanges[0];
    let page = talk_page();
    let outcome = |received: String| {
        let mut replies = Replies::new(&exchange.methods);
        replies.take(received.as_bytes());
        let talk = Talk { replies, ..talk(&received, TalkEnd::Open, None) };
        judge(exchange, RequirementLevel::Must, &talk, &page).outcome
    };
    let head = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(outcome(format!("{OK}{}{OK}", head("200 OK"))), TestOutcome::Pass);
    for status in ["404 Not Found", "405 Method Not Allowed", "501 Not Implemented"] {
        assert_eq!(outcome(format!("{OK}{}{OK}", head(status))), TestOutcome::Advisory, "{status}");
    }
    assert_eq!(outcome(format!("{OK}{}{BAD_OPEN}", head("200 OK"))), TestOutcome::Fail);
}

#[test]
fn a_pipelined_request_without_a_response_hangs() {
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let kind = |sent: &str, end| ended(sent, "404", OK, end).kind;
    assert_eq!(kind(&get.repeat(2), TalkEnd::Silent), Some(FailureKind::NextHangs));
    // the server may close the connection instead, and needs not respond to an invalid request
    assert_eq!(kind(&get.repeat(2), TalkEnd::Closed), Some(FailureKind::AnswerClosed));
    assert_eq!(kind(&(get.to_owned() + "x\r\n\r\n"), TalkEnd::Silent), Some(FailureKind::Answer));
}

#[test]
fn an_announced_close_ends_the_connection() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1x\r\n\r\nx";
    let parting = OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let kind = |received: &str| ended(post, "400", received, TalkEnd::Open).kind;
    assert_eq!(kind(&parting), Some(FailureKind::AnswerClosed));
    assert_eq!(kind(OK), Some(FailureKind::Answer));
}

#[test]
fn several_refusals_of_one_request_desynchronize_the_connection() {
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let kind = |sent: &str, received: &str, end| {
        let steps = vec![Move::Send(sent.as_bytes().to_vec())];
        let talk = Talk { steps, ..talk(received, end, Some(2)) };
        judge(&exchange("4xx", "", ""), RequirementLevel::Must, &talk, &talk_page()).kind
    };
    let thrice = BAD_OPEN.repeat(3);
    assert_eq!(kind(get, &thrice, TalkEnd::Open), Some(FailureKind::OutOfStep));
    // one refusal for each request
    assert_eq!(kind(&get.repeat(2), &thrice, TalkEnd::Open), Some(FailureKind::NextRefused));
    assert_eq!(kind(get, &thrice, TalkEnd::Closed), Some(FailureKind::BothRefused));
}

#[test]
fn requests_after_an_announced_close_may_be_ignored() {
    let cases = crate::catalogue::cases().unwrap();
    let exchanges = &cases.iter().find(|case| case.id == "B-10").unwrap().exchanges;
    let name = "a request after an underscore in Content-Length";
    let exchange = exchanges.iter().find(|one| one.name == name).unwrap();
    let parting = OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let outcome = |received: String| {
        let at = |seconds, what| TalkEvent { at: Nanos::from_secs(seconds), what };
        let events = vec![at(0, What::Sent(1)), at(0, What::Received(1))];
        let talk = Talk { events, ..talk(&received, TalkEnd::Silent, None) };
        judge(exchange, RequirementLevel::Must, &talk, &talk_page()).outcome
    };
    assert_eq!(outcome(parting.repeat(2)), TestOutcome::Alternative);
    assert_eq!(outcome(parting.clone()), TestOutcome::Alternative);
    // the second request is parsed as content
    assert_eq!(outcome(OK.to_owned()), TestOutcome::Fail);
}

#[test]
fn a_follow_up_that_is_joined_to_unread_bytes_is_parsed_content() {
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother";
    let received = format!("{OK}{page}");
    let kind = |sent: &str, received: &str| {
        let steps = vec![Move::Send(sent.as_bytes().to_vec())];
        let talk = Talk { steps, ..talk(received, TalkEnd::Open, Some(1)) };
        judge(&exchange("4xx", "", ""), RequirementLevel::Must, &talk, &talk_page()).kind
    };
    let post =
        |length: &str| format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\nx");
    assert_eq!(kind(&post("0_1"), &received), Some(FailureKind::ContentParsed));
    assert_eq!(kind(&post("1"), &received), Some(FailureKind::ContentParsed));
    // nothing of it can be left, or another response was received
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(kind(get, &received), Some(FailureKind::OutOfStep));
    assert_eq!(kind(&post("1"), &format!("{received}{page}")), Some(FailureKind::OutOfStep));
}

#[test]
fn frames_after_the_method_of_the_preface_are_http2() {
    let goaway = "\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
    let speaks = |sent: &str| {
        let steps = vec![Move::Send(sent.as_bytes().to_vec())];
        speaks_http2(&Talk { steps, ..talk(goaway, TalkEnd::Closed, None) })
    };
    assert!(speaks("PRI /page HTTP/1.1\r\n\r\n") && !speaks("GET / HTTP/1.1\r\n\r\n"));
}
