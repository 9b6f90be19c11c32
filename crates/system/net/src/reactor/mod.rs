//! The loops of one worker: edge-triggered epoll, stream and datagram sockets, the monotonic clock;
//! or streams with io_uring ([`RingReactor`]). Layer 4. Implements the contract of [`conduit::Io`];
//! no HTTP.
//!
//! Cost: a connection is registered once, after its first write, so that a call on an open
//! connection is two system calls (write, read) and a share of one `epoll_wait`. Waiting until an
//! instant sleeps until shortly before and spins for the rest, because a timer alone is about 50 µs
//! late.

mod batch_ring;
mod buffers;
mod clock;
mod connect;
mod failure;
mod raw;
mod ring;
mod room;

pub use batch_ring::{Await, BatchRing, Completed};
pub use buffers::BufferRing;
pub use clock::{instant, minimize_timer_slack, monotonic};
pub use failure::failure_class;
pub use ring::{RingReactor, probe as probe_ring, ring_unavailable_reason};

use conduit::{Close, Io, IoError, OpenOptions, Peer, Ready, Slot};
use room::{LineId, RoomQueue};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use sample::SocketFacts;
use units::Nanos;

/// Maximum number of events taken from the kernel in one call.
const BATCH: usize = 512;

/// Sockets of one worker.
pub struct Reactor {
    epoll: OwnedFd,
    sockets: Vec<Socket>,
    events: Vec<epoll::Event>,
    /// Time before an instant at which `wait` changes from sleeping to busy-waiting.
    spin_span: Nanos,
    spun: Nanos,
    /// True if the kernel splits one buffer into datagrams.
    segments: bool,
    /// The last reported failure, and its slot.
    failed: Option<(Slot, Errno)>,
    /// Connects for which there is no room yet. Their sockets are not registered: epoll would
    /// report them as ended.
    room: RoomQueue,
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reactor").field("sockets", &self.sockets).finish_non_exhaustive()
    }
}

/// State of a slot.
#[derive(Debug, Default)]
struct Socket {
    fd: Option<OwnedFd>,
    /// Counts openings, to recognize events of former connections.
    generation: u32,
    interest: Interest,
    /// Line of the Unix socket that it connects to, if any.
    line: LineId,
    /// True if the listen queue was full at its last connect.
    waits: bool,
    /// Result of a connect that waited for room.
    refused: Option<Errno>,
}

/// Events for which epoll watches a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Interest {
    #[default]
    Nothing,
    Read,
    ReadWrite,
}

