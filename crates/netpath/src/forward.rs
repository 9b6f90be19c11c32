//! The thread between the two ends: reads packets, asks their links when they are due, and writes
//! them then. One heap entry for each link that has something under way: at the most links that
//! there are, a heap costs a third of a microsecond a packet beside the four of reading and writing
//! it, so that a timing wheel would not show.

use crate::buffers::Buffers;
use crate::clock;
use crate::device::{MTU, Tun};
use crate::tally::Tally;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use units::{Nanos, Seed};
use wan::{Direction, LinkCounts, Lost, PathLink, PathSpec, flip};

/// Packets read from one end in a turn: more of them would make the others late.
const READS_MAX: usize = 64;
/// How long before a due instant the thread spins instead of sleeping, where it has a core for that.
pub(crate) const SPIN: Nanos = Nanos::from_micros(60);
/// Longest sleep: orders are looked at this often at least.
const SLEEP_MAX: Nanos = Nanos::from_millis(500);

/// Which clients live where, and behind what.
pub(crate) struct Clients {
    /// The first one's address; the others follow it.
    pub(crate) first: Ipv4Addr,
    /// For each, the row of its kind.
    pub(crate) kinds: Vec<u32>,
    pub(crate) paths: Vec<PathSpec>,
}

/// What may be asked of the thread.
pub(crate) enum ForwardOrder {
    /// What was counted since the last time.
    Tell(Sender<Tally>),
    Stop,
}

/// The other end of the thread's ear.
pub(crate) struct Ear {
    pub(crate) orders: Receiver<ForwardOrder>,
    /// Set whenever something is in `orders`.
    pub(crate) called: Arc<AtomicBool>,
    /// Becomes readable then, for when the thread sleeps.
    pub(crate) bell: UnixDatagram,
}

pub(crate) struct Forwarder {
    /// The clients' end, then the server's: a packet read at one is going up, at the other down.
    ends: [Tun; 2],
    links: Vec<PathLink>,
    clients: Clients,
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// For each link, when it is next looked at: other entries of `due` are stale.
    armed: Vec<Nanos>,
    buffers: Buffers,
    lost: Vec<Lost>,
    spin: Nanos,
    tally: Tally,
    /// What was told before, of each kind.
    told: Vec<[LinkCounts; 2]>,
    since: Nanos,
    ear: Ear,
}

impl Forwarder {
    pub(crate) fn new(
        ends: [Tun; 2],
        clients: Clients,
        seed: u64,
        spin: Nanos,
        ear: Ear,
    ) -> Forwarder {
        let now = clock::now();
        let specs: Vec<[Arc<wan::LinkSpec>; 2]> = clients
            .paths
            .iter()
            .map(|path| [Arc::new(path.up.clone()), Arc::new(path.down.clone())])
            .collect();
        let mut links = Vec::with_capacity(clients.kinds.len() * 2);
        for (number, kind) in clients.kinds.iter().enumerate() {
            for direction in Direction::BOTH {
                let spec = specs[*kind as usize][direction as usize].clone();
                links.push(PathLink::new(spec, Seed(seed), number as u64, direction, now));
            }
        }
        let kinds = clients.paths.len();
        Forwarder {
            ends,
            armed: vec![Nanos::NEVER; links.len()],
            links,
            clients,
            due: BinaryHeap::new(),
            buffers: Buffers::default(),
            lost: Vec::new(),
            spin,
            tally: Tally::new(kinds),
            told: vec![[LinkCounts::default(); 2]; kinds],
            since: now,
            ear,
        }
    }

