//! Replays the corpus of the fuzz target `websocket`, and bytes drawn at random.

mod checks;

use proptest::prelude::*;
use std::path::Path;

#[test]
fn the_corpus_is_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/websocket");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        checks::session(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 8, "{count} inputs");
}

proptest! {
    #[test]
    fn any_bytes_mean_the_same_however_they_are_cut(
        data in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(0x81), Just(0x01), Just(0x80), Just(0x82), Just(2)], 0..200,
        ),
    ) {
        checks::session(&data);
    }
}
