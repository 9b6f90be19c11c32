//! Memory that the kernel fills while an io_uring request is open, and the ring that announces free
//! buffers to the kernel.
#![allow(unsafe_code, reason = "memory that the kernel reads and writes while a request is open")]

use io_uring::types::BufRingEntry;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// The buffer ring must be page-aligned (io_uring_register(2)), or the kernel returns EINVAL. ARM
/// and POWER machines have pages of 16 and 64 KiB; an address aligned to a large page is aligned to
/// a small one too.
const PAGE_MAX: usize = 65_536;

/// Memory that is zero at first.
pub(crate) struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the ring is the only owner of the memory
unsafe impl Send for Region {}

impl Region {
    /// Allocates memory. `align`: if larger than that of every allocation, all of the memory is
    /// written at once.
    pub(crate) fn new(length: usize, align: usize) -> Region {
        let layout = Layout::from_size_align(length, align).expect("a small power of two");
        assert!(length > 0, "an allocation has a size");
        // SAFETY: the layout's size is not 0
        let start = unsafe { alloc_zeroed(layout) };
        Region { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    /// Returns the address of the bytes from `at` on.
    pub(crate) fn place(&self, at: usize) -> *mut u8 {
        assert!(at <= self.layout.size(), "the place is within the region");
        // SAFETY: it is within the allocation, or just past its end
        unsafe { self.start.as_ptr().add(at) }
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout and has no other user: a region is released
        // only when the kernel has no open request that could use it
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Provided buffers of one size (IORING_REGISTER_PBUF_RING, Linux 5.19). Each belongs to the kernel or
/// to us.
///
/// The region is kept while a request of its io_uring is open.
pub struct BufferRing {
    bytes: Region,
    entries: Region,
    /// Size of a buffer in bytes.
    size: usize,
    /// True for each buffer that the kernel has.
    posted: Box<[bool]>,
    /// Number of buffers ever given to the kernel, in the kernel's counting.
    tail: u16,
}

impl std::fmt::Debug for BufferRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BufferRing").field("size", &self.size).finish_non_exhaustive()
    }
}

impl BufferRing {
    /// Creates a ring. `count`: a power of two; all buffers are ours at first. A buffer that was
    /// never used takes no memory.
    pub fn new(count: u16, size: usize) -> BufferRing {
        assert!(count.is_power_of_two(), "the kernel takes powers of two");
        let count = usize::from(count);
        let bytes = Region::new(count * size, 1);
        let entries = Region::new(count * size_of::<BufRingEntry>(), PAGE_MAX);
        BufferRing { bytes, entries, size, posted: vec![false; count].into_boxed_slice(), tail: 0 }
    }

    /// Returns the number of buffers.
    pub(crate) fn count(&self) -> u16 {
        self.posted.len() as u16
    }

    /// Returns the address of the ring's entries, for the kernel.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.place(0) as u64
    }

    /// Adds a buffer to the ring; [`BufferRing::publish`] announces it.
    pub fn post(&mut self, id: u16) {
        let posted = &mut self.posted[usize::from(id)];
        assert!(!*posted, "a buffer belongs to the kernel or to us");
        *posted = true;
        let row = usize::from(self.tail) & (self.posted.len() - 1);
        // SAFETY: the region has an entry for each buffer and is page-aligned; the kernel reads no
        // entry from the tail on, where this one is. The address is in the other region.
        unsafe {
            let entry = self.entries.place(0).cast::<BufRingEntry>().add(row);
            (*entry).set_addr(self.bytes.place(usize::from(id) * self.size) as u64);
            (*entry).set_len(self.size as u32);
            (*entry).set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Lets the kernel use the posted buffers.
    pub fn publish(&mut self) {
        // SAFETY: the tail's place is in the first entry, at an even address, and only we write it
        let tail = unsafe {
            let base = self.entries.place(0).cast::<BufRingEntry>();
            AtomicU16::from_ptr(BufRingEntry::tail(base).cast_mut())
        };
        tail.store(self.tail, Ordering::Release);
    }

    /// Records that the kernel has returned a buffer.
    pub(crate) fn mark_returned(&mut self, id: u16) {
        let posted = &mut self.posted[usize::from(id)];
        assert!(*posted, "the kernel returns only buffers of this ring");
        *posted = false;
    }

    /// Returns the first bytes of a buffer that is ours.
    pub fn bytes(&self, id: u16, length: usize) -> &[u8] {
        assert!(
            !self.posted[usize::from(id)] && length <= self.size,
            "the bytes are in a buffer of ours"
        );
        // SAFETY: the buffer is in the region, whose bytes were all initialized, and is not with
        // the kernel; returning it needs `&mut self`
        unsafe { std::slice::from_raw_parts(self.bytes.place(usize::from(id) * self.size), length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_begin_with_a_page_of_any_machine() {
        // kept, so that each has a distinct address
        let rings: Vec<BufferRing> = (0..8).map(|_| BufferRing::new(2, 64)).collect();
        let places: Vec<u64> = rings.iter().map(BufferRing::entries).collect();
        assert!(places.iter().all(|place| place % (64 << 10) == 0), "{places:x?}");
    }
}
