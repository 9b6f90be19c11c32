//! Invariants for arbitrary bytes from a server.

use conduit::streams::{PieceKind, put_code, put_data};
use protocol::http3::{Coded, Session, SessionSettings};

/// Passes arbitrary bytes from a server to a session. The first byte is the size of the pieces in
/// which they are passed. The rest is a sequence of parts: a byte for the stream and the kind, one
/// for the length, and the stream's data. The session accepts them all or returns the reason; it
/// consumes its input and never refers to content outside it.
pub(crate) fn server_bytes(data: &[u8]) {
    let Some((cut, rest)) = data.split_first() else { return };
    let fields: [(&[u8], &[u8]); 2] = [(b":method", b"GET"), (b":path", b"/")];
    let request = Coded::new(fields.into_iter(), None);
    let mut session =
        Session::new(&SessionSettings { keeps_heads: true, ..SessionSettings::default() });
    let mut out = Vec::new();
    session.start(&mut out);
    (0..3).for_each(|_| session.send_request(&request, Some("a=b"), &mut out));
    let input = pieces(rest);
    for piece in input.chunks(usize::from(*cut).max(1)) {
        if !takes(&mut session, piece) {
            return;
        }
    }
}

/// Returns the driver's pieces around a server's bytes.
fn pieces(mut rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let [what, length, after @ ..] = rest {
        let (bytes, later) = after.split_at(after.len().min(usize::from(*length)));
        let stream = u64::from(what & 0x1f);
        match what >> 5 {
            0 => put_code(&mut out, PieceKind::Reset, stream, Some(u64::from(*length) + 0x100)),
            1 => put_code(&mut out, PieceKind::Stop, stream, Some(u64::from(*length) + 0x100)),
            2 => put_code(&mut out, PieceKind::Opened, stream, None),
            3 | 4 => put_data(&mut out, stream, bytes, true),
            _ => put_data(&mut out, stream, bytes, false),
        }
        rest = if what >> 5 < 3 { after } else { later };
    }
    out
}

/// Feeds a piece; returns false when the session is unusable.
fn takes(session: &mut Session, piece: &[u8]) -> bool {
    let mut out = Vec::new();
    let mut at = 0;
    while at < piece.len() {
        let Ok(fed) = session.feed(&piece[at..], &mut out) else { return false };
        assert!(fed.consumed > 0, "it stands still");
        while let Some(gone) = session.take_gone() {
            assert!(gone.place <= 3);
        }
        if let Some(part) = session.take_part() {
            assert!(part.body.end <= fed.consumed, "content outside of the input");
        }
        while let Some(place) = session.take_opened() {
            assert!(place <= 3);
        }
        assert!(session.outstanding() <= 3);
        at += fed.consumed;
    }
    true
}
