use super::*;
use proptest::prelude::*;

/// Formats the range as in Content-Range.
fn ranges_of(field: &str, len: u64) -> String {
    match requested_ranges(field, len) {
        RangeRequest::Whole => "whole".to_owned(),
        RangeRequest::Unsatisfiable => "416".to_owned(),
        RangeRequest::Parts(parts) => {
            let one = |part: &Span| format!("{}-{}", part.start, part.last());
            parts.iter().map(one).collect::<Vec<_>>().join(" ")
        }
    }
}

#[test]
fn ranges_are_parsed_by_the_rfc() {
    let table = [
        // RFC 9110 §14.1.2's own examples, of 10,000 bytes
        ("bytes=0-499", 10_000, "0-499"),
        ("bytes=500-999", 10_000, "500-999"),
        ("bytes=-500", 10_000, "9500-9999"),
        ("bytes=9500-", 10_000, "9500-9999"),
        ("bytes=0-0,-1", 10_000, "0-0 9999-9999"),
        ("bytes= 0-999, 4500-5499, -1000", 10_000, "0-999 4500-5499 9000-9999"),
        ("bytes=500-600,601-999", 10_000, "500-600 601-999"),
        ("bytes=500-700,601-999", 10_000, "500-999"),
        // the unit's case does not matter, other units are unknown
        ("BYTES=1-2", 10, "1-2"),
        ("pages=1-2", 10, "whole"),
        ("bytes", 10, "whole"),
        ("bytes=", 10, "whole"),
        ("", 10, "whole"),
        // beyond the end
        ("bytes=0-99999999999999999999999", 10, "0-9"),
        ("bytes=-99999999999999999999999", 10, "0-9"),
        ("bytes=10-", 10, "416"),
        ("bytes=10-20,30-", 10, "416"),
        ("bytes=99999999999999999999999-", 10, "416"),
        ("bytes=18446744073709551615-18446744073709551615", 10, "416"),
        ("bytes=8-,20-30", 10, "8-9"),
        ("bytes=-0", 10, "416"),
        // nothing to have a part of
        ("bytes=0-", 0, "416"),
        ("bytes=-5", 0, "whole"),
        // no range at all: ignored
        ("bytes=5-2", 10, "whole"),
        ("bytes=5-2,0-1", 10, "whole"),
        ("bytes=a-b", 10, "whole"),
        ("bytes=1", 10, "whole"),
        ("bytes=-", 10, "whole"),
        ("bytes=--1", 10, "whole"),
        ("bytes=+1-2", 10, "whole"),
        ("bytes=1-2 3", 10, "whole"),
        // in the requested order, unless they overlap
        ("bytes=8-9,0-1", 10, "8-9 0-1"),
        ("bytes=8-9,0-1,1-3", 10, "0-3 8-9"),
        ("bytes=0-9,0-9,0-9", 10, "0-9"),
        ("bytes=,,0-1,,", 10, "0-1"),
    ];
    for (field, len, expected) in table {
        assert_eq!(ranges_of(field, len), expected, "{field} of {len}");
    }
}

#[test]
fn too_many_ranges_are_ignored() {
    let field = |count: u64| {
        let specs: Vec<String> = (0..count).map(|k| format!("{}-{}", 2 * k, 2 * k)).collect();
        format!("bytes={}", specs.join(","))
    };
    let RangeRequest::Parts(parts) = requested_ranges(&field(RANGES_MAX as u64), 1_000) else {
        panic!("as many as may be");
    };
    assert_eq!(parts.len(), RANGES_MAX);
    assert_eq!(requested_ranges(&field(RANGES_MAX as u64 + 1), 1_000), RangeRequest::Whole);
}

proptest! {
    #[test]
    fn parts_lie_within_the_file_and_do_not_overlap(field in "(bytes=)?[-0-9, a]{0,40}", len in 0_u64..200) {
        if let RangeRequest::Parts(parts) = requested_ranges(&field, len) {
            prop_assert!(!parts.is_empty() && parts.len() <= RANGES_MAX);
            let mut sorted = parts.clone();
            sorted.sort_by_key(|part| part.start);
            prop_assert!(parts.iter().all(|part| part.len > 0 && part.last() < len));
            prop_assert!(sorted.windows(2).all(|pair| pair[0].last() < pair[1].start));
        }
    }

    #[test]
    fn every_requested_byte_is_sent_once(
        asked in prop::collection::vec((0_u64..60, 0_u64..60), 1..6),
        len in 1_u64..50,
    ) {
        let asked: Vec<(u64, u64)> = asked.iter().map(|(a, b)| (*a.min(b), *a.max(b))).collect();
        let specs: Vec<String> = asked.iter().map(|(a, b)| format!("{a}-{b}")).collect();
        let expected: Vec<u64> = (0..len)
            .filter(|at| asked.iter().any(|(first, last)| (*first..=*last).contains(at)))
            .collect();
        let got = match requested_ranges(&format!("bytes={}", specs.join(",")), len) {
            RangeRequest::Parts(parts) => {
                let mut bytes: Vec<u64> =
                    parts.iter().flat_map(|part| part.start..=part.last()).collect();
                bytes.sort_unstable();
                bytes
            }
            RangeRequest::Unsatisfiable => Vec::new(),
            RangeRequest::Whole => return Err(TestCaseError::fail("well written, yet ignored")),
        };
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn no_field_panics(field in any::<String>(), len in any::<u64>()) {
        requested_ranges(&field, len);
        requested_ranges(&format!("bytes={field}"), len);
    }
}
