//! What sockets ask of a ring and what it tells of them, and the memory that writes need.
#![allow(unsafe_code, reason = "memory that the kernel reads and writes while a request is open")]

use crate::reactor::batch_ring::{Await, BatchRing, Completed};
use crate::reactor::buffers::{BufferRing, Region};
use io_uring::opcode;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fd;
use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;

/// Buffers for what comes in; a power of two.
pub(super) const BUFFERS: u16 = 512;
/// Bytes of one. An odd number of cache lines, so that the first lines of the buffers, all that short
/// responses need, do not share a few sets of the cache.
pub(super) const BUFFER: usize = 257 * 64;
/// Bytes that may wait to be handed over.
const OUTBOX: usize = 64 << 10;

/// Requests that are handed over at once.
const SUBMITTED_MAX: u32 = 512;
/// Room for a completion of every buffer, and for those of requests that failed.
const COMPLETIONS: u32 = 4_096;

/// What a completion belongs to, with the slot and the generation of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: Kind,
    /// Of which the lowest 24 bits count.
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

/// What became of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) tag: Tag,
    /// Bytes, or an error number below zero.
    pub(super) result: i32,
    /// The buffer that it gives back.
    pub(super) buffer: Option<u16>,
    /// More completions of this request will come.
    pub(super) more: bool,
}

impl Completion {
    fn of(done: Completed) -> Completion {
        let Completed { number, result, buffer, more } = done;
        Completion { tag: Tag::unpack(number), result, buffer, more }
    }
}

/// A ring of one thread.
pub(super) struct KernelRing {
    ring: BatchRing,
    /// What waits to be handed over. `None`: lost, because the kernel did not end its requests.
    outbox: Option<Region>,
    /// Bytes in the outbox.
    written: usize,
}

impl std::fmt::Debug for KernelRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelRing").field("ring", &self.ring).finish_non_exhaustive()
    }
}

/// Whether this kernel has what sockets in batches need, and this process may use it.
///
/// # Errors
/// The kernel's, where it refuses: what it does not know is `InvalidInput`.
pub fn probe() -> io::Result<()> {
    KernelRing::open().map(|_| ())
}

impl KernelRing {
    /// For the calling thread.
    ///
    /// # Errors
    /// As [`probe`].
    pub(super) fn open() -> io::Result<KernelRing> {
        let buffers = BufferRing::new(BUFFERS, BUFFER);
        let ring = BatchRing::new(SUBMITTED_MAX, COMPLETIONS, buffers)?;
        Ok(KernelRing { ring, outbox: Some(Region::new(OUTBOX, 1)), written: 0 })
    }

    /// Whether the kernel does not work with it any more.
    pub(super) fn is_broken(&self) -> bool {
        self.ring.is_broken()
    }

    pub(super) fn buffers(&self) -> &BufferRing {
        self.ring.buffers()
    }

    pub(super) fn buffers_mut(&mut self) -> &mut BufferRing {
        self.ring.buffers_mut()
    }

    /// Receives what comes on a socket, into provided buffers, until it ends or none is left.
    pub(super) fn receive(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        let entry = opcode::RecvMulti::new(Fd(fd.as_raw_fd()), 0).build();
        self.push(&entry, tag, true);
    }

    /// Says once when a socket can be written to, or is broken.
    pub(super) fn watch(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), libc::POLLOUT as u32).build();
        self.push(&entry, tag, true);
    }

    /// Ends a request where it stands.
    pub(super) fn cancel(&mut self, tag: Tag) {
        let entry = opcode::AsyncCancel::new(BatchRing::kept_as(tag.pack())).build();
        let entry = entry.flags(Flags::SKIP_SUCCESS);
        self.push(&entry, Tag { kind: Kind::Cancel, ..tag }, false);
    }

    /// Sends bytes at the next submission: they are with the socket when that returns. A completion
    /// says so only where not all were: how many, or why none. Gives back where they stand until then;
    /// `None`: there is no room.
    pub(super) fn send(&mut self, fd: BorrowedFd<'_>, tag: Tag, bytes: &[u8]) -> Option<usize> {
        let outbox = self.outbox.as_ref()?;
        let start = self.written;
        if outbox.len() - start < bytes.len() {
            return None;
        }
        let place = outbox.place(start);
        // SAFETY: there is room from there on, of which nobody else has a reference: what stands there
        // is read by the kernel and by `unsent`, and both only before the outbox is emptied
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        // DONTWAIT: it is done or refused while it is submitted, and never waits in the kernel for
        // memory of ours that is used anew; WAITALL: not all of them is no success, which would not be
        // told
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
        let entry = opcode::Send::new(Fd(fd.as_raw_fd()), place, bytes.len() as u32).flags(flags);
        let entry = entry.build().flags(Flags::SKIP_SUCCESS);
        if !self.push(&entry, tag, false) {
            return None;
        }
        self.written += bytes.len();
        Some(start)
    }

    /// Bytes that were to be sent and stand in the outbox still.
    pub(super) fn unsent(&self, start: usize, length: usize) -> &[u8] {
        let Some(outbox) = &self.outbox else { return &[] };
        assert!(start + length <= self.written, "they were written");
        // SAFETY: they lie in the region and were set; nobody writes there before the outbox is emptied
        unsafe { std::slice::from_raw_parts(outbox.place(start), length) }
    }

    /// All that was to be sent is with the sockets, or was taken out.
    pub(super) fn empty_outbox(&mut self) {
        self.written = 0;
    }

    /// False where there is no room, and none can be made. `stays`: it is open until the kernel says that it
    /// is over.
    fn push(&mut self, entry: &Entry, tag: Tag, stays: bool) -> bool {
        if self.ring.is_broken() {
            return false;
        }
        let push = |ring: &mut BatchRing| {
            let (entry, number) = (entry.clone(), tag.pack());
            // SAFETY: what an entry points to is the outbox, which stays as it is until the entry was
            // submitted and the request is done; one that takes buffers stays
            unsafe {
                if stays { ring.push_to_stay(entry, number) } else { ring.push(entry, number) }
            }
        };
        if push(&mut self.ring) {
            return true;
        }
        self.ring.submit();
        !self.ring.is_broken() && push(&mut self.ring)
    }

    /// Lets the kernel have all that was pushed, and adds to `all` what is done.
    pub(super) fn enter(&mut self, look: Await, all: &mut Vec<Completion>) {
        self.ring.enter(look, |done| all.push(Completion::of(done)));
    }

    /// As if the kernel had refused.
    #[cfg(test)]
    pub(super) fn break_it(&mut self) {
        self.ring.break_off();
    }

    /// Ends all requests. False where the kernel may use the memory still.
    fn end(&mut self) -> bool {
        // what was pushed would not end otherwise
        self.enter(Await::No, &mut Vec::new());
        self.ring.end()
    }
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        if !self.end() {
            // rather lost than read by the kernel when it is somebody else's
            std::mem::forget(self.outbox.take());
        }
    }
}
