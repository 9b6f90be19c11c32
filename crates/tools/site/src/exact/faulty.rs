//! The fault loop: wait, freeze when a stall is due, read, answer due requests.

use std::io;

use rustix::fd::OwnedFd;
use units::Nanos;

use super::connection::{Connection, Life};
use super::core::Core;
use super::poller::{Poller, Wake};
use super::slab::{Id, Slab};
use super::{Shared, accept};
use crate::Config;

/// Time before a due instant at which the loop stops sleeping and polls: a sleeping thread wakes
/// about 50 µs late, a polling one does not.
const SPIN: Nanos = Nanos::from_micros(120);

/// Serves until stopped, or until the server dies.
pub(super) fn serve(poller: Poller, config: &Config, shared: Shared) -> io::Result<()> {
    let mut server = FaultyLoop::new(poller, config, shared);
    while !server.core.dead {
        if server.turn()? == Turn::Stop {
            break;
        }
    }
    Ok(())
}

#[derive(Debug)]
struct FaultyLoop {
    poller: Poller,
    core: Core,
    connections: Slab<Connection>,
    /// Number of accepted connections, and when the next one may be accepted.
    accepted: u64,
    accept_at: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Again,
    Stop,
}

impl FaultyLoop {
    fn new(poller: Poller, config: &Config, shared: Shared) -> FaultyLoop {
        let core = Core::new(config, shared);
        FaultyLoop { poller, core, connections: Slab::new(), accepted: 0, accept_at: Nanos::ZERO }
    }

    fn turn(&mut self) -> io::Result<Turn> {
        let timeout = self.next_instant().map(|at| (at - net::reactor::monotonic()) - SPIN);
        self.poller.wait(timeout)?;
        if self.stall_if_due()? == Turn::Stop {
            return Ok(Turn::Stop);
        }
        while let Some(wake) = self.poller.next() {
            match wake {
                Wake::Stop => return Ok(Turn::Stop),
                Wake::Listener => self.welcome()?,
                Wake::Connection { id, broken } => {
                    self.with(id, |connection, core| connection.wake(id, broken, core))?;
                }
            }
            if self.core.dead {
                return Ok(Turn::Stop);
            }
        }
        self.fire(None)?;
        if self.core.faults.weak.accept_every.is_some() && self.may_accept() && self.has_room() {
            self.poller.listen(true)?;
        }
        Ok(Turn::Again)
    }

    /// Returns the next instant with work.
    fn next_instant(&self) -> Option<Nanos> {
        let stall = self.core.stall.as_ref().and_then(|stall| stall.next_start());
        let accept = (!self.may_accept()).then_some(self.accept_at);
        [self.core.next_timer(), stall, accept].into_iter().flatten().min()
    }

    /// Performs everything due at `until`, or by now.
    fn fire(&mut self, until: Option<Nanos>) -> io::Result<()> {
        while !self.core.dead {
            let now = until.unwrap_or_else(net::reactor::monotonic);
            let Some(timer) = self.core.due_timer(now) else { break };
            self.with(timer.id, |connection, core| connection.due(timer.id, timer.duty, core))?;
        }
        Ok(())
    }

    /// Freezes if a stall has started: reads, sends and accepts nothing. Responses due before it
    /// are sent first.
    fn stall_if_due(&mut self) -> io::Result<Turn> {
        let now = net::reactor::monotonic();
        let Some(stall) = &mut self.core.stall else { return Ok(Turn::Again) };
        let Some(start) = stall.next_start().filter(|start| *start <= now) else {
            return Ok(Turn::Again);
        };
        let Some(end) = stall.begin(now) else { return Ok(Turn::Again) };
        self.fire(Some(start))?;
        loop {
            let left = end - net::reactor::monotonic();
            if left.is_zero() {
                break;
            }
            if left > SPIN && self.poller.sleep(left - SPIN) {
                return Ok(Turn::Stop);
            }
        }
        self.core.frozen_until = end;
        Ok(Turn::Again)
    }

    /// Returns whether a connection may be accepted, if accepting is paced.
    fn may_accept(&self) -> bool {
        self.core.faults.weak.accept_every.is_none() || net::reactor::monotonic() >= self.accept_at
    }

    /// Returns whether another connection can be held. A listener without room would be woken
    /// continuously.
    fn has_room(&self) -> bool {
        self.connections.len() < self.core.shared.connections_max && !self.poller.is_paused()
    }

    /// Accepts waiting connections.
    fn welcome(&mut self) -> io::Result<()> {
        while self.has_room() {
            match accept(&self.poller, &self.core.shared) {
                Ok(Some(fd)) => {
                    self.admit(fd);
                    if let Some(pace) = self.core.faults.weak.accept_every {
                        self.accept_at = net::reactor::monotonic() + pace;
                        return self.poller.listen(false);
                    }
                }
                Ok(None) => return Ok(()),
                Err(_) => return self.poller.pause(),
            }
        }
        self.poller.listen(false)
    }

