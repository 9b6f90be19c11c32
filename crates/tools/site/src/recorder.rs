//! An origin that answers every request alike and records the received bytes, to show how a proxy
//! forwards a request. Each connection ends with its response, so that a connection contains what
//! the proxy considers one message.

use crate::SiteError;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of connections read at once; others are closed unread.
const CONNECTIONS_MAX: usize = 64;
/// Maximum number of bytes kept per connection, and of connections waiting for collection.
const BYTES_MAX: usize = 1 << 20;
const KEPT_MAX: usize = 4_096;
/// A possibly incomplete message is answered after this time without data.
const QUIET: Duration = Duration::from_millis(250);
/// A connection without a byte is forgotten after this: proxies open some in advance.
const EMPTY: Duration = Duration::from_secs(30);
/// Time for which data after the response is read.
const BEHIND: Duration = Duration::from_millis(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const BODY: &str = "Loadstone's origin received it.\n";

/// Bytes received on one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedMessage {
    pub bytes: Vec<u8>,
    /// True if the client ended the connection before it was answered.
    pub cut_off: bool,
}

/// Decides whether a message is certainly complete.
type IsWhole = fn(&[u8]) -> bool;

/// The origin, while it runs.
#[derive(Debug)]
pub struct OriginRecorder {
    address: SocketAddr,
    shared: Arc<RecorderState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct RecorderState {
    ends: AtomicBool,
    heard: Mutex<HeardConnections>,
}

/// Connections in the order of their acceptance.
#[derive(Debug, Default)]
struct HeardConnections {
    next: u64,
    all: Vec<HeardConnection>,
}

#[derive(Debug)]
struct HeardConnection {
    id: u64,
    bytes: Vec<u8>,
    over: bool,
    cut_off: bool,
}

impl RecorderState {
    fn lock_connections(&self) -> MutexGuard<'_, HeardConnections> {
        // a thread that panicked has left the list whole
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(&self, id: u64, change: impl FnOnce(&mut HeardConnection)) {
        if let Some(one) = self.lock_connections().all.iter_mut().find(|one| one.id == id) {
            change(one);
        }
    }
}

impl OriginRecorder {
    /// # Errors
    /// Fails if the address cannot be listened at.
    pub fn start(address: SocketAddr, is_whole: IsWhole) -> Result<OriginRecorder, SiteError> {
        let failed = |reason| SiteError::Listen { address: address.to_string(), reason };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(RecorderState::default());
        let state = shared.clone();
        let thread = std::thread::spawn(move || accept(&listener, &state, is_whole));
        Ok(OriginRecorder { address, shared, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the received bytes since the last call, per connection; `None` while a connection is
    /// being read. Silent connections are skipped.
    pub fn take(&self) -> Option<Vec<RecordedMessage>> {
        let mut heard = self.shared.lock_connections();
        if heard.all.iter().any(|one| !one.over && !one.bytes.is_empty()) {
            return None;
        }
        let spoke = |one: &HeardConnection| !one.bytes.is_empty();
        let (done, silent) = std::mem::take(&mut heard.all).into_iter().partition(spoke);
        heard.all = silent;
        let done: Vec<HeardConnection> = done;
        let message = |one: HeardConnection| {
            let HeardConnection { bytes, cut_off, .. } = one;
            RecordedMessage { bytes, cut_off }
        };
        Some(done.into_iter().map(message).collect())
    }
}

impl Drop for OriginRecorder {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn accept(listener: &TcpListener, state: &Arc<RecorderState>, is_whole: IsWhole) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !state.ends.load(Ordering::Relaxed) {
        threads.retain(|thread| !thread.is_finished());
        match listener.accept() {
            Ok((stream, _)) if threads.len() < CONNECTIONS_MAX => {
                let mut heard = state.lock_connections();
                heard.next += 1;
                let id = heard.next;
                if heard.all.len() < KEPT_MAX {
                    let bytes = Vec::new();
                    heard.all.push(HeardConnection { id, bytes, over: false, cut_off: false });
                }
                drop(heard);
                let state = state.clone();
                threads.push(std::thread::spawn(move || {
                    serve_connection(stream, id, &state, is_whole);
                    state.with(id, |one| one.over = true);
                    let mut heard = state.lock_connections();
                    heard.all.retain(|one| one.id != id || !one.bytes.is_empty());
                }));
            }
            Ok(_) => {}
            Err(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
    for thread in threads {
        thread.join().ok();
    }
}

/// Reads a message, answers, and briefly reads further data.
fn serve_connection(mut stream: TcpStream, id: u64, state: &RecorderState, is_whole: IsWhole) {
    if stream.set_nonblocking(false).is_err()
        || stream.set_read_timeout(Some(POLL_INTERVAL)).is_err()
    {
        return;
    }
    let mut all = Vec::new();
    let (mut last, mut ended) = (Instant::now(), false);
    while !ended && !state.ends.load(Ordering::Relaxed) && all.len() < BYTES_MAX {
        match read(&mut stream, &mut all) {
            Some(0) => ended = true,
            Some(_) => {
                last = Instant::now();
                state.with(id, |one| one.bytes.clone_from(&all));
                if is_whole(&all) {
                    break;
                }
            }
            None if all.is_empty() && last.elapsed() < EMPTY => {}
            None if !all.is_empty() && last.elapsed() < QUIET => {}
            None => break,
        }
    }
    if all.is_empty() || ended {
        state.with(id, |one| one.cut_off = ended);
        return;
    }
    let content = if all.starts_with(b"HEAD ") { "" } else { BODY };
    let length = BODY.len();
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nCache-Control: \
         no-store\r\nConnection: close\r\n\r\n{content}"
    );
    if stream.write_all(response.as_bytes()).is_err() || stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let since = Instant::now();
    while since.elapsed() < BEHIND && all.len() < BYTES_MAX {
        if read(&mut stream, &mut all) == Some(0) {
            break;
        }
    }
    state.with(id, |one| one.bytes = all);
}

/// Reads into `all`; returns the number of received bytes: 0 at the end of the connection, `None`
/// if there are none yet.
fn read(stream: &mut TcpStream, all: &mut Vec<u8>) -> Option<usize> {
    let mut piece = [0; 16 << 10];
    match stream.read(&mut piece) {
        Ok(count) => {
            all.extend_from_slice(&piece[..count]);
            Some(count)
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(error) if error.kind() == ErrorKind::Interrupted => None,
        Err(_) => Some(0),
    }
}
