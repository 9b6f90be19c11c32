//! epoll, level-triggered, over the listener, the stop signal and the connections.

use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use units::Nanos;

use super::slab::Id;

/// Maximum number of events read from the kernel in one call.
const BATCH: usize = 512;
/// Pause of accepting when the system has no descriptors left.
const PAUSE: Nanos = Nanos::from_millis(10);
/// Token of the listener, above all slots: a slot is a 32-bit index in the low half.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

pub(super) struct Poller {
    epoll: OwnedFd,
    /// Listener; `None` once closed.
    listener: Option<OwnedFd>,
    is_tcp: bool,
    stop: Arc<OwnedFd>,
    events: Vec<epoll::Event>,
    next: usize,
    listening: bool,
    paused: bool,
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// Events wanted for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interest {
    pub(super) read: bool,
    pub(super) write: bool,
}

impl Interest {
    pub(super) const READ: Interest = Interest { read: true, write: false };
    pub(super) const WRITE: Interest = Interest { read: false, write: true };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.read);
        flags.set(EventFlags::OUT, self.write);
        flags
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    Stop,
    Listener,
    Connection {
        id: Id,
        /// True if the peer has disconnected completely; this is reported even without registered
        /// interest.
        broken: bool,
    },
}

impl Poller {
    pub(super) fn new(
        listener: crate::listen::Listener,
        stop: Arc<OwnedFd>,
    ) -> std::io::Result<Poller> {
        let is_tcp = listener.is_tcp();
        let mut poller = Poller {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            listener: None,
            is_tcp,
            stop,
            events: Vec::with_capacity(BATCH),
            next: 0,
            listening: true,
            paused: false,
        };
        let read = Interest::READ.flags();
        poller.replace_listener(listener)?;
        epoll::add(&poller.epoll, &*poller.stop, EventData::new_u64(STOP), read)?;
        Ok(poller)
    }

    /// # Errors
    /// Fails if there is no listener.
    pub(super) fn listener(&self) -> std::io::Result<&OwnedFd> {
        self.listener.as_ref().ok_or_else(|| std::io::ErrorKind::NotConnected.into())
    }

    /// Closes the listener: connections are refused from now on.
    pub(super) fn close_listener(&mut self) -> std::io::Result<()> {
        if let Some(listener) = self.listener.take() {
            epoll::delete(&self.epoll, &listener)?;
        }
        Ok(())
    }

    pub(super) fn replace_listener(
        &mut self,
        listener: crate::listen::Listener,
    ) -> std::io::Result<()> {
        let listener = OwnedFd::from(listener);
        let data = EventData::new_u64(LISTENER);
        epoll::add(&self.epoll, &listener, data, Interest::READ.flags())?;
        self.listener = Some(listener);
        self.listening = true;
        Ok(())
    }

    pub(super) fn is_tcp(&self) -> bool {
        self.is_tcp
    }

    /// Waits for an event, for at most `timeout` (`None`: forever).
    pub(super) fn wait(&mut self, timeout: Option<Nanos>) -> std::io::Result<()> {
        let timeout = match timeout {
            _ if !self.paused => timeout,
            None => Some(PAUSE),
            Some(timeout) => Some(timeout.min(PAUSE)),
        };
        let span = timeout.map(timespec);
        self.next = 0;
        self.events.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, spare, span.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => self.events.clear(),
            Err(errno) => return Err(errno.into()),
        }
        if self.paused {
            self.paused = false;
            self.listen(true)?;
        }
        Ok(())
    }

    pub(super) fn next(&mut self) -> Option<Wake> {
        let event = self.events.get(self.next)?;
        self.next += 1;
        let (data, flags) = (event.data.u64(), event.flags);
        Some(match data {
            STOP => Wake::Stop,
            LISTENER => Wake::Listener,
            _ => Wake::Connection {
                id: Id { index: data as u32, generation: (data >> 32) as u32 },
                broken: flags.intersects(EventFlags::HUP | EventFlags::ERR),
            },
        })
    }

    /// Enables or disables notification of new connections. If disabled, they wait in the kernel's
    /// queue.
    pub(super) fn listen(&mut self, on: bool) -> std::io::Result<()> {
        let Some(listener) = self.listener.as_ref().filter(|_| on != self.listening) else {
            return Ok(());
        };
        let interest = Interest { read: on, write: false };
        let data = EventData::new_u64(LISTENER);
        epoll::modify(&self.epoll, listener, data, interest.flags())?;
        self.listening = on;
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn listens(&self) -> bool {
        self.listening
    }

    /// Rests accepting for [`PAUSE`].
    pub(super) fn pause(&mut self) -> std::io::Result<()> {
        self.paused = true;
        self.listen(false)
    }

    /// Returns whether accepting is paused, because the system has no descriptors left.
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(super) fn add(&self, fd: impl AsFd, id: Id) -> std::io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, data_of(id), Interest::READ.flags())?)
    }

    pub(super) fn modify(&self, fd: impl AsFd, id: Id, interest: Interest) -> std::io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, data_of(id), interest.flags())?)
    }

    pub(super) fn delete(&self, fd: impl AsFd) -> std::io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Freezes for `span` or until stopped; true if stopped.
    pub(super) fn sleep(&self, span: Nanos) -> bool {
        let mut fds = [PollFd::new(&*self.stop, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&timespec(span))), Ok(1..))
    }
}

fn data_of(id: Id) -> EventData {
    EventData::new_u64(u64::from(id.generation) << 32 | u64::from(id.index))
}

fn timespec(span: Nanos) -> Timespec {
    Timespec { tv_sec: (span.0 / 1_000_000_000) as i64, tv_nsec: (span.0 % 1_000_000_000) as i64 }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;
    use crate::Listen;
    use crate::listen::Listener;

    #[test]
    fn the_stop_signal_ends_a_stall_and_a_wait() {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let (listener, _) = Listener::bind(&Listen::parse("127.0.0.1:0").unwrap(), 16).unwrap();
        let mut poller = Poller::new(listener, Arc::clone(&stop)).unwrap();
        assert!(!poller.sleep(Nanos::ZERO));
        rustix::io::write(&*stop, &1_u64.to_ne_bytes()).unwrap();
        assert!(poller.sleep(Nanos::from_secs(3_600)));
        poller.wait(None).unwrap();
        assert_eq!((poller.next(), poller.next()), (Some(Wake::Stop), None));
    }
}
