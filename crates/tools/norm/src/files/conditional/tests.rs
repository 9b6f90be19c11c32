use super::*;
use hyper::header::HeaderValue;
use proptest::prelude::*;

const ETAG: &str = "\"a,b\"";
/// Sun, 06 Nov 1994 08:49:37 GMT
const MODIFIED: u64 = 784_111_777;
const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

/// Fields are `name: value`, separated by `|`.
fn judged(method: &Method, fields: &str) -> &'static str {
    let mut headers = HeaderMap::new();
    for field in fields.split('|').filter(|field| !field.trim().is_empty()) {
        let (name, value) = field.split_once(':').unwrap();
        let name = HeaderName::from_bytes(name.trim().as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
    }
    let now = Validators { etag: ETAG, modified: Some(MODIFIED) };
    match judge(method, &headers, now) {
        PreconditionResult::Go { ranges: true } => "go",
        PreconditionResult::Go { ranges: false } => "whole",
        PreconditionResult::NotModified => "304",
        PreconditionResult::Failed => "412",
    }
}

#[test]
fn tags_decide_by_the_rfc() {
    let table = [
        ("", "go"),
        (r#"if-none-match: "a,b""#, "304"),
        (r#"if-none-match: W/"a,b""#, "304"),
        (r#"if-none-match: "x" , W/"y",,"a,b""#, "304"),
        (r#"if-none-match: "x"|if-none-match: "a,b""#, "304"),
        (r#"if-none-match: *"#, "304"),
        (r#"if-none-match: "a", "b""#, "go"),
        (r#"if-none-match: a,b"#, "go"),
        (r#"if-none-match: "a,b"#, "go"),
        (r#"if-none-match: w/"a,b""#, "go"),
        (r#"if-none-match: "a b", "a,b""#, "go"),
        (r#"if-match: "a,b""#, "go"),
        (r#"if-match: *"#, "go"),
        (r#"if-match: "x", "a,b""#, "go"),
        (r#"if-match: W/"a,b""#, "412"),
        (r#"if-match: "x""#, "412"),
        (r#"if-match:"#, "412"),
        (r#"if-match: "a,b"|if-none-match: "a,b""#, "304"),
        (r#"if-match: "x"|if-none-match: "a,b""#, "412"),
    ];
    for (fields, expected) in table {
        assert_eq!(judged(&Method::GET, fields), expected, "{fields}");
    }
    assert_eq!(judged(&Method::HEAD, "if-none-match: *"), "304");
    assert_eq!(judged(&Method::PUT, "if-none-match: *"), "412");
}

#[test]
fn dates_decide_as_the_rfc_requires() {
    let table = [
        (format!("if-modified-since: {SAME}"), "304"),
        (format!("if-modified-since: {AFTER}"), "304"),
        (format!("if-modified-since: {BEFORE}"), "go"),
        // the two obsolete forms (§5.6.7)
        ("if-modified-since: Sunday, 06-Nov-94 08:49:37 GMT".to_owned(), "304"),
        ("if-modified-since: Sun Nov  6 08:49:37 1994".to_owned(), "304"),
        // no date: ignored
        ("if-modified-since: yesterday".to_owned(), "go"),
        (format!("if-modified-since: {SAME}|if-modified-since: {SAME}"), "go"),
        (format!("if-unmodified-since: {SAME}"), "go"),
        (format!("if-unmodified-since: {AFTER}"), "go"),
        (format!("if-unmodified-since: {BEFORE}"), "412"),
        ("if-unmodified-since: yesterday".to_owned(), "go"),
        // tags go before dates (§13.2.2)
        (format!("if-none-match: \"x\"|if-modified-since: {SAME}"), "go"),
        (format!("if-match: \"a,b\"|if-unmodified-since: {BEFORE}"), "go"),
        (format!("if-unmodified-since: {BEFORE}|if-none-match: *"), "412"),
    ];
    for (fields, expected) in table {
        assert_eq!(judged(&Method::GET, &fields), expected, "{fields}");
    }
    // only GET and HEAD may be spared (§13.1.3)
    let fields = format!("if-modified-since: {SAME}");
    assert_eq!(judged(&Method::PUT, &fields), "whole");
}

#[test]
fn if_range_permits_ranges_only_for_the_same_state() {
    let table = [
        (r#"if-range: "a,b""#.to_owned(), "go"),
        (r#"if-range: W/"a,b""#.to_owned(), "whole"),
        (r#"if-range: "x""#.to_owned(), "whole"),
        (format!("if-range: {SAME}"), "go"),
        (format!("if-range: {BEFORE}"), "whole"),
        (format!("if-range: {AFTER}"), "whole"),
        (r#"if-range: "a,b"|if-range: "a,b""#.to_owned(), "whole"),
    ];
    for (fields, expected) in table {
        assert_eq!(judged(&Method::GET, &fields), expected, "{fields}");
    }
}

#[test]
fn without_a_date_the_date_fields_are_ignored() {
    let mut headers = HeaderMap::new();
    headers.insert(header::IF_MODIFIED_SINCE, HeaderValue::from_static(SAME));
    headers.insert(header::IF_UNMODIFIED_SINCE, HeaderValue::from_static(SAME));
    let now = Validators { etag: ETAG, modified: None };
    assert_eq!(judge(&Method::GET, &headers, now), PreconditionResult::Go { ranges: true });
}

proptest! {
    #[test]
    fn no_list_panics_or_loops(list in prop::collection::vec(any::<u8>(), 0..60)) {
        prop_assert!(Tags(&list).count() <= list.len());
    }

    #[test]
    fn a_tag_is_found_at_any_position(
        before in prop::collection::vec("(W/)?\"[a-z,]{0,4}\"", 0..4),
        after in "[ ,]{0,3}(garbage)?",
    ) {
        let list = format!("{}, {ETAG}{after}", before.join(" ,"));
        prop_assert!(Tags(list.as_bytes()).any(|tag| tag.is(ETAG, Comparison::Strong)));
    }
}
