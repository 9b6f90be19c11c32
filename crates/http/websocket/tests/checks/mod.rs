//! Arbitrary bytes as the input of a session: the same events regardless of how the input is split.

use websocket::deflate::DeflateOffer;
use websocket::{Masking, SocketEvent, SocketOptions, WebSocket};

/// Text or binary, and payload, of each message; then the reason of the failure, if there is one.
type Heard = (Vec<(bool, Vec<u8>)>, usize, Option<&'static str>);

/// Runs a session: the first byte selects role, compression and split; the others are the input.
pub(crate) fn session(data: &[u8]) {
    let Some((choice, input)) = data.split_first() else { return };
    let mut options = match choice & 1 {
        0 => SocketOptions::client(Masking::Random(5)),
        _ => SocketOptions::server(),
    };
    (options.limits.message_max, options.limits.frames_max) = (1 << 16, 64);
    if choice & 2 != 0 {
        options.deflate = DeflateOffer::default().accept().map(|(_, agreed)| agreed);
    }
    let whole = receive_all(&options, input, input.len());
    let cut = receive_all(&options, input, usize::from(choice >> 2) + 1);
    assert_eq!(whole.0, cut.0, "messages");
    assert_eq!((whole.1, whole.2), (cut.1, cut.2), "pongs and failure");
}

fn receive_all(options: &SocketOptions, input: &[u8], cut: usize) -> Heard {
    let mut session = WebSocket::new(options);
    let (mut messages, mut pings, mut out) = (Vec::new(), 0, Vec::new());
    for piece in input.chunks(cut.max(1)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let received = match session.receive(rest, &mut out) {
                Ok(received) => received,
                Err(failure) => return (messages, pings, Some(failure.why)),
            };
            assert!(received.consumed > 0 && received.consumed <= rest.len());
            match &received.event {
                SocketEvent::Message { text, payload, .. } => {
                    messages.push((*text, session.payload(payload, rest).to_vec()));
                }
                SocketEvent::Ping => pings += 1,
                _ => {}
            }
            rest = &rest[received.consumed..];
        }
    }
    (messages, pings, None)
}
