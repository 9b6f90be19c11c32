//! A WebSocket of a check: the upgrade, and moves in order. Messages that no move waits for are
//! skipped.

use super::ExchangeError;
use plan::HttpVersion;
use protocol::http1::response::ResponseFacts;
use sample::FailureClass;
use websocket::handshake::{ClientError, ClientOffer, read_response};
use websocket::{Masking, SocketEvent, SocketOptions, WebSocket, close};
use workload::AwaitedMessages;

/// Status of a completed upgrade (RFC 9110 section 15.2.2).
const SWITCHING: u16 = 101;
/// Bytes of a skipped message that an error shows.
const SHOWN_MAX: usize = 60;

/// An upgrade to WebSocket, and the moves that follow it.
#[derive(Clone, Debug)]
pub struct SocketTalk {
    /// The request.
    pub(crate) upgrade: Vec<u8>,
    /// Its Sec-WebSocket-Key.
    pub(crate) key: String,
    /// Seed of the keys that mask its frames.
    pub(crate) masks: u64,
    pub(crate) offer: ClientOffer,
    /// At least one; the last one closes the WebSocket, or waits for its end.
    pub(crate) moves: Vec<SocketMove>,
    /// Version of its connection. With HTTP/2 or HTTP/3 it is a stream, which
    /// [`conduit::Peer::Tunnel`] opens.
    pub(crate) version: HttpVersion,
}

/// A move on an open WebSocket.
#[derive(Clone, Debug)]
pub(crate) enum SocketMove {
    Send {
        text: bool,
        payload: Vec<u8>,
    },
    Expect(AwaitedMessages),
    /// Sends a close frame and waits for the server's.
    Close(u16),
    /// Waits for a close frame with this code.
    Closed(u16),
}

#[derive(Debug)]
enum SocketState {
    /// Waits for the whole head of the response, of which this has arrived.
    Upgrade(Vec<u8>),
    Open(Box<WebSocket>),
}

/// Result of a piece of input.
#[derive(Debug)]
pub(super) enum SocketProgress {
    Continues,
    Over,
    /// An ordinary response to the upgrade, of which this has arrived.
    Refused(Vec<u8>),
}

/// The client's side of a talk.
#[derive(Debug)]
pub(super) struct SocketVoice {
    talk: SocketTalk,
    head_max: usize,
    state: SocketState,
    /// The current move, and the number of messages that it still waits for.
    at: usize,
    left: u32,
    /// Head of the 101.
    head: Vec<u8>,
    body_bytes: u64,
    /// Messages that no move waited for, and the start of the last one.
    skipped: u64,
    last_skipped: Vec<u8>,
}

impl SocketVoice {
    pub(super) fn new(talk: SocketTalk, head_max: usize) -> SocketVoice {
        SocketVoice {
            talk,
            head_max,
            state: SocketState::Upgrade(Vec::new()),
            at: 0,
            left: 0,
            head: Vec::new(),
            body_bytes: 0,
            skipped: 0,
            last_skipped: Vec::new(),
        }
    }

    /// Returns the maximum size of the response's head.
    pub(super) fn head_max(&self) -> usize {
        self.head_max
    }

