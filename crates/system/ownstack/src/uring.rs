//! Packets with io_uring: those of a turn are sent in one system call, which also waits for
//! arriving ones.
#![allow(unsafe_code, reason = "memory that the kernel reads and writes while a request is open")]

use crate::depth::Depth;
use crate::reads::{BATCH, is_end};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fixed;
use io_uring::{Probe, opcode};
use net::reactor::{Await, BatchRing, BufferRing};
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use units::Nanos;

/// Number of receive buffers, a power of two. A buffer never used takes no memory.
const BUFFERS: usize = BATCH;
/// A virtio header and the longest packet. An odd number of cache lines, so that the first lines of
/// the buffers, all that short packets need, do not share a few cache sets.
const BUFFER: usize = 1_025 * 64;

/// Maximum number of requests submitted at once.
const SUBMITTED_MAX: u32 = 256;
/// Capacity for a completion per buffer, and for failed writes.
const COMPLETIONS: u32 = 2_048;

/// The kernel reports about twenty completions per call, and the rest with the next ones: this many
/// failures may not be all.
const REFUSALS_REPORTED: u64 = 16;
/// Number of calls after which all possible completions are reported, if each call reports some.
const POLLS_MAX: u32 = COMPLETIONS + BUFFERS as u32;

/// Owner of a completion.
const READ: u64 = 1;
const WRITE: u64 = 2;

/// The packets of a device by io_uring. It belongs to the thread that created it.
pub(crate) struct PacketRing {
    ring: BatchRing,
    depth: Depth,
    /// Buffers not passed to the kernel, the most recently used last.
    free: Vec<u16>,
    /// Buffers with unread packets, and their lengths.
    arrived: Vec<(u16, u32)>,
    /// The receive request is active.
    reading: bool,
    /// True if the receive request was pushed last and is not yet submitted.
    read_waits: bool,
    /// Packets that the device did not accept.
    refused: u64,
    /// The device was deleted: no receive request is submitted anymore, as it would end at once.
    gone: bool,
}

/// The result of one check of the completions.
#[derive(Clone, Copy, Debug, Default)]
struct ImmediateResults {
    refusals: u64,
    arrivals: u64,
}

/// On another thread the kernel rejects its requests, which is only an error.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<PacketRing>();
};

impl std::fmt::Debug for PacketRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketRing").field("reading", &self.reading).finish_non_exhaustive()
    }
}

/// Checks that this kernel supports the features that [`PacketRing`] needs, and that this process
/// may use them.
///
/// # Errors
/// Fails with the error of the kernel; `Unsupported` if it has no multishot receive request.
pub(crate) fn probe() -> io::Result<()> {
    let ring = BatchRing::new(SUBMITTED_MAX, COMPLETIONS, BufferRing::new(1, 64))?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    if probe.is_supported(opcode::ReadMulti::CODE) {
        return Ok(());
    }
    Err(io::ErrorKind::Unsupported.into())
}

impl PacketRing {
    /// Returns a ring for the packets of `queue`, for the calling thread.
    ///
    /// # Errors
    /// Fails like [`probe`].
    pub(crate) fn open(queue: impl AsFd) -> io::Result<PacketRing> {
        let pool = BufferRing::new(BUFFERS as u16, BUFFER);
        let ring = BatchRing::new(SUBMITTED_MAX, COMPLETIONS, pool)?;
        ring.submitter().register_files(&[queue.as_fd().as_raw_fd()])?;
        Ok(PacketRing {
            ring,
            depth: Depth::new(BUFFERS),
            free: (0..BUFFERS as u16).rev().collect(),
            arrived: Vec::with_capacity(BUFFERS),
            reading: false,
            read_waits: false,
            refused: 0,
            gone: false,
        })
    }

    /// Returns whether the kernel no longer uses it.
    pub(crate) fn is_broken(&self) -> bool {
        self.ring.is_broken()
    }

