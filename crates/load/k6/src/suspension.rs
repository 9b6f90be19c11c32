//! Suspension of a user's coroutine.

use crate::call::{VuAnswer, VuRequest};
use corosensei::Yielder;
use std::cell::Cell;

/// Part of the stack below a suspended user that is kept: more than the context switch uses.
const STACK_MARGIN: usize = 16 << 10;

/// Suspension point of a user; set while its coroutine is alive.
#[derive(Debug, Default)]
pub(crate) struct Suspension {
    yielder: Cell<Option<*const Yielder<VuAnswer, VuRequest>>>,
    /// Address on the stack at which the user was suspended last.
    depth: Cell<usize>,
}

impl Suspension {
    pub(crate) fn set(&self, yielder: &Yielder<VuAnswer, VuRequest>) {
        self.yielder.set(Some(yielder));
    }

    /// Releases the memory of the stack below a suspended user to the system. `bottom`: lowest
    /// address of its stack, at which a guard page begins.
    ///
    /// The init code uses far more of the stack than iterations do.
    pub(crate) fn release_stack(&self, bottom: usize) {
        // SAFETY: this reads a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let Ok(page) = usize::try_from(page) else { return };
        // the lowest page is the guard
        let from = bottom + page;
        let to = self.depth.get().saturating_sub(STACK_MARGIN) & !(page - 1);
        if to > from {
            // SAFETY: these pages belong to the stack of a user that is suspended above them, so
            // nothing in them is in use. Failing to release them is harmless.
            unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_DONTNEED) };
        }
    }

    /// Suspends the current coroutine; outside a coroutine, returns the answer that ends the
    /// user.
    pub(crate) fn suspend(&self, request: VuRequest) -> VuAnswer {
        let Some(yielder) = self.yielder.get() else { return VuAnswer::End };
        let mark = 0_u8;
        self.depth.set((&raw const mark).addr());
        // SAFETY: the yielder lives as long as the coroutine's closure, and this runs on its stack.
        unsafe { (*yielder).suspend(request) }
    }
}
