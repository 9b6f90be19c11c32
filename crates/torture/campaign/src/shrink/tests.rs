use super::*;
use torture::record::sent;

/// Shrinks one write; returns the rest and the number of candidates.
fn shrunk(bytes: &[u8], fails: impl Fn(&[u8]) -> bool) -> (String, Shortest) {
    let moves = vec![Move::Send(bytes.to_vec())];
    let found = shrink(&moves, &mut |moves| Some(fails(&sent(moves))));
    (sent(&found.moves).escape_ascii().to_string(), found)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|here| here == part)
}

/// Returns a request with 4 KiB of random data in its query, including a NUL.
fn random_request() -> Vec<u8> {
    let mut random = units::Seed(7).stream(units::Purpose::Torture, 1);
    let mut data = Vec::new();
    while data.len() < 4_096 {
        data.extend(format!("%{:02X}", 1 + random.below(250)).into_bytes());
    }
    data.splice(1_500..1_500, *b"%00");
    [b"GET /hw?", &data[..], b" HTTP/1.1\r\nHost: localhost\r\nX-One: 1\r\n\r\n"].concat()
}

#[test]
fn random_data_shrinks_to_the_cause() {
    let bytes = random_request();
    let complete = |bytes: &[u8]| {
        bytes.starts_with(b"GET /")
            && has(bytes, b" HTTP/1.1\r\nHost: ")
            && bytes.ends_with(b"\r\n\r\n")
    };
    let (left, found) = shrunk(&bytes, |bytes| complete(bytes) && has(bytes, b"%00"));
    assert_eq!(left, r"GET /%00 HTTP/1.1\r\nHost: \r\n\r\n");
    assert!(found.finished && found.candidates < 250, "{} candidates", found.candidates);
}

/// Pieces of streams are removed completely: a half piece would be parsed with what follows.
#[test]
fn stream_pieces_are_removed_completely() {
    use dialogue::http3::write;
    let bad = write::stream_bytes(0, &[0, 1, 65], true);
    let pieces =
        [write::opening(), write::stream_bytes(4, b"more", false), bad.clone(), write::reset(4, 1)];
    let (left, _) = shrunk(&pieces.concat(), |bytes| has(bytes, &[0, 1, 65]));
    assert_eq!(left, bad.escape_ascii().to_string());
}

#[test]
fn a_length_boundary_is_found_on_both_sides() {
    let request = |count: usize| {
        [b"GET /x?", &vec![b'q'; count][..], b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat()
    };
    let long = |bytes: &[u8]| bytes.starts_with(b"GET ") && bytes.len() > 1_000;
    let (left, found) = shrunk(&request(5_000), long);
    assert!(left.len() < 1_030, "{left}");
    let [boundary] = &found.boundaries[..] else { panic!("{:?}", found.boundaries) };
    assert_eq!((boundary.what.as_str(), boundary.passes + 1), ("the first line", boundary.fails));
    assert!(found.candidates < 120, "{} candidates", found.candidates);
}

#[test]
fn content_length_stays_correct() {
    let body = [vec![1; 300], b"boom".to_vec(), vec![2; 300]].concat();
    let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len());
    let whole = |bytes: &[u8]| {
        let length = cut::has_right_length(&[Move::Send(bytes.to_vec())]);
        length && has(bytes, b"boom") && bytes.starts_with(b"POST ")
    };
    let (left, _) = shrunk(&[head.as_bytes(), &body].concat(), whole);
    assert!(left.ends_with(r"Content-Length:4\r\n\r\nboom"), "{left}");
}

#[test]
fn unneeded_requests_lines_and_pauses_are_removed() {
    let bytes = |text: &str| Move::Send(text.as_bytes().to_vec());
    let moves = vec![
        bytes("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"),
        Move::Pause(Nanos::from_secs(8)),
        bytes("GET /b HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\nGET /c HTTP/1.1\r\n\r\n"),
        Move::HalfClose,
    ];
    let slow = |moves: &[Move]| {
        let pause =
            moves.iter().any(|step| matches!(step, Move::Pause(span) if span.0 > 1_500_000_000));
        Some(pause && has(&sent(moves), b"X:"))
    };
    let found = shrink(&moves, &mut { slow });
    assert_eq!(found.moves, [Move::Pause(Nanos::from_secs(2)), bytes("X:")]);
}

#[test]
fn a_search_ends_with_its_budget_and_keeps_its_result() {
    let bytes = random_request();
    let mut left = 6;
    let moves = [Move::Send(bytes.clone())];
    let found = shrink(&moves, &mut |moves| {
        left -= 1;
        (left > 0).then(|| has(&sent(moves), b"%00"))
    });
    assert!(!found.finished && sent(&found.moves).len() < bytes.len());
    assert!(has(&sent(&found.moves), b"%00"));
}

#[test]
fn the_smallest_set_keeps_its_order() {
    let all: Vec<u32> = (0..32).collect();
    for wanted in [vec![31], vec![0], vec![3, 17], vec![0, 15, 16, 31]] {
        let mut asked = 0;
        let kept = fewest(&all, &mut |some| {
            asked += 1;
            Some(wanted.iter().all(|one| some.contains(one)))
        });
        assert_eq!(kept, wanted);
        assert!(asked < 80, "{asked} for {wanted:?}");
    }
    assert_eq!(fewest(&all, &mut |_| Some(true)), Vec::<u32>::new());
    assert_eq!(fewest(&all, &mut |_| None).len(), 32);
}

#[test]
fn an_escape_is_kept_or_removed_completely() {
    let (_, found) = shrunk(b"a%00b", |some| some.contains(&b'0'));
    assert_eq!(sent(&found.moves), b"%00");
    let (_, found) = shrunk(b"a%00b0", |some| some.contains(&b'0'));
    assert_eq!(sent(&found.moves).len(), 1);
}

proptest::proptest! {
    #[test]
    fn the_shrunk_form_fails_and_is_not_longer(
        bytes in proptest::collection::vec(0u8..=255, 1..300),
        part in 0usize..300,
    ) {
        let wanted = bytes[part % bytes.len()];
        let (_, found) = shrunk(&bytes, |some| some.contains(&wanted));
        // an escape stays or goes as a whole
        let left = sent(&found.moves);
        let escape = left.len() == 3 && left[0] == b'%' && left[1..].iter().all(u8::is_ascii_hexdigit);
        assert!(left == [wanted] || escape && left.contains(&wanted), "{left:?} for {wanted}");
    }
}
