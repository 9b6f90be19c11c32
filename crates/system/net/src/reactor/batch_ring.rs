//! An io_uring instance that submits requests in batches and receives into provided buffers, shared
//! by sockets and packets.
#![allow(unsafe_code, reason = "memory that the kernel reads and writes while a request is open")]

use crate::reactor::buffers::BufferRing;
use io_uring::squeue::Entry;
use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Submitter, cqueue};
use std::io;
use std::mem::ManuallyDrop;
use std::time::Duration;
use units::Nanos;

/// Flag in the kernel's number of a request: it stays open.
const STAYS: u64 = 1 << 63;

/// Number of retries while the kernel is short of memory or has no room for completions.
const TRIES: u32 = 16;

/// Mode of waiting for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Await {
    /// Submits without waiting.
    No,
    Now,
    /// Sleeps until a completion arrives, at most for this time.
    Sleep(Option<Nanos>),
}

/// Completion of a request.
#[derive(Clone, Copy, Debug)]
pub struct Completed {
    /// User data of the request.
    pub number: u64,
    /// Bytes, or an error number below zero.
    pub result: i32,
    /// The buffer that it returns.
    pub buffer: Option<u16>,
    /// More completions of this request will follow.
    pub more: bool,
}

/// A ring of the thread that made it. Its buffers are group 0.
pub struct BatchRing {
    ring: IoUring,
    buffers: ManuallyDrop<BufferRing>,
    /// Requests that were pushed to stay, and are not over. Without one the kernel does not use the buffers.
    open: u64,
    /// True if the kernel no longer accepts requests. The ring is not used again: the queue may
    /// still contain earlier requests whose memory was freed.
    broken: bool,
    /// Flag that keeps time asleep from counting as waiting for a disk.
    sleep: EnterFlags,
}

impl std::fmt::Debug for BatchRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchRing").field("open", &self.open).finish_non_exhaustive()
    }
}

