//! The rules of `checks` on random bytes and on the fuzz corpora.

mod checks;

use proptest::prelude::*;
use std::path::Path;

/// Replays `fuzz/corpus/<target>`; returns the number of inputs.
fn replay(target: &str, check: fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
    let inputs = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let paths: Vec<_> =
        inputs.map(|entry| entry.expect("the corpus can be listed").path()).collect();
    for path in &paths {
        check(&std::fs::read(path).expect("a corpus file can be read"));
    }
    paths.len()
}

#[test]
fn the_corpus_of_url_lists_breaks_nothing() {
    assert!(replay("url_list", checks::url_list) >= 5);
}

#[test]
fn the_corpus_of_plans_breaks_nothing() {
    assert!(replay("plan_file", checks::plan_file) >= 5);
}

/// Pieces of lists and plans, valid and invalid.
const PIECES: &[&str] = &[
    "http://h/",
    "https://[::1]:8443/a?b=c",
    "POST ",
    "weight=3",
    "weight=-1",
    "weight=nan",
    "body=x",
    "#",
    "\n",
    " ",
    "\t",
    "/relative",
    "ftp://h/",
    "http://",
    "user:pass@",
    "\0",
    "%zz",
    "version = 1\n",
    "version = 2\n",
    "url = \"http://h/\"\n",
    "[load]\n",
    "users = 3\n",
    "users = 0\n",
    "[[targets]]\n",
    "duration = \"10s\"\n",
    "duration = false\n",
    "=",
    "\"",
    "[",
];

proptest! {
    #[test]
    fn any_text_is_a_list_or_an_error(picks in prop::collection::vec(0..PIECES.len(), 0..24)) {
        let text: String = picks.iter().map(|pick| PIECES[*pick]).collect();
        checks::url_list(text.as_bytes());
        checks::plan_file(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_a_list_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        checks::url_list(&bytes);
        checks::plan_file(&bytes);
    }
}
