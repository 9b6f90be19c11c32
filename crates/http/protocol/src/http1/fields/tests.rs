use super::*;

const HEAD: &[u8] = b"HTTP/1.1 302 Found\r\nServer: a:b\r\nset-cookie: x=1; Path=/\r\nLOCATION:  /next \t\r\n\
    Empty:\r\nContent-Encoding : gzip\r\nFolded: one\r\n\t two\r\n  three\r\nno field\r\n: no name\r\nSet-Cookie: y=2, z\r\nBytes: \xff\xfe\r\n\r\nBody: not a field\r\n";

fn shown(head: &[u8]) -> Vec<String> {
    fields(head)
        .map(|(name, value)| format!("{}|{}", name.escape_ascii(), value.escape_ascii()))
        .collect()
}

#[test]
fn fields_are_ordered_until_the_empty_line() {
    let wanted = [
        "Server|a:b",
        "set-cookie|x=1; Path=/",
        "LOCATION|/next",
        "Empty|",
        "Content-Encoding|gzip",
        "Folded|one\\r\\n\\t two\\r\\n  three",
        "Set-Cookie|y=2, z",
        "Bytes|\\xff\\xfe",
    ];
    assert_eq!(shown(HEAD), wanted);
}

#[test]
fn bare_line_feeds_end_lines_too() {
    let crs_removed: Vec<u8> = HEAD.iter().copied().filter(|byte| *byte != b'\r').collect();
    let wanted: Vec<String> = shown(HEAD).iter().map(|field| field.replace("\\r", "")).collect();
    assert_eq!(shown(&crs_removed), wanted);
}

#[test]
fn names_are_found_in_any_case() {
    assert_eq!(find(HEAD, "server"), Some(&b"a:b"[..]));
    assert_eq!(find(HEAD, "serve"), None);
    assert_eq!(find(HEAD, "body"), None, "behind the head");
    assert_eq!(location(HEAD), Some(&b"/next"[..]));
    assert_eq!(content_encoding(HEAD).as_deref(), Some(&b"gzip"[..]));
    assert_eq!(set_cookies(HEAD).collect::<Vec<_>>(), [&b"x=1; Path=/"[..], b"y=2, z"]);
    assert_eq!(all(HEAD, "EMPTY").collect::<Vec<_>>(), [b""]);
}

#[test]
fn a_folded_value_becomes_one_line() {
    let folded = find(HEAD, "folded").unwrap();
    assert_eq!(&*unfold(folded), b"one two three");
    assert!(matches!(unfold(b"plain"), Cow::Borrowed(b"plain")));
}

#[test]
fn heads_cut_anywhere_give_no_more_than_they_hold() {
    for cut in 0..HEAD.len() {
        let head = &HEAD[..cut];
        for (name, value) in fields(head) {
            assert!(head.as_ptr_range().contains(&name.as_ptr()) && !name.is_empty());
            assert!(value.len() < cut);
        }
        assert!(shown(head).len() <= shown(HEAD).len());
    }
    assert_eq!(shown(b""), Vec::<String>::new());
    assert_eq!(shown(b"\r\n\r\nA: b"), Vec::<String>::new());
}

#[test]
fn several_content_encoding_fields_are_one_list() {
    let coding = |head: &'static [u8]| content_encoding(head).map(|it| it.into_owned());
    assert_eq!(coding(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), None);
    let head =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nA: b\r\ncontent-encoding: br, zstd\r\n\r\n";
    assert_eq!(coding(head).as_deref(), Some(&b"gzip, br, zstd"[..]));
}

#[test]
fn list_elements_are_trimmed_and_empty_ones_left_out() {
    let elements: Vec<&[u8]> = list(b" a,,b c ,\t\r\n d, ,").collect();
    assert_eq!(elements, [&b"a"[..], b"b c", b"d"]);
    assert_eq!(list(b"").count(), 0);
}
