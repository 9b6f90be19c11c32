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

/// Maximum number of packets read from one end per turn, so that others are not delayed.
const READS_MAX: usize = 64;
/// Maximum sleep: commands are checked at least this often.
const SLEEP_MAX: Nanos = Nanos::from_millis(500);

/// Command for the thread.
pub(crate) enum ForwardOrder {
    /// Requests the counts since the previous request.
    ReportTally(Sender<Tally>),
    Stop,
}

/// The receiving end of the thread's commands.
pub(crate) struct CommandReceiver {
    pub(crate) orders: Receiver<ForwardOrder>,
    /// Set when there are commands in `orders`.
    pub(crate) called: Arc<AtomicBool>,
    /// Becomes readable then, for a sleeping thread.
    pub(crate) bell: UnixDatagram,
}

pub(crate) struct Forwarder {
    /// The clients' end, then the server's: a packet from the first goes up, from the second down.
    ends: [Tun; 2],
    lanes: Lanes,
    replies: Replies,
    spin: Nanos,
    ear: CommandReceiver,
}

impl Forwarder {
    pub(crate) fn new(
        ends: [Tun; 2],
        clients: LaneClients,
        replies: Replies,
        seed: u64,
        ear: CommandReceiver,
    ) -> Forwarder {
        let lanes = Lanes::new(clients, seed, clock::now());
        Forwarder { ends, lanes, replies, spin: Lanes::spin(), ear }
    }

    /// Forwards packets until it is stopped or an end fails.
    pub(crate) fn run(mut self) {
        // with a timer slack of 50 us a thread cannot be accurate to 10 us
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).ok();
        let mut now = clock::now();
        loop {
            if self.ear.called.swap(false, Ordering::Acquire) && self.execute_commands() {
                return;
            }
            let read = match self.turn(&mut now) {
                Ok(read) => read,
                Err(error) => {
                    self.lanes.tally.broken = Some(error.to_string());
                    return self.answer_without_forwarding();
                }
            };
            if !read {
                self.rest(&mut now);
            }
        }
    }

    /// Reads from both ends and delivers due packets; false if nothing was read.
    fn turn(&mut self, now: &mut Nanos) -> io::Result<bool> {
        let mut read = false;
        for direction in Direction::BOTH {
            for _ in 0..READS_MAX {
                if !self.read(direction, now)? {
                    break;
                }
                read = true;
            }
            self.deliver_packets(now)?;
        }
        Ok(read)
    }

    /// Reads one packet from the end where packets of this direction enter.
    fn read(&mut self, direction: Direction, now: &mut Nanos) -> io::Result<bool> {
        let end = &self.ends[direction as usize];
        let Some(number) = self.lanes.take() else {
            // it must be read anyway; otherwise the queue of the device would drop others
            let mut nowhere = [0; MTU];
            let length = end.read(&mut nowhere)?;
            if length.is_some() {
                self.lanes.overflow();
            }
            return Ok(length.is_some());
        };
        let Some(length) = end.read(self.lanes.room(number))? else {
            self.lanes.release_unfilled(number);
            return Ok(false);
        };
        let packet = &mut self.lanes.room(number)[..length];
        match direction {
            Direction::Up => self.replies.note_destination(packet),
            Direction::Down => self.replies.answer(packet),
        }
        *now = clock::now();
        self.lanes.put(*now, direction, number, length);
        Ok(true)
    }

    /// Writes everything that is due.
    fn deliver_packets(&mut self, now: &mut Nanos) -> io::Result<()> {
        let Forwarder { ends, lanes, .. } = self;
        lanes.deliver_packets(now, clock::now, |_, direction, packet| {
            // each direction writes to the end of the other
            match ends[1 - direction as usize].write(packet) {
                Err(error) if !passing(&error) => Err(error),
                _ => Ok(()),
            }
        })
    }

    /// Waits for a packet or the next due time: asleep until shortly before it, then spinning.
    fn rest(&mut self, now: &mut Nanos) {
        let next = self.lanes.next_due().unwrap_or(Nanos::NEVER);
        let left = next - *now;
        if left <= self.spin {
            // one iteration reads both ends: that is the spinning
            let before = *now;
            *now = clock::now();
            self.lanes.record_rest(Nanos::ZERO, *now - before);
            return;
        }
        let span = (left - self.spin).min(SLEEP_MAX);
        let secs = span.0 / Nanos::SECOND.0;
        let nanos = span.0 % Nanos::SECOND.0;
        let timeout = Timespec { tv_sec: secs as i64, tv_nsec: nanos as _ };
        let [near, far] = &self.ends;
        let mut wait = [
            PollFd::from_borrowed_fd(near.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(far.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.ear.bell.as_fd(), PollFlags::IN),
        ];
        // a signal ends it early, which is harmless
        poll(&mut wait, Some(&timeout)).ok();
        let before = *now;
        *now = clock::now();
        self.lanes.record_rest(*now - before, Nanos::ZERO);
    }

    /// Executes commands; true if the thread must end.
    fn execute_commands(&mut self) -> bool {
        let mut ring = [0; 8];
        while self.ear.bell.recv(&mut ring).is_ok() {}
        while let Ok(order) = self.ear.orders.try_recv() {
            match order {
                ForwardOrder::Stop => return true,
                ForwardOrder::ReportTally(to) => {
                    let tally = self.take_tally();
                    // the requester may have exited
                    to.send(tally).ok();
                }
            }
        }
        false
    }

    /// Returns the counters since the previous call.
    fn take_tally(&mut self) -> Tally {
        self.lanes.take_tally(clock::now())
    }

    /// Answers requests without forwarding, after an end has failed.
    fn answer_without_forwarding(mut self) {
        while let Ok(order) = self.ear.orders.recv() {
            match order {
                ForwardOrder::Stop => return,
                ForwardOrder::ReportTally(to) => {
                    let broken = self.lanes.tally.broken.clone();
                    let tally = self.take_tally();
                    self.lanes.tally.broken = broken;
                    to.send(tally).ok();
                }
            }
        }
    }
}

/// Returns whether the error concerns a single packet: the receiving end had no memory for it, or
/// considers it invalid.
fn passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOMEM | libc::ENOBUFS | libc::EAGAIN | libc::EINTR | libc::EINVAL)
    )
}
