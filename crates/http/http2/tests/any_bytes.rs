//! Bytes that no server should send, made at random and kept from the fuzzer.

mod checks;

use proptest::prelude::*;
use std::path::Path;

/// Generates one frame of any kind, with a length that may be wrong.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = proptest::collection::vec(any::<u8>(), 0..40);
    (0u8..12, any::<u8>(), 0u8..8, payload, -2isize..3).prop_map(
        |(kind, flags, stream, payload, off)| {
            let length = payload.len().saturating_add_signed(off);
            let mut bytes =
                vec![0, (length >> 8) as u8, length as u8, kind, flags, 0, 0, 0, stream];
            bytes.extend(payload);
            bytes
        },
    )
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_handled(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        checks::server_bytes(&data);
    }

    #[test]
    fn arbitrary_frames_are_handled(frames in proptest::collection::vec(frame(), 0..20), cut in 1u8..50) {
        // an empty SETTINGS frame first, or nothing that follows is looked at
        let settings = vec![cut, 0, 0, 0, 4, 0, 0, 0, 0, 0];
        checks::server_bytes(&[vec![settings], frames].concat().concat());
    }
}

#[test]
fn the_corpus_breaks_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/http2");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let path = entry.expect("the corpus can be listed").path();
        checks::server_bytes(&std::fs::read(path).expect("a corpus file can be read"));
        count += 1;
    }
    assert!(count >= 10, "{count} inputs");
}
