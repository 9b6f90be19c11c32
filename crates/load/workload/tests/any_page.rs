//! The rules of `checks` on random pages and on the fuzz corpus.

mod checks;

use proptest::prelude::*;
use std::path::Path;

#[test]
fn corpus_page_links() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/page_links");
    let inputs = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut count = 0;
    for entry in inputs {
        let path = entry.expect("the corpus can be listed").path();
        checks::page_links(&std::fs::read(path).expect("a corpus file can be read"));
        count += 1;
    }
    assert!(count >= 5, "{count} inputs");
}

/// Pieces of pages, valid and broken.
const PIECES: &[&str] = &[
    "<a href=",
    "<img src='",
    "<base href=\"",
    "<link rel=icon href=/x",
    "<meta http-equiv=refresh content='0;url=",
    "<script>",
    "</script",
    "<!--",
    "-->",
    "<![CDATA[",
    "<a a=1 a=2 href=x a=3",
    "</a b=c d>",
    ">",
    "/>",
    "'",
    "\"",
    "=",
    " ",
    "/path",
    "http://[::1",
    "//other/x#y",
    "&amp;",
    "&#x110000;",
    "\0",
    "\u{fffd}",
    "<plaintext>",
    "<title></titl",
];

proptest! {
    #[test]
    fn any_pieces_are_a_page(picks in prop::collection::vec(0..PIECES.len(), 0..30)) {
        let text: String = picks.iter().map(|pick| PIECES[*pick]).collect();
        checks::page_links(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_a_page(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::page_links(&bytes);
    }
}