    /// Carries packets until it is told to stop, or an end breaks.
    pub(crate) fn run(mut self) {
        // a thread whose timers are blunt by 50 us cannot be punctual to 10
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).ok();
        let mut now = clock::now();
        loop {
            if self.ear.called.swap(false, Ordering::Acquire) && self.obey() {
                return;
            }
            let read = match self.turn(&mut now) {
                Ok(read) => read,
                Err(error) => {
                    self.tally.broken = Some(error.to_string());
                    return self.mourn();
                }
            };
            if !read {
                self.rest(&mut now);
            }
        }
    }

    /// Reads from both ends and hands over what is due; false when nothing was read.
    fn turn(&mut self, now: &mut Nanos) -> io::Result<bool> {
        let mut read = false;
        for direction in Direction::BOTH {
            for _ in 0..READS_MAX {
                if !self.read(direction, now)? {
                    break;
                }
                read = true;
            }
            self.hand_over(now)?;
        }
        Ok(read)
    }

    /// Takes one packet from the end where those in this direction come in.
    fn read(&mut self, direction: Direction, now: &mut Nanos) -> io::Result<bool> {
        let end = &self.ends[direction as usize];
        let Some(number) = self.buffers.take() else {
            // it must be taken off all the same, or the device's queue would lose in its place
            let mut nowhere = [0; MTU];
            let length = end.read(&mut nowhere)?;
            self.tally.overflowed += u64::from(length.is_some());
            return Ok(length.is_some());
        };
        let Some(length) = end.read(self.buffers.room(number))? else {
            self.buffers.give_back(number);
            return Ok(false);
        };
        *now = clock::now();
        let packet = &self.buffers.room(number)[..length];
        let Some(client) = client_of(packet, direction, &self.clients) else {
            self.tally.foreign += 1;
            self.buffers.give_back(number);
            return Ok(true);
        };
        let link = client * 2 + direction as usize;
        let copies = self.links[link].push(*now, length as u32, number, &mut self.lost);
        self.buffers.fill(number, length, copies);
        self.forget_lost();
        self.arm(link);
        Ok(true)
    }

    fn forget_lost(&mut self) {
        for lost in self.lost.drain(..) {
            self.buffers.done(lost.token);
        }
    }

    /// Sees to it that the link is looked at when it next has something.
    fn arm(&mut self, link: usize) {
        let next = self.links[link].next_at().unwrap_or(Nanos::NEVER);
        if self.armed[link] != next {
            self.armed[link] = next;
            if next != Nanos::NEVER {
                self.due.push(Reverse((next, link as u32)));
            }
        }
    }

    /// Writes everything that is due. The clock is read again when the next is due later than it
    /// last said.
    fn hand_over(&mut self, now: &mut Nanos) -> io::Result<()> {
        while let Some(next) = self.next_due() {
            if next > *now {
                *now = clock::now();
                if next > *now {
                    break;
                }
            }
            let Some(Reverse((_, link))) = self.due.pop() else { break };
            let link = link as usize;
            self.armed[link] = Nanos::NEVER;
            while let Some(delivery) = self.links[link].pop(*now, &mut self.lost) {
                let packet = self.buffers.packet(delivery.token);
                if let Some(bit) = delivery.corrupt {
                    flip(packet, bit);
                }
                *now = clock::now();
                self.tally.late(*now - delivery.due);
                // the two directions write to each other's end
                let written = self.ends[1 - link % 2].write(packet);
                if let Some(bit) = delivery.corrupt {
                    // back again: a copy of it may follow and be flipped by itself
                    flip(packet, bit);
                }
                self.buffers.done(delivery.token);
                if let Err(error) = written
                    && !passing(&error)
                {
                    return Err(error);
                }
            }
            self.forget_lost();
            self.arm(link);
        }
        Ok(())
    }

    /// The earliest instant at which a link is to be looked at, with stale entries taken off.
    fn next_due(&mut self) -> Option<Nanos> {
        loop {
            let Reverse((at, link)) = *self.due.peek()?;
            if self.armed[link as usize] == at {
                return Some(at);
            }
            self.due.pop();
        }
    }

    /// Waits for a packet or the next due instant: asleep until shortly before it, then spinning.
    fn rest(&mut self, now: &mut Nanos) {
        let next = self.next_due().unwrap_or(Nanos::NEVER);
        let left = next - *now;
        if left <= self.spin {
            // a turn of the loop reads both ends: that is the spinning
            let before = *now;
            *now = clock::now();
            self.tally.spun += *now - before;
            return;
        }
        let span = (left - self.spin).min(SLEEP_MAX);
        let (secs, nanos) = (span.0 / Nanos::SECOND.0, span.0 % Nanos::SECOND.0);
        let timeout = Timespec { tv_sec: secs as i64, tv_nsec: nanos as _ };
        let [near, far] = &self.ends;
        let mut wait = [
            PollFd::from_borrowed_fd(near.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(far.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.ear.bell.as_fd(), PollFlags::IN),
        ];
        // a signal ends it early, which does no harm
        poll(&mut wait, Some(&timeout)).ok();
        let before = *now;
        *now = clock::now();
        self.tally.slept += *now - before;
    }

    /// Carries orders out; true when the thread is to end.
    fn obey(&mut self) -> bool {
        let mut ring = [0; 8];
        while self.ear.bell.recv(&mut ring).is_ok() {}
        while let Ok(order) = self.ear.orders.try_recv() {
            match order {
                ForwardOrder::Stop => return true,
                ForwardOrder::Tell(to) => {
                    let tally = self.tell();
                    // who asked may have gone
                    to.send(tally).ok();
                }
            }
        }
        false
    }

    /// The counts since the last telling.
    fn tell(&mut self) -> Tally {
        let kinds = self.clients.paths.len();
        let mut sums = vec![[LinkCounts::default(); 2]; kinds];
        for (number, link) in self.links.iter().enumerate() {
            let kind = self.clients.kinds[number / 2] as usize;
            sums[kind][number % 2] += link.counts();
        }
        let now = clock::now();
        let mut tally = std::mem::replace(&mut self.tally, Tally::new(kinds));
        for (row, both) in sums.iter().enumerate() {
            for (way, sum) in both.iter().enumerate() {
                tally.kinds[row][way] = sum.since(&self.told[row][way]);
            }
        }
        self.told = sums;
        tally.span = now - self.since;
        self.since = now;
        tally
    }

    /// An end is broken: nothing is carried any more, but whoever asks is told.
    fn mourn(mut self) {
        while let Ok(order) = self.ear.orders.recv() {
            match order {
                ForwardOrder::Stop => return,
                ForwardOrder::Tell(to) => {
                    let broken = self.tally.broken.clone();
                    let tally = self.tell();
                    self.tally.broken = broken;
                    to.send(tally).ok();
                }
            }
        }
    }
}

