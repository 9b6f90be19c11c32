use crate as tcp;

mod any;
mod bulk;
mod edges;
mod losses;
mod scripts;
mod uploads;
mod world;

/// The inputs found by the fuzzer, and its seeds.
#[test]
fn the_corpus_does_no_harm() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/corpus/tcp");
    let files = std::fs::read_dir(corpus).expect("the corpus is part of the repository");
    let mut count = 0;
    for file in files.flatten() {
        any::packets(&std::fs::read(file.path()).expect("a file of the corpus"));
        count += 1;
    }
    assert!(count > 0);
}
