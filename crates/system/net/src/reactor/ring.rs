//! Sockets with io_uring: the writes of a turn are submitted by one system call, which also waits,
//! and received data is available when it returns.
//!
//! No write waits for a larger batch: written data is sent before the loop sleeps, and before more
//! than a few connections have been handled.

mod kernel;

pub use kernel::probe;

use crate::reactor::room::{LineId, RoomQueue};
use crate::reactor::{Await, connect, failure, monotonic, raw};
use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use kernel::{BUFFER, BUFFERS, Completion, KernelRing, Kind, Tag};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::SendFlags;
use sample::{FailureClass, SocketFacts};
use units::Nanos;

/// Maximum length of a copied write; longer ones use their own system call, because copying them
/// would cost more.
const COPIED_MAX: usize = 8 << 10;
/// Maximum number of further writes, and of reads, for which a pending write waits.
const WRITES_MAX: u32 = 32;
const READS_MAX: u32 = 32;
/// Buffers that the kernel has at least.
const BUFFERS_MIN: usize = 32;
/// No buffer.
const NONE: u16 = u16::MAX;

/// Sockets of one worker, owned by the thread that made this.
#[derive(Debug)]
pub struct RingReactor {
    kernel: KernelRing,
    sockets: Vec<RingSocket>,
    pieces: Arrived,
    /// Requests that begin with the next submission.
    wanted: Vec<Tag>,
    /// Received events that were not reported yet.
    heard: Vec<Ready>,
    done: Vec<Completion>,
    /// Number of open sockets.
    open: usize,
    /// Number of submissions; data written now is sent with this one.
    batch: u64,
    writes: u32,
    /// Reads since the first of these writes.
    reads: u32,
    spin_span: Nanos,
    spun: Nanos,
    /// Connects for which there is no room yet. Their sockets are not watched: they would be
    /// reported as writable.
    room: RoomQueue,
}

/// Received data by buffer: the next buffer of the same connection, and its bytes.
#[derive(Debug)]
struct Arrived {
    next: Box<[u16]>,
    lengths: Box<[u16]>,
    /// Empty buffers that the kernel does not have, the most recently used last.
    free: Vec<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ConnectStage {
    #[default]
    Closed,
    /// No bytes were written yet: the connect may be pending.
    Pending,
    Open,
}

/// State of a slot.
#[derive(Debug)]
struct RingSocket {
    fd: Option<OwnedFd>,
    /// Counts openings, to recognize completions of former connections.
    generation: u32,
    stage: ConnectStage,
    /// The kernel has an open request that receives, or that watches.
    receiving: bool,
    watching: bool,
    /// The worker waits until it can write.
    wants_to_write: bool,
    ended: bool,
    broken: Option<FailureClass>,
    /// Line of the Unix socket that it connects to, if any, and whether the listen queue was full
    /// at its last connect.
    line: LineId,
    waits: bool,
    /// The last piece filled its buffer: more may wait in the socket.
    full: bool,
    /// Received pieces, and how much of the first was read.
    first: u16,
    last: u16,
    at: u16,
    /// Index in `heard`, if present.
    ready_index: u32,
    /// The batch of its last write, and where the bytes are until submission.
    batch: u64,
    start: u32,
    length: u32,
    /// Bytes that the socket did not accept.
    unsent: Vec<u8>,
    /// Our side shuts down after they are sent.
    shuts: bool,
}

impl Default for RingSocket {
    fn default() -> RingSocket {
        RingSocket {
            fd: None,
            generation: 0,
            stage: ConnectStage::Closed,
            receiving: false,
            watching: false,
            wants_to_write: false,
            ended: false,
            broken: None,
            line: LineId::NONE,
            waits: false,
            full: false,
            first: NONE,
            last: NONE,
            at: 0,
            ready_index: 0,
            batch: 0,
            start: 0,
            length: 0,
            unsent: Vec::new(),
            shuts: false,
        }
    }
}

impl RingSocket {
    fn renew(&mut self, fd: OwnedFd) {
        let (generation, mut unsent) = (self.generation, std::mem::take(&mut self.unsent));
        unsent.clear();
        *self = RingSocket { fd: Some(fd), generation, unsent, ..RingSocket::default() };
        self.stage = ConnectStage::Pending;
    }