    /// Appends the upgrade request.
    pub(super) fn send_request(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.talk.upgrade);
    }

    /// Processes input; the last expected message becomes the body.
    ///
    /// # Errors
    /// Fails if the talk cannot be continued.
    pub(super) fn process(
        &mut self,
        input: &[u8],
        body: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<SocketProgress, ExchangeError> {
        let SocketState::Upgrade(seen) = &mut self.state else {
            return self.receive_frames(input, body, out);
        };
        seen.extend_from_slice(input);
        loop {
            return match read_response(seen, &self.talk.key, &self.talk.offer) {
                None if seen.len() > self.head_max => {
                    let class = FailureClass::BadFraming;
                    Err(ExchangeError::new(class, class.explain().to_owned()))
                }
                None => Ok(SocketProgress::Continues),
                // an interim response is not the response (RFC 9110 section 15.2)
                Some((size, Err(ClientError::Status(100..200)))) => {
                    seen.drain(..size);
                    continue;
                }
                Some((_, Err(ClientError::Status(_)))) => {
                    Ok(SocketProgress::Refused(std::mem::take(seen)))
                }
                Some((_, Err(error))) => {
                    Err(ExchangeError::new(FailureClass::UpgradeInvalid, error.to_string()))
                }
                Some((size, Ok(_))) => {
                    let rest = seen.split_off(size);
                    self.head = std::mem::take(seen);
                    let masks = Masking::Random(self.talk.masks);
                    let socket = WebSocket::new(&SocketOptions::client(masks));
                    self.state = SocketState::Open(Box::new(socket));
                    self.run_moves(out);
                    self.receive_frames(&rest, body, out)
                }
            };
        }
    }

    fn receive_frames(
        &mut self,
        input: &[u8],
        body: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<SocketProgress, ExchangeError> {
        let mut rest = input;
        while !rest.is_empty() {
            let SocketState::Open(socket) = &mut self.state else { break };
            let received = socket.receive(rest, out).map_err(|violation| {
                ExchangeError::new(FailureClass::MessageProtocol, violation.to_string())
            })?;
            match &received.event {
                SocketEvent::Message { payload, .. } => {
                    let payload = socket.payload(payload, rest).to_vec();
                    self.take_message(payload, body, out);
                }
                SocketEvent::Close { code } => {
                    let code = code.unwrap_or(close::NO_STATUS);
                    return self.take_close(code).map(|()| SocketProgress::Over);
                }
                SocketEvent::Nothing | SocketEvent::Ping | SocketEvent::Pong => {}
            }
            rest = &rest[received.consumed..];
        }
        Ok(SocketProgress::Continues)
    }

    /// Makes moves until one waits for the server.
    fn run_moves(&mut self, out: &mut Vec<u8>) {
        let SocketState::Open(socket) = &mut self.state else { return };
        while let Some(next) = self.talk.moves.get(self.at) {
            match next {
                SocketMove::Send { text, payload } => socket.send(*text, payload, out),
                SocketMove::Expect(awaited) => return self.left = awaited.count,
                SocketMove::Close(code) => return socket.close(Some(*code), "", out),
                SocketMove::Closed(_) => return,
            }
            self.at += 1;
        }
    }

    fn take_message(&mut self, payload: Vec<u8>, body: &mut Vec<u8>, out: &mut Vec<u8>) {
        let awaited = match self.talk.moves.get(self.at) {
            Some(SocketMove::Expect(awaited)) => awaited.takes(&payload),
            _ => false,
        };
        if !awaited {
            self.skipped += 1;
            self.last_skipped = payload;
            self.last_skipped.truncate(SHOWN_MAX);
            return;
        }
        self.body_bytes += payload.len() as u64;
        *body = payload;
        self.left -= 1;
        if self.left == 0 {
            self.at += 1;
            self.run_moves(out);
        }
    }

    fn take_close(&mut self, code: u16) -> Result<(), ExchangeError> {
        let instead = match self.talk.moves.get(self.at) {
            Some(SocketMove::Closed(wanted)) if *wanted != code => format!("not with {wanted}"),
            Some(SocketMove::Expect(_)) => format!("where {}", self.awaited()),
            _ => return Ok(()),
        };
        let text = format!("the server closed the WebSocket with {}, {instead}", named(code));
        Err(ExchangeError::new(FailureClass::SocketClosed, text))
    }

    /// Describes the move that the talk still waits for.
    fn awaited(&self) -> String {
        let number = self.at + 1;
        let skipped = match self.skipped {
            0 => String::new(),
            count => {
                let last = units::quoted(&String::from_utf8_lossy(&self.last_skipped));
                format!(
                    "; of {} that did not match, the last was {last}",
                    units::show::count(count)
                )
            }
        };
        match (&self.state, self.talk.moves.get(self.at)) {
            (SocketState::Upgrade(_), _) => "the response to the upgrade is incomplete".to_owned(),
            (_, Some(SocketMove::Close(_))) => "the server's close frame is missing".to_owned(),
            (_, Some(SocketMove::Closed(code))) => {
                format!("move {number} expects a close frame with {code}")
            }
            _ => format!("move {number} expects a message{skipped}"),
        }
    }

    /// Returns the message for a conversation that took too long.
    pub(super) fn timed_out(&self, within: &str) -> String {
        format!("not complete within {within}: {}", self.awaited())
    }

    /// Returns the failure of a talk that the server ended without a close frame.
    pub(super) fn cut_off_error(&self) -> ExchangeError {
        let text = format!("the connection ended without a close frame: {}", self.awaited());
        ExchangeError::new(FailureClass::ClosedEarly, text)
    }

    pub(super) fn reply(&self) -> (ResponseFacts, Vec<u8>) {
        let facts = ResponseFacts {
            status: SWITCHING,
            minor_version: 1,
            head_bytes: self.head.len() as u64,
            body_bytes: self.body_bytes,
            ..ResponseFacts::default()
        };
        (facts, self.head.clone())
    }
}

/// Formats a close code with its name.
fn named(code: u16) -> String {
    match close::name(code) {
        Some(name) => format!("{code} ({name})"),
        None => code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use websocket::handshake::accept;

    #[derive(Debug)]
    struct Contains(&'static str);

    impl workload::MessageFilter for Contains {
        fn takes(&self, payload: &[u8]) -> bool {
            String::from_utf8_lossy(payload).contains(self.0)
        }
    }

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    fn text(payload: &str) -> SocketMove {
        SocketMove::Send { text: true, payload: payload.into() }
    }

    fn expect(part: &'static str, count: u32) -> SocketMove {
        let filter: std::sync::Arc<dyn workload::MessageFilter> =
            std::sync::Arc::new(Contains(part));
        SocketMove::Expect(AwaitedMessages { filter: Some(filter), count })
    }

    fn opened() -> Vec<u8> {
        let accept = accept(KEY);
        format!(
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        )
        .into_bytes()
    }

    fn frames(messages: &[&str], code: Option<u16>) -> Vec<u8> {
        let (mut server, mut out) = (WebSocket::new(&SocketOptions::server()), Vec::new());
        messages.iter().for_each(|message| server.send(true, message.as_bytes(), &mut out));
        code.iter().for_each(|code| server.close(Some(*code), "", &mut out));
        out
    }

    /// Runs a talk in which the server sends these bytes, piece by piece. Returns `over` or the
    /// error, the body, and the number of frames sent.
    fn run(moves: Vec<SocketMove>, input: &[u8], piece: usize) -> (String, String, usize) {
        let talk = SocketTalk {
            upgrade: b"GET".to_vec(),
            key: KEY.to_owned(),
            masks: 1,
            offer: ClientOffer::default(),
            moves,
            version: HttpVersion::Http11,
        };
        let mut voice = SocketVoice::new(talk, 1 << 10);
        let (mut body, mut out) = (Vec::new(), Vec::new());
        let mut state = String::new();
        for bytes in input.chunks(piece) {
            match voice.process(bytes, &mut body, &mut out) {
                Ok(SocketProgress::Continues) => state = voice.timed_out("1 s"),
                Ok(SocketProgress::Over) => state = format!("over {}", voice.reply().0.status),
                Ok(SocketProgress::Refused(seen)) => state = format!("refused {}", seen.len()),
                Err(trouble) => state = trouble.text,
            }
            if !state.starts_with("not") {
                break;
            }
        }
        let mut server = WebSocket::new(&SocketOptions::server());
        let (mut sent, mut rest) = (0, &out[..]);
        while !rest.is_empty() {
            let received = server.receive(rest, &mut Vec::new()).unwrap();
            sent += usize::from(!matches!(received.event, SocketEvent::Nothing));
            rest = &rest[received.consumed..];
        }
        (state, String::from_utf8(body).unwrap(), sent)
    }

    #[test]
    fn moves_are_made_in_order_for_any_pieces() {
        let moves = || vec![text("a"), expect("b", 2), text("c"), SocketMove::Close(1000)];
        let input = [opened(), frames(&["b1", "x", "b2", "late"], Some(1000))].concat();
        for piece in [1, 7, input.len()] {
            let (state, body, sent) = run(moves(), &input, piece);
            assert_eq!((&*state, &*body, sent), ("over 101", "b2", 3), "pieces of {piece}");
        }
    }

    #[test]
    fn an_unfinished_talk_names_its_move() {
        let skipping = [opened(), frames(&["x", "y"], None)].concat();
        let late = run(vec![expect("b", 1), SocketMove::Close(1000)], &skipping, 500).0;
        let wanted = "not complete within 1 s: move 1 expects a message; of 2 that did not match, \
                      the last was \"y\"";
        assert_eq!(late, wanted);
        let closing = [opened(), frames(&[], Some(1011))].concat();
        let cut = run(vec![text("a"), expect("b", 1), SocketMove::Close(1000)], &closing, 500).0;
        let wanted = "the server closed the WebSocket with 1011 (internal error), where move 2 \
                      expects a message";
        assert_eq!(cut, wanted);
        let other = run(vec![SocketMove::Closed(1000)], &closing, 500).0;
        let wanted = "the server closed the WebSocket with 1011 (internal error), not with 1000";
        assert_eq!(other, wanted);
        assert_eq!(run(vec![SocketMove::Closed(1011)], &closing, 500).0, "over 101");
    }

    #[test]
    fn invalid_upgrades_are_reported() {
        let refused = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
        let moves = || vec![SocketMove::Close(1000)];
        assert_eq!(run(moves(), refused, 500).0, format!("refused {}", refused.len()));
        let wrong = String::from_utf8(opened()).unwrap().replace("Accept: s", "Accept: S");
        let text = run(moves(), wrong.as_bytes(), 500).0;
        assert_eq!(text, "Sec-WebSocket-Accept does not match the key");
        let masked = [opened(), vec![0x81, 0x80, 0, 0, 0, 0]].concat();
        assert!(run(moves(), &masked, 500).0.ends_with("(close code 1002)"));
    }
}
