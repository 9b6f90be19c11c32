//! The null server: one constant response, as fast as one thread can send it. Measurements against
//! it show the cost of the client.
//!
//! It only searches for the empty line that ends a head: no body, no method, no HEAD. Responses to
//! pipelined requests are sent in batches of up to [`BATCH`].

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::poller::{Interest, Poller, Wake};
use super::slab::{Id, Slab};
use super::{Shared, accept};

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: null\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
Content-Type: text/plain\r\nContent-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, world!";
/// Maximum number of responses in one write.
const BATCH: usize = 64;
const READ_LEN: usize = 64 * 1024;

#[derive(Debug)]
struct Connection {
    fd: OwnedFd,
    /// Length of the CR LF CR LF prefix at the end of the input.
    seen: u8,
    /// Unsent bytes of the endless sequence of responses.
    owed: usize,
    /// Position of the next byte within a response.
    offset: usize,
}

/// Serves until stopped.
pub(super) fn serve(mut poller: Poller, shared: &Shared) -> std::io::Result<()> {
    let mut connections: Slab<Connection> = Slab::new();
    let mut buffer = vec![0; READ_LEN];
    // one more than a batch, so that a batch may begin within a response
    let responses = RESPONSE.repeat(BATCH + 1);
    loop {
        poller.wait(None)?;
        while let Some(wake) = poller.next() {
            match wake {
                Wake::Stop => return Ok(()),
                Wake::Listener => welcome(&mut poller, &mut connections, shared)?,
                Wake::Connection { id, .. } => {
                    let Some(connection) = connections.get_mut(id) else { continue };
                    if connection.turn(id, &poller, shared, &mut buffer, &responses).is_none() {
                        connections.remove(id);
                        poller.listen(true)?;
                    }
                }
            }
        }
    }
}

fn welcome(
    poller: &mut Poller,
    connections: &mut Slab<Connection>,
    shared: &Shared,
) -> std::io::Result<()> {
    while connections.len() < shared.connections_max {
        match accept(poller, shared) {
            Ok(Some(fd)) => {
                let id = connections.insert(Connection { fd, seen: 0, owed: 0, offset: 0 });
                let Some(connection) = connections.get_mut(id) else { continue };
                if poller.add(&connection.fd, id).is_err() {
                    connections.remove(id);
                }
            }
            Ok(None) => return Ok(()),
            Err(_) => return poller.pause(),
        }
    }
    poller.listen(false)
}

impl Connection {
    /// Reads requests and answers them; `None` if the connection has ended.
    fn turn(
        &mut self,
        id: Id,
        poller: &Poller,
        shared: &Shared,
        buffer: &mut [u8],
        responses: &[u8],
    ) -> Option<()> {
        let was_blocked = self.owed > 0;
        if !was_blocked {
            let count = match rustix::io::read(&self.fd, &mut *buffer) {
                Ok(0) => return None,
                Ok(count) => count,
                Err(Errno::AGAIN | Errno::INTR) => return Some(()),
                Err(_) => return None,
            };
            shared.counters.received(count);
            let requests = heads_ended(&buffer[..count], &mut self.seen);
            shared.counters.requests(requests as u64);
            shared.counters.answers(200, requests as u64);
            self.owed = requests * RESPONSE.len();
        }
        while self.owed > 0 {
            let len = self.owed.min(BATCH * RESPONSE.len());
            match send(&self.fd, &responses[self.offset..self.offset + len], SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    shared.counters.sent(sent);
                    self.owed -= sent;
                    self.offset = (self.offset + sent) % RESPONSE.len();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    // nothing is read while responses are unsent, so that the data a client leaves
                    // unread is bounded
                    poller.modify(&self.fd, id, Interest::WRITE).ok()?;
                    return Some(());
                }
                Err(_) => return None,
            }
        }
        if was_blocked {
            poller.modify(&self.fd, id, Interest::READ).ok()?;
        }
        Some(())
    }
}

/// Returns the number of heads that end in `bytes`; `seen` carries an end that is split between
/// reads.
fn heads_ended(bytes: &[u8], seen: &mut u8) -> usize {
    // exactly one request is the usual case, and is detected quickly
    const USUAL_MAX: usize = 256;
    if *seen == 0 && bytes.len() < USUAL_MAX && bytes.ends_with(b"\r\n\r\n") {
        let body = &bytes[..bytes.len() - 1];
        if !body.windows(4).any(|window| window == b"\r\n\r\n") {
            return 1;
        }
    }
    let mut ended = 0;
    for byte in bytes {
        *seen = match (*seen, byte) {
            (0 | 2, b'\r') => *seen + 1,
            (1, b'\n') => 2,
            (3, b'\n') => {
                ended += 1;
                0
            }
            (_, b'\r') => 1,
            _ => 0,
        };
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_counted_however_they_are_split() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\r\nX: y\r\n\r\n";
        for split in 0..=text.len() {
            let mut seen = 0;
            let ended =
                heads_ended(&text[..split], &mut seen) + heads_ended(&text[split..], &mut seen);
            assert_eq!((ended, seen), (2, 0), "{split}");
        }
        let mut seen = 0;
        assert_eq!(heads_ended(b"\r\n\r\n\r\n\r\n", &mut seen), 2);
        assert_eq!(heads_ended(b"\r\n\r\n\r\n", &mut seen), 1);
        assert_eq!(seen, 2);
    }

    #[test]
    fn the_response_has_its_length() {
        let text = std::str::from_utf8(RESPONSE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
    }
}
