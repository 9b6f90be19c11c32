//! Effect of a closed connection on a response: a failed write, and truncated TLS.

use super::Notes;
use crate::worker::*;
use crate::{Endpoint, endpoint_key};
use conduit::{Close, IoError, OpenOptions, Peer, Ready, Slot};
use conduit::{TlsError, TlsFactory, TlsSession};
use plan::{Load, Plan, Think};
use sample::{FailureClass, SocketFacts, TlsFacts};
use std::collections::VecDeque;
use url::Url;

const RESET: IoError = IoError::Failed(FailureClass::Reset);
const START: Nanos = Nanos::from_secs(1_000);

/// Connection that the server closes: the number of request bytes that it accepts, and the data
/// that it sends.
struct Ending {
    now: Nanos,
    /// Number of accepted bytes; then a write must wait once, and the next one fails.
    takes: usize,
    waited: bool,
    sends: VecDeque<Result<Vec<u8>, IoError>>,
}

impl Io for Ending {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn open(&mut self, _: Slot, _: &Peer, _: &OpenOptions) -> Result<(), IoError> {
        Ok(())
    }

    fn write(&mut self, _: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let taken = bytes.len().min(self.takes);
        self.takes -= taken;
        match taken {
            0 if !bytes.is_empty() && self.waited => Err(RESET),
            0 if !bytes.is_empty() => Err(IoError::WouldBlock),
            _ => Ok(taken),
        }
    }

    fn read(&mut self, _: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let bytes = self.sends.pop_front().unwrap_or(Err(IoError::WouldBlock))?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn close(&mut self, _: Slot, _: Close) {}

    fn shutdown_write(&mut self, _: Slot) {}

    fn facts(&mut self, _: Slot) -> Option<SocketFacts> {
        None
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        if std::mem::replace(&mut self.waited, true) {
            self.now = self.now.max(until);
        }
        ready.push(Ready { slot: 0, readable: true, writable: true, ended: true });
    }
}

/// Unchanged bytes; `BYE` is a close_notify.
#[derive(Debug, Default)]
struct Bare {
    out: Vec<u8>,
    closed: bool,
}

impl TlsSession for Bare {
    fn feed(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsError> {
        let content = bytes.strip_suffix(b"BYE");
        self.closed |= content.is_some();
        plain.extend_from_slice(content.unwrap_or(bytes));
        Ok(())
    }

    fn send(&mut self, plaintext: &[u8]) {
        self.out.extend_from_slice(plaintext);
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.out);
    }

    fn handshaking(&self) -> bool {
        false
    }

    fn closed(&self) -> bool {
        self.closed
    }

    fn close(&mut self) {}

    fn facts(&self) -> Option<TlsFacts> {
        None
    }
}

pub(super) struct Sessions;

impl TlsFactory for Sessions {
    fn session(&mut self, _: &str) -> Result<Box<dyn TlsSession>, TlsError> {
        // a first flight; the server's reply completes the handshake
        Ok(Box::new(Bare { out: b"hello".to_vec(), closed: false }))
    }
}

/// Returns the outcome of one call: its status, or the reason why it has none.
fn outcome(url: &str, takes: usize, sends: &[Result<&str, IoError>]) -> String {
    let mut plan = Plan::for_url(Url::parse(url).unwrap());
    plan.request.method = "POST".into();
    plan.request.body = Some(vec![b'x'; 1_000]);
    plan.load = Load::Closed { users: 1, think: Think::None, session: None };
    (plan.stop.duration, plan.stop.requests) = (None, Some(1));
    plan.timeouts.call = Nanos::from_millis(100);
    let secure = url.starts_with("https");
    let endpoint = Endpoint {
        key: endpoint_key(&plan.targets[0].url),
        peers: vec![Peer::Tcp(([127, 0, 0, 1], 1).into())],
        tls_name: secure.then(|| "peer.example".to_owned()),
        tunnel: None,
        absolute: false,
    };
    let setup = Setup::new(plan, vec![endpoint], 1, START).unwrap();
    let sends = sends.iter().map(|it| it.map(|text| text.as_bytes().to_vec())).collect();
    let mut io = Ending { now: START, takes, waited: false, sends };
    let tls = secure.then(|| Box::new(Sessions) as Box<dyn TlsFactory + Send>);
    let mut notes = Notes::default();
    drive(&mut Worker::new(Arc::new(setup), 0, tls), &mut io, &mut notes);
    notes.total.counts.conserved().unwrap();
    let failures: Vec<&str> = notes.total.failures.keys().map(|class| class.id()).collect();
    let statuses: Vec<String> = notes.total.status.seen().map(|it| format!("{it:?}")).collect();
    format!("{} {}", statuses.join(" "), failures.join(" "))
}

const EARLY: &str =
    "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno";

/// RFC 9112 section 9.5: data sent by the server before it closes is read, even if the upload
/// fails.
#[test]
fn a_response_before_a_failed_write_is_the_result() {
    let url = "http://peer.example/";
    let (head, end) = EARLY.split_at(40);
    assert_eq!(outcome(url, 300, &[Ok(EARLY), Err(RESET)]), "(413, 1) status");
    assert_eq!(outcome(url, 300, &[Ok(head), Ok(end), Ok("")]), "(413, 1) status");
    assert_eq!(outcome(url, 300, &[Ok(head), Err(RESET)]), " connreset");
    assert_eq!(outcome(url, 300, &[Ok(head), Ok("")]), " connreset");
    assert_eq!(outcome(url, 300, &[Err(RESET)]), " connreset");
    assert_eq!(outcome(url, 300, &[Ok("")]), " connreset");
    // a body delimited by the close is incomplete after a reset
    assert_eq!(outcome(url, 300, &[Ok("HTTP/1.1 413 X\r\n\r\nno"), Ok("")]), " connreset");
}

#[test]
fn a_response_before_a_failed_write_is_the_result_over_tls() {
    let sends = [Err(IoError::WouldBlock), Ok(EARLY), Err(RESET)];
    assert_eq!(outcome("https://peer.example/", 300, &sends), "(413, 1) status");
}

/// RFC 9112 section 9.8: without close_notify a body delimited by the close may be truncated.
#[test]
fn a_body_that_the_close_ends_needs_close_notify() {
    let until_close = |end: &[Result<&str, IoError>]| {
        let sends =
            [&[Err(IoError::WouldBlock), Ok("HTTP/1.1 200 OK\r\n\r\nhalf")][..], end].concat();
        outcome("https://peer.example/", 9_999, &sends)
    };
    assert_eq!(until_close(&[Ok("")]), " closed-early");
    assert_eq!(until_close(&[Ok(" pageBYE")]), "(200, 1) ");
    let whole = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    let sends = [Err(IoError::WouldBlock), Ok(whole), Ok("")];
    assert_eq!(outcome("https://peer.example/", 9_999, &sends), "(200, 1) ");
    let plain = [Ok("HTTP/1.1 200 OK\r\n\r\nhalf"), Ok("")];
    assert_eq!(outcome("http://peer.example/", 9_999, &plain), "(200, 1) ");
}
