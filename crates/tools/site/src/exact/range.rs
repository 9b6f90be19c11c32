//! The firing range over sockets: the server with switches from the simulations, with a descriptor
//! for each connection and a clock.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::time::Duration;

use faulty::{Act, Defects, Entry, FaultyServer};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown, sockopt};
use units::Nanos;

use super::poller::{Interest, Poller, Wake};
use super::slab::{Id, Slab};
use super::{Shared, accept};
use crate::Listen;
use crate::listen::Listener;

const READ_LEN: usize = 64 << 10;
/// Time for which a client may keep sending before its connection, which we have closed, is
/// dropped: unread data would turn the close into a reset (RFC 9112 section 9.6).
const LINGER: Nanos = Nanos::from_secs(2);

/// Serves until stopped, or until the server dies for good.
pub(super) fn serve(
    poller: Poller,
    defects: &Defects,
    backlog: u32,
    shared: Shared,
) -> io::Result<()> {
    let mut server = RangeLoop {
        range: FaultyServer::new(defects),
        lines: Slab::new(),
        lingering: VecDeque::new(),
        address: address(&poller)?,
        backlog,
        accept_at: Nanos::ZERO,
        resting: false,
        closed: false,
        left_open: Vec::new(),
        scratch: vec![0; READ_LEN],
        poller,
        shared,
    };
    while server.turn()? {}
    Ok(())
}

#[derive(Debug)]
struct RangeLoop {
    poller: Poller,
    shared: Shared,
    range: FaultyServer,
    lines: Slab<ClientLine>,
    /// Connections that we have ended, in the order of their last instants.
    lingering: VecDeque<(Nanos, Id)>,
    /// Address for listening again after a crash.
    address: Listen,
    backlog: u32,
    /// The next connection is accepted then.
    accept_at: Nanos,
    /// True while no connections are accepted, because there is no room or because of the pace.
    resting: bool,
    /// True if the listener is closed.
    closed: bool,
    /// Connections that the server leaked, never to be closed.
    left_open: Vec<File>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct ClientLine {
    fd: OwnedFd,
    out: VecDeque<u8>,
    /// True if a FIN follows the pending data.
    ends: bool,
    ended: bool,
    /// True if the client has ended its side.
    client_done: bool,
    /// True if the range was notified that bytes wait.
    notified: bool,
    interest: Interest,
}

/// Reason why a connection is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    InOrder,
    /// Its socket reported an error or a hangup.
    Broken,
}

