//! Packets by io_uring: those of a turn go out by one system call, which also waits for those that
//! come.
#![allow(unsafe_code, reason = "memory that the kernel reads and writes while a request is open")]

use crate::depth::Depth;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Probe, cqueue, opcode};
use reactor::BufferRing;
use rustix::fd::{AsFd, AsRawFd};
use std::io;
use std::time::Duration;

/// Room for packets that have come; a power of two. A buffer that was never used takes no memory.
const BUFFERS: usize = crate::port::BATCH;
/// A virtio header and the longest packet. An odd number of cache lines, so that the first lines of
/// the buffers, all that short packets need, do not share a few sets of the cache.
const BUFFER: usize = 1_025 * 64;

/// Requests that are handed over at once.
const SUBMITTED_MAX: u32 = 256;
/// Room for a completion of every buffer, and for those of writes that failed.
const COMPLETIONS: u32 = 2_048;
/// What a kernel that is short of memory, or has no room for completions, is asked again.
const TRIES: u32 = 16;

/// What a completion belongs to.
const READ: u64 = 1;
const WRITE: u64 = 2;

/// Whether to look for packets that have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterSend {
    /// Only hand over.
    No,
    Now,
    /// Sleep until one has come, so long at most.
    Sleep(Option<Duration>),
}

/// A device's packets by io_uring. It belongs to the thread that made it.
pub(crate) struct PacketRing {
    ring: IoUring,
    pool: Option<BufferRing>,
    depth: Depth,
    /// Buffers that the kernel does not have, the warmest last.
    free: Vec<u16>,
    /// Buffers with packets that nobody has looked at, and their lengths.
    arrived: Vec<(u16, u32)>,
    /// The request that takes packets in is open.
    reading: bool,
    /// That request was pushed last, and not yet submitted.
    read_waits: bool,
    /// The kernel does not take requests any more. It is asked nothing again, as requests of the past
    /// stand in the queue still, whose memory is gone.
    broken: bool,
    /// Packets that the device did not take.
    refused: u64,
    /// Time asleep does not count as waiting for a disk.
    sleep: EnterFlags,
}

// SAFETY: the memory belongs to it alone; on another thread the kernel refuses its requests, which is
// an error and nothing worse
unsafe impl Send for PacketRing {}

impl std::fmt::Debug for PacketRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketRing").field("reading", &self.reading).finish_non_exhaustive()
    }
}

fn build() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_submit_all()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMITTED_MAX)
}

/// Whether this kernel has what [`PacketRing`] needs, and this process may use it.
///
/// # Errors
/// The kernel's, where it refuses; `Unsupported` where it has no request that takes many packets in.
pub(crate) fn probe() -> io::Result<()> {
    let ring = build()?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    if probe.is_supported(opcode::ReadMulti::CODE) && ring.params().is_feature_skip_cqe_on_success()
    {
        return Ok(());
    }
    Err(io::ErrorKind::Unsupported.into())
}

impl PacketRing {
    /// A ring for the packets of `queue`, for the calling thread.
    ///
    /// # Errors
    /// As [`probe`].
    pub(crate) fn open(queue: impl AsFd) -> io::Result<PacketRing> {
        let ring = build()?;
        let pool = BufferRing::new(BUFFERS as u16, BUFFER);
        ring.submitter().register_files(&[queue.as_fd().as_raw_fd()])?;
        let entries = pool.entries();
        // SAFETY: it has so many entries, and is let go of only when no request is open
        unsafe {
            ring.submitter().register_buf_ring_with_flags(entries, BUFFERS as u16, 0, 0)?;
        }
        let mut sleep = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        if ring.params().is_feature_no_iowait() {
            sleep |= EnterFlags::NO_IOWAIT;
        }
        Ok(PacketRing {
            ring,
            pool: Some(pool),
            depth: Depth::new(BUFFERS),
            free: (0..BUFFERS as u16).rev().collect(),
            arrived: Vec::with_capacity(BUFFERS),
            reading: false,
            read_waits: false,
            broken: false,
            refused: 0,
            sleep,
        })
    }

