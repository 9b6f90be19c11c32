//! Allocator for one session. The library allocates and frees about ten small blocks per stream, of
//! few sizes: free lists by size cost a third of the system's allocator, which must support all
//! threads and sizes.
#![expect(unsafe_code, reason = "the library takes memory from C")]

use libnghttp2_sys as ng;
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// Sizes of small blocks are multiples of this.
const STEP: usize = 32;

/// Number of block sizes; larger blocks come from the system.
const SIZES: usize = 16;

/// Size of the header before each block, which contains the block's size. The library never needs a
/// larger alignment.
const HEADER: usize = 8;

/// Freed blocks by size. The library owns the allocated ones, and frees all of them before this is
/// dropped.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    free: [Option<NonNull<Free>>; SIZES],
}

/// An unused block, without its header.
#[derive(Debug)]
struct Free {
    next: Option<NonNull<Free>>,
}

/// Returns the size of the whole block, including the header, that holds `size` bytes, or `None` if
/// there is no such block.
#[inline]
fn whole(size: usize) -> Option<usize> {
    let total = size.checked_add(HEADER)?;
    if total <= STEP * SIZES {
        return Some(total.next_multiple_of(STEP));
    }
    (total <= isize::MAX as usize - HEADER).then_some(total)
}

fn layout(whole: usize) -> Layout {
    // a size that `whole` has accepted
    Layout::from_size_align(whole, HEADER).expect("a size below the largest")
}

/// Returns the index of the free list for this size, including the header.
#[inline]
fn size_class(whole: usize) -> Option<usize> {
    (whole <= STEP * SIZES).then(|| whole / STEP - 1)
}

impl Memory {
    /// Returns the library's functions on `memory`.
    pub(crate) fn functions(memory: NonNull<Memory>) -> ng::nghttp2_mem {
        ng::nghttp2_mem {
            mem_user_data: memory.as_ptr().cast(),
            malloc: Some(malloc),
            free: Some(free),
            calloc: Some(calloc),
            realloc: Some(realloc),
        }
    }

    /// Returns a block of at least `size` bytes; null if there is no memory.
    #[inline]
    fn take(&mut self, size: usize) -> *mut u8 {
        let Some(whole) = whole(size) else { return ptr::null_mut() };
        if let Some(size_class) = size_class(whole)
            && let Some(block) = self.free[size_class]
        {
            // SAFETY: a list entry is an unused block, written by `release`
            self.free[size_class] = unsafe { block.as_ref().next };
            return block.as_ptr().cast();
        }
        // SAFETY: the size is not zero; the header lies within the block and is aligned as it is
        unsafe {
            let start = alloc(layout(whole));
            if start.is_null() {
                return start;
            }
            start.cast::<usize>().write(whole);
            start.add(HEADER)
        }
    }

    /// # Safety
    /// `block` was returned by `take` of the same memory and is no longer used.
    #[inline]
    unsafe fn release(&mut self, block: NonNull<u8>) {
        // SAFETY: guaranteed by the caller: the header precedes the block, and a block has room for
        // `Free`
        unsafe {
            let whole = size_of_block(block);
            match size_class(whole) {
                Some(size_class) => {
                    let block = block.cast::<Free>();
                    block.write(Free { next: self.free[size_class] });
                    self.free[size_class] = Some(block);
                }
                None => dealloc(block.as_ptr().sub(HEADER), layout(whole)),
            }
        }
    }

    /// # Safety
    /// `block` was returned by `take` of the same memory; if another block is returned, it must not
    /// be used afterwards.
    unsafe fn resize(&mut self, block: NonNull<u8>, size: usize) -> *mut u8 {
        // SAFETY: the caller's; both blocks hold the copied bytes
        unsafe {
            let had = size_of_block(block) - HEADER;
            if size <= had && had <= STEP * SIZES {
                return block.as_ptr();
            }
            let larger = self.take(size);
            if !larger.is_null() {
                ptr::copy_nonoverlapping(block.as_ptr(), larger, had.min(size));
                self.release(block);
            }
            larger
        }
    }
}

/// # Safety
/// `block` was returned by [`Memory::take`].
#[inline]
unsafe fn size_of_block(block: NonNull<u8>) -> usize {
    // SAFETY: the caller's
    unsafe { block.as_ptr().sub(HEADER).cast::<usize>().read() }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for list in &mut self.free {
            while let Some(block) = list.take() {
                // SAFETY: as in `take`; each block is in one list, once
                unsafe {
                    *list = block.as_ref().next;
                    let start = block.as_ptr().cast::<u8>().sub(HEADER);
                    dealloc(start, layout(start.cast::<usize>().read()));
                }
            }
        }
    }
}

