//! Bytes that no server should send: nothing panics, and nothing is consumed twice.

use super::*;
use proptest::prelude::*;

/// One frame of any kind.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = proptest::collection::vec(any::<u8>(), 0..40);
    (0u8..12, any::<u8>(), 0u8..8, payload, -2isize..3).prop_map(
        |(kind, flags, stream, payload, off)| {
            let length = payload.len().saturating_add_signed(off);
            let mut bytes =
                vec![0, (length >> 8) as u8, length as u8, kind, flags, 0, 0, 0, stream];
            bytes.extend(payload);
            bytes
        },
    )
}

/// Feeds the bytes in pieces, as an engine would, until the session is of no use.
fn survives(bytes: &[u8], cut: usize) {
    let mut session = Session::new(&Settings { keeps_heads: true, ..Settings::default() });
    let mut out = Vec::new();
    (0..3).for_each(|_| session.ask(&get(), None, &mut out));
    for piece in bytes.chunks(cut.max(1)) {
        let mut at = 0;
        while at < piece.len() {
            let Ok(fed) = session.feed(&piece[at..]) else { return };
            assert!(fed.consumed > 0);
            session.drain(&mut out);
            while session.take_gone().is_some() {}
            if let Some(part) = session.take_part() {
                assert!(part.body.end <= fed.consumed);
            }
            at += fed.consumed;
            if session.violation().is_some() {
                return;
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 1usize..50) {
        survives(&bytes, cut);
    }

    #[test]
    fn any_frames(frames in proptest::collection::vec(frame(), 0..20), cut in 1usize..50) {
        // an empty SETTINGS frame first, or nothing that follows is looked at
        let settings = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
        survives(&[vec![settings], frames].concat().concat(), cut);
    }
}
