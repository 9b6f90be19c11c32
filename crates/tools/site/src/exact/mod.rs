//! The site's own loop: faults, exact delays and stalls, the null server, and the firing range.
//!
//! One thread, level-triggered epoll, no runtime. A wait for a due instant sleeps until shortly
//! before it and then polls, so that a response is sent within microseconds of its due instant.

mod connection;
mod core;
mod faulty;
mod null;
mod outgoing;
mod poller;
mod range;
mod request;
mod slab;
mod stall;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::SocketFlags;

use self::poller::Poller;
use crate::config::{Config, Engine};
use crate::counters::Counters;
use crate::lateness::LatenessLog;
use crate::listen::Listener;
use crate::proper;

/// State that a loop shares with the rest of the site.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) counters: Arc<Counters>,
    /// Counters of connections that the fault loop passes on: another thread changes them.
    pub(crate) page_counters: Arc<Counters>,
    pub(crate) lateness: Arc<LatenessLog>,
    /// Connections of this thread that may be open at once.
    pub(crate) connections_max: usize,
    /// True if Nagle's algorithm is off.
    pub(crate) nodelay: bool,
    /// Pages that the fault loop does not have; `None`: not served.
    pub(crate) pages: Option<proper::Common>,
}

/// A loop that is ready to serve.
#[derive(Debug)]
pub(crate) struct Loop {
    poller: Poller,
    shared: Shared,
    config: Config,
}

impl Loop {
    /// Creates the loop.
    /// `stop`: an event descriptor; readable means stop.
    pub(crate) fn new(
        listener: Listener,
        stop: Arc<OwnedFd>,
        config: Config,
        shared: Shared,
    ) -> std::io::Result<Loop> {
        Ok(Loop { poller: Poller::new(listener, stop)?, shared, config })
    }

    /// Serves until stopped or, with `die_after`, until it dies; then the listener and all
    /// connections are closed.
    pub(crate) fn serve(self) -> std::io::Result<()> {
        net::reactor::minimize_timer_slack();
        if let Some(defects) = &self.config.range {
            return range::serve(self.poller, defects, self.config.backlog(), self.shared);
        }
        match self.config.engine() {
            Engine::Null => null::serve(self.poller, &self.shared),
            Engine::Exact | Engine::Proper => faulty::serve(self.poller, &self.config, self.shared),
        }
    }
}

/// Returns the next connection, if one is waiting.
fn accept(poller: &Poller, shared: &Shared) -> std::io::Result<Option<OwnedFd>> {
    loop {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match rustix::net::accept_with(poller.listener()?, flags) {
            Ok(fd) => {
                shared.counters.connection();
                if poller.is_tcp() && shared.nodelay {
                    // fails only for a closed connection, which the next read reports
                    rustix::net::sockopt::set_tcp_nodelay(&fd, true).ok();
                }
                return Ok(Some(fd));
            }
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