    /// Returns whether packets no longer arrive because the device was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Returns the number of packets that the device did not accept since the last call.
    pub(crate) fn refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Sends packets. All are passed to the device when this returns.
    pub(crate) fn send<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>) {
        self.deliver_packets(packets, Await::No);
    }

    /// Sends packets, and sleeps until one has arrived, for at most `span`; arrived packets can
    /// then be read.
    pub(crate) fn exchange<'a>(
        &mut self,
        packets: impl Iterator<Item = &'a [u8]>,
        span: Option<Duration>,
    ) {
        let look = if span.is_some_and(|span| span.is_zero()) || !self.arrived.is_empty() {
            Await::Now
        } else {
            Await::Sleep(span.map(|span| Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))))
        };
        self.deliver_packets(packets, look);
    }

    /// Takes the received packets; returns how many there were and their total bytes.
    pub(crate) fn take(&mut self, mut each: impl FnMut(&[u8])) -> (usize, usize) {
        let pool = self.ring.buffers();
        let mut packets = 0;
        let mut bytes = 0;
        for (id, length) in self.arrived.drain(..) {
            let length = length as usize;
            each(pool.bytes(id, length));
            self.free.push(id);
            packets += 1;
            bytes += length;
        }
        self.depth.note(packets, bytes);
        (packets, bytes)
    }

    /// Passes a suitable number of buffers to the kernel and submits the request that fills them.
    fn arm(&mut self) {
        let posted = BUFFERS - self.free.len() - self.arrived.len();
        let more = self.depth.wanted().saturating_sub(posted).min(self.free.len());
        if more > 0 {
            let pool = self.ring.buffers_mut();
            for id in self.free.drain(self.free.len() - more..) {
                pool.post(id);
            }
            pool.publish();
        }
        if !self.reading && !self.gone && posted + more > 0 {
            // io-uring 0.7.15 omits here that the file is a registered one
            let read = opcode::ReadMulti::new(Fixed(0), 0, 0).build().flags(Flags::FIXED_FILE);
            // SAFETY: it contains no pointer
            self.reading = unsafe { self.ring.push_multishot(read, READ) };
            self.read_waits = self.reading;
        }
    }

    /// Returns false if there is no room. `entry` writes a packet.
    fn push(&mut self, entry: &Entry) -> bool {
        // SAFETY: it points to a packet that `deliver_packets` has borrowed until the kernel has
        // read it, and uses no buffer
        unsafe { self.ring.push(entry.clone(), WRITE) }
    }

    fn deliver_packets<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>, look: Await) {
        for packet in packets {
            if self.ring.is_broken() {
                self.refused += 1;
                continue;
            }
            // NOWAIT: it completes or fails during the submission, and never waits in the kernel
            // for memory that is reused after this returns
            let write = opcode::Write::new(Fixed(0), packet.as_ptr(), packet.len() as u32)
                .rw_flags(libc::RWF_NOWAIT)
                .build()
                .flags(Flags::SKIP_SUCCESS);
            if !self.push(&write) {
                self.enter(Await::No);
                let taken = !self.ring.is_broken() && self.push(&write);
                self.refused += u64::from(!taken);
            }
        }
        if look != Await::No && !self.ring.is_broken() {
            self.arm();
        }
        if look != Await::No || self.ring.waiting() > 0 {
            self.enter(look);
        }
    }

    /// Submits all pushed requests, and processes completions: repeatedly while so many failures
    /// arrive that more are pending.
    fn enter(&mut self, look: Await) {
        let mut refusals = self.enter_once(look).refusals;
        while refusals >= REFUSALS_REPORTED {
            refusals = self.enter_once(Await::Now).refusals;
        }
    }

    /// Processes completions until there are none.
    pub(crate) fn settle_all(&mut self) {
        for _ in 0..POLLS_MAX {
            let results = self.enter_once(Await::Now);
            if results.refusals + results.arrivals == 0 {
                return;
            }
        }
    }

    fn enter_once(&mut self, look: Await) -> ImmediateResults {
        if self.ring.is_broken() {
            return ImmediateResults::default();
        }
        let refused = self.refused;
        let arrived = self.arrived.len();
        self.ring.enter(look, |done| match done.number {
            READ => {
                // out of buffers, or canceled by us: `arm` submits it again
                self.reading &= done.more;
                let failed = (done.result < 0).then(|| Errno::from_raw_os_error(-done.result));
                self.gone |= failed.is_some_and(is_end);
                let Some(id) = done.buffer else { return };
                match u32::try_from(done.result) {
                    Ok(length) => self.arrived.push((id, length)),
                    Err(_) => self.free.push(id),
                }
            }
            // successes are not reported
            other => self.refused += u64::from(other == WRITE),
        });
        if self.ring.is_broken() {
            self.give_up();
        } else {
            self.read_waits = false;
        }
        ImmediateResults {
            refusals: self.refused - refused,
            arrivals: (self.arrived.len() - arrived) as u64,
        }
    }

    /// Handles submitted packets that the kernel did not accept.
    fn give_up(&mut self) {
        // the receive request is not a packet, and the kernel never saw it
        let waits = std::mem::take(&mut self.read_waits);
        self.refused += (self.ring.waiting() as u64).saturating_sub(u64::from(waits));
    }
}

impl Drop for PacketRing {
    /// Releases the device before this returns: an active request, or a registered file of the
    /// ring, would keep it.
    fn drop(&mut self) {
        self.ring.end();
        self.ring.submitter().unregister_files().ok();
    }
}

#[cfg(test)]
pub(crate) mod tests;