impl Reactor {
    /// Returns a loop without connections. `spin_span`: busy-wait at most this long before a due
    /// instant.
    ///
    /// # Errors
    /// Fails if the system has no descriptor left for the epoll instance.
    pub fn new(spin_span: Nanos) -> std::io::Result<Reactor> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Reactor {
            epoll,
            sockets: Vec::new(),
            events: Vec::with_capacity(BATCH),
            spin_span,
            spun: Nanos::ZERO,
            segments: true,
            failed: None,
            room: RoomQueue::default(),
        })
    }

    /// Marks the connection of a slot as failed, for this reason.
    #[cold]
    fn fail(&mut self, slot: Slot, errno: Errno) -> IoError {
        self.failed = Some((slot, errno));
        failure::io_error(errno)
    }

    /// Like [`Reactor::fail`], for a read or a write.
    #[cold]
    fn fail_in_use(&mut self, slot: Slot, errno: Errno) -> IoError {
        let fd = self.sockets[slot as usize].fd.as_ref();
        let errno = fd.map_or(errno, |fd| connect::reason(fd.as_fd(), errno));
        self.fail(slot, errno)
    }

    /// Sends datagrams of `each` bytes with one call; returns the number of bytes sent.
    fn send_batch(&mut self, slot: Slot, bytes: &[u8], each: usize) -> Result<usize, Errno> {
        let Some(fd) = &self.sockets[slot as usize].fd else { return Err(Errno::BADF) };
        if bytes.len() > each && self.segments {
            match raw::send_segments(fd.as_fd(), bytes, each as u16) {
                // a device or a kernel without it
                Err(Errno::IO | Errno::INVAL | Errno::NOPROTOOPT) => self.segments = false,
                other => return other,
            }
        }
        let first = &bytes[..each.min(bytes.len())];
        rustix::net::send(fd, first, rustix::net::SendFlags::NOSIGNAL)
    }

    fn register(&mut self, slot: Slot, interest: Interest) -> Result<(), IoError> {
        let socket = &mut self.sockets[slot as usize];
        if socket.interest == interest {
            return Ok(());
        }
        let Some(fd) = &socket.fd else { return Err(failure::closed()) };
        let mut flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        if interest == Interest::ReadWrite {
            flags |= EventFlags::OUT;
        }
        let data = EventData::new_u64(u64::from(socket.generation) << 32 | u64::from(slot));
        let known = socket.interest != Interest::Nothing;
        let done = if known {
            epoll::modify(&self.epoll, fd, data, flags)
        } else {
            epoll::add(&self.epoll, fd, data, flags)
        };
        match done {
            Ok(()) => {
                socket.interest = interest;
                Ok(())
            }
            Err(errno) => Err(self.fail(slot, errno)),
        }
    }

    /// Waits until something is ready or until `until`, busy-waiting at the end.
    #[inline]
    fn wait_until(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        if until == Nanos::NEVER {
            return self.poll(None, ready);
        }
        let now = monotonic();
        let sleep = (until - now) - self.spin_span;
        self.poll(Some(sleep), ready);
        if !ready.is_empty() || self.spin_span.is_zero() {
            return;
        }
        let start = monotonic();
        let mut at = start;
        while at < until && ready.is_empty() {
            self.poll(Some(Nanos::ZERO), ready);
            at = monotonic();
        }
        self.spun += at - start;
    }

    /// Reports the connects that found room or were refused.
    #[cold]
    fn report_connects(&mut self, ready: &mut Vec<Ready>) {
        let sockets = &self.sockets;
        let news = self.room.look(|slot, generation| {
            let socket = &sockets[slot as usize];
            socket.fd.as_ref().filter(|_| socket.generation == generation).map(AsFd::as_fd)
        });
        for (slot, connected) in news {
            let socket = &mut self.sockets[slot as usize];
            (socket.waits, socket.refused) = (false, connected.err());
            let ended = connected.is_err();
            ready.push(Ready { slot, readable: ended, writable: true, ended });
        }
    }

    /// Runs one `epoll_wait`; `None` waits forever.
    fn poll(&mut self, timeout: Option<Nanos>, ready: &mut Vec<Ready>) {
        let span = timeout.map(connect::timespec);
        self.events.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, spare, span.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // the epoll instance and the buffer are ours: no other error is possible
            Err(_) => self.events.clear(),
        }
        for event in &self.events {
            let data = event.data.u64();
            let slot = data as Slot;
            if self.sockets[slot as usize].generation == (data >> 32) as u32 {
                let flags = event.flags;
                let ended = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
                let writable = EventFlags::OUT | EventFlags::HUP | EventFlags::ERR;
                ready.push(Ready {
                    slot,
                    readable: flags.intersects(EventFlags::IN | ended),
                    writable: flags.intersects(writable),
                    ended: flags.intersects(ended),
                });
            }
        }
    }
}

impl Io for Reactor {
    #[inline]
    fn now(&mut self) -> Nanos {
        monotonic()
    }

