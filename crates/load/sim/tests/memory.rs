//! Memory of a load's connection between its calls: counted allocations. The memory of `tcp` is in
//! its own tests; docs/design/own-stack.md adds them up.

use conduit::Io;
use engine::{Turn, Worker};
use sim::{Keep, canned_pings, canned_thinkers};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use units::Nanos;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
#[allow(unsafe_code, reason = "a counting allocator is a GlobalAlloc, whose methods are unsafe")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps alloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer was returned by the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// Memory of `users` users in bytes, and of their connections while all users think. Each makes two
/// calls.
fn parts<I: Io>(users: u32, make: impl Fn(u32) -> (Worker, I)) -> (usize, usize) {
    let before = held();
    let (mut worker, mut io) = make(users);
    let of_users = held() - before;
    let mut keep = Keep::default();
    let mut ready = Vec::with_capacity(users as usize);
    let with_users = held();
    let mut at_rest = None;
    while let Turn::Wait(until) = worker.turn(&mut io, &mut keep) {
        io.wait(until, &mut ready);
        if ready.is_empty() && at_rest.is_none() {
            at_rest = Some(held() - with_users);
        }
        for event in &ready {
            worker.handle(&mut io, *event);
        }
    }
    assert_eq!(keep.total.counts.succeeded, 2 * u64::from(users));
    (of_users, at_rest.expect("nobody thought"))
}

/// This file has a single test: a second one would run concurrently and be counted too.
#[test]
fn a_connection_at_rest_is_small() {
    // two sizes, so that memory of the worker itself cancels out
    const MORE: u32 = 40_000;
    const MORE_SOCKETS: u32 = 4_000;
    let thinkers = |users| canned_thinkers(users, Nanos::from_secs(10), 2 * u64::from(users));
    let (few, many) = (parts(10_000, thinkers), parts(10_000 + MORE, thinkers));
    let each = |few: usize, many: usize| (many - few) / MORE as usize;
    let (user, connection) = (each(few.0, many.0), each(few.1, many.1));
    println!("{connection} bytes a connection, {user} bytes a user");
    assert!(connection <= 124, "{connection} bytes a connection");
    assert!(user <= 124, "{user} bytes a user");
    let (few, many) = (parts(1_000, canned_pings), parts(1_000 + MORE_SOCKETS, canned_pings));
    let socket = (many.1 - few.1) / MORE_SOCKETS as usize;
    println!("{socket} bytes a WebSocket");
    assert!(socket <= 400, "{socket} bytes a WebSocket");
}