    fn tag(&self, kind: Kind, slot: Slot) -> Tag {
        Tag { kind, generation: self.generation & Tag::GENERATIONS, slot }
    }
}

impl Arrived {
    fn new() -> Arrived {
        let none = vec![NONE; usize::from(BUFFERS)].into_boxed_slice();
        Arrived { next: none.clone(), lengths: none, free: (0..BUFFERS).rev().collect() }
    }

    fn append(&mut self, socket: &mut RingSocket, id: u16, length: u16) {
        self.lengths[usize::from(id)] = length;
        self.next[usize::from(id)] = NONE;
        if socket.first == NONE {
            (socket.first, socket.at) = (id, 0);
        } else {
            self.next[usize::from(socket.last)] = id;
        }
        socket.last = id;
    }

    /// Releases everything received for a connection.
    fn drop_all(&mut self, socket: &mut RingSocket) {
        while socket.first != NONE {
            self.free.push(socket.first);
            socket.first = self.next[usize::from(socket.first)];
        }
    }
}

/// Returns why there is no ring: part of a sentence. `since`: the first kernel with the required
/// feature.
pub fn ring_unavailable_reason(error: &std::io::Error, since: &str) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::PermissionDenied => "this machine does not allow io_uring (the setting \
                                        kernel.io_uring_disabled, or the profile of a container)"
            .to_owned(),
        ErrorKind::Unsupported | ErrorKind::InvalidInput => {
            format!("this kernel's io_uring does not support that; {since} does")
        }
        _ => format!("io_uring does not start: {error}"),
    }
}

impl RingReactor {
    /// Returns a loop without connections, for the calling thread. `spin_span`: busy-wait at most
    /// this long before a due instant.
    ///
    /// # Errors
    /// Fails like [`probe`].
    pub fn new(spin_span: Nanos) -> std::io::Result<RingReactor> {
        Ok(RingReactor {
            kernel: KernelRing::open()?,
            sockets: Vec::new(),
            pieces: Arrived::new(),
            wanted: Vec::new(),
            heard: Vec::new(),
            done: Vec::with_capacity(1_024),
            open: 0,
            batch: 1,
            writes: 0,
            reads: 0,
            spin_span,
            spun: Nanos::ZERO,
            room: RoomQueue::default(),
        })
    }

    /// Submits writes and receives, then processes completions.
    fn exchange(&mut self, look: Await) {
        self.post();
        self.begin_wanted();
        let mut done = std::mem::take(&mut self.done);
        self.kernel.enter(look, &mut done);
        for completion in done.drain(..) {
            self.settle(completion);
        }
        self.done = done;
        if self.writes > 0 {
            self.kernel.empty_outbox();
            (self.writes, self.reads) = (0, 0);
            self.batch += 1;
        }
        if self.kernel.is_broken() {
            self.give_up();
        }
    }

    /// Gives buffers to the kernel, two for each connection: the fewer they are, the warmer is their
    /// memory.
    fn post(&mut self) {
        let wanted = (self.open * 2).clamp(BUFFERS_MIN, usize::from(BUFFERS));
        // received unread data counts as posted: there is never much
        let posted = usize::from(BUFFERS) - self.pieces.free.len();
        let more = wanted.saturating_sub(posted).min(self.pieces.free.len());
        if more == 0 {
            return;
        }
        let buffers = self.kernel.buffers_mut();
        for id in self.pieces.free.drain(self.pieces.free.len() - more..) {
            buffers.post(id);
        }
        buffers.publish();
    }