    fn open(&mut self, slot: Slot, peer: &Peer, options: &OpenOptions) -> Result<(), IoError> {
        self.failed = None;
        let index = slot as usize;
        if self.sockets.len() <= index {
            self.sockets.resize_with(index + 1, Socket::default);
        }
        let line = self.room.line(peer);
        let started = connect::start(peer, options, self.room.is_waited_for(line));
        let (fd, waits) = started.map_err(|errno| self.fail(slot, errno))?;
        let socket = &mut self.sockets[index];
        let generation = socket.generation.wrapping_add(1);
        *socket = Socket { fd: Some(fd), generation, line, waits, ..Socket::default() };
        if waits {
            self.room.push(line, slot, generation, monotonic());
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, IoError> {
        let socket = &self.sockets[slot as usize];
        let Some(fd) = &socket.fd else { return Err(failure::closed()) };
        let flags = rustix::net::SendFlags::NOSIGNAL;
        let written = loop {
            match rustix::net::send(fd, bytes, flags) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        match written {
            Ok(count) if count == bytes.len() => {
                if socket.interest == Interest::Nothing {
                    self.register(slot, Interest::Read)?;
                }
                Ok(count)
            }
            Ok(count) => {
                self.register(slot, Interest::ReadWrite)?;
                Ok(count)
            }
            Err(Errno::AGAIN | Errno::NOTCONN) => {
                if let Some(errno) = socket.refused {
                    return Err(self.fail(slot, errno));
                }
                if !socket.waits {
                    self.register(slot, Interest::ReadWrite)?;
                }
                Err(IoError::WouldBlock)
            }
            Err(errno) => Err(self.fail_in_use(slot, errno)),
        }
    }

    #[inline]
    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<usize, IoError> {
        let socket = &self.sockets[slot as usize];
        let Some(fd) = &socket.fd else { return Err(failure::closed()) };
        loop {
            match rustix::io::read(fd, &mut *buffer) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(IoError::WouldBlock),
                // it is not connected
                Err(_) if socket.waits => return Err(IoError::WouldBlock),
                Err(errno) => {
                    return Err(match socket.refused {
                        None => self.fail_in_use(slot, errno),
                        Some(refused) => self.fail(slot, refused),
                    });
                }
            }
        }
    }

    fn send(&mut self, slot: Slot, datagrams: &[u8], each: usize) -> Result<usize, IoError> {
        let mut taken = 0;
        while taken < datagrams.len() {
            match self.send_batch(slot, &datagrams[taken..], each.max(1)) {
                Ok(count) => taken += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    self.register(slot, Interest::ReadWrite)?;
                    return if taken > 0 { Ok(taken) } else { Err(IoError::WouldBlock) };
                }
                // too large for the path: lost, as on any link; QUIC tries smaller ones
                Err(Errno::MSGSIZE) => taken += each.min(datagrams.len() - taken),
                Err(errno) => return Err(self.fail(slot, errno)),
            }
        }
        if self.sockets[slot as usize].interest == Interest::Nothing {
            self.register(slot, Interest::Read)?;
        }
        Ok(taken)
    }

    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<(usize, usize), IoError> {
        let Some(fd) = &self.sockets[slot as usize].fd else { return Err(failure::closed()) };
        loop {
            match raw::receive_segments(fd.as_fd(), buffer) {
                Ok(read) => return Ok(read),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(IoError::WouldBlock),
                Err(errno) => return Err(self.fail(slot, errno)),
            }
        }
    }

    fn close(&mut self, slot: Slot, how: Close) {
        // one that waited for its turn to open, and was ended before that, has no socket
        let Some(socket) = self.sockets.get_mut(slot as usize) else { return };
        socket.generation = socket.generation.wrapping_add(1);
        if let Some(fd) = socket.fd.take() {
            self.room.closed(socket.line);
            if how == Close::Reset {
                connect::linger_zero(fd.as_fd());
            }
            drop(fd);
        }
    }

    fn shutdown_write(&mut self, slot: Slot) {
        if let Some(fd) = &self.sockets[slot as usize].fd {
            // a broken connection reports that at the next read
            rustix::net::shutdown(fd, rustix::net::Shutdown::Write).ok();
        }
    }

    fn send_urgent(&mut self, slot: Slot, byte: u8) {
        if let Some(fd) = &self.sockets[slot as usize].fd {
            // a broken connection reports that at the next read
            rustix::net::send(fd, &[byte], rustix::net::SendFlags::OOB).ok();
        }
    }

    fn facts(&mut self, slot: Slot) -> Option<SocketFacts> {
        let fd = self.sockets.get(slot as usize)?.fd.as_ref()?;
        raw::tcp_info(fd.as_fd())
    }

    fn failure_text(&mut self, slot: Slot) -> Option<String> {
        let (_, errno) = self.failed.filter(|(failed, _)| *failed == slot)?;
        Some(std::io::Error::from(errno).to_string())
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<Ready>) {
        ready.clear();
        let next = self.room.next_try();
        match next {
            // no arrival is due at a retry, so there is no busy-waiting for it
            Some(next) if next < until - self.spin_span => {
                self.poll(Some(next - monotonic()), ready);
            }
            _ => self.wait_until(until, ready),
        }
        if next.is_some() {
            self.report_connects(ready);
        }
    }

    fn spin(&self) -> Nanos {
        self.spun
    }
}

#[cfg(test)]
mod tests;