/// A refusal that concerns one packet: the receiving end had no memory for it, or took it for no
/// packet at all.
fn passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOMEM | libc::ENOBUFS | libc::EAGAIN | libc::EINTR | libc::EINVAL)
    )
}

/// The client whose packet it is: by its source on the way up, by its destination on the way down.
fn client_of(packet: &[u8], direction: Direction, clients: &Clients) -> Option<usize> {
    let at = match direction {
        Direction::Up => 12,
        Direction::Down => 16,
    };
    if packet.first()? >> 4 != 4 || packet.len() < 20 {
        return None;
    }
    let address: [u8; 4] = packet[at..at + 4].try_into().ok()?;
    let number = u32::from_be_bytes(address).checked_sub(u32::from(clients.first))? as usize;
    (number < clients.kinds.len()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45; 20];
        packet[12..16].copy_from_slice(&source);
        packet[16..20].copy_from_slice(&destination);
        packet
    }

    #[test]
    fn a_packet_belongs_to_the_client_that_sends_or_gets_it() {
        let first = Ipv4Addr::new(198, 18, 0, 1);
        let clients = Clients { first, kinds: vec![0, 0, 1], paths: Vec::new() };
        let up = |source| client_of(&packet(source, [127, 0, 0, 1]), Direction::Up, &clients);
        assert_eq!(up([198, 18, 0, 1]), Some(0));
        assert_eq!(up([198, 18, 0, 3]), Some(2));
        assert_eq!(up([198, 18, 0, 4]), None);
        assert_eq!(up([198, 18, 0, 0]), None);
        let down = packet([127, 0, 0, 1], [198, 18, 0, 2]);
        assert_eq!(client_of(&down, Direction::Down, &clients), Some(1));
        // no IPv4, cut short, nothing at all
        assert_eq!(client_of(&[0x60; 40], Direction::Up, &clients), None);
        assert_eq!(client_of(&down[..19], Direction::Down, &clients), None);
        assert_eq!(client_of(&[], Direction::Up, &clients), None);
    }
}