    fn begin_wanted(&mut self) {
        for tag in self.wanted.drain(..) {
            let socket = &mut self.sockets[tag.slot as usize];
            let Some(fd) = socket.fd.as_ref().filter(|_| socket.generation == tag.generation)
            else {
                continue;
            };
            match tag.kind {
                Kind::Receive if !socket.receiving && !socket.ended => {
                    socket.receiving = true;
                    self.kernel.receive(fd.as_fd(), tag);
                }
                Kind::Writable if !socket.watching => {
                    socket.watching = true;
                    self.kernel.watch(fd.as_fd(), tag);
                }
                _ => {}
            }
        }
    }

    fn queue_request(&mut self, kind: Kind, slot: Slot) {
        self.wanted.push(self.sockets[slot as usize].tag(kind, slot));
    }

    /// Applies a completion to its connection.
    #[inline]
    fn settle(&mut self, completion: Completion) {
        let Completion { tag, result, buffer, more } = completion;
        let socket = &mut self.sockets[tag.slot as usize];
        let current = socket.generation == tag.generation && socket.fd.is_some();
        if let Some(id) = buffer.filter(|_| !current || result <= 0) {
            self.pieces.free.push(id);
        }
        if !current {
            return;
        }
        match tag.kind {
            Kind::Receive => {
                socket.receiving = more;
                if let (Some(id), 1..) = (buffer, result) {
                    self.pieces.append(socket, id, result as u16);
                    self.notify(tag.slot, Ready { readable: true, ..quiet(tag.slot) });
                    if !more {
                        self.queue_request(Kind::Receive, tag.slot);
                    }
                } else {
                    self.receive_ended(tag.slot, result);
                }
            }
            Kind::Writable => {
                socket.watching = false;
                self.writable(tag.slot);
            }
            Kind::Send => self.sent_less(tag.slot, result),
            Kind::Cancel => {}
        }
    }

    fn notify(&mut self, slot: Slot, news: Ready) {
        let ready_index = &mut self.sockets[slot as usize].ready_index;
        match self.heard.get_mut(*ready_index as usize).filter(|before| before.slot == slot) {
            Some(before) => {
                before.readable |= news.readable;
                before.writable |= news.writable;
                before.ended |= news.ended;
            }
            None => {
                *ready_index = self.heard.len() as u32;
                self.heard.push(news);
            }
        }
    }

    /// Withdraws pending events of a connection.
    fn withdraw_events(&mut self, slot: Slot) {
        let ready_index = self.sockets[slot as usize].ready_index;
        let index = ready_index as usize;
        if self.heard.get(index).is_some_and(|event| event.slot == slot) {
            self.heard.swap_remove(index);
            if let Some(moved) = self.heard.get(index) {
                self.sockets[moved.slot as usize].ready_index = ready_index;
            }
        }
    }

    /// Handles a receiving request that ended without bytes.
    #[cold]
    fn receive_ended(&mut self, slot: Slot, result: i32) {
        let socket = &mut self.sockets[slot as usize];
        match errno_of(result) {
            None => socket.ended = true,
            // no buffer was left, or it was interrupted
            Some(Errno::NOBUFS | Errno::INTR | Errno::AGAIN) => {
                if !socket.receiving {
                    self.queue_request(Kind::Receive, slot);
                }
                return;
            }
            // the error of an earlier write takes precedence
            Some(errno) => socket.broken = socket.broken.or(Some(failure::class(errno))),
        }
        self.notify(slot, Ready { readable: true, ended: true, ..quiet(slot) });
    }

    /// Handles a socket that did not accept everything submitted in this batch.
    #[cold]
    fn sent_less(&mut self, slot: Slot, result: i32) {
        let socket = &mut self.sockets[slot as usize];
        let Some(fd) = socket.fd.as_ref().filter(|_| socket.batch == self.batch) else { return };
        match errno_of(result) {
            None | Some(Errno::AGAIN | Errno::INTR) => {}
            Some(errno) => {
                let error = failure::io_error(connect::reason(fd.as_fd(), errno));
                return self.break_off(slot, error);
            }
        }
        let sent = result.max(0) as usize;
        let (start, length) = (socket.start as usize, socket.length as usize);
        socket.unsent.extend_from_slice(self.kernel.unsent(start + sent, length - sent));
        self.queue_request(Kind::Writable, slot);
    }

