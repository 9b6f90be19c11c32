use super::*;
use crate::case::Fuzz;
use crate::catalogue;

fn values() -> Values {
    Values { path: "/p".into(), host: "h".into(), post: "/post".into(), ..Values::default() }
}

fn bytes(seed: u64, fuzz: &Fuzz, index: u64) -> Vec<u8> {
    let shot = shot(seed, "F-01", 1, fuzz, index, &values(), "");
    let send = |step: &Move| match step {
        Move::Send(bytes) => bytes.clone(),
        _ => Vec::new(),
    };
    shot.moves.iter().flat_map(send).collect()
}

#[test]
fn an_execution_depends_on_seed_case_and_index_only() {
    for (_, place) in FuzzPlace::ALL {
        let fuzz = Fuzz { place, count: 10, length: 100 };
        let forwards: Vec<Vec<u8>> = (0..10).map(|index| bytes(7, &fuzz, index)).collect();
        let backwards: Vec<Vec<u8>> = (0..10).rev().map(|index| bytes(7, &fuzz, index)).collect();
        assert!(forwards.iter().eq(backwards.iter().rev()), "{place:?}");
        if place != FuzzPlace::Edges {
            let other: Vec<Vec<u8>> = (0..10).map(|index| bytes(8, &fuzz, index)).collect();
            assert_ne!(forwards, other, "{place:?}: the seed changes nothing");
        }
    }
}

#[test]
fn the_bytes_of_a_seed_are_stable() {
    let fuzz = Fuzz { place: FuzzPlace::Query, count: 1, length: 12 };
    let made: Vec<String> =
        (0..4).map(|index| bytes(1, &fuzz, index).escape_ascii().to_string()).collect();
    insta::assert_snapshot!(made.join("\n"));
}

#[test]
fn lengths_are_spread_evenly_below_the_limit() {
    let mut random = Seed(3).stream(Purpose::Torture, 0);
    let lengths: Vec<usize> = (0..2_000).map(|_| classic(&mut random, 100).len()).collect();
    assert!(lengths.iter().all(|length| *length < 100));
    let mean = lengths.iter().sum::<usize>() as f64 / 2_000.0;
    // sd of the mean: 28.9 / sqrt(2,000) = 0.65
    assert!((mean - 49.5).abs() < 4.0, "{mean}");
}

#[test]
fn every_fuzz_case_makes_requests_that_end() {
    for case in catalogue::cases().unwrap() {
        let Some(fuzz) = &case.fuzz else { continue };
        for index in 0..fuzz.count.min(200) {
            let shot = shot(1, &case.id, case.version, fuzz, index, &values(), "");
            assert!(!shot.moves.is_empty() && !shot.methods.is_empty(), "{} {index}", case.id);
        }
    }
}

#[test]
fn a_refusal_of_trailing_bytes_does_not_fail_the_next_request() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let refused = |connection: &str| {
        format!("{ok}HTTP/1.1 400 No\r\nConnection: {connection}\r\nContent-Length: 0\r\n\r\n")
    };
    let judged = |sent: &str, received: &str| {
        let moves = vec![Move::Send(sent.as_bytes().to_vec())];
        let mut talk = judge::tests::talk(received, TalkEnd::Open, Some(1));
        talk.steps.clone_from(&moves);
        let answer = &talk.replies.responses[0];
        let digest = Some(answer.digest);
        let plain = Plain { status: 200, body_len: 2, digest, ..Plain::default() };
        let shot = Shot { moves, methods: vec!["GET".to_owned()], valid: false, follows: true };
        judge(&shot, &talk, &plain).outcome.id()
    };
    let message = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let trailed = format!("{message}\r\n\r\n");
    assert_eq!(judged(&trailed, &refused("close")), "pass");
    assert_eq!(judged(&trailed, &refused("keep-alive")), "fail");
    assert_eq!(judged(message, &refused("close")), "fail");
}
