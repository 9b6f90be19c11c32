//! Invariants for arbitrary bytes from a server: shared by the tests and the fuzzer.

use http2::{Request, Session, SessionSettings};

/// Splits the input by its first byte. The session accepts it all or returns the reason; it
/// consumes its input and never refers to content outside it.
pub(crate) fn server_bytes(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let request = Request::from_http1(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "http");
    let request = request.expect("a plain request can be translated");
    let mut session =
        Session::new(&SessionSettings { keeps_heads: true, ..SessionSettings::default() });
    let mut out = Vec::new();
    (0..3).for_each(|_| session.send_request(&request, None, &mut out));
    for piece in bytes.chunks(usize::from(*cut).max(1)) {
        if !takes(&mut session, piece) {
            return;
        }
    }
}

/// Feeds a piece; returns false when the session is unusable.
fn takes(session: &mut Session, piece: &[u8]) -> bool {
    let mut out = Vec::new();
    let mut at = 0;
    while at < piece.len() {
        let Ok(fed) = session.feed(&piece[at..]) else { return false };
        assert!(fed.consumed > 0, "it stands still");
        session.drain(&mut out);
        while let Some(gone) = session.take_gone() {
            assert!(gone.place <= 3);
        }
        if let Some(part) = session.take_part() {
            assert!(part.body.end <= fed.consumed, "content outside of the input");
        }
        at += fed.consumed;
        if session.violation().is_some() {
            return false;
        }
    }
    assert_eq!(at, piece.len());
    true
}
