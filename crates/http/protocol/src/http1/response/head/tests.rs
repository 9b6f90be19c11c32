use super::*;
use proptest::prelude::*;

const PARSED: &str = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nX-Id: 7\r\n\
    Folded: one\r\n two: three\r\nServer-Timing: db;dur=53\r\nConnection: keep-alive\r\n\
    Content-Length: 13\r\n\r\n";

/// Returns whether the head is like [`PARSED`] with one text replaced by another.
fn with(old: &str, new: &str) -> bool {
    let head = PARSED.replacen(old, new, 1);
    assert_ne!(head, PARSED);
    is_equivalent(PARSED.as_bytes(), head.as_bytes())
}

#[test]
fn values_that_decide_nothing_may_differ() {
    assert!(is_equivalent(PARSED.as_bytes(), PARSED.as_bytes()));
    for (old, new) in [
        ("00:00:00", "00:00:01"),
        ("X-Id: 7", "X-Id: 7000000"),
        ("X-Id: 7", "X-Id:"),
        ("X-Id: 7\r\n", "X-Id: 7\n"),
        ("X-Id: 7", "X-Id: \t\u{e9}"),
        ("one", "another"),
        ("dur=53", "dur=47.25"),
        ("7\r\nFolded: one", "8\r\nFolded: two"),
    ] {
        let head = PARSED.replacen(old, new, 1);
        assert!(is_equivalent(PARSED.as_bytes(), head.as_bytes()), "{new:?}");
        let (one, other) = (parse(PARSED.as_bytes()).unwrap(), parse(head.as_bytes()).unwrap());
        assert_eq!(Known { len: head.len(), ..one }, other, "{new:?}");
    }
}

#[test]
fn other_differences_are_parsed() {
    for (old, new) in [
        ("HTTP/1.1", "HTTP/1.0"),
        ("200", "204"),
        ("OK", "Fine"),
        ("OK", "O:K"),
        ("13", "14"),
        ("13", "13 "),
        ("keep-alive", "close"),
        ("Date", "Data"),
        ("X-Id: 7\r\n", ""),
        ("X-Id: 7\r\n", "X-Id: 7\r\nX-Id: 7\r\n"),
        ("X-Id: 7", "X-Id : 7"),
        ("X-Id: 7", "X-Id: 7\r\n more"),
        ("X-Id: 7", "X-Id: 7\rmore"),
        ("X-Id: 7", "X-Id: \0"),
        ("X-Id: 7", "X-Id: \u{7f}"),
        ("three", "four"),
        ("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ] {
        assert!(!with(old, new), "{new:?}");
    }
    let refused = "HTTP/1.1 200 OK\r\nX: y\r\n\r\n";
    assert!(!is_equivalent(b"", refused.as_bytes()), "nothing was parsed yet");
    assert!(!is_equivalent(refused.as_bytes(), &refused.as_bytes()[..20]));
}

/// Lines of heads; some of them break it.
const LINES: &[&str] = &[
    "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
    "Date: Fri, 02 Jan 1970 00:00:00 GMT\n",
    "X: 1\r\n",
    "X: 1234567\r\n",
    "X : 1\r\n",
    "X:\r\n",
    " a fold\r\n",
    "\tb: fold\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 6\r\n",
    "content-length: 5, 5\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Connection:\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Server-Timing: a;dur=1\r\n",
    "Server-Timing: b\r\n",
    "no field\r\n",
    "X: \0\r\n",
];

fn heads() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let start = prop::sample::select(vec!["HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\n"]);
    let lines = prop::collection::vec(prop::sample::select(LINES), 0..7);
    // the other head has a few lines replaced and a few bytes damaged
    let other =
        prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(LINES)), 0..3);
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..2);
    (start, lines, other, damage).prop_map(|(start, lines, other, damage)| {
        let whole = |lines: &[&str]| format!("{start}{}\r\n", lines.concat()).into_bytes();
        let mut changed = lines.clone();
        for (at, line) in other {
            if !changed.is_empty() {
                let at = at.index(changed.len());
                changed[at] = line;
            }
        }
        let (one, mut two) = (whole(&lines), whole(&changed));
        for (at, byte) in damage {
            let at = at.index(two.len());
            two[at] = byte;
        }
        (one, two)
    })
}

proptest! {
    /// The rule that the cache relies on: a head equals a parsed head if it parses to the same
    /// facts.
    #[test]
    fn similar_heads_parse_to_equal_facts((one, two) in heads()) {
        // a head ends with its first empty line
        let ends = |head: &[u8]| Scan::default().find_end(head) == Some(head.len());
        prop_assume!(ends(&one) && ends(&two));
        if let Ok(known) = parse(&one) && is_equivalent(&one, &two) {
            let wanted = Known { len: two.len(), ..known };
            prop_assert_eq!(parse(&two), Ok(wanted), "{:?}", two.escape_ascii().to_string());
        }
    }

    #[test]
    fn the_common_length_is_counted_right(one in prop::collection::vec(0u8..2, 0..40), other in prop::collection::vec(0u8..2, 0..40)) {
        let plain = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        prop_assert_eq!(common_length(&one, &other), plain);
    }
}
