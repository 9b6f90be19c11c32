//! Socket requests and completions of a ring, and the memory that writes need.
#![allow(unsafe_code, reason = "memory that the kernel reads and writes while a request is open")]

use crate::reactor::batch_ring::{Await, BatchRing, Completed};
use crate::reactor::buffers::{BufferRing, Region};
use io_uring::opcode;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fd;
use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;

/// Receive buffers; a power of two.
pub(super) const BUFFERS: u16 = 512;
/// Size of one buffer. An odd number of cache lines, so that the first lines of the buffers, which
/// are enough for short responses, do not share a few sets of the cache.
pub(super) const BUFFER: usize = 257 * 64;
/// Maximum number of bytes that wait for submission.
const OUTBOX: usize = 64 << 10;

/// Maximum number of requests per submission.
const SUBMITTED_MAX: u32 = 512;
/// Room for a completion of every buffer, and for those of requests that failed.
const COMPLETIONS: u32 = 4_096;

/// Owner of a completion: slot and generation of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: Kind,
    /// Generation, of which the lowest 24 bits count.
    pub(super) generation: u32,
    pub(super) slot: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Receive,
    Writable,
    Send,
    Cancel,
}

impl Tag {
    pub(super) const GENERATIONS: u32 = (1 << 24) - 1;

    fn pack(self) -> u64 {
        let generation = u64::from(self.generation & Tag::GENERATIONS);
        (self.kind as u64) << 56 | generation << 32 | u64::from(self.slot)
    }

    fn unpack(data: u64) -> Tag {
        let kind = match data >> 56 {
            0 => Kind::Receive,
            1 => Kind::Writable,
            2 => Kind::Send,
            _ => Kind::Cancel,
        };
        let generation = (data >> 32) as u32 & Tag::GENERATIONS;
        Tag { kind, generation, slot: data as u32 }
    }
}

/// Result of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) tag: Tag,
    /// Bytes, or an error number below zero.
    pub(super) result: i32,
    /// The buffer that it returns.
    pub(super) buffer: Option<u16>,
    /// More completions of this request will follow.
    pub(super) more: bool,
}

impl Completion {
    fn new(done: Completed) -> Completion {
        let Completed { number, result, buffer, more } = done;
        Completion { tag: Tag::unpack(number), result, buffer, more }
    }
}

/// Ring of one thread.
pub(super) struct KernelRing {
    ring: BatchRing,
    /// Data waiting for submission. `None` if it was leaked, because the kernel did not end its
    /// requests.
    outbox: Option<Region>,
    /// Number of bytes in the outbox.
    written: usize,
}

impl std::fmt::Debug for KernelRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelRing").field("ring", &self.ring).finish_non_exhaustive()
    }
}

/// Checks that this kernel supports batched sockets and that this process may use them.
///
/// # Errors
/// Fails with the kernel's error: unknown features are `InvalidInput`.
pub fn probe() -> io::Result<()> {
    KernelRing::open().map(|_| ())
}

impl KernelRing {
    /// Opens a ring for the calling thread.
    ///
    /// # Errors
    /// Fails like [`probe`].
    pub(super) fn open() -> io::Result<KernelRing> {
        let buffers = BufferRing::new(BUFFERS, BUFFER);
        let ring = BatchRing::new(SUBMITTED_MAX, COMPLETIONS, buffers)?;
        Ok(KernelRing { ring, outbox: Some(Region::new(OUTBOX, 1)), written: 0 })
    }

    /// Returns whether the kernel no longer works with the ring.
    pub(super) fn is_broken(&self) -> bool {
        self.ring.is_broken()
    }

    pub(super) fn buffers(&self) -> &BufferRing {
        self.ring.buffers()
    }

    pub(super) fn buffers_mut(&mut self) -> &mut BufferRing {
        self.ring.buffers_mut()
    }