    fn break_off(&mut self, slot: Slot, error: IoError) {
        let IoError::Failed(class) = error else { return };
        self.sockets[slot as usize].broken = Some(class);
        self.notify(slot, Ready { slot, readable: true, writable: true, ended: true });
    }

    /// Handles a full socket that may accept data now.
    #[cold]
    fn writable(&mut self, slot: Slot) {
        let socket = &mut self.sockets[slot as usize];
        while let Some(fd) = socket.fd.as_ref().filter(|_| !socket.unsent.is_empty()) {
            match send_now(fd, &socket.unsent) {
                Ok(count) => drop(socket.unsent.drain(..count)),
                Err(Errno::AGAIN) => return self.queue_request(Kind::Writable, slot),
                Err(errno) => {
                    let error = failure::io_error(connect::reason(fd.as_fd(), errno));
                    return self.break_off(slot, error);
                }
            }
        }
        if std::mem::take(&mut socket.shuts) {
            self.shutdown_write(slot);
        }
        if std::mem::take(&mut self.sockets[slot as usize].wants_to_write) {
            self.notify(slot, Ready { writable: true, ..quiet(slot) });
        }
    }

    /// Abandons the ring, which the kernel no longer processes: no connection can continue.
    #[cold]
    fn give_up(&mut self) {
        for slot in 0..self.sockets.len() as Slot {
            let socket = &self.sockets[slot as usize];
            if socket.fd.is_some() && socket.broken.is_none() {
                self.break_off(slot, failure::closed());
            }
        }
    }

    /// Writes by its own system call.
    fn write_now(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        if self.sockets[slot as usize].batch == self.batch {
            // earlier writes go first
            self.exchange(Await::No);
        }
        let socket = &mut self.sockets[slot as usize];
        let Some(fd) = &socket.fd else { return Err(failure::closed()) };
        if let Some(class) = socket.broken {
            return Err(IoError::Failed(class));
        }
        if !socket.unsent.is_empty() {
            socket.wants_to_write = true;
            return Err(IoError::WouldBlock);
        }
        match send_now(fd, bytes) {
            Ok(count) => {
                if socket.stage == ConnectStage::Pending {
                    socket.stage = ConnectStage::Open;
                    self.queue_request(Kind::Receive, slot);
                }
                Ok(count)
            }
            Err(Errno::NOTCONN) if socket.waits => Err(IoError::WouldBlock),
            Err(Errno::AGAIN | Errno::NOTCONN) => {
                socket.wants_to_write = true;
                self.queue_request(Kind::Writable, slot);
                Err(IoError::WouldBlock)
            }
            Err(errno) => Err(failure::io_error(connect::reason(fd.as_fd(), errno))),
        }
    }

    /// Reports the connects that got a place in the queue or were refused.
    #[cold]
    fn report_connects(&mut self) {
        let sockets = &self.sockets;
        let news = self.room.look(|slot, generation| {
            let socket = &sockets[slot as usize];
            socket.fd.as_ref().filter(|_| socket.generation == generation).map(AsFd::as_fd)
        });
        for (slot, connected) in news {
            self.sockets[slot as usize].waits = false;
            match connected {
                Ok(()) => self.notify(slot, Ready { writable: true, ..quiet(slot) }),
                Err(errno) => self.break_off(slot, failure::io_error(errno)),
            }
        }
    }

    /// Copies received data from the buffers; returns the number of bytes.
    #[inline]
    fn take(&mut self, slot: Slot, buffer: &mut [u8]) -> usize {
        let socket = &mut self.sockets[slot as usize];
        let buffers = self.kernel.buffers();
        let mut count = 0;
        while socket.first != NONE && count < buffer.len() {
            let id = socket.first;
            let length = usize::from(self.pieces.lengths[usize::from(id)]);
            let rest = &buffers.bytes(id, length)[usize::from(socket.at)..];
            let part = rest.len().min(buffer.len() - count);
            buffer[count..count + part].copy_from_slice(&rest[..part]);
            count += part;
            if part < rest.len() {
                socket.at += part as u16;
                break;
            }
            socket.full = length == BUFFER;
            (socket.first, socket.at) = (self.pieces.next[usize::from(id)], 0);
            self.pieces.free.push(id);
        }
        count
    }

