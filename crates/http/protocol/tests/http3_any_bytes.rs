//! Bytes that no server should send, made at random and kept from the fuzzer.

#[path = "http3_checks/mod.rs"]
mod checks;

use proptest::prelude::*;
use std::path::Path;

/// Generates one part: a stream, its kind, and a frame of any type, with a length that may be
/// wrong.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let payload = proptest::collection::vec(any::<u8>(), 0..40);
    let stream = prop_oneof![Just(0u8), Just(4), Just(8), Just(3), Just(7), Just(11), 0u8..32];
    let kind = prop_oneof![4 => Just(5u8), 1 => 0u8..5];
    (stream, kind, 0u8..16, payload, -2isize..3).prop_map(|(stream, what, kind, payload, off)| {
        let length = payload.len().saturating_add_signed(off) as u8;
        let frame = [vec![kind, length], payload].concat();
        [vec![what << 5 | stream, frame.len() as u8], frame].concat()
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_handled(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        checks::server_bytes(&data);
    }

    #[test]
    fn arbitrary_frames_are_handled(parts in proptest::collection::vec(part(), 0..30), cut in 1u8..80) {
        // a valid start of the control stream, because otherwise nothing after it is parsed; and
        // the head of a response
        let begun = vec![cut, 5 << 5 | 3, 3, 0, 4, 0, 5 << 5, 5, 1, 3, 0, 0, 0xd9];
        checks::server_bytes(&[vec![begun], parts].concat().concat());
    }
}

#[test]
fn the_corpus_breaks_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/http3");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let path = entry.expect("the corpus can be listed").path();
        checks::server_bytes(&std::fs::read(path).expect("a corpus file can be read"));
        count += 1;
    }
    assert!(count >= 10, "{count} inputs");
}
