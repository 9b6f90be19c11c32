//! Streams of gRPC whose messages the script cannot take.

use super::{Files, load};
use crate::support::{Reply, run};

const PROTO: (&str, &str) = (
    "/t/shop.proto",
    r#"syntax = "proto3"; package shop;
    service Cart { rpc Watch(stream Item) returns (stream Total); }
    message Item { string name = 1; int32 count = 2; }
    message Total { int32 total = 1; string note = 2; }"#,
);

const BATCH: Files = &[
    (
        "/t/a.js",
        r#"
        import grpc from 'k6/net/grpc';
        import http from 'k6/http';
        const client = new grpc.Client();
        client.load([], 'shop.proto');
        export default function () {
          client.connect('h:1', { plaintext: true });
          const stream = new grpc.Stream(client, 'shop.Cart/Watch');
          stream.on('data', () => {});
          stream.on('error', (error) => console.log(error.code, error.message));
          for (let i = 0; i < 5; i++) stream.write({ count: 1 });
          http.batch([['GET', 'http://h/'], ['GET', 'http://h/']]);
          console.log('batch');
        }
    "#,
    ),
    PROTO,
];

/// Returns a message of this size, which repeats a field.
fn message_of(field: &str, size: u32) -> String {
    let prefix = [&[0], &size.to_be_bytes()[..]].concat();
    let fields = field.chars().cycle().take(size as usize);
    prefix.into_iter().map(char::from).chain(fields).collect()
}

#[test]
fn messages_that_wait_for_a_batch_are_bounded() {
    let test = load(BATCH).map_err(|error| error.text).unwrap();
    let ran = run(test, &|request| match request.starts_with("POST") {
        true => Reply::Whole("HTTP/2 200\r\n\r\n".to_owned(), message_of("\u{8}\u{1}", 4 << 20)),
        false => Reply::Whole("HTTP/1.1 200 OK\r\n\r\n".to_owned(), String::new()),
    });
    assert_eq!(ran.log(), ["batch", "8 more than 16 MiB of messages waited for the script"]);
    assert_eq!(ran.sent.iter().filter(|(_, text)| text == "cancel 2").count(), 1);
}

const FAULT: Files = &[
    (
        "/t/a.js",
        r#"
        import grpc from 'k6/net/grpc';
        const client = new grpc.Client();
        client.load([], 'shop.proto');
        export default function () {
          client.connect('h:1', { plaintext: true });
          const stream = new grpc.Stream(client, 'shop.Cart/Watch');
          stream.on('data', () => console.log('data'));
          stream.on('error', (error) => console.log(error.code, error.message));
          stream.on('end', () => console.log('end'));
          stream.write({ name: __ENV.HOST + __ITER });
          setTimeout(() => stream.write({ name: 'later' }), 100);
        }
        export const options = { iterations: 3 };
    "#,
    ),
    PROTO,
];

#[test]
fn a_message_that_cannot_be_read_ends_its_stream() {
    let test = load(FAULT).map_err(|error| error.text).unwrap();
    let ran = run(test, &|request| {
        let body = match request.as_bytes().last() {
            // compressed; larger than the maximum; not a message of its type
            Some(b'0') => "\u{1}\0\0\0\u{1}x\0\0\0\0\u{0}",
            Some(b'1') => "\0\u{7f}\0\0\0x",
            _ => "\0\0\0\0\u{1}x",
        };
        Reply::Whole("HTTP/2 200\r\n\r\n".to_owned(), body.to_owned())
    });
    let log = ran.log();
    let expected = [
        "13 a message is compressed, which was not offered",
        "end",
        "8 received message larger than max (2130706432 vs. 4194304)",
        "end",
        "13 failed to unmarshal the received message: ",
        "end",
    ];
    assert_eq!(log.len(), expected.len(), "{log:?}");
    for (line, expected) in log.iter().zip(expected) {
        assert!(line.starts_with(expected), "{log:?}");
    }
    let canceled = ran.sent.iter().filter(|(_, text)| text.starts_with("cancel ")).count();
    assert_eq!(canceled, 3, "{:?}", ran.sent);
}

const SIZES: Files = &[
    (
        "/t/a.js",
        r#"
        import grpc from 'k6/net/grpc';
        const client = new grpc.Client();
        client.load([], 'shop.proto');
        const thrown = (call) => { try { call(); return 'none'; } catch (error) { return error.message; } };
        export default async function () {
          console.log(thrown(() => client.connect('h:1', { maxSendSize: 'x' })));
          console.log(thrown(() => client.connect('h:1', { maxReceiveSize: -1 })));
          client.connect('h:1', { plaintext: true, maxReceiveSize: 10, maxSendSize: 20 });
          const call = async (name) => { const res = await client.asyncInvoke('shop.Cart/Add', { name }); console.log(res.status, res.error && res.error.message); };
          await call('0'.repeat(18));
          await call('0'.repeat(19));
          await call('1');
          const { error } = client.invoke('shop.Cart/Add', { name: '0'.repeat(19) });
          console.log(error.code);
          const stream = new grpc.Stream(client, 'shop.Cart/Watch');
          stream.on('error', (error) => console.log('stream', error.code, error.message));
          stream.write({ name: '0'.repeat(19) });
        }
    "#,
    ),
    (
        "/t/shop.proto",
        r#"syntax = "proto3"; package shop;
        service Cart { rpc Add(Item) returns (Item); rpc Watch(stream Item) returns (stream Item); }
        message Item { string name = 1; }"#,
    ),
];

#[test]
fn sizes_of_messages_are_limited() {
    let test = load(SIZES).map_err(|error| error.text).unwrap();
    let ran = run(test, &|request| {
        let size = if request.ends_with('1') { 11 } else { 10 };
        let head = "HTTP/2 200\r\n\r\ngrpc-status: 0\r\n".to_owned();
        Reply::Whole(head, message_of("\n\u{0}", size))
    });
    assert_eq!(
        ran.log(),
        [
            "invalid grpc.connect() parameters: invalid maxSendSize value: it needs to be an integer",
            "invalid grpc.connect() parameters: invalid maxReceiveSize value: it needs to be a \
             positive integer",
            "0 null",
            "8 trying to send message larger than max (21 vs. 20)",
            "8 received message larger than max (11 vs. 10)",
            "8",
            "stream 8 trying to send message larger than max (21 vs. 20)",
        ]
    );
}