impl RangeLoop {
    /// Runs one turn; returns false when the server is done.
    fn turn(&mut self) -> io::Result<bool> {
        let now = net::reactor::monotonic();
        let next = self.next_instant(now);
        let timeout = (next != Nanos::NEVER).then(|| next.0.saturating_sub(now.0)).map(Nanos);
        self.poller.wait(timeout)?;
        while let Some(wake) = self.poller.next() {
            match wake {
                Wake::Stop => return Ok(false),
                Wake::Listener => self.welcome()?,
                Wake::Connection { id, broken } => self.ready(id, broken),
            }
        }
        let now = net::reactor::monotonic();
        for (key, act) in self.range.acts(now) {
            self.perform(id_of(key), act);
        }
        while self.lingering.front().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, id)) = self.lingering.pop_front() {
                self.drop_line(id, Gone::InOrder);
            }
        }
        self.check_accepts(now)
    }

    fn next_instant(&self, now: Nanos) -> Nanos {
        let linger = self.lingering.front().map_or(Nanos::NEVER, |(until, _)| *until);
        let rested = if self.accept_at > now { self.accept_at } else { Nanos::NEVER };
        let back = if self.closed { self.range.dead_until() } else { Nanos::NEVER };
        self.range.due().min(linger).min(rested).min(back)
    }

    /// Leaves as many descriptors open as the range does, as long as there are any.
    fn leave_open(&mut self) {
        while (self.left_open.len() as u64) < self.range.left_open() {
            match File::open("/dev/null") {
                Ok(file) => self.left_open.push(file),
                Err(_) => return,
            }
        }
    }

    /// Listens, or does not, as the range does.
    fn check_accepts(&mut self, now: Nanos) -> io::Result<bool> {
        if self.range.is_aborted() {
            // required by the switch
            std::process::abort();
        }
        self.leave_open();
        let dead_until = self.range.dead_until();
        if dead_until == Nanos::NEVER {
            return Ok(false);
        }
        match (self.closed, now < dead_until) {
            (false, true) => {
                self.closed = true;
                self.poller.close_listener()?;
            }
            (true, false) => {
                let bound = Listener::bind(&self.address, self.backlog);
                let (listener, _) = bound.map_err(io::Error::other)?;
                self.poller.replace_listener(listener)?;
                self.closed = false;
            }
            (false, false) if self.resting && now >= self.accept_at => {
                self.resting = self.lines.len() >= self.shared.connections_max;
                self.poller.listen(!self.resting)?;
            }
            _ => {}
        }
        Ok(true)
    }

    fn welcome(&mut self) -> io::Result<()> {
        while self.lines.len() < self.shared.connections_max {
            match accept(&self.poller, &self.shared) {
                Ok(Some(fd)) => {
                    self.admit(fd);
                    if let Some((_, pace)) = self.range.backlog() {
                        self.accept_at = net::reactor::monotonic() + pace;
                        self.resting = true;
                        return self.poller.listen(false);
                    }
                }
                Ok(None) => return Ok(()),
                Err(_) => return self.poller.pause(),
            }
        }
        self.resting = true;
        self.poller.listen(false)
    }

    fn admit(&mut self, fd: OwnedFd) {
        let line = ClientLine {
            fd,
            out: VecDeque::new(),
            ends: false,
            ended: false,
            client_done: false,
            notified: false,
            interest: Interest::READ,
        };
        let id = self.lines.insert(line);
        let Some(line) = self.lines.get_mut(id) else { return };
        let known = self.poller.add(&line.fd, id).is_ok();
        if !known || self.range.connect(net::reactor::monotonic(), key_of(id)) == Entry::Refuse {
            self.lines.remove(id);
        }
    }

    fn ready(&mut self, id: Id, broken: bool) {
        let Some(line) = self.lines.get_mut(id) else { return };
        let interest = line.interest;
        if interest.write {
            self.flush(id);
        }
        if interest.read {
            self.read(id);
        } else if broken {
            self.drop_line(id, Gone::Broken);
        }
    }

    fn read(&mut self, id: Id) {
        let Some(line) = self.lines.get_mut(id) else { return };
        let now = net::reactor::monotonic();
        match rustix::io::read(&line.fd, &mut self.scratch[..]) {
            Ok(0) => {
                line.client_done = true;
                if line.ended {
                    return self.drop_line(id, Gone::InOrder);
                }
                self.range.half_closed(now, key_of(id));
                self.settle(id);
            }
            Ok(count) => {
                self.shared.counters.received(count);
                if !line.ends {
                    self.range.receive(now, key_of(id), &self.scratch[..count]);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.drop_line(id, Gone::Broken),
        }
    }

    fn perform(&mut self, id: Id, act: Act) {
        let Some(line) = self.lines.get_mut(id) else { return };
        match act {
            Act::Send(bytes) => {
                book(&self.shared, &bytes);
                line.out.extend(bytes);
                self.flush(id);
            }
            Act::Close | Act::GiveUp => {
                if act == Act::GiveUp {
                    line.out.clear();
                }
                line.ends = true;
                self.flush(id);
            }
            Act::Reset => {
                // fails only on a connection that is gone already
                sockopt::set_socket_linger(&line.fd, Some(Duration::ZERO)).ok();
                self.drop_line(id, Gone::InOrder);
            }
        }
    }

    /// Writes as much as the kernel accepts.
    fn flush(&mut self, id: Id) {
        let Some(line) = self.lines.get_mut(id) else { return };
        let before = line.out.len();
        while !line.out.is_empty() {
            match send(&line.fd, line.out.as_slices().0, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.shared.counters.sent(sent);
                    line.out.drain(..sent);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return self.drop_line(id, Gone::Broken),
            }
        }
        let left = line.out.len();
        if line.notified && left != before || left > 0 && !line.notified {
            line.notified = left > 0;
            self.range.unsent(net::reactor::monotonic(), key_of(id), left as u64);
        }
        if left == 0 && line.ends && !line.ended {
            line.ended = true;
            let shut = shutdown(&line.fd, Shutdown::Write);
            if line.client_done || shut.is_err() {
                return self.drop_line(id, Gone::InOrder);
            }
            self.lingering.push_back((net::reactor::monotonic() + LINGER, id));
        }
        self.settle(id);
    }

    /// Registers interest in the needed events.
    fn settle(&mut self, id: Id) {
        let Some(line) = self.lines.get_mut(id) else { return };
        let interest = Interest { read: !line.client_done, write: !line.out.is_empty() };
        if interest != line.interest {
            line.interest = interest;
            if self.poller.modify(&line.fd, id, interest).is_err() {
                self.drop_line(id, Gone::InOrder);
            }
        }
    }

    fn drop_line(&mut self, id: Id, gone: Gone) {
        if self.lines.get_mut(id).is_some() {
            self.range.remove_connection(
                net::reactor::monotonic(),
                key_of(id),
                gone == Gone::Broken,
            );
            self.lines.remove(id);
        }
    }
}

/// Counts a response by its status line.
fn book(shared: &Shared, bytes: &[u8]) {
    let status = bytes.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    if let Some(status) = status.and_then(|digits| digits.parse().ok()).filter(|code| *code >= 200)
    {
        shared.counters.requests(1);
        shared.counters.answers(status, 1);
    }
}

fn address(poller: &Poller) -> io::Result<Listen> {
    let name: std::net::SocketAddr = rustix::net::getsockname(poller.listener()?)?.try_into()?;
    Ok(Listen::Tcp(name.to_string()))
}

fn key_of(id: Id) -> u64 {
    u64::from(id.generation) << 32 | u64::from(id.index)
}

fn id_of(key: u64) -> Id {
    // the halves of what `key_of` made
    Id { index: key as u32, generation: (key >> 32) as u32 }
}
