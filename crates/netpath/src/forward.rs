//! The thread between the two ends: reads packets, puts them on their links, and writes them when
//! they are due.

use crate::clock;
use crate::device::{MTU, Tun};
use crate::lanes::{LaneClients, Lanes};
use crate::replies::Replies;
use crate::tally::Tally;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use units::Nanos;
use wan::Direction;

/// Packets read from one end in a turn: more of them would make the others late.
const READS_MAX: usize = 64;
/// Longest sleep: orders are looked at this often at least.
const SLEEP_MAX: Nanos = Nanos::from_millis(500);

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
    lanes: Lanes,
    replies: Replies,
    spin: Nanos,
    ear: Ear,
}

impl Forwarder {
    pub(crate) fn new(
        ends: [Tun; 2],
        clients: LaneClients,
        replies: Replies,
        seed: u64,
        ear: Ear,
    ) -> Forwarder {
        let lanes = Lanes::new(clients, seed, clock::now());
        Forwarder { ends, lanes, replies, spin: Lanes::spin(), ear }
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
                    self.lanes.tally.broken = Some(error.to_string());
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
        let Some(number) = self.lanes.take() else {
            // it must be taken off all the same, or the device's queue would lose in its place
            let mut nowhere = [0; MTU];
            let length = end.read(&mut nowhere)?;
            if length.is_some() {
                self.lanes.overflow();
            }
            return Ok(length.is_some());
        };
        let Some(length) = end.read(self.lanes.room(number))? else {
            self.lanes.give_back(number);
            return Ok(false);
        };
        let packet = &mut self.lanes.room(number)[..length];
        match direction {
            Direction::Up => self.replies.asked(packet),
            Direction::Down => self.replies.answer(packet),
        }
        *now = clock::now();
        self.lanes.put(*now, direction, number, length);
        Ok(true)
    }

    /// Writes everything that is due.
    fn hand_over(&mut self, now: &mut Nanos) -> io::Result<()> {
        let Forwarder { ends, lanes, .. } = self;
        lanes.hand_over(now, clock::now, |_, direction, packet| {
            // the two directions write to each other's end
            match ends[1 - direction as usize].write(packet) {
                Err(error) if !passing(&error) => Err(error),
                _ => Ok(()),
            }
        })
    }

    /// Waits for a packet or the next due instant: asleep until shortly before it, then spinning.
    fn rest(&mut self, now: &mut Nanos) {
        let next = self.lanes.next_due().unwrap_or(Nanos::NEVER);
        let left = next - *now;
        if left <= self.spin {
            // a turn of the loop reads both ends: that is the spinning
            let before = *now;
            *now = clock::now();
            self.lanes.rested(Nanos::ZERO, *now - before);
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
        self.lanes.rested(*now - before, Nanos::ZERO);
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
        self.lanes.tell(clock::now())
    }

    /// An end is broken: nothing is carried any more, but whoever asks is told.
    fn mourn(mut self) {
        while let Ok(order) = self.ear.orders.recv() {
            match order {
                ForwardOrder::Stop => return,
                ForwardOrder::Tell(to) => {
                    let broken = self.lanes.tally.broken.clone();
                    let tally = self.tell();
                    self.lanes.tally.broken = broken;
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