impl BatchRing {
    /// Creates a ring for the calling thread. `submitted_max`: requests per submission;
    /// `completions`: room for completions.
    ///
    /// # Errors
    /// Fails with the kernel's error: unknown features are `InvalidInput`, or `Unsupported`.
    pub fn new(submitted_max: u32, completions: u32, buffers: BufferRing) -> io::Result<BatchRing> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(completions)
            .build(submitted_max)?;
        if !ring.params().is_feature_skip_cqe_on_success() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (entries, count) = (buffers.entries(), buffers.count());
        // SAFETY: it has that many entries and is released only when no request is open
        unsafe { ring.submitter().register_buf_ring_with_flags(entries, count, 0, 0)? };
        let mut sleep = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        if ring.params().is_feature_no_iowait() {
            sleep |= EnterFlags::NO_IOWAIT;
        }
        let buffers = ManuallyDrop::new(buffers);
        Ok(BatchRing { ring, buffers, open: 0, broken: false, sleep })
    }

    /// Returns the handle that registers files and queries the kernel's features.
    pub fn submitter(&self) -> Submitter<'_> {
        self.ring.submitter()
    }

    /// Returns whether the kernel no longer works with the ring.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Treats the kernel as refusing from now on.
    pub fn break_off(&mut self) {
        self.broken = true;
    }

    #[inline]
    pub fn buffers(&self) -> &BufferRing {
        &self.buffers
    }

    #[inline]
    pub fn buffers_mut(&mut self) -> &mut BufferRing {
        &mut self.buffers
    }

    /// Requests that were pushed and that the kernel has not consumed.
    #[inline]
    pub fn waiting(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// Adds a request for the next submission; returns a number below 2^63 for it. False if there
    /// is no room.
    ///
    /// # Safety
    /// Memory that the entry points to must stay unchanged until the request is done, or the ring
    /// is broken. The request takes no buffer of the ring.
    #[inline]
    pub unsafe fn push(&mut self, entry: Entry, number: u64) -> bool {
        // SAFETY: guaranteed by the caller
        unsafe { self.ring.submission().push(&entry.user_data(number & !STAYS)).is_ok() }
    }

    /// Like [`BatchRing::push`], for a request that stays open until a completion without the flag
    /// "more": it may use buffers of the ring, and [`BatchRing::end`] waits for it.
    ///
    /// # Safety
    /// Memory that the entry points to must stay unchanged until the request is done, or the ring
    /// is broken.
    #[inline]
    pub unsafe fn push_multishot(&mut self, entry: Entry, number: u64) -> bool {
        // SAFETY: guaranteed by the caller
        let pushed = unsafe {
            self.ring.submission().push(&entry.user_data(BatchRing::kept_as(number))).is_ok()
        };
        self.open += u64::from(pushed);
        pushed
    }

    /// Returns the user data by which the kernel knows a multishot request, for canceling it.
    pub fn kept_as(number: u64) -> u64 {
        number | STAYS
    }

    /// Makes room for requests. Completions remain queued until they are read.
    pub fn submit(&mut self) {
        for _ in 0..TRIES {
            let done = self.call(Await::No);
            if self.is_refusal(done) || self.ring.submission().is_empty() {
                return;
            }
        }
        self.broken = true;
    }

    /// Submits all pushed requests and passes each completion to `settle`. The buffer of a
    /// completion is ours again.
    pub fn enter(&mut self, mut look: Await, mut settle: impl FnMut(Completed)) {
        let mut tries = TRIES;
        while !self.broken {
            let done = self.call(look);
            self.reap(&mut settle);
            if self.is_refusal(done) {
                return;
            }
            let queue = self.ring.submission();
            let (left, overflow) = (!queue.is_empty(), queue.cq_overflow());
            drop(queue);
            match (left, overflow) {
                (false, false) => return,
                // completions without room arrive with the next poll
                (_, true) => look = Await::Now,
                (true, false) => look = Await::No,
            }
            tries -= u32::from(left);
            self.broken = tries == 0;
        }
    }

    /// Ends all requests; nothing is submitted. Returns false if a request that stays is still
    /// open: the kernel may still use the buffers, which are then leaked with the ring.
    pub fn end(&mut self) -> bool {
        let second = Timespec::new().sec(1);
        // open requests are canceled; it is no error if there are none
        self.ring.submitter().register_sync_cancel(Some(second), CancelBuilder::any()).ok();
        let mut tries = TRIES;
        while self.open > 0 && tries > 0 {
            let before = self.open;
            // a refusal is retried as often as a missing completion
            self.call_with(0, Await::Sleep(Some(Nanos::from_millis(10)))).ok();
            self.reap(|_| {});
            tries -= u32::from(self.open == before);
        }
        self.open == 0
    }

    /// Evaluates a submission; returns whether the kernel no longer works with the ring.
    fn is_refusal(&mut self, done: io::Result<usize>) -> bool {
        match done.map_err(|error| error.raw_os_error()) {
            // a sleep that was long enough, or interrupted; no memory, or no room for completions
            Ok(_) | Err(Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
            Err(_) => self.broken = true,
        }
        self.broken
    }

    fn call(&mut self, look: Await) -> io::Result<usize> {
        let count = self.ring.submission().len() as u32;
        self.call_with(count, look)
    }

    fn call_with(&self, count: u32, look: Await) -> io::Result<usize> {
        let submitter = self.ring.submitter();
        let (span, args);
        // SAFETY: the arguments live until the call returns, and the flags state their kind
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

    fn reap(&mut self, mut settle: impl FnMut(Completed)) {
        for entry in self.ring.completion() {
            let done = Completed {
                number: entry.user_data() & !STAYS,
                result: entry.result(),
                buffer: cqueue::buffer_select(entry.flags()),
                more: cqueue::more(entry.flags()),
            };
            if let Some(id) = done.buffer {
                self.buffers.mark_returned(id);
            }
            self.open -= u64::from(entry.user_data() & STAYS != 0 && !done.more);
            settle(done);
        }
    }
}

impl Drop for BatchRing {
    fn drop(&mut self) {
        let unregistered = self.ring.submitter().unregister_buf_ring(0);
        if self.open == 0 && unregistered.is_ok() {
            // SAFETY: this is the end of it, and the kernel does not use it
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
        // otherwise leak them, because the kernel may still write to them
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::opcode;
    use io_uring::types::Fd;
    use rustix::fd::AsRawFd;
    use std::io::Write;

    /// Returns a ring with few buffers; `None`, with a printed note, without io_uring.
    fn ring(completions: u32) -> Option<BatchRing> {
        match BatchRing::new(4, completions, BufferRing::new(2, 64)) {
            Ok(ring) => Some(ring),
            Err(error) => {
                // a closed standard error is not a failure
                writeln!(io::stderr(), "io_uring is not tested: {error}").ok();
                assert!(std::env::var_os("CI").is_none(), "{error}");
                None
            }
        }
    }

    fn push(ring: &mut BatchRing, number: u64) -> bool {
        // SAFETY: it points to nothing, and uses no buffer
        unsafe { ring.push(opcode::Nop::new().build(), number) }
    }

    /// Completions without room arrive later and are not lost.
    #[test]
    fn overflowing_completions_are_delivered() {
        let Some(mut ring) = ring(8) else { return };
        for number in 0..40 {
            if !push(&mut ring, number) {
                ring.submit();
                assert_eq!(ring.waiting(), 0);
                assert!(push(&mut ring, number), "there is room again");
            }
        }
        let mut came = Vec::new();
        ring.enter(Await::No, |done| came.push(done.number));
        assert_eq!(came, (0..40).collect::<Vec<_>>());
        assert_eq!((ring.waiting(), ring.is_broken()), (0, false));
    }

    #[test]
    fn a_broken_ring_submits_nothing_and_ends() {
        let Some(mut ring) = ring(8) else { return };
        assert!(push(&mut ring, 1));
        ring.break_off();
        ring.enter(Await::Sleep(None), |_| panic!("nothing was handed over"));
        assert_eq!(ring.waiting(), 1);
        assert!(ring.end(), "no request is open");
    }

    /// A pipe reader: it uses a buffer, continues, and is canceled while it waits.
    #[test]
    fn the_end_waits_for_open_requests() {
        let Some(mut ring) = ring(8) else { return };
        let (ours, theirs) = io::pipe().expect("a pipe");
        let read = |ring: &mut BatchRing| {
            let entry = opcode::ReadMulti::new(Fd(ours.as_raw_fd()), 0, 0).build();
            // SAFETY: it points to nothing
            unsafe { ring.push_multishot(entry, 7) }
        };
        ring.buffers_mut().post(0);
        ring.buffers_mut().post(1);
        ring.buffers_mut().publish();
        assert!(read(&mut ring));
        (&theirs).write_all(b"some").expect("written");
        let mut came = Vec::new();
        ring.enter(Await::Sleep(None), |done| came.push(done));
        let describe = |came: &[Completed]| -> Vec<(u64, i32, bool, bool)> {
            came.iter().map(|it| (it.number, it.result, it.buffer.is_some(), it.more)).collect()
        };
        assert_eq!(describe(&came), [(7, 4, true, true)]);
        assert_eq!(ring.open, 1);
        // an end by name
        let cancel = opcode::AsyncCancel::new(BatchRing::kept_as(7)).build();
        // SAFETY: it points to nothing, and takes no buffer
        assert!(unsafe { ring.push(cancel, 8) });
        came.clear();
        while ring.open > 0 {
            ring.enter(Await::Sleep(None), |done| came.push(done));
        }
        assert!(describe(&came).contains(&(7, -libc::ECANCELED, false, false)), "{came:?}");
        assert!(read(&mut ring));
        ring.submit();
        assert_eq!(ring.open, 1);
        assert!(ring.end(), "it is ended where it waits");
        assert_eq!(ring.open, 0);
        // a request that the kernel never saw does not end: the buffers are leaked, so that nothing
        // waits forever
        assert!(read(&mut ring));
        ring.break_off();
        assert!(!ring.end());
    }
}
