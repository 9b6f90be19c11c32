use super::*;
use crate::judge::TestOutcome;
use conduit::OpenOptions;
use dialogue::replies::Replies;
use dialogue::talk::TalkEvent;
use sample::FailureClass;
use units::Nanos;

fn script() -> TalkScript {
    TalkScript {
        peer: Peer::Tcp("127.0.0.1:8080".parse().unwrap()),
        options: OpenOptions { nodelay: true, ..OpenOptions::default() },
        tls_name: None,
        protocol: Default::default(),
        start: Nanos::ZERO,
        steps: vec![
            Move::Send(b"POST /{x} HTTP/1.1\r\n\0\xff".to_vec()),
            Move::Pause(Nanos::from_secs(5)),
            Move::Send(vec![b'a'; 100]),
            Move::Await(Awaited::Interim),
            Move::Await(Awaited::Response),
            Move::StopReading,
            Move::Sip(1024),
            Move::Renegotiate,
            Move::Read,
            Move::HalfClose,
            Move::Await(Awaited::End),
            Move::Await(Awaited::SocketEnd),
            Move::Reset,
            Move::Close,
        ],
        methods: vec!["POST".into(), "GET".into()],
        deadline: Nanos::from_secs(7),
        follow_up: Some(b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        grace: Nanos::from_millis(60),
        linger: Nanos::from_secs(2),
        hold: true,
        probe: false,
    }
}

fn transcript() -> Transcript {
    let script = script();
    let raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhijunk";
    let mut replies = Replies::new(&script.methods);
    replies.take(raw);
    let event = |at: u64, what: What| TalkEvent { at: Nanos(at), what };
    let talk = Talk {
        start: Nanos::ZERO,
        connected: Some(Nanos(10)),
        over: Nanos::from_secs(1),
        end: TalkEnd::Broken(FailureClass::Reset),
        replies,
        steps: Vec::new(),
        before_follow_up: Some(1),
        sent: 122,
        received: raw.len() as u64,
        raw: raw.to_vec(),
        events: vec![
            event(10, What::Connected),
            event(20, What::Sent(122)),
            event(30, What::Received(25)),
            event(40, What::Received(42)),
            event(45, What::HalfClosed),
            event(50, What::Broken(FailureClass::Reset)),
        ],
        all_sent: true,
    };
    Transcript {
        loadstone: "0.1.0".into(),
        target: "http://127.0.0.1:8080/hw".into(),
        case: "S-30".into(),
        version: 2,
        name: "both\nlengths".into(),
        attempt: 3,
        began_unix_ns: 1_763_790_000_123_456_789,
        plain: Plain { status: 200, body_len: 2, digest: Some([7; 32]), outside: None },
        script,
        talk,
        judgement: Judgement {
            outcome: TestOutcome::Fail,
            seen: "200, then reset".into(),
            expected: "400".into(),
            why: "the standard requires a different response".into(),
            ..Judgement::default()
        },
    }
}

#[test]
fn a_transcript_is_readable_text() {
    insta::assert_snapshot!(write(&transcript()));
}

#[test]
fn written_data_is_parsed_back() {
    let kept = transcript();
    let text = write(&kept);
    let again = read(&text).unwrap();
    assert_eq!(write(&again), text);
    assert_eq!(again.script.steps, kept.script.steps);
    assert_eq!(again.talk.replies.responses, kept.talk.replies.responses);
    assert_eq!(again.talk.replies.junk, kept.talk.replies.junk);
    assert_eq!((again.talk.raw, again.talk.end), (kept.talk.raw, kept.talk.end));
    assert_eq!(again.plain, kept.plain);
}

#[test]
fn a_receive_buffer_size_is_restored() {
    let mut kept = transcript();
    kept.script.options.recv_buffer = Some(4_096);
    let text = write(&kept);
    assert!(text.contains("\nreceive-buffer 4096\n"), "{text}");
    assert_eq!(read(&text).unwrap().script.options, kept.script.options);
}

#[test]
fn plaintext_is_recorded_separately_with_tls() {
    let mut kept = transcript();
    kept.script.tls_name = Some("example.org".into());
    let text = write(&kept);
    assert!(text.contains("at 30 received 25 \n") && text.contains("\nplaintext HTTP/1.1 100"));
    assert_eq!(read(&text).unwrap().talk.raw, kept.talk.raw);
}

#[test]
fn errors_are_reported_with_their_line() {
    let text = write(&transcript());
    let changed = |from: &str, to: &str| read(&text.replace(from, to)).unwrap_err();
    let table = [
        (
            changed("loadstone.wire/1", "loadstone.wire/9"),
            "not loadstone.wire/1: it was recorded by another version",
        ),
        (changed("case S-30 2 3", "case S-30 x 3"), "line 4: \"x\" is not a number"),
        (changed("step close", "step jump"), "\"jump\" is not a step"),
        (changed("peer 127.0.0.1:8080", "peer nowhere"), "not an address with a port"),
        (changed("outcome fail\n", ""), "no line `outcome`: it is incomplete"),
        (changed("outcome fail", "outcome bad"), "\"bad\" is not an outcome"),
        (changed("at 20 sent", "at 20 flew"), "is not an event"),
        (changed("hold yes", "hold on"), "neither yes nor no"),
        (read("").unwrap_err(), "it is empty"),
    ];
    for (error, part) in table {
        assert!(error.contains(part), "{error}: {part}");
    }
}

proptest::proptest! {
    #[test]
    fn no_file_panics(
        lines in proptest::collection::vec(0usize..200, 0..20),
        cut in 0usize..4_000,
        junk in ".{0,40}",
    ) {
        let text = write(&transcript());
        let known: Vec<&str> = text.lines().collect();
        let mixed: Vec<&str> = lines.iter().map(|line| known[line % known.len()]).collect();
        read(&format!("{FIRST_LINE}\n{}\n{junk}", mixed.join("\n"))).ok();
        read(&text[..cut.min(text.len())]).ok();
    }
}

#[test]
fn single_bytes_without_pauses_are_one_entry() {
    let bytes = |count| vec![Move::Send(vec![b'a']); count];
    let found = pauses(&bytes(1_000));
    assert_eq!(found, [SentPause { after: 1, other_action: true, ..SentPause::default() }]);
    let span = Nanos::SECOND;
    let both = pauses(&[bytes(3), vec![Move::Pause(span)], bytes(3)].concat());
    let after = both.iter().map(|one| (one.after, one.span, one.other_action));
    assert!(after.eq([(1, Nanos::ZERO, true), (3, span, false), (4, Nanos::ZERO, true)]));
}
