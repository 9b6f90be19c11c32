//! The wire format: prost and our code read each other's output, and hostile bytes end parsing.

use crate::metrics::protobuf::{WireMessage, WireValue, fields};
use prost::Message as _;

/// A message of every kind of field that we write.
#[derive(Clone, PartialEq, prost::Message)]
struct Whole {
    #[prost(uint64, tag = "1")]
    uint: u64,
    #[prost(sint64, tag = "2")]
    sint: i64,
    #[prost(fixed64, tag = "3")]
    fixed: u64,
    #[prost(double, tag = "4")]
    double: f64,
    #[prost(string, tag = "5")]
    string: String,
    #[prost(message, optional, boxed, tag = "6")]
    inner: Option<Box<Whole>>,
    #[prost(uint64, repeated, tag = "70")]
    uints: Vec<u64>,
    #[prost(sint64, repeated, tag = "80")]
    sints: Vec<i64>,
}

#[test]
fn prost_reads_every_kind_of_field() {
    let inner = WireMessage::default().uint(1, 300);
    let written =
        WireMessage::default().uint(1, u64::MAX).sint(2, i64::MIN).fixed(3, 7).double(4, -0.5);
    let written = written.string(5, "a\u{e9}").message(6, inner);
    let written = written.uints(70, [0, 127, 128]).sints(80, [-1, 0, 64]);
    let read = Whole::decode(&written.into_bytes()[..]).unwrap();
    let expected = Whole {
        uint: u64::MAX,
        sint: i64::MIN,
        fixed: 7,
        double: -0.5,
        string: "a\u{e9}".into(),
        inner: Some(Box::new(Whole { uint: 300, ..Whole::default() })),
        uints: vec![0, 127, 128],
        sints: vec![-1, 0, 64],
    };
    assert_eq!(read, expected);
}

#[test]
fn empty_lists_write_nothing() {
    assert_eq!(WireMessage::default().uints(1, []).sints(2, []).into_bytes(), b"");
}

#[test]
fn fields_are_read_as_prost_writes_them() {
    let whole = Whole { uint: 300, fixed: 1, string: "why".into(), ..Whole::default() };
    let bytes = whole.encode_to_vec();
    let read = fields(&bytes).unwrap();
    assert_eq!(
        read,
        [(1, WireValue::Uint(300)), (3, WireValue::Fixed), (5, WireValue::Bytes(b"why"))]
    );
}

#[test]
fn invalid_message_bytes_are_refused() {
    let longer_than_64_bits = [[0x08].as_slice(), &[0xff; 10]].concat();
    for bytes in [
        // a field without its value; a length beyond the end; half a number
        b"\x08".as_slice(),
        b"\x0a\x05abc",
        b"\x09\x01\x02",
        b"\x0d\x01",
        // a group; field 0; a varint that does not end
        b"\x0b",
        b"\x00\x01",
        &longer_than_64_bits,
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ] {
        assert_eq!(fields(bytes), None, "{bytes:02x?}");
    }
    assert_eq!(fields(b"").unwrap(), []);
}