/// # Safety
/// `user` is the [`Memory`] that was passed to the library, and is alive; the library has no other
/// reference to it.
unsafe fn memory<'a>(user: *mut c_void) -> &'a mut Memory {
    // SAFETY: the caller's: the library calls one of these functions at a time
    unsafe { &mut *user.cast::<Memory>() }
}

unsafe extern "C" fn malloc(size: usize, user: *mut c_void) -> *mut c_void {
    // SAFETY: the library passes a block it received
    unsafe { memory(user) }.take(size).cast()
}

unsafe extern "C" fn free(block: *mut c_void, user: *mut c_void) {
    if let Some(block) = NonNull::new(block) {
        // SAFETY: the library frees a block it allocated
        unsafe { memory(user).release(block.cast()) }
    }
}

unsafe extern "C" fn calloc(count: usize, size: usize, user: *mut c_void) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return ptr::null_mut() };
    // SAFETY: as above; the block has that many bytes
    unsafe {
        let block = memory(user).take(size);
        if !block.is_null() {
            block.write_bytes(0, size);
        }
        block.cast()
    }
}

unsafe extern "C" fn realloc(block: *mut c_void, size: usize, user: *mut c_void) -> *mut c_void {
    // SAFETY: as above
    unsafe {
        match NonNull::new(block) {
            Some(block) => memory(user).resize(block.cast(), size).cast(),
            None => memory(user).take(size).cast(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks that a block still contains only the byte that it was filled with.
    fn check(block: &(NonNull<u8>, usize, u8)) {
        let (start, size, byte) = *block;
        // SAFETY: a block of that many initialized bytes
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), size) };
        assert!(bytes.iter().all(|one| *one == byte), "{size} bytes were written over");
    }

    fn filled(block: *mut c_void, size: usize, byte: u8) -> (NonNull<u8>, usize, u8) {
        let block = NonNull::new(block.cast::<u8>()).expect("memory");
        assert_eq!(block.as_ptr() as usize % HEADER, 0);
        // SAFETY: the block has that many bytes
        unsafe { block.as_ptr().write_bytes(byte, size) };
        (block, size, byte)
    }

    proptest! {
        #[test]
        fn blocks_never_overlap(steps in prop::collection::vec((0..4_u8, 0..1_500_usize, any::<prop::sample::Index>()), 1..200)) {
            let mut memory = Box::new(Memory::default());
            let user: *mut c_void = (&raw mut *memory).cast();
            let mut taken = Vec::new();
            for (number, (what, size, which)) in steps.into_iter().enumerate() {
                let byte = number as u8;
                // SAFETY: as the library would call them
                unsafe {
                    match what {
                        0 => taken.push(filled(malloc(size, user), size, byte)),
                        1 => {
                            let block = calloc(size, 1, user);
                            let start = NonNull::new(block.cast::<u8>()).expect("memory");
                            check(&(start, size, 0));
                            taken.push(filled(block, size, byte));
                        }
                        2 if !taken.is_empty() => {
                            let old = taken.swap_remove(which.index(taken.len()));
                            check(&old);
                            let block = realloc(old.0.as_ptr().cast(), size, user);
                            let start = NonNull::new(block.cast::<u8>()).expect("memory");
                            check(&(start, size.min(old.1), old.2));
                            taken.push(filled(block, size, byte));
                        }
                        _ if !taken.is_empty() => {
                            let old = taken.swap_remove(which.index(taken.len()));
                            check(&old);
                            free(old.0.as_ptr().cast(), user);
                        }
                        _ => {}
                    }
                }
            }
            for block in taken {
                check(&block);
                // SAFETY: as above
                unsafe { free(block.0.as_ptr().cast(), user) };
            }
        }
    }

    #[test]
    fn a_freed_block_is_reused() {
        let mut memory = Memory::default();
        let first = memory.take(40);
        // SAFETY: it was just taken
        unsafe { memory.release(NonNull::new(first).expect("memory")) };
        assert_eq!(memory.take(56), first, "both are of 64 bytes with their headers");
        // SAFETY: the same
        unsafe { memory.release(NonNull::new(first).expect("memory")) };
    }

    #[test]
    fn too_large_blocks_are_refused() {
        let mut memory = Memory::default();
        let user: *mut c_void = (&raw mut memory).cast();
        // SAFETY: as the library would call it
        unsafe {
            assert!(calloc(usize::MAX, 2, user).is_null());
            assert!(malloc(usize::MAX, user).is_null());
            assert!(malloc(isize::MAX as usize, user).is_null());
        }
    }
}