    /// Receives from a socket into provided buffers until it ends or no buffer is left.
    pub(super) fn receive(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        let entry = opcode::RecvMulti::new(Fd(fd.as_raw_fd()), 0).build();
        self.push(&entry, tag, true);
    }

    /// Notifies once when a socket is writable or broken.
    pub(super) fn watch(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), libc::POLLOUT as u32).build();
        self.push(&entry, tag, true);
    }

    /// Cancels a request.
    pub(super) fn cancel(&mut self, tag: Tag) {
        let entry = opcode::AsyncCancel::new(BatchRing::kept_as(tag.pack())).build();
        let entry = entry.flags(Flags::SKIP_SUCCESS);
        self.push(&entry, Tag { kind: Kind::Cancel, ..tag }, false);
    }

    /// Sends bytes at the next submission: they are in the socket when that returns. A completion
    /// arrives only if not all were accepted: the accepted number, or the error. Returns their
    /// position until then; `None` if there is no room.
    pub(super) fn send(&mut self, fd: BorrowedFd<'_>, tag: Tag, bytes: &[u8]) -> Option<usize> {
        let outbox = self.outbox.as_ref()?;
        let start = self.written;
        if outbox.len() - start < bytes.len() {
            return None;
        }
        let place = outbox.place(start);
        // SAFETY: there is room from there on and no other reference to it: it is read by the
        // kernel and by `unsent`, both only before the outbox is emptied
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        // DONTWAIT: completes or fails at submission, so the kernel never uses memory that was
        // reused; WAITALL: a partial send is not a success, which would not be reported
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
        let entry = opcode::Send::new(Fd(fd.as_raw_fd()), place, bytes.len() as u32).flags(flags);
        let entry = entry.build().flags(Flags::SKIP_SUCCESS);
        if !self.push(&entry, tag, false) {
            return None;
        }
        self.written += bytes.len();
        Some(start)
    }

    /// Returns the bytes that are still in the outbox.
    pub(super) fn unsent(&self, start: usize, length: usize) -> &[u8] {
        let Some(outbox) = &self.outbox else { return &[] };
        assert!(start + length <= self.written, "they were written");
        // SAFETY: they are within the region and initialized; nothing is written there before the
        // outbox is emptied
        unsafe { std::slice::from_raw_parts(outbox.place(start), length) }
    }

    /// Clears the outbox, whose bytes were all passed to the sockets or taken out.
    pub(super) fn empty_outbox(&mut self) {
        self.written = 0;
    }

    /// Pushes a request. Returns false if there is no room and none can be made. `stays`: open
    /// until the kernel reports its last completion.
    fn push(&mut self, entry: &Entry, tag: Tag, stays: bool) -> bool {
        if self.ring.is_broken() {
            return false;
        }
        let push = |ring: &mut BatchRing| {
            let (entry, number) = (entry.clone(), tag.pack());
            // SAFETY: what an entry points to is the outbox, which stays as it is until the entry was
            // submitted and the request is done; one that takes buffers stays
            unsafe {
                if stays { ring.push_multishot(entry, number) } else { ring.push(entry, number) }
            }
        };
        if push(&mut self.ring) {
            return true;
        }
        self.ring.submit();
        !self.ring.is_broken() && push(&mut self.ring)
    }

    /// Submits everything pushed and adds completions to `all`.
    pub(super) fn enter(&mut self, look: Await, all: &mut Vec<Completion>) {
        self.ring.enter(look, |done| all.push(Completion::new(done)));
    }

    /// Breaks the ring, as if the kernel had refused.
    #[cfg(test)]
    pub(super) fn break_ring(&mut self) {
        self.ring.break_off();
    }

    /// Ends all requests. False where the kernel may use the memory still.
    fn end(&mut self) -> bool {
        // pushed requests would not end otherwise
        self.enter(Await::No, &mut Vec::new());
        self.ring.end()
    }
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        if !self.end() {
            // otherwise leak it, because the kernel may still read it
            std::mem::forget(self.outbox.take());
        }
    }
}