    fn admit(&mut self, fd: OwnedFd) {
        let cap = self.core.faults.connection_cap.unwrap_or(u64::MAX);
        if self.connections.len() as u64 >= cap {
            return;
        }
        let number = self.accepted;
        self.accepted += 1;
        let peer = if self.core.has_log() { peer_of(&fd) } else { None };
        let id = self.connections.insert(Connection::new(fd, peer, number));
        let Some(connection) = self.connections.get_mut(id) else { return };
        if self.poller.add(connection.fd(), id).is_err() {
            self.connections.remove(id);
        }
    }

    /// Runs one step of a connection, with its consequences.
    fn with(
        &mut self,
        id: Id,
        step: impl FnOnce(&mut Connection, &mut Core) -> Life,
    ) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(id) else { return Ok(()) };
        let mut life = step(connection, &mut self.core);
        if life == Life::Open && connection.leaves() {
            return self.pass_on(id);
        }
        if life == Life::Open {
            life = connection.settle(id, &self.poller);
        }
        if life == Life::Over {
            self.connections.remove(id);
            let rested = self.may_accept();
            self.poller.listen(rested)?;
        }
        Ok(())
    }

    /// Passes a connection on to the server of the other pages.
    fn pass_on(&mut self, id: Id) -> io::Result<()> {
        let Some(connection) = self.connections.remove(id) else { return Ok(()) };
        self.poller.delete(connection.fd())?;
        self.core.pass_on(connection.passed(self.poller.is_tcp()));
        let rested = self.may_accept();
        self.poller.listen(rested)
    }
}

fn peer_of(fd: &OwnedFd) -> Option<std::net::SocketAddr> {
    rustix::net::getpeername(fd).ok().flatten()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;

    use rustix::event::{EventfdFlags, eventfd};

    use super::super::core::Duty;
    use super::*;
    use crate::counters::Counters;
    use crate::lateness::LatenessLog;
    use crate::listen::Listener;

    /// A timer without a connection, which only ends a wait.
    const NO_CONNECTION: Id = Id { index: u32::MAX, generation: 0 };

    #[test]
    fn a_full_site_does_not_listen_though_it_has_rested() {
        let mut config = Config::on_free_port();
        config.faults.weak.accept_every = Some(Nanos(1));
        let (listener, address) = Listener::bind(&config.listen, 16).unwrap();
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let shared = Shared {
            counters: Arc::new(Counters::new()),
            page_counters: Arc::new(Counters::new()),
            lateness: Arc::new(LatenessLog::new()),
            connections_max: 1,
            nodelay: true,
            pages: None,
        };
        let poller = Poller::new(listener, stop).unwrap();
        let mut server = FaultyLoop::new(poller, &config, shared);
        let connect = || TcpStream::connect(address.to_string()).unwrap();
        let (first, _second) = (connect(), connect());
        assert_eq!(server.turn().unwrap(), Turn::Again);
        assert_eq!((server.accepted, server.poller.listens()), (1, false));
        server.core.set_timer(net::reactor::monotonic(), Duty::Linger, NO_CONNECTION);
        assert_eq!(server.turn().unwrap(), Turn::Again);
        assert!(server.may_accept() && !server.poller.listens());
        drop(first);
        // how long a broken server could block here
        let patience = net::reactor::monotonic() + Nanos::from_secs(5);
        server.core.set_timer(patience, Duty::Linger, NO_CONNECTION);
        while server.accepted == 1 && server.core.next_timer().is_some() {
            server.turn().unwrap();
        }
        assert_eq!(server.accepted, 2);
    }

    #[test]
    fn a_connection_without_a_thread_for_its_page_is_closed() {
        let mut config = Config::on_free_port();
        config.faults.delay = Some(crate::faults::TimeLaw::Fixed(Nanos(1)));
        let (listener, address) = Listener::bind(&config.listen, 16).unwrap();
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let (common, _stop_sign) = crate::proper::Common::new(&config, 8);
        let shared = Shared {
            counters: Arc::new(Counters::new()),
            page_counters: Arc::new(Counters::new()),
            lateness: Arc::new(LatenessLog::new()),
            connections_max: 8,
            nodelay: true,
            pages: Some(common),
        };
        let counters = Arc::clone(&shared.counters);
        let mut server = FaultyLoop::new(Poller::new(listener, stop).unwrap(), &config, shared);
        server.core.start_pages = |_, _, _| Err(io::ErrorKind::WouldBlock.into());
        let mut client = TcpStream::connect(address.to_string()).unwrap();
        client.write_all(b"GET /gzip/10 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let patience = net::reactor::monotonic() + Nanos::from_secs(5);
        server.core.set_timer(patience, Duty::Linger, NO_CONNECTION);
        let mut served = crate::Served::default();
        while served.unanswered == 0 && server.core.next_timer().is_some() {
            assert_eq!(server.turn().unwrap(), Turn::Again);
            served = crate::Served::default();
            served.add(&counters);
        }
        assert_eq!((served.requests, served.unanswered), (1, 1));
        // closed, with a reset if its last bytes were not read
        assert!(matches!(client.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
}
