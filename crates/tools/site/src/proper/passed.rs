//! Connections that the fault loop passes on because it does not have the requested page.
//!
//! Their requests draw faults and times from the loop's own script, to a millisecond.

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use units::Nanos;

use super::Common;
use super::converse::ConnectionLog;
use super::stream::Socket;
use crate::counters::Counters;
use crate::script::{Script, Treatment};

/// The script of the fault loop, shared with the connections that it passed on.
#[derive(Clone, Debug)]
pub(crate) struct SharedScript(Arc<Mutex<Script>>);

impl SharedScript {
    pub(crate) fn new(script: Script) -> SharedScript {
        SharedScript(Arc::new(Mutex::new(script)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection with its input so far.
#[derive(Debug)]
pub(crate) struct PassedConnection {
    pub(crate) fd: OwnedFd,
    pub(crate) is_tcp: bool,
    pub(crate) input: Vec<u8>,
    pub(crate) peer: Option<SocketAddr>,
    /// Number of connections accepted before it.
    pub(crate) number: u64,
}

/// Thread that serves passed connections; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PageThread {
    sender: Option<UnboundedSender<PassedConnection>>,
    thread: Option<JoinHandle<()>>,
}

impl PageThread {
    /// # Errors
    /// Fails if the system has no thread or descriptor left.
    pub(crate) fn start(
        common: &Common,
        counters: &Arc<Counters>,
        script: &SharedScript,
    ) -> std::io::Result<PageThread> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (sender, receiver) = unbounded_channel();
        let (common, counters) = (common.clone(), Arc::clone(counters));
        let script = script.clone();
        let serve = move || {
            LocalSet::new().block_on(&runtime, serve(receiver, common, counters, script));
        };
        let thread = std::thread::Builder::new().name("site-pages".to_owned()).spawn(serve)?;
        Ok(PageThread { sender: Some(sender), thread: Some(thread) })
    }

    /// Passes a connection on. Its number is bounded by the descriptors of the process.
    pub(crate) fn pass(&self, connection: PassedConnection) {
        if let Some(sender) = &self.sender {
            // without a receiver the connection is closed
            sender.send(connection).ok();
        }
    }
}

impl Drop for PageThread {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // a panic of the thread was already printed
            thread.join().ok();
        }
    }
}

async fn serve(
    mut receiver: UnboundedReceiver<PassedConnection>,
    common: Common,
    counters: Arc<Counters>,
    script: SharedScript,
) {
    let common = Rc::new(common);
    while let Some(passed) = receiver.recv().await {
        let Ok(socket) = Socket::from_fd(passed.fd, passed.is_tcp) else {
            counters.requests(1);
            counters.unanswered();
            continue;
        };
        let faults = RequestFaults::new(script.clone(), passed.number);
        let visit = ConnectionLog::new(Rc::clone(&common), Arc::clone(&counters), passed.peer);
        let visit = visit.with_faults(faults);
        let room = Arc::clone(&common.room);
        tokio::task::spawn_local(async move {
            // as in the accept queue, a connection waits until there is room
            let Ok(permit) = room.acquire_owned().await else { return };
            visit.converse_from(socket, passed.input.into()).await;
            drop(permit);
        });
    }
}

/// Faults of the requests of one connection.
#[derive(Debug)]
pub(super) struct RequestFaults {
    script: SharedScript,
    number: u64,
    /// True once the connection must be reset.
    resets: Cell<bool>,
}

impl RequestFaults {
    fn new(script: SharedScript, number: u64) -> RequestFaults {
        RequestFaults { script, number, resets: Cell::new(false) }
    }

    /// Waits until the response is due. Returns the status that replaces the page, if any.
    ///
    /// # Errors
    /// Fails if the connection must be reset instead.
    pub(super) async fn wait(&self) -> Result<Option<u16>, MustReset> {
        let now = net::reactor::monotonic();
        let (treatment, due) = {
            let mut script = self.script.lock();
            let treatment = script.treatment(now);
            (treatment, script.due(now, Nanos::ZERO, treatment, self.number))
        };
        let left = due - net::reactor::monotonic();
        if !left.is_zero() {
            tokio::time::sleep(Duration::from_nanos(left.0)).await;
        }
        if treatment == Treatment::Reset {
            self.resets.set(true);
            return Err(MustReset);
        }
        Ok(treatment.status())
    }

    pub(super) fn must_reset(&self) -> bool {
        self.resets.get()
    }
}

/// The connection must be reset instead of answering the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct MustReset;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::{Config, Faults};

    #[test]
    fn a_passed_connection_waits_for_room() {
        let (common, _stop_sign) = Common::new(&Config::on_free_port(), 1);
        let counters = Arc::new(Counters::new());
        let script = SharedScript::new(Script::new(Faults::default(), units::Seed(1)));
        let thread = PageThread::start(&common, &counters, &script).unwrap();
        let pass = || {
            let (client, server) = UnixStream::pair().unwrap();
            server.set_nonblocking(true).unwrap();
            let input = b"GET /hw HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
            thread.pass(PassedConnection {
                fd: server.into(),
                is_tcp: false,
                input,
                peer: None,
                number: 0,
            });
            client
        };
        let answer = |client: &mut UnixStream| {
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"hello world") {
                let mut part = [0; 512];
                let count = client.read(&mut part).unwrap();
                assert!(count > 0, "closed after {} bytes", bytes.len());
                bytes.extend_from_slice(&part[..count]);
            }
        };
        let (mut first, mut second) = (pass(), pass());
        answer(&mut first);
        // the first stays open and can be used; the second is served after it
        first.write_all(b"GET /hw HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        answer(&mut first);
        drop(first);
        answer(&mut second);
    }
}
