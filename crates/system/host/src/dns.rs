//! Sends DNS queries, message by message, unmodified, and returns the replies as received. Several
//! servers at a time, each with one outstanding query.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of bytes read of a reply.
const REPLY_MAX: usize = 4_096;
/// Datagrams that are not the reply and are passed over, for each question.
const OTHER_DATAGRAMS_MAX: usize = 16;

/// Parameters for querying name servers.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// Servers at a time, at least 1.
    pub at_once: usize,
    /// Questions a second, of all servers together, at least 1.
    pub per_second: u64,
    /// Time limit for the reply to each question.
    pub wait: Duration,
}

/// A server and its queries: whole messages, whose first two bytes are an id.
#[derive(Clone, Debug)]
pub struct NameServerVisit {
    pub server: SocketAddr,
    pub messages: Vec<Vec<u8>>,
}

/// Returns the reply to each message, in order; `None` without a reply. A server that does not
/// answer the first query is not queried again, so its list is shorter. `stop` ends the survey.
pub fn ask_name_servers(
    all: &[NameServerVisit],
    how: Asking,
    stop: &(dyn Fn() -> bool + Sync),
) -> Vec<Vec<Option<Vec<u8>>>> {
    let next = AtomicUsize::new(0);
    let pace = QuestionPace::new(how.per_second);
    let answers: Vec<Mutex<Vec<Option<Vec<u8>>>>> = all.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..how.at_once.clamp(1, all.len().max(1)) {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let replies = visit(one, how.wait, &pace, stop);
                    let row = all.iter().position(|other| std::ptr::eq(other, one));
                    if let Some(slot) = row.and_then(|row| answers.get(row)) {
                        *slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = replies;
                    }
                }
            });
        }
    });
    let taken = |slot: Mutex<Vec<Option<Vec<u8>>>>| {
        slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    answers.into_iter().map(taken).collect()
}

fn visit(
    one: &NameServerVisit,
    wait: Duration,
    pace: &QuestionPace,
    stop: &(dyn Fn() -> bool + Sync),
) -> Vec<Option<Vec<u8>>> {
    let mut replies = Vec::with_capacity(one.messages.len());
    for message in &one.messages {
        if stop() {
            break;
        }
        pace.keep();
        let reply = query_server(one.server, message, wait).ok();
        let nobody = reply.is_none() && replies.is_empty();
        replies.push(reply);
        if nobody {
            break;
        }
    }
    replies
}

fn query_server(server: SocketAddr, message: &[u8], wait: Duration) -> io::Result<Vec<u8>> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    socket.send(message)?;
    let until = Instant::now() + wait;
    let mut buffer = vec![0; REPLY_MAX];
    for _ in 0..OTHER_DATAGRAMS_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        let count = socket.recv(&mut buffer)?;
        if buffer[..count].get(..2) == message.get(..2) {
            buffer.truncate(count);
            return Ok(buffer);
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Queries per second, evenly spaced, over all threads.
struct QuestionPace {
    gap: Duration,
    next: Mutex<Instant>,
}

impl QuestionPace {
    fn new(per_second: u64) -> QuestionPace {
        let gap = Duration::from_secs(1) / u32::try_from(per_second.max(1)).unwrap_or(u32::MAX);
        QuestionPace { gap, next: Mutex::new(Instant::now()) }
    }

    /// Waits until the next question may be sent.
    fn keep(&self) {
        let now = Instant::now();
        let turn = {
            let mut next = self.next.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let turn = (*next).max(now);
            *next = turn + self.gap;
            turn
        };
        std::thread::sleep(turn.saturating_duration_since(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn replies_keep_the_order_and_silence_ends_the_visit() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (server, silent) =
            (socket.local_addr().unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        thread::spawn(move || {
            for _ in 0..2 {
                let mut buffer = [0; 64];
                let (count, from) = socket.recv_from(&mut buffer).unwrap();
                // a datagram from a stranger arrives first
                socket.send_to(b"\xff\xffno", from).unwrap();
                buffer[..count].reverse();
                buffer[..count].reverse();
                socket.send_to(&[&buffer[..count], b"!"].concat(), from).unwrap();
            }
        });
        let messages = vec![b"\x00\x01a".to_vec(), b"\x00\x02b".to_vec()];
        let all = [
            NameServerVisit { server: silent.local_addr().unwrap(), messages: messages.clone() },
            NameServerVisit { server, messages },
        ];
        let how = Asking { at_once: 4, per_second: 1_000, wait: Duration::from_secs(2) };
        let answers = ask_name_servers(&all, how, &|| false);
        assert_eq!(answers[0], [None]);
        assert_eq!(answers[1], [Some(b"\x00\x01a!".to_vec()), Some(b"\x00\x02b!".to_vec())]);
        assert_eq!(ask_name_servers(&all, how, &|| true), [vec![], vec![]]);
    }
}
