//! Plain HTTP/1.1 on open connections allocates nothing in the measured phase, and neither do
//! journeys whose requests take values from feeders.

use engine::Turn;
use sim::{Canned, CannedResponse, CannedSteps, Keep, canned_journey, canned_worker};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Number of allocations of this thread: the test harness has other threads, which allocate at
    /// any time.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
#[allow(unsafe_code, reason = "a counting allocator is a GlobalAlloc, whose methods are unsafe")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps alloc's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer was returned by the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn the_steady_state_allocates_nothing() {
    let plain = [(1, CannedResponse::Plain), (16, CannedResponse::Plain)];
    for (pipeline, response) in plain.into_iter().chain([(1, CannedResponse::Timed)]) {
        let what = format!("pipeline {pipeline}, {response:?}");
        assert_steady_memory(canned_worker(CALLS, pipeline, None, response), &what);
    }
    assert_steady_memory(canned_journey(CALLS, CannedSteps::Static), "a journey of static steps");
    let templates = canned_journey(CALLS, CannedSteps::Templates);
    assert_steady_memory(templates, "a journey whose requests take values");
}

const CALLS: u64 = 400_000;

fn assert_steady_memory((mut worker, mut io): (engine::Worker, Canned), what: &str) {
    let mut keep = Keep::default();
    let mut ready = Vec::with_capacity(64);
    let mut steady = None;
    let mut last = 0;
    while let Turn::Wait(until) = worker.turn(&mut io, &mut keep) {
        conduit::Io::wait(&mut io, until, &mut ready);
        for event in &ready {
            worker.handle(&mut io, *event);
        }
        // a few turns to open connections and to fill buffers to their size
        last += ready.len();
        if last > 10_000 && steady.is_none() {
            steady = Some(ALLOCATIONS.get());
        }
        if last < 24_000 {
            let now = ALLOCATIONS.get();
            assert_eq!(now, steady.unwrap_or(now), "{what}: after {last} events");
        }
    }
    assert!(steady.is_some(), "the run was too short to look at");
    assert_eq!(keep.total.counts.succeeded, CALLS);
}
