//! The ring itself: requests in, completions out, and the memory that both need.
#![allow(unsafe_code, reason = "memory that the kernel reads and writes while a request is open")]

use crate::buffers::{BufferRing, Region};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;
use std::time::Duration;
use units::Nanos;

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
/// What a kernel that is short of memory, or has no room for completions, is asked again.
const TRIES: u32 = 16;

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

/// Whether to look for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Await {
    /// Only hand over.
    No,
    Now,
    /// Sleep until there is one, so long at most.
    Sleep(Option<Nanos>),
}

/// A ring of one thread.
pub(super) struct KernelRing {
    ring: IoUring,
    /// `None`: lost, because the kernel did not let go of it.
    memory: Option<Memory>,
    /// Requests that the kernel has and that may write to the buffers.
    open: u64,
    /// Bytes in the outbox.
    written: usize,
    /// The kernel does not take requests any more. It is asked nothing again.
    broken: bool,
    /// Time asleep does not count as waiting for a disk.
    sleep: EnterFlags,
}

struct Memory {
    buffers: BufferRing,
    outbox: Region,
}

impl std::fmt::Debug for KernelRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelRing").field("open", &self.open).finish_non_exhaustive()
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
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMITTED_MAX)?;
        if !ring.params().is_feature_skip_cqe_on_success() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let memory =
            Memory { buffers: BufferRing::new(BUFFERS, BUFFER), outbox: Region::new(OUTBOX, 1) };
        let entries = memory.buffers.entries();
        // SAFETY: it has so many entries, and is let go of only when no request is open
        unsafe { ring.submitter().register_buf_ring_with_flags(entries, BUFFERS, 0, 0)? };
        let mut sleep = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        if ring.params().is_feature_no_iowait() {
            sleep |= EnterFlags::NO_IOWAIT;
        }
        let memory = Some(memory);
        Ok(KernelRing { ring, memory, open: 0, written: 0, broken: false, sleep })
    }

    /// Whether the kernel does not work with it any more.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    pub(super) fn buffers(&mut self) -> Option<&mut BufferRing> {
        self.memory.as_mut().map(|memory| &mut memory.buffers)
    }

    /// Receives what comes on a socket, into provided buffers, until it ends or none is left.
    pub(super) fn receive(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        let entry = opcode::RecvMulti::new(Fd(fd.as_raw_fd()), 0).build();
        self.open += u64::from(self.push(&entry.user_data(tag.pack())));
    }

    /// Says once when a socket can be written to, or is broken.
    pub(super) fn watch(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), libc::POLLOUT as u32).build();
        self.open += u64::from(self.push(&entry.user_data(tag.pack())));
    }

    /// Ends a request where it stands.
    pub(super) fn cancel(&mut self, tag: Tag) {
        let entry = opcode::AsyncCancel::new(tag.pack()).build().flags(Flags::SKIP_SUCCESS);
        self.push(&entry.user_data(Tag { kind: Kind::Cancel, ..tag }.pack()));
    }

    /// Sends bytes at the next submission: they are with the socket when that returns. A completion
    /// says so only where not all were: how many, or why none. Gives back where they stand until then;
    /// `None`: there is no room.
    pub(super) fn send(&mut self, fd: BorrowedFd<'_>, tag: Tag, bytes: &[u8]) -> Option<usize> {
        let outbox = &self.memory.as_ref()?.outbox;
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
        let entry = entry.build().flags(Flags::SKIP_SUCCESS).user_data(tag.pack());
        if !self.push(&entry) {
            return None;
        }
        self.written += bytes.len();
        Some(start)
    }

    /// Bytes that were to be sent and stand in the outbox still.
    pub(super) fn unsent(&self, start: usize, length: usize) -> &[u8] {
        let Some(memory) = &self.memory else { return &[] };
        assert!(start + length <= self.written, "they were written");
        // SAFETY: they lie in the region and were set; nobody writes there before the outbox is emptied
        unsafe { std::slice::from_raw_parts(memory.outbox.place(start), length) }
    }

    /// All that was to be sent is with the sockets, or was taken out.
    pub(super) fn empty_outbox(&mut self) {
        self.written = 0;
    }

    /// False where there is no room, and none can be made.
    fn push(&mut self, entry: &Entry) -> bool {
        if self.broken {
            return false;
        }
        // SAFETY: what an entry points to is the outbox, which stays as it is until the entry was
        // submitted and the request is done
        if unsafe { self.ring.submission().push(entry).is_ok() } {
            return true;
        }
        self.submit();
        // SAFETY: as above
        !self.broken && unsafe { self.ring.submission().push(entry).is_ok() }
    }

    /// Makes room for requests. Completions wait to be looked at.
    fn submit(&mut self) {
        for _ in 0..TRIES {
            let done = self.call(Await::No);
            if self.is_refusal(done) || self.ring.submission().is_empty() {
                return;
            }
        }
        self.broken = true;
    }

    /// Whether the kernel does not work with the ring any more.
    fn is_refusal(&mut self, done: io::Result<usize>) -> bool {
        match done.map_err(|error| error.raw_os_error()) {
            // a sleep that was long enough, or interrupted; no memory, or no room for completions
            Ok(_) | Err(Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
            Err(_) => self.broken = true,
        }
        self.broken
    }

    /// Lets the kernel have all that was pushed, and adds to `all` what is done.
    pub(super) fn enter(&mut self, mut look: Await, all: &mut Vec<Completion>) {
        let mut tries = TRIES;
        while !self.broken {
            let done = self.call(look);
            self.reap(all);
            if self.is_refusal(done) {
                return;
            }
            let queue = self.ring.submission();
            let (left, overflow) = (!queue.is_empty(), queue.cq_overflow());
            drop(queue);
            match (left, overflow) {
                (false, false) => return,
                // completions that had no room come with a look
                (_, true) => look = Await::Now,
                (true, false) => look = Await::No,
            }
            tries -= u32::from(left);
            self.broken = tries == 0;
        }
    }

    fn call(&mut self, look: Await) -> io::Result<usize> {
        let count = self.ring.submission().len() as u32;
        let submitter = self.ring.submitter();
        let (span, args);
        // SAFETY: the arguments live until the call is over, and their kind is what the flags say
        unsafe {
            match look {
                Await::No => submitter.enter::<()>(count, 0, 0, None),
                Await::Now => submitter.enter::<()>(count, 0, EnterFlags::GETEVENTS.bits(), None),
                Await::Sleep(None) => {
                    args = SubmitArgs::new();
                    submitter.enter(count, 1, self.sleep.bits(), Some(&args))
                }
                Await::Sleep(Some(most)) => {
                    span = Timespec::from(Duration::from_nanos(most.0));
                    args = SubmitArgs::new().timespec(&span);
                    submitter.enter(count, 1, self.sleep.bits(), Some(&args))
                }
            }
        }
    }

    fn reap(&mut self, all: &mut Vec<Completion>) {
        let Some(memory) = &mut self.memory else { return };
        for entry in self.ring.completion() {
            let tag = Tag::unpack(entry.user_data());
            let more = cqueue::more(entry.flags());
            let buffer = cqueue::buffer_select(entry.flags());
            if let Some(id) = buffer {
                memory.buffers.back(id);
            }
            self.open -= u64::from(!more && matches!(tag.kind, Kind::Receive | Kind::Writable));
            all.push(Completion { tag, result: entry.result(), buffer, more });
        }
    }

    /// As if the kernel had refused.
    #[cfg(test)]
    pub(super) fn break_it(&mut self) {
        self.broken = true;
    }

    /// Ends all requests. False where the kernel may use the buffers still.
    fn end(&mut self) -> bool {
        let mut all = Vec::new();
        self.enter(Await::No, &mut all);
        let second = Timespec::new().sec(1);
        // what is open is ended where it stands; that there is nothing is fine
        self.ring.submitter().register_sync_cancel(Some(second), CancelBuilder::any()).ok();
        let mut tries = TRIES;
        while self.open > 0 && tries > 0 && !self.broken {
            let before = self.open;
            all.clear();
            self.enter(Await::Sleep(Some(Nanos::from_millis(10))), &mut all);
            if self.open == before {
                tries -= 1;
            }
        }
        self.open == 0
    }
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        if !self.end() {
            // rather lost than written to by the kernel when it is somebody else's
            std::mem::forget(self.memory.take());
        }
        self.ring.submitter().unregister_buf_ring(0).ok();
    }
}