    /// Whether the kernel does not work with it any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Packets that the device did not take since this was last asked.
    pub(crate) fn refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Hands packets over. All are with the device when this returns.
    pub(crate) fn send<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>) {
        self.hand_over(packets, AfterSend::No);
    }

    /// Hands packets over, and sleeps until one has come, `span` at most; what has come is there to be
    /// taken.
    pub(crate) fn exchange<'a>(
        &mut self,
        packets: impl Iterator<Item = &'a [u8]>,
        span: Option<Duration>,
    ) {
        let look = if span.is_some_and(|span| span.is_zero()) || !self.arrived.is_empty() {
            AfterSend::Now
        } else {
            AfterSend::Sleep(span)
        };
        self.hand_over(packets, look);
    }

    /// Takes what has come.
    pub(crate) fn take(&mut self, mut each: impl FnMut(&[u8])) {
        let Some(pool) = &self.pool else { return };
        let (mut packets, mut bytes) = (0, 0);
        for (id, length) in self.arrived.drain(..) {
            let length = length as usize;
            each(pool.bytes(id, length));
            self.free.push(id);
            packets += 1;
            bytes += length;
        }
        self.depth.note(packets, bytes);
    }

    /// Gives buffers to the kernel, as many as are worth it, and opens the request that fills them.
    fn arm(&mut self) {
        let Some(pool) = &mut self.pool else { return };
        let posted = BUFFERS - self.free.len() - self.arrived.len();
        let more = self.depth.wanted().saturating_sub(posted).min(self.free.len());
        if more > 0 {
            for id in self.free.drain(self.free.len() - more..) {
                pool.post(id);
            }
            pool.publish();
        }
        if !self.reading && posted + more > 0 {
            // io-uring 0.7.15 forgets here that the file is a registered one
            let read = opcode::ReadMulti::new(Fixed(0), 0, 0).build().flags(Flags::FIXED_FILE);
            let read = read.user_data(READ);
            self.reading = self.push(&read);
            self.read_waits = self.reading;
        }
    }

    /// False where there is no room.
    fn push(&mut self, entry: &Entry) -> bool {
        // SAFETY: what an entry points to is the pool, or packets that `hand_over` has borrowed until the
        // kernel has read them
        unsafe { self.ring.submission().push(entry).is_ok() }
    }

    fn hand_over<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>, look: AfterSend) {
        for packet in packets {
            if self.broken {
                self.refused += 1;
                continue;
            }
            // NOWAIT: it is done or refused while it is submitted, and never waits in the kernel for
            // memory of ours that is used anew when this returns
            let write = opcode::Write::new(Fixed(0), packet.as_ptr(), packet.len() as u32)
                .rw_flags(libc::RWF_NOWAIT)
                .build()
                .flags(Flags::SKIP_SUCCESS)
                .user_data(WRITE);
            if !self.push(&write) {
                self.enter(AfterSend::No);
                let taken = !self.broken && self.push(&write);
                self.refused += u64::from(!taken);
            }
        }
        if look != AfterSend::No {
            self.arm();
        }
        if look != AfterSend::No || !self.ring.submission().is_empty() {
            self.enter(look);
        }
    }

    /// Lets the kernel read what was pushed, all of it, and looks at what is done.
    fn enter(&mut self, mut look: AfterSend) {
        for _ in 0..TRIES {
            if self.broken {
                return;
            }
            let done = self.call(look);
            self.reap();
            match done.map_err(|error| error.raw_os_error()) {
                // a sleep that was long enough, or interrupted; no memory, or no room for completions,
                // which there is now
                Ok(_) | Err(Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(_) => return self.give_up(),
            }
            if self.ring.submission().is_empty() {
                self.read_waits = false;
                return;
            }
            look = AfterSend::No;
        }
        self.give_up();
    }

    /// The kernel did not take what was handed over.
    fn give_up(&mut self) {
        self.broken = true;
        // the request that takes packets in is no packet, and the kernel never saw it
        let waits = std::mem::take(&mut self.read_waits);
        self.reading &= !waits;
        self.refused += (self.ring.submission().len() as u64).saturating_sub(u64::from(waits));
    }

    fn call(&mut self, look: AfterSend) -> io::Result<usize> {
        let count = self.ring.submission().len() as u32;
        let submitter = self.ring.submitter();
        let (span, args);
        // SAFETY: the arguments live until the call is over, and their kind is what the flags say
        unsafe {
            match look {
                AfterSend::No => submitter.enter::<()>(count, 0, 0, None),
                AfterSend::Now => {
                    submitter.enter::<()>(count, 0, EnterFlags::GETEVENTS.bits(), None)
                }
                AfterSend::Sleep(None) => {
                    args = SubmitArgs::new();
                    submitter.enter(count, 1, self.sleep.bits(), Some(&args))
                }
                AfterSend::Sleep(Some(most)) => {
                    span = Timespec::from(most);
                    args = SubmitArgs::new().timespec(&span);
                    submitter.enter(count, 1, self.sleep.bits(), Some(&args))
                }
            }
        }
    }

    /// Looks at what is done.
    fn reap(&mut self) {
        let Some(pool) = &mut self.pool else { return };
        for done in self.ring.completion() {
            if done.user_data() != READ {
                // a success is not told
                self.refused += u64::from(done.user_data() == WRITE);
                continue;
            }
            if !cqueue::more(done.flags()) {
                // out of buffers, or ended by us: `arm` begins it again
                self.reading = false;
            }
            let Some(id) = cqueue::buffer_select(done.flags()) else { continue };
            pool.back(id);
            match u32::try_from(done.result()) {
                Ok(length) => self.arrived.push((id, length)),
                Err(_) => self.free.push(id),
            }
        }
    }

    /// Ends the request that takes packets in. False where the kernel may use the buffers still.
    fn end(&mut self) -> bool {
        let second = Timespec::new().sec(1);
        // what is open is ended where it stands; that there is nothing is fine
        self.ring.submitter().register_sync_cancel(Some(second), CancelBuilder::any()).ok();
        for _ in 0..TRIES {
            if !self.reading {
                break;
            }
            let span = Timespec::from(Duration::from_millis(10));
            let args = SubmitArgs::new().timespec(&span);
            // SAFETY: as in `call`; nothing is submitted
            unsafe { self.ring.submitter().enter(0, 1, self.sleep.bits(), Some(&args)).ok() };
            self.reap();
        }
        !self.reading
    }
}

impl Drop for PacketRing {
    /// The device is free when this is done: an open request, or a file of the ring, would hold it.
    fn drop(&mut self) {
        if !self.end() {
            // rather lost than written to by the kernel when it is somebody else's
            std::mem::forget(self.pool.take());
        }
        self.ring.submitter().unregister_buf_ring(0).ok();
        self.ring.submitter().unregister_files().ok();
    }
}

#[cfg(test)]
mod tests;