    /// Handles received data that exceeded a buffer: the rest is read by system calls into the
    /// worker's memory. The kernel receives only while completions are requested, and all of them
    /// were processed, so data in the socket comes after them.
    fn read_on(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let socket = &mut self.sockets[slot as usize];
        socket.full = false;
        let Some(fd) = &socket.fd else { return Err(failure::closed()) };
        loop {
            match rustix::io::read(fd, &mut *buffer) {
                Ok(0) => {
                    socket.ended = true;
                    return Ok(0);
                }
                Ok(count) => {
                    socket.full = count == buffer.len();
                    return Ok(count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(IoError::WouldBlock),
                Err(errno) => {
                    let error = failure::io_error(connect::reason(fd.as_fd(), errno));
                    if let IoError::Failed(class) = error {
                        socket.broken = socket.broken.or(Some(class));
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Submits pending writes if they have waited long enough.
    #[inline]
    fn count_read(&mut self) {
        if self.writes > 0 {
            self.reads += 1;
            if self.reads >= READS_MAX {
                self.exchange(Await::No);
            }
        }
    }
}

/// Returns the error of a completion.
fn errno_of(result: i32) -> Option<Errno> {
    (result < 0).then(|| Errno::from_raw_os_error(-result))
}

fn quiet(slot: Slot) -> Ready {
    Ready { slot, readable: false, writable: false, ended: false }
}

/// Sleeps, in a loop whose ring has failed.
#[cold]
fn sleep(look: Await) {
    let span = match look {
        Await::Sleep(Some(span)) => connect::timespec(span),
        _ => return,
    };
    // interrupted: the loop checks whether to stop
    rustix::event::poll(&mut [], Some(&span)).ok();
}

fn send_now(fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    loop {
        match rustix::net::send(fd, bytes, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

impl Io for RingReactor {
    #[inline]
    fn now(&mut self) -> Nanos {
        monotonic()
    }

    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError> {
        let bytes = matches!(peer, Peer::Tcp(_) | Peer::Unix(_));
        if self.kernel.is_broken() || !bytes {
            return Err(failure::closed());
        }
        let index = slot as usize;
        if self.sockets.len() <= index {
            self.sockets.resize_with(index + 1, RingSocket::default);
        }
        if options.port.is_some() {
            // a socket of before holds the port until its request was ended
            self.exchange(Await::Now);
        }
        let line = self.room.line(peer);
        let started = connect::start(peer, options, self.room.is_waited_for(line));
        let (fd, waits) = started.map_err(failure::io_error)?;
        let socket = &mut self.sockets[index];
        socket.renew(fd);
        (socket.line, socket.waits) = (line, waits);
        if waits {
            self.room.push(line, slot, socket.generation, monotonic());
        }
        self.open += 1;
        Ok(())
    }

    #[inline]
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let socket = &self.sockets[slot as usize];
        let queued = socket.stage == ConnectStage::Open
            && bytes.len() <= COPIED_MAX
            && socket.batch != self.batch
            && socket.unsent.is_empty()
            && socket.broken.is_none();
        let Some(fd) = socket.fd.as_ref().filter(|_| queued) else {
            return self.write_now(slot, bytes);
        };
        let tag = socket.tag(Kind::Send, slot);
        let Some(start) = self.kernel.send(fd.as_fd(), tag, bytes) else {
            self.exchange(Await::No);
            return self.write_now(slot, bytes);
        };
        let socket = &mut self.sockets[slot as usize];
        socket.batch = self.batch;
        (socket.start, socket.length) = (start as u32, bytes.len() as u32);
        self.writes += 1;
        if self.writes >= WRITES_MAX {
            self.exchange(Await::No);
        }
        Ok(bytes.len())
    }

    #[inline]
    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        self.count_read();
        if self.sockets[slot as usize].fd.is_none() {
            return Err(failure::closed());
        }
        let count = self.take(slot, buffer);
        if self.sockets[slot as usize].full && count < buffer.len() {
            match self.read_on(slot, &mut buffer[count..]) {
                Ok(0) | Err(IoError::Failed(_)) if count > 0 => {
                    self.notify(slot, Ready { readable: true, ended: true, ..quiet(slot) });
                }
                Ok(more) => return Ok(count + more),
                Err(IoError::WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
        let socket = &self.sockets[slot as usize];
        match socket.broken {
            _ if count > 0 => Ok(count),
            Some(class) => Err(IoError::Failed(class)),
            None if socket.ended => Ok(0),
            None => Err(IoError::WouldBlock),
        }
    }

    fn close(&mut self, slot: Slot, how: Close) {
        // one that waited for its turn to open, and was ended before that, has no socket
        let Some(socket) = self.sockets.get(slot as usize) else { return };
        if socket.batch == self.batch {
            // the request to send names a descriptor, which may be another's in a moment
            self.exchange(Await::No);
        }
        let socket = &mut self.sockets[slot as usize];
        let (receive, watch) = (socket.tag(Kind::Receive, slot), socket.tag(Kind::Writable, slot));
        socket.generation = (socket.generation + 1) & Tag::GENERATIONS;
        self.pieces.drop_all(socket);
        let Some(fd) = socket.fd.take() else { return };
        self.room.closed(socket.line);
        self.open -= 1;
        if how == Close::Reset {
            connect::linger_zero(fd.as_fd());
        } else if !socket.unsent.is_empty() {
            // until the socket accepts no more
            send_now(&fd, &socket.unsent).ok();
        }
        // an open request holds the socket
        if socket.receiving {
            self.kernel.cancel(receive);
        }
        if socket.watching {
            self.kernel.cancel(watch);
        }
        self.withdraw_events(slot);
    }

    fn shutdown_write(&mut self, slot: Slot) {
        let socket = &self.sockets[slot as usize];
        if socket.batch == self.batch {
            self.exchange(Await::No);
        }
        let socket = &mut self.sockets[slot as usize];
        if !socket.unsent.is_empty() {
            socket.shuts = true;
        } else if let Some(fd) = &socket.fd {
            // a broken connection reports that at the next read
            rustix::net::shutdown(fd, rustix::net::Shutdown::Write).ok();
        }
    }

    fn send_urgent(&mut self, slot: Slot, byte: u8) {
        self.exchange(Await::No);
        if let Some(fd) = &self.sockets[slot as usize].fd {
            // a broken connection reports that at the next read
            rustix::net::send(fd, &[byte], SendFlags::OOB).ok();
        }
    }

    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        let fd = self.sockets.get(slot as usize)?.fd.as_ref()?;
        raw::tcp_info(fd.as_fd())
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        let next = self.room.next_try();
        let (until, spin_span) = match next {
            // no arrival is due at a retry, so there is no busy-waiting for it
            Some(next) if next < until - self.spin_span => (next, Nanos::ZERO),
            _ => (until, self.spin_span),
        };
        let look = match until {
            _ if !self.heard.is_empty() => Await::Now,
            Nanos::NEVER => Await::Sleep(None),
            until => match (until - monotonic()) - spin_span {
                Nanos::ZERO => Await::Now,
                span => Await::Sleep(Some(span)),
            },
        };
        self.exchange(look);
        if self.kernel.is_broken() && self.heard.is_empty() {
            sleep(look);
        }
        if self.heard.is_empty() && until != Nanos::NEVER && !spin_span.is_zero() {
            let start = monotonic();
            let mut at = start;
            while at < until && self.heard.is_empty() {
                self.exchange(Await::Now);
                at = monotonic();
            }
            self.spun += at - start;
        }
        if next.is_some() {
            self.report_connects();
        }
        ready.clear();
        std::mem::swap(&mut self.heard, ready);
    }

    fn spin(&self) -> Nanos {
        self.spun
    }
}

#[cfg(test)]
mod tests;
