//! The rules of `checks` on random bytes and on the fuzz corpora.

#[path = "http1_checks/mod.rs"]
mod checks;

use proptest::prelude::*;
use std::path::Path;

/// Pieces of responses, valid and invalid ones.
const PIECES: &[&str] = &[
    "HTTP/1.1 200 OK",
    "HTTP/1.0 404 Not Found",
    "HTTP/1.1 100 Continue",
    "HTTP/1.1 101 Switching Protocols",
    "HTTP/1.1 204 No Content",
    "HTTP/1.1 304 Not Modified",
    "HTTP/2 200",
    "HTTP/1.1 999",
    "\r\n",
    "\r\n",
    "\r\n\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    "\n\n",
    " ",
    "\t",
    "\0",
    "Content-Length: 5",
    "Content-Length: 0",
    "content-length: 3, 3",
    "Content-Length: 18446744073709551615",
    "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: x",
    "Connection: close",
    "Connection: keep-alive",
    "Set-Cookie: a=b",
    "Server-Timing: db;dur=5",
    "Server-Timing: db;dur=53, x;y",
    "Date: 1",
    "Date: 23",
    "X-Folded: a\r\n  b",
    "Name : value",
    "no field",
    "hello",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "0\r\nTrailer: x\r\n\r\n",
    "3;ext=\"x\"\r\nabc\r\n",
    "ffffffffffffffff\r\n",
    "10000000000000000\r\n",
    ";",
    "0",
    "a\n",
];

/// Complete responses, so that random damage reaches deep into them.
const RESPONSES: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\nT: x\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nDate: now\r\n\r\n",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
    "\r\nHTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
    // two heads that differ in values only, and the field as a trailer
    "HTTP/1.1 200 OK\r\nDate: 1\r\nServer-Timing: db;dur=5\r\nContent-Length: 1\r\n\r\nx",
    "HTTP/1.1 200 OK\r\nDate: 22\r\nServer-Timing: db;dur=66.1, a\r\nContent-Length: 1\r\n\r\nx",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nServer-Timing: total;dur=1\r\n\r\n",
];

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(PIECES).prop_map(|text| text.as_bytes().to_vec());
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let responses = prop::collection::vec(prop::sample::select(RESPONSES), 1..6);
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (responses, damage).prop_map(|(responses, damage)| {
        let mut bytes = responses.concat().into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

fn chunks() -> impl Strategy<Value = Vec<u8>> {
    let chunk = (prop::collection::vec(any::<u8>(), 1..40), any::<bool>(), any::<bool>());
    let encoded = chunk.prop_map(|(data, extension, bare)| {
        let end = if bare { "\n" } else { "\r\n" };
        let extension = if extension { ";a=b" } else { "" };
        [format!("{:x}{extension}{end}", data.len()).as_bytes(), &data, end.as_bytes()].concat()
    });
    let end = prop::sample::select(vec![
        "0\r\n\r\n",
        "00\n\n",
        "0\r\nA: b\r\nC: d\n\r\n",
        "",
        "0",
        "x",
        "0\r\n\r\nmore",
    ]);
    (prop::collection::vec(encoded, 0..8), end)
        .prop_map(|(chunks, end)| [&chunks.concat()[..], end.as_bytes()].concat())
}

fn with_choices(choice: u8, cuts: u8, input: &[u8]) -> Vec<u8> {
    [&[choice, cuts][..], input].concat()
}

proptest! {
    #[test]
    fn random_bytes_are_handled(data in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::response(&data);
        checks::chunked(&data);
        checks::server_timing(&data);
    }

    #[test]
    fn random_timings_are_handled(value in "([a-c,;=.0-9e\"\\\\ -]|dur=){0,60}") {
        checks::server_timing(value.as_bytes());
    }

    #[test]
    fn random_pieces_parse_alike_at_every_cut(choice in any::<u8>(), cuts in any::<u8>(), input in pieces()) {
        checks::response(&with_choices(choice, cuts, &input));
        checks::chunked(&input);
    }

    #[test]
    fn damaged_responses_parse_alike_at_every_cut(choice in any::<u8>(), cuts in any::<u8>(), input in damaged()) {
        checks::response(&with_choices(choice, cuts, &input));
    }

    #[test]
    fn random_chunks_parse_alike_at_every_cut(cuts in any::<u8>(), input in chunks()) {
        checks::chunked(&input);
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        checks::response(&with_choices(0, cuts, &[head, &input[..]].concat()));
    }

    #[test]
    fn fields_of_random_heads_lie_within_them(head in pieces()) {
        let bytes: usize = protocol::http1::fields::fields(&head).map(|(name, value)| name.len() + value.len()).sum();
        prop_assert!(bytes <= head.len());
        for (_, value) in protocol::http1::fields::fields(&head) {
            prop_assert!(!protocol::http1::fields::unfold(value).contains(&b'\n'));
        }
    }
}

/// Returns the inputs of a target, in the order of their names.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let readable = "the corpora are in the repository";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).expect(readable);
    let mut files: Vec<_> = entries.map(|entry| entry.expect(readable).path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    let named = |file: &std::path::PathBuf| {
        (file.display().to_string(), std::fs::read(file).expect(readable))
    };
    files.iter().map(named).collect()
}

fn replay(target: &str, check: fn(&[u8])) {
    for (name, data) in corpus(target) {
        let held = std::panic::catch_unwind(|| check(&data)).is_ok();
        assert!(held, "{name} breaks the rule of target {target}");
    }
}

#[test]
fn corpus_response_replays() {
    replay("response", checks::response);
}

#[test]
fn corpus_chunked_replays() {
    replay("chunked", checks::chunked);
}

#[test]
fn corpus_server_timing_replays() {
    replay("server_timing", checks::server_timing);
}

/// The alarm's corpus contains inputs that must not trigger it; a fuzzer starts from there.
#[test]
fn corpus_alarm_is_silent_until_the_planted_bug_is_met() {
    replay("alarm", checks::alarm);
    for harmful in ["100000000", "fffffffff\r\n", "0000000100000000"] {
        let rang = std::panic::catch_unwind(|| checks::alarm(harmful.as_bytes())).is_err();
        assert!(rang, "{harmful} must ring");
    }
}
